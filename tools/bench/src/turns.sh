# What the client's machine does: turn NAME COMMAND … says whose turn it is, and what the command said.
# A server may begin to listen a moment later: who could not reach it tries again. Who stands still is ended, and not tried again.
turn() {
    echo "@ $1"
    shift
    for attempt in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
        said=$(timeout 20 "$@" 2>&1)
        case $? in 0 | 124 | 143) break ;; esac
        sleep 0.2
    done
    echo "$said"
}
