package mzi_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/ocslab/ocslab/calibration/mzi"
	"github.com/ocslab/ocslab/emulator/ocstrx"
	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// Ensure that what is broken in a module is named with its element, and that what does not
// depend on it is calibrated all the same.
func TestSweep_faults(t *testing.T) {
	t.Parallel()
	for fault, tt := range map[string]struct {
		element ocst.Element
		problem string // part of it
		fine    []ocst.Element
	}{
		"heater-open:3.a":          {ocst.S1(2), "heater of arm A is open", []ocst.Element{ocst.S1(0), ocst.S2(1)}},
		"heater-short:12.b":        {ocst.S2(3), "heater of arm B is short", []ocst.Element{ocst.S1(3), ocst.S2(1)}},
		"heater-open:17":           {ocst.Loop(0, 0), "is open", []ocst.Element{ocst.S1(0), ocst.S2(0)}},
		"stuck-pd:out1:2":          {ocst.S1(1), "towards fibre 1 of lane 2 always reads the same", []ocst.Element{ocst.S1(0), ocst.S2(0)}},
		"stuck-pd:loop:4":          {ocst.S1(3), "into the loop of lane 4 always reads the same", []ocst.Element{ocst.S1(0)}},
		"swapped-taps:out1:3:5":    {ocst.S2(2), "taps are swapped", []ocst.Element{ocst.S1(0), ocst.S2(7)}},
		"swapped-taps:rx-loop:1:4": {ocst.Loop(4, 0), "receivers are swapped", []ocst.Element{ocst.S1(0)}},
		"laser-low":                {ocst.Loop(0, 0), "", []ocst.Element{ocst.S1(0), ocst.S2(0)}},
	} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			b := newRig(5)
			f, err := ocstrx.ParseDeviceFault(fault)
			if err != nil {
				t.Fatal(err)
			}
			s, err := mzi.Begin(t.Context(), b.cfg)
			if err != nil {
				t.Fatal(err)
			}
			b.module.Inject(f)
			c, err := s.Sweep(t.Context(), mzi.SweepScope{Soak: -1})
			if err != nil {
				t.Fatal(err)
			}
			got := c.Fits[tt.element].Problem
			if !strings.Contains(got, tt.problem) || (got == "") != (tt.problem == "") {
				t.Errorf("%v: problem is %q, want one with %q", tt.element, got, tt.problem)
			}
			if err := c.Err(); (err == nil) != (tt.problem == "") {
				t.Errorf("all in all: %v", err)
			}
			for _, e := range tt.fine {
				if p := c.Fits[e].Problem; p != "" {
					t.Errorf("%v is broken too: %s", e, p)
				}
			}
			if err := s.End(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// Ensure that a step of the laser's power in the middle of a sweep does no harm.
func TestSweep_laserStep(t *testing.T) {
	t.Parallel()
	b := newRig(6)
	b.cfg.Progress = func(p mzi.Progress) {
		// After S1 of lane 1, so in the middle of the sweep of its S2.
		if p.Step == "sweep" && p.Done == 1 {
			left := 30
			b.later = func() {
				if left--; left == 0 {
					b.module.Inject(ocstrx.DeviceFault{Kind: ocstrx.LaserStep})
				}
			}
		}
	}
	_, c := b.sweep(t, mzi.SweepScope{Lanes: 1, NoLoop: true, Soak: -1})
	if err := c.Err(); err != nil {
		t.Error(err)
	}
	f := c.Fits[ocst.S2(0)]
	if f.Residual > 2e-3 || f.Fit.BarER < 15 {
		t.Errorf("residual %.2g, extinction ratio %.1f dB", f.Residual, f.Fit.BarER)
	}
}

// Ensure that a weak heater whose states are out of reach is named, and that one whose
// states are not, is not.
func TestSweep_weak(t *testing.T) {
	t.Parallel()
	for lane := range ocst.Lanes {
		b := newRig(8)
		b.module.Inject(ocstrx.DeviceFault{Kind: ocstrx.WeakHeater, Element: ocst.S1(lane)})
		_, c := b.sweep(t, mzi.SweepScope{Lanes: 1 << lane, NoLoop: true, Soak: -1})
		f := c.Fits[ocst.S1(lane)]
		reach := min(f.Fit.A.Phase(ocst.DACFull), f.Fit.B.Phase(ocst.DACFull))
		if reach > 2.6 {
			t.Errorf("lane %d: the weak heater gives %.2f rad", lane+1, reach)
		}
		_, bar := mzi.DriveFor(f.Fit, 0, false)
		_, cross := mzi.DriveFor(f.Fit, 0, true)
		if named := strings.Contains(f.Problem, "beyond the range"); named != (bar != nil || cross != nil) {
			t.Errorf("lane %d: problem is %q; bar: %v, cross: %v", lane+1, f.Problem, bar, cross)
		}
	}
}

// Ensure that a module which vanishes, at whatever request, ends the sweep with its error,
// and that it can be ended and calibrated once it is back.
func TestSweep_vanishing(t *testing.T) {
	t.Parallel()
	scope := mzi.SweepScope{Lanes: 1, NoLoop: true, Soak: -1}
	for _, at := range []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 20, 50, 100, 200, 400, 700} {
		b := newRig(9)
		m := &goneAfter{Memory: b.module, left: at}
		b.cfg.Memory = m
		s, err := mzi.Begin(t.Context(), b.cfg)
		if err == nil {
			if _, err = s.Sweep(t.Context(), scope); err == nil {
				t.Errorf("after %d requests: no error", at)
			}
			m.left = 1 << 30
			if err := s.End(t.Context()); err != nil {
				t.Errorf("after %d requests: %v", at, err)
			}
			if err := s.End(t.Context()); err != nil {
				t.Errorf("a second end: %v", err)
			}
		}
		if !strings.Contains(err.Error(), errSilent.Error()) {
			t.Errorf("after %d requests: %v", at, err)
		}
		m.left = 1 << 30
		b.clock.Advance(ocst.CalTimeout + time.Second) // if it is still in State Cal
		s, err = mzi.Begin(t.Context(), b.cfg)
		if err != nil {
			t.Fatalf("after %d requests, once it is back: %v", at, err)
		}
		_ = s.End(t.Context())
	}
}

// Ensure that a sweep ends when its context does, and the module can still be ended.
func TestSweep_cancelled(t *testing.T) {
	t.Parallel()
	b := newRig(10)
	ctx, cancel := context.WithCancel(t.Context())
	b.cfg.Progress = func(p mzi.Progress) {
		if p.Step == "sweep" {
			cancel()
		}
	}
	s, err := mzi.Begin(ctx, b.cfg)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Sweep(ctx, mzi.SweepScope{Soak: -1}); err == nil || ctx.Err() == nil {
		t.Errorf("no error after cancel: %v", err)
	}
	_ = s.End(ctx) // may or may not do it, as the memory takes a context that has ended
	if err := s.End(context.WithoutCancel(ctx)); err != nil {
		t.Error(err)
	}
}
