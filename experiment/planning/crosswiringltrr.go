package planning

import (
	"context"
	"fmt"
	"strings"

	"github.com/ocslab/ocslab/experiment/pods"
	"github.com/ocslab/ocslab/experiment/report"
	"github.com/ocslab/ocslab/experiment/report/chart"
	"github.com/ocslab/ocslab/topology/crosswiring"
	compare "github.com/ocslab/ocslab/topology/crosswiring/baseline"
	"github.com/ocslab/ocslab/topology/crosswiring/jobs"
	"github.com/ocslab/ocslab/topology/crosswiring/walk"
)

// ltrrTopologies is how many demands follow each other, as in the paper. Planners that take longer get a tenth.
const ltrrTopologies = 100

func crosswiringLTRR(ctx context.Context, opt report.FigureOptions) (*report.Study, error) {
	topologies := ltrrTopologies
	if opt.Repeats > 0 {
		topologies = max(opt.Repeats, 2)
	}
	s := &report.Study{Emulated: "Planned and followed by arithmetic: nothing was run."}
	s.Facts = [][2]string{
		{"LTRR", "the cosine between the links that there are and those that there shall be (equation 15); in proportion is as good " +
			"as all, so the realised part stands beside it (ours)"},
		{"demands", fmt.Sprintf("%d that follow each other, %d for the slower planners: every spine with all its ports, to random "+
			"pods. The paper's generator is not public", topologies, slower(topologies))},
		{"baselines", readings}}
	s.Paper.Title = "sections 2.3, 5 and 6.2, figures 1, 2 and 5: how much of a demand is realised"
	opt.Progress("small cases")
	if err := smallCases(s); err != nil {
		return nil, err
	}
	if err := sequences(ctx, s, ltrrCases, topologies, opt.Progress); err != nil {
		return nil, err
	}
	ringRows(s)
	return s, nil
}

func slower(topologies int) int { return max(2, topologies/10) }

// ltrrCase is a cluster, and whether demands are of jobs.
type ltrrCase struct {
	f    crosswiring.Fabric
	jobs bool
}

var ltrrCases = []ltrrCase{
	{podsOf(32, 16), false}, {podsOf(32, 32), false}, {podsOf(128, 16), false}, {podsOf(128, 32), false},
	{podsOf(32, 16), true}, {podsOf(128, 16), true},
}

// sequences are figures 2b and 5.
func sequences(ctx context.Context, s *report.Study, cases []ltrrCase, topologies int, progress func(string)) error {
	section := report.StudySection{Title: "Consecutive demands", Columns: []string{"GPUs, ports of a spine, planner", "demands",
		"LTRR mean", "worst", "realised mean", "worst"},
		Text: "256 ports a pod. Full is every spine with all its ports, to random pods; job rings are jobs of 3 or 5 pods that are " +
			"each a ring with all ports, " +
			"of which Uniform wiring can realise at most 2/3 or 4/5. LTRR hardly sees that, since all bundles lack in proportion."}
	bars := chart.Bars{Frame: chart.Frame{Title: "Links that are realised of those wanted, mean, 32,768 GPUs"},
		Axis: chart.Axis{Kind: chart.Portion}}
	quick := append(compare.CrossPlanners(crosswiring.Euler), compare.UniformPlanners()[0])
	slow := append(compare.CrossPlanners(crosswiring.Best, crosswiring.OrientSeq, crosswiring.Bisect), compare.UniformPlanners()[1])
	for _, x := range cases {
		kind := map[bool]string{false: "full", true: "job rings"}[x.jobs]
		progress(fmt.Sprintf("%s GPUs, %s", sizeOf(x.f), kind))
		var rows []compare.Row
		var lengths []int
		for _, part := range []struct {
			planners []compare.Planner
			length   int
		}{{quick, topologies}, {slow, slower(topologies)}} {
			if x.f.SpinePorts == 32 {
				part.length = slower(topologies) // only to see that the split of a pod's ports does not matter
			}
			c, err := follow(ctx, x.f, compare.Sequence{Length: part.length, Jobs: x.jobs, Seed: crosswiringSeed}, part.planners)
			if err != nil {
				return err
			}
			for _, r := range c.Rows {
				rows, lengths = append(rows, r), append(lengths, part.length)
			}
		}
		least := 1.0
		for i, r := range rows {
			name := fmt.Sprintf("%s, %d, %s: %s", sizeOf(x.f), x.f.SpinePorts, kind, plannerNames[r.Planner])
			section.Table = append(section.Table, []string{name, fmt.Sprint(lengths[i]), fmt.Sprintf("%.4f", r.LTRR.Mean),
				fmt.Sprintf("%.4f", r.LTRR.Min),
				fmt.Sprintf("%.4f", r.Realised.Mean), fmt.Sprintf("%.4f", r.Realised.Min)})
			if r.Wiring == crosswiring.Cross {
				least = min(least, r.LTRR.Min, r.Realised.Min)
			}
			if x.f.Pods == 128 && x.f.SpinePorts == 16 && (r.Wiring == crosswiring.Uniform || r.Planner == string(crosswiring.Euler)) {
				label := map[bool]string{true: "Cross, any planner", false: plannerNames[r.Planner]}[r.Wiring == crosswiring.Cross]
				bars.Rows = append(bars.Rows, chart.Bar{Label: label + ", " + kind, Note: portion(r.Realised.Mean),
					Parts: []chart.Part{{Label: "realised", Tone: chart.SeriesTone(0), Value: r.Realised.Mean}}})
			}
		}
		if x.f.SpinePorts == 16 {
			s.Paper.Rows = append(s.Paper.Rows, levelRows(x.f, kind, least, rows)...)
		}
	}
	section.Charts = []chart.Chart{bars}
	s.Sections = append(s.Sections, section)
	return nil
}

