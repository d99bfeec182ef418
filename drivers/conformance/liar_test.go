package conformance_test

import (
	"context"
	"errors"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ocslab/ocslab/drivers/conformance"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/ocs/ocstest"
)

// memory is a device in memory with labels and shutters.
type memory struct {
	*ocstest.Switch
	others ocs.Map

	mu     sync.Mutex // guards what follows
	labels map[ocs.Port]string
	closed map[ocs.Port]bool
	count  int // calls that a lie counts
}

// lie is how a device, or its driver, does not do what it says. Each is asked
// before the honest thing is done.
type lie struct {
	apply   func(c *client, change ocs.Change) (ocs.Change, error) // what is done instead; with an error, before it
	read    func(ctx context.Context, c *client, m ocs.Map) (ocs.Map, error)
	label   func(text string) string
	shutter func(c *client, closed bool, ports []ocs.Port) bool // done
	close   func(c *client) bool                                // done
	bad     bool                                                // accepts ports that are not there
}

// session is what sessions have in common: an end.
type session struct{ ended atomic.Bool }

// usable returns why a call of a session cannot be done, if it cannot.
func (s *session) usable(ctx context.Context) error {
	if s.ended.Load() {
		return net.ErrClosed
	}
	return context.Cause(ctx)
}

// client is one session.
type client struct {
	*memory
	session
	lie    lie
	broken bool
	last   ocs.Map
}

var (
	_ ocs.Switch  = (*client)(nil)
	_ ocs.Labeler = (*client)(nil)
	_ ocs.Shutter = (*client)(nil)
)

func (c *client) CrossConnects(ctx context.Context) (ocs.Map, error) {
	if c.lie.read == nil {
		if err := c.usable(ctx); err != nil {
			return ocs.Map{}, err
		}
	}
	m, err := c.Switch.CrossConnects(context.Background())
	if err == nil && c.lie.read != nil {
		m, err = c.lie.read(ctx, c, m)
	}
	return m, err
}

func (c *client) Apply(ctx context.Context, change ocs.Change) (ocs.Receipt, error) {
	if err := c.usable(ctx); err != nil {
		return ocs.Receipt{}, err
	}
	if slices.ContainsFunc(change.Ports(), func(p ocs.Port) bool { return !c.Switch.Identity.Geometry.Has(p) }) && !c.lie.bad {
		return ocs.Receipt{Requests: 1}, &ocs.OpError{Op: "change circuits", Device: "memory", Err: ocs.ErrDenied}
	}
	if c.lie.apply != nil {
		var err error
		if change, err = c.lie.apply(c, change); err != nil {
			_, _ = c.Switch.Apply(ctx, change)
			return ocs.Receipt{Requests: 1}, err
		}
	}
	r, err := c.Switch.Apply(ctx, change)
	r.Requests = 1
	return r, err
}

func (c *client) Close() error {
	if c.lie.close == nil || !c.lie.close(c) {
		c.ended.Store(true)
	}
	return nil
}

func (c *client) Labels(_ context.Context, ports ...ocs.Port) (map[ocs.Port]string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.labels), nil
}

func (c *client) SetLabel(_ context.Context, p ocs.Port, text string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lie.label != nil {
		text = c.lie.label(text)
	}
	c.labels[p] = text
	if text == "" {
		delete(c.labels, p)
	}
	return nil
}

func (c *client) Shutters(_ context.Context, ports ...ocs.Port) (map[ocs.Port]bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.closed), nil
}

func (c *client) SetShutters(_ context.Context, closed bool, ports ...ocs.Port) error {
	if c.lie.shutter != nil && c.lie.shutter(c, closed, ports) {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range ports {
		c.closed[p] = closed
	}
	return nil
}

// nth reports whether this is call n of all sessions, from 1.
func (c *client) nth(n int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count++
	return c.count == n
}

// first returns the first of the circuits of m alone.
func first(m ocs.Map) ocs.Map { return m.Minus(ocs.MustMap(m.Slice()[1:]...)) }

var errSlow = errors.New("slow")

// updates lets changes of two clients meet.
type updates struct {
	mu     sync.Mutex
	latest [2]*client // who made the last two
	meet   chan struct{}
}

// wait waits for the other client, for a while, and reports whether it came.
func (u *updates) wait() bool {
	select {
	case u.meet <- struct{}{}:
	case <-u.meet:
	case <-time.After(100 * time.Millisecond):
		return false
	}
	return true
}

// byAnother reports whether one of the last two changes was another client's.
func (u *updates) byAnother(c *client) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	was := u.latest
	u.latest = [2]*client{c, was[0]}
	return was[1] != nil && (was[0] != c || was[1] != c)
}

