package planning

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ocslab/ocslab/experiment/report"
	"github.com/ocslab/ocslab/experiment/report/chart"
	"github.com/ocslab/ocslab/internal/quantity"
	"github.com/ocslab/ocslab/topology/pccl"
	"github.com/ocslab/ocslab/topology/pccl/fibre"
)

// The sweep: buffers of 1 kB to 1 GB, and switching times in seconds (appendix A of the paper, and its 5 µs).
var (
	sweepGPUs     = []int{8, 32, 64, 128}
	sweepBuffers  = []float64{1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9}
	sweepSwitches = []float64{5e-6, 10e-6, 25e-6, 50e-6, 500e-6}
)

// sweepRows go through all sizes (figures 7, 17 and 18).
func sweepRows(ctx context.Context, s *report.Study) error {
	section := report.StudySection{
		Title:   "Sweep of GPUs, topologies, buffers and switching times, in µs",
		Columns: []string{"GPUs", "topology", "ties", "bytes", "switching", "PCCL", "changes"},
	}
	for _, x := range baselines {
		section.Columns = append(section.Columns, x.name)
	}
	low, high := math.Inf(1), 0.0
	for _, gpus := range sweepGPUs {
		for _, ties := range allTies {
			all, err := benches(gpus, ties)
			if err != nil {
				return err
			}
			for _, b := range all {
				for _, bytes := range sweepBuffers {
					if err := ctx.Err(); err != nil {
						return err
					}
					rows, plans, err := b.sweep(bytes)
					if err != nil {
						return err
					}
					section.Table = append(section.Table, rows...)
					if gpus > 8 { // the paper's
						_, best := b.least(bytes)
						low, high = min(low, best/plans[0].Total), max(high, best/plans[0].Total)
					}
				}
			}
		}
	}
	s.Paper.Rows = append(s.Paper.Rows, report.PaperRow{
		Quantity: "best fixed / PCCL, 1 kB to 1 GB at 5 µs", Paper: "2 to 4", Ours: fmt.Sprintf("%.2f to %.2f", low, high), Deviation: "-",
		Note: "The best algorithm on each topology, on either side of 1: the paper's range is that of algorithms it chose, not of the best.",
	})
	speedup, err := speedupChart()
	if err != nil {
		return err
	}
	s.Sections = append(s.Sections, report.StudySection{Title: "From which buffer on it pays to rewire", Charts: []chart.Chart{speedup}}, section)
	return nil
}

// sweep returns a row for each switching time, and the plans.
func (b *bench) sweep(bytes float64) ([][]string, []pccl.Plan, error) {
	table, err := b.table(bytes)
	if err != nil {
		return nil, nil, err
	}
	var rows [][]string
	var plans []pccl.Plan
	for _, r := range sweepSwitches {
		p, err := table.Best(r)
		if err != nil {
			return nil, nil, err
		}
		row := []string{strconv.Itoa(b.gpus), b.on.Name(), string(b.ties), strconv.FormatFloat(bytes, 'f', 0, 64), micro(r), micro(p.Total), strconv.Itoa(p.Changes)}
		for _, x := range b.static {
			row = append(row, micro(x.at(bytes)))
		}
		rows, plans = append(rows, row), append(plans, p)
	}
	return rows, plans, nil
}

// speedupChart shows the best baseline over PCCL for 128 GPUs.
func speedupChart() (*chart.Lines, error) {
	c := &chart.Lines{
		Frame: chart.Frame{Title: "Best algorithm on a fixed topology over PCCL, 128 GPUs, 5 µs", About: "Above 1, rewiring is quicker. Lex ties."},
		X:     chart.Axis{Title: "buffer of a GPU, MB", Kind: chart.Number, Log: true}, Y: chart.Axis{Title: "factor", Kind: chart.Number},
		Levels: []chart.Level{{Y: 1, Label: "equal"}},
	}
	all, err := benches(paperGPUs, pccl.Lex)
	if err != nil {
		return nil, err
	}
	for i, b := range all {
		line := chart.Line{Label: b.on.Name(), Tone: chart.SeriesTone(i)}
		for third := range 19 {
			bytes := 1e3 * math.Pow(10, float64(third)/3)
			t, err := b.table(bytes)
			if err != nil {
				return nil, err
			}
			p, err := t.Best(paperSwitch)
			if err != nil {
				return nil, err
			}
			_, best := b.least(bytes)
			line.Points = append(line.Points, chart.Point{X: bytes / 1e6, Y: best / p.Total})
		}
		c.Curves = append(c.Curves, line)
	}
	return c, nil
}

