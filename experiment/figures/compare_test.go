package figures

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/experiment/analysis"
	"github.com/ocslab/ocslab/experiment/analysis/analysistest"
	"github.com/ocslab/ocslab/experiment/plan"
	"github.com/ocslab/ocslab/experiment/report"
	"github.com/ocslab/ocslab/experiment/report/chart"
	"github.com/ocslab/ocslab/experiment/runs"
	"github.com/ocslab/ocslab/linkmon/watch"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/timeline"
)

// layers are the times of one reconfiguration of a made-up run, since the command.
type layers struct{ lost, ack, light, firmware, carrier, traffic time.Duration }

// recorder makes up a run of two NICs on one switch, which move between two configurations.
type recorder struct{ run *runs.Run }

func record(emulated bool) *recorder {
	r := &runs.Run{Plan: &plan.Plan{Seed: 1, Emulated: emulated}}
	r.Meta.Emulated = emulated
	r.Setups = []runs.Setup{{NICs: []runs.NIC{
		{Name: "gpu1/ens1f0", Tx: "rail0/1", Rx: "rail0/33"}, {Name: "gpu2/ens1f0", Tx: "rail0/2", Rx: "rail0/34"},
	}}}
	return &recorder{r}
}

// condition adds one with a reconfiguration of each l.
func (r *recorder) condition(c plan.Condition, all ...layers) {
	c.Number = len(r.run.Plan.Conditions) + 1
	c.Sequence = []string{"a", "b"}
	c.Maps = []map[string]ocs.Map{
		{"rail0": ocs.MustMap(ocs.CrossConnect{Ingress: 1, Egress: 34}, ocs.CrossConnect{Ingress: 2, Egress: 33})},
		{"rail0": ocs.MustMap(ocs.CrossConnect{Ingress: 1, Egress: 34}, ocs.CrossConnect{Ingress: 3, Egress: 33})},
	}
	r.run.Plan.Conditions = append(r.run.Plan.Conditions, c)
	for _, l := range all {
		number := len(r.run.Reconfigurations) + 1
		r.run.Reconfigurations = append(r.run.Reconfigurations, runs.Reconfiguration{
			Number: number, Condition: c.Number, From: "a", To: "b",
			Added: map[string]ocs.Map{"rail0": ocs.MustMap(ocs.CrossConnect{Ingress: 3, Egress: 33})},
		})
		base := int64(number) * 1e11
		mark := func(s timeline.Stage, subject string, d time.Duration) {
			r.run.Marks = append(r.run.Marks, timeline.Mark{Stage: s, Subject: subject, Host: "lab", Source: "test",
				Interval: timeline.Point(base + int64(d)), Reconfiguration: number})
		}
		mark(timeline.Command, "rail0", 0)
		mark(timeline.Ack, "rail0", l.ack)
		for i, nic := range []string{"gpu1/ens1f0", "gpu2/ens1f0"} {
			port := fmt.Sprintf("rail0/%d", 33+i)
			mark(timeline.Dark, port, l.lost)
			mark(timeline.Light, port, l.light)
			mark(timeline.Light, nic, l.light+50*time.Millisecond) // the module tells it late
			mark(timeline.CarrierDown, nic, l.lost)
			mark(timeline.Firmware, nic, l.firmware)
			mark(timeline.CarrierUp, nic, l.carrier)
		}
		mark(timeline.TrafficLost, "gpu1/ens1f0>gpu2/ens1f0", l.lost)
		mark(timeline.Traffic, "gpu1/ens1f0>gpu2/ens1f0", l.traffic)
		r.run.Samples = append(r.run.Samples,
			runs.Sample{Reconfiguration: number, Subject: "rail0/33", EarliestNS: base, LatestNS: base + 1e6, PowerDBm: -2.5},
			runs.Sample{Reconfiguration: number, Subject: "rail0/33", EarliestNS: base + 2e8, LatestNS: base + 201e6, Dark: true},
			runs.Sample{Reconfiguration: number, Subject: "rail0/33", EarliestNS: base + 3e8, LatestNS: base + 301e6, PowerDBm: -2.6})
	}
}

