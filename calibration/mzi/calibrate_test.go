package mzi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ocslab/ocslab/calibration/mzi"
	"github.com/ocslab/ocslab/emulator/ocstrx"
	"github.com/ocslab/ocslab/wire/cmis"
	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// device is an emulated module on a virtual clock.
type device struct {
	*ocstrx.Module
	clock *ocstrx.VirtualClock
}

func newDevice(seed uint64, table ocstrx.TableState) *device {
	clock := &ocstrx.VirtualClock{}
	m := ocstrx.NewModule(ocstrx.DefaultParams(), ocstrx.Options{
		Name: "slot 1", Serial: fmt.Sprintf("F%06d", seed), Seed: seed, Clock: clock, Table: table,
		Wall: func() time.Time { return today.Add(clock.Now()) },
	})
	clock.Advance(100 * time.Millisecond)
	return &device{m, clock}
}

var today = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

func (b *device) now() time.Time { return today.Add(b.clock.Now()) }

func (b *device) config() mzi.Config {
	return mzi.Config{Memory: b.Module, Sleep: func(ctx context.Context, d time.Duration) error {
		b.clock.Advance(d)
		return ctx.Err()
	}}
}

// tableErrors are the differences between what a table says of the phases and what they are
// where the module is now, rad.
func tableErrors(t *testing.T, table *ocst.Table, truth ocstrx.Truth) (errs []float64) {
	t.Helper()
	fits, err := mzi.At(table, truth.Celsius)
	if err != nil {
		t.Fatal(err)
	}
	for e, f := range fits {
		errs = append(errs, math.Abs(math.Remainder(f.Phase0-truth.Elements[e].Phase0, 2*math.Pi)))
	}
	return errs
}

func quantileOf(x []float64, q float64) float64 {
	s := slices.Sorted(slices.Values(x))
	return s[min(int(q*float64(len(s))), len(s)-1)]
}

// Ensure that a module without a table comes into service by calibration: its phases are
// right, the table is loaded and stays, all figures are there, and it is dark.
func TestCalibrate(t *testing.T) {
	t.Parallel()
	b := newDevice(1, "none")
	steps := map[string]bool{}
	cfg := b.config()
	cfg.Progress = func(p mzi.Progress) { steps[p.Step] = true }
	r, err := mzi.Calibrate(t.Context(), cfg, mzi.Options{Now: b.now})
	if err != nil {
		t.Fatal(err)
	}
	errs := tableErrors(t, r.Table, b.Truth())
	var f figures
	if err := f.operating(r.Table, b.Truth()); err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{"S1 and S2", "loop network"} {
		if p50, p95 := quantileOf(f.place[i], .5), quantileOf(f.place[i], .95); p50 > 0.002 || p95 > 0.005 {
			t.Errorf("%s: states are off by %.2f mrad (median; p95 %.2f)", name, 1e3*p50, 1e3*p95)
		}
	}
	t.Logf("phase error median %.2f mrad, p95 %.2f, worst %.2f", 1e3*quantileOf(errs, .5), 1e3*quantileOf(errs, .95), 1e3*slices.Max(errs))
	if quantileOf(errs, .5) > 0.003 || slices.Max(errs) > 0.02 {
		t.Error("phases are not where they are")
	}
	if bare, done := leaks(r.Table, b.Truth()); done > -40 || bare < -25 {
		t.Errorf("worst leak by phase errors: %.1f dB with compensation of couplings, %.1f without", done, bare)
	}
	if !r.Loaded || !r.Table.Verified.Pass || len(r.Fits) != ocst.Elements || len(r.Paths) != 24 || len(r.Loop) != 24 || len(r.Changes) != 48 {
		t.Errorf("loaded %v, pass %v; %d fits, %d paths, %d of the loop, %d changes", r.Loaded, r.Table.Verified.Pass, len(r.Fits), len(r.Paths), len(r.Loop), len(r.Changes))
	}
	for i, c := range r.Table.Verified.Changes {
		if c.Settle < 20*time.Microsecond || c.Settle > 200*time.Microsecond || c.Rise <= 0 {
			t.Errorf("change %v: %+v", ocst.Transitions[i], c)
		}
	}
	b.expect(t, r.Table)
	for _, step := range []string{"sweep", "coupling", "operating point", "verification", "switching"} {
		if !steps[step] {
			t.Errorf("nothing was told of step %q", step)
		}
	}
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "NaN") || !strings.Contains(string(text), `"isolation_db"`) {
		t.Errorf("JSON of the report: %.300s", text)
	}
	// A second time, at another temperature: the version counts up, the old point is kept.
	b.SetAmbient(31)
	b.clock.Advance(time.Minute)
	again, err := mzi.Calibrate(t.Context(), b.config(), mzi.Options{Now: b.now, Merge: true, Scope: mzi.Coupling})
	if err != nil {
		t.Fatal(err)
	}
	if again.Table.Version != r.Table.Version+1 || len(again.Table.Points) != 2 {
		t.Errorf("version %d after %d, %d points", again.Table.Version, r.Table.Version, len(again.Table.Points))
	}
	b.expect(t, again.Table)
}

