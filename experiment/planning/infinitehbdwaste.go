package planning

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/ocslab/ocslab/experiment/report"
	"github.com/ocslab/ocslab/experiment/report/chart"
	"github.com/ocslab/ocslab/topology/infinitehbd"
	"github.com/ocslab/ocslab/topology/infinitehbd/faults"
	"github.com/ocslab/ocslab/topology/infinitehbd/model"
)

// The cluster of figures 9 and 17: 9792 GPUs, in 17 of NVL-576.
const (
	wasteNodes      = 2448
	wasteStride     = 4 // nodes of a ToR, and so how far apart neighbours of the line are in the numbers
	wastePlacements = 8
	// The published sample of the trace names the servers that fail; it is of 400.
	sampleServers, sampleFailing, sampleFaults = 400, 231, 584
)

var wasteTPs = []int{8, 16, 32, 64}

// shownArchitectures are those of charts and tables, in their order; a Big-Switch wastes less than any.
var shownArchitectures = []string{"InfiniteHBD K=3", "InfiniteHBD K=2", "NVL-36", "NVL-72", "NVL-576", "TPUv4, SiP-Ring"}

// replays are simulations that differ in what is drawn: where servers stand, and the trace if none is given.
type replays struct {
	trace   string // for people
	drawn   bool
	stats   faults.Stats
	results []*faults.Result
}

// mean returns the mean over the simulations of what a row says, with the least and the most.
func (r *replays) mean(name string, tp int, of func(*faults.Row) float64) chart.Point {
	p := chart.Point{X: float64(tp)}
	for i, x := range r.results {
		v := of(x.Row(name, tp))
		p.Y += v / float64(len(r.results))
		if i == 0 {
			p.Low, p.High = v, v
		}
		p.Low, p.High = min(p.Low, v), max(p.High, v)
	}
	return p
}

// waste returns the mean waste.
func (r *replays) waste(name string, tp int) float64 {
	return r.mean(name, tp, func(x *faults.Row) float64 { return x.Mean }).Y
}

// traces returns the trace of each simulation, how many servers it is of, and what to call it.
func traces(path string) (trace func(seed uint64) (*faults.Trace, error), servers int, about string, err error) {
	if path == "" {
		return func(seed uint64) (*faults.Trace, error) { return faults.Generate(faults.GenerateOptions{Seed: seed}) }, sampleServers,
			"drawn like the sample that the authors have published, anew for each placement; --faults FILE replays the sample itself", nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, "", err
	}
	defer f.Close()
	t, err := faults.Parse(f, path)
	if err != nil {
		return nil, 0, "", err
	}
	servers, about = len(t.Names), fmt.Sprintf("%s: %d faults of %d servers", filepath.Base(path), len(t.Faults), len(t.Names))
	if len(t.Names) == sampleFailing && len(t.Faults) == sampleFaults {
		servers = sampleServers
		about += fmt.Sprintf(", which is the published sample: %d servers, of which the others never fail", servers)
	}
	if n := len(t.Unmatched); n > 0 {
		about += fmt.Sprintf("; %d events without their other half, the first: %v", n, t.Unmatched[0])
	}
	return func(uint64) (*faults.Trace, error) { return t, nil }, servers, about, nil
}

// replayTraces simulates a cluster whose neighbours are a stride apart.
func replayTraces(ctx context.Context, path string, stride, placements int, archs []faults.Architecture, tps []int) (*replays,
	error) {
	trace, servers, about, err := traces(path)
	if err != nil {
		return nil, err
	}
	order, err := infinitehbd.Deploy(wasteNodes, stride)
	if err != nil {
		return nil, err
	}
	all := &replays{trace: about, drawn: path == ""}
	for seed := range uint64(placements) {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		t, err := trace(seed)
		if err != nil {
			return nil, err
		}
		stats, err := t.Stats(servers)
		if err != nil {
			return nil, err
		}
		all.stats.Mean += stats.Mean / float64(placements)
		all.stats.P99 += stats.P99 / float64(placements)
		r, err := faults.Simulate(t, faults.Cluster{Nodes: wasteNodes, Order: order}, archs, tps, faults.Options{Step: 1,
			Servers: servers, Seed: seed})
		if err != nil {
			return nil, err
		}
		all.results = append(all.results, r)
	}
	return all, nil
}

