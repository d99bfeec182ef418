package trace_test

import (
	"fmt"
	"time"

	"github.com/ocslab/ocslab/orchestrator/trace"
)

// What a switch of 100 ms costs configuration 1 of the Opus paper.
func Example() {
	g, err := trace.Find("config-1")
	if err != nil {
		fmt.Println(err)
		return
	}
	t, err := g.Generate(trace.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(t.Reconfigurations(0), "reconfigurations in a step of", t.StepTime())
	for _, mode := range []trace.Mode{trace.Demand, trace.Provision} {
		s := trace.Simulate(t, trace.Model{Delta: 100 * time.Millisecond, Mode: mode})
		fmt.Printf("%s: %v, of which %v are exposed\n", mode, s.Step, s.Exposed)
	}
	// Output:
	// 6 reconfigurations in a step of 10.222s
	// demand: 10.822s, of which 600ms are exposed
	// provision: 10.592s, of which 370ms are exposed
}

// Which topology IDs the lab job goes through.
func ExampleTrace_TopologyIDs() {
	g, err := trace.Find("lab-job")
	if err != nil {
		fmt.Println(err)
		return
	}
	t, err := g.Generate(trace.Options{})
	fmt.Println(err, t.TopologyIDs(0))
	// Output: <nil> [11 00 01 00 10 11]
}

// The operations of a rank, and how all who take part call them.
func ExampleTrace_Refs() {
	g, err := trace.Find("figure-8")
	if err != nil {
		fmt.Println(err)
		return
	}
	t, err := g.Generate(trace.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for i, ref := range t.Refs(4, 1) {
		fmt.Println(t.Steps[0].Ranks[4][i].Kind, ref.Group, ref.Index, ref.Way, ref.Members)
	}
	// Output:
	// all-gather dp/2 3 0 [4 6]
	// recv pp/0 3 0 [0 4]
	// reduce-scatter dp/2 4 0 [4 6]
	// all-gather cp/2 1 0 [4 5]
	// recv pp/0 4 0 [0 4]
	// send pp/0 2 1 [4 8]
	// recv pp/0 3 1 [4 8]
	// send pp/0 5 0 [0 4]
	// all-reduce dp/2 5 0 [4 6]
}