// delayRows follow the number of changes over the switching time (appendix A).
func delayRows(_ context.Context, s *report.Study) error {
	ring, err := pccl.Ring(paperGPUs)
	if err != nil {
		return err
	}
	section := report.StudySection{
		Title:   "From which switching time on a plan rewires less often, 128 GPUs on a ring",
		Columns: []string{"buffer, changes", "from", "to", "time without switching"},
	}
	c := &chart.Lines{
		Frame: chart.Frame{Title: "Changes of the best plan over the switching time", About: "128 GPUs on a ring, reduce-scatter by halving."},
		X:     chart.Axis{Title: "switching time", Kind: chart.Time, Log: true}, Y: chart.Axis{Title: "changes", Kind: chart.Number, Whole: true},
	}
	for i, bytes := range []float64{1e6, paperBuffer, 1e9} {
		t, err := paperTable(pccl.ReduceScatter, pccl.RHDHalving, ring, pccl.Lex, bytes)
		if err != nil {
			return err
		}
		pieces, err := t.Envelope()
		if err != nil {
			return err
		}
		line := chart.Line{Label: quantity.Bytes(bytes), Tone: chart.SeriesTone(i), Stepped: true}
		for _, p := range pieces {
			to := quantity.Seconds(p.To)
			if math.IsInf(p.To, 1) {
				to = "any"
			}
			section.Table = append(section.Table, []string{fmt.Sprintf("%s, %d", quantity.Bytes(bytes), p.Changes), quantity.Seconds(p.From), to, quantity.Seconds(p.Time)})
			line.Points = append(line.Points, chart.Point{X: max(p.From*1e9, 1e3), Y: float64(p.Changes)})
		}
		last := line.Points[len(line.Points)-1]
		line.Points = append(line.Points, chart.Point{X: max(1e8, 2*last.X), Y: last.Y})
		c.Curves = append(c.Curves, line)
		if bytes == paperBuffer {
			if err := appendix(t, s); err != nil {
				return err
			}
		}
	}
	section.Charts = []chart.Chart{c}
	s.Sections = append(s.Sections, section)
	return nil
}

// appendix compares the counts of appendix A.
func appendix(t *pccl.Table, s *report.Study) error {
	var counts []int
	for _, r := range []float64{10e-6, 25e-6, 50e-6, 500e-6} {
		p, err := t.Best(r)
		if err != nil {
			return err
		}
		counts = append(counts, p.Changes)
	}
	row := report.PaperRow{Quantity: "changes at 10, 25, 50, 500 µs (appendix A)", Paper: "falling",
		Ours: strings.Trim(strings.ReplaceAll(fmt.Sprint(counts), " ", ", "), "[]"), Deviation: "within"}
	if !slices.IsSortedFunc(counts, func(a, b int) int { return b - a }) {
		row.Deviation = "not so"
	}
	s.Paper.Rows = append(s.Paper.Rows, row)
	return nil
}

// fibreRows lay fibres between servers (section 4.2).
func fibreRows(ctx context.Context, s *report.Study) error {
	g, err := fibre.Grid(8, 8)
	if err != nil {
		return err
	}
	const drawn = "The draw of the paper is not known; ours has no circuit from a server to itself, which would make it 31 to 35 for 512. " +
		"Proved to be the least there can be, by a bound, "
	for _, x := range []struct {
		circuits, paper int
		seeds           uint64
	}{{100, 7, 5}, {512, 31, 3}} {
		low, high, proved := math.MaxInt, 0, 0
		var slowest time.Duration
		for seed := range x.seeds {
			requests, err := fibre.Random(g.Servers(), x.circuits, seed+1)
			if err != nil {
				return err
			}
			began := time.Now()
			r, err := fibre.Route(ctx, g, requests, fibre.Options{Seed: seed + 1})
			if err != nil {
				return err
			}
			slowest = max(slowest, time.Since(began))
			low, high = min(low, r.Fibres), max(high, r.Fibres)
			if r.Optimal() {
				proved++
			}
		}
		row := report.PaperRow{Quantity: fmt.Sprintf("fibres, 64 servers, %d circuits", x.circuits), Paper: strconv.Itoa(x.paper),
			Ours: fmt.Sprintf("%d to %d", low, high), Deviation: "within",
			Note: drawn + fmt.Sprintf("in %d of %d draws.", proved, x.seeds)}
		if low == high {
			row.Ours = strconv.Itoa(low)
		}
		if x.paper < low || x.paper > high {
			row.Deviation = fmt.Sprintf("%+d to %+d", low-x.paper, high-x.paper)
			if low == high {
				row.Deviation = fmt.Sprintf("%+d", low-x.paper)
			}
		}
		s.Paper.Rows = append(s.Paper.Rows, row, report.PaperRow{Quantity: fmt.Sprintf("time to route %d circuits", x.circuits), Paper: "below 10 s",
			Ours: quantity.Seconds(slowest.Seconds()), Deviation: map[bool]string{true: "within", false: "above"}[slowest < 10*time.Second], Note: "The slowest draw, on this machine."})
	}
	return nil
}