// compare returns the comparison with a preset.
func (r *recorder) compare(t *testing.T, name string) *report.Paper {
	t.Helper()
	f, err := Find(name)
	if err != nil {
		t.Fatal(err)
	}
	a := &analysis.Analysis{}
	for _, c := range r.run.Plan.Conditions {
		a.Conditions = append(a.Conditions, analysis.Condition{Condition: c, Typical: r.run.Reconfigurations[0].Number})
	}
	p := f.Compare(r.run, a)
	drawn(t, p)
	return p
}

type fataler interface{ Fatalf(string, ...any) }

// drawn draws the charts of p and looks for numbers that are none.
func drawn(t fataler, p *report.Paper) {
	for _, c := range p.Charts {
		var b bytes.Buffer
		if err := chart.SVG(&b, c); err != nil {
			t.Fatalf("%s: %v", p.Title, err)
		}
		if text := b.String(); strings.Contains(text, "NaN") || strings.Contains(text, "Inf") {
			t.Fatalf("%s: a chart holds a number that is none", p.Title)
		}
	}
}

// want is a row without its note, and what the note has to hold.
type want struct{ quantity, paper, ours, deviation, note string }

func check(t *testing.T, rows []report.PaperRow, wants []want) {
	t.Helper()
	for _, w := range wants {
		found := false
		for _, r := range rows {
			if r.Quantity != w.quantity {
				continue
			}
			found = true
			if r.Paper != w.paper || r.Ours != w.ours || r.Deviation != w.deviation || !strings.Contains(r.Note, w.note) {
				t.Errorf("%s: paper %q, ours %q, deviation %q, note %q\nwant paper %q, ours %q, deviation %q, and in the note %q",
					r.Quantity, r.Paper, r.Ours, r.Deviation, r.Note, w.paper, w.ours, w.deviation, w.note)
			}
		}
		if !found {
			t.Errorf("no row %q", w.quantity)
		}
	}
	if t.Failed() {
		for _, r := range rows {
			t.Logf("%q: %q %q %q %q", r.Quantity, r.Paper, r.Ours, r.Deviation, r.Note)
		}
	}
}

const (
	ms = time.Millisecond
	us = time.Microsecond
)

func firmware(name string, dwell time.Duration) plan.Condition {
	return plan.Condition{
		Label: "firmware=" + name, Parameters: map[string]string{"firmware": name},
		Settings: plan.Settings{Firmware: name, Dwell: dwell},
	}
}

func TestOpus9c(t *testing.T) {
	r := record(true)
	r.condition(firmware("connectx-6-dx/autoneg-on", 2*time.Second),
		layers{ms, 210 * ms, 200 * ms, 6259925 * us, 6260 * ms, 6510 * ms})
	r.condition(firmware("connectx-6-dx/autoneg-off", 2*time.Second), // not of this figure
		layers{ms, 999 * ms, 200 * ms, 3199 * ms, 3200 * ms, 3210 * ms})
	r.run.Truth = append(r.run.Truth,
		timeline.Mark{Stage: timeline.Firmware, Subject: "gpu1/ens1f0", Interval: timeline.Point(1e11), Reconfiguration: 1},
		timeline.Mark{Stage: timeline.CarrierUp, Subject: "gpu1/ens1f0", Interval: timeline.Point(1e11 + 76000), Reconfiguration: 1})
	p := r.compare(t, "opus-9c")
	check(t, p.Rows, []want{
		{"command to acknowledgement of the switch", "200 ms", "210.000000 ms", "+5.00 %", "Set, not found: "},
		{"then, optical power back at the receivers", "within 100 ms", "-10.000000 ms", "", ""},
		{"then, link-up: light to carrier", "6 s", "6.060000000 s", "+1.00 %", "Set, not found: "},
		{"of this, firmware to the kernel's carrier", "70 to 80 µs", "75.000 µs", "within", "by its own log: 76.000 µs"},
		{"then, carrier to traffic", "100 to 200 ms", "250.000000 ms", "+25.0 %", "UDP"},
		{"all: command to traffic", "6.3 to 6.5 s", "6.510000000 s", "+0.15 %", "sum"},
	})
	if len(p.Charts) != 2 {
		t.Errorf("%d charts, want that of power and that of states", len(p.Charts))
	}
}

