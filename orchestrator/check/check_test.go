package check_test

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/orchestrator/check"
	"github.com/ocslab/ocslab/topology/opus"
)

const never = math.MaxInt64

func parse(s string) ocs.Map {
	m, err := ocs.ParseMap(s)
	if err != nil {
		panic(err)
	}
	return m
}

func op(uses string, begin, end int64) check.Op {
	return check.Op{Rail: "rail0", Switch: "s", Rank: 3, Step: 2, Group: "dp/1", Op: 7, Uses: parse(uses), BeginNS: begin, EndNS: end, Bytes: 100}
}

func light(path string, from, until int64) check.Light {
	c := parse(path).Slice()[0]
	return check.Light{Switch: "s", Ingress: c.Ingress, Egress: c.Egress, FromNS: from, UntilNS: until}
}

func change(at int64, remove, add string) check.Change {
	return check.Change{Switch: "s", AtNS: at, Remove: parse(remove), Add: parse(add)}
}

// brief writes what a violation is in short: guarantee, path, interval, overlap.
func brief(vs []check.Violation) []string {
	var all []string
	for _, v := range vs {
		all = append(all, fmt.Sprintf("%s %v %d-%d %d", v.Guarantee, v.Path, v.FromNS, v.UntilNS, v.OverlapNS))
	}
	return all
}