// Ensure that a suite run against a device or driver that lies fails in the
// check that is meant to find it, and leaves the device as it was.
func TestLiars(t *testing.T) {
	updates := &updates{meet: make(chan struct{})}
	t.Parallel()
	others := ocs.MustMap(ocs.CrossConnect{Ingress: 1, Egress: 18}, ocs.CrossConnect{Ingress: 2, Egress: 17})
	for name, tc := range map[string]struct {
		lie  lie
		want string // "" is an honest one
		left string // in NotRestored
		all  bool   // AllPorts
	}{
		"honest":       {},
		"does nothing": {lie: lie{apply: func(*client, ocs.Change) (ocs.Change, error) { return ocs.Change{}, nil }}, want: "free-pairs"},
		"makes another circuit": {lie: lie{apply: func(_ *client, c ocs.Change) (ocs.Change, error) {
			if c.Add.Has(ocs.CrossConnect{Ingress: 16, Egress: 32}) {
				c.Add = ocs.MustMap(ocs.CrossConnect{Ingress: 16, Egress: 30})
			}
			return c, nil
		}}, want: "free-pairs", left: "16>30 appeared"},
		"makes another circuit on a device that is ours": {lie: lie{apply: func(_ *client, c ocs.Change) (ocs.Change, error) {
			if c.Add.Has(ocs.CrossConnect{Ingress: 16, Egress: 32}) {
				c.Add = ocs.MustMap(ocs.CrossConnect{Ingress: 16, Egress: 30})
			}
			return c, nil
		}}, want: "free-pairs", all: true},
		"makes a circuit at a port of nobody": {lie: lie{apply: func(_ *client, c ocs.Change) (ocs.Change, error) {
			if c.Add.Has(ocs.CrossConnect{Ingress: 16, Egress: 32}) {
				c.Add = ocs.MustMap(ocs.CrossConnect{Ingress: 16, Egress: 19})
			}
			return c, nil
		}}, want: "free-pairs", left: "16>19 appeared"},
		"drops others": {lie: lie{apply: func(c *client, change ocs.Change) (ocs.Change, error) {
			if c.nth(20) {
				change.Remove = ocs.MustMap(append(change.Remove.Slice(), ocs.CrossConnect{Ingress: 1, Egress: 18})...)
			}
			return change, nil
		}}, want: "restored", left: "1>18 vanished"},
		"half of a bulk": {lie: lie{apply: func(_ *client, c ocs.Change) (ocs.Change, error) {
			if c.Add.Len() > 1 {
				c.Add = first(c.Add)
			}
			return c, nil
		}}, want: "bulk"},
		"half of a bulk removal": {lie: lie{apply: func(_ *client, c ocs.Change) (ocs.Change, error) {
			if c.Remove.Len() > 1 && c.Add.Len() == 0 {
				c.Remove = first(c.Remove)
			}
			return c, nil
		}}, want: "bulk"},
		"ignores a removal": {lie: lie{apply: func(c *client, change ocs.Change) (ocs.Change, error) {
			if change.Remove.Len() > 0 && c.nth(1) {
				change.Remove = ocs.Map{}
			}
			return change, nil
		}}, want: "free-pairs"},
		"removes bystanders": {lie: lie{apply: func(c *client, change ocs.Change) (ocs.Change, error) {
			if change.Remove.Len() == 2 && change.Add.Len() == 1 {
				m, _ := c.Switch.CrossConnects(context.Background())
				change.Remove = m.Minus(c.others)
			}
			return change, nil
		}}, want: "busy-update"},
		"accepts a port that is not there": {lie: lie{bad: true, apply: func(c *client, change ocs.Change) (ocs.Change, error) {
			if slices.Contains(change.Ports(), ocs.MaxPort) {
				return ocs.Change{}, nil
			}
			return change, nil
		}}, want: "bad-port-apply"},
		"refuses a busy port but takes it": {lie: lie{apply: func(c *client, change ocs.Change) (ocs.Change, error) {
			m, _ := c.Switch.CrossConnects(context.Background())
			for a := range change.Add.All() {
				if rivals := m.Minus(change.Remove).Rivals(a); len(rivals) > 0 {
					return change, &ocs.ConflictError{Want: a, Have: rivals[0]}
				}
			}
			return change, nil
		}}, want: "busy-apply"},
		"remembers instead of asking": {lie: lie{
			apply: func(c *client, change ocs.Change) (ocs.Change, error) {
				m, _ := c.Switch.CrossConnects(context.Background())
				if after, err := change.ApplyTo(m); err == nil {
					c.last, c.broken = after, true
				}
				return change, nil
			},
			read: func(ctx context.Context, c *client, m ocs.Map) (ocs.Map, error) {
				if c.broken {
					m = c.last
				}
				return m, c.usable(ctx)
			}}, want: "read-back"},
		"shows others' changes late": {lie: lie{read: func(ctx context.Context, c *client, m ocs.Map) (ocs.Map, error) {
			c.mu.Lock()
			defer c.mu.Unlock()
			was := c.last
			c.last = m
			if was.Len() == 0 {
				was = m
			}
			return was, c.usable(ctx)
		}}, want: "second-client-visible"},
		"loses updates of two clients": {lie: lie{apply: func(c *client, change ocs.Change) (ocs.Change, error) {
			m, _ := c.Switch.CrossConnects(context.Background())
			met := updates.byAnother(c) && updates.wait() // both have read before either writes
			after, err := change.ApplyTo(m)
			if err == nil {
				c.Set(after)
				change = ocs.Change{}
			}
			if met {
				updates.wait() // both have written before either reads back
			}
			return change, nil
		}}, want: "two-clients"},
		"map outside the device": {lie: lie{read: func(ctx context.Context, c *client, m ocs.Map) (ocs.Map, error) {
			m, _ = m.Plus(ocs.MustMap(ocs.CrossConnect{Ingress: 3, Egress: 99}))
			return m, c.usable(ctx)
		}}, want: "read-map"},
		"reads what it cannot": {lie: lie{read: func(context.Context, *client, ocs.Map) (ocs.Map, error) {
			return ocs.Map{}, &ocs.OpError{Op: "read", Device: "memory", Err: ocs.ErrDenied}
		}}, want: "read-map"},
		"cancelled late": {lie: lie{read: func(ctx context.Context, c *client, m ocs.Map) (ocs.Map, error) {
			if ctx.Err() != nil {
				time.Sleep(2200 * time.Millisecond)
			}
			return m, c.usable(ctx)
		}}, want: "cancel"},
		"cancelled without the cause": {lie: lie{read: func(ctx context.Context, c *client, m ocs.Map) (ocs.Map, error) {
			if ctx.Err() != nil {
				return m, errSlow
			}
			return m, c.usable(ctx)
		}}, want: "cancel"},
		"stale reply after a cancel": {lie: lie{read: func(ctx context.Context, c *client, m ocs.Map) (ocs.Map, error) {
			if ctx.Err() != nil {
				c.last, c.broken = m, true
			} else if c.broken {
				c.broken = false
				return c.last, nil
			}
			return m, c.usable(ctx)
		}}, want: "cancel"},
		"useless after a cancel": {lie: lie{read: func(ctx context.Context, c *client, m ocs.Map) (ocs.Map, error) {
			c.broken = c.broken || ctx.Err() != nil
			if c.broken && ctx.Err() == nil {
				return m, errSlow
			}
			return m, c.usable(ctx)
		}}, want: "cancel"},
		"answers though closed": {lie: lie{close: func(*client) bool { return true }}, want: "close-reopen"},
		"forgets on close": {lie: lie{close: func(c *client) bool {
			c.Set(c.others)
			return false
		}}, want: "close-reopen"},
		"cuts labels":    {lie: lie{label: func(s string) string { return s[:min(len(s), 20)] }}, want: "label-length"},
		"changes labels": {lie: lie{label: func(s string) string { return strings.ReplaceAll(s, `"`, `'`) }}, want: "label-text"},
		"keeps no labels": {lie: lie{label: func(s string) string {
			if strings.HasPrefix(s, "conf") {
				return ""
			}
			return s
		}}, want: "label"},
		"shutter moves the map": {lie: lie{shutter: func(c *client, closed bool, ports []ocs.Port) bool {
			c.Set(c.others)
			return false
		}}, want: "shutter"},
		"shutter stays open":    {lie: lie{shutter: func(_ *client, closed bool, _ []ocs.Port) bool { return closed }}, want: "shutter"},
		"panics in a change":    {lie: lie{apply: panicsAt(12)}, want: "move-ingress"},
		"panics in the restore": {lie: lie{apply: panicsAt(2)}, want: "free-pairs"},
		"panics in each change": {lie: lie{apply: func(*client, ocs.Change) (ocs.Change, error) { panic("boom") }}, want: "free-pairs"},
		"panics in the last call": {lie: lie{close: func(c *client) bool {
			c.ended.Store(true)
			panic("boom")
		}}, want: "close-reopen"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := &memory{Switch: ocstest.New(16, others), others: others, labels: map[ocs.Port]string{16: "kept", 1: "of others"}, closed: map[ocs.Port]bool{}}
			for _, p := range d.Switch.Identity.Geometry.Ports() {
				d.closed[p] = p == 15
			}
			labels, closed := maps.Clone(d.labels), maps.Clone(d.closed)
			r, err := conformance.Run(t.Context(), conformance.Config{
				Open:     func(context.Context) (ocs.Switch, error) { return &client{memory: d, lie: tc.lie}, nil },
				AllPorts: tc.all, MaxPorts: 3, Settle: 50 * time.Millisecond, Timeout: 10 * time.Second,
			})
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if t.Failed() {
					var text strings.Builder
					_ = r.WriteText(&text)
					t.Log(text.String())
				}
			}()
			failed := names(r, conformance.Fail)
			if tc.want == "" && len(failed) > 0 || tc.want != "" && !slices.Contains(failed, tc.want) {
				t.Errorf("failed=%q, want %q", failed, tc.want)
			}
			if !maps.Equal(d.labels, labels) || !maps.Equal(d.closed, closed) {
				t.Errorf("labels=%v closed=%v, want %v and %v", d.labels, d.closed, labels, closed)
			}
			if tc.left != "" {
				if r.Restored || len(r.NotRestored) != 1 || !strings.Contains(r.NotRestored[0], tc.left) {
					t.Errorf("restored=%v %q, want %q", r.Restored, r.NotRestored, tc.left)
				}
				return
			}
			m, err := d.Switch.CrossConnects(t.Context())
			if err != nil || !m.Equal(others) || !r.Restored {
				t.Errorf("map=%v (%v), want %v; restored=%v %q", m, err, others, r.Restored, r.NotRestored)
			}
			for i, c := range d.Applied() {
				if tc.all {
					break
				}
				for _, p := range c.Ports() {
					if p <= 2 || p == 15 || p >= 17 && p <= 18 {
						t.Errorf("change %d, %v, touches port %d", i, c, p)
					}
				}
			}
		})
	}
}

