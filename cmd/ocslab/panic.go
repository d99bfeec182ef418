package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ocslab/ocslab/lab/blackout"
	"github.com/ocslab/ocslab/lab/panics"
	"github.com/ocslab/ocslab/ocs"
)

// panicFlags are the flags of ocslab panic.
type panicFlags struct {
	reason               string
	lift, status, dryRun bool
	id                   int // of the panic to lift, 0 for all
}

func (a *app) panicCommand() *cobra.Command {
	var f panicFlags
	c := &cobra.Command{
		Use:   "panic --reason TEXT [SWITCH...]",
		Short: "Take the light from the lab's ports at once, or give it back",
		Long: `Take the light from all ports that NICs of the lab hang on, and from boards of
transceivers with cables of the lab, except protected ports, on all switches of the lab
or those named, all at the same time: close the shutters or, where there are none,
remove the circuits. Other light is left alone, and a switch that fails holds up no
other. Exit code 1: no light of the lab was there to take, so no panic is in force; the
sentence says what may be lit and how to darken it.

What is closed and removed is written to the state directory before it is sent.
"ocslab panic --lift" opens exactly those shutters and puts the circuits back, as far as
their ports are free; with --id, those of one panic. "ocslab panic" alone shows what is
dark, and what has failed or not confirmed that it is. While a panic is in force, no run
begins and no circuit is made that would bring light to where it is to be dark.`,
		Example: "  ocslab --lab lab.yaml panic --reason 'work at the rack'\n  ocslab --lab lab.yaml panic --lift",
		RunE:    func(cmd *cobra.Command, args []string) error { return a.panic(cmd, f, args) },
	}
	c.Flags().StringVar(&f.reason, "reason", "", "why, in a few `WORDS`")
	c.Flags().BoolVar(&f.lift, "lift", false, "give back the light that was taken")
	c.Flags().IntVar(&f.id, "id", 0, "lift only the panic of this `NUMBER`, as --status has it")
	c.Flags().BoolVar(&f.status, "status", false, "show what is dark")
	c.Flags().BoolVar(&f.dryRun, "dry-run", false, "print what would be done and do nothing")
	return c
}

// panic does what the flags say.
func (a *app) panic(cmd *cobra.Command, f panicFlags, names []string) error {
	reasoned := cmd.Flags().Changed("reason")
	switch {
	case f.lift && f.status, f.lift && reasoned, f.status && reasoned:
		return usagef("want one of --reason, --lift and --status")
	case cmd.Flags().Changed("id") && !f.lift:
		return usagef("--id goes with --lift")
	case cmd.Flags().Changed("id") && f.id < 1:
		return usagef("--id: want the number of a panic, as --status has it")
	case len(names) > 0 && (f.lift || f.status):
		return usagef("--lift and --status are about all switches: name none")
	case reasoned && strings.TrimSpace(f.reason) == "":
		return usagef("say why: --reason TEXT")
	}
	l, err := a.needLab()
	if err != nil {
		return err
	}
	log, err := a.history()
	if err != nil {
		return err
	}
	dir, err := a.stateDir()
	if err != nil {
		return err
	}
	b := blackout.New(blackout.Options{
		File: l.File, Device: l.Device, Open: l.Switch, History: log, StateDir: dir, Command: commandLine(),
	})
	switch {
	case f.lift:
		return a.liftPanic(cmd.Context(), b, f)
	case reasoned && f.dryRun:
		steps, err := b.Plan(cmd.Context(), names...)
		if err != nil {
			return err
		}
		return a.panicSteps(steps)
	case reasoned:
		results, err := b.Panic(cmd.Context(), panics.Call{Who: panics.Me(), Reason: f.reason}, names...)
		a.panicResults(results)
		if len(results) > 0 && !errors.Is(err, blackout.ErrNothing) {
			a.printf("\"ocslab panic --lift\" gives the light back\n")
		}
		return err
	}
	return a.panicStatus(b, f.status, names)
}

func (a *app) liftPanic(ctx context.Context, b *blackout.Blackout, f panicFlags) error {
	var numbers []int
	if f.id != 0 {
		numbers = []int{f.id}
	}
	if f.dryRun {
		steps, err := b.PlanLift(ctx, numbers...)
		if err != nil {
			return noneToLift(err, f.id)
		}
		return a.panicSteps(steps)
	}
	results, err := b.Lift(ctx, numbers...)
	a.panicResults(results)
	return noneToLift(err, f.id)
}

func noneToLift(err error, id int) error {
	switch {
	case errors.Is(err, blackout.ErrNone) && id != 0:
		return usagef("there is nothing to lift: no panic %d of this lab is in force; \"ocslab panic --status\" lists those that are", id)
	case errors.Is(err, blackout.ErrNone):
		return usagef("there is nothing to lift: no light of this lab was taken")
	}
	return err
}

