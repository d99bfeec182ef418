package live

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/lab/history"
	"github.com/ocslab/ocslab/ocs"
)

// acting is what a Session remembers of what it has done. The zero value is ready to use.
type acting struct {
	sending   sync.Mutex // held while a change is being sent
	recalling sync.Mutex // held while State.Undo and Redo are worked out

	mu       sync.Mutex      // guards what follows
	groups   map[int]int     // of changes that were one wish: the first of them
	pending  []string        // what is being done
	troubles map[string]bool // what was complained of
}

// grouped returns a copy of groups.
func (a *acting) grouped() map[int]int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return maps.Clone(a.groups)
}

// group remembers that changes were one wish.
func (a *acting) group(ids []int) {
	if len(ids) < 2 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.groups == nil {
		a.groups = map[int]int{}
	}
	for _, id := range ids {
		a.groups[id] = ids[0]
	}
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
// Move tells. Of several switches, in order of their names, the first that fails ends it,
// and Text says what was done and what was not.
func (s *Session) Apply(ctx context.Context, p Preview) Outcome {
	var err error
	switch {
	case s.readOnly():
		err = ErrReadOnly
	case p.Err != nil:
		err = p.Err
	case s.opt.History == nil:
		err = errors.New("nothing is sent without a history that records it")
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

	ran    bool
	report ocs.Report
	id     int
	err    error
	done   chan struct{} // closed when it has run, or will not
}

// errBefore is why a switch is left alone.
var errBefore = errors.New("a switch before it failed")

// shares splits a change by switch, in order of their names.
func shares(p Preview) []*share {
	var all []*share
	for i, x := range p.Parts {
		command := strings.Join(p.CLI, " && ")
		if len(p.CLI) == len(p.Parts) && p.Wish.Verb != Unlink { // one for each switch
			command = p.CLI[i]
		}
		command = unquoted(command)
		all = append(all, &share{Part: x, of: p, whole: p.Wish.Policy == ocs.Overwrite, command: command, done: make(chan struct{})})
	}
	slices.SortStableFunc(all, func(a, b *share) int { return strings.Compare(a.Switch, b.Switch) })
	return all
}

// applyParts sends a change.
func (s *Session) applyParts(ctx context.Context, p Preview) Outcome {
	all := shares(p)
	o := Outcome{Title: p.Title, Reports: map[string]ocs.Report{}}
	if len(all) > 1 { // that one has changed leaves all alone
		if err := s.unchanged(ctx, all); err != nil {
			o.Err = fmt.Errorf("nothing was changed: %w", err)
			o.Text = p.Title + ": " + o.Err.Error()
			return s.told(p, o)
		}
	}
	var unmeasured error
	o.Move, unmeasured = s.send(ctx, p, all)
	for _, x := range all {
		if x.ran {
			o.Reports[x.Switch] = x.report
		}
		if x.id != 0 {
			o.ID = append(o.ID, x.id)
			s.setOrigins(x.Switch, x.report, x.id)
		}
		if x.err != nil && !errors.Is(x.err, errBefore) && o.Err == nil {
			o.Err = x.err
		}
		s.touch(x.Switch)
	}
	s.act.group(o.ID)
	o.Text = outcomeText(p, all, o)
	if o.Err == nil && unmeasured != nil {
		o.Text += "; it was not measured: " + unmeasured.Error()
	}
	return s.told(p, o)
}

// unchanged reads all switches once more, and returns an error that matches ErrChanged when
// one holds something else than when it was looked at.
func (s *Session) unchanged(ctx context.Context, all []*share) error {
	errs := make([]error, len(all))
	var wait sync.WaitGroup
	for i, x := range all {
		wait.Go(func() {
			_, now, err := s.read(ctx, x.Switch)
			if err == nil {
				err = x.still(now.m)
			}
			errs[i] = aboutSwitch(x.Switch, err)
		})
	}
	wait.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
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

// send has the switches carry out their shares, one after another, and measures that. It
// returns the number of the Move, and why it was not measured.
func (s *Session) send(ctx context.Context, p Preview, all []*share) (move int, unmeasured error) {
	m := measurement{
		title: p.Title, cli: strings.Join(p.CLI, " && "), by: "us",
		after: map[string]ocs.Map{}, do: map[string]func(context.Context, *lab.Opened) (ocs.Report, error){},
	}
	var before *share
	for _, x := range all {
		if x.Change.Empty() {
			s.carryOut(ctx, nil, x)
			continue
		}
		after, err := x.Change.ApplyTo(x.Have)
		if err != nil {
			x.err = err
			close(x.done)
			return 0, err
		}
		last := before
		m.after[x.Switch] = after
		m.do[x.Switch] = func(ctx context.Context, sw *lab.Opened) (ocs.Report, error) {
			s.inTurn(ctx, sw, last, x)
			return x.report, x.err
		}
		before = x
	}
	if len(m.do) == 0 {
		return 0, nil
	}
	_, move, unmeasured = s.measure(ctx, m)
	if unmeasured == nil || slices.ContainsFunc(all, func(x *share) bool { return x.ran && !x.Change.Empty() || x.err != nil }) {
		return move, unmeasured
	}
	// It was not begun to be measured, which is no reason not to do it.
	before = nil
	for _, x := range all {
		if x.Change.Empty() {
			continue
		}
		sw, err := s.open(ctx, x.Switch)
		if err != nil {
			x.err = err
			close(x.done)
		} else {
			s.inTurn(ctx, sw, before, x)
		}
		before = x
	}
	return move, unmeasured
}

// inTurn waits until the switch before has done its share, and does nothing when that
// failed.
func (s *Session) inTurn(ctx context.Context, sw *lab.Opened, before, x *share) {
	defer close(x.done)
	if before != nil {
		select {
		case <-before.done:
		case <-ctx.Done():
			x.err = context.Cause(ctx)
			return
		}
		if before.err != nil {
			x.err = errBefore
			return
		}
	}
	s.carryOut(ctx, sw, x)
}

// carryOut does the share of one switch: recorded, sent, read back. One of which nothing is
// left to be done is only recorded.
func (s *Session) carryOut(ctx context.Context, sw *lab.Opened, x *share) {
	x.ran = true
	if x.Change.Empty() {
		x.id, x.err = s.alreadyBack(x)
		return
	}
	rec := s.opt.History.Wrap(sw, history.Entry{Switch: x.Switch, Device: sw.Device, Command: x.command, UndoOf: x.Undo})
	x.report, x.err = ocs.Execute(ctx, rec, func(have ocs.Map) (ocs.Change, error) {
		if err := s.onBasis(x.of); err != nil { // a switch before it may have taken long
			return ocs.Change{}, err
		}
		return x.Change, x.still(have)
	})
	recorded := rec.Confirm(x.report, x.err)
	x.id = rec.ID()
	x.err = aboutSwitch(x.Switch, x.err)
	if x.err != nil && !x.report.ReadBack && x.report.Receipt.Requests > 0 {
		x.err = fmt.Errorf("%w; it may have taken effect: see change %d in the history", x.err, x.id)
	}
	if recorded != nil && x.err != nil {
		x.err = fmt.Errorf("%w; %w", x.err, recorded)
	} else if recorded != nil {
		x.err = recorded
	}
}

// alreadyBack records an undo that found nothing to do.
func (s *Session) alreadyBack(x *share) (int, error) {
	for device, name := range s.devices() {
		if name != x.Switch {
			continue
		}
		id, err := s.opt.History.Begin(history.Entry{Switch: x.Switch, Device: device, Command: x.command, UndoOf: x.Undo})
		if err != nil {
			return 0, err
		}
		return id, s.opt.History.End(id, history.Done, history.Result{})
	}
	return 0, fmt.Errorf("the switch %.60q %w", x.Switch, lab.ErrUnknown)
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
	var texts []string
	several := len(all) > 1
	var slowest time.Duration
	for _, x := range all {
		text := x.text(o.Err != nil)
		if several && x.err == nil {
			text = x.Switch + ": " + text
		}
		texts = append(texts, text)
		if !x.report.Receipt.Acked.IsZero() {
			slowest = max(slowest, x.report.Receipt.Acked.Sub(x.report.Receipt.SendStart))
		}
	}
	text := strings.Join(texts, "; ")
	if o.Err != nil {
		return text
	}
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

// text says what became of one switch; failed is whether another one, or this, did.
func (x *share) text(failed bool) string {
	switch {
	case errors.Is(x.err, errBefore) || x.err == nil && !x.ran:
		return x.Switch + " was not touched"
	case x.err != nil && strings.HasPrefix(x.err.Error(), x.Switch):
		return x.err.Error()
	case x.err != nil:
		return x.Switch + ": " + x.err.Error()
	case x.Change.Empty():
		return fmt.Sprintf("nothing of change %d was left, it counts as taken back", x.Undo)
	}
	var did []string
	if m := x.report.Change.Add; m.Len() > 0 {
		did = append(did, circuitsText(m)+" connected")
	}
	if m := x.report.Change.Remove; m.Len() > 0 {
		did = append(did, circuitsText(m)+" removed")
	}
	text := strings.Join(did, ", ")
	if failed && x.id != 0 {
		text += fmt.Sprintf(" (change %d)", x.id)
	}
	return text
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
