package plan

import (
	"fmt"
	"iter"
	"time"

	"github.com/ocslab/ocslab/ocs"
)

// StepKind is a kind of [Step].
type StepKind string

// The kinds of steps.
const (
	StepSetup    StepKind = "set-up"   // open the testbed
	StepHook     StepKind = "hook"     // run a command
	StepApproach StepKind = "approach" // bring the first configuration about, unrecorded
	StepWarmUp   StepKind = "warm-up"  // a reconfiguration that does not count
	StepMove     StepKind = "move"     // a reconfiguration
	StepNull     StepKind = "null"     // a null toggle
	StepFinally  StepKind = "finally"  // put the light where it shall be left
)

// The places of hooks in a run, as their keys in a file.
const (
	BeforeRun   = "before_run"
	BeforeSetup = "setup"
	BeforePoint = "before_point"
	AfterPoint  = "after_point"
	AfterRun    = "after_run"
	AtEnd       = "finally"
)

// Step is one thing that a run does.
type Step struct {
	Kind  StepKind
	At    time.Duration // since the run began, about
	Takes time.Duration // about; of hooks it is not known, and 0

	Condition int // by number; 0: it is of the run
	Point     int // by ID; 0: of none
	Repeat    int // of the point
	Number    int // of the reconfiguration; 0: it is not recorded

	// From and To are configurations. From is "" when nobody knows where the light is; To
	// is "" when the circuits are put back that the run found.
	From, To string
	Want     map[string]ocs.Map // the maps of To, by switch; nil when light is not moved

	Where string   // of a hook: BeforeRun and so on
	Hook  []string // its words

	have map[string]ocs.Map
}

// Changes returns, by switch, the circuits that the step removes and adds, without switches
// where there are none. Known is false when that depends on where the light is found.
func (s Step) Changes() (all map[string]ocs.Change, known bool) {
	if s.Want == nil || s.have == nil {
		return nil, false
	}
	return changes(s.have, s.Want), true
}

// changes returns what brings want about where have is, by switch.
func changes(have, want map[string]ocs.Map) map[string]ocs.Change {
	all := map[string]ocs.Change{}
	for name, m := range want {
		if c, err := ocs.Plan(have[name], m, ocs.Update); err == nil && !c.Empty() { // Update refuses nothing
			all[name] = c
		}
	}
	return all
}

// after returns the circuits that are there when want has been brought about where have
// was.
func after(have, want map[string]ocs.Map) map[string]ocs.Map {
	now := make(map[string]ocs.Map, len(have)+len(want))
	for name, m := range have {
		now[name] = m
	}
	for name, c := range changes(have, want) {
		now[name], _ = c.ApplyTo(have[name]) // it was planned for that
	}
	return now
}

// NeedsSetup reports whether the testbed is opened anew for points of the condition next
// after those of prev, which is nil when none is open.
func NeedsSetup(prev, next *Condition) bool { return prev == nil || prev.Setup != next.Setup }

// NeedsApproach reports whether light has to be moved to where a lap of the sequence of c
// begins. The circuits at, by switch, are those that are known to be there; nil when
// nothing is known.
func NeedsApproach(at map[string]ocs.Map, c *Condition) bool {
	return at == nil || len(changes(at, c.Maps[0])) > 0
}

// Steps yields all that a run does, in order: what [Plan.Remaining] adds up, and
// "ocslab run --plan" prints. The file may be nil, which is one without hooks. Points for
// which skip, when it is not nil, returns true are left out, as on resume.
func (p *Plan) Steps(f *File, skip func(point int) bool) iter.Seq[Step] {
	return func(yield func(Step) bool) {
		w := walk{plan: p, yield: yield, moves: map[move]*light{}, lights: map[string]*light{}}
		if f != nil {
			w.file = *f
		}
		w.run(skip)
	}
}

// Remaining is about how long it takes to do the points that are neither done nor dropped,
// with set-ups, warm-ups and what is put back in the end; 0 when there are none. Hooks take
// as long as they take and are not counted.
func (p *Plan) Remaining(done, dropped map[int]bool) time.Duration {
	var sum time.Duration
	points := false
	for s := range p.Steps(nil, func(id int) bool { return done[id] || dropped[id] }) {
		sum = s.At + s.Takes
		points = points || s.Point > 0
	}
	if !points {
		return 0
	}
	return sum
}

// Total is about how long the whole run takes; see [Plan.Remaining].
func (p *Plan) Total() time.Duration { return p.Remaining(nil, nil) }

// walk goes through a plan. Every method but run returns false when nobody wants more.
type walk struct {
	plan  *Plan
	file  File
	yield func(Step) bool

	now  time.Duration
	at   *light // nil: nobody knows
	name string // of the configuration that was brought about last

	// moves remembers what light became of moves, since they repeat: circuits are computed
	// once for each, and equal ones are the same light.
	moves  map[move]*light
	lights map[string]*light
}

