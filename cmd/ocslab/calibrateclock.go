package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ocslab/ocslab/calibration/clock"
	"github.com/ocslab/ocslab/calibration/store"
	"github.com/ocslab/ocslab/experiment"
	"github.com/ocslab/ocslab/internal/natural"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/linkmon"
	"github.com/ocslab/ocslab/linkmon/watch"
)

// clockFlags are what calibrate clock is told.
type clockFlags struct {
	every, length time.Duration
	exchanges     int
	around        bool
	keepFlags
}

func (a *app) calibrateClockCommand() *cobra.Command {
	var f clockFlags
	c := &cobra.Command{
		Use:   "clock [HOST...] [--around -- COMMAND...]",
		Short: "Find how far the clocks of other hosts are from ours, and how fast they run",
		Long: `Ask the agents of the lab's hosts for their monotonic clocks, in batches: before, every
--every, and after. From an answer that is never before its question follow bounds of the
offset that are certain, and from many batches the rate at which it changes. Nothing is sent
to a switch.

A clock that steps, or a machine that is suspended, meanwhile is refused, with when and by how
much at least. Hosts on this machine have its clock: their offset is 0, exactly.

With --around a command runs between the first batch and the last, such as the
measurement that the offsets are for. Its input, output and exit code are passed through, and
the result goes to stderr (with --json, to stdout after what it has written).`,
		Example: "  ocslab --lab lab.yaml calibrate clock\n  ocslab --lab lab.yaml calibrate clock gpu1 --for 10m --every 30s\n" +
			"  ocslab --lab lab.yaml calibrate clock --around -- ocslab --lab lab.yaml run exp.yaml",
		RunE: func(cmd *cobra.Command, args []string) error {
			dash := cmd.ArgsLenAtDash()
			var command []string
			if dash >= 0 {
				args, command = args[:dash], args[dash:]
			}
			switch {
			case f.around && len(command) == 0:
				return usagef("--around: say which command, behind --: calibrate clock --around -- ocslab run exp.yaml")
			case !f.around && dash >= 0:
				return usagef("a command behind -- goes with --around")
			case f.around && cmd.Flags().Changed("for"):
				return usagef("--for is how long to calibrate without a command; with --around that takes as long as the command does")
			case f.every <= 0:
				return usagef("--every %v: want a time above zero", f.every)
			case f.length < 0:
				return usagef("--for %v: want a time, or 0 for two batches back to back", f.length)
			case f.exchanges < 1 || f.exchanges > 1e5:
				return usagef("--exchanges %d: want 1 to 100000", f.exchanges)
			}
			if err := f.check(); err != nil {
				return err
			}
			x := clockRun{app: a, flags: f, command: command, in: cmd.InOrStdin()}
			return x.run(cmd.Context(), args)
		},
	}
	fl := c.Flags()
	fl.DurationVar(&f.every, "every", 10*time.Second, "time between two batches")
	fl.DurationVar(&f.length, "for", time.Minute, "time between the first batch and the last")
	fl.IntVar(&f.exchanges, "exchanges", clock.DefaultExchanges, "exchanges in a batch")
	fl.BoolVar(&f.around, "around", false, "calibrate before, during and after the command behind --")
	f.add(c, store.Clock)
	return c
}

// clockRun is one call of calibrate clock.
type clockRun struct {
	*app
	flags   clockFlags
	command []string
	in      io.Reader
	host    string // our name
	hosts   []*clockHost
}

// clockHost is a host that is calibrated.
type clockHost struct {
	name    string
	watch   *watch.Watch // nil: it is a part of this machine
	began   time.Time
	ended   time.Time
	here    watch.Machine // when it began
	its     watch.Machine
	batches []clock.Batch
	err     error // why it cannot be calibrated
}

