package scpiswitch_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/ocslab/ocslab/drivers/internal/drivertest"
	"github.com/ocslab/ocslab/drivers/scpiswitch"
	"github.com/ocslab/ocslab/ocs"
)

// matrix serves a matrix in SCPI.
type matrix struct {
	*drivertest.Matrix
	errs []string
}

// onMatrix opens a Switch on a device with a matrix.
var onMatrix drivertest.OpenMatrix = func(t testing.TB, m *drivertest.Matrix, maxPairs int) (ocs.Switch, func()) {
	p := newPeer(t, (&matrix{Matrix: m}).serve)
	cfg := p.config()
	cfg.MaxPairs = maxPairs
	sw, err := scpiswitch.Open(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return sw, func() { sw.Close(); p.Finish() }
}

func (x *matrix) serve(l *line) {
	for s := l.next(); s != ""; s = l.next() {
		head, rest, _ := strings.Cut(s, " ")
		switch head {
		case "*OPC?":
			l.Send("1\r\n")
		case ":SYST:ERR?":
			reply := fine
			if len(x.errs) > 0 {
				reply, x.errs = x.errs[0]+"\r\n", x.errs[1:]
			}
			l.Send(reply)
		default:
			verb := strings.TrimPrefix(head, ":OXC:SWIT:CONN:")
			x.Commands = append(x.Commands, verb+" "+rest)
			x.carryOut(verb, rest)
		}
	}
}

func (x *matrix) carryOut(verb, lists string) {
	ins, outs, _ := strings.Cut(lists, "),(")
	in := strings.Split(strings.TrimPrefix(ins, "(@"), ",")
	out := strings.Split(strings.Trim(outs, "@)"), ",")
	if len(in) != len(out) {
		x.errs = append(x.errs, `-226, "Lists not same length"`)
		return
	}
	if verb == "SUB" {
		for i := range in {
			if x.Held[in[i]] == out[i] {
				delete(x.Held, in[i])
			}
		}
	} else if x.Connect(in, out) != "" {
		x.errs = append(x.errs, `-221, "Settings conflict"`)
	}
}

// TestApply is what is sent for a change, whether the device takes over busy
// ports or not.
func TestApply(t *testing.T) {
	onMatrix.Sends(t, []drivertest.Sending{
		{Name: "nothing", From: "1>17", To: "1>17"},
		{Name: "add", To: "1>17,2>18", Commands: []string{"ADD (@1,2),(@17,18)"}},
		{Name: "remove", From: "1>17,2>18,3>19", To: "2>18", Commands: []string{"SUB (@1,3),(@17,19)"}},
		{Name: "move", From: "1>17,2>18", To: "1>20,2>18", Commands: []string{"ADD (@1),(@20)"},
			Denies: []string{"ADD (@1),(@20)", "SUB (@1),(@17)", "ADD (@1),(@20)"}},
		{Name: "swap", From: "1>17,2>18", To: "1>18,2>17", Commands: []string{"ADD (@1,2),(@18,17)"},
			Denies: []string{"ADD (@1,2),(@18,17)", "SUB (@1,2),(@17,18)", "ADD (@1,2),(@18,17)"}},
		{Name: "mixed", From: "1>17,2>18,3>19", To: "1>18,4>20", Commands: []string{"SUB (@3),(@19)", "ADD (@1,4),(@18,20)"},
			Denies: []string{"SUB (@3),(@19)", "ADD (@1,4),(@18,20)", "SUB (@1,2),(@17,18)", "ADD (@1,4),(@18,20)"}},
		{Name: "split", To: "1>17,2>18,3>19,4>20,5>21", MaxPairs: 2,
			Commands: []string{"ADD (@1,2),(@17,18)", "ADD (@3,4),(@19,20)", "ADD (@5),(@21)"}},
		{Name: "split removal", From: "1>17,2>18,3>19", MaxPairs: 2, Commands: []string{"SUB (@1,2),(@17,18)", "SUB (@3),(@19)"}},
		{Name: "split cycle", From: "1>17,2>18,3>19", To: "1>18,2>19,3>17", MaxPairs: 1,
			Commands: []string{"ADD (@1),(@18)", "ADD (@2),(@19)", "ADD (@3),(@17)"},
			Denies: []string{"ADD (@1),(@18)", "SUB (@1),(@17)", "SUB (@2),(@18)", "SUB (@3),(@19)",
				"ADD (@1),(@18)", "ADD (@2),(@19)", "ADD (@3),(@17)"}},
		{Name: "conflict in the second part", From: "2>18", To: "1>17,2>19", MaxPairs: 1,
			Commands: []string{"ADD (@1),(@17)", "ADD (@2),(@19)"},
			Denies:   []string{"ADD (@1),(@17)", "ADD (@2),(@19)", "SUB (@2),(@18)", "ADD (@2),(@19)"}},
	})
}

// A circuit of somebody else at a port from which ours is to be removed stays.
func TestRemoveNamesPairs(t *testing.T) {
	others := drivertest.Map(t, "1>18")
	x := onMatrix.On(t, others, false, 0, func(t *testing.T, sw ocs.Switch) {
		if _, err := sw.Apply(t.Context(), ocs.Change{Remove: drivertest.Map(t, "1>17")}); err != nil {
			t.Error(err)
		}
	})
	if !x.Holds(others) {
		t.Errorf("holds %v", x.Held)
	}
}

// That a device does not take over is remembered, and over sessions.
func TestDenialIsRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := &matrix{Matrix: drivertest.NewMatrix(drivertest.Map(t, "1>17"), true)}
		p := newPeer(t, func(l *line) {
			l.empty()
			for range 3 {
				x.one(l)
			}
			l.Close()
		}, x.serve)
		sw, err := scpiswitch.Open(t.Context(), p.config())
		if err != nil {
			t.Fatal(err)
		}
		a, b := drivertest.Map(t, "1>17"), drivertest.Map(t, "1>18")
		for _, c := range []ocs.Change{ocs.Diff(a, b), ocs.Diff(b, a)} {
			if _, err := sw.Apply(t.Context(), c); err != nil {
				t.Error(err)
			}
		}
		sw.Close()
		p.Finish()
		want := []string{"ADD (@1),(@18)", "SUB (@1),(@17)", "ADD (@1),(@18)", "SUB (@1),(@18)", "ADD (@1),(@17)"}
		if !slices.Equal(x.Commands, want) {
			t.Errorf("got %q, want %q", x.Commands, want)
		}
	})
}

