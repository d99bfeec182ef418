package pccl

import (
	"bytes"
	"errors"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"
)

// instances runs a test on many random problems. All is drawn from the seed that a failure names.
func instances(t *testing.T, count int, check func(t *testing.T, r *rand.Rand)) {
	t.Helper()
	for seed := range uint64(count) {
		check(t, rand.New(rand.NewPCG(seed, 2509)))
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// instance draws a decision and a switching time.
func instance(r *rand.Rand, mostRounds int) (d decision, standard int, switchTime float64) {
	n, s := 1+r.IntN(mostRounds), 1+r.IntN(3)
	return drawDecision(r, n, s), s, float64(r.IntN(12))
}

func equal(a, b float64) bool { return a == b || math.Abs(a-b) <= 1e-9*max(1, math.Abs(a)) }

// The dynamic programme is as good as trying everything, and of the cheapest plans has the one with the fewest changes.
func TestBestIsBest(t *testing.T) {
	instances(t, 2000, func(t *testing.T, draw *rand.Rand) {
		d, _, r := instance(draw, 5)
		if draw.IntN(2) == 0 {
			for i := range d.enter {
				d.enter[i] = nil
				for c := range d.cost {
					d.enter[i] = append(d.enter[i], c)
				}
			}
		}
		want, fewest := math.Inf(1), 0
		d.enumerate(func(chosen []int) {
			cost, k := d.price(chosen)
			if cost += float64(k) * r; cost < want || cost == want && k < fewest {
				want, fewest = cost, k
			}
		})
		s := d.segments()
		chosen, total := s.best(r)
		cost, k := d.price(chosen)
		if !equal(total, want) || !equal(cost+float64(k)*r, want) || k != fewest {
			t.Fatalf("%v costs %v, with %d changes %v; the best is %v with %d", chosen, total, k,
				cost+float64(k)*r, want, fewest)
		}
		legal := false
		d.enumerate(func(x []int) { legal = legal || slices.Equal(x, chosen) })
		if !legal {
			t.Fatalf("%v breaks the rule", chosen)
		}
	})
}

// It is the optimum of the paper's 0/1 model, with the range of (5) put right.
func TestIntegerProgram(t *testing.T) {
	instances(t, 400, func(t *testing.T, draw *rand.Rand) {
		d, standard, r := instance(draw, 4)
		s := d.segments()
		_, total := s.best(r)
		if want := literal(d, standard, r, false).solve(); !equal(total, want) {
			t.Fatalf("the dynamic programme finds %v, the integer programme %v", total, want)
		}
	})
}

// As it is printed, (5) lets topologies be returned to: never dearer than the rule that the text states, and
// sometimes cheaper.
func TestPrintedRange(t *testing.T) {
	r := rand.New(rand.NewPCG(2509, 15450))
	cheaper := 0
	for range 200 {
		d := drawDecision(r, 4, 1+r.IntN(2))
		standard, switchTime := len(d.cost)-4, float64(r.IntN(8))
		right, printed := literal(d, standard, switchTime, false).solve(), literal(d, standard, switchTime, true).solve()
		if printed > right+1e-9 {
			t.Fatalf("the printed model finds %v, dearer than %v", printed, right)
		}
		if printed < right-1e-9 {
			cheaper++
		}
	}
	if cheaper == 0 {
		t.Error("the printed range of (5) never lets an illegal plan pass; the text says that it does")
	}
	t.Logf("the printed range lets cheaper, illegal plans pass in %d of 200 instances", cheaper)
}

// Letting any candidate be used is never worse, and often better.
func TestFreeIsNeverWorse(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 1))
	better := 0
	for range 500 {
		d := drawDecision(r, 1+r.IntN(5), 1+r.IntN(3))
		switchTime := float64(r.IntN(8))
		s := d.segments()
		_, ruled := s.best(switchTime)
		for i := range d.enter {
			d.enter[i] = enterable(true, len(d.cost), 0, make([]stage, 1), nil, nil)[0]
		}
		s = d.segments()
		_, free := s.best(switchTime)
		if free > ruled+1e-9 {
			t.Fatalf("free %v, by the rule %v", free, ruled)
		}
		if free < ruled-1e-9 {
			better++
		}
	}
	if better == 0 {
		t.Error("free is never better")
	}
}

