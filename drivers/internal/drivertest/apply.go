package drivertest

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/ocs"
)

// Matrix is a device that holds cross-connects and takes over busy ports, or
// does not.
type Matrix struct {
	Denies   bool
	Held     map[string]string // egress by ingress
	Commands []string          // that have come to change it, as its server writes them
}

// NewMatrix returns a matrix that holds m.
func NewMatrix(m ocs.Map, denies bool) *Matrix {
	x := &Matrix{Denies: denies, Held: map[string]string{}}
	for c := range m.All() {
		x.Held[c.Ingress.String()] = c.Egress.String()
	}
	return x
}

// Connect connects in pairs. When a port is busy and the matrix denies that, it
// does nothing and returns who holds the port, as "1,17".
func (x *Matrix) Connect(in, out []string) (busy string) {
	for i := range in {
		for a, b := range x.Held {
			if (a == in[i]) == (b == out[i]) { // another path, or the same
				continue
			}
			if x.Denies {
				return a + "," + b
			}
			delete(x.Held, a)
		}
	}
	for i := range in {
		x.Held[in[i]] = out[i]
	}
	return ""
}

// Holds reports whether the matrix holds m and nothing else.
func (x *Matrix) Holds(m ocs.Map) bool {
	for c := range m.All() {
		if x.Held[c.Ingress.String()] != c.Egress.String() {
			return false
		}
	}
	return len(x.Held) == m.Len()
}

// OpenMatrix serves a matrix and opens a Switch on it, which sends maxPairs in a
// command, or what it likes if that is 0. Finish closes the Switch and waits for
// the server.
type OpenMatrix func(t testing.TB, x *Matrix, maxPairs int) (sw ocs.Switch, finish func())

// On runs f with a matrix and a Switch on it, and returns the matrix.
func (open OpenMatrix) On(t *testing.T, holds ocs.Map, denies bool, maxPairs int, f func(*testing.T, ocs.Switch)) *Matrix {
	t.Helper()
	x := NewMatrix(holds, denies)
	synctest.Test(t, func(t *testing.T) {
		sw, finish := open(t, x, maxPairs)
		f(t, sw)
		finish()
	})
	return x
}

// A Sending is what is sent for a change.
type Sending struct {
	Name, From, To string
	MaxPairs       int
	Commands       []string
	Denies         []string // to a device that denies busy ports, if these differ
}

// Sends has a Switch make changes, on a device that takes over busy ports and on
// one that denies them.
func (open OpenMatrix) Sends(t *testing.T, sendings []Sending) {
	for _, s := range sendings {
		for _, denies := range []bool{false, true} {
			name, want := s.Name, s.Commands
			if denies {
				name += ", device denies"
				if s.Denies != nil {
					want = s.Denies
				}
			}
			t.Run(name, func(t *testing.T) {
				from, to := Map(t, s.From), Map(t, s.To)
				requests := 0
				x := open.On(t, from, denies, s.MaxPairs, func(t *testing.T, sw ocs.Switch) {
					r, err := sw.Apply(t.Context(), ocs.Diff(from, to))
					if err != nil {
						t.Error(err)
					}
					requests = r.Requests
				})
				if !slices.Equal(x.Commands, want) || requests != len(want) {
					t.Errorf("got %q in %d requests, want %q", x.Commands, requests, want)
				}
				if !x.Holds(to) {
					t.Errorf("holds %v, want %v", x.Held, to)
				}
			})
		}
	}
}

// ForeignConflict checks that a conflict that has nothing to do with what is
// replaced is an error, and changes nothing.
func (open OpenMatrix) ForeignConflict(t *testing.T) {
	for _, remove := range []string{"", "1>17"} {
		held := Map(t, "5>18")
		x := open.On(t, held, true, 0, func(t *testing.T, sw ocs.Switch) {
			c := ocs.Change{Remove: Map(t, remove), Add: Map(t, "1>18")}
			if _, err := sw.Apply(t.Context(), c); !errors.Is(err, ocs.ErrConflict) {
				t.Errorf("got %v", err)
			}
		})
		if !x.Holds(held) {
			t.Errorf("holds %v", x.Held)
		}
	}
}

// Ready checks that a change of several requests asks once, before the first, and sends nothing
// when it is told not to.
func (open OpenMatrix) Ready(t *testing.T) {
	from, to := Map(t, "1>17,2>18,3>19"), Map(t, "1>18,2>17,4>20")
	for _, answer := range []error{nil, ErrEnough} {
		asked := 0
		x := open.On(t, from, true, 1, func(t *testing.T, sw ocs.Switch) {
			ctx := ocs.WithReady(t.Context(), func(context.Context) error { asked++; return answer })
			if _, err := sw.Apply(ctx, ocs.Diff(from, to)); !errors.Is(err, answer) {
				t.Errorf("got %v, want %v", err, answer)
			}
		})
		want := to
		if answer != nil {
			want = from
		}
		if asked != 1 || !x.Holds(want) || answer != nil && len(x.Commands) > 0 {
			t.Errorf("%v: asked %d times, sent %q, holds %v", answer, asked, x.Commands, x.Held)
		}
	}
}

// Property checks that after Apply of Diff(a, b) a device that held a holds b.
func (open OpenMatrix) Property(t *testing.T) {
	const n = 8
	for _, denies := range []bool{false, true} {
		rapid.Check(t, func(rt *rapid.T) {
			all := rapid.SliceOfN(Matchings(n), 2, 4).Draw(rt, "maps")
			pairs := rapid.IntRange(0, n).Draw(rt, "MaxPairs")
			x := NewMatrix(all[0], denies)
			sw, finish := open(t, x, pairs)
			for i, to := range all[1:] {
				c := ocs.Diff(all[i], to)
				x.Commands = nil
				if _, err := sw.Apply(t.Context(), c); err != nil {
					rt.Fatal(err)
				}
				if !x.Holds(to) {
					rt.Fatalf("%v: holds %v", c, x.Held)
				}
				if pairs == 0 && !denies && len(x.Commands) > 2 {
					rt.Fatalf("%v took %q", c, x.Commands)
				}
			}
			finish()
		})
	}
}

// Device is what holds the cross-connects in truth, as an emulated one.
type Device interface {
	CrossConnects() ocs.Map
}

// Property checks that after Apply of Diff(a, b) the device holds b, and that the
// Switch says so. It starts from what the device holds; no change may take more
// requests than most.
func Property(t *testing.T, sw ocs.Switch, dev Device, maps *rapid.Generator[ocs.Map], most int) {
	t.Helper()
	have := dev.CrossConnects()
	rapid.Check(t, func(rt *rapid.T) {
		want := maps.Draw(rt, "map")
		change := ocs.Diff(have, want)
		r, err := sw.Apply(t.Context(), change)
		have = dev.CrossConnects()
		if err != nil || r.Requests > most || r.Requests == 0 != change.Empty() {
			rt.Fatalf("got %d requests, %v", r.Requests, err)
		}
		if !have.Equal(want) {
			rt.Fatalf("the device holds %v, want %v", have, want)
		}
		if said, err := sw.CrossConnects(t.Context()); err != nil || !said.Equal(want) {
			rt.Fatalf("the device says %v, %v, want %v", said, err, want)
		}
	})
}

// Matchings are maps of an n x n switch.
func Matchings(n int) *rapid.Generator[ocs.Map] {
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
