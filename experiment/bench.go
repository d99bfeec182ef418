package experiment

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ocslab/ocslab/emulator/fabric"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/linkmon/watch"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/timeline"
)

// DefaultPoll is how long a Bench waits between two readings of the monitors.
const DefaultPoll = 2 * time.Millisecond

// DefaultPatience is how long a Bench waits for light after the
// acknowledgement, and DefaultLinkPatience for what comes after the light: NICs
// have been seen to take ten seconds.
const (
	DefaultPatience     = 5 * time.Second
	DefaultLinkPatience = 30 * time.Second
)

// DefaultHold is how long after the light a link that did not go down is taken to
// have been held, when there is no traffic that shows it.
const DefaultHold = time.Second

// Bench measures reconfigurations. It is used by one goroutine at a time.
type Bench struct {
	Host string // where the switches' marks are taken
	Rigs []*Rig

	Poll     time.Duration // between readings of a meter; 0 is DefaultPoll
	Patience time.Duration // for light to settle; 0 is DefaultPatience

	// Watch sees what happens to the NICs; nil measures the switches only. The
	// bench reads all its records.
	Watch        *watch.Watch
	Wiring       Wiring        // what hangs on the switches; goes with Watch
	LinkPatience time.Duration // for NICs and traffic; 0 is DefaultLinkPatience
	Hold         time.Duration // 0 is DefaultHold

	// Until is the stage after which a move is over and no later one is expected: Light,
	// CarrierUp, or, as the zero value, Traffic. What comes after that is of no move, or
	// of the next one that concerns the same NIC.
	Until timeline.Stage
	// Fixed, if it is not 0, ends a move that long after the acknowledgement, whatever has
	// come back until then.
	Fixed time.Duration

	// Cut, if it is not nil, ends the waiting for light, NICs and traffic when it is closed.
	// What has come back until then is all of the move then, and no error.
	Cut <-chan struct{}
	// Seen, if it is not nil, is called with what is known of a move that changes something:
	// once when the switches have been read back, and then about every [SeenEvery] as long
	// as is waited. Such a Move has neither Samples nor Readings, and Unresolved and Held
	// are empty: these are known in the end. Nobody else uses it. The calls
	// come from goroutines of the bench, one at a time, and none after Move has returned.
	Seen func(Move)

	// Late, if it is not nil, returns the greatest lateness of the emulation since the last call.
	Late func() fabric.Lateness
}

// SeenEvery is about how often [Bench.Seen] is called.
const SeenEvery = 50 * time.Millisecond

// Rig is a switch on a bench.
type Rig struct {
	Name   string // for marks: the subject "rail0", ports "rail0/33"
	Switch ocs.Switch

	// Meter reads the power monitors. It should have a session of its own: a
	// switch that acknowledges late answers nothing else on the same one until
	// it has. Nil measures command and ack only.
	Meter ocs.PowerMeter
	Rule  timeline.SettleRule

	// Reconcile applies want; nil is the gate of the lab that Switch is of, without looking at the light.
	Reconcile func(ctx context.Context, want ocs.Map, policy ocs.Policy) (ocs.Report, error)
}

// Wiring says which NICs hang on the ports of switches, by full name:
// "gpu1/ens1f0", "" for none.
type Wiring interface {
	Sender(onSwitch string, p ocs.Port) string   // sends into p
	Receiver(onSwitch string, p ocs.Port) string // receives from p
}

// Move is one measured reconfiguration.
type Move struct {
	Reports map[string]ocs.Report // by switch
	Marks   []timeline.Mark
	// Notes are gaps in what the sources know, and interfaces that came or went.
	Notes []watch.Note
	// Expected are the stages that should have been reached by the subjects.
	Expected []timeline.Expectation
	// Unresolved says of what no mark could be made, and why.
	Unresolved []string
	// Held are the NICs whose link did not go down.
	Held []string
	// Samples are the readings of the power monitors by subject, such as "rail0/33".
	Samples map[string][]timeline.Sample
	// Readings is how often the power monitors were read.
	Readings int
	// Dark are the egress ports that stayed dark for all of Patience although they should have
	// been lit and their circuits have light at the ingress, as far as monitors there tell.
	Dark []string
	// Busy says why this reconfiguration cannot be trusted: timers, the emulation, packets or
	// the order of marks show that the machine was too busy; see [TooLate]. Empty is good.
	Busy []string
}

