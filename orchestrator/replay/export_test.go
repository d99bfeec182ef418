package replay

import (
	"github.com/ocslab/ocslab/orchestrator/proto"
	"github.com/ocslab/ocslab/topology/opus"
)

// Route is the way of a rank's part in an operation.
func Route(j opus.Job, rank, axis, way, lanes int, result proto.Result) (uses []opus.Circuit, slowdown float64, err error) {
	x, err := newRouter(j, true).route(rank, axis, way, lanes, result)
	return x.uses, x.slowdown, err
}
