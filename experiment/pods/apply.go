package pods

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ocslab/ocslab/experiment"
	"github.com/ocslab/ocslab/experiment/sequence"
	"github.com/ocslab/ocslab/internal/natural"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/timeline"
	"github.com/ocslab/ocslab/topology/crosswiring"
)

// Read returns the configuration that the switches of a lab hold, without pairs that are off. Nobody has checked it, see
// [crosswiring.Config.Check].
func Read(ctx context.Context, l *lab.Lab, cables *Cables, off ...crosswiring.Pair) (*crosswiring.Config, error) {
	circuits, _, err := cables.read(ctx, l, off)
	if err != nil {
		return nil, err
	}
	return crosswiring.FromCircuits(cables.fabric, circuits)
}

// read returns the circuits that the switches hold, of the fabric and of the lab.
func (c *Cables) read(ctx context.Context, l *lab.Lab, off []crosswiring.Pair) (
	ours map[crosswiring.Switch][]crosswiring.Circuit, all map[string]ocs.Map, err error,
) {
	held, err := l.CrossConnects(ctx, c.namesOf(func(p crosswiring.Pair) bool { return !slices.Contains(off, p) })...)
	if err != nil {
		return nil, nil, err
	}
	circuits, err := c.Circuits(held)
	if err != nil {
		return nil, nil, err
	}
	maps.DeleteFunc(circuits, func(s crosswiring.Switch, _ []crosswiring.Circuit) bool { // of a switch of the lab with parts
		return slices.Contains(off, c.fabric.PairOf(s))
	})
	return circuits, held, nil
}

