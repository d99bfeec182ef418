package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ocslab/ocslab/ocs"
)

func (b *bench) identify(ctx context.Context) error {
	if b.identifyErr != nil {
		return b.identifyErr
	}
	again, err := b.first.Identify(ctx)
	switch {
	case err != nil:
		return err
	case again != b.id:
		return fmt.Errorf("the device says %+v first and %+v then", b.id, again)
	case b.id.Vendor == "" && b.id.Model == "":
		return errors.New("the device tells neither vendor nor model")
	case !b.id.Geometry.Known():
		b.quirk("size", "unknown", "neither the device nor its model %q tells it", b.id.Model)
	}
	return nil
}

// readMap needs no comparison for being one-to-one: an ocs.Map cannot be
// anything else.
func (b *bench) readMap(ctx context.Context) error {
	if b.readErr != nil {
		return b.readErr
	}
	m, err := b.first.CrossConnects(ctx)
	if err != nil {
		return err
	}
	if err := b.id.Geometry.Check(m); err != nil {
		return fmt.Errorf("the map %v does not fit the device: %w", m, err)
	}
	return nil
}

// maxRefusals is how many pairs may be refused before no more are tried; of a
// bundle of transceivers, one of which may have failed with all its lanes, so many
// more.
const maxRefusals = 8

// freePairs tries free ports until enough pairs take a circuit. A refused pair
// has perhaps one failed port: both are tried again with others.
func (b *bench) freePairs(ctx context.Context) error {
	if len(b.in) == 0 || len(b.out) == 0 {
		return skipf("%s", b.available())
	}
	in, out := slices.Clone(b.in), slices.Clone(b.out)
	tried := map[ocs.CrossConnect]bool{}
	var refusals []error
	var wrong error
	for len(b.pairs) < b.cfg.MaxPorts && len(in) > 0 && len(refusals) < maxRefusals+b.id.Geometry.Lanes {
		k := slices.IndexFunc(out, func(e ocs.Port) bool {
			c := ocs.CrossConnect{Ingress: in[0], Egress: e}
			return !tried[c] && b.fits(c, b.pairs...)
		})
		if k < 0 {
			in = in[1:]
			continue
		}
		c := ocs.CrossConnect{Ingress: in[0], Egress: out[k]}
		in, out = in[1:], slices.Delete(out, k, k+1)
		tried[c] = true
		b.ledger.own(c.Ingress, c.Egress)
		b.used = append(b.used, c.Ingress, c.Egress)
		_, err := ocs.Reconcile(ctx, b.gate(), ocs.MustMap(c), ocs.Safe)
		var taken *takenError
		switch {
		case err == nil:
			if err := b.disconnect(ctx, c.Ingress); err != nil {
				return err
			}
			b.pairs = append(b.pairs, c)
		case errors.As(err, &taken), errors.Is(err, ocs.ErrConflict): // somebody was faster
			b.give(c.Ingress)
			b.give(c.Egress)
		case errors.Is(err, ocs.ErrVerify):
			// Neither port is used again, but others may do.
			wrong = errors.Join(wrong, err)
			if trouble := b.restore(ctx); trouble != nil {
				return errors.Join(wrong, trouble)
			}
		case refused(err):
			refusals = append(refusals, err)
			b.quirk("refused ports", fmt.Sprintf("%d pairs", len(refusals)), "the last: %v: %s", c, sentence(err))
			in, out = append(in, c.Ingress), append(out, c.Egress)
		default:
			return err
		}
	}
	switch {
	case wrong != nil:
		return wrong
	case len(b.pairs) == 0 && len(refusals) > 0:
		return fmt.Errorf("none of %d free pairs takes a circuit, the last: %w", len(refusals), refusals[len(refusals)-1])
	case len(b.pairs) == 0:
		return skipf("other clients have taken every port that was free")
	}
	return nil
}

// disconnect removes by whichever end, and reads back.
func (b *bench) disconnect(ctx context.Context, p ocs.Port) error {
	_, err := ocs.Execute(ctx, b.gate(), func(have ocs.Map) (ocs.Change, error) { return ocs.PlanDisconnect(have, p) })
	return err
}

