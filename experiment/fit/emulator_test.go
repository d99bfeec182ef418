package fit_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ocslab/ocslab/experiment/execution"
	"github.com/ocslab/ocslab/experiment/fit"
	"github.com/ocslab/ocslab/experiment/plan"
	"github.com/ocslab/ocslab/experiment/runs"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/timeline"
)

const modelText = `model: rig
vendor: Polatis
product: N-VST-32x32-LA1-DMHNV-801
firmware: 6.7.3.9
size: 32x32
switching: {%s, rise: 1ms, ack: after}
optics: {loss_db: 1.5, loss_max_db: 2.7, repeatability_db: 0.1, launch_dbm: -1, launch_spread_db: 0.8}
monitors: {sides: both, error_db: 0.5, noise_db: 0.02}
`

const noteText = `---
title: Two ways
summary: Firmware that trains in two ways, invented for a test.
profiles:
  two:
    source: invented
    confidence: low
    debounce: 2ms
    detect: 5ms
    train: {modes: [{share: 0.6, median: 40ms, spread: 2ms}, {share: 0.4, median: 120ms, spread: 3ms}]}
    carrier: 75us
    refresh: 10ms
---
# Two ways
`

// emulated runs a lab of four NICs on one switch, and returns what was measured, with the
// truth log.
func emulated(t *testing.T, switching, firmware string, repeats int) *runs.Run {
	t.Helper()
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	file("rig.yaml", fmt.Sprintf(modelText, switching))
	file("two.md", noteText)
	var text strings.Builder
	text.WriteString("name: try-lab\nswitches:\n  - name: rail0\n    emulate: {model: rig.yaml, seed: 5}\nhosts:\n")
	for i := 1; i <= 4; i++ {
		fmt.Fprintf(&text, "  - {name: gpu%d, nics: [{name: ens1, tx: rail0/%d, rx: rail0/%d, firmware: %q}]}\n", i, i, 32+i, firmware)
	}
	text.WriteString("configurations:\n  dp: {links: [[gpu1, gpu2], [gpu3, gpu4]]}\n  pp: {links: [[gpu1, gpu3], [gpu2, gpu4]]}\n")
	store, err := runs.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	l, err := lab.Load(file("lab.yaml", text.String()))
	if err != nil {
		t.Fatal(err)
	}
	f, err := plan.Parse(filepath.Join(dir, "teach.yaml"), fmt.Appendf(nil, "name: teach\nsequence: [dp, pp]\nseed: 7\nrepeats: %d\nwarm_ups: 0\nnulls: {count: 0}\nwait: carrier\nmeasure: {traffic: false}\nfinally: {light: restore}\n", repeats))
	if err != nil {
		t.Fatal(err)
	}
	p, err := f.Resolve(l, plan.Options{Emulated: true})
	if err != nil {
		t.Fatal(err)
	}
	x, err := execution.Begin(t.Context(), execution.Options{Store: store, Lab: lab.Options{Emulated: true, StateDir: dir, Command: "run teach.yaml"}, Version: "1"},
		execution.Creation{File: f, Lab: l, LabText: []byte(text.String()), Plan: p, Mode: ocs.Safe, Rung: "memory", Command: []string{"run", "teach.yaml"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := x.Runner(x.Writer).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	r, err := store.Load(t.Context(), x.Writer.ID())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// truths returns the durations between two stages as the truth log has them, in order.
func truths(r *runs.Run, q fit.Quantity, path string) []time.Duration {
	var list []time.Duration
	for _, rec := range r.Reconfigurations {
		at := map[string]int64{}
		for _, m := range r.TruthOf(rec.Number) {
			at[string(m.Stage)+" "+m.Subject] = m.Mid()
		}
		add := func(to, from string) {
			a, known := at[to]
			b, too := at[from]
			if known && too {
				list = append(list, time.Duration(a-b))
			}
		}
		for c := range rec.Added["rail0"].All() {
			if path != "" && c.String() != path {
				continue
			}
			nic := fmt.Sprintf("gpu%d/ens1", c.Egress-32)
			switch q {
			case fit.Bulk:
				add(fmt.Sprintf("%s rail0/%d", timeline.Light, c.Egress), string(timeline.Command)+" rail0")
			case fit.LightToFirmware:
				add(string(timeline.Firmware)+" "+nic, fmt.Sprintf("%s rail0/%d", timeline.Light, c.Egress))
			}
		}
	}
	slices.Sort(list)
	return list
}

// TestRecovered_Emulator fits runs of the emulator itself, and holds the fit against its truth
// log: what the lab did, which on a busy machine is later than its profile says. With -v it
// prints the table.
func TestRecovered_Emulator(t *testing.T) {
	if testing.Short() {
		t.Skip("runs four experiments")
	}
	type want struct {
		q    fit.Quantity
		path string
		// The medians of the modes as they were set, and half-ways between them.
		modes, cuts []time.Duration
	}
	for _, tc := range []struct {
		name, switching, firmware string
		repeats                   int
		want                      []want
	}{
		{"one mode", "single: 20ms, jitter: 1ms", "quick", 14, []want{{fit.Bulk, "", []time.Duration{20 * ms}, nil}, {fit.LightToFirmware, "", []time.Duration{45 * ms}, nil}}},
		{"two modes", "modes: [{share: 0.7, median: 20ms, spread: 1ms}, {share: 0.3, median: 60ms, spread: 2ms}]", "quick", 14,
			[]want{{fit.Bulk, "", []time.Duration{20 * ms, 60 * ms}, []time.Duration{40 * ms}}}},
		{"a slow path", "single: 20ms, jitter: 1ms, paths: [{path: 1>34, modes: [{share: 1, median: 70ms, spread: 2ms}]}]", "quick", 34,
			[]want{{fit.Bulk, "", []time.Duration{20 * ms}, nil}, {fit.Bulk, "1>34", []time.Duration{70 * ms}, nil}}},
		{"firmware with two modes", "single: 20ms, jitter: 1ms", "two.md#two", 14,
			[]want{{fit.LightToFirmware, "", []time.Duration{45 * ms, 125 * ms}, []time.Duration{85 * ms}}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := emulated(t, tc.switching, tc.firmware, tc.repeats)
			f := must(t, quick, r)
			for _, w := range tc.want {
				subject := "rail0"
				if w.q == fit.LightToFirmware {
					subject = "fitted"
				}
				s := stage(t, f, subject, w.q, w.path)
				all := truths(r, w.q, w.path)
				if w.q == fit.Bulk && w.path == "" && tc.name == "a slow path" {
					all = slices.DeleteFunc(all, func(d time.Duration) bool { return d > 45*ms })
				}
				for k, set := range w.modes {
					var of []time.Duration
					for _, d := range all {
						if (k == 0 || d > w.cuts[k-1]) && (k == len(w.cuts) || d <= w.cuts[k]) {
							of = append(of, d)
						}
					}
					if len(of) == 0 {
						t.Fatalf("%s: no truth around %v", s.Name(), set)
					}
					truth := of[len(of)/2]
					best := 0
					for i, m := range s.Fitted.Mixture {
						if (m.Median - truth).Abs() < (s.Fitted.Mixture[best].Median - truth).Abs() {
							best = i
						}
					}
					m, e := s.Fitted.Mixture[best], s.Fitted.Errors[best]
					t.Logf("%-26s mode %d: n=%-4d set %-7v did %-9v fitted %-20s share %.2f of %.2f, each known to %v", s.Name(), k+1, s.Fitted.Count, set,
						truth.Round(10*time.Microsecond), fit.Known(m.Median, e.Median), m.Share, float64(len(of))/float64(len(all)), s.KnownTo().Round(10*time.Microsecond))
					if off := (m.Median - truth).Abs(); off > 6*e.Median+s.KnownTo() {
						t.Errorf("%s: %s, the lab did %v", s.Name(), fit.ModesText(s.Fitted), truth)
					}
				}
			}
		})
	}
}
