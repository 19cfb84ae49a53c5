#!/bin/sh
# on NODE COMMAND: starts a command on another machine of the lab, which asks that machine's agent. What the command prints is
# a part of that machine's log.
if [ $# -lt 2 ]; then
    echo 'usage: on NODE COMMAND, for example: on server ib_write_lat' >&2
    exit 2
fi
node=$1
shift
echo "<1>@on $node $*" >/dev/kmsg
