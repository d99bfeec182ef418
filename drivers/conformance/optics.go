package conformance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/ocslab/ocslab/internal/pause"
	"github.com/ocslab/ocslab/ocs"
)

// What counts as light and as darkness, and as the loss of a path that works.
// Two monitors of 1 dB accuracy may make a small loss look like a gain.
const (
	lightFrom ocs.DBm = -30
	darkFrom  ocs.DBm = -40
	lossFrom  ocs.DB  = -1
	lossTo    ocs.DB  = 10
)

// power reads one port through the first session. There is no reading when the
// port has no monitor.
func (b *bench) power(ctx context.Context, p ocs.Port) (ocs.PowerReading, ocs.DBm, error) {
	pm, ok := ocs.As[ocs.PowerMeter](b.first)
	if !ok {
		return ocs.PowerReading{}, 0, skipf("there is no power-meter")
	}
	r, err := pm.Power(ctx, p)
	if err != nil {
		return r, 0, err
	}
	x, has := r.Ports[p]
	if !has {
		return r, 0, skipf("port %d has no monitor", p)
	}
	return r, x, nil
}

// litPairs returns the pairs of the suite that light enters at. Where monitors
// at the ingress cannot tell, all of them are connected to see.
func (b *bench) litPairs(ctx context.Context) (paths, error) {
	if b.litKnown || !b.supported[capPower] {
		return b.lit, nil
	}
	ports := make([]ocs.Port, 0, len(b.pairs))
	// A lane of a transceiver launches no light while it is in no circuit.
	monitored := b.id.Geometry.Lanes == 0
	for _, c := range b.pairs {
		ports = append(ports, c.Ingress)
		if _, has := b.monitors[c.Ingress]; !has {
			monitored = false
		}
	}
	pm, ok := ocs.As[ocs.PowerMeter](b.first)
	if !ok || len(b.pairs) == 0 {
		return nil, nil
	}
	var lit paths
	if monitored {
		r, err := pm.Power(ctx, ports...)
		if err != nil {
			return nil, err
		}
		for _, c := range b.pairs {
			if x, has := r.Ports[c.Ingress]; has && x >= lightFrom {
				lit = append(lit, c)
			}
		}
	} else {
		if err := b.connect(ctx, b.pairs...); err != nil {
			return nil, err
		}
		for i, c := range b.pairs {
			ports[i] = c.Egress
		}
		if _, err := b.soon(ctx, func() (bool, error) {
			r, err := pm.Power(ctx, ports...)
			lit = nil
			for _, c := range b.pairs {
				if x, has := r.Ports[c.Egress]; has && x >= lightFrom {
					lit = append(lit, c)
				}
			}
			return len(lit) == len(b.pairs), err
		}); err != nil {
			return nil, err
		}
		if _, err := b.gate().Apply(ctx, ocs.Change{Remove: ocs.MustMap(b.pairs...)}); err != nil {
			return nil, err
		}
	}
	b.lit, b.litKnown = lit, true
	return lit, nil
}

// becomes waits until the power at p satisfies ok. The error says what it is
// instead.
func (b *bench) becomes(ctx context.Context, p ocs.Port, what string, ok func(ocs.DBm) bool) error {
	var x ocs.DBm
	done, err := b.soon(ctx, func() (bool, error) {
		var err error
		_, x, err = b.power(ctx, p)
		return err == nil && ok(x), err
	})
	if err == nil && !done {
		err = fmt.Errorf("port %d should be %s, but still reads %v after %v", p, what, x, b.cfg.Settle)
	}
	return err
}

func isLit(x ocs.DBm) bool  { return x >= lightFrom }
func isDark(x ocs.DBm) bool { return x <= darkFrom }

