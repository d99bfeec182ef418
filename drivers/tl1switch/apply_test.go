package tl1switch_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/ocslab/ocslab/drivers/internal/drivertest"
	"github.com/ocslab/ocslab/drivers/tl1switch"
	"github.com/ocslab/ocslab/ocs"
)

// matrix serves a matrix in TL1.
type matrix struct{ *drivertest.Matrix }

// onMatrix opens a Switch on a device with a matrix.
var onMatrix drivertest.OpenMatrix = func(t testing.TB, m *drivertest.Matrix, maxPairs int) (ocs.Switch, func()) {
	p := newPeer(t, matrix{m}.serve)
	cfg := p.config()
	cfg.MaxPairs = maxPairs
	sw, err := tl1switch.Open(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return sw, func() { sw.Close(); p.Finish() }
}

func (x matrix) serve(l *line) {
	for command := l.next(); command != ""; command = l.next() {
		f := strings.Split(command, ":")
		if !strings.HasSuffix(f[0], "-PATCH") {
			l.Send(completed(f[3]))
			continue
		}
		x.Commands = append(x.Commands, f[0]+" "+f[2])
		l.Send(x.reply(f))
	}
}

func (x matrix) reply(f []string) string {
	if f[0] == "DLT-PATCH" {
		for p := range strings.SplitSeq(f[2], "&") {
			delete(x.Held, p)
		}
		return completed(f[3])
	}
	ins, outs, _ := strings.Cut(f[2], ",")
	if busy := x.Connect(strings.Split(ins, "&"), strings.Split(outs, "&")); busy != "" {
		return denied(f[3], "SROF", "Port is in use by "+busy)
	}
	return completed(f[3])
}

// TestApply is what is sent for a change, whether the device takes over busy
// ports or not.
func TestApply(t *testing.T) {
	onMatrix.Sends(t, []drivertest.Sending{
		{Name: "nothing", From: "1>17", To: "1>17"},
		{Name: "add", To: "1>17,2>18", Commands: []string{"ENT-PATCH 1&2,17&18"}},
		{Name: "remove", From: "1>17,2>18,3>19", To: "2>18", Commands: []string{"DLT-PATCH 1&3"}},
		{Name: "move", From: "1>17,2>18", To: "1>20,2>18", Commands: []string{"ENT-PATCH 1,20"},
			Denies: []string{"ENT-PATCH 1,20", "DLT-PATCH 1", "ENT-PATCH 1,20"}},
		{Name: "swap", From: "1>17,2>18", To: "1>18,2>17", Commands: []string{"ENT-PATCH 1&2,18&17"},
			Denies: []string{"ENT-PATCH 1&2,18&17", "DLT-PATCH 1&2", "ENT-PATCH 1&2,18&17"}},
		{Name: "mixed", From: "1>17,2>18,3>19", To: "1>18,4>20", Commands: []string{"DLT-PATCH 3", "ENT-PATCH 1&4,18&20"},
			Denies: []string{"DLT-PATCH 3", "ENT-PATCH 1&4,18&20", "DLT-PATCH 1&2", "ENT-PATCH 1&4,18&20"}},
		{Name: "split", To: "1>17,2>18,3>19,4>20,5>21", MaxPairs: 2,
			Commands: []string{"ENT-PATCH 1&2,17&18", "ENT-PATCH 3&4,19&20", "ENT-PATCH 5,21"}},
		{Name: "split cycle", From: "1>17,2>18,3>19", To: "1>18,2>19,3>17", MaxPairs: 1,
			Commands: []string{"ENT-PATCH 1,18", "ENT-PATCH 2,19", "ENT-PATCH 3,17"},
			Denies:   []string{"ENT-PATCH 1,18", "DLT-PATCH 1&2&3", "ENT-PATCH 1,18", "ENT-PATCH 2,19", "ENT-PATCH 3,17"}},
		{Name: "conflict in the second part", From: "2>18", To: "1>17,2>19", MaxPairs: 1,
			Commands: []string{"ENT-PATCH 1,17", "ENT-PATCH 2,19"},
			Denies:   []string{"ENT-PATCH 1,17", "ENT-PATCH 2,19", "DLT-PATCH 2", "ENT-PATCH 2,19"}},
	})
}

// That a device does not take over is remembered, and over sessions.
func TestDenialIsRemembered(t *testing.T) {
	a, b := drivertest.Map(t, "1>17"), drivertest.Map(t, "1>18")
	x := onMatrix.On(t, a, true, 0, func(t *testing.T, sw ocs.Switch) {
		for _, c := range []ocs.Change{ocs.Diff(a, b), ocs.Diff(b, a)} {
			if _, err := sw.Apply(t.Context(), c); err != nil {
				t.Error(err)
			}
		}
	})
	want := []string{"ENT-PATCH 1,18", "DLT-PATCH 1", "ENT-PATCH 1,18", "DLT-PATCH 1", "ENT-PATCH 1,17"}
	if !slices.Equal(x.Commands, want) {
		t.Errorf("got %q, want %q", x.Commands, want)
	}
}

// A conflict that has nothing to do with what is replaced is an error, and
// nothing is learned from it.
func TestForeignConflict(t *testing.T) { onMatrix.ForeignConflict(t) }

// Each step of a change may fail; the receipt says how many requests there were.
func TestApplyFails(t *testing.T) {
	c := ocs.Change{Remove: drivertest.Map(t, "1>17,9>25"), Add: drivertest.Map(t, "1>18")}
	steps := []string{"DLT-PATCH::9:3:;", "ENT-PATCH::1,18:4:;", "DLT-PATCH::1:5:;", "ENT-PATCH::1,18:6:;"}
	for failing := range steps {
		talk(t, func(t *testing.T, sw *tl1switch.Switch) {
			r, err := sw.Apply(t.Context(), c)
			if !errors.Is(err, ocs.ErrDenied) || r.Requests != failing+1 {
				t.Errorf("step %d: got %d requests, %v", failing, r.Requests, err)
			}
		}, func(l *line) {
			l.login(1)
			for i, s := range steps[:failing+1] {
				l.expect(s)
				switch {
				case i == failing:
					l.Send(denied(tag(s), "SROF", "no"))
				case i == 1:
					l.Send(denied(tag(s), "IDNC", "Port 1 is in use by 1,17"))
				default:
					l.Send(completed(tag(s)))
				}
			}
		})
	}
}

// TestApplyProperty: after Apply of Diff(a, b) a device that held a holds b.
func TestApplyProperty(t *testing.T) { onMatrix.Property(t) }

// TestApplyReady: a change that others have to be ready for waits before the first command.
func TestApplyReady(t *testing.T) { onMatrix.Ready(t) }
