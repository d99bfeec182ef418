package live

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/ocs"
)

// acting is what a Session remembers of what it has done. The zero value is ready to use.
type acting struct {
	sending   sync.Mutex // held while a change is being sent
	recalling sync.Mutex // held while State.Undo and Redo are worked out

	mu       sync.Mutex      // guards what follows
	pending  []string        // what is being done
	troubles map[string]bool // what was complained of
}

// complain tells a trouble once.
func (a *acting) complain(s *Session, err error) {
	a.mu.Lock()
	if a.troubles == nil {
		a.troubles = map[string]bool{}
	}
	old := a.troubles[err.Error()]
	a.troubles[err.Error()] = true
	a.mu.Unlock()
	if !old {
		s.say(Entry{Kind: Event, Bad: true, Text: "what can be undone is not known: " + err.Error()})
	}
}

// doing shows that something is being done until the function returned is called.
func (s *Session) doing(title string) (end func()) {
	show := func(edit func([]string) []string) {
		s.act.mu.Lock()
		s.act.pending = edit(s.act.pending)
		text := strings.Join(s.act.pending, "; ")
		s.act.mu.Unlock()
		s.update(func(p *parts) { p.Pending = text })
	}
	show(func(list []string) []string { return append(list, title) })
	return func() {
		show(func(list []string) []string {
			i := slices.Index(list, title)
			return slices.Delete(list, i, i+1)
		})
	}
}

// Apply brings about what was looked at, or nothing: when a switch holds something else by
// now, at the ports that matter, the error matches ErrChanged. Only a panic goes ahead
// whatever is there. Apply returns when the switches were read back; what comes after, the
// Move tells. Several switches change as one operation: when one fails, the others are put back,
// and Text says what was done and what was not.
func (s *Session) Apply(ctx context.Context, p Preview) Outcome {
	var err error
	switch {
	case s.readOnly():
		err = ErrReadOnly
	case p.Err != nil:
		err = p.Err
	case p.Empty():
		return s.told(p, Outcome{Title: p.Title, Text: "nothing to do: everything is as wished"})
	}
	if err != nil {
		return s.told(p, Outcome{Title: p.Title, Err: err, Text: p.Title + ": " + err.Error()})
	}
	if p.Wish.Verb == PanicNow || p.Wish.Verb == Redo && p.Panic != 0 {
		defer s.recall()
		defer s.doing(p.Title)()
		return s.applyPanic(ctx, p)
	}
	if !s.act.sending.TryLock() {
		err = fmt.Errorf("%w: another change is being sent", ErrBusy)
	} else {
		defer s.act.sending.Unlock()
		err = s.busy()
	}
	if err != nil {
		return s.told(p, Outcome{Title: p.Title, Err: err, Text: p.Title + ": " + err.Error()})
	}
	if err = s.onBasis(p); err != nil {
		return s.told(p, Outcome{Title: p.Title, Err: err, Text: p.Title + ": " + err.Error()})
	}
	defer s.recall()
	defer s.doing(p.Title)()
	if p.Wish.Verb == Lift || p.Wish.Verb == Undo && p.Panic != 0 {
		return s.applyLift(ctx, p)
	}
	return s.applyParts(ctx, p)
}

// told enters what became of a change in the log.
func (s *Session) told(p Preview, o Outcome) Outcome {
	s.say(Entry{
		Kind: Did, Switch: onlySwitch(p.Parts), CLI: strings.Join(p.CLI, " && "), Bad: o.Err != nil, Text: o.Text,
	})
	return o
}

// onlySwitch is the switch that a change is about, "" if that are several.
func onlySwitch(parts []Part) string {
	if len(parts) != 1 {
		return ""
	}
	return parts[0].Switch
}

// share is what one switch does of a change.
type share struct {
	Part
	of      Preview
	whole   bool   // nothing but what was looked at may be there
	command string // for the history
	report  lab.Report
}