type panicLine struct {
	Kind    string  `json:"kind"` // "panic"
	Switch  string  `json:"switch"`
	Closed  string  `json:"closed"`  // ports whose shutters were closed or, lifted, are open again
	Removed ocs.Map `json:"removed"` // circuits that were removed or, lifted, are back
	State   string  `json:"state"`   // "dark", "failed", "lifted", "asked"; "left" of a switch left alone; "planned" with --dry-run
	Left    ocs.Map `json:"left,omitzero"`
	Note    string  `json:"note,omitempty"`
	Reason  string  `json:"reason,omitempty"`
	Who     string  `json:"who,omitempty"`
	At      string  `json:"at,omitempty"` // RFC 3339
	ID      int     `json:"id,omitempty"` // of the panic, with --status
	Error   string  `json:"error,omitempty"`
}

// lineOf is what a step does, with what has become of it.
func lineOf(s blackout.Step, state string, err error) panicLine {
	line := panicLine{
		Kind: "panic", Switch: s.Switch, State: state, Left: s.Left, Note: s.Note,
		Closed: ocs.FormatPorts(s.Close), Removed: s.Change.Remove,
	}
	if len(s.Open) > 0 || s.Change.Add.Len() > 0 {
		line.Closed, line.Removed = ocs.FormatPorts(s.Open), s.Change.Add
	}
	if err != nil {
		line.Error = err.Error()
	}
	return line
}

// stepWords says what a step does, or has done, "" if nothing.
func stepWords(s blackout.Step, did bool) string {
	verbs := [...]string{"close the shutters of ", "open the shutters of ", "remove ", "connect "}
	if did {
		verbs = [...]string{"closed the shutters of ", "opened the shutters of ", "removed ", "connected "}
	}
	var words []string
	for i, what := range [...]string{ocs.FormatPorts(s.Close), ocs.FormatPorts(s.Open), s.Change.Remove.String(), s.Change.Add.String()} {
		if what != "" {
			words = append(words, verbs[i]+what)
		}
	}
	if s.Note != "" {
		words = append(words, s.Note)
	}
	return strings.Join(words, "; ")
}

// panicSteps prints what would be done. The error is of a switch that does not answer.
func (a *app) panicSteps(steps []blackout.Step) error {
	t := table{}
	var failed error
	for _, s := range steps {
		if a.set.JSON {
			a.json(lineOf(s, "planned", s.Err))
		}
		words := stepWords(s, false)
		if s.Err != nil {
			words, failed = s.Err.Error(), errors.Join(failed, s.Err)
		}
		t.row(s.Switch, "would", words)
	}
	if !a.set.JSON {
		t.write(a.out, "")
	}
	return failed
}

// panicResults prints what was done.
func (a *app) panicResults(results []blackout.Result) {
	t := table{}
	for _, r := range results {
		state := string(r.State)
		if r.Nobody && r.Err == nil {
			state = "left"
		}
		if a.set.JSON {
			a.json(lineOf(r.Step, state, r.Err))
			continue
		}
		words := stepWords(r.Step, true)
		if r.Err != nil {
			words = r.Err.Error()
		}
		t.row(r.Switch, state, words)
	}
	if !a.set.JSON {
		t.write(a.out, "")
	}
}

// panicStatus prints what is dark. Without --status there has to be something.
func (a *app) panicStatus(b *blackout.Blackout, asked bool, names []string) error {
	calls, err := b.InForce()
	if err != nil {
		return err
	}
	if len(calls) == 0 || len(names) > 0 {
		if !asked {
			return usagef("say why: --reason TEXT")
		}
		a.printf("no panic is in force\n")
		return nil
	}
	for _, c := range calls {
		a.printf("panic %d since %s, by %s: %s\n", c.N, c.At.Local().Format(time.DateTime), c.Who, c.Reason)
		t := table{}
		for _, d := range c.Dark {
			if d.Lifted {
				continue
			}
			step := blackout.Step{Switch: d.Switch, Close: d.Closed, Change: ocs.Change{Remove: d.Removed}}
			if a.set.JSON {
				line := lineOf(step, string(d.Now()), nil)
				line.Reason, line.Who, line.At, line.ID, line.Error = c.Reason, c.Who, c.At.Format(time.RFC3339Nano), c.N, d.Why
				a.json(line)
			}
			words := stepWords(step, true)
			if d.Now() != panics.IsDark {
				words = d.What()
			}
			t.row(d.Switch, string(d.Now()), words)
		}
		if !a.set.JSON {
			t.write(a.out, "  ")
		}
	}
	a.printf("\"ocslab panic --lift\" gives the light back\n")
	return nil
}
