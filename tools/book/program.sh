#!/bin/sh
# Compiles `wire explain` for the book's page about it: target/tools/site/program.js, the program as text. Where there is no compiler for
# WebAssembly, neither this machine's nor one that set-up has unpacked, it says so, and the book is made without it.
set -eu
cd "$(dirname "$0")/../.."
case ${CARGO_TARGET_DIR:=target} in /*) TARGET=$CARGO_TARGET_DIR ;; *) TARGET=$PWD/$CARGO_TARGET_DIR ;; esac
WASM=$TARGET/tools/wasm PROGRAM=$TARGET/tools/site/program.js
target=wasm32-unknown-unknown
any() { for one in "$@"; do [ ! -e "$one" ] || return 0; done; return 1; }

# shellcheck source=/dev/null
if [ -e "$WASM/packages" ]; then . "$WASM/env"; fi
is_ready() { any "$(rustc --print target-libdir --target $target)"/libstd-*.rlib; }
if ! is_ready && [ ! -e "$(rustc --print sysroot)/lib/rustlib/src/rust/library" ]; then
    echo 'site: no compiler for WebAssembly: the page docs/explain.html is made without its program' >&2
    rm -f "$PROGRAM"
    exit 0
fi
set -- rustc --quiet --locked --release -p wire --lib --crate-type cdylib --target $target --target-dir "$WASM/target"
# Distributions have the linker by the version of its LLVM alone, and what rustup brings has its own.
linker=$(find "$WASM/usr/bin" -name 'wasm-ld-*' 2>/dev/null | head -n 1)
[ -z "$linker" ] || export CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER="$linker"
# Debian 12 has the standard library for this target as its source.
if ! is_ready; then
    export RUSTC_BOOTSTRAP=1
    set -- -Zbuild-std=std,panic_abort "$@"
fi
[ -e "$WASM/target/$target" ] || echo 'site: compiling wire explain for the browser (a minute or two, once)' >&2
cargo "$@"
mkdir -p "${PROGRAM%/*}"
{
    printf 'globalThis.explainer = { program: "'
    base64 -w 0 "$WASM/target/$target/release/wire.wasm"
    printf '" };\n'
} >"$PROGRAM.new"
mv "$PROGRAM.new" "$PROGRAM"