func TestOpus9d(t *testing.T) {
	r := record(true)
	r.condition(firmware("connectx-6-dx/autoneg-on", 2*time.Second),
		layers{ms, 200 * ms, 250 * ms, 6 * time.Second, 6250 * ms, 6400 * ms})
	r.condition(firmware("connectx-6-dx/autoneg-off", 5*time.Second),
		layers{ms, 200 * ms, 400 * ms, 3 * time.Second, 4 * time.Second, 4 * time.Second})
	p := r.compare(t, "opus-9d")
	check(t, p.Rows, []want{
		{"auto-negotiation on: command to light", "200 to 300 ms", "250.000000 ms", "within", "Set, not found"},
		{"auto-negotiation on: light to carrier", "6 s", "6.000000000 s", "0 %", "Set, not found"},
		{"auto-negotiation on: carrier to traffic", "100 to 200 ms", "150.000000 ms", "within", "RDMA"},
		{"auto-negotiation on: share of the switch in the time to carrier", "3.2 to 4.8 %", "4.0 %", "within", "computed by us"},
		{"auto-negotiation off: command to light", "200 to 300 ms", "400.000000 ms", "+33.3 %", ""},
		{"auto-negotiation off: light to carrier", "3 s", "3.600000000 s", "+20.0 %", ""},
		{"auto-negotiation off: share of the switch in the time to carrier", "6.2 to 9.1 %", "10.0 %", "+0.9 points", ""},
	})
}

func TestAutoneg(t *testing.T) {
	at := func(up time.Duration) layers { return layers{ms, 200 * ms, 200 * ms, up, 200*ms + up, 200*ms + up} }
	r := record(false)
	own := func(way string, dwell time.Duration) plan.Condition {
		return plan.Condition{Parameters: map[string]string{"autoneg": way}, Settings: plan.Settings{Dwell: dwell}}
	}
	r.condition(own("on", 25*time.Second), at(6*time.Second), at(6*time.Second))
	r.condition(own("on", 0), at(6*time.Second), at(9*time.Second), at(6*time.Second))
	r.condition(own("off", 25*time.Second), at(3300*ms))
	p := r.compare(t, "autoneg")
	check(t, p.Rows, []want{
		{"auto-negotiation on, rested: light to carrier", "6 s", "6.000000000 s", "0 %", "At each NIC"},
		{"auto-negotiation on, rapid: light to carrier, the slowest", "up to 10 s", "9.000000000 s", "-10.0 %", "The median is"},
		{"auto-negotiation off, rested: light to carrier", "3 s", "3.300000000 s", "+10.0 %", ""},
		{"auto-negotiation off, rapid: light to carrier, the slowest", "up to 10 s", "not measured", "", ""},
	})
	for _, row := range p.Rows {
		if strings.Contains(row.Note, "Set, not found") {
			t.Errorf("of hardware nothing was set, but the note of %q says %q", row.Quantity, row.Note)
		}
	}
}