// swingRows compare how far the transfers of Swing go, which is how many share a link (section 6).
func swingRows(_ context.Context, s *report.Study) error {
	for _, x := range []struct {
		name, paper string
		percent     float64
		sizes       []int
	}{{"swing, 2D: congestion in excess", "19 %", 19, []int{128, 128}}, {"swing, 3D", "3 %", 3, []int{32, 32, 32}}} {
		gpus := 1
		for _, d := range x.sizes {
			gpus *= d
		}
		schedule, err := pccl.New(pccl.ReduceScatter, pccl.Swing(x.sizes...), gpus, 1)
		if err != nil {
			return err
		}
		sum := 0.0
		for _, r := range schedule.Rounds {
			sum += float64(onTorus(r.Transfers[0], x.sizes)) * r.Bytes // by symmetry all go as far
		}
		ours := 100 * (sum - 1)
		s.Paper.Rows = append(s.Paper.Rows, report.PaperRow{Quantity: x.name, Paper: x.paper, Ours: fmt.Sprintf("%.1f %%", ours),
			Deviation: fmt.Sprintf("%+.1f points", ours-x.percent), Note: "Hops of each round times its share of the buffer, less 1, of 128x128 and 32x32x32 GPUs; it goes to 20.0 and 3.7 % as tori grow."})
	}
	return nil
}

// onTorus is how many hops a transfer takes.
func onTorus(t pccl.Transfer, sizes []int) int {
	hops, a, b := 0, t.Src, t.Dst
	for _, d := range slices.Backward(sizes) {
		way := ((b-a)%d + d) % d
		hops += min(way, d-way)
		a, b = a/d, b/d
	}
	return hops
}

// beyondRows are what the paper leaves on the table.
func beyondRows(_ context.Context, s *report.Study) error {
	section := report.StudySection{
		Title:   "Beyond the paper: the algorithm is chosen, too",
		Text:    "The paper plans RHD alone. The best of all algorithms, each planned, is never worse, and where switching is slow it is one that needs no rewiring.",
		Columns: []string{"topology at first, buffer, switching, ties", "RHD planned, µs", "changes", "best, µs", "changes", "of", "factor"},
	}
	topologies, err := five(paperGPUs)
	if err != nil {
		return err
	}
	ranges := map[pccl.Ties]string{}
	for _, ties := range allTies {
		for _, x := range [][2]float64{{1e6, 5e-6}, {paperBuffer, 5e-6}, {1e9, 1e-3}} {
			low, high := math.Inf(1), 0.0
			for _, t := range topologies {
				row, gain, err := chosen(t, ties, x[0], x[1])
				if err != nil {
					return err
				}
				low, high = min(low, gain), max(high, gain)
				section.Table = append(section.Table, row)
			}
			ranges[ties] = fmt.Sprintf("%.2f to %.2f", low, high) // the last is of 1 GB
		}
	}
	s.Sections = append(s.Sections, section)
	s.Paper.Rows = append(s.Paper.Rows, report.PaperRow{Quantity: "RHD / best algorithm, both planned, 1 GB at 1 ms", Paper: "-",
		Ours: ranges[pccl.Lex], Deviation: "-", Note: fmt.Sprintf("%s with greedy ties. The paper plans RHD alone; to choose the algorithm, too, is worth most where switching is slow.", ranges[pccl.Greedy])})
	return nil
}

// chosen compares RHD as planned with the best of all algorithms, and returns by what factor that is quicker.
func chosen(t *pccl.Topology, ties pccl.Ties, bytes, switching float64) (row []string, gain float64, err error) {
	table, err := paperTable(pccl.ReduceScatter, pccl.RHDHalving, t, ties, bytes)
	if err != nil {
		return nil, 0, err
	}
	rhd, err := table.Best(switching)
	if err != nil {
		return nil, 0, err
	}
	problems, err := pccl.Portfolio(pccl.ReduceScatter, paperGPUs, bytes, t, nil, paperParams(ties))
	if err != nil {
		return nil, 0, err
	}
	all, err := pccl.Choose(problems, switching)
	if err != nil {
		return nil, 0, err
	}
	best := all[0]
	gain = rhd.Total / best.Total
	return []string{
		fmt.Sprintf("%s, %s, %s, %s", t.Name(), quantity.Bytes(bytes), quantity.Seconds(switching), ties), micro(rhd.Total), strconv.Itoa(rhd.Changes),
		micro(best.Total), strconv.Itoa(best.Changes), string(best.Schedule.Algorithm), fmt.Sprintf("%.2f", gain),
	}, gain, nil
}
