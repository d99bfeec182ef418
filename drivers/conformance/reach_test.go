package conformance_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ocslab/ocslab/drivers/conformance"
	"github.com/ocslab/ocslab/ocs"
	"pgregory.net/rapid"
)

// bundle is a bundle of transceivers in memory, which refuses whatever is in its
// way, and whose light is where its map says.
type bundle struct {
	geometry ocs.Geometry
	lie      bundleLie
	onRead   func()

	mu      sync.Mutex // guards what follows
	m       ocs.Map
	applied []ocs.Change
	failed  map[ocs.Port]bool // ingress ports that take no circuit
}

// bundleAfter returns what a bundle holds and says after a change, from what it held
// before, and what an honest one would hold and say.
type bundleAfter func(before ocs.Map, c ocs.Change, after ocs.Map, err error) (ocs.Map, error)

// bundleLie is how a bundle does not do what it says.
type bundleLie struct {
	after bundleAfter
	light func(c ocs.CrossConnect, p ocs.Port, x ocs.DBm) ocs.DBm // at p, of a circuit or, if that is the zero one, of none
}

func newBundle(modules int, m ocs.Map) *bundle {
	return &bundle{geometry: ocs.Transceivers(modules, 8), m: m}
}

// bundleClient is one session.
type bundleClient struct {
	*bundle
	session
}

var (
	_ ocs.Switch     = (*bundleClient)(nil)
	_ ocs.PowerMeter = (*bundleClient)(nil)
)

func (c *bundleClient) Identify(ctx context.Context) (ocs.Identity, error) {
	return ocs.Identity{Vendor: "ocslab", Model: "bundle in memory", Geometry: c.geometry}, c.usable(ctx)
}