// Move brings a map for each switch about as [ocs.Reconcile] does under policy, on
// all switches at once, and returns the marks of that reconfiguration, which get
// the given number. With an error the Move holds what was seen until then.
//
// The command mark spans the system call that wrote the last request byte; the
// ack mark goes from the first to the last byte of the reply as read here. Of
// each egress port that is added or removed, dark and light are the intervals
// in which the monitor says its power crossed; see [timeline.Edges]. The marks of
// NICs and traffic are those of the Watch. Move returns when every stage that is
// watched, up to Until, has come back, or patience is over.
func (b *Bench) Move(ctx context.Context, number int, want map[string]ocs.Map, policy ocs.Policy) (Move, error) {
	finish := b.checkBusy()
	mv, err := b.move(ctx, number, want, policy)
	finish(&mv)
	return mv, err
}

func (b *Bench) move(ctx context.Context, number int, want map[string]ocs.Map, policy ocs.Policy) (Move, error) {
	mv := Move{Reports: map[string]ocs.Report{}, Samples: map[string][]timeline.Sample{}}
	runs := make([]*run, 0, len(want))
	defer func() {
		for _, r := range runs {
			r.meter.stop()
		}
	}()
	for _, rig := range b.Rigs {
		m, ok := want[rig.Name]
		if !ok {
			continue
		}
		r := &run{rig: rig, want: m}
		var err error
		if r.ports, err = rig.watched(ctx, m, policy); err != nil {
			return mv, err
		}
		runs = append(runs, r)
	}
	if len(runs) != len(want) {
		return mv, fmt.Errorf("the bench has no switch for one of %v", slices.Sorted(maps.Keys(want)))
	}
	before, err := b.begin(ctx, runs)
	if err != nil {
		return mv, err
	}

	err = each(runs, func(r *run) (err error) {
		r.report, err = r.rig.reconcile(ctx, r.want, policy)
		return err
	})
	began := int64(math.MaxInt64)
	axis := timeline.HostAxis()
	changed := false
	for _, r := range runs {
		mv.Reports[r.rig.Name] = r.report
		mv.Marks = append(mv.Marks, CommandMarks(r.report.Receipt, r.rig.Name, b.Host, number)...)
		if rc := r.report.Receipt; !rc.Sent.IsZero() {
			began = min(began, axis.NS(begun(rc)))
		}
		changed = changed || !r.report.Change.Empty()
	}
	if err != nil || !changed {
		return mv, err
	}

	var links *linkWait
	if b.Watch != nil {
		links = b.await(runs, began, before)
	}
	told := b.tell(mv, number, runs, links)
	waiting, stop := b.cutting(ctx)
	if b.Fixed > 0 {
		err = uncut(b.pass(waiting, links, time.Until(lastAck(runs).Add(b.Fixed))))
		for _, r := range runs {
			r.meter.stop()
		}
	} else {
		err = b.comeBack(waiting, runs, links)
	}
	links.cutShort(waiting)
	stop()
	told()
	for _, r := range runs {
		dark := r.lightMarks(&mv, b.Host, number)
		if b.Fixed > 0 || r.cut.Load() { // it may have been to come
			continue
		}
		for _, p := range r.unlit(ctx, dark) {
			mv.Dark = append(mv.Dark, fmt.Sprintf("%s/%d", r.rig.Name, p))
		}
	}
	if links != nil {
		links.marks(&mv, number)
	}
	return mv, err
}

// begin starts the monitors of runs, waits until the level before is known, and lets go of
// all that happened to NICs and traffic until now. It returns how those stand.
func (b *Bench) begin(ctx context.Context, runs []*run) (linksBefore, error) {
	for _, r := range runs {
		r.meter = r.rig.watch(ctx, r.ports, orDefault(b.Poll, DefaultPoll))
	}
	for _, r := range runs {
		if err := r.meter.atLeast(ctx, 3); err != nil {
			return linksBefore{}, err
		}
		r.before = r.meter.levels()
	}
	if b.Watch != nil {
		if err := b.Watch.Flush(ctx); err != nil {
			return linksBefore{}, err
		}
		b.Watch.Drain()
	}
	return b.links(), nil
}

