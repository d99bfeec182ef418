package experiment

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/timeline"
)

// DefaultPoll is how long a Bench waits between two readings of the monitors.
const DefaultPoll = 2 * time.Millisecond

// DefaultPatience is how long a Bench waits for light after the
// acknowledgement.
const DefaultPatience = 5 * time.Second

// Bench measures the reconfigurations of one switch. It is used by one
// goroutine at a time.
type Bench struct {
	Name   string // of the switch, for marks: the subject "rail0", ports "rail0/33"
	Host   string // where the marks are taken
	Switch ocs.Switch

	// Meter reads the power monitors. It should have a session of its own: a
	// switch that acknowledges late answers nothing else on the same one until
	// it has. Nil measures command and ack only.
	Meter    ocs.PowerMeter
	Poll     time.Duration // between readings; 0 is DefaultPoll
	Patience time.Duration // for light to settle; 0 is DefaultPatience
	Rule     timeline.SettleRule
}

// Move is one measured reconfiguration.
type Move struct {
	Report ocs.Report
	Marks  []timeline.Mark
	// Unresolved says of what no mark could be made, and why.
	Unresolved []string
	// Readings is how often the monitors were read.
	Readings int
}

// Move brings want about as [ocs.Reconcile] does under policy, and returns the
// marks of that reconfiguration, which get the given number. With an error the
// Move holds what was seen until then.
//
// The command mark spans the system call that wrote the last request byte; the
// ack mark goes from the first to the last byte of the reply as read here. Of
// each egress port that is added or removed, dark and light are the intervals
// in which the monitor says its power crossed; see [timeline.Edges].
func (b *Bench) Move(ctx context.Context, number int, want ocs.Map, policy ocs.Policy) (Move, error) {
	var mv Move
	watched, err := b.watched(ctx, want, policy)
	if err != nil {
		return mv, err
	}
	w := b.watch(ctx, watched)
	defer w.stop()
	if err := w.atLeast(ctx, 3); err != nil { // the level before
		return mv, err
	}
	before := w.levels()

	mv.Report, err = ocs.Reconcile(ctx, b.Switch, want, policy)
	r := mv.Report.Receipt
	mark := func(stage timeline.Stage, subject string, at timeline.Interval, source string) {
		mv.Marks = append(mv.Marks, timeline.Mark{Stage: stage, Subject: subject, Host: b.Host, Interval: at, Source: source, Reconfiguration: number})
	}
	axis := timeline.HostAxis()
	if !r.Sent.IsZero() {
		mark(timeline.Command, b.Name, axis.Span(r.SendStart, r.Sent), "driver")
	}
	if !r.Acked.IsZero() {
		mark(timeline.Ack, b.Name, axis.Span(r.FirstByte, r.Acked), "driver")
	}
	if err != nil || mv.Report.Change.Empty() {
		return mv, err
	}

	lit := map[ocs.Port]bool{} // ports where light is to come
	for c := range mv.Report.Change.Add.All() {
		lit[c.Egress] = true
	}
	err = w.settled(ctx, before, lit, b.Rule, orDefault(b.Patience, DefaultPatience))
	w.stop()
	mv.Readings = w.count()
	if err != nil {
		return mv, err
	}
	for _, p := range watched {
		subject := fmt.Sprintf("%s/%d", b.Name, p)
		samples := w.samples(p)
		if len(samples) == 0 {
			mv.Unresolved = append(mv.Unresolved, subject+": has no power monitor")
			continue
		}
		dark, light := timeline.Edges(before[p], samples, b.Rule)
		if at, known := dark.Interval(); known {
			mark(timeline.Dark, subject, after(at, axis.NS(r.SendStart)), "opm")
		} else if !math.IsInf(before[p], -1) && dark.State() != timeline.AlreadyDark {
			mv.Unresolved = append(mv.Unresolved, subject+": dark: "+dark.State().String())
		}
		if at, known := light.Interval(); known {
			mark(timeline.Light, subject, after(at, axis.NS(r.SendStart)), "opm")
		} else if lit[p] {
			mv.Unresolved = append(mv.Unresolved, subject+": light: "+light.State().String())
		}
	}
	return mv, nil
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
func (b *Bench) watched(ctx context.Context, want ocs.Map, policy ocs.Policy) ([]ocs.Port, error) {
	if b.Meter == nil {
		return nil, nil
	}
	r, err := ocs.Preview(ctx, b.Switch, want, policy)
	if err != nil {
		return nil, err
	}
	var ports []ocs.Port
	for x := range r.Change.Remove.All() {
		ports = append(ports, x.Egress)
	}
	for x := range r.Change.Add.All() {
		ports = append(ports, x.Egress)
	}
	slices.Sort(ports)
	return slices.Compact(ports), nil
}

// watch reads monitors until it is stopped.
type watch struct {
	cancel context.CancelFunc
	ended  chan struct{}
	more   chan struct{} // holds one: readings have come

	mu       sync.Mutex // guards what follows
	readings []ocs.PowerReading
	err      error
}

func (b *Bench) watch(ctx context.Context, ports []ocs.Port) *watch {
	ctx, cancel := context.WithCancel(ctx)
	w := &watch{cancel: cancel, ended: make(chan struct{}), more: make(chan struct{}, 1)}
	if len(ports) == 0 {
		close(w.ended)
		return w
	}
	go func() {
		defer close(w.ended)
		pace := time.NewTicker(orDefault(b.Poll, DefaultPoll))
		defer pace.Stop()
		for ctx.Err() == nil {
			r, err := b.Meter.Power(ctx, ports...)
			w.mu.Lock()
			if err != nil {
				w.err = err
				w.mu.Unlock()
				return
			}
			w.readings = append(w.readings, r)
			w.mu.Unlock()
			select {
			case w.more <- struct{}{}:
			default:
			}
			select {
			case <-pace.C:
			case <-ctx.Done():
			}
		}
	}()
	return w
}

func (w *watch) stop() {
	w.cancel()
	<-w.ended
}

func (w *watch) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.readings)
}

