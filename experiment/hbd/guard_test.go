package hbd

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ocslab/ocslab/experiment/runs"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/lab/history"
	"github.com/ocslab/ocslab/lab/panics"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/timeline"
	"github.com/ocslab/ocslab/topology/infinitehbd"
)

// Ensure a change that is refused, as by a panic that comes while a bypass watches, and one of a protected port leave all
// that was to switch with it as it was, and that the history has all of it as failed.
func TestDomain_Bring_Refused(t *testing.T) {
	line := lineOf(t, 4, 2)
	darken := func(t *testing.T, d *Domain, name string) {
		t.Helper()
		device, err := d.lab.Device(name)
		if err != nil {
			t.Error(err)
		}
		authority(d).Panic(device, 9)
	}
	for _, tt := range []struct {
		name  string
		begin func(*testing.T, *Domain)
		edit  func(string) string
		want  error
	}{
		{"a panic", func(t *testing.T, d *Domain) { darken(t, d, "n02-l") }, nil, panics.ErrInForce},
		{"a panic that comes meanwhile", func(t *testing.T, d *Domain) {
			authority(d).Begun = func(all []history.Entry) error {
				if slices.ContainsFunc(all, func(e history.Entry) bool { return e.Switch == "n02-l" }) {
					darken(t, d, "n02-l")
				}
				return nil
			}
		}, nil, panics.ErrInForce},
		{"a protected port", nil, func(s string) string {
			return s + "protect: [n02-l/9]\n"
		}, ocs.ErrInterlock},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := openLab(t, line, tt.edit)
			if tt.begin != nil {
				tt.begin(t, d)
			}
			before, err := d.States(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			r, err := d.Bring(t.Context(), nil, build(t, line, nil, infinitehbd.Group{1, 2}), Options{})
			if !errors.Is(err, tt.want) || errors.Is(err, ocs.ErrPartner) {
				t.Errorf("%v, want %v", err, tt.want)
			}
			after, err := d.States(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, x := range infinitehbd.Diff(before, after) {
				if x.Node <= 2 {
					t.Errorf("switched: %+v", x)
				}
			}
			if r.Bundles != 4 { // nodes 3 and 4 are no partners
				t.Errorf("%d bundles were switched, want 4", r.Bundles)
			}
			failed := 0
			for _, e := range authority(d).Recorded(t) {
				switch e.Switch {
				case "n01-l", "n01-r", "n02-l", "n02-r":
					failed++
					if e.State != history.Failed || !strings.Contains(e.Error, tt.want.Error()) {
						t.Errorf("history: %+v", e)
					}
				default:
					if e.State != history.Done {
						t.Errorf("history: %+v", e)
					}
				}
			}
			if failed != 4 {
				t.Errorf("the history has %d changes of nodes 1 and 2, want 4", failed)
			}
		})
	}
	t.Run("a panic while a bypass watches", func(t *testing.T) {
		d := openLab(t, line, nil)
		plan := build(t, line, nil, infinitehbd.Group{1, 2, 3})
		if _, err := d.Bring(t.Context(), nil, plan, Options{}); err != nil {
			t.Fatal(err)
		}
		b, err := d.Bypass(t.Context(), plan, BypassOptions{Fail: func(ctx context.Context) error {
			darken(t, d, "n01-r")
			return d.SetPower(ctx, 2, false)
		}})
		if !errors.Is(err, panics.ErrInForce) || b.Report == nil || b.Report.Bundles != 0 {
			t.Errorf("%+v, %v", b.Report, err)
		}
	})
}

// Ensure light that is of no plan is not taken but with Update, be it known before or found on the way, and that nothing is
// sent then; a loop is nobody's.
func TestDomain_Bring_Safe(t *testing.T) {
	line := lineOf(t, 4, 2)
	d := openLab(t, line, nil)
	one, two := build(t, line, nil, infinitehbd.Group{1, 2}), build(t, line, nil, infinitehbd.Group{2, 3})
	if _, err := d.Bring(t.Context(), nil, one, Options{}); err != nil {
		t.Fatal(err)
	}
	r, err := d.Bring(t.Context(), nil, two, Options{})
	if !errors.Is(err, ocs.ErrConflict) || !strings.Contains(err.Error(), "n01-r") || r != nil {
		t.Errorf("light of nobody's: %v", err)
	}
	idle := build(t, line, nil)
	r, err = d.Bring(t.Context(), idle, build(t, line, nil, infinitehbd.Group{1, 3}), Options{Patience: time.Millisecond})
	if !errors.Is(err, ocs.ErrConflict) || r.Bundles != 0 {
		t.Errorf("light of nobody's on the way: %+v, %v", r, err)
	}
	if _, err := d.Bring(t.Context(), nil, two, Options{Ours: []*infinitehbd.Plan{one}}); err != nil {
		t.Errorf("light of ours: %v", err)
	}
	if _, err := d.Bring(t.Context(), nil, one, Options{Mode: ocs.Update}); err != nil {
		t.Errorf("update: %v", err)
	}
}

