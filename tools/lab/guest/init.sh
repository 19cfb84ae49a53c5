#!/bin/busybox sh
# The first process of a lab machine: sets the machine up, then does what the host says.
#
# The kernel passes these on from its command line:
#   lab_index     1 for the server, 2 for the client, and so on
#   lab_console   serial port for kernel messages and the conversation with the host
#   lab_program   serial port that carries what the program prints on standard output
#   lab_error     and on standard error
#
# The conversation, one line each; what is longer comes on the drive. What the guest says goes through the kernel's log, as only
# the kernel prints whole lines there; they begin with @, behind the kernel's own time:
#   guest  @ready               set up; the state of the machine is saved at this point
#   host   load SECONDS.NANOS   set the clock, unpack the drive with the machine's name and its program
#   guest  @loaded, or @failed REASON
#   host   inspect COMMAND      run a shell command
#   guest  @| LINE …, @inspected
#   host   await                tell when /run/ready succeeds; without that file, when something listens, on RDMA or TCP
#   guest  @listening, or @silent after about ten seconds without a listener
#   host   start                start the program
#   guest  @exit STATUS
#   host   kill                 end the program with SIGKILL
#   guest  @on NODE COMMAND     said by /usr/bin/on: start this on that machine
#   host   also COMMAND         start it beside the program
#   host   fault NUMBER         start /run/fault-NUMBER so
#   guest  @also STATUS: COMMAND

# shellcheck disable=SC2154 # lab_* come from the kernel's command line
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root

say() {
    echo "<1>@$*"
}

give_up() {
    say "failed $*"
    poweroff -f
}

mount_kernel_file_systems() {
    mount -t proc proc /proc
    mount -t sysfs sysfs /sys
    mount -t devtmpfs devtmpfs /dev
    mount -t tmpfs tmpfs /tmp
}

