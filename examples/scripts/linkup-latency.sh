#!/bin/sh
# How long after the command a pair of NICs has its link: until both have carrier. Prints
# the median and the 99th percentile in ms, with what they are known to:
#
#   sh linkup-latency.sh --emulated
#   sh linkup-latency.sh gpu1/ens1f0 gpu3/ens1f0 --lab lab.yaml --from dp --to pp -n 100
#
# After the two NICs come arguments of "ocslab measure"; the link is one of the
# configuration --to, so it comes up in every second of the reconfigurations -n. Without
# NICs they are gpu1/ens1f0 and gpu3/ens1f0, of the testbed that ocslab has built in, and
# without --from it is --from dp --to pp. The exit code is that of ocslab, or 1 when the
# link never came up.
set -eu
a=gpu1/ens1f0 b=gpu3/ens1f0
case ${1:--} in
-h | --help)
	sed -n '2,/^set/s/^# \{0,1\}//p' "$0"
	exit
	;;
-*) ;;
*)
	case ${2:--} in
	-*)
		echo "linkup-latency.sh: $1 is one NIC: want two, or none" >&2
		exit 2
		;;
	esac
	a=$1 b=$2
	shift 2
	;;
esac
case " $* " in
*" --from"*) ;;
*) set -- "$@" --from dp --to pp ;;
esac
marks=$(mktemp)
trap 'rm -f "$marks" "$marks.up"' EXIT
ocslab --json measure "$@" >"$marks" # its exit code ends the script

# One line for each time that the link came up: earliest and latest, in ns since the
# command. Odd reconfigurations are those that move to --to.
awk -v a="$a" -v b="$b" '
function number(key) {
	match($0, "\"" key "\":-?[0-9]+")
	return substr($0, RSTART + length(key) + 3, RLENGTH - length(key) - 3) + 0
}
function text(key) {
	match($0, "\"" key "\":\"[^\"]*")
	return substr($0, RSTART + length(key) + 4, RLENGTH - length(key) - 4)
}
function later(list, i, ns) { if (!(i in list) || ns > list[i]) list[i] = ns }
/^{"kind":"mark"/ {
	i = number("reconfiguration"); stage = text("stage"); nic = text("subject")
	if (stage == "command" && i % 2) {
		if (!(i in sent) || number("earliest_ns") < sent[i]) sent[i] = number("earliest_ns")
		if (!(i in written) || number("latest_ns") < written[i]) written[i] = number("latest_ns")
	}
	if (stage == "traffic" && i % 2) {
		flows++
		if (nic == a ">" b || nic == b ">" a) joined++
	}
	if (stage == "carrier-up" && i % 2 && (nic == a || nic == b)) {
		seen[i, nic] = 1
		later(low, i, number("earliest_ns")); later(high, i, number("latest_ns"))
	}
}
END {
	if (flows && !joined) exit # both may have links, but to others
	for (i in sent)
		if ((i, a) in seen && (i, b) in seen) printf "%.0f %.0f\n", low[i] - written[i], high[i] - sent[i]
		else never++
	if (never) printf "%s and %s: %d times the link did not come up, or did not go down before\n", a, b, never >"/dev/stderr"
}' "$marks" >"$marks.up"
if [ ! -s "$marks.up" ]; then
	echo "linkup-latency.sh: no link of $a and $b came up: is there one in the configuration --to?" >&2
	exit 1
fi

# percentile P COLUMN prints that of a column, with linear interpolation.
percentile() {
	sort -n -k "$2,$2" "$marks.up" | awk -v p="$1" -v column="$2" '
	{ x[NR] = $column }
	END { h = (NR - 1) * p / 100; i = int(h); next_ = i + 2 > NR ? NR : i + 2
	printf "%.6f\n", x[i + 1] + (h - i) * (x[next_] - x[i + 1]) }'
}
for p in 50 99; do
	printf '%s\t%s\t%s\t%s\n' "p$p" "$(percentile $p 1)" "$(percentile $p 2)" "$(wc -l <"$marks.up")" |
		awk -v pair="$a $b" '{ printf "%s\t%s\t%.3f ms\t±%.3f\tof %d\n", pair, $1, ($2 + $3) / 2e6, ($3 - $2) / 2e6, $4 }'
done
