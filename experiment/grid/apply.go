package grid

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/ocslab/ocslab/experiment"
	"github.com/ocslab/ocslab/experiment/runs"
	"github.com/ocslab/ocslab/experiment/sequence"
	"github.com/ocslab/ocslab/internal/natural"
	"github.com/ocslab/ocslab/internal/pause"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/timeline"
	"github.com/ocslab/ocslab/topology"
	"github.com/ocslab/ocslab/topology/railx"
)

// Order is whether rails are moved one after another.
type Order string

// The orders. Auto is Rolling if every two nodes that have links before and after keep one throughout, and Together if not.
// The zero Order is Auto.
const (
	Auto     Order = "auto"
	Rolling  Order = "rolling"
	Together Order = "together"
)

// Options of [Apply].
type Options struct {
	sequence.Options
	Order Order
	// Drain removes the circuits of switches that are off first, as before maintenance. Otherwise these are neither touched
	// nor asked: they may be dead.
	Drain bool
}

// Report is what bringing a grid to a configuration came to.
type Report struct {
	Run string // its ID
	// State is how the run ended. Restored is whether the lab is as it should be: as to wants it if State is
	// done and Leave was asked for, else as it was found.
	State    runs.State
	Restored bool
	Delta    railx.Delta
	Order    Order // Rolling or Together
	// Why says why the order is not Rolling, "" if it is or was not asked.
	Why string
	// Floor is the fewest links that a pair with links before and after has at any moment, by plan;
	// math.MaxInt if there is no such pair.
	Floor int
	Steps []Step
	Down  []Down // pairs that had links before and after, the longest without first
	// Rings is around how many rings light was followed in the end, on all switches, and Links how many links these
	// have; 0 if it was not followed.
	Rings, Links int
}

// Step is what was moved at the same time.
type Step struct {
	Name     string
	Switches []SwitchTime // those that changed, in order
	Took     time.Duration
}

// SwitchTime is when the light of a switch was back.
type SwitchTime struct {
	Switch railx.Switch
	Links  int // removed and added
	// Both are from the last byte of the command: Ack until the reply, Light until the last of its new circuits has
	// light. Light is the zero Interval where no power monitor said.
	Ack, Light timeline.Interval
}

// Down is how long two nodes had no link at all: from the last that went dark to the first that had light.
type Down struct {
	A, B railx.Node
	// For is the time, 0 to 0 if they always had one. Known is false where no power monitor said.
	For   timeline.Interval
	Known bool
}

// Read returns the circuits of all switches that cables name.
func Read(ctx context.Context, l *lab.Lab, cables railx.Cables) (map[string]ocs.Map, error) {
	names := map[string]bool{}
	for _, ports := range cables {
		for _, nic := range ports {
			if nic.Tx.Switch != "" {
				names[nic.Tx.Switch] = true
			}
		}
	}
	return l.CrossConnects(ctx, slices.Sorted(maps.Keys(names))...)
}

// Apply brings a grid from one configuration to another, and records that as a run; see package sequence for what may go
// wrong. First it is brought to from, which takes nothing where the switches are so already; from may be nil, and is
// then what the switches hold, as far as that is a configuration of the grid. Rings are put on the rails where most links
// can stay (see [railx.Settle]), so that what comes about may be to with its rails in another order; it is returned.
//
// In the end all switches are read and the light followed: an error that matches [ocs.ErrVerify] says where it does not
// go where it should.
func Apply(ctx context.Context, f *lab.File, cables railx.Cables, from, to *railx.Config, opt Options) (*railx.Config, *Report, error) {
	a := &applying{file: f, cables: cables, opt: opt}
	if !opt.Drain {
		a.cables = maps.Clone(cables)
		for _, s := range to.Off() {
			delete(a.cables, s)
		}
	}
	have, err := a.have(ctx, from, to)
	if err != nil {
		return nil, nil, err
	}
	to = railx.Settle(have, to)
	r := &Report{Delta: railx.Diff(have, to)}
	a.report, a.to, a.was = r, to, have
	if rest, _, err := have.Without(to.Off()...); err == nil {
		a.was = rest // what is off joins nobody
	}
	groups, err := r.order(have, to, opt.Order)
	if err != nil {
		return to, r, err
	}
	steps, err := a.steps(from, have, to, groups)
	if err != nil {
		return to, r, err
	}
	opt.Opened = a.opened
	opt.After = a.after
	result, err := sequence.Play(ctx, f, steps, opt.Options)
	if result != nil {
		r.Run, r.State, r.Restored = result.ID, result.Summary.State, result.Summary.Restored
	}
	r.Down = a.down()
	return to, r, err
}

