#!/bin/sh
# Makes the pictures of the terminal UI in docs/tui-*.svg anew, from real screens of real runs on
# emulated testbeds. It is run by hand, from anywhere, and needs tmux and Go:
#
#	docs/tui-pictures.sh
#
# It takes about two minutes. Look at what it has made before it is committed.
set -eu
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'tmux -S "$work/tmux" kill-server 2>/dev/null || true; rm -rf "$work"' EXIT
go build -o "$work/ocslab" ./cmd/ocslab
go build -o "$work/termsvg" ./docs/termsvg

# open ARGUMENT...: starts ocslab in a terminal of 120 x 36.
open() {
	tmux -S "$work/tmux" kill-server 2>/dev/null || true
	rm -rf "$work/state"
	tmux -S "$work/tmux" -f /dev/null new-session -d -x 120 -y 36 \
		"env -u NO_COLOR LANG=C.UTF-8 TERM=xterm-256color COLORTERM=truecolor OCSLAB_STATE_DIR=$work/state $work/ocslab $*; cat"
	tmux -S "$work/tmux" set-option -g window-size manual
	wait_for ' up  '
}

keys() { tmux -S "$work/tmux" send-keys "$@"; }

# typed TEXT: types a command, and has it carried out.
typed() {
	keys :
	wait_for 'enter takes it'
	keys -l "$1"
	keys Enter
}

# wait_for TEXT: waits until the screen has it, for a minute at most.
wait_for() {
	tries=0
	until tmux -S "$work/tmux" capture-pane -p | grep -q -e "$1"; do
		tries=$((tries + 1))
		if [ "$tries" -gt 300 ]; then
			echo "tui-pictures: no \"$1\" on the screen:" >&2
			tmux -S "$work/tmux" capture-pane -p >&2
			exit 1
		fi
		sleep 0.2
	done
}

# accept: looks at the preview, and does it.
accept() {
	wait_for 'y do it'
	sleep 1 # a key that comes at once is not taken for an answer
	keys y
}

# picture NAME
picture() {
	sleep 1.5
	tmux -S "$work/tmux" capture-pane -e -N -p | "$work/termsvg" >"docs/tui-$1.svg"
	echo "docs/tui-$1.svg"
}

# A firmware of a ConnectX-6 Dx, which is where the time goes; joined, parted and joined again, so
# that there is something usual.
open --emulated tui --firmware connectx-6-dx/autoneg-off --screen timeline
typed 'link gpu1 gpu2'
accept
wait_for '1 .* all back'
for n in 2 3; do
	keys u
	accept
	wait_for "▸ $((2 * n - 2)) .* done"
	keys U
	accept
	wait_for "▸ $((2 * n - 1)) .* all back"
done
typed 'link gpu3 gpu4'
accept
wait_for '▸ 6 .* all back'
keys u
accept
wait_for '▸ 7 .* done'
keys U
accept
wait_for '▸ 8 .* all back'
picture timeline
keys 2
keys Enter
picture links
keys 1
keys Right
picture patch
keys 6
picture log

# Heaters and taps of a bundle of transceivers.
open --lab examples/bundle.yaml --emulated tui --screen devices
typed 'connect bundle 1-8>65-72'
accept
wait_for 'connected, read back'
keys PageDown
picture devices

# An experiment that is under way.
open --emulated tui --screen experiment --run examples/experiments/opus-toggle.yaml
wait_for 'planned'
keys r
wait_for 'nothing is sent'
keys -l yes
keys Enter
wait_for ' [3-9] of [89] points'
picture experiment
