package conformance

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ocslab/ocslab/internal/pause"
	"github.com/ocslab/ocslab/ocs"
)

// bench is the device under test, as it was found, and what the suite has done
// to it.
type bench struct {
	cfg           Config
	first, second ocs.Switch // sessions; nil when not open

	// As found at the start.
	id       ocs.Identity
	shutters map[ocs.Port]bool
	labels   map[ocs.Port]string
	monitors map[ocs.Port]ocs.Monitor
	assumed  bool // the settings of monitors are not told, and taken for usual
	boot     ocs.BootMode

	// What look found out.
	capabilities []Capability
	supported    map[string]bool
	lookErr      error // why the map is not known
	identifyErr  error // what went wrong on the way, also if it went right later
	readErr      error
	in, out      []ocs.Port // free ports, in order of preference

	pairs    []ocs.CrossConnect // free pairs that take a circuit, in order of preference
	used     []ocs.Port
	given    map[ocs.Port]bool  // given up, since others have taken them
	lit      []ocs.CrossConnect // those of pairs that light enters at
	litKnown bool
	quirks   []Quirk

	ledger  *ledger
	dirty   dirty
	dead    error        // why no session can be opened any more
	stopped error        // why nothing is changed any more
	sent    atomic.Int64 // changes that were asked for
}

func (b *bench) quirk(name, value, format string, args ...any) {
	q := Quirk{Name: name, Value: value, Evidence: fmt.Sprintf(format, args...)}
	if i := slices.IndexFunc(b.quirks, func(o Quirk) bool { return o.Name == name }); i >= 0 {
		b.quirks[i] = q
		return
	}
	b.quirks = append(b.quirks, q)
}

// stop ends all changing for good; the first reason counts.
func (b *bench) stop(err error) {
	if b.stopped == nil {
		b.stopped = err
	}
}

// look reads what the device is and holds. Reading is tried again once over a
// new session; that it went wrong first fails a check all the same.
func (b *bench) look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, b.cfg.Timeout)
	defer cancel()
	twice := func(first *error, f func() error) error {
		err := safely(f)
		if *first = err; err == nil || ctx.Err() != nil {
			return err
		}
		if b.reopen(ctx) != nil {
			return err
		}
		return safely(f)
	}
	b.supported[capSwitch] = true
	b.capabilities = []Capability{{capSwitch, true, "every device is one"}}
	b.lookErr = twice(&b.identifyErr, func() (err error) { b.id, err = b.first.Identify(ctx); return err })
	if err := twice(&b.readErr, func() error {
		m, err := b.first.CrossConnects(ctx)
		if err == nil {
			b.ledger.start(m)
		}
		return err
	}); b.lookErr == nil {
		b.lookErr = err
	}

	offers[ocs.PowerMeter](ctx, b, capPower, func(pm ocs.PowerMeter) (bool, string, error) {
		ms, err := pm.Monitors(ctx)
		b.monitors = map[ocs.Port]ocs.Monitor{}
		for _, m := range ms {
			b.monitors[m.Port] = m
		}
		found := fmt.Sprintf("%d ports have a monitor", len(ms))
		if errors.Is(err, ocs.ErrNotSupported) {
			found, err = b.readMonitors(ctx, pm)
		}
		return len(b.monitors) > 0, found, err
	})
	offers[ocs.Shutter](ctx, b, capShutter, func(s ocs.Shutter) (_ bool, _ string, err error) {
		b.shutters, err = s.Shutters(ctx)
		return len(b.shutters) > 0, fmt.Sprintf("%d ports have a shutter", len(b.shutters)), err
	})
	offers[ocs.Labeler](ctx, b, capLabel, func(l ocs.Labeler) (_ bool, _ string, err error) {
		b.labels, err = l.Labels(ctx)
		return true, fmt.Sprintf("%d ports have a label", len(b.labels)), err
	})
	offered := "the driver offers it"
	offers[ocs.Attenuator](ctx, b, capAttenuator, func(a ocs.Attenuator) (bool, string, error) {
		egress := b.id.Geometry.EgressPorts()
		if len(egress) == 0 {
			return false, "the size of the device is not known", nil
		}
		last := egress[len(egress)-1]
		_, err := a.Attenuation(ctx, last)
		return true, fmt.Sprintf("it tells that of port %d", last), err
	})
	offers[ocs.Notifier](ctx, b, capNotifier, func(ocs.Notifier) (bool, string, error) { return true, offered, nil })
	offers[ocs.Calibrator](ctx, b, capCalibrator, func(ocs.Calibrator) (bool, string, error) { return true, offered, nil })
	offers[ocs.Restarter](ctx, b, capRestarter, func(r ocs.Restarter) (_ bool, _ string, err error) {
		b.boot, err = r.BootMode(ctx)
		return true, "it tells its boot mode", err
	})
	if b.lookErr == nil {
		b.findFree()
	}
}

