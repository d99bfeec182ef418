package live

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/ocslab/ocslab/experiment"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/timeline"
)

// parts is what the next State is made of. It is guarded by Session.mu, and changed by
// [Session.update]. What a State that was handed out points to is replaced here and never
// written: maps and slices are made anew when something in them changes, or only ever
// appended to.
type parts struct {
	Undo, Redo string
	Pending    string
	Panic      *Panic
	Run        *Run
	Runs       []RunLine

	file    *lab.File
	schemes map[string]string // of the URLs that switches are spoken to at
	rung    string
	opening map[string]bool // what is still being opened: switches by name, "hosts"
	lacks   []experiment.Lack

	switches []*switchPart
	nics     []*nicPart
	byNIC    map[string]*nicPart // by full name
	rewired  bool                // circuits have changed since Hears and HeardBy were worked out

	moves  []*Move // newest first
	number int     // of the newest
	follow *following
	recent marks

	log       []*Entry // oldest first; appended to, or replaced
	lines     uint64   // N of the newest
	lastEvent *Entry
}

// switchPart is a switch as the next State will have it.
type switchPart struct {
	Switch
	dirty bool    // differs from out
	out   *Switch // as the last State has it
}

// nicPart is a NIC as the next State will have it.
type nicPart struct {
	NIC
	dirty bool
	out   *NIC

	fell  timeline.Interval // when carrier went last; zero while it is up or was never seen to go
	trail []Sample          // as RxTrail, and more before it
}

// newParts returns what is known of a lab of which nothing has been opened yet.
func newParts(f *lab.File, emulated bool, opt Options, now time.Time) parts {
	p := parts{file: f, schemes: schemes(f, emulated), opening: map[string]bool{}, byNIC: map[string]*nicPart{}}
	for i := range f.Switches {
		x := &f.Switches[i]
		s := Switch{
			Name: x.Name, URL: x.URL, Emulated: emulated, Status: Opening, Since: now,
			MapEvery: opt.MapEvery, PowerEvery: opt.PowerEvery, Protected: map[ocs.Port]bool{},
		}
		for _, port := range f.ProtectedPorts(x.Name) {
			s.Protected[port] = true
		}
		p.opening[x.Name] = true
		p.switches = append(p.switches, &switchPart{Switch: s, dirty: true})
	}
	for i := range f.Hosts {
		for j := range f.Hosts[i].NICs {
			n := &f.Hosts[i].NICs[j]
			firmware := f.Firmware(n)
			if emulated {
				firmware = cmp.Or(opt.Fabric.Firmware, firmware, lab.DefaultFirmware)
			}
			x := &nicPart{dirty: true, NIC: NIC{
				Name: n.FullName(), Host: n.Host, Tx: n.Tx, Rx: n.Rx, Firmware: firmware,
				Carrier: CarrierUnknown, Why: "its host is being opened",
			}}
			p.nics = append(p.nics, x)
			p.byNIC[x.Name] = x
			p.opening[openingHosts] = true
		}
	}
	return p
}

// openingHosts is the key of parts.opening for all hosts; no switch has such a name.
const openingHosts = "the hosts"

// edit changes what is known of a switch; nothing happens when there is none of that name.
func (p *parts) edit(name string, fn func(*Switch)) {
	for _, x := range p.switches {
		if x.Name == name {
			fn(&x.Switch)
			x.dirty = true
		}
	}
}

// at returns what is known of a switch, nil if there is none of that name.
func (p *parts) at(name string) *Switch {
	for _, x := range p.switches {
		if x.Name == name {
			return &x.Switch
		}
	}
	return nil
}

// set notes how a circuit came to be there.
func (p *parts) set(sw string, c ocs.CrossConnect, o Origin) {
	p.edit(sw, func(x *Switch) {
		x.Set = maps.Clone(x.Set)
		if x.Set == nil {
			x.Set = map[ocs.CrossConnect]Origin{}
		}
		x.Set[c] = o
	})
}

// took enters a map that a switch was asked for at a time. One that was asked for before
// the newest is dropped; then took returns false.
func (p *parts) took(name string, m ocs.Map, at time.Time) bool {
	x := p.at(name)
	if x == nil || at.Before(x.MapAt) {
		return false
	}
	p.edit(name, func(x *Switch) {
		changed := !x.Map.Equal(m)
		x.MapAt = at
		if !changed {
			return
		}
		x.Map, p.rewired = m, true
		left := make(map[ocs.CrossConnect]Origin, len(x.Set))
		for c, o := range x.Set {
			if m.Has(c) || o.When.After(at) { // made since
				left[c] = o
			}
		}
		x.Set = left
	})
	return true
}

// power enters readings of the monitors of a switch, begun at a time, also at the NICs that
// hang there.
func (p *parts) power(name string, powers map[ocs.Port]ocs.DBm, at time.Time) {
	x := p.at(name)
	if x == nil || at.Before(x.PowerAt) {
		return
	}
	p.edit(name, func(x *Switch) { x.Power, x.PowerAt, x.Monitored = powers, at, len(powers) > 0 })
	for _, n := range p.nics {
		power, ok := powers[n.Rx.Port]
		if n.Rx.Switch != name || !ok {
			continue
		}
		n.RxPower, n.RxAt, n.RxSource, n.dirty = power, at, "switch", true
		n.sample(Sample{At: at, Power: power})
	}
}