func infinitehbdWaste(ctx context.Context, opt report.FigureOptions) (*report.Study, error) {
	placements := wastePlacements
	if opt.Repeats > 0 {
		placements = opt.Repeats
	}
	s := &report.Study{Emulated: "A trace is replayed on counts of GPUs; nothing was run."}
	s.Paper.Title = "waste: GPUs that are healthy and in no full ring, as a share of all"
	opt.Progress("replaying faults")
	all, err := replayTraces(ctx, opt.Trace, wasteStride, placements, faults.Architectures(), wasteTPs)
	if err != nil {
		return nil, err
	}
	s.Facts = [][2]string{{"trace", all.trace},
		{"cluster", fmt.Sprintf("%d nodes of 4 GPUs, two to a server of the trace, each concerned by half of its faults; smaller "+
			"traces are repeated", wasteNodes)},
		{"placements", fmt.Sprintf("%d: which server stands where is drawn, since no trace says so; looked at once a day", placements)},
		{"line", fmt.Sprintf("neighbours are %d nodes apart, as Algorithm 1 cables ToRs of %d", wasteStride, wasteStride)}}
	wasteRows(s, all)
	bySizeOfRing(s, all)
	overTime(s, all)
	whoWaits(s, all)
	opt.Progress("neighbours")
	if err := strides(ctx, s, opt.Trace, placements); err != nil {
		return nil, err
	}
	if err := bounds(s); err != nil {
		return nil, err
	}
	fragments(s)
	return s, nil
}

// wasteRows are sections 1 and 6.1, figures 9, 10 and 17, and appendix A.
func wasteRows(s *report.Study, all *replays) {
	k3, nvl, tpu := all.waste("InfiniteHBD K=3", 32), all.waste("NVL-72", 32), all.waste("TPUv4, SiP-Ring", 32)
	const paperFaults = 2.66
	scaled := tpu * paperFaults / (100 * all.stats.Mean)
	percent := func(quantity string, paper, ours float64, note string) report.PaperRow {
		return report.PaperRow{Quantity: quantity, Paper: fmt.Sprintf("%.2f %%", paper), Ours: fmt.Sprintf("%.2f %%", 100*ours),
			Deviation: points(paper, 100*ours, 2), Note: note}
	}
	times := func(quantity string, paper, ours float64) report.PaperRow {
		return report.PaperRow{Quantity: quantity, Paper: fmt.Sprintf("%.0f times", paper), Ours: fmt.Sprintf("%.0f times", ours),
			Deviation: off(paper, ours, 0)}
	}
	another := "The paper's whole trace is not public; what is replayed has fewer faults."
	if all.drawn {
		another = "Faults are drawn independently of each other here. In the published sample some days are much worse than the " +
			"mean, so worst days are not reproduced."
	}
	s.Paper.Rows = append(s.Paper.Rows,
		percent("servers that are down, mean (section 6.1)", paperFaults, all.stats.Mean, another),
		percent("- on the worst day of a hundred", 7.92, all.stats.P99, another),
		percent("waste at TP-32, InfiniteHBD K=3 (figures 9, 17)", 0.15, k3, ""),
		percent("- NVL-72", 10.31, nvl, ""),
		percent("- TPUv4", 6.76, tpu, "Fewer servers are down here, and static rings lose in proportion: see the next row."),
		percent("- TPUv4, scaled to the paper's faults", 6.76, scaled, ""),
		times("NVL-72 over InfiniteHBD", 69, nvl/k3), times("TPUv4 over InfiniteHBD", 45, tpu/k3))
	for _, x := range []struct {
		gpus int
		tps  []int
	}{{36, []int{16, 32}}, {72, []int{16, 32, 64}}} {
		least, most := 1.0, 0.0
		for _, tp := range x.tps {
			ours := float64(model.Fragment(x.gpus, 0, tp)) / float64(x.gpus)
			least, most = min(least, ours), max(most, ours)
		}
		s.Paper.Rows = append(s.Paper.Rows, report.PaperRow{Quantity: fmt.Sprintf("NVL-%d without a fault, TP-16 to TP-%d (figure 10)",
			x.gpus, x.tps[len(x.tps)-1]),
			Paper: "about 11 %", Ours: percents(most), Deviation: told(least > 0.105 && most < 0.115)})
	}
	half := model.HalfRate(paperFaults/100, 8)
	s.Paper.Rows = append(s.Paper.Rows, percent("half of a server is concerned by its fault (appendix A)", 50.38, half,
		fmt.Sprintf("From the same faults: %s of GPUs, %s of nodes of 4.", percents(model.GPURate(paperFaults/100, 8)),
			percents(model.NodeRate(model.GPURate(paperFaults/100, 8), 4)))))
}

