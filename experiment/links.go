package experiment

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/ocslab/ocslab/linkmon/probe"
	"github.com/ocslab/ocslab/linkmon/watch"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/timeline"
)

// linkWait collects what happens to NICs and traffic after a change, until all
// that should come has come.
type linkWait struct {
	mu sync.Mutex // guards what is learnt: lit, gone, come, seen, notes and before.outages

	began int64            // when the command was sent
	acked time.Time        // when the last switch had acknowledged
	lit   map[string]*link // NICs that light is to come to, by name
	gone  map[string]bool  // flows that lose their circuit: whether that was seen
	come  map[string]bool  // flows that get one: whether traffic was seen

	seen     []timeline.Mark
	notes    []watch.Note
	watch    *watch.Watch
	before   linksBefore
	until    timeline.Stage // as of Bench
	hold     time.Duration
	patience time.Duration // after the acknowledgement; of a move of a fixed time, that time
	cut      bool          // the waiting was cut short
}

// cutShort takes what was seen until now when the waiting has been cut short, and notes that.
func (w *linkWait) cutShort(waiting context.Context) {
	if w == nil || !errors.Is(context.Cause(waiting), errCut) {
		return
	}
	w.take(w.watch.Drain())
	w.cut = true
}

// waits reports whether a stage is waited for.
func (w *linkWait) waits(s timeline.Stage) bool {
	switch w.until {
	case timeline.Light:
		return s == timeline.Light
	case timeline.CarrierUp:
		return s != timeline.Traffic && s != timeline.TrafficLost
	}
	return true
}

// covers reports whether a stage of a subject is watched and waited for.
func (w *linkWait) covers(s timeline.Stage, subject string) bool {
	return w.waits(s) && w.watch.Covers(s, subject)
}

// link is what is known of one NIC.
type link struct {
	wasDown  bool // before the command
	wentDown bool
	up       bool      // the last that was seen of its carrier
	since    time.Time // when that was learnt
	reached  map[timeline.Stage]bool
	flows    []string // that need this link and are to come
}

// linksBefore is how NICs and flows stood before a command.
type linksBefore struct {
	outages map[string]uint64 // of each flow so far
	up      map[string]bool   // carriers, as far as known
}

// links returns how NICs and flows stand.
func (b *Bench) links() linksBefore {
	if b.Watch == nil {
		return linksBefore{}
	}
	l := linksBefore{outages: map[string]uint64{}, up: b.Watch.Carriers()}
	for _, f := range b.Watch.Flows() {
		l.outages[f.Flow.String()] = f.Outages
	}
	return l
}

// await returns what the change of runs means for NICs and traffic.
func (b *Bench) await(runs []*run, began int64, before linksBefore) *linkWait {
	w := &linkWait{
		began: began, lit: map[string]*link{}, gone: map[string]bool{}, come: map[string]bool{},
		until: b.Until, watch: b.Watch, before: before, hold: orDefault(b.Hold, DefaultHold),
		patience: orDefault(b.Fixed, orDefault(b.LinkPatience, DefaultLinkPatience)),
	}
	w.acked = lastAck(runs)
	for _, r := range runs {
		for c := range r.report.Change.Remove.All() {
			if f, ok := b.flow(r.rig.Name, c); ok && w.watch.Covers(timeline.TrafficLost, f.String()) {
				w.gone[f.String()] = false
			}
		}
		for c := range r.report.Change.Add.All() {
			if to := b.Wiring.Receiver(r.rig.Name, c.Egress); to != "" {
				l := &link{reached: map[timeline.Stage]bool{}}
				if up, known := before.up[to]; known && !up { // so it was dark, too
					l.wasDown, l.reached[timeline.Dark] = true, true
				}
				w.lit[to] = l
			}
		}
	}
	for _, r := range runs {
		for c := range r.report.Change.Add.All() {
			f, ok := b.flow(r.rig.Name, c)
			name := f.String()
			if !ok || !w.watch.Covers(timeline.Traffic, name) || !w.sends(f.From, runs, b) {
				continue
			}
			w.come[name] = false
			for _, end := range []string{f.From, f.To} {
				if l := w.lit[end]; l != nil {
					l.flows = append(l.flows, name)
				}
			}
		}
	}
	return w
}

// sends reports whether a NIC will have carrier, without which it sends nothing: it gets
// light by this change, or had carrier and does not lose its light.
func (w *linkWait) sends(nic string, runs []*run, b *Bench) bool {
	if w.lit[nic] != nil {
		return true
	}
	if up, known := w.before.up[nic]; known && !up {
		return false
	}
	for _, r := range runs {
		for c := range r.report.Change.Remove.All() {
			if b.Wiring.Receiver(r.rig.Name, c.Egress) == nic {
				return false
			}
		}
	}
	return true
}

