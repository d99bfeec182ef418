package wiring

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ocslab/ocslab/internal/natural"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/ocs"
)

// NIC is a NIC and what the lab file claims.
type NIC struct {
	Name   string // full name
	Tx, Rx lab.PortRef
}

// Defaults of [Options].
const (
	DefaultThreshold ocs.DBm = -30
	DefaultGuard     ocs.DB  = 2
	DefaultDirty     ocs.DB  = 1.5
	DefaultAccuracy  ocs.DB  = 0.5
)

// Weak is by how much less light than the strongest an ingress port may get that is used to
// light others: a step should not depend on a bad fibre.
const Weak ocs.DB = 6

// ModuleError is how far a module's own monitors may be off, plus or minus: that is all that
// SFF-8636 and CMIS ask for. A fibre that loses more than it and the limit is dirty whatever its
// peers lose.
const ModuleError ocs.DB = 3

// faint is how much a fibre may lose at least until it can look dead: a port that was never lit with so
// much more than a module needs proves nothing.
const faint ocs.DB = 10

// retries is how often a step is made again with other light when a port does not show what it
// was told, or a NIC's reading is not clear.
const retries = 2

// Options say what is looked for.
type Options struct {
	NICs    []NIC
	Egress  []lab.PortRef // that may be lit
	Ingress []lab.PortRef // whose light may be used
	LeftOut []PortNote    // ports of either side that may not, and why
	// OneSided are the switches of which any port may be an ingress or an egress.
	OneSided map[string]bool

	// Light is from Threshold plus Guard on, of the strongest lane, and dark below Threshold
	// less Guard; in between nothing is said. 0 stands for the defaults.
	Threshold ocs.DBm
	Guard     ocs.DB

	// Dirty is by how much the loss of a fibre exceeds its peers' when it is dirty, and
	// Accuracy how far a monitor's reading may be off. 0 stands for the defaults.
	Dirty, Accuracy ocs.DB

	// Progress, if not nil, is called after each map.
	Progress func(Step)
}

// session is one search.
type session struct {
	plant Plant
	opt   Options
	nics  []string
	r     *Result

	level   map[lab.PortRef]ocs.DBm // of the ingress ports
	through map[lab.PortRef]bool    // ingress ports whose level was read where the light comes out
	assumed map[lab.PortRef]bool    // ingress ports that nothing shows to have light
	blind   []lab.PortRef           // ingress ports without a monitor
	lit     []lab.PortRef           // ingress ports with light, strongest first
	dark    []lab.PortRef           // and those without
	sources map[string][]lab.PortRef
	ports   []sent
	seen    []seen
	tx      map[string]ocs.DBm // what the modules say that they send, in all

	from   map[lab.PortRef]lab.PortRef          // the light that each egress port was lit with last
	passed map[lab.PortRef]map[lab.PortRef]bool // by ingress, then egress: whether light came out
}

// Find finds out where the NICs are. With an error the result, which is never nil, is what was
// known until then and not Complete; it has no fibres if no words were read. An error that
// matches [ErrDark] says that there is nothing to see by. Circuits are left as they are at the
// end: putting them back is up to the caller.
func Find(ctx context.Context, p Plant, opt Options) (*Result, error) {
	s := newSession(p, opt)
	err := s.find(ctx)
	s.r.LeftOut = s.opt.LeftOut
	s.r.Complete = err == nil
	return s.r, err
}

func newSession(p Plant, opt Options) *session {
	opt.Threshold = cmp.Or(opt.Threshold, DefaultThreshold)
	opt.Guard = cmp.Or(opt.Guard, DefaultGuard)
	opt.Dirty = cmp.Or(opt.Dirty, DefaultDirty)
	opt.Accuracy = cmp.Or(opt.Accuracy, DefaultAccuracy)
	opt.LeftOut = slices.Clone(opt.LeftOut)
	s := &session{
		plant: p, opt: opt, level: map[lab.PortRef]ocs.DBm{}, sources: map[string][]lab.PortRef{}, tx: map[string]ocs.DBm{},
		through: map[lab.PortRef]bool{}, assumed: map[lab.PortRef]bool{},
		from: map[lab.PortRef]lab.PortRef{}, passed: map[lab.PortRef]map[lab.PortRef]bool{},
		r: &Result{Limit: opt.Dirty, Accuracy: opt.Accuracy},
	}
	for _, n := range opt.NICs {
		s.nics = append(s.nics, n.Name)
		s.seen = append(s.seen, seen{nic: n})
	}
	return s
}

