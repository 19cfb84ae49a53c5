#!/bin/sh
# SoftRoCE on this machine: an RDMA device ("rxe0") in software, on top of an ordinary network interface. Or SoftiWARP ("siw0"),
# which is the same inside TCP.
#
#   softroce.sh up [--siw] [NETDEV]       create the device (default: the interface of the default route)
#   softroce.sh down [--siw] [NETDEV]     remove it
#   softroce.sh status [--siw] [NETDEV]   show it
#
# The lab's machines run the same script. It prints each command that changes something before it runs it.
# You can run it twice without harm. Exit status: 0 done, 1 it can't be done (it says why), 2 wrong usage.

# An ordinary user's PATH may lack the system's commands.
PATH=$PATH:/usr/sbin:/sbin
TYPE=rxe MODULE=rdma_rxe CHECKSUM=crc32_generic TITLE=SoftRoCE OPTION=

fail() {
    echo "softroce: $*" >&2
    exit 1
}

usage() {
    echo "usage: softroce.sh up|down|status [--siw] [NETDEV]" >&2
    exit 2
}

# Prints a command, then runs it; ends the script if it fails.
run() {
    echo "+ $*"
    "$@" || fail "this command failed: $*. Its own message is above"
}

need_root() {
    [ "$(id -u)" = 0 ] || fail "this needs root: run \`sudo $0 $ACTION $OPTION$NETDEV\`"
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
    # The driver asks the kernel for its checksum by name, so nothing else loads this module. Newer kernels have it built in.
    echo "+ modprobe $CHECKSUM"
    modprobe "$CHECKSUM" 2>/dev/null || echo "  (this kernel has it built in, not as a module)"
    echo "+ modprobe $MODULE"
    modprobe "$MODULE" || no_module
    run modprobe rdma_ucm
}

no_module() {
    release=$(uname -r)
    if [ $TYPE = siw ]; then
        fail "this kernel ($release) has no module siw.
  Ubuntu: apt install linux-modules-extra-$release
  Debian, Fedora: their kernels are built without it, so try it in the lab: make lesson-05 on=siw"
    fi
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
    "") run rdma link add "${TYPE}0" type $TYPE netdev "$NETDEV" ;;
    $TYPE*) echo "$device is on $NETDEV already" ;;
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
    $TYPE*) run rdma link delete "$device" ;;
    *) fail "$device on $NETDEV is not $TITLE, so I leave it there" ;;
    esac
}

status() {
    need_tools
    choose_netdev
    device=$(rdma_device)
    [ -n "$device" ] || fail "there is no RDMA device on $NETDEV. Create one: sudo $0 up $OPTION$NETDEV"
    rdma link show
}

ACTION=${1-}
case ${2-} in
--siw)
    TYPE=siw MODULE=siw CHECKSUM=crc32c_generic TITLE=SoftiWARP OPTION='--siw '
    shift
    ;;
--rxe) shift ;;
esac
if [ $# -lt 1 ] || [ $# -gt 2 ]; then
    usage
fi
NETDEV=${2-}
case $ACTION in
up | down | status) "$ACTION" ;;
*) usage ;;
esac
