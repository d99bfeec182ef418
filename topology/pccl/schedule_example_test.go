package pccl_test

import (
	"fmt"

	"github.com/ocslab/ocslab/ocs"
	planner "github.com/ocslab/ocslab/topology"
	"github.com/ocslab/ocslab/topology/pccl"
)

// The rounds of an algorithm, the ports that the first of them is wired on, and the cross-connects that this takes.
func ExampleWire() {
	s, err := pccl.New(pccl.ReduceScatter, pccl.RHDHalving, 4, 100e6)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(s.Rounds), "rounds; computes what it should:", s.Check() == nil)
	own, err := pccl.Direct(s.GPUs, "round 0", s.Rounds[0])
	if err != nil {
		fmt.Println(err)
		return
	}
	wiring, err := pccl.Wire(own, 1, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	var gpus [][]planner.NIC // one port a GPU; that of GPU 0 sends into 1 and receives from 33
	for _, port := range []ocs.Port{1, 2, 3, 4} {
		gpus = append(gpus, []planner.NIC{{
			Tx: planner.Port{Switch: "rail0", Port: port},
			Rx: planner.Port{Switch: "rail0", Port: port + 32},
		}})
	}
	maps, err := wiring.Maps(gpus)
	fmt.Println(maps["rail0"], err)
	// Output:
	// 2 rounds; computes what it should: true
	// 1>35,2>36,3>33,4>34 <nil>
}