func (b *bench) powerLoss(ctx context.Context) error {
	g := b.id.Geometry
	has := func(p ocs.Port) bool { _, has := b.monitors[p]; return has }
	if !slices.ContainsFunc(g.IngressPorts(), has) || !slices.ContainsFunc(g.EgressPorts(), has) {
		return unsupportedf("there are monitors on one side only, so that no loss can be told")
	}
	lit, err := b.litPairs(ctx)
	switch {
	case err != nil:
		return err
	case len(lit) == 0:
		return skipf("no light at the free ports")
	}
	for _, p := range []ocs.Port{lit[0].Ingress, lit[0].Egress} {
		if !has(p) {
			return skipf("there is light, but no monitor at port %d, so that no loss can be told", p)
		}
	}
	if err := b.connect(ctx, lit...); err != nil {
		return err
	}
	pm, _ := ocs.As[ocs.PowerMeter](b.first)
	ports := ocs.MustMap(lit...).Ports()
	var losses []ocs.DB
	var bad error
	plausible := func() (bool, error) {
		r, err := pm.Power(ctx, ports...)
		losses, bad = nil, nil
		for _, c := range lit {
			in, hasIn := r.Ports[c.Ingress]
			out, hasOut := r.Ports[c.Egress]
			loss := in.Sub(out)
			losses = append(losses, loss)
			if !hasIn || !hasOut || math.IsNaN(float64(loss)) || loss < lossFrom || loss > lossTo {
				bad = fmt.Errorf("%v: %v enters and %v leaves, which is a loss of %v, not of 0 to %v", c, in, out, loss, lossTo)
			}
		}
		return bad == nil, err
	}
	if _, err := b.soon(ctx, plausible); err != nil {
		return err
	}
	// While they average over the move the monitors read less than there is.
	var window time.Duration
	for _, p := range ports {
		window = max(window, b.monitors[p].Averaging)
	}
	if err := pause.For(ctx, window); err != nil {
		return err
	}
	if _, err := plausible(); err != nil {
		return err
	}
	if bad != nil {
		return bad
	}
	slices.Sort(losses)
	b.quirk("insertion loss", losses[len(losses)/2].String(), "median of %d paths, %v to %v, by the monitors", len(losses), losses[0], losses[len(losses)-1])
	return nil
}

// measuresBothWays is why devices of a kind do not see that a free port is dark.
func measuresBothWays(g ocs.Geometry) string {
	if !g.SingleSided {
		return ""
	}
	return "a free port of a single-sided switch measures the light that enters it"
}

func (b *bench) powerDark(ctx context.Context) error {
	p := b.pairs[0].Egress
	if err := b.claim(ctx, b.first, p); err != nil { // reads only, but wants it free
		return err
	}
	return b.becomes(ctx, p, "dark since it is in no circuit", isDark)
}

func (b *bench) monitorAveraging(ctx context.Context) error {
	pm, _ := ocs.As[ocs.PowerMeter](b.first)
	i := slices.IndexFunc(b.pairs, func(c ocs.CrossConnect) bool { _, has := b.monitors[c.Egress]; return has })
	if i < 0 {
		return skipf("none of the free egress ports has a monitor")
	}
	was := b.monitors[b.pairs[i].Egress]
	var seen []string
	for _, want := range []time.Duration{20 * time.Millisecond, 200 * time.Millisecond, time.Second} {
		m := was
		m.Averaging = want
		if err := b.setMonitor(ctx, m); err != nil {
			return err
		}
		ms, err := pm.Monitors(ctx, m.Port)
		if err != nil {
			return err
		}
		if len(ms) != 1 || ms[0].Port != m.Port {
			return fmt.Errorf("asked for the monitor of port %d, the device tells %v", m.Port, ms)
		}
		got := ms[0]
		seen = append(seen, fmt.Sprintf("%v gives %v", want, got.Averaging))
		// The steps of devices differ, by less than a factor of 2.5.
		if got.Averaging < want*2/5 || got.Averaging > want*5/2 {
			return fmt.Errorf("the averaging of port %d was set to %v, and reads back as %v", m.Port, want, got.Averaging)
		}
		if got.WavelengthNM != was.WavelengthNM || got.Offset != was.Offset {
			return fmt.Errorf("setting the averaging of port %d changed its wavelength or offset: %g nm, %v became %g nm, %v", m.Port, was.WavelengthNM, was.Offset, got.WavelengthNM, got.Offset)
		}
	}
	b.quirk("averaging", joined(seen), "at port %d, which was set to %v", was.Port, was.Averaging)
	return nil
}

