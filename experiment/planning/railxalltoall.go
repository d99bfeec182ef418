package planning

import (
	"context"
	"fmt"
	"slices"

	"github.com/ocslab/ocslab/experiment/report"
	"github.com/ocslab/ocslab/experiment/report/chart"
	"github.com/ocslab/ocslab/internal/quantity"
	"github.com/ocslab/ocslab/topology/railx"
	"github.com/ocslab/ocslab/topology/railx/model"
)

func railxAllToAll(ctx context.Context, opt report.FigureOptions) (*report.Study, error) {
	s := &report.Study{Emulated: "Computed on planned links and by equations: nothing was run."}
	s.Paper.Title = "sections 4 and 6: throughput in ports a chip, hops, and all-reduce"
	for _, part := range []struct {
		name string
		do   func(context.Context, *report.Study) error
	}{{"diameters and routes", railxRoutes}, {"all-to-all", figure14}, {"other sizes", railxSweep}, {"faults", railxFaulty}, {"all-reduce", railxReduce}, {"split", railxSplit}} {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		opt.Progress(part.name)
		if err := part.do(ctx, s); err != nil {
			return nil, err
		}
	}
	s.Paper.Rows = append(s.Paper.Rows,
		report.PaperRow{Quantity: "gap between context and expert traffic", Paper: "6 ms", Ours: "-", Deviation: "-",
			Note: "What a switch takes has to be below it. That is measured on a lab, not computed here."},
		report.PaperRow{Quantity: "traces of Megatron (appendix A.4)", Paper: "given", Ours: "-", Deviation: "-", Note: "Not published."})
	return s, nil
}

// square is a HyperX of side x side nodes.
func square(side, mesh, lanes int) (*railx.Config, error) {
	return railx.Build(railx.Grid{Columns: side, Rows: side, Rails: mesh * lanes, Mesh: mesh}, railx.HyperX2D())
}

// railxRoutes are the diameters of table 2 and the hops of section 4.1.
func railxRoutes(_ context.Context, s *report.Study) error {
	for _, x := range []struct {
		name  string
		g     railx.Grid
		shape railx.Shape
		paper int
	}{
		{"HyperX, 9 x 9", railx.Grid{Columns: 9, Rows: 9, Rails: 8}, railx.HyperX2D(), model.HyperXDiameter},
		{"Dragonfly, 21 groups of 5", railx.Grid{Columns: 21, Rows: 5, Rails: 4}, railx.Dragonfly(), model.DragonflyDiameter},
		{"torus, 64 x 64", railx.Grid{Columns: 64, Rows: 64, Rails: 1}, railx.Torus2D(), 128},
	} {
		c, err := railx.Build(x.g, x.shape)
		if err != nil {
			return err
		}
		hops, err := c.Diameter()
		if err != nil {
			return err
		}
		row := count("diameter, "+x.name, x.paper, fmt.Sprint(hops))
		if hops != x.paper {
			row.Note = "Table 2 has R, twice the nodes of a side. Rings here are used both ways, so the farthest node is half a side away in each dimension."
		}
		s.Paper.Rows = append(s.Paper.Rows, row)
	}
	section := report.StudySection{Title: "All routes, one by one",
		Columns: []string{"", "pairs of chips", "routes", "optical hops", "mesh hops", "5m-6", "channels", "dependencies"},
		Text: "Every route of algorithm 1 between any two chips was followed over planned links. With 3 virtual channels no packets " +
			"can wait for each other in a circle; with 1 they can."}
	for _, x := range []struct{ side, mesh, lanes int }{{5, 2, 2}, {3, 2, 1}, {5, 4, 1}} {
		c, err := square(x.side, x.mesh, x.lanes)
		if err != nil {
			return err
		}
		v, err := model.Verify(c, 0)
		if err != nil {
			return err
		}
		_, most := model.Size{Mesh: x.mesh, Lanes: x.lanes}.HyperXHops()
		name := fmt.Sprintf("m = %d, n = %d, %d x %d nodes", x.mesh, x.lanes, x.side, x.side)
		section.Table = append(section.Table, []string{name, fmt.Sprint(v.Pairs), fmt.Sprint(v.Routes), fmt.Sprint(v.MostOptical), fmt.Sprint(v.MostMesh),
			fmt.Sprint(most), fmt.Sprint(v.Channels), fmt.Sprint(v.Dependencies)})
		s.Paper.Rows = append(s.Paper.Rows, report.PaperRow{Quantity: fmt.Sprintf("hops, m = %d, n = %d (section 4.1)", x.mesh, x.lanes), Paper: fmt.Sprintf("2 and %d", most),
			Ours: fmt.Sprintf("%d and %d", v.MostOptical, v.MostMesh), Deviation: "within"})
	}
	s.Sections = append(s.Sections, section)
	return nil
}