func TestCheck(t *testing.T) {
	// 1>9 is replaced by 1>10 at 100, which has settled at 150.
	moved := check.Truth{
		Changes: []check.Change{change(100, "1>9", "1>10")},
		Lights:  []check.Light{light("1>9", 0, 100), light("1>10", 150, never)},
	}
	instant := check.Truth{
		Changes: []check.Change{change(100, "1>9", "1>10")},
		Lights:  []check.Light{light("1>9", 0, 100), light("1>10", 100, never)},
	}
	removed := check.Truth{
		Changes: []check.Change{change(100, "1>9", "")},
		Lights:  []check.Light{light("1>9", 0, 100)},
	}
	tests := []struct {
		name  string
		truth check.Truth
		op    check.Op
		want  []string
	}{
		{"before", moved, op("1>9", 10, 90), nil},
		{"ends as it begins", moved, op("1>9", 10, 100), nil},
		{"ends too late", moved, op("1>9", 10, 101), []string{"G2 1>9 100-150 1"}},
		{"all over it", moved, op("1>9", 10, 200), []string{"G2 1>9 100-150 50"}},
		{"begins as it settles", moved, op("1>10", 150, 200), nil},
		{"begins too early", moved, op("1>10", 149, 200), []string{"G1 1>10 100-150 1"}},
		{"begins with it", moved, op("1>10", 100, 200), []string{"G1 1>10 100-150 50"}},
		{"within it", moved, op("1>10", 110, 120), []string{"G1 1>10 100-150 10"}},
		{"a moment within it", moved, op("1>10", 120, 120), []string{"G1 1>10 100-150 0"}},
		{"long after, on the old one", moved, op("1>9", 200, 250), []string{"absent 1>9 200-250 50"}},
		{"before, on the new one", moved, op("1>10", 10, 90), []string{"absent 1>10 10-90 80"}},
		{"other port", moved, op("2>11", 10, 90), []string{"absent 2>11 10-90 80"}},
		{"other end of what is gone", moved, op("2>9", 10, 200), []string{"G2 2>9 100-100 0"}},

		{"no time, ends as it is changed", instant, op("1>9", 10, 100), nil},
		{"no time, begins as it is changed", instant, op("1>10", 100, 110), nil},
		{"no time, a moment", instant, op("1>10", 100, 100), nil},
		{"no time, under it", instant, op("1>9", 10, 101), []string{"G2 1>9 100-100 0"}},
		{"no time, on the new one, too early", instant, op("1>10", 99, 110), []string{"G2 1>10 100-100 0"}},

		{"removed", removed, op("1>9", 99, 101), []string{"G2 1>9 100-100 0"}},
		{"removed as it ends", removed, op("1>9", 99, 100), nil},
		{"removed before", removed, op("1>9", 100, 110), []string{"absent 1>9 100-110 10"}},

		{"both ends change, told once", check.Truth{
			Changes: []check.Change{change(100, "1>9,2>10", "1>10,2>9")},
			Lights:  []check.Light{light("1>9", 0, 100), light("2>10", 0, 100), light("1>10", 120, never), light("2>9", 130, never)},
		}, op("1>9", 50, 200), []string{"G2 1>9 100-120 20"}},
		{"two changes under it", check.Truth{
			Changes: []check.Change{change(100, "1>9", "1>10"), change(110, "1>10", "1>9")},
			Lights:  []check.Light{light("1>9", 0, 100), light("1>9", 140, never)},
		}, op("1>9", 50, 200), []string{"G2 1>9 100-110 10", "G2 1>9 110-140 30"}},
		{"never settles", check.Truth{Changes: []check.Change{change(100, "", "1>9")}},
			op("1>9", 500, 600), []string{fmt.Sprintf("G1 1>9 100-%d 100", int64(never))}},
		{"settles after it was taken and given back", check.Truth{
			Changes: []check.Change{change(100, "1>9", ""), change(110, "", "1>9")},
			Lights:  []check.Light{light("1>9", 0, 100), light("1>9", 140, never)},
		}, op("1>9", 105, 150), []string{"G2 1>9 110-140 30"}},
		{"stamped late", check.Truth{ // the light had settled before the change was told
			Changes: []check.Change{change(103, "1>9", "1>10")},
			Lights:  []check.Light{light("1>9", 0, 100), light("1>10", 100, never)},
		}, op("1>10", 101, 150), nil},
		{"stamped late, under it", check.Truth{
			Changes: []check.Change{change(103, "1>9", "1>10")},
			Lights:  []check.Light{light("1>9", 0, 100), light("1>10", 100, never)},
		}, op("1>10", 99, 150), []string{"G2 1>10 100-100 0"}},
		{"settled, and gone in the same moment", check.Truth{
			Changes: []check.Change{change(100, "", "1>9")},
			Lights:  []check.Light{light("1>9", 100, 100), light("1>9", 150, never)},
		}, op("1>9", 120, 140), []string{"absent 1>9 120-140 20"}},
		{"removed and made again in the same moment", check.Truth{
			Changes: []check.Change{change(100, "1>9", ""), change(100, "", "1>9")},
			Lights:  []check.Light{light("1>9", 0, 100), light("1>9", 150, never)},
		}, op("1>9", 120, 200), []string{"G1 1>9 100-150 30"}},
		{"stamped late, and gone between", check.Truth{
			Changes: []check.Change{change(103, "1>9", "")},
			Lights:  []check.Light{light("1>9", 0, 100)},
		}, op("1>9", 90, 102), []string{"absent 1>9 100-102 2"}},

		{"light blinks without a change", check.Truth{Lights: []check.Light{light("1>9", 0, 100), light("1>9", 100, never)}},
			op("1>9", 50, 150), []string{"absent 1>9 150-150 0"}},
		{"light comes late", check.Truth{Lights: []check.Light{light("1>9", 60, never)}},
			op("1>9", 50, 150), []string{"absent 1>9 50-150 10"}},
		{"light goes early", check.Truth{Lights: []check.Light{light("1>9", 0, 120)}},
			op("1>9", 50, 150), []string{"absent 1>9 120-150 30"}},
		{"other switch", check.Truth{Lights: []check.Light{{Switch: "t", Ingress: 1, Egress: 9, UntilNS: never}}},
			op("1>9", 50, 150), []string{"absent 1>9 50-150 100"}},
		{"change of the other switch", check.Truth{
			Changes: []check.Change{{Switch: "t", AtNS: 100, Remove: parse("1>9")}},
			Lights:  []check.Light{light("1>9", 0, never)},
		}, op("1>9", 50, 150), nil},
		{"no circuits", check.Truth{}, op("", 50, 150), nil},
		{"ends before it begins", check.Truth{Lights: []check.Light{light("1>9", 0, never)}},
			op("1>9", 150, 50), []string{"impossible 1>9 150-50 0"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			v := check.Check([]check.Op{test.op}, test.truth)
			if diff := gocmp.Diff(test.want, brief(v.Violations)); diff != "" {
				t.Errorf("violations (-want +got):\n%s", diff)
			}
			if got, want := v.OK(), len(test.want) == 0; got != want {
				t.Errorf("OK=%v, want %v", got, want)
			}
			if got, want := v.Total(), len(test.want); got != want {
				t.Errorf("Total=%d, want %d", got, want)
			}
		})
	}
}

