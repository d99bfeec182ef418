package drift_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/drivers/drift"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/ocs/ocstest"
)

func m(t testing.TB, s string) ocs.Map {
	t.Helper()
	v, err := ocs.ParseMap(s)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// heard collects events.
type heard struct {
	mu     sync.Mutex
	events []ocs.Event
}

func (h *heard) add(e ocs.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, e)
}

// take returns the drifts so far and the texts of the other events.
func (h *heard) take() (drifts, others []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, e := range h.events {
		if e.Drift.Empty() {
			others = append(others, e.Text)
		} else {
			drifts = append(drifts, e.Drift.String())
		}
	}
	h.events = nil
	return drifts, others
}

// listen runs Notify until the returned function is called, which returns what
// Notify returned.
func listen(t testing.TB, sw *drift.Switch) (*heard, func() error) {
	t.Helper()
	h := &heard{}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- sw.Notify(ctx, h.add) }()
	synctest.Wait()
	return h, func() error { cancel(); return <-ended }
}

func want(t *testing.T, h *heard, drifts ...string) {
	t.Helper()
	if got, _ := h.take(); !slices.Equal(got, drifts) {
		t.Errorf("drifts %q, want %q", got, drifts)
	}
}

// Ensure that what others change is told, and what goes through the switch is
// not, on a device that reports nothing.
func TestForeign(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := ocstest.New(8, m(t, "1>9,2>10"))
		sw := drift.Watch(inner, 0)
		h, stop := listen(t, sw)
		inner.Set(m(t, "1>9,3>11"))
		time.Sleep(drift.DefaultEvery)
		synctest.Wait()
		want(t, h, "- 2>10 + 3>11")

		if _, err := sw.Apply(t.Context(), ocs.Change{Add: m(t, "4>9")}); err != nil { // takes over 1>9
			t.Fatal(err)
		}
		time.Sleep(2 * drift.DefaultEvery)
		synctest.Wait()
		want(t, h)

		inner.Set(m(t, "3>11"))
		time.Sleep(drift.DefaultEvery)
		synctest.Wait()
		want(t, h, "- 4>9")
		if err := stop(); !errors.Is(err, context.Canceled) {
			t.Errorf("Notify returned %v", err)
		}
	})
}

// Ensure that every listener hears of a drift, and once.
func TestTwoListeners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := ocstest.New(8, ocs.Map{})
		sw := drift.Watch(inner, time.Second)
		a, stopA := listen(t, sw)
		b, stopB := listen(t, sw)
		inner.Set(m(t, "1>9"))
		time.Sleep(5 * time.Second)
		synctest.Wait()
		want(t, a, "+ 1>9")
		want(t, b, "+ 1>9")
		_, _ = stopA(), stopB()
	})
}

// lagging shows a change only some time after it was made.
type lagging struct {
	*ocstest.Switch
	mu    sync.Mutex
	since time.Time
	old   ocs.Map
}

func (l *lagging) Apply(ctx context.Context, c ocs.Change) (ocs.Receipt, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.old, _ = l.Switch.CrossConnects(ctx)
	l.since = time.Now()
	return l.Switch.Apply(ctx, c)
}

func (l *lagging) CrossConnects(ctx context.Context) (ocs.Map, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.since.IsZero() && time.Since(l.since) < 500*time.Millisecond {
		return l.old, nil
	}
	return l.Switch.CrossConnects(ctx)
}

// Ensure that a device that is slow to show our own change is not taken for
// somebody else.
func TestLag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw := drift.Watch(&lagging{Switch: ocstest.New(8, ocs.Map{})}, 100*time.Millisecond)
		h, stop := listen(t, sw)
		if _, err := sw.Apply(t.Context(), ocs.Change{Add: m(t, "1>9")}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		want(t, h)
		_ = stop()
	})
}

// Ensure that what a change of unknown fate has left is ours, and what others
// did meanwhile at other ports is not.
func TestUnknownFate(t *testing.T) {
	for _, every := range []time.Duration{100 * time.Millisecond, time.Second, drift.DefaultEvery} {
		synctest.Test(t, func(t *testing.T) {
			inner := ocstest.New(8, m(t, "1>9"))
			lost := errors.New("no reply")
			inner.OnApply = func(c ocs.Change) (ocs.Change, error) { return ocs.Change{Remove: c.Remove}, lost }
			sw := drift.Watch(inner, every)
			h, stop := listen(t, sw)
			if _, err := sw.Apply(t.Context(), ocs.Change{Remove: m(t, "1>9"), Add: m(t, "1>10")}); !errors.Is(err, lost) {
				t.Fatal(err)
			}
			inner.Set(m(t, "1>10,5>13")) // it was done after all
			time.Sleep(5 * time.Second)
			synctest.Wait()
			want(t, h, "+ 5>13")
			_ = stop()
		})
	}
}