// sample appends to the trail. What a State has of it is never written to.
func (n *nicPart) sample(x Sample) {
	if len(n.trail) >= 2*KeepSamples {
		n.trail = slices.Clone(n.trail[len(n.trail)-KeepSamples+1:])
	}
	n.trail = append(n.trail, x)
	n.RxTrail = last(n.trail, KeepSamples)
}

// last returns the last n elements, and none behind them to append to.
func last[T any](list []T, n int) []T {
	return list[max(0, len(list)-n):len(list):len(list)]
}

// rewire works out who hears whom, after circuits have changed.
func (p *parts) rewire() {
	p.rewired = false
	for _, n := range p.nics {
		var hears, heardBy string
		if x := p.at(n.Rx.Switch); x != nil {
			if from, ok := x.Map.IngressOf(n.Rx.Port); ok {
				hears = p.file.Sender(x.Name, from)
			}
		}
		if x := p.at(n.Tx.Switch); x != nil {
			if to, ok := x.Map.EgressOf(n.Tx.Port); ok {
				heardBy = p.file.Receiver(x.Name, to)
			}
		}
		if hears != n.Hears || heardBy != n.HeardBy {
			n.Hears, n.HeardBy, n.dirty = hears, heardBy, true
		}
	}
}

// begin adds a Move in front of the others, with the next number, which is returned.
func (p *parts) begin(m Move) int {
	p.number++
	m.Number = p.number
	p.moves = slices.Concat([]*Move{&m}, p.moves[:min(len(p.moves), KeepMoves-1)])
	return p.number
}

// move changes the Move of a number, if it is still remembered.
func (p *parts) move(number int, fn func(*Move)) {
	for i, m := range p.moves {
		if m.Number == number {
			c := *m
			fn(&c)
			p.moves[i] = &c // a State has a list of its own
			return
		}
	}
}

// say adds a line to the log.
func (p *parts) say(e Entry) {
	p.lines++
	e.N = p.lines
	if len(p.log) >= 2*KeepLog {
		p.log = trimmed(p.log, KeepLog)
	}
	p.log = append(p.log, &e)
	if (e.Kind == Event || e.Bad) && !e.Routine {
		p.lastEvent = &e
	}
}

// trimmed returns n entries of a longer list, in a new one: the newest, except that
// routine, of which there is much, takes at most half as long as there is anything else.
func trimmed(list []*Entry, n int) []*Entry {
	routine := 0
	for _, e := range list {
		if e.Routine {
			routine++
		}
	}
	other := len(list) - routine
	routine = min(routine, max(n/2, n-other))
	other = min(other, n-routine)
	kept := make([]*Entry, n, 2*n)
	at := n
	for i := len(list) - 1; i >= 0 && at > 0; i-- {
		left := &other
		if list[i].Routine {
			left = &routine
		}
		if *left > 0 {
			*left--
			at--
			kept[at] = list[i]
		}
	}
	return kept[at:]
}

// update changes what the next State is made of, and sees to it that there is one soon. fn must not
// call the Session.
func (s *Session) update(fn func(*parts)) {
	s.mu.Lock()
	fn(&s.parts)
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// publish makes a new State whenever something has changed, at most every PublishEvery,
// until the session ends.
func (s *Session) publish() {
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		select {
		case <-s.wake:
		case <-s.ctx.Done():
			return
		}
		s.publishNow()
		pause.Reset(PublishEvery)
		select {
		case <-pause.C:
		case <-s.ctx.Done():
			return
		}
	}
}

// publishNow makes a new State and hands it out.
func (s *Session) publishNow() {
	s.mu.Lock()
	s.version++
	next := s.parts.state(s.version, s.opt)
	next.ReadOnly = s.opt.ReadOnly || s.reading
	s.state.Store(next)
	s.mu.Unlock()
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// state puts a State together. What has not changed since the last one is shared with it.
func (p *parts) state(version uint64, opt Options) *State {
	if p.rewired {
		p.rewire()
	}
	s := &State{
		Version: version, At: time.Now(), File: p.file, Program: opt.program(p.file), Emulated: opt.Lab.Emulated, Rung: p.rung, Opening: p.openingText(),
		Switches: make([]*Switch, len(p.switches)), NICs: make([]*NIC, len(p.nics)), Moves: slices.Clone(p.moves),
		Run: p.Run, Runs: p.Runs, Log: last(p.log, KeepLog), Panic: p.Panic,
		Undo: p.Undo, Redo: p.Redo, Pending: p.Pending, Lacks: p.lacks, LastEvent: p.lastEvent,
	}
	for i, x := range p.switches {
		if x.dirty {
			c := x.Switch
			x.out, x.dirty = &c, false
		}
		s.Switches[i] = x.out
	}
	for i, x := range p.nics {
		if x.dirty {
			c := x.NIC
			x.out, x.dirty = &c, false
		}
		s.NICs[i] = x.out
	}
	return s
}

// openingText says what is still being opened, for people.
func (p *parts) openingText() string {
	text := ""
	add := func(name string) {
		if !p.opening[name] {
			return
		}
		if text != "" {
			text += ", "
		}
		text += name
	}
	for _, x := range p.switches {
		add(x.Name)
	}
	add(openingHosts)
	return text
}
