package live

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ocslab/ocslab/experiment"
	"github.com/ocslab/ocslab/internal/natural"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/timeline"
)

// measurement is a change that is to be measured.
type measurement struct {
	title, cli, by string
	// after is what each switch that takes part will hold, from which follows what is
	// watched, and do brings it about: with history, interlock and read-back.
	after map[string]ocs.Map
	do    map[string]func(ctx context.Context, sw *lab.Opened) (ocs.Report, error)
}

// moving is a Move that is measured.
type moving struct {
	number int
	cut    chan struct{} // closed to end the waiting
	once   sync.Once
	done   chan struct{} // closed when it is over
}

func (m *moving) cutShort() { m.once.Do(func() { close(m.cut) }) }

// measure brings a change about and returns as soon as all switches have been read back. What
// comes after that, a Move tells: the first of the next State. It goes on until light, links
// and traffic are back, patience is over, or the next measure cuts it short. The number is
// that of the Move, 0 when nothing was sent. Reports are filled as far as things went, also
// with an error. The end of ctx ends what is not read back yet.
func (s *Session) measure(ctx context.Context, m measurement) (reports map[string]ocs.Report, number int, err error) {
	s.measuring.Lock()
	defer s.measuring.Unlock()
	s.mu.Lock()
	b, before := s.bed, s.moving
	s.mu.Unlock()
	if b == nil {
		return nil, 0, errLent
	}
	if before != nil {
		before.cutShort()
		select {
		case <-before.done:
		case <-ctx.Done():
			return nil, 0, context.Cause(ctx)
		}
	}
	m.by = cmp.Or(m.by, "us")
	var benched []*measured
	for _, name := range slices.Sorted(maps.Keys(m.after)) {
		o, err := s.open(ctx, name)
		if err != nil {
			return nil, 0, err
		}
		benched = append(benched, &measured{r: b.readers[name], sw: o, after: m.after[name], do: m.do[name]})
	}
	for _, x := range benched {
		if err := s.watchLight(ctx, x); err != nil {
			s.say(Entry{Kind: Event, Switch: x.sw.Name, Text: fmt.Sprintf("%s: the light of this change is not measured: %v", x.sw.Name, err), Bad: true})
		}
	}
	return s.bringAbout(ctx, b, m, benched)
}

// measured is a switch that takes part in a measured change.
type measured struct {
	r       *reader
	sw      *lab.Opened
	after   ocs.Map
	do      func(ctx context.Context, sw *lab.Opened) (ocs.Report, error)
	meter   ocs.PowerMeter // nil: command and ack only
	rule    timeline.SettleRule
	restore func(context.Context) error // what was quickened; nil if nothing was
	begun   atomic.Bool                 // do was called
}

// watchLight finds the monitors that see the light of a change, and over what time they
// average. A switch without any is measured without.
func (s *Session) watchLight(ctx context.Context, x *measured) error {
	if _, ok := ocs.As[ocs.PowerMeter](x.sw); !ok {
		return nil
	}
	ports := s.touchedEgress(x)
	if len(ports) == 0 {
		return nil
	}
	sw, err := x.r.forMeter(ctx)
	if err != nil {
		return err
	}
	meter, ok := ocs.As[ocs.PowerMeter](sw)
	if !ok {
		return nil
	}
	averaging, err := s.averaging(ctx, x, meter, ports)
	switch {
	case errors.Is(err, experiment.ErrNoMonitor):
		return nil
	case errors.Is(err, ocs.ErrNotSupported):
		read, err := meter.Power(ctx, ports...)
		if errors.Is(err, ocs.ErrNotSupported) || err == nil && len(read.Ports) == 0 {
			return nil
		}
		if err != nil {
			return err
		}
		averaging = experiment.AssumedAveraging
	case err != nil:
		return err
	}
	x.meter, x.rule = meter, timeline.SettleRule{Averaging: averaging}
	return nil
}

// touchedEgress returns the egress ports that a change touches, by what the State says that
// the switch holds: it is only to find the monitors, and the bench asks the switch itself.
func (s *Session) touchedEgress(x *measured) []ocs.Port {
	s.mu.Lock()
	var have ocs.Map
	if sw := s.parts.at(x.sw.Name); sw != nil {
		have = sw.Map
	}
	s.mu.Unlock()
	var ports []ocs.Port
	d := ocs.Diff(have, x.after)
	for _, m := range []ocs.Map{d.Remove, d.Add} {
		for c := range m.All() {
			ports = append(ports, c.Egress)
		}
	}
	slices.Sort(ports)
	return slices.Compact(ports)
}

