package planning

import (
	"context"
	"fmt"
	"math"

	"github.com/ocslab/ocslab/experiment/report"
	"github.com/ocslab/ocslab/experiment/report/chart"
	"github.com/ocslab/ocslab/topology/infinitehbd"
	"github.com/ocslab/ocslab/topology/infinitehbd/model"
)

const (
	crossToRDraws = 200
	crossToRSeed  = 1
)

// sweepMethods are what the sweep compares, and what they are called.
var sweepMethods = []struct {
	method infinitehbd.Method
	name   string
}{{infinitehbd.AtRandom, "at random"}, {infinitehbd.Orchestrated, "as the paper"}, {infinitehbd.Aligned, "aligned (ours)"}}

// crossing finds rows of a sweep.
type crossing []infinitehbd.SweepRow

func (c crossing) at(faults, job float64, m infinitehbd.Method) infinitehbd.SweepRow {
	for _, r := range c {
		if r.Faults == faults && r.Job == job && r.Method == m {
			return r
		}
	}
	return infinitehbd.SweepRow{Share: math.NaN()}
}

func infinitehbdCrossToR(ctx context.Context, opt report.FigureOptions) (*report.Study, error) {
	draws := crossToRDraws
	if opt.Repeats > 0 {
		draws = opt.Repeats
	}
	sweep := infinitehbd.PaperSweep(draws, crossToRSeed)
	sweep.Jobs = []float64{.8, .85, .9} // smaller ones cross nothing
	faults := sweep.Faults
	var rows crossing
	for i, f := range faults { // one after another, so that it can be interrupted
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		opt.Progress(fmt.Sprintf("%d of %d shares of dead nodes", i+1, len(faults)))
		sweep.Faults = []float64{f}
		some, err := infinitehbd.CrossToRSweep(sweep)
		if err != nil {
			return nil, err
		}
		rows = append(rows, some...)
	}
	sweep.Faults = faults
	s := &report.Study{Emulated: "Dead nodes are drawn at random, with a fixed seed; nothing was run."}
	t := sweep.Tree
	s.Facts = [][2]string{
		{"cluster", fmt.Sprintf("%d nodes of %d GPUs, K=%d, rings of %d GPUs", t.Nodes, sweep.Layout.GPUs, sweep.Layout.Hops(),
			sweep.TP)},
		{"ours", fmt.Sprintf("%d nodes to a ToR, domains of %d nodes, and a share of %.2f of the traffic between rings: the paper "+
			"gives none of the three, and these meet its figures",
			t.PerToR, t.PerDomain, sweep.Phi)},
		{"metric", "nodes of one rank in rings that follow each other talk; what crosses is the share of all traffic between nodes " +
			"in different ToRs. Ours: the paper gives no definition"},
		{"draws", fmt.Sprintf("%d of dead nodes, the same for all placements", draws)}}
	s.Paper.Title = "figure 13, and what training does with it"
	crossRows(s, sweep, rows)
	trafficRows(s)
	crossTables(s, sweep, rows)
	return s, nil
}

func crossRows(s *report.Study, sweep infinitehbd.SweepOptions, rows crossing) {
	random, placed, aligned := rows.at(0.05, 0.9, infinitehbd.AtRandom), rows.at(0.05, 0.9, infinitehbd.Orchestrated), rows.at(0.05,
		0.9, infinitehbd.Aligned)
	const little = 0.01 // of the traffic
	worst, knee := infinitehbd.SweepRow{}, "none"
	for _, f := range sweep.Faults {
		r := rows.at(f, 0.85, infinitehbd.Orchestrated)
		if f <= 0.07 && r.Share >= worst.Share {
			worst = r
		}
		if knee == "none" && r.Share > little {
			knee = fmt.Sprintf("%.0f %%", 100*f)
		}
	}
	s.Paper.Rows = append(s.Paper.Rows,
		report.PaperRow{Quantity: "crossing at random, job of 90 %, 5 % dead", Paper: "about 10 %", Ours: percents(random.Share),
			Deviation: points(10, 100*random.Share, 0),
			Note:      "Nearly every pair crosses, so this is the share of traffic between rings, which is set to meet it."},
		report.PaperRow{Quantity: "- as the paper places", Paper: "1.72 %", Ours: percents(placed.Share), Deviation: points(1.72,
			100*placed.Share, 2),
			Note: fmt.Sprintf("A draw crosses about 4 %% or nothing: %d of %d cross nothing.", placed.Clear, placed.Placed)},
		report.PaperRow{Quantity: "- aligned, ours", Paper: "-", Ours: percents(aligned.Share), Deviation: "no counterpart"},
		report.PaperRow{Quantity: "job of 85 %, up to 7 % dead", Paper: "near zero", Ours: percents(worst.Share),
			Deviation: fmt.Sprintf("%+.2f points", 100*worst.Share),
			Note: fmt.Sprintf("At %.0f %% dead: %d of %d draws cross nothing, and the others have fewer whole ToRs than the job needs.",
				100*worst.Faults, worst.Clear, worst.Placed)},
		report.PaperRow{Quantity: "- the first that cross more than 1 %", Paper: "above 7 %", Ours: knee,
			Deviation: told(knee == "8 %"),
			Note: "Of shares of dead nodes in whole percent. A ToR is whole with probability (1-f)^p, so there is room for aligned " +
				"rings until that " +
				"falls below the size of the job: at 7.8 % dead for 85 %, and 5.1 % for 90 %."})
}

