package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/ocslab/ocslab/emulator/fabric"
	"github.com/ocslab/ocslab/experiment"
	"github.com/ocslab/ocslab/experiment/analysis"
	"github.com/ocslab/ocslab/experiment/execution"
	firmwarenotes "github.com/ocslab/ocslab/firmware-notes"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/linkmon/probe"
	"github.com/ocslab/ocslab/linkmon/watch"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/timeline"
)

// measureFlags are those of all commands that measure reconfigurations.
type measureFlags struct {
	watchFlags
	repeat, warmups int
	pace            time.Duration
	spin, noProbe   bool
	patience, pause time.Duration
	firmware, rung  string
	seed            uint64
}

func (m *measureFlags) add(f *pflag.FlagSet, repeat int, firmware string) {
	m.watchFlags.add(f)
	f.IntVarP(&m.repeat, "repeat", "n", repeat, "number of reconfigurations")
	f.IntVar(&m.warmups, "warm-ups", 3, "reconfigurations before them that do not count")
	f.DurationVar(&m.pace, "pace", 0, "time between two packets of the probe, each way of each pair (default 100µs, or more when there are many)")
	f.BoolVar(&m.spin, "spin", false, "pace packets without sleeping: one core, down to 20 µs")
	f.BoolVar(&m.noProbe, "no-probe", false, "send no traffic")
	f.DurationVar(&m.patience, "patience", experiment.DefaultLinkPatience, "how long NICs and traffic may take to come back")
	f.DurationVar(&m.pause, "pause", 0, "rest between two reconfigurations: firmware that is toggled often may become slower")
	f.StringVar(&m.firmware, "firmware", firmware, "firmware of all emulated NICs, in place of the lab file's: see ocslab help measure")
	f.StringVar(&m.rung, "rung", "", "what emulated NICs are: `tap|veth|memory` (default the best there is here)")
	f.Uint64Var(&m.seed, "seed", 1, "seed of all that is random")
}

var rungs = execution.Rungs

// rungOf returns what emulated NICs are to be, by its name.
func rungOf(name string) (fabric.Rung, error) {
	rung, ok := rungs[name]
	if !ok {
		return 0, usagef("--rung %q: want tap, veth or memory", name)
	}
	return rung, nil
}

// moveMode is the mode of commands that move light again and again, and put it back.
func (a *app) moveMode() (ocs.Policy, error) {
	mode, err := a.mode()
	if err == nil && mode == ocs.Overwrite {
		err = usagef("--mode overwrite: only circuits in the way are removed here: want safe or update")
	}
	return mode, err
}

// testbed returns how to open the testbed.
func (m *measureFlags) testbed(f *lab.File, configurations []string) (experiment.TestbedOptions, error) {
	var opt experiment.TestbedOptions
	switch {
	case m.repeat < 1 || m.repeat > 100_000:
		return opt, usagef("-n %d: want 1 to 100000", m.repeat)
	case m.warmups < 0:
		return opt, usagef("--warm-ups %d: want 0 or more", m.warmups)
	case m.pace != 0 && m.pace < probe.MinPace:
		return opt, usagef("--pace %v: want %v or more", m.pace, probe.MinPace)
	case m.patience <= 0:
		return opt, usagef("--patience %v: want a time above zero", m.patience)
	case m.pause < 0:
		return opt, usagef("--pause %v: want 0 or more", m.pause)
	}
	rung, err := rungOf(m.rung)
	if err != nil {
		return opt, err
	}
	w, err := m.watchFlags.options()
	if err != nil {
		return opt, err
	}
	moreProcessors()
	w.Probe.Pace, w.Probe.Spin = m.pace, m.spin
	if m.noProbe {
		w.Probe.Pace = experiment.Quiet
	}
	opt = experiment.TestbedOptions{Watch: w, Fabric: lab.FabricOptions{Firmware: m.firmware, Seed: m.seed, Rung: rung}}
	for _, name := range configurations {
		c, err := f.Config(name)
		if err != nil {
			return opt, err
		}
		opt.Maps = append(opt.Maps, c)
	}
	return opt, nil
}

