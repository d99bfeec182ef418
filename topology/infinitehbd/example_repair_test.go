package infinitehbd_test

import (
	"fmt"

	"github.com/ocslab/ocslab/topology/infinitehbd"
)

// Node 6 of 16 dies. Its partner is left idle, and no other group notices.
func ExampleRepair() {
	layout, err := infinitehbd.NewLayout(4, 2)
	if err != nil {
		panic(err)
	}
	order, err := infinitehbd.Deploy(16, 4)
	if err != nil {
		panic(err)
	}
	line := infinitehbd.Line{Layout: layout, Order: order}
	groups, err := line.Place(2, nil)
	if err != nil {
		panic(err)
	}
	running, err := line.Build(groups, nil)
	if err != nil {
		panic(err)
	}
	repaired, err := infinitehbd.Repair(running, []infinitehbd.Node{6}, infinitehbd.RepairOptions{})
	if err != nil {
		panic(err)
	}
	for _, s := range repaired.Switchings {
		fmt.Printf("%d.%s goes from %v to %v\n", s.Node, layout.Bundles[s.Bundle].Name, s.From, s.To)
	}
	fmt.Println("kept:", repaired.Kept)
	// Output:
	// 2.R goes from PATH1 to LOOP
	// kept: [[1 5] [9 13] [10 14] [3 7] [11 15] [4 8] [12 16]]
}
