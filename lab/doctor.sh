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
#
# Files are read below DOCTOR_ROOT and programs are found through PATH, so that a test can invent a machine.
set -u
ROOT=${DOCTOR_ROOT-}
PATH=$PATH:${HOME-}/.cargo/bin:$ROOT/usr/sbin:$ROOT/sbin
HERE=$(cd "$(dirname "$0")" && pwd)
# The repository on the machine that is looked at.
REPO=${HERE#"$ROOT"} REPO=${REPO%/lab}
TARGET=$ROOT${CARGO_TARGET_DIR:-$REPO/target}
NEEDS=$HERE/needs.txt TOOLS=$TARGET/tools
MINOR=$(sed -n 's/^rust-version = "1\.\([0-9]*\).*/\1/p' "$ROOT$REPO/Cargo.toml")
RELEASE=$(uname -r)
# The names of the checks that stop each way.
STOPS_LAB='' STOPS_VMS='' STOPS_NIC=''

# ---- One line of the table ----

ok() { line OK "$1" "$2"; }

# note NAME TEXT [CURE]: worth knowing, and in nobody's way.
note() {
    line note "$1" "$2"
    [ $# -lt 3 ] || cure "$3"
}

# fail WAYS NAME CAUSE CURE
fail() {
    line FAIL "$2" "$3 (stops: $1)"
    cure "$4"
    for way in $1; do
        case $way in
        lab) STOPS_LAB="$STOPS_LAB, $2" ;;
        vms) STOPS_VMS="$STOPS_VMS, $2" ;;
        nic) STOPS_NIC="$STOPS_NIC, $2" ;;
        esac
    done
}

line() { printf '  %-5s %-23s %s\n' "$1" "$2" "$3"; }
cure() { printf '  %-5s %-23s cure: %s\n' '' '' "$1"; }
group() { printf '\n%s\n' "$1"; }

# ---- Small questions ----

first_line() { "$@" 2>/dev/null | head -n 1; }
content() { cat "$1" 2>/dev/null; }
is_root() { [ "$(id -u)" = 0 ]; }

distribution() {
    # shellcheck source=/dev/null
    id=$(. "$ROOT/etc/os-release" 2>/dev/null && echo "${ID-} ${ID_LIKE-}")
    case " $id " in
    *' ubuntu '*) echo ubuntu ;;
    *' debian '*) echo debian ;;
    *' fedora '* | *' rhel '*) echo fedora ;;
    *' arch '*) echo arch ;;
    esac
}

# install DEBIAN FEDORA ARCH: the command that brings a package here.
install() {
    case $(distribution) in
    ubuntu | debian) echo "sudo apt-get install $1" ;;
    fedora) echo "sudo dnf install $2" ;;
    arch) echo "sudo pacman -S $3" ;;
    *) echo "install the package ${1#@} (Debian, Ubuntu), $2 (Fedora) or $3 (Arch)" ;;
    esac
}

# ---- What lab/needs.txt names ----

# needs STAGE WAYS: a line for each of the stage's rows. Where there is apt, set-up gets what can be unpacked.
needs() {
    while IFS='|' read -r what checks debian fedora arch; do
        # shellcheck source=/dev/null
        if found_here "$checks"; then
            ok "$what" "$(detail "$checks")"
        elif [ "$1" != device ] && (. "$TOOLS/env" && found "$checks") 2>/dev/null; then
            ok "$what" 'unpacked below target/'
        elif [ "$1" != own ] && [ "$1" != device ] && has apt-get; then
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
    cc* | qemu*) first_line "${1%% *}" --version ;;
    lib:*) library "${1##*lib:}" ;;
    kernel) echo "this machine's own, $RELEASE" ;;
    *) echo "${1#*:}" ;;
    esac
}

# A machine to which the lessons were copied built needs no compiler, except for the lab.
ways_that_build() { if any "$TARGET"/debug/lesson-[0-9]*; then echo lab; else echo 'lab vms nic'; fi; }

# /dev/kvm may be there and work for nobody, so the lab tries it and writes the answer down until the next boot.
check_kvm() {
    known=$(content "$TARGET/lab/kvm")
    boot=$(content "$ROOT/proc/sys/kernel/random/boot_id")
    if [ ! -e "$ROOT/dev/kvm" ]; then
        no_kvm
    elif [ ! -r "$ROOT/dev/kvm" ] || [ ! -w "$ROOT/dev/kvm" ]; then
        note KVM 'you may not use /dev/kvm; the lab emulates (slower, still right)' \
            "sudo usermod -aG kvm $(id -un), then log in again"
    else
        case $known in
        "true "*"$boot") ok KVM 'a machine really runs on it' ;;
        "false "*"$boot") note KVM '/dev/kvm is there, but no machine runs on it; the lab emulates (slower, still right)' ;;
        *) note KVM '/dev/kvm is there; not tried yet' 'make lesson-01 tries it' ;;
        esac
    fi
}

no_kvm() {
    flag=$(grep -m 1 -o -w -e vmx -e svm "$ROOT/proc/cpuinfo")
    case $flag in
    vmx) note KVM 'no /dev/kvm; the lab emulates (slower, still right)' 'sudo modprobe kvm_intel' ;;
    svm) note KVM 'no /dev/kvm; the lab emulates (slower, still right)' 'sudo modprobe kvm_amd' ;;
    *) note KVM 'this machine offers no virtualization; the lab emulates (slower, still right)' ;;
    esac
}

# ---- The three ways ----

# way STOPS NAME TITLE COMMAND
way() {
    if [ -z "$1" ]; then
        printf '  %-3s %s, %-42s %s\n' yes "$2" "$3" "$4"
        ready=1
    else
        printf '  %-3s %s, %-42s %s\n' no "$2" "$3" "see: ${1#, }"
    fi
}

# shellcheck source=lab/needs.sh
. "$HERE/needs.sh"
# shellcheck source=/dev/null # each is looked at by itself
for part in "$HERE"/doctor/*.sh; do . "$part"; done

echo "What this machine has for the lessons, and what it lacks ($machine, kernel $RELEASE)"
group 'To build:'
needs own "$(ways_that_build)"
needs build "$(ways_that_build)"
group 'For the lab, on this machine alone:'
needs lab lab
check_kvm
group 'For RDMA on this machine itself:'
needs device 'vms nic'
check_rxe_module
check_devices
check_memlock
check_permissions
check_firewall
group 'To look at packets:'
check_wireshark
check_capture

ready=''
group 'Ready to run:'
way "$STOPS_LAB" lab 'two emulated machines in this one' 'make lesson-01'
way "$STOPS_VMS" vms 'this machine as one of two with SoftRoCE' 'make server-01, or: make client-01 HOST=ADDRESS'
way "$STOPS_NIC" nic 'this machine as one of two with RDMA NICs' 'make server-01, or: make client-01 HOST=ADDRESS'
[ -n "$ready" ]