func (c *bundleClient) CrossConnects(ctx context.Context) (ocs.Map, error) {
	if err := c.usable(ctx); err != nil {
		return ocs.Map{}, err
	}
	if c.onRead != nil {
		c.onRead()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.m, nil
}

// judge returns what m becomes by a change, or why it is refused.
func (b *bundle) judge(m ocs.Map, c ocs.Change) (ocs.Map, error) {
	after, err := c.ApplyTo(m)
	for a := range c.Add.All() {
		if err == nil && (b.failed[a.Ingress] || !b.geometry.Reaches(a.Ingress, a.Egress)) {
			err = ocs.ErrPort
		}
		for o := range after.All() {
			if err == nil && b.geometry.Excludes(a, o) {
				err = &ocs.ConflictError{Want: a, Have: o}
			}
		}
	}
	if err != nil {
		return after, &ocs.OpError{Op: "change circuits", Device: "bundle", Err: err}
	}
	return after, nil
}

func (c *bundleClient) Apply(ctx context.Context, change ocs.Change) (ocs.Receipt, error) {
	if err := c.usable(ctx); err != nil {
		return ocs.Receipt{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.applied = append(c.applied, change)
	now := time.Now()
	after, err := c.judge(c.m, change)
	if err != nil {
		after = c.m
	}
	if c.lie.after != nil {
		after, err = c.lie.after(c.m, change, after, err)
	}
	c.m = after
	return ocs.Receipt{Begun: now, SendStart: now, Sent: now, FirstByte: now, Acked: now, Requests: 1}, err
}

func (c *bundleClient) Close() error {
	c.ended.Store(true)
	return nil
}

// Power is 3 dBm at the ingress of a circuit, and 0 dBm at its egress.
func (c *bundleClient) Power(ctx context.Context, ports ...ocs.Port) (ocs.PowerReading, error) {
	m, now := c.peek(), time.Now()
	r := ocs.PowerReading{Earliest: now, Latest: now, Ports: map[ocs.Port]ocs.DBm{}}
	for _, p := range ports {
		var at ocs.CrossConnect
		x := ocs.DBm(math.Inf(-1))
		if e, ok := m.EgressOf(p); ok {
			at, x = ocs.CrossConnect{Ingress: p, Egress: e}, 3
		} else if i, ok := m.IngressOf(p); ok {
			at, x = ocs.CrossConnect{Ingress: i, Egress: p}, 0
		}
		if c.lie.light != nil {
			x = c.lie.light(at, p, x)
		}
		r.Ports[p] = x
	}
	return r, c.usable(ctx)
}

func (b *bundle) peek() ocs.Map {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.m
}

func (c *bundleClient) Monitors(ctx context.Context, ports ...ocs.Port) ([]ocs.Monitor, error) {
	if len(ports) == 0 {
		ports = c.geometry.Ports()
	}
	var ms []ocs.Monitor
	for _, p := range ports {
		ms = append(ms, ocs.Monitor{Port: p, Averaging: 10 * time.Microsecond})
	}
	return ms, c.usable(ctx)
}

func (c *bundleClient) SetMonitor(context.Context, ocs.Monitor) error {
	return &ocs.OpError{Op: "set monitor", Device: "bundle", Err: ocs.ErrNotSupported}
}

func (b *bundle) config(maxPorts int) conformance.Config {
	return conformance.Config{
		Open:     func(context.Context) (ocs.Switch, error) { return &bundleClient{bundle: b}, nil },
		MaxPorts: maxPorts, Settle: time.Second, Timeout: 10 * time.Second,
	}
}

func mustParse(t tester, s string) ocs.Map {
	t.Helper()
	m, err := ocs.ParseMap(s)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return m
}

// Ensure that the suite does on transceivers what can be done there, with pairs that
// can be reached and beside what others hold, and says what cannot be done, or not
// now.
func TestBundle(t *testing.T) {
	t.Parallel()
	lacking := []string{"monitor-averaging", "shutter", "attenuator", "label", "label-text", "label-length", "notify", "boot-mode", "restart-restore", "restart-dark"}
	for name, tc := range map[string]struct {
		modules  int
		others   string
		failed   []ocs.Port
		maxPorts int
		all      bool
		ports    string
		skipped  []string // besides what needs all ports
		reason   string
		moved    string // the quirk of the check every-egress
	}{
		"one module":           {modules: 1, maxPorts: 8, ports: "1-8,15,16,23-32", moved: "10 of 10"},
		"one module, all":      {modules: 1, maxPorts: 8, all: true, ports: "1-8,15,16,23-32", moved: "10 of 10"},
		"eight modules":        {modules: 8, maxPorts: 8, ports: "57-64,127,128,191,192,248-256", moved: "10 of 10"},
		"beyond one module":    {modules: 2, maxPorts: 12, all: true, moved: "10 of 10"},
		"a fibre is in use":    {modules: 1, others: "8>16", maxPorts: 3, moved: "9 of 10"},
		"both fibres":          {modules: 1, others: "8>16,7>23", maxPorts: 3, moved: "8 of 10"},
		"a loop is in use":     {modules: 1, others: "8>32", maxPorts: 3, moved: "9 of 10"},
		"a receiver is in use": {modules: 1, others: "1>32", maxPorts: 8, moved: "7 of 10"}, // and lane 8 can be on no fibre
		"all receivers but one": {modules: 1, others: "1>25,2>26,3>27,4>28,5>29,6>30,7>31", maxPorts: 8, moved: "3 of 10",
			skipped: []string{"move-ingress", "move-egress", "swap", "bulk", "bulk-bad-port", "busy-safe", "busy-update", "busy-apply", "exclusive", "ack-time", "two-clients", "ack-light"}, reason: "needs 2 free pairs"},
		"one lane of either module": {modules: 2, others: "1>17,2>18,3>19,4>20,5>21,6>22,7>23,9>25,10>26,11>27,12>28,13>29,14>30,15>31", maxPorts: 8, moved: "3 of 10",
			skipped: []string{"move-ingress", "move-egress", "swap", "busy-safe", "busy-update", "busy-apply", "exclusive", "ack-time", "ack-light"}, reason: "no two of the free pairs 8>56,16>64 can change ends"},
		"a module has failed": {modules: 2, failed: []ocs.Port{9, 10, 11, 12, 13, 14, 15, 16}, maxPorts: 8, moved: "10 of 10"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			others := ocs.Map{}
			if tc.others != "" {
				others = mustParse(t, tc.others)
			}
			b := newBundle(tc.modules, others)
			b.failed = map[ocs.Port]bool{}
			for _, p := range tc.failed {
				b.failed[p] = true
			}
			cfg := b.config(tc.maxPorts)
			cfg.AllPorts = tc.all
			r := run(t, cfg)
			fails(t, r)
			lacks(t, r, lacking...)
			skipped := tc.skipped
			if !tc.all {
				for _, c := range r.Checks { // in their order
					if (c.Name == "busy-overwrite" || c.Name == "bulk-all-ports") && c.Result == conformance.Skip {
						skipped = append(slices.Clone(skipped), c.Name)
					}
				}
			}
			slices.Sort(skipped)
			got := names(r, conformance.Skip)
			slices.Sort(got)
			if !slices.Equal(got, skipped) {
				t.Errorf("skipped=%q, want %q", got, skipped)
			}
			if tc.ports != "" && r.PortsUsed != tc.ports {
				t.Errorf("ports used=%q, want %q", r.PortsUsed, tc.ports)
			}
			if got := quirk(r, "egress ports of an ingress"); got != tc.moved {
				t.Errorf("egress ports of an ingress=%q, want %q", got, tc.moved)
			}
			if !slices.ContainsFunc(r.Checks, func(c conformance.Check) bool { return strings.Contains(c.Reason, tc.reason) }) {
				t.Errorf("no check gives the reason %q", tc.reason)
			}
			if m := b.peek(); !m.Equal(others) || !r.Restored {
				t.Errorf("map=%v, want %v; restored=%v %q", m, others, r.Restored, r.NotRestored)
			}
		})
	}
}

// Ensure that a bundle of transceivers that lies fails in the check that is meant to
// find it, and is left as it was.
func TestBundleLiars(t *testing.T) {
	t.Parallel()
	g := ocs.Transceivers(2, 8)
	others := mustParse(t, "1>17,2>51")
	none := ocs.CrossConnect{}
	unreachable := func(c ocs.Change, _ error) bool {
		return slices.ContainsFunc(c.Add.Slice(), func(a ocs.CrossConnect) bool { return g.Has(a.Egress) && !g.Reaches(a.Ingress, a.Egress) })
	}
	excluded := func(_ ocs.Change, err error) bool {
		var conflict *ocs.ConflictError
		return errors.As(err, &conflict) && g.Excludes(conflict.Want, conflict.Have)
	}
	// when lies only where the change, or the error of it, is such.
	when := func(such func(ocs.Change, error) bool, lie bundleAfter) bundleLie {
		return bundleLie{after: func(before ocs.Map, c ocs.Change, after ocs.Map, err error) (ocs.Map, error) {
			if such(c, err) {
				return lie(before, c, after, err)
			}
			return after, err
		}}
	}
	// forced makes the change as a device does that knows nothing of what is excluded.
	forced := func(before ocs.Map, c ocs.Change, after ocs.Map, err error) (ocs.Map, error) {
		if m, err := c.ApplyTo(before); err == nil {
			after = m
		}
		return after, err
	}
	silent := func(before ocs.Map, c ocs.Change, after ocs.Map, err error) (ocs.Map, error) {
		after, _ = forced(before, c, after, err)
		return after, nil
	}
	// reads has the monitor of one port always read the same.
	reads := func(port ocs.Port, always ocs.DBm) func(ocs.CrossConnect, ocs.Port, ocs.DBm) ocs.DBm {
		return func(_ ocs.CrossConnect, p ocs.Port, x ocs.DBm) ocs.DBm {
			if p == port {
				return always
			}
			return x
		}
	}
	for name, tc := range map[string]struct {
		lie  bundleLie
		want string
	}{
		"acknowledges what cannot be reached": {when(unreachable, func(before ocs.Map, _ ocs.Change, _ ocs.Map, _ error) (ocs.Map, error) {
			return before, nil
		}), "unreachable"},
		"makes what cannot be reached":                {when(unreachable, silent), "unreachable"},
		"refuses what cannot be reached but makes it": {when(unreachable, forced), "unreachable"},
		"refuses with an error that is not of a device": {when(unreachable, func(_ ocs.Map, _ ocs.Change, after ocs.Map, _ error) (ocs.Map, error) {
			return after, ocs.ErrPort
		}), "unreachable"},
		"fibre 2 is fibre 1": {bundleLie{after: func(before ocs.Map, c ocs.Change, after ocs.Map, err error) (ocs.Map, error) {
			if c.Add.Has(ocs.CrossConnect{Ingress: 16, Egress: 48}) && err == nil {
				after, err = after.Minus(c.Add).Plus(ocs.MustMap(ocs.CrossConnect{Ingress: 16, Egress: 32}))
			}
			return after, err
		}}, "every-egress"},
		"one receiver cannot be reached": {bundleLie{after: func(before ocs.Map, c ocs.Change, after ocs.Map, err error) (ocs.Map, error) {
			if c.Add.Has(ocs.CrossConnect{Ingress: 16, Egress: 57}) {
				return before, &ocs.OpError{Op: "change circuits", Device: "bundle", Err: ocs.ErrDenied}
			}
			return after, err
		}}, "every-egress"},
		"a circuit without light":               {bundleLie{light: reads(48, ocs.DBm(math.Inf(-1)))}, "every-egress"},
		"light that stays":                      {bundleLie{light: reads(48, -5)}, "every-egress"},
		"holds what it excludes":                {when(excluded, silent), "exclusive"},
		"refuses what it excludes but makes it": {when(excluded, forced), "exclusive"},
		"drops what is excluded and makes nothing": {when(excluded, func(ocs.Map, ocs.Change, ocs.Map, error) (ocs.Map, error) {
			return others, nil
		}), "exclusive"},
		"power without a circuit": {bundleLie{light: func(at ocs.CrossConnect, p ocs.Port, x ocs.DBm) ocs.DBm {
			if at == none {
				return -20
			}
			return x
		}}, "power-dark"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBundle(2, others)
			b.lie = tc.lie
			r := run(t, b.config(3))
			if failed := names(r, conformance.Fail); !slices.Contains(failed, tc.want) || len(failed) > 2 {
				t.Errorf("failed=%q, want %q and little else", failed, tc.want)
			}
			if m := b.peek(); !m.Equal(others) {
				t.Errorf("map=%v, want %v; restored=%v %q", m, others, r.Restored, r.NotRestored)
			}
		})
	}
}

// Ensure that the suite leaves alone whatever others hold on transceivers: see foreign.
func TestBundleForeign(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) { foreign(t, rt) })
}

