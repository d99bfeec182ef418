package ocs_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/ocs/ocstest"
)

var (
	errNotNow = errors.New("not now")
	errOdd    = errors.New("odd")
)

// The question is asked once, before anything is done, and its answer holds.
func TestWithReady(t *testing.T) {
	ctx := t.Context()
	if ocs.Waits(ctx) || ocs.Ready(ctx) != nil {
		t.Error("somebody is asked who is not there")
	}
	for _, answer := range []error{nil, errNotNow} {
		asked := 0
		ctx := ocs.WithReady(ctx, func(context.Context) error { asked++; return answer })
		in := ocstest.New(2, ocs.Map{})
		sw := wrapped{in}
		for range 2 {
			if _, err := sw.Apply(ctx, ocs.Change{Add: ocs.MustMap(ocs.CrossConnect{Ingress: 1, Egress: 3})}); !errors.Is(err, answer) {
				t.Errorf("got %v, want %v", err, answer)
			}
		}
		if done := len(in.Applied()); asked != 1 || (done > 0) != (answer == nil) {
			t.Errorf("%v: asked %d times, %d changes done", answer, asked, done)
		}
	}
	ctx = ocs.WithReady(ctx, func(context.Context) error { panic("odd") })
	func() {
		defer func() { _ = recover() }()
		_ = ocs.Ready(ctx)
	}()
	if ocs.Ready(ctx) == nil {
		t.Error("who panicked counts as ready")
	}
}

// party is what one party of a rendezvous does.
type party struct {
	before time.Duration // how long it prepares
	fails  error         // before it is ready
	idle   bool          // it has nothing to switch
	limit  time.Duration // how long it can wait; 0: for ever
}

func (p party) run(r *ocs.Rendezvous, ctx context.Context, switched *atomic.Int32) error {
	return r.Do(ctx, func(ctx context.Context) error {
		time.Sleep(p.before)
		if p.fails != nil || p.idle {
			return p.fails
		}
		if p.limit > 0 {
			var end context.CancelFunc
			ctx, end = context.WithTimeout(ctx, p.limit)
			defer end()
		}
		if err := ocs.Ready(ctx); err != nil {
			return err
		}
		switched.Add(1)
		return nil
	})
}

func TestRendezvous(t *testing.T) {
	for name, c := range map[string]struct {
		parties  []party
		switched int32
		want     []error // of each, nil if there is none
		took     time.Duration
	}{
		"all":     {parties: []party{{before: 1}, {before: time.Second}, {}}, switched: 3, want: []error{nil, nil, nil}, took: time.Second},
		"one":     {parties: []party{{}}, switched: 1, want: []error{nil}},
		"none":    {},
		"nothing": {parties: []party{{}, {before: time.Second, idle: true}}, switched: 1, want: []error{nil, nil}, took: time.Second},
		"fails": {
			parties: []party{{}, {before: time.Second, fails: errNotNow}, {before: 2 * time.Second}},
			want:    []error{errNotNow, errNotNow, errNotNow}, took: 2 * time.Second,
		},
		"late": {
			parties: []party{{limit: time.Second}, {before: 3 * time.Second}},
			want:    []error{context.DeadlineExceeded, context.DeadlineExceeded}, took: 3 * time.Second,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := ocs.NewRendezvous(len(c.parties))
				errs := make([]error, len(c.parties))
				var switched atomic.Int32
				var all sync.WaitGroup
				begun := time.Now()
				for i, p := range c.parties {
					all.Go(func() { errs[i] = p.run(r, t.Context(), &switched) })
				}
				all.Wait()
				if n := switched.Load(); n != c.switched {
					t.Errorf("%d have switched, want %d", n, c.switched)
				}
				for i, want := range c.want {
					if !errors.Is(errs[i], want) {
						t.Errorf("party %d: %v, want %v", i, errs[i], want)
					}
					if partner := want != nil && c.parties[i].fails == nil; errors.Is(errs[i], ocs.ErrPartner) != partner && c.parties[i].limit == 0 {
						t.Errorf("party %d: %v, another one is to blame: %v", i, errs[i], partner)
					}
				}
				if d := time.Since(begun); d < c.took || d > c.took+time.Millisecond {
					t.Errorf("took %v, want %v", d, c.took)
				}
			})
		})
	}
}

// A party that panics calls it off for the others.
func TestRendezvousPanic(t *testing.T) {
	r := ocs.NewRendezvous(2)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic is lost")
			}
		}()
		_ = r.Do(t.Context(), func(context.Context) error { panic(errOdd) })
	}()
	if err := r.Do(t.Context(), ocs.Ready); !errors.Is(err, ocs.ErrPartner) {
		t.Errorf("the other one: %v", err)
	}
}

// What is decided stays: who fails afterwards takes nobody along, and who comes too late joins.
func TestRendezvousDecided(t *testing.T) {
	r := ocs.NewRendezvous(1)
	if err := r.Do(t.Context(), func(ctx context.Context) error { return errors.Join(ocs.Ready(ctx), errOdd) }); !errors.Is(err, errOdd) {
		t.Error(err)
	}
	if err := r.Do(t.Context(), ocs.Ready); err != nil {
		t.Error(err)
	}
}

// However parties end, all of them switch or none does.
func TestRendezvousAllOrNone(t *testing.T) {
	for range 200 {
		const n = 5
		ctx, cancel := context.WithCancel(t.Context())
		r := ocs.NewRendezvous(n)
		var switched atomic.Int32
		var all sync.WaitGroup
		for range n {
			all.Go(func() { _ = party{}.run(r, ctx, &switched) })
		}
		all.Go(cancel)
		all.Wait()
		if got := switched.Load(); got != 0 && got != n {
			t.Fatalf("%d of %d have switched", got, n)
		}
	}
}
