#!/bin/sh
# Uses a disk of another machine over RDMA, as nvme_target.sh serves it: connects, writes, reads the same blocks back, and disconnects.
# It runs as root on a machine of the lab, or on a real one, after `modprobe nvme-rdma`. Where there's nvme-cli, `nvme connect` connects as
# well, and does it by writing such a line to /dev/nvme-fabrics.
#
#   nvme_host.sh ADDRESS [BLOCKS]     also tries that many random blocks
set -eu
address=$1 blocks=${2:-0} work=/tmp/nvme
fail() {
    echo "FAILED: $*"
    dmesg | grep -i 'nvme[0-9]' | tail -n 4
    [ -z "${controller:-}" ] || echo "It's still connected. To disconnect: echo 1 >/sys/class/nvme/$controller/delete_controller"
    exit 1
}
trap 'rm -f "$work".*; echo "the host has ended"' EXIT
# write FILE BYTES NUMBER: to piece NUMBER of the disk, in pieces of BYTES. read_back FILE BYTES NUMBER [COUNT] reads such pieces. Both go past
# this machine's cache, so that each piece is one command on the wire.
write() { dd if="$1" of="$disk" bs="$2" seek="$3" count=1 oflag=direct conv=notrunc 2>"$work.dd" || fail "$(cat "$work.dd")"; }
read_back() { dd if="$disk" of="$1" bs="$2" skip="$3" count="${4:-1}" iflag=direct 2>"$work.dd" || fail "$(cat "$work.dd")"; }

# The last two settings say what happens to somebody who waits for a block when the network is gone: the kernel tries to connect again, with
# a pause of a second after each try, and gives up after 20 / 1 tries. Each of them may take several seconds to fail.
exec 3<>/dev/nvme-fabrics
echo "transport=rdma,traddr=$address,trsvcid=4420,nqn=nqn.2026-11.lab:disk,\
hostnqn=nqn.2014-08.org.nvmexpress:uuid:00000000-0000-4000-8000-00000a2f5b02,hostid=00000000-0000-4000-8000-00000a2f5b02,\
keep_alive_tmo=4,reconnect_delay=1,ctrl_loss_tmo=20" >&3 || fail 'cannot connect; dmesg says why'
read -r answer <&3
exec 3>&-
echo "connected: $answer"
controller=nvme$(echo "$answer" | sed 's/instance=\([0-9]*\).*/\1/') disk=
tries=100
until [ -b "$disk" ]; do
    [ $((tries -= 1)) -gt 0 ] || fail "$controller has shown no disk for 10 s"
    sleep 0.1
    disk=/dev/$(basename "$(echo /sys/class/nvme/"$controller"/nvme*n1)" | sed 's/c[0-9]*n/n/')
done
sectors=$(cat "/sys/block/$(basename "$disk")/size")
echo "disk: $disk, $sectors blocks of 512 bytes"

echo 'A disk at the other end.' | dd of="$work.1" bs=512 conv=sync 2>/dev/null
write "$work.1" 512 100
echo 'written: block 100'
head -c 2048 /dev/urandom >"$work.4"
write "$work.4" 2048 50
echo 'written: blocks 200 to 203'
read_back "$work.back" 512 100
cmp "$work.1" "$work.back" || fail 'block 100 is not what was written'
echo "read: block 100, $(head -n 1 "$work.back")"
read_back "$work.back" 2048 50
cmp "$work.4" "$work.back" || fail 'blocks 200 to 203 are not what was written'
echo 'read: blocks 200 to 203, as written'

# A copy of the disk goes through the same changes, and in the end both must be the same.
if [ "$blocks" -gt 0 ]; then
    pieces=$((sectors / 64))
    read_back "$work.copy" 32768 0 "$pieces"
    head -c $((blocks * 512)) /dev/urandom >"$work.random"
    number=0
    # The places are random numbers as well.
    for place in $(od -An -v -tu4 -N $((blocks * 4)) /dev/urandom); do
        place=$((place % sectors))
        dd if="$work.random" of="$work.block" bs=512 skip=$number count=1 2>/dev/null
        dd if="$work.block" of="$work.copy" bs=512 seek=$place conv=notrunc 2>/dev/null
        write "$work.block" 512 $place
        read_back "$work.back" 512 $place
        cmp "$work.block" "$work.back" || fail "block $place is not what was written"
        number=$((number + 1))
    done
    read_back "$work.back" 32768 0 "$pieces"
    cmp "$work.copy" "$work.back" || fail 'the disk is not what was written'
    echo "$number random blocks written and read back, and the whole disk is as it should be"
fi

# Nothing to do for three seconds, so that the keep-alive is on the wire as well.
sleep 3
echo 1 >"/sys/class/nvme/$controller/delete_controller"
