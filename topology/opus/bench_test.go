package opus_test

import (
	"strings"
	"testing"

	"github.com/ocslab/ocslab/topology/opus"
)

// 1,024 ranks in 16 stages; one digit changes.
func BenchmarkChange(b *testing.B) {
	j := opus.Job{Stages: 16, Axes: []opus.Axis{{Name: "dp", Size: 8}, {Name: "cp", Size: 8}}}
	table := newTable(b, j, opus.Pair, opus.Regular(j.DuplexPorts(), 1, 3001))
	from := parseID(b, j, strings.Repeat("0", 16))
	to := from.Symmetrical(7, 1)
	b.ReportAllocs()
	for b.Loop() {
		if d, err := table.Change(from, to); err != nil || len(d.Stages) != 3 {
			b.Fatal(d.Stages, err)
		}
	}
	b.ReportMetric(float64(table.Entries()), "entries")
}

// 4,096 ranks in 64 stages; every digit changes. Built anew and compared, without a table.
func BenchmarkBuildAndDelta(b *testing.B) {
	j := opus.Job{Stages: 64, Axes: []opus.Axis{{Name: "dp", Size: 8}, {Name: "cp", Size: 8}}}
	a := opus.Regular(j.DuplexPorts(), 1, 10001)
	from, to := parseID(b, j, strings.Repeat("0", 64)), parseID(b, j, strings.Repeat("1", 64))
	b.ReportAllocs()
	for b.Loop() {
		was, err := opus.Build(j, from, opus.Chain)
		if err != nil {
			b.Fatal(err)
		}
		will, err := opus.Build(j, to, opus.Chain)
		if err != nil {
			b.Fatal(err)
		}
		if d, err := was.Delta(will, a); err != nil || len(d.Stages) != 64 {
			b.Fatal(d.Stages, err)
		}
	}
}

// What a table of 1,024 ranks and three dimensions takes: 3,072 entries of two ports, and the cabling.
func BenchmarkNewTable(b *testing.B) {
	j := opus.Job{Stages: 16, Axes: []opus.Axis{{Name: "dp", Size: 8}, {Name: "cp", Size: 8}}}
	a := opus.Regular(j.DuplexPorts(), 1, 3001)
	b.ReportAllocs()
	for b.Loop() {
		if table, err := opus.NewTable(j, opus.Pair, a); err != nil || table.Entries() != 3072 {
			b.Fatal(err)
		}
	}
}

// One group of 1,024 ranks asks for its circuits.
func BenchmarkWith(b *testing.B) {
	j := opus.Job{Stages: 16, Axes: []opus.Axis{{Name: "dp", Size: 8}, {Name: "cp", Size: 8}}}
	m := build(b, j, strings.Repeat("0", 16), opus.Chain)
	g, _ := j.FindGroup("dp/17")
	join := j.GroupCircuits(g)
	b.ReportAllocs()
	for b.Loop() {
		if _, _, added, err := m.With(join, nil); err != nil || len(added) != 8 {
			b.Fatal(added, err)
		}
	}
}

// 1,024 ranks: rings of eight along two axes, and the giant ring between them.
func BenchmarkArrange(b *testing.B) {
	j := opus.Job{Stages: 16, Axes: []opus.Axis{{Name: "dp", Size: 8}, {Name: "cp", Size: 8}}}
	phases := []opus.Phase{
		phaseOf(b, j, strings.Repeat("1", 16)), j.RingPhase(), phaseOf(b, j, strings.Repeat("2", 16)), j.RingPhase(),
	}
	b.ReportAllocs()
	for b.Loop() {
		a, err := opus.Arrange(j, phases...)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(a.Ports), "ports/step")
		b.ReportMetric(float64(a.Naive), "naive-ports/step")
	}
}
