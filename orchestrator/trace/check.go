package trace

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ocslab/ocslab/internal/natural"
	"github.com/ocslab/ocslab/topology/opus"
)

// ErrTrace: the trace, or the text that should be one, is not possible. Test with errors.Is.
var ErrTrace = errors.New("not a possible trace")

// What a trace may have. The limits keep all sums of times within a time.Duration, and what a file makes us
// allocate within reason.
const (
	maxProblems = 10
	maxSteps    = 10_000
	maxRails    = 1 << 10
	maxRanks    = 1 << 22              // of all steps together
	maxBytes    = 1 << 50              // of an operation
	maxTime     = time.Hour            // of an operation, a computation
	maxTotal    = 100 * 24 * time.Hour // of all of them
	maxUS       = int64(maxTime / time.Microsecond)
)

// problems collects what is wrong, up to a number that people read.
type problems struct {
	errs []error
	more int
}

func (p *problems) add(format string, args ...any) {
	if len(p.errs) == maxProblems {
		p.more++
		return
	}
	p.errs = append(p.errs, fmt.Errorf("%w: "+format, append([]any{ErrTrace}, args...)...))
}

func (p *problems) err() error {
	if p.more > 0 {
		return errors.Join(append(p.errs, fmt.Errorf("and %s", natural.Count(p.more, "more problem")))...)
	}
	return errors.Join(p.errs...)
}

// Check returns why the trace cannot be played, or nil: operations of axes that the job does not have, members of a
// group that disagree about their operations, transfers without a counterpart, ranks that wait for each other for
// ever when operations block. The error matches [ErrTrace] and names step, rank and operation; it has several
// lines if there are several problems.
func (t *Trace) Check() error {
	var bad problems
	if err := t.checkHeader(); err != nil {
		return err
	}
	if len(t.Steps) == 0 {
		bad.add("it has no steps")
		return bad.err()
	}
	var total time.Duration
	groups := t.groupIndices()
	for i := range t.Steps {
		s := &t.Steps[i]
		if n := t.Job.Ranks(); len(s.Ranks) != n {
			bad.add("step %d has %s, and the job %d", i, natural.Count(len(s.Ranks), "rank"), n)
			continue
		}
		if s.TailUS < 0 || s.TailUS > maxUS {
			bad.add("step %d ends with a computation of %d µs: want 0 to %d", i, s.TailUS, maxUS)
		}
		total += time.Duration(s.TailUS) * time.Microsecond
		fine := true
		for rank, ops := range s.Ranks {
			for seq, op := range ops {
				if err := t.checkOp(rank, op); err != nil {
					bad.add("step %d, rank %d, operation %d: %w", i, rank, seq, err)
					fine = false
					continue
				}
				if total <= maxTotal {
					total += time.Duration(op.ComputeBeforeUS)*time.Microsecond + t.Duration(op)
				}
			}
		}
		if fine && t.checkSequences(i, groups, &bad) {
			t.checkDeadlock(i, groups, &bad)
		}
	}
	if total > maxTotal {
		bad.add("all its operations and computations together take more than %v", maxTotal)
	}
	return bad.err()
}

// checkHeader checks everything but the steps.
func (t *Trace) checkHeader() error {
	if err := t.Job.Check(); err != nil {
		return fmt.Errorf("%w: %w", ErrTrace, err)
	}
	var bad problems
	if t.Rails < 1 || t.Rails > maxRails {
		bad.add("it has %s: want 1 to %d", natural.Count(t.Rails, "rail"), maxRails)
	}
	if !(t.Gbps == 0 || t.Gbps >= 0.001 && t.Gbps <= 1e6) {
		bad.add("a port has %v Gb/s: want 0.001 to 1000000, or 0 for %d", t.Gbps, DefaultGbps)
	}
	if n := len(t.Steps); n > maxSteps || n*t.Job.Ranks() > maxRanks {
		bad.add("it has %s of %s: want %d steps at most, and %d ranks in all of them",
			natural.Count(n, "step"), natural.Count(t.Job.Ranks(), "rank"), maxSteps, maxRanks)
	}
	return bad.err()
}

