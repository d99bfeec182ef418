package planning

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ocslab/ocslab/experiment/pods"
	"github.com/ocslab/ocslab/experiment/report"
	"github.com/ocslab/ocslab/experiment/report/chart"
	"github.com/ocslab/ocslab/internal/quantity"
	"github.com/ocslab/ocslab/topology/crosswiring"
	"github.com/ocslab/ocslab/topology/crosswiring/jobs"
)

const timeRepeats = 5 // of each plan, of which the median counts

// Times of the paper at 32,768 GPUs, seconds, and of its authors' earlier public artefact at 2,048 to 32,768: by their
// planner, and by one for minimal rewiring, of which the first and last are known.
var (
	artefactTimes = map[int]float64{2048: 0.042, 4096: 0.581, 8192: 2.773, 16384: 15.213, 32768: 45.8}
	minimalTimes  = map[int]float64{2048: 2.842, 32768: 3298}
)

// timing is how long plans of a size take.
type timing struct {
	f            crosswiring.Fabric
	cold         time.Duration
	rewire       [2]time.Duration // by timedShares
	seq          time.Duration    // of orient+seq alone, at the first share
	changed      [2]int           // links
	share, least [2]float64       // rewired, and what any plan rewires
}

var timedShares = [2]float64{0.02, 0.1}

func crosswiringTime(ctx context.Context, opt report.FigureOptions) (*report.Study, error) {
	repeats := timeRepeats
	if opt.Repeats > 0 {
		repeats = opt.Repeats
	}
	s := &report.Study{Emulated: "Plans are timed on this machine, one core; jobs and steps are simulated. Nothing was switched."}
	s.Facts = [][2]string{
		{"plans", fmt.Sprintf("256 ports a pod, 16 of a spine, all in use; the median of %d plans of one demand each", repeats)},
		{"machines", "the paper's times are of a Xeon 4110, and of a solver for its integer linear program (ILP); another machine " +
			"explains a part of what differs"}}
	s.Paper.Title = "section 6.2, figures 2, 6 and 8, table 1: planning, and what it costs jobs"
	all, err := timings(ctx, timedPods, repeats, opt.Progress)
	if err != nil {
		return nil, err
	}
	timeRows(s, all)
	timeTable(s, all)
	opt.Progress("jobs")
	if err := jobRows(ctx, s); err != nil {
		return nil, err
	}
	if err := stepRows(s); err != nil {
		return nil, err
	}
	waits(s)
	return s, nil
}

// timedPods are the sizes, of 256 GPUs a pod.
var timedPods = []int{8, 16, 32, 64, 128, 256, 512}

func timings(ctx context.Context, pods []int, repeats int, progress func(string)) (all []timing, err error) {
	for _, n := range pods {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		f := podsOf(n, 16)
		progress(sizeOf(f) + " GPUs")
		t, err := timed(f, repeats)
		if err != nil {
			return nil, err
		}
		all = append(all, t)
	}
	return all, nil
}

// median runs something several times and returns the median of what it takes.
func median(repeats int, do func() error) (time.Duration, error) {
	var all []time.Duration
	for range repeats {
		start := time.Now()
		if err := do(); err != nil {
			return 0, err
		}
		all = append(all, time.Since(start))
	}
	slices.Sort(all)
	return all[len(all)/2], nil
}

func timed(f crosswiring.Fabric, repeats int) (timing, error) {
	t := timing{f: f}
	d, err := crosswiring.RandomFull(f, crosswiringSeed)
	if err != nil {
		return t, err
	}
	var running *crosswiring.Config
	if t.cold, err = median(repeats, func() error { running, err = crosswiring.Plan(f, d); return err }); err != nil {
		return t, err
	}
	for i, changed := range timedShares {
		next, err := crosswiring.Swapped(d, changed, crosswiringSeed)
		if err != nil {
			return t, err
		}
		t.changed[i] = moved(d, next)
		var r *crosswiring.RewireReport
		opt := crosswiring.RewireOptions{Workers: 1, Seed: crosswiringSeed}
		if t.rewire[i], err = median(repeats, func() error {
			_, r, err = crosswiring.Rewire(running, next,
				opt)
			return err
		}); err != nil {
			return t, err
		}
		t.share[i], t.least[i] = r.Share(), float64(r.RemovedAtLeast())/float64(r.Running())
		if i > 0 {
			continue
		}
		opt.Method = crosswiring.OrientSeq
		if t.seq, err = median(repeats, func() error { _, _, err = crosswiring.Rewire(running, next, opt); return err }); err != nil {
			return t, err
		}
	}
	return t, nil
}

