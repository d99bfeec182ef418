package infinitehbd_test

import (
	"fmt"
	"log"

	"github.com/ocslab/ocslab/topology/infinitehbd"
)

// Node 6 is dead: its domain, the first, cannot stay aligned, but no group has to leave its domain.
func ExampleTree_Orchestrate() {
	layout, err := infinitehbd.NewLayout(4, 2)
	if err != nil {
		log.Fatal(err)
	}
	tree := infinitehbd.Tree{Nodes: 16, PerToR: 4, PerDomain: 8}
	p, err := tree.Orchestrate(layout, infinitehbd.Request{GPUs: 56, TP: 8}, []infinitehbd.Node{6})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(p.Groups)
	for _, probe := range p.Probes {
		fmt.Printf("%d of %d constraints: %d GPUs, enough: %v\n", probe.Constraints, p.Most, probe.GPUs, probe.Enough)
	}
	// Output:
	// [[1 5] [9 13] [10 14] [3 7] [11 15] [4 8] [12 16]]
	// 5 of 10 constraints: 56 GPUs, enough: true
	// 8 of 10 constraints: 56 GPUs, enough: true
	// 9 of 10 constraints: 32 GPUs, enough: false
}
