# shellcheck shell=sh disable=SC2154 # lab_program comes from the kernel's command line
# An interactive shell on the machine's second serial port. The host puts `size` and `server_command` in front of this.

# Each word that is a program of the host comes along, from this comment, too: ibv_devices ucmatose udaddy cmtime ib_send_lat
# ib_read_lat ib_send_bw ib_write_bw ib_read_bw lesson-01 lesson-02 lesson-03 lesson-04 lesson-05 lesson-06 lesson-07
# lesson-09 lesson-10 lesson-11 lesson-12

# The first terminal that a session opens becomes its own: it makes signals of Ctrl-C and Ctrl-Z.
exec <"/dev/$lab_program" 2>&1
# shellcheck disable=SC2086 # the size is up to four words
stty sane $size
cd || exit
# The kernel would look for modprobe in another folder when tc asks for netem.
modprobe sch_netem
unset NO_COLOR LOG_SOURCE
# busybox takes its own ip and tc for the real ones.
echo 'alias ip=/usr/bin/ip tc=/usr/bin/tc' >/run/aliases
export ENV=/run/aliases PS1='client:\w# '
cat <<END

You are root on the client, 10.47.91.2 (fd47:91::2). The server is 10.47.91.1 (fd47:91::1), and runs

    $server_command

Things to try:

    rping -c -a server -C 1 -v        one connection, one WRITE, one READ
    ibv_devinfo                       the RDMA device
    rdma link; rdma resource show     what the kernel knows of it
    ping -c 1 server                  not RDMA: recorded, but not printed
    tc qdisc add dev eth0 root netem delay 3ms loss 6%
    on server ib_write_lat            a program on another machine; what it prints appears here

Leave with exit or Ctrl-D. Ctrl-] leaves a shell that does not react any more.

END
# What a shell starts beside its own work, like this, ignores Ctrl-C, and so would all that it starts in turn. No shell
# can undo that; env can, but not each version of it.
undo='/usr/bin/env --default-signal=INT,QUIT'
$undo true || undo=
exec $undo busybox sh -i