func (a *app) measureCommand() *cobra.Command {
	var flags measureFlags
	var from, to string
	var accuracy, perNIC bool
	c := &cobra.Command{
		Use:   "measure --from CONF --to CONF",
		Short: "Move between two configurations again and again, and time every stage",
		Long: `Move a lab between two of its configurations, wait each time until every stage that
can be watched has come back, and print when that was after the command: median, 95th
and 99th percentile with confidence bounds, each stage's share, and what could not be
resolved. Every change is recorded and read back as with "ocslab connect"; circuits that
are in neither configuration are not moved (unless with --mode update), and at the end
all is put back as it was.

With --emulated the switches, hosts and NICs are emulated, and --accuracy prints how
far the marks were from what the emulation did. The firmware of emulated NICs is that
of the lab file; profiles are ` + strings.Join(firmwarenotes.Names(), ", ") + `.`,
		Example: "  ocslab --emulated measure --from dp --to pp -n 30 --accuracy\n  ocslab --lab lab.yaml measure --from dp --to pp",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			l, err := a.needLab()
			if err != nil {
				return err
			}
			if from == "" || to == "" || from == to {
				return usagef("want --from and --to, two of the configurations %s", strings.Join(l.File.ConfigNames(), ", "))
			}
			if accuracy && !a.set.Emulated {
				return usagef("--accuracy goes with --emulated: nobody knows the truth of a real lab")
			}
			policy, err := a.moveMode()
			if err != nil {
				return err
			}
			configurations := []string{from, to}
			opt, err := flags.testbed(l.File, configurations)
			if err != nil {
				return err
			}
			if done, err := a.mayMove(l); done || err != nil {
				return err
			}
			return a.measure(cmd.Context(), l, &flags, configurations, opt, policy, accuracy, perNIC)
		},
	}
	f := c.Flags()
	f.StringVar(&from, "from", "", "`CONF`iguration to begin from")
	f.StringVar(&to, "to", "", "`CONF`iguration to move to")
	f.BoolVar(&accuracy, "accuracy", false, "print how far the marks are from the truth (emulated labs)")
	f.BoolVar(&perNIC, "per-nic", false, "print a table of NICs, too")
	flags.add(f, 30, "")
	f.String("mode", "safe", "what may happen to circuits of neither configuration that are in the way: `safe|update`; safe refuses, update moves them")
	return c
}

// mayMove refuses to measure as long as a panic is in force in a lab, and goes to where emulated hosts can be. When it
// reports done, another process has done everything.
func (a *app) mayMove(l *lab.Lab) (done bool, err error) {
	with, err := a.labOptions()
	if err != nil {
		return false, err
	}
	if err := a.noPanic(l.File, with); err != nil {
		return false, fmt.Errorf("nothing is measured: %w", err)
	}
	if a.set.Emulated {
		if done, err := enter(); done {
			return true, err
		}
	}
	return false, nil
}

// measurement is what measuring came to.
type measurement struct {
	marks, truth []timeline.Mark // merged; in order of reconfigurations
	conflicts    []timeline.Conflict
	expected     []timeline.Expectation
	notes        []watch.Note
	unresolved   []string
	held         map[string]int // how often each NIC kept its link
	moves        int
	readings     int
	busy         []analysis.Busy // reconfigurations that are left out
	dark         []string        // ports that stayed dark, once each
}

// busyLine is a reconfiguration that the machine was too busy for. Its marks follow; no
// statistics stand on them.
type busyLine struct {
	Kind string `json:"kind"` // "busy"
	analysis.Busy
}

// isBusy reports whether a reconfiguration is left out.
func (m *measurement) isBusy(number int) bool {
	return slices.ContainsFunc(m.busy, func(b analysis.Busy) bool { return b.Reconfiguration == number })
}

// trusted returns the marks, the truth and the expectations of the reconfigurations that are not left out.
func (m *measurement) trusted() (marks, truth []timeline.Mark, expected []timeline.Expectation) {
	busy := func(x timeline.Mark) bool { return m.isBusy(x.Reconfiguration) }
	return slices.DeleteFunc(slices.Clone(m.marks), busy), slices.DeleteFunc(slices.Clone(m.truth), busy),
		slices.DeleteFunc(slices.Clone(m.expected), func(e timeline.Expectation) bool { return m.isBusy(e.Reconfiguration) })
}

// verdict is the error of what was measured: what cannot be trusted, and circuits without light.
func (m *measurement) verdict() error {
	err := experiment.CheckBusy(len(m.busy), m.moves)
	if len(m.dark) > 0 {
		err = errors.Join(err, &experiment.DarkError{Ports: m.dark})
	}
	return err
}