// Ensure a verdict says what it is on, and each violation who, what and when.
func TestVerdict_String(t *testing.T) {
	truth := check.Truth{
		Changes: []check.Change{change(1_000_000, "1>9,2>11", "1>10")},
		Lights:  []check.Light{light("1>9", 0, 1_000_000), light("1>10", 1_500_000, never), light("3>12", 0, never)},
	}
	truth.Changes[0].By = "session 2 (TL1, admin)"
	lossy := op("1>9", 500_000, 1_200_000)
	lossy.Lost = 30
	ops := []check.Op{op("3>12", 0, 5_000_000), lossy, op("1>10", 1_100_000, 2_000_000), op("4>13", 0, 3_000_000), op("3>12", 9, 8), op("", 0, 1)}
	want := `6 operations on 7 ports, 1 change of circuits on 5 ports: 4 violations (1 G1, 1 G2, 1 absent, 1 impossible), ingress 1,3,4 of s, 30 of 600 bytes lost
  absent: operation 7 of dp/1 (step 2, rank 3 of rail0) used 4>13 of s, which had no settled light for 3ms of its 3ms
  impossible: operation 7 of dp/1 (step 2, rank 3 of rail0) ended 1ns before it began
  G2: operation 7 of dp/1 (step 2, rank 3 of rail0) used 1>9 of s, which was changed by session 2 (TL1, admin) 500µs after the operation had begun and 200µs before it ended: - 1>9 + 1>10
  G1: operation 7 of dp/1 (step 2, rank 3 of rail0) used 1>10 of s and began 100µs after a change of it had begun by session 2 (TL1, admin), before its light had settled: - 1>9 + 1>10`
	v := check.Check(ops, truth)
	if diff := gocmp.Diff(want, v.String()); diff != "" {
		t.Errorf("text (-want +got):\n%s", diff)
	}
	if got, want := v.NoPaths, 1; got != want {
		t.Errorf("NoPaths=%d, want %d", got, want)
	}
	fine := check.Check(ops[:1], truth)
	if got, want := fine.String(), "1 operation on 2 ports, 1 change of circuits on 5 ports: no violation, no byte lost"; got != want || !fine.OK() {
		t.Errorf("got %q, want %q", got, want)
	}
	if check.Check(nil, truth).OK() {
		t.Error("a verdict on nothing is OK")
	}
	ops[0].Lost = 1
	if check.Check(ops[:1], truth).OK() {
		t.Error("a verdict is OK though a byte was lost")
	}
}

// Ensure the count and the ports of violations are complete when there are too many to keep.
func TestCheck_Many(t *testing.T) {
	ops := slices.Repeat([]check.Op{op("1>9", 0, 1)}, check.Kept)
	ops = append(ops, op("2>10", 0, 1))
	v := check.Check(ops, check.Truth{})
	if got, want := v.Total(), check.Kept+1; got != want {
		t.Errorf("Total=%d, want %d", got, want)
	}
	if got, want := len(v.Violations), check.Kept; got != want {
		t.Errorf("%d violations kept, want %d", got, want)
	}
	if diff := gocmp.Diff([]ocs.Port{1, 2}, v.Ingress()); diff != "" {
		t.Errorf("ingress (-want +got):\n%s", diff)
	}
	if !strings.Contains(v.String(), "and 9991 more") {
		t.Errorf("got %q", v.String())
	}
}

