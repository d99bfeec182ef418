package check

import (
	"errors"
	"fmt"

	"github.com/ocslab/ocslab/ocs"
)

// Op is a line of the operation log: one operation of one rank, from when it was issued (PreOp had returned) to when
// it was complete.
type Op struct {
	Rail    string  `json:"rail"`
	Switch  string  `json:"switch"`
	Rank    int     `json:"rank"`
	Step    int     `json:"step"`
	Group   string  `json:"group"`
	Op      uint64  `json:"op"`
	Way     int     `json:"way"`
	Uses    ocs.Map `json:"uses"` // the cross-connects that the rank's light enters or leaves by in this operation
	BeginNS int64   `json:"begin_ns"`
	EndNS   int64   `json:"end_ns"`
	Bytes   int64   `json:"bytes"`
	Lost    int64   `json:"lost"`             // bytes that the data plane dropped
	Result  string  `json:"result,omitempty"` // of the grant
}

// String names the operation for people: "operation 7 of dp/1 (step 2, rank 3 of rail0)".
func (o Op) String() string {
	return fmt.Sprintf("operation %d of %s (step %d, rank %d of %s)", o.Op, o.Group, o.Step, o.Rank, o.Rail)
}

// validate returns why a line is none of a log.
func (o Op) validate() error {
	switch {
	case o.Group == "":
		return errors.New("an operation needs a group")
	case o.Uses.Len() > 0 && o.Switch == "":
		return errors.New("an operation that uses circuits needs a switch")
	case o.Rank < 0 || o.Step < 0 || o.Way < 0:
		return fmt.Errorf("rank %d, step %d and way %d: want none below 0", o.Rank, o.Step, o.Way)
	case o.EndNS < o.BeginNS:
		return fmt.Errorf("the operation ends at %d, before it begins at %d", o.EndNS, o.BeginNS)
	case o.Bytes < 0 || o.Lost < 0:
		return fmt.Errorf("%d bytes, %d lost: want none below 0", o.Bytes, o.Lost)
	}
	return nil
}