func (b *bench) connectOne(ctx context.Context) error {
	c := b.pairs[0]
	r, err := ocs.Reconcile(ctx, b.gate(), ocs.MustMap(c), ocs.Safe)
	if err != nil {
		return err
	}
	if want := (ocs.Outcome{CrossConnect: c, State: ocs.Connected}); !slices.Contains(r.Outcomes, want) {
		return fmt.Errorf("the outcomes are %v, without %v", r.Outcomes, want)
	}
	t := r.Receipt
	if t.SendStart.IsZero() || t.Sent.Before(t.SendStart) || t.FirstByte.Before(t.SendStart) || t.Acked.Before(t.FirstByte) || t.Requests < 1 {
		return fmt.Errorf("the receipt makes no sense: %d requests, sent %v to %v, reply %v to %v", t.Requests, t.SendStart, t.Sent, t.FirstByte, t.Acked)
	}
	return b.expect(ctx, b.first, c)
}

func (b *bench) reconnect(ctx context.Context) error {
	c := b.pairs[0]
	if err := b.connect(ctx, c); err != nil {
		return err
	}
	before := b.sent.Load()
	if err := b.connect(ctx, c); err != nil {
		return err
	}
	if b.sent.Load() != before {
		return fmt.Errorf("%v was there and was asked for again, and something was sent", c)
	}
	_, err := b.gate().Apply(ctx, ocs.Change{Add: ocs.MustMap(c)})
	switch {
	case errors.Is(err, ocs.ErrConflict):
		b.quirk("reconnecting what is there", "refused", "%s", sentence(err))
	case err != nil:
		return err
	default:
		b.quirk("reconnecting what is there", "accepted", "%v was there and was asked for again", c)
	}
	return b.expect(ctx, b.first, c)
}

// update brings want about under Update on a device that holds have, and
// compares.
func (b *bench) update(ctx context.Context, have, want, after []ocs.CrossConnect) (ocs.Report, error) {
	if err := b.connect(ctx, have...); err != nil {
		return ocs.Report{}, err
	}
	r, err := ocs.Reconcile(ctx, b.gate(), ocs.MustMap(want...), ocs.Update)
	if err != nil {
		return r, err
	}
	return r, b.expect(ctx, b.first, after...)
}

// cross returns the paths from each ingress to the other egress.
func cross(c, d ocs.CrossConnect) (ocs.CrossConnect, ocs.CrossConnect) {
	return ocs.CrossConnect{Ingress: c.Ingress, Egress: d.Egress}, ocs.CrossConnect{Ingress: d.Ingress, Egress: c.Egress}
}

type paths = []ocs.CrossConnect

func (b *bench) moveIngress(ctx context.Context) error {
	c, d, err := b.couple(b.pairs...)
	if err != nil {
		return err
	}
	moved, _ := cross(c, d)
	_, err = b.update(ctx, paths{c}, paths{moved}, paths{moved})
	return err
}

func (b *bench) moveEgress(ctx context.Context) error {
	c, d, err := b.couple(b.pairs...)
	if err != nil {
		return err
	}
	_, moved := cross(c, d)
	_, err = b.update(ctx, paths{c}, paths{moved}, paths{moved})
	return err
}

func (b *bench) swap(ctx context.Context) error {
	c, d, err := b.couple(b.pairs...)
	if err != nil {
		return err
	}
	x, y := cross(c, d)
	r, err := b.update(ctx, paths{c, d}, paths{x, y}, paths{x, y})
	if err == nil {
		b.quirk("swap requests", fmt.Sprint(r.Receipt.Requests), "%v becomes %v", r.Change.Remove, r.Change.Add)
	}
	return err
}

func (b *bench) bulk(ctx context.Context) error {
	all := ocs.MustMap(b.pairs...)
	r, err := b.gate().Apply(ctx, ocs.Change{Add: all})
	if err != nil {
		return err
	}
	b.quirk("bulk requests", fmt.Sprint(r.Requests), "%d circuits in one change", all.Len())
	if err := b.expect(ctx, b.first, b.pairs...); err != nil {
		return err
	}
	if _, err := b.gate().Apply(ctx, ocs.Change{Remove: all}); err != nil {
		return err
	}
	return b.expect(ctx, b.first)
}