// averaging returns over what time the monitors at ports average: as they are set or, where
// that was asked for, set to their shortest.
func (s *Session) averaging(ctx context.Context, x *measured, meter ocs.PowerMeter, ports []ocs.Port) (time.Duration, error) {
	if s.opt.Quicken {
		averaging, restore, err := experiment.Quicken(ctx, meter, ports...)
		x.restore = restore
		return averaging, err
	}
	set, err := meter.Monitors(ctx, ports...)
	if err == nil && len(set) == 0 {
		err = experiment.ErrNoMonitor
	}
	longest := time.Duration(0)
	for _, m := range set {
		longest = max(longest, m.Averaging)
	}
	return longest, err
}

// forMeter returns a session for measuring, which is opened when it is needed first, and
// kept. Where there is none to be had, the one for reading is used; a switch that has only
// one session is measured without its monitors.
func (r *reader) forMeter(ctx context.Context) (ocs.Switch, error) {
	r.mu.Lock()
	meter, second := r.meter, r.second
	r.mu.Unlock()
	if meter == nil && second != nil {
		sw, err := r.begin(ctx)
		if err != nil {
			return r.gated(second), nil
		}
		meter = sw
		r.mu.Lock()
		r.meter = sw
		r.mu.Unlock()
	}
	if meter == nil {
		return nil, errors.New("the switch has one session only, which is busy with the change")
	}
	return r.gated(meter), nil
}

func (r *reader) gated(sw ocs.Switch) ocs.Switch {
	return &gate{Switch: sw, s: r.s, name: r.name, own: r.own}
}

// bringAbout starts the bench and waits until the switches have been read back.
func (s *Session) bringAbout(ctx context.Context, b *bed, m measurement, benched []*measured) (map[string]ocs.Report, int, error) {
	now := &moving{cut: make(chan struct{}), done: make(chan struct{})}
	s.update(func(p *parts) {
		p.follow = nil
		now.number = p.begin(Move{Title: m.title, CLI: m.cli, By: m.by, Began: time.Now(), Running: true, Phase: "the switches"})
	})
	back := make(chan result, 1) // the switches have been read back
	running, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	byCaller := context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	byBed := context.AfterFunc(b.ctx, func() { cancel(context.Cause(b.ctx)) })
	started := b.start1(func() {
		defer close(now.done)
		defer byBed()
		s.follow(running, b, m, now, benched, func(r result) {
			byCaller() // from here on nobody waits
			select {
			case back <- r:
			default:
			}
		})
		cancel(nil)
	})
	if !started {
		byCaller()
		byBed()
		cancel(nil)
		s.update(func(p *parts) { p.drop(now.number) })
		s.setBack(ctx, benched)
		return nil, 0, errClosed
	}
	s.mu.Lock()
	s.moving = now
	s.mu.Unlock()
	r := <-back
	for _, x := range benched {
		x.r.touch()
	}
	if !r.sent() {
		return r.reports, 0, r.err
	}
	return r.reports, now.number, r.err
}

// result is what became of a change when its switches have been read back.
type result struct {
	reports map[string]ocs.Report
	err     error
}

// sent reports whether anything was sent.
func (r result) sent() bool {
	for _, x := range r.reports {
		if x.Receipt.Requests > 0 {
			return true
		}
	}
	return false
}

// follow measures a change to its end. It calls back once, when the switches have been read
// back or nothing will come of it any more.
func (s *Session) follow(ctx context.Context, b *bed, m measurement, now *moving, benched []*measured, back func(result)) {
	b.watching.Lock()
	defer b.watching.Unlock()
	called := false
	bench := s.bench(b, now, benched)
	if bench.Watch != nil {
		bench.Watch.Rest(false)
		defer bench.Watch.Rest(true)
	}
	bench.Seen = func(mv experiment.Move) {
		if !called {
			called = true
			s.readBack(mv.Reports, m.by)
			back(result{mv.Reports, nil})
		}
		s.update(func(p *parts) { p.move(now.number, func(x *Move) { x.progress(mv) }) })
	}
	mv, err := s.move(ctx, bench, m, now.number)
	if err != nil && ctx.Err() == nil && withoutLight(bench, benched) {
		why := err
		if mv, err = s.move(ctx, bench, m, now.number); err == nil {
			s.say(Entry{Kind: Event, Text: fmt.Sprintf("the light of this change is not measured: %v", why), Bad: true})
		}
	}
	s.setBack(ctx, benched)
	r := result{mv.Reports, err}
	if !called {
		s.readBack(mv.Reports, m.by)
	}
	s.update(func(p *parts) {
		if !r.sent() {
			p.drop(now.number)
			return
		}
		p.move(now.number, func(x *Move) { x.finish(mv, err) })
	})
	s.mu.Lock()
	if s.moving == now {
		s.moving = nil
	}
	s.mu.Unlock()
	if !called {
		back(r)
	}
}