// Survey returns what [Find] has to work with: ports, light, bits, and what is left out. It
// moves nothing.
func Survey(ctx context.Context, p Plant, opt Options) (*Result, error) {
	s := newSession(p, opt)
	err := s.lights(ctx)
	if err == nil {
		err = s.words()
	}
	s.r.LeftOut = s.opt.LeftOut
	return s.r, err
}

func (s *session) find(ctx context.Context) error {
	if err := s.lights(ctx); err != nil {
		return err
	}
	if err := s.probe(ctx); err != nil {
		return err
	}
	if err := s.words(); err != nil {
		return err
	}
	if err := s.read(ctx); err != nil {
		return err
	}
	rx := places(s.seen, s.ports, s.r.Weight, s.leftOut(true))
	x, why, err := s.confirm(ctx, rx)
	if err != nil {
		s.finish(rx, nil)
		return err
	}
	s.darkPaths()
	tx, strays := senders(s.opt.NICs, x, inlets{s.lit, s.dark, s.assumed, s.through}, s.leftOut(false), why)
	s.measureTx(tx)
	for _, p := range strays {
		s.r.Strays = append(s.r.Strays, PortNote{Port: p, Power: s.powerOf(p), Why: "light comes in that is of no NIC that was looked for"})
	}
	s.finish(rx, tx)
	return nil
}

// finish puts the fibres into the result.
func (s *session) finish(rx, tx []Fibre) {
	circles(rx)
	circles(tx)
	compare(rx, float64(s.opt.Dirty))
	compare(tx, float64(s.opt.Dirty))
	for i := range rx {
		s.r.Fibres = append(s.r.Fibres, rx[i])
		if tx != nil {
			s.r.Fibres = append(s.r.Fibres, tx[i])
		}
	}
	peers := 0
	for _, f := range rx {
		peers = max(peers, f.Peers)
	}
	measured := slices.ContainsFunc(rx, func(f Fibre) bool { return f.Measured })
	if !measured && len(s.opt.NICs) > 0 {
		s.r.Notes = append(s.r.Notes, "no loss of a receive fibre could be measured, so dirty fibres go unnoticed")
	} else if peers < 2 && len(s.opt.NICs) > 0 {
		s.r.Notes = append(s.r.Notes, fmt.Sprintf("losses are compared with at most %s, so dirty fibres may go unnoticed", natural.Count(peers, "peer")))
	}
}

// leftOut returns the ports that were left out and may be ends of receive or transmit fibres.
func (s *session) leftOut(egress bool) []PortNote {
	tried := slices.Concat(s.lit, s.dark)
	if egress {
		tried = nil
		for _, p := range s.ports {
			tried = append(tried, p.port)
		}
	}
	var list []PortNote
	for _, n := range s.opt.LeftOut {
		if n.Egress == egress && !slices.Contains(tried, n.Port) {
			list = append(list, n)
		}
	}
	return list
}

// lights finds the light there is.
func (s *session) lights(ctx context.Context) error {
	power, err := s.plant.Power(ctx, s.opt.Ingress)
	if err != nil {
		return err
	}
	for _, p := range s.opt.Ingress {
		level, ok := power[p]
		switch {
		case !ok:
			s.blind = append(s.blind, p)
			continue
		case level < s.opt.Threshold:
			s.dark = append(s.dark, p)
		default:
			s.lit = append(s.lit, p)
		}
		s.level[p] = level
	}
	for _, p := range s.blind {
		if slices.ContainsFunc(s.opt.NICs, func(n NIC) bool { return n.Tx == p }) {
			s.lit = append(s.lit, p)
			s.assumed[p] = true
		}
	}
	return nil
}