var railxSpreads = []model.Spread{model.Nearest, model.Every}

var spreadNames = map[model.Spread]string{model.Nearest: "nearest link", model.Every: "both links"}

// figure14 is the network that the paper simulates: 81 nodes of 16 chips.
func figure14(_ context.Context, s *report.Study) error {
	c, err := square(9, 4, 2)
	if err != nil {
		return err
	}
	kappas := []float64{0.25, 0.5, 0.75, 1, 1.25, 1.5, 1.75, 2, 2.5, 3, 3.5, 4, 6, 8}
	section := report.StudySection{Title: "All-to-all of 1296 chips, by how fast meshes are",
		Columns: []string{"kappa", "nearest link", "both links"},
		Text: "m = 4, n = 2. Throughput in ports a chip. Kappa is the bandwidth of a link of the mesh, in units of the 2 ports of an edge chip. " +
			"With the nearest of the two links to a node, as in the paper, 2 is enough. Using both alike loads links more evenly, " +
			"so that throughput goes beyond 2n/m, to 2(r+1)/m² = 1.125, but takes more of the mesh."}
	lines := chart.Lines{Frame: chart.Frame{Title: "All-to-all throughput by bandwidth of the mesh, 1296 chips"},
		X:      chart.Axis{Title: "kappa, bandwidth of a mesh link in units of n ports", Kind: chart.Number},
		Y:      chart.Axis{Title: "throughput, ports a chip", Kind: chart.Number},
		Levels: []chart.Level{{Y: 1, Label: "2n/m, the paper's theory"}, {Y: 0.8, Label: "0.8, the paper's packet simulation"}}}
	rows := make([][]string, len(kappas))
	for i, k := range kappas {
		rows[i] = []string{fmt.Sprintf("%.2f", k)}
	}
	loads := map[model.Spread]model.AllToAll{}
	for j, spread := range railxSpreads {
		a, err := model.Fluid(c, spread)
		if err != nil {
			return err
		}
		loads[spread] = a
		curve := chart.Line{Label: spreadNames[spread], Tone: chart.SeriesTone(j)}
		for i, k := range kappas {
			rows[i] = append(rows[i], fmt.Sprintf("%.3f", a.Throughput(k)))
			curve.Points = append(curve.Points, chart.Point{X: k, Y: a.Throughput(k)})
		}
		lines.Curves = append(lines.Curves, curve)
	}
	section.Table, section.Charts = rows, []chart.Chart{lines}
	s.Sections = append(s.Sections, section)
	near := loads[model.Nearest]
	s.Paper.Rows = append(s.Paper.Rows,
		report.PaperRow{Quantity: "all-to-all in theory, 1296 chips (figure 14)", Paper: "1.0", Ours: fmt.Sprintf("%.3f", near.Throughput(2)),
			Deviation: fmt.Sprintf("%+.1f %%", 100*(near.Throughput(2)-1)), Note: fmt.Sprintf("By the fluid model at kappa 2: loads of %.4f on links and %.4f on meshes.", near.Optical, near.Mesh)},
		report.PaperRow{Quantity: "- simulated", Paper: "0.8", Ours: "-", Deviation: "not done",
			Note: "Packets that queue need a packet simulation; the fluid model has none. Its links are full at 1.0."},
		report.PaperRow{Quantity: "- kappa 1", Paper: "poor", Ours: fmt.Sprintf("%.3f", near.Throughput(1)), Deviation: "as told"},
		report.PaperRow{Quantity: "- kappa 8 over kappa 2", Paper: "no gain", Ours: fmt.Sprintf("%.3f", near.Throughput(8)/near.Throughput(2)), Deviation: "as told"})
	return nil
}