// Ensure the hazard of the published granularity is seen on the ports of those who were not asked, and on no other: two
// stages, DP2, CP2; the DP group of the ranks with c=0 in stage 0 is ready, the digit of the whole stage changes, and
// the ranks with c=1 are in a transfer.
func TestCheck_PublishedHazard(t *testing.T) {
	job := opus.Job{Name: "hazard", Stages: 2, Axes: []opus.Axis{{Name: "dp", Size: 2}, {Name: "cp", Size: 2}}}
	cabling := opus.Regular(job.DuplexPorts(), 1, 17)
	circuits := func(text string) ocs.Map {
		t.Helper()
		id, err := job.ParseID(text)
		if err != nil {
			t.Fatal(err)
		}
		m, err := opus.Build(job, id, opus.Pair)
		if err != nil {
			t.Fatal(err)
		}
		cs, err := cabling.Map(m)
		if err != nil {
			t.Fatal(err)
		}
		return cs
	}
	from, to := circuits("00"), circuits("10")
	const at, settled = 1_000_000, 26_000_000
	truth := check.Truth{Changes: []check.Change{
		{Switch: "s", AtNS: at, Remove: from.Minus(to)},
		{Switch: "s", AtNS: at + 1000, Add: to.Minus(from)},
	}}
	for c := range from.All() {
		truth.Lights = append(truth.Lights, check.Light{Switch: "s", Ingress: c.Ingress, Egress: c.Egress, UntilNS: at})
	}
	for c := range to.All() {
		truth.Lights = append(truth.Lights, check.Light{Switch: "s", Ingress: c.Ingress, Egress: c.Egress, FromNS: settled, UntilNS: never})
	}
	var ops []check.Op
	for rank := range job.Ranks() {
		var uses []ocs.CrossConnect
		fibres := cabling[rank*2 : rank*2+2]
		for c := range from.All() {
			if slices.ContainsFunc(fibres, func(f opus.Fibre) bool { return f.In == c.Ingress || f.Out == c.Egress }) {
				uses = append(uses, c)
			}
		}
		o := check.Op{Switch: "s", Rank: rank, Group: "pp/0", Uses: ocs.MustMap(uses...), BeginNS: 0, EndNS: at}
		if job.Coordinate(rank, 2) == 1 {
			o.EndNS = at + 500_000 // not finished yet
		}
		ops = append(ops, o)
	}
	v := check.Check(ops, truth)
	if diff := gocmp.Diff([]ocs.Port{3, 4, 7, 8, 11, 12, 15, 16}, v.Ingress()); diff != "" {
		t.Errorf("ingress (-want +got):\n%s", diff)
	}
	if v.Counts[check.G2] == 0 || v.Counts[check.G1]+v.Counts[check.Absent] != 0 {
		t.Errorf("got %v, want G2 only", v)
	}
	for _, x := range v.Violations {
		if job.Coordinate(x.Op.Rank, 2) != 1 {
			t.Errorf("rank %d was not concerned: %v", x.Op.Rank, x)
		}
	}
}

// Ensure what others do to bystanders is seen, and what they do to themselves is not.
func TestTruth_Bystanders(t *testing.T) {
	truth := check.Truth{
		Changes: []check.Change{change(100, "1>9", "1>10"), change(200, "3>11", ""), change(300, "", "3>13"), {Switch: "t", AtNS: 5, Remove: parse("4>12")}},
		Lights: []check.Light{light("1>9", 0, 100), light("1>10", 150, never), light("3>11", 0, 199), light("4>12", 0, 300), light("4>12", 300, never),
			light("3>13", 300, 60e6),
			{Switch: "t", Ingress: 4, Egress: 12, UntilNS: 5}},
	}
	var got []string
	for _, d := range truth.Bystanders("s", 3, 4, 11) {
		got = append(got, fmt.Sprint(d.AtNS, " ", d))
	}
	want := []string{
		"200 port 3 of s was changed: - 3>11",
		"200 port 11 of s was changed: - 3>11",
		"300 port 3 of s was changed: + 3>13",
		"300 the light at port 4 of s went, and no circuit was changed",
		"60000000 the light at port 3 of s went, and no circuit was changed",
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("disturbances (-want +got):\n%s", diff)
	}
	if d := truth.Bystanders("s", 5, 6); d != nil {
		t.Errorf("got %v, want none", d)
	}
	if diff := gocmp.Diff(map[ocs.Port]int{1: 1, 9: 1, 10: 1, 3: 2, 11: 1, 13: 1}, truth.Generations("s")); diff != "" {
		t.Errorf("generations (-want +got):\n%s", diff)
	}
}

