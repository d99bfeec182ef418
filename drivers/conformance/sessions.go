package conformance

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/ocslab/ocslab/ocs"
)

// meddled is a session behind whose back something happens after each change.
type meddled struct {
	ocs.Switch
	after func() error
}

func (m meddled) Apply(ctx context.Context, c ocs.Change) (ocs.Receipt, error) {
	r, err := m.Switch.Apply(ctx, c)
	if err == nil {
		err = m.after()
	}
	return r, err
}

// readBack makes a circuit, has a second client remove it before the
// read-back, and wants that to be noticed. A driver that remembers what it has
// asked for instead of asking the device does not.
func (b *bench) readBack(ctx context.Context) error {
	c := b.pairs[0]
	removed := func() error {
		_, err := b.secondGate().Apply(ctx, ocs.Change{Remove: ocs.MustMap(c)})
		return err
	}
	_, err := ocs.Reconcile(ctx, meddled{b.gate(), removed}, ocs.MustMap(c), ocs.Safe)
	if !errors.Is(err, ocs.ErrVerify) {
		return fmt.Errorf("%v was removed by a second client before it was read back, which should match %q, but gives: %w", c, ocs.ErrVerify, orNone(err))
	}
	return b.expect(ctx, b.first)
}

func (b *bench) secondClientVisible(ctx context.Context) error {
	c := b.pairs[0]
	for _, g := range []gate{b.secondGate(), b.gate()} {
		other := b.first
		if g.Switch == b.first {
			other = b.second
		}
		for _, step := range []struct {
			change ocs.Change
			want   paths
		}{{ocs.Change{Add: ocs.MustMap(c)}, paths{c}}, {ocs.Change{Remove: ocs.MustMap(c)}, nil}} {
			if _, err := g.Apply(ctx, step.change); err != nil {
				return err
			}
			if err := b.expect(ctx, other, step.want...); err != nil {
				return fmt.Errorf("%v by one client, seen by another: %w", step.change, err)
			}
		}
	}
	return nil
}

// rounds is how often each of two clients changes its circuit.
const rounds = 8

// twoClients has two sessions change their own circuits at the same time.
func (b *bench) twoClients(ctx context.Context) error {
	if err := b.claim(ctx, b.first, b.ledger.ports()...); err != nil {
		return err
	}
	clients := []struct {
		gate gate
		pair ocs.CrossConnect
	}{{b.gate(), b.pairs[0]}, {b.secondGate(), b.pairs[1]}}
	b.ledger.setParallel(true)
	errs := make([]error, len(clients))
	step, over := make(chan struct{}), make(chan struct{}, len(clients))
	// meet waits for the other client, so that their requests do cross.
	meet := func() {
		select {
		case step <- struct{}{}:
		case <-step:
		case <-over: // the other one has ended
			over <- struct{}{}
		case <-ctx.Done():
		}
	}
	var wg sync.WaitGroup
	for i, k := range clients {
		wg.Go(func() {
			defer func() { over <- struct{}{} }()
			errs[i] = safely(func() error { return toggle(ctx, k.gate, k.pair, meet) })
		})
	}
	wg.Wait()
	b.ledger.setParallel(false)
	// What the first client reads may be what it remembers.
	b.ledger.unsure(ocs.MustMap(clients[0].pair, clients[1].pair))
	if err := errors.Join(errs...); err != nil {
		return err
	}
	m, err := b.first.CrossConnects(ctx)
	if err == nil {
		err = b.observe(m)
	}
	if err != nil {
		return err
	}
	for i, sw := range []ocs.Switch{b.first, b.second} {
		if err := b.expect(ctx, sw, clients[0].pair, clients[1].pair); err != nil {
			return fmt.Errorf("after two clients made %v and %v at the same time, client %d: %w", clients[0].pair, clients[1].pair, i+1, err)
		}
	}
	return nil
}

// toggle makes and removes a circuit again and again, leaves it made, and
// wants to see each step, before which it calls meet.
func toggle(ctx context.Context, g gate, c ocs.CrossConnect, meet func()) error {
	for round := range 2*rounds + 1 {
		change := ocs.Change{Add: ocs.MustMap(c)}
		if round%2 == 1 {
			change = change.Inverse()
		}
		meet()
		if _, err := g.Apply(ctx, change); err != nil {
			return fmt.Errorf("step %d, %v, while another client changes circuits: %w", round+1, change, err)
		}
		m, err := g.CrossConnects(ctx)
		if err != nil {
			return err
		}
		if m.Has(c) != (round%2 == 0) {
			return fmt.Errorf("step %d, %v, while another client changes circuits: %s reads back", round+1, change, orNothing(m))
		}
	}
	return nil
}

