#!/bin/sh
# A switch on the desk, over a serial line: shown, moved, measured, and left as found. A
# pseudo-terminal stands for the cable and an emulated switch for the one behind it; put
# the path of your line into examples/desk.yaml, and the rest is the same.
#
#   sh examples/desk.sh
#
set -eu
here=$(cd "$(dirname "$0")" && pwd)
dir=$(mktemp -d)
trap 'kill $emulator 2>/dev/null; rm -rf "$dir"' EXIT
: >"$dir/ready"
ocslab emulate --json --model polatis-6000-32x32 --name desk --seed 3 --serial "$dir/tty" >"$dir/ready" &
emulator=$!
until grep -q '"kind":"ready"' "$dir/ready"; do
	kill -0 $emulator # it has ended, and has said why
	sleep 0.05
done

# The lab file with the path of this line, and the password of emulated switches.
sed "s|url: .*|url: tl1+serial://$dir/tty|" "$here/desk.yaml" >"$dir/lab.yaml"
export DESK_PASSWORD=root

ocslab --lab "$dir/lab.yaml" show desk
ocslab --lab "$dir/lab.yaml" connect desk '1>33'
ocslab --lab "$dir/lab.yaml" undo
ocslab --lab "$dir/lab.yaml" run "$here/experiments/desk.yaml" --repeats 3
