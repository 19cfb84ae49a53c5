# shellcheck shell=sh
# Reads lab/needs.txt and finds on this machine, or below target/tools, what it names. Set-up and the doctor source it in the
# checkout's folder.

# The root of the machine that is looked at: a test invents one.
ROOT=${DOCTOR_ROOT-}
PATH=$PATH:${HOME-}/.cargo/bin:$ROOT/usr/sbin:$ROOT/sbin
case ${CARGO_TARGET_DIR:=target} in /*) TARGET=$CARGO_TARGET_DIR ;; *) TARGET=$PWD/$CARGO_TARGET_DIR ;; esac
TOOLS=$TARGET/tools
# The oldest Rust that does is 1.MINOR.
MINOR=$(sed -n 's/^rust-version = "1\.\([0-9]*\).*/\1/p' Cargo.toml)
machine=$(uname -m) release=$(uname -r)
# shellcheck disable=SC2034 # the table's names hold them
case $machine in
x86_64) qemu=x86 deb_arch=amd64 ;;
aarch64) qemu=arm deb_arch=arm64 ;;
*) qemu=$machine deb_arch=$machine ;;
esac

has() { command -v "$1" >/dev/null; }
# Whether one of the files given is there: for a pattern that may fit none.
any() { for one in "$@"; do [ ! -e "$one" ] || return 0; done; return 1; }

# rows STAGES: the table's lines for them, one `what|checks|debian|fedora|arch` each.
rows() {
    sed -e 's/ *| */|/g' -e '/^#/d' -e "s/\${\{0,1\}machine}\{0,1\}/$machine/g; s/\${\{0,1\}qemu}\{0,1\}/$qemu/g" lab/needs.txt |
        grep -E "^ *($(echo "$1" | tr ' ' '|')) *\|" | cut -d '|' -f 2-
}

# found CHECKS: whether all of them are met, here or in what was unpacked.
found() {
    for check in $1; do
        case $check in
        header:*) any "$ROOT/usr/include/${check#*:}" "$TOOLS/usr/include/${check#*:}" ;;
        lib:*) library "${check#*:}" >/dev/null ;;
        static:*) is_static "${check#*:}" ;;
        cargo) cargo_is_recent ;;
        # libclang-cpp.so is another library.
        libclang) any "${LIBCLANG_PATH:-/none}" || library 'libclang[-.][0-9s]*' >/dev/null ;;
        certificates) any "${SSL_CERT_FILE:-$ROOT/etc/ssl/certs/ca-certificates.crt}" "$ROOT/etc/pki/tls/certs/ca-bundle.crt" ;;
        kernel) own_kernel || any "$TARGET"/lab/kernel/*/vmlinuz "$TOOLS"/kernel/*.deb ;;
        */*) has "${check%/*}" || has "${check#*/}" ;;
        *) has "$check" ;;
        esac || return 1
    done
}

# The same on the machine itself, whatever was unpacked.
found_here() {
    tools=$TOOLS TOOLS=/none
    found "$1" && here=0 || here=1
    TOOLS=$tools
    return "$here"
}

# Prints the first file that fits a pattern, in a folder for libraries: the machine's own before one that was unpacked.
library() {
    # shellcheck disable=SC2231 # a pattern that is meant to be expanded
    for file in "$ROOT"/usr/lib/*-linux-gnu/$1 "$ROOT"/usr/lib64/$1 "$ROOT"/usr/lib/$1 "$TOOLS"/usr/lib/*-linux-gnu/$1; do
        [ ! -e "$file" ] || { echo "${file#"$ROOT"}"; return 0; }
    done
    return 1
}

# A dynamic program names its loader (/lib64/ld-linux...) near the start of the file. A static one does not.
is_static() { has "$1" && ! head -c 1024 "$(command -v "$1")" | grep -q /ld-; }

cargo_version() { cargo --version 2>/dev/null | head -n 1; }
cargo_is_recent() {
    has rustc || return 1
    minor=$(cargo_version | sed -n 's/^cargo 1\.\([0-9]*\).*/\1/p')
    [ "${minor:-0}" -ge "${MINOR?}" ]
}

# Whether this machine's own kernel can be booted in the lab: readable, with SoftRoCE as a file.
own_kernel() { [ -r "$ROOT/boot/vmlinuz-$release" ] && grep -qs '/rdma_rxe\.ko' "$ROOT/lib/modules/$release/modules.dep"; }