// foreign runs the suite on a bundle with random circuits of others, of which none may be
// touched, and none may stand in the way of a check.
func foreign(outer *testing.T, t *rapid.T) {
	modules := rapid.IntRange(1, 3).Draw(t, "modules")
	b := newBundle(modules, ocs.Map{})
	for _, k := range rapid.SliceOfN(rapid.IntRange(0, 80*modules-1), 0, 10*modules).Draw(t, "circuits") {
		in := ocs.Port(k/10 + 1) // to one of its two fibres or eight receivers
		out := []ocs.Port{in + ocs.Port(8*modules), in + ocs.Port(16*modules)}
		for lane := range 8 {
			out = append(out, ocs.Port(24*modules)+(in-1)/8*8+ocs.Port(lane)+1)
		}
		if m, err := b.judge(b.m, ocs.Change{Add: ocs.MustMap(ocs.CrossConnect{Ingress: in, Egress: out[k%10]})}); err == nil {
			b.m = m
		}
	}
	others := b.m
	cfg := b.config(rapid.IntRange(1, 10).Draw(t, "pairs"))
	var r conformance.Report
	var err error
	// In a time of its own: how busy the machine is has no part in it.
	synctest.Test(outer, func(*testing.T) { r, err = conformance.Run(context.Background(), cfg) })
	if err != nil {
		t.Fatalf("%v", err)
	}
	if len(names(r, conformance.Fail)) > 0 || !r.Restored || !b.m.Equal(others) {
		var text strings.Builder
		_ = r.WriteText(&text)
		t.Errorf("map=%v, want %v; restored=%v\n%s", b.m, others, r.Restored, text.String())
	}
	for i, c := range b.applied {
		for a := range c.Add.All() {
			if len(others.Rivals(a)) > 0 || slices.ContainsFunc(others.Slice(), func(o ocs.CrossConnect) bool { return b.geometry.Excludes(a, o) }) {
				t.Errorf("change %d, %v, asks for what others are in the way of: %v", i, c, others)
			}
		}
		for a := range c.Remove.All() {
			if others.Has(a) {
				t.Errorf("change %d, %v, removes a circuit of others: %v", i, c, others)
			}
		}
	}
}