// railxSweep compares equation (3) with the fluid model.
func railxSweep(ctx context.Context, s *report.Study) error {
	section := report.StudySection{Title: "All-to-all of other sizes: equation (3) and the fluid model",
		Columns: []string{"", "chips", "2n/m", "eq. (3)", "kappa 1", "kappa 2", "kappa 4", "both, 2", "both, 4"},
		Text:    "HyperX of r+1 nodes each way. The first three kappas are with the nearest link, the last two with both."}
	for _, x := range []struct{ mesh, lanes int }{{2, 1}, {2, 4}, {2, 9}, {4, 1}, {4, 2}, {4, 4}, {4, 9}, {5, 9}} {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		side := x.mesh*x.lanes + 1
		c, err := square(side, x.mesh, x.lanes)
		if err != nil {
			return err
		}
		size := model.Size{Radix: 2 * side, Mesh: x.mesh, Lanes: x.lanes}
		row := []string{fmt.Sprintf("m = %d, n = %d", x.mesh, x.lanes), fmt.Sprint(side * side * x.mesh * x.mesh),
			fmt.Sprintf("%.3f", size.Dragonfly()), fmt.Sprintf("%.3f", size.HyperX())}
		for i, spread := range railxSpreads {
			a, err := model.Fluid(c, spread)
			if err != nil {
				return err
			}
			for _, k := range []float64{1, 2, 4}[i:] {
				row = append(row, fmt.Sprintf("%.3f", a.Throughput(k)))
			}
		}
		section.Table = append(section.Table, row)
	}
	s.Sections = append(s.Sections, section)
	return nil
}

// railxFaulty is what is left when something breaks and nothing but a bypass is done.
func railxFaulty(_ context.Context, s *report.Study) error {
	whole, err := square(9, 4, 2)
	if err != nil {
		return err
	}
	one, err := whole.Bypass(railx.Node{Column: 4, Row: 4})
	if err != nil {
		return err
	}
	row, err := whole.Bypass(railx.Node{Column: 4, Row: 4}, railx.Node{Column: 6, Row: 4}, railx.Node{Column: 8, Row: 4})
	if err != nil {
		return err
	}
	dark, _, err := whole.Without(railx.Switch{Dimension: railx.X, Group: 4, Rail: 3})
	if err != nil {
		return err
	}
	section := report.StudySection{Title: "All-to-all when something is broken, 1296 chips at first",
		Columns: []string{"", "chips", "busiest link", "busiest mesh link", "throughput, kappa 2", "detours"},
		Text: "Dead nodes are bypassed: their neighbours on each ring are joined. Routes whose corner is dead go along the column first; detours " +
			"are pairs of nodes. Every chip sends as much to each other one, so the busiest link sets the pace of all. Beyond the paper."}
	for _, x := range []struct {
		name string
		c    *railx.Config
	}{{"nothing", whole}, {"one node", one}, {"three nodes of a row", row}, {"one switch of a row", dark}} {
		a, err := model.Fluid(x.c, model.Nearest)
		if err != nil {
			return err
		}
		section.Table = append(section.Table, []string{x.name, fmt.Sprint(a.Chips), fmt.Sprintf("%.3f", a.Optical), fmt.Sprintf("%.3f", a.Mesh),
			fmt.Sprintf("%.3f", a.Throughput(2)), fmt.Sprint(a.Detours)})
	}
	s.Sections = append(s.Sections, section)
	return nil
}

// railxMachine is that of the check of equations (6) to (13).
var railxMachine = model.Machine{Mesh: 4, Lanes: 1, Kappa: 4, Port: 100e9, Alpha: 300e-9, Hop: 10e-9}