// bySizeOfRing is figure 9.
func bySizeOfRing(s *report.Study, all *replays) {
	section := report.StudySection{Title: "Waste by size of the rings", Columns: []string{"", "TP-8", "TP-16", "TP-32", "TP-64",
		"TP-32, placements from", "to"},
		Text: "Mean over time. NVL-36 has no room for a ring of 64. SiP-Ring and TPUv4, as the paper describes them, lose the same " +
			"GPUs: " +
			"rings do not change, and one with a dead node is lost."}
	lines := chart.Lines{Frame: chart.Frame{Title: "Mean waste by size of the rings"}, X: chart.Axis{Title: "GPUs of a ring (TP)",
		Kind: chart.Number, Log: true},
		Y: chart.Axis{Title: "GPUs healthy and in no ring", Kind: chart.Portion, Log: true}}
	for i, name := range append([]string{"Big-Switch"}, shownArchitectures...) {
		row := []string{name}
		curve := chart.Line{Label: name, Tone: chart.SeriesTone(i - 1)}
		var at32 chart.Point
		for _, tp := range wasteTPs {
			p := all.mean(name, tp, func(x *faults.Row) float64 { return x.Mean })
			row = append(row, percents(p.Y))
			if tp == 32 {
				at32 = p
			}
			p.Low, p.High = 0, 0
			curve.Points = append(curve.Points, p)
		}
		section.Table = append(section.Table, append(row, percents(at32.Low), percents(at32.High)))
		if i > 0 {
			lines.Curves = append(lines.Curves, curve)
		}
	}
	section.Charts = []chart.Chart{lines}
	s.Sections = append(s.Sections, section)
}

// overTime is figure 17.
func overTime(s *report.Study, all *replays) {
	r := all.results[0]
	lines := chart.Lines{Frame: chart.Frame{Title: "Waste at TP-32 day by day, the first placement"}, X: chart.Axis{Title: "day",
		Kind: chart.Number, Whole: true},
		Y: chart.Axis{Title: "GPUs healthy and in no ring", Kind: chart.Portion}}
	for i, name := range shownArchitectures {
		if name == "InfiniteHBD K=2" { // hides K=3
			continue
		}
		curve := chart.Line{Label: name, Tone: chart.SeriesTone(i), Stepped: true}
		for k, w := range r.Row(name, 32).Wasted(r.GPUs) {
			curve.Points = append(curve.Points, chart.Point{X: r.Times[k], Y: w})
		}
		lines.Curves = append(lines.Curves, curve)
	}
	s.Sections = append(s.Sections, report.StudySection{Title: "Waste over time", Charts: []chart.Chart{lines}})
}

