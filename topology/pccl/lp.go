package pccl

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
)

// WriteLP writes the decision at a switching time, in seconds, as an integer program in CPLEX's LP format, which
// common solvers read:
//
//	glpsol --lp plan.lp
//	cbc plan.lp
//
// t_i_j is 1 if round i has candidate j wired, y_i_j if candidate j is wired before round i. It is the paper's
// program with two corrections. Constraint (5) is written for the rounds in which a topology can be kept: a candidate
// that may not be wired before a round is there only if it was there in the round before; as printed, the range of
// (5) takes the number of a topology for that of a round. And the cost of switching, a product of variables, is
// linear: y is at least the rise of t. Costs are in microseconds. Variables that are 0 in any plan are left out.
func (t *Table) WriteLP(w io.Writer, switchTime float64) error {
	if err := checkTime("switching time", switchTime); err != nil {
		return err
	}
	if _, total := t.segments().best(switchTime); math.IsInf(total, 1) {
		return t.noPath(t.d.cost[0])
	}
	out := &program{w: bufio.NewWriter(w), t: t}
	out.reach()
	s := t.p.Schedule
	out.line("\\ %s, %d GPUs, %v bytes; switching time %v s. Costs in microseconds.", clean(s.Algorithm), s.GPUs, s.Bytes, switchTime)
	for c, x := range t.candidates {
		out.line("\\ candidate %d: %s", c, clean(x.name))
	}
	out.objective(switchTime)
	out.constraints()
	out.line("Binary")
	out.each(func(i, c int) { out.line(" t_%d_%d", i, c) })
	out.line("End")
	return out.w.Flush()
}

// clean returns a name that cannot leave its comment.
func clean[T ~string](name T) string {
	quoted := strconv.Quote(string(name))
	return quoted[1 : len(quoted)-1]
}

// program is an integer program that is being written. Errors stay in w until it is flushed.
type program struct {
	w        *bufio.Writer
	t        *Table
	possible [][]bool // by round and candidate
}

func (p *program) line(format string, args ...any) { fmt.Fprintf(p.w, format+"\n", args...) }

// reach finds out which candidates can be there in which round.
func (p *program) reach() {
	before := make([]bool, len(p.t.candidates))
	before[0] = true
	for i := range p.t.stageOf {
		now := make([]bool, len(before))
		for c := range now {
			now[c] = (before[c] || p.enters(i, c)) && !math.IsInf(p.t.cost(int(p.t.stageOf[i]), c).Time, 1)
		}
		p.possible = append(p.possible, now)
		before = now
	}
}

func (p *program) enters(round, candidate int) bool {
	_, may := slices.BinarySearch(p.t.d.enter[p.t.stageOf[round]], candidate)
	return may
}

// each goes through what is possible.
func (p *program) each(do func(round, candidate int)) {
	for i, possible := range p.possible {
		for c, ok := range possible {
			if ok {
				do(i, c)
			}
		}
	}
}

// changes reports whether wiring a candidate before a round can be a change: Start is there before round 0.
func (p *program) changes(round, candidate int) bool {
	return p.enters(round, candidate) && (round > 0 || candidate > 0)
}

func (p *program) objective(switchTime float64) {
	p.line("Minimize")
	p.line(" time:")
	if len(p.possible) == 0 {
		p.line(" 0 t_0_0")
	}
	p.each(func(i, c int) {
		p.line(" + %s t_%d_%d", microseconds(p.t.cost(int(p.t.stageOf[i]), c).Time), i, c)
		if p.changes(i, c) {
			p.line(" + %s y_%d_%d", microseconds(switchTime), i, c)
		}
	})
}

func (p *program) constraints() {
	p.line("Subject To")
	if len(p.possible) == 0 {
		p.line(" one_0: t_0_0 = 1")
	}
	for i, possible := range p.possible {
		p.line(" one_%d:", i)
		for c, ok := range possible {
			if ok {
				p.line(" + t_%d_%d", i, c)
			}
		}
		p.line(" = 1")
	}
	p.each(func(i, c int) {
		was := i > 0 && p.possible[i-1][c]
		switch {
		case p.changes(i, c) && was:
			p.line(" change_%d_%d: y_%d_%d - t_%d_%d + t_%d_%d >= 0", i, c, i, c, i, c, i-1, c)
		case p.changes(i, c):
			p.line(" change_%d_%d: y_%d_%d - t_%d_%d >= 0", i, c, i, c, i, c)
		case was:
			p.line(" keep_%d_%d: t_%d_%d - t_%d_%d <= 0", i, c, i, c, i-1, c)
		}
	})
}

func microseconds(seconds float64) string { return strconv.FormatFloat(seconds*1e6, 'g', -1, 64) }
