# shellcheck shell=sh disable=SC2154
# Checks of lab/doctor.sh: this machine's own RDMA devices, and what stands between them and a lesson.

SYS_RDMA=$ROOT/sys/class/infiniband

check_rxe_module() {
    if [ -e "$ROOT/sys/module/rdma_rxe" ]; then
        ok 'SoftRoCE module' 'rdma_rxe is loaded'
    elif kernel_has rdma_rxe; then
        ok 'SoftRoCE module' "the kernel $RELEASE has rdma_rxe"
    else
        fail vms 'SoftRoCE module' "this kernel ($RELEASE) has no rdma_rxe" "$(install_rxe)"
    fi
}

# Debian's cloud kernel lacks the module, so it takes another kernel there.
install_rxe() {
    case $(distribution) in
    ubuntu) echo "sudo apt-get install linux-modules-extra-$RELEASE" ;;
    debian) echo "sudo apt-get install linux-image-$deb_arch, then boot it" ;;
    fedora) echo "sudo dnf install kernel-modules-$RELEASE kernel-modules-extra-$RELEASE" ;;
    *) echo 'use a kernel that is built with CONFIG_RDMA_RXE' ;;
    esac
}

# What kind of device it is: SoftRoCE names the interface it was put on, and an iWARP device says so.
kind_of() {
    case $(content "$SYS_RDMA/$1/node_type") in
    *RNIC*) echo iwarp ;;
    *) if [ -e "$SYS_RDMA/$1/parent" ]; then echo soft; else echo nic; fi ;;
    esac
}

devices() {
    for path in "$SYS_RDMA"/*; do
        [ ! -e "$path" ] || echo "${path##*/}"
    done
}

netdev_of() {
    content "$SYS_RDMA/$1/parent" || content "$SYS_RDMA/$1/ports/1/gid_attrs/ndevs/0"
}

check_devices() {
    soft='' nic='' iwarp=''
    for device in $(devices); do
        case $(kind_of "$device") in
        soft) soft="$soft $device" ;;
        nic) nic="$nic $device" ;;
        iwarp) iwarp="$iwarp $device" ;;
        esac
    done
    if [ -n "$soft" ]; then
        ok 'SoftRoCE device' "${soft# }"
    else
        fail vms 'SoftRoCE device' 'there is none' 'sudo lab/softroce.sh up'
    fi
    if [ -n "$nic" ]; then
        ok 'RDMA NIC' "${nic# }"
    else
        fail nic 'RDMA NIC' 'there is none, or its driver is not loaded' 'with such a card in the machine: sudo modprobe DRIVER (lspci -k names it)'
    fi
    [ -z "$iwarp" ] || note 'iWARP device' "${iwarp# }: the lessons run on it, but its packets are TCP, not RoCE"
    for device in $soft; do check_device "$device" vms; done
    for device in $nic; do check_device "$device" nic; done
}

check_device() {
    netdev=$(netdev_of "$1")
    check_link "$1" "$2"
    if [ -z "$netdev" ]; then
        fail "$2" "$1 interface" 'no network interface belongs to it' 'sudo rdma link show'
        return
    fi
    check_second_device "$1" "$2"
    check_gid "$1" "$2"
    check_mtu "$1" "$2"
}

check_link() {
    state=$(content "$SYS_RDMA/$1/ports/1/state")
    case $state in
    *ACTIVE*) ok "$1 link" "${state#*: } on ${netdev:-nothing}" ;;
    *) fail "$2" "$1 link" "${state#*: }" "sudo ip link set dev ${netdev:-INTERFACE} up (and is its cable in?)" ;;
    esac
}

# rdma_cm takes one of the devices on an interface: perhaps not the one you mean.
check_second_device() {
    for other in $(devices); do
        if [ "$other" != "$1" ] && [ "$(netdev_of "$other")" = "$netdev" ]; then
            remove=$other
            [ "$(kind_of "$other")" != nic ] || remove=$1
            fail "$2" "$1 interface" "$netdev carries $other, too, and connections may end up there" \
                "sudo rdma link delete $remove"
            return
        fi
    done
    ok "$1 interface" "$netdev, and no other RDMA device is on it"
}

