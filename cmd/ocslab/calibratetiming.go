package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ocslab/ocslab/calibration/store"
	"github.com/ocslab/ocslab/calibration/timing"
	"github.com/ocslab/ocslab/experiment"
	"github.com/ocslab/ocslab/experiment/baseline"
	"github.com/ocslab/ocslab/experiment/plan"
	"github.com/ocslab/ocslab/experiment/runner"
	"github.com/ocslab/ocslab/experiment/runs"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/ocs"
)

// keepFlags are those of all calibrations that are stored.
type keepFlags struct {
	expires time.Duration
	noStore bool
}

// timingFlags are what calibrate timing is told.
type timingFlags struct {
	measureFlags
	keepFlags
	from, to         string
	still            bool
	exchanges, nulls int
	window           time.Duration
}

func (a *app) calibrateTimingCommand() *cobra.Command {
	var f timingFlags
	c := &cobra.Command{
		Use:   "timing [--from CONF --to CONF | --still]",
		Short: "Find out what the set-up cannot resolve",
		Long: fmt.Sprintf(`Find out, of each stage of a reconfiguration, which differences this set-up cannot
resolve: toggle between the same two configurations, watch while nothing is done, and ask
each switch the same again and again. What comes of it is kept in the state directory
for %s; runs in this lab take it up by themselves, and their "cannot resolve
below" is never less.

Without --from and --to the two configurations of the lab are taken, if it has exactly two. With --still
nothing is moved: what can be told then is how long exchanges take, how often monitors are
read, and what sources invent; no stage gets a floor.

Circuits are moved as by "ocslab measure": every change is recorded, circuits of neither
configuration are left alone (unless with --mode update), and at the end all is put back
as it was. With --emulated it is also told how far off the marks were from what the
emulation did.

When the firmware of a switch, the kernel of this machine, or the way that links are
watched has changed since, a calibration no longer holds, and runs say so.`, store.Age(store.DefaultExpiry(store.Timing))),
		Example: "  ocslab --emulated calibrate timing\n  ocslab --lab lab.yaml calibrate timing --from dp --to pp -n 50 --expires 168h\n  ocslab calibrate show timing",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.calibrateTiming(cmd.Context(), &f) },
	}
	fl := c.Flags()
	fl.StringVar(&f.from, "from", "", "`CONF`iguration to toggle from (default the first of the lab's, if it has two)")
	fl.StringVar(&f.to, "to", "", "`CONF`iguration to toggle to (default the second)")
	fl.BoolVar(&f.still, "still", false, "move nothing, so that no stage gets a floor")
	fl.IntVar(&f.exchanges, "exchanges", baseline.DefaultExchanges, "number of exchanges with each switch")
	fl.IntVar(&f.nulls, "nulls", baseline.DefaultNulls, "how often to watch while nothing is done")
	fl.DurationVar(&f.window, "window", baseline.DefaultWindow, "how long each time")
	f.measureFlags.add(fl, 20, "")
	fl.Lookup("repeat").Usage = "number of toggles"
	fl.Lookup("warm-ups").Usage = "toggles before them that do not count"
	f.keepFlags.add(c, store.Timing)
	fl.String("mode", "safe", "what may happen to circuits of neither configuration that are in the way: `safe|update`; safe refuses, update moves them")
	return c
}

// add adds the flags of a calibration that is stored.
func (k *keepFlags) add(c *cobra.Command, kind store.Kind) {
	c.Flags().DurationVar(&k.expires, "expires", store.DefaultExpiry(kind), "how long the calibration is good")
	c.Flags().BoolVar(&k.noStore, "no-store", false, "keep nothing: only print what was found")
}

// check refuses what makes no sense.
func (k *keepFlags) check() error {
	if k.expires <= 0 {
		return usagef("--expires %v: a calibration is good for some time", k.expires)
	}
	return nil
}

// choose decides which configurations to toggle between, unless nothing is to be moved.
func (f *timingFlags) choose(l *lab.File) error {
	names := l.ConfigNames()
	switch {
	case f.still && f.from+f.to != "":
		return usagef("--still moves nothing: it does not go with --from and --to")
	case f.still && len(names) == 0:
		return usagef("the lab has no configurations, so nobody knows which switches and ports to look at: name some in the lab file")
	case f.still || f.from != "" && f.to != "" && f.from != f.to:
		return nil
	case f.from+f.to != "":
		return usagef("want --from and --to, two different configurations, of %s", namesOrNone(names))
	case len(names) == 2:
		f.from, f.to = names[0], names[1]
		return nil
	case len(names) < 2:
		return usagef("want two configurations to toggle between, and the lab has %s: name two in the lab file, or move nothing with --still", namesOrNone(names))
	}
	return usagef("say which configurations to toggle between, with --from and --to: the lab has %s; --still moves nothing", namesOrNone(names))
}

func namesOrNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