// The envelope is the minimum over all plans at any switching time; it is concave and its changes fall; Best agrees.
func TestEnvelopeIsBest(t *testing.T) {
	instances(t, 2000, func(t *testing.T, draw *rand.Rand) {
		d, _, r := instance(draw, 5)
		s := d.segments()
		x := s.exact()
		exact := map[int]float64{}
		d.enumerate(func(chosen []int) {
			cost, k := d.price(chosen)
			if v, ok := exact[k]; !ok || cost < v {
				exact[k] = cost
			}
		})
		least := func(r float64) float64 {
			best := math.Inf(1)
			for k, v := range exact {
				best = min(best, v+float64(k)*r)
			}
			return best
		}
		corners := x.corners()
		for i, c := range corners {
			if !equal(x.total[c.changes], exact[c.changes]) {
				t.Fatalf("%d changes: %v, want %v", c.changes, x.total[c.changes], exact[c.changes])
			}
			cost, k := d.price(x.with(c.changes))
			if k != c.changes || !equal(cost, exact[k]) {
				t.Fatalf("the plan for %d changes has %d and costs %v, want %v", c.changes, k, cost, exact[c.changes])
			}
			if i > 0 && (c.changes >= corners[i-1].changes || c.from <= corners[i-1].from) {
				t.Fatalf("corners %v", corners)
			}
			to := c.from + 100
			if i+1 < len(corners) {
				to = corners[i+1].from
			}
			for _, at := range []float64{c.from, (c.from + to) / 2, to} {
				if got, want := exact[c.changes]+float64(c.changes)*at, least(at); !equal(got, want) {
					t.Fatalf("at %v: %v by the envelope, want %v", at, got, want)
				}
			}
			chosen, total := s.best(c.from)
			if _, k := d.price(chosen); k != c.changes || !equal(total, least(c.from)) {
				t.Fatalf("at the break %v Best has %d changes and %v, want %d and %v", c.from, k, total, c.changes, least(c.from))
			}
		}
		_, total := s.best(r)
		if !equal(total, least(r)) || !equal(x.least(r), total) {
			t.Fatalf("at %v: %v and %v, want %v", r, total, x.least(r), least(r))
		}
		_, before := s.best(r / 2)
		_, after := s.best(r * 2)
		if r > 0 && total < before/3*2+after/3-1e-9 { // r is a third of the way
			t.Fatalf("not concave: %v at %v, %v at %v, %v at %v", before, r/2, total, r, after, 2*r)
		}
	})
}

