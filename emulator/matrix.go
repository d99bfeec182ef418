package emulator

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/timeline"
)

// Operation is a command to the matrix that the device has accepted.
type Operation struct {
	Number  int       // 1 for the first; the Reconfiguration of its truth marks
	Ack     time.Time // when the device acknowledges it
	Settled time.Time // when the last path of it has settled
}

// FailedPortError is a port whose hardware has failed.
type FailedPortError struct{ Port ocs.Port }

// Error returns one sentence.
func (e *FailedPortError) Error() string { return fmt.Sprintf("port %d has failed", e.Port) }

// LimitError is a command with more cross-connects than the device takes.
type LimitError struct{ Pairs, Max int }

// Error returns one sentence.
func (e *LimitError) Error() string {
	return fmt.Sprintf("%d cross-connects in one command, at most %d are possible", e.Pairs, e.Max)
}

func (d *Device) beginLocked(now int64) Operation {
	d.ops++
	t := d.axis.Time(now)
	return Operation{Number: d.ops, Ack: t, Settled: t}
}

// heldLocked returns the cross-connect that uses n.
func (d *Device) heldLocked(n ocs.Port) (ocs.CrossConnect, bool) {
	switch p := &d.ports[n]; {
	case p.peer == 0:
		return ocs.CrossConnect{}, false
	case p.ingress:
		return ocs.CrossConnect{Ingress: n, Egress: p.peer}, true
	default:
		return ocs.CrossConnect{Ingress: p.peer, Egress: n}, true
	}
}

// jammedLocked reports whether n cannot be moved: its mirror is stuck, or the
// one that it is joined to.
func (d *Device) jammedLocked(n ocs.Port) bool {
	return d.stuck[n] || d.stuck[d.ports[n].peer]
}

// dropLocked removes the cross-connect at n, if there is one, and returns it.
func (d *Device) dropLocked(n ocs.Port, now int64) (c ocs.CrossConnect, dropped bool) {
	c, dropped = d.heldLocked(n)
	if dropped {
		d.ports[c.Ingress].peer, d.ports[c.Egress].peer = 0, 0
		d.shineLocked(c.Egress, 0, now)
	}
	return c, dropped
}

// joinLocked makes cross-connects between free ports and sets when the
// operation has settled and is acknowledged.
func (d *Device) joinLocked(ccs []ocs.CrossConnect, now int64, op *Operation) {
	sw := d.p.Switching
	last := now
	for _, c := range ccs {
		out := d.seatLocked(c)
		out.settled = now + int64(d.drawLocked(c, len(ccs) > 1))
		out.path = settling(now, out.settled, sw.Rise)
		out.loss += float32(d.p.Optics.Repeatability * (2*d.switches.Float64() - 1))
		d.shineLocked(c.Egress, d.levelLocked(c), now)
		last = max(last, out.settled)
	}
	op.Settled = d.axis.Time(last)
	if sw.Ack == AckAfter {
		op.Ack = op.Settled
	}
}

// seatLocked enters a cross-connect between free ports, with light that has
// always been there, and returns its egress.
func (d *Device) seatLocked(c ocs.CrossConnect) *port {
	in, out := &d.ports[c.Ingress], &d.ports[c.Egress]
	in.peer, in.ingress = c.Egress, true
	out.peer, out.ingress = c.Ingress, false
	out.loss, out.path, out.settled = float32(d.pathLoss(c)), path{begin: always}, always
	return out
}

// levelLocked returns the power in mW that leaves at the egress of c when it
// has settled.
func (d *Device) levelLocked(c ocs.CrossConnect) float64 {
	in, out := &d.ports[c.Ingress], &d.ports[c.Egress]
	if in.closed || out.closed || in.blocked || out.blocked || d.unlit[c.Ingress] || d.unlit[c.Egress] {
		return 0
	}
	level := ocs.DBm(in.launch - out.loss).Add(-d.losses.of(c))
	if len(d.voas) > 0 {
		level -= ocs.DBm(d.attenuationLocked(c))
	}
	return level.Milliwatts()
}

// relightLocked brings the power of the cross-connect at n, if there is one, in
// line after something other than the mirrors has changed: a shutter, a source.
func (d *Device) relightLocked(n ocs.Port, now int64) {
	if c, ok := d.heldLocked(n); ok {
		d.shineLocked(c.Egress, d.levelLocked(c), now)
	}
}

// shineLocked changes the level that the power at an egress goes to, and says
// in the truth log what that means for the light.
func (d *Device) shineLocked(n ocs.Port, level float64, now int64) {
	p := &d.ports[n]
	was := p.out.level()
	if was == level {
		return
	}
	seen := now
	switch {
	case level == 0:
		if !d.truth.cancel(n) {
			d.truth.add(fact{Interval: timeline.Point(now), stage: timeline.Dark, op: d.ops, port: n})
		}
	case now < p.settled:
		seen = p.settled
		if was == 0 {
			d.truth.expect(fact{Interval: timeline.Point(p.settled), stage: timeline.Light, op: d.ops, port: n})
		}
	case was == 0:
		d.truth.add(fact{Interval: timeline.Point(now), stage: timeline.Light, op: d.ops, port: n})
	}
	p.out = p.out.then(segment{now, p.path, level})
	d.tellLightLocked(n, level, seen, now)
	d.watchAlarmsLocked(n, seen, now)
}

// CrossConnects returns what the device holds.
func (d *Device) CrossConnects() ocs.Map {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.mapLocked()
}

func (d *Device) mapLocked() ocs.Map {
	var ccs []ocs.CrossConnect
	for i := range d.ports {
		if p := &d.ports[i]; p.peer != 0 && p.ingress {
			ccs = append(ccs, ocs.CrossConnect{Ingress: ocs.Port(i), Egress: p.peer})
		}
	}
	return ocs.MustMap(ccs...)
}

// pathLoss returns the insertion loss of the path, without the part that
// changes each time it is made.
func (d *Device) pathLoss(c ocs.CrossConnect) float64 {
	o := d.p.Optics
	// The sum of four even draws of variance 1/12 is normal enough, and much
	// cheaper than a normal one: there is a loss to draw for each new path.
	u := rand.NewPCG(d.seed, drawLoss<<48|uint64(c.Ingress)<<24|uint64(c.Egress)).Uint64()
	sum := u&0xffff + u>>16&0xffff + u>>32&0xffff + u>>48
	n := (float64(sum)/(1<<16) - 2) * math.Sqrt(3)
	return min(max(o.Loss+o.LossSpread*n, o.Loss/2), o.LossMax-o.Repeatability)
}
