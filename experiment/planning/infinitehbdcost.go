package planning

import (
	"context"
	"fmt"

	"github.com/ocslab/ocslab/experiment/report"
	"github.com/ocslab/ocslab/experiment/report/chart"
	"github.com/ocslab/ocslab/topology/infinitehbd/cost"
	"github.com/ocslab/ocslab/topology/infinitehbd/model"
)

// perGBps is what table 6 has for each GB/s of a GPU: dollars and watts. Where it prints a power that its parts do not come
// to, the latter is not compared.
var perGBps = map[string][2]float64{
	cost.TPUv4: {5.22, 0.065}, cost.NVL36: {10.63, 0.084}, cost.NVL72: {10.63, 0.084}, cost.NVL362: {19.92, 0},
	cost.NVL576: {33.80, 0.459}, cost.HPN: {20.85, 1.815}, cost.K2: {3.28, 0.060}, cost.K3: {4.68, 0.090},
}

// The module as the paper describes it (section 5): the parts around the switch, measured without it, and its matrix.
const (
	moduleRestWatts   = 8.5
	moduleMatrixWatts = 3.2
)

// hbdGPUDollars is the price of a GPU at which K=2 and K=3 cost the same where the paper says so. It is deduced.
const hbdGPUDollars = 28_400

func infinitehbdCost(context.Context, report.FigureOptions) (*report.Study, error) {
	s := &report.Study{Emulated: arithmetic}
	s.Paper.Title = "tables 6 and 8, figure 13d and section 5: dollars, and watts, for each GPU"
	bills := map[string]cost.Bill{}
	section := report.StudySection{Title: "What each network costs and draws", Columns: []string{"", "GPUs", "GB/s a GPU",
		"$ a GPU", "W a GPU", "$ for 1 GB/s", "W for 1 GB/s"},
		Text: "Prices are those that the authors put in, and no offers."}
	dollars := chart.Bars{Frame: chart.Frame{Title: "Dollars for each GB/s of a GPU"}, Axis: chart.Axis{Title: "$",
		Kind: chart.Number}}
	watts := chart.Bars{Frame: chart.Frame{Title: "Watts for each GB/s of a GPU"}, Axis: chart.Axis{Title: "W", Kind: chart.Number}}
	bar := func(label, note string, v float64) chart.Bar {
		return chart.Bar{Label: label, Note: note, Parts: []chart.Part{{Label: "for each GB/s", Tone: chart.SeriesTone(0), Value: v}}}
	}
	for _, b := range cost.Table() {
		bills[b.Name] = b
		s.Paper.Rows = append(s.Paper.Rows, billRows(b)...)
		row := []string{b.Name, fmt.Sprint(b.GPUs), fmt.Sprint(b.GBps), fmt.Sprintf("%.2f", b.Dollars()), fmt.Sprintf("%.2f",
			b.Watts()),
			fmt.Sprintf("%.2f", b.DollarsPerGBps()), fmt.Sprintf("%.3f", b.WattsPerGBps())}
		section.Table = append(section.Table, row)
		dollars.Rows = append(dollars.Rows, bar(b.Name, row[5], b.DollarsPerGBps()))
		watts.Rows = append(watts.Rows, bar(b.Name, row[6], b.WattsPerGBps()))
	}
	section.Charts = []chart.Chart{dollars, watts}
	k2, nvl, tpu := bills[cost.K2].DollarsPerGBps(), bills[cost.NVL72].DollarsPerGBps(), bills[cost.TPUv4].DollarsPerGBps()
	for _, x := range []struct {
		quantity, format string
		paper, ours      float64
	}{{"K=2 of NVL-72, for each GB/s (abstract)", "%.2f %%", 30.86, 100 * k2 / nvl}, {"K=2 of TPUv4", "%.2f %%", 62.84,
		100 * k2 / tpu},
		{"NVL-72 over K=2", "%.2f times", 3.24, nvl / k2}, {"TPUv4 over K=2", "%.2f times", 1.59, tpu / k2}} {
		row := report.PaperRow{Quantity: x.quantity, Paper: fmt.Sprintf(x.format, x.paper), Ours: fmt.Sprintf(x.format, x.ours),
			Deviation: off(x.paper, x.ours, 2)}
		if row.Deviation != "exact" {
			row.Note = "The paper divides rounded prices."
		}
		s.Paper.Rows = append(s.Paper.Rows, row)
	}
	s.Sections = append(s.Sections, section)
	if err := breakEven(s, bills[cost.K2], bills[cost.K3]); err != nil {
		return nil, err
	}
	const module = moduleRestWatts + moduleMatrixWatts
	s.Paper.Rows = append(s.Paper.Rows,
		report.PaperRow{Quantity: "a module (section 5)", Paper: fmt.Sprintf("%.0f W", cost.ModuleWatts), Ours: fmt.Sprintf("%.1f W",
			module), Deviation: off(cost.ModuleWatts, module, 1),
			Note: "8.5 W measured on a board without the switch, and 3.2 W of the switch: rounded up in the paper."},
		report.PaperRow{Quantity: "switching of a module (section 4.1)", Paper: "below 1 ms", Ours: "-", Deviation: "in the demo",
			Note: "A later version of the paper has 60 to 80 µs. It is nothing to compute: the demo of infinitehbd " +
				"takes the time of emulated modules, by their own clocks."})
	return s, nil
}