// assumedAveraging is that of monitors whose setting cannot be read: what most
// come with.
const assumedAveraging = 100 * time.Millisecond

// readMonitors finds the monitors of a device that does not tell their
// settings.
func (b *bench) readMonitors(ctx context.Context, pm ocs.PowerMeter) (string, error) {
	r, err := pm.Power(ctx)
	for p := range r.Ports {
		b.monitors[p] = ocs.Monitor{Port: p, Averaging: assumedAveraging}
	}
	b.assumed = true
	return fmt.Sprintf("%d ports tell their power, not how their monitors are set", len(r.Ports)), err
}

// offers finds out whether the device has capability T: whether the driver
// offers it, and what the device answers to a question about it.
func offers[T any](ctx context.Context, b *bench, name string, probe func(T) (bool, string, error)) {
	k := Capability{Name: name, Found: "the driver does not offer it"}
	if t, ok := ocs.As[T](b.first); ok {
		err := safely(func() (err error) { k.Supported, k.Found, err = probe(t); return err })
		switch {
		case errors.Is(err, ocs.ErrNotSupported):
			var op *ocs.OpError
			if errors.As(err, &op) {
				err = op.Err // without the reply, which says the same
			}
			k.Supported, k.Found = false, "the device refuses: "+sentence(err)
		case err != nil: // its checks will say
			k.Supported, k.Found = true, "the driver offers it, but: "+sentence(err)
		}
	}
	b.supported[name] = k.Supported
	b.capabilities = append(b.capabilities, k)
}

// findFree lists the ports that nobody uses, the highest-numbered first.
func (b *bench) findFree() {
	g := b.id.Geometry
	if !g.Known() {
		return
	}
	free := func(ports []ocs.Port) []ocs.Port {
		ps := slices.DeleteFunc(ports, func(p ocs.Port) bool {
			return len(b.ledger.last.At(p)) > 0 || b.shutters[p] || slices.Contains(b.cfg.Avoid, p)
		})
		slices.Reverse(ps)
		return ps
	}
	if !g.SingleSided {
		b.in, b.out = free(g.IngressPorts()), free(g.EgressPorts())
		return
	}
	for i, p := range free(g.Ports()) {
		if i%2 == 0 {
			b.out = append(b.out, p)
		} else {
			b.in = append(b.in, p)
		}
	}
}

// available says for people why there are not more pairs.
func (b *bench) available() string {
	if !b.id.Geometry.Known() {
		return "and the size of the device is not known"
	}
	return fmt.Sprintf("%d can be used: %d ingress and %d egress ports were free at the start", len(b.pairs), len(b.in), len(b.out))
}

// give gives up a port that somebody else has taken.
func (b *bench) give(p ocs.Port) {
	b.ledger.lose(p)
	b.given[p] = true
	with := func(c ocs.CrossConnect) bool { return c.Ingress == p || c.Egress == p }
	b.pairs = slices.DeleteFunc(b.pairs, with)
	b.lit = slices.DeleteFunc(b.lit, with)
}

// giveTaken gives up the ports that others have taken since they were looked at
// last.
func (b *bench) giveTaken(ctx context.Context) error {
	if len(b.pairs) == 0 {
		return nil
	}
	m, err := b.first.CrossConnects(ctx)
	if err == nil {
		err = b.observe(m)
	}
	for err == nil {
		var taken *takenError
		if !errors.As(b.ledger.free(m, ocs.MustMap(b.pairs...).Ports()), &taken) {
			break
		}
		b.give(taken.port)
	}
	return err
}

// reopen replaces the sessions. It fails when the first cannot be opened, which
// it tries more than once: a device may need a moment to notice that an old
// session has ended.
func (b *bench) reopen(ctx context.Context) error {
	b.close()
	const tries = 4
	for try := 1; ; try++ {
		sw, err := open(ctx, b.cfg)
		if err == nil {
			b.first = sw
			return nil
		}
		if try == tries || pause.For(ctx, b.cfg.Settle/5) != nil {
			return err
		}
	}
}

// close ends the sessions.
func (b *bench) close() {
	for _, s := range []*ocs.Switch{&b.first, &b.second} {
		if sw := *s; sw != nil {
			_ = safely(sw.Close) // that it went wrong is for the check close-reopen to say
			*s = nil
		}
	}
}

