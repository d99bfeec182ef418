package live

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/lab/blackout"
	"github.com/ocslab/ocslab/lab/panics"
	"github.com/ocslab/ocslab/ocs"
)

// panicPatience is how long a switch may take to say what it holds before a panic goes ahead
// on what it said last.
const panicPatience = time.Second

// abortPatience is how long a panic waits for a run to give the switches back.
const abortPatience = time.Minute

// blackout looks at what darkening this lab comes to, with the command that does the same.
func (s *Session) blackout(command words) *blackout.Blackout {
	return blackout.New(s.blackoutOptions(command, s.shared))
}

// acting is what darkens this lab and gives the light back: by sessions of its own, where there can be more.
func (s *Session) acting(command words) *blackout.Blackout {
	return blackout.New(s.blackoutOptions(command, s.emergency))
}

type opener func(ctx context.Context, name string) (ocs.Switch, string, error)

func (s *Session) blackoutOptions(command words, open opener) blackout.Options {
	f := s.file()
	return blackout.Options{
		File: f, Device: lab.New(f, s.opt.Lab).Device, Open: open, History: s.opt.History, StateDir: s.opt.StateDir,
		Command: command.recorded(), Last: s.lastHeld, Patience: panicPatience, Lock: s.lock,
	}
}

// lock takes the turn of a switch, when no change of it is in progress.
func (s *Session) lock(ctx context.Context, name string) (unlock func(), err error) {
	o, err := s.open(ctx, name)
	if err != nil {
		return nil, err
	}
	return o.Gate().Lock(ctx, o)
}

// keptOpen is a session that others use, too.
type keptOpen struct{ ocs.Switch }

// Unwrap returns the switch inside.
func (k keptOpen) Unwrap() ocs.Switch { return k.Switch }

// Close leaves the session open.
func (k keptOpen) Close() error { return nil }

// shared returns the session with a switch that all commands use.
func (s *Session) shared(ctx context.Context, name string) (ocs.Switch, string, error) {
	o, err := s.open(ctx, name)
	if err != nil {
		return nil, "", err
	}
	return keptOpen{o}, o.Device, nil
}

// emergency opens a session of its own with a switch; where that has none left, it returns the one that there is.
func (s *Session) emergency(ctx context.Context, name string) (ocs.Switch, string, error) {
	s.mu.Lock()
	b := s.bed
	s.mu.Unlock()
	var l *lab.Lab
	switch {
	case b != nil:
		l = b.lab
	case s.opt.Lab.Emulated: // who has the switches emulates them
		return nil, "", errLent
	default:
		l = lab.New(s.file(), s.opt.Lab)
	}
	sw, device, err := l.Emergency(ctx, name)
	if err == nil || b == nil || ctx.Err() != nil {
		return sw, device, err
	}
	sw, device, second := s.shared(ctx, name)
	if second != nil {
		return nil, "", err
	}
	return sw, device, nil
}

// lastHeld is what a switch held when it last answered.
func (s *Session) lastHeld(name string) (blackout.Held, bool) {
	x := s.State().Switch(name)
	if x == nil || x.MapAt.IsZero() {
		return blackout.Held{}, false
	}
	h := blackout.Held{Map: x.Map}
	if x.Shutters {
		h.Shut = map[ocs.Port]bool{}
		for _, p := range s.file().OwnPorts(name) {
			h.Shut[p] = x.Shut[p]
		}
	}
	return h, true
}

// previewPanic looks at what a panic would do; n is that of a panic to be called again.
func (s *Session) previewPanic(ctx context.Context, w Wish, n int) Preview {
	reason := cmp.Or(strings.TrimSpace(w.Reason), blackout.NoReason)
	p := Preview{Wish: w, Title: "panic: " + reason, Panic: n, CLI: s.lines([]words{panicCommand(reason)})}
	steps, err := s.blackout(panicCommand(reason)).Plan(ctx)
	p.Parts, p.Err = s.stepParts(steps), err
	return p
}

