#!/bin/sh
# rustdoc as it is in an unstable toolchain: only that one checks that code which must not compile fails with the error that the text names.
# A compiler that is told the same would build all dependencies once more.
RUSTC_BOOTSTRAP=1 exec rustdoc "$@"