// moved returns how many links of a demand another does not have.
func moved(from, to *crosswiring.Demand) (n int) {
	for h := range from.Groups() {
		for i := range from.Pods() {
			for j := range i {
				n += max(0, from.At(h, i, j)-to.At(h, i, j))
			}
		}
	}
	return n
}

func seconds(d time.Duration) string { return quantity.Seconds(d.Seconds()) }

func timeRows(s *report.Study, all []timing) {
	row := func(quantity, paper string, value float64, ours time.Duration, note string) {
		s.Paper.Rows = append(s.Paper.Rows, report.PaperRow{Quantity: quantity, Paper: paper, Ours: seconds(ours),
			Deviation: longer(value, ours.Seconds()), Note: note})
	}
	for _, t := range all {
		size := t.f.Ports()
		if size == 32768 {
			row("32,768 GPUs, from nothing: MDMCF (figure 6)", "19.37 s", jobs.PaperMDMCF.Seconds(), t.cold,
				"The paper's is the longest it measured, ours a median.")
			row("- from running circuits", "19.37 s", jobs.PaperMDMCF.Seconds(), t.rewire[0], "The paper's is the longest it measured, "+
				"ours a median.")
			row("- ILP (figures 2c, 6)", "435.07 s", jobs.PaperILP.Seconds(), t.rewire[0], "The paper's is the longest it measured, "+
				"ours a median.")
			s.Paper.Rows = append(s.Paper.Rows, noCounterpart("- rewired, when 2 % of the links change", portion(t.share[0]),
				fmt.Sprintf("No plan rewires less than %s.", portion(t.least[0]))))
		}
		if size == 131072 {
			s.Paper.Rows = append(s.Paper.Rows, report.PaperRow{Quantity: "131,072 GPUs, 512-port switches (section 3.1)",
				Paper: "can be wired", Ours: seconds(t.cold), Deviation: "as told", Note: "To plan all circuits from nothing."})
		}
	}
	for _, t := range all {
		size := t.f.Ports()
		if paper, ok := artefactTimes[size]; ok {
			row(sizeOf(t.f)+" GPUs, earlier public artefact", quantity.Seconds(paper), paper, t.cold,
				"Sizes of the artefact are read as doublings from 2,048 to 32,768 GPUs.")
		}
		if paper, ok := minimalTimes[size]; ok {
			row("- its minimal rewiring", quantity.Seconds(paper), paper, t.rewire[1], "From running circuits when 10 % of the links "+
				"change; how many did there is not known.")
		}
	}
}