// errCut is why waiting ends when Cut is closed.
var errCut = errors.New("the waiting was cut short")

// uncut is what an error of waiting is to a caller, to whom a cut is none.
func uncut(err error) error {
	if errors.Is(err, errCut) {
		return nil
	}
	return err
}

// cutting returns a context that ends with ctx, and with errCut as the cause when Cut is
// closed.
func (b *Bench) cutting(ctx context.Context) (_ context.Context, stop func()) {
	if b.Cut == nil {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-b.Cut:
			cancel(errCut)
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		cancel(nil)
		<-ended
	}
}

// tell calls Seen with what is known of mv, now and then again and again until the function
// that it returns is called.
func (b *Bench) tell(mv Move, number int, runs []*run, links *linkWait) (stop func()) {
	if b.Seen == nil {
		return func() {}
	}
	b.Seen(b.known(mv, number, runs, links))
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		pace := time.NewTicker(SeenEvery)
		defer pace.Stop()
		for {
			select {
			case <-pace.C:
				b.Seen(b.known(mv, number, runs, links))
			case <-end:
				return
			}
		}
	}()
	return func() {
		close(end)
		<-ended
	}
}

// known returns a copy of mv with the marks that have come until now. It changes nothing
// that the measurement uses.
func (b *Bench) known(mv Move, number int, runs []*run, links *linkWait) Move {
	now := Move{Reports: maps.Clone(mv.Reports), Marks: slices.Clone(mv.Marks), Samples: map[string][]timeline.Sample{}}
	for _, r := range runs {
		r.lightMarks(&now, b.Host, number)
	}
	if links != nil {
		links.marks(&now, number)
	}
	now.Samples, now.Readings, now.Unresolved, now.Held = nil, 0, nil, nil
	return now
}

// comeBack waits until light, links and traffic are back as far as they are waited for.
func (b *Bench) comeBack(ctx context.Context, runs []*run, links *linkWait) error {
	linked := make(chan error, 1)
	if links == nil || b.Until == timeline.Light {
		linked <- nil
	} else {
		go func() { linked <- uncut(Guard(func() error { return links.wait(ctx, b) })) }()
	}
	err := each(runs, func(r *run) error {
		defer r.meter.stop()
		err := r.meter.settled(ctx, r.before, r.lit(), r.rig.Rule, orDefault(b.Patience, DefaultPatience))
		r.cut.Store(errors.Is(err, errCut))
		return uncut(err)
	})
	err = errors.Join(err, <-linked)
	if err == nil && links != nil && b.Until == timeline.Light {
		err = uncut(b.pass(ctx, links, 0))
	}
	return err
}

