#!/bin/sh
# Finds what this machine lacks for a stage of the work (tools/lab/needs.txt), and unpacks exactly that in target/tools. Nothing
# is installed, and no root is needed: apt downloads into a folder of ours and checks the signatures, as for any installation.
#
#   tools/lab/setup.sh STAGE...   cargo, build, lab, nvme, shell, python, test, check, grade; device, site, browser only check what the machine itself must have
#   tools/lab/setup.sh lab siw    also the kernel module of SoftiWARP, which Debian ships as source (siw.sh)
#   tools/lab/setup.sh wasm       a compiler for the browser, in a folder of its own with an env of its own
#   tools/lab/setup.sh bundle     what build, lab, shell, python and test need, and the crates, in one file for machines of this release that have no network
#
# The Makefile calls it before everything else, so it prints nothing and costs next to nothing if nothing is missing. It writes
# target/tools/env, which make reads, and which you read for a plain `cargo build`:  . target/tools/env
set -eu
cd "$(dirname "$0")/../.."
# shellcheck source=tools/lab/needs.sh
. tools/lab/needs.sh
# shellcheck source=tools/lab/siw.sh
. tools/lab/siw.sh
# shellcheck source=/dev/null
if [ -e "$TOOLS/env" ]; then . "$TOOLS/env"; fi
# This script reads what programs print, so they should print it in English.
export LC_ALL=C

say() { echo "setup: $*" >&2; }
give_up() { say "$@"; exit 1; }

# missing FOUND STAGES: the rows whose checks fail.
missing() {
    rows "$2" | while IFS='|' read -r what checks rest; do
        "$1" "$checks" || echo "$what|$checks|$rest"
    done
}

# column N of the rows on standard input, as words, each once.
column() { cut -d '|' -f "$1" | tr ' ' '\n' | sort -u | sed '/^$/d' | paste -s -d ' ' -; }

# explain ROWS: what's missing, and the command that gets it for somebody who may install packages.
explain() {
    say "this machine lacks:
$(echo "$1" | sed 's/^/  /; s/|.*//')
Get it, then run the same command again:
  $(to_install "$(echo "$1" | column 3)" "$(echo "$1" | column 4)" "$(echo "$1" | column 5)")"
    case $1 in *'|cargo|'*) echo '  or rustup (https://rustup.rs), which brings a recent cargo' >&2 ;; esac
    exit 1
}

# The machine's own apt with a state of its own in $apt, in which nothing is installed, so that no installed package can be in the way.
configure_apt() {
    apt=$TOOLS/apt
    mkdir -p "$apt/lists/partial" "$apt/debs"
    # Apt reads this after the machine's own files, which name its proxy and its certificates, but also more lists, and commands to run afterwards.
    cat >"$apt/conf" <<END
#clear APT::Update;
#clear Acquire::IndexTargets;
Acquire::IndexTargets::deb::Packages {
    MetaKey "\$(COMPONENT)/binary-\$(ARCHITECTURE)/Packages"; flatMetaKey "Packages"; Description "\$(RELEASE) Packages"; Optional "no";
};
Acquire::Languages "none";
APT::Install-Recommends "false";
APT::Sandbox::User "$(id -un)";
Dir::State "$apt";
Dir::State::status "/dev/null";
Dir::Cache "$apt";
END
}

# Alone in this folder, with apt configured, and what's installed or unpacked already in $apt/here.
begin_apt() {
    trap 'say "interrupted. Run the same command again, and it goes on from here"; exit 130' INT TERM HUP
    mkdir -p "$TOOLS/apt"
    exec 9>"$TOOLS/apt/lock"
    # On a file system without locks, the second set-up just goes on.
    flock -n 9 || { say 'another set-up is running in this folder; waiting for it to end'; flock 9 || true; }
    configure_apt
    touch "$TOOLS/packages"
    # An unpacked rustc doesn't find the machine's own libraries, because it looks for them next to itself.
    case $STAGES in wasm) not_here=rust ;; *) not_here=/ ;; esac
    dpkg-query -Wf '${db:Status-Status}=${Package}\n' | sed -n "\:$not_here:d; s/^installed=//p" | cat - "$TOOLS/packages" >"$apt/here"
}