// probe lights egress ports that have a monitor with each ingress port that has none, twice in other
// pairs, and so tells which of these have light.
func (s *session) probe(ctx context.Context) error {
	by := map[string][]lab.PortRef{}
	for _, p := range s.blind {
		if !s.opt.OneSided[p.Switch] {
			by[p.Switch] = append(by[p.Switch], p)
		}
	}
	if len(by) == 0 {
		return nil
	}
	power, err := s.plant.Power(ctx, s.opt.Egress)
	if err != nil {
		return err
	}
	outs := map[string][]lab.PortRef{}
	maps := 0
	for _, p := range s.opt.Egress {
		if _, ok := power[p]; ok && by[p.Switch] != nil {
			outs[p.Switch] = append(outs[p.Switch], p)
		}
	}
	for name := range by {
		if n := len(outs[name]); n > 0 {
			maps = max(maps, (len(by[name])+n-1)/n)
		} else {
			delete(by, name)
		}
	}
	for i := range 2 * maps {
		began := time.Now()
		part, shift := i/2, i%2
		circuits := map[string][]ocs.CrossConnect{}
		into := map[lab.PortRef]lab.PortRef{} // ingress to egress
		for name, in := range by {
			out := outs[name]
			for j := part * len(out); j < min(len(in), (part+1)*len(out)); j++ {
				into[in[j]] = out[(j+shift)%len(out)]
				circuits[name] = append(circuits[name], ocs.CrossConnect{Ingress: in[j].Port, Egress: into[in[j]].Port})
			}
		}
		all := map[string]ocs.Map{}
		for name := range outs {
			m, err := ocs.NewMap(circuits[name]...)
			if err != nil {
				return err
			}
			all[name] = m
		}
		if err := s.plant.Set(ctx, all); err != nil {
			return err
		}
		if power, err = s.plant.Power(ctx, s.opt.Egress); err != nil {
			return err
		}
		for in, out := range into {
			if level, ok := power[out]; ok && (!s.through[in] || level > s.level[in]) {
				s.level[in], s.through[in] = level, true
			}
		}
		s.did(Step{Number: i + 1, Of: 2 * maps, Bit: BitLight, Lit: len(into), Took: time.Since(began)})
	}
	for p := range s.through {
		delete(s.assumed, p)
		s.lit = slices.DeleteFunc(s.lit, func(q lab.PortRef) bool { return p == q })
		if s.level[p] >= s.opt.Threshold {
			s.lit = append(s.lit, p)
		} else {
			s.dark = append(s.dark, p)
		}
	}
	return nil
}

