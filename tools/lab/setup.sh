#!/bin/sh
# Finds what this machine lacks for a stage of the work (tools/lab/needs.txt), and unpacks exactly that below target/tools. Nothing
# is installed, and it needs no root: apt downloads into a folder of ours and checks the signatures, as for any installation.
#
#   tools/lab/setup.sh STAGE...   cargo, build, lab, shell, python, test, check, grade; device, site, browser: what the machine itself has to have, only looked for
#   tools/lab/setup.sh wasm       a compiler for the browser, in a folder of its own with an env of its own
#   tools/lab/setup.sh bundle     what build, lab, shell, python and test need, and the crates, in one file for machines of this release that have no network
#
# The Makefile calls it before everything else, so it prints nothing and costs next to nothing when all is there. What it wrote
# is in target/tools/env, which make reads, and a person for a plain `cargo build`:  . target/tools/env
set -eu
cd "$(dirname "$0")/../.."
# shellcheck source=tools/lab/needs.sh
. tools/lab/needs.sh
# shellcheck source=/dev/null
if [ -e "$TOOLS/env" ]; then . "$TOOLS/env"; fi
# What programs print is read here.
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

# explain ROWS: what is missing, and the command that a person with the right to it can give.
explain() {
    say "this machine lacks:
$(echo "$1" | sed 's/^/  /; s/|.*//')
Get it, then run the same command again:
  $(to_install "$(echo "$1" | column 3)" "$(echo "$1" | column 4)" "$(echo "$1" | column 5)")"
    case $1 in *'|cargo|'*) echo '  or rustup (https://rustup.rs), which brings a recent cargo' >&2 ;; esac
    exit 1
}

# The machine's own apt with a state of its own below $apt. To it nothing is installed, so nothing that is can be in the way.
configure_apt() {
    apt=$TOOLS/apt
    mkdir -p "$apt/lists/partial" "$apt/debs"
    # Read after the machine's own files, which name its proxy and its certificates, but also more lists and what to do then.
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

# ask get|cache ARGUMENTS: apt-get or apt-cache.
ask() { tool=apt-$1 && shift && "$tool" -c "$apt/conf" "$@"; }

# The table's names as this release has them.
resolve() {
    for name in $1; do
        case $name in
        cargo | rustfmt) echo "$name$(rust_suffix)" ;;
        rust-clippy) echo "rust$(rust_suffix)-clippy" ;;
        # That of the LLVM which rustc uses: any does, and that one is here or comes anyway.
        libclang1)
            llvm=$(plan "cargo$(rust_suffix)" | sed -n 's/^libllvm\([0-9]*\).*/\1/p')
            ask cache pkgnames "libclang1-$llvm" | sort -rV | head -n 1
            ;;
        rustc) echo "rustc$(rust_suffix)" ;;
        # Debian 12's recent rustc has the source alone.
        libstd-rust-dev-wasm32)
            case $(rust_suffix) in
            '') echo libstd-rust-dev-wasm32 ;;
            -1.*) echo "libstd-rust$(rust_suffix)-dev-wasm32" ;;
            *) echo "rust$(rust_suffix)-src" ;;
            esac
            ;;
        # Of the LLVM which rustc uses.
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

# plan NAMES: these packages and all that they need, as PACKAGE=VERSION lines.
plan() {
    # shellcheck disable=SC2086 # a list of names
    ask get --simulate install $1 >"$apt/plan" && sed -n 's/^Inst \([^ ]*\) (\([^ ]*\) .*/\1=\2/p' "$apt/plan"
}

