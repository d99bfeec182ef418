package live

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ocslab/ocslab/emulator/fabric"
	"github.com/ocslab/ocslab/experiment"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/linkmon/phy"
	"github.com/ocslab/ocslab/linkmon/probe"
	"github.com/ocslab/ocslab/linkmon/watch"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/timeline"
)

// hostsEvery is how often is looked how traffic stands, and what is watched.
const hostsEvery = 500 * time.Millisecond

// fewNICs is how many NICs a lab has at most whose every pair gets traffic.
const fewNICs = 8

// rungs are what emulated hosts can be, as a State says it.
var rungs = map[fabric.Rung]string{fabric.TAP: "tap", fabric.Veth: "veth", fabric.Memory: "memory"}

// bed is a lab while it is open: sessions with switches, and what watches the hosts.
type bed struct {
	s       *Session
	file    *lab.File
	lab     *lab.Lab
	readers map[string]*reader

	ctx context.Context
	end context.CancelCauseFunc
	all sync.WaitGroup

	// watching is held by whoever reads the records of the watch.
	watching sync.Mutex

	mu      sync.Mutex          // guards what follows
	testbed *experiment.Testbed // nil until the hosts are open
	ended   bool                // no goroutine is started any more
}

// newBed returns a lab of which nothing is open.
func (s *Session) newBed(f *lab.File) *bed {
	opt := s.opt.Lab
	opt.Trace = s.trace
	b := &bed{s: s, file: f, lab: lab.New(f, opt), readers: map[string]*reader{}}
	b.ctx, b.end = context.WithCancelCause(s.ctx)
	for _, x := range f.Switches {
		b.readers[x.Name] = newReader(b, x.Name)
	}
	return b
}

// start opens the switches and the hosts, each on a goroutine of its own.
func (b *bed) start() {
	for _, r := range b.readers {
		b.start1(func() { r.run(b.ctx) })
	}
	if slices.ContainsFunc(b.file.Hosts, func(h lab.Host) bool { return len(h.NICs) > 0 }) {
		b.start1(func() { b.hosts(b.ctx) })
	}
}

// start1 runs fn on a goroutine that close waits for; false when the bed is being closed.
func (b *bed) start1(fn func()) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended {
		return false
	}
	b.all.Go(fn)
	return true
}

// close ends all of it, and waits for closeTime at most. A measurement that is under way
// ends with what has come back until then.
func (b *bed) close() error {
	b.s.endMove()
	b.mu.Lock()
	b.ended = true
	b.mu.Unlock()
	b.end(errClosed)
	done := make(chan error, 1)
	go func() { done <- b.closeAll() }()
	limit := time.NewTimer(closeTime)
	defer limit.Stop()
	select {
	case err := <-done:
		return err
	case <-limit.C:
		return fmt.Errorf("not everything could be closed within %v: a switch or a host hangs", closeTime)
	}
}

// closeAll closes what the bed has opened, in the order in which one thing needs another.
func (b *bed) closeAll() error {
	b.all.Wait()
	var errs []error
	b.mu.Lock()
	t := b.testbed
	b.testbed = nil
	b.mu.Unlock()
	if t != nil {
		errs = append(errs, t.Close())
	}
	for _, r := range b.readers {
		errs = append(errs, r.close())
	}
	return errors.Join(append(errs, b.lab.Close())...)
}

// hosts opens the hosts, tries again until that succeeds, and follows them until ctx ends.
func (b *bed) hosts(ctx context.Context) {
	for pause := retryFirst; ; pause = min(2*pause, retryMost) {
		t, err := experiment.OpenTestbed(ctx, b.lab, b.testbedOptions())
		if err == nil {
			if t.Watch != nil {
				t.Watch.Rest(true) // until something is measured
			}
			b.mu.Lock()
			b.testbed = t
			b.mu.Unlock()
			b.follow(ctx, t)
			return
		}
		if ctx.Err() != nil {
			return
		}
		b.unwatched(err)
		retry := time.NewTimer(pause)
		select {
		case <-retry.C:
		case <-ctx.Done():
			retry.Stop()
			return
		}
	}
}