// Ensure a cable that is cut is found as such, and named.
func TestDomain_Detect_CableDead(t *testing.T) {
	line := lineOf(t, 4, 2)
	d := openLab(t, line, nil)
	plan := build(t, line, nil, infinitehbd.Group{1, 2})
	if _, err := d.Bring(t.Context(), nil, plan, Options{}); err != nil {
		t.Fatal(err)
	}
	b, err := d.Bypass(t.Context(), plan, BypassOptions{Fail: func(context.Context) error {
		return d.lab.CutCable(lab.FibreRef{Switch: "n02-l", Fibre: 1})
	}})
	if !errors.Is(err, ErrNoBypass) || b.Failure == nil || b.Failure.Kind != CableDead || len(b.Failure.Witnesses) != 2 ||
		!strings.Contains(b.Failure.Text, "n01-r/1 - n02-l/1") {
		t.Errorf("%+v, %v", b.Failure, err)
	}
	if err := d.lab.CutCable(lab.FibreRef{Switch: "n02-l", Fibre: 1}); !errors.Is(err, lab.ErrUnknown) {
		t.Errorf("cut again: %v", err)
	}
}

// Ensure what is measured holds what is true, by the emulated modules' own account: when they began to switch, let their
// light out and locked, and when the neighbour of a node that died lost its light.
func TestDomain_Truth(t *testing.T) {
	line := lineOf(t, 4, 3)
	d := openLab(t, line, nil)
	plan := build(t, line, nil, infinitehbd.Group{1, 2, 3})
	check := func(r *Report) {
		t.Helper()
		for _, m := range r.Modules {
			sw, err := d.lab.Switch(t.Context(), d.Name(m.Ref))
			if err != nil {
				t.Fatal(err)
			}
			truth, ok := sw.Emulated.Board.Modules()[m.Module-1].Moments()
			if !ok {
				t.Fatal("the module does not live in the machine's time")
			}
			var locked time.Time
			for _, at := range truth.Locked {
				if at.After(locked) {
					locked = at
				}
			}
			holds(t, d.Name(m.Ref)+" began", m.Busy, truth.Began)
			holds(t, d.Name(m.Ref)+" settled", m.Settled, truth.Ended)
			if m.To != infinitehbd.Dark {
				holds(t, d.Name(m.Ref)+" locked", m.Locked, locked)
			}
		}
	}
	r, err := d.Bring(t.Context(), nil, plan, Options{})
	if err != nil {
		t.Fatal(err)
	}
	check(r)
	var killed error
	f, err := d.Detect(t.Context(), DetectOptions{Began: func() { killed = d.SetPower(t.Context(), 2, false) }})
	if err := errors.Join(err, killed); err != nil {
		t.Fatal(err)
	}
	var lost time.Time
	for _, w := range f.Witnesses {
		sw, err := d.lab.Switch(t.Context(), d.Name(Ref{w.Node, w.Bundle}))
		if err != nil {
			t.Fatal(err)
		}
		truth, _ := sw.Emulated.Board.Modules()[0].Moments()
		for _, at := range truth.Lost {
			if lost.IsZero() || at.Before(lost) {
				lost = at
			}
		}
	}
	holds(t, "dark", f.Dark, lost)
	if err := d.SetPower(t.Context(), 2, true); err != nil {
		t.Fatal(err)
	}
	if r, err = d.Bring(t.Context(), nil, plan, Options{Mode: ocs.Update}); err != nil {
		t.Fatal(err)
	}
	check(r)
}

// holds is an error unless an interval holds the truth, which is known to 1 µs.
func holds(t *testing.T, what string, i timeline.Interval, truth time.Time) {
	t.Helper()
	ns := timeline.HostAxis().NS(truth)
	if slack := int64(time.Microsecond); truth.IsZero() || ns < i.Earliest-slack || ns > i.Latest+slack {
		t.Errorf("%s: measured %v, and truly %d", what, i, ns)
	}
}

