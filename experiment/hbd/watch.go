package hbd

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ocslab/ocslab/drivers/ocstrx"
	"github.com/ocslab/ocslab/experiment"
	"github.com/ocslab/ocslab/internal/pause"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/timeline"
	"github.com/ocslab/ocslab/topology/infinitehbd"
	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// timed is a bundle whose change is timed. It is inside of what records changes, so that no disk comes between a switch
// and the looks at its receivers.
type timed struct {
	ocs.Switch
	job   *job
	begin func() // begins to watch
}

// Unwrap returns the switch inside.
func (s *timed) Unwrap() ocs.Switch { return s.Switch }

// Apply makes the change, and begins to watch when it is made.
func (s *timed) Apply(ctx context.Context, c ocs.Change) (ocs.Receipt, error) {
	w := &s.job.watch
	r, err := lab.Send(ocstrx.WithTrace(ctx, &ocstrx.Trace{Told: w.told, Seen: w.saw}), s.Switch, c)
	if err == nil {
		s.job.times(r)
		s.begin()
	}
	return r, err
}

// watch is what is seen of a bundle that switches.
type watch struct {
	effect  timeline.Interval // of the commit or trigger; zero: it is not known
	seen    []glance          // since
	wear    map[int]uint32    // by slot
	settled chan error        // nil: nothing is being watched
}

// glance is what a module said of its lanes.
type glance struct {
	at    timeline.Interval // when that was so
	slot  int
	lanes ocst.LaneStatus
}

func (w *watch) told(r ocs.Receipt) {
	w.effect, w.seen = timeline.HostAxis().Span(r.Begun, r.Acked), nil
}

func (w *watch) saw(r ocs.Receipt, slot int, s ocst.Status, l ocst.LaneStatus) {
	if w.wear == nil {
		w.wear = map[int]uint32{}
	}
	w.wear[slot] = s.Switches
	w.seen = append(w.seen, glance{timeline.HostAxis().Span(r.Begun, r.Acked), slot, l})
}

// begin watches on a goroutine of its own; wait returns how that ended.
func (w *watch) begin(settle func() error) {
	w.settled = make(chan error, 1)
	go func() { w.settled <- experiment.Guard(settle) }()
}

func (w *watch) wait() error {
	if w.settled == nil {
		return nil
	}
	return <-w.settled
}

// times says when the modules did what, as far as the receipt tells. The commit took effect after it had begun to be
// written, before it was acknowledged, and so early that the switch was over when the last module was read. Between that
// and the light is what the module's own clock says.
func (j *job) times(r ocs.Receipt) {
	if r.SendStart.IsZero() {
		return
	}
	axis := timeline.HostAxis()
	sent, over := axis.NS(r.SendStart), axis.NS(r.Acked)
	for _, part := range r.Parts {
		var module int
		if _, err := fmt.Sscanf(part.Name, "module %d", &module); err != nil {
			continue
		}
		t := ModuleTime{Ref: j.ref, Switch: j.name, Module: module, From: j.from, To: j.to, Took: part.Took, Switches: j.watch.wear[module-1]}
		t.Command = axis.Span(r.SendStart, r.Sent)
		latest := over - int64(t.Took)
		if e := j.watch.effect; e != (timeline.Interval{}) {
			latest = min(latest, e.Latest)
		}
		t.Busy = timeline.Between(sent, max(sent, latest))
		t.Settled = timeline.Between(t.Busy.Earliest+int64(t.Took), t.Busy.Latest+int64(t.Took))
		j.modules = append(j.modules, t)
	}
}

// settle waits until the lanes of a bundle are locked, and writes down when. A bundle that is dark has nothing to lock.
func (b *bringing) settle(ctx context.Context, j *job, t teller) error {
	if j.to == infinitehbd.Dark || len(j.modules) == 0 {
		return nil
	}
	last := make([]int64, len(j.modules)) // when a reading began that was too early
	take := func(g glance) {
		if i := slices.IndexFunc(j.modules, func(t ModuleTime) bool { return t.Module == g.slot+1 }); i >= 0 {
			last[i] = j.modules[i].take(g, last[i])
		}
	}
	for _, g := range j.watch.seen {
		take(g)
	}
	for until := time.Now().Add(b.opt.Patience); ; {
		var slots []int
		for i := range j.modules {
			if j.modules[i].Locked == (timeline.Interval{}) {
				slots = append(slots, j.modules[i].Module-1)
			}
		}
		if len(slots) == 0 || time.Now().After(until) {
			return nil // the walk says what is missing
		}
		all, r, err := t.Lanes(ctx, slots...)
		if err != nil {
			return err
		}
		at := timeline.HostAxis().Span(r.Begun, r.Acked)
		for i, l := range all {
			take(glance{at, slots[i], l})
		}
		if err := pause.For(ctx, 100*time.Microsecond); err != nil {
			return err
		}
	}
}

// take writes down what a glance shows for the first time, after one that began at last and was too early. It returns
// what last is now.
func (t *ModuleTime) take(g glance, last int64) int64 {
	if t.Locked != (timeline.Interval{}) {
		return last
	}
	lit, locked := g.lanes.State == ocst.StateReady || g.lanes.State == ocst.StateLocking, true
	for lane, lock := range g.lanes.Lock {
		lit = lit && g.lanes.Path[lane] == pathOf[t.To] && lock != ocst.NoLight
		locked = locked && lock == ocst.Locked
	}
	from := max(t.Settled.Earliest, last)
	at := timeline.Between(from, max(from, g.at.Latest))
	if lit && t.Clear == (timeline.Interval{}) {
		t.Clear = at
	}
	if lit && locked {
		t.Locked = at
		return last
	}
	return g.at.Earliest
}
