package main

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ocslab/ocslab/internal/shell"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/lab/blackout"
	"github.com/ocslab/ocslab/lab/history"
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
		Use:   "panic [--reason TEXT] [SWITCH...]",
		Short: "Take the light from the lab's ports at once, or give it back",
		Long: `Take the light from all ports that NICs of the lab are connected to, and from boards
of transceivers with cables of the lab, except protected ports, on all switches of the
lab or those named, all at the same time: close the shutters or, where there are none,
remove the circuits. Other light is left alone, and a switch that fails holds up no
other. It needs nothing but the switches: no state directory, history or lock. Exit
code 1: no light of the lab was there to take, so no panic is in force; the sentence
says what may be lit and how to darken it.

What is closed and removed is written to the state directory before it is sent, where
that is possible. "ocslab panic --lift" opens exactly those shutters and connects the
circuits again, as far as their ports are free; with --id, those of one panic. What is
not on record is printed, with the commands that give it back. "ocslab panic --status"
reads the switches and says what is dark and what is lit, beside what the record says;
exit code 5: they contradict each other. While a panic is in force, no run begins and
no circuit is made that would bring light to where it is to be dark.`,
		Example: "  ocslab --lab lab.yaml panic --reason 'work at the rack'\n  ocslab --lab lab.yaml panic --lift",
		RunE:    func(cmd *cobra.Command, args []string) error { return a.panic(cmd, f, args) },
	}
	c.Flags().StringVar(&f.reason, "reason", blackout.NoReason, "why, in a few `WORDS`")
	c.Flags().BoolVar(&f.lift, "lift", false, "give back the light that was taken")
	c.Flags().IntVar(&f.id, "id", 0, "lift only the panic of this `NUMBER`, as --status has it")
	c.Flags().BoolVar(&f.status, "status", false, "read the switches, and show what is dark")
	c.Flags().BoolVar(&f.dryRun, "dry-run", false, "print what would be done and do nothing")
	return c
}

// statusPatience is how long --status waits for a switch.
const statusPatience = 5 * time.Second

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
	}
	opt, err := a.panicOptions(f)
	if err != nil {
		return err
	}
	b := blackout.New(opt)
	switch {
	case f.lift:
		return a.liftPanic(cmd.Context(), b, f)
	case f.status:
		return a.panicStatus(cmd.Context(), b)
	case f.dryRun:
		steps, err := b.Plan(cmd.Context(), names...)
		if err != nil {
			return err
		}
		return a.panicSteps(steps)
	}
	results, err := b.Panic(cmd.Context(), panics.Call{Who: panics.Me(), Reason: f.reason}, names...)
	a.panicResults(results)
	if len(results) > 0 && !errors.Is(err, blackout.ErrNothing) {
		a.panicUndo(results)
	}
	return err
}

// panicOptions returns what a panic works with. The state directory and the history are left out where they cannot be
// had, but for lifting.
func (a *app) panicOptions(f panicFlags) (opt blackout.Options, err error) {
	file, err := a.file()
	if err != nil {
		return opt, err
	}
	if file == nil {
		return opt, usagef("this needs --lab FILE")
	}
	with := lab.Options{Emulated: a.set.Emulated, Timeout: a.set.Timeout, Trace: a.tracer(), Join: true}
	if with.Password, err = a.password(); err != nil {
		return opt, err
	}
	if with.StateDir, err = a.stateDir(); err == nil {
		opt.History = history.At(with.StateDir) // to open it may take a while
	}
	if f.lift && err == nil {
		opt.History, err = a.history()
	}
	if f.lift && err != nil {
		return opt, err
	}
	a.bench = lab.New(file, with)
	opt.File, opt.Device, opt.Open, opt.Lock = file, a.bench.Device, a.bench.Emergency, a.bench.Lock
	opt.StateDir, opt.Command = with.StateDir, commandLine()
	if f.status {
		opt.Patience = statusPatience
	}
	return opt, nil
}

func (a *app) liftPanic(ctx context.Context, b *blackout.Blackout, f panicFlags) error {
	var numbers []int
	if f.id != 0 {
		numbers = []int{f.id}
	}
	if f.dryRun {
		steps, err := b.PlanLift(ctx, numbers...)
		return errors.Join(a.panicSteps(steps), noneToLift(err, f.id))
	}
	results, err := b.Lift(ctx, numbers...)
	a.panicResults(results)
	return noneToLift(err, f.id)
}

// program is ocslab with what makes it open the same lab, and a command.
func (a *app) program(args ...string) string {
	all := []string{"ocslab"}
	if a.set.Lab != "" {
		all = append(all, "--lab", a.set.Lab)
	}
	if a.set.Emulated {
		all = append(all, "--emulated")
	}
	if a.set.StateDir != "" && !slices.Contains(args, "--state-dir") {
		all = append(all, "--state-dir", a.set.StateDir)
	}
	return shell.Line(append(all, args...)...)
}