// levelRows compare the levels of a size with the paper's, of which only those of random demands are known.
func levelRows(f crosswiring.Fabric, kind string, least float64, rows []compare.Row) []report.PaperRow {
	cross := report.PaperRow{Quantity: fmt.Sprintf("Cross, %s GPUs, %s, worst of all planners", sizeOf(f), kind), Paper: "1",
		Ours: fmt.Sprintf("%.4g", least), Deviation: off(1, least, 6)}
	greedy := rows[1]
	level := func(what, paper string, value, ours float64) report.PaperRow {
		r := report.PaperRow{Quantity: what, Paper: paper, Ours: fmt.Sprintf("%.3f", ours), Deviation: "no counterpart"}
		if paper != "-" {
			r.Deviation = fmt.Sprintf("%+.3f", ours-value)
			r.Note = "The paper's demands are not public, and those drawn here are easier on Uniform wiring. What is the same is that " +
				"Cross wiring is at 1 and Uniform wiring below."
		}
		return r
	}
	name := fmt.Sprintf("Uniform, greedy, %s GPUs, %s: ", sizeOf(f), kind)
	worst, mean := "-", "-"
	if kind == "full" && f.Pods == 128 {
		worst, mean = "0.701 or 0.703", "0.921"
	}
	return []report.PaperRow{cross, level(name+"mean LTRR", mean, 0.921, greedy.LTRR.Mean), level("- worst LTRR", worst, 0.703,
		greedy.LTRR.Min),
		noCounterpart("- realised, mean", fmt.Sprintf("%.3f", greedy.Realised.Mean), "")}
}

// smallCase is a demand that can be checked by hand.
type smallCase struct {
	name    string
	ports   int
	demand  [][]int
	uniform [2]string // links of those wanted, and LTRR, on Uniform wiring at best, where known
	shown   []int     // switches
}

var handCases = []smallCase{
	{"triangle (figure 1)", 2, [][]int{{0, 1, 1}, {1, 0, 1}, {1, 1, 0}}, [2]string{"0.6667", "0.8165"}, []int{0, 1}},
	{"4 pods, all ports", 8, [][]int{{0, 4, 1, 3}, {4, 0, 3, 1}, {1, 3, 0, 4}, {3, 1, 4, 0}}, [2]string{}, []int{0, 1, 2, 3, 4, 5,
		6, 7}},
	{"4 pods, part of the ports", 6, [][]int{{0, 3, 0, 1}, {3, 0, 2, 0}, {0, 2, 0, 1}, {1, 0, 1, 0}}, [2]string{}, []int{0, 1, 2, 3,
		4, 5}},
	{"3 pods, 2 links each", 4, [][]int{{0, 2, 2}, {2, 0, 2}, {2, 2, 0}}, [2]string{"0.6667", "0.8165"}, nil},
	{"3 pods, one pair has more", 4, [][]int{{0, 3, 1}, {3, 0, 1}, {1, 1, 0}}, [2]string{"0.8000", "0.9535"}, nil},
}

