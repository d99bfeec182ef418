// Package polatiscard has what is the same in Polatis network interface cards over
// all protocols.
package polatiscard

import (
	"slices"
	"strings"
	"time"

	"github.com/ocslab/ocslab/ocs"
)

// Averaging are the times that a monitor can be averaged over, steps 1 to 8.
var Averaging = []time.Duration{
	10 * time.Millisecond, 20 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond,
	200 * time.Millisecond, 500 * time.Millisecond, time.Second, 2 * time.Second,
}

// AveragingStep returns the step, 1 to 8, of the shortest of these times that is
// not below d, or the longest.
func AveragingStep(d time.Duration) int {
	step, _ := slices.BinarySearch(Averaging, d)
	return min(step+1, len(Averaging))
}

// Geometry reads the size out of a product code such as
// N-VST-192x192-LU1-DMHNV-801; it is not known if there is none in it.
func Geometry(product string) ocs.Geometry {
	for part := range strings.SplitSeq(product, "-") {
		if g, err := ocs.ParseGeometry(part); err == nil {
			return g
		}
	}
	return ocs.Geometry{}
}

// Unreplaced returns what of c.Remove does not go by itself when c.Add takes
// over its ports. On single-sided devices a port may take the other role.
func Unreplaced(c ocs.Change) ocs.Map {
	var top ocs.Port
	for a := range c.Add.All() {
		top = max(top, a.Ingress, a.Egress)
	}
	taken := make([]bool, top+1)
	for a := range c.Add.All() {
		taken[a.Ingress], taken[a.Egress] = true, true
	}
	goes := func(p ocs.Port) bool { return p <= top && taken[p] }
	var ccs []ocs.CrossConnect
	for r := range c.Remove.All() {
		if !goes(r.Ingress) && !goes(r.Egress) {
			ccs = append(ccs, r)
		}
	}
	return ocs.MustMap(ccs...) // a part of a Map
}