// namesOf returns the switches of the lab that hold members of some pairs.
func (c *Cables) namesOf(in func(crosswiring.Pair) bool) []string {
	names := map[string]bool{}
	for s, name := range c.names {
		if in(c.fabric.PairOf(s)) {
			names[name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// Apply brings a fabric from one configuration to another by paired commits, and records that as a run; see package sequence for
// what may go wrong. First it is brought to from, which takes nothing where the switches are so already; from may be nil, and is
// then what the switches hold. If one switch of a pair fails, its partner is not moved any further and all is put back.
//
// The error matches [crosswiring.ErrConfig] if a configuration is not L2-compatible, has circuits on pairs that are off, or is of
// another fabric; [ocs.ErrConflict] if circuits that are in no configuration were found, unless the mode is Update, which has
// them go; [ErrOrder] if two pods would lose their last link by the order that was asked for; and [ocs.ErrVerify] if in the end the light
// does not go where it should, and says where.
func Apply(ctx context.Context, f *lab.File, cables *Cables, from, to *crosswiring.Config, opt Options) (*Report, error) {
	return (&applying{file: f, cables: cables, opt: opt, to: to, report: &Report{}}).play(ctx, from)
}

// play is [Apply].
func (a *applying) play(ctx context.Context, from *crosswiring.Config) (*Report, error) {
	if err := a.check(from, a.to); err != nil {
		return nil, err
	}
	if err := a.find(ctx, from); err != nil {
		return nil, err
	}
	began := time.Now()
	err := a.plan()
	a.report.Planned = time.Since(began)
	if err != nil {
		return a.report, err
	}
	steps, err := a.steps(from != nil)
	if err != nil {
		return a.report, err
	}
	opt := a.opt.Options
	opt.Repeats, opt.Opened, opt.Reconcile, opt.After = 1, a.opened, a.reconcile, a.after
	result, err := sequence.Play(ctx, a.file, steps, opt)
	a.finish(result)
	return a.report, err
}

// applying is a configuration that is being brought about.
type applying struct {
	file    *lab.File
	cables  *Cables
	opt     Options
	have    *crosswiring.Config // before the move
	to      *crosswiring.Config
	rounds  [][]crosswiring.Pair
	moves   []move // by step
	report  *Report
	session *sequence.Session
	events  []event
}

// move is a step; the one that brings from about has no commits.
type move struct {
	pairs   []crosswiring.Pair
	commits map[string]*commit // by switch of the lab
}

// check checks what is asked for.
func (a *applying) check(from, to *crosswiring.Config) error {
	for _, x := range []struct {
		what string
		of   *crosswiring.Config
	}{{"the configuration", to}, {"the running configuration", from}} {
		if x.of == nil {
			continue
		}
		if x.of.Fabric() != a.cables.fabric {
			return fmt.Errorf("%w: %s is of %+v, and the lab of %+v", crosswiring.ErrConfig, x.what, x.of.Fabric(), a.cables.fabric)
		}
		if err := x.of.Check(); err != nil {
			return fmt.Errorf("%s: %w", x.what, err)
		}
	}
	if to == nil {
		return fmt.Errorf("%w: there is none to bring about", crosswiring.ErrConfig)
	}
	for _, p := range a.opt.Off {
		for _, s := range to.Fabric().Members(p) {
			if n := len(to.Circuits(s)); n > 0 {
				return fmt.Errorf("%w: %v is off, and switch %v is to have %s: plan without the pair",
					crosswiring.ErrConfig, p, s, natural.Count(n, "circuit"))
			}
		}
	}
	return nil
}

// find finds out what there is before the move.
func (a *applying) find(ctx context.Context, from *crosswiring.Config) (err error) {
	if from != nil {
		circuits := from.AllCircuits()
		maps.DeleteFunc(circuits, func(s crosswiring.Switch, _ []crosswiring.Circuit) bool {
			return slices.Contains(a.opt.Off, from.Fabric().PairOf(s))
		})
		a.have, err = crosswiring.FromCircuits(from.Fabric(), circuits)
		return err
	}
	l := lab.New(a.file, a.opt.Lab)
	a.have, err = Read(ctx, l, a.cables, a.opt.Off...)
	if err = errors.Join(err, l.Close()); err != nil {
		return err
	}
	odd := a.have.Check()
	if a.opt.Mode == ocs.Update {
		if odd != nil {
			a.report.Found = odd.Error()
		}
		return nil
	}
	if odd != nil {
		return fmt.Errorf("the switches hold what no port can use: %w: --mode update has it go", odd)
	}
	return a.strange()
}

// strange returns an error if switches hold circuits of ports of the fabric that are not wanted: they are nobody's.
func (a *applying) strange() error {
	for _, s := range a.to.Fabric().Switches() {
		for _, x := range a.have.Circuits(s) {
			if a.to.At(s, x.In) != x.Out {
				return fmt.Errorf("%w: switch %v (%s) holds circuit %v, which is not in the configuration: say what is running, or use --mode update",
					ocs.ErrConflict, s, a.cables.names[s], x)
			}
		}
	}
	return nil
}

// plan works out what changes, and in which rounds.
func (a *applying) plan() error {
	r := a.report
	var err error
	if r.Change, err = crosswiring.Diff(a.have, a.to); err != nil {
		return err
	}
	var all []crosswiring.Pair
	for _, s := range r.Change.Switches {
		all = append(all, a.to.Fabric().PairOf(s.Switch))
	}
	all = slices.Compact(all) // switches come in order
	r.Order, a.rounds = Paired, [][]crosswiring.Pair{all}
	switch a.opt.Order {
	case Paired:
		return nil
	case Staged, Auto, "":
	default:
		return fmt.Errorf("%w: %.40q: want auto, paired or staged", ErrOrder, a.opt.Order)
	}
	if r.Found != "" {
		r.Why = "what was found is not L2-compatible"
	} else if rounds, err := crosswiring.Stages(a.have, a.to); err == nil {
		r.Order, a.rounds = Staged, rounds
		return nil
	} else if r.Why = err.Error(); !errors.Is(err, crosswiring.ErrStages) {
		return err
	}
	if a.opt.Order == Staged {
		return fmt.Errorf("%w: %s", ErrOrder, r.Why)
	}
	return nil
}

// steps returns what is moved, one step after another.
func (a *applying) steps(known bool) ([]sequence.Step, error) {
	now := a.have.AllCircuits()
	before, err := a.maps(now)
	if err != nil {
		return nil, err
	}
	final, err := a.maps(a.to.AllCircuits())
	if err != nil {
		return nil, err
	}
	used := map[string]bool{} // the others have nothing to do with it, and are not played
	for name := range final {
		used[name] = before[name].Len()+final[name].Len() > 0
	}
	var steps []sequence.Step
	if known || a.report.Change.Removed > 0 { // else what goes would be nobody's
		steps, a.moves = append(steps, sequence.Step{Name: "before", Maps: before}), append(a.moves, move{})
	}
	for i, round := range a.rounds {
		if len(round) == 0 {
			continue
		}
		for _, p := range round {
			for _, s := range a.to.Fabric().Members(p) {
				now[s] = a.to.Circuits(s)
			}
		}
		m, err := a.maps(now)
		if err != nil {
			return nil, err
		}
		keep := map[string]ocs.Map{}
		for name := range m {
			keep[name] = m[name].Minus(m[name].Minus(before[name]))
		}
		before = m
		mv := move{pairs: round, commits: a.commits(round, used, keep)}
		name := "commit"
		if len(a.rounds) > 1 {
			name = fmt.Sprintf("round-%d-of-%d", i+1, len(a.rounds))
		}
		part := maps.Clone(m)
		maps.DeleteFunc(part, func(name string, _ ocs.Map) bool { return mv.commits[name] == nil })
		steps, a.moves = append(steps, sequence.Step{Name: name, Maps: part}), append(a.moves, mv)
	}
	if !slices.ContainsFunc(a.moves, func(m move) bool { return m.commits != nil }) { // the switches say whether it is so
		steps, a.moves = append(steps, sequence.Step{Name: "commit", Maps: before}), append(a.moves, move{})
	}
	return steps, nil
}

// maps returns circuits by switch of the lab, without those on which all pairs are off.
func (a *applying) maps(circuits map[crosswiring.Switch][]crosswiring.Circuit) (map[string]ocs.Map, error) {
	all, err := a.cables.maps(circuits)
	on := a.cables.namesOf(func(p crosswiring.Pair) bool { return !slices.Contains(a.opt.Off, p) })
	maps.DeleteFunc(all, func(name string, _ ocs.Map) bool { return !slices.Contains(on, name) })
	return all, err
}

func (a *applying) opened(s *sequence.Session) error {
	a.session = s
	return nil
}

// reconcile brings the map of a switch about, in turn with its partner.
func (a *applying) reconcile(ctx context.Context, step int, name string, want ocs.Map, do sequence.Do) (ocs.Report, error) {
	if c := a.moves[step].commits[name]; c != nil {
		return c.move(ctx, name, want, do)
	}
	return do(ctx, want)
}

// after writes down what a round came to and, after the last one, follows the light.
func (a *applying) after(ctx context.Context, step int, mv experiment.Move) error {
	if m := a.moves[step]; m.commits != nil {
		a.record(m, mv)
	} else {
		a.report.Cold = took(mv)
	}
	if step < len(a.moves)-1 {
		return nil
	}
	return a.verify(ctx)
}

// took is how long switches took, from the first command to the last reply; 0 if none was sent.
func took(mv experiment.Move) time.Duration {
	var first, last []int64
	for _, m := range mv.Marks {
		switch m.Stage {
		case timeline.Command:
			first = append(first, m.Earliest)
		case timeline.Ack:
			last = append(last, m.Latest)
		}
	}
	if len(first) == 0 || len(last) == 0 {
		return 0
	}
	return time.Duration(slices.Max(last) - slices.Min(first))
}

// finish notes how the run ended.
func (a *applying) finish(result *sequence.Result) {
	r := a.report
	if result != nil {
		r.Run, r.State, r.Restored = result.ID, result.Summary.State, result.Summary.Restored
	}
	told := map[*commit]bool{}
	for _, m := range a.moves {
		for _, name := range slices.Sorted(maps.Keys(m.commits)) {
			c := m.commits[name]
			if c.lost == "" || told[c] {
				continue
			}
			told[c] = true
			for _, p := range c.pairs {
				r.Lost = append(r.Lost, Lost{Pair: p, Failed: c.lost, Err: c.err, Back: r.Restored})
			}
		}
	}
	slices.SortStableFunc(r.Links, func(a, b LinkDown) int { return cmp.Compare(b.For.Latest, a.For.Latest) })
	r.Pods = a.apart()
}
