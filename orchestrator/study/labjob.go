package study

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ocslab/ocslab/emulator/fabric"
	"github.com/ocslab/ocslab/examples"
	"github.com/ocslab/ocslab/experiment/report"
	"github.com/ocslab/ocslab/experiment/report/chart"
	firmwarenotes "github.com/ocslab/ocslab/firmware-notes"
	"github.com/ocslab/ocslab/internal/natural"
	"github.com/ocslab/ocslab/orchestrator/advice"
	"github.com/ocslab/ocslab/orchestrator/rehearse"
	"github.com/ocslab/ocslab/orchestrator/replay"
	"github.com/ocslab/ocslab/orchestrator/trace"
	"github.com/ocslab/ocslab/timeline"
	"github.com/ocslab/ocslab/topology/opus"
)

// Of the testbed: what the example files say, and what the paper does.
const (
	labSwitching = 200 * time.Millisecond
	labPortGbps  = 100
	labSteps     = 2 // that are measured unless somebody says otherwise: most of each is waiting for firmware
)

// Texts for people.
const (
	labEmulated = "The switch, the NICs' firmware and training are emulated. Interfaces, datagrams and the control plane are real: " +
		"what they take is measured."
	labInMemory = "The switch, the NICs and training are emulated, as network devices cannot be made here. The control plane is real: " +
		"what it takes is measured."
	aboutDigits = "The most that any one stage goes over to another axis. The switch had %s on each rail: stages that go over one " +
		"after the other take one each."
	aboutSplit = "Each row is a run of its own. Native is compute and communication without a control plane; switching is what links " +
		"that come up with the light add to that; links is what the firmware adds, and the way of datagrams through this machine. " +
		"What windows hide is in none. The advice is what \"ocslab advise\" says of reconfiguring at each boundary and of the giant " +
		"ring; it counts a link-up without what rapid succession adds."
	aboutRing     = " Kept on the giant ring, where no link ever goes down (%s there, %s), a step takes %s: %s."
	aboutObserver = "A violation is an operation on a circuit that is being changed or has no settled light. Ranks have leave to run when " +
		"the switch has been read back, not when links are up: the datagrams that they then send without a carrier go nowhere and " +
		"are sent again until they are acknowledged, so operations wait and nothing is lost for good. The paper's RDMA repeats " +
		"seven times and then gives up."
	aboutLinkUp = "Set, not found: the profile says so, and that links which come and go often take longer. What is found is that this " +
		"job's links do."
	aboutCarrier = "Set, too, to 70 to 80 µs after the firmware is due to report. What is found is when this machine got round to tell of " +
		"either, by the log of the emulation: the state that the firmware publishes is read only every millisecond."
	aboutTimeline = "A line is a reconfiguration of a rail: when its command was sent, counted from the first of the step, and how long " +
		"after that it was acknowledged, light had come back to the first and to the last NIC, the kernel had carrier at the first " +
		"and at the last NIC, and the first operation on the new circuits was complete. -/+ are cross-connects that were removed " +
		"and added."
)

// labSetup is what the lab job runs on.
type labSetup struct {
	labFile, jobFile []byte
	// profiles are two firmwares of all NICs, without auto-negotiation and with it.
	profiles [2]labProfile
	rung     fabric.Rung // 0: the best that is to be had
}

type labProfile struct{ firmware, name string }

// labJob runs the lab job on real interfaces.
func labJob(ctx context.Context, opt report.FigureOptions) (*report.Study, error) {
	return labSetup{labFile: examples.OpusRails, jobFile: examples.LabJob, profiles: [2]labProfile{
		{"connectx-6-dx/autoneg-off", "no auto-negotiation"}, {"connectx-6-dx/autoneg-on", "auto-negotiation"},
	}}.study(ctx, opt)
}

