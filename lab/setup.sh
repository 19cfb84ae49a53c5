#!/bin/sh
# Finds what this machine lacks for a stage of the work and, where apt can, installs exactly that.
#
#   lab/setup.sh build      what `make server-NN` and `make client-NN` need
#   lab/setup.sh lessons    and what `make lesson-NN` needs: the two emulated machines
#   lab/setup.sh shell      and the programs that `make lab-shell` is for
#   lab/setup.sh test       and what `make test` needs
#   lab/setup.sh check      what `make check` needs
#
# The Makefile calls it before everything else, so it prints nothing and costs next to nothing when all is there.
# It only ever adds: no package is removed, no toolchain is replaced, no kernel is installed.
set -eu
cd "$(dirname "$0")/.."

config=.cargo/config.toml
marker='# Written by lab/setup.sh.'
own_libclang=$PWD/target/tools/libclang.so
machine=$(uname -m)
rust_minor=$(sed -n 's/^rust-version = "1\.\([0-9]*\).*/\1/p' Cargo.toml)

has() { command -v "$1" >/dev/null; }
say() { echo "setup: $*" >&2; }

# Shows a command, then runs it.
run() {
    echo "+ $*" >&2
    "$@"
}

as_root() {
    if [ "$(id -u)" = 0 ]; then run "$@"; else run sudo "$@"; fi
}

# ---- What each stage needs ----------------------------------------------------------------------------------------

# need WHAT TEST DEBIAN FEDORA ARCH: unless the command TEST succeeds, WHAT is missing and these packages bring it.
# A Debian name that starts with @ depends on the release: debian_name knows it.
need() {
    if $2; then return; fi
    missing="$missing
  $1"
    debian="$debian $3" fedora="$fedora $4" arch="$arch $5"
}

find_missing() {
    missing='' debian='' fedora='' arch=''
    case $1 in
    build) build_needs ;;
    lessons) build_needs && lab_needs ;;
    shell) build_needs && lab_needs && shell_needs ;;
    test) build_needs && lab_needs && shell_needs && test_needs ;;
    check) build_needs && check_needs ;;
    *)
        echo "usage: lab/setup.sh build|lessons|shell|test|check" >&2
        exit 2
        ;;
    esac
}

build_needs() {
    need "cargo and rustc 1.$rust_minor or newer" has_recent_cargo @cargo 'cargo rust' rust
    need 'a C compiler and the C library headers' has_c_compiler 'gcc libc6-dev' 'gcc glibc-devel' gcc
    need 'pkg-config' 'has pkg-config' pkg-config pkgconf-pkg-config pkgconf
    need 'libibverbs headers' 'has_header infiniband/verbs.h' libibverbs-dev rdma-core-devel rdma-core
    need 'librdmacm headers' 'has_header rdma/rdma_cma.h' librdmacm-dev rdma-core-devel rdma-core
    need 'the SoftRoCE provider of libibverbs (librxe)' has_librxe ibverbs-providers libibverbs rdma-core
    need 'libclang 14 or 15 (rdma-sys does not build with a newer one)' has_libclang @libclang python3-pip python-pip
    need 'certificates, for downloads by cargo' has_certificates ca-certificates ca-certificates ca-certificates
}

lab_needs() {
    qemu=qemu-system-${machine%_64}
    need "QEMU for $machine" "has qemu-system-$machine" "$(debian_qemu)" "$qemu-core" "$qemu"
    need 'a static busybox' has_static_busybox busybox-static busybox busybox
    need 'the commands ip, tc and rdma' has_iproute iproute2 'iproute iproute-tc' iproute2
    need 'depmod, xz and zstd, to unpack a kernel' has_unpackers 'kmod xz-utils zstd' 'kmod xz zstd' 'kmod xz zstd'
    need "apt's package lists, from which the lab gets its kernel" has_kernel_source '' '' ''
}