func timeTable(s *report.Study, all []timing) {
	section := report.StudySection{Title: "Planning time by size", Columns: []string{"GPUs", "pods", "from nothing",
		"2 %: orient+seq", "2 %: best", "2 %: links moved", "2 %: rewired", "2 %: at least", "10 %: best", "10 %: rewired",
		"10 %: at least"},
		Text: "From running circuits when 2 or 10 % of the links change. Links moved are those that did: they change by twos in each " +
			"group, and with 8 pods " +
			"2 % of a group are less than two, so that nothing changes. Rewired are circuits, and at least those that any plan has to."}
	lines := chart.Lines{Frame: chart.Frame{Title: "Planning time by size"}, X: chart.Axis{Title: "GPUs", Kind: chart.Number,
		Log: true}, Y: chart.Axis{Title: "time of a plan", Kind: chart.Time, Log: true}}
	names := []string{"ours, from nothing", "ours, 2 % of the links change", "MDMCF of the paper", "ILP of the paper",
		"earlier artefact", "its minimal rewiring"}
	for i, name := range names {
		lines.Curves = append(lines.Curves, chart.Line{Label: name, Tone: chart.SeriesTone(i)})
	}
	add := func(i, gpus int, seconds float64) {
		lines.Curves[i].Points = append(lines.Curves[i].Points, chart.Point{X: float64(gpus), Y: seconds * 1e9})
	}
	for _, t := range all {
		size := t.f.Ports()
		section.Table = append(section.Table, []string{sizeOf(t.f), fmt.Sprint(t.f.Pods), seconds(t.cold), seconds(t.seq),
			seconds(t.rewire[0]), thousands(t.changed[0]),
			portion(t.share[0]), portion(t.least[0]), seconds(t.rewire[1]), portion(t.share[1]), portion(t.least[1])})
		add(0, size, t.cold.Seconds())
		if t.changed[0] > 0 {
			add(1, size, t.rewire[0].Seconds())
		}
		if size == 32768 {
			add(2, size, jobs.PaperMDMCF.Seconds())
			add(3, size, jobs.PaperILP.Seconds())
		}
		if paper, ok := artefactTimes[size]; ok {
			add(4, size, paper)
		}
		if paper, ok := minimalTimes[size]; ok {
			add(5, size, paper)
		}
	}
	section.Charts = []chart.Chart{lines}
	s.Sections = append(s.Sections, section)
}

// jobRows are figures 4a and 8, by a simulated queue.
func jobRows(ctx context.Context, s *report.Study) error {
	architectures := jobs.Architectures()
	var cross, uniform []jobs.Architecture
	for i, a := range architectures {
		if a.Planner == nil {
			cross = append(cross, a)
		}
		if a.Planner != nil || i == 0 {
			uniform = append(uniform, a)
		}
	}
	section := report.StudySection{Title: "A queue of jobs", Columns: []string{"cluster, architecture", "run time", "wait",
		"longest wait", "slower, mean", "worst", "jobs hit", "completion"},
		Text: "Simulated, 1000 jobs at a workload level of 0.801 (50 for the testbed); slower and completion are beside an ideal " +
			"switch. The sizes of jobs, their run times, and that jobs of several " +
			"pods spend 30 % of their time on links between pods are assumed, so that only orders of magnitude can be compared."}
	run := func(name string, f crosswiring.Fabric, w jobs.Workload, on []jobs.Architecture) ([]jobs.Row, error) {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		rows, err := jobs.Compare(f, w, on, jobs.Options{})
		for _, r := range rows {
			section.Table = append(section.Table, []string{name + ": " + r.Architecture, hours(r.JRT), hours(r.JWT), hours(r.JWTMax),
				portion(r.Slower), portion(r.SlowerMax), portion(r.Hit), fmt.Sprintf("%+.1f %%", 100*r.JCTMore)})
		}
		return rows, err
	}
	large, err := run("32,768", podsOf(128, 16), jobs.Workload{Seed: crosswiringSeed}, cross)
	if err != nil {
		return err
	}
	small, err := run("8,192", podsOf(32, 16), jobs.Workload{Seed: crosswiringSeed}, uniform)
	if err != nil {
		return err
	}
	f, w := jobs.Testbed()
	testbed, err := run("testbed", f, w, uniform)
	if err != nil {
		return err
	}
	s.Sections = append(s.Sections, section)
	queueRows(s, large, small, testbed)
	return nil
}

// hours writes a long time.
func hours(d time.Duration) string { return fmt.Sprintf("%.2f h", d.Hours()) }

func jobRow(rows []jobs.Row, architecture string) jobs.Row {
	for _, r := range rows {
		if r.Architecture == architecture {
			return r
		}
	}
	return jobs.Row{}
}

