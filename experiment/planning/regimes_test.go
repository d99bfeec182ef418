package planning

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ocslab/ocslab/experiment/collective"
	"github.com/ocslab/ocslab/topology/pccl"
)

// measuredReport is a report as of a measurement: two plans on one switch.
func measuredReport(never time.Duration) *collective.Report {
	const ms = time.Millisecond
	return &collective.Report{Schedule: "reduce-scatter by rhd-halving", GPUs: 8, Bytes: 100e6, Params: pccl.Params{Alpha: 3e-3, Beta: 1 / 0.45e9}, Classes: []collective.Class{{
		Name: "mems", About: "MEMS mirrors", Protocol: "TL1", Nominal: 25 * ms, Measured: 30 * ms, Switching: []time.Duration{28 * ms, 30 * ms, 33 * ms}, Light: 26 * ms,
		Plans: []collective.Outcome{
			{Plan: pccl.Plan{Changes: 3}, Chosen: true, Predicted: 300 * ms, Nominal: 280 * ms, Measured: 309 * ms, Totals: []time.Duration{305 * ms, 309 * ms, 320 * ms},
				Rounds: []collective.Round{{Number: 0, Topology: "round 0", Changed: true, Predicted: 114 * ms, Measured: 115 * ms, Switching: 31 * ms}}},
			{Plan: pccl.Plan{}, Predicted: 604 * ms, Measured: never, Totals: []time.Duration{never}},
		},
	}}}
}

func TestRegimes(t *testing.T) {
	s := regimes(measuredReport(600 * time.Millisecond))
	var rows []string
	for _, r := range s.Paper.Rows {
		rows = append(rows, strings.Join([]string{r.Quantity, r.Paper, r.Ours, r.Deviation}, "|"))
	}
	want := []string{"mems, 25ms: 3 changes|280.0 ms|309.0 ms|+10.4 %", "mems: the planner chose the quickest|yes|yes|as planned"}
	if fmt.Sprint(rows) != fmt.Sprint(want) {
		t.Errorf("got %q, want %q", rows, want)
	}
	if got, want := fmt.Sprint(s.Sections[0].Table), "[[mems: 3 changes yes 300.0 ms 309.0 ms 305.0 ms 320.0 ms +3.0 %] [mems: 0 changes  604.0 ms 600.0 ms 600.0 ms 600.0 ms -0.7 %]]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := fmt.Sprint(s.Sections[1].Table), "[[0 round 0 31.0 ms 114.0 ms 115.0 ms +0.9 %]]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	var html, svg bytes.Buffer
	if err := s.HTML(&html); err != nil {
		t.Error(err)
	}
	if err := s.SVG(&svg, ""); err != nil || !strings.Contains(svg.String(), "mems: 3 changes (chosen)") {
		t.Errorf("%v, %s", err, &svg)
	}
}

// TestWrongChoice: a plan that turns out to be slower than another is said to be.
func TestWrongChoice(t *testing.T) {
	s := regimes(measuredReport(200 * time.Millisecond))
	last := s.Paper.Rows[len(s.Paper.Rows)-1]
	if last.Ours != "no, 0 changes" || last.Deviation != "not as planned" || last.Note == "" {
		t.Errorf("got %+v", last)
	}
}