// shares splits a change by switch, in order of their names.
func shares(p Preview) []*share {
	var all []*share
	for i, x := range p.Parts {
		command := strings.Join(p.CLI, " && ")
		if len(p.CLI) == len(p.Parts) && p.Wish.Verb != Unlink { // one for each switch
			command = p.CLI[i]
		}
		command = unquoted(command)
		all = append(all, &share{Part: x, of: p, whole: p.Wish.Policy == ocs.Overwrite, command: command})
	}
	slices.SortStableFunc(all, func(a, b *share) int { return strings.Compare(a.Switch, b.Switch) })
	return all
}

// applyParts sends a change.
func (s *Session) applyParts(ctx context.Context, p Preview) Outcome {
	all := shares(p)
	o := Outcome{Title: p.Title, Reports: map[string]ocs.Report{}}
	var unmeasured error
	o.Move, unmeasured, o.Err = s.send(ctx, p, all)
	for _, x := range all {
		if x.report.ReadBack || x.report.Receipt.Requests > 0 {
			o.Reports[x.Switch] = x.report.Report
		}
		if x.report.ID != 0 {
			o.ID = append(o.ID, x.report.ID)
			s.setOrigins(x.Switch, x.report.Report, x.report.ID)
		}
		s.touch(x.Switch)
	}
	o.Text = outcomeText(p, all, o)
	if o.Err == nil && unmeasured != nil {
		o.Text += "; it was not measured: " + unmeasured.Error()
	}
	return s.told(p, o)
}

// still returns an error that matches ErrChanged when a switch that holds have is not as it
// was looked at, as far as that matters.
func (x *share) still(have ocs.Map) error {
	ports := slices.Concat(x.Change.Ports(), x.Keep.Ports())
	if x.whole {
		ports = slices.Concat(ports, x.Have.Ports(), have.Ports())
	}
	slices.Sort(ports)
	for _, p := range slices.Compact(ports) {
		was, is := x.Have.At(p), have.At(p)
		if !slices.Equal(was, is) {
			return fmt.Errorf("%w: port %d of %s %s; it %s", ErrChanged, p, x.Switch, holds(is, "holds"), holds(was, "held"))
		}
	}
	return nil
}

// holds says what a port holds.
func holds(circuits []ocs.CrossConnect, verb string) string {
	if len(circuits) == 0 {
		return verb + " nothing"
	}
	return verb + " " + circuits[0].String()
}

// send applies the shares of all switches as one operation, and measures that. It returns the number of the Move, why
// it was not measured, and why it failed.
func (s *Session) send(ctx context.Context, p Preview, all []*share) (move int, unmeasured, failed error) {
	began := false
	apply := func(ctx context.Context) { began, failed = true, s.applyShares(ctx, all) }
	m := measurement{
		title: p.Title, cli: strings.Join(p.CLI, " && "), by: "us",
		after: map[string]ocs.Map{}, do: map[string]func(context.Context, *lab.Opened) (ocs.Report, error){},
	}
	var once sync.Once
	for _, x := range all {
		if x.Change.Empty() {
			continue
		}
		after, err := x.Change.ApplyTo(x.Have)
		if err != nil {
			return 0, nil, err
		}
		m.after[x.Switch] = after
		m.do[x.Switch] = func(ctx context.Context, _ *lab.Opened) (ocs.Report, error) {
			once.Do(func() { apply(ctx) }) // the first one applies all, and the others wait for it
			return x.report.Report, failed
		}
	}
	if s.opt.Quicken { // before monitors are set
		intents, gate, err := s.intents(ctx, all)
		if err != nil {
			return 0, nil, err
		}
		for _, i := range intents {
			if err := gate.MayApply(ctx, i); err != nil {
				return 0, nil, err
			}
		}
	}
	if len(m.do) > 0 {
		_, move, unmeasured = s.measure(ctx, m)
	}
	once.Do(func() {
		if len(m.do) == 0 || unmeasured != nil { // that it cannot be measured is no reason not to do it
			apply(ctx)
		}
	})
	if !began {
		failed = unmeasured
	}
	return move, unmeasured, failed
}

