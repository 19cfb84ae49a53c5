#!/usr/bin/env bash
# Wireshark itself, with the bundled profile, shows the key packets of the lessons: takes the pictures of screenshots.txt that are
# missing or show an earlier capture, and notes in docs/images/screenshots.txt which captures they show. To have one taken again,
# delete it. Look at each before you commit it.
#
# Wireshark runs on a screen that exists only in memory, with a home of its own; xdotool presses its keys, and tshark says where a
# field is in its tree.
set -euo pipefail
cd "$(dirname "$0")/../.."
list=docs/images/screenshots.txt

for program in wireshark tshark Xvfb matchbox-window-manager xdotool import pngquant; do
    command -v "$program" >/dev/null || {
        echo "There is no $program: apt-get install wireshark tshark xvfb matchbox-window-manager xdotool imagemagick pngquant" >&2
        exit 1
    }
done

# A line of the list. gzip ends its output with the CRC-32 and the length of what it was given.
line() { # PICTURE CAPTURE
    echo "$(gzip -c "captures/$2.pcapng" | tail -c 8 | od -An -N4 -t x4 | tr -d ' ') $2 $1.png"
}

open_screen() {
    home=$(mktemp -d)
    trap 'kill "${programs[@]}" 2>/dev/null || true; rm -rf "$home"' EXIT
    programs=()
    export HOME=$home XDG_RUNTIME_DIR=$home WIRESHARK_CONFIG_DIR=$home LC_ALL=C.UTF-8
    unset WAYLAND_DISPLAY
    mkdir -p "$home/profiles"
    cp -r captures/wireshark-profile "$home/profiles/rdma"
    # Wide enough for the steps in the packet list, small enough to be read in a page. Xvfb chooses a number that is free.
    exec 3< <(exec Xvfb -displayfd 1 -screen 0 1280x860x24 -nolisten tcp 2>/dev/null)
    programs+=($!)
    read -r -t 60 -u 3 number || { echo "Xvfb says no number of a display" >&2; exit 1; }
    export DISPLAY=:$number
    matchbox-window-manager -use_titlebar no >/dev/null 2>&1 &
    programs+=($!)
}

# The first line of $tree, from the given one on, that begins like this. Bits come before a name: `1... .... = Acknowledge Request`.
place() { # FROM START
    awk -v from="$1" -v start="$2" '{ at = index($0, " = "); name = at ? substr($0, at + 3) : $0 }
        NR > from && index(name, start) == 1 { print NR - 1; found = 1; exit } END { exit !found }' <<<"$tree" ||
        { echo "$name: the packet's tree has no line $2" >&2; exit 1; }
}

until_still() {
    local last="" now same=0 tries
    for ((tries = 0; tries < 200; tries++)); do
        now=$(import -window root ppm:- | cksum)
        [ "$now" = "$last" ] && same=$((same + 1)) || same=0
        [ "$same" -lt 6 ] || return 0
        last=$now
        sleep 0.2
    done
    echo "$name: the screen does not come to rest" >&2
    exit 1
}

# Without the menu above, and without what is empty below both the tree and the bytes.
crop() { # FILE
    local columns bottom=0 end
    for columns in 600x820+20+0 570x820+690+0; do
        end=$(convert "$1" -crop "$columns" +repage -bordercolor white -border 1 -trim -format '%[fx:page.y+h]' info:)
        [ "$end" -le "$bottom" ] || bottom=$end
    done
    convert "$1" -crop "1280x$((bottom - 48))+0+54" +repage "$1"
}

take() { # PICTURE CAPTURE PACKET TOP FIELD
    local name=$1 capture=captures/$2.pcapng packet=$3
    # The packet is the first that the filter finds; an empty line ends its tree.
    tree=$(tshark -C rdma -r "$capture" -Y "$packet" -O infiniband 2>/dev/null | sed -n '1,/^$/s/^ *//p')
    local frame infiniband top field lines
    frame=$(sed -n 's/^Frame \([0-9]*\):.*/\1/p' <<<"$tree")
    [ -n "$frame" ] || { echo "$capture has no packet $packet" >&2; exit 1; }
    infiniband=$(place 0 InfiniBand)
    top=$(place "$infiniband" "$4")
    field=$(place "$top" "$5")
    lines=$(wc -l <<<"$tree")
    local filter=infiniband rows info=238 step=391 all at from to
    if [[ $name == *_run ]]; then
        # The packet is in the middle of what happens around it, log lines too.
        filter="frame.number in {$((frame > 15 ? frame - 15 : 0))..$((frame + 11))}" rows=27 info=678 step=320
    else
        mapfile -t all < <(tshark -C rdma -r "$capture" -Y infiniband -T fields -e frame.number 2>/dev/null)
        rows=${#all[@]}
        if [ "$rows" -gt 20 ]; then
            # Of many, those around it, because the tree also needs room.
            for at in "${!all[@]}"; do [ "${all[at]}" != "$frame" ] || break; done
            from=$((at > 8 ? at - 8 : 0)) to=$((at + 8 < rows ? at + 8 : rows))
            filter="infiniband and frame.number in {${all[from]}..${all[to - 1]}}" rows=$((to - from))
        fi
    fi
    # What Wireshark remembers of its window: no toolbar, a list of this many lines, the widths of its parts and columns.
    sed "s/{upper}/$((50 + 17 * rows))/; s/{info}/$info/; s/{step}/$step/" tools/xtask/screenshots.recent >"$home/profiles/rdma/recent"
    wireshark -C rdma -Y "$filter" -J "$packet" -r "$capture" >/dev/null 2>&1 &
    local wireshark=$! keys=()
    programs+=("$wireshark")
    timeout 60 xdotool search --sync --onlyvisible --name "${capture##*/}" >/dev/null
    until_still
    press() { [ "$2" -eq 0 ] || keys+=(key --delay 20 --repeat "$2" "$1"); }
    press Home 1; press Down "$infiniband"; press shift+Right 1
    # From below, so that the line comes to the top.
    press End 1; press Up $((lines - 1 - top)); press Down $((field - top))
    # A click below the closed tree moves the keyboard to it. If the pointer were there, it would mark a line.
    xdotool mousemove 200 800 click 1 "${keys[@]}" mousemove 800 10
    until_still
    import -window root -strip "$home/picture.png"
    crop "$home/picture.png"
    # Few colors are enough for a window, and make a small file.
    pngquant --force --strip --output "docs/images/$name.png" 64 -- "$home/picture.png"
    chmod 644 "docs/images/$name.png"
    kill "$wireshark"
    wait "$wireshark" 2>/dev/null || true
    echo "docs/images/$name.png"
}

new=
while IFS='|' read -r picture capture packet top field; do
    now=$(line "$picture" "$capture")
    new+=$now$'\n'
    if ! grep -qsxF "$now" "$list" || [ ! -e "docs/images/$picture.png" ]; then
        [ -n "${DISPLAY_OPEN:-}" ] || open_screen
        DISPLAY_OPEN=yes
        take "$picture" "$capture" "$packet" "$top" "$field" </dev/null
    fi
done < <(tail -n +2 tools/xtask/screenshots.txt | sed 's/ *| */|/g')
printf %s "$new" >"$list"