func (l labSetup) study(ctx context.Context, opt report.FigureOptions) (*report.Study, error) {
	t, err := generate("lab-job")
	if err != nil {
		return nil, err
	}
	steps := asked(opt, labSteps)
	s := &report.Study{Emulated: labEmulated}
	s.Paper.Title = "section 5.1: the two-rail testbed and its timeline (figure 9)"

	opt.Progress("no control plane")
	base, err := rehearse.Run(ctx, rehearse.Options{Trace: t, Replay: replay.Options{Native: true, Steps: steps, WarmUp: 1}})
	if err != nil {
		return s, err
	}
	run := func(name, firmware string, onRing bool) labRun {
		return labRun{labSetup: l, name: name, firmware: firmware, onRing: onRing, settle: 1, steps: steps}
	}
	off, on := l.profiles[0], l.profiles[1]
	results, err := runAll(ctx, t, opt.Progress, [][]labRun{
		{run("light", "", false)},
		{run("giant ring", "", true)},
		{run("giant ring, datagrams", off.firmware, true)},
		// Almost all of these is waiting for firmware, so they run at the same time.
		{run(off.name, off.firmware, false), run(on.name, on.firmware, false)},
	})
	if err != nil {
		return s, err
	}
	light, rings, runs := results[0], results[1:3], results[3:]
	if runs[0].on == fabric.Memory {
		s.Emulated = labInMemory
	}
	s.Facts = [][2]string{
		{"job", fmt.Sprintf("%s on %s", shapeOf(t), natural.Count(len(light.job.Rails), "rail"))},
		{"interfaces", runs[0].on.String()},
		{"protocol", fmt.Sprintf("%s measured after %d that are learnt from, with operations modelled, and one in which links come up",
			natural.Count(steps, "step"), learning)},
	}
	wide, err := bandwidth(t.Job, light.job.OpusPolicy())
	if err != nil {
		return s, err
	}
	have := countInventory(light)
	s.Sections = append(s.Sections, wide)
	split, err := stepSplit(t, base.Result.Mean().Wall, light, rings, runs)
	if err != nil {
		return s, err
	}
	s.Sections = append(s.Sections, split...)
	for _, r := range runs {
		s.Sections = append(s.Sections, r.section())
	}
	s.Sections = append(s.Sections, observed(results))
	s.Paper.Rows = append([]report.PaperRow{
		{Quantity: "reconfigurations a step", Paper: "4", Ours: fmt.Sprint(t.Reconfigurations(0)), Note: fmt.Sprintf(
			aboutDigits, runs[0].perStep())},
		{Quantity: "bandwidth of the dimension that is active", Paper: "200 Gb/s", Ours: wide.Table[0][3]},
		{Quantity: "servers, GPUs, NICs", Paper: "4, 8, 8", Ours: fmt.Sprintf("%d, %d, %d", have.servers, have.gpus, have.nics),
			Note: "Counted from the lab file and the job file."},
		{Quantity: "ports of NICs, transceivers, fibres", Paper: "16, 16, 32",
			Ours: fmt.Sprintf("%d, %d, %d", have.nicPorts, have.transceivers, have.fibres)},
		{Quantity: "rails, ports of the switch", Paper: "2, 64", Ours: fmt.Sprintf("%d, %d", have.rails, have.switchPorts)},
	}, labRows(runs)...)
	return s, nil
}

// runAll runs groups of runs, the runs of a group at the same time.
func runAll(ctx context.Context, t *trace.Trace, progress func(string), groups [][]labRun) ([]*labResult, error) {
	var mu sync.Mutex // one call of progress at a time
	tell := func(text string) {
		mu.Lock()
		defer mu.Unlock()
		progress(text)
	}
	var all []*labResult
	for _, group := range groups {
		results, errs := make([]*labResult, len(group)), make([]error, len(group))
		var wait sync.WaitGroup
		for i, p := range group {
			wait.Go(func() { results[i], errs[i] = p.run(ctx, t, tell) })
		}
		wait.Wait()
		if err := errors.Join(errs...); err != nil {
			return nil, err
		}
		all = append(all, results...)
	}
	return all, nil
}

// shapeOf says how a job is cut: "PP2 DP2".
func shapeOf(t *trace.Trace) string {
	text := fmt.Sprintf("%s: PP%d", t.Name, t.Job.Stages)
	for _, a := range t.Job.Axes {
		text += fmt.Sprintf(" %s%d", strings.ToUpper(a.Name), a.Size)
	}
	return text
}

// inventory counts what a testbed is made of.
type inventory struct {
	servers, gpus, nics, nicPorts, transceivers, fibres, rails, switchPorts int
}

// countInventory counts what the lab file and the job file have. A rank on a rail is a GPU with a NIC, each port of a NIC
// has a transceiver, and a transceiver two fibres, one either way.
func countInventory(r *labResult) inventory {
	n := inventory{rails: len(r.job.Rails)}
	servers, fibres := map[string]bool{}, map[string]bool{}
	for _, x := range r.job.Rails {
		for rank, nics := range x.Ranks {
			servers[r.job.Host(x.Name, rank)] = true
			n.gpus++
			n.nics++
			for _, name := range nics {
				n.nicPorts++
				if nic, err := r.file.NIC(name); err == nil {
					fibres[nic.Tx.String()], fibres[nic.Rx.String()] = true, true
				}
			}
		}
	}
	n.servers, n.fibres, n.transceivers = len(servers), len(fibres), n.nicPorts
	n.switchPorts = r.switchPorts
	return n
}

