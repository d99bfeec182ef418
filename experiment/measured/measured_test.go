package measured_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ocslab/ocslab/experiment/measured"
	"github.com/ocslab/ocslab/experiment/plan"
	"github.com/ocslab/ocslab/experiment/runs"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/timeline"
)

// recorded is a run in which rail0 is changed again and again.
type recorded struct {
	name, lab string
	real      bool
	firmware  []string        // of rail0 by session; nil: one session, "1.0"
	emulate   string          // in the lab file
	switching []time.Duration // conditions of an emulated sweep, in turn; nil: one, as the lab has it
	created   time.Time
	// lights are, for each change, when the two ports had light again, in ms after the command; below 0: never.
	// Changes are spread over the sessions evenly.
	lights [][2]int
	dark   bool // the monitors were not read often enough to see the second port dark
	module bool // the module behind the first port was to see light, and saw it late or not at all
	cut    bool // nobody waited longer, in changes whose second port has no light
}

var now = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// keep writes a run to the store.
func (x recorded) keep(t *testing.T, s *runs.Store) string {
	t.Helper()
	if x.lab == "" {
		x.lab = "test"
	}
	if x.firmware == nil {
		x.firmware = []string{"1.0"}
	}
	if x.emulate == "" {
		x.emulate = "{model: polatis-6000-32x32, switching: 25ms}"
	}
	if x.created.IsZero() {
		x.created = now.Add(-time.Hour)
	}
	conditions := []plan.Condition{{Number: 1, Sequence: []string{"a"}}}
	for i, d := range x.switching {
		c := plan.Condition{Number: i + 1, Sequence: []string{"a"}, Settings: plan.Settings{Switching: &d}}
		conditions = append(conditions[:i], c)
	}
	p := &plan.Plan{Name: x.name, Seed: 1, Order: plan.Fixed, Emulated: !x.real, Conditions: conditions}
	for i := range x.lights {
		p.Points = append(p.Points, plan.Point{ID: i + 1, Condition: 1 + i%len(conditions), Repeat: 1 + i/len(conditions), First: i + 1})
	}
	text := fmt.Sprintf("name: %s\nswitches:\n  - name: rail0\n    url: tl1://admin@192.0.2.1\n    emulate: %s\nhosts:\n  - name: gpu1\n    nics:\n      - {name: eth0, tx: rail0/1, rx: rail0/33}\n", x.lab, x.emulate)
	w, err := s.Create(t.Context(), runs.Creation{
		Meta:       runs.Meta{Name: x.name, Lab: x.lab, Emulated: !x.real, Created: x.created},
		Experiment: []byte("name: x\n"), Lab: []byte(text), Plan: p,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	each := (len(x.lights) + len(x.firmware) - 1) / len(x.firmware)
	for i, at := range x.lights {
		session := 1 + i/each
		if i%each == 0 {
			if _, err := w.Session(runs.Session{Number: session, Host: "here"}); err != nil {
				t.Fatal(err)
			}
			setup := runs.Setup{
				Session: session, Devices: []runs.Device{{Name: "rail0", Vendor: "Polatis", Model: "6000", Serial: "1", Firmware: x.firmware[session-1], Size: "32x32"}},
				NICs: []runs.NIC{{Name: "gpu1/eth0", Tx: "rail0/1", Rx: "rail0/33"}},
			}
			for _, c := range conditions {
				setup.Conditions = append(setup.Conditions, c.Number)
			}
			if err := w.Setup(setup); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.BeginPoint(p.Points[i]); err != nil {
			t.Fatal(err)
		}
		x.change(w, p.Points[i], session, at)
		if err := w.FinishPoint(); err != nil {
			t.Fatal(err)
		}
	}
	return w.ID()
}

// change records one change of two circuits, and beside it one of rail1 that takes far longer.
func (x recorded) change(w *runs.Writer, p plan.Point, session int, at [2]int) {
	n := p.First
	rec := runs.Reconfiguration{
		Number: n, Point: p.ID, Condition: p.Condition, Repeat: p.Repeat, Session: session, From: "b", To: "a", PatienceNS: 1e9,
		Added: map[string]ocs.Map{
			"rail0": ocs.MustMap(ocs.CrossConnect{Ingress: 1, Egress: 33}, ocs.CrossConnect{Ingress: 2, Egress: 34}),
			"rail1": ocs.MustMap(ocs.CrossConnect{Ingress: 1, Egress: 33}),
		},
	}
	const began = int64(1e9)
	mark := func(stage timeline.Stage, subject string, ms int) {
		ns := began + int64(ms)*1e6
		w.Mark(timeline.Mark{Stage: stage, Subject: subject, Interval: timeline.Between(ns, ns), Source: "opm", Reconfiguration: n})
	}
	mark(timeline.Command, "rail0", 0)
	mark(timeline.Command, "rail1", 0)
	mark(timeline.Ack, "rail0", 1)
	mark(timeline.Light, "rail1/33", 900)
	for i, subject := range []string{"rail0/33", "rail0/34"} {
		w.Expected(timeline.Expectation{Reconfiguration: n, Stage: timeline.Light, Subject: subject})
		if at[i] >= 0 {
			mark(timeline.Light, subject, at[i])
		} else if x.cut {
			rec.Unresolved = append(rec.Unresolved, subject+": light: "+timeline.CutShort)
		} else if x.dark {
			rec.Unresolved = append(rec.Unresolved, subject+": light: "+timeline.NoDark.String())
		}
	}
	if x.module {
		w.Expected(timeline.Expectation{Reconfiguration: n, Stage: timeline.Light, Subject: "gpu1/eth0"})
		if n%2 == 0 {
			mark(timeline.Light, "gpu1/eth0", 500)
		}
	}
	mark(timeline.CarrierUp, "gpu1/eth0", at[0]+2000)
	mark(timeline.Traffic, "gpu2/eth0>gpu1/eth0", at[0]+2001)
	mark(timeline.CarrierUp, "gpu2/eth0", 9000) // its light comes from elsewhere
	w.Reconfiguration(rec)
}

// repeat is n changes that took as long.
func repeat(n, first, second int) [][2]int {
	var all [][2]int
	for range n {
		all = append(all, [2]int{first, second})
	}
	return all
}

func open(t *testing.T) *runs.Store {
	t.Helper()
	s, err := runs.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const ms = int64(1e6)

func TestLastCircuitOfTheSwitchCounts(t *testing.T) {
	s := open(t)
	id := recorded{name: "one", lights: [][2]int{{10, 20}, {30, 10}, {25, 25}, {40, 1}, {15, 50}}}.keep(t, s)
	for _, x := range []struct {
		stage  timeline.Stage
		median int64
	}{
		{"", 30 * ms}, {timeline.Light, 30 * ms}, {timeline.Ack, 1 * ms},
		{timeline.CarrierUp, 2025 * ms}, {timeline.Traffic, 2026 * ms},
	} {
		got, err := measured.Switching(t.Context(), s, "rail0", measured.Options{Stage: x.stage, Now: now})
		if err != nil {
			t.Fatal(err)
		}
		if got.Median.NS != x.median || got.Count != 5 || got.Missing != 0 || !got.Emulated || got.Lab != "test" {
			t.Errorf("%q: got %+v, want a median of %d of 5", x.stage, got, x.median)
		}
		if d := cmp.Diff([]string{id}, got.Runs); d != "" {
			t.Error(d)
		}
	}
	got, err := measured.Switching(t.Context(), s, "rail0", measured.Options{Now: now})
	if err != nil || got.Least.Mid() != 20*ms || got.Most.Mid() != 50*ms || got.P99.NS <= got.Median.NS {
		t.Errorf("least %v, most %v, p99 %v, %v", got.Least, got.Most, got.P99, err)
	}
}

func TestPooled(t *testing.T) {
	older, newer := now.Add(-3*time.Hour), now.Add(-2*time.Hour)
	for _, x := range []struct {
		name   string
		runs   []recorded
		opt    measured.Options
		median int64
		count  int
		from   int    // how many runs
		left   string // in a reason
	}{
		{"two of the same", []recorded{{lights: repeat(4, 10, 10), created: older}, {lights: repeat(5, 20, 20)}}, measured.Options{}, 20 * ms, 9, 2, ""},
		{"other firmware", []recorded{{lights: repeat(20, 10, 10), created: older, firmware: []string{"0.9"}}, {lights: repeat(5, 20, 20)}},
			measured.Options{}, 20 * ms, 5, 1, `firmware ("0.9" and "1.0")`},
		{"emulated otherwise", []recorded{{lights: repeat(20, 10, 10), created: older, emulate: "{model: polatis-6000-32x32, switching: 10ms}"}, {lights: repeat(5, 25, 25)}},
			measured.Options{}, 25 * ms, 5, 1, "switching 10ms"},
		{"real before emulated", []recorded{{lights: repeat(6, 200, 200), created: older, real: true}, {lights: repeat(50, 25, 25)}}, measured.Options{}, 200 * ms, 6, 1, ""},
		{"emulated if asked", []recorded{{lights: repeat(6, 200, 200), created: older, real: true}, {lights: repeat(5, 25, 25)}},
			measured.Options{Emulated: true}, 25 * ms, 5, 1, ""},
		{"stale", []recorded{{lights: repeat(9, 10, 10), created: now.Add(-31 * 24 * time.Hour)}, {lights: repeat(5, 25, 25)}}, measured.Options{}, 25 * ms, 5, 1, "31 days old"},
		{"a sweep is left out", []recorded{{lights: repeat(5, 25, 25), created: older}, {lights: repeat(8, 1, 1), switching: []time.Duration{1e6, 2e6}}},
			measured.Options{}, 25 * ms, 5, 1, "switching 1ms and as polatis-6000-32x32 switching 2ms"},
		{"a condition like the lab is none", []recorded{{lights: repeat(5, 25, 25), created: older}, {lights: repeat(5, 25, 25), switching: []time.Duration{25e6}}},
			measured.Options{}, 25 * ms, 10, 2, ""},
		{"resumed", []recorded{{lights: repeat(10, 25, 25), firmware: []string{"1.0", "1.0"}}}, measured.Options{}, 25 * ms, 10, 1, ""},
		{"resumed after an update", []recorded{{lights: append(repeat(6, 10, 10), repeat(6, 25, 25)...), firmware: []string{"0.9", "1.0"}}},
			measured.Options{}, 25 * ms, 6, 1, `6 of its 12 changes: another firmware ("0.9" and "1.0")`},
		{"by lab", []recorded{{lights: repeat(5, 10, 10), created: newer, lab: "a"}, {lights: repeat(5, 25, 25), lab: "b"}}, measured.Options{Lab: "a"}, 10 * ms, 5, 1, ""},
		{"modules know less than monitors", []recorded{{lights: repeat(5, 25, 30), module: true}}, measured.Options{}, 30 * ms, 5, 1, ""},
		{"cut short", []recorded{{lights: append(repeat(5, 25, 30), repeat(3, 10, -1)...), cut: true}}, measured.Options{}, 30 * ms, 5, 1, ""},
		{"monitor too slow for one port", []recorded{{lights: repeat(5, 25, -1), dark: true}}, measured.Options{}, 25 * ms, 5, 1, ""},
	} {
		t.Run(x.name, func(t *testing.T) {
			s := open(t)
			for i, r := range x.runs {
				r.name = fmt.Sprintf("r%d", i)
				r.keep(t, s)
			}
			x.opt.Now = now
			got, err := measured.Switching(t.Context(), s, "rail0", x.opt)
			if err != nil {
				t.Fatal(err)
			}
			if got.Median.NS != x.median || got.Count != x.count || len(got.Runs) != x.from {
				t.Errorf("got %d of %d in %v, want %d of %d in %d runs", got.Median.NS, got.Count, got.Runs, x.median, x.count, x.from)
			}
			why := fmt.Sprint(got.LeftOut)
			if x.left == "" && len(got.LeftOut) > 0 || !strings.Contains(why, x.left) {
				t.Errorf("left out: %s, want %q", why, x.left)
			}
		})
	}
}

func TestWhatNeverCame(t *testing.T) {
	for _, x := range []struct {
		never                int
		median, p99, enough  bool
		count, missing, size int
	}{
		{0, true, true, true, 20, 0, 20}, {1, true, false, true, 19, 1, 20}, {11, false, false, true, 9, 11, 20},
		{20, false, false, true, 0, 20, 20},
	} {
		s := open(t)
		recorded{name: "n", lights: append(repeat(x.size-x.never, 20, 25), repeat(x.never, 20, -1)...)}.keep(t, s)
		got, err := measured.Switching(t.Context(), s, "rail0", measured.Options{Now: now})
		if err != nil {
			t.Fatal(err)
		}
		if got.Count != x.count || got.Missing != x.missing || measured.Known(got.Median) != x.median || measured.Known(got.P99) != x.p99 {
			t.Errorf("%d never came: %+v", x.never, got)
		}
	}
}

func TestNothingToSay(t *testing.T) {
	for _, x := range []struct {
		name string
		runs []recorded
		opt  measured.Options
		of   string
		is   error
		text string
	}{
		{"no runs", nil, measured.Options{}, "rail0", measured.ErrNone, `"ocslab run FILE"`},
		{"another switch", []recorded{{lights: repeat(9, 1, 1)}}, measured.Options{}, "rail7", measured.ErrNone, "rail7"},
		{"no such lab", []recorded{{lights: repeat(9, 1, 1)}}, measured.Options{Lab: "b"}, "rail0", measured.ErrNone, "of the lab b"},
		{"not watched so far", []recorded{{lights: repeat(9, 1, 1)}}, measured.Options{Stage: timeline.Firmware}, "rail0", measured.ErrNone, "until firmware"},
		{"real only", []recorded{{lights: repeat(9, 1, 1), real: true}}, measured.Options{Emulated: true}, "rail0", measured.ErrNone, "emulated"},
		{"all stale", []recorded{{lights: repeat(9, 1, 1), created: now.Add(-1000 * time.Hour)}}, measured.Options{}, "rail0", measured.ErrNone, "41 days old"},
		{"few", []recorded{{lights: repeat(4, 1, 1)}}, measured.Options{}, "rail0", measured.ErrFew, "4 changes in 1 run, want 5"},
		{"two labs", []recorded{{lights: repeat(9, 1, 1)}, {lights: repeat(9, 1, 1), lab: "b"}}, measured.Options{}, "rail0", measured.ErrMixed, "--lab"},
		{"no end", nil, measured.Options{Stage: timeline.Dark}, "rail0", nil, "want ack, light"},
		{"no stage", nil, measured.Options{Stage: "warmth"}, "rail0", nil, "want ack, light"},
	} {
		t.Run(x.name, func(t *testing.T) {
			s := open(t)
			for i, r := range x.runs {
				r.name = fmt.Sprintf("r%d", i)
				r.keep(t, s)
			}
			x.opt.Now = now
			_, err := measured.Switching(t.Context(), s, x.of, x.opt)
			if err == nil || x.is != nil && !errors.Is(err, x.is) || !strings.Contains(err.Error(), x.text) {
				t.Errorf("got %v, want %v with %q", err, x.is, x.text)
			}
		})
	}
}