shell_needs() {
    need 'rping' 'has rping' rdmacm-utils librdmacm-utils rdma-core
    need 'perftest (ib_write_bw; on Arch from the AUR)' 'has ib_write_bw' perftest perftest ''
    need 'ibv_devinfo' 'has ibv_devinfo' ibverbs-utils libibverbs-utils rdma-core
}

test_needs() {
    need 'tshark' 'has tshark' tshark wireshark-cli wireshark-cli
}

check_needs() {
    need 'rustfmt' 'has_cargo_command fmt' @rustfmt rustfmt rust
    need 'clippy' 'has_cargo_command clippy' @clippy clippy rust
    need 'shellcheck' 'has shellcheck' shellcheck ShellCheck shellcheck
    need 'tshark' 'has tshark' tshark wireshark-cli wireshark-cli
}

debian_qemu() { if [ "$machine" = aarch64 ]; then echo qemu-system-arm; else echo "$qemu"; fi; }
has_header() { [ -e "/usr/include/$1" ]; }
has_c_compiler() { has cc && has_header stdio.h; }
has_unpackers() { has depmod && has xz && has zstd; }
has_iproute() { has ip && has tc && has rdma; }
has_cargo_command() { cargo "$1" --version >/dev/null 2>&1; }

has_recent_cargo() {
    has rustc && version=$(cargo --version 2>/dev/null) || return 1
    version=${version#cargo 1.}
    [ "${version%%.*}" -ge "$rust_minor" ]
}

# The provider is loaded at run time, from a directory whose name differs between distributions.
has_librxe() {
    for file in /usr/lib*/libibverbs/librxe-*.so /usr/lib/*/libibverbs/librxe-*.so; do
        if [ -e "$file" ]; then return; fi
    done
    return 1
}

has_certificates() {
    for file in "${SSL_CERT_FILE-}" /etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt; do
        if [ -e "$file" ]; then return; fi
    done
    return 1
}

# The lab takes this machine's kernel if it can read it, the one it got before, or downloads one with apt-get.
has_kernel_source() {
    if ! has apt-get || [ -r "/boot/vmlinuz-$(uname -r)" ] || [ -e target/lab/kernel ]; then return; fi
    lists_are_known
}

# A dynamic program names its loader (/lib64/ld-linux...) near the start of the file. A static one does not.
has_static_busybox() {
    has busybox && ! head -c 1024 "$(command -v busybox)" | grep -q /ld-
}

# ---- libclang -----------------------------------------------------------------------------------------------------
# bindgen loads libclang at run time and takes the newest it finds. $config, which cargo reads on every build, names
# one that works.

has_libclang() { config_holds || [ -n "$(find_libclang)" ]; }

# Ours holds as long as both places that it names are there. A person's own file only has to name a libclang.
config_holds() {
    read_config
    if [ "$config_owner" = set-up ]; then
        [ -e "$config_libclang" ] && [ -e "$config_include/stddef.h" ]
    else
        [ -n "$config_libclang" ] || { [ "$config_owner" = person ] && [ -n "${LIBCLANG_PATH-}" ]; }
    fi
}

read_config() {
    config_owner='' config_libclang='' config_include=''
    [ -e "$config" ] || return 0
    config_owner=person
    while IFS= read -r line || [ -n "$line" ]; do
        case $line in
        "$marker") config_owner=set-up ;;
        LIBCLANG_PATH*) config_libclang=${line#*value = \"} config_libclang=${config_libclang%%\"*} ;;
        BINDGEN_EXTRA_CLANG_ARGS*) config_include=${line#*-I} config_include=${config_include%\"} ;;
        esac
    done <"$config"
}

# Prints the first libclang 14 or 15 found: the one that the environment names goes first.
find_libclang() {
    for file in "${LIBCLANG_PATH-}" "${LIBCLANG_PATH:-/none}"/libclang*.so* \
        /usr/lib/llvm-1[45]/lib/libclang-1[45].so* /usr/lib/*/libclang-1[45].so* \
        /usr/lib*/llvm1[45]/lib*/libclang.so* /usr/lib*/libclang.so.1[45]* \
        "$own_libclang"; do
        if [ -f "$file" ] && libclang_works "$file"; then
            echo "$file"
            return
        fi
    done
}

# Loads the library and asks it for its version: a file's name does not always tell.
libclang_works() {
    probe=$scratch/libclang-version
    [ -x "$probe" ] || cc -o "$probe" -x c - -ldl 2>/dev/null <<'END' || return 1
#include <dlfcn.h>
#include <stdio.h>
typedef struct { const void *data; unsigned flags; } CXString;
int main(int argc, char **argv) {
    void *library = argc == 2 ? dlopen(argv[1], RTLD_LAZY) : NULL;
    CXString (*version)(void) = library ? (CXString (*)(void))dlsym(library, "clang_getClangVersion") : NULL;
    return version ? puts(version().data) < 0 : 1;
}
END
    case $("$probe" "$1" 2>/dev/null) in
    *'clang version 14.'* | *'clang version 15.'*) ;;
    *) return 1 ;;
    esac
}