// Ensure that a circuit that another client makes on a transceiver, at whatever moment
// before the suite looks again, is never touched: one at a port of the suite, and one
// that takes the receiver that a circuit of the suite goes to.
func TestBundleTakenAnyTime(t *testing.T) {
	t.Parallel()
	for first, taken := range []ocs.CrossConnect{{Ingress: 8, Egress: 16}, {Ingress: 1, Egress: 32}, {Ingress: 5, Egress: 13}} {
		for n, reads := 1+first, int64(100); int64(n) <= reads; n += 3 { // each moment with one of the three
			b := newBundle(1, ocs.Map{})
			if first == 2 { // so that the suite has receivers of lanes that are not its own
				b.m = ocs.MustMap(ocs.CrossConnect{Ingress: 1, Egress: 32})
			}
			others, err := b.m.Plus(ocs.MustMap(taken))
			if err != nil {
				t.Fatal(err)
			}
			var count atomic.Int64
			var when int
			var paused atomic.Bool // two clients: one reads while the other is about to change
			b.onRead = func() {
				if !paused.Load() && count.Add(1) == int64(n)+1 {
					b.mu.Lock()
					defer b.mu.Unlock()
					rest := b.m
					for c := range b.m.All() {
						if c.Ingress == taken.Ingress || c.Egress == taken.Egress || b.geometry.Excludes(c, taken) {
							rest = rest.Minus(ocs.MustMap(c))
						}
					}
					b.m, _ = rest.Plus(ocs.MustMap(taken))
					when = len(b.applied)
				}
			}
			cfg := b.config(3)
			cfg.Settle = 100 * time.Millisecond
			cfg.Progress = func(_, _ int, check string) { paused.Store(check == "two-clients") }
			r, err := conformance.Run(t.Context(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			if reads = count.Load() - 1; int64(n) > reads {
				break
			}
			if !b.m.Equal(others) {
				t.Fatalf("%v taken at read %d, before change %d: the map is %v at the end, want %v, restored=%v %q", taken, n, when, b.m, others, r.Restored, r.NotRestored)
			}
			for i, c := range b.applied[when:] {
				for a := range c.Add.All() {
					if a == taken || a.Ingress == taken.Ingress || a.Egress == taken.Egress {
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

// Ensure that ports that a check has borrowed are left out when others take them
// before, and are no longer the suite's when others take them afterwards.
func TestBundleOthersMeanwhile(t *testing.T) {
	t.Parallel()
	b := newBundle(1, ocs.Map{})
	cfg := b.config(3)
	take := func(c ocs.CrossConnect) {
		b.mu.Lock()
		defer b.mu.Unlock()
		m, err := b.m.Plus(ocs.MustMap(c))
		if err != nil {
			t.Error(err)
		}
		b.m = m
	}
	cfg.Progress = func(_, _ int, check string) {
		switch check {
		case "every-egress":
			take(ocs.CrossConnect{Ingress: 2, Egress: 28})
		case "bulk":
			take(ocs.CrossConnect{Ingress: 1, Egress: 29})
		}
	}
	r := run(t, cfg)
	fails(t, r)
	skips(t, r, "busy-overwrite", "bulk-all-ports")
	if got, want := quirk(r, "egress ports of an ingress"), "9 of 10"; got != want {
		t.Errorf("egress ports of an ingress=%q, want %q", got, want)
	}
	if got, want := r.Others, []string{"2>28 appeared", "1>29 appeared"}; !slices.Equal(got, want) {
		t.Errorf("others=%q, want %q", got, want)
	}
	if m := b.peek(); m.String() != "1>29,2>28" || !r.Restored {
		t.Errorf("map=%v, restored=%v %q", m, r.Restored, r.NotRestored)
	}
}
