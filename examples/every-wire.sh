#!/bin/sh
# One emulated switch, asked in every language it speaks: each wire makes a circuit,
# and the last one shows them all.
#
#   sh examples/every-wire.sh
#
set -eu
dir=$(mktemp -d)
trap 'kill $emulator 2>/dev/null; rm -rf "$dir"' EXIT
: >"$dir/ready"
ocslab emulate --json --model fast-mems-25ms --name rail0 --serial "$dir/tty" >"$dir/ready" &
emulator=$!
until grep -q '"kind":"ready"' "$dir/ready"; do
	kill -0 $emulator # it has ended, and has said why
	sleep 0.05
done

port=1
for wire in tl1 tl1+ssh tl1+serial scpi scpi+serial netconf; do
	url=$(sed -n "s|.*\"urls\":{[^}]*\"$wire\":\"\([^\"]*\)\".*|\1|p" "$dir/ready")
	if [ -z "$url" ]; then # serial lines are there on Linux only
		continue
	fi
	ocslab connect "$url" "$port>$((port + 64))"
	port=$((port + 1))
done
ocslab show "$url"