// byHand are the commands that give back what is not on record.
func (a *app) byHand(results ...blackout.Result) (commands []string) {
	for _, args := range blackout.ByHand(results) {
		commands = append(commands, a.program(args...))
	}
	return commands
}

// panicUndo says how the light comes back.
func (a *app) panicUndo(results []blackout.Result) {
	commands := a.byHand(results...)
	if len(commands) == 0 {
		a.printf("\"ocslab panic --lift\" gives the light back\n")
		return
	}
	for _, r := range results {
		if r.Unrecorded != nil {
			a.printf("%s: what was taken is not on record: %v\n", r.Switch, r.Unrecorded)
		}
	}
	a.printf("these commands give the light back:\n")
	for _, line := range commands {
		a.printf("  %s\n", line)
	}
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
	State   string  `json:"state"`   // "dark", "failed", "lifted", "asked"; "left" of a switch left alone; "planned" with --dry-run; "none": no panic in force is about it
	Left    ocs.Map `json:"left,omitzero"`
	Note    string  `json:"note,omitempty"`
	Reason  string  `json:"reason,omitempty"`
	Who     string  `json:"who,omitempty"`
	At      string  `json:"at,omitempty"` // RFC 3339
	ID      int     `json:"id,omitempty"` // of the panic, with --status
	Error   string  `json:"error,omitempty"`
	// With --status: what the switch says.
	Now string   `json:"now,omitempty"` // "dark", "lit", "unknown"
	Lit *ocs.Map `json:"lit,omitempty"` // the lab's circuits that no shutter of the lab's ports darkens
	// Undo are the commands that give back what is not on record.
	Undo []string `json:"undo,omitempty"`
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
			line := lineOf(r.Step, state, r.Err)
			line.Undo = a.byHand(r)
			a.json(line)
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

// panicStatus prints what the record says, and what the switches say now.
func (a *app) panicStatus(ctx context.Context, b *blackout.Blackout) error {
	calls, unread := b.InForce()
	now := b.Status(ctx, calls)
	err := errors.Join(blackout.Contradictions(now), unread)
	if a.set.JSON {
		a.statusLines(calls, now)
		return err
	}
	for _, c := range calls {
		a.printf("panic %d since %s, by %s: %s\n", c.N, c.At.Local().Format(time.DateTime), c.Who, c.Reason)
		t := table{}
		for _, d := range c.Dark {
			if d.Lifted {
				continue
			}
			words := stepWords(stepOf(d), true)
			if d.Now() != panics.IsDark {
				words = d.What()
			}
			t.row(d.Switch, string(d.Now()), words)
		}
		t.write(a.out, "  ")
	}
	switch {
	case len(calls) > 0:
		a.printf("\"ocslab panic --lift\" gives the light back\n")
	case unread == nil:
		a.printf("no panic is in force\n")
	}
	a.printf("the switches now\n")
	t := table{}
	for _, n := range now {
		words := n.Lit.String()
		if n.Err != nil {
			words = n.Err.Error()
		}
		if n.Contradiction != "" {
			words = n.Contradiction
			if len(n.Shut) > 0 && n.Light == blackout.NowDark {
				words += "; " + a.program("shutters", n.Switch, "open", ocs.FormatPorts(n.Shut)) + " opens them"
			}
		}
		t.row(n.Switch, string(n.Light), words)
	}
	t.write(a.out, "  ")
	return err
}

// stepOf is what a panic has done to a switch.
func stepOf(d panics.Dark) blackout.Step {
	return blackout.Step{Switch: d.Switch, Close: d.Closed, Change: ocs.Change{Remove: d.Removed}}
}

// statusLines writes a line for each panic in force and each of its switches, and one for each other switch.
func (a *app) statusLines(calls []panics.Call, now []blackout.Now) {
	told := map[string]bool{}
	for _, c := range calls {
		for _, d := range c.Dark {
			if d.Lifted {
				continue
			}
			line := lineOf(stepOf(d), string(d.Now()), nil)
			line.Reason, line.Who, line.At, line.ID, line.Error = c.Reason, c.Who, c.At.Format(time.RFC3339Nano), c.N, d.Why
			for _, n := range now {
				if n.Device == d.Device {
					line.setNow(n)
					told[n.Switch] = true
				}
			}
			a.json(line)
		}
	}
	for _, n := range now {
		if !told[n.Switch] {
			line := lineOf(blackout.Step{Switch: n.Switch}, "none", n.Err)
			line.setNow(n)
			a.json(line)
		}
	}
}

// setNow says what a switch holds now.
func (l *panicLine) setNow(n blackout.Now) {
	l.Now = string(n.Light)
	if n.Light != blackout.NowUnknown {
		l.Lit = &n.Lit
	}
	if l.Note == "" {
		l.Note = n.Contradiction
	}
}
