package planning

import (
	"context"
	"fmt"
	"math"

	"github.com/ocslab/ocslab/experiment/report"
	"github.com/ocslab/ocslab/experiment/report/chart"
	"github.com/ocslab/ocslab/topology/railx/cost"
	"github.com/ocslab/ocslab/topology/railx/model"
)

const railxPaper = "RailX: A Flexible, Scalable, and Low-Cost Network Architecture for Hyper-Scale LLM Training Systems, arXiv 2507.18889"

const arithmetic = "Arithmetic: nothing was run."

// off says how far a number is from the paper's, which has so many digits after its point.
func off(paper, ours float64, digits int) string {
	if math.Abs(ours-paper) <= 0.5001*math.Pow10(-digits) {
		return "exact"
	}
	return fmt.Sprintf("%+.1f %%", 100*(ours/paper-1))
}

// millions writes dollars as the paper does.
func millions(dollars float64) string { return fmt.Sprintf("%.1f", dollars/1e6) }

func railxCost(context.Context, report.FigureOptions) (*report.Study, error) {
	s := &report.Study{Emulated: arithmetic}
	s.Paper.Title = "tables 3 and 6, section 3.2 and the abstract: sizes, and prices in million dollars"
	if err := railxSizes(s); err != nil {
		return nil, err
	}
	parts := report.StudySection{Title: "What each network consists of",
		Columns: []string{"", "chips", "switches", "ends", "copper", "M$", "$ a chip"},
		Text: "36 ports of 400 Gb/s a chip. A switch, packet or optical, is 35 000 $, an end of an optical cable 1000 $, a copper cable 250 $. " +
			"Prices are those that the authors put in; formulas were derived from their totals."}
	ratios := report.StudySection{Title: "What bandwidth costs, in units of the fat tree of two tiers",
		Columns: []string{"", "injection", "all-to-all", "all-to-all bandwidth"},
		Text: "Injection bandwidth is what all-reduce can use, and is the same for every chip. All-to-all bandwidth is a part of it: " +
			"by the bisection, for RailX by equation (3)."}
	bars := chart.Bars{Frame: chart.Frame{Title: "Cost of injection bandwidth, in units of the fat tree of two tiers"}, Axis: chart.Axis{Kind: chart.Number}}
	for _, r := range cost.Table() {
		s.Paper.Rows = append(s.Paper.Rows, costRows(r)...)
		parts.Table = append(parts.Table, []string{r.Name, fmt.Sprint(r.Chips), fmt.Sprint(r.Switches), fmt.Sprint(r.Ends), fmt.Sprint(r.Copper),
			millions(r.Dollars()), fmt.Sprintf("%.0f", r.Dollars()/float64(r.Chips))})
		row := []string{r.Name, fmt.Sprintf("%.3f", r.PerInjection()), "", ""}
		if r.Portion > 0 {
			row[2], row[3] = fmt.Sprintf("%.3f", r.PerGlobal()), fmt.Sprintf("%.1f %%", 100*r.Portion)
		}
		ratios.Table = append(ratios.Table, row)
		bars.Rows = append(bars.Rows, chart.Bar{Label: r.Name, Note: fmt.Sprintf("%.3f", r.PerInjection()),
			Parts: []chart.Part{{Label: "cost", Tone: chart.SeriesTone(0), Value: r.PerInjection()}}})
	}
	ratios.Charts = append(ratios.Charts, bars)
	s.Sections = append(s.Sections, parts, ratios)
	s.Paper.Rows = append(s.Paper.Rows, report.PaperRow{Quantity: "SerDes and UCIe, cost of GB200 (table 1)", Paper: "given", Ours: "-", Deviation: "-",
		Note: "Taken over from others by the paper; there is nothing to compute."})
	return s, nil
}

// railxSizes are equation (1).
func railxSizes(s *report.Study) error {
	for _, x := range []struct {
		size  model.Size
		chips int
	}{{model.Size{Radix: 128, Mesh: 5, Lanes: 9}, 102400}, {model.Size{Radix: 320, Mesh: 2, Lanes: 9}, 102400}, {model.Size{Radix: 128, Mesh: 7, Lanes: 9}, 200704}} {
		g, err := x.size.Grid()
		if err != nil {
			return err
		}
		c, err := g.Counts()
		if err != nil {
			return err
		}
		s.Paper.Rows = append(s.Paper.Rows, count(fmt.Sprintf("chips, R = %d, m = %d (eq. 1)", x.size.Radix, x.size.Mesh), x.chips, fmt.Sprint(c.Chips)))
	}
	return nil
}

// costRows are what the paper prints of a network.
func costRows(r cost.Row) (rows []report.PaperRow) {
	paper := fmt.Sprintf("%.1f", r.PaperDollars/1e6)
	digits := 1
	if r.PaperDollars > 5e9 {
		paper, digits = fmt.Sprintf("%.0f", r.PaperDollars/1e6), 0
	}
	rows = append(rows, report.PaperRow{Quantity: r.Name, Paper: paper, Ours: millions(r.Dollars()),
		Deviation: off(r.PaperDollars/1e6, r.Dollars()/1e6, digits)})
	if r.Note != "" && r.PaperPerInjection == 0 {
		rows[0].Note = r.Note
	}
	if r.PaperPerInjection != 0 {
		x := report.PaperRow{Quantity: "- for injection", Paper: fmt.Sprintf("%.2f", r.PaperPerInjection),
			Ours: fmt.Sprintf("%.3f", r.PerInjection()), Deviation: off(r.PaperPerInjection, r.PerInjection(), 2), Note: r.Note}
		rows = append(rows, x)
	}
	if r.PaperPerGlobal != 0 {
		rows = append(rows, report.PaperRow{Quantity: "- for all-to-all", Paper: fmt.Sprintf("%.2f", r.PaperPerGlobal),
			Ours: fmt.Sprintf("%.3f", r.PerGlobal()), Deviation: off(r.PaperPerGlobal, r.PerGlobal(), 2)})
	}
	if r.PaperPortion != 0 {
		rows = append(rows, report.PaperRow{Quantity: "- all-to-all bandwidth", Paper: fmt.Sprintf("%.1f %%", 100*r.PaperPortion),
			Ours: fmt.Sprintf("%.1f %%", 100*r.Portion), Deviation: off(r.PaperPortion, r.Portion, 3)})
	}
	return rows
}