// fabric draws a small problem with topologies of all kinds.
func fabric(t *testing.T, r *rand.Rand) Problem {
	gpus := 2 + r.IntN(5)
	circuits := func(least int) []Transfer {
		all := map[Transfer]bool{}
		for range least + r.IntN(2*gpus) {
			a := r.IntN(gpus)
			all[Transfer{a, (a + 1 + r.IntN(gpus-1)) % gpus}] = true
		}
		return slices.SortedFunc(maps.Keys(all), compareTransfers)
	}
	p := Problem{
		Schedule: Schedule{GPUs: gpus, Bytes: 1}, Params: Params{Alpha: 1e-6, Beta: 1e-6}, Free: r.IntN(2) == 0,
	}
	wired := func() *Topology {
		x, err := NewTopology("drawn\n\\ here", gpus, circuits(0))
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	p.Start = wired()
	for range r.IntN(3) {
		p.Standard = append(p.Standard, wired())
	}
	kinds := [][]Transfer{circuits(1), circuits(1), circuits(1)}
	for range 1 + r.IntN(4) {
		p.Schedule.Rounds = append(p.Schedule.Rounds, Round{Transfers: kinds[r.IntN(3)], Bytes: float64(r.IntN(4))})
	}
	if r.IntN(2) == 0 {
		p.Unions, p.Params.Transmitters = 3, 2*gpus
	}
	return p
}

// unmerged is a problem in numbers as the specification has it: no two candidates are taken for one, and no rounds
// are put together.
func unmerged(t *testing.T, p Problem) decision {
	var d decision
	var all []*Topology
	all = append(append(all, p.Start), p.Standard...)
	for i, r := range p.Schedule.Rounds {
		x, err := Direct(p.Schedule.GPUs, "own", r)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, x)
		var enter []int
		for c := range 1 + len(p.Standard) {
			enter = append(enter, c)
		}
		d.enter = append(d.enter, append(enter, 1+len(p.Standard)+i))
	}
	if p.Unions > 1 {
		for a := range p.Schedule.Rounds {
			for b := a + 1; b < min(a+p.Unions, len(p.Schedule.Rounds)); b++ {
				x, err := Direct(p.Schedule.GPUs, "union", p.Schedule.Rounds[a:b+1]...)
				if err != nil {
					t.Fatal(err)
				}
				d.enter[a] = append(d.enter[a], len(all))
				all = append(all, x)
			}
		}
	}
	for _, x := range all {
		var row []float64
		for _, r := range p.Schedule.Rounds {
			c, err := p.Params.Cost(x, r)
			if err != nil {
				t.Fatal(err)
			}
			row = append(row, c.Time)
		}
		d.cost = append(d.cost, row)
	}
	if p.Free {
		for i := range d.enter {
			d.enter[i] = enterable(true, len(all), 0, make([]stage, 1), nil, nil)[0]
		}
	}
	return d
}

// Taking equal candidates for one and equal rounds together loses nothing, and Best, Follow, BestBy and the envelope
// agree.
func TestTableIsBest(t *testing.T) {
	instances(t, 500, func(t *testing.T, draw *rand.Rand) {
		p := fabric(t, draw)
		r := float64(draw.IntN(9)) * 1e-6
		d := unmerged(t, p)
		want := math.Inf(1)
		d.enumerate(func(chosen []int) {
			cost, k := d.price(chosen)
			want = min(want, cost+float64(k)*r)
		})
		table, err := NewTable(p)
		if err != nil {
			t.Fatal(err)
		}
		best, err := table.Best(r)
		if err != nil {
			t.Fatal(err)
		}
		near := func(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(a, b)+1e-18 }
		union := p.Unions > 1 // those of equal rounds in a row count once, so that there may be more
		if !near(best.Total, want) && !(union && best.Total < want) {
			t.Fatalf("best %v, want %v", best.Total, want)
		}
		by, err := table.BestBy(func(_, _ int) float64 { return r })
		if err != nil {
			t.Fatal(err)
		}
		if !near(by.Total, best.Total) || by.Changes != best.Changes {
			t.Fatalf("BestBy %v with %d changes, Best %v with %d", by.Total, by.Changes, best.Total, best.Changes)
		}
		pieces, err := table.Envelope()
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range pieces {
			if r >= x.From && r < x.To && !near(x.Time+float64(x.Changes)*r, best.Total) {
				t.Fatalf("envelope %v, Best %v", x, best.Total)
			}
		}
		if static, err := table.Static(); err == nil && static.Total < best.Total*(1-1e-9) {
			t.Fatalf("static %v, best %v", static.Total, best.Total)
		} else if err != nil && !errors.Is(err, ErrDisconnected) {
			t.Fatal(err)
		}
		always, err := table.Always(r)
		if err != nil {
			t.Fatal(err)
		}
		if always.Total < best.Total*(1-1e-9) {
			t.Fatalf("always %v, best %v", always.Total, best.Total)
		}
	})
}