# Both of the program's ports lead to the same pipe on the host, so that order is kept there. Which line came from which port
# tells its end: a carriage return stands before the newline of each line on standard output, and never on standard error.
open_ports() {
    # A shell would make a file of a port that the kernel does not know.
    [ -c "/dev/$lab_error" ] || give_up "no third serial port"
    stty -F "/dev/$lab_program" raw -echo opost onlcr
    stty -F "/dev/$lab_error" raw -echo opost ocrnl -onlcr
    # Since Linux 6.5 a port that was silent for half a second sleeps, and wakes after the next packet may have gone.
    for port in /sys/bus/serial-base/devices/*; do
        [ ! -e "$port/power/control" ] || echo on >"$port/power/control"
    done
    # Line by line, for `obey`.
    stty -F "/dev/$lab_console" raw -echo icanon
    exec >/dev/kmsg 2>&1
}

# An IPv4 lesson's capture must hold no IPv6 chatter: no router solicitations, no duplicate address detection, and
# multicast groups announced once, now.
silence_ipv6() {
    cd /proc/sys/net/ipv6/conf/eth0 || give_up "no IPv6 in this kernel"
    echo 1 >addr_gen_mode
    echo 0 >accept_ra
    echo 0 >router_solicitations
    echo 0 >dad_transmits
    echo 1 >/proc/sys/net/ipv6/mld_qrv
    cd /
}

# The lab lists what the kernel does not have built in.
drivers() {
    while read -r module; do
        modprobe "$module" || give_up "the kernel module $module cannot be loaded"
    done </etc/modules
}

network() {
    silence_ipv6
    /usr/bin/ip link set lo up
    /usr/bin/ip link set eth0 up
    /usr/bin/ip address add "10.47.91.$lab_index/24" dev eth0
}

rdma_device() {
    # shellcheck disable=SC3045 # busybox has it
    ulimit -l unlimited
    read -r driver </etc/driver
    /bin/sh /usr/sbin/softroce.sh up "--$driver" eth0 || give_up "no RDMA device"
}

# The kernel takes note of the link up to a second after it is up, and only then announces the groups that it joins
# for each address. Nothing of this must wait in the saved state, or it would turn up in every capture.
ipv6_addresses() {
    until read -r state </sys/class/net/eth0/operstate && [ "$state" = up ]; do
        usleep 10000
    done
    /usr/bin/ip address add "fd47:91::$lab_index/64" dev eth0 nodad
    # The one that belongs to the card's own address; rdma_cm resolves IPv6 neighbors from it and from nothing else.
    /usr/bin/ip address add "fe80::ff:fe00:$lab_index/64" dev eth0 nodad
    usleep 100000
}

# The drive's content is written after this machine's state was saved. Nothing has it open, so nothing of it is cached.
load() {
    /usr/bin/date -s "@$1" >/dev/null
    if cpio -idum </dev/vda 2>/run/complaint; then
        read -r name </etc/hostname && echo "$name" >/proc/sys/kernel/hostname
        say loaded
    else
        say "failed to unpack the drive: $(cat /run/complaint)"
    fi
}

# Tells when a program listens, over RDMA or TCP: the kernel says so when one of these returns success. Nobody has to ask
# again and again, which would take the processor from the program that is just starting. Each function is probed twice: whoever
# reads the trace wakes at the second event, and a TCP listener makes no more than one.
watch_listeners() {
    mount -t tracefs tracefs /sys/kernel/tracing
    cd /sys/kernel/tracing || give_up "this kernel has no tracefs"
    for function in rdma_listen inet_listen; do
        for event in "$function" "${function}_again"; do
            echo "r:$event $function status=\$retval:s32" >>kprobe_events || give_up "this kernel has no kprobe events"
            echo 'status == 0' >"events/kprobes/$event/filter"
        done
    done
    echo 1 >events/kprobes/enable
    cd /
}

listens() {
    # shellcheck disable=SC3045 # busybox has it
    read -t 10 -r _ </sys/kernel/tracing/trace_pipe
}

await() {
    if [ ! -e /run/ready ]; then
        if listens; then say listening; else say silent; fi
        return
    fi
    until /bin/sh -c '. /run/environment; . /run/ready' </dev/null >/dev/null 2>&1; do
        usleep 10000
    done
    say listening
}

# The program is a session of its own, so that `kill` reaches all of its processes. After a kill the shell that ran it
# may be gone before it: it has ended once it has given its QPs back.
start() {
    setsid /run/program.sh </dev/null >"/dev/$lab_program" 2>"/dev/$lab_error"
    status=$?
    while [ $status = 137 ] && kill -0 "-$(cat /run/program.pid)" 2>/dev/null; do
        usleep 1000
    done
    say "exit $status"
}

also() {
    cd /root && setsid /bin/sh -c "$1" </dev/null >"/dev/$lab_program" 2>&1
    # The kernel's log takes no longer record, as in `inspect`, and one line.
    say "also $?: $(printf '%.900s' "$1" | tr '\n' ' ')"
}

inspect() {
    # A record of the kernel's log holds about a thousand characters.
    # shellcheck disable=SC3057 # busybox has it
    /bin/sh -c "$1" </dev/null 2>&1 | while IFS= read -r line; do say "| ${line:0:900}"; done
    say inspected
}

# What goes on beside the conversation is no child of this shell but, once the parentheses are closed, of the first
# process: the end of a child would interrupt `read`, and busybox then forgets what it has read of a line so far.
# (`head -n 1` is no way out: it takes two lines that come together, and drops the second.)
obey() {
    while read -r word rest; do
        case $word in
        load) load "$rest" ;;
        inspect) inspect "$rest" ;;
        await) (await &) ;;
        start) (start &) ;;
        also) (also "$rest" &) ;;
        fault) (also "$(cat "/run/fault-$rest")" &) ;;
        kill) kill -9 "-$(cat /run/program.pid)" ;;
        *) say "unknown $word" ;;
        esac
    done
}

mount_kernel_file_systems
open_ports
drivers
network
rdma_device
ipv6_addresses
watch_listeners
say ready
obey <"/dev/$lab_console" &
wait $!
give_up "the host closed the console"