func panicsAt(n int) func(*client, ocs.Change) (ocs.Change, error) {
	return func(c *client, change ocs.Change) (ocs.Change, error) {
		if c.nth(n) {
			panic("boom")
		}
		return change, nil
	}
}

// Ensure that a circuit that another client makes at ports of the suite, at
// whatever moment before the suite looks again, is never touched. (One that the
// suite has just asked for itself could not be told apart.)
func TestTakenAnyTime(t *testing.T) {
	t.Parallel()
	for first, taken := range []ocs.CrossConnect{{Ingress: 3, Egress: 31}, {Ingress: 16, Egress: 19}, {Ingress: 14, Egress: 32}} {
		for n, reads := 1+first, int64(100); int64(n) <= reads; n += 3 { // each moment with one of the three
			d := &memory{Switch: ocstest.New(16, ocs.Map{}), labels: map[ocs.Port]string{}, closed: map[ocs.Port]bool{}}
			for _, p := range d.Switch.Identity.Geometry.Ports() {
				d.closed[p] = false
			}
			var count atomic.Int64
			var when int           // the change before which it was made
			var paused atomic.Bool // two clients: one reads while the other is about to change
			d.OnRead = func() error {
				if !paused.Load() && count.Add(1) == int64(n)+1 { // the suite has looked, and found the ports free
					m, err := d.Switch.CrossConnects(t.Context())
					if err != nil {
						return err
					}
					rest := m
					for _, c := range append(m.Rivals(taken), taken) {
						rest = rest.Minus(ocs.MustMap(c))
					}
					if m, err = rest.Plus(ocs.MustMap(taken)); err != nil {
						return err
					}
					d.Set(m)
					when = len(d.Applied())
				}
				return nil
			}
			r, err := conformance.Run(t.Context(), conformance.Config{
				Open:     func(context.Context) (ocs.Switch, error) { return &client{memory: d}, nil },
				Progress: func(_, _ int, check string) { paused.Store(check == "two-clients") },
				MaxPorts: 3, Settle: 10 * time.Millisecond, Timeout: 10 * time.Second,
			})
			if err != nil {
				t.Fatal(err)
			}
			if reads = count.Load() - 1; int64(n) > reads {
				break
			}
			m, err := d.Switch.CrossConnects(t.Context())
			if err != nil || !m.Equal(ocs.MustMap(taken)) {
				t.Fatalf("%v taken at read %d, before change %d: the map is %v (%v) at the end, restored=%v %q", taken, n, when, m, err, r.Restored, r.NotRestored)
			}
			for i, c := range d.Applied()[when:] {
				for a := range c.Add.All() {
					if a == taken || len(ocs.MustMap(taken).Rivals(a)) > 0 {
						t.Fatalf("%v taken at read %d: change %d, %v, takes it over", taken, n, when+i, c)
					}
				}
				if c.Remove.Has(taken) {
					t.Fatalf("%v taken at read %d: change %d, %v, removes it", taken, n, when+i, c)
				}
			}
		}
	}
}