// words tells with which light each switch can be lit, and which ports get a word.
func (s *session) words() error {
	if len(s.assumed) > 0 {
		s.r.Notes = append(s.r.Notes, fmt.Sprintf("there is no power monitor at %s: where the lab file has a transmitter, light is assumed",
			natural.Count(len(s.assumed), "ingress port")))
	}
	for _, p := range s.blind {
		if !s.assumed[p] && !s.through[p] {
			s.opt.LeftOut = append(s.opt.LeftOut, PortNote{Port: p, Why: "it has no power monitor, and the lab file has no transmitter there"})
		}
	}
	slices.SortFunc(s.lit, comparePorts) // so that nothing depends on the order of maps
	slices.SortStableFunc(s.lit, func(a, b lab.PortRef) int { return cmp.Compare(s.powerOf(b), s.powerOf(a)) })
	for _, p := range s.lit {
		list := s.sources[p.Switch]
		if len(list) == 0 || s.powerOf(p) >= s.powerOf(list[0]).Add(-Weak) {
			s.sources[p.Switch] = append(list, p)
		}
	}
	for _, p := range s.opt.Egress {
		switch {
		case s.opt.OneSided[p.Switch] && slices.Contains(s.lit, p):
			continue // somebody sends there
		case len(s.sources[p.Switch]) == 0:
			s.opt.LeftOut = append(s.opt.LeftOut, PortNote{Port: p, Egress: true, Why: "no light enters " + p.Switch + " with which it could be lit"})
			continue
		}
		s.ports = append(s.ports, sent{port: p})
	}
	s.r.Ports, s.r.Sources = len(s.ports), len(s.lit)
	s.r.Information = Information(len(s.ports))
	if len(s.ports) == 0 {
		return ErrDark
	}
	slices.SortStableFunc(s.ports, func(a, b sent) int { return natural.Compare(a.port.Switch, b.port.Switch) })
	var groups []Group
	for i, p := range s.ports {
		if i == 0 || p.port.Switch != s.ports[i-1].port.Switch {
			groups = append(groups, Group{Sources: len(s.sources[p.port.Switch])})
		}
		groups[len(groups)-1].Ports++
	}
	words, steps, weight := Code(groups)
	s.r.Bits, s.r.Weight = steps, weight
	for i, w := range words {
		s.ports[i].word = w
		s.ports[i].bits = make([]Bit, s.r.Bits)
	}
	for i := range s.seen {
		s.seen[i].bits = make([]Bit, s.r.Bits)
	}
	return nil
}

// powerOf returns the light at an ingress port; one without a monitor counts as usual.
func (s *session) powerOf(p lab.PortRef) ocs.DBm {
	if level, ok := s.level[p]; ok {
		return level
	}
	return 0
}

// parts divides egress ports so that each part can be lit at once.
func (s *session) parts(ports []lab.PortRef) [][]lab.PortRef {
	var parts [][]lab.PortRef
	used := map[string]int{}
	for _, p := range ports {
		at := used[p.Switch] / len(s.sources[p.Switch])
		used[p.Switch]++
		for len(parts) <= at {
			parts = append(parts, nil)
		}
		parts[at] = append(parts[at], p)
	}
	if parts == nil {
		parts = [][]lab.PortRef{nil}
	}
	return parts
}

// light lights exactly the ports, with the strongest sources; shift takes others for each.
func (s *session) light(ctx context.Context, ports []lab.PortRef, shift int) error {
	circuits := map[string][]ocs.CrossConnect{}
	clear(s.from)
	for _, p := range ports {
		from := s.sources[p.Switch]
		n := len(circuits[p.Switch])
		s.from[p] = from[(n+shift)%len(from)]
		circuits[p.Switch] = append(circuits[p.Switch], ocs.CrossConnect{Ingress: s.from[p].Port, Egress: p.Port})
	}
	return s.set(ctx, circuits)
}

// set brings circuits about on all switches in question, and no others there.
func (s *session) set(ctx context.Context, circuits map[string][]ocs.CrossConnect) error {
	maps := map[string]ocs.Map{}
	for name := range s.sources {
		m, err := ocs.NewMap(circuits[name]...)
		if err != nil {
			return err
		}
		maps[name] = m
	}
	return s.plant.Set(ctx, maps)
}

