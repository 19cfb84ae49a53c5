#!/usr/bin/env bash
# One static program that brings the device to any Linux of this machine's kind, with the licences: target/rdma-device-MACHINE.tar.gz.
# `make device-bundle` calls it.
set -euo pipefail
cd "$(dirname "$0")/../.."
target=${CARGO_TARGET_DIR:-target}
host=$(rustc -vV | sed -n 's/^host: //p')
machine=${host%%-*}
root=$target/bundle/rdma-device
mkdir -p "$root"

# With a target named, cargo gives these flags to what is built for it alone, and not to what runs while it builds.
RUSTFLAGS='-C target-feature=+crt-static -C strip=symbols' cargo build --release -p device --target "$host"
cp "$target/$host/release/device" "$root/rdma-device"
cp LICENSE-* "$root"
cargo tree -p device -e normal --prefix none --no-dedupe --format '{p}|{l}' | sed 's/ ([^|]*|/|/; s/|/: /' | sort -u >"$root/LICENSES"
echo 'GNU C Library: LGPL-2.1-or-later; with the sources of all these you can link it again' >>"$root/LICENSES"
tar -czf "$target/rdma-device-$machine.tar.gz" --owner=0 --group=0 -C "$target/bundle" rdma-device
rm -r "$root"
echo "$target/rdma-device-$machine.tar.gz"
