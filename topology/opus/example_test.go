package opus_test

import (
	"fmt"

	"github.com/ocslab/ocslab/topology/opus"
)

// Four ranks in two stages; the first microbatch leaves data parallelism for the pipeline.
func ExampleTable_Change() {
	job := opus.Job{Name: "lab", Stages: 2, Axes: []opus.Axis{{Name: "dp", Size: 2}}}
	table, err := opus.NewTable(job, opus.Pair, opus.Regular(job.DuplexPorts(), 1, 33))
	if err != nil {
		fmt.Println(err)
		return
	}
	from, _ := job.ParseID("11")
	delta, err := table.Change(from, from.Transfer(0))
	if err != nil {
		fmt.Println(err)
		return
	}
	change, err := delta.Change()
	fmt.Println(change, err)
	fmt.Println("stages", delta.Stages, "duplex ports", delta.Ports)
	// Output:
	// - 1>36,2>35,3>34,4>33,5>40,6>39,7>38,8>37 + 1>38,2>37,3>40,4>39,5>34,6>33,7>36,8>35 <nil>
	// stages [0 1] duplex ports [0 1 2 3 4 5 6 7]
}

// One group of a stage that serves the pipeline asks for its ring. The other groups of the stage are left alone.
func ExampleMatching_With() {
	job := opus.Job{Stages: 2, Axes: []opus.Axis{{Name: "dp", Size: 2}, {Name: "cp", Size: 2}}}
	id, _ := job.ParseID("00")
	m, err := opus.Build(job, id, opus.Pair)
	if err != nil {
		fmt.Println(err)
		return
	}
	group, _ := job.FindGroup("dp/0")
	_, removed, added, err := m.With(job.GroupCircuits(group), nil)
	fmt.Println("ranks", group.Members, "removed", removed, "added", added, err)
	// Output: ranks [0 2] removed [{0 9} {1 8} {4 13} {5 12}] added [{0 5} {1 4}] <nil>
}

// Rings of four and, in between, the giant ring, which takes three circuits of each of them along.
func ExampleArrange() {
	job := opus.Job{Stages: 1, Axes: []opus.Axis{{Name: "dp", Size: 4}, {Name: "cp", Size: 4}}}
	id, _ := job.ParseID("2")
	cp, err := job.Phase(id, opus.Chain)
	if err != nil {
		fmt.Println(err)
		return
	}
	a, err := opus.Arrange(job, cp, job.RingPhase())
	fmt.Printf("%d ports in a step instead of %d, %v\n", a.Ports, a.Naive, err)
	// Output: 16 ports in a step instead of 40, <nil>
}
