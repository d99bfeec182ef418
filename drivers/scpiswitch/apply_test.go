package scpiswitch_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/drivers/scpiswitch"
	"github.com/ocslab/ocslab/ocs"
)

// matrix is a device that holds cross-connects and takes over busy ports, or
// does not. It keeps the commands that change it.
type matrix struct {
	denies   bool
	held     map[string]string // egress by ingress
	commands []string
	errs     []string
}

func newMatrix(m ocs.Map, denies bool) *matrix {
	x := &matrix{denies: denies, held: map[string]string{}}
	for c := range m.All() {
		x.held[c.Ingress.String()] = c.Egress.String()
	}
	return x
}

func (x *matrix) serve(l *line) {
	for s := l.next(); s != ""; s = l.next() {
		head, rest, _ := strings.Cut(s, " ")
		switch head {
		case "*OPC?":
			l.send("1\r\n")
		case ":SYST:ERR?":
			reply := fine
			if len(x.errs) > 0 {
				reply, x.errs = x.errs[0]+"\r\n", x.errs[1:]
			}
			l.send(reply)
		default:
			verb := strings.TrimPrefix(head, ":OXC:SWIT:CONN:")
			x.commands = append(x.commands, verb+" "+rest)
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
	for i := range in {
		for a, b := range x.held {
			switch {
			case verb == "SUB" && a == in[i] && b == out[i]:
				delete(x.held, a)
			case verb == "SUB", (a == in[i]) == (b == out[i]): // another path, or the same
			case x.denies:
				x.errs = append(x.errs, `-221, "Settings conflict"`)
				return
			default:
				delete(x.held, a)
			}
		}
	}
	if verb == "ADD" {
		for i := range in {
			x.held[in[i]] = out[i]
		}
	}
}

func (x *matrix) holds(m ocs.Map) bool {
	for c := range m.All() {
		if x.held[c.Ingress.String()] != c.Egress.String() {
			return false
		}
	}
	return len(x.held) == m.Len()
}

// TestApply is what is sent for a change, whether the device takes over busy
// ports or not.
func TestApply(t *testing.T) {
	for _, tt := range []struct {
		name, from, to string
		maxPairs       int
		commands       []string
		denies         []string // if these differ
	}{
		{name: "nothing", from: "1>17", to: "1>17"},
		{name: "add", to: "1>17,2>18", commands: []string{"ADD (@1,2),(@17,18)"}},
		{name: "remove", from: "1>17,2>18,3>19", to: "2>18", commands: []string{"SUB (@1,3),(@17,19)"}},
		{name: "move", from: "1>17,2>18", to: "1>20,2>18", commands: []string{"ADD (@1),(@20)"},
			denies: []string{"ADD (@1),(@20)", "SUB (@1),(@17)", "ADD (@1),(@20)"}},
		{name: "swap", from: "1>17,2>18", to: "1>18,2>17", commands: []string{"ADD (@1,2),(@18,17)"},
			denies: []string{"ADD (@1,2),(@18,17)", "SUB (@1,2),(@17,18)", "ADD (@1,2),(@18,17)"}},
		{name: "mixed", from: "1>17,2>18,3>19", to: "1>18,4>20", commands: []string{"SUB (@3),(@19)", "ADD (@1,4),(@18,20)"},
			denies: []string{"SUB (@3),(@19)", "ADD (@1,4),(@18,20)", "SUB (@1,2),(@17,18)", "ADD (@1,4),(@18,20)"}},
		{name: "split", to: "1>17,2>18,3>19,4>20,5>21", maxPairs: 2,
			commands: []string{"ADD (@1,2),(@17,18)", "ADD (@3,4),(@19,20)", "ADD (@5),(@21)"}},
		{name: "split removal", from: "1>17,2>18,3>19", maxPairs: 2, commands: []string{"SUB (@1,2),(@17,18)", "SUB (@3),(@19)"}},
		{name: "split cycle", from: "1>17,2>18,3>19", to: "1>18,2>19,3>17", maxPairs: 1,
			commands: []string{"ADD (@1),(@18)", "ADD (@2),(@19)", "ADD (@3),(@17)"},
			denies: []string{"ADD (@1),(@18)", "SUB (@1),(@17)", "SUB (@2),(@18)", "SUB (@3),(@19)",
				"ADD (@1),(@18)", "ADD (@2),(@19)", "ADD (@3),(@17)"}},
		{name: "conflict in the second part", from: "2>18", to: "1>17,2>19", maxPairs: 1,
			commands: []string{"ADD (@1),(@17)", "ADD (@2),(@19)"},
			denies:   []string{"ADD (@1),(@17)", "ADD (@2),(@19)", "SUB (@2),(@18)", "ADD (@2),(@19)"}},
	} {
		for _, denies := range []bool{false, true} {
			name, want := tt.name, tt.commands
			if denies {
				name += ", device denies"
				if tt.denies != nil {
					want = tt.denies
				}
			}
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					from, to := mustMap(t, tt.from), mustMap(t, tt.to)
					x := newMatrix(from, denies)
					p := newPeer(t, x.serve)
					cfg := p.config()
					cfg.MaxPairs = tt.maxPairs
					sw, err := scpiswitch.Open(t.Context(), cfg)
					if err != nil {
						t.Fatal(err)
					}
					r, err := sw.Apply(t.Context(), ocs.Diff(from, to))
					if err != nil {
						t.Error(err)
					}
					sw.Close()
					p.finish()
					if !slices.Equal(x.commands, want) || r.Requests != len(want) {
						t.Errorf("got %q in %d requests, want %q", x.commands, r.Requests, want)
					}
					if !x.holds(to) {
						t.Errorf("holds %v, want %v", x.held, to)
					}
				})
			})
		}
	}
}

