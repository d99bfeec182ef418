// Package drift tells when somebody else moves the circuits of a switch: at
// another console, over another protocol, by another copy of this program.
//
//	sw := drift.Watch(inner, 0)
//	...
//	err := sw.Notify(ctx, func(e ocs.Event) {
//		if !e.Drift.Empty() { ... }
//	})
//
// It works with every driver. A device that reports what happens to it makes
// the map be read at once; any device has it read at an interval, since reports
// get lost and not all devices make them.
package drift

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/ocslab/ocslab/drivers/internal/notify"
	"github.com/ocslab/ocslab/ocs"
)

// DefaultEvery is how often the map is read when nothing is reported.
const DefaultEvery = 2 * time.Second

// calm is how long after a change of our own a difference in its ports is taken
// for a device that has not brought its answers up to date.
const calm = time.Second

// Switch is a switch whose Notify tells of circuits that others have changed.
// It implements [ocs.Wrapper] and [ocs.Notifier].
type Switch struct {
	ocs.Switch
	every  time.Duration
	drifts notify.Hub

	mu       sync.Mutex // held while the map is changed or looked at; guards what follows
	watchers int
	known    ocs.Map
	valid    bool                   // known is what the device held, and not before a change of unknown fate
	touched  map[ocs.Port]time.Time // by changes of our own, lately
}

var (
	_ ocs.Wrapper  = (*Switch)(nil)
	_ ocs.Notifier = (*Switch)(nil)
)

// Watch returns sw with a Notify that tells of foreign changes. Every is how
// often the map is read, 0 means DefaultEvery. What is changed through the
// returned Switch is its own; what is changed through sw directly is foreign.
func Watch(sw ocs.Switch, every time.Duration) *Switch {
	if every <= 0 {
		every = DefaultEvery
	}
	return &Switch{Switch: sw, every: every, touched: map[ocs.Port]time.Time{}}
}

// Unwrap returns the switch inside.
func (s *Switch) Unwrap() ocs.Switch { return s.Switch }

// Apply changes circuits, and knows of it when it looks for foreign changes.
func (s *Switch) Apply(ctx context.Context, c ocs.Change) (ocs.Receipt, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.Switch.Apply(ctx, c)
	if s.watchers == 0 || r.Requests == 0 {
		return r, err
	}
	now := time.Now()
	for _, m := range []ocs.Map{c.Remove, c.Add} {
		for x := range m.All() {
			s.touch(x, now)
			for _, rival := range s.known.Rivals(x) {
				s.touch(rival, now)
			}
		}
	}
	if err != nil {
		s.valid = false // it may be done in part
		return r, err
	}
	s.known = c.Over(s.known)
	return r, nil
}

func (s *Switch) touch(c ocs.CrossConnect, now time.Time) {
	s.touched[c.Ingress], s.touched[c.Egress] = now, now
}

// Notify calls f for what the device reports, as [ocs.Notifier] says, and for
// each foreign change of circuits, with Event.Drift set. It ends with ctx, when
// reports end for a reason other than that the device makes none, or when the
// map cannot be read for a minute.
func (s *Switch) Notify(ctx context.Context, f func(ocs.Event)) error {
	var calls sync.Mutex // f is called by one at a time
	tell := func(e ocs.Event) {
		calls.Lock()
		defer calls.Unlock()
		f(e)
	}
	look := make(chan struct{}, 1)
	ctx, cancel := context.WithCancelCause(ctx)
	if err := s.begin(ctx); err != nil {
		cancel(nil)
		return err
	}
	defer s.end()
	var parts sync.WaitGroup
	defer parts.Wait()
	defer cancel(nil)
	l := s.drifts.Add()
	defer s.drifts.Remove(l)
	parts.Go(func() { _ = l.Run(ctx, nil, nil, tell) }) // ends with ctx only
	if n, ok := ocs.As[ocs.Notifier](s.Switch); ok {
		parts.Go(func() {
			err := n.Notify(ctx, func(e ocs.Event) {
				tell(e)
				select {
				case look <- struct{}{}:
				default:
				}
			})
			if !errors.Is(err, ocs.ErrNotSupported) {
				cancel(err)
			}
		})
	}
	tick := time.NewTicker(s.every)
	defer tick.Stop()
	const patience = time.Minute
	for good := time.Now(); ; {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		case <-look:
		}
		event, found, err := s.look(ctx)
		switch {
		case err == nil:
			good = time.Now()
		case ctx.Err() == nil && time.Since(good) > patience:
			return err
		}
		if found {
			s.drifts.Publish(event)
		}
	}
}

// begin reads the map that later ones are compared with.
func (s *Switch) begin(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.watchers == 0 {
		m, err := s.CrossConnects(ctx)
		if err != nil {
			return err
		}
		s.known, s.valid = m, true
	}
	s.watchers++
	return nil
}

func (s *Switch) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watchers--
}

// look reads the map and returns what of it others have changed.
func (s *Switch) look(ctx context.Context) (e ocs.Event, found bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, err := s.CrossConnects(ctx)
	if err != nil {
		return e, false, err
	}
	if !s.valid { // what a change of unknown fate has left is ours, however long ago that was
		s.valid, s.known = true, s.adopt(m)
	}
	now := time.Now()
	for p, at := range s.touched {
		if now.Sub(at) > calm {
			delete(s.touched, p)
		}
	}
	drift := s.foreign(ocs.Diff(s.known, m))
	if drift.Empty() {
		return e, false, nil
	}
	s.known = drift.Over(s.known)
	return ocs.Event{Received: now, Severity: "event", Text: "circuits were changed by somebody else: " + drift.String(), Drift: drift}, true, nil
}

// adopt returns the known map with what m has at the ports that were touched.
func (s *Switch) adopt(m ocs.Map) ocs.Map {
	d := ocs.Diff(s.known, m)
	return ocs.Change{Remove: s.keep(d.Remove, true), Add: s.keep(d.Add, true)}.Over(s.known)
}

// foreign leaves out what concerns ports that we have touched lately.
func (s *Switch) foreign(d ocs.Change) ocs.Change {
	return ocs.Change{Remove: s.keep(d.Remove, false), Add: s.keep(d.Add, false)}
}

func (s *Switch) keep(m ocs.Map, touched bool) ocs.Map {
	var ccs []ocs.CrossConnect
	for c := range m.All() {
		_, a := s.touched[c.Ingress]
		_, b := s.touched[c.Egress]
		if (a || b) == touched {
			ccs = append(ccs, c)
		}
	}
	return ocs.MustMap(ccs...)
}