// expect fails the test unless the module is dark, ready, and uses a table: nil is none.
func (b *device) expect(t *testing.T, want *ocst.Table) {
	t.Helper()
	b.clock.Advance(time.Minute)
	buf := make([]byte, ocst.LanesSpan.Length)
	if err := b.Read(t.Context(), ocst.LanesSpan.Address, buf); err != nil {
		t.Fatal(err)
	}
	lanes, err := ocst.DecodeLanes(buf)
	if err != nil {
		t.Fatal(err)
	}
	for lane, path := range lanes.Path {
		if path != ocst.Dark {
			t.Errorf("lane %d is on %v", lane+1, path)
		}
	}
	got, err := mzi.ReadTable(t.Context(), b.Module)
	switch {
	case want == nil:
		if !errors.Is(err, ocst.ErrTable) || lanes.State != ocst.StateCal {
			t.Errorf("the module has a table (%v) and is in state %v", err, lanes.State)
		}
		return
	case err != nil:
		t.Fatal(err)
	}
	a, _ := got.Pages()
	w, _ := want.Pages()
	if !slices.EqualFunc(a, w, bytes.Equal) {
		t.Errorf("the module has version %d made %v, want version %d made %v", got.Version, got.Made, want.Version, want.Made)
	}
}

// Ensure that a module that is broken is not given a table: the error says what is wrong,
// and the module keeps the table that it has.
func TestCalibrate_broken(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		fault, want string
		scope       mzi.Scope
	}{
		{"heater-open:1", "S1 of lane 1", mzi.All},
		{"weak-heater:3", "S1 of lane 3", mzi.All},
		{"stuck-pd:rx-loop:5", "loop element", mzi.All},
		{"swapped-taps:out1:3:5", "swapped", mzi.All},
		// What is relative cannot see it; the module does, when it is to switch.
		{"laser-low", "laser low", mzi.Coupling},
	} {
		t.Run(strings.ReplaceAll(test.fault, ":", "-"), func(t *testing.T) {
			t.Parallel()
			b := newDevice(7, "factory")
			old, err := mzi.ReadTable(t.Context(), b.Module)
			if err != nil {
				t.Fatal(err)
			}
			f, err := ocstrx.ParseDeviceFault(test.fault)
			if err != nil {
				t.Fatal(err)
			}
			b.Inject(f)
			r, err := mzi.Calibrate(t.Context(), b.config(), mzi.Options{Now: b.now, Soak: -1, Scope: test.scope})
			t.Logf("%.300v", err)
			if err == nil || r.Loaded || !strings.Contains(err.Error(), test.want) {
				t.Errorf("no error with %q, loaded %v", test.want, r.Loaded)
			}
			b.expect(t, old)
		})
	}
}