// noPort is a port that no supported device has. The one after the last would
// be there, and somebody's, if the device had told its size wrong.
const noPort = ocs.MaxPort

// deviceError checks that err is a refusal by the device.
func deviceError(err error, what string) error {
	switch {
	case err == nil:
		return fmt.Errorf("%s was acknowledged", what)
	case !as[*ocs.OpError](err):
		return fmt.Errorf("%s gives %T, not the error of a device: %w", what, err, err)
	case !refused(err):
		return fmt.Errorf("%s is not refused: %w", what, err)
	}
	return nil
}

func (b *bench) bulkBadPort(ctx context.Context) error {
	if b.id.Geometry.Has(noPort) {
		return skipf("the device has port %d", noPort)
	}
	c, bad := b.pairs[0], ocs.CrossConnect{Ingress: b.pairs[1].Ingress, Egress: noPort}
	_, err := b.gate().Apply(ctx, ocs.Change{Add: ocs.MustMap(c, bad)})
	if err := deviceError(err, fmt.Sprintf("a change with port %d, which the device does not have,", noPort)); err != nil {
		return err
	}
	m, readErr := b.first.CrossConnects(ctx)
	if readErr != nil {
		return readErr
	}
	const name = "bulk is all or nothing"
	switch got := b.ledger.onPool(m); {
	case got.Len() == 0:
		b.quirk(name, "yes", "+%v,%v: %s", c, bad, sentence(err))
	case got.Equal(ocs.MustMap(c)):
		b.quirk(name, "no", "%v was made although %v was refused: %s", c, bad, sentence(err))
	default:
		return fmt.Errorf("%v,%v was refused, but %v reads back", c, bad, got)
	}
	return nil
}

func (b *bench) badPortReconcile(ctx context.Context) error {
	if b.id.Geometry.Has(noPort) {
		return skipf("the device has port %d", noPort)
	}
	before := b.sent.Load()
	bad := ocs.CrossConnect{Ingress: b.pairs[0].Ingress, Egress: noPort}
	_, err := ocs.Reconcile(ctx, b.gate(), ocs.MustMap(bad), ocs.Safe)
	switch {
	case !errors.Is(err, ocs.ErrPort):
		return fmt.Errorf("%v should match %q, but gives: %w", bad, ocs.ErrPort, orNone(err))
	case b.sent.Load() != before:
		return fmt.Errorf("%v was refused only after it had been sent", bad)
	}
	return b.expect(ctx, b.first)
}

func orNone(err error) error {
	if err == nil {
		return errors.New("no error")
	}
	return err
}

func (b *bench) badPortApply(ctx context.Context) error {
	if b.id.Geometry.Has(noPort) {
		return skipf("the device has port %d", noPort)
	}
	bad := ocs.CrossConnect{Ingress: b.pairs[0].Ingress, Egress: noPort}
	_, err := b.gate().Apply(ctx, ocs.Change{Add: ocs.MustMap(bad)})
	if err := deviceError(err, bad.String()); err != nil {
		return err
	}
	return b.expect(ctx, b.first)
}

func (b *bench) disconnectIngress(ctx context.Context) error {
	return b.disconnectBy(ctx, func(c ocs.CrossConnect) ocs.Port { return c.Ingress })
}

func (b *bench) disconnectEgress(ctx context.Context) error {
	return b.disconnectBy(ctx, func(c ocs.CrossConnect) ocs.Port { return c.Egress })
}

// disconnectBy leaves a second circuit, if there is one, alone.
func (b *bench) disconnectBy(ctx context.Context, end func(ocs.CrossConnect) ocs.Port) error {
	some := b.pairs[:min(2, len(b.pairs))]
	if err := b.connect(ctx, some...); err != nil {
		return err
	}
	if err := b.disconnect(ctx, end(some[0])); err != nil {
		return err
	}
	return b.expect(ctx, b.first, some[1:]...)
}