update() {
    say 'asking apt for its package lists'
    # What counts is what came: a source that does not answer may be one that is not needed.
    ask get update >&2 || true
    any "$apt"/lists/*Packages* || give_up 'apt got no package lists (its messages are above). Is there a network?'
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

# Lists age: what they name may have been replaced since.
get_or_update() {
    get "$1" || { update && get "$1"; } || give_up 'apt could not bring all of it (its messages are above; is there a network, and
room on the disk?). What is there stays: run the same command again, and it goes on from there.'
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
            give_up "cannot unpack $package into $TOOLS (see above). Run the same command again when that is mended."
        echo "$package" >>"$TOOLS/packages"
        rm "$file"
    done
    # What this machine has itself did not come along: the name that a linker looks for leads there.
    for link in "$TOOLS/usr/lib/$machine-linux-gnu"/*.so; do
        own=$ROOT/usr/lib/$machine-linux-gnu/$(basename "$(readlink "$link")")
        [ -e "$link" ] || [ ! -e "$own" ] || ln -sf "$own" "$link"
    done
    for package in $kernel; do mv "$(file_of "$package")" "$TOOLS/kernel"; done
    # What the machine may have, too, but not as it is needed; and kmod by the name that is called, for it links to /bin/kmod.
    for file in "$TOOLS"/usr/lib/rust-1.*/bin/* "$TOOLS"/usr/bin/cargo "$TOOLS"/usr/bin/rust[cd]* "$TOOLS/usr/bin/busybox"; do
        [ ! -x "$file" ] || ln -sf "..${file#"$TOOLS"}" "$TOOLS/first"
    done
    [ ! -e "$TOOLS/usr/bin/kmod" ] || ln -sf ../usr/bin/kmod "$TOOLS/first/depmod"
    # pyverbs is made for the distribution's own Python, and the machine may have another one that is found before it.
    if [ -e "$TOOLS/usr/lib/python3/dist-packages/pyverbs" ]; then
        python=$ROOT/usr/bin/python3
        [ -x "$python" ] || python=../usr/bin/python3
        ln -sf "$python" "$TOOLS/first/python3"
    fi
}

# What make and a person read. Our libraries are none that this machine has, so nothing of its own changes by them.
write_env() {
    cat >"$TOOLS/env.$$" <<END
# Written by tools/lab/setup.sh: what was unpacked here, behind what this machine has itself.
unset BASH_ENV
export RDMA_TOOLS="$TOOLS"
export PATH="\$RDMA_TOOLS/first:\$PATH:\$RDMA_TOOLS/usr/bin:\$RDMA_TOOLS/usr/sbin"
lib="\$RDMA_TOOLS/usr/lib/$machine-linux-gnu"
export LD_LIBRARY_PATH="\$lib\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH}"
[ ! -e "\$RDMA_TOOLS/usr/lib/python3/dist-packages" ] ||
    export PYTHONPATH="\$RDMA_TOOLS/usr/lib/python3/dist-packages\${PYTHONPATH:+:\$PYTHONPATH}"
# The first are the compiler's own headers: packages of libclang bring none.
export BINDGEN_EXTRA_CLANG_ARGS="\"-I$(cc -print-file-name=include)\" \"-I\$RDMA_TOOLS/usr/include\""
# LIBRARY_PATH serves where the checkout's path holds a space, at which pkg-config breaks it.
[ ! -e "\$lib/pkgconfig/libibverbs.pc" ] || export PKG_CONFIG_PATH="\$lib/pkgconfig" PKG_CONFIG_SYSROOT_DIR="\$RDMA_TOOLS" \\
    LIBRARY_PATH="\$lib" C_INCLUDE_PATH="\$RDMA_TOOLS/usr/include" \\
    CPLUS_INCLUDE_PATH="\$RDMA_TOOLS/usr/include"
END
    mv "$TOOLS/env.$$" "$TOOLS/env"
}

# For a classroom without a network. Lists, packages and the crates' sources: on another machine set-up and cargo find them where
# they would have put them. That machine may have less than this one, but has what set-up does not bring.
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
    say "$(du -h "$archive" | cut -f 1) in $archive. In a clone on a machine of the same release: tar -xzf it, then make as usual"
}

if echo "${*:-none}" | tr ' ' '\n' | grep -qvxE 'cargo|build|lab|shell|python|test|check|grade|wasm|device|site|browser|bundle'; then
    echo 'usage: tools/lab/setup.sh cargo|build|lab|shell|python|test|check|grade|device|site|browser...    or: tools/lab/setup.sh wasm|bundle' >&2
    exit 2
fi
# Its rustc would otherwise be found before the one that all else is built with. The package lists are the same.
if [ "$*" = wasm ]; then
    mkdir -p "$TOOLS/apt" "$TOOLS/wasm"
    TOOLS=$TOOLS/wasm
    ln -sfn ../apt "$TOOLS/apt"
fi
# What has to be the machine's own; and to look at what its device needs, no compiler is needed.
own=own
for stage in "$@"; do case $stage in device | site | browser) own="$own $stage" ;; esac; done
[ "$*" != device ] || own=device
beyond=$(missing found_here "$own")
lacking=$(missing found "$*")
if [ -n "$lacking" ] && ! has apt-get; then beyond=$(printf '%s\n' "$beyond" "$lacking" | sort -u | sed '/^$/d'); fi
[ -z "$beyond" ] || explain "$beyond"
[ "$*" != device ] || exit 0

mkdir -p "$TOOLS"
# What was begun stands in $TOOLS/wanted until it is unpacked: after a full disk or Ctrl-C the next call goes on, though what it
# looks for may be there already, in part.
if [ -n "$lacking" ] || [ -e "$TOOLS/wanted" ] || [ "$1" = bundle ]; then
    trap 'say "interrupted; the same command goes on from here"; exit 130' INT TERM HUP
    mkdir -p "$TOOLS/apt"
    exec 9>"$TOOLS/apt/lock"
    # Where the file system has no locks, the second one goes on.
    flock -n 9 || { say 'another set-up is at work; waiting for it'; flock 9 || true; }
    if [ "$1" = bundle ]; then bundle; exit; fi
    configure_apt
    touch "$TOOLS/packages"
    # Of the machine's own a rustc that is unpacked finds nothing: it looks for its libraries beside itself.
    case $* in wasm) not_here=rust ;; *) not_here=/ ;; esac
    dpkg-query -Wf '${db:Status-Status}=${Package}\n' | sed -n "\:$not_here:d; s/^installed=//p" | cat - "$TOOLS/packages" >"$apt/here"
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