// read reads the words.
func (s *session) read(ctx context.Context) error {
	for b := range s.r.Bits {
		var on []lab.PortRef
		for _, p := range s.ports {
			if p.word.Has(b) {
				on = append(on, p.port)
			}
		}
		shown, saw, unsure, err := s.try(ctx, b, on, 0)
		if err != nil {
			return err
		}
		for shift := 1; shift <= retries; shift++ {
			wrong := s.wrong(b, shown)
			if len(wrong) == 0 && (len(unsure) == 0 || shift > 1) {
				break
			}
			shownAgain, sawAgain, _, err := s.try(ctx, b, on, shift)
			if err != nil {
				return err
			}
			switch {
			case len(wrong) == 0:
				for i := range saw {
					saw[i] = agree(saw[i], sawAgain[i])
				}
			case slices.ContainsFunc(wrong, func(i int) bool { return shown[i] == Lit }):
				// There was light too much: what was seen then belongs to what was sent then.
				shown, saw = shownAgain, sawAgain
			default:
				// There was light too little, and there is other light now: together they are the step,
				// as its parts are.
				for i := range shown {
					shown[i] = either(shown[i], shownAgain[i])
				}
				for i := range saw {
					saw[i] = either(saw[i], sawAgain[i])
				}
			}
		}
		for i := range s.ports {
			s.ports[i].bits[b] = shown[i]
		}
		for _, i := range s.wrong(b, shown) {
			s.ports[i].wrong = append(s.ports[i].wrong, b)
		}
		for i := range s.seen {
			s.seen[i].bits[b] = saw[i]
		}
		s.drop()
	}
	for _, p := range s.ports {
		if len(p.wrong) == 0 {
			continue
		}
		s.r.Faults = append(s.r.Faults, PortNote{Port: p.port, Egress: true, Why: fmt.Sprintf(
			"its monitor did not show what it was told in %s, also with other light: nobody is placed there", natural.Count(len(p.wrong), "step"))})
	}
	return nil
}

// drop no longer lights anything with light that enters a switch and comes out nowhere, though
// other light came out there: the mirror of the ingress port is stuck, or what follows it is dirty.
func (s *session) drop() {
	for name, list := range s.sources {
		for _, in := range slices.Clone(list) {
			fails := 0
			for out, ok := range s.passed[in] {
				if ok {
					fails = -len(s.ports)
				} else if s.lightCame(out) {
					fails++
				}
			}
			if fails < 2 || len(s.sources[name]) < 2 {
				continue
			}
			s.sources[name] = slices.DeleteFunc(s.sources[name], func(p lab.PortRef) bool { return p == in })
			s.r.Faults = append(s.r.Faults, PortNote{Port: in, Why: fmt.Sprintf(
				"light enters there, and came out at none of %s that pass other light", natural.Count(fails, "egress port"))})
		}
	}
}

// lightCame reports whether any light came out of an egress port when it should.
func (s *session) lightCame(out lab.PortRef) bool {
	for _, outs := range s.passed {
		if outs[out] {
			return true
		}
	}
	return false
}

// darkPaths notes the pairs of ports that pass other light, and not each other's.
func (s *session) darkPaths() {
	for _, in := range slices.SortedFunc(maps.Keys(s.passed), comparePorts) {
		good := false
		for _, ok := range s.passed[in] {
			good = good || ok
		}
		for _, out := range slices.SortedFunc(maps.Keys(s.passed[in]), comparePorts) {
			if good && !s.passed[in][out] && s.lightCame(out) {
				s.r.Notes = append(s.r.Notes, fmt.Sprintf("no light came from %v to %v, though both pass other light: the path is dark, or the light was off for a moment", in, out))
			}
		}
	}
}

// agree returns what two readings of the same come to: of what was not clear at first, the
// second is taken; two that are clear and differ are not.
func agree(first, second Bit) Bit {
	if first == Unsure || first == second {
		return second
	}
	return Unsure
}

// wrong returns the ports that did not show in bit b what they were told.
func (s *session) wrong(b int, shown []Bit) []int {
	var list []int
	for i, p := range s.ports {
		if planned := bitOf(p.word.Has(b)); shown[i] != planned {
			list = append(list, i)
		}
	}
	return list
}

func bitOf(lit bool) Bit {
	if lit {
		return Lit
	}
	return Dark
}

