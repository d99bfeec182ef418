package rail

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ocslab/ocslab/internal/natural"
	"github.com/ocslab/ocslab/ocs"
)

const (
	// lightPause is between two readings. The first pause is a fifth of it: two readings show light that rises.
	lightPause = 5 * time.Millisecond
	// brighter is by how much a reading must exceed an earlier one to be more than noise of the monitor.
	brighter ocs.DB = 1
	// unknownAveraging is assumed of monitors that do not report their averaging time: the factory setting of Polatis.
	unknownAveraging = 100 * time.Millisecond
	// denials are how many readings in a row a switch may deny before it counts as one without monitors.
	denials = 3
)

// errNoMonitors is a switch whose light cannot be read.
var errNoMonitors = fmt.Errorf("it has no power monitors at the egress: use --verify table: %w", ocs.ErrNotSupported)

// errUnseen is a change whose light could not be looked at.
var errUnseen = errors.New("no answer about the light")

// unseen is a circuit whose light has not been seen yet.
type unseen struct {
	Path
	t      *ticket
	lowest ocs.DBm // reading at the egress since the acknowledgement
	read   bool    // Out and lowest are readings
}

// verifying returns what a change has to pass.
func (o *Orchestrator) verifying() Verify {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.verifyingLocked()
}

func (o *Orchestrator) verifyingLocked() Verify {
	if o.unmonitored {
		return Table
	}
	return o.opt.Verify
}

// feeding returns the circuit that feeds the egress of duplex port q from port p.
func (o *Orchestrator) feeding(q int, p int32) ocs.CrossConnect {
	return ocs.CrossConnect{Ingress: o.opt.Assignment[p].In, Egress: o.opt.Assignment[q].Out}
}

// unseen returns the circuits of the batch whose light has to be seen: those that were made and, where it is not
// certain what was there before, all.
func (x *try) unseen() (all []*unseen) {
	for k, t := range x.batch {
		if x.failed[t] != nil || t.kind == takeOld {
			continue
		}
		for i, q := range t.ports {
			if p := t.goal[i]; p >= 0 && (t.look || t.attempt > 1 || x.now[k][i] != p) {
				all = append(all, &unseen{t: t, Path: Path{CrossConnect: x.o.feeding(q, p)}})
			}
		}
	}
	return all
}

// light waits until the monitors show the light of all circuits of the batch. A ticket with a circuit that stays dark
// fails.
//
// A monitor shows the mean over its averaging time, so shortly after a change a reading may be the light of the circuit
// before. It proves the new one when the averaging time has passed since the acknowledgement, or when it exceeds an
// earlier reading since then: light of before can only leave the mean.
func (x *try) light() {
	o := x.o
	if o.verifying() != Light {
		return
	}
	left := x.unseen()
	if len(left) == 0 {
		return
	}
	meter, ok := ocs.As[ocs.PowerMeter](x.sw)
	if !ok {
		x.unmonitored()
		return
	}
	ctx, cancel := context.WithTimeoutCause(o.ctx, o.opt.Patience, context.DeadlineExceeded)
	defer cancel()
	averaging := o.averaging(ctx, meter)
	dim := map[*ticket]bool{}
	var lastErr error
	pause := lightPause / 5
	for denied := 0; ; {
		sampled := time.Now()
		r, err := meter.Power(ctx, egresses(left)...)
		if r.Earliest.After(sampled) {
			sampled = r.Earliest
		}
		lastErr = err
		switch {
		case err == nil && len(r.Ports) > 0:
			denied = 0
			o.mu.Lock()
			o.metered = true
			o.mu.Unlock()
		case err == nil || errors.Is(err, ocs.ErrNotSupported) || errors.Is(err, ocs.ErrDenied):
			o.mu.Lock()
			metered := o.metered
			o.mu.Unlock()
			if denied++; !metered && (denied == denials || !errors.Is(err, ocs.ErrDenied)) {
				x.unmonitored()
				return
			}
		}
		if err == nil {
			var lit []Path
			left = slices.DeleteFunc(left, func(u *unseen) bool {
				power, has := r.Ports[u.Egress]
				if !has {
					dim[u.t] = true
					return true
				}
				if u.sees(power, o.opt.Threshold, sampled.Sub(u.t.acked) >= averaging) {
					lit = append(lit, u.Path)
					return true
				}
				return false
			})
			if dark := o.input(ctx, meter, left); len(dark) > 0 {
				left = slices.DeleteFunc(left, func(u *unseen) bool {
					without := slices.Contains(dark, u.Ingress)
					dim[u.t] = dim[u.t] || without
					return without
				})
			}
			o.sawLight(lit)
		}
		if len(left) == 0 {
			x.noteLit(dim)
			return
		}
		select {
		case <-time.After(pause):
			pause = min(2*pause, lightPause)
			continue
		case <-ctx.Done():
		}
		break
	}
	x.dark(left, lastErr)
}

// sees takes a reading at the egress, and reports whether it shows the light of the circuit. late: the averaging time
// has passed since the circuit was acknowledged.
func (u *unseen) sees(power, threshold ocs.DBm, late bool) bool {
	u.Out = power
	if !u.read {
		u.read, u.lowest = true, power
	}
	u.lowest = min(u.lowest, power)
	rise := power.Milliwatts() - u.lowest.Milliwatts()
	return power > threshold && (late || power.Sub(u.lowest) >= brighter && rise > threshold.Milliwatts())
}

