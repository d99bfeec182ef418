package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ocslab/ocslab/ocs"
)

// Checks of what can be joined on a device that reaches only some egress ports from
// an ingress, and what the other checks need to stay within that.

// onlyMatrix is why devices of this kind have no egress that cannot be reached.
func onlyMatrix(g ocs.Geometry) string {
	if g.Lanes > 0 {
		return ""
	}
	return "any ingress reaches any egress"
}

// noExclusion is why devices of this kind can hold any two circuits that share no
// port.
func noExclusion(g ocs.Geometry) string {
	if g.Lanes > 0 || g.SingleSided {
		return ""
	}
	return "any ingress reaches any egress, whatever others do"
}

// fits reports whether the device can hold c beside certain others, and beside what
// it held when it was read last. Whether the ports are free is not asked.
func (b *bench) fits(c ocs.CrossConnect, beside ...ocs.CrossConnect) bool {
	g := b.id.Geometry
	excluded := func(o ocs.CrossConnect) bool { return g.Excludes(c, o) }
	return g.Reaches(c.Ingress, c.Egress) && !slices.ContainsFunc(beside, excluded) &&
		!slices.ContainsFunc(b.ledger.last.Slice(), excluded)
}

// couple returns one of first and another pair that can change ends with it, while
// all other pairs may be in use.
func (b *bench) couple(first ...ocs.CrossConnect) (c, d ocs.CrossConnect, err error) {
	for _, c := range first {
		for _, d := range b.pairs {
			x, y := cross(c, d)
			if c != d && b.fits(x, b.pairs...) && b.fits(y, b.pairs...) {
				return c, d, nil
			}
		}
	}
	return c, d, skipf("no two of the free pairs %v can change ends, and all that could are in use", ocs.MustMap(b.pairs...))
}

// spare reads the map, and returns the egress ports that are free and were so at
// the start, in ascending order. Those of the pairs are among them.
func (b *bench) spare(ctx context.Context) ([]ocs.Port, error) {
	m, err := b.first.CrossConnects(ctx)
	if err == nil {
		err = b.observe(m)
	}
	if err != nil {
		return nil, err
	}
	free := slices.DeleteFunc(slices.Clone(b.out), func(p ocs.Port) bool { return b.given[p] || len(m.At(p)) > 0 })
	slices.Sort(free)
	return free, nil
}

// borrow makes free ports ports of the suite until the function that it returns is
// called. What the suite has made at them is its own also after that.
func (b *bench) borrow(ports ...ocs.Port) (giveBack func()) {
	ports = slices.DeleteFunc(slices.Clone(ports), b.ledger.owns)
	b.ledger.own(ports...)
	b.used = append(b.used, ports...)
	return func() {
		for _, p := range ports {
			b.ledger.lose(p)
		}
	}
}

