package rail

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ocslab/ocslab/internal/natural"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/orchestrator/proto"
)

// watch looks after the health until Close.
func (o *Orchestrator) watch() {
	tick := time.NewTicker(o.opt.Health)
	defer tick.Stop()
	var h health
	for {
		select {
		case <-o.ctx.Done():
			return
		case <-tick.C:
			o.examine(&h)
		}
	}
}

// health is what was told already, so that it is told once.
type health struct {
	silent  bool
	barred  bool
	without []int // ports without light
}

// examine reads the switch, and compares the ports that nobody was working on meanwhile.
func (o *Orchestrator) examine(h *health) {
	o.mu.Lock()
	since := o.seq
	idle := make([]bool, len(o.all))
	for q := range idle {
		idle[q] = len(o.queue[q]) == 0 && !o.unsure[q]
	}
	skip := o.shape == proto.Dead || !slices.Contains(idle, true)
	o.mu.Unlock()
	if skip {
		return
	}
	if err := o.lit(); err != nil {
		if !h.barred {
			o.mu.Lock()
			o.alarmLocked(proto.Alarm{Detail: fmt.Sprintf("rail %s: %v", o.opt.Rail, err)})
			o.mu.Unlock()
		}
		h.barred = true
		return
	}
	h.barred = false
	ctx, cancel := context.WithTimeout(o.ctx, o.timeout())
	defer cancel()
	sw := o.opt.Sessions[0]
	m, err := sw.CrossConnects(ctx)
	if o.ctx.Err() != nil {
		return
	}
	if err != nil {
		if !h.silent {
			o.mu.Lock()
			o.alarmLocked(proto.Alarm{Detail: fmt.Sprintf("rail %s: the switch cannot be read: %v", o.opt.Rail, err)})
			o.mu.Unlock()
		}
		h.silent = true
		return
	}
	h.silent = false
	o.compare(o.see(m), idle, since)
	if meter, ok := ocs.As[ocs.PowerMeter](sw); ok && o.verifying() == Light {
		o.shine(ctx, h, meter, idle, since)
	}
}

// stillLocked reports whether nobody has worked on port q since.
func (o *Orchestrator) stillLocked(q int, idle []bool, since uint64) bool {
	return idle[q] && len(o.queue[q]) == 0 && o.lastSeq[q] <= since && !o.unsure[q]
}

// compare finds what others changed. Circuits that are gone altogether, as after a restart of the switch, are made
// again: their light is away already. Anything else is for the controller to decide.
func (o *Orchestrator) compare(v view, idle []bool, since uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	var moved []int
	had, left := 0, 0
	for q := range o.all {
		if !o.stillLocked(q, idle, since) {
			continue
		}
		if o.held[q] >= 0 {
			had++
		}
		if v.to[q] != dark || v.from[q] != dark {
			left++
		}
		if v.to[q] != o.held[q] || v.from[q] != o.held[q] {
			moved = append(moved, q)
		}
	}
	if len(moved) == 0 {
		return
	}
	a := proto.Alarm{}
	for _, q := range moved {
		if p := int(o.held[q]); p > q {
			a.Circuits = append(a.Circuits, [2]int{q, p})
		}
	}
	lost := had > 0 && left == 0
	what := "are joined to others than they were left with"
	if lost {
		what = "are dark: the switch has lost its circuits, which are made again"
	} else {
		for _, c := range v.foreign {
			what += fmt.Sprintf("; %v is not the job's", c)
		}
	}
	a.Detail = fmt.Sprintf("rail %s: %s (%s) %s", o.opt.Rail, natural.Count(len(moved), "port"), o.names(moved), what)
	in := map[int]bool{}
	for _, q := range moved {
		in[q] = true
		if p := o.held[q]; p >= 0 {
			in[int(p)] = true
		}
	}
	for q := range in {
		o.doubtLocked(q)
		o.held[q] = max(v.to[q], dark)
	}
	o.alarmLocked(a)
	if !lost {
		return
	}
	t := &ticket{kind: repair, config: config{Shape: o.shape, ID: o.id, Reason: o.reason}}
	for _, q := range o.all {
		if in[q] && len(o.queue[q]) == 0 {
			t.ports, t.goal = append(t.ports, q), append(t.goal, o.target[q])
		}
	}
	o.enqueueLocked(t)
	o.pumpLocked()
}

// shine tells of circuits whose light has gone.
func (o *Orchestrator) shine(ctx context.Context, h *health, meter ocs.PowerMeter, idle []bool, since uint64) {
	o.mu.Lock()
	var paths []*unseen
	for q, p := range o.held {
		if p >= 0 && o.stillLocked(q, idle, since) {
			paths = append(paths, &unseen{Path: Path{CrossConnect: o.feeding(int(p), int32(q))}})
		}
	}
	o.mu.Unlock()
	if len(paths) == 0 {
		return
	}
	r, err := meter.Power(ctx, egresses(paths)...)
	if err != nil {
		return // the next reading of the circuits tells whether the switch answers
	}
	var seen []Path
	var dim []*unseen
	for _, u := range paths {
		if power, has := r.Ports[u.Egress]; has && u.sees(power, o.opt.Threshold, true) {
			seen = append(seen, u.Path)
		} else if has {
			dim = append(dim, u)
		}
	}
	unfed := o.input(ctx, meter, dim)
	o.sawLight(seen)
	o.mu.Lock()
	defer o.mu.Unlock()
	var without, fresh []int
	var first Path
	var a proto.Alarm
	for _, u := range dim {
		q, _ := o.ofOut.at(u.Egress)
		if slices.Contains(unfed, u.Ingress) || !o.stillLocked(int(q), idle, since) {
			continue
		}
		without = append(without, int(q))
		if slices.Contains(h.without, int(q)) {
			continue
		}
		if fresh = append(fresh, int(q)); len(fresh) == 1 {
			first = u.Path
		}
		o.doubtLocked(int(q)) // no request may count on the circuit before its light has been seen again
		if p := int(o.held[q]); p >= 0 {
			o.doubtLocked(p)
			if c := [2]int{min(int(q), p), max(int(q), p)}; !slices.Contains(a.Circuits, c) {
				a.Circuits = append(a.Circuits, c)
			}
		}
	}
	h.without = without
	if len(fresh) > 0 {
		a.Detail = fmt.Sprintf("rail %s: no light arrives at %s (%s), though the circuits are there: %v", o.opt.Rail, natural.Count(len(fresh), "port"), o.names(fresh), first)
		o.alarmLocked(a)
	}
}