func TestDelaySweep(t *testing.T) {
	r := record(true)
	for _, set := range []time.Duration{0, 50 * ms, 100 * ms, 123 * ms} {
		c := plan.Condition{Settings: plan.Settings{Firmware: "quick", Switching: &set}}
		l := set + 5*ms
		r.condition(c, layers{ms, l, l, l + 44*ms, l + 45*ms, l + 47*ms})
	}
	p := r.compare(t, "delay-sweep")
	check(t, p.Rows, []want{
		{"training step at 0 ms, modelled", "10.222 s", "10.222 s", "0 %", "5.000000 ms to light, 52.000000 ms to traffic"},
		{"training step at 50 ms, modelled", "10.320 s", "10.367 s", "+0.45 %", ""},  // 10.222 + 5 x (55 - 26) ms, over 10.3203
		{"training step at 100 ms, modelled", "10.614 s", "10.617 s", "+0.03 %", ""}, // 10.222 + 5 x 79 ms, over 10.6142
		{"training step at 123 ms, modelled", "not archived", "10.732 s", "", ""},    // 10.222 + 5 x 102 ms
	})
	if len(p.Charts) != 2 {
		t.Errorf("%d charts, want that of delays and that of steps", len(p.Charts))
	}
	// Of a very short one, the monitors see nothing.
	r.run.Marks = slices.DeleteFunc(r.run.Marks, func(m timeline.Mark) bool {
		return m.Reconfiguration == 1 && (m.Stage == timeline.Dark || m.Stage == timeline.Light)
	})
	check(t, r.compare(t, "delay-sweep").Rows, []want{
		{"training step at 0 ms, modelled", "10.222 s", "10.222 s", "0 %", "5.000000 ms to the acknowledgement (no darkness was seen)"},
	})
	// A real switch has the switching time that it has.
	r = record(false)
	r.condition(plan.Condition{}, layers{ms, 126 * ms, 126 * ms, ms, ms, ms})
	check(t, r.compare(t, "delay-sweep").Rows, []want{
		{"training step with this switch, modelled", "10.614 s at 100 ms", "10.722 s", "", "Delays are measured"},
	})
}

func TestCrossWiring(t *testing.T) {
	r := record(true)
	r.condition(firmware("quick", 0), layers{0, 200 * ms, 200 * ms, 240 * ms, 240 * ms, 300 * ms})
	r.run.Notes, r.run.NoteOf = []watch.Note{{Kind: watch.Outage}, {Kind: watch.Gap}, {Kind: watch.Outage}}, []int{1, 1, 2}
	p := r.compare(t, "crosswiring-table1")
	// Lost of 300 ms: (0.3 T x 0.3 s + 0.3 s x 0.3 s / 2) / T with T = 1.103 s is 131 ms, so a
	// period of 30 s has 27.08 steps: 1107.8 ms each.
	check(t, p.Rows, []want{
		{"quick: outage of a reconfiguration", "not told", "300.000000 ms", "", "50 % of the circuits were moved. Traffic on the others was interrupted, too (outages: 1)"},
		{"quick: average step, one reconfiguration every 30 s, modelled", "1175.4 ms", "1107.8 ms", "-5.75 %", "Lost in each: 131 ms, the paper's by arithmetic 1.85 s. Between 40.8 ms and 300 ms"},
		{"quick: average step, one reconfiguration every 60 s, modelled", "1112.8 ms", "1105.4 ms", "-0.67 %", "528 ms"},
		{"quick: average step, one reconfiguration every 90 s, modelled", "1103.2 ms", "1104.6 ms", "+0.13 %", "16.3 ms"},
		{"step without reconfigurations", "1103.0 ms", "1103.0 ms", "", "assumed"},
		{"time lost in one reconfiguration", "1.85 s every 30 s, 528 ms every 60 s, 16.3 ms every 90 s", "one value for all periods", "", "No constant loss"},
	})
	// An outage that RDMA does not survive.
	r = record(false)
	r.condition(plan.Condition{}, layers{0, ms, ms, ms, ms, 61 * time.Second})
	check(t, r.compare(t, "crosswiring-table1").Rows, []want{
		{"this lab: average step, one reconfiguration every 30 s, modelled, with packets in flight", "1175.4 ms", "the connection is lost", "", "gives up"},
	})
}

