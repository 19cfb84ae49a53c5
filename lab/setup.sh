#!/bin/sh
# Finds what this machine lacks for a stage of the work (lab/needs.txt), and unpacks exactly that below target/tools. Nothing
# is installed, and it needs no root: apt downloads into a folder of ours and checks the signatures, as for any installation.
#
#   lab/setup.sh STAGE...   build, lab, shell, test, check; device: what this machine's own RDMA device needs, only looked for
#   lab/setup.sh bundle     all of it and the crates in one file, for machines of this release that have no network
#
# The Makefile calls it before everything else, so it prints nothing and costs next to nothing when all is there. What it wrote
# is in target/tools/env, which make reads, and a person for a plain `cargo build`:  . target/tools/env
set -eu
cd "$(dirname "$0")/.."

# shellcheck source=lab/needs.sh
. lab/needs.sh
# shellcheck source=/dev/null
if [ -e "$TOOLS/env" ]; then . "$TOOLS/env"; fi
apt=$TOOLS/apt debs=$TOOLS/apt/debs
# Packages whose files nobody here looks at: names of languages, code to boot from a network, a running system.
unneeded='^(iso-codes|ipxe-qemu|systemd|udev|libsystemd-shared)='

say() { echo "setup: $*" >&2; }
give_up() { say "$@"; exit 1; }

# ---- What is missing ----------------------------------------------------------------------------------------------

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
    say 'this machine lacks:'
    echo "$1" | cut -d '|' -f 1 | sed 's/^/  /' >&2
    echo 'Get it, then run the same command again:' >&2
    if has apt-get; then
        names=$(resolve "$(echo "$1" | column 3)")
        [ -z "$names" ] || echo "  apt-get install --no-install-recommends $names   (as root)" >&2
    else
        echo "  Debian, Ubuntu: a C compiler, make and certificates; the rest is then unpacked without being installed
  Fedora:         dnf install $(echo "$1" | column 4)
  Arch:           pacman -S $(echo "$1" | column 5)" >&2
    fi
    case $1 in
    *cargo-*) ! has rustup || echo '  or, for the cargo in use: rustup component add rustfmt clippy' >&2 ;;
    *cargo*) echo '  or rustup (https://rustup.rs), which brings a recent cargo' >&2 ;;
    esac
    exit 1
}

# ---- Debian's and Ubuntu's packages -------------------------------------------------------------------------------

# The machine's own apt with a state of its own below $apt: its lists, its downloads. $status tells what is installed here.
configure_apt() {
    status=/var/lib/dpkg/status
    export APT_CONFIG="$apt/apt.conf" LC_ALL=C
    mkdir -p "$apt/lists/partial" "$debs"
    # Read after the machine's own files, which name its proxy and its certificates, and perhaps more lists than we need.
    cat >"$apt/main.conf" <<END
$([ ! -e /etc/apt/apt.conf ] || echo '#include "/etc/apt/apt.conf";')
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
#clear Acquire::IndexTargets;
Acquire::IndexTargets::deb::Packages {
    MetaKey "\$(COMPONENT)/binary-\$(ARCHITECTURE)/Packages"; flatMetaKey "Packages"; Optional "no";
    Description "\$(RELEASE)/\$(COMPONENT) \$(ARCHITECTURE) Packages"; flatDescription "\$(RELEASE) Packages";
};
Dir::State "$apt";
Dir::State::lists "$apt/lists";
Dir::State::status "$status";
Dir::Cache "$apt";
Acquire::Languages "none";
APT::Install-Recommends "false";
APT::Sandbox::User "$(id -un)";
Debug::NoLocking "true";
END
    echo "Dir::Etc::main \"$apt/main.conf\";" >"$apt/apt.conf"
}

offers() { apt-cache policy "$1" 2>/dev/null | grep -q 'Candidate: [^(]'; }

# The names that depend on the release.
resolve() {
    for name in $1; do
        case $name in
        @cargo) recent_cargo ;;
        @rustfmt | @clippy) linter "${name#@}" ;;
        @libclang) some_libclang ;;
        @kernel) if offers "linux-image-$deb_arch"; then echo "linux-image-$deb_arch"; else echo linux-image-generic; fi ;;
        *) echo "$name" ;;
        esac
    done | paste -s -d ' ' -
}

# Debian 12 calls its recent Rust cargo-web; some Ubuntu releases have cargo-1.80 and the like beside an older cargo.
recent_cargo() {
    for package in cargo cargo-web $(apt-cache pkgnames cargo-1. | sort -rV | head -n 1); do
        version=$(apt-cache policy "$package" 2>/dev/null | sed -n 's/^  Candidate: \([^(]\)/\1/p')
        if dpkg --compare-versions "${version:-0}" ge "1.$MINOR"; then
            echo "$package"
            return
        fi
    done
    echo cargo
}

