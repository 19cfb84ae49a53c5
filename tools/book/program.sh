#!/bin/sh
# Compiles what pages of the book call as WebAssembly, each as a script with the program as text, below target/tools/site: `wire explain` is
# program.js, the workbench is workbench.js. Where there is no compiler for WebAssembly, neither this machine's nor one that set-up has
# unpacked, it says so, and the book is made without them.
set -eu
cd "$(dirname "$0")/../.."
case ${CARGO_TARGET_DIR:=target} in /*) TARGET=$CARGO_TARGET_DIR ;; *) TARGET=$PWD/$CARGO_TARGET_DIR ;; esac
WASM=$TARGET/tools/wasm SITE=$TARGET/tools/site
target=wasm32-unknown-unknown
any() { for one in "$@"; do [ ! -e "$one" ] || return 0; done; return 1; }

# shellcheck source=/dev/null
if [ -e "$WASM/packages" ]; then . "$WASM/env"; fi
is_ready() { any "$(rustc --print target-libdir --target $target)"/libstd-*.rlib; }
if ! is_ready && [ ! -e "$(rustc --print sysroot)/lib/rustlib/src/rust/library" ]; then
    echo 'site: no compiler for WebAssembly: docs/explain.html and the workbench are made without their programs' >&2
    rm -f "$SITE/program.js" "$SITE/workbench.js"
    exit 0
fi
# Distributions have the linker by the version of its LLVM alone, and what rustup brings has its own.
linker=$(find "$WASM/usr/bin" -name 'wasm-ld-*' 2>/dev/null | head -n 1)
[ -z "$linker" ] || export CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER="$linker"
# Debian 12 has the standard library for this target as its source.
std='' small=''
if ! is_ready; then
    export RUSTC_BOOTSTRAP=1
    std=-Zbuild-std=std,panic_abort
    small=-Zbuild-std-features=optimize_for_size
    # Nobody reads what a panic says in there. A compiler that can't leave it out makes a larger program.
    quiet='-Zunstable-options -Cpanic=immediate-abort -Zlocation-detail=none -Zfmt-debug=shallow'
    # shellcheck disable=SC2086
    if rustc $quiet --print cfg >/dev/null 2>&1; then export RUSTFLAGS="$quiet"; fi
fi
[ -e "$WASM/target/$target" ] || echo 'site: compiling wire explain and the workbench for the browser (some minutes, once)' >&2

# Compiles a crate, and writes it as text into a script, between these words.
program() {
    crate=$1 file=$SITE/$2 before=$3 after=$4
    shift 4
    # shellcheck disable=SC2086
    cargo $std rustc --quiet --locked --release -p "$crate" --lib --crate-type cdylib "$@" --target $target --target-dir "$WASM/target"
    mkdir -p "$SITE"
    {
        printf '%s"' "$before"
        packed "$WASM/target/$target/release/$crate.wasm" | base64 -w 0
        printf '"%s\n' "$after"
    } >"$file.new"
    mv "$file.new" "$file"
}

packed() { cat "$1"; }
program wire program.js 'globalThis.explainer = { program: ' ' };' --features browser
# The bench is loaded by pages that many read, so it's compiled to be small, and packed: text of packed bytes is packed once more on its
# way, text of others hardly at all. The page unpacks it (DecompressionStream).
std="$std $small"
export CARGO_PROFILE_RELEASE_OPT_LEVEL=z CARGO_PROFILE_RELEASE_STRIP=true
export RUSTFLAGS="${RUSTFLAGS-} --cfg only_roce"
packed() { gzip -9 -n -c "$1"; }
program workbench workbench.js 'globalThis.workbenchProgram = ' ';'