// unreachable asks for free egress ports that the light of an ingress cannot get
// to, one of each kind that the device has.
func (b *bench) unreachable(ctx context.Context) error {
	g, ingress := b.id.Geometry, b.pairs[0].Ingress
	free, err := b.spare(ctx)
	if err != nil {
		return err
	}
	out := g.EgressPorts()
	tried := map[int]bool{} // kinds: the two fibres, and the receivers
	var bad []ocs.CrossConnect
	for _, e := range slices.Backward(free) {
		if kind := slices.Index(out, e) / g.Ingress; !g.Reaches(ingress, e) && !tried[kind] {
			tried[kind] = true
			bad = append(bad, ocs.CrossConnect{Ingress: ingress, Egress: e})
		}
	}
	if len(bad) == 0 {
		return skipf("all egress ports that port %d does not reach are in use", ingress)
	}
	for _, c := range bad {
		if err := b.refusesUnreachable(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) refusesUnreachable(ctx context.Context, c ocs.CrossConnect) error {
	defer b.borrow(c.Egress)()
	before := b.sent.Load()
	_, err := ocs.Reconcile(ctx, b.gate(), ocs.MustMap(c), ocs.Safe)
	switch {
	case !errors.Is(err, ocs.ErrPort):
		return fmt.Errorf("%v, which cannot be reached, should match %q, but gives: %w", c, ocs.ErrPort, orNone(err))
	case b.sent.Load() != before:
		return fmt.Errorf("%v, which cannot be reached, was refused only after it had been sent", c)
	}
	_, err = b.gate().Apply(ctx, ocs.Change{Add: ocs.MustMap(c)})
	if err := deviceError(err, fmt.Sprintf("%v, which cannot be reached,", c)); err != nil {
		return err
	}
	return b.expect(ctx, b.first)
}

// apart is how much less light must leave where a circuit was than where it is.
const apart ocs.DB = 10

// everyEgress moves one ingress through all that it reaches and that is free.
func (b *bench) everyEgress(ctx context.Context) error {
	g, c := b.id.Geometry, b.pairs[0]
	lit, err := b.litPairs(ctx)
	if err != nil && !errors.Is(err, ocs.ErrNotSupported) {
		return err
	}
	if len(lit) > 0 {
		c = lit[0]
	}
	free, err := b.spare(ctx)
	if err != nil {
		return err
	}
	all := 0
	for _, e := range g.EgressPorts() {
		if g.Reaches(c.Ingress, e) {
			all++
		}
	}
	reached := slices.DeleteFunc(free, func(e ocs.Port) bool { return !b.fits(ocs.CrossConnect{Ingress: c.Ingress, Egress: e}) })
	if len(reached) < 2 {
		return skipf("of the %d egress ports that port %d reaches %d can be used now", all, c.Ingress, len(reached))
	}
	defer b.borrow(reached...)()
	measured := 0
	var was ocs.Port
	for _, e := range append(reached, reached[0]) { // and from the last to the first
		to := ocs.CrossConnect{Ingress: c.Ingress, Egress: e}
		if _, err := ocs.Reconcile(ctx, b.gate(), ocs.MustMap(to), ocs.Update); err != nil {
			return err
		}
		if err := b.expect(ctx, b.first, to); err != nil {
			return err
		}
		if _, has := b.monitors[e]; has && len(lit) > 0 {
			if err := b.lightMoved(ctx, to, was); err != nil {
				return err
			}
			measured++
		}
		was = e
	}
	b.quirk("egress ports of an ingress", fmt.Sprintf("%d of %d", len(reached), all), "%d moves of port %d through %s, in %d of them the light was measured", len(reached)+1, c.Ingress, ocs.FormatPorts(reached), measured)
	return nil
}

// lightMoved waits until light leaves where c goes, and next to none where its
// ingress was sent before.
func (b *bench) lightMoved(ctx context.Context, c ocs.CrossConnect, was ocs.Port) error {
	if err := b.becomes(ctx, c.Egress, fmt.Sprintf("lit by %v", c), isLit); err != nil {
		return err
	}
	if _, has := b.monitors[was]; !has {
		return nil
	}
	_, now, err := b.power(ctx, c.Egress)
	if err != nil {
		return err
	}
	what := fmt.Sprintf("%v below port %d, to which %v has moved the light", apart, c.Egress, c)
	return b.becomes(ctx, was, what, func(x ocs.DBm) bool { return now.Sub(x) >= apart })
}

// excluding returns two circuits at free ports that share no port in the same role,
// and that the device cannot both hold.
func (b *bench) excluding(free []ocs.Port) (c, d ocs.CrossConnect, ok bool) {
	g := b.id.Geometry
	if g.SingleSided {
		c, d = b.pairs[0], b.pairs[1]
		return c, ocs.CrossConnect{Ingress: c.Egress, Egress: d.Egress}, true
	}
	for _, p := range b.pairs {
		for _, q := range b.pairs {
			for _, e := range free {
				c := ocs.CrossConnect{Ingress: p.Ingress, Egress: e}
				if p == q || !b.fits(c) {
					continue
				}
				for _, f := range free {
					d := ocs.CrossConnect{Ingress: q.Ingress, Egress: f}
					if f != e && g.Excludes(c, d) && b.fits(d) {
						return c, d, true
					}
				}
			}
		}
	}
	return c, d, false
}

// exclusive asks for a circuit that excludes one that is there, and the other way
// round.
func (b *bench) exclusive(ctx context.Context) error {
	free, err := b.spare(ctx)
	if err != nil {
		return err
	}
	c, d, ok := b.excluding(free)
	if !ok {
		return skipf("no two circuits that exclude each other can be made with the free pairs %v", ocs.MustMap(b.pairs...))
	}
	defer b.borrow(c.Egress, d.Egress)()
	for _, order := range [][2]ocs.CrossConnect{{c, d}, {d, c}} {
		if err := b.yields(ctx, order[0], order[1]); err != nil {
			return err
		}
		if err := b.disconnect(ctx, order[1].Ingress); err != nil {
			return err
		}
	}
	return nil
}

// yields makes c, and then d, which excludes it: refused if nothing may be removed,
// instead of it if that may be.
func (b *bench) yields(ctx context.Context, c, d ocs.CrossConnect) error {
	if err := b.connect(ctx, c); err != nil {
		return err
	}
	before := b.sent.Load()
	if _, err := ocs.Reconcile(ctx, b.gate(), ocs.MustMap(d), ocs.Safe); !errors.Is(err, ocs.ErrConflict) {
		return fmt.Errorf("%v, which %v excludes, should match %q, but gives: %w", d, c, ocs.ErrConflict, orNone(err))
	}
	if b.sent.Load() != before {
		return fmt.Errorf("%v, which %v excludes, was refused only after it had been sent", d, c)
	}
	const name = "excluded circuit"
	switch _, err := b.gate().Apply(ctx, ocs.Change{Add: ocs.MustMap(d)}); {
	case err == nil:
		if err := b.expect(ctx, b.first, d); err != nil {
			return fmt.Errorf("the device took %v, which %v excludes: %w", d, c, err)
		}
		b.quirk(name, "takeover", "+%v was acknowledged, and %v, which excludes it, is gone", d, c)
	case refused(err):
		if err := b.expect(ctx, b.first, c); err != nil {
			return fmt.Errorf("the device refused %v, which %v excludes: %w", d, c, err)
		}
		b.quirk(name, "deny", "+%v while %v was there: %s", d, c, sentence(err))
	default:
		return err
	}
	if err := b.back(ctx, c); err != nil {
		return err
	}
	r, err := ocs.Reconcile(ctx, b.gate(), ocs.MustMap(d), ocs.Update)
	switch {
	case err != nil:
		return err
	case !r.Change.Remove.Has(c):
		return fmt.Errorf("%v is in the way of %v, but %v was planned", c, d, r.Change)
	}
	return b.expect(ctx, b.first, d)
}