// one serves one command to its end.
func (x *matrix) one(l *line) {
	verb, lists, _ := strings.Cut(strings.TrimPrefix(l.next(), ":OXC:SWIT:CONN:"), " ")
	x.Commands = append(x.Commands, verb+" "+lists)
	x.carryOut(verb, lists)
	l.expect("*OPC?", ":SYST:ERR?")
	l.Send("1\r\n")
	for ; len(x.errs) > 0; x.errs = x.errs[1:] {
		l.Send(x.errs[0] + "\r\n")
		l.expect(":SYST:ERR?")
	}
	l.Send(fine)
}

// A conflict that has nothing to do with what is replaced is an error, and
// nothing is learned from it.
func TestForeignConflict(t *testing.T) { onMatrix.ForeignConflict(t) }

// Each step of a change may fail; the receipt says how many requests there were.
func TestApplyFails(t *testing.T) {
	c := ocs.Change{Remove: drivertest.Map(t, "1>17,9>25"), Add: drivertest.Map(t, "1>18")}
	steps := []string{"SUB (@9),(@25)", "ADD (@1),(@18)", "SUB (@1),(@17)", "ADD (@1),(@18)"}
	for failing := range steps {
		talk(t, func(t *testing.T, sw *scpiswitch.Switch) {
			r, err := sw.Apply(t.Context(), c)
			if !errors.Is(err, ocs.ErrDenied) || r.Requests != failing+1 {
				t.Errorf("step %d: got %d requests, %v", failing, r.Requests, err)
			}
		}, func(l *line) {
			for i, s := range steps[:failing+1] {
				switch s = ":OXC:SWIT:CONN:" + s; i {
				case failing:
					l.refuse(s, `-200, "Execution error"`)
				case 1:
					l.refuse(s, `-221, "Settings conflict"`)
				default:
					l.change(s)
				}
			}
		})
	}
}

// TestApplyProperty: after Apply of Diff(a, b) a device that held a holds b.
func TestApplyProperty(t *testing.T) { onMatrix.Property(t) }

// TestApplyReady: a change that others have to be ready for waits before the first command.
func TestApplyReady(t *testing.T) { onMatrix.Ready(t) }
