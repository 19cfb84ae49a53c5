#!/bin/sh
# on NODE COMMAND: starts a command on another machine of the lab, which asks that machine's agent. What the command prints is
# a part of that machine's log.
if [ $# -lt 2 ]; then
    echo 'usage: on NODE COMMAND, for example: on server ib_write_lat' >&2
    exit 2
fi
node=$1
shift
# The kernel's log, which carries it to the host, takes a line of about a thousand bytes.
command="$*"
case $command in
*'
'*) long=true ;;
*) [ ${#command} -le 900 ] || long=true ;;
esac
if [ "${long-}" ]; then
    echo 'on: the command is more than one line, or 900 bytes: put it into a script, and bring that along' >&2
    exit 2
fi
echo "<1>@on $node $command" >/dev/kmsg