// try lights the ports whose bit b is 1, in as many maps as it takes, and returns what came
// out of each port, what each NIC saw, and which of them saw neither light nor dark.
func (s *session) try(ctx context.Context, b int, on []lab.PortRef, shift int) (sent, saw []Bit, unsure []string, err error) {
	parts := s.parts(on)
	sent, saw = make([]Bit, len(s.ports)), make([]Bit, len(s.seen))
	for i := range sent {
		sent[i] = Dark
	}
	for i := range saw {
		saw[i] = Dark
	}
	for n, part := range parts {
		began := time.Now()
		if err := s.light(ctx, part, shift); err != nil {
			return nil, nil, nil, err
		}
		out, err := s.outs(ctx, part)
		if err != nil {
			return nil, nil, nil, err
		}
		for i := range sent {
			sent[i] = either(sent[i], out[i])
		}
		looks, err := s.plant.Look(ctx, s.nics)
		if err != nil {
			return nil, nil, nil, err
		}
		step := Step{Number: b + 1, Of: s.r.Bits, Bit: b, Part: n + 1, Parts: len(parts), Lit: len(part), Repeat: shift > 0}
		for i := range s.seen {
			bit := s.bit(&s.seen[i], looks[s.nics[i]])
			if bit == Unsure {
				step.Unsure = append(step.Unsure, s.nics[i])
				unsure = append(unsure, s.nics[i])
			}
			saw[i] = either(saw[i], bit)
		}
		step.Took = time.Since(began)
		s.did(step)
	}
	return sent, saw, unsure, nil
}

// either returns what two maps of one step come to: light in any of them is light.
func either(a, b Bit) Bit {
	switch {
	case a == Lit || b == Lit:
		return Lit
	case a == Unsure || b == Unsure:
		return Unsure
	}
	return Dark
}

// outs returns what comes out of each port that has a word.
func (s *session) outs(ctx context.Context, on []lab.PortRef) ([]Bit, error) {
	ports := make([]lab.PortRef, len(s.ports))
	for i, p := range s.ports {
		ports[i] = p.port
	}
	power, err := s.plant.Power(ctx, ports)
	if err != nil {
		return nil, err
	}
	out := make([]Bit, len(ports))
	for i, p := range ports {
		level, ok := power[p]
		if !ok {
			s.ports[i].blind = true
			out[i] = bitOf(slices.Contains(on, p))
			continue
		}
		out[i] = bitOf(level >= s.opt.Threshold)
		if level >= s.opt.Threshold.Add(s.opt.Guard+faint) {
			s.ports[i].bright = true
		}
		if in, lit := s.from[p]; lit {
			if s.passed[in] == nil {
				s.passed[in] = map[lab.PortRef]bool{}
			}
			s.passed[in][p] = s.passed[in][p] || out[i] == Lit
		}
	}
	return out, nil
}

// bit returns what a NIC saw.
func (s *session) bit(n *seen, look Look) Bit {
	if len(look.Rx) == 0 {
		n.err = look.Err
		if look.Carrier != Unsure || n.how == "" {
			n.how = ByCarrier
		}
		return look.Carrier
	}
	n.how = ByLight
	if look.Tx != nil {
		s.tx[n.nic.Name] = sum(look.Tx)
	}
	got := Unsure
	for i, lanes := range look.Rx {
		level := slices.Max(lanes)
		if !n.read || level > n.most {
			n.most, n.read = level, true
		}
		b := Unsure
		switch {
		case level >= s.opt.Threshold.Add(s.opt.Guard):
			b = Lit
		case level < s.opt.Threshold.Add(-s.opt.Guard):
			b = Dark
		}
		if i > 0 && b != got {
			return Unsure
		}
		got = b
	}
	return got
}

// sum is the power of all lanes.
func sum(lanes []ocs.DBm) ocs.DBm {
	mw := 0.0
	for _, l := range lanes {
		mw += l.Milliwatts()
	}
	return ocs.Milliwatts(mw)
}

// did keeps a step and tells of it.
func (s *session) did(step Step) {
	s.r.Maps = append(s.r.Maps, step)
	if s.opt.Progress != nil {
		s.opt.Progress(step)
	}
}

