#!/bin/sh
# The device, rdma-core's programs and the lessons on an emulated arm64 machine with Debian 12: `make test-long group=fresh` calls
# it. $1 is the folder to work in. Needs apt, qemu-system-aarch64, gcc-aarch64-linux-gnu, cpio, rustup's target
# aarch64-unknown-linux-gnu, and libclang 14 in $LIBCLANG_PATH.
set -eu
cd "$(dirname "$0")/../../.."
work=$1 image=$1/image sysroot=$1/sysroot target=aarch64-unknown-linux-gnu
mkdir -p "$work/apt/lists/partial" "$work/debs/partial" "$image/course" "$sysroot"

# Debian's packages for arm64, unpacked: what the machine has, and what programs for it are linked to.
cat >"$work/conf" <<END
APT::Architecture "arm64"; APT::Architectures { "arm64"; }; APT::Install-Recommends "false"; Acquire::Languages "none";
Dir::State "$work/apt"; Dir::State::status "/dev/null"; Dir::Cache "$work/apt"; Dir::Cache::archives "$work/debs";
APT::Sandbox::User "$(id -un)";
END
apt-get -c "$work/conf" -qq update
apt-get -c "$work/conf" -qq --download-only -y install bash coreutils busybox-static linux-image-arm64 \
    ibverbs-providers librdmacm1 rdmacm-utils ibverbs-utils perftest libibverbs-dev librdmacm-dev
for package in "$work"/debs/*.deb; do
    case $package in
    */linux-image-6*) dpkg-deb -x "$package" "$work/kernel" ;;
    */lib*-dev_*) dpkg-deb -x "$package" "$sysroot" ;;
    */linux-image-* | */initramfs-*) ;;
    *) dpkg-deb -x "$package" "$image" && dpkg-deb -x "$package" "$sysroot" ;;
    esac
done

# The bundle's device, static; and the lessons, which are linked to Debian's libraries.
libraries=$sysroot/usr/lib/aarch64-linux-gnu
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc CARGO_TARGET_DIR="$work/target"
export PKG_CONFIG_ALLOW_CROSS=1 PKG_CONFIG_SYSROOT_DIR="$sysroot" PKG_CONFIG_PATH="$libraries/pkgconfig"
export BINDGEN_EXTRA_CLANG_ARGS="--target=aarch64-linux-gnu -I/usr/aarch64-linux-gnu/include -I$sysroot/usr/include"
RUSTFLAGS='-C target-feature=+crt-static' cargo build -q --release -p device --target $target
# shellcheck disable=SC2046 # a list of packages
RUSTFLAGS="-L $libraries -C link-arg=-Wl,-rpath-link=$libraries:$sysroot/lib/aarch64-linux-gnu" \
    cargo build -q --target $target $(for lesson in lessons/[0-9]*/Cargo.toml; do basename "${lesson%/*}" | sed 's/^\(..\).*/-p lesson-\1/'; done)
cp "$work/target/$target/release/device" "$work/target/$target"/debug/lesson-?? "$image/course"

# An init that runs everything as an ordinary user, and says how each ended.
ln -sf bash "$image/bin/sh"
rm -rf "${image:?}/usr/share"
echo 'you:x:1000:1000::/tmp:/bin/sh' >"$image/etc/passwd"
cat >"$image/init" <<'END'
#!/bin/sh
export PATH=/course:/usr/bin:/bin:/usr/sbin:/sbin
mkdir -p /proc /sys /tmp/you
mount() { busybox mount "$@"; }
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev
busybox ip link set lo up
chown 1000:1000 /tmp/you
try() { busybox su you -s /bin/sh -c "cd /tmp/you && $1"; echo "exit $? of $1"; }
try 'device run -- ibv_devinfo'
try "device exec --server 'rping -s -C 3' --client 'rping -c -a \$SERVER -C 3' --json"
try "device exec --server 'ib_write_lat -n 100' --client 'ib_write_lat -n 100 \$SERVER' --json"
for lesson in /course/lesson-*; do try "device run ${lesson#/course/} --json"; done
echo 'the end'
busybox poweroff -f
END
chmod 755 "$image/init"
(cd "$image" && find . | cpio -o -H newc --quiet | gzip -1) >"$work/image.gz"
exec timeout 900 qemu-system-aarch64 -M virt -cpu max -smp 2 -m 1500 -nic none -nographic -no-reboot \
    -kernel "$work"/kernel/boot/vmlinuz-* -initrd "$work/image.gz" -append 'console=ttyAMA0 quiet panic=-1'