// measure measures and prints.
func (a *app) measure(ctx context.Context, l *lab.Lab, flags *measureFlags, configurations []string, opt experiment.TestbedOptions, policy ocs.Policy, accuracy, perNIC bool) (err error) {
	t, err := experiment.OpenTestbed(ctx, l, opt)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	t.Bench.LinkPatience = flags.patience
	mv := experiment.NewMover(policy, t.Maps)
	found, err := mv.TakeOver(ctx, t)
	if err != nil {
		return err
	}
	a.introduce(t, flags, configurations)
	calibrated, err := a.bearing(ctx, t, flags)
	if err != nil {
		return err
	}
	began := time.Now()
	m, err := a.toggle(ctx, t, flags, accuracy)
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	err = errors.Join(err, mv.Leave(end, l, found))
	if m.moves == 0 {
		return errors.Join(err, m.verdict())
	}
	err = errors.Join(err, a.printMeasurement(t, m, flags, configurations, accuracy, perNIC))
	if len(calibrated) > 0 {
		a.printf("\n")
		a.printFound(calibrated, began)
	}
	return err
}

// setupLine says how something was measured.
type setupLine struct {
	Kind           string   `json:"kind"` // "setup"
	Lab            string   `json:"lab"`
	Switches       []string `json:"switches"`
	Configurations []string `json:"configurations"`
	Repeat         int      `json:"repeat"`
	Rung           string   `json:"rung,omitempty"` // of emulated hosts
	Carrier        string   `json:"carrier"`        // "counters" or "netlink"
	PollNS         int64    `json:"poll_ns"`        // 0: without pause
	Sync           bool     `json:"sync"`
	PaceNS         int64    `json:"pace_ns"` // of the probe; 0: no traffic
	Seed           uint64   `json:"seed"`
}

// setup returns how the testbed measures.
func setup(t *experiment.Testbed, flags *measureFlags, configurations []string) setupLine {
	l := setupLine{
		Kind: "setup", Lab: t.Lab.File.Name, Configurations: configurations, Repeat: flags.repeat,
		Carrier: "counters", PollNS: int64(flags.poll), Sync: flags.sync, PaceNS: int64(t.Pace), Seed: flags.seed,
	}
	for _, r := range t.Bench.Rigs {
		l.Switches = append(l.Switches, r.Name)
	}
	if flags.netlinkOnly {
		l.Carrier = "netlink"
	}
	if flags.tight {
		l.PollNS = 0
	}
	if t.Fabric != nil {
		for name, r := range rungs {
			if r == t.Fabric.Rung() {
				l.Rung = name
			}
		}
	}
	return l
}

// introduce says with --json what will be measured, and on what, and else what is missing for it.
func (a *app) introduce(t *experiment.Testbed, flags *measureFlags, configurations []string) {
	if a.set.JSON {
		a.json(setup(t, flags, configurations))
	}
	if t.Fabric != nil && flags.rung == "" {
		if why := rungsNotHere(t.Fabric.Rung()); why != nil {
			fmt.Fprintf(a.err, "ocslab: not as close to real hardware as could be: %v\n", why)
		}
	}
	if t.Watch != nil {
		inMemory := t.Fabric != nil && t.Fabric.Rung() == fabric.Memory
		for _, l := range experiment.Missing(slices.Concat(t.Sources, t.Watch.Sources()), inMemory) {
			fmt.Fprintf(a.err, "ocslab: %v\n", l)
		}
	}
}

// printSetup prints what was measured, and on what.
func (a *app) printSetup(t *experiment.Testbed, flags *measureFlags, configurations []string) {
	f := t.Lab.File
	for _, r := range t.Bench.Rigs {
		s, _ := f.Switch(r.Name)
		what := s.URL
		if o := r.Switch.(*lab.Opened); o.Emulated != nil {
			what = fmt.Sprintf("an emulated %s at %s", s.Emulate.Model, o.Emulated.URL())
		}
		a.printf("%s: %s", r.Name, what)
		if d := t.Average[r.Name]; d > 0 {
			a.printf("; power read every %v, averaged over %v", experiment.DefaultPoll, d)
		}
		a.printf("\n")
	}
	if t.Fabric != nil {
		a.printf("%s\n", fabricLine(t.Fabric))
	}
	if t.Watch != nil {
		a.printf("links: %s", flags.mode())
		if t.Pace > 0 {
			a.printf("; a packet every %v each way", t.Pace)
		}
		a.printf("\n")
	}
	for i, m := range t.Maps {
		for _, r := range t.Bench.Rigs {
			a.printf("%s: %s %v\n", configurations[i], r.Name, m[r.Name])
		}
	}
	a.printf("\n")
}