// intents are what was looked at, if all is still as it was then, and the gate of the lab.
func (s *Session) intents(ctx context.Context, all []*share) (intents []lab.Intent, gate *lab.Gate, err error) {
	for _, x := range all {
		sw, err := s.open(ctx, x.Switch)
		if err != nil {
			return nil, nil, err
		}
		gate = sw.Gate()
		intents = append(intents, lab.Intent{On: sw, Command: x.command, UndoOf: x.Undo,
			Plan: func(have ocs.Map) (ocs.Change, error) {
				if err := s.onBasis(x.of); err != nil { // a switch before it may have taken long
					return ocs.Change{}, err
				}
				return x.Change, x.still(have)
			}})
	}
	return intents, gate, nil
}

// applyShares sends what was looked at through the gate of the lab.
func (s *Session) applyShares(ctx context.Context, all []*share) error {
	intents, gate, err := s.intents(ctx, all)
	if err != nil {
		return err
	}
	reports, err := gate.ApplyAll(ctx, intents)
	for i, x := range all {
		x.report = reports[i]
	}
	return err
}

// setOrigins notes that the circuits a change has made are ours.
func (s *Session) setOrigins(sw string, r ocs.Report, id int) {
	now := time.Now()
	s.update(func(p *parts) {
		for c := range r.Change.Add.All() {
			if r.After.Has(c) {
				p.set(sw, c, Origin{Who: "us", ID: id, When: now})
			}
		}
	})
}

// outcomeText says what became of a change in one sentence.
func outcomeText(p Preview, all []*share, o Outcome) string {
	if o.Err != nil {
		return p.Title + ": " + o.Err.Error()
	}
	var texts []string
	several := len(all) > 1
	var slowest time.Duration
	for _, x := range all {
		text := x.text()
		if several {
			text = x.Switch + ": " + text
		}
		texts = append(texts, text)
		if r := x.report.Receipt; !r.Acked.IsZero() {
			slowest = max(slowest, r.Acked.Sub(r.SendStart))
		}
	}
	text := strings.Join(texts, "; ")
	if slowest > 0 {
		text += ", read back as asked, acknowledged in " + digits(slowest)
		if several {
			text += " at most"
		}
	}
	change := "change"
	if len(o.ID) > 1 {
		change = "changes"
	}
	key := "u takes it back"
	if p.Wish.Verb == Undo {
		key = "U does it again"
	}
	if len(o.ID) == 0 {
		return text
	}
	return fmt.Sprintf("%s; %s (%s %s)", text, key, change, list(o.ID))
}

// text says what became of one switch.
func (x *share) text() string {
	if x.Change.Empty() {
		return fmt.Sprintf("nothing of change %d was left, it counts as taken back", x.Undo)
	}
	var did []string
	if m := x.report.Change.Add; m.Len() > 0 {
		did = append(did, circuitsText(m)+" connected")
	}
	if m := x.report.Change.Remove; m.Len() > 0 {
		did = append(did, circuitsText(m)+" removed")
	}
	for _, l := range x.report.Light {
		if l.State == lab.LightNoInput {
			did = append(did, fmt.Sprintf("no input light at port %d", l.Circuit.Ingress))
		}
	}
	return strings.Join(did, ", ")
}

// list writes numbers for people.
func list(ids []int) string {
	var texts []string
	for _, id := range ids {
		texts = append(texts, fmt.Sprint(id))
	}
	return strings.Join(texts, ", ")
}

// digits writes a duration with three digits and its unit: "203 ms".
func digits(d time.Duration) string {
	unit := time.Duration(1)
	for d/unit >= 1000 {
		unit *= 10
	}
	text := d.Round(unit).String()
	i := strings.LastIndexAny(text, "0123456789") + 1
	if strings.Trim(text, "0123456789.nµms") != "" || strings.ContainsRune(text[:i], 'm') {
		return text // "1m30s"
	}
	return text[:i] + " " + text[i:]
}