// age is the time since the first reading.
func (w *watch) age() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.readings) == 0 {
		return 0
	}
	return time.Since(w.readings[0].Earliest)
}

// next waits for another reading; false when none will come.
func (w *watch) next(ctx context.Context) (bool, error) {
	select {
	case <-w.more:
		return true, nil
	case <-w.ended:
		w.mu.Lock()
		defer w.mu.Unlock()
		return false, w.err
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
}

func (w *watch) atLeast(ctx context.Context, n int) error {
	for w.count() < n {
		if ok, err := w.next(ctx); !ok {
			return err
		}
	}
	return nil
}

// levels returns the power at each port before the change, in dBm; minus
// infinity for a port whose monitor is at its floor.
func (w *watch) levels() map[ocs.Port]float64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	levels := map[ocs.Port]float64{}
	for _, r := range w.readings {
		for p, power := range r.Ports {
			levels[p] = float64(power)
			if power < ocs.NoLight {
				levels[p] = math.Inf(-1)
			}
		}
	}
	return levels
}

// samples returns the readings of one port.
func (w *watch) samples(p ocs.Port) []timeline.Sample {
	w.mu.Lock()
	defer w.mu.Unlock()
	axis := timeline.HostAxis()
	var s []timeline.Sample
	for _, r := range w.readings {
		if power, ok := r.Ports[p]; ok {
			s = append(s, timeline.Sample{Interval: axis.Span(r.Earliest, r.Latest), PowerDBm: float64(power)})
		}
	}
	return s
}

// settled waits until the light of every port in lit is back, and some more so
// that it can be told to have stayed.
func (w *watch) settled(ctx context.Context, before map[ocs.Port]float64, lit map[ocs.Port]bool, rule timeline.SettleRule, patience time.Duration) error {
	began := time.Now()
	var since time.Time // when all were first seen settled
	for time.Since(began) < patience {
		if ok, err := w.next(ctx); !ok {
			return err
		}
		all := true
		for p := range lit {
			samples := w.samples(p)
			if len(samples) == 0 {
				continue // has no monitor
			}
			if _, light := timeline.Edges(before[p], samples, rule); light.State() != timeline.Known {
				all = false
			}
		}
		switch {
		case !all:
			since = time.Time{}
		case since.IsZero():
			since = time.Now()
		case time.Since(since) >= max(3*rule.Averaging, w.age()/3):
			return nil // as long as timeline.Edges wants it
		}
	}
	return nil
}

// ErrNoMonitor: none of the ports has a power monitor.
var ErrNoMonitor = errors.New("none of the ports has a power monitor")

// Quicken sets the averaging of the monitors at ports to the shortest that the
// device offers, returns what it then is, and a function that puts the former
// settings back.
func Quicken(ctx context.Context, meter ocs.PowerMeter, ports ...ocs.Port) (time.Duration, func(context.Context) error, error) {
	old, err := meter.Monitors(ctx, ports...)
	if err != nil {
		return 0, nil, err
	}
	if len(old) == 0 {
		return 0, nil, ErrNoMonitor
	}
	restore := func(ctx context.Context) error {
		var errs []error
		for _, m := range old {
			errs = append(errs, meter.SetMonitor(ctx, m))
		}
		return errors.Join(errs...)
	}
	for _, m := range old {
		m.Averaging = 1 // nanosecond: rounded up to the first step
		if err := meter.SetMonitor(ctx, m); err != nil {
			return 0, nil, errors.Join(err, restore(ctx))
		}
	}
	now, err := meter.Monitors(ctx, ports...)
	if err != nil {
		return 0, nil, errors.Join(err, restore(ctx))
	}
	var longest time.Duration
	for _, m := range now {
		longest = max(longest, m.Averaging)
	}
	return longest, restore, nil
}
