#!/bin/sh
# Lets other machines use a disk over RDMA until Ctrl-C: the serving end of NVMe over Fabrics, which Linux calls the target. It runs as root
# on a machine of the lab, or on a real one, after `modprobe nvmet-rdma`. The kernel takes its settings from configfs, where each thing
# that it knows is a folder and each setting a file.
#
#   nvme_target.sh DISK ADDRESS     such as /dev/ram0, a disk in memory, which `modprobe brd` makes
set -eu
disk=$1 address=$2 nqn=nqn.2026-11.lab:disk
subsystem=/sys/kernel/config/nvmet/subsystems/$nqn port=/sys/kernel/config/nvmet/ports/4420

[ -e /sys/kernel/config/nvmet ] || mount -t configfs none /sys/kernel/config
undo() {
    rm -f "$port/subsystems/$nqn"
    rmdir "$port" "$subsystem/namespaces/1" "$subsystem" 2>/dev/null || true
}
trap undo EXIT
trap 'undo; echo stopped; trap - EXIT; exit 0' INT TERM

# A subsystem is what a host connects to, and a namespace is a disk in it.
mkdir "$subsystem" "$subsystem/namespaces/1"
echo 1 >"$subsystem/attr_allow_any_host"
echo "$disk" >"$subsystem/namespaces/1/device_path"
echo 1 >"$subsystem/namespaces/1/enable"
# A port is where we listen. NVMe's own number is 4420, as the web's is 80.
mkdir "$port"
echo rdma >"$port/addr_trtype"
echo ipv4 >"$port/addr_adrfam"
echo "$address" >"$port/addr_traddr"
echo 4420 >"$port/addr_trsvcid"
# Up to two blocks may come together with the command that writes them. Linux would take 16 KiB. With less, a short recording shows both ways.
echo 1024 >"$port/param_inline_data_size"
ln -s "$subsystem" "$port/subsystems/$nqn"
echo "serving $disk as $nqn, at $address port 4420"

while :; do
    sleep 1 &
    wait $!
done
