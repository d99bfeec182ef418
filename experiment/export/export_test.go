package export_test

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/ocslab/ocslab/experiment/analysis/analysistest"
	"github.com/ocslab/ocslab/experiment/export"
	"github.com/ocslab/ocslab/experiment/plan"
	"github.com/ocslab/ocslab/experiment/runs"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/timeline"
)

// small is a run that can be checked by eye: one point of two reconfigurations, and a null
// toggle in a session of another boot. Its axis is above 2^53 ns.
func small() *runs.Run {
	const ms = 1_000_000
	const axis = int64(1) << 60
	day := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	a, b := ocs.MustMap(ocs.CrossConnect{Ingress: 1, Egress: 33}), ocs.MustMap(ocs.CrossConnect{Ingress: 1, Egress: 34})
	mark := func(stage timeline.Stage, subject, host, source string, number int, earliest, latest int64) timeline.Mark {
		return timeline.Mark{
			Stage: stage, Subject: subject, Host: host, Source: source, Reconfiguration: number,
			Interval: timeline.Interval{Earliest: axis + earliest, Latest: axis + latest},
		}
	}
	return &runs.Run{
		Meta: runs.Meta{ID: "20261122T100000-small-0001", Name: "small", Lab: "bench", Version: "1.2.3", Created: day, Emulated: true},
		Plan: &plan.Plan{
			Name: "small", Window: 500 * ms, Varied: []string{"dead_time", "note"},
			Conditions: []plan.Condition{{
				Number: 1, Label: `dead_time=10 note="a, b"`, Parameters: map[string]string{"dead_time": "10", "note": `=1+"a, b"`},
			}},
			Points: []plan.Point{
				{ID: 1, Condition: 1, Repeat: 1, First: 1}, {ID: 3, Condition: 1, Repeat: 1, Null: true, First: 5},
				{ID: 2, Condition: 1, Repeat: 2, First: 3},
			},
		},
		Done:    map[int]bool{1: true, 3: true},
		Dropped: map[int]bool{2: true},
		Sessions: []runs.Session{
			{Number: 1, Begun: day, MonoNS: axis, Boot: "one", Host: "ctl", Kernel: "6.12.0", Version: "1.2.3"},
			{Number: 2, Begun: day.Add(time.Hour), MonoNS: 7000 * ms, Boot: "two", Host: "ctl", Kernel: "6.13.0", Version: "1.2.4"},
		},
		Setups: []runs.Setup{{Session: 1, Devices: []runs.Device{{Name: "rail0", URL: "tl1://admin@192.0.2.10:3082"}}}},
		Reconfigurations: []runs.Reconfiguration{
			{
				Number: 1, Point: 1, Condition: 1, Repeat: 1, Session: 1, From: "dp", To: "pp", MonoNS: axis + 1000*ms, Wall: day.Add(time.Second),
				Removed: map[string]ocs.Map{"rail0": a}, Added: map[string]ocs.Map{"rail0": b}, Readings: 7, PatienceNS: 30e9,
			},
			{
				Number: 2, Point: 1, Condition: 1, Repeat: 1, Session: 1, From: "pp", To: "dp", MonoNS: axis + 3000*ms, Wall: day.Add(3 * time.Second),
				Removed: map[string]ocs.Map{"rail0": b}, Added: map[string]ocs.Map{"rail0": a},
				Held: []string{"g2/n0"}, Unresolved: []string{"g1/n0: carrier-up: not within 600ms"}, PatienceNS: 600 * ms,
			},
			{Number: 5, Point: 3, Condition: 1, Repeat: 1, Null: true, Session: 2, From: "dp", To: "dp", MonoNS: 8000 * ms, Wall: day.Add(time.Hour + time.Second)},
		},
		Marks: []timeline.Mark{
			mark(timeline.Command, "rail0", "ctl", "driver", 1, 1000*ms, 1000*ms+2),
			mark(timeline.TrafficLost, "g1/n0>g2/n0", "ctl", "probe", 1, 999*ms, 1001*ms-2),
			mark(timeline.Dark, "rail0/33", "ctl", "opm", 1, 1010*ms, 1020*ms),
			mark(timeline.CarrierDown, "g1/n0", "g1", "counters", 1, 1030*ms, 1030*ms),
			mark(timeline.Light, "rail0/33", "ctl", "opm", 1, 1200*ms, 1210*ms),
			mark(timeline.Ack, "rail0", "ctl", "driver", 1, 1205*ms, 1205*ms+4),
			mark(timeline.Firmware, "g1/n0", "g1", "ib-phys", 1, 1900*ms, 1902*ms),
			mark(timeline.CarrierUp, "g1/n0", "g1", "counters+netlink", 1, 1950*ms, 1950*ms+1001),
			mark(timeline.Traffic, "g1/n0>g3/n0", "ctl", "probe", 1, 1960*ms, 1961*ms),
			mark(timeline.Command, "rail0", "ctl", "driver", 2, 3000*ms, 3000*ms+2),
			mark(timeline.CarrierDown, "g1/n0", "g1", "counters", 2, 3030*ms, 3030*ms),
			mark(timeline.Ack, "rail0", "ctl", "driver", 2, 3200*ms, 3200*ms),
			{Stage: timeline.CarrierDown, Subject: "g2/n0", Host: "g2", Source: "counters", Reconfiguration: 5, Interval: timeline.Between(8100*ms, 8101*ms)},
		},
		Truth: []timeline.Mark{mark(timeline.Dark, "rail0/33", "", "", 1, 1012*ms, 1012*ms)},
		Expected: []timeline.Expectation{
			{Reconfiguration: 1, Stage: timeline.CarrierUp, Subject: "g1/n0"},
			{Reconfiguration: 2, Stage: timeline.CarrierUp, Subject: "g1/n0"},
			{Reconfiguration: 5, Stage: timeline.CarrierUp, Subject: "g1/n0"}, // and not of g2/n0
		},
		Samples: []runs.Sample{
			{Reconfiguration: 1, Subject: "rail0/33", EarliestNS: axis + 995*ms, LatestNS: axis + 997*ms, PowerDBm: -3.25},
			{Reconfiguration: 1, Subject: "rail0/33", EarliestNS: axis + 1015*ms, LatestNS: axis + 1017*ms, Dark: true},
		},
		Events: []runs.Event{{Kind: "recovered", Session: 2, Wall: day.Add(time.Hour), Text: "The run went on."}},
	}
}