// Switching that takes a different time from each topology to each.
func TestBestBy(t *testing.T) {
	instances(t, 500, func(t *testing.T, draw *rand.Rand) {
		p := fabric(t, draw)
		table, err := NewTable(p)
		if err != nil {
			t.Fatal(err)
		}
		price := map[[2]int]float64{}
		by := func(from, to int) float64 {
			if _, ok := price[[2]int{from, to}]; !ok {
				price[[2]int{from, to}] = float64(draw.IntN(6)) * 1e-6
			}
			return price[[2]int{from, to}]
		}
		got, err := table.BestBy(by)
		if err != nil {
			t.Fatal(err)
		}
		// Of rounds, not of stages.
		var d decision
		for i := range p.Schedule.Rounds {
			d.enter = append(d.enter, table.d.enter[table.stageOf[i]])
		}
		for c := range table.candidates {
			var row []float64
			for i := range p.Schedule.Rounds {
				row = append(row, table.cost(int(table.stageOf[i]), c).Time)
			}
			d.cost = append(d.cost, row)
		}
		want := math.Inf(1)
		d.enumerate(func(chosen []int) {
			cost, _ := d.price(chosen)
			wired := 0
			for _, c := range chosen {
				if c != wired {
					cost += by(wired, c)
				}
				wired = c
			}
			want = min(want, cost)
		})
		if math.Abs(got.Total-want) > 1e-9*want+1e-18 {
			t.Fatalf("BestBy %v, want %v", got.Total, want)
		}
	})
}

// Robust has the least largest regret, looked for at many switching times and with all plans.
func TestRobust(t *testing.T) {
	instances(t, 500, func(t *testing.T, draw *rand.Rand) {
		p := fabric(t, draw)
		low := float64(draw.IntN(6)) * 1e-6
		high := low + float64(draw.IntN(9))*1e-6
		table, err := NewTable(p)
		if err != nil {
			t.Fatal(err)
		}
		plan, worst, err := table.Robust(low, high)
		if err != nil {
			t.Fatal(err)
		}
		var best []float64
		at := func(i int) float64 { return low + (high-low)*float64(i)/10 }
		for i := range 11 {
			b, err := table.Best(at(i))
			if err != nil {
				t.Fatal(err)
			}
			best = append(best, b.Total)
		}
		regret := func(cost float64, changes int) (largest float64) {
			for i := range 11 {
				largest = max(largest, cost+float64(changes)*at(i)-best[i])
			}
			return largest
		}
		if got := regret(plan.Alpha+plan.Beta, plan.Changes); math.Abs(got-worst) > 1e-15 {
			t.Fatalf("regret %v, told %v", got, worst)
		}
		if plan.Switch != high || math.Abs(plan.Total-plan.Alpha-plan.Beta-float64(plan.Changes)*high) > 1e-15 {
			t.Fatalf("plan for %v, want %v: %v", plan.Switch, high, plan.Total)
		}
		table.d.enumerate(func(chosen []int) {
			cost, changes := table.d.price(chosen)
			if r := regret(cost, changes); r < worst-1e-15 {
				t.Fatalf("%v has a regret of %v, less than %v", chosen, r, worst)
			}
		})
	})
}

// What WriteLP writes has the plan's cost for its optimum.
func TestWriteLP(t *testing.T) {
	instances(t, 500, func(t *testing.T, draw *rand.Rand) {
		p := fabric(t, draw)
		r := float64(draw.IntN(9)) * 1e-6
		table, best, lp := written(t, p, r)
		m, err := readLP(bytes.NewReader(lp))
		if err != nil {
			t.Fatalf("%v:\n%s", err, lp)
		}
		if got := m.solve(); math.Abs(got-best.Total*1e6) > 1e-9*got+1e-9 {
			t.Fatalf("the program's optimum is %v µs, the plan %v µs, of %d candidates:\n%s", got, best.Total*1e6,
				len(table.candidates), lp)
		}
	})
}