// flow returns the traffic that a cross-connect carries, if it joins two NICs.
func (b *Bench) flow(onSwitch string, c ocs.CrossConnect) (probe.Flow, bool) {
	f := probe.Flow{From: b.Wiring.Sender(onSwitch, c.Ingress), To: b.Wiring.Receiver(onSwitch, c.Egress)}
	return f, f.From != "" && f.To != ""
}

// wait reads records until nothing is missing any more or patience is over.
func (w *linkWait) wait(ctx context.Context, b *Bench) error {
	ctx, cancel := context.WithDeadlineCause(ctx, w.acked.Add(w.patience), errPatience)
	defer cancel()
	for {
		// A held link is told by time when there is no traffic, so look again then.
		look, stop := context.WithTimeoutCause(ctx, w.hold/4, errLook)
		records, err := b.Watch.Next(look)
		stop()
		w.take(records)
		switch {
		case err != nil && errors.Is(context.Cause(ctx), errPatience):
			return nil // what is missing is told as unresolved
		case err != nil && ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil && !errors.Is(context.Cause(look), errLook):
			return err
		}
		if w.complete(time.Now()) {
			err := b.Watch.Flush(ctx)
			w.take(b.Watch.Drain())
			if err != nil || w.complete(time.Now()) { // and has not gone again
				return err
			}
		}
	}
}

var (
	errPatience = errors.New("patience is over")
	errLook     = errors.New("time to look")
)

// take enters records.
func (w *linkWait) take(records []watch.Record) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range records {
		if r.Note != nil {
			w.notes = append(w.notes, *r.Note)
			continue
		}
		m := *r.Mark
		if m.Latest < w.began { // of what was before
			if m.Stage == timeline.TrafficLost {
				w.before.outages[m.Subject]++ // told late
			}
			continue
		}
		w.seen = append(w.seen, m)
		switch m.Stage {
		case timeline.TrafficLost:
			if _, ok := w.gone[m.Subject]; ok {
				w.gone[m.Subject] = true
			}
		case timeline.Traffic:
			if _, ok := w.come[m.Subject]; ok {
				w.come[m.Subject] = true
			}
		}
		l := w.lit[m.Subject]
		if l == nil {
			continue
		}
		l.reached[m.Stage] = true
		switch {
		case m.Source == "netlink" || m.Source == "netlink+bpf": // tells late what the counters told
		case m.Stage == timeline.CarrierDown:
			l.wentDown, l.up = true, false
			l.reached[timeline.Firmware] = false
		case m.Stage == timeline.CarrierUp:
			l.up, l.since = true, time.Now()
		}
	}
}

// returning are the stages in which a link that went down comes back.
var returning = []timeline.Stage{timeline.Light, timeline.Firmware, timeline.CarrierUp}

// complete reports whether all that is watched has come back by now.
func (w *linkWait) complete(now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for name, seen := range w.gone {
		if !seen && !w.neverWas(name) && w.covers(timeline.TrafficLost, name) {
			return false
		}
	}
	for name, seen := range w.come {
		if !seen && w.covers(timeline.Traffic, name) {
			return false
		}
	}
	for name, l := range w.lit {
		if (l.wasDown || l.wentDown) && !l.up && w.covers(timeline.CarrierUp, name) || len(w.missing(name, l, now)) > 0 {
			return false
		}
		if !l.wasDown && !l.wentDown && len(l.flows) == 0 && w.covers(timeline.CarrierUp, name) && now.Sub(w.acked) < w.hold {
			return false // it may still go down
		}
	}
	return true
}

// neverWas reports whether a flow that lost its circuit had no traffic when it did: all
// that happened to it until the acknowledgement is known, and no loss since the command
// was among it.
func (w *linkWait) neverWas(name string) bool {
	for _, f := range w.watch.Flows() {
		if f.Flow.String() == name {
			return !f.Alive && f.JudgedNS > timeline.HostAxis().NS(w.acked) && f.Outages <= w.before.outages[name]
		}
	}
	return false
}

// missing returns the stages that a NIC that is or was down has not reached and should.
func (w *linkWait) missing(name string, l *link, now time.Time) []timeline.Stage {
	var stages []timeline.Stage
	for _, s := range returning {
		switch {
		case !l.wasDown && !l.wentDown || !w.covers(s, name) || l.reached[s]:
		case s == timeline.Light && !l.reached[timeline.Dark]: // too short for this module to show
		case s != timeline.CarrierUp && l.unnoticed(now):
		default:
			stages = append(stages, s)
		}
	}
	return stages
}

