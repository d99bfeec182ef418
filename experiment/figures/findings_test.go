package figures

import (
	"testing"
	"time"

	"github.com/ocslab/ocslab/experiment/analysis"
	"github.com/ocslab/ocslab/experiment/plan"
	"github.com/ocslab/ocslab/experiment/runs"
	"github.com/ocslab/ocslab/timeline"
)

// A link that flapped is up when it is up for good, a pair has two carriers, and a null
// toggle is no reconfiguration.
func TestFindings(t *testing.T) {
	r := record(true)
	r.condition(plan.Condition{}, layers{ms, 200 * ms, 200 * ms, 240 * ms, 250 * ms, 300 * ms})
	mark := func(number int, s timeline.Stage, subject string, at time.Duration) {
		r.run.Marks = append(r.run.Marks, timeline.Mark{Stage: s, Subject: subject,
			Interval: timeline.Point(int64(number)*1e11 + int64(at)), Reconfiguration: number})
	}
	mark(1, timeline.CarrierUp, "gpu1/ens1f0", 220*ms) // and again at 250 ms
	mark(1, timeline.CarrierUp, "gpu2/ens1f0", 280*ms) // after 250 ms
	mark(1, timeline.CarrierDown, "gpu1/ens1f0", 230*ms)
	r.run.Reconfigurations = append(r.run.Reconfigurations, runs.Reconfiguration{Number: 2, Condition: 1, Null: true})
	mark(2, timeline.Command, "rail0", 0)
	mark(2, timeline.CarrierUp, "gpu1/ens1f0", time.Second)

	f := newFindings(r.run, &analysis.Analysis{})
	c := f.conditions()[0]
	for _, tt := range []struct {
		name  string
		of    quantity
		count int
		want  time.Duration
	}{
		{"carrier-up", sinceCommand(timeline.CarrierUp), 2, 265 * ms}, // 250 and 280
		{"carrier-down", sinceCommand(timeline.CarrierDown), 2, ms},
		{"light, of ports only", sinceCommand(timeline.Light), 2, 200 * ms},
		{"carrier to traffic", trafficAfterCarrier, 1, 20 * ms},
		{"outage", outage, 1, 299 * ms},
	} {
		if s := f.summary(tt.of, c); s.Count != tt.count || s.Median.NS != int64(tt.want) {
			t.Errorf("%s: %v of %d, want %v of %d", tt.name, time.Duration(s.Median.NS), s.Count, tt.want, tt.count)
		}
	}
	if at, ok := f.largest(sinceCommand(timeline.CarrierUp), c); !ok || at != timeline.Point(int64(280*ms)) {
		t.Errorf("the slowest is %v, want 280 ms", at)
	}
	if len(f.numbers[1]) != 1 {
		t.Errorf("reconfigurations %v, want the first only", f.numbers[1])
	}
}