// written returns a problem's table, plan and program.
func written(t *testing.T, p Problem, switchTime float64) (*Table, Plan, []byte) {
	t.Helper()
	table, err := NewTable(p)
	if err != nil {
		t.Fatal(err)
	}
	best, err := table.Best(switchTime)
	if err != nil {
		t.Fatal(err)
	}
	var lp bytes.Buffer
	if err := table.WriteLP(&lp, switchTime); err != nil {
		t.Fatal(err)
	}
	return table, best, lp.Bytes()
}

// GNU's solver reads it, and finds the same.
func TestSolver(t *testing.T) {
	glpsol, err := exec.LookPath("glpsol")
	if err != nil {
		t.Skip("there is no glpsol: it is in Debian's glpk-utils")
	}
	objective := regexp.MustCompile(`(?m)^Objective: +time = ([-+.e0-9]+)`)
	for _, test := range []struct {
		algorithm  Algorithm
		collective Collective
		gpus       int
		bytes      float64
		free       bool
		unions     int
		switchTime float64
	}{
		{RHDHalving, ReduceScatter, 8, 1e6, false, 0, 5e-6},
		{RHDHalving, AllReduce, 128, 256e6, false, 0, 5e-6},
		{RHDHalving, ReduceScatter, 128, 1e9, true, 0, 1e-3},
		{RHDHalving, ReduceScatter, 128, 10e6, false, 4, 1e-3},
		{Linear, AllToAll, 16, 32e6, false, 0, 5e-6},
	} {
		s, err := New(test.collective, test.algorithm, test.gpus, test.bytes)
		if err != nil {
			t.Fatal(err)
		}
		start, err := Ring(test.gpus)
		if err != nil {
			t.Fatal(err)
		}
		p := Problem{
			Schedule: s, Start: start, Free: test.free, Unions: test.unions,
			Params: Params{Alpha: 3e-6, Beta: 1 / 450e9, Transmitters: 8, Split: true},
		}
		_, best, lp := written(t, p, test.switchTime)
		dir := t.TempDir()
		file, answer := filepath.Join(dir, "plan.lp"), filepath.Join(dir, "plan.txt")
		if err := os.WriteFile(file, lp, 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.CommandContext(t.Context(), glpsol, "--lp", file, "-o", answer).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		text, err := os.ReadFile(answer)
		if err != nil {
			t.Fatal(err)
		}
		found := objective.FindSubmatch(text)
		if found == nil {
			t.Fatalf("no optimum in\n%s", text)
		}
		got, err := strconv.ParseFloat(string(found[1]), 64)
		if err != nil {
			t.Fatal(err)
		}
		if want := best.Total * 1e6; math.Abs(got-want) > 1e-4*want {
			t.Errorf("%s of %d: glpsol finds %v µs, the plan has %v", test.algorithm, test.gpus, got, want)
		}
	}
}

// Where two plans take equally long, that with fewer changes is taken: at each break of an envelope.
func TestBest_breakEven(t *testing.T) {
	for _, algorithm := range []Algorithm{RHDHalving, RHDDoubling} {
		s, err := New(AllReduce, algorithm, 32, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		ring, err := Ring(32)
		if err != nil {
			t.Fatal(err)
		}
		p := Problem{Schedule: s, Start: ring, Params: Params{Beta: 1}} // all costs are whole numbers
		pieces, err := p.Envelope()
		if err != nil {
			t.Fatal(err)
		}
		for _, piece := range pieces[1:] {
			plan, err := p.Best(piece.From)
			if err != nil {
				t.Fatal(err)
			}
			if plan.Changes != piece.Changes {
				t.Errorf("%s at %g: %d changes, want the fewer, %d", algorithm, piece.From, plan.Changes, piece.Changes)
			}
		}
	}
}
