#!/bin/sh
# SoftRoCE on this machine: an RDMA device ("rxe0") in software, on top of an ordinary network interface.
#
#   softroce.sh up [NETDEV]       create the device (default: the interface of the default route)
#   softroce.sh down [NETDEV]     remove it
#   softroce.sh status [NETDEV]   show it
#
# The lab's machines run the same script. It prints each command that changes something before it runs it.
# You can run it twice without harm. Exit status: 0 done, 1 it can't be done (it says why), 2 wrong usage.

# An ordinary user's PATH may lack the system's commands.
PATH=$PATH:/usr/sbin:/sbin
LINK=rxe0

fail() {
    echo "softroce: $*" >&2
    exit 1
}

usage() {
    echo "usage: softroce.sh up|down|status [NETDEV]" >&2
    exit 2
}

# Prints a command, then runs it; ends the script if it fails.
run() {
    echo "+ $*"
    "$@" || fail "this command failed: $*. Its own message is above"
}

need_root() {
    [ "$(id -u)" = 0 ] || fail "this needs root: run \`sudo $0 $ACTION $NETDEV\`"
}

need_tools() {
    for tool in ip rdma modprobe; do
        command -v "$tool" >/dev/null ||
            fail "the program \`$tool\` is missing. Debian, Ubuntu: apt install iproute2 kmod. Fedora: dnf install iproute kmod"
    done
}

# The interface to use: the argument, or else that of the default route.
choose_netdev() {
    if [ -z "$NETDEV" ]; then
        NETDEV=$(ip -o route show default | sed -n 's/.* dev \([^ ]*\).*/\1/p' | head -n 1)
        [ -n "$NETDEV" ] || fail "there is no default route, so I can't choose an interface. Name one of: $(netdevs)"
    fi
    [ -e "/sys/class/net/$NETDEV" ] || fail "there is no network interface $NETDEV. This machine has: $(netdevs)"
}

netdevs() {
    for path in /sys/class/net/*; do
        name=${path##*/}
        [ "$name" = lo ] || printf '%s ' "$name"
    done
}

# Name of the RDMA device on top of $NETDEV, if there is one. A line of `rdma link`:
# link rxe0/1 state ACTIVE physical_state LINK_UP netdev eth0
rdma_device() {
    rdma link show | sed -n "s|^link \([^/]*\)/.* netdev $NETDEV *\$|\1|p" | head -n 1
}

load_modules() {
    # rxe asks the kernel for "crc32" by name, so nothing else loads this module. Newer kernels have it built in.
    echo "+ modprobe crc32_generic"
    modprobe crc32_generic 2>/dev/null || echo "  (this kernel has it built in, not as a module)"
    echo "+ modprobe rdma_rxe"
    modprobe rdma_rxe || no_rxe
    run modprobe rdma_ucm
}

no_rxe() {
    release=$(uname -r)
    fail "this kernel ($release) has no module rdma_rxe.
  Ubuntu: apt install linux-modules-extra-$release
  Debian: apt install linux-image-$(dpkg --print-architecture 2>/dev/null || echo amd64), then boot it (the cloud kernel lacks rdma_rxe)
  Fedora: dnf install kernel-modules-$release kernel-modules-extra-$release"
}

up() {
    need_root
    need_tools
    choose_netdev
    load_modules
    device=$(rdma_device)
    case $device in
    "") run rdma link add "$LINK" type rxe netdev "$NETDEV" ;;
    rxe*) echo "$device is on $NETDEV already" ;;
    *) fail "$NETDEV already carries the RDMA device $device, so connections could end up on either of the two.
  Use $device as it is, or unload its driver first" ;;
    esac
    rdma link show
    # shellcheck disable=SC3045 # not in POSIX, but in dash, bash and busybox
    limit=$(ulimit -l)
    [ "$limit" = unlimited ] ||
        echo "Note: a process may lock only $limit KiB of memory here. Before you run a lesson: ulimit -l unlimited"
}

down() {
    need_root
    need_tools
    choose_netdev
    device=$(rdma_device)
    case $device in
    "") echo "no RDMA device on $NETDEV" ;;
    rxe*) run rdma link delete "$device" ;;
    *) fail "$device on $NETDEV is not SoftRoCE, so I leave it there" ;;
    esac
}

status() {
    need_tools
    choose_netdev
    device=$(rdma_device)
    [ -n "$device" ] || fail "there is no RDMA device on $NETDEV. Create one: sudo $0 up $NETDEV"
    rdma link show
}

if [ $# -lt 1 ] || [ $# -gt 2 ]; then
    usage
fi
ACTION=$1
NETDEV=${2-}
case $ACTION in
up | down | status) "$ACTION" ;;
*) usage ;;
esac
