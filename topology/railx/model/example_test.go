package model_test

import (
	"fmt"

	"github.com/ocslab/ocslab/topology/railx"
	"github.com/ocslab/ocslab/topology/railx/model"
)

// How fast meshes must be for the network of figure 14.
func ExampleFluid() {
	c, err := railx.Build(railx.Grid{Columns: 9, Rows: 9, Rails: 8, Mesh: 4}, railx.HyperX2D())
	if err != nil {
		fmt.Println(err)
		return
	}
	load, err := model.Fluid(c, model.Nearest)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, kappa := range []float64{1, 2, 4} {
		fmt.Printf("kappa %v: %.3f\n", kappa, load.Throughput(kappa))
	}
	// Output:
	// kappa 1: 0.642
	// kappa 2: 0.999
	// kappa 4: 0.999
}