// reporter is a device that reports.
type reporter struct {
	*ocstest.Switch
	events chan ocs.Event
	fail   chan error
}

func (r *reporter) Notify(ctx context.Context, f func(ocs.Event)) error {
	for {
		select {
		case e := <-r.events:
			f(e)
		case err := <-r.fail:
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Ensure that a report makes the map be read at once, that reports are passed
// on, and that their end is the end.
func TestReports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := &reporter{ocstest.New(8, ocs.Map{}), make(chan ocs.Event), make(chan error)}
		sw := drift.Watch(inner, time.Hour)
		h, stop := listen(t, sw)
		inner.Set(m(t, "1>9"))
		inner.events <- ocs.Event{Text: "something happened"}
		synctest.Wait()
		drifts, others := h.take()
		if !slices.Equal(drifts, []string{"+ 1>9"}) || !slices.Equal(others, []string{"something happened"}) {
			t.Errorf("got %q, %q", drifts, others)
		}
		inner.fail <- ocs.ErrNotSupported // goes on without
		synctest.Wait()
		inner.Set(ocs.Map{})
		time.Sleep(time.Hour)
		synctest.Wait()
		want(t, h, "- 1>9")
		_ = stop()
	})
	synctest.Test(t, func(t *testing.T) {
		inner := &reporter{ocstest.New(8, ocs.Map{}), make(chan ocs.Event), make(chan error)}
		_, stop := listen(t, drift.Watch(inner, time.Hour))
		gone := errors.New("the session broke")
		inner.fail <- gone
		synctest.Wait()
		if err := stop(); !errors.Is(err, gone) {
			t.Errorf("Notify returned %v", err)
		}
	})
}

// Ensure that a device that cannot be read for long is an error, and for a
// moment is not.
func TestUnreadable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var broken error
		inner := ocstest.New(8, ocs.Map{})
		inner.OnRead = func() error { mu.Lock(); defer mu.Unlock(); return broken }
		set := func(err error) { mu.Lock(); defer mu.Unlock(); broken = err }
		sw := drift.Watch(inner, time.Second)
		h, stop := listen(t, sw)
		set(errors.New("busy"))
		time.Sleep(30 * time.Second)
		set(nil)
		inner.Set(m(t, "1>9"))
		time.Sleep(2 * time.Second)
		synctest.Wait()
		want(t, h, "+ 1>9")
		gone := errors.New("gone")
		set(gone)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if err := stop(); !errors.Is(err, gone) {
			t.Errorf("Notify returned %v", err)
		}
		set(gone)
		if err := sw.Notify(t.Context(), h.add); !errors.Is(err, gone) {
			t.Errorf("a second Notify returned %v", err)
		}
	})
}

// Ensure that whatever we and others do in turn, the drifts add up to what the
// others did.
func TestProperty(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		type step struct {
			Ours    bool
			In, Out uint8
		}
		steps := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) step {
			return step{rapid.Bool().Draw(t, "ours"), rapid.Uint8Range(1, 4).Draw(t, "in"), rapid.Uint8Range(9, 12).Draw(t, "out")}
		}), 1, 20).Draw(rt, "steps")
		synctest.Test(t, func(t *testing.T) {
			inner := ocstest.New(8, ocs.Map{})
			sw := drift.Watch(inner, time.Second)
			h, stop := listen(t, sw)
			var foreign []string
			for _, s := range steps {
				c := ocs.Change{Add: ocs.MustMap(ocs.CrossConnect{Ingress: ocs.Port(s.In), Egress: ocs.Port(s.Out)})}
				before, _ := inner.CrossConnects(t.Context())
				var sw1 ocs.Switch = inner
				if s.Ours {
					sw1 = sw
				}
				if _, err := sw1.Apply(t.Context(), c); err != nil {
					rt.Fatal(err)
				}
				if now, _ := inner.CrossConnects(t.Context()); !s.Ours && !now.Equal(before) {
					foreign = append(foreign, ocs.Diff(before, now).String())
				}
				time.Sleep(3 * time.Second)
				synctest.Wait()
			}
			if drifts, _ := h.take(); !slices.Equal(drifts, foreign) {
				rt.Fatalf("drifts %q, want %q", drifts, foreign)
			}
			_ = stop()
		})
	})
}