// setBack puts monitors that were quickened back.
func (s *Session) setBack(ctx context.Context, benched []*measured) {
	for _, x := range benched {
		if x.restore == nil {
			continue
		}
		if err := x.restore(ctx); err != nil {
			s.say(Entry{Kind: Event, Switch: x.sw.Name, Text: fmt.Sprintf("%s: the power monitors could not be set back: %v", x.sw.Name, err), Bad: true})
		}
	}
}

// bench returns a bench for a change.
func (s *Session) bench(b *bed, now *moving, benched []*measured) *experiment.Bench {
	host, _ := os.Hostname() // for the marks; its absence is no reason not to change anything
	bench := &experiment.Bench{Host: host, Wiring: b.file, Cut: now.cut}
	b.mu.Lock()
	if b.testbed != nil {
		bench.Watch = b.testbed.Watch
	}
	b.mu.Unlock()
	for _, x := range benched {
		bench.Rigs = append(bench.Rigs, &experiment.Rig{
			Name: x.sw.Name, Switch: x.sw, Meter: x.meter, Rule: x.rule,
			Reconcile: func(ctx context.Context, _ ocs.Map, _ ocs.Policy) (ocs.Report, error) {
				x.begun.Store(true)
				return x.do(ctx, x.sw)
			},
		})
	}
	return bench
}

// move is the measurement itself. A panic in it is an error, so that it ends nothing else.
func (s *Session) move(ctx context.Context, bench *experiment.Bench, m measurement, number int) (mv experiment.Move, err error) {
	err = experiment.Guard(func() (err error) {
		mv, err = bench.Move(ctx, number, m.after, ocs.Overwrite)
		return err
	})
	return mv, err
}

// withoutLight has a bench go without power monitors, if it has some and nothing has been
// begun: a change is not refused because its light cannot be measured.
func withoutLight(bench *experiment.Bench, benched []*measured) bool {
	had := false
	for i, x := range benched {
		if x.begun.Load() {
			return false
		}
		had = had || bench.Rigs[i].Meter != nil
		bench.Rigs[i].Meter = nil
	}
	return had
}

// readBack enters what switches hold after a change.
func (s *Session) readBack(reports map[string]ocs.Report, by string) {
	s.update(func(p *parts) { p.readBack(reports, by) })
}

func (p *parts) readBack(reports map[string]ocs.Report, by string) {
	for name, r := range reports {
		if !r.ReadBack || r.Receipt.Acked.IsZero() {
			continue
		}
		p.took(name, r.After, r.Receipt.Acked)
		for c := range r.Change.Add.All() {
			if _, set := p.origin(name, c, r.Receipt); r.After.Has(c) && !set {
				p.set(name, c, Origin{Who: by, When: r.Receipt.Acked})
			}
		}
	}
}

// origin returns how a circuit came to be there, if that was told since a change began.
func (p *parts) origin(name string, c ocs.CrossConnect, since ocs.Receipt) (Origin, bool) {
	x := p.at(name)
	if x == nil {
		return Origin{}, false
	}
	o, ok := x.Set[c]
	return o, ok && !o.When.Before(since.SendStart)
}

// drop forgets the Move of a number: nothing came of it.
func (p *parts) drop(number int) {
	p.moves = slices.DeleteFunc(slices.Clone(p.moves), func(m *Move) bool { return m.Number == number })
}

// endMove ends the waiting of the Move that is measured, if any, and waits for a moment
// until it has ended.
func (s *Session) endMove() {
	s.mu.Lock()
	now := s.moving
	s.mu.Unlock()
	if now == nil {
		return
	}
	now.cutShort()
	limit := time.NewTimer(time.Second)
	defer limit.Stop()
	select {
	case <-now.done:
	case <-limit.C:
	}
}

// progress enters what is known of a Move that is under way.
func (x *Move) progress(mv experiment.Move) {
	x.Reports = mv.Reports
	x.Marks, _ = timeline.Merge(mv.Marks)
	x.Expected = mv.Expected
	x.Phase = phase(mv.Expected, x.Marks)
}

