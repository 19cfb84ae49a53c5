#!/bin/sh
# Records the RoCE packets (UDP port 4791) of this machine until you press Ctrl-C.
#
#   capture.sh NN [NETDEV]     record lesson NN to target/captures/NN.pcapng (or .pcap, if tcpdump records)
#
# Without NETDEV it takes the interface of the RDMA device, or else that of the default route. It needs dumpcap or
# tcpdump, and the right to record: root, sudo, or dumpcap set up for your user.
# Exit status: 0 packets were recorded, 1 none came or it can't record (it says why), 2 wrong usage.

PATH=$PATH:/usr/sbin:/sbin
# The second half finds packets in a VLAN, whose headers are four bytes further on.
FILTER='udp port 4791 or (vlan and udp port 4791)'

fail() {
    echo "capture: $*" >&2
    exit 1
}

has() { command -v "$1" >/dev/null; }

choose_netdev() {
    if [ -z "$NETDEV" ] && has rdma; then
        NETDEV=$(rdma link show | sed -n 's/.* netdev \([^ ]*\) *$/\1/p' | head -n 1)
    fi
    if [ -z "$NETDEV" ]; then
        NETDEV=$(ip -o route show default | sed -n 's/.* dev \([^ ]*\).*/\1/p' | head -n 1)
        [ -n "$NETDEV" ] || fail "there is no RDMA device and no default route, so I can't choose an interface. Name one; \`ip link\` lists them"
        echo "No RDMA device here (\`sudo tools/lab/softroce.sh up\` makes one), so this records on the interface of the default route."
    fi
}

# Both write to standard output, so that the file belongs to you even if root records. Neither cuts frames short.
choose_recorder() {
    if has dumpcap; then
        FILE=$FOLDER/$LESSON.pcapng
        set -- dumpcap -q -s 0 -i "$NETDEV" -f "$FILTER" -w -
    elif has tcpdump; then
        FILE=$FOLDER/$LESSON.pcap
        set -- tcpdump -s 0 -U -i "$NETDEV" -w - "$FILTER"
    else
        fail "neither dumpcap nor tcpdump is installed. Debian, Ubuntu: sudo apt-get install tcpdump"
    fi
    if ! may_record; then
        has sudo || fail "recording needs root: run \`make capture-$LESSON\` as root"
        set -- sudo "$@"
    fi
    record "$@"
}

# dumpcap lists an interface's kinds of frames only for users who may record there.
may_record() {
    [ "$(id -u)" = 0 ] || { has dumpcap && dumpcap -L -i "$NETDEV" >/dev/null 2>&1; }
}

# The terminal sends Ctrl-C to both: the recorder ends in order, and this script goes on to sum up.
record() {
    mkdir -p "$FOLDER" || fail "cannot create $FOLDER"
    echo "Recording $NETDEV to $FILE. Start the server and the client of lesson $LESSON now; Ctrl-C ends the recording."
    echo "(You won't see what a machine sends to its own address, because SoftRoCE hands that over inside the machine.)"
    echo "+ $* >$FILE"
    # We don't ignore the signal, because the recorder would then ignore it as well.
    trap : INT
    "$@" >"$FILE"
    status=$?
    trap - INT
}

count() {
    if [ "${FILE##*.}" = pcapng ]; then
        capinfos -rTc "$FILE" 2>/dev/null | cut -f 2
    else
        tcpdump -r "$FILE" 2>/dev/null | wc -l
    fi
}

sum_up() {
    packets=$(count)
    echo
    if [ "${packets:-0}" -gt 0 ]; then
        echo "$packets packets in $FILE. Next:"
        echo "  cargo run -q -p wire -- show $FILE"
        echo "  wireshark $FILE"
        return
    fi
    rm -f "$FILE"
    [ $status = 0 ] || fail "the recorder failed. Its own message is above"
    fail "no RoCE packet crossed $NETDEV. Was this running before the client started? Do server and client run on two machines?
  Is $NETDEV the interface between them? \`rdma link\` names the interface of the RDMA device, and tools/lab/doctor.sh checks that device."
}

if [ $# -lt 1 ] || [ $# -gt 2 ]; then
    echo "usage: capture.sh NN [NETDEV]" >&2
    exit 2
fi
LESSON=$1
NETDEV=${2-}
FOLDER=${CARGO_TARGET_DIR:-target}/captures
choose_netdev
choose_recorder
sum_up