// whoWaits is how many GPUs one job can have.
func whoWaits(s *report.Study, all *replays) {
	const most = wasteNodes * 4
	jobs := []int{8192, 8704, 9216, 9408, 9600}
	section := report.StudySection{Title: "GPUs that a job can use, and how long it waits for them, TP-32",
		Columns: []string{"", "mean", "99 % of the time"},
		Text: fmt.Sprintf("Of %d GPUs. A job waits while fewer GPUs than it wants are in full rings. Copies of the trace fail at the "+
			"same times here, "+
			"which makes peaks: with shifted copies there are lower ones.", most)}
	for _, j := range jobs {
		section.Columns = append(section.Columns, fmt.Sprintf("%d GPUs wait", j))
	}
	lines := chart.Lines{Frame: chart.Frame{Title: "How much of the time a job has to wait, TP-32"},
		X: chart.Axis{Title: "GPUs that the job wants", Kind: chart.Number, Whole: true},
		Y: chart.Axis{Title: "time that it waits", Kind: chart.Portion}}
	for i, name := range shownArchitectures {
		wait := func(gpus int) float64 {
			return all.mean(name, 32, func(x *faults.Row) float64 { return x.Waiting(gpus) }).Y
		}
		row := []string{name, fmt.Sprintf("%.0f", all.mean(name, 32, func(x *faults.Row) float64 { return x.Usable }).Y),
			fmt.Sprintf("%.0f", all.mean(name, 32, func(x *faults.Row) float64 { return float64(x.UsableP1) }).Y)}
		for _, j := range jobs {
			row = append(row, portion(wait(j)))
		}
		section.Table = append(section.Table, row)
		curve := chart.Line{Label: name, Tone: chart.SeriesTone(i)}
		for gpus := 8192; gpus <= most; gpus += 64 {
			curve.Points = append(curve.Points, chart.Point{X: float64(gpus), Y: wait(gpus)})
		}
		lines.Curves = append(lines.Curves, curve)
	}
	section.Charts = []chart.Chart{lines}
	s.Sections = append(s.Sections, section)
}

// strides is what it matters how nodes are cabled.
func strides(ctx context.Context, s *report.Study, path string, placements int) error {
	section := report.StudySection{Title: "Which nodes are neighbours in the line, waste at TP-32",
		Columns: []string{"neighbours are apart by", "K=2", "K=3", "K=2 less K=3"},
		Text: "Ours, beyond the paper. Two nodes of a server often die together: next to each other they break a line of K=2, which " +
			"cannot reach over two dead nodes. " +
			"Any stride of Algorithm 1 above 1 takes them apart, and only then two bundles are nearly as good as three."}
	var archs []faults.Architecture
	for _, a := range faults.Architectures() {
		if a.Rule == faults.Bypass {
			archs = append(archs, a)
		}
	}
	for _, p := range []int{1, 2, 4, 8, 16} {
		r, err := replayTraces(ctx, path, p, placements, archs, []int{32})
		if err != nil {
			return err
		}
		k2, k3 := r.waste("InfiniteHBD K=2", 32), r.waste("InfiniteHBD K=3", 32)
		section.Table = append(section.Table, []string{fmt.Sprint(p), percents(k2), percents(k3), fmt.Sprintf("%+.3f points",
			100*(k2-k3))})
	}
	s.Sections = append(s.Sections, section)
	return nil
}