func (f *timingFlags) check() error {
	switch {
	case f.from != "" && f.repeat < timing.MinToggles:
		return usagef("-n %d: fewer than %d toggles do not show how much equals differ", f.repeat, timing.MinToggles)
	case f.exchanges < timing.MinExchanges:
		return usagef("--exchanges %d: fewer than %d have no 95th percentile", f.exchanges, timing.MinExchanges)
	case f.nulls < 1:
		return usagef("--nulls %d: want 1 or more", f.nulls)
	case f.window <= 0:
		return usagef("--window %v: want a time above zero", f.window)
	}
	return f.keepFlags.check()
}

// calibrateTiming observes, prints and keeps.
func (a *app) calibrateTiming(ctx context.Context, f *timingFlags) (err error) {
	l, err := a.needLab()
	if err != nil {
		return err
	}
	asked := f.from != ""
	if err := f.choose(l.File); err != nil {
		return err
	}
	if err := f.check(); err != nil {
		return err
	}
	policy, err := a.moveMode()
	if err != nil {
		return err
	}
	configurations := []string{f.from, f.to}
	if f.still {
		configurations = l.File.ConfigNames()
	}
	opt, err := f.testbed(l.File, configurations)
	if err != nil {
		return err
	}
	if done, err := a.mayMove(l); done || err != nil {
		return err
	}
	t, err := experiment.OpenTestbed(ctx, l, opt)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	t.Bench.LinkPatience = f.patience
	if !asked && !f.still {
		fmt.Fprintf(a.err, "ocslab: toggling between %s and %s, the two configurations of the lab\n", f.from, f.to)
	}
	set, err := f.setup(ctx, t)
	if err != nil {
		return err
	}
	o, err := a.observe(ctx, l, t, f, policy)
	if err != nil {
		return fmt.Errorf("nothing is kept: %w", err)
	}
	o.NotWatched = set.Missing
	b := timing.Of(o)
	data, err := json.Marshal(b)
	if err != nil {
		return err
	}
	made := time.Now()
	r := store.Record{
		Kind: store.Timing, Subject: l.File.Name, Made: made, Expires: made.Add(f.expires), Lab: l.File.Name,
		Device: devices(set.Devices), Program: programName(), Emulated: a.set.Emulated, Complete: b.Complete(),
		Setup: baseline.Fingerprint(set, runner.ThisSession(version())), Data: data,
	}
	return a.keep(r, f.keepFlags)
}

// setup says how a testbed is set up, as runs record it.
func (m *measureFlags) setup(ctx context.Context, t *experiment.Testbed) (runs.Setup, error) {
	devices, err := runner.Devices(ctx, t)
	if err != nil {
		return runs.Setup{}, err
	}
	set := runner.SetupOf(t, devices, plan.Measure{Poll: m.poll, Tight: m.tight, Sync: m.sync})
	if m.netlinkOnly {
		set.Carrier, set.PollNS = "netlink", 0
	}
	return set, nil
}

// bearing returns the calibrations that bear on what is measured. What cannot be read of them is told.
func (a *app) bearing(ctx context.Context, t *experiment.Testbed, m *measureFlags) ([]runs.Calibration, error) {
	s, err := a.calibrations()
	if err != nil {
		return nil, err
	}
	set, err := m.setup(ctx, t)
	if err != nil {
		return nil, err
	}
	found, remarks := baseline.Find(s, t.Lab.File, a.set.Emulated, set, runner.ThisSession(version()), time.Now())
	for _, r := range remarks {
		fmt.Fprintf(a.err, "ocslab: %v\n", r)
	}
	return found, nil
}

// observe observes, and puts the light back as it was, however that ends.
func (a *app) observe(ctx context.Context, l *lab.Lab, t *experiment.Testbed, f *timingFlags, policy ocs.Policy) (o timing.Observations, err error) {
	show := a.progress()
	defer show.done()
	opt := baseline.Options{
		From: f.from, To: f.to, Toggles: f.repeat, WarmUps: f.warmups, Exchanges: f.exchanges, Nulls: f.nulls, Window: f.window,
		Pause: f.pause, Seed: f.seed, Progress: func(what string) { show.set("%s", what) },
	}
	if f.from == "" {
		return baseline.Observe(ctx, t, opt)
	}
	mv := experiment.NewMover(policy, t.Maps)
	found, err := mv.TakeOver(ctx, t)
	if err != nil {
		return o, err
	}
	o, err = baseline.Observe(ctx, t, opt)
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return o, errors.Join(err, mv.Leave(end, l, found))
}

// devices names the switches of a set-up in words.
func devices(list []runs.Device) string {
	var words []string
	for _, d := range list {
		text := fmt.Sprintf("%s: %s %s %s", d.Name, d.Vendor, d.Model, d.Size)
		if d.Serial != "" {
			text += ", serial " + d.Serial
		}
		words = append(words, text)
	}
	return strings.Join(slices.Compact(words), "; ")
}
