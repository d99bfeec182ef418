package experiment_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ocslab/ocslab/drivers"
	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/experiment"
	"github.com/ocslab/ocslab/internal/secret"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/ocs/ocstest"
	"github.com/ocslab/ocslab/timeline"
)

// bench returns a bench on an emulated switch that takes 120 ms.
func bench(t *testing.T, change func(*emulator.Personality)) (*experiment.Bench, *emulator.Device) {
	t.Helper()
	p, err := emulator.LoadPersonality("polatis-6000-32x32")
	if err != nil {
		t.Fatal(err)
	}
	p.Switching.Single, p.Switching.Bulk = 120*time.Millisecond, 120*time.Millisecond
	p.Switching.Jitter, p.Switching.Rise = time.Millisecond, time.Millisecond
	if change != nil {
		change(&p)
	}
	e, err := lab.Emulation{Name: "rail0", Personality: p, Seed: 3}.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	open := func() ocs.Switch {
		sw, err := drivers.Open(t.Context(), e.URL(), drivers.Options{Name: "rail0", Password: secret.New(lab.EmulatedPassword)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { sw.Close() })
		return sw
	}
	rig := &experiment.Rig{Name: "rail0", Switch: open()}
	rig.Meter, _ = ocs.As[ocs.PowerMeter](open())
	return &experiment.Bench{Host: "here", Rigs: []*experiment.Rig{rig}}, e.Device
}

// rail0 is a map of the one switch.
func rail0(t *testing.T, s string) map[string]ocs.Map {
	return map[string]ocs.Map{"rail0": mustParse(t, s)}
}

func mustParse(t *testing.T, s string) ocs.Map {
	t.Helper()
	m, err := ocs.ParseMap(s)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Ensure every mark of a move holds what the device did, and that none is
// missing.
func TestBench_MarksHoldTheTruth(t *testing.T) {
	for _, ack := range []emulator.AckMode{emulator.AckBefore, emulator.AckAfter} {
		t.Run(string(ack), func(t *testing.T) {
			b, dev := bench(t, func(p *emulator.Personality) { p.Switching.Ack = ack })
			averaging, restore, err := experiment.Quicken(t.Context(), b.Rigs[0].Meter, 33, 34)
			if err != nil {
				t.Fatal(err)
			}
			b.Rigs[0].Rule = timeline.SettleRule{Averaging: averaging}
			if _, err := b.Move(t.Context(), 0, rail0(t, "1>33,2>34"), ocs.Update); err != nil {
				t.Fatal(err)
			}
			_, seen := dev.Truth(0)
			mv, err := b.Move(t.Context(), 1, rail0(t, "1>34,2>33"), ocs.Update)
			if err != nil || len(mv.Unresolved) > 0 {
				t.Fatalf("err=%v, unresolved=%v", err, mv.Unresolved)
			}
			truth, _ := dev.Truth(seen)
			for i := range truth {
				truth[i].Reconfiguration = 1
			}
			if v := timeline.Check(mv.Marks); len(v) > 0 {
				t.Errorf("impossible order: %v", v)
			}
			for _, x := range timeline.Compare(mv.Marks, truth) {
				if x.Unmatched != 0 {
					t.Errorf("%s: %d unmatched", x.Stage, x.Unmatched)
				}
				if (x.Stage == timeline.Dark || x.Stage == timeline.Light) && (x.Count != 2 || x.Inside != 2) {
					t.Errorf("%s: %d of %d marks hold the truth, want 2 of 2", x.Stage, x.Inside, x.Count)
				}
			}
			if err := restore(t.Context()); err != nil {
				t.Fatal(err)
			}
			if ms, err := b.Rigs[0].Meter.Monitors(t.Context(), 33); err != nil || ms[0].Averaging != 100*time.Millisecond {
				t.Errorf("restored to %v, %v", ms, err)
			}
		})
	}
}

// Ensure what cannot be seen is said, not made up.
func TestBench_Unresolved(t *testing.T) {
	b, dev := bench(t, nil)
	b.Patience = 150 * time.Millisecond
	b.Rigs[0].Rule.Averaging, _, _ = experiment.Quicken(t.Context(), b.Rigs[0].Meter, 33, 34)
	dev.Unlight(34)
	mv, err := b.Move(t.Context(), 1, rail0(t, "1>33,2>34"), ocs.Safe)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(mv.Unresolved, "\n"); !strings.Contains(got, "rail0/34: light: ") || strings.Contains(got, "rail0/33") {
		t.Errorf("unresolved=%q", got)
	}
	for _, m := range mv.Marks {
		if m.Subject == "rail0/34" {
			t.Errorf("mark of a port without light: %v", m)
		}
	}
}

func TestBench_WithoutMonitors(t *testing.T) {
	b, _ := bench(t, func(p *emulator.Personality) { p.Monitors.Sides = emulator.MonitorsNone })
	if _, _, err := experiment.Quicken(t.Context(), b.Rigs[0].Meter, 33); !errors.Is(err, experiment.ErrNoMonitor) {
		t.Errorf("err=%v, want ErrNoMonitor", err)
	}
	b.Patience = 10 * time.Millisecond
	mv, err := b.Move(t.Context(), 1, rail0(t, "1>33"), ocs.Safe)
	if err != nil || len(mv.Marks) != 2 || len(mv.Unresolved) != 1 {
		t.Errorf("marks=%v, unresolved=%v, err=%v", mv.Marks, mv.Unresolved, err)
	}
	b.Rigs[0].Meter = nil
	mv, err = b.Move(t.Context(), 2, rail0(t, "2>34"), ocs.Safe)
	if err != nil || len(mv.Marks) != 2 || len(mv.Unresolved) != 0 {
		t.Errorf("marks=%v, unresolved=%v, err=%v", mv.Marks, mv.Unresolved, err)
	}
}

// stopping ends a context in the second of the changes to monitors.
type stopping struct {
	ocs.PowerMeter
	stop    func()
	changes int
}

func (s *stopping) SetMonitor(ctx context.Context, m ocs.Monitor) error {
	if s.changes++; s.changes == 2 {
		s.stop()
	}
	return s.PowerMeter.SetMonitor(ctx, m)
}

// Ensure that monitors that could not all be quickened have their former settings, also when
// that is because the context has ended.
func TestQuicken_Stopped(t *testing.T) {
	b, _ := bench(t, nil)
	meter := b.Rigs[0].Meter
	before, err := meter.Monitors(t.Context(), 33, 34)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s := &stopping{PowerMeter: meter, stop: cancel}
	if _, _, err := experiment.Quicken(ctx, s, 33, 34); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want context.Canceled", err)
	}
	after, err := meter.Monitors(t.Context(), 33, 34)
	if err != nil || !slices.Equal(before, after) {
		t.Errorf("monitors are %+v, want %+v, error %v", after, before, err)
	}
}

// lost is a meter that cannot be reached once its monitors have been changed some times.
type lost struct {
	ocs.PowerMeter
	changes int
}

var errLost = errors.New("rail0: connect: connection refused")

func (l *lost) SetMonitor(ctx context.Context, m ocs.Monitor) error {
	if l.changes--; l.changes < 0 {
		return fmt.Errorf("%w", errLost)
	}
	return l.PowerMeter.SetMonitor(ctx, m)
}

// Ensure that a switch that is lost says so once, not for every port.
func TestQuicken_Lost(t *testing.T) {
	b, _ := bench(t, nil)
	meter := b.Rigs[0].Meter
	_, restore, err := experiment.Quicken(t.Context(), &lost{meter, 3}, 33, 34, 35)
	if err != nil {
		t.Fatal(err)
	}
	if err := restore(t.Context()); !errors.Is(err, errLost) || err.Error() != errLost.Error() {
		t.Errorf("restore: %q, want %q", err, errLost)
	}
	if _, _, err := experiment.Quicken(t.Context(), &lost{meter, 1}, 33, 34, 35); !errors.Is(err, errLost) || err.Error() != errLost.Error() {
		t.Errorf("Quicken: %q, want %q", err, errLost)
	}
}

func TestBench_Refused(t *testing.T) {
	b, _ := bench(t, nil)
	if _, err := b.Move(t.Context(), 1, rail0(t, "1>33"), ocs.Safe); err != nil {
		t.Fatal(err)
	}
	if mv, err := b.Move(t.Context(), 2, rail0(t, "1>34"), ocs.Safe); !errors.Is(err, ocs.ErrConflict) || len(mv.Marks) != 0 {
		t.Errorf("err=%v, marks=%v", err, mv.Marks)
	}
	if mv, err := b.Move(t.Context(), 2, rail0(t, "1>33"), ocs.Safe); err != nil || len(mv.Marks) != 0 {
		t.Errorf("nothing to do: err=%v, marks=%v", err, mv.Marks)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.Move(ctx, 3, rail0(t, "1>34"), ocs.Update); !errors.Is(err, context.Canceled) {
		t.Errorf("err=%v, want Canceled", err)
	}
}

// Ensure a circuit without light is named although the switch reads back as asked, unless no
// light enters it.
func TestBench_Dark(t *testing.T) {
	b, dev := bench(t, nil)
	dev.Unlight(33)
	if err := dev.SetInput(3, ocs.DBm(math.Inf(-1))); err != nil {
		t.Fatal(err)
	}
	mv, err := b.Move(t.Context(), 1, rail0(t, "1>33,2>34,3>35"), ocs.Update)
	if err != nil || !slices.Equal(mv.Dark, []string{"rail0/33"}) {
		t.Errorf("dark: %v, %v; want rail0/33", mv.Dark, err)
	}
	b.Fixed = 10 * time.Millisecond // the light of 36 is still to come
	if mv, err = b.Move(t.Context(), 2, rail0(t, "4>36"), ocs.Update); err != nil || len(mv.Dark) > 0 {
		t.Errorf("dark after a fixed time: %v, %v", mv.Dark, err)
	}
}

// meter fails after some readings.
type meter struct {
	ocs.PowerMeter
	good int
}

var errBroken = errors.New("the meter broke")

func (m *meter) Power(context.Context, ...ocs.Port) (ocs.PowerReading, error) {
	if m.good--; m.good < 0 {
		return ocs.PowerReading{}, errBroken
	}
	now := time.Now()
	return ocs.PowerReading{Earliest: now, Latest: now, Ports: map[ocs.Port]ocs.DBm{33: -2}}, nil
}

func TestBench_MeterFails(t *testing.T) {
	for _, good := range []int{0, 4} {
		b := experiment.Bench{Rigs: []*experiment.Rig{{Name: "rail0", Switch: ocstest.New(32, ocs.Map{}), Meter: &meter{good: good}}}}
		if _, err := b.Move(t.Context(), 1, rail0(t, "1>33"), ocs.Safe); !errors.Is(err, errBroken) {
			t.Errorf("after %d readings: err=%v", good, err)
		}
	}
}

func TestBench_UnknownSwitch(t *testing.T) {
	b := experiment.Bench{Rigs: []*experiment.Rig{{Name: "rail0", Switch: ocstest.New(32, ocs.Map{})}}}
	_, err := b.Move(t.Context(), 1, map[string]ocs.Map{"rail0": {}, "rail1": {}}, ocs.Safe)
	if err == nil || !strings.Contains(err.Error(), "rail1") {
		t.Errorf("err=%v", err)
	}
}

// Ensure several switches are moved at once, and their marks told apart.
func TestBench_TwoSwitches(t *testing.T) {
	a, _ := bench(t, nil)
	b, _ := bench(t, nil)
	b.Rigs[0].Name = "rail1"
	both := experiment.Bench{Rigs: []*experiment.Rig{a.Rigs[0], b.Rigs[0]}}
	mv, err := both.Move(t.Context(), 1, map[string]ocs.Map{"rail0": mustParse(t, "1>33"), "rail1": mustParse(t, "2>34")}, ocs.Safe)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]timeline.Interval{}
	for _, m := range mv.Marks {
		got[string(m.Stage)+" "+m.Subject] = m.Interval
	}
	for _, want := range []string{"command rail0", "ack rail0", "light rail0/33", "command rail1", "ack rail1", "light rail1/34"} {
		if _, ok := got[want]; !ok {
			t.Errorf("no mark %s in %v", want, mv.Marks)
		}
	}
	// Each takes 120 ms.
	for _, ack := range []string{"ack rail0", "ack rail1"} {
		for _, command := range []string{"command rail0", "command rail1"} {
			if got[ack].Before(got[command]) {
				t.Errorf("%s is before %s: they were moved one after the other", ack, command)
			}
		}
	}
	if mv.Reports["rail0"].Change.Add.Len() != 1 || mv.Reports["rail1"].Change.Add.Len() != 1 {
		t.Errorf("reports: %+v", mv.Reports)
	}
}