// fabricLine says what the emulated hosts are.
func fabricLine(f *fabric.Fabric) string {
	nics := 0
	for _, h := range f.Hosts() {
		nics += len(h.NICs)
	}
	return fmt.Sprintf("%d emulated hosts with %d NICs: %v", len(f.Hosts()), nics, f.Rung())
}

// toggle moves to and fro. What it returns with an error is what was measured
// until then.
func (a *app) toggle(ctx context.Context, t *experiment.Testbed, flags *measureFlags, accuracy bool) (*measurement, error) {
	m := &measurement{held: map[string]int{}}
	show := a.progress()
	defer show.done()
	for i := -1 - flags.warmups; i < flags.repeat; i++ {
		// The first brings the lab from wherever it is to the beginning.
		to := t.Maps[(i+1)&1] // so that number 0 goes from the first to the second
		if i < 0 {
			show.set("warming up")
		} else {
			show.set("reconfiguration %d of %d", i+1, flags.repeat)
		}
		if i > -1-flags.warmups && flags.pause > 0 {
			select {
			case <-time.After(flags.pause):
			case <-ctx.Done():
				return m, context.Cause(ctx)
			}
		}
		t.Truth(0) // what was before is of no reconfiguration
		mv, err := t.Bench.Move(ctx, max(i+1, 0), to, ocs.Update)
		if err != nil {
			return m, err
		}
		for _, p := range mv.Dark {
			if !slices.Contains(m.dark, p) {
				m.dark = append(m.dark, p)
			}
		}
		if i < 0 {
			for _, u := range mv.Unresolved {
				m.unresolved = append(m.unresolved, "warming up: "+u)
			}
			continue
		}
		m.moves++
		if len(mv.Busy) > 0 {
			busy := analysis.Busy{Reconfiguration: i + 1, Reasons: mv.Busy}
			m.busy = append(m.busy, busy)
			if a.set.JSON {
				a.json(busyLine{"busy", busy})
			}
		}
		marks, conflicts := timeline.Merge(mv.Marks)
		truth := t.Truth(i + 1)
		a.stream(marks, mv.Notes, truth, accuracy)
		m.marks = append(m.marks, marks...)
		m.conflicts = append(m.conflicts, conflicts...)
		m.truth = append(m.truth, truth...)
		m.expected = append(m.expected, mv.Expected...)
		m.notes = append(m.notes, mv.Notes...)
		for _, u := range mv.Unresolved {
			m.unresolved = append(m.unresolved, fmt.Sprintf("reconfiguration %d: %s", i+1, u))
		}
		for _, h := range mv.Held {
			m.held[h]++
		}
		m.readings += mv.Readings
	}
	return m, nil
}

// stream writes what one move came to, with --json.
func (a *app) stream(marks []timeline.Mark, notes []watch.Note, truth []timeline.Mark, accuracy bool) {
	if !a.set.JSON {
		return
	}
	for _, x := range marks {
		a.json(x)
	}
	for _, n := range notes {
		a.json(n)
	}
	if accuracy {
		for _, x := range truth {
			a.json(truthLine{"truth", x.Stage, x.Subject, x.Interval, x.Detail, x.Reconfiguration})
		}
	}
}

// printMeasurement prints all that was found out.
func (a *app) printMeasurement(t *experiment.Testbed, m *measurement, flags *measureFlags, configurations []string, accuracy, perNIC bool) error {
	marks, truth, expected := m.trusted()
	marksOfStages, expected := analysis.OneKind(marks, expected)
	report := timeline.Summarize(marksOfStages, timeline.Options{Seed: flags.seed, Expected: expected})
	report.Busy = len(m.busy)
	var accounts []watch.Account
	if t.Watch != nil {
		accounts = t.Watch.Accounts()
	}
	if a.set.JSON {
		if accuracy {
			for _, x := range timeline.Compare(marks, truth) {
				a.json(x)
			}
		}
	} else {
		a.printBusy(m.busy, m.moves)
		a.printSetup(t, flags, configurations)
		a.printStages(report)
		a.printf("\n%s", stagesLegend)
		a.printf("\n%s\n", strings.Join(timeline.Waterfall{Width: a.width()}.Lines(report), "\n"))
		if perNIC {
			a.printf("\n")
			a.printNICs(marks)
		}
		if accuracy {
			a.printf("\n")
			a.printAccuracy(timeline.Compare(marks, truth))
		}
		a.printf("\n%d reconfigurations, all read back as asked; %d power readings\n", m.moves, m.readings)
	}
	if t.Watch != nil {
		a.printAccounts(accounts, t.Watch.Announcements())
	}
	a.printRetransmission(report)
	if a.set.JSON {
		a.json(report)
	}
	a.remarks(m)
	return errors.Join(watch.Incomplete(accounts), m.verdict())
}