func railxReduce(_ context.Context, s *report.Study) error {
	section := report.StudySection{Title: "All-reduce, by equations",
		Columns: []string{"nodes, size", "one ring", "2D rings (7)", "RailX (8)", "HyperX (13)", "ring / RailX", "2D / RailX"},
		Text:    "m = 4, n = 1, ports of 100 GB/s, kappa 4, 300 ns a hop and 10 ns within a mesh. Sums are exact, not simplified. One ring goes through all chips."}
	lines := chart.Lines{Frame: chart.Frame{Title: "All-reduce by size, 16 x 16 nodes (4096 chips)"},
		X: chart.Axis{Title: "bytes", Kind: chart.Number, Log: true}, Y: chart.Axis{Title: "time", Kind: chart.Time, Log: true}}
	names := []string{"one ring", "2D rings (7)", "RailX (8)", "HyperX (13)"}
	for i, name := range names {
		lines.Curves = append(lines.Curves, chart.Line{Label: name, Tone: chart.SeriesTone(i)})
	}
	best, last, grows := true, map[float64]float64{}, true
	for _, p := range []int{16, 32, 64} {
		for _, bytes := range []float64{1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9} {
			a, err := railxMachine.AllReduce(p, bytes)
			if err != nil {
				return err
			}
			times := []float64{a.Ring, a.Rings2D, a.Hierarchy, a.HyperX}
			best = best && a.Hierarchy < min(a.Ring, a.Rings2D)
			grows = grows && a.Ring/a.Hierarchy > last[bytes]
			last[bytes] = a.Ring / a.Hierarchy
			if p == 16 {
				for i, t := range times {
					lines.Curves[i].Points = append(lines.Curves[i].Points, chart.Point{X: bytes, Y: t * 1e9})
				}
			}
			if slices.Contains([]float64{1e3, 1e6, 1e9}, bytes) {
				row := []string{fmt.Sprintf("%d x %d, %s", p, p, quantity.Bytes(bytes))}
				for _, t := range times {
					row = append(row, quantity.Seconds(t))
				}
				section.Table = append(section.Table, append(row, fmt.Sprintf("%.2f", a.Ring/a.Hierarchy), fmt.Sprintf("%.2f", a.Rings2D/a.Hierarchy)))
			}
		}
	}
	section.Charts = append(section.Charts, lines)
	s.Sections = append(s.Sections, section)
	told := map[bool]string{true: "as told", false: "not so"}
	s.Paper.Rows = append(s.Paper.Rows,
		report.PaperRow{Quantity: "hierarchical all-reduce (figure 15)", Paper: "best everywhere", Ours: map[bool]string{true: "best everywhere", false: "not everywhere"}[best], Deviation: told[best],
			Note: "Of those that need rings only, from 1 kB to 1 GB, 16 x 16 to 64 x 64 nodes. The figure's values cannot be read; only the order is compared."},
		report.PaperRow{Quantity: "- lead over one ring", Paper: "grows with scale", Ours: map[bool]string{true: "grows", false: "does not always grow"}[grows], Deviation: told[grows]})
	return nil
}

// railxJob is a job of experts for the split of lanes; the paper's is not given in full.
var railxJob = model.Training{Batch: 1, Sequence: 1 << 13, Hidden: 4096, Intermediate: 14336, TopK: 2, Layers: 32, Vocabulary: 128 << 10, MicroBatches: 8,
	Heads: 32, KVHeads: 8, Tensor: 4, Context: 2, Expert: 8, Data: 2, Pipeline: 4}

func railxSplit(_ context.Context, s *report.Study) error {
	const lanes, tokens = 9, 1 << 13
	section := report.StudySection{Title: "How to split lanes between context and expert parallelism, by equation (11)",
		Columns: []string{"tokens of a sequence", "context ranks", "context lanes", "expert lanes", "time a step"},
		Text: fmt.Sprintf("A job of ours: %d layers of %d, 2 experts of 8 for a token, ranks of %d tokens, so that context parallelism grows with the "+
			"sequence. %d lanes of 50 GB/s. All splits are tried; nothing is hidden behind computation.", railxJob.Layers, railxJob.Hidden, tokens, lanes)}
	curve := chart.Line{Label: "context", Tone: chart.SeriesTone(0)}
	first, last := 0, 0
	for ranks := 2; ranks <= 256; ranks *= 2 {
		x, err := railxJob.LongContext(ranks*tokens, tokens, lanes, 50e9)
		if err != nil {
			return err
		}
		if first == 0 {
			first = x.First
		}
		last = x.First
		curve.Points = append(curve.Points, chart.Point{X: float64(ranks * tokens), Y: float64(x.First)})
		section.Table = append(section.Table, []string{fmt.Sprint(ranks * tokens), fmt.Sprint(ranks), fmt.Sprint(x.First), fmt.Sprint(x.Second), quantity.Seconds(x.Time)})
	}
	section.Charts = append(section.Charts, chart.Lines{Frame: chart.Frame{Title: "Lanes of 9 for context parallelism by length of the sequence"},
		X: chart.Axis{Title: "tokens", Kind: chart.Number, Log: true}, Y: chart.Axis{Title: "lanes", Kind: chart.Number, Whole: true}, Curves: []chart.Line{curve}})
	s.Sections = append(s.Sections, section)
	r := report.PaperRow{Quantity: "lanes for context, longer sequences (figure 16)", Paper: "more", Ours: fmt.Sprintf("%d to %d of %d", first, last, lanes), Deviation: "as told",
		Note: "The trend only: the paper's job is not given in full."}
	if last <= first {
		r.Deviation = "not so"
	}
	s.Paper.Rows = append(s.Paper.Rows, r)
	return nil
}
