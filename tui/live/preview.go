package live

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/lab/history"
	"github.com/ocslab/ocslab/ocs"
)

// lookTime is how long a switch may take to say what it holds before a preview is of what
// it said last.
const lookTime = 3 * time.Second

// Preview tells what a wish comes to now: it asks the switches concerned, all at once, and
// plans as the command line does. Nothing is sent that changes anything. What a switch that
// does not answer would do is shown on what it said last, and cannot be applied, except for
// a panic.
func (s *Session) Preview(ctx context.Context, w Wish) Preview {
	b := s.basisNow()
	p := s.preview(ctx, w)
	p.At, p.basis = time.Now(), b
	for i := range p.Parts {
		if err := p.Parts[i].Err; err != nil && p.Err == nil {
			p.Err = err
		}
	}
	switch {
	case s.readOnly():
		p.Err = ErrReadOnly
	case p.Err == nil && w.Verb != PanicNow:
		p.Err = s.busy()
	}
	return p
}

func (s *Session) preview(ctx context.Context, w Wish) Preview {
	switch w.Verb {
	case PanicNow:
		return s.previewPanic(ctx, w, 0)
	case Lift:
		return s.previewLift(ctx, w, 0)
	case Undo, Redo:
		return s.previewReversal(ctx, w)
	}
	r, err := s.resolve(w)
	if err != nil {
		return Preview{Wish: w, Title: r.title, Err: err}
	}
	return s.previewTasks(ctx, r)
}