// gptMoE is the model of appendix B.
var gptMoE = model.Layer{Batch: 1, Sequence: 2048, Hidden: 12288, Experts: 2, Bytes: 2}

// trafficRows are what the paper says of training.
func trafficRows(s *report.Study) {
	const n = 8
	tp, ep := gptMoE.TensorParallel(n), gptMoE.ExpertParallel(n)
	s.Paper.Rows = append(s.Paper.Rows,
		report.PaperRow{Quantity: "traffic of a layer, tensor parallel (table 3)", Paper: "2bsh(n-1)/n", Ours: fmt.Sprintf("%.1f MB",
			tp/1e6), Deviation: "the formula",
			Note: fmt.Sprintf("Bytes that a GPU sends for one sequence of GPT-MoE (appendix B: 2048 tokens of %d values, here of 2 "+
				"bytes, 2 of 8 experts), n = %d.", gptMoE.Hidden, n)},
		report.PaperRow{Quantity: "- expert parallel (table 3)", Paper: "2bsh(n-1)/n k/n", Ours: fmt.Sprintf("%.1f MB", ep/1e6),
			Deviation: "the formula"},
		notDone("MFU (tables 2, 4, 5)", "0.1851", "At 131,072 GPUs with TP-64, beside 0.0550: 3.37 times. From a simulator that is "+
			"not public."),
		notDone("MFU when experts are loaded unevenly (section 6.3)", "31.2 %", "Beside 31.5, 30.5, 29.8 and 28.8 %, from the same "+
			"simulator."),
		notDone("GPT-MoE (appendix B)", "192 layers", "Data, of which only the traffic above is computed: hidden 12288, FFN 49152, "+
			"128 heads, 8 experts of which 2 are used, "+
			"sequences of 2048, vocabulary 64000, global batch 1536, micro-batch 1, 3 virtual stages."),
		notDone("all-reduce on a ring of GPUs (section 5)", "77.1 and 77.3 %", "Utilisation measured on 16 and 32 real GPUs, beside "+
			"81.8 % of NVLink; small packets took 13 % less time. There are no GPUs here."))
}

// crossTables are figures 13b and 13c.
func crossTables(s *report.Study, sweep infinitehbd.SweepOptions, rows crossing) {
	section := report.StudySection{Title: "Traffic that crosses ToRs, by dead nodes and size of the job",
		Columns: []string{"job", "nodes dead"},
		Text: "Random placement takes living nodes in any order, and is our reading of the paper's baseline. Placed as the paper " +
			"does: domains are aligned one after another, " +
			"as many as there is room for. Jobs of 70 and 75 % cross nothing so. Aligned is ours: numbers of aligned rings are weighed " +
			"domain by domain. Clear are the draws in which nothing crosses."}
	for _, m := range sweepMethods {
		section.Columns = append(section.Columns, m.name)
	}
	section.Columns = append(section.Columns, "no room", "clear, paper", "clear, ours", "(1-f)^p")
	for _, job := range sweep.Jobs {
		lines := chart.Lines{Frame: chart.Frame{Title: fmt.Sprintf("Traffic that crosses ToRs, job of %.0f %% of the nodes", 100*job)},
			X: chart.Axis{Title: "nodes dead", Kind: chart.Portion}, Y: chart.Axis{Title: "traffic that crosses, mean",
				Kind: chart.Portion}}
		for i, m := range sweepMethods {
			lines.Curves = append(lines.Curves, chart.Line{Label: m.name, Tone: chart.SeriesTone(i)})
		}
		for _, f := range sweep.Faults {
			row := []string{fmt.Sprintf("%.0f %%", 100*job), fmt.Sprintf("%.0f %%", 100*f)}
			for i, m := range sweepMethods {
				r := rows.at(f, job, m.method)
				if r.Placed == 0 {
					row = append(row, "-")
					continue
				}
				row = append(row, percents(r.Share))
				lines.Curves[i].Points = append(lines.Curves[i].Points, chart.Point{X: f, Y: r.Share})
			}
			paper, ours := rows.at(f, job, infinitehbd.Orchestrated), rows.at(f, job, infinitehbd.Aligned)
			section.Table = append(section.Table, append(row, fmt.Sprint(paper.Draws-paper.Placed), fmt.Sprint(paper.Clear),
				fmt.Sprint(ours.Clear),
				portion(math.Pow(1-f, float64(sweep.Tree.PerToR)))))
		}
		if job > 0.8 {
			section.Charts = append(section.Charts, lines)
		}
	}
	s.Sections = append(s.Sections, section)
}
