#!/bin/sh
# Eight transceivers behind one serial line, switched together: into fibre 1, past a failed
# neighbour into fibre 2, and closed in the node. Then what the modules say of it.
#
#   sh examples/bundle.sh
#
set -eu
dir=$(mktemp -d)
trap 'kill $emulator 2>/dev/null; rm -rf "$dir"' EXIT
: >"$dir/ready"
ocslab emulate --json --model ocstrx-8x112g-x8 --name bundle --seed 7 --serial "$dir/tty" >"$dir/ready" &
emulator=$!
until grep -q '"kind":"ready"' "$dir/ready"; do
	kill -0 $emulator # it has ended, and has said why
	sleep 0.05
done

bundle="ocstrx+serial://$dir/tty"
ocslab connect "$bundle" '1-64>65-128'
ocslab connect --mode update "$bundle" '1-64>129-192'
ocslab connect --mode update "$bundle" '1-4>197-200,5-8>193-196'
ocslab show --log "$bundle"
