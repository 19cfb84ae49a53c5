#!/bin/sh
# Looks at this machine and says, one line per check, what is fine, or else the cause and the cure.
#
#   lab/doctor.sh      (or: make doctor)
#
# There are three ways to run the lessons, and a check says which of them it stops:
#   lab    on this machine alone, in two emulated machines
#   vms    on two machines with SoftRoCE, of which this is one
#   nic    on two machines with RDMA NICs, of which this is one
#
# It changes nothing, and needs neither root, cargo nor RDMA. Exit status: 0 at least one way is ready, 1 none is.
set -u
cd "$(dirname "$0")/.." || exit
# shellcheck source=lab/needs.sh
. lab/needs.sh
# shellcheck source=lab/doctor/rdma.sh
. lab/doctor/rdma.sh

# ---- One line of the table ----

line() { printf '  %-5s %-23s %s\n' "$@"; }
ok() { line OK "$@"; }

# fail WAYS NAME CAUSE [CURE]: what stops these ways. With none it is a note, and in nobody's way.
fail() {
    if [ -n "$1" ]; then line FAIL "$2" "$3 (stops: $1)"; else line note "$2" "$3"; fi
    [ $# -lt 4 ] || line '' '' "cure: $4"
    for way in $1; do eval "stops_$way=\"\${stops_$way-}, \$2\""; done
}
note() { fail '' "$@"; }
# check WAYS NAME FOUND CAUSE CURE: fine if something is found.
check() { if [ -n "$3" ]; then ok "$2" "$3"; else fail "$1" "$2" "$4" "$5"; fi; }

# ---- Small questions ----

first_line() { "$@" 2>/dev/null | head -n 1; }
content() { cat "$1" 2>/dev/null; }
is_root() { [ "$(id -u)" = 0 ]; }

# install DEBIAN FEDORA ARCH: the command that brings a package here.
install() {
    if has apt-get; then echo "sudo apt-get install $1"
    elif has dnf; then echo "sudo dnf install $2"
    elif has pacman; then echo "sudo pacman -S $3"
    else echo "install the package ${1#@} (Debian, Ubuntu), $2 (Fedora) or $3 (Arch)"; fi
}

# ---- What lab/needs.txt names ----

# needs STAGE WAYS: a line for each of the stage's rows. Set-up gets all but what has to be the machine's own.
needs() {
    case $1 in own | device | look) unpacks=false ;; *) unpacks=true ;; esac
    while IFS='|' read -r what checks debian fedora arch; do
        # shellcheck source=/dev/null
        if found_here "$checks"; then
            ok "$what" "$(detail "$checks")"
        elif $unpacks && (. "$TOOLS/env" && found "$checks") 2>/dev/null; then
            ok "$what" 'unpacked below target/'
        elif $unpacks && has apt-get; then
            note "$what" 'not installed; make gets it, and unpacks it below target/'
        else
            fail "$2" "$what" "not found: $checks" "$(install "$debian" "$fedora" "$arch")"
        fi
    done <<END
$(rows "$1")
END
}

# What a row found.
detail() {
    case $1 in
    cargo) cargo_version ;;
    cc* | qemu* | wireshark) first_line "${1%% *}" --version ;;
    lib:*) library "${1##*lib:}" ;;
    kernel) if own_kernel; then echo "this machine's own, $release"; else echo 'unpacked below target/'; fi ;;
    *) echo "${1#*:}" ;;
    esac
}

# A machine to which the lessons were copied built needs no compiler, except for the lab.
ways_that_build() { if any "$TARGET"/debug/lesson-[0-9]*; then echo lab; else echo 'lab vms nic'; fi; }

# /dev/kvm may be there and work for nobody, so the lab tries it and writes the answer down until the next boot.
check_kvm() {
    emulates='the lab emulates (slower, still right)'
    boot=$(content "$ROOT/proc/sys/kernel/random/boot_id")
    if [ ! -e "$ROOT/dev/kvm" ]; then
        note KVM "no /dev/kvm; $emulates" 'if /proc/cpuinfo says vmx: sudo modprobe kvm_intel; if svm: sudo modprobe kvm_amd'
    elif [ ! -r "$ROOT/dev/kvm" ] || [ ! -w "$ROOT/dev/kvm" ]; then
        note KVM "you may not use /dev/kvm; $emulates" "sudo usermod -aG kvm $(id -un), then log in again"
    else
        case $(content "$TARGET/lab/kvm") in
        "true "*"$boot") ok KVM 'a machine really runs on it' ;;
        "false "*"$boot") note KVM "/dev/kvm is there, but no machine runs on it; $emulates" ;;
        *) note KVM '/dev/kvm is there; not tried yet' 'make lesson-01 tries it' ;;
        esac
    fi
}

check_profile() {
    profile=${WIRESHARK_CONFIG_DIR:-${XDG_CONFIG_HOME:-${HOME-}/.config}/wireshark}/profiles/rdma
    check '' 'Wireshark profile' "$([ ! -d "$ROOT$profile" ] || echo "$profile (choose it: wireshark -C rdma)")" \
        'not installed: Wireshark takes short RDMA messages for malformed ones' 'make wireshark-profile'
}

# ---- The three ways ----

# way NAME TITLE COMMAND
way() {
    stops=''
    eval "stops=\${stops_$1-}"
    if [ -n "$stops" ]; then
        printf '  %-3s %s, %-42s %s\n' no "$1" "$2" "see: ${stops#, }"
    else
        printf '  %-3s %s, %-42s %s\n' yes "$1" "$2" "$3"
        ready=yes
    fi
}

echo "What this machine has for the lessons, and what it lacks ($machine, kernel $release)"
printf '\n%s\n' 'To build:'
needs own "$(ways_that_build)"
needs build "$(ways_that_build)"
printf '\n%s\n' 'For the lab, on this machine alone:'
needs lab lab
check_kvm
printf '\n%s\n' 'For RDMA on this machine itself:'
needs device 'vms nic'
check_rdma
printf '\n%s\n' 'To look at packets:'
needs look ''
check_profile

ready=no
printf '\n%s\n' 'Ready to run:'
way lab 'two emulated machines in this one' 'make lesson-01'
way vms 'this machine as one of two with SoftRoCE' 'make server-01, or: make client-01 HOST=ADDRESS'
way nic 'this machine as one of two with RDMA NICs' 'make server-01, or: make client-01 HOST=ADDRESS'
[ $ready = yes ]