// checkOp checks an operation by itself.
func (t *Trace) checkOp(rank int, op Op) error {
	if op.Axis < 0 || op.Axis > len(t.Job.Axes) {
		return fmt.Errorf("axis %d: the job has %d", op.Axis, len(t.Job.Axes))
	}
	switch op.net() {
	case RailNet, ScaleUp, FrontEnd:
	default:
		return fmt.Errorf("there is no network %q", op.Net)
	}
	if op.net() == ScaleUp && op.Axis != 0 {
		return fmt.Errorf("an operation inside a host is along %s of the rail", t.Job.AxisNames()[op.Axis])
	}
	switch op.Kind {
	case Send, Recv, SendRecv:
		switch {
		case op.net() == ScaleUp:
			return fmt.Errorf("a %s inside a host has no peer on the rail", op.Kind)
		case op.Axis != opus.PP:
			return fmt.Errorf("a %s along %s: only stages of the pipeline do that", op.Kind, t.Job.AxisNames()[op.Axis])
		case op.Peer < 0 || op.Peer >= t.Job.Ranks():
			return fmt.Errorf("its peer is rank %d: there are 0 to %d", op.Peer, t.Job.Ranks()-1)
		case op.Peer != rank-t.Job.RanksPerStage() && op.Peer != rank+t.Job.RanksPerStage():
			return fmt.Errorf("its peer is rank %d, which is not at its place of the stage before or after", op.Peer)
		}
	case AllReduce, AllGather, ReduceScatter, AllToAll, Barrier:
		if op.Peer != 0 {
			return fmt.Errorf("a %s has a peer, rank %d: its group takes part", op.Kind, op.Peer)
		}
		if op.Axis == opus.PP && op.net() == RailNet {
			return fmt.Errorf("a %s along pp: on the rail, stages of the pipeline only send and receive", op.Kind)
		}
	default:
		return fmt.Errorf("there is no operation %q", op.Kind)
	}
	switch {
	case op.Bytes < 0 || op.Bytes > maxBytes:
		return fmt.Errorf("it has %d bytes: want 0 to %d", op.Bytes, int64(maxBytes))
	case op.ComputeBeforeUS < 0 || op.ComputeBeforeUS > maxUS:
		return fmt.Errorf("the computation before takes %d µs: want 0 to %d", op.ComputeBeforeUS, maxUS)
	case op.DurationUS < 0 || op.DurationUS > maxUS:
		return fmt.Errorf("it takes %d µs: want 0 to %d", op.DurationUS, maxUS)
	case t.Duration(op) > maxTime:
		return fmt.Errorf("its %d bytes take %v: want %v at most", op.Bytes, t.Duration(op), maxTime)
	}
	return nil
}

// checkSequences compares what the members of each group do in a step.
func (t *Trace) checkSequences(step int, groups [][]int, bad *problems) bool {
	type own struct {
		rank int
		ops  []int // places in the rank's step
	}
	ranks := t.Steps[step].Ranks
	seqs := map[sequence][]own{}
	var order []sequence // of first use, so that problems come in an order
	for rank, ops := range ranks {
		for i, op := range ops {
			s := t.sequenceOf(rank, op, groups[op.Axis][rank])
			if s.net == ScaleUp {
				continue
			}
			if seqs[s] == nil {
				order = append(order, s)
			}
			if n := len(seqs[s]); n == 0 || seqs[s][n-1].rank != rank {
				seqs[s] = append(seqs[s], own{rank: rank})
			}
			mine := &seqs[s][len(seqs[s])-1]
			mine.ops = append(mine.ops, i)
		}
	}
	fine := true
	for _, s := range order {
		members := seqs[s]
		first := members[0]
		firstOp := ranks[first.rank][first.ops[0]]
		name, want := t.Job.GroupOf(first.rank, firstOp.Axis), t.size(firstOp.Axis)
		what := name.String()
		all := name.Members
		if s.way >= 0 {
			all, want = []int{first.rank, firstOp.Peer}, 2
			what = fmt.Sprintf("%s between stages %d and %d", name, s.way, s.way+1)
		}
		if s.net != RailNet {
			what += " on the " + string(s.net) + " network"
		}
		if len(members) < want {
			have := map[int]bool{}
			for _, m := range members {
				have[m.rank] = true
			}
			for _, x := range all {
				if !have[x] {
					bad.add("step %d: rank %d has %s of %s, and rank %d none", step, first.rank,
						natural.Count(len(first.ops), "operation"), what, x)
					fine = false
					break
				}
			}
			continue
		}
		for _, m := range members[1:] {
			if len(m.ops) != len(first.ops) {
				bad.add("step %d: rank %d has %s of %s, and rank %d %d", step, first.rank,
					natural.Count(len(first.ops), "operation"), what, m.rank, len(m.ops))
				fine = false
				break
			}
			for i := range m.ops {
				a, b := ranks[first.rank][first.ops[i]].Kind, ranks[m.rank][m.ops[i]].Kind
				if a.transfer() {
					b = b.other()
				}
				if a != b {
					bad.add("step %d: operation %d of %s is %s at rank %d (its operation %d), and %s at rank %d (its operation %d)",
						step, i, what, ranks[first.rank][first.ops[i]].Kind, first.rank, first.ops[i],
						ranks[m.rank][m.ops[i]].Kind, m.rank, m.ops[i])
					fine = false
					break
				}
			}
		}
	}
	return fine
}

// checkDeadlock plays a step.
func (t *Trace) checkDeadlock(step int, groups [][]int, bad *problems) {
	one := &Trace{Job: t.Job, Rails: t.Rails, Gbps: t.Gbps, Steps: t.Steps[step : step+1]}
	p := newPlayer(one, 1, groups)
	if p.play() {
		return
	}
	const most = 4
	var waits []string
	n := 0
	for rank := range p.at {
		op, ok := p.current(rank)
		if !ok {
			continue
		}
		if n++; n > most {
			continue
		}
		what := fmt.Sprintf("%s of %s", op.Kind, t.Job.GroupOf(rank, op.Axis))
		if op.Kind.transfer() {
			what = fmt.Sprintf("%s with rank %d", op.Kind, op.Peer)
		}
		waits = append(waits, fmt.Sprintf("rank %d waits in its operation %d, %s", rank, p.at[rank].seq, what))
	}
	text := strings.Join(waits, "; ")
	if n > most {
		text += fmt.Sprintf("; and %d more wait", n-most)
	}
	bad.add("step %d cannot end when operations block: %s", step, text)
}
