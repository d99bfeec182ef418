package study

import (
	"bytes"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"go.uber.org/goleak"

	"github.com/ocslab/ocslab/emulator/fabric"
	"github.com/ocslab/ocslab/examples"
	"github.com/ocslab/ocslab/experiment/report"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/orchestrator/check"
	"github.com/ocslab/ocslab/orchestrator/rail"
	"github.com/ocslab/ocslab/orchestrator/trace"
	"github.com/ocslab/ocslab/timeline"
	"github.com/ocslab/ocslab/topology/opus"
)

// quick is the testbed of the example files with a faster switch and faster NICs.
func quick(rung fabric.Rung) labSetup {
	return labSetup{
		labFile: bytes.Replace(examples.OpusRails, []byte("switching: 200ms"), []byte("switching: 20ms"), 1),
		jobFile: examples.LabJob, rung: rung,
		profiles: [2]labProfile{{lab.DefaultFirmware, "first"}, {lab.DefaultFirmware, "second"}},
	}
}

func labTrace(t *testing.T) *trace.Trace {
	t.Helper()
	tr, err := generate("lab-job")
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// Ensure a run sees every NIC come up, the reconfigurations that the job needs, and no violation; on the best rung that is to be
// had, which is real interfaces for root, and in memory.
func TestLabRun(t *testing.T) {
	for name, rung := range map[string]fabric.Rung{"best": 0, "memory": fabric.Memory} {
		t.Run(name, func(t *testing.T) {
			defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
			const steps = 2
			said := 0
			p := labRun{labSetup: quick(rung), name: "quick", firmware: lab.DefaultFirmware, steps: steps}
			r, err := p.run(t.Context(), labTrace(t), func(string) { said++ })
			if err != nil {
				t.Fatal(err)
			}
			if rung != 0 && r.on != rung {
				t.Errorf("stands on %v", r.on)
			}
			if said != 1+learning+steps {
				t.Errorf("progress was told %d times", said)
			}
			if v := r.out.Verdict; v == nil || !v.OK() || v.Lost != 0 {
				t.Errorf("the observer: %v", v)
			}
			up, merged := map[string]bool{}, 0
			for _, m := range r.marks {
				if m.Stage == timeline.CarrierUp {
					up[m.Subject] = true
				}
			}
			if len(up) != 16 {
				t.Errorf("%d NICs came up: %v", len(up), up)
			}
			for _, a := range r.account {
				merged += a.Merged
				if a.Missing != 0 {
					t.Errorf("%s: carriers that nobody knows of: %+v", a.Host, a)
				}
			}
			if r.out.Datagrams.Parts == 0 || r.out.Datagrams.Sent < int64(r.out.Datagrams.Parts) {
				t.Errorf("datagrams: %+v", r.out.Datagrams)
			}
			if n := countInventory(r); n != (inventory{4, 8, 8, 16, 16, 32, 2, 64}) {
				t.Errorf("inventory: %+v", n)
			}

			for _, c := range r.changes {
				for _, stage := range []timeline.Stage{timeline.Command, timeline.Ack} {
					if len(r.of(c, stage)) != 1 {
						t.Errorf("change %d has %d marks of %s", c.number, len(r.of(c, stage)), stage)
					}
				}
			}
			from, to := r.measured()
			for step := from; step < to; step++ {
				for _, x := range r.job.Rails {
					checkDigits(t, r.job.Job(), step, r.in(step, x.Name))
				}
			}
			for _, x := range timeline.Summarize(r.marks, timeline.Options{Expected: r.expected}).Missed {
				if x.Stage == timeline.Light || x.Stage == timeline.Traffic || x.Stage == timeline.CarrierUp && merged == 0 {
					t.Errorf("not seen: %+v", x)
				}
			}
			if rung == fabric.Memory && !strings.Contains(r.section().Text, "No network devices") {
				t.Errorf("does not say what is missing in memory: %s", r.section().Text)
			}
		})
	}
}

// Ensure a rail that is ahead of the others is at the first measured step when its own part of the last before is over.
func TestTell_RailAhead(t *testing.T) {
	begin := time.Now()
	change := func(name string, req uint64, after time.Duration) rail.Event {
		return rail.Event{What: rail.Connected, Rail: name, Requests: []uint64{req}, Receipt: ocs.Receipt{Begun: begin.Add(after)}}
	}
	ns := func(after time.Duration) int64 { return timeline.HostAxis().NS(begin.Add(after)) }
	const last = learning - 1
	r := &labResult{ends: make([]int64, learning+1)}
	r.ends[last], r.ends[learning] = ns(4*time.Second), ns(8*time.Second)
	r.tell(&recorder{
		events: []rail.Event{change("rail0", 1, 0), change("rail1", 1, 0), change("rail0", 2, 2*time.Second), change("rail1", 2, 5*time.Second)},
		ops: []check.Op{{Rail: "rail0", Step: last, EndNS: ns(time.Second)}, {Rail: "rail1", Step: last, EndNS: ns(3 * time.Second)},
			{Rail: "rail0", Step: learning, EndNS: ns(7 * time.Second)}, {Rail: "rail1", Step: learning, EndNS: ns(8 * time.Second)}},
	})
	for _, name := range []string{"rail0", "rail1"} {
		if n := len(r.in(learning, name)); n != 1 || len(r.changes) != 2 {
			t.Errorf("%s: %d changes in the first measured step, and %d in all", name, n, len(r.changes))
		}
	}
}

// checkDigits holds the reconfigurations of a rail in a step against the topology IDs that they lead to. A step begins and ends
// with all stages at data parallelism, and passes through 00 twice, as transfers go both ways.
func checkDigits(t *testing.T, j opus.Job, step int, changes []*labChange) {
	t.Helper()
	at, err := j.ParseID("11")
	if err != nil {
		t.Fatal(err)
	}
	pipeline := 0
	for _, c := range changes {
		next, err := j.ParseID(c.id)
		if err != nil {
			t.Fatal(err)
		}
		from, err := opus.Build(j, at, opus.Pair)
		if err != nil {
			t.Fatal(err)
		}
		to, err := opus.Build(j, next, opus.Pair)
		if err != nil {
			t.Fatal(err)
		}
		d, err := from.Delta(to, opus.Regular(j.DuplexPorts(), 1, 33))
		if err != nil {
			t.Fatal(err)
		}
		change, err := d.Change()
		if err != nil {
			t.Fatal(err)
		}
		if len(c.removed) != change.Remove.Len() || len(c.added) != change.Add.Len() {
			t.Errorf("step %d, %s: %v to %v removes %d and adds %d cross-connects, want %d and %d", step, c.rail, at, next,
				len(c.removed), len(c.added), change.Remove.Len(), change.Add.Len())
		}
		if at = next; c.id == "00" {
			pipeline++
		}
	}
	if len(changes) < 4 || len(changes) > 5 || pipeline != 2 || at.String() != "11" {
		t.Errorf("step %d: %d reconfigurations, %d of them to the pipeline, and the last to %v", step, len(changes), pipeline, at)
	}
}

// Ensure durations are told as people write them.
func TestSpread(t *testing.T) {
	for want, d := range map[string][]time.Duration{
		"not seen":                            nil,
		"75 µs (70 µs to 80 µs, n 3)":         {80e3, 70e3, 75e3},
		"203.4 ms (201.0 ms to 9.500 s, n 4)": {9.5e9, 203.4e6, 201e6, 203e6},
		"3.000 s (3.000 s to 3.000 s, n 1)":   {3e9},
	} {
		if got := spreadOf(d).String(); got != want {
			t.Errorf("%v: got %s, want %s", d, got, want)
		}
	}
}

// Ensure the whole study comes out of two quick firmwares, and says what it should.
func TestLabStudy(t *testing.T) {
	s, err := quick(0).study(t.Context(), report.FigureOptions{Progress: func(string) {}, Repeats: 1})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"4", "200 Gb/s", "4, 8, 8", "16, 16, 32", "2, 64"} {
		if row := s.Paper.Rows[i]; row.Paper != want || row.Ours != want {
			t.Errorf("%s: paper %s, ours %s; want %v", row.Quantity, row.Paper, row.Ours, want)
		}
	}
	if n := len(s.Paper.Rows); n != 10 {
		t.Errorf("%d rows of comparison", n)
	}
	for _, x := range s.Sections {
		for _, row := range x.Table {
			if len(row) != len(x.Columns) {
				t.Errorf("%s: %d cells in %d columns", x.Title, len(row), len(x.Columns))
			}
		}
		for line := range strings.Lines(x.Pre) {
			if utf8.RuneCountInString(strings.TrimSuffix(line, "\n")) > 100 {
				t.Errorf("%s: too wide: %s", x.Title, line)
			}
		}
	}
	var text, html strings.Builder
	if err := s.Text(&text); err != nil {
		t.Fatal(err)
	}
	if err := s.HTML(&html); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"gpu4/ens2f1", "Where the time of a step goes", "the giant ring", "giant ring, datagrams", "first operation"} {
		if !strings.Contains(text.String(), want) || want == "gpu4/ens2f1" && !strings.Contains(html.String(), want) {
			t.Errorf("the study does not say %q:\n%s", want, text.String())
		}
	}
}