// light is where the light is: circuits by switch.
type light struct{ maps map[string]ocs.Map }

// move is to the i-th configuration of a condition.
type move struct {
	from      *light
	condition int
	i         int
}

func (w *walk) run(skip func(int) bool) {
	if !w.hooks(w.file.Hooks.BeforeRun, Step{Where: BeforeRun}, w.file.Parameters) {
		return
	}
	var on *Condition
	for _, p := range w.plan.Points {
		if skip != nil && skip(p.ID) {
			continue
		}
		c := w.plan.Condition(p.Condition)
		if NeedsSetup(on, c) && !w.setUp(c) {
			return
		}
		on = c
		if !w.point(p, c) {
			return
		}
	}
	_ = w.hooks(w.file.Hooks.AfterRun, Step{Where: AfterRun}, w.file.Parameters) && w.finally()
}

func (w *walk) step(s Step) bool {
	s.At = w.now
	w.now += s.Takes
	return w.yield(s)
}

func (w *walk) hooks(all []Hook, s Step, params map[string]string) bool {
	for _, h := range all {
		s.Kind, s.Hook = StepHook, h.Words(params)
		if !w.step(s) {
			return false
		}
	}
	return true
}

func (w *walk) setUp(c *Condition) bool {
	s := Step{Condition: c.Number}
	open := s
	open.Kind, open.Takes = StepSetup, SetupTime
	s.Where = BeforeSetup
	w.at = nil // the testbed reads what it finds
	if !w.step(open) || !w.hooks(w.file.Hooks.Setup, s, c.Parameters) {
		return false
	}
	if w.plan.WarmUps > 0 && !w.approach(Step{Condition: c.Number}, c) {
		return false
	}
	for range w.plan.WarmUps {
		for i := range c.Sequence {
			if !w.move(Step{Kind: StepWarmUp, Condition: c.Number}, c, (i+1)%len(c.Sequence)) {
				return false
			}
		}
	}
	return true
}

func (w *walk) point(p Point, c *Condition) bool {
	s := Step{Condition: c.Number, Point: p.ID, Repeat: p.Repeat}
	before, behind := s, s
	before.Where, behind.Where = BeforePoint, AfterPoint
	if !w.hooks(w.file.Hooks.BeforePoint, before, c.Parameters) || !w.approach(s, c) {
		return false
	}
	for i := range p.Reconfigurations(c) {
		s.Kind, s.Number = StepMove, p.First+i
		if !p.Null {
			if !w.move(s, c, (i+1)%len(c.Sequence)) {
				return false
			}
			continue
		}
		s.Kind, s.Takes = StepNull, c.Settings.Dwell+time.Duration(w.plan.Window)
		s.From, s.To = c.Sequence[0], c.Sequence[0]
		if !w.step(s) {
			return false
		}
	}
	return w.hooks(w.file.Hooks.AfterPoint, behind, c.Parameters)
}

func (w *walk) approach(s Step, c *Condition) bool {
	if w.at != nil && w.to(c, 0) == w.at {
		return true
	}
	s.Kind = StepApproach
	return w.move(s, c, 0)
}

// move moves light to the i-th configuration of c.
func (w *walk) move(s Step, c *Condition, i int) bool {
	s.To, s.Want, s.Takes = c.Sequence[i], c.Maps[i], c.Expected
	if s.Kind == StepApproach {
		s.Takes -= c.Settings.Dwell
	}
	next := w.to(c, i)
	if w.at != nil {
		s.From, s.have = w.name, w.at.maps
	}
	w.at, w.name = next, s.To
	return w.step(s)
}

// to returns the light after the i-th configuration of c has been brought about.
func (w *walk) to(c *Condition, i int) *light {
	m := move{w.at, c.Number, i}
	if l, ok := w.moves[m]; ok {
		return l
	}
	maps := c.Maps[i]
	if w.at != nil {
		maps = after(w.at.maps, maps)
	}
	key := ""
	for _, name := range sorted(maps) {
		key += fmt.Sprintf("%q %v ", name, maps[name])
	}
	l, ok := w.lights[key]
	if !ok {
		l = &light{maps}
		w.lights[key] = l
	}
	w.moves[m] = l
	return l
}

// finally puts the light where it shall be left.
func (w *walk) finally() bool {
	s := Step{Kind: StepFinally, Takes: finallyTime, Want: w.plan.Finally}
	var hooks []Hook
	if f := w.file.Finally; f != nil {
		hooks = f.Hooks
		if w.plan.Finally != nil {
			s.To = f.Light
		}
	}
	if w.at != nil {
		s.From = w.name
	}
	return w.step(s) && w.hooks(hooks, Step{Where: AtEnd}, w.file.Parameters)
}