// A circuit of somebody else at a port from which ours is to be removed stays.
func TestRemoveNamesPairs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newMatrix(mustMap(t, "1>18"), false)
		p := newPeer(t, x.serve)
		sw, err := scpiswitch.Open(t.Context(), p.config())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := sw.Apply(t.Context(), ocs.Change{Remove: mustMap(t, "1>17")}); err != nil {
			t.Error(err)
		}
		sw.Close()
		p.finish()
		if !x.holds(mustMap(t, "1>18")) {
			t.Errorf("holds %v", x.held)
		}
	})
}

// That a device does not take over is remembered, and over sessions.
func TestDenialIsRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newMatrix(mustMap(t, "1>17"), true)
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
		a, b := mustMap(t, "1>17"), mustMap(t, "1>18")
		for _, c := range []ocs.Change{ocs.Diff(a, b), ocs.Diff(b, a)} {
			if _, err := sw.Apply(t.Context(), c); err != nil {
				t.Error(err)
			}
		}
		sw.Close()
		p.finish()
		want := []string{"ADD (@1),(@18)", "SUB (@1),(@17)", "ADD (@1),(@18)", "SUB (@1),(@18)", "ADD (@1),(@17)"}
		if !slices.Equal(x.commands, want) {
			t.Errorf("got %q, want %q", x.commands, want)
		}
	})
}

// one serves one command to its end.
func (x *matrix) one(l *line) {
	verb, lists, _ := strings.Cut(strings.TrimPrefix(l.next(), ":OXC:SWIT:CONN:"), " ")
	x.commands = append(x.commands, verb+" "+lists)
	x.carryOut(verb, lists)
	l.expect("*OPC?", ":SYST:ERR?")
	l.send("1\r\n")
	for ; len(x.errs) > 0; x.errs = x.errs[1:] {
		l.send(x.errs[0] + "\r\n")
		l.expect(":SYST:ERR?")
	}
	l.send(fine)
}

// A conflict that has nothing to do with what is replaced is an error, and
// nothing is learned from it.
func TestForeignConflict(t *testing.T) {
	for _, remove := range []string{"", "1>17"} {
		synctest.Test(t, func(t *testing.T) {
			x := newMatrix(mustMap(t, "5>18"), true)
			p := newPeer(t, x.serve)
			sw, err := scpiswitch.Open(t.Context(), p.config())
			if err != nil {
				t.Fatal(err)
			}
			c := ocs.Change{Remove: mustMap(t, remove), Add: mustMap(t, "1>18")}
			if _, err := sw.Apply(t.Context(), c); !errors.Is(err, ocs.ErrConflict) {
				t.Errorf("got %v", err)
			}
			sw.Close()
			p.finish()
			if !x.holds(mustMap(t, "5>18")) {
				t.Errorf("holds %v", x.held)
			}
		})
	}
}

// Each step of a change may fail; the receipt says how many requests there were.
func TestApplyFails(t *testing.T) {
	c := ocs.Change{Remove: mustMap(t, "1>17,9>25"), Add: mustMap(t, "1>18")}
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
func TestApplyProperty(t *testing.T) {
	const n = 8
	for _, denies := range []bool{false, true} {
		rapid.Check(t, func(rt *rapid.T) {
			all := rapid.SliceOfN(matchings(n), 2, 4).Draw(rt, "maps")
			pairs := rapid.IntRange(0, n).Draw(rt, "MaxPairs")
			x := newMatrix(all[0], denies)
			p := newPeer(t, x.serve)
			cfg := p.config()
			cfg.MaxPairs = pairs
			sw, err := scpiswitch.Open(t.Context(), cfg)
			if err != nil {
				rt.Fatal(err)
			}
			for i, to := range all[1:] {
				c := ocs.Diff(all[i], to)
				x.commands = nil
				if _, err := sw.Apply(t.Context(), c); err != nil {
					rt.Fatal(err)
				}
				if !x.holds(to) {
					rt.Fatalf("%v: holds %v", c, x.held)
				}
				if pairs == 0 && !denies && len(x.commands) > 2 {
					rt.Fatalf("%v took %q", c, x.commands)
				}
			}
			sw.Close()
			p.finish()
		})
	}
}

// matchings are maps of an n x n switch.
func matchings(n int) *rapid.Generator[ocs.Map] {
	egresses := make([]ocs.Port, n)
	for i := range egresses {
		egresses[i] = ocs.Port(n + 1 + i)
	}
	return rapid.Custom(func(t *rapid.T) ocs.Map {
		var ccs []ocs.CrossConnect
		for i, p := range rapid.Permutation(egresses).Draw(t, "egress") {
			if rapid.Bool().Draw(t, "used") {
				ccs = append(ccs, ocs.CrossConnect{Ingress: ocs.Port(i + 1), Egress: p})
			}
		}
		return ocs.MustMap(ccs...)
	})
}