// previewLift looks at what lifting panics would do: one, or with 0 all.
func (s *Session) previewLift(ctx context.Context, w Wish, n int) Preview {
	p := Preview{Wish: w, Title: "lift the panic", Panic: n, CLI: s.lines([]words{liftCommand(n)})}
	b := s.blackout(liftCommand(n))
	calls, err := b.InForce()
	if len(calls) == 0 { // else what can be read is lifted, and the rest is an error then
		p.Err = cmp.Or(err, fmt.Errorf("%w: %w", ErrNothing, blackout.ErrNone))
		return p
	}
	if n != 0 {
		calls = slices.DeleteFunc(calls, func(c panics.Call) bool { return c.N != n })
	}
	p.Title += ": " + reasonsText(calls)
	steps, err := b.PlanLift(ctx, numbers(n)...)
	if p.Parts = s.stepParts(steps); steps == nil {
		p.Err = err
	}
	return p
}

// numbers is one number, or none for 0.
func numbers(n int) []int {
	if n == 0 {
		return nil
	}
	return []int{n}
}

// stepParts shows what a panic comes to as that of any other wish is shown. That a switch
// does not answer is a risk here and no refusal, as it keeps no other from getting dark.
func (s *Session) stepParts(steps []blackout.Step) (parts []Part) {
	k := s.known()
	for _, step := range steps {
		x := Part{Switch: step.Switch, Have: step.Have.Map, Change: step.Change, Shut: step.Close, Unshut: step.Open, Stale: step.Stale, Silent: step.Err != nil}
		switch {
		case errors.Is(step.Err, ErrBusy):
			x.Risks = append(x.Risks, fmt.Sprintf("a run has %s: it is aborted, and does not put its light back", step.Switch))
		case step.Err != nil && step.Stale:
			x.Risks = append(x.Risks, fmt.Sprintf("%s does not answer: it is tried on what it said last", step.Switch))
		case step.Err != nil:
			x.Risks = append(x.Risks, fmt.Sprintf("%v; it is tried nevertheless", aboutSwitch(step.Switch, step.Err)))
		}
		if step.Note != "" && (step.Left.Len() > 0 || !step.Empty()) {
			x.Risks = append(x.Risks, step.Note)
		}
		for c := range step.Have.Map.All() {
			e := k.ends(step.Switch, step.Device, c)
			switch {
			case step.Change.Remove.Has(c), touches(step.Close, c):
				x.Dark = append(x.Dark, e)
			case touches(step.Open, c):
				x.Lit = append(x.Lit, e)
			}
		}
		for c := range step.Change.Add.All() {
			x.Lit = append(x.Lit, k.ends(step.Switch, step.Device, c))
		}
		x.risk(k.trafficRisks(&x))
		if !step.Empty() || len(x.Risks) > 0 {
			parts = append(parts, x)
		}
	}
	return parts
}

func touches(ports []ocs.Port, c ocs.CrossConnect) bool {
	return slices.Contains(ports, c.Ingress) || slices.Contains(ports, c.Egress)
}

// applyPanic darkens the lab. It does not wait for a change that is being sent. A run that
// has the switches is aborted and does not put its light back; where they can have one more
// session, they are darkened at once, and in any case when the run has given them back.
func (s *Session) applyPanic(ctx context.Context, p Preview) Outcome {
	command := panicCommand(cmp.Or(strings.TrimSpace(p.Wish.Reason), blackout.NoReason))
	call := panics.Call{Who: panics.Me(), Reason: p.Wish.Reason, N: s.samePlace(p.Panic)}
	b := s.acting(command)
	var beside []blackout.Result
	if s.busy() != nil {
		s.darken()
		if !s.opt.Lab.Emulated {
			beside = s.panicBeside(ctx, command, call)
		}
		if err := s.awaitRun(ctx); err != nil {
			return s.panicOutcome(p, beside, err)
		}
	}
	results, err := b.Panic(ctx, call)
	for _, r := range beside { // what failed there was tried once more
		if r.Err == nil {
			results = append(results, r)
		}
	}
	return s.panicOutcome(p, results, err)
}