# The builtin headers (stddef.h ...) are the C compiler's own: the wheel and Debian's libclang1 package bring none.
write_config() {
    if [ "$config_owner" = person ]; then
        say "$config is your own file: add these lines to it, then run the same command again:"
        config_lines | sed '/^#/d' >&2
        exit 1
    fi
    mkdir -p .cargo
    config_lines >"$config"
    give_back .cargo "$config"
}

config_lines() {
    cat <<END
$marker
# rdma-sys builds with libclang 14 and 15, not with newer ones. When a path is gone, set-up writes this file anew.
[env]
LIBCLANG_PATH = { value = "$(find_libclang)", force = true }
BINDGEN_EXTRA_CLANG_ARGS = "-I$(cc -print-file-name=include)"
END
}

has_pip() { has python3 && python3 -m pip --version >/dev/null 2>&1; }

# For machines whose distribution has neither libclang 14 nor 15: the wheel on PyPI (x86-64 and aarch64, glibc).
fetch_wheel() {
    cat >"$scratch/requirements.txt" <<'END'
libclang==15.0.6.1 \
    --hash=sha256:69b01a23ab543908a661532595daa23cf88bd96d80e41f58ba0eaa6a378fe0d8 \
    --hash=sha256:4a5188184b937132c198ee9de9a8a2316d5fdd1a825398d5ad1a8f5e06f9b40e
END
    run python3 -m pip download --quiet --no-deps --only-binary=:all: --require-hashes \
        -d "$scratch" -r "$scratch/requirements.txt" || return 1
    python3 -m zipfile -e "$scratch"/libclang-*.whl "$scratch"
    mkdir -p "${own_libclang%/*}"
    find "$scratch" -name libclang.so -exec cp {} "$own_libclang" ';'
    give_back target target/tools "$own_libclang"
}

# What root writes into a person's checkout has to stay writable for that person.
give_back() { [ "$(id -u)" != 0 ] || chown --reference=. "$@"; }

# ---- Getting it ---------------------------------------------------------------------------------------------------