// busy is why nothing else can be changed now: a run has the switches.
func (s *Session) busy() error {
	if r := s.State().Run; r != nil && r.ID != "" && !r.Ended {
		return fmt.Errorf("%w: the run %s has the switches; stop it first", ErrBusy, r.ID)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bed == nil && !s.closed {
		return errLent
	}
	return nil
}

// previewTasks looks at all switches that a wish is about, and says what it comes to.
func (s *Session) previewTasks(ctx context.Context, r resolved) Preview {
	p := Preview{Wish: r.wish, Title: r.title}
	k := s.known()
	parts := make([]Part, len(r.tasks))
	var all sync.WaitGroup
	for i, t := range r.tasks {
		all.Go(func() { parts[i] = s.previewTask(ctx, k, t) })
	}
	all.Wait()
	commands := r.cli
	for i, x := range parts {
		t := r.tasks[i]
		if x.Change.Empty() && x.Err == nil && x.Undo == 0 {
			continue
		}
		p.Parts = append(p.Parts, x)
		if r.cli == nil {
			commands = append(commands, t.cli(x.Change))
		}
	}
	p.CLI = s.lines(commands)
	if len(p.Parts) == 0 {
		p.Err = r.empty
	}
	return p
}

// known is what previews rest on beside the switches.
type known struct {
	state   *State
	file    *lab.File
	entries []history.Entry
	now     time.Time
}

func (s *Session) known() known {
	k := known{state: s.State(), file: s.file(), now: time.Now()}
	if s.opt.History != nil {
		k.entries, _, _ = s.opt.History.Entries() // without it less is known
	}
	return k
}

// frozen is a switch as it was at a moment: what it would do is asked of it, so that it is
// planned the same whether the device answered or not.
type frozen struct {
	id ocs.Identity
	m  ocs.Map
}

func (f frozen) Identify(context.Context) (ocs.Identity, error) { return f.id, nil }
func (f frozen) CrossConnects(context.Context) (ocs.Map, error) { return f.m, nil }
func (f frozen) Close() error                                   { return nil }

// Apply refuses.
func (f frozen) Apply(context.Context, ocs.Change) (ocs.Receipt, error) {
	return ocs.Receipt{}, ocs.ErrNotSupported
}

// read opens a switch and asks what it is and holds.
func (s *Session) read(ctx context.Context, name string) (*lab.Opened, frozen, error) {
	sw, err := s.open(ctx, name)
	if err != nil {
		return nil, frozen{}, err
	}
	var f frozen
	if f.id, err = sw.Identify(ctx); err == nil {
		f.m, err = sw.CrossConnects(ctx)
	}
	return sw, f, err
}

// plan is what a task comes to on a switch.
func (t task) on(ctx context.Context, f frozen) (ocs.Report, error) {
	for _, n := range t.ports {
		if !f.id.Geometry.Has(n) {
			return ocs.Report{Before: f.m}, &ocs.PortError{Port: n, Geometry: f.id.Geometry, Reason: "is not a port"}
		}
	}
	if t.plan != nil {
		return ocs.PreviewExecute(ctx, f, t.plan)
	}
	return ocs.Preview(ctx, f, t.want, t.policy)
}

// previewTask looks at one switch.
func (s *Session) previewTask(ctx context.Context, k known, t task) Part {
	x := Part{Switch: t.sw, Undo: t.undo}
	brief, cancel := context.WithTimeoutCause(ctx, lookTime, fmt.Errorf("it did not answer within %v", lookTime))
	defer cancel()
	device := ""
	sw, now, err := s.read(brief, t.sw)
	if sw != nil {
		device = sw.Device
	}
	if err != nil {
		x.Err, x.Stale = aboutSwitch(t.sw, err), true
		last := k.state.Switch(t.sw)
		why := t.sw + " does not answer"
		if errors.Is(err, ErrBusy) {
			why = "a run has " + t.sw
		}
		if last == nil || last.MapAt.IsZero() {
			x.Risks = append(x.Risks, why+": what it holds is not known")
			return x
		}
		now = frozen{last.Identity, last.Map}
		x.Risks = append(x.Risks, fmt.Sprintf("%s: this is what it held %s ago", why, ago(k.now.Sub(last.MapAt))))
	}
	report, err := t.on(ctx, now)
	x.Have, x.Change = now.m, report.Change
	x.Keep = t.want.Minus(t.want.Minus(now.m))
	if err != nil {
		x.Change = ocs.Change{}
		if x.Err == nil {
			x.Err = k.refusal(t, now, err)
		}
		return x
	}
	k.describe(&x, t, device)
	if x.Err == nil {
		x.Err = aboutSwitch(t.sw, sw.Gate().Permits(brief, sw, now.m, x.Change))
	}
	return x
}

// aboutSwitch puts the name of the switch before errors that do not have it.
func aboutSwitch(name string, err error) error {
	var op *ocs.OpError
	if err == nil || errors.As(err, &op) || strings.HasPrefix(err.Error(), name+" ") || strings.HasPrefix(err.Error(), name+":") {
		return err
	}
	return fmt.Errorf("%s: %w", name, err)
}

// ago is how long ago something was, for people.
func ago(d time.Duration) string {
	switch {
	case d < time.Second:
		return "a moment"
	case d < time.Minute:
		return d.Round(time.Second).String()
	case d < time.Hour:
		return fmt.Sprintf("%d min", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", d/time.Hour)
	}
	return fmt.Sprintf("%d days", d/(24*time.Hour))
}

// refusal says why a task cannot be done, and what can be done about it.
func (k known) refusal(t task, now frozen, err error) error {
	if !errors.Is(err, ocs.ErrConflict) {
		return aboutSwitch(t.sw, err)
	}
	if t.undo != 0 {
		return fmt.Errorf("%s: the ports of change %d have been used otherwise since: %w", t.sw, t.undo, err)
	}
	var texts []string
	for c := range t.want.All() {
		for _, r := range now.m.Rivals(c) {
			texts = append(texts, fmt.Sprintf("%s is in the way of %v", k.circuit(t.sw, r), c))
		}
	}
	if len(texts) == 0 { // what is in the way shares no port
		texts = []string{strings.TrimPrefix(err.Error(), ocs.ErrConflict.Error()+": ")}
	}
	if more := len(texts) - 3; more > 0 {
		texts = append(texts[:3], fmt.Sprintf("%d more", more))
	}
	them := "it"
	if len(texts) > 1 {
		them = "them"
	}
	return fmt.Errorf("%s: %w: %s; m takes %s over", t.sw, ocs.ErrConflict, strings.Join(texts, ", "), them)
}

// circuit names a circuit with its ends: "1>36 (gpu1/ens1f0 to gpu4/ens1f0)".
func (k known) circuit(sw string, c ocs.CrossConnect) string {
	e := k.ends(sw, "", c)
	if e.From == "" && e.To == "" {
		return c.String()
	}
	return fmt.Sprintf("%v (%s)", c, e.way())
}

// way says between whom a circuit is.
func (e Ends) way() string {
	name := func(text string, p ocs.Port) string {
		if text == "" {
			return "port " + p.String()
		}
		return text
	}
	return name(e.From, e.Circuit.Ingress) + " to " + name(e.To, e.Circuit.Egress)
}

// ends says what hangs on a circuit of a device, which may be "" if that is not known.
func (k known) ends(sw, device string, c ocs.CrossConnect) Ends {
	e := Ends{Circuit: c, From: k.file.Sender(sw, c.Ingress), To: k.file.Receiver(sw, c.Egress)}
	if n := k.state.NIC(e.To); n != nil && e.From != "" && n.Hears == e.From {
		e.Traffic = n.Traffic == trafficFlows || n.Traffic == trafficLate
	}
	if x := k.state.Switch(sw); x != nil {
		if e.From == "" {
			e.From = x.Labels[c.Ingress]
		}
		if e.To == "" {
			e.To = x.Labels[c.Egress]
		}
		e.InPower, e.HasPower = x.Power[c.Ingress]
		e.Origin = x.Set[c]
	}
	if e.Origin.Who == "" && device != "" {
		e.Origin = k.made(device, c)
	}
	return e
}

// made looks in the history for the change that brought a circuit about.
func (k known) made(device string, c ocs.CrossConnect) Origin {
	for _, e := range slices.Backward(k.entries) {
		if e.Device != device || e.State == history.Failed {
			continue
		}
		if e.Change.Add.Has(c) {
			return Origin{Who: "us", ID: e.ID, When: e.Began}
		}
		if e.Change.Remove.Has(c) {
			break // somebody else has brought it back
		}
	}
	return Origin{}
}
