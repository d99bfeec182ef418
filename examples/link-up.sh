#!/bin/sh
# How long after the command each NIC has carrier again: one line for each NIC and
# reconfiguration, in ms, with what it is known to. Arguments are those of
# "ocslab measure":
#
#   sh examples/link-up.sh --emulated --from dp --to pp -n 10
#   sh examples/link-up.sh --lab lab.yaml --from dp --to pp -n 30 --pause 8s
#
set -eu
marks=$(mktemp)
trap 'rm -f "$marks"' EXIT
ocslab --json measure "$@" >"$marks" # its exit code ends the script
awk '
function number(key) {
	match($0, "\"" key "\":-?[0-9]+")
	return substr($0, RSTART + length(key) + 3, RLENGTH - length(key) - 3) + 0
}
function text(key) {
	match($0, "\"" key "\":\"[^\"]*")
	return substr($0, RSTART + length(key) + 4, RLENGTH - length(key) - 4)
}
/^{"kind":"mark","stage":"command"/ { sent[number("reconfiguration")] = number("latest_ns") }
/^{"kind":"mark","stage":"carrier-up"/ {
	i = number("reconfiguration")
	low = number("earliest_ns") - sent[i]; high = number("latest_ns") - sent[i]
	printf "%s\t%d\t%.3f ms\t±%.3f\n", text("subject"), i, (low + high) / 2e6, (high - low) / 2e6
}' "$marks"