// pass lets time go by, and takes what was seen until then.
func (b *Bench) pass(ctx context.Context, links *linkWait, d time.Duration) error {
	rest := time.NewTimer(d)
	defer rest.Stop()
	select {
	case <-rest.C:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if links == nil {
		return nil
	}
	err := b.Watch.Flush(ctx)
	links.take(b.Watch.Drain())
	return err
}

// lastAck is when the last of the switches had acknowledged.
func lastAck(runs []*run) time.Time {
	var last time.Time
	for _, r := range runs {
		if at := r.report.Receipt.Acked; at.After(last) {
			last = at
		}
	}
	return last
}

// Null does all that Move does but the change: it reads the switches, reads the monitors of
// every port that is lit, and watches NICs and traffic for window. What the Move holds is
// what the set-up shows when nothing happens. Its command marks are when the circuits were
// begun to be read, and its ack marks when they had been: the time of an exchange that
// moves no light.
func (b *Bench) Null(ctx context.Context, number int, window time.Duration) (Move, error) {
	finish := b.checkBusy()
	mv, err := b.null(ctx, number, window)
	finish(&mv)
	return mv, err
}

func (b *Bench) null(ctx context.Context, number int, window time.Duration) (Move, error) {
	mv := Move{Reports: map[string]ocs.Report{}, Samples: map[string][]timeline.Sample{}}
	var runs []*run
	defer func() {
		for _, r := range runs {
			r.meter.stop()
		}
	}()
	for _, rig := range b.Rigs {
		r := &run{rig: rig}
		if rig.Meter != nil {
			have, err := rig.Switch.CrossConnects(ctx)
			if err != nil {
				return mv, err
			}
			for c := range have.All() {
				r.ports = append(r.ports, c.Egress)
			}
		}
		runs = append(runs, r)
	}
	before, err := b.begin(ctx, runs)
	if err != nil {
		return mv, err
	}
	began := time.Now()
	axis := timeline.HostAxis()
	for _, r := range runs {
		from := time.Now()
		if _, err := r.rig.Switch.CrossConnects(ctx); err != nil {
			return mv, err
		}
		mark := timeline.Mark{Stage: timeline.Command, Subject: r.rig.Name, Host: b.Host, Source: "driver", Reconfiguration: number,
			Interval: axis.Span(from, from), Detail: "null: the circuits were read"}
		mv.Marks = append(mv.Marks, mark)
		mark.Stage, mark.Interval = timeline.Ack, axis.Span(from, time.Now())
		mv.Marks = append(mv.Marks, mark)
	}
	links := &linkWait{began: axis.NS(began), before: before}
	if b.Watch == nil {
		links = nil
	}
	err = b.pass(ctx, links, time.Until(began.Add(window)))
	for _, r := range runs {
		r.meter.stop()
		r.nullMarks(&mv, b.Host, number, axis.NS(began))
	}
	if links != nil {
		mv.Notes = links.notes
		for _, m := range links.seen {
			m.Reconfiguration = number
			mv.Marks = append(mv.Marks, m)
		}
	}
	return mv, err
}

// nullMarks adds what power monitors saw while nothing was done.
func (r *run) nullMarks(mv *Move, host string, number int, began int64) {
	mv.Readings += r.meter.count()
	for _, p := range r.ports {
		subject := fmt.Sprintf("%s/%d", r.rig.Name, p)
		mv.Samples[subject] = r.meter.samples(p)
		dark, light := timeline.Edges(r.before[p], mv.Samples[subject], r.rig.Rule)
		for stage, e := range map[timeline.Stage]timeline.Edge{timeline.Dark: dark, timeline.Light: light} {
			if at, known := e.Interval(); known {
				mv.Marks = append(mv.Marks, timeline.Mark{Stage: stage, Subject: subject, Host: host,
					Interval: after(at, began), Source: "opm", Reconfiguration: number})
			}
		}
	}
}

// run is one switch during one move.
type run struct {
	rig    *Rig
	want   ocs.Map
	ports  []ocs.Port // egress ports that the change touches
	meter  *meter
	before map[ocs.Port]float64
	report ocs.Report
	cut    atomic.Bool // the waiting for its light was cut short; read while it is waited for, too
}

// each calls fn for every run at once.
func each(runs []*run, fn func(*run) error) error {
	errs := make([]error, len(runs))
	var all sync.WaitGroup
	for i, r := range runs {
		all.Go(func() { errs[i] = Guard(func() error { return fn(r) }) })
	}
	all.Wait()
	return errors.Join(errs...)
}

func (r *Rig) reconcile(ctx context.Context, want ocs.Map, policy ocs.Policy) (ocs.Report, error) {
	if r.Reconcile != nil {
		return r.Reconcile(ctx, want, policy)
	}
	sw := lab.Of(r.Name, r.Switch)
	report, err := sw.Gate().Apply(ctx, lab.Intent{On: sw, Want: want, Policy: policy, Verify: lab.VerifyTable})
	return report.Report, err
}

// begun is when a device may have begun with a change: one that takes several
// requests is under way before the last of them.
func begun(rc ocs.Receipt) time.Time {
	if rc.Begun.IsZero() {
		return rc.SendStart
	}
	return rc.Begun
}

// CommandMarks returns the marks of a change on the wire to a switch, from its receipt: when the command was sent and when
// it was acknowledged, as far as that is known. The command of a change that took several requests lies between the
// first and the last. host is where they are taken.
func CommandMarks(rc ocs.Receipt, onSwitch, host string, number int) []timeline.Mark {
	var marks []timeline.Mark
	axis := timeline.HostAxis()
	if !rc.Sent.IsZero() {
		marks = append(marks, timeline.Mark{Stage: timeline.Command, Subject: onSwitch, Host: host,
			Interval: axis.Span(begun(rc), rc.Sent), Source: "driver", Reconfiguration: number})
	}
	if !rc.Acked.IsZero() {
		marks = append(marks, timeline.Mark{Stage: timeline.Ack, Subject: onSwitch, Host: host,
			Interval: axis.Span(rc.FirstByte, rc.Acked), Source: "driver", Reconfiguration: number})
	}
	return marks
}

// lit returns the ports where light is to come.
func (r *run) lit() map[ocs.Port]bool {
	lit := map[ocs.Port]bool{}
	for c := range r.report.Change.Add.All() {
		lit[c.Egress] = true
	}
	return lit
}

// lightMarks adds what the power monitors saw, and returns the ports that should be lit and
// are dark.
func (r *run) lightMarks(mv *Move, host string, number int) (unlit []ocs.Port) {
	mv.Readings += r.meter.count()
	sent := timeline.HostAxis().NS(begun(r.report.Receipt))
	lit := r.lit()
	for _, p := range r.ports {
		subject := fmt.Sprintf("%s/%d", r.rig.Name, p)
		add := func(stage timeline.Stage, e timeline.Edge, expected bool) {
			if expected {
				mv.Expected = append(mv.Expected, timeline.Expectation{Reconfiguration: number, Stage: stage, Subject: subject})
			}
			if at, known := e.Interval(); known {
				mv.Marks = append(mv.Marks, timeline.Mark{Stage: stage, Subject: subject, Host: host,
					Interval: after(at, sent), Source: "opm", Reconfiguration: number})
			} else if expected {
				why := e.State().String()
				if r.cut.Load() && (e.State() == timeline.NotSettled || e.State() == timeline.NoLight) {
					why = timeline.CutShort
				}
				mv.Unresolved = append(mv.Unresolved, fmt.Sprintf("%s: %s: %s", subject, stage, why))
			}
		}
		samples := r.meter.samples(p)
		if len(samples) == 0 {
			if r.rig.Meter != nil {
				mv.Unresolved = append(mv.Unresolved, subject+": has no power monitor")
			}
			continue
		}
		mv.Samples[subject] = samples
		dark, light := timeline.Edges(r.before[p], samples, r.rig.Rule)
		add(timeline.Dark, dark, !math.IsInf(r.before[p], -1) && dark.State() != timeline.AlreadyDark)
		add(timeline.Light, light, lit[p])
		if lit[p] && light.State() == timeline.NoLight {
			unlit = append(unlit, p)
		}
	}
	return unlit
}

// after cuts off what lies before the cause: what a command brought about did
// not happen before it was sent.
func after(at timeline.Interval, cause int64) timeline.Interval {
	return timeline.Between(max(at.Earliest, cause), max(at.Latest, cause))
}

func orDefault(d, def time.Duration) time.Duration {
	if d <= 0 {
		return def
	}
	return d
}

// watched returns the egress ports that the change will touch.
func (r *Rig) watched(ctx context.Context, want ocs.Map, policy ocs.Policy) ([]ocs.Port, error) {
	if r.Meter == nil {
		return nil, nil
	}
	p, err := ocs.Preview(ctx, r.Switch, want, policy)
	if err != nil {
		return nil, err
	}
	var ports []ocs.Port
	for x := range p.Change.Remove.All() {
		ports = append(ports, x.Egress)
	}
	for x := range p.Change.Add.All() {
		ports = append(ports, x.Egress)
	}
	slices.Sort(ports)
	return slices.Compact(ports), nil
}