// bandwidth is what two neighbours of a group have between them, for each axis when it is that of all stages.
func bandwidth(j opus.Job, p opus.Policy) (report.StudySection, error) {
	s := report.StudySection{Title: "What a dimension has when it is active",
		Columns: []string{"axis", "topology ID", "circuits between neighbours", "bandwidth"},
		Text:    fmt.Sprintf("By the matching that is built for it, with ports of %d Gb/s.", labPortGbps)}
	for _, name := range j.AxisNames() {
		axis, _ := j.AxisOf(name)
		id := make(opus.ID, j.Stages)
		for stage := range id {
			id = id.Symmetrical(stage, axis)
		}
		if axis == opus.PP {
			id = make(opus.ID, j.Stages)
		}
		m, err := opus.Build(j, id, p)
		if err != nil {
			return s, err
		}
		members := j.Groups(axis)[0].Members
		lanes := m.Lanes(members[0], members[1])
		s.Table = append(s.Table, []string{name, id.String(), fmt.Sprint(lanes), fmt.Sprintf("%d Gb/s", lanes*labPortGbps)})
	}
	return s, nil
}

// split is where the time of a step goes.
type split struct {
	name                     string
	native, switching, links time.Duration
	asked                    int
	reconfigure, ring        time.Duration // as advised; 0 is not said
}

func (x split) step() time.Duration { return x.native + x.switching + x.links }

func (x split) row() []string {
	cell := func(d time.Duration) string {
		if d == 0 {
			return ""
		}
		return seconds(d)
	}
	return []string{x.name, seconds(x.step()), cell(x.native), cell(x.switching), cell(x.links), fmt.Sprint(x.asked), cell(x.reconfigure), cell(x.ring)}
}

func (x split) bar() chart.Bar {
	b := chart.Bar{Label: x.name}
	for i, part := range []time.Duration{x.native, x.switching, x.links} {
		label := []string{"compute and communication", "switching", "links"}[i]
		b.Parts = append(b.Parts, chart.Part{Label: label, Tone: chart.SeriesTone(i), Value: float64(part)})
	}
	return b
}

// stepSplit says where the time of a step goes, and holds it against the advice. The last of rings is that on links.
func stepSplit(t *trace.Trace, native time.Duration, light *labResult, rings, runs []*labResult) ([]report.StudySection, error) {
	wall := func(r *labResult) time.Duration { return r.out.Result.Mean().Wall }
	var texts []report.StudySection
	none, err := advice.Advise(t, advice.Options{Switch: labSwitching, Control: time.Millisecond})
	if err != nil {
		return nil, err
	}
	parts := []split{{name: "native", native: native}, {
		name: light.name, native: native, switching: wall(light) - native, asked: light.out.Result.Mean().Asked,
		reconfigure: none.SimulatedProvision, ring: none.SimulatedRing,
	}}
	ring := rings[len(rings)-1]
	stayed := ring.out.Result.Mean()
	var slower []string
	for _, r := range runs {
		firmware, err := firmwarenotes.Find(r.firmware)
		if err != nil {
			return nil, err
		}
		a, err := advice.Advise(t, advice.Options{Switch: labSwitching, Control: time.Millisecond, Firmware: &firmware})
		if err != nil {
			return nil, err
		}
		parts = append(parts, split{
			name: r.name, native: native, switching: wall(light) - native, links: wall(r) - wall(light),
			asked: r.out.Result.Mean().Asked, reconfigure: a.SimulatedProvision, ring: a.SimulatedRing,
		})
		texts = append(texts, report.StudySection{Title: "What is advised: " + r.name, Pre: a.Text()})
		slower = append(slower, fmt.Sprintf("%.1f times as long with %s", float64(wall(r))/float64(stayed.Wall), r.name))
	}
	for _, r := range rings {
		parts = append(parts, split{name: r.name, native: wall(r), asked: r.out.Result.Mean().Asked, ring: none.SimulatedRing})
	}
	s := report.StudySection{Title: "Where the time of a step goes",
		Columns: []string{"", "step", "native", "switching", "links", "asked", "advice", "advice, ring"}}
	s.Text = aboutSplit + fmt.Sprintf(aboutRing, natural.Count(stayed.OnRing, "operation"), natural.Count(len(ring.changes), "reconfiguration"),
		seconds(stayed.Wall), "one that reconfigures takes "+strings.Join(slower, " and "))
	bars := chart.Bars{Frame: chart.Frame{Title: s.Title}, Axis: chart.Axis{Kind: chart.Time}}
	for _, x := range parts {
		s.Table = append(s.Table, x.row())
		bars.Rows = append(bars.Rows, x.bar())
	}
	s.Charts = append(s.Charts, bars)
	return append([]report.StudySection{s}, texts...), nil
}