func (b *bench) disconnectUnconnected(ctx context.Context) error {
	c, before := b.pairs[0], b.sent.Load()
	if err := b.disconnect(ctx, c.Ingress); !errors.Is(err, ocs.ErrNotConnected) {
		return fmt.Errorf("disconnecting port %d, which is free, should match %q, but gives: %w", c.Ingress, ocs.ErrNotConnected, orNone(err))
	}
	if b.sent.Load() != before {
		return errors.New("a disconnect of a free port was refused only after it had been sent")
	}
	_, err := b.gate().Apply(ctx, ocs.Change{Remove: ocs.MustMap(c)})
	const name = "disconnecting a free port"
	switch {
	case err == nil:
		b.quirk(name, "acknowledged", "-%v", c)
	case refused(err):
		b.quirk(name, "refused", "-%v: %s", c, sentence(err))
	default:
		return err
	}
	return b.expect(ctx, b.first)
}

func (b *bench) busySafe(ctx context.Context) error {
	c, d, err := b.couple(b.pairs...)
	if err != nil {
		return err
	}
	if err := b.connect(ctx, c); err != nil {
		return err
	}
	x, y := cross(c, d) // one wants the busy ingress, the other the busy egress
	before := b.sent.Load()
	for _, want := range (paths{x, y}) {
		if _, err := ocs.Reconcile(ctx, b.gate(), ocs.MustMap(want), ocs.Safe); !errors.Is(err, ocs.ErrConflict) {
			return fmt.Errorf("%v while %v is there should match %q, but gives: %w", want, c, ocs.ErrConflict, orNone(err))
		}
	}
	if b.sent.Load() != before {
		return errors.New("a busy port was refused only after something had been sent")
	}
	return b.expect(ctx, b.first, c)
}

// busyUpdate takes both ends from two circuits; a third stays.
func (b *bench) busyUpdate(ctx context.Context) error {
	c, d, err := b.couple(b.pairs...)
	if err != nil {
		return err
	}
	e := b.pairs[slices.IndexFunc(b.pairs, func(e ocs.CrossConnect) bool { return e != c && e != d })]
	x, _ := cross(c, d)
	r, err := b.update(ctx, paths{c, d, e}, paths{x}, paths{x, e})
	if err != nil {
		return err
	}
	if gone := ocs.MustMap(c, d); !r.Change.Remove.Equal(gone) {
		return fmt.Errorf("%v was in the way of %v, but %v was planned", gone, x, r.Change)
	}
	return nil
}

func (b *bench) busyOverwrite(ctx context.Context) error {
	return b.whole(ctx, func() error {
		c, d, err := b.couple(b.pairs...)
		if err != nil {
			return err
		}
		if err := b.connect(ctx, c, d); err != nil {
			return err
		}
		x, _ := cross(c, d)
		return b.overwrite(ctx, ocs.MustMap(x))
	})
}

// overwrite makes the device equal to want.
func (b *bench) overwrite(ctx context.Context, want ocs.Map) error {
	if _, err := ocs.Reconcile(ctx, b.gate(), want, ocs.Overwrite); err != nil {
		return err
	}
	m, err := b.first.CrossConnects(ctx)
	if err == nil && !m.Equal(want) {
		err = fmt.Errorf("overwriting with %v leaves %v", want, orNothing(m))
	}
	return err
}

func (b *bench) busyApply(ctx context.Context) error {
	c, d, err := b.couple(b.pairs...)
	if err != nil {
		return err
	}
	if err := b.connect(ctx, c); err != nil {
		return err
	}
	x, y := cross(c, d)
	var values []string
	for i, add := range (paths{x, y}) { // onto a busy ingress, then onto a busy egress
		side := []string{"ingress", "egress"}[i]
		if err := b.back(ctx, c); err != nil {
			return err
		}
		_, err := b.gate().Apply(ctx, ocs.Change{Add: ocs.MustMap(add)})
		switch {
		case err == nil:
			if err := b.expect(ctx, b.first, add); err != nil {
				return fmt.Errorf("the device took over a busy %s: %w", side, err)
			}
			values = append(values, "takeover")
			b.quirk("busy port", "takeover", "+%v onto %v was acknowledged, and the old circuit is gone", add, c)
		case errors.Is(err, ocs.ErrConflict):
			if err := b.expect(ctx, b.first, c); err != nil {
				return fmt.Errorf("the device refused a busy %s: %w", side, err)
			}
			values = append(values, "deny")
			b.quirk("busy port", "deny", "+%v onto %v: %s", add, c, sentence(err))
		default:
			return fmt.Errorf("+%v onto %v should take over, or match %q, but gives: %w", add, c, ocs.ErrConflict, err)
		}
	}
	if values[0] != values[1] {
		b.quirk("busy port", values[0]+" at ingress, "+values[1]+" at egress", "+%v and +%v onto %v", x, y, c)
	}
	return nil
}

