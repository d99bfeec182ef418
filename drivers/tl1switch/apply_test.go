package tl1switch_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/drivers/tl1switch"
	"github.com/ocslab/ocslab/ocs"
)

// matrix is a device that holds cross-connects and takes over busy ports, or
// does not. It keeps the commands that change it.
type matrix struct {
	denies   bool
	held     map[string]string // egress by ingress
	commands []string
}

func newMatrix(m ocs.Map, denies bool) *matrix {
	x := &matrix{denies: denies, held: map[string]string{}}
	for c := range m.All() {
		x.held[c.Ingress.String()] = c.Egress.String()
	}
	return x
}

func (x *matrix) serve(l *line) {
	for command := l.next(); command != ""; command = l.next() {
		f := strings.Split(command, ":")
		if !strings.HasSuffix(f[0], "-PATCH") {
			l.send(completed(f[3]))
			continue
		}
		x.commands = append(x.commands, f[0]+" "+f[2])
		l.send(x.reply(f))
	}
}

func (x *matrix) reply(f []string) string {
	if f[0] == "DLT-PATCH" {
		for p := range strings.SplitSeq(f[2], "&") {
			delete(x.held, p)
		}
		return completed(f[3])
	}
	ins, outs, _ := strings.Cut(f[2], ",")
	in, out := strings.Split(ins, "&"), strings.Split(outs, "&")
	for i := range in {
		for a, b := range x.held {
			if (a == in[i]) == (b == out[i]) { // another path, or the same
				continue
			}
			if x.denies {
				return denied(f[3], "SROF", "Port is in use by "+a+","+b)
			}
			delete(x.held, a)
		}
	}
	for i := range in {
		x.held[in[i]] = out[i]
	}
	return completed(f[3])
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
		{name: "add", to: "1>17,2>18", commands: []string{"ENT-PATCH 1&2,17&18"}},
		{name: "remove", from: "1>17,2>18,3>19", to: "2>18", commands: []string{"DLT-PATCH 1&3"}},
		{name: "move", from: "1>17,2>18", to: "1>20,2>18", commands: []string{"ENT-PATCH 1,20"},
			denies: []string{"ENT-PATCH 1,20", "DLT-PATCH 1", "ENT-PATCH 1,20"}},
		{name: "swap", from: "1>17,2>18", to: "1>18,2>17", commands: []string{"ENT-PATCH 1&2,18&17"},
			denies: []string{"ENT-PATCH 1&2,18&17", "DLT-PATCH 1&2", "ENT-PATCH 1&2,18&17"}},
		{name: "mixed", from: "1>17,2>18,3>19", to: "1>18,4>20", commands: []string{"DLT-PATCH 3", "ENT-PATCH 1&4,18&20"},
			denies: []string{"DLT-PATCH 3", "ENT-PATCH 1&4,18&20", "DLT-PATCH 1&2", "ENT-PATCH 1&4,18&20"}},
		{name: "split", to: "1>17,2>18,3>19,4>20,5>21", maxPairs: 2,
			commands: []string{"ENT-PATCH 1&2,17&18", "ENT-PATCH 3&4,19&20", "ENT-PATCH 5,21"}},
		{name: "split cycle", from: "1>17,2>18,3>19", to: "1>18,2>19,3>17", maxPairs: 1,
			commands: []string{"ENT-PATCH 1,18", "ENT-PATCH 2,19", "ENT-PATCH 3,17"},
			denies:   []string{"ENT-PATCH 1,18", "DLT-PATCH 1&2&3", "ENT-PATCH 1,18", "ENT-PATCH 2,19", "ENT-PATCH 3,17"}},
		{name: "conflict in the second part", from: "2>18", to: "1>17,2>19", maxPairs: 1,
			commands: []string{"ENT-PATCH 1,17", "ENT-PATCH 2,19"},
			denies:   []string{"ENT-PATCH 1,17", "ENT-PATCH 2,19", "DLT-PATCH 2", "ENT-PATCH 2,19"}},
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
					sw, err := tl1switch.Open(t.Context(), cfg)
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

// That a device does not take over is remembered, and over sessions.
func TestDenialIsRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newMatrix(mustMap(t, "1>17"), true)
		p := newPeer(t, func(l *line) {
			x.serve(l)
		})
		sw := p.open()
		a, b := mustMap(t, "1>17"), mustMap(t, "1>18")
		for _, c := range []ocs.Change{ocs.Diff(a, b), ocs.Diff(b, a)} {
			if _, err := sw.Apply(t.Context(), c); err != nil {
				t.Error(err)
			}
		}
		sw.Close()
		p.finish()
		want := []string{"ENT-PATCH 1,18", "DLT-PATCH 1", "ENT-PATCH 1,18", "DLT-PATCH 1", "ENT-PATCH 1,17"}
		if !slices.Equal(x.commands, want) {
			t.Errorf("got %q, want %q", x.commands, want)
		}
	})
}

// A conflict that has nothing to do with what is replaced is an error, and
// nothing is learned from it.
func TestForeignConflict(t *testing.T) {
	for _, remove := range []string{"", "1>17"} {
		synctest.Test(t, func(t *testing.T) {
			x := newMatrix(mustMap(t, "5>18"), true)
			p := newPeer(t, x.serve)
			sw := p.open()
			c := ocs.Change{Remove: mustMap(t, remove), Add: mustMap(t, "1>18")}
			_, err := sw.Apply(t.Context(), c)
			if !errors.Is(err, ocs.ErrConflict) {
				t.Errorf("got %v", err)
			}
			sw.Close()
			p.finish()
		})
	}
}

// Each step of a change may fail; the receipt says how many requests there were.
func TestApplyFails(t *testing.T) {
	c := ocs.Change{Remove: mustMap(t, "1>17,9>25"), Add: mustMap(t, "1>18")}
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
					l.send(denied(tag(s), "SROF", "no"))
				case i == 1:
					l.send(denied(tag(s), "IDNC", "Port 1 is in use by 1,17"))
				default:
					l.send(completed(tag(s)))
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
			sw, err := tl1switch.Open(t.Context(), cfg)
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