# ask get|cache ARGUMENTS: apt-get or apt-cache.
ask() { tool=apt-$1 && shift && "$tool" -c "$apt/conf" "$@"; }

# The names in the table, as this release of the distribution spells them.
resolve() {
    for name in $1; do
        case $name in
        cargo | rustfmt) echo "$name$(rust_suffix)" ;;
        rust-clippy) echo "rust$(rust_suffix)-clippy" ;;
        # We take the one of the LLVM that rustc uses. Any would do, but this one is here or will come anyway.
        libclang1)
            llvm=$(plan "cargo$(rust_suffix)" | sed -n 's/^libllvm\([0-9]*\).*/\1/p')
            ask cache pkgnames "libclang1-$llvm" | sort -rV | head -n 1
            ;;
        rustc) echo "rustc$(rust_suffix)" ;;
        # Debian 12's recent rustc only comes with the source.
        libstd-rust-dev-wasm32)
            case $(rust_suffix) in
            '') echo libstd-rust-dev-wasm32 ;;
            -1.*) echo "libstd-rust$(rust_suffix)-dev-wasm32" ;;
            *) echo "rust$(rust_suffix)-src" ;;
            esac
            ;;
        # It must be from the LLVM that rustc uses.
        lld) plan "rustc$(rust_suffix)" | sed -n 's/^libllvm\([0-9]*\).*/lld-\1/p' ;;
        linux-image-*) ask cache pkgnames "$name" | grep -x "$name" || echo linux-image-generic ;;
        *) echo "$name" ;;
        esac
    done
}

# Debian 12 calls its recent cargo cargo-web; some Ubuntu releases have cargo-1.80 and the like beside an older one.
rust_suffix() {
    for package in cargo cargo-web $(ask cache pkgnames cargo-1. | sort -rV); do
        version=$(ask cache policy "$package" | sed -n 's/^  Candidate: \([0-9]\)/\1/p')
        if dpkg --compare-versions "${version:-0}" ge "1.$MINOR"; then echo "${package#cargo}"; return; fi
    done
}

# plan NAMES: these packages and everything they depend on, as PACKAGE=VERSION lines.
plan() {
    # shellcheck disable=SC2086 # a list of names
    ask get --simulate install $1 >"$apt/plan" && sed -n 's/^Inst \([^ ]*\) (\([^ ]*\) .*/\1=\2/p' "$apt/plan"
}

