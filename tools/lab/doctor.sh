#!/bin/sh
# Checks this machine and prints one line per check: what's fine, or else the cause and the fix.
#
#   tools/lab/doctor.sh      (or: make doctor)
#
# There are four ways to run the lessons, and a check says which of them it stops:
#   lab    on this machine alone, in two emulated machines
#   device on this machine alone, as two processes on a NIC in user space (docs/device.md)
#   vms    on two machines with SoftRoCE, of which this is one
#   nic    on two machines with RDMA NICs, of which this is one
#
# It changes nothing, and it needs neither root nor cargo nor RDMA. Exit status: 0 if at least one way is ready, 1 if none is.
set -u
cd "$(dirname "$0")/../.." || exit
# shellcheck source=tools/lab/needs.sh
. tools/lab/needs.sh
SYS=$ROOT/sys/class/infiniband

# check WAYS NAME FOUND CAUSE [FIX]: fine if FOUND isn't empty; otherwise it stops these ways. Without WAYS it's only a note.
stopped=''
check() {
    if [ -n "$3" ]; then printf '  %-5s %-23s %s\n' OK "$2" "$3"; return; fi
    if [ -n "$1" ]; then printf '  %-5s %-23s %s\n' FAIL "$2" "$4 (stops: $1)"; else printf '  %-5s %-23s %s\n' note "$2" "$4"; fi
    [ -z "${5-}" ] || printf '%32sfix: %s\n' '' "$5"
    stopped="$stopped $1"
}
content() { cat "$1" 2>/dev/null; }

# needs STAGE WAYS: a line for each of the stage's rows. Set-up gets everything except what the machine itself must have.
needs() {
    case $1 in own | device) unpacks=false ;; *) unpacks=true ;; esac
    while IFS='|' read -r what checks debian fedora arch; do
        # shellcheck source=/dev/null
        if found_here "$checks"; then check '' "$what" installed
        elif $unpacks && ([ ! -e "$TOOLS/env" ] || . "$TOOLS/env"; found "$checks"); then check '' "$what" 'in target/'
        elif $unpacks && has apt-get; then check '' "$what" '' 'not installed; make gets it and unpacks it in target/'
        else check "$2" "$what" '' "not found: $checks" "$(to_install "$debian" "$fedora" "$arch")"; fi
    done <<END
$(rows "$1")
END
}

# /dev/kvm may be there and still not work, so the lab tries it and keeps the answer until the next boot.
check_kvm() {
    works='' why='/dev/kvm is there, but has not been tried yet' fix='make lesson-04 tries it'
    case $(content "$TARGET/lab/kvm") in
    "true "*"$(content "$ROOT/proc/sys/kernel/random/boot_id")") works='a machine has run on it' ;;
    "false "*"$(content "$ROOT/proc/sys/kernel/random/boot_id")") why='no machine could run on it' fix='' ;;
    esac
    if [ ! -e "$ROOT/dev/kvm" ]; then works='' why='no /dev/kvm' fix='sudo modprobe kvm_intel (or kvm_amd)'
    elif [ ! -r "$ROOT/dev/kvm" ] || [ ! -w "$ROOT/dev/kvm" ]; then works='' why='you have no right to open /dev/kvm' fix="sudo usermod -aG kvm $(id -un), then log in again"; fi
    check '' KVM "$works" "$why; the lab emulates instead, which is slower but gives the same results" "$fix"
}

check_module() {
    modules=$ROOT/lib/modules/$release found=''
    if [ -e "$ROOT/sys/module/rdma_rxe" ]; then found='rdma_rxe is loaded'
    elif grep -qs '/rdma_rxe\.ko' "$modules/modules.dep" "$modules/modules.builtin"; then found="the kernel $release has rdma_rxe"; fi
    # Debian's cloud kernel lacks the module, so you need another kernel there.
    if grep -qs ubuntu "$ROOT/etc/os-release"; then extra=linux-modules-extra-$release; else extra="linux-image-$deb_arch, then boot it"; fi
    check vms 'SoftRoCE module' "$found" "this kernel ($release) has no rdma_rxe" \
        "$(to_install "$extra" "kernel-modules-extra-$release" linux)"
}

# devices KIND: the names of the devices of this kind. A SoftRoCE device names the interface it was put on.
devices() {
    for path in "$SYS"/*; do
        if [ -e "$path/parent" ]; then kind=soft; else kind=nic; fi
        if [ -e "$path" ] && [ "$1" = $kind ]; then echo "${path##*/}"; fi
    done | paste -s -d ' ' -
}
netdev_of() { content "$SYS/$1/parent" || content "$SYS/$1/ports/1/gid_attrs/ndevs/0"; }

# check_device WAY NAME
check_device() {
    port=$SYS/$2/ports/1 netdev=$(netdev_of "$2") state=$(content "$SYS/$2/ports/1/state")
    check "$1" "$2 link" "$(case $state in *ACTIVE) echo "ACTIVE on $netdev" ;; esac)" "${state#*: }" \
        "sudo ip link set dev ${netdev:-INTERFACE} up; and check its cable"
    # A GID is made from each address of the interface; RoCE v2 is the kind that travels in UDP packets.
    check "$1" "$2 address" "$(grep -qs 'RoCE v2' "$port"/gid_attrs/types/* && cat "$port"/gids/* | grep -m 1 -v -e '^fe80:' -e '^[0:]*$')" \
        "$netdev has no IP address for RoCE v2" "sudo ip address add ADDRESS/24 dev ${netdev:-INTERFACE}"
}