// applying is a configuration that is being brought about.
type applying struct {
	file    *lab.File
	cables  railx.Cables
	opt     Options
	to, was *railx.Config
	names   []string
	groups  [][]railx.Switch // that change, by step; nil of the step that brings from about
	report  *Report
	session *sequence.Session
	events  []change // of links, while to was being brought about
	began   time.Time
}

// change is a link that went or came.
type change struct {
	timeline.LinkEvent
	sw   railx.Switch
	link railx.Link
}

// have returns what there is before the move.
func (a *applying) have(ctx context.Context, from, to *railx.Config) (*railx.Config, error) {
	if from != nil {
		return from, nil
	}
	l := lab.New(a.file, a.opt.Lab)
	circuits, err := Read(ctx, l, a.cables)
	if err = errors.Join(err, l.Close()); err != nil {
		return nil, err
	}
	links, err := a.cables.Links(circuits)
	if err != nil {
		links = nil // something else; what is in the way is for the mode to decide
	}
	return to.Observed(links)
}

// order decides in which groups switches are moved.
func (r *Report) order(have, to *railx.Config, want Order) ([][]railx.Switch, error) {
	var together []railx.Switch
	for _, s := range r.Delta.Switches {
		together = append(together, s.Switch)
	}
	rolling, floor, err := railx.Rolling(have, to)
	if err != nil && !errors.Is(err, railx.ErrCut) {
		return nil, err
	}
	r.Order, r.Floor = Together, floor
	switch {
	case want == Together:
		return [][]railx.Switch{together}, nil
	case want == Rolling || err == nil && floor < math.MaxInt:
		r.Order = Rolling
		return rolling, nil
	case err != nil:
		r.Why = err.Error()
	default:
		r.Why = "no two nodes have links both before and after"
	}
	return [][]railx.Switch{together}, nil
}

// steps returns what is moved, one step after another.
func (a *applying) steps(from, have, to *railx.Config, groups [][]railx.Switch) ([]sequence.Step, error) {
	var steps []sequence.Step
	add := func(name string, m map[string]ocs.Map, group []railx.Switch) {
		steps, a.groups, a.names = append(steps, sequence.Step{Name: name, Maps: m}), append(a.groups, group), append(a.names, name)
	}
	now := a.before(from, have, to)
	if from != nil {
		m, err := a.cables.Maps(now)
		if err != nil {
			return nil, err
		}
		add("before", m, nil)
	}
	if off := to.Off(); a.opt.Drain && len(off) > 0 {
		if from == nil { // what the switches hold is nobody's until it is in a step
			for _, s := range off {
				now[s] = have.Links(s)
			}
			m, err := a.parts(off, now)
			if err != nil {
				return nil, err
			}
			add("found", m, nil)
		}
		for _, s := range off {
			now[s] = nil
		}
		m, err := a.parts(off, now)
		if err != nil {
			return nil, err
		}
		add("drain", m, nil)
	}
	moves := 0
	for i, group := range groups {
		if len(group) == 0 {
			continue
		}
		name := "move"
		if len(groups) > 1 {
			name = fmt.Sprintf("rail-%d-of-%d", i+1, len(groups))
		}
		for _, s := range group {
			now[s] = to.Links(s)
		}
		m, err := a.parts(group, now)
		if err != nil {
			return nil, err
		}
		add(name, m, group)
		moves++
	}
	if moves == 0 { // all is as it should be: the switches say whether it is
		final, err := to.Maps(a.cables)
		if err != nil {
			return nil, err
		}
		add("move", final, nil)
	}
	return steps, nil
}

