package experiment_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/ocslab/ocslab/experiment"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/linkmon/probe"
	"github.com/ocslab/ocslab/linkmon/watch"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/timeline"
)

// Ensure a move ends with the stage it is to wait for, and expects nothing that comes later.
func TestBench_Until(t *testing.T) {
	for _, x := range []struct {
		until                   timeline.Stage
		light, carrier, traffic bool
	}{
		{timeline.Light, true, false, false},
		{timeline.CarrierUp, true, true, false},
		{timeline.Traffic, true, true, true},
		{"", true, true, true},
	} {
		t.Run(string(x.until), func(t *testing.T) {
			tb := testbed(t, nil)
			for i := range 2 {
				if _, err := tb.Bench.Move(t.Context(), 0, tb.Maps[i], ocs.Update); err != nil {
					t.Fatal(err)
				}
			}
			tb.Bench.Until = x.until
			mv, err := tb.Bench.Move(t.Context(), 1, tb.Maps[0], ocs.Update)
			if err != nil || len(mv.Unresolved) > 0 {
				t.Fatal(err, mv.Unresolved)
			}
			expected := map[timeline.Stage]bool{}
			for _, e := range mv.Expected {
				expected[e.Stage] = true
			}
			seen := stages(mv.Marks)
			for stage, want := range map[timeline.Stage]bool{timeline.Light: x.light, timeline.CarrierUp: x.carrier, timeline.Traffic: x.traffic} {
				if expected[stage] != want {
					t.Errorf("%s expected: %v, want %v", stage, expected[stage], want)
				}
				if want && seen[string(stage)] == 0 {
					t.Errorf("no mark of %s in %v", stage, seen)
				}
			}
			// A busy machine may interrupt traffic at any time and leave gaps, which notes are for.
			// What the move itself has interrupted is a mark, whatever it waited for.
			marked := map[string]bool{}
			for _, m := range mv.Marks {
				if m.Stage == timeline.TrafficLost {
					marked[m.Subject] = true
				}
			}
			for c := range tb.Maps[1]["rail0"].All() {
				flow := probe.Flow{From: tb.Lab.File.Sender("rail0", c.Ingress), To: tb.Lab.File.Receiver("rail0", c.Egress)}.String()
				for _, n := range mv.Notes {
					if n.Kind == watch.Outage && n.Subject == flow && !marked[flow] {
						t.Errorf("a note of what the move did itself: %+v", n)
					}
				}
			}
		})
	}
}

// Ensure a move of a fixed time lasts that long, and tells what has not come back.
func TestBench_Fixed(t *testing.T) {
	tb := testbed(t, func(_ *lab.File, opt *experiment.TestbedOptions) { opt.Fabric.Firmware = "connectx-6-dx/autoneg-off" })
	tb.Bench.Fixed = 400 * time.Millisecond
	if _, err := tb.Bench.Move(t.Context(), 0, tb.Maps[0], ocs.Update); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	mv, err := tb.Bench.Move(t.Context(), 1, tb.Maps[1], ocs.Update)
	if err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took < tb.Bench.Fixed {
		t.Errorf("took %v, want at least %v", took, tb.Bench.Fixed)
	}
	if seen := stages(mv.Marks); seen["light"] == 0 || seen["carrier-up"] != 0 {
		t.Errorf("the light is back after 200 ms and the links after three seconds, but there are marks of %v", seen)
	}
	if want := "carrier-up: not within 400ms"; !strings.Contains(strings.Join(mv.Unresolved, "\n"), want) {
		t.Errorf("unresolved: %q, want %q, as no link has come up", mv.Unresolved, want)
	}
}

// Ensure a null toggle moves nothing, lasts its window, and shows nothing but its own exchange.
func TestBench_Null(t *testing.T) {
	tb := testbed(t, nil)
	if _, err := tb.Bench.Move(t.Context(), 0, tb.Maps[0], ocs.Update); err != nil {
		t.Fatal(err)
	}
	tb.Truth(0)
	began := time.Now()
	mv, err := tb.Bench.Null(t.Context(), 7, 100*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took < 100*time.Millisecond {
		t.Errorf("took %v, want at least 100ms", took)
	}
	if truth := tb.Truth(7); len(truth) > 0 {
		t.Errorf("something was moved: %v", truth)
	}
	seen := stages(mv.Marks)
	if seen["command"] != 1 || seen["ack"] != 1 || len(seen) != 2 {
		t.Errorf("marks of %v, want one command and one ack", seen)
	}
	for _, m := range mv.Marks {
		if m.Reconfiguration != 7 {
			t.Errorf("mark of reconfiguration %d: %v", m.Reconfiguration, m)
		}
	}
	if len(mv.Samples) != 4 {
		t.Errorf("samples of %d ports, want those of the 4 that are lit", len(mv.Samples))
	}
	for subject, samples := range mv.Samples {
		for _, s := range samples {
			if math.IsInf(s.PowerDBm, 0) || s.PowerDBm < -20 {
				t.Errorf("%s: %v dBm in a null toggle", subject, s.PowerDBm)
			}
		}
	}
}