// printBusy prints which reconfigurations cannot be trusted, and why.
func (a *app) printBusy(busy []analysis.Busy, of int) {
	if len(busy) == 0 {
		return
	}
	a.printf("the machine was too busy in %d of %d reconfigurations; they are left out of all that follows\n", len(busy), of)
	const most = 10 // lines; --json has all
	for i, b := range busy {
		if i == most {
			a.printf("  and %d more\n", len(busy)-most)
			break
		}
		a.printf("  reconfiguration %d: %s\n", b.Reconfiguration, strings.Join(b.Reasons[:min(len(b.Reasons), 3)], "; "))
	}
	a.printf("\n")
}

// truthLine is a mark of what the emulation did.
type truthLine struct {
	Kind    string         `json:"kind"` // "truth"
	Stage   timeline.Stage `json:"stage"`
	Subject string         `json:"subject"`
	timeline.Interval
	Detail          string `json:"detail,omitempty"`
	Reconfiguration int    `json:"reconfiguration"`
}

// width is how wide a drawing should be.
func (a *app) width() int {
	if w := a.terminal(); w >= 60 {
		return min(w, 120)
	}
	return 100
}

// terminal is the width of the terminal that is written to, 0 if it is none.
func (a *app) terminal() int {
	if f, ok := a.out.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		if w, _, err := term.GetSize(int(f.Fd())); err == nil {
			return w
		}
	}
	return 0
}

// printStages prints the table of stages.
func (a *app) printStages(r timeline.Report) {
	t := table{align: ".>>>>>>>>>>"}
	t.row("stage", "marks", "missing", "median", "bounds", "p95", "bounds", "p99", "bounds", "share", "known to")
	for _, s := range r.Stages {
		half := int64(s.Resolution) / 2
		bounds := func(e timeline.Estimate) string { return msTo(e.LowNS, half) + ".." + msTo(e.HighNS, half) }
		t.row(string(s.Stage), fmt.Sprint(s.Count), fmt.Sprint(s.Missing), msTo(s.Median.NS, half), bounds(s.Median),
			msTo(s.P95.NS, half), bounds(s.P95), msTo(s.P99.NS, half), bounds(s.P99), fmt.Sprintf("%.1f %%", 100*s.Share), "±"+msTo(half, half))
	}
	for _, u := range r.Unseen {
		t.row(string(u.Stage), "0", fmt.Sprint(u.Missing), "never seen")
	}
	t.fit(a.terminal(), 8, 7, 6, 5, 4) // bounds and percentiles from the right and their bounds; --json has all
	t.write(a.out, "")
}

// stagesLegend explains the table of stages.
const stagesLegend = `ms since the last byte of the command was written; bounds are those of 95 % confidence; a mark is an
interval, known to ± half its width; the share is of the median of the last stage
`

// nicStages are the columns of the table of NICs.
var nicStages = []timeline.Stage{
	timeline.Dark, timeline.TrafficLost, timeline.CarrierDown, timeline.Light, timeline.Firmware, timeline.CarrierUp, timeline.Traffic,
}

// printNICs prints the median of each stage for each NIC: of traffic, that of the
// directions that end there.
func (a *app) printNICs(marks []timeline.Mark) {
	commands := map[int]timeline.Interval{}
	for _, m := range marks {
		if m.Stage == timeline.Command {
			commands[m.Reconfiguration] = m.Interval
		}
	}
	after := map[string]map[timeline.Stage][]timeline.Interval{}
	for _, m := range marks {
		name := m.Subject
		_, to, pair := strings.Cut(name, ">")
		if pair {
			name = to
		}
		command, ok := commands[m.Reconfiguration]
		if !ok || !pair && !strings.HasPrefix(name, m.Host+"/") || m.Source == "opm" {
			continue // of a switch
		}
		if after[name] == nil {
			after[name] = map[timeline.Stage][]timeline.Interval{}
		}
		after[name][m.Stage] = append(after[name][m.Stage], m.Sub(command))
	}
	t := table{align: ".>>>>>>>"}
	head := []string{"NIC"}
	for _, s := range nicStages {
		head = append(head, string(s))
	}
	t.row(head...)
	var names []string
	for name := range after {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		row := []string{name}
		for _, s := range nicStages {
			cell := "-"
			if xs := after[name][s]; len(xs) > 0 {
				q := timeline.Quantile(xs, 0.5)
				half := int64(q.Width()) / 2
				cell = msTo(q.Mid(), half) + " ±" + msTo(half, half)
			}
			row = append(row, cell)
		}
		t.row(row...)
	}
	t.write(a.out, "")
	a.printf("medians in ms; dark and light as the module says; traffic of the direction that ends at the NIC\n")
}

