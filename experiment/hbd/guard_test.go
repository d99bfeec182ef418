package hbd

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/ocslab/ocslab/experiment/runs"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/lab/history"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/timeline"
	"github.com/ocslab/ocslab/topology/infinitehbd"
)

// Ensure a change that is refused, as by a panic that comes while a bypass watches, and one of a protected port leave all
// that was to switch with it as it was, and that the history has nothing of the former.
func TestDomain_Bring_Refused(t *testing.T) {
	line := lineOf(t, 4, 2)
	errPanic := errors.New("a panic is in force")
	for _, tt := range []struct {
		name   string
		refuse func(sw *lab.Opened, c ocs.Change) error
		edit   func(string) string
		want   error
	}{
		{"a panic", func(sw *lab.Opened, c ocs.Change) error {
			if sw.Name == "n02-l" && c.Add.Len() > 0 {
				return errPanic
			}
			return nil
		}, nil, errPanic},
		{"a protected port", nil, func(s string) string {
			return s + "protect: [n02-l/9]\n"
		}, ocs.ErrInterlock},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := openLab(t, line, tt.edit)
			log, err := history.Open(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			before, err := d.States(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			r, err := d.Bring(t.Context(), nil, build(t, line, nil, infinitehbd.Group{1, 2}), Options{Refuse: tt.refuse, History: log})
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
			entries, _, err := log.Entries()
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range entries {
				if e.State == history.Pending || tt.refuse != nil && e.Switch == "n02-l" {
					t.Errorf("history: %+v", e)
				}
			}
		})
	}
	t.Run("a panic while a bypass watches", func(t *testing.T) {
		d := openLab(t, line, nil)
		plan := build(t, line, nil, infinitehbd.Group{1, 2, 3})
		if _, err := d.Bring(t.Context(), nil, plan, Options{}); err != nil {
			t.Fatal(err)
		}
		panicking := false
		b, err := d.Bypass(t.Context(), plan, BypassOptions{
			Options: Options{Refuse: func(*lab.Opened, ocs.Change) error {
				if panicking {
					return errPanic
				}
				return nil
			}},
			Fail: func(ctx context.Context) error { panicking = true; return d.SetPower(ctx, 2, false) },
		})
		if !errors.Is(err, errPanic) || b.Report == nil || b.Report.Bundles != 0 {
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

// Ensure a check of cables that fails half-way leaves no light of its own.
func TestDomain_CheckCables_Dark(t *testing.T) {
	d := openLab(t, lineOf(t, 4, 2), func(s string) string { return s + "protect: [n02-l/9]\n" })
	if _, err := d.CheckCables(t.Context()); !errors.Is(err, ocs.ErrInterlock) {
		t.Errorf("%v, want %v", err, ocs.ErrInterlock)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := d.CheckCables(ctx); err == nil {
		t.Error("a check that has no time succeeds")
	}
	p, err := d.States(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if dark := p.Dead(); len(dark) != 4 {
		t.Errorf("only nodes %v are dark", dark)
	}
}

// Ensure what is so already is brought about without a run.
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
	}
}