// bounds is table 7.
func bounds(s *report.Study) error {
	const tp = 32
	section := report.StudySection{Title: "The paper's bound and the exact waste, TP-32, faults independent of each other",
		Columns: []string{"nodes, reach", "nodes dead", "bound", "exact", "bound / exact"},
		Text: "The bound is 2 (TP - g) q^K of nodes of g GPUs. The exact value is ours: pieces of an endless line between breaks, " +
			"each cut into rings. " +
			"The end of a line costs (m-1)/2 nodes more, once, for rings of m nodes."}
	printed := map[[2]int]struct {
		text   string
		value  float64
		digits int
	}{{4, 2}: {"9.22 %", 9.22, 2}, {4, 3}: {"0.37 %", 0.37, 2}, {4, 4}: {"0.0152 %", 0.0152, 4},
		{8, 2}: {"30.11 %", 30.11, 2}, {8, 3}: {"2.38 %", 2.38, 2}, {8, 4}: {"0.19 %", 0.19, 2}}
	for _, gpus := range []int{4, 8} {
		q := model.NodeRate(0.0103, gpus)
		if gpus == 8 {
			q = 0.0792 // as printed, of which the rate of GPUs was rounded
		}
		for _, hops := range []int{2, 3, 4} {
			bound := model.WasteBound(tp, gpus, q, hops)
			exact, err := model.Waste(tp/gpus, q, hops)
			if err != nil {
				return err
			}
			paper := printed[[2]int{gpus, hops}]
			s.Paper.Rows = append(s.Paper.Rows, report.PaperRow{Quantity: fmt.Sprintf("bound, %d GPUs a node, K=%d (table 7)", gpus,
				hops), Paper: paper.text,
				Ours: fmt.Sprintf("%.*f %%", paper.digits, 100*bound), Deviation: points(paper.value, 100*bound, paper.digits)})
			section.Table = append(section.Table, []string{fmt.Sprintf("%d GPUs, K=%d", gpus, hops), percents(q), percents(bound),
				percents(exact), fmt.Sprintf("%.0f", bound/exact)})
		}
	}
	lines := chart.Lines{Frame: chart.Frame{Title: "Waste by the share of dead nodes, nodes of 4 GPUs, TP-32"},
		X: chart.Axis{Title: "nodes dead", Kind: chart.Portion, Log: true},
		Y: chart.Axis{Title: "GPUs healthy and in no ring", Kind: chart.Portion, Log: true}}
	for i, hops := range []int{2, 3, 4} {
		bound := chart.Line{Label: fmt.Sprintf("K=%d, bound", hops), Tone: chart.SeriesTone(2 * i)}
		exact := chart.Line{Label: fmt.Sprintf("K=%d, exact", hops), Tone: chart.SeriesTone(2*i + 1)}
		for q := 0.01; q < 0.21; q += 0.01 {
			w, err := model.Waste(tp/4, q, hops)
			if err != nil {
				return err
			}
			exact.Points = append(exact.Points, chart.Point{X: q, Y: w})
			bound.Points = append(bound.Points, chart.Point{X: q, Y: min(1, model.WasteBound(tp, 4, q, hops))})
		}
		lines.Curves = append(lines.Curves, bound, exact)
	}
	section.Charts = []chart.Chart{lines}
	s.Sections = append(s.Sections, section)
	return nil
}

// fragments is what small domains lose.
func fragments(s *report.Study) {
	section := report.StudySection{Title: "Fragments: healthy GPUs of a domain that fill no ring", Columns: []string{"domains",
		"GPUs each", "dead in each", "TP", "GPUs wasted"},
		Text: "(domain - dead) mod TP of each domain in which any GPUs form a ring. One larger domain wastes less than two small ones."}
	for _, x := range []struct{ domains, gpus, dead, tp int }{{2, 32, 1, 16}, {1, 64, 2, 16}, {1, 36, 0, 16}, {1, 72, 0, 16}, {1,
		72, 0, 32}, {1, 72, 1, 8}, {1, 576, 1, 32}} {
		section.Table = append(section.Table, []string{fmt.Sprint(x.domains), fmt.Sprint(x.gpus), fmt.Sprint(x.dead), fmt.Sprint(x.tp),
			fmt.Sprint(x.domains * model.Fragment(x.gpus, x.dead, x.tp))})
	}
	s.Sections = append(s.Sections, section)
}