// observed is what the observer and the plane counted.
func observed(runs []*labResult) report.StudySection {
	s := report.StudySection{Title: "What the observer saw, learning included",
		Text: aboutObserver,
		Columns: []string{"", "operations", "violations", "bytes lost", "changes of circuits",
			"datagrams sent", "of them again", "without carrier", "carriers not accounted for"}}
	for _, r := range runs {
		missing := 0
		for _, a := range r.account {
			missing += a.Missing
		}
		d, v := r.out.Datagrams, r.out.Verdict
		row := []string{r.name, "-", "-", "-", "-", fmt.Sprint(d.Sent), fmt.Sprint(d.Repeated), fmt.Sprint(d.Dark), fmt.Sprint(missing)}
		if v != nil {
			copy(row[1:], []string{fmt.Sprint(v.Ops), fmt.Sprint(v.Total()), fmt.Sprint(v.Lost), fmt.Sprint(v.Changes)})
		}
		if r.firmware == "" {
			copy(row[5:], []string{"modelled", "", "", ""})
		}
		s.Table = append(s.Table, row)
	}
	return s
}

// perStep says how many reconfigurations the measured steps had on a rail: "5", or "4 to 5".
func (r *labResult) perStep() string {
	least, most := 1<<30, 0
	from, to := r.measured()
	for step := from; step < to; step++ {
		for _, x := range r.job.Rails {
			n := len(r.in(step, x.Name))
			least, most = min(least, n), max(most, n)
		}
	}
	if least >= most {
		return fmt.Sprint(most)
	}
	return fmt.Sprintf("%d to %d", least, most)
}

// labRows compares what was measured on links with the paper.
func labRows(runs []*labResult) []report.PaperRow {
	var acks []time.Duration
	for _, r := range runs {
		for _, c := range r.changes {
			if len(c.added) > 0 {
				acks = append(acks, c.took())
			}
		}
	}
	ack := spreadOf(acks)
	rows := []report.PaperRow{{Quantity: "switch, from command to acknowledgement", Paper: "200 ms", Ours: ack.String(),
		Deviation: percent(labSwitching, ack.median),
		Note:      "The emulated switch is set to 200 ms for a mirror; it acknowledges when the last has settled."}}
	row := func(quantity, paper string, d []time.Duration, note string) {
		rows = append(rows, report.PaperRow{Quantity: quantity, Paper: paper, Ours: spreadOf(d).String(), Note: note})
	}
	off, on := runs[0], runs[1]
	row("light to carrier, "+off.name, "3 s, up to 10 s", off.after(timeline.Light, timeline.CarrierUp, false), aboutLinkUp)
	row("light to carrier, "+on.name, "6 s, up to 10 s", on.after(timeline.Light, timeline.CarrierUp, false), "")
	row("firmware to carrier, "+off.name, "70 to 80 µs", off.after(timeline.Firmware, timeline.CarrierUp, true), aboutCarrier)
	row("firmware to carrier, "+on.name, "70 to 80 µs", on.after(timeline.Firmware, timeline.CarrierUp, true), "")
	return rows
}

// spread is where durations lie.
type spread struct {
	n                 int
	low, median, most time.Duration
}

func spreadOf(d []time.Duration) spread {
	if len(d) == 0 {
		return spread{}
	}
	d = slices.Sorted(slices.Values(d))
	return spread{len(d), d[0], d[len(d)/2], d[len(d)-1]}
}

// String is "203.4 ms (201.2 ms to 210.0 ms, 20 of them)".
func (s spread) String() string {
	if s.n == 0 {
		return "not seen"
	}
	return fmt.Sprintf("%s (%s to %s, n %d)", brief(s.median), brief(s.low), brief(s.most), s.n)
}

// brief rounds to four digits or so.
func brief(d time.Duration) string {
	switch {
	case d >= time.Second:
		return fmt.Sprintf("%.3f s", d.Seconds())
	case d >= time.Millisecond:
		return fmt.Sprintf("%.1f ms", float64(d)/1e6)
	}
	return fmt.Sprintf("%.0f µs", float64(d)/1e3)
}

// after returns how long after one stage NICs reached another: by the marks of changes or, with truth, by those of the
// emulation.
func (r *labResult) after(from, to timeline.Stage, truth bool) (all []time.Duration) {
	marks := r.marks
	if truth {
		marks = r.truth
	}
	// A NIC's mark of the later stage follows the last of the earlier one. What the emulation does begins at the Earliest.
	marks = slices.Clone(marks)
	at := func(m timeline.Mark) int64 {
		if truth {
			return m.Earliest
		}
		return m.Latest
	}
	slices.SortStableFunc(marks, func(a, b timeline.Mark) int { return cmp.Compare(at(a), at(b)) })
	last := map[string]int64{}
	for _, m := range marks {
		switch m.Stage {
		case from:
			last[m.Subject] = at(m)
		case to:
			if began, ok := last[m.Subject]; ok {
				all = append(all, time.Duration(at(m)-began))
				delete(last, m.Subject)
			}
		}
	}
	return all
}