// A run may have been stopped before its first point, or be of another experiment.
func TestCompareWithoutMarks(t *testing.T) {
	for _, f := range All() {
		for _, r := range []*runs.Run{{}, {Plan: &plan.Plan{Conditions: []plan.Condition{{Number: 1}}}}} {
			p := f.Compare(r, &analysis.Analysis{})
			if len(p.Rows) == 0 {
				t.Errorf("%s: no rows", f.Name)
			}
			for _, row := range p.Rows {
				if row.Ours != "not measured" || row.Deviation != "" {
					t.Errorf("%s: %q is %q, %q off, without a single mark", f.Name, row.Quantity, row.Ours, row.Deviation)
				}
			}
			drawn(t, p)
		}
	}
}

// A larger run, with what goes wrong in real ones.
func TestCompareSynthetic(t *testing.T) {
	r := analysistest.Synthetic(40, 4, 1)
	for _, f := range All() {
		p := f.Compare(r, &analysis.Analysis{})
		if p.Title != f.Title || p.Source != f.Paper {
			t.Errorf("%s: titled %q, source %q", f.Name, p.Title, p.Source)
		}
		drawn(t, p)
	}
	f, err := Find("autoneg")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range f.Compare(r, &analysis.Analysis{}).Rows {
		if strings.Contains(row.Quantity, "rested") && row.Ours == "not measured" {
			t.Errorf("%q is %q", row.Quantity, row.Ours)
		}
	}
}

// Whatever marks there are, a comparison can be made of them.
func TestCompareAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := record(rapid.Bool().Draw(t, "emulated"))
		way := rapid.SampledFrom([]string{"quick", "connectx-6-dx/autoneg-on", "connectx-6-dx/autoneg-off", ""})
		instants := rapid.Int64()
		for range rapid.IntRange(0, 2).Draw(t, "conditions") {
			r.condition(firmware(way.Draw(t, "firmware"), 0), layers{}, layers{})
		}
		for i := range r.run.Marks {
			r.run.Marks[i].Interval = timeline.Between(instants.Draw(t, "a"), instants.Draw(t, "b"))
		}
		for i := range r.run.Samples {
			r.run.Samples[i].EarliestNS, r.run.Samples[i].LatestNS = instants.Draw(t, "from"), instants.Draw(t, "to")
		}
		if keep := rapid.IntRange(0, len(r.run.Marks)).Draw(t, "keep"); keep < len(r.run.Marks) {
			r.run.Marks = r.run.Marks[:keep]
		}
		for _, f := range All() {
			drawn(t, f.Compare(r.run, &analysis.Analysis{}))
		}
	})
}

func TestDeviation(t *testing.T) {
	span := published{100, 200, ""}
	for _, tt := range []struct {
		p         published
		low, high int64
		want      string
	}{
		{exactly(1000, ""), 1000, 1000, "0 %"},
		{exactly(1000, ""), 1003, 1003, "+0.30 %"},
		{exactly(1000, ""), 994, 1006, "0 % ±0.6"},
		{exactly(1000, ""), 950, 1070, "+1 % ±6"},
		{exactly(1000, ""), 500, 500, "-50.0 %"},
		{span, 100, 200, "within"},
		{span, 50, 101, "may be within"},
		{span, 220, 220, "+10.0 %"},
		{span, 90, 90, "-10.0 %"},
		{published{0, 100, ""}, -10, -5, ""},
		{published{0, 100, ""}, 150, 150, "+50.0 %"},
	} {
		if got := tt.p.deviation(timeline.Interval{Earliest: tt.low, Latest: tt.high}); got != tt.want {
			t.Errorf("%d..%d from %d..%d: %q, want %q", tt.low, tt.high, tt.p.low, tt.p.high, got, tt.want)
		}
	}
}
