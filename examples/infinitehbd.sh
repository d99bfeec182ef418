#!/bin/sh
# A line of four nodes whose boards run meanwhile: rings of eight GPUs brought about, a node that loses power while somebody
# watches, what is left walked by its light, and its cables checked. Each change is a run.
#
#   sh examples/infinitehbd.sh [SECONDS]
#
# Node 2 dies that long after the boards have started.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
dies=${1:-8}
dir=$(mktemp -d)
trap 'kill $emulator 2>/dev/null; rm -rf "$dir"' EXIT
: >"$dir/ready"
ocslab emulate --json --lab "$here/infinitehbd.yaml" \
	--fault "n02-l=power-off:${dies}s" --fault "n02-r=power-off:${dies}s" >"$dir/ready" &
emulator=$!
until [ "$(grep -c '"kind":"ready"' "$dir/ready")" -eq 8 ]; do
	kill -0 $emulator # it has ended, and has said why
	sleep 0.05
done

# The lab file with the url of each board.
sed -nE 's|.*"device":"([^"]*)".*"urls":\{"ocstrx":"([^"]*)".*|s#name: \1, #\&url: "\2", #|p' "$dir/ready" >"$dir/urls"
sed -f "$dir/urls" "$here/infinitehbd.yaml" >"$dir/lab.yaml"

line="ocslab --lab $dir/lab.yaml topology infinitehbd"
$line --nodes 4 --tp 8 --apply
$line bypass --tp 8 -n 1
$line walk --dead 2
$line check-cables --dead 2 --darken
