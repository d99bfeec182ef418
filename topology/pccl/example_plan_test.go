package pccl_test

import (
	"fmt"
	"log"

	"github.com/ocslab/ocslab/topology/pccl"
)

// Eight GPUs reduce 1 MB; they are joined as a ring, and it can be rewired in 5 µs.
func ExampleTable() {
	s, err := pccl.New(pccl.ReduceScatter, pccl.RHDHalving, 8, 1e6)
	if err != nil {
		log.Fatal(err)
	}
	ring, err := pccl.Ring(8)
	if err != nil {
		log.Fatal(err)
	}
	table, err := pccl.NewTable(pccl.Problem{
		Schedule: s, Start: ring, Params: pccl.Params{Alpha: 3e-6, Beta: 1 / 450e9},
	})
	if err != nil {
		log.Fatal(err)
	}
	plan, err := table.Best(5e-6)
	if err != nil {
		log.Fatal(err)
	}
	for i, r := range plan.Rounds {
		fmt.Printf("round %d on %s: %.2f µs\n", i, r.Topology.Name(), r.Cost.Time*1e6)
	}
	fmt.Printf("%d changes, %.2f µs\n", plan.Changes, plan.Total*1e6)

	pieces, err := table.Envelope()
	if err != nil {
		log.Fatal(err)
	}
	for _, p := range pieces {
		fmt.Printf("from %.2f µs: %d changes\n", p.From*1e6, p.Changes)
	}
	// Output:
	// round 0 on round 0: 4.11 µs
	// round 1 on ring: 7.11 µs
	// round 2 on ring: 3.28 µs
	// 2 changes, 24.50 µs
	// from 0.00 µs: 3 changes
	// from 3.56 µs: 2 changes
	// from 6.17 µs: 0 changes
}