// smallCases plans demands that can be checked by hand, on Cross wiring, and on Uniform wiring as well as can be.
func smallCases(s *report.Study) error {
	section := report.StudySection{Title: "Small cases", Columns: []string{"", "links wanted", "Cross realised", "LTRR",
		"Uniform realised, exact", "LTRR", "bound, odd pods"},
		Text: "Uniform wiring by a search for the most links that can be. Of an odd number of pods each of its switches leaves one " +
			"out."}
	var pre strings.Builder
	for _, x := range handCases {
		d, err := crosswiring.DemandOf(x.demand)
		if err != nil {
			return err
		}
		f := crosswiring.Fabric{Pods: len(x.demand), SpinePorts: x.ports, Groups: 1}
		if d, err = d.Fit(f); err != nil {
			return err
		}
		cross, err := crosswiring.Plan(f, d)
		if err != nil {
			return err
		}
		f.Wiring = crosswiring.Uniform
		uniform, err := compare.Exact(f, d, nil)
		if err != nil {
			return err
		}
		row := []string{x.name, fmt.Sprint(d.Total())}
		var levels []string
		for _, c := range []*crosswiring.Config{cross, uniform} {
			realised, err := crosswiring.Realised(c.Demand(), d)
			if err != nil {
				return err
			}
			ltrr, err := crosswiring.LTRR(c.Demand(), d)
			if err != nil {
				return err
			}
			levels = append(levels, fmt.Sprintf("%.4f", realised), fmt.Sprintf("%.4f", ltrr))
		}
		section.Table = append(section.Table, append(append(row, levels...), fmt.Sprintf("%.4f", compare.OddBound(f.Pods))))
		if len(x.shown) > 0 {
			fmt.Fprintf(&pre, "%s, planned on Cross wiring, inputs>outputs:\n%s\n", x.name, matchings(cross, x.shown))
		}
		if x.uniform[0] != "" {
			s.Paper.Rows = append(s.Paper.Rows, smallRow(x, levels))
		}
	}
	said, err := refusals()
	if err != nil {
		return err
	}
	section.Pre = pre.String() + said
	s.Sections = append(s.Sections, section)
	return nil
}

// smallRow compares a case with what follows from the paper's rules.
func smallRow(x smallCase, levels []string) report.PaperRow {
	r := report.PaperRow{Quantity: x.name + ": Uniform realised, LTRR", Paper: x.uniform[0] + ", " + x.uniform[1],
		Ours: levels[2] + ", " + levels[3], Deviation: "exact"}
	if r.Paper != r.Ours {
		r.Deviation = "not so"
	}
	r.Note = "By hand, from the rules of the paper; Cross wiring has all links of each."
	return r
}

// refusals are what cannot be, in the words of those who refuse it.
func refusals() (string, error) {
	odd, err := crosswiring.DemandOf([][]int{{1}})
	if err != nil {
		return "", err
	}
	refused := odd.Check(crosswiring.Fabric{Pods: 1, SpinePorts: 2, Groups: 1})
	f := crosswiring.Fabric{Pods: 3, SpinePorts: 2, Groups: 1, Wiring: crosswiring.Uniform}
	ring, err := crosswiring.FromCircuits(f, map[crosswiring.Switch][]crosswiring.Circuit{{}: {{In: 0, Out: 1}, {In: 1, Out: 2},
		{In: 2, Out: 0}}})
	if err != nil {
		return "", err
	}
	w, err := walk.Walk(f.Fibres(), ring.AllCircuits())
	if err != nil {
		return "", err
	}
	said := []string{fmt.Sprintf("a pod with a link to itself is refused: %v", refused),
		"a ring of three pods on one switch of Uniform wiring is no links:"}
	for _, v := range w.Violations {
		said = append(said, "  "+v.Reason)
	}
	return strings.Join(said, "\n"), nil
}

// ringRows are section 5 and figure 2a.
func ringRows(s *report.Study) {
	const paper = 0.395
	most := jobs.RingGain(3, 1)
	r := report.PaperRow{Quantity: "throughput of a job on 3 pods over Uniform (figure 2a)", Paper: "+39.5 %",
		Ours: fmt.Sprintf("0 to %+.1f %%", 100*most), Deviation: "not within"}
	if share, ok := jobs.RingCommunication(3, paper); ok {
		r.Deviation = "within"
		r.Note = fmt.Sprintf("A ring of 3 pods has 2/3 of its links on Uniform wiring, which bounds the gain; the paper's is that of "+
			"a job that spends %.0f %% of its time on them. No job was run.", 100*share)
	}
	fibres := len(pods.Testbed().Fibres())
	s.Paper.Rows = append(s.Paper.Rows, r, report.PaperRow{Quantity: "fibres of the testbed, split in two and labelled (section " +
		"4.3)", Paper: "described",
		Ours: fmt.Sprint(fibres), Deviation: "as told", Note: "Simplex fibres of 128 ports; crosswiring.Fabric lists them with the " +
			"labels of both ends."})
}
