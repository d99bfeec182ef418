package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ocslab/ocslab/drivers"
	"github.com/ocslab/ocslab/examples"
	"github.com/ocslab/ocslab/experiment"
	"github.com/ocslab/ocslab/internal/secret"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/timeline"
)

func (a *app) demoCommand() *cobra.Command {
	var n int
	var seed uint64
	c := &cobra.Command{
		Use:   "demo",
		Short: "See light move: an emulated testbed, toggled and timed layer by layer",
		Long: `Start an emulated testbed, four hosts on one switch, toggle between its two
configurations through a real TL1 socket, poll the optical power monitors, and
print when each stage was reached after the command, how surely that is known,
and how far the marks were from what the emulator did. Needs no lab, no root and
no network but 127.0.0.1.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if n < 1 || n > 1000 {
				return usagef("-n %d: want 1 to 1000", n)
			}
			return a.demo(cmd.Context(), n, seed)
		},
	}
	c.Flags().IntVarP(&n, "repeat", "n", 20, "number of reconfigurations")
	c.Flags().Uint64Var(&seed, "seed", 1, "seed of the emulated switch")
	return c
}

// toggled are the configurations of the testbed that the demo goes to and fro
// between.
var toggled = [2]string{"dp", "pp"}

func (a *app) demo(ctx context.Context, n int, seed uint64) (err error) {
	const name = "rail0"
	f, err := lab.Parse("opus-testbed.yaml", examples.OpusTestbed)
	if err != nil {
		return err
	}
	s, _ := f.Switch(name)
	s.Emulate.Seed = &seed
	l := lab.New(f, lab.Options{Emulated: true, Timeout: a.set.Timeout, Trace: a.tracer()})
	defer func() { err = errors.Join(err, l.Close()) }()
	sw, err := l.Switch(ctx, name)
	if err != nil {
		return err
	}
	// A session of its own for the monitors: the switch acknowledges only after
	// it has moved, and until then does not answer on the first one.
	second, err := drivers.Open(ctx, sw.Emulated.URL(), drivers.Options{Name: name, Password: secret.New(lab.EmulatedPassword), Timeout: a.set.Timeout})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, second.Close()) }()
	meter, ok := ocs.As[ocs.PowerMeter](second)
	if !ok {
		return fmt.Errorf("%s: power monitors: %w", name, ocs.ErrNotSupported)
	}

	var maps [2]ocs.Map
	for i, configuration := range toggled {
		byName, err := f.Config(configuration)
		if err != nil {
			return err
		}
		maps[i] = byName[name]
	}
	var egress []ocs.Port
	for c := range maps[0].All() {
		egress = append(egress, c.Egress)
	}
	averaging, _, err := experiment.Quicken(ctx, meter, egress...)
	if err != nil {
		return err
	}
	host, _ := os.Hostname()
	bench := experiment.Bench{
		Name: name, Host: host, Switch: sw, Meter: meter,
		Rule: timeline.SettleRule{Averaging: averaging},
	}
	a.printf("%s: %d hosts on %s, an emulated %s at %s\n",
		f.Name, len(f.Hosts), name, s.Emulate.Model, sw.Emulated.URL())
	a.printf("toggling %s (%v) and %s (%v), power read every %v, averaged over %v\n\n",
		toggled[0], maps[0], toggled[1], maps[1], experiment.DefaultPoll, averaging)

	// Once to begin from, once to warm up.
	for i := range 2 {
		if _, err := bench.Move(ctx, 0, maps[i], ocs.Update); err != nil {
			return err
		}
	}
	var marks, truth []timeline.Mark
	var readings int
	var unresolved []string
	show := a.progress()
	_, seen := sw.Emulated.Device.Truth(0)
	for i := range n {
		show.set("reconfiguration %d of %d", i+1, n)
		mv, err := bench.Move(ctx, i+1, maps[i%2], ocs.Update)
		if err != nil {
			show.done()
			return err
		}
		did, next := sw.Emulated.Device.Truth(seen)
		seen = next
		for _, m := range did {
			m.Reconfiguration = i + 1
			truth = append(truth, m)
		}
		marks = append(marks, mv.Marks...)
		readings += mv.Readings
		unresolved = append(unresolved, mv.Unresolved...)
	}
	show.done()

	marks, conflicts := timeline.Merge(marks)
	report := timeline.Summarize(marks, timeline.Options{Seed: seed})
	accuracy := timeline.Compare(marks, truth)
	if a.set.JSON {
		for _, m := range marks {
			a.json(m)
		}
		for _, x := range accuracy {
			a.json(x)
		}
		a.json(report)
	} else {
		a.printTimeline(report, accuracy)
		a.printf("\n%d reconfigurations of %d circuits each, all read back as asked; %d power readings\n", n, maps[0].Len(), readings)
	}
	for _, c := range conflicts {
		fmt.Fprintf(a.err, "ocslab: %v\n", c)
	}
	for _, v := range timeline.Check(marks) {
		fmt.Fprintf(a.err, "ocslab: %v\n", v)
	}
	for _, u := range unresolved {
		fmt.Fprintf(a.err, "ocslab: not resolved: %s\n", u)
	}
	return nil
}

// printTimeline prints the table of stages and a waterfall of their medians.
func (a *app) printTimeline(r timeline.Report, accuracy []timeline.Accuracy) {
	truth := map[timeline.Stage]timeline.Accuracy{}
	for _, x := range accuracy {
		truth[x.Stage] = x
	}
	t := table{align: ".>>>>>>>>"}
	t.row("stage", "marks", "median", "p95", "share", "known to", "off truth", "p95", "holds truth")
	line := func(stage timeline.Stage, cells ...string) {
		x := truth[stage]
		holds := "-"
		if stage == timeline.Dark || stage == timeline.Light {
			holds = fmt.Sprintf("%d of %d", x.Inside, x.Count)
		}
		t.row(append(append([]string{string(stage)}, cells...), ms(x.ErrP50NS), ms(x.ErrP95NS), holds)...)
	}
	line(timeline.Command, fmt.Sprint(truth[timeline.Command].Count), "0", "", "", "")
	for _, s := range r.Stages {
		half := int64(s.Resolution) / 2
		line(s.Stage, fmt.Sprint(s.Count), msTo(s.Median.NS, half), msTo(s.P95.NS, half), fmt.Sprintf("%.1f %%", 100*s.Share), "±"+msTo(half, half))
	}
	t.write(a.out, "")
	a.printf("\nms since the command was written. Command and ack are stamped at our socket, their truth at\nthe device's: the difference is the wire. Dark and light are intervals: how many hold the truth.\n\n")
	const width = 60
	total := max(r.Total.NS, 1)
	for _, s := range r.Stages {
		from := int(width * max(s.Median.NS-int64(s.Step), 0) / total)
		to := max(int(width*min(s.Median.NS, total)/total), from)
		bar := strings.Repeat(" ", from) + strings.Repeat("█", to-from)
		if to == from {
			bar += "▏"
		}
		a.printf("%-8s %s %s ms\n", s.Stage, bar, msTo(s.Median.NS, int64(s.Resolution)/2))
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
	return fmt.Sprintf("%.*f", digits, float64(ns)/float64(time.Millisecond))
}