update() {
    say 'asking apt for its package lists'
    # A source that doesn't answer may be one we don't need, so we only check that some lists have come.
    ask get update >&2 || true
    any "$apt"/lists/*Packages* || give_up 'apt got no package lists; its messages are above. Check that this machine reaches the network, then run the same command again.'
}

# get NAMES: downloads what they need and $apt/here does not name. What is there in part goes on where it was.
get() {
    names=$(resolve "$1")
    packages=$(plan "$(echo "$names" | grep -v '^linux-image')") || return 1
    packages=$(echo "$packages" | awk -F = 'NR == FNR { here[$0]; next } !($0 in here || $1 in here)' "$apt/here" -)
    # A kernel's files are in packages that have its version in their names: linux-image-6.1.0-50-amd64 on Debian 12 and 13;
    # linux-binary- and linux-modules- later; linux-modules-extra- on Ubuntu. What else comes with it is of no use here.
    kernel=$(plan "$(echo "$names" | grep '^linux-image')") || return 1
    kernel=$(echo "$kernel" | grep -E '^linux-[a-z-]+-[0-9]')
    # shellcheck disable=SC2086 # lists of packages
    set -- $packages $kernel
    [ $# -gt 0 ] || return 0
    uris=$(cd "$apt/debs" && ask get -qq download --print-uris "$@") || return 1
    [ -n "$uris" ] || return 0
    say "$(echo "$uris" | awk '{ n += $3 } END { printf "downloading %d packages, %.0f MB; nothing is installed", NR, n / 1e6 }')"
    (cd "$apt/debs" && ask get download "$@" >&2)
}

# Lists age. The packages that they name may have been replaced since.
get_or_update() {
    get "$1" || { update && get "$1"; } || give_up 'apt could not download all packages; its messages are above. Check the network and
the room on the disk, then run the same command again. It goes on where it stopped.'
}

# The file that apt made for PACKAGE=VERSION, with %3a for a colon.
file_of() { echo "$apt/debs/$(echo "$1" | sed 's/:/%3a/g; s/=/_/')"_*.deb; }

# A package stands in $TOOLS/packages once it is unpacked whole.
unpack() {
    mkdir -p "$TOOLS/kernel" "$TOOLS/first"
    for folder in bin sbin lib lib64; do
        mkdir -p "$TOOLS/usr/$folder"
        [ -e "$TOOLS/$folder" ] || ln -s "usr/$folder" "$TOOLS/$folder"
    done
    for package in $packages; do
        file=$(file_of "$package")
        dpkg-deb --fsys-tarfile "$file" | tar -x -C "$TOOLS" --keep-directory-symlink --no-same-owner --no-same-permissions ||
            give_up "cannot unpack $package into $TOOLS (the reason is above). Fix that, then run the same command again."
        echo "$package" >>"$TOOLS/packages"
        rm "$file"
    done
    # We didn't unpack what this machine has itself, so the name that a linker looks for links to the machine's own file.
    for link in "$TOOLS/usr/lib/$machine-linux-gnu"/*.so; do
        [ -L "$link" ] || continue
        own=$ROOT/usr/lib/$machine-linux-gnu/$(basename "$(readlink "$link")")
        [ -e "$link" ] || [ ! -e "$own" ] || ln -sf "$own" "$link"
    done
    for package in $kernel; do mv "$(file_of "$package")" "$TOOLS/kernel"; done
    # These the machine may also have, but not as we need them. And kmod under the name by which it's called, because that one links to /bin/kmod.
    for file in "$TOOLS"/usr/lib/rust-1.*/bin/* "$TOOLS"/usr/bin/cargo "$TOOLS"/usr/bin/rust[cd]* "$TOOLS/usr/bin/busybox"; do
        [ ! -x "$file" ] || ln -sf "..${file#"$TOOLS"}" "$TOOLS/first"
    done
    [ ! -e "$TOOLS/usr/bin/kmod" ] || ln -sf ../usr/bin/kmod "$TOOLS/first/depmod"
    # pyverbs is built for the distribution's own Python, but another Python may come first in PATH.
    if [ -e "$TOOLS/usr/lib/python3/dist-packages/pyverbs" ]; then
        python=$ROOT/usr/bin/python3
        [ -x "$python" ] || python=../usr/bin/python3
        ln -sf "$python" "$TOOLS/first/python3"
    fi
}

# The file that make and people read. This machine has none of our libraries, so they don't replace any of its own.
write_env() {
    cat >"$TOOLS/env.$$" <<END
# Written by tools/lab/setup.sh. What was unpacked here comes after what this machine has itself.
unset BASH_ENV
export RDMA_TOOLS="$TOOLS"
export PATH="\$RDMA_TOOLS/first:\$PATH:\$RDMA_TOOLS/usr/bin:\$RDMA_TOOLS/usr/sbin"
lib="\$RDMA_TOOLS/usr/lib/$machine-linux-gnu"
export LD_LIBRARY_PATH="\$lib\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH}"
[ ! -e "\$RDMA_TOOLS/usr/lib/python3/dist-packages" ] ||
    export PYTHONPATH="\$RDMA_TOOLS/usr/lib/python3/dist-packages\${PYTHONPATH:+:\$PYTHONPATH}"
# The first are the compiler's own headers: packages of libclang bring none.
export BINDGEN_EXTRA_CLANG_ARGS="\"-I$(cc -print-file-name=include)\" \"-I\$RDMA_TOOLS/usr/include\""
# LIBRARY_PATH helps if the checkout's path has a space in it, at which pkg-config would split it.
[ ! -e "\$lib/pkgconfig/libibverbs.pc" ] || export PKG_CONFIG_PATH="\$lib/pkgconfig" PKG_CONFIG_SYSROOT_DIR="\$RDMA_TOOLS" \\
    LIBRARY_PATH="\$lib" C_INCLUDE_PATH="\$RDMA_TOOLS/usr/include" \\
    CPLUS_INCLUDE_PATH="\$RDMA_TOOLS/usr/include"
END
    mv "$TOOLS/env.$$" "$TOOLS/env"
}

# For a classroom without a network. It packs lists, packages and the crates' sources. On another machine set-up and cargo find them where
# they would have put them. That machine may have less than this one, but it must have what set-up doesn't get.
bundle() {
    # shellcheck source=/dev/null
    . /etc/os-release
    archive=$TARGET/rdma-$ID-${VERSION_ID:-$VERSION_CODENAME}-$machine.tar.gz root=$TARGET/bundle
    TOOLS=$root/target/tools
    configure_apt
    update
    plan "$(rows own | column 3)" | sed 's/=.*//' >"$apt/here"
    get_or_update "$(rows 'build lab shell python test' | column 3)"
    cargo vendor --locked --versioned-dirs --quiet "$TOOLS/vendor" >/dev/null
    mkdir -p "$root/.cargo"
    printf '[source.crates-io]\nreplace-with = "bundle"\n[source.bundle]\ndirectory = "target/tools/vendor"\n' >"$root/.cargo/config.toml"
    rm -f "$apt"/*.bin
    tar -czf "$archive.new" -C "$root" target .cargo
    mv "$archive.new" "$archive"
    rm -rf "$root"
    say "$(du -h "$archive" | cut -f 1) in $archive. On a machine of the same release, unpack it in a clone of the course with tar -xzf, then run make as usual"
}

if echo "${*:-none}" | tr ' ' '\n' | grep -qvxE 'cargo|build|lab|nvme|shell|python|test|check|grade|siw|wasm|device|site|browser|bundle'; then
    echo 'usage: tools/lab/setup.sh cargo|build|lab|nvme|shell|python|test|check|grade|siw|device|site|browser...    or: tools/lab/setup.sh wasm|bundle' >&2
    exit 2
fi
# It gets a folder of its own, because its rustc would otherwise be found before the one that builds everything else. Both share the package lists.
if [ "$*" = wasm ]; then
    mkdir -p "$TOOLS/apt" "$TOOLS/wasm"
    TOOLS=$TOOLS/wasm
    ln -sfn ../apt "$TOOLS/apt"
fi
# What the machine itself must have. Checking what its RDMA device needs doesn't take a compiler.
own=own
for stage in "$@"; do case $stage in device | site | browser) own="$own $stage" ;; esac; done
[ "$*" != device ] || own=device
beyond=$(missing found_here "$own")
lacking=$(missing found "$*")
if [ -n "$lacking" ] && ! has apt-get; then beyond=$(printf '%s\n' "$beyond" "$lacking" | sort -u | sed '/^$/d'); fi
[ -z "$beyond" ] || explain "$beyond"
[ "$*" != device ] || exit 0

STAGES=$*
mkdir -p "$TOOLS"
# $TOOLS/wanted lists what we've begun to get until it's unpacked, so that after a full disk or Ctrl-C the next call goes on, even if what it
# looks for is already there in part.
if [ -n "$lacking" ] || [ -e "$TOOLS/wanted" ] || [ "$1" = bundle ]; then
    begin_apt
    if [ "$1" = bundle ]; then bundle; exit; fi
    wanted=$({ missing found "$*" | cut -d '|' -f 3; cat "$TOOLS/wanted" 2>/dev/null || true; } | column 1)
    echo "$wanted" >"$TOOLS/wanted.new"
    mv "$TOOLS/wanted.new" "$TOOLS/wanted"
    any "$apt"/lists/*Packages* || update
    get_or_update "$wanted"
    unpack
    rm -f "$apt"/*.bin "$TOOLS/wanted"
    write_env
    # shellcheck source=/dev/null
    . "$TOOLS/env"
    lacking=$(missing found "$*")
    [ -z "$lacking" ] || explain "$lacking"
fi
write_env
case " $* " in *' siw '*) build_siw ;; esac