// back makes the ports of the suite hold exactly want.
func (b *bench) back(ctx context.Context, want ocs.CrossConnect) error {
	m, err := b.first.CrossConnects(ctx)
	if err != nil {
		return err
	}
	change := ocs.Diff(b.ledger.ours(m), ocs.MustMap(want))
	if change.Empty() {
		return nil
	}
	if _, err := b.gate().Apply(ctx, change); err != nil {
		return err
	}
	return b.expect(ctx, b.first, want)
}

// ackTime measures how long acknowledgements take, from before the request was
// written, since a reply may be read before the writing is known to be over.
// Where a move takes several requests it is the last one that is measured.
func (b *bench) ackTime(ctx context.Context) error {
	c, d, err := b.couple(b.pairs...)
	if err != nil {
		return err
	}
	moved, _ := cross(c, d)
	if err := b.connect(ctx, c); err != nil {
		return err
	}
	var single, bulk []time.Duration
	measure := func(into *[]time.Duration, change ocs.Change) error {
		r, err := b.gate().Apply(ctx, change)
		if err == nil {
			*into = append(*into, r.Acked.Sub(r.SendStart))
		}
		return err
	}
	from, to := c, moved
	for range 5 {
		if err := measure(&single, ocs.Diff(ocs.MustMap(from), ocs.MustMap(to))); err != nil {
			return err
		}
		from, to = to, from
	}
	if _, err := b.gate().Apply(ctx, ocs.Change{Remove: ocs.MustMap(from)}); err != nil {
		return err
	}
	all := ocs.MustMap(b.pairs...)
	for range 3 {
		if err := measure(&bulk, ocs.Change{Add: all}); err != nil {
			return err
		}
		if _, err := b.gate().Apply(ctx, ocs.Change{Remove: all}); err != nil {
			return err
		}
	}
	b.quirk("ack time of one move", short(median(single)), "median of %s", durations(single))
	b.quirk(fmt.Sprintf("ack time of %d at once", all.Len()), short(median(bulk)), "median of %s", durations(bulk))
	return nil
}

func median(ds []time.Duration) time.Duration {
	s := slices.Sorted(slices.Values(ds))
	return s[len(s)/2]
}

func durations(ds []time.Duration) string {
	var s []string
	for _, d := range ds {
		s = append(s, short(d))
	}
	return fmt.Sprint(s)
}

// bulkAllPorts fills the device. When it refuses, ports that refuse one by one
// are left out.
func (b *bench) bulkAllPorts(ctx context.Context) error {
	g := b.id.Geometry
	if !g.Known() {
		return skipf("the size of the device is not known")
	}
	return b.whole(ctx, func() error {
		for _, full := range fills(g) {
			err := b.overwrite(ctx, ocs.MustMap(full...))
			if err != nil && refused(err) {
				n := len(full)
				full = slices.DeleteFunc(full, func(c ocs.CrossConnect) bool { return refused(orNone(b.overwrite(ctx, ocs.MustMap(c)))) })
				b.quirk("ports that refuse", fmt.Sprintf("%d pairs", n-len(full)), "all %d at once: %s", n, sentence(err))
				if len(full) == n || len(full) == 0 {
					return err
				}
				err = b.overwrite(ctx, ocs.MustMap(full...))
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// fills returns maps that use as many ports of a device as can be used: one for
// each of the places where a transceiver can send its light.
func fills(g ocs.Geometry) []paths {
	in, out := g.IngressPorts(), g.EgressPorts()
	if g.SingleSided {
		in, out = in[:len(in)/2], in[len(in)/2:]
	}
	places := 1
	if g.Lanes > 0 {
		places = len(out) / len(in)
	}
	var all []paths
	for range places {
		n := min(len(in), len(out))
		full := make(paths, 0, n)
		for i := range n {
			full = append(full, ocs.CrossConnect{Ingress: in[i], Egress: out[i]})
		}
		all, out = append(all, full), out[n:]
	}
	return all
}