// Ensure a check of cables lights nothing if a port is protected that it would need, in whichever bundle; the loops, which
// it does not take, may be.
func TestDomain_CheckCables_Protected(t *testing.T) {
	for _, tt := range []struct {
		port string
		want error
	}{
		{"n04-r/1", ocs.ErrInterlock}, {"n04-r/9", ocs.ErrInterlock}, {"n04-r/24", ocs.ErrInterlock}, {"n04-r/25", nil},
	} {
		t.Run(tt.port, func(t *testing.T) {
			d := openLab(t, lineOf(t, 4, 2), func(s string) string { return s + "protect: [" + tt.port + "]\n" })
			lit := 0
			tripAt(t, d, "n01-r", func(c ocs.Change) error {
				lit += c.Add.Len()
				return nil
			})
			_, err := d.CheckCables(t.Context())
			if !errors.Is(err, tt.want) || tt.want != nil && !strings.Contains(err.Error(), "n04-r") {
				t.Errorf("%v, want %v", err, tt.want)
			}
			if tt.want != nil && lit > 0 {
				t.Errorf("%d lanes of another bundle were lit", lit)
			}
		})
	}
}

// Ensure a check of cables that fails when there is light already takes that away again, also when nobody waits any more.
func TestDomain_CheckCables_Dark(t *testing.T) {
	errLeased := errors.New("somebody took a lease")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for _, tt := range []struct {
		name string
		ctx  context.Context
		trip func() error
		want error
	}{
		{"a refusal", t.Context(), func() error { return errLeased }, errLeased},
		{"nobody waits", ctx, func() error { cancel(); return nil }, context.Canceled},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := openLab(t, lineOf(t, 4, 2), nil)
			rounds, lit := 0, 0
			tripAt(t, d, "n02-l", func(c ocs.Change) error {
				if c.Add.Len() == 0 {
					return nil
				}
				if rounds++; rounds != 3 {
					return nil
				}
				lit = 4*2*lanes - darkLanes(t, d)
				return tt.trip()
			})
			if _, err := d.CheckCables(tt.ctx); !errors.Is(err, tt.want) {
				t.Errorf("%v, want %v", err, tt.want)
			}
			if lit == 0 {
				t.Error("it failed before there was light")
			}
			if n := darkLanes(t, d); n != 4*2*lanes {
				t.Errorf("%d lanes are dark, want %d", n, 4*2*lanes)
			}
		})
	}
}

// darkLanes counts the lanes of all bundles that are on no path.
func darkLanes(t *testing.T, d *Domain) (n int) {
	t.Helper()
	looks, err := d.lookAll(t.Context(), d.refs(), 0)
	if err != nil {
		t.Error(err) // it may be called by another goroutine
	}
	for _, l := range looks {
		for m := range l.modules {
			for lane := range lanes {
				if s, err := l.laneState(m, lane); err == nil && s == infinitehbd.Dark {
					n++
				}
			}
		}
	}
	return n
}

// tripAt has every change of a switch asked for first.
func tripAt(t *testing.T, d *Domain, name string, ask func(ocs.Change) error) {
	t.Helper()
	sw, err := d.lab.Switch(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	sw.Switch = &tripped{sw.Switch, ask}
}

type tripped struct {
	ocs.Switch
	ask func(ocs.Change) error
}

func (s *tripped) Unwrap() ocs.Switch { return s.Switch }

func (s *tripped) Apply(ctx context.Context, c ocs.Change) (ocs.Receipt, error) {
	if err := s.ask(c); err != nil {
		return ocs.Receipt{}, err
	}
	return s.Switch.Apply(ctx, c)
}

// Ensure a run that begins in the dark is kept, and what is so already is brought about without one.
func TestDomain_Bring_Already(t *testing.T) {
	line := lineOf(t, 4, 2)
	d := openLab(t, line, nil)
	plan := build(t, line, nil, infinitehbd.Group{1, 2})
	store, err := runs.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for i, kept := range []bool{true, false} {
		r, err := d.Bring(t.Context(), nil, plan, Options{Store: store})
		if err != nil || (r.Run != "") != kept {
			t.Errorf("time %d: run %q, %v", i+1, r.Run, err)
		}
		for _, m := range r.Modules {
			if m.Switch != d.Name(m.Ref) {
				t.Errorf("module of %s: switch %q", d.Name(m.Ref), m.Switch)
			}
		}
	}
}
