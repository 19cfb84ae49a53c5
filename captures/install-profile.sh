#!/bin/sh
# Installs the Wireshark profile "rdma" for the one who runs this. Files that somebody has changed are left alone.
set -eu

source=$(cd "$(dirname "$0")" && pwd)/wireshark-profile

# Where Wireshark looks (its manual page, FILES): a folder ~/.wireshark counts only where no newer one exists.
home=${XDG_CONFIG_HOME:-$HOME/.config}/wireshark
if [ -n "${WIRESHARK_CONFIG_DIR:-}" ]; then
    home=$WIRESHARK_CONFIG_DIR
elif [ -d "$HOME/.wireshark" ] && [ ! -d "$home" ]; then
    home=$HOME/.wireshark
fi
profile=$home/profiles/rdma

for file in "$source"/*; do
    there=$profile/${file##*/}
    if [ -e "$there" ] && ! cmp -s "$file" "$there"; then
        echo "$there is not ours, or was changed. Nothing is installed." >&2
        echo "Move the folder away and run this again: mv '$profile' '$profile.old'" >&2
        exit 1
    fi
done

mkdir -p "$profile"
cp "$source"/* "$profile/"
echo "Wireshark profile installed: $profile"
echo "Use it with: wireshark -C rdma FILE, or in Wireshark's menu Edit, Configuration Profiles"