// finish enters how a Move has ended.
func (x *Move) finish(mv experiment.Move, err error) {
	x.progress(mv)
	x.Running, x.Phase, x.Err = false, "", err
	x.Unresolved, x.Held = mv.Unresolved, mv.Held
	for _, why := range mv.Busy {
		x.Unresolved = append(x.Unresolved, "not to be trusted, the machine was too busy: "+why)
	}
}

// waits are the stages that are waited for, in the order in which they are named, and what
// they are called.
var waits = []struct {
	stage timeline.Stage
	name  string // of one subject
	many  string // of several
	what  string // counted
}{
	{timeline.Dark, "dark at ", "dark at ", "port"},
	{timeline.Light, "light at ", "light at ", "port"},
	{timeline.Firmware, "firmware of ", "firmware of ", "NIC"},
	{timeline.CarrierUp, "carrier of ", "carrier of ", "NIC"},
	{timeline.TrafficLost, "the end of traffic ", "the end of traffic of ", "flow"},
	{timeline.Traffic, "traffic ", "traffic of ", "flow"},
}

// phase says in words what is waited for: the first stage that has not been reached by all.
func phase(expected []timeline.Expectation, seen []timeline.Mark) string {
	type at struct {
		stage   timeline.Stage
		subject string
	}
	reached := make(map[at]bool, len(seen))
	for _, m := range seen {
		reached[at{m.Stage, m.Subject}] = true
	}
	for _, w := range waits {
		var missing []string
		for _, e := range expected {
			if e.Stage == w.stage && !reached[at{e.Stage, e.Subject}] {
				missing = append(missing, e.Subject)
			}
		}
		switch len(missing) {
		case 0:
		case 1:
			return w.name + missing[0]
		default:
			return w.many + natural.Count(len(missing), w.what)
		}
	}
	return "whether links hold"
}

// seenMove enters a reconfiguration that was measured by somebody else in this program: a
// run that the switches are lent to. What the switches hold and the powers that were read are
// taken over with the times at which they were read.
func (s *Session) seenMove(by string, mv experiment.Move, title string) {
	s.update(func(p *parts) {
		number := p.number + 1
		x := Move{Title: title, By: by, Began: began(mv)}
		x.finish(renumbered(mv, number), nil)
		p.begin(x)
		p.readBack(mv.Reports, by)
		for _, subject := range slices.Sorted(maps.Keys(mv.Samples)) {
			name, port, ok := splitSubject(subject)
			if samples := mv.Samples[subject]; ok && len(samples) > 0 {
				p.samplePower(name, port, samples[len(samples)-1])
			}
		}
	})
}

// began is when the first request of a move was begun to be sent; now, if none was.
func began(mv experiment.Move) time.Time {
	var first time.Time
	for _, r := range mv.Reports {
		at := r.Receipt.Begun
		if at.IsZero() {
			at = r.Receipt.SendStart
		}
		if !at.IsZero() && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	if first.IsZero() {
		first = time.Now()
	}
	return first
}

// renumbered returns a move with another number.
func renumbered(mv experiment.Move, number int) experiment.Move {
	mv.Marks, mv.Expected = slices.Clone(mv.Marks), slices.Clone(mv.Expected)
	for i := range mv.Marks {
		mv.Marks[i].Reconfiguration = number
	}
	for i := range mv.Expected {
		mv.Expected[i].Reconfiguration = number
	}
	return mv
}

// splitSubject splits "rail0/33".
func splitSubject(subject string) (name string, port ocs.Port, ok bool) {
	i := strings.LastIndexByte(subject, '/')
	if i < 0 {
		return "", 0, false
	}
	n, err := strconv.ParseUint(subject[i+1:], 10, 16)
	return subject[:i], ocs.Port(n), err == nil
}

// samplePower enters one reading of one port. The others of the switch are as old as they
// were, so its PowerAt stays.
func (p *parts) samplePower(name string, port ocs.Port, s timeline.Sample) {
	at := timeline.HostAxis().Time(s.Latest)
	power := ocs.DBm(s.PowerDBm)
	p.edit(name, func(x *Switch) {
		x.Power = maps.Clone(x.Power)
		if x.Power == nil {
			x.Power = map[ocs.Port]ocs.DBm{}
		}
		x.Power[port] = power
	})
	for _, n := range p.nics {
		if n.Rx == (lab.PortRef{Switch: name, Port: port}) && at.After(n.RxAt) {
			n.RxPower, n.RxAt, n.RxSource, n.dirty = power, at, "switch", true
			n.sample(Sample{At: at, Power: power})
		}
	}
}
