package crosswiring_test

import (
	"fmt"
	"strings"

	"github.com/ocslab/ocslab/topology/crosswiring"
	"github.com/ocslab/ocslab/topology/crosswiring/walk"
)

// Three pods that want a link with each other: more than Uniform wiring can do.
func ExamplePlan() {
	f := crosswiring.Fabric{Pods: 3, SpinePorts: 2, Groups: 1}
	d, err := crosswiring.ParseDemand(strings.NewReader("pod,pod,links\n0,1,1\n1,2,1\n0,2,1\n"), "demand.csv")
	if err != nil {
		fmt.Println(err)
		return
	}
	config, err := crosswiring.Plan(f, d)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, s := range f.Switches() {
		fmt.Println("switch", s, config.Circuits(s))
	}
	r, err := walk.Walk(f.Fibres(), config.AllCircuits())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(r.Violations), "violations, links between")
	for _, l := range r.Links {
		fmt.Println(l)
	}
	// Output:
	// switch 0/0 [0>1 1>2 2>0]
	// switch 0/1 [0>2 1>0 2>1]
	// 0 violations, links between
	// pod 0 spine 0 port 0 and pod 1 spine 0 port 1
	// pod 1 spine 0 port 0 and pod 2 spine 0 port 1
	// pod 2 spine 0 port 0 and pod 0 spine 0 port 1
}