// ackLight moves lit circuits and looks at the first reading whose whole
// averaging time is after the acknowledgement: if the light is not there then,
// the device acknowledged before. What is less than the averaging time cannot
// be told.
func (b *bench) ackLight(ctx context.Context) error {
	lit, err := b.litPairs(ctx)
	switch {
	case err != nil:
		return err
	case len(lit) == 0:
		return skipf("no light at the free ports")
	}
	c, d, err := b.couple(lit...)
	if err != nil {
		return err
	}
	moved, _ := cross(c, d)
	window := time.Duration(0)
	for _, p := range []ocs.Port{c.Egress, d.Egress} {
		m, has := b.monitors[p]
		if !has {
			return skipf("port %d has no monitor", p)
		}
		m.Averaging = 10 * time.Millisecond
		err := b.setMonitor(ctx, m)
		if err != nil && (b.assumed || !errors.Is(err, ocs.ErrNotSupported)) {
			return err
		}
		// What it averages over is told also where it cannot be set.
		pm, _ := ocs.As[ocs.PowerMeter](b.first)
		ms, err := pm.Monitors(ctx, p)
		if err != nil {
			return err
		}
		for _, m := range ms {
			window = max(window, m.Averaging)
		}
	}
	if err := b.connect(ctx, c); err != nil {
		return err
	}
	if err := b.becomes(ctx, c.Egress, "lit", isLit); err != nil {
		return err
	}
	var before int
	var latest span
	const moves = 3
	from, to := c, moved
	for range moves {
		r, err := b.gate().Apply(ctx, ocs.Diff(ocs.MustMap(from), ocs.MustMap(to)))
		if err != nil {
			return err
		}
		gap, err := b.lightAfter(ctx, to.Egress, r.Acked, window)
		if err != nil {
			return err
		}
		if gap.to > 0 {
			before++
		}
		if gap.to > latest.to {
			latest = gap
		}
		from, to = to, from
	}
	const name = "acknowledges"
	switch before {
	case 0:
		b.quirk(name, "after the light", "%d moves, each lit within %v of the acknowledgement, which is how finely the monitor can tell", moves, window)
	case moves:
		b.quirk(name, "before the light", "%d moves, light within 1 dB of where it settles as late as %v after the acknowledgement", moves, latest)
	default:
		b.quirk(name, "sometimes before the light", "%d of %d moves, light as late as %v after the acknowledgement", before, moves, latest)
	}
	return nil
}

// span is within what time something must have happened.
type span struct{ from, to time.Duration }

func (s span) String() string { return short(s.from) + " to " + short(s.to) }

// lightAfter polls p until the power stays, and returns how long after the
// acknowledgement the light came; the zero span when it was there in the first
// reading that can tell.
func (b *bench) lightAfter(ctx context.Context, p ocs.Port, acked time.Time, window time.Duration) (span, error) {
	type reading struct {
		earliest, latest time.Time
		power            ocs.DBm
	}
	var seen []reading
	ends := acked.Add(b.cfg.Settle)
	for {
		r, x, err := b.power(ctx, p)
		if err != nil {
			return span{}, err
		}
		if r.Earliest.Sub(acked) >= window {
			seen = append(seen, reading{r.Earliest, r.Latest, x})
		}
		// Settled: lit, and the same for a while.
		const stable = 5
		if n := len(seen); n >= stable {
			tail := seen[n-stable:]
			level := func(a, b reading) int { return cmp.Compare(a.power, b.power) }
			low, high := slices.MinFunc(tail, level).power, slices.MaxFunc(tail, level).power
			if isLit(low) && high.Sub(low) < 0.5 && tail[stable-1].earliest.Sub(tail[0].latest) >= window {
				break
			}
		}
		if time.Now().After(ends) {
			return span{}, fmt.Errorf("port %d should be lit, but reads %v %v after the acknowledgement", p, x, b.cfg.Settle)
		}
		if err := pause.For(ctx, max(window/4, time.Millisecond)); err != nil {
			return span{}, err
		}
	}
	final := seen[len(seen)-1].power
	there := slices.IndexFunc(seen, func(r reading) bool { return final.Sub(r.power) <= 1 })
	if there == 0 {
		return span{}, nil
	}
	// The reading before was a mean that was still too low.
	return span{seen[there-1].earliest.Add(-window).Sub(acked), seen[there].latest.Sub(acked)}, nil
}

