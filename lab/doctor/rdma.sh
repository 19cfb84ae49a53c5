# shellcheck shell=sh disable=SC2154
# Checks of lab/doctor.sh: this machine's own RDMA devices, and what stands between them and a lesson.

SYS=$ROOT/sys/class/infiniband

check_rdma() {
    check vms 'SoftRoCE module' "$(rxe_module)" "this kernel ($release) has no rdma_rxe" "$(install_rxe)"
    soft=$(devices soft) nic=$(devices nic) iwarp=$(devices iwarp)
    check vms 'SoftRoCE device' "$soft" 'there is none' 'sudo lab/softroce.sh up'
    check nic 'RDMA NIC' "$nic" 'there is none, or its driver is not loaded' \
        'with such a card in the machine: sudo modprobe DRIVER (lspci -k names it)'
    [ -z "$iwarp" ] || note 'iWARP device' "$iwarp: the lessons run on it, but its packets are TCP, not RoCE"
    for device in $soft; do check_device "$device" vms; done
    for device in $nic; do check_device "$device" nic; done
    check_memlock
    [ -z "$soft$nic$iwarp" ] || check_permissions
    check_firewall
}

rxe_module() {
    modules=$ROOT/lib/modules/$release
    if [ -e "$ROOT/sys/module/rdma_rxe" ]; then echo 'rdma_rxe is loaded'; return; fi
    ! grep -qs '/rdma_rxe\.ko' "$modules/modules.dep" "$modules/modules.builtin" || echo "the kernel $release has rdma_rxe"
}

# Debian's cloud kernel lacks the module, so it takes another kernel there.
install_rxe() {
    if grep -qs ubuntu "$ROOT/etc/os-release"; then echo "sudo apt-get install linux-modules-extra-$release"
    elif has apt-get; then echo "sudo apt-get install linux-image-$deb_arch, then boot it"
    elif has dnf; then echo "sudo dnf install kernel-modules-$release kernel-modules-extra-$release"
    else echo 'use a kernel that is built with CONFIG_RDMA_RXE'; fi
}

# devices KIND: the names of those of this kind. SoftRoCE names the interface it was put on, and an iWARP device says so.
devices() {
    names=''
    for path in "$SYS"/*; do
        if [ ! -e "$path" ]; then continue; fi
        if grep -qs RNIC "$path/node_type"; then kind=iwarp; elif [ -e "$path/parent" ]; then kind=soft; else kind=nic; fi
        if [ "$1" = $kind ]; then names="$names ${path##*/}"; fi
    done
    echo "${names# }"
}

netdev_of() { content "$SYS/$1/parent" || content "$SYS/$1/ports/1/gid_attrs/ndevs/0"; }

# check_device NAME WAY
check_device() {
    port=$SYS/$1/ports/1 netdev=$(netdev_of "$1") state=$(content "$SYS/$1/ports/1/state")
    case $state in
    *ACTIVE*) ok "$1 link" "${state#*: } on ${netdev:-nothing}" ;;
    *) fail "$2" "$1 link" "${state#*: }" "sudo ip link set dev ${netdev:-INTERFACE} up (and is its cable in?)" ;;
    esac
    if [ -z "$netdev" ]; then
        fail "$2" "$1 interface" 'no network interface belongs to it' 'sudo rdma link show'
        return
    fi
    check_interface "$@"
    # A GID is made from each address of the interface; RoCE v2 is the kind that travels in UDP packets.
    if ! cat "$port"/gids/* 2>/dev/null | grep -q -v -e '^fe80:' -e '^[0:]*$'; then
        fail "$2" "$1 GIDs" "$netdev has no IP address" "sudo ip address add ADDRESS/24 dev $netdev"
    elif ! grep -qs 'RoCE v2' "$port"/gid_attrs/types/*; then
        fail "$2" "$1 GIDs" 'only RoCE v1, which does not travel in UDP' \
            'with SoftRoCE instead: sudo lab/softroce.sh up INTERFACE'
    else
        ok "$1 GIDs" 'RoCE v2, with an IP address'
    fi
    check_mtu "$1"
}

# rdma_cm takes one of the devices on an interface: perhaps not the one you mean. SoftRoCE is the one that can go.
check_interface() {
    for path in "$SYS"/*; do
        other=${path##*/}
        if [ "$other" = "$1" ] || [ "$(netdev_of "$other")" != "$netdev" ]; then continue; fi
        case " $nic " in *" $other "*) other_goes=$1 ;; *) other_goes=$other ;; esac
        fail "$2" "$1 interface" "$netdev carries $other, too, and connections may end up there" \
            "sudo rdma link delete $other_goes"
        return
    done
    ok "$1 interface" "$netdev, and no other RDMA device is on it"
}

