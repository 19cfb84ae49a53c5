#!/bin/sh
# The puzzle of lesson 07, before and after, side by side: `make puzzle-07`.
#
# usage: lab/puzzle.sh LAB-PROGRAM
#
# Runs the lesson twice in the lab: first with a server that takes ESTABLISHED for an unknown event, then as it should
# be. Shows what each side logged of it; the two captures stay for Wireshark.
set -eu

lab=$1
runs=$(dirname "$lab")/../lab/runs
runs=$(realpath -m "$runs")
width=150

# Completions, CM events, states and errors, without clock and stage: what differs between the two runs.
story() {
    grep -E 'WC: |CM event: |state: |hung up|came back|\] ERR |words' "$1" | grep -v 'the stages so far' |
        sed -E 's/^\[[^]]*\] (INFO|ERR) +//; s/ vendor_err=.*//; s/ qp_num=.*//'
}

echo 'Running lesson 07 with a server that forgets ESTABLISHED ...'
if "$lab" run lesson-07 --server-args=--forget-established >/dev/null; then
    echo 'lab/puzzle.sh: both programs ended well, although the server should have died' >&2
    exit 1
fi
rm -rf "$runs/07-puzzle"
cp -r "$runs/07" "$runs/07-puzzle"
echo 'Running lesson 07 as it should be ...'
"$lab" run lesson-07 >/dev/null

before=$(mktemp)
after=$(mktemp)
trap 'rm -f "$before" "$after"' EXIT
for side in client server; do
    printf '\n%s\n\n' "The $side: on the left ESTABLISHED is forgotten, on the right it is not."
    story "$runs/07-puzzle/$side.log" >"$before"
    story "$runs/07/$side.log" >"$after"
    pr --merge --omit-header --width=$width "$before" "$after" | expand
done
printf '\nOn the left the client saw its SEND succeed, then a flush, then DISCONNECTED. None of these is the fault:\n'
printf 'the server died of an event that it did not know, and the flush is the echo. See lessons/07_disconnect_flush/src/puzzle.rs.\n'
echo "captures: $runs/07-puzzle/wire.pcapng, $runs/07/wire.pcapng"
