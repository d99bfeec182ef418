package planning

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/ocslab/ocslab/experiment/collective"
	"github.com/ocslab/ocslab/experiment/report"
	"github.com/ocslab/ocslab/internal/quantity"
	"github.com/ocslab/ocslab/topology/pccl"
	"github.com/ocslab/ocslab/topology/pccl/mesh"
)

// shareRows measure what is left of a link to each of several transfers (figure 6). Links are a thousand times slower than
// the paper's, as in the demonstration.
func shareRows(ctx context.Context, s *report.Study) error {
	const bytes = 32e6
	p := pccl.Params{Beta: 1000 * paperBeta}
	alone, err := collective.Share(ctx, p, 1, bytes)
	if err != nil {
		return err
	}
	for _, transfers := range []int{2, 4} {
		together, err := collective.Share(ctx, p, transfers, bytes)
		if err != nil {
			return err
		}
		s.Paper.Rows = append(s.Paper.Rows, shared(transfers, alone, together))
	}
	return nil
}

// shared compares what transfers that share a link took with what one alone did.
func shared(transfers int, alone, together time.Duration) report.PaperRow {
	const tolerated = 0.1
	divided := float64(together) / float64(alone)
	off := math.Round(1000*(divided/float64(transfers)-1))/1000 + 0 // + 0: never -0
	row := report.PaperRow{Quantity: fmt.Sprintf("bandwidth of %d that share a link (figure 6)", transfers), Paper: fmt.Sprintf("1/%d", transfers),
		Ours: fmt.Sprintf("1/%.2f", divided), Deviation: fmt.Sprintf("%+.1f %%", 100*off),
		Note: fmt.Sprintf("Metered copies of 32 MB at 0.45 GB/s, no data is moved: %s alone, %s together. The paper's are of H100s.",
			quantity.Seconds(alone.Seconds()), quantity.Seconds(together.Seconds()))}
	if math.Abs(off) > tolerated {
		row.Note += " More than 10 % off: this machine was busy."
	}
	return row
}

// bufferRows plan an all-reduce of the buffers of figure 10b, beside the best algorithm on each fixed topology.
func bufferRows(_ context.Context, s *report.Study) error {
	section := report.StudySection{
		Title:   "All-reduce of 1 to 64 MB on 128 GPUs, 5 µs, lex ties: best fixed / PCCL",
		Columns: []string{"topology at first"},
	}
	buffers := []float64{1e6, 2e6, 4e6, 8e6, 16e6, 32e6, 64e6}
	for _, bytes := range buffers {
		section.Columns = append(section.Columns, quantity.Bytes(bytes))
	}
	all, err := benches(paperGPUs, pccl.Lex)
	if err != nil {
		return err
	}
	low, high := math.Inf(1), 0.0
	for _, b := range all {
		row := []string{b.on.Name()}
		for _, bytes := range buffers {
			t, err := paperTable(pccl.AllReduce, pccl.RHDHalving, b.on, b.ties, bytes)
			if err != nil {
				return err
			}
			p, err := t.Best(paperSwitch)
			if err != nil {
				return err
			}
			_, half := b.least(bytes) // that of an all-gather is the same, the other way round
			factor := 2 * half / p.Total
			low, high = min(low, factor), max(high, factor)
			row = append(row, fmt.Sprintf("%.2f", factor))
		}
		section.Table = append(section.Table, row)
	}
	s.Sections = append(s.Sections, section)
	s.Paper.Rows = append(s.Paper.Rows, report.PaperRow{Quantity: "best fixed / PCCL, all-reduce, 1 to 64 MB (figure 10b)", Paper: "-",
		Ours: fmt.Sprintf("%.2f to %.2f", low, high), Deviation: "-",
		Note: "The sizes are the paper's; what it measured cannot be read off its figure. Below 1 on tori only, which swing and bucket are made for."})
	return nil
}

// trainingRows are what is not repeated (section 6).
func trainingRows(_ context.Context, s *report.Study) error {
	s.Paper.Rows = append(s.Paper.Rows, report.PaperRow{Quantity: "training of a transformer (section 6, figure 12)", Paper: "1.2 and 1.3",
		Ours: "-", Deviation: "not done", Note: "Speed-ups end to end need a simulation of training (FlexFlow, with times of A100s). Nothing is claimed here about training."})
	return nil
}

// meshRows route circuits through the largest mesh of the paper (section 4.2, figure 19a).
func meshRows(ctx context.Context, s *report.Study) error {
	const side, seed = 256, 1
	m, err := mesh.Grid(side, side)
	if err != nil {
		return err
	}
	section := report.StudySection{
		Title: "Circuits between random MZIs of a mesh of 256x256",
		Text: "Greedy is the paper's router, with weights that begin at 1; negotiated is the one used here, which finds at least as many; strict also keeps " +
			"the states of MZIs free of conflicts, which the paper does not look at.",
		Columns: []string{"circuits, router", "routed", "time", "a circuit"},
	}
	slowest, worst := time.Duration(0), time.Duration(0)
	for _, circuits := range []int{1, 16, 64} {
		requests, err := m.RandomPairs(circuits, seed)
		if err != nil {
			return err
		}
		for _, router := range []struct {
			name string
			run  func() (*mesh.Result, error)
		}{
			{"greedy", func() (*mesh.Result, error) { return m.Greedy(ctx, requests, mesh.Options{}) }},
			{"negotiated", func() (*mesh.Result, error) { return m.Route(ctx, requests, mesh.Options{}) }},
			{"strict", func() (*mesh.Result, error) { return m.Route(ctx, requests, mesh.Options{Strict: true}) }},
		} {
			began := time.Now()
			r, err := router.run()
			if err != nil {
				return err
			}
			took := time.Since(began)
			each := took / time.Duration(circuits)
			if router.name == "negotiated" {
				slowest, worst = max(slowest, took), max(worst, each)
			}
			section.Table = append(section.Table, []string{fmt.Sprintf("%d, %s", circuits, router.name), fmt.Sprint(r.Routed),
				quantity.Seconds(took.Seconds()), quantity.Seconds(each.Seconds())})
		}
	}
	s.Sections = append(s.Sections, section)
	row := report.PaperRow{Quantity: "time to route, mesh of 256x256 (figure 19a)", Paper: "below 2.5 s", Ours: quantity.Seconds(slowest.Seconds()), Deviation: "within",
		Note: fmt.Sprintf("The slowest of 1, 16 and 64 circuits, on this machine; %s a circuit at most. The paper's text has 65,000 MZIs, 256x256 are 65,536.",
			quantity.Seconds(worst.Seconds()))}
	if slowest > 2500*time.Millisecond {
		row.Deviation = "above"
	}
	s.Paper.Rows = append(s.Paper.Rows, row)
	return nil
}