func egresses(of []*unseen) []ocs.Port {
	var ports []ocs.Port
	for _, u := range of {
		ports = append(ports, u.Egress)
	}
	slices.Sort(ports)
	return slices.Compact(ports)
}

// input reads the power at the ingress of circuits that show too little at the egress, and returns the ingress ports
// where no light comes in.
func (o *Orchestrator) input(ctx context.Context, meter ocs.PowerMeter, of []*unseen) (dark []ocs.Port) {
	var ports []ocs.Port
	for _, u := range of {
		if u.read && u.Out <= o.opt.Threshold {
			ports = append(ports, u.Ingress)
		}
	}
	in := inputs(ctx, meter, ports)
	for _, u := range of {
		if power, has := in[u.Ingress]; has {
			u.In = &power
		}
	}
	return o.noInput(in)
}

// inputs returns the power that comes in at ports; nothing of those where no monitor says so.
func inputs(ctx context.Context, meter ocs.PowerMeter, ports []ocs.Port) map[ocs.Port]ocs.DBm {
	if len(ports) == 0 {
		return nil
	}
	slices.Sort(ports)
	r, err := meter.Power(ctx, slices.Compact(ports)...)
	if err != nil {
		return nil // no monitors there, or no answer: the input is not measured
	}
	return r.Ports
}

// noInput returns the ports of in that have no light, and notes them. A threshold that asks for more than a trace of
// light at the egress asks for no more at the ingress: weak input that leads to weak output is a failure.
func (o *Orchestrator) noInput(in map[ocs.Port]ocs.DBm) (dark []ocs.Port) {
	for port, power := range in {
		if power <= min(o.opt.Threshold, ocs.NoLight) {
			dark = append(dark, port)
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, port := range dark {
		o.unfed[port] = true
	}
	return dark
}

// sawLight notes that circuits carry light.
func (o *Orchestrator) sawLight(paths []Path) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, p := range paths {
		delete(o.unfed, p.Ingress)
	}
}

// noteLit notes when the light of each ticket was seen, except for tickets in dim: not all of their circuits could be
// measured, or had input light.
func (x *try) noteLit(dim map[*ticket]bool) {
	now := time.Now()
	some := false
	for _, t := range x.batch {
		if x.failed[t] == nil && t.kind != takeOld && !dim[t] {
			t.light, some = now, true
		}
	}
	if some {
		x.o.mu.Lock()
		x.o.tellLocked(Event{What: Lit, Requests: x.requests, Attempt: x.batch[0].attempt, At: now})
		x.o.mu.Unlock()
	}
}

// unmonitored is for a switch whose light cannot be read: unless Light was asked for, its table has to do.
func (x *try) unmonitored() {
	o := x.o
	if !o.byDefault {
		x.failRest(final{fmt.Errorf("the light of %s cannot be verified: %w", o.opt.Switch, errNoMonitors)})
		return
	}
	o.mu.Lock()
	o.unmonitored = true
	o.mu.Unlock()
}

// dark fails the tickets whose circuits have shown no light in time.
func (x *try) dark(left []*unseen, err error) {
	o := x.o
	of := map[*ticket][]Path{}
	for _, u := range left {
		if !u.read {
			x.fail(u.t, fmt.Errorf("%w of %s within %v: %w", errUnseen, o.opt.Switch, o.opt.Patience, err))
			continue
		}
		of[u.t] = append(of[u.t], u.Path)
	}
	for t, paths := range of {
		q, _ := o.ofOut.at(paths[0].Egress)
		text := fmt.Sprintf("no light came within %v at port %d, %s, of %s, though %v", o.opt.Patience, paths[0].Egress, o.name(int(q)), o.opt.Switch, paths[0])
		if n := len(paths); n > 1 {
			text += fmt.Sprintf(" (%s in all)", natural.Count(n, "port"))
		}
		x.fail(t, &unlit{text, paths})
	}
}

// averaging returns over how long the monitors of the rail average.
func (o *Orchestrator) averaging(ctx context.Context, meter ocs.PowerMeter) time.Duration {
	o.mu.Lock()
	known, longest := o.monitored, o.averages
	o.mu.Unlock()
	if known {
		return longest
	}
	ports := make([]ocs.Port, len(o.all))
	for q := range ports {
		ports[q] = o.opt.Assignment[q].Out
	}
	all, err := meter.Monitors(ctx, ports...)
	for _, m := range all {
		longest = max(longest, m.Averaging)
	}
	if err != nil {
		longest = max(longest, unknownAveraging)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.monitored = err == nil || errors.Is(err, ocs.ErrNotSupported) || errors.Is(err, ocs.ErrDenied)
	o.averages = longest
	return longest
}

// noteDarkLocked keeps the circuits that failed a change since they had no light.
func (o *Orchestrator) noteDarkLocked(err error) {
	var u *unlit
	if !errors.As(err, &u) {
		return
	}
	for _, p := range u.paths {
		o.darkPaths[p.CrossConnect] = p
	}
}

// darkLocked returns them in order.
func (o *Orchestrator) darkLocked() []Path {
	return slices.SortedFunc(maps.Values(o.darkPaths), func(a, b Path) int { return int(a.Egress) - int(b.Egress) })
}