// shutter closes and opens the egress and then the ingress of a circuit.
func (b *bench) shutter(ctx context.Context) error {
	s, _ := ocs.As[ocs.Shutter](b.first)
	lit, err := b.litPairs(ctx)
	if err != nil {
		return err
	}
	c, watched := b.pairs[0], false
	for _, k := range lit {
		if _, has := b.monitors[k.Egress]; has {
			c, watched = k, true
			break
		}
	}
	if err := b.connect(ctx, c); err != nil {
		return err
	}
	if watched {
		if err := b.becomes(ctx, c.Egress, "lit", isLit); err != nil {
			return err
		}
	}
	for _, p := range []ocs.Port{c.Egress, c.Ingress} {
		for _, closed := range []bool{true, false} {
			what, light, ok := "open", "lit with the shutters open", isLit
			if closed {
				what, light, ok = "closed", fmt.Sprintf("dark with the shutter of port %d closed", p), isDark
			}
			if err := b.setShutters(ctx, b.first, closed, p); err != nil {
				return err
			}
			now, err := s.Shutters(ctx, p)
			if err != nil {
				return err
			}
			if is, told := now[p]; !told || is != closed {
				return fmt.Errorf("the shutter of port %d should be %s, but does not read back so", p, what)
			}
			if err := b.expect(ctx, b.first, c); err != nil {
				return fmt.Errorf("with the shutter of port %d %s: %w", p, what, err)
			}
			if watched {
				if err := b.becomes(ctx, c.Egress, light, ok); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// attenuator turns the light of a circuit down, and up again.
func (b *bench) attenuator(ctx context.Context) error {
	a, _ := ocs.As[ocs.Attenuator](b.first)
	c := b.pairs[0]
	if lit, err := b.litPairs(ctx); err != nil {
		return err
	} else if len(lit) > 0 {
		c = lit[0]
	}
	switch was, err := a.Attenuation(ctx, c.Egress); {
	case err != nil:
		return err
	case was != 0:
		return skipf("the attenuator of port %d is set to %v, and stays so", c.Egress, was)
	}
	if err := b.connect(ctx, c); err != nil {
		return err
	}
	_, watched := b.monitors[c.Egress]
	watched = watched && slices.Contains(b.lit, c)
	var full ocs.DBm
	if watched {
		if err := b.becomes(ctx, c.Egress, "lit", isLit); err != nil {
			return err
		}
		// The monitor may average over the move.
		if err := pause.For(ctx, b.monitors[c.Egress].Averaging); err != nil {
			return err
		}
		var err error
		if _, full, err = b.power(ctx, c.Egress); err != nil {
			return err
		}
	}
	const loss = 12 // dB of the whole path, more than any mirror takes
	if err := b.setAttenuation(ctx, c.Egress, loss); err != nil {
		return err
	}
	if now, err := a.Attenuation(ctx, c.Egress); err != nil || now.String() != ocs.DB(loss).String() {
		return fmt.Errorf("the attenuator of port %d was set to %v, and %v reads back: %w", c.Egress, ocs.DB(loss), now, orNone(err))
	}
	if watched {
		dim := func(x ocs.DBm) bool { return full.Sub(x) > loss/2 }
		if err := b.becomes(ctx, c.Egress, fmt.Sprintf("well below %v with %v of attenuation", full, ocs.DB(loss)), dim); err != nil {
			return err
		}
	}
	if err := b.setAttenuation(ctx, c.Egress, 0); err != nil {
		return err
	}
	if watched {
		bright := func(x ocs.DBm) bool { return full.Sub(x) < 1 }
		return b.becomes(ctx, c.Egress, fmt.Sprintf("back at %v without attenuation", full), bright)
	}
	return nil
}