// unwatched enters that the hosts could not be opened.
func (b *bed) unwatched(err error) {
	b.s.update(func(p *parts) {
		delete(p.opening, openingHosts)
		why := err.Error()
		known := true
		for _, n := range p.nics {
			known = known && n.Why == why
			n.Watched, n.Why, n.dirty = false, why, true
		}
		if !known {
			p.say(Entry{At: time.Now(), Kind: Event, Text: "the hosts cannot be watched: " + why, Bad: true})
		}
	})
}

// probePace is the time from packet to packet of each flow. Packets are sent all day here, so
// they are far apart; for finer marks of traffic there is ocslab measure.
const probePace = 4 * time.Millisecond

// testbedOptions say how the hosts are watched.
func (b *bed) testbedOptions() experiment.TestbedOptions {
	opt := experiment.TestbedOptions{Fabric: b.s.opt.Fabric}
	opt.Watch.Tap = b.s.seenRecord
	opt.Watch.Lenient = true // one host out of reach leaves no other unwatched
	if !b.s.opt.Traffic {
		opt.Watch.Probe.Pace = experiment.Quiet
		return opt
	}
	opt.Watch.Probe.Pace = probePace
	opt.Flows = flows(b.file)
	return opt
}

// flows are the traffic of a lab: of every circuit of its configurations that joins two
// NICs and, while there are few NICs, between all that share a switch both ways.
func flows(f *lab.File) []probe.Flow {
	var list []probe.Flow
	add := func(x probe.Flow) {
		if x.From != "" && x.To != "" && x.From != x.To && !slices.Contains(list, x) {
			list = append(list, x)
		}
	}
	for _, name := range f.ConfigNames() {
		maps, err := f.Config(name)
		if err != nil {
			continue // Load has checked them
		}
		for sw, m := range maps {
			for c := range m.All() {
				add(probe.Flow{From: f.Sender(sw, c.Ingress), To: f.Receiver(sw, c.Egress)})
			}
		}
	}
	var nics []*lab.NIC
	for i := range f.Hosts {
		for j := range f.Hosts[i].NICs {
			nics = append(nics, &f.Hosts[i].NICs[j])
		}
	}
	if len(nics) <= fewNICs {
		for _, a := range nics {
			for _, z := range nics {
				if a.Tx.Switch == z.Rx.Switch && z.Tx.Switch == a.Rx.Switch {
					add(probe.Flow{From: a.FullName(), To: z.FullName()})
				}
			}
		}
	}
	slices.SortFunc(list, func(a, b probe.Flow) int { return strings.Compare(a.String(), b.String()) })
	return list
}

// follow keeps up with the hosts until ctx ends. Marks come by seenRecord; here is looked
// what is watched, and how traffic stands. The queue of the watch is emptied while nobody
// measures, since all has been seen by then.
func (b *bed) follow(ctx context.Context, t *experiment.Testbed) {
	b.s.update(func(p *parts) {
		delete(p.opening, openingHosts)
		if t.Fabric != nil {
			p.rung = rungs[t.Fabric.Rung()]
		}
		if t.Watch == nil {
			return
		}
		up := t.Watch.Carriers()
		sources := t.Watch.Sources()
		for _, n := range p.nics {
			n.first(up, sources)
		}
	})
	pace := time.NewTicker(hostsEvery)
	defer pace.Stop()
	before := map[probe.Flow]probe.FlowState{} // as of the last look
	for {
		b.lookAtHosts(t, before)
		if t.Watch != nil && b.watching.TryLock() {
			t.Watch.Drain()
			b.watching.Unlock()
		}
		select {
		case <-pace.C:
		case <-ctx.Done():
			return
		}
	}
}

// first enters how a NIC stands when it begins to be watched. What marks have told already
// counts more.
func (n *nicPart) first(up map[string]bool, sources []watch.Source) {
	n.dirty = true
	if carrier, known := up[n.Name]; known && n.Carrier == CarrierUnknown {
		n.Carrier = CarrierDown
		if carrier {
			n.Carrier = CarrierUp
		}
	}
	asked := slices.ContainsFunc(sources, func(s watch.Source) bool { return s.On && s.Name == phy.SourceIB && s.Subject == n.Name })
	if asked && n.State == "" && n.Carrier == CarrierUp {
		n.State = firmwareUp
	}
}

// What firmware is known to say of a link.
const (
	firmwareUp   = "up"
	firmwareDown = "down"
)

