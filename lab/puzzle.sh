#!/bin/sh
# The puzzle of lesson 07: `make puzzle-07`. See lessons/07_disconnect_flush/puzzle/mod.rs.
#
# usage: lab/puzzle.sh LAB-PROGRAM
#
# Runs server a and client a, which are the puzzle, and shows beside them what each other program says in their place: the
# client first. The captures stay for Wireshark.
set -eu

lab=$1
runs=$(realpath -m "$(dirname "$lab")/../lab/runs")
width=150

# Results and errors, without clock and stage.
story() {
    grep -E '^[^[]|\] ERR ' "$1" | grep -v 'the stages so far' | sed -E 's/^\[[^]]*\] ERR +/ERR: /; s/ Next: .*//'
}

# talk SERVER CLIENT: runs the pair and keeps what it left.
talk() {
    status=0
    "$lab" run lesson-07 --server-args="--puzzle $1" --client-args="--puzzle $2 --timeout 4 -s 'can you read this?'" \
        >/dev/null || status=$?
    # A program that fails is what the puzzle is about; anything else has been told.
    [ "$status" -le 1 ] || exit "$status"
    rm -rf "$runs/07-puzzle-$1$2"
    cp -r "$runs/07" "$runs/07-puzzle-$1$2"
}

# beside LEFT RIGHT SIDE: two runs of one side.
beside() {
    story "$runs/07-puzzle-$1/$3.log" >"$left"
    story "$runs/07-puzzle-$2/$3.log" >"$right"
    pr --merge --omit-header --width=$width "$left" "$right" | expand
}

left=$(mktemp)
right=$(mktemp)
trap 'rm -f "$left" "$right"' EXIT

for pair in 'a a' 'a b' 'b a' 'c a'; do
    # shellcheck disable=SC2086
    talk $pair
done
for other in 'ab: client b' 'ba: server b' 'ca: server c'; do
    for side in client server; do
        printf '\nThe %s. Left: server a, client a. Right: %s instead.\n\n' "$side" "${other#*: }"
        beside aa "${other%%:*}" "$side"
    done
done
printf '\nThe client on the left saw its SEND succeed, then a flush error, then the goodbye. Which line is missing, and where?\n'
echo "captures: $runs/07-puzzle-aa/wire.pcapng, and 07-puzzle-ab, -ba, -ca beside it"