// departing is a module that cannot be reached any more after so many transactions.
type departing struct {
	*ocstrx.Module
	left int
}

var errLost = errors.New("module is gone")

func (v *departing) Read(ctx context.Context, a cmis.Address, buf []byte) error {
	if v.left--; v.left < 0 {
		return errLost
	}
	return v.Module.Read(ctx, a, buf)
}

func (v *departing) Write(ctx context.Context, a cmis.Address, data []byte) error {
	if v.left--; v.left < 0 {
		return errLost
	}
	return v.Module.Write(ctx, a, data)
}

// Ensure that wherever the module vanishes while a table is loaded, it has the old table or
// the new one, whole, and is dark.
func TestLoadTable_vanishes(t *testing.T) {
	t.Parallel()
	source := newDevice(3, "factory")
	old, err := mzi.ReadTable(t.Context(), source.Module)
	if err != nil {
		t.Fatal(err)
	}
	next := *old
	next.Version++
	loaded := 0
	for n := 1; ; n++ {
		b := newDevice(3, "factory")
		cfg := b.config()
		cfg.Memory = &departing{Module: b.Module, left: n}
		err := mzi.LoadTable(t.Context(), cfg, &next)
		if err != nil && !errors.Is(err, errLost) {
			t.Fatalf("lost after %d transactions: error %v", n, err)
		}
		now, readErr := mzi.ReadTable(t.Context(), b.Module)
		switch {
		case readErr != nil:
			t.Fatalf("lost after %d transactions: %v", n, readErr)
		case now.Version == next.Version:
			loaded++
			b.expect(t, &next)
		default:
			b.expect(t, old)
		}
		if err == nil {
			break
		}
	}
	if loaded < 2 {
		t.Error("there was no point at which the table was loaded and the answer lost")
	}
}

// Ensure that a module that is lost while it switches to and fro with the trial table has
// that one, which has passed and expires soon.
func TestCalibrate_vanishes(t *testing.T) {
	t.Parallel()
	b := newDevice(3, "factory")
	gone := &departing{Module: b.Module, left: 1 << 30}
	cfg := b.config()
	cfg.Memory = gone
	cfg.Progress = func(p mzi.Progress) {
		if p.Step == "switching" && p.Done == 3 {
			gone.left = 0
		}
	}
	r, err := mzi.Calibrate(t.Context(), cfg, mzi.Options{Now: b.now, Soak: -1, Scope: mzi.Coupling})
	if !errors.Is(err, errLost) || r.Loaded {
		t.Errorf("error %v, loaded %v", err, r.Loaded)
	}
	table, err := mzi.ReadTable(t.Context(), b.Module)
	if err != nil {
		t.Fatal(err)
	}
	if left := table.Expires.Sub(b.now()); !table.Verified.Pass || left > 10*time.Minute || left <= 0 {
		t.Errorf("it uses a table that has passed (%v) and expires in %v", table.Verified.Pass, left)
	}
}

// Ensure that a context that ends leaves the module dark, out of its session, and with its
// old table.
func TestCalibrate_cancelled(t *testing.T) {
	t.Parallel()
	for _, step := range []string{"sweep", "switching"} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			b := newDevice(4, "factory")
			old, err := mzi.ReadTable(t.Context(), b.Module)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			cfg := b.config()
			cfg.Progress = func(p mzi.Progress) {
				if p.Step == step && p.Done >= 2 {
					cancel()
				}
			}
			scope := mzi.All
			if step != "sweep" {
				scope = mzi.Coupling // which is soon there
			}
			r, err := mzi.Calibrate(ctx, cfg, mzi.Options{Now: b.now, Soak: -1, Scope: scope})
			if !errors.Is(err, context.Canceled) || r.Loaded {
				t.Errorf("error %v, loaded %v", err, r.Loaded)
			}
			b.expect(t, old)
		})
	}
}