// errGiveUp is why the calls of the cancel check are given up.
var errGiveUp = errors.New("the suite gives this call up")

// prompt is how soon a call that is cancelled has to return.
const prompt = 2 * time.Second

// givenUp calls f with a context that ends after d, and judges how it returns.
// It may have taken effect all the same, and it may be done before.
func givenUp(ctx context.Context, d time.Duration, what string, f func(ctx context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if d == 0 {
		cancel(errGiveUp)
	} else {
		defer time.AfterFunc(d, func() { cancel(errGiveUp) }).Stop()
	}
	began := time.Now()
	err := f(ctx)
	took := time.Since(began)
	switch {
	case took > d+prompt:
		return fmt.Errorf("%s, given up after %v, returned only after %v", what, d, short(took))
	case err != nil && ctx.Err() != nil && !errors.Is(err, errGiveUp):
		return fmt.Errorf("%s, given up after %v, does not match context.Cause: %w", what, d, err)
	case err != nil && ctx.Err() == nil:
		return err
	}
	return nil
}

// cancelledCall gives calls up at various moments. The next call has to work,
// and to get its own reply: the circuit is there and not there by turns, so
// that an old reply shows.
func (b *bench) cancelledCall(ctx context.Context) error {
	c := b.pairs[0]
	there := false
	for _, d := range []time.Duration{0, 50 * time.Microsecond, 200 * time.Microsecond, time.Millisecond, 5 * time.Millisecond} {
		err := givenUp(ctx, d, "reading the map", func(ctx context.Context) error {
			_, err := b.first.CrossConnects(ctx)
			return err
		})
		if err != nil {
			return err
		}
		change, want := ocs.Change{Add: ocs.MustMap(c)}, paths{c}
		if there {
			change, want = change.Inverse(), nil
		}
		if there = !there; b.second == nil {
			_, err = b.gate().Apply(ctx, change)
		} else { // so that the first session asks next for what the old reply would be to
			_, err = b.secondGate().Apply(ctx, change)
		}
		if err != nil {
			return fmt.Errorf("after a call was given up: %w", err)
		}
		if err := b.expect(ctx, b.first, want...); err != nil {
			return fmt.Errorf("the call after one that was given up after %v: %w", d, err)
		}
	}
	for _, d := range []time.Duration{0, time.Millisecond, 5 * time.Millisecond} {
		change := ocs.Change{Add: ocs.MustMap(c)}
		if there {
			change = change.Inverse()
		}
		err := givenUp(ctx, d, "a change", func(ctx context.Context) error {
			// Claimed with a context that goes on, so that it is the change
			// that is given up.
			_, err := lateGate{b.gate()}.Apply(ctx, change)
			return err
		})
		if err != nil {
			return err
		}
		m, err := b.first.CrossConnects(ctx)
		if err != nil {
			return fmt.Errorf("the call after a change that was given up after %v: %w", d, err)
		}
		// Whatever became of it, the session does as it is told.
		if _, err := b.gate().Apply(ctx, ocs.Diff(b.ledger.ours(m), ocs.MustMap(c))); err != nil {
			return fmt.Errorf("the change after one that was given up after %v: %w", d, err)
		}
		if err := b.expect(ctx, b.first, c); err != nil {
			return fmt.Errorf("the change after one that was given up after %v: %w", d, err)
		}
		there = true
	}
	return nil
}

// lateGate is a gate whose looking around is not given up with the change.
type lateGate struct{ gate }

func (g lateGate) Apply(ctx context.Context, c ocs.Change) (ocs.Receipt, error) {
	g.Switch = onlyApply{g.Switch, ctx}
	return g.gate.Apply(context.WithoutCancel(ctx), c)
}

// onlyApply applies with a context of its own.
type onlyApply struct {
	ocs.Switch
	ctx context.Context
}

func (s onlyApply) Apply(_ context.Context, c ocs.Change) (ocs.Receipt, error) {
	return s.Switch.Apply(s.ctx, c)
}

func (b *bench) closeReopen(ctx context.Context) error {
	c := b.pairs[0]
	if err := b.connect(ctx, c); err != nil {
		return err
	}
	old := b.first
	b.first = nil
	if err := old.Close(); err != nil {
		return fmt.Errorf("close: %w", err)
	}
	if err := old.Close(); err != nil {
		return fmt.Errorf("the second close: %w", err)
	}
	if _, err := old.CrossConnects(ctx); !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("reading a closed session should match %q, but gives: %w", net.ErrClosed, orNone(err))
	}
	if err := b.reopen(ctx); err != nil {
		return fmt.Errorf("opening again: %w", err)
	}
	if err := b.expect(ctx, b.first, c); err != nil {
		return fmt.Errorf("over a new session: %w", err)
	}
	return nil
}