// all writes everything that can be written of a run, by name.
func all(t testing.TB, r *runs.Run) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	take := func(name string, write func(io.Writer) error) {
		t.Helper()
		var b bytes.Buffer
		if err := write(&b); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		out[name] = b.Bytes()
	}
	take("trace", func(w io.Writer) error { return export.Trace(w, r) })
	take("otlp", func(w io.Writer) error { return export.OTLP(w, r) })
	for _, name := range export.Tables() {
		take(name+".csv", func(w io.Writer) error { return export.CSV(w, r, name) })
		take(name+".ndjson", func(w io.Writer) error { return export.NDJSON(w, r, name) })
	}
	return out
}

// The same run gives the same bytes.
func TestDeterministic(t *testing.T) {
	first, second := all(t, analysistest.Synthetic(40, 4, 1)), all(t, analysistest.Synthetic(40, 4, 1))
	for name, text := range first {
		if !bytes.Equal(text, second[name]) {
			t.Errorf("%s is not the same when written again", name)
		}
	}
}

// A run of which nothing is done can be written, too.
func TestNothingDone(t *testing.T) {
	for name, r := range map[string]*runs.Run{
		"planned":     {Plan: small().Plan, Sessions: small().Sessions},
		"no plan":     {},
		"no sessions": {Plan: small().Plan, Reconfigurations: small().Reconfigurations, Marks: small().Marks},
	} {
		t.Run(name, func(t *testing.T) {
			checkTrace(t, all(t, r)["trace"])
		})
	}
}

// A disk that is full is told of, and not written to again and again.
func TestWriteError(t *testing.T) {
	r := analysistest.Synthetic(1200, 4, 1)
	full := errors.New("no space left on device")
	for name, write := range map[string]func(io.Writer) error{
		"trace":  func(w io.Writer) error { return export.Trace(w, r) },
		"otlp":   func(w io.Writer) error { return export.OTLP(w, r) },
		"csv":    func(w io.Writer) error { return export.CSV(w, r, "marks") },
		"ndjson": func(w io.Writer) error { return export.NDJSON(w, r, "truth") },
	} {
		w := &failing{err: full, after: 2}
		if err := write(w); !errors.Is(err, full) {
			t.Errorf("%s: %v", name, err)
		}
		if w.failed != 1 {
			t.Errorf("%s: written to %d times after the error", name, w.failed-1)
		}
	}
}

type failing struct {
	err           error
	after, failed int
}

func (f *failing) Write(p []byte) (int, error) {
	if f.after--; f.after >= 0 {
		return len(p), nil
	}
	f.failed++
	return 0, f.err
}

// What is written grows, and the memory for it does not: it is written in small pieces.
func TestStreams(t *testing.T) {
	r := analysistest.Synthetic(400, 16, 1)
	w := &largest{}
	for _, err := range []error{export.Trace(w, r), export.OTLP(w, r), export.CSV(w, r, "marks"), export.NDJSON(w, r, "marks")} {
		if err != nil {
			t.Error(err)
		}
	}
	if w.most > 256<<10 || w.total < 10<<20 {
		t.Errorf("%d bytes were written, %d of them at once", w.total, w.most)
	}
}

type largest struct{ most, total int }

func (l *largest) Write(p []byte) (int, error) {
	l.most, l.total = max(l.most, len(p)), l.total+len(p)
	return len(p), nil
}
