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
# shellcheck disable=SC2034 # read by the files in doctor/
TARGET=$ROOT${CARGO_TARGET_DIR:-$REPO/target}
RELEASE=$(uname -r)
MACHINE=$(uname -m)
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

line() { printf '  %-5s %-18s %s\n' "$1" "$2" "$3"; }
cure() { printf '  %-5s %-18s cure: %s\n' '' '' "$1"; }
group() { printf '\n%s\n' "$1"; }

# ---- Small questions ----

has() { command -v "$1" >/dev/null; }
first_line() { "$@" 2>/dev/null | head -n 1; }
content() { cat "$1" 2>/dev/null; }
is_root() { [ "$(id -u)" = 0 ]; }

# Those of the programs given that are not here.
missing_of() {
    missing=''
    for program in "$@"; do
        has "$program" || missing="$missing $program"
    done
    echo "${missing# }"
}

# Whether one of the files given is there: for a pattern that may fit none.
any() { [ -e "$1" ]; }

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
    *) echo "install the package $1 (Debian, Ubuntu), $2 (Fedora) or $3 (Arch)" ;;
    esac
}

# Whether this machine's running kernel has a module, as a file or built in.
kernel_has() {
    modules=$ROOT/lib/modules/$RELEASE
    grep -qs "/$1\.ko" "$modules/modules.dep" "$modules/modules.builtin"
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

# shellcheck source=/dev/null # each is looked at by itself
for checks in "$HERE"/doctor/*.sh; do . "$checks"; done

echo "What this machine has for the lessons, and what it lacks ($MACHINE, kernel $RELEASE)"
group 'To build:'
check_cargo
check_compiler
check_libclang
check_headers
check_libraries
group 'For the lab, on this machine alone:'
check_qemu
check_lab_tools
check_lab_kernel
check_kvm
group 'For RDMA on this machine itself:'
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