// printAccuracy prints how far the marks were from the truth.
func (a *app) printAccuracy(list []timeline.Accuracy) {
	t := table{align: ".>>>>>>>"}
	t.row("against the truth", "marks", "contain it", "error p50", "p95", "max", "width p50", "unmatched")
	for _, x := range list {
		t.row(string(x.Stage), fmt.Sprint(x.Count), fmt.Sprint(x.Inside), ms(x.ErrP50NS), ms(x.ErrP95NS), ms(x.ErrMaxNS), ms(x.WidthP50NS), fmt.Sprint(x.Unmatched))
	}
	t.write(a.out, "")
	a.printf("ms; the error is from the middle of a mark to the middle of the truth. Command and ack are stamped at\nour socket and their truth at the device's, so the difference is the wire, and what holds is the order.\n")
}

// printRetransmission says when RDMA would have gone on.
func (a *app) printRetransmission(r timeline.Report) {
	i := slices.IndexFunc(r.Stages, func(s timeline.Summary) bool { return s.Stage == timeline.Traffic })
	if i < 0 || a.set.JSON {
		return
	}
	outage := time.Duration(r.Stages[i].Median.NS)
	if j := slices.IndexFunc(r.Stages, func(s timeline.Summary) bool { return s.Stage == timeline.TrafficLost }); j >= 0 {
		outage -= time.Duration(r.Stages[j].Median.NS)
	}
	if outage <= 0 {
		return
	}
	var slots []string
	for _, timeout := range []int{14, 20} { // what NCCL used to set, and sets now
		slot, alive, _ := probe.NextSlot(outage, timeout, 7)
		when := slot.Round(100 * time.Microsecond).String()
		if !alive {
			when = "never, it has failed by then"
		}
		slots = append(slots, fmt.Sprintf("%s (timeout %d)", when, timeout))
	}
	a.printf("an RDMA connection that lost packets in an outage of %v resumes at the next slot of its retransmissions:\n%s; for ConnectX-6 as shipped, with 7 retries\n",
		outage.Round(100*time.Microsecond), strings.Join(slots, ", "))
}

// remarks tells on stderr what does not fit.
func (a *app) remarks(m *measurement) {
	for _, c := range m.conflicts {
		fmt.Fprintf(a.err, "ocslab: %v\n", c)
	}
	for _, v := range timeline.Check(m.marks) {
		fmt.Fprintf(a.err, "ocslab: %v\n", v)
	}
	for _, u := range m.unresolved {
		fmt.Fprintf(a.err, "ocslab: not resolved: %s\n", u)
	}
	const most = 5 // lines of a kind; --json has all
	told := map[watch.NoteKind]int{}
	for _, n := range m.notes {
		if n.Kind == watch.Link {
			if n.Event == "added" || n.Event == "removed" || n.Event == "renamed" {
				fmt.Fprintf(a.err, "ocslab: %s was %s\n", n.Subject, strings.TrimSpace(n.Event+" "+n.Text))
			}
			continue
		}
		if told[n.Kind]++; told[n.Kind] <= most {
			fmt.Fprintf(a.err, "ocslab: %s: %s: %s\n", n.Kind, cmp.Or(n.Subject, n.Host, n.Source), n.Text)
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(told)) {
		if told[kind] > most {
			fmt.Fprintf(a.err, "ocslab: %s: and %d more\n", kind, told[kind]-most)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m.held)) {
		a.printf("%s kept its link in %d of %d reconfigurations\n", name, m.held[name], m.moves)
	}
}

// ms writes nanoseconds as milliseconds.
func ms(ns int64) string { return msTo(ns, 0) }

// msTo writes a time that is known to within half, with the digits that are
// worth it: down to microseconds at most.
func msTo(ns, half int64) string {
	digits := 3
	for unit := int64(10 * time.Microsecond); half >= unit && digits > 1; unit *= 10 {
		digits--
	}
	text := fmt.Sprintf("%.*f", digits, float64(ns)/float64(time.Millisecond))
	if strings.Trim(text, "-0.") == "" {
		text = strings.TrimPrefix(text, "-") // no "-0.0"
	}
	return text
}