func queueRows(s *report.Study, large, small, testbed []jobs.Row) {
	ours, ilp := jobRow(large, "cross, ours"), jobRow(large, "cross, ilp 435 s")
	greedy, bed := jobRow(small, "uniform greedy"), jobRow(testbed, "uniform greedy")
	const assumed = "Jobs are drawn by assumptions of ours: an order of magnitude."
	more := 100 * (ilp.JCT.Seconds()/ours.JCT.Seconds() - 1)
	row := func(quantity, format string, paper, ours float64, note string) report.PaperRow {
		return report.PaperRow{Quantity: quantity, Paper: fmt.Sprintf(format, paper), Ours: fmt.Sprintf(format, ours),
			Deviation: fmt.Sprintf("%+.1f points", ours-paper), Note: note}
	}
	wait := report.PaperRow{Quantity: "- longest wait", Paper: "11518 s", Ours: fmt.Sprintf("%.0f s", ilp.JWTMax.Seconds()),
		Deviation: off(11518, ilp.JWTMax.Seconds(), 0), Note: assumed}
	gain := func(slower float64) float64 { return 100 * (1/(1+slower) - 1) }
	const uniform = "8,192 GPUs, where the paper has 32,768. " + assumed
	s.Paper.Rows = append(s.Paper.Rows,
		row("completion with ILP planning over ours (figure 8)", "%+.1f %%", 12.6, more, assumed), wait,
		row("run time, Uniform greedy, mean (figure 8)", "%+.1f %%", 2.1, 100*greedy.Slower, uniform),
		row("- worst job", "%+.1f %%", 91.9, 100*greedy.SlowerMax, uniform),
		row("- jobs hit", "%.1f %%", 2.6, 100*greedy.Hit, uniform),
		notDone("- Clos, mean", "+1.3 %", "A packet network is not simulated."),
		notDone("- ITV-MCF, worst job", "+4.3 %", "It is not described."),
		row("run time, testbed, Cross over Uniform (figure 4a)", "%+.1f %%", -3.9, gain(bed.Slower),
			"50 jobs of 16 to 128 GPUs in 48 hours. "+assumed),
		row("- best job", "%+.1f %%", -28.3, gain(bed.SlowerMax), "50 jobs of 16 to 128 GPUs in 48 hours. "+assumed))
}

// stepRows are table 1.
func stepRows(s *report.Study) error {
	rows, err := pods.StepTable(pods.StepModel{})
	if err != nil {
		return err
	}
	for _, r := range rows {
		name := "never"
		if r.Every > 0 {
			name = fmt.Sprintf("every %.0f s", r.Every.Seconds())
		}
		ms := func(d time.Duration) float64 { return d.Seconds() * 1e3 }
		row := report.PaperRow{Quantity: "step, half the links switched " + name + " (table 1)", Paper: fmt.Sprintf("%.1f ms",
			ms(r.Paper)), Ours: fmt.Sprintf("%.1f ms", ms(r.Mean)), Deviation: off(ms(r.Paper), ms(r.Mean), 1)}
		switch r.Every {
		case 0, 30 * time.Second:
			row.Note = fmt.Sprintf("Set: the model has the step without events, and %v that an event takes, from these two.",
				pods.PaperOutage)
		default:
			row.Note = "One outage for all intervals does not give the paper's table: at 60 and 90 s its steps lose less to each " +
				"event. The demo of crosswiring measures outages of emulated links."
		}
		s.Paper.Rows = append(s.Paper.Rows, row)
	}
	return nil
}

// waits are what Kingman's formula says of planning times.
func waits(s *report.Study) {
	section := report.StudySection{Title: "Waiting for a plan, by Kingman's formula", Columns: []string{"a change comes every",
		"a plan takes", "load", "mean wait"},
		Text: "Changes at random, plans of constant length, one planner. At a load of 1 and above the queue grows without end."}
	for _, plan := range []time.Duration{20 * time.Millisecond, 100 * time.Millisecond, jobs.PaperMDMCF, jobs.PaperILP} {
		for _, every := range []time.Duration{time.Minute, 10 * time.Minute} {
			text := "no end"
			if wait, stable := crosswiring.KingmanWait(every, plan, 1, 0); stable {
				text = seconds(wait)
			}
			section.Table = append(section.Table, []string{fmt.Sprintf("%.0f s", every.Seconds()), seconds(plan), fmt.Sprintf("%.4f",
				plan.Seconds()/every.Seconds()), text})
		}
	}
	s.Sections = append(s.Sections, section)
}