candidate() { LC_ALL=C apt-cache policy "$1" 2>/dev/null | sed -n 's/^  Candidate: \([^(].*\)/\1/p'; }
offers() { [ -n "$(candidate "$1")" ]; }
lists_are_known() {
    for file in /var/lib/apt/lists/*Packages*; do
        if [ -e "$file" ]; then return; fi
    done
    return 1
}
lists_are_recent() { lists_are_known && [ -n "$(find /var/lib/apt/lists -maxdepth 0 -mtime -1)" ]; }

# Debian 12 calls its recent Rust cargo-web; some Ubuntu releases have cargo-1.80 and the like beside an older cargo.
cargo_package() {
    if ! lists_are_known; then
        if grep -qs bookworm /etc/os-release; then echo cargo-web; else echo cargo; fi
        return
    fi
    for package in cargo cargo-web $(has cargo || apt-cache pkgnames cargo-1. | sort -rV | head -n 1); do
        if dpkg --compare-versions "$(candidate "$package")" ge "1.$rust_minor"; then
            echo "$package"
            return
        fi
    done
}

# The package of the cargo in use, or of the one to be installed: rustfmt and clippy have to fit to it.
toolchain_package() {
    if has_recent_cargo && owner=$(dpkg -S "$(command -v cargo)" 2>/dev/null); then
        echo "${owner%%:*}"
    else
        cargo_package
    fi
}

debian_name() {
    case $1 in
    @cargo) has rustup || cargo_package ;;
    @rustfmt | @clippy) has rustup || linter_package "${1#@}" "$(toolchain_package)" ;;
    @libclang) libclang_package ;;
    *) echo "$1" ;;
    esac
}

linter_package() {
    case $1-$2 in
    rustfmt-cargo-web) echo rustfmt-web ;;
    clippy-cargo-web) echo rust-web-clippy ;;
    rustfmt-cargo-1.*) echo "rustfmt-${2#cargo-}" ;;
    clippy-cargo-1.*) echo "rust-${2#cargo-}-clippy" ;;
    rustfmt-*) echo rustfmt ;;
    clippy-*) echo rust-clippy ;;
    esac
}

libclang_package() {
    if offers libclang1-14 || ! lists_are_known; then
        echo libclang1-14
    elif offers libclang1-15; then
        echo libclang1-15
    elif ! has_pip; then
        echo python3-pip
    fi
}

debian_names() {
    for name in $debian; do debian_name "$name"; done | words
}

# Words, sorted, each once, on one line.
words() { tr ' ' '\n' | sort -u | sed '/^$/d' | paste -s -d ' ' -; }

apt_install() {
    has apt-get || return 1
    [ "$(id -u)" = 0 ] || has sudo || return 1
    say "asking apt for what this machine lacks:$missing"
    lists_are_recent || as_root apt-get update || return 1
    names=$(debian_names)
    [ -n "$names" ] || return 0
    # shellcheck disable=SC2086 # a list of package names
    as_root env DEBIAN_FRONTEND=noninteractive \
        apt-get install --yes --no-install-recommends --no-remove $names
}

get_missing() {
    apt_install || true
    case $debian in
    *@rustfmt* | *@clippy*) if has rustup; then run rustup component add rustfmt clippy || true; fi ;;
    esac
    if ! has_libclang && has_pip; then fetch_wheel || true; fi
}

explain() {
    say "this machine lacks:$missing"
    echo 'Get it, then run the same command again:' >&2
    if has apt-get; then
        lists_are_known || echo '  sudo apt-get update' >&2
        names=$(debian_names)
        [ -z "$names" ] || echo "  sudo apt-get install --no-install-recommends $names" >&2
    else
        echo "  Debian, Ubuntu: apt-get install $(debian_names)" >&2
        echo "  Fedora:         dnf install $(echo "$fedora" | words)" >&2
        echo "  Arch:           pacman -S $(echo "$arch" | words)" >&2
    fi
    has_recent_cargo || explain_cargo
    has_libclang || explain_libclang
}

explain_cargo() {
    if has rustup; then
        say 'rustup brings a recent cargo: rustup update stable && rustup default stable'
    elif has cargo; then
        say "$(cargo --version) is too old, and set-up replaces no toolchain: get a newer one as above or with rustup (https://rustup.rs)."
    else
        say 'rustup (https://rustup.rs) brings cargo, too.'
    fi
}

explain_libclang() {
    if offers libclang1-14 || offers libclang1-15; then return; fi
    say 'where no package has libclang 14 or 15: pip download libclang==15.0.6.1, unzip it, and set LIBCLANG_PATH to its libclang.so.'
}

# Only finding and fetching a libclang needs room for files.
if ! config_holds; then
    scratch=$(mktemp -d)
    trap 'rm -rf "$scratch"' EXIT
fi
find_missing "${1-}"
if [ -z "$missing" ] && config_holds; then exit; fi
if [ -n "$missing" ]; then
    get_missing
    find_missing "$1"
fi
if [ -n "$missing" ]; then
    explain
    exit 1
fi
config_holds || write_config
