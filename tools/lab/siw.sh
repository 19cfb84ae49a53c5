# shellcheck shell=sh disable=SC2154
# SoftiWARP's kernel module, for `tools/lab/setup.sh siw`, which sources this. Ubuntu's kernels bring it. Debian's are built without it, but
# Debian ships its source: we build it for the kernel that the lab boots, and keep it in target/lab/siw/RELEASE/siw.ko.

# The release of that kernel: this machine's own, else the one that was unpacked last, else the one that was downloaded.
lab_kernel() {
    if own_kernel_has rdma_rxe; then echo "$release"; return; fi
    # shellcheck disable=SC2012 # names of kernels
    unpacked=$(ls -td "$TARGET"/lab/kernel/*/vmlinuz 2>/dev/null | head -n 1)
    if [ -n "$unpacked" ]; then basename "$(dirname "$unpacked")"; return; fi
    for deb in "$TOOLS"/kernel/linux-modules-[0-9]*.deb "$TOOLS"/kernel/linux-image-[0-9]*.deb; do
        [ ! -e "$deb" ] || { basename "$deb" | sed 's/^linux-[a-z]*-//; s/_.*//'; return; }
    done
}

# Whether that kernel has the module already.
brings_siw() {
    if own_kernel_has rdma_rxe; then grep -qs '/siw\.ko' "$ROOT/lib/modules/$kernel/modules.dep"; return; fi
    if [ -e "$TARGET/lab/kernel/$kernel/modules" ]; then grep -qs '/siw\.ko' "$TARGET/lab/kernel/$kernel/modules/modules.dep"; return; fi
    for deb in "$TOOLS"/kernel/*.deb; do
        ! dpkg-deb --fsys-tarfile "$deb" | tar -t | grep '/siw\.ko' >/dev/null || return 0
    done
    return 1
}

# build_siw: does all of it, or says why it can't be done. Everything but the module is in a temporary folder, because the kernel's build
# can't cope with a space in a path, and because nobody needs 200 MB of sources afterwards.
build_siw() {
    kernel=$(lab_kernel)
    [ -n "$kernel" ] || give_up 'there is no kernel yet to build siw for. Run: tools/lab/setup.sh lab siw'
    siw=$TARGET/lab/siw/$kernel/siw.ko
    if [ -e "$siw" ] || brings_siw; then return; fi
    has apt-get || give_up "the kernel $kernel has no module siw, and set-up can only build it from Debian's packages. Run this on a
Debian or Ubuntu machine, or in a container of one; or give the lab a kernel that has siw (target/debug/lab run lesson-05 --driver siw --kernel …)."
    has make || give_up "building the module siw takes make. Get it with: $(to_install make make make)"
    begin_apt
    # Another set-up, for which this one waited, may have built it.
    [ ! -e "$siw" ] || return 0
    any "$apt"/lists/*Packages* || update
    scratch=$(mktemp -d)
    trap 'rm -rf "$scratch"' EXIT
    trap 'say "interrupted. Run the same command again; it downloads headers and source once more"; exit 130' INT TERM HUP
    say "building the module siw for Linux $kernel, once: this downloads its headers and source, about 160 MB, and takes a minute or two"
    download_siw || { update && download_siw; } || give_up "apt offers no linux-headers-$kernel with the source that belongs to it (its messages
are above). If it's neither the network nor the room in $scratch, the distribution has replaced that kernel. $(newer_kernel)"
    # In a shell of its own, so that what an interrupt says is not in the log.
    (make_siw) >"$scratch/log" 2>&1 || { cat "$scratch/log" >&2; give_up "the module siw could not be built for Linux $kernel; what the build said is above"; }
    mkdir -p "$(dirname "$siw")"
    cp "$scratch/siw.ko" "$siw.new"
    mv "$siw.new" "$siw"
}

newer_kernel() {
    if own_kernel_has rdma_rxe; then echo 'Update this machine and restart it, then run the same command again.'
    else echo "Get the one that it has now: rm -r $TARGET/lab/kernel && tools/lab/setup.sh lab siw"; fi
}

download_siw() {
    packages=$(plan_of_siw) || return 1
    # shellcheck disable=SC2086 # a list of packages
    (cd "$scratch" && ask get download $packages >&2)
}

# The packages that hold headers and source, of one version, and the libraries that this machine lacks for the programs among them.
plan_of_siw() {
    headers=$(plan "linux-headers-$kernel") || return 1
    version=$(echo "$headers" | sed -n "s/^linux-headers-$(echo "$kernel" | sed 's/[.]/\\&/g')=//p")
    [ -n "$version" ] || return 1
    echo "$headers" | awk -F = 'NR == FNR { here[$0]; next } /^linux-/ || !($0 in here || $1 in here)' "$apt/here" -
    source=$(plan "linux-source-$(echo "$kernel" | cut -d . -f 1-2)") || return 1
    echo "$source" | grep -F -x "linux-source-$(echo "$kernel" | cut -d . -f 1-2)=$version"
}

make_siw() (
    cd "$scratch" || exit
    for deb in *.deb; do
        case $deb in
        linux-source-*) dpkg-deb --fsys-tarfile "$deb" | tar -xO --wildcards '*.tar.xz' | xz -dc |
            tar -x --strip-components=1 --wildcards '*/drivers/infiniband/sw/siw/*' ;;
        *) dpkg-deb -x "$deb" . ;;
        esac
        rm "$deb"
    done
    # The headers' own Makefile includes another one, by the path at which it would be installed.
    find usr/src -maxdepth 2 -name Makefile -exec sed -i "s|/usr/|$scratch/usr/|g" {} +
    export PATH="$PATH:$scratch/usr/bin" LD_LIBRARY_PATH="$scratch/usr/lib/$machine-linux-gnu${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
    make -C "usr/src/linux-headers-$kernel" M="$scratch/drivers/infiniband/sw/siw" CONFIG_RDMA_SIW=m modules &&
        strip -g -o siw.ko drivers/infiniband/sw/siw/siw.ko
)