func (x *clockRun) run(ctx context.Context, names []string) (err error) {
	l, err := x.lab()
	if err != nil {
		return err
	}
	if l == nil {
		return usagef("calibrate clock needs --lab FILE: that says which hosts there are, and how to reach them (agent: [ssh, gpu1, ocslab])")
	}
	if x.command != nil {
		if _, err := exec.LookPath(x.command[0]); err != nil {
			return usagef("--around: %w", err)
		}
	}
	remote, err := x.choose(l.File, names)
	if err != nil {
		return err
	}
	defer func() {
		for _, h := range x.hosts {
			if h.watch != nil {
				err = errors.Join(err, h.watch.Close())
			}
		}
	}()
	for i, h := range x.hosts {
		if remote[i] != nil {
			h.open(ctx, *remote[i])
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if !slices.ContainsFunc(x.hosts, func(h *clockHost) bool { return h.watch != nil }) {
		x.flags.length = 0 // there is nothing to ask
	}
	code, err := x.measure(ctx)
	if err != nil {
		return err
	}
	err = x.tell(l.File.Name)
	switch {
	case code != 0:
		if err != nil {
			fmt.Fprintf(x.err, "ocslab: %v\n", err)
		}
		return childError(code) // the command has told its errors itself
	case err == nil && ctx.Err() != nil:
		return ctx.Err()
	}
	return err
}

// choose makes a clockHost of each host that is to be calibrated, and says how those on other
// machines are reached.
func (x *clockRun) choose(f *lab.File, names []string) (remote []*watch.Host, err error) {
	for _, name := range names {
		if !slices.ContainsFunc(f.Hosts, func(h lab.Host) bool { return h.Name == name }) {
			return nil, fmt.Errorf("host %q: %w", name, lab.ErrUnknown)
		}
	}
	here, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	x.host = here
	short, _, _ := strings.Cut(here, ".")
	for _, h := range f.Hosts {
		if len(names) > 0 && !slices.Contains(names, h.Name) {
			continue
		}
		var to *watch.Host
		switch {
		case x.set.Emulated:
		case len(h.Agent) > 0:
			to = &watch.Host{Agent: h.Agent, Host: linkmon.Host{Name: h.Name}}
			for _, n := range h.NICs {
				to.Interfaces = append(to.Interfaces, n.Name)
			}
		case h.NetNS != "" || h.Name == here || h.Name == short:
		default:
			why := fmt.Sprintf("%s is not this machine (%s): say in the lab file how to get there, agent: [ssh, %s, ocslab]", h.Name, here, h.Name)
			if len(names) > 0 {
				return nil, usagef("%s", why)
			}
			fmt.Fprintf(x.err, "ocslab: not calibrated: %s\n", why)
			continue
		}
		x.hosts = append(x.hosts, &clockHost{name: h.Name})
		remote = append(remote, to)
	}
	if len(x.hosts) == 0 {
		return nil, usagef("no host of lab %s can be calibrated: say how to reach them, agent: [ssh, HOST, ocslab]", f.Name)
	}
	return remote, nil
}

// open starts the agent of a host.
func (h *clockHost) open(ctx context.Context, to watch.Host) {
	// Carriers are of no interest: their counters are swept as rarely as may be, so as not to be
	// in the way of the answers.
	w, err := watch.Start(ctx, watch.Options{Hosts: []watch.Host{to}, Poll: time.Second, Optics: -1, Firmware: -1})
	if err != nil {
		h.err = fmt.Errorf("%w: %w", errWire, err)
		return
	}
	h.watch = w
	h.here = watch.ThisMachine()
	if h.its, err = w.Machine(ctx, h.name); err != nil {
		h.err = fmt.Errorf("%w: %w", errWire, err)
	}
}

// batch asks all hosts, one after another so that they do not disturb each other.
func (x *clockRun) batch(ctx context.Context, when clock.When) {
	for _, h := range x.hosts {
		if h.watch != nil && h.err == nil {
			h.batch(ctx, when, x.flags.exchanges)
		}
	}
}

// batch makes one batch of exchanges.
func (h *clockHost) batch(ctx context.Context, when clock.When, n int) {
	if h.began.IsZero() {
		h.began = time.Now()
	}
	h.batches = append(h.batches, clock.Batch{When: when, Exchanges: experiment.AskClock(ctx, h.watch, h.name, n)})
	h.ended = time.Now()
}

// measure makes the batches, and runs the command, whose exit code it returns.
func (x *clockRun) measure(ctx context.Context) (code int, err error) {
	p := x.progress()
	defer p.done()
	show := func(format string, args ...any) {
		if x.command == nil { // the terminal is the command's
			p.set(format, args...)
		}
	}
	show("asking for the clocks")
	x.batch(ctx, clock.Before)
	var ended <-chan error
	over := (<-chan time.Time)(nil)
	stop := ctx.Done()
	if x.command != nil {
		cmd := exec.Command(x.command[0], x.command[1:]...)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = x.in, x.out, x.app.err
		if err := cmd.Start(); err != nil {
			return 0, fmt.Errorf("--around: %w", err)
		}
		defer passSignals(cmd.Process)()
		done := make(chan error, 1)
		go func() { done <- cmd.Wait() }()
		ended = done
		stop = nil // it ends when the command does, which is told of signals
	} else {
		timer := time.NewTimer(x.flags.length)
		defer timer.Stop()
		over = timer.C
	}
	// Also after an interruption: what it has come to so far is worth its end.
	late := context.WithoutCancel(ctx)
	began := time.Now()
	tick := time.NewTicker(x.flags.every)
	defer tick.Stop()
	for {
		select {
		case err := <-ended:
			x.batch(late, clock.After)
			var exit *exec.ExitError
			if errors.As(err, &exit) {
				return endedWith(exit), nil
			}
			return 0, err
		case <-over:
		case <-stop:
		case <-tick.C:
			if x.command == nil && x.flags.length-time.Since(began) < x.flags.every/2 {
				continue // the last is at hand
			}
			x.batch(late, clock.During)
			show("%s of %s", time.Since(began).Round(time.Second), x.flags.length)
			continue
		}
		x.batch(late, clock.After)
		return 0, nil
	}
}

// clockLine is what JSON has of a host.
type clockLine struct {
	Kind string `json:"kind"` // "clock"
	clock.Result
	Version int        `json:"version,omitempty"` // as it is kept
	Missing []string   `json:"missing,omitempty"`
	Since   *clock.PPM `json:"since_ppm,omitempty"`
	SinceNS int64      `json:"since_ns,omitempty"`
}

// tell fits, keeps and prints.
func (x *clockRun) tell(labName string) error {
	out := x.out
	if x.command != nil {
		out = x.app.err
	}
	var errs []error
	asked := false
	for _, h := range x.hosts {
		r, err := h.result()
		if err != nil {
			errs = append(errs, err)
			continue
		}
		line := clockLine{Kind: "clock", Result: r, Missing: r.Missing()}
		if !r.SameClock {
			asked = true
			if err := x.keep(labName, h, &line); err != nil {
				errs = append(errs, err)
			}
		}
		if x.set.JSON {
			x.json(line)
			continue
		}
		if err := r.Text(out, min(x.terminal(), 100)); err != nil {
			return err
		}
		if line.Since != nil {
			fmt.Fprintf(out, "  On average since the last calibration, %s before: %v.\n", store.Age(time.Duration(line.SinceNS)), *line.Since)
		}
		if line.Version > 0 {
			fmt.Fprintf(out, "  Kept as version %d, good for %s: ocslab calibrate show clock %s\n", line.Version, store.Age(x.flags.expires), h.name)
		}
	}
	if asked && !x.set.JSON {
		fmt.Fprintln(out, natural.Wrap(clock.Certain, clock.DefaultWidth, ""))
	}
	return errors.Join(errs...)
}

// result fits what a host has answered.
func (h *clockHost) result() (clock.Result, error) {
	switch {
	case h.err != nil:
		return clock.Result{}, h.err
	case h.watch == nil:
		return clock.Here(h.name, time.Now().UTC()), nil
	}
	its, err := h.watch.Machine(context.Background(), h.name) // has a limit of its own

	if err != nil {
		return clock.Result{}, fmt.Errorf("%w; the clock may have stepped, or the machine be suspended: calibrate again", err)
	}
	here := watch.ThisMachine()
	if err := errors.Join(
		suspended("this machine", h.name, here.AsleepNS-h.here.AsleepNS),
		suspended("host "+h.name, h.name, its.AsleepNS-h.its.AsleepNS),
	); err != nil {
		return clock.Result{}, err
	}
	r, err := clock.Fit(h.name, h.batches, clock.Options{Slack: time.Duration(h.here.AxisNS + h.its.AxisNS)})
	r.Began, r.Ended = h.began.UTC(), h.ended.UTC()
	r.Boot, r.ItsBoot = here.Boot, its.Boot
	return r, err
}

// suspended is the error of a machine that was, by so much longer than before.
func suspended(who, host string, ns int64) error {
	if ns < int64(time.Millisecond) && ns > -int64(time.Millisecond) { // two clocks are not read at once
		return nil
	}
	return fmt.Errorf("%s was suspended for %s during the calibration of %s: %w; calibrate again when both machines stay awake",
		who, time.Duration(ns).Round(time.Millisecond), host, clock.ErrStep)
}

// keep puts the result beside those before, and compares it with the last.
func (x *clockRun) keep(labName string, h *clockHost, line *clockLine) error {
	dir, err := x.stateDir()
	if err != nil {
		return err
	}
	kept := store.Open(dir)
	if h.here.Own || h.its.Own {
		fmt.Fprintf(x.app.err, "ocslab: the clock of host %s is not kept: it is that of one program, and says nothing of the next; "+
			"Linux and an agent as new as this program have one of the machine\n", h.name)
		return nil
	}
	if last, err := kept.LatestOf(store.Clock, labName, h.name, x.set.Emulated); err == nil {
		var earlier clock.Result
		if err := json.Unmarshal(last.Data, &earlier); err == nil {
			drift, over, ok, err := line.Result.Since(earlier)
			if ok && err == nil && drift.High-drift.Low < line.Drift.High-line.Drift.Low { // it tells more
				line.Since, line.SinceNS = &drift, int64(over)
			} else if err != nil {
				fmt.Fprintf(x.app.err, "ocslab: %v\n", err)
			}
		}
	} else if err != nil && !errors.Is(err, store.ErrNone) {
		fmt.Fprintf(x.app.err, "ocslab: not compared with the last calibration: %v\n", err)
	}
	if x.flags.noStore {
		return nil
	}
	data, err := json.Marshal(line.Result)
	if err != nil {
		return err
	}
	setup := store.OfHost(x.host, "", line.Boot)
	maps.Copy(setup, store.OfHost(h.name, "", line.ItsBoot))
	r, err := kept.Put(store.Record{
		Kind: store.Clock, Subject: h.name, Lab: labName, Made: line.Ended, Expires: line.Ended.Add(x.flags.expires),
		Program: programName(), Emulated: x.set.Emulated, Complete: len(line.Missing) == 0, Setup: setup, Data: data,
	})
	line.Version = r.Version
	return err
}