// confirm lights all NICs that were found, takes back what that contradicts, measures what
// their receive fibres lose, and has them say their names. why is why they could not.
func (s *session) confirm(ctx context.Context, rx []Fibre) (x *names, why string, err error) {
	x = newNames()
	at := map[lab.PortRef]int{} // which of rx hangs there
	var on []lab.PortRef
	for i, f := range rx {
		if f.Found != (lab.PortRef{}) {
			at[f.Found] = i
			on = append(on, f.Found)
		}
	}
	if len(on) == 0 {
		return x, "no receive fibre was found, so nobody can hear the NICs' names", nil
	}
	slices.SortFunc(on, comparePorts)
	for shift := 0; shift <= retries && len(on) > 0; shift++ {
		var again []lab.PortRef // no light came out there
		for _, part := range s.parts(on) {
			began := time.Now()
			if err := s.light(ctx, part, shift+1); err != nil {
				return x, "", err
			}
			step, dark, err := s.compareLit(ctx, rx, at, part, shift == retries)
			if err != nil {
				return x, "", err
			}
			again = append(again, dark...)
			step.Took, step.Repeat = time.Since(began), shift > 0
			s.did(step)
		}
		on = again
	}
	for p, i := range at {
		if rx[i].Found == (lab.PortRef{}) {
			delete(at, p)
		}
	}
	// A round that tells nothing new is the last, unless there is light to which too few have listened.
	for round := range 2 + len(s.opt.NICs) {
		circuits, listeners := s.round(rx, at, x, round)
		if len(listeners) == 0 {
			return x, "no receive fibre was confirmed, so nobody can hear the NICs' names", nil
		}
		began := time.Now()
		if err := s.set(ctx, circuits); err != nil {
			return x, "", err
		}
		h, err := s.plant.Hail(ctx, slices.Sorted(maps.Values(listeners)))
		if errors.Is(err, ErrMute) {
			return x, err.Error(), nil
		}
		if err != nil {
			return x, "", err
		}
		s.did(Step{Number: round + 1, Bit: BitNames, Lit: len(listeners), Took: time.Since(began)})
		news := x.take(h, listeners)
		if s.told(x, rx, at) || !news && round > 0 && !slices.ContainsFunc(s.lit, func(p lab.PortRef) bool { return unheard(x, p, at) }) {
			break
		}
	}
	return x, "", nil
}

// unheard reports whether light has no owner and fewer than two NICs of its switch have listened to
// it. One that hears nobody there tells that it is nobody's who has spoken, but for its own.
func unheard(x *names, p lab.PortRef, at map[lab.PortRef]int) bool {
	listeners := 0
	for out := range at {
		if out.Switch == p.Switch {
			listeners++
		}
	}
	return x.owner[p] == "" && len(x.more[p]) == 0 && len(x.tried[p]) < min(2, listeners)
}

// told reports whether every light that comes in has an owner, and every NIC at at has spoken:
// one that has not may send into the same port as another.
func (s *session) told(x *names, rx []Fibre, at map[lab.PortRef]int) bool {
	for _, p := range s.lit {
		if x.owner[p] == "" {
			return false
		}
	}
	for _, i := range at {
		if !x.spoke[rx[i].NIC] && x.mute[rx[i].NIC] == "" {
			return false
		}
	}
	return true
}