// before returns the links there are before the move, by switch: those of from, which are brought about first. Without
// from they are those of have that stay, as the others are not ours to move unless the mode says so.
func (a *applying) before(from, have, to *railx.Config) map[railx.Switch][]railx.Link {
	links := map[railx.Switch][]railx.Link{}
	for s := range a.cables {
		if from != nil {
			links[s] = from.Links(s)
			continue
		}
		for _, l := range have.Links(s) {
			if slices.Contains(to.Links(s), l) {
				links[s] = append(links[s], l)
			}
		}
	}
	return links
}

// parts are the circuits of those switches of the lab that have some switches of the grid as parts: all their parts have the links
// they have now.
func (a *applying) parts(group []railx.Switch, now map[railx.Switch][]railx.Link) (map[string]ocs.Map, error) {
	touched := map[string]bool{}
	for _, sw := range group {
		for _, nic := range a.cables[sw] {
			touched[nic.Tx.Switch] = true
		}
	}
	m, err := a.cables.Maps(now)
	maps.DeleteFunc(m, func(name string, _ ocs.Map) bool { return !touched[name] })
	return m, err
}

func (a *applying) opened(s *sequence.Session) error {
	a.session, a.began = s, time.Now()
	return nil
}

// after writes down what a step came to and, after the last one, follows the light.
func (a *applying) after(ctx context.Context, step int, mv experiment.Move) error {
	s := Step{Name: a.names[step], Took: time.Since(a.began)}
	a.began = time.Now()
	if group := a.groups[step]; group != nil {
		deltas := map[railx.Switch]railx.SwitchDelta{}
		for _, d := range a.report.Delta.Switches {
			deltas[d.Switch] = d
		}
		marks := marksOf(mv)
		for _, sw := range group {
			d := deltas[sw]
			if len(d.Removed)+len(d.Added) == 0 {
				continue
			}
			s.Switches = append(s.Switches, a.timed(marks, d))
		}
		a.report.Steps = append(a.report.Steps, s)
	}
	if step < len(a.names)-1 {
		return nil
	}
	return a.verify(ctx)
}

type markKey struct {
	stage   timeline.Stage
	subject string
}

func marksOf(mv experiment.Move) map[markKey]timeline.Interval {
	marks := map[markKey]timeline.Interval{}
	for _, m := range mv.Marks {
		marks[markKey{m.Stage, m.Subject}] = m.Interval
	}
	return marks
}

// timed returns when a switch was done, and notes when its links went and came.
func (a *applying) timed(marks map[markKey]timeline.Interval, d railx.SwitchDelta) SwitchTime {
	t := SwitchTime{Switch: d.Switch, Links: len(d.Removed) + len(d.Added)}
	name := a.cables[d.Switch][0].Tx.Switch
	command, sent := marks[markKey{timeline.Command, name}]
	if ack, known := marks[markKey{timeline.Ack, name}]; known && sent {
		t.Ack = ack.Sub(command)
	}
	all := true
	var last timeline.Interval
	for _, came := range []bool{false, true} {
		links, stage := d.Removed, timeline.Dark
		if came {
			links, stage = d.Added, timeline.Light
		}
		for _, l := range links {
			c := change{timeline.LinkEvent{Came: came, Known: true}, d.Switch, l}
			for i, p := range []railx.Port{l.Plus, l.Minus} {
				rx := a.cables[d.Switch][p].Rx
				at, known := marks[markKey{stage, rx.String()}]
				c.Known = c.Known && known
				switch {
				case i == 0:
					c.At = at
				case came: // both ways are lit
					c.At = timeline.Later(c.At, at)
				default: // one way is dark
					c.At = timeline.Earlier(c.At, at)
				}
			}
			if came {
				all = all && c.Known
				last = timeline.Later(last, c.At)
			}
			a.events = append(a.events, c)
		}
	}
	if all && sent && len(d.Added) > 0 {
		t.Light = last.Sub(command)
	}
	return t
}