# Registered memory is locked memory. Root may lock as much as there is.
check_memory() {
    limit=$(sed -n 's/^Max locked memory  *\([^ ]*\).*/\1/p' "$ROOT/proc/self/limits") enough=''
    if [ "$(id -u)" = 0 ] || [ "$limit" = unlimited ] || [ "${limit:-0}" -ge 4194304 ]; then enough="limit: ${limit:-unknown}"; fi
    check 'vms nic' 'locked memory' "$enough" "a process may lock only ${limit:-0} bytes, and ibv_reg_mr needs more" \
        "echo '* - memlock unlimited' | sudo tee /etc/security/limits.d/rdma.conf, then log in again"
}

check_permissions() {
    closed=''
    for file in "$ROOT"/dev/infiniband/rdma_cm "$ROOT"/dev/infiniband/uverbs*; do
        if [ ! -r "$file" ] || [ ! -w "$file" ]; then closed=${file#"$ROOT"}; fi
    done
    if [ -e "$ROOT$closed" ]; then fix="sudo chmod a+rw $closed"; else fix='sudo modprobe rdma_ucm'; fi
    check 'vms nic' permissions "$([ -n "$closed" ] || echo 'you can open /dev/infiniband')" "you have no right to open $closed" "$fix"
}

# SoftRoCE's packets go through the kernel's firewall, whose rules only root can see. A NIC's packets don't.
check_firewall() {
    on='' fix=''
    if grep -qs '^ENABLED=yes' "$ROOT/etc/ufw/ufw.conf"; then on=ufw fix='sudo ufw allow 4791/udp'; fi
    if [ "$(firewall-cmd --state 2>/dev/null)" = running ]; then on=firewalld fix='sudo firewall-cmd --add-port=4791/udp'; fi
    check '' firewall "$([ -n "$on" ] || echo 'neither ufw nor firewalld is on')" "$on is on, and drops RoCE packets unless UDP port 4791 is open" "$fix"
}

# The NIC in user space needs a UDP port of loopback, and the kernel's driver takes that port on all addresses.
check_port() {
    taken=$(cat "$ROOT/proc/net/udp" "$ROOT/proc/net/udp6" 2>/dev/null | grep -E ' 0{8}(0{24})?:12B7 ')
    check device 'UDP port 4791' "$([ -n "$taken" ] || echo 'free on loopback')" 'rdma_rxe or a program has taken it on all addresses' \
        "sudo rmmod rdma_rxe, or before make: unshare -rn sh -c 'ip link set lo up; exec sh'"
}

# The device's supervisor answers system calls of its programs (since Linux 5.9), and reads and writes their memory.
check_supervisor() {
    old='' major=${release%%.*} minor=${release#*.} minor=${minor%%[!0-9]*}
    if [ "$major" -lt 5 ] || { [ "$major" = 5 ] && [ "${minor:-0}" -lt 9 ]; }; then old=yes; fi
    check device 'system calls' "$([ -n "$old" ] || echo "the kernel $release can hand them on")" "the kernel $release cannot hand them on" 'boot Linux 5.9 or later'
    scope=$(content "$ROOT/proc/sys/kernel/yama/ptrace_scope")
    check device "programs' memory" "$([ "${scope:-0}" -gt 1 ] || echo 'the device can reach it')" "kernel.yama.ptrace_scope is $scope, so the device cannot reach it" 'sudo sysctl kernel.yama.ptrace_scope=1'
}

echo "What this machine has for the lessons, and what it lacks ($machine, kernel $release)"
# A machine that got the lessons as built programs needs a compiler only for the lab.
if any "$TARGET"/debug/lesson-[0-9]*; then builds='lab device'; else builds='lab device vms nic'; fi
printf '\nTo build:\n'
needs own "$builds"
needs build "$builds"
printf '\nFor the lab, on this machine alone:\n'
needs lab lab
check_kvm
printf '\nFor a NIC in user space (on=device):\n'
check_port
check_supervisor
printf '\nFor RDMA on this machine itself:\n'
needs device 'vms nic'
check_module
soft=$(devices soft) nic=$(devices nic)
check vms 'SoftRoCE device' "$soft" 'this machine has none' 'sudo tools/lab/softroce.sh up'
check nic 'RDMA NIC' "$nic" 'this machine has none, or its driver is not loaded' \
    'if the machine has such a card: sudo modprobe DRIVER (lspci -k names it)'
for device in $soft; do check_device vms "$device"; done
for device in $nic; do check_device nic "$device"; done
check_memory
[ -z "$soft$nic" ] || check_permissions
check_firewall
printf '\nReady to run:\n'
ready=no
# way NAME TITLE COMMAND
way() { case " $stopped " in *" $1 "*) echo "  no  $1, $2" ;; *) printf '  yes %-49s %s\n' "$1, $2" "$3" && ready=yes ;; esac; }
way lab 'two emulated machines in this one' 'make lesson-04'
way device 'two processes on a NIC in user space' 'make lesson-04 on=device'
way vms 'this machine as one of two with SoftRoCE' 'make server-01, or: make client-01 HOST=ADDRESS'
way nic 'this machine as one of two with RDMA NICs' 'make server-01, or: make client-01 HOST=ADDRESS'
[ $ready = yes ]