// drawTruth simulates switches of four ingress and four egress ports whose circuits are changed at random, with lights that need
// some time to settle, may be interrupted, and may be late.
func drawTruth(t *rapid.T, sw string) check.Truth {
	var truth check.Truth
	var now int64
	held := ocs.Map{}
	lit := map[ocs.CrossConnect]int64{} // settles or has settled at; never: dark
	end := func(c ocs.CrossConnect, at int64) {
		if from := lit[c]; from <= at {
			truth.Lights = append(truth.Lights, check.Light{Switch: sw, Ingress: c.Ingress, Egress: c.Egress, FromNS: from, UntilNS: at})
		}
		delete(lit, c)
	}
	for range rapid.IntRange(0, 12).Draw(t, "changes") {
		now += rapid.Int64Range(0, 12).Draw(t, "pause")
		ports := rapid.Permutation([]ocs.Port{1, 2, 3, 4}).Draw(t, "ingress")
		others := rapid.Permutation([]ocs.Port{5, 6, 7, 8}).Draw(t, "egress")
		drop := rapid.IntRange(0, 2).Draw(t, "drop")
		add := rapid.IntRange(0, 2).Draw(t, "add")
		if drop+add == 0 { // a shutter
			for c := range held.All() {
				end(c, now)
				lit[c] = now + rapid.SampledFrom([]int64{0, 3, never - 1000}).Draw(t, "blink")
			}
			continue
		}
		next := held
		for _, p := range ports[:drop] {
			next = next.Minus(ocs.MustMap(held.At(p)...))
		}
		for i := range add {
			c := ocs.CrossConnect{Ingress: ports[2+i], Egress: others[i]}
			next = next.Minus(ocs.MustMap(next.Rivals(c)...))
			if !next.Has(c) {
				next, _ = next.Plus(ocs.MustMap(c))
			}
		}
		d := ocs.Diff(held, next)
		if d.Empty() {
			continue
		}
		held = next
		for c := range d.Remove.All() {
			end(c, now)
		}
		for c := range d.Add.All() {
			lit[c] = now + rapid.SampledFrom([]int64{0, 1, 5, 20, never - 1000}).Draw(t, "settles")
		}
		truth.Changes = append(truth.Changes, check.Change{Switch: sw, AtNS: now, Remove: d.Remove, Add: d.Add})
	}
	for c := range held.All() {
		if lit[c] < never-1000 {
			truth.Lights = append(truth.Lights, check.Light{Switch: sw, Ingress: c.Ingress, Egress: c.Egress, FromNS: lit[c], UntilNS: never})
		}
	}
	return truth
}

func drawOps(t *rapid.T) []check.Op {
	var ops []check.Op
	for i := range rapid.IntRange(0, 20).Draw(t, "operations") {
		o := check.Op{Switch: rapid.SampledFrom([]string{"s", "t"}).Draw(t, "switch"), Group: "g", Rank: i}
		o.BeginNS = rapid.Int64Range(0, 80).Draw(t, "begin")
		o.EndNS = o.BeginNS + rapid.Int64Range(0, 30).Draw(t, "takes")
		n := rapid.IntRange(0, 3).Draw(t, "paths")
		in := rapid.Permutation([]ocs.Port{1, 2, 3, 4}).Draw(t, "in")
		out := rapid.Permutation([]ocs.Port{5, 6, 7, 8}).Draw(t, "out")
		var ccs []ocs.CrossConnect
		for j := range n {
			ccs = append(ccs, ocs.CrossConnect{Ingress: in[j], Egress: out[j]})
		}
		o.Uses = ocs.MustMap(ccs...)
		ops = append(ops, o)
	}
	return ops
}