// What is said of traffic.
const (
	trafficFlows = "flows"
	trafficLost  = "lost"
	trafficLate  = "late"
)

// staleFlow is how old the last verdict on a packet may be for it to tell how traffic stands
// now: much longer than a verdict takes.
const staleFlow = time.Second

// traffic says how a flow stands, by what it was at the look before: "lost" only when packets
// are missing. A machine that is busy sends late, or hands packets over later than they are
// waited for, which makes them count as missing though they arrive: that is "late". It is ""
// before anything is known, which is so while nobody sends. Of flows of agents no packets are
// counted.
func traffic(f, before probe.FlowState, now int64) string {
	counted := f.Sent > 0
	old := now-f.JudgedNS > int64(staleFlow)
	switch {
	case f.Err != nil || f.JudgedNS == 0:
		return ""
	case old, !f.Alive && counted && (f.Late > before.Late || f.Sent == before.Sent):
		return trafficLate
	case f.Alive:
		return trafficFlows
	}
	return trafficLost
}

// lookAtHosts enters what is watched, and how traffic stands, by what it was before.
func (b *bed) lookAtHosts(t *experiment.Testbed, before map[probe.Flow]probe.FlowState) {
	sources := slices.Clone(t.Sources)
	var flows map[probe.Flow]string
	if t.Watch != nil {
		sources = append(sources, t.Watch.Sources()...)
		flows = map[probe.Flow]string{}
		states := t.Watch.Flows()
		now := timeline.HostAxis().NS(time.Now())
		for _, f := range states {
			flows[f.Flow] = traffic(f, before[f.Flow], now)
			before[f.Flow] = f
		}
	}
	lacks := experiment.Missing(sources, t.Fabric != nil && t.Fabric.Rung() == fabric.Memory)
	var nics []string
	for _, h := range b.file.Hosts {
		for i := range h.NICs {
			nics = append(nics, h.NICs[i].FullName())
		}
	}
	covered := map[string]bool{} // asked for here: the watch must not be called by update
	for _, name := range nics {
		covered[name] = t.Watch != nil && t.Watch.Covers(timeline.CarrierUp, name)
	}
	b.s.update(func(p *parts) {
		p.lacks = lacks
		for _, n := range p.nics {
			n.watched(covered[n.Name], sources)
			n.traffic(flows)
		}
	})
}

// unseenHost is why a NIC is not watched when no source says more.
const unseenHost = "nobody watches its host"

// watched enters whether a NIC is watched, and why not.
func (n *nicPart) watched(on bool, sources []watch.Source) {
	why := ""
	if !on {
		why = unseenHost
		for _, s := range sources {
			if !s.On && s.Why != "" && s.Subject == "" && s.Host == n.Host && s.Name == "agent" {
				why = s.Why
				break
			}
			if why == unseenHost && !s.On && s.Why != "" && (s.Subject == n.Name || s.Subject == "" && s.Host == n.Host) {
				why = s.Why
			}
		}
	}
	if on == n.Watched && why == n.Why {
		return
	}
	n.Watched, n.Why, n.dirty = on, why, true
	if !on {
		n.Carrier, n.Since, n.SinceAt, n.State = CarrierUnknown, timeline.Interval{}, time.Time{}, ""
	}
}

// traffic enters how the traffic to a NIC stands over the circuit that brings it light.
func (n *nicPart) traffic(flows map[probe.Flow]string) {
	text := ""
	if n.Hears != "" {
		text = flows[probe.Flow{From: n.Hears, To: n.Name}]
	}
	if text != n.Traffic {
		n.Traffic, n.dirty = text, true
	}
}

// marks are the marks seen lately, at most mostMarks of them.
type marks struct{ list []timeline.Mark }

// mostMarks is how many marks are kept that belong to no Move.
const mostMarks = 256

func (m *marks) add(x timeline.Mark) {
	if len(m.list) >= 2*mostMarks {
		m.list = slices.Clone(last(m.list, mostMarks))
	}
	m.list = append(m.list, x)
}

