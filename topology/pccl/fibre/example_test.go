package fibre_test

import (
	"context"
	"fmt"

	"github.com/ocslab/ocslab/topology/pccl/fibre"
)

func ExampleRoute() {
	g, err := fibre.Grid(2, 3)
	if err != nil {
		fmt.Println(err)
		return
	}
	requests := []fibre.Request{{Src: 0, Dst: 2}, {Src: 3, Dst: 5}, {Src: 0, Dst: 5}}
	r, err := fibre.Route(context.Background(), g, requests, fibre.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(r.Fibres, r.Bound.Fibres, r.Optimal())
	fmt.Println(r.Bound)
	// Output:
	// 2 2 true
	// the cut around rows 0 to 1, column 2: 3 crossings of 2 links
}