# A packet carries 256 to 4096 bytes, a power of two, as many as fit beside some 80 bytes of headers.
check_mtu() {
    mtu=$(content "$ROOT/sys/class/net/$netdev/mtu") usual=''
    if [ "${mtu:-0}" -ge 1104 ] && [ "$mtu" -lt 2128 ]; then usual="$netdev has $mtu bytes, so a packet carries up to 1024"; fi
    check '' "$1 MTU" "$usual" "$netdev's MTU is ${mtu:-0} bytes: packets differ from the lessons' captures, where they carry up to \
1024; the other machine and all switches between have to have it, too" "sudo ip link set dev $netdev mtu 1500"
}

# Registered memory is locked memory. Root may lock as much as there is.
check_memlock() {
    limit=$(sed -n 's/^Max locked memory  *\([^ ]*\).*/\1/p' "$ROOT/proc/self/limits")
    enough=''
    if is_root || [ "$limit" = unlimited ] || [ "${limit:-0}" -ge 4194304 ]; then enough="limit: ${limit:-unknown} bytes"; fi
    check 'vms nic' 'locked memory' "$enough" "a process may lock only ${limit:-0} bytes; ibv_reg_mr needs more" \
        "echo '* - memlock unlimited' | sudo tee /etc/security/limits.d/rdma.conf, then log in again"
}

check_permissions() {
    for file in /dev/infiniband/rdma_cm "$ROOT"/dev/infiniband/uverbs*; do
        file=${file#"$ROOT"}
        if [ ! -e "$ROOT$file" ]; then
            fail 'vms nic' permissions "$file is missing" 'sudo modprobe rdma_ucm'
            return
        elif [ ! -r "$ROOT$file" ] || [ ! -w "$ROOT$file" ]; then
            fail 'vms nic' permissions "you may not open $file" "sudo chmod a+rw $file"
            return
        fi
    done
    ok permissions '/dev/infiniband can be opened'
}

# SoftRoCE's packets go through the kernel's firewall; a NIC's do not. To be set: its name, its rules, the cure.
check_firewall() {
    chain=$(nft_chain)
    if grep -qs '^ENABLED=yes' "$ROOT/etc/ufw/ufw.conf"; then
        set -- ufw "$(content "$ROOT/etc/ufw/user.rules")" 'sudo ufw allow 4791/udp'
    elif [ "$(first_line firewall-cmd --state)" = running ]; then
        set -- firewalld "$(firewall-cmd --query-port=4791/udp >/dev/null 2>&1 && echo 4791)" \
            'sudo firewall-cmd --permanent --add-port=4791/udp && sudo firewall-cmd --reload'
    elif ! is_root; then
        note firewall 'only root can see the rules; UDP port 4791 has to be open' 'sudo lab/doctor.sh'
        return
    elif [ -n "$chain" ]; then
        set -- nftables "$(nft list ruleset)" "sudo nft insert rule $chain udp dport 4791 accept"
    else
        ok firewall 'no policy that drops UDP port 4791'
        return
    fi
    case $2 in
    *4791*) ok firewall "$1 lets UDP port 4791 in" ;;
    *) fail vms firewall "$1 drops UDP port 4791, on which RoCE travels" "$3" ;;
    esac
}

# Family, table and name of the chain that drops what no rule lets in.
nft_chain() {
    nft list ruleset 2>/dev/null |
        awk '$1 == "table" { table = $2 " " $3 } $1 == "chain" { chain = $2 } /hook input .*policy drop/ { print table, chain; exit }'
}