// slow is the definition, port by port and change by change.
func slow(ops []check.Op, truth check.Truth) []string {
	var all []string
	changes := slices.Clone(truth.Changes)
	slices.SortStableFunc(changes, func(a, b check.Change) int { return cmp.Compare(a.AtNS, b.AtNS) })
	settled := func(sw string, c ocs.CrossConnect, at int64) int64 { // when light of c comes that goes after at, or comes and goes at it
		first := int64(never)
		for _, l := range truth.Lights {
			if l.Switch == sw && l.Path() == c && l.FromNS >= at {
				first = min(first, l.FromNS)
			}
		}
		return first
	}
	for _, o := range ops {
		for cc := range o.Uses.All() {
			found := map[int]string{}
			for _, port := range []ocs.Port{cc.Egress, cc.Ingress} { // the ingress is told if both are concerned
				for i, c := range changes {
					if c.Switch != o.Switch || !slices.Contains(c.Circuits().Ports(), port) {
						continue
					}
					from, until := c.AtNS, c.AtNS
					if made := c.Add.At(port); len(made) > 0 {
						until = settled(c.Switch, made[0], c.AtNS)
					}
					for _, next := range changes[i+1:] { // overtaken by the next
						if next.Switch == c.Switch && slices.Contains(next.Circuits().Ports(), port) {
							until = min(until, next.AtNS)
						}
					}
					if from < o.EndNS && o.BeginNS < until {
						g := check.G1
						if from > o.BeginNS {
							g = check.G2
						}
						found[i] = fmt.Sprintf("%d %s %v %d-%d %d", o.Rank, g, cc, from, until, min(o.EndNS, until)-max(o.BeginNS, from))
					}
				}
			}
			covered := false
			dark := o.EndNS - o.BeginNS
			for _, l := range truth.Lights {
				if l.Switch == o.Switch && l.Path() == cc {
					covered = covered || l.FromNS <= o.BeginNS && o.EndNS <= l.UntilNS
					dark -= max(0, min(l.UntilNS, o.EndNS)-max(l.FromNS, o.BeginNS))
				}
			}
			if len(found) == 0 && !covered {
				all = append(all, fmt.Sprintf("%d absent %v %d", o.Rank, cc, dark))
			}
			for _, s := range found {
				all = append(all, s)
			}
		}
	}
	slices.Sort(all)
	return all
}

// Ensure Check finds what the definition says, in whatever order the logs are.
func TestCheck_Definition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		truth := drawTruth(t, "s").Join(drawTruth(t, "t"))
		ops := drawOps(t)
		want := slow(ops, truth)
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		r.Shuffle(len(ops), func(i, j int) { ops[i], ops[j] = ops[j], ops[i] })
		r.Shuffle(len(truth.Lights), func(i, j int) { truth.Lights[i], truth.Lights[j] = truth.Lights[j], truth.Lights[i] })
		v := check.Check(ops, truth)
		var got []string
		for _, x := range v.Violations {
			if x.Guarantee == check.Absent {
				got = append(got, fmt.Sprintf("%d absent %v %d", x.Op.Rank, x.Path, x.OverlapNS))
			} else {
				got = append(got, fmt.Sprintf("%d %s %v %d-%d %d", x.Op.Rank, x.Guarantee, x.Path, x.FromNS, x.UntilNS, x.OverlapNS))
			}
		}
		slices.Sort(got)
		if diff := gocmp.Diff(want, got); diff != "" {
			t.Fatalf("violations (-want +got):\n%s", diff)
		}
	})
}

// BenchmarkCheck is a million operations on 64 ports that were changed 100,000 times.
func BenchmarkCheck(b *testing.B) {
	var truth check.Truth
	var ops []check.Op
	const period = 1000
	for i := range 50_000 {
		at := int64(i) * period
		for p := ocs.Port(1); p <= 16; p++ {
			truth.Lights = append(truth.Lights, check.Light{Switch: "s", Ingress: p, Egress: 64 + p, FromNS: at + 100, UntilNS: at + 500})
		}
		truth.Changes = append(truth.Changes, check.Change{Switch: "s", AtNS: at, Add: parse("1-16>65-80")},
			check.Change{Switch: "s", AtNS: at + 500, Remove: parse("1-16>65-80")})
	}
	uses := []ocs.Map{parse("1-4>65-68"), parse("5-8>69-72"), parse("9-12>73-76"), parse("13-16>77-80")}
	for i := range 1_000_000 {
		at := int64(i/20) * period
		ops = append(ops, check.Op{Switch: "s", Group: "g", Rank: i % 4, Uses: uses[i%4], BeginNS: at + 100, EndNS: at + 500})
	}
	b.ReportAllocs()
	for b.Loop() {
		if v := check.Check(ops, truth); !v.OK() {
			b.Fatal(v)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(ops)), "ns/operation")
}