# rustfmt and clippy have to fit to the cargo in use. Those of rustup's are rustup's own.
linter() {
    if has rustup && [ "$status" != "$apt/base" ]; then return; fi
    if [ "$status" != "$apt/base" ] && [ ! -e "$TOOLS/usr/bin/cargo" ] && cargo_is_recent; then own=cargo; else own=$(recent_cargo); fi
    # cargo-web: rustfmt-web and rust-web-clippy.
    case $1 in rustfmt) echo "rustfmt${own#cargo}" ;; clippy) echo "rust${own#cargo}-clippy" ;; esac
}

# Any libclang does. One that is downloaded already, or whose LLVM is here for rustc, spares 25 MB; else the newest.
some_libclang() {
    newest=''
    for version in $(apt-cache pkgnames libclang1- | sed -n 's/^libclang1-\([0-9]*\)$/\1/p' | sort -rn); do
        offers "libclang1-$version" || continue
        newest=${newest:-$version}
        if any "$debs/libclang1-${version}"_* || library "libLLVM*$version*" >/dev/null; then
            newest=$version
            break
        fi
    done
    echo "libclang1-$newest"
}

# plan NAMES: what apt would install that is not here in any version, as PACKAGE=VERSION lines.
plan() {
    # shellcheck disable=SC2086 # a list of names
    apt-get -o Dir::State::status="$status" --simulate install $1 >"$apt/plan" 2>"$apt/complaint" || return 1
    sed -n 's/^Inst \([^ ]*\) (\([^ ]*\) .*/\1=\2/p' "$apt/plan" | grep -Ev "$unneeded" || true
}

# A kernel's files are in packages that have its version in their names: linux-image-6.1.0-50-amd64 on Debian 12 and 13;
# linux-base-, linux-binary- and linux-modules- later; linux-modules-extra- on Ubuntu. What else comes with it is of no use here.
only_kernel() { grep -E '^linux-[a-z-]+-[0-9]' || true; }

