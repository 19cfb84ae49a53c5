# shellcheck shell=sh
# Reads tools/lab/needs.txt, and looks on this machine and in target/tools for what it names. Set-up and the doctor source it in the
# checkout's folder.

# An env of this or another checkout may have changed the environment. We undo that, because it isn't what the machine itself has.
without() { echo "$1" | tr : '\n' | grep -vF "$RDMA_TOOLS/" | paste -s -d : -; }
if [ -n "${RDMA_TOOLS-}" ]; then
    PATH=$(without "$PATH") LD_LIBRARY_PATH=$(without "${LD_LIBRARY_PATH-}")
    unset RDMA_TOOLS BINDGEN_EXTRA_CLANG_ARGS PKG_CONFIG_PATH PKG_CONFIG_SYSROOT_DIR LIBRARY_PATH C_INCLUDE_PATH CPLUS_INCLUDE_PATH
fi

# The root of the machine that we check. Tests make one up.
ROOT=${DOCTOR_ROOT-}
PATH=$PATH:${HOME-}/.cargo/bin:$ROOT/usr/sbin:$ROOT/sbin
case ${CARGO_TARGET_DIR:=target} in /*) TARGET=$CARGO_TARGET_DIR ;; *) TARGET=$PWD/$CARGO_TARGET_DIR ;; esac
TOOLS=$TARGET/tools
# The oldest Rust that will do is 1.MINOR.
MINOR=$(sed -n 's/^rust-version = "1\.\([0-9]*\).*/\1/p' Cargo.toml)
machine=$(uname -m) release=$(uname -r)
case $machine in x86_64) qemu=x86 deb_arch=amd64 ;; aarch64) qemu=arm deb_arch=arm64 ;; *) qemu=$machine deb_arch=$machine ;; esac

has() { command -v "$1" >/dev/null; }
# Whether one of the given files exists, for a pattern that may match none.
any() { for one in "$@"; do [ ! -e "$one" ] || return 0; done; return 1; }

# rows STAGES: the table's lines for them, one `what|checks|debian|fedora|arch` each.
rows() {
    sed "/^#/d; s/ *| */|/g; s/\$machine/$machine/g; s/\$qemu/$qemu/g; s/\$deb_arch/$deb_arch/g" tools/lab/needs.txt |
        grep -E "^($(echo "$1" | sed 's/build/cargo build/' | tr ' ' '|'))\|" | cut -d '|' -f 2-
}

# Whether this machine's own kernel can be read and has a module as a file.
own_kernel_has() { [ -r "$ROOT/boot/vmlinuz-$release" ] && grep -qs "/$1\.ko" "$ROOT/lib/modules/$release/modules.dep"; }

# found CHECKS: whether all of them are met, by this machine or by what was unpacked. found_here: by the machine alone.
found_here() { found "$1" /none; }
found() {
    unpacked=${2-$TOOLS}
    for check in $1; do
        name=${check#*:}
        # shellcheck disable=SC2231,SC2086 # patterns that are meant to be expanded
        case $check in
        header:*) any "$ROOT/usr/include/$name" "$unpacked/usr/include/$name" ;;
        lib:*) any "$ROOT"/usr/lib/*-linux-gnu/$name "$ROOT"/usr/lib64/$name "$ROOT"/usr/lib/$name "$unpacked"/usr/lib/*-linux-gnu/$name "$unpacked"/usr/lib/$name ;;
        # A dynamic program names its loader (/lib64/ld-linux...) near the start of the file.
        static:*) has "$name" && ! head -c 1024 "$(command -v "$name")" | grep -q /ld- ;;
        cargo) has rustc && [ "$(cargo --version 2>/dev/null | sed -n 's/^cargo 1\.\([0-9]*\).*/\1/p')" -ge "$MINOR" ] 2>/dev/null ;;
        wasm) { has rustc && any "$(rustc --print target-libdir --target wasm32-unknown-unknown 2>/dev/null)"/libstd-*.rlib; } ||
            any "$unpacked"/usr/lib/rustlib/src/rust/library ;;
        certificates) any "$ROOT/etc/ssl/certs/ca-certificates.crt" "$ROOT/etc/pki/tls/certs/ca-bundle.crt" ;;
        # This machine's own, if it can be read and has SoftRoCE as a file.
        kernel) own_kernel_has rdma_rxe || any "${unpacked%/tools}"/lab/kernel/*/vmlinuz "$unpacked"/kernel/*.deb ;;
        # Of a kernel that the lab has unpacked, it kept the modules that it wanted then.
        module:*) { own_kernel_has rdma_rxe && own_kernel_has "$name"; } || any "$unpacked"/kernel/*.deb ||
            find "${unpacked%/tools}"/lab/kernel -name "$name.ko*" 2>/dev/null | grep -q . ;;
        *) has "$check" ;;
        esac || return 1
    done
}

# to_install DEBIAN FEDORA ARCH: the command that brings packages here.
to_install() {
    if has apt-get; then echo "sudo apt-get install $1"
    elif has dnf; then echo "sudo dnf install $2"
    elif has pacman; then case " $3 " in *' unknown '*) echo 'find it yourself, because we know no Arch package for it' ;; *) echo "sudo pacman -S $3" ;; esac
    else echo "install $1 (as Debian calls it), $2 (Fedora) or $3 (Arch)"; fi
}
