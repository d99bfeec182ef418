#!/bin/sh
# A gate for CI: is the 99th percentile of link-up below a time, and is that certain?
#
#   sh p99-gate.sh 800ms
#   sh p99-gate.sh 4s --lab lab.yaml run night.yaml
#
# After the time come the arguments of "ocslab": an experiment to run. Without them it is
# the emulated one of ci.yaml, with as many repeats as a 99th percentile takes. The limit
# is added to a copy of the experiment, so that the report has it, too.
#
# Exit code 0 only when the limit is kept for certain; 5 when it is broken or there are too
# few values to tell; else that of ocslab.
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
case ${1:--h} in
-h | --help)
	sed -n '2,/^set/s/^# \{0,1\}//p' "$0"
	exit
	;;
esac
most=$1
shift
if [ $# -eq 0 ]; then # 20 repeats of 2 reconfigurations with 8 NICs are 320 values; 299 tell
	set -- --lab "$here/ci.yaml" --emulated run "$here/experiments/ci.yaml" --rung memory --repeats 20
fi
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# The last word that is a file of YAML after "run" is the experiment.
file=
seen=
for word; do
	case $seen$word in
	run) seen=run\  ;;
	"run "*.yaml) file=$word ;;
	esac
done
if [ ! -f "$file" ]; then
	echo "p99-gate.sh: want an experiment: run FILE.yaml" >&2
	exit 2
fi
{
	sed '/^limits:/,/^[a-z]/{/^limits:/d;/^ /d}' "$file"
	printf '\nlimits: ["carrier_p99 < %s"]\n' "$most"
} >"$dir/gate.yaml"

# The same arguments, with the copy in place of the file.
count=$#
while [ "$count" -gt 0 ]; do
	word=$1
	shift
	[ "$word" != "$file" ] || word=$dir/gate.yaml
	set -- "$@" "$word"
	count=$((count - 1))
done

code=0
ocslab --json "$@" >"$dir/lines" || code=$?
verdict=$(sed -n 's/^{"kind":"verdict".*"judgement":"\([a-z]*\)".*/\1/p' "$dir/lines" | sort -u)
sed -n 's/^{"kind":"verdict".*"limit":"\([^"]*\)".*"judgement":"\([a-z]*\)".*/\2: \1/p' "$dir/lines"
if [ "$code" -eq 0 ] && [ "$verdict" != pass ]; then
	echo "p99-gate.sh: not known for certain: ${verdict:-nothing was measured}; take more repeats" >&2
	code=5
fi
exit "$code"