have_lists() { any "$apt"/lists/*Packages*; }

update() {
    say 'asking apt for its package lists'
    # What counts is what came: a source that does not answer may be one that is not needed.
    apt-get update >&2 || true
    have_lists || give_up 'apt got no package lists (its messages are above). Is there a network?'
}

# The URI, name, size and hash of each package that is not downloaded yet.
to_come() { (cd "$debs" && apt-get -qq download --print-uris "$@"); }

# download PACKAGE=VERSION...: a file that is there in part goes on where it was.
download() {
    [ $# -gt 0 ] || return 0
    uris=$(to_come "$@") || return 1
    [ -n "$uris" ] || return 0
    say "$(echo "$uris" | awk '{ n += $3 } END { printf "downloading %d packages, %.0f MB; nothing is installed", NR, n / 1e6 }')"
    (cd "$debs" && apt-get download "$@" >&2) || return 1
    [ -z "$(to_come "$@")" ]
}

# What is installed here may be in the way of a package that is only unpacked. Then apt plans for a machine that has what every
# one has that runs apt and compiles, and what is here in some version is left out.
base_only() {
    names=$(dpkg-query -Wf '${Package} ${Essential}\n' | sed -n 's/ yes$//p')
    # The last ones are behind a name that several packages provide.
    names="$names $(dpkg-query -Wf '${Package} ' mawk gawk original-awk 2>/dev/null || true)"
    # shellcheck disable=SC2086 # a list of names
    names=$(apt-cache depends --recurse --installed --important $names apt libc6 gcc libc6-dev | sed 's/.*[ |]//')
    echo "$names" | awk 'NR == FNR { base[$1]; next } /^Package: / { keep = $2 in base } keep' - /var/lib/dpkg/status >"$apt/base"
    status=$apt/base
}
not_installed() {
    dpkg-query -Wf '${db:Status-Status} ${Package}\n' | sed -n 's/^installed //p' >"$apt/installed"
    awk -F = 'NR == FNR { here[$1]; next } !($1 in here)' "$apt/installed" -
}
not_unpacked() { grep -vxFf "$TOOLS/packages" || true; }

# get NAMES KERNELS: plans and downloads both, with all that they need.
get() {
    packages='' kernel=''
    if [ -n "$1" ] && ! packages=$(plan "$(resolve "$1")"); then
        [ "$status" != "$apt/base" ] || return 1
        base_only
        packages=$(plan "$(resolve "$1")") || return 1
        packages=$(echo "$packages" | not_installed)
    fi
    packages=$(echo "$packages" | not_unpacked)
    # Planned for a machine without anything: that a kernel is installed here does not mean that it can be read.
    if [ -n "$2" ]; then kernel=$(status=/dev/null && plan "$(resolve "$2")") || return 1; fi
    kernel=$(echo "$kernel" | only_kernel)
    # shellcheck disable=SC2086 # lists of packages
    download $packages $kernel
}

# Lists age: what they name may have been replaced since.
get_or_update() {
    have_lists || update
    get "$@" && return
    update
    get "$@" || give_up "apt could not bring all of it (its messages are above; is there a network, and room on the disk?).
$(cat "$apt/complaint")
What is there stays: run the same command again, and it goes on from there."
}

# file_of PACKAGE=VERSION: its file, up to the architecture. apt puts %3a for a colon into a file's name.
file_of() { echo "$debs/$(echo "$1" | sed 's/:/%3a/g; s/=/_/')"; }

# A package stands in $TOOLS/packages once it is unpacked whole. What is to be unpacked stands in $TOOLS/unpacking until all of
# it is: after a full disk or Ctrl-C the next call goes on, though what it looks for may be there already, in part.
unpack() {
    printf '%s\n' "$@" >"$TOOLS/unpacking.new"
    mv "$TOOLS/unpacking.new" "$TOOLS/unpacking"
    for folder in bin sbin lib lib64; do
        mkdir -p "$TOOLS/usr/$folder"
        [ -e "$TOOLS/$folder" ] || ln -s "usr/$folder" "$TOOLS/$folder"
    done
    for package in "$@"; do
        file=$(file_of "$package")
        dpkg-deb --fsys-tarfile "$file"_*.deb | tar -x -C "$TOOLS" --keep-directory-symlink --no-same-owner \
            --no-same-permissions --exclude=./usr/share/doc --exclude=./usr/share/man --exclude=./usr/share/locale --exclude=./var ||
            give_up "cannot unpack $package into $TOOLS (see above). Run the same command again when that is mended."
        echo "$package" >>"$TOOLS/packages"
        rm "$file"_*.deb
    done
    # A link to /bin/kmod means the one that was unpacked.
    find "$TOOLS/usr" -type l -lname '/*' | while IFS= read -r link; do
        to=$(readlink "$link")
        if [ -e "$TOOLS$to" ]; then ln -sfnr "$TOOLS$to" "$link"; fi
    done
    rm "$TOOLS/unpacking"
}

# ---- What make and a person read ----------------------------------------------------------------------------------

# Our libraries are none that this machine has, so nothing of its own changes by them.
write_env() {
    lib=usr/lib/$machine-linux-gnu
    {
        echo "# Written by lab/setup.sh: what was unpacked here, behind what this machine has itself."
        echo "unset BASH_ENV"
        echo "export RDMA_TOOLS='$(echo "$TOOLS" | sed "s/'/'\\\\''/g")'"
        # In `first` is what the machine has, too, but not as it is needed.
        cat <<END
case ":\$PATH:" in *":\$RDMA_TOOLS/usr/bin:"*) ;; *)
export PATH="\$RDMA_TOOLS/first:\$PATH:\$RDMA_TOOLS/usr/bin:\$RDMA_TOOLS/usr/sbin"
export LD_LIBRARY_PATH="\$RDMA_TOOLS/$lib\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH}" ;;
esac
END
        # LIBRARY_PATH serves where the checkout's path holds a space, at which pkg-config breaks it; with the headers' path
        # it serves C programs, too.
        [ ! -e "$TOOLS/$lib/pkgconfig/libibverbs.pc" ] ||
            echo "export PKG_CONFIG_PATH=\"\$RDMA_TOOLS/$lib/pkgconfig\" PKG_CONFIG_SYSROOT_DIR=\"\$RDMA_TOOLS\" LIBRARY_PATH=\"\$RDMA_TOOLS/$lib\" C_INCLUDE_PATH=\"\$RDMA_TOOLS/usr/include\""
        # The first are the compiler's own headers: packages of libclang bring none.
        echo "export BINDGEN_EXTRA_CLANG_ARGS=\"\\\"-I$(cc -print-file-name=include)\\\" \\\"-I\$RDMA_TOOLS/usr/include\\\"\""
    } >"$TOOLS/env.new"
    if cmp -s "$TOOLS/env.new" "$TOOLS/env"; then rm "$TOOLS/env.new"; else mv "$TOOLS/env.new" "$TOOLS/env"; fi
    mkdir -p "$TOOLS/first"
    for file in "$TOOLS"/usr/lib/rust-1.*/bin/* "$TOOLS"/usr/bin/cargo "$TOOLS"/usr/bin/rust[cd]* "$TOOLS/usr/bin/busybox"; do
        if [ -x "$file" ] && [ ! -e "$TOOLS/first/${file##*/}" ]; then ln -sf "..${file#"$TOOLS"}" "$TOOLS/first"; fi
    done
}