// billRows are what table 6 has of a network.
func billRows(b cost.Bill) []report.PaperRow {
	row := func(quantity string, paper, ours float64, digits int) report.PaperRow {
		return report.PaperRow{Quantity: quantity, Paper: fmt.Sprintf("%.*f", digits, paper), Ours: fmt.Sprintf("%.*f", digits, ours),
			Deviation: off(paper, ours, digits)}
	}
	rows := []report.PaperRow{row(b.Name+", $", b.PaperDollars, b.Dollars(), 2), row("- W", b.PaperWatts, b.Watts(), 2)}
	if b.Name == cost.NVL362 {
		rows[1].Note = "The parts of table 8 come to this; all else is to the cent."
	}
	for i, ours := range []float64{b.DollarsPerGBps(), b.WattsPerGBps()} {
		if paper := perGBps[b.Name][i]; paper != 0 {
			rows = append(rows, row([]string{"- $ for 1 GB/s", "- W for 1 GB/s"}[i], paper, ours, 2+i))
		}
	}
	return rows
}

// breakEven is figure 13d.
func breakEven(s *report.Study, two, three cost.Bill) error {
	const m, most = 8, 0.3 // nodes of 4 GPUs of a ring of TP-32
	e, err := cost.BreakEven(hbdGPUDollars, m, most)
	if err != nil {
		return err
	}
	s.Paper.Rows = append(s.Paper.Rows, report.PaperRow{Quantity: "K=2 is cheaper than K=3 below (figure 13d)",
		Paper: "12.1 % dead", Ours: fmt.Sprintf("%.1f %% dead", 100*e.Dead),
		Deviation: points(12.1, 100*e.Dead, 1), Note: fmt.Sprintf("At %d $ for a GPU, with the exact waste: the paper does not say "+
			"at which price, and this one is deduced from its 12.1 %%.", hbdGPUDollars)})
	section := report.StudySection{Title: "From which share of dead nodes a third bundle pays, TP-32",
		Columns: []string{"a GPU costs, $", "nodes dead"},
		Text: "What is compared is the price of GPUs that are dead or in no ring, and of the network, for each GPU. Dead nodes are " +
			"independent of each other."}
	for _, price := range []float64{10_000, 20_000, hbdGPUDollars, 40_000, 60_000} {
		e, err := cost.BreakEven(price, m, most)
		if err != nil {
			return err
		}
		at := fmt.Sprintf("%.1f %%", 100*e.Dead)
		if !e.Exists {
			at = fmt.Sprintf("never up to %.0f %%", 100*most)
		}
		section.Table = append(section.Table, []string{fmt.Sprintf("%.0f", price), at})
	}
	lines := chart.Lines{Frame: chart.Frame{Title: fmt.Sprintf("Network and lost GPUs, for each GPU, a GPU costing %d $",
		hbdGPUDollars)},
		X: chart.Axis{Title: "nodes dead", Kind: chart.Portion}, Y: chart.Axis{Title: "$ for each GPU", Kind: chart.Number}}
	for i, b := range []cost.Bill{two, three} {
		curve := chart.Line{Label: b.Name, Tone: chart.SeriesTone(i)}
		for dead := 0.0; dead < 0.205; dead += 0.01 {
			w, err := model.Waste(m, dead, 2+i)
			if err != nil {
				return err
			}
			curve.Points = append(curve.Points, chart.Point{X: dead, Y: cost.Aggregate(b, hbdGPUDollars, dead+w)})
		}
		lines.Curves = append(lines.Curves, curve)
	}
	section.Charts = []chart.Chart{lines}
	s.Sections = append(s.Sections, section)
	return nil
}
