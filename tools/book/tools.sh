#!/bin/sh
# Gets what makes the book, below target/tools/site: mdBook by cargo, and from npm Wireshark for the browser and the checker of
# accessibility. Their versions stand here and in package-lock.json. It prints nothing when all is there.
set -eu
cd "$(dirname "$0")/../.."
MDBOOK=0.5.4 MDBOOK_RUST=88
case ${CARGO_TARGET_DIR:=target} in /*) TARGET=$CARGO_TARGET_DIR ;; *) TARGET=$PWD/$CARGO_TARGET_DIR ;; esac
TOOLS=$TARGET/tools/site
mkdir -p "$TOOLS"

if [ "$("$TOOLS/bin/mdbook" --version 2>/dev/null)" != "mdbook v$MDBOOK" ]; then
    minor=$(rustc --version | sed -n 's/^rustc 1\.\([0-9]*\).*/\1/p')
    if [ "${minor:-0}" -lt $MDBOOK_RUST ]; then
        echo "site: mdBook $MDBOOK needs Rust 1.$MDBOOK_RUST or later, and this is $(rustc --version). rustup (https://rustup.rs) brings it" >&2
        exit 1
    fi
    echo 'site: compiling mdBook, once (some minutes)' >&2
    cargo install mdbook --version $MDBOOK --locked --no-default-features --features search --root "$TOOLS" --quiet 2>"$TOOLS/log" ||
        { cat "$TOOLS/log" >&2; exit 1; }
fi
if ! cmp -s tools/book/package-lock.json "$TOOLS/got.json"; then
    echo 'site: getting Wireshark for the browser (40 MB)' >&2
    cp tools/book/package.json tools/book/package-lock.json "$TOOLS"
    npm ci --prefix "$TOOLS" --ignore-scripts --no-audit --no-fund --loglevel=error
    cp tools/book/package-lock.json "$TOOLS/got.json"
fi