# ---- A classroom without a network --------------------------------------------------------------------------------

# Lists, packages and the crates' sources: on another machine set-up finds them where it would have put them itself. That machine
# may have less than this one, so it is planned for one that has just the base.
bundle() {
    # shellcheck source=/dev/null
    . /etc/os-release
    archive=$TARGET/rdma-$ID-${VERSION_ID:-$VERSION_CODENAME}-$machine.tar.gz
    root=$TARGET/bundle
    TOOLS=$root/target/tools apt=$root/target/tools/apt debs=$root/target/tools/apt/debs
    configure_apt
    touch "$TOOLS/packages"
    have_lists || update
    base_only
    get_or_update "$(rows 'build lab shell test check' | grep -v '|kernel|' | column 3)" @kernel
    cargo vendor --locked --versioned-dirs --quiet "$TOOLS/vendor" >/dev/null
    rm -f "$apt"/*.bin "$TOOLS/packages"
    say "packing $archive"
    tar -czf "$archive.new" -C "$root" target
    mv "$archive.new" "$archive"
    rm -rf "$root"
    say "$(du -h "$archive" | cut -f 1) in $archive. In a clone on a machine of the same release: tar -xzf it, then make as usual"
}

# cargo takes the crates of a bundle from there.
use_vendored_crates() {
    if [ -e "$TOOLS/vendor" ] && [ ! -e .cargo/config.toml ]; then
        mkdir -p .cargo
        printf '[source.crates-io]\nreplace-with = "bundle"\n[source.bundle]\ndirectory = "%s"\n' "$TOOLS/vendor" >.cargo/config.toml
    fi
}

# ---- All together -------------------------------------------------------------------------------------------------

for stage in "${@:-none}"; do
    case $stage in build | lab | shell | test | check | device | bundle) ;; *)
        echo 'usage: lab/setup.sh build|lab|shell|test|check|device...    or: lab/setup.sh bundle' >&2
        exit 2
        ;;
    esac
done
mkdir -p "$TOOLS"
# What a device of this machine's own needs has to be the machine's own; and to look at that, no compiler is needed.
case $* in device) own=device ;; *device*) own='own device' ;; *) own=own ;; esac
beyond=$(missing found_here "$own")
[ "$*" != device ] || { [ -z "$beyond" ] || explain "$beyond"; exit; }
lacking=$(missing found "$*")
has apt-get || beyond=$(echo "$beyond
$lacking" | sort -u | sed '/^$/d')
[ -z "$beyond" ] || explain "$beyond"
if [ -n "$lacking" ] || [ -e "$TOOLS/unpacking" ] || [ "$1" = bundle ]; then
    trap 'say "interrupted; the same command goes on from here"; exit 130' INT TERM HUP
    exec 9>"$TOOLS/lock"
    # Where the file system has no locks, the second one goes on.
    flock -n 9 || { say 'another set-up is at work; waiting for it'; flock 9 || true; }
    touch "$TOOLS/packages"
fi
if [ "$1" = bundle ]; then
    bundle
    exit
fi
if [ -n "$lacking" ] || [ -e "$TOOLS/unpacking" ]; then
    configure_apt
    # shellcheck disable=SC2046 # a list of packages
    if [ -e "$TOOLS/unpacking" ]; then unpack $(not_unpacked <"$TOOLS/unpacking"); fi
    lacking=$(missing found "$*")
    get_or_update "$(echo "$lacking" | grep -v '|kernel|' | column 3)" "$(echo "$lacking" | grep '|kernel|' | column 3)"
    # shellcheck disable=SC2086 # a list of packages
    unpack $packages
    for package in $kernel; do
        mkdir -p "$TOOLS/kernel"
        mv "$(file_of "$package")"_*.deb "$TOOLS/kernel"
    done
    rm -f "$apt"/*.bin
    write_env
    # shellcheck source=/dev/null
    . "$TOOLS/env"
    lacking=$(missing found "$*")
    [ -z "$lacking" ] || explain "$lacking"
fi
write_env
use_vendored_crates