// claim makes sure that ports are of the suite and that nobody else has taken
// one of them since. It is called right before each step that changes
// something at them. Errors are a *takenError, a *disturbedError, or of the
// device.
func (b *bench) claim(ctx context.Context, sw ocs.Switch, ports ...ocs.Port) error {
	if b.stopped != nil {
		return skipf("nothing is changed any more: %s", sentence(b.stopped))
	}
	if b.dirty.whole != nil {
		return nil
	}
	m, err := sw.CrossConnects(ctx)
	if err != nil {
		return err
	}
	if err := b.observe(m); err != nil {
		return err
	}
	own := slices.DeleteFunc(slices.Clone(ports), func(p ocs.Port) bool { return !b.ledger.owns(p) })
	if err := b.ledger.free(m, own); err != nil {
		return err
	}
	for _, p := range ports {
		if !b.ledger.owns(p) && b.id.Geometry.Has(p) {
			return fmt.Errorf("port %d is not of this suite", p)
		}
	}
	return nil
}

// observe enters what the device holds; a disturbance ends all changing.
func (b *bench) observe(m ocs.Map) error {
	err := b.ledger.observe(m)
	if err != nil {
		b.stop(err)
	}
	return err
}

// gate is a session through which circuits can be changed only at ports of the
// suite that nobody else has taken. All changes of the checks go through it.
type gate struct {
	ocs.Switch
	b *bench
}

func (b *bench) gate() gate       { return gate{b.first, b} }
func (b *bench) secondGate() gate { return gate{b.second, b} }

// Apply claims the ports, enters what may come of the change, sends it, and
// looks at what became of others' circuits.
func (g gate) Apply(ctx context.Context, c ocs.Change) (ocs.Receipt, error) {
	b := g.b
	b.sent.Add(1)
	if err := b.claim(ctx, g.Switch, c.Ports()...); err != nil {
		return ocs.Receipt{}, err
	}
	if b.dirty.whole != nil {
		return g.Switch.Apply(ctx, c)
	}
	b.ledger.note(c)
	receipt, err := g.Switch.Apply(ctx, c)
	switch {
	case err == nil:
		m, err := g.Switch.CrossConnects(ctx)
		if err == nil {
			err = b.observe(m)
		}
		b.ledger.unsure(c.Add.Minus(m)) // acknowledged; it may show later
		return receipt, err
	case !refused(err):
		b.ledger.unsure(c.Add)
	}
	return receipt, err
}

// refused reports whether the device answered with no.
func refused(err error) bool {
	return errors.Is(err, ocs.ErrDenied) || errors.Is(err, ocs.ErrConflict) || errors.Is(err, ocs.ErrPort) ||
		errors.Is(err, ocs.ErrNotSupported) || errors.Is(err, ocs.ErrNotConnected)
}

// whole lets f darken everything. The map and the shutters of this moment are
// put back after the check, so it comes before anything else that changes
// circuits.
func (b *bench) whole(ctx context.Context, f func() error) error {
	m, err := b.first.CrossConnects(ctx)
	if err != nil {
		return err
	}
	if err := b.observe(m); err != nil {
		return err
	}
	b.dirty.whole = &m
	for p := range b.shutters {
		b.dirty.shutters[p] = true
	}
	return f()
}

// expect reads through sw and compares what is at the ports of the suite.
func (b *bench) expect(ctx context.Context, sw ocs.Switch, want ...ocs.CrossConnect) error {
	m, err := sw.CrossConnects(ctx)
	if err != nil {
		return err
	}
	if got, want := b.ledger.onPool(m), ocs.MustMap(want...); !got.Equal(want) {
		return fmt.Errorf("the ports of the suite should hold %s, but %s reads back", orNothing(want), orNothing(got))
	}
	return nil
}

func orNothing(m ocs.Map) string {
	if m.Len() == 0 {
		return "nothing"
	}
	return m.String()
}

// connect makes circuits that are not there, and reads back.
func (b *bench) connect(ctx context.Context, ccs ...ocs.CrossConnect) error {
	if _, err := ocs.Reconcile(ctx, b.gate(), ocs.MustMap(ccs...), ocs.Safe); err != nil {
		return err
	}
	return b.expect(ctx, b.first, ccs...)
}

// soon polls f until it reports true, for as long as light may take.
func (b *bench) soon(ctx context.Context, f func() (bool, error)) (bool, error) {
	return poll(ctx, b.cfg.Settle, f)
}

func poll(ctx context.Context, patience time.Duration, f func() (bool, error)) (bool, error) {
	deadline := time.Now().Add(patience)
	for {
		done, err := f()
		if done || err != nil || time.Now().After(deadline) {
			return done, err
		}
		if err := pause.For(ctx, 5*time.Millisecond); err != nil {
			return false, err
		}
	}
}

func joined(lines []string) string { return strings.Join(lines, "; ") }

func sortedPorts[V any](m map[ocs.Port]V) []ocs.Port { return slices.Sorted(maps.Keys(m)) }
