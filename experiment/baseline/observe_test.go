package baseline_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ocslab/ocslab/calibration/timing"
	"github.com/ocslab/ocslab/emulator/fabric"
	"github.com/ocslab/ocslab/examples"
	"github.com/ocslab/ocslab/experiment"
	"github.com/ocslab/ocslab/experiment/baseline"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/timeline"
)

// testbed is the built-in lab with hosts in memory, without traffic.
func testbed(t *testing.T) *experiment.Testbed {
	t.Helper()
	f, err := lab.Parse("opus-testbed.yaml", examples.OpusTestbed)
	if err != nil {
		t.Fatal(err)
	}
	l := lab.New(f, lab.Options{Emulated: true, StateDir: t.TempDir()})
	opt := experiment.TestbedOptions{Fabric: lab.FabricOptions{Firmware: "quick", Seed: 1, Rung: fabric.Memory}}
	opt.Watch.Probe.Pace = experiment.Quiet
	for _, name := range []string{"dp", "pp"} {
		m, err := f.Config(name)
		if err != nil {
			t.Fatal(err)
		}
		opt.Maps = append(opt.Maps, m)
	}
	bed, err := experiment.OpenTestbed(t.Context(), l, opt)
	if err != nil {
		t.Fatal(errors.Join(err, l.Close()))
	}
	t.Cleanup(func() {
		if err := errors.Join(bed.Close(), l.Close()); err != nil {
			t.Error(err)
		}
	})
	return bed
}

// What is held up for longer than the probe waits makes outages.
func TestHeldUpIsTheSilenceOfTheProbe(t *testing.T) {
	if timing.HeldUp != experiment.TooLate {
		t.Errorf("HeldUp is %v, want %v", timing.HeldUp, experiment.TooLate)
	}
}

func TestObserve(t *testing.T) {
	bed := testbed(t)
	var told []string
	o, err := baseline.Observe(t.Context(), bed, baseline.Options{
		From: "dp", To: "pp", Toggles: timing.MinToggles, Exchanges: timing.MinExchanges, Nulls: 1, Window: 100 * time.Millisecond,
		Progress: func(what string) { told = append(told, what) },
	})
	if err != nil {
		t.Fatal(err)
	}
	b := timing.Of(o)
	// Darkness is sampled, and a busy machine may miss it. All else is counted.
	sampled := func(s timeline.Stage) bool { return s == timeline.Dark || s == timeline.Light }
	for _, what := range b.Missing {
		if !strings.HasPrefix(what, "dark was expected") && !strings.HasPrefix(what, "light was expected") {
			t.Errorf("missing: %q", what)
		}
	}
	for _, stage := range []timeline.Stage{timeline.Ack, timeline.Dark, timeline.Light, timeline.CarrierDown, timeline.CarrierUp} {
		i := slices.IndexFunc(b.Floors, func(f timing.Floor) bool { return f.Stage == stage })
		if i < 0 || b.Floors[i].NS <= 0 || b.Floors[i].Toggles != timing.MinToggles && !sampled(stage) {
			t.Errorf("%s: no floor of %d toggles in %+v", stage, timing.MinToggles, b.Floors)
		}
	}
	if len(b.Switches) != 1 || b.Switches[0].Exchange.Count != timing.MinExchanges || b.Switches[0].Sampling.Count == 0 {
		t.Errorf("switches %+v", b.Switches)
	}
	for _, a := range b.Accuracy { // the unmatched are told by the emulation of stages that nobody watches
		if a.Stage == timeline.CarrierUp && a.Hold < a.Marks {
			t.Errorf("%d of %d marks of carrier-up hold the truth", a.Hold, a.Marks)
		}
	}
	if !slices.ContainsFunc(told, func(s string) bool { return strings.HasPrefix(s, "toggle 8 of 8") }) {
		t.Errorf("progress %q", told)
	}
}

// Without configurations no light moves.
func TestObserveMovesNothing(t *testing.T) {
	bed := testbed(t)
	bed.Bench.Rigs[0].Reconcile = func(context.Context, ocs.Map, ocs.Policy) (ocs.Report, error) {
		t.Error("light was moved")
		return ocs.Report{}, nil
	}
	o, err := baseline.Observe(t.Context(), bed, baseline.Options{Toggles: 8, Nulls: 1, Window: 10 * time.Millisecond})
	if err != nil || o.Toggles != 0 || o.Nulls != 1 || len(o.Exchanges["rail0"]) != baseline.DefaultExchanges {
		t.Errorf("%d toggles, %d nulls, %d exchanges, %v", o.Toggles, o.Nulls, len(o.Exchanges["rail0"]), err)
	}
}

// What was observed until an interruption is there, and the cause is told.
func TestObserveInterrupted(t *testing.T) {
	bed := testbed(t)
	stop := errors.New("somebody pressed a key")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	o, err := baseline.Observe(ctx, bed, baseline.Options{From: "dp", To: "pp", Toggles: 100, Progress: func(what string) {
		if what == "toggle 2 of 100" {
			cancel(stop)
		}
	}})
	if !errors.Is(err, stop) && !errors.Is(err, context.Canceled) || o.Toggles != 1 {
		t.Errorf("%d toggles, %v, want 1 and the cause", o.Toggles, err)
	}
}