# A GID is made from each address of the interface; RoCE v2 is the kind that travels in UDP packets.
check_gid() {
    port=$SYS_RDMA/$1/ports/1
    if ! cat "$port"/gids/* 2>/dev/null | grep -q -v -e '^fe80:' -e '^[0:]*$'; then
        fail "$2" "$1 GIDs" "$netdev has no IP address" "sudo ip address add ADDRESS/24 dev $netdev"
    elif ! cat "$port"/gid_attrs/types/* 2>/dev/null | grep -q 'RoCE v2'; then
        fail "$2" "$1 GIDs" 'only RoCE v1, which does not travel in UDP' "with SoftRoCE instead: sudo lab/softroce.sh up INTERFACE"
    else
        ok "$1 GIDs" 'RoCE v2, with an IP address'
    fi
}

# The largest RDMA payload that fits: 256 to 4096 bytes in powers of two, after some 80 bytes of headers.
check_mtu() {
    mtu=$(content "$ROOT/sys/class/net/$netdev/mtu")
    path_mtu=4096
    while [ $((path_mtu + 80)) -gt "${mtu:-0}" ]; do path_mtu=$((path_mtu / 2)); done
    smaller="sudo ip link set dev $netdev mtu 1500"
    if [ $path_mtu -lt 256 ]; then
        fail "$2" "$1 MTU" "$netdev's MTU of ${mtu:-0} bytes is too small for RDMA" "$smaller"
    elif [ $path_mtu -lt 1024 ]; then
        note "$1 MTU" "$netdev's MTU of $mtu bytes lets a packet carry only $path_mtu: captures differ from the lessons'" "$smaller"
    elif [ $path_mtu -gt 1024 ]; then
        note "$1 MTU" "$netdev's MTU is $mtu bytes; the other machine and all switches between have to have it, too" "$smaller"
    else
        ok "$1 MTU" "$netdev has $mtu bytes, so a packet carries up to $path_mtu"
    fi
}

# Registered memory is locked memory. Root may lock as much as there is.
check_memlock() {
    limit=$(sed -n 's/^Max locked memory  *\([^ ]*\).*/\1/p' "$ROOT/proc/self/limits")
    if is_root || [ "$limit" = unlimited ] || [ "${limit:-0}" -ge 4194304 ]; then
        ok 'locked memory' "limit: ${limit:-unknown} bytes"
    else
        fail 'vms nic' 'locked memory' "a process may lock only ${limit:-0} bytes; ibv_reg_mr needs more" \
            "echo '* - memlock unlimited' | sudo tee /etc/security/limits.d/rdma.conf, then log in again"
    fi
}

check_permissions() {
    if [ -z "$(devices)" ]; then
        note permissions 'no RDMA device to open'
        return
    fi
    if [ ! -e "$ROOT/dev/infiniband/rdma_cm" ]; then
        fail 'vms nic' permissions '/dev/infiniband/rdma_cm is missing' 'sudo modprobe rdma_ucm'
        return
    fi
    for file in "$ROOT"/dev/infiniband/rdma_cm "$ROOT"/dev/infiniband/uverbs*; do
        if [ ! -r "$file" ] || [ ! -w "$file" ]; then
            fail 'vms nic' permissions "you may not open ${file#"$ROOT"}" "sudo chmod a+rw ${file#"$ROOT"}"
            return
        fi
    done
    ok permissions '/dev/infiniband can be opened'
}

# SoftRoCE's packets go through the kernel's firewall; a NIC's do not.
check_firewall() {
    if grep -qs '^ENABLED=yes' "$ROOT/etc/ufw/ufw.conf"; then
        grep -qs 4791 "$ROOT/etc/ufw/user.rules"
        firewall_verdict $? ufw 'sudo ufw allow 4791/udp'
    elif [ "$(first_line firewall-cmd --state)" = running ]; then
        firewall-cmd --query-port=4791/udp >/dev/null 2>&1
        firewall_verdict $? firewalld 'sudo firewall-cmd --permanent --add-port=4791/udp && sudo firewall-cmd --reload'
    elif ! is_root; then
        note firewall 'only root can see the rules; UDP port 4791 has to be open' 'sudo lab/doctor.sh'
    elif [ -n "$(nft_chain)" ]; then
        nft list ruleset | grep -q 4791
        firewall_verdict $? nftables "sudo nft insert rule $(nft_chain) udp dport 4791 accept"
    elif iptables -S INPUT 2>/dev/null | grep -q -e '^-P INPUT DROP' -e '^-A INPUT -j \(DROP\|REJECT\)'; then
        iptables -S INPUT | grep -q 4791
        firewall_verdict $? iptables 'sudo iptables -I INPUT -p udp --dport 4791 -j ACCEPT'
    else
        ok firewall 'none that drops UDP port 4791'
    fi
}

# Family, table and name of the chain that drops what no rule lets in.
nft_chain() {
    nft list ruleset 2>/dev/null |
        awk '$1 == "table" { table = $2 " " $3 } $1 == "chain" { chain = $2 } /hook input .*policy drop/ { print table, chain; exit }'
}

# firewall_verdict WHETHER-IT-NAMES-THE-PORT NAME CURE
firewall_verdict() {
    if [ "$1" = 0 ]; then
        ok firewall "$2 lets UDP port 4791 in"
    else
        fail vms firewall "$2 drops UDP port 4791, on which RoCE travels" "$3"
    fi
}