// verify reads all switches and follows the light.
func (a *applying) verify(ctx context.Context) error {
	circuits, err := Read(ctx, a.session.Testbed.Lab, a.cables)
	if err != nil {
		return err
	}
	links, err := a.cables.Links(circuits)
	if err != nil {
		return fmt.Errorf("%w: %w", ocs.ErrVerify, err)
	}
	now, err := a.to.Observed(links)
	if err != nil {
		return fmt.Errorf("%w: %w", ocs.ErrVerify, err)
	}
	if err := now.Check(); err != nil {
		return fmt.Errorf("%w: %w", ocs.ErrVerify, err)
	}
	found := 0
	for _, s := range now.Switches() {
		rings, err := now.Trace(s)
		if err != nil {
			return fmt.Errorf("%w: %v: %w", ocs.ErrVerify, s, err)
		}
		found += len(rings)
	}
	for _, name := range slices.Sorted(maps.Keys(circuits)) {
		if err := a.lit(ctx, name, circuits[name]); err != nil {
			return err
		}
	}
	a.report.Rings, a.report.Links = found, now.CountLinks()
	return a.session.Event("verified", fmt.Sprintf("light followed around %d rings of %d links", a.report.Rings, a.report.Links))
}

// patience is how long light that was not seen to come is waited for in the end: monitors average.
const patience = 2 * time.Second

// mostLoss is more than what any circuit of a switch loses.
const mostLoss ocs.DB = 15

// lit returns why the light of a switch does not go where its circuits say, as far as it has monitors: into an ingress goes light,
// and out of the egress comes none. A mirror can be stuck although its switch says otherwise. Where
// no light goes in nothing can be said. The error matches [ocs.ErrVerify].
func (a *applying) lit(ctx context.Context, name string, circuits ocs.Map) error {
	sw, err := a.session.Testbed.Lab.Switch(ctx, name)
	if err != nil {
		return err
	}
	meter, ok := ocs.As[ocs.PowerMeter](sw)
	if !ok {
		return nil
	}
	ours := map[topology.Port]bool{}
	for _, ports := range a.cables {
		for _, nic := range ports {
			ours[nic.Tx] = true
		}
	}
	until := time.Now().Add(patience)
	for {
		reading, err := meter.Power(ctx)
		if err != nil {
			return err
		}
		var dark []ocs.CrossConnect
		for c := range circuits.All() {
			in, known := reading.Ports[c.Ingress]
			out, also := reading.Ports[c.Egress]
			if known && also && ours[topology.Port{Switch: name, Port: c.Ingress}] && out < ocs.NoLight && in > ocs.NoLight+ocs.DBm(mostLoss) {
				dark = append(dark, c)
			}
		}
		switch {
		case len(dark) == 0:
			return nil
		case time.Now().After(until):
			return fmt.Errorf("%w: %s says that it holds %v, and light goes in at port %d and does not come out at port %d (%s of %d do so)",
				ocs.ErrVerify, name, dark[0], dark[0].Ingress, dark[0].Egress, natural.Count(len(dark), "circuit"), circuits.Len())
		}
		if err := pause.For(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
}

// down works out how long pairs had no link.
func (a *applying) down() []Down {
	byPair := map[[2]railx.Node][]timeline.LinkEvent{}
	for _, e := range a.events {
		v, _ := e.link.Plus.Node()
		w, _ := e.link.Minus.Node()
		x, y := nodeAt(e.sw, min(v, w)), nodeAt(e.sw, max(v, w))
		byPair[[2]railx.Node{x, y}] = append(byPair[[2]railx.Node{x, y}], e.LinkEvent)
	}
	var all []Down
	for pair, events := range byPair {
		before, after := a.was.Lanes(pair[0], pair[1]), a.to.Lanes(pair[0], pair[1])
		if before == 0 || after == 0 {
			continue
		}
		d := Down{A: pair[0], B: pair[1]}
		d.For, d.Known = timeline.Outage(before, events)
		all = append(all, d)
	}
	slices.SortFunc(all, func(a, b Down) int {
		return cmp.Or(cmp.Compare(b.For.Latest, a.For.Latest), compareNodes(a.A, b.A), compareNodes(a.B, b.B))
	})
	return all
}

func nodeAt(s railx.Switch, v int) railx.Node {
	if s.Dimension == railx.X {
		return railx.Node{Column: v, Row: s.Group}
	}
	return railx.Node{Column: s.Group, Row: v}
}

func compareNodes(a, b railx.Node) int {
	return cmp.Or(cmp.Compare(a.Row, b.Row), cmp.Compare(a.Column, b.Column))
}