// unnoticed reports whether the link has been up for so long that its firmware and module
// have been read since. What they did not tell until then was gone for too short a time to
// be seen, or not at all.
func (l *link) unnoticed(now time.Time) bool { return l.up && now.Sub(l.since) >= 2*unseen }

// concerns reports whether the change touched a subject.
func (w *linkWait) concerns(subject string) bool {
	_, gone := w.gone[subject]
	_, come := w.come[subject]
	return gone || come || w.lit[subject] != nil
}

// marks adds what was seen to a move.
func (w *linkWait) marks(mv *Move, number int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	mv.Notes = slices.Clone(w.notes)
	// A flow may stutter, before it loses its circuit or after it has one. Its stage is
	// the last loss then, and the first packet; the rest is told, but is no stage.
	stage := map[[2]string]int{} // stage and flow to the place in seen
	for i, m := range w.seen {
		key := [2]string{string(m.Stage), m.Subject}
		_, had := stage[key]
		if m.Stage == timeline.TrafficLost || m.Stage == timeline.Traffic && !had {
			stage[key] = i
		}
	}
	for i, m := range w.seen {
		_, gone := w.gone[m.Subject]
		_, come := w.come[m.Subject]
		first := stage[[2]string{string(m.Stage), m.Subject}] == i
		switch m.Stage {
		case timeline.TrafficLost, timeline.Traffic:
			if first && (gone && m.Stage == timeline.TrafficLost || come && m.Stage == timeline.Traffic) {
				break
			}
			if m.Stage == timeline.TrafficLost {
				text := "traffic was interrupted, and not by this move"
				if come {
					text = "traffic was interrupted again after it had come"
				}
				mv.Notes = append(mv.Notes, watch.Note{Kind: watch.Outage, Subject: m.Subject, Host: m.Host, Interval: m.Interval, Source: m.Source, Text: text})
			}
			continue
		}
		m.Reconfiguration = number
		if w.concerns(m.Subject) { // the last reading or packet before may be older than the command
			m.Interval = after(m.Interval, w.began)
		}
		mv.Marks = append(mv.Marks, m)
	}
	expect := func(stage timeline.Stage, subject string, reached bool) {
		mv.Expected = append(mv.Expected, timeline.Expectation{Reconfiguration: number, Stage: stage, Subject: subject})
		switch l := w.lit[subject]; {
		case reached:
		case l != nil && l.up && stage != timeline.CarrierUp:
			mv.Unresolved = append(mv.Unresolved, fmt.Sprintf("%s: %s: %s", subject, stage, timeline.TooBrief))
		case w.cut && w.covers(stage, subject):
			mv.Unresolved = append(mv.Unresolved, fmt.Sprintf("%s: %s: %s", subject, stage, timeline.CutShort))
		case w.covers(stage, subject):
			mv.Unresolved = append(mv.Unresolved, fmt.Sprintf("%s: %s: not within %v", subject, stage, w.patience))
		default:
			mv.Unresolved = append(mv.Unresolved, fmt.Sprintf("%s: %s: %s", subject, stage, timeline.OutOfSight))
		}
	}
	for name, l := range w.lit {
		if !l.wasDown && !l.wentDown {
			if w.covers(timeline.CarrierDown, name) {
				mv.Held = append(mv.Held, name)
			}
			continue
		}
		if l.wentDown && w.waits(timeline.CarrierDown) {
			expect(timeline.CarrierDown, name, true)
		}
		for _, s := range returning {
			switch {
			case !w.covers(s, name):
			case s == timeline.Light && !l.reached[s] && !l.reached[timeline.Dark]:
				// Too short for this module to show; the monitors of the switch may have.
			default:
				expect(s, name, l.reached[s])
			}
		}
		if l.reached[timeline.CarrierUp] && !l.up {
			mv.Unresolved = append(mv.Unresolved, fmt.Sprintf("%s: its carrier came and went again", name))
		}
	}
	for name, seen := range w.gone {
		if w.waits(timeline.TrafficLost) && (seen || !w.neverWas(name)) {
			expect(timeline.TrafficLost, name, seen)
		}
	}
	for name, seen := range w.come {
		if w.waits(timeline.Traffic) {
			expect(timeline.Traffic, name, seen)
		}
	}
	slices.Sort(mv.Held)
	slices.Sort(mv.Unresolved)
}