// samePlace returns the number of a panic that is called again, so that it keeps its place
// among the changes; 0 when a change that came after it is in force, as it comes after that
// then.
func (s *Session) samePlace(n int) int {
	p, err := s.deeds()
	if n == 0 || err != nil {
		return n
	}
	i := slices.IndexFunc(p.calls, func(c panics.Call) bool { return c.N == n })
	if i < 0 || p.undo().at.After(p.calls[i].At) {
		return 0
	}
	return n
}

// panicBeside darkens the switches by sessions of its own while a run has theirs.
func (s *Session) panicBeside(ctx context.Context, command words, call panics.Call) []blackout.Result {
	results, err := s.acting(command).Panic(ctx, call)
	if err != nil {
		s.say(Entry{Kind: Event, Bad: true, Text: "panic beside the run: " + err.Error()})
	}
	return results
}

// awaitRun waits until the run that was ended has given the switches back.
func (s *Session) awaitRun(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, abortPatience, errors.New("the run has not given the switches back"))
	defer cancel()
	tick := time.NewTicker(PublishEvery)
	defer tick.Stop()
	for s.busy() != nil {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// applyLift gives the light back that panics took: one, or with 0 all.
func (s *Session) applyLift(ctx context.Context, p Preview) Outcome {
	lifted := numbers(p.Panic)
	if p.basis != nil {
		if err := s.liftUnchanged(ctx, p); err != nil {
			return s.told(p, Outcome{Title: p.Title, Err: err, Text: p.Title + ": " + err.Error()})
		}
		if p.Panic == 0 {
			lifted = p.basis.calls
		}
	}
	results, err := s.acting(liftCommand(p.Panic)).Lift(ctx, lifted...)
	if errors.Is(err, blackout.ErrNone) {
		err = fmt.Errorf("%w: %w", ErrNothing, err)
	}
	return s.panicOutcome(p, results, err)
}

// panicOutcome tells what became of a panic, or of lifting it.
func (s *Session) panicOutcome(p Preview, results []blackout.Result, err error) Outcome {
	o := Outcome{Title: p.Title, Reports: map[string]ocs.Report{}, Err: err}
	var texts []string
	for _, r := range results {
		if text := resultText(r); text != "" {
			texts = append(texts, text)
		}
		if r.ID != 0 {
			o.ID = append(o.ID, r.ID)
			o.Reports[r.Switch] = r.Report
			s.setOrigins(r.Switch, r.Report, r.ID)
		}
		s.touch(r.Switch)
	}
	if undo := s.byHand(results); len(undo) > 0 {
		texts = append(texts, "not all of that is on record; these commands give the light back: "+strings.Join(undo, "; "))
	}
	switch {
	case len(texts) > 0:
		o.Text = strings.Join(texts, "; ")
	case err != nil:
		o.Text = err.Error()
	default:
		o.Text = "nothing to do: all is as wished already"
	}
	return s.told(p, o)
}

// byHand are the commands that give back what the record cannot.
func (s *Session) byHand(results []blackout.Result) (commands []string) {
	for _, args := range blackout.ByHand(results) {
		commands = append(commands, s.line(args))
	}
	return commands
}

// resultText says what became of one switch, "" if nothing did.
func resultText(r blackout.Result) string {
	if r.Err != nil {
		return fmt.Sprintf("%s failed: %s", r.Switch, strings.TrimPrefix(r.Err.Error(), r.Switch+": "))
	}
	var did []string
	if len(r.Close) > 0 {
		did = append(did, "shutters of "+ocs.FormatPorts(r.Close)+" closed")
	}
	if len(r.Open) > 0 {
		did = append(did, "shutters of "+ocs.FormatPorts(r.Open)+" opened")
	}
	if r.Change.Remove.Len() > 0 {
		did = append(did, circuitsText(r.Change.Remove)+" removed")
	}
	if r.Change.Add.Len() > 0 {
		did = append(did, circuitsText(r.Change.Add)+" connected")
	}
	if r.Left.Len() > 0 {
		did = append(did, r.Note)
	}
	if len(did) == 0 {
		return ""
	}
	return fmt.Sprintf("%s %s: %s", r.Switch, r.State, strings.Join(did, ", "))
}