// seenRecord enters what was seen of the hosts. It is called by whoever has seen it, takes
// little time, and never waits for the watch.
func (s *Session) seenRecord(r watch.Record) {
	if r.Mark == nil {
		switch n := r.Note; {
		case n == nil:
		case n.Kind == watch.Gap:
			s.update(func(p *parts) { p.gap(*n) })
		case n.Event == watch.Reached:
			s.say(Entry{At: timeline.HostAxis().Time(n.Latest), Kind: Event, Text: n.Host + ": " + n.Text})
		}
		return
	}
	s.update(func(p *parts) { p.saw(*r.Mark) })
}

// gap enters that a source knew less than it should for a while. A machine that was busy makes
// many of these, and its marks say by their width what that comes to; a host that does not
// answer is worth to be seen.
func (p *parts) gap(n watch.Note) {
	far := n.Source == "agent"
	p.say(Entry{
		At: timeline.HostAxis().Time(n.Latest), Kind: Event, Routine: !far, Bad: far,
		Text: strings.TrimPrefix(cmp.Or(n.Subject, n.Host)+": "+n.Text, ": "),
	})
}

// saw enters a mark of a NIC.
func (p *parts) saw(m timeline.Mark) {
	p.recent.add(m)
	p.followed(m)
	n := p.byNIC[m.Subject]
	if n == nil {
		return
	}
	if m.Source == "netlink" || m.Source == "netlink+bpf" { // tells late what the counters told
		return
	}
	at := timeline.HostAxis().Time(m.Latest)
	switch m.Stage {
	case timeline.CarrierDown:
		n.Carrier, n.Since, n.SinceAt, n.fell = CarrierDown, m.Interval, at, m.Interval
		n.Flaps++
		if n.State != "" {
			n.State = firmwareDown
		}
	case timeline.CarrierUp:
		n.Carrier, n.Since, n.SinceAt = CarrierUp, m.Interval, at
		if n.fell != (timeline.Interval{}) {
			out := m.Interval.Sub(n.fell)
			n.Outage = timeline.Between(max(out.Earliest, 0), max(out.Latest, 0))
			n.OutAt, n.fell = at, timeline.Interval{}
		}
	case timeline.Firmware:
		n.State = firmwareUp
	default:
		return
	}
	n.dirty = true
}

// following is a change by others whose consequences are still awaited.
type following struct {
	number   int // of the Move
	subjects map[string]bool
	until    time.Time
}

// followTime is how long after a change by others the marks of the NICs that it concerns are
// taken for its consequences: as long as links are waited for.
const followTime = experiment.DefaultLinkPatience

// byOthers makes a Move of a change that was not made here. Its command was not seen: what
// is known is what the NICs concerned have shown since the circuits were read the last time
// before, and what they show until another Move begins.
func (p *parts) byOthers(name string, d Drift, text string, every time.Duration) {
	subjects := map[string]bool{}
	for _, m := range []ocs.Map{d.Change.Remove, d.Change.Add} {
		for c := range m.All() {
			f := probe.Flow{From: p.file.Sender(name, c.Ingress), To: p.file.Receiver(name, c.Egress)}
			subjects[f.To], subjects[f.String()] = true, true
		}
	}
	delete(subjects, "")
	move := Move{Title: name + ": " + text, By: "others", Began: d.At}
	since := timeline.HostAxis().NS(d.At.Add(-every - time.Second))
	for _, m := range p.recent.list {
		if subjects[m.Subject] && m.Latest >= since {
			m.Reconfiguration = p.number + 1
			move.Marks = append(move.Marks, m)
		}
	}
	running := len(p.moves) > 0 && p.moves[0].Running
	number := p.number + 1
	if running { // the one that is measured stays the first
		p.number++
		move.Number = p.number
		p.moves = slices.Insert(slices.Clone(p.moves), 1, &move)
		p.moves = p.moves[:min(len(p.moves), KeepMoves)]
	} else {
		number = p.begin(move)
	}
	p.follow = &following{number: number, subjects: subjects, until: d.At.Add(followTime)}
}

// followed enters a mark in the Move by others that it is a consequence of.
func (p *parts) followed(m timeline.Mark) {
	f := p.follow
	if f == nil || !f.subjects[m.Subject] {
		return
	}
	if timeline.HostAxis().Time(m.Earliest).After(f.until) {
		p.follow = nil
		return
	}
	m.Reconfiguration = f.number
	p.move(f.number, func(x *Move) { x.Marks = slices.Concat(x.Marks, []timeline.Mark{m}) })
}