// Ensure that a table that fails is refused, with each figure that fails named by lane and
// path, and that nothing stays loaded: by losses and isolations before the trial, by the
// times of changes after it.
func TestCalibrate_limits(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		scope  mzi.Scope
		limits mzi.Limits
		want   []string
	}{
		{"static", mzi.Verify, mzi.Limits{Isolation: 60, Crosstalk: 60, Loss: 0.1, ER: 90}, []string{
			"path2 of lane 8 has an isolation of", "towards another receiver", "loop of lane 1 loses", "S1 of lane 2 has an extinction ratio",
		}},
		{"changes", mzi.Coupling, mzi.Limits{Settle: 5 * time.Microsecond}, []string{"lane 8 takes", "from loop to path1"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b := newDevice(5, "factory")
			old, err := mzi.ReadTable(t.Context(), b.Module)
			if err != nil {
				t.Fatal(err)
			}
			r, err := mzi.Calibrate(t.Context(), b.config(), mzi.Options{Now: b.now, Soak: -1, Scope: test.scope, Limits: test.limits})
			if !errors.Is(err, mzi.ErrVerification) || r.Loaded || len(r.Failures) == 0 {
				t.Fatalf("error %.200v, loaded %v, %d failures", err, r.Loaded, len(r.Failures))
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("no %q in error %.400v", want, err)
				}
			}
			b.expect(t, old)
		})
	}
}

// Ensure that trimming takes away what hours and ten degrees have done to a module that
// carries light, and leaves it carrying light.
func TestTrim(t *testing.T) {
	t.Parallel()
	b := newDevice(6, "factory")
	if err := b.Write(t.Context(), ocst.At(ocst.RegStaged), []byte{byte(ocst.Path1), 0x7f, byte(ocst.CommitNow)}); err != nil {
		t.Fatal(err)
	}
	b.clock.Advance(10 * time.Millisecond)
	if err := b.Write(t.Context(), ocst.At(ocst.RegStaged), []byte{byte(ocst.LoopPath), 0x80, byte(ocst.CommitNow)}); err != nil {
		t.Fatal(err)
	}
	b.SetAmbient(35)
	b.clock.Advance(60 * time.Hour)
	r, err := mzi.Trim(t.Context(), b.config(), mzi.TrimOptions{})
	if err != nil {
		t.Fatal(err)
	}
	truth := b.Truth()
	worse := 0
	for _, e := range r.Elements {
		// What couplers leave, with a decibel for the loss of S2 and for noise.
		least := -truth.Elements[e.Element].BarER
		if e.Element == ocst.S1(7) {
			least = -truth.Elements[e.Element].CrossER
		}
		most := max(least, -32) + 1.3
		if e.LeakBefore > most {
			worse++
		}
		if e.Element < 2*ocst.Lanes && e.LeakAfter > most {
			t.Errorf("%s of lane %d leaks %.1f dB, before %.1f, and couplers allow %.1f", e.Name, e.Lane, e.LeakAfter, e.LeakBefore, least)
		}
	}
	t.Logf("%d of %d elements leaked more than they must; %d rounds, %d skipped", worse, len(r.Elements), r.Rounds, len(r.Skipped))
	if len(r.Elements) != 7*2+1+ocst.Columns || worse < 3 {
		t.Error("not all were trimmed, or there was nothing to trim")
	}
	buf := make([]byte, ocst.LanesSpan.Length)
	if err := b.Read(t.Context(), ocst.LanesSpan.Address, buf); err != nil {
		t.Fatal(err)
	}
	lanes, _ := ocst.DecodeLanes(buf)
	if lanes.State != ocst.StateReady || lanes.Path[0] != ocst.Path1 || lanes.Path[7] != ocst.LoopPath {
		t.Errorf("the module is in state %v, lane 1 on %v, lane 8 on %v", lanes.State, lanes.Path[0], lanes.Path[7])
	}
}
