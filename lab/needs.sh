# shellcheck shell=sh
# Reads lab/needs.txt and finds on this machine, or below target/tools, what it names. Set-up and the doctor source it.
#
# ROOT is the root of the machine that is looked at; a test invents one. NEEDS is the table, TOOLS is target/tools, TARGET is
# target, MINOR the oldest Rust that does (1.MINOR).

machine=$(uname -m)
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
    sed -e 's/ *| */|/g' -e '/^#/d' -e "s/\${\{0,1\}machine}\{0,1\}/$machine/g; s/\${\{0,1\}qemu}\{0,1\}/$qemu/g" "$NEEDS" |
        grep -E "^ *($(echo "$1" | tr ' ' '|')) *\|" | cut -d '|' -f 2-
}

# found CHECKS: whether all of them are met, here or in what was unpacked.
found() {
    for check in $1; do
        case $check in
        header:*) any "$ROOT/usr/include/${check#*:}" "$TOOLS/usr/include/${check#*:}" ;;
        lib:*) library "${check#*:}" >/dev/null || unpacked_library "${check#*:}" ;;
        static:*) is_static "${check#*:}" ;;
        cargo) cargo_is_recent ;;
        libclang) has_libclang ;;
        certificates) any "${SSL_CERT_FILE:-$ROOT/etc/ssl/certs/ca-certificates.crt}" "$ROOT/etc/pki/tls/certs/ca-bundle.crt" ;;
        kernel) own_kernel || any "$TARGET"/lab/kernel/*/vmlinuz "$TOOLS"/kernel/*.deb ;;
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

# Prints this machine's own file that fits a pattern, in a folder for libraries.
library() {
    # shellcheck disable=SC2231 # a pattern that is meant to be expanded
    for file in "$ROOT"/usr/lib/*-linux-gnu/$1 "$ROOT"/usr/lib64/$1 "$ROOT"/usr/lib/$1; do
        [ ! -e "$file" ] || { echo "${file#"$ROOT"}"; return 0; }
    done
    return 1
}

# shellcheck disable=SC2086 # a pattern that is meant to be expanded
unpacked_library() { any "$TOOLS"/usr/lib/*-linux-gnu/$1; }

# A dynamic program names its loader (/lib64/ld-linux...) near the start of the file. A static one does not.
is_static() { has "$1" && ! head -c 1024 "$(command -v "$1")" | grep -q /ld-; }

cargo_version() { cargo --version 2>/dev/null | head -n 1; }
cargo_is_recent() {
    has rustc || return 1
    minor=$(cargo_version | sed -n 's/^cargo 1\.\([0-9]*\).*/\1/p')
    [ "${minor:-0}" -ge "${MINOR?}" ]
}

# bindgen looks in the same places, and in those of LD_LIBRARY_PATH, to which the unpacked ones belong. libclang-cpp.so is
# another library.
has_libclang() {
    any "${LIBCLANG_PATH:-/none}" || for folder in "$ROOT"/usr/lib/*-linux-gnu "$ROOT"/usr/lib/llvm-*/lib "$ROOT"/usr/lib* \
        "$TOOLS"/usr/lib/*-linux-gnu; do
        if any "$folder"/libclang.so* "$folder"/libclang-[0-9]*.so*; then return 0; fi
    done && return 1
}

# Whether this machine's own kernel can be booted in the lab: readable, with SoftRoCE.
own_kernel() { [ -r "$ROOT/boot/vmlinuz-$(uname -r)" ] && grep -qs '/rdma_rxe\.ko' "$ROOT/lib/modules/$(uname -r)/modules.dep"; }
# Whether this machine's running kernel has a module, as a file or built in.
kernel_has() { grep -qs "/$1\.ko" "$ROOT/lib/modules/$(uname -r)/modules.dep" "$ROOT/lib/modules/$(uname -r)/modules.builtin"; }
