package ocs

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// WithReady returns a context with which a [Switch.Apply] asks ready before it moves any
// light, so that changes of several switches take effect together: see [Rendezvous]. It
// passes through whatever is wrapped around the Switch, as a trace of package
// net/http/httptrace does.
//
// A driver that can prepare a change without effect does so first: ocstrx arms its modules,
// also for a change that it would commit at once otherwise, and disarms them when ready
// returns an error. Drivers of matrices (TL1, SCPI, NETCONF) call it right before their first
// command, after all that they check themselves. With an error nothing is switched, and Apply
// returns an error that matches it. A driver that has nothing to switch does not call ready.
//
// Ready is called at most once: what it returned holds for all that is done with the context.
// Its own context ends when what is prepared is about to be lost. It must not use the Switch.
func WithReady(ctx context.Context, ready func(context.Context) error) context.Context {
	return context.WithValue(ctx, readyKey{}, &readiness{ask: ready})
}

type readyKey struct{}

// readiness is a question that is asked once.
type readiness struct {
	ask  func(context.Context) error
	once sync.Once
	err  error
}

// errNotAsked is the answer of a question that has panicked.
var errNotAsked = errors.New("nobody said whether the others are ready")

// Waits reports whether somebody has to be asked before light is moved: see [WithReady].
func Waits(ctx context.Context) bool {
	_, waits := ctx.Value(readyKey{}).(*readiness)
	return waits
}

// Ready is what a driver calls when a change is prepared and nothing of it has taken effect.
// It returns nil at once if nobody is to be asked.
func Ready(ctx context.Context) error {
	r, waits := ctx.Value(readyKey{}).(*readiness)
	if !waits {
		return nil
	}
	r.once.Do(func() {
		r.err = errNotAsked
		r.err = r.ask(ctx)
	})
	return r.err
}

// ErrPartner is that another party of a [Rendezvous] has failed, so that nothing was switched.
var ErrPartner = errors.New("nothing was switched, because another switch that was to change together with this one has failed")

// Rendezvous has n changes wait for each other, each prepared, before any of them takes
// effect: all of them do, or none. Make it with [NewRendezvous]; it is for one use, and safe
// for concurrent use.
//
//	both := ocs.NewRendezvous(2)
//	go func() { errs <- both.Do(ctx, func(ctx context.Context) error { _, err := a.Apply(ctx, x); return err }) }()
//	go func() { errs <- both.Do(ctx, func(ctx context.Context) error { _, err := b.Apply(ctx, y); return err }) }()
//
// The parties must be changes of different switches: one switch makes its changes one after
// another, and would wait for itself.
type Rendezvous struct {
	decided chan struct{} // closed when all are ready, or one has failed

	mu      sync.Mutex // guards what follows
	missing int
	err     error // why it was called off
}

// NewRendezvous returns a rendezvous of n parties.
func NewRendezvous(n int) *Rendezvous {
	r := &Rendezvous{decided: make(chan struct{}), missing: n}
	if n <= 0 {
		close(r.decided)
	}
	return r
}

// Do is one party: it calls change, which makes its change with the context that it is given.
// A party that ends with an error before all are ready calls it off: the others get an error
// that matches both [ErrPartner] and that one, and switch nothing. One that ends well without
// having been asked had nothing to switch, and counts as ready. A party more than there is
// room for joins what has been decided.
func (r *Rendezvous) Do(ctx context.Context, change func(context.Context) error) error {
	came, err := false, errPanic
	defer func() {
		switch {
		case err != nil:
			r.callOff(err)
		case !came:
			r.arrive()
		}
	}()
	err = change(WithReady(ctx, func(ctx context.Context) error {
		came = true
		return r.wait(ctx)
	}))
	return err
}

// errPanic is a party that has not come to its end.
var errPanic = errors.New("panic")

// wait is a party that is ready and waits for the others.
func (r *Rendezvous) wait(ctx context.Context) error {
	r.arrive()
	select {
	case <-r.decided:
	case <-ctx.Done():
		if err := context.Cause(ctx); r.callOff(err) {
			return fmt.Errorf("waiting for the switches that are to change together with this one: %w", err)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil {
		return nil // also when ctx has ended in the moment in which the last one came
	}
	return fmt.Errorf("%w: %w", ErrPartner, r.err)
}

// arrive counts a party that is ready.
func (r *Rendezvous) arrive() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open() {
		if r.missing--; r.missing == 0 {
			close(r.decided)
		}
	}
}

// callOff ends the rendezvous, and reports false if it was decided before.
func (r *Rendezvous) callOff(err error) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.open() {
		return false
	}
	r.err = err
	close(r.decided)
	return true
}

// open reports whether nothing is decided; mu is held.
func (r *Rendezvous) open() bool {
	select {
	case <-r.decided:
		return false
	default:
		return true
	}
}
