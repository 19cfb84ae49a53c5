# shellcheck shell=sh
# Checks of lab/doctor.sh: the programs that record and show packets.

check_wireshark() {
    for program in tshark wireshark; do
        if has $program; then
            ok Wireshark "$(first_line $program --version)"
            check_profile
            return
        fi
    done
    note Wireshark 'not installed; the lessons run without it' "$(install wireshark wireshark wireshark-qt)"
}

check_profile() {
    config=${WIRESHARK_CONFIG_DIR:-${XDG_CONFIG_HOME:-${HOME-}/.config}/wireshark}
    if [ -d "$ROOT$config/profiles/rdma" ]; then
        ok 'Wireshark profile' "$config/profiles/rdma (choose it: wireshark -C rdma)"
    else
        note 'Wireshark profile' 'not installed: Wireshark takes short RDMA messages for malformed ones' 'make wireshark-profile'
    fi
}

check_capture() {
    for program in dumpcap tcpdump; do
        if has $program; then
            ok 'capture tool' "$program"
            return
        fi
    done
    note 'capture tool' 'neither dumpcap nor tcpdump is installed; make capture-NN needs one (the lab does not)' \
        "$(install tcpdump tcpdump tcpdump)"
}