// compareLit looks at the NICs whose ports are lit, and takes in what they receive. It returns the
// ports where no light came out, which are judged only the last time.
func (s *session) compareLit(ctx context.Context, rx []Fibre, at map[lab.PortRef]int, on []lab.PortRef, last bool) (step Step, dark []lab.PortRef, err error) {
	step = Step{Number: 1, Of: 1, Bit: BitConfirm, Lit: len(on)}
	power, err := s.plant.Power(ctx, on)
	if err != nil {
		return step, nil, err
	}
	looks, err := s.plant.Look(ctx, s.nics)
	if err != nil {
		return step, nil, err
	}
	for _, p := range on {
		i := at[p]
		f, look := &rx[i], looks[s.nics[i]]
		out, metered := power[p]
		if metered && out < s.opt.Threshold && !last {
			dark = append(dark, p)
			continue
		}
		switch s.bit(&s.seen[i], look) {
		case Lit:
		case Unsure:
			step.Unsure = append(step.Unsure, f.NIC)
			f.Verdict, f.Why, f.Candidates, f.Found = Ambiguous, "it was found, and then its reading was neither light nor dark, or changed", []lab.PortRef{p}, lab.PortRef{}
			continue
		case Dark:
			f.Verdict, f.Candidates, f.Found = Contradictory, []lab.PortRef{p}, lab.PortRef{}
			f.Why = fmt.Sprintf("it was found at %v, and saw nothing when that was lit again", p)
			if metered && out < s.opt.Threshold {
				f.Why += ", but no light came out there"
			}
			continue
		}
		if metered && out >= s.opt.Threshold && len(look.Rx) > 0 {
			f.Loss, f.Measured = out.Sub(sum(look.Rx[len(look.Rx)-1])), true
		}
		if weak := weakLane(look.Rx); weak > 0 {
			f.Why = fmt.Sprintf("lane %d gets far less light than others", weak)
		}
	}
	return step, dark, nil
}

// weakLane returns the lane, from 1, that gets less than a tenth of the light of the strongest; 0
// for none.
func weakLane(rx [][]ocs.DBm) int {
	if len(rx) == 0 {
		return 0
	}
	lanes := rx[len(rx)-1]
	for i, l := range lanes {
		if l < slices.Max(lanes).Add(-10) {
			return i + 1
		}
	}
	return 0
}

// round returns the circuits over which the NICs say their names, and who listens to which
// ingress. NICs that have not spoken yet are lit first. Light that has no owner yet goes first, and
// of that the one to which the fewest have listened, to somebody who has not.
func (s *session) round(rx []Fibre, at map[lab.PortRef]int, x *names, round int) (map[string][]ocs.CrossConnect, map[lab.PortRef]string) {
	circuits, listeners := map[string][]ocs.CrossConnect{}, map[lab.PortRef]string{}
	for name := range s.sources {
		var ports, from []lab.PortRef
		for p := range at {
			if p.Switch == name {
				ports = append(ports, p)
			}
		}
		slices.SortFunc(ports, func(a, b lab.PortRef) int {
			return cmp.Or(first(!x.spoke[rx[at[a]].NIC], !x.spoke[rx[at[b]].NIC]), comparePorts(a, b))
		})
		for _, p := range s.lit {
			if p.Switch == name {
				from = append(from, p)
			}
		}
		slices.SortStableFunc(from, func(a, b lab.PortRef) int {
			if x.owner[a] == "" && x.owner[b] == "" {
				return cmp.Or(cmp.Compare(len(x.tried[a]), len(x.tried[b])), comparePorts(a, b))
			}
			return cmp.Or(first(x.owner[a] == "", x.owner[b] == ""), comparePorts(a, b))
		})
		n := min(len(ports), len(from))
		ports = ports[:n]
		for i, in := range from[:n] {
			// Not its own, as a guess: who hears only itself proves little.
			k := (i + 1 + round) % len(ports)
			for j := range ports {
				if next := (k + j) % len(ports); !x.tried[in][rx[at[ports[next]]].NIC] {
					k = next
					break
				}
			}
			out := ports[k]
			ports = slices.Delete(ports, k, k+1)
			circuits[name] = append(circuits[name], ocs.CrossConnect{Ingress: in.Port, Egress: out.Port})
			listeners[in] = rx[at[out]].NIC
		}
	}
	return circuits, listeners
}

// first orders those for which something holds before others.
func first(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// measureTx tells what the transmit fibres lose: what the module sends less what comes in.
func (s *session) measureTx(tx []Fibre) {
	for i := range tx {
		f := &tx[i]
		in, metered := s.level[f.Found]
		out, told := s.tx[f.NIC]
		if f.Found == (lab.PortRef{}) || !metered || s.through[f.Found] || !told || out < s.opt.Threshold {
			continue
		}
		f.Loss, f.Measured = out.Sub(in), true
	}
}
