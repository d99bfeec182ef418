package shim

import (
	"errors"
	"fmt"

	"github.com/ocslab/ocslab/orchestrator/proto"
)

// Why an operation was not granted. Test with errors.Is.
var (
	// ErrTimeout: the controller, the group or the switch did not answer in time.
	ErrTimeout = errors.New("no answer in time")
	// ErrRankLost: a rank of the group has gone.
	ErrRankLost = errors.New("a rank of the group has gone")
	// ErrRailDead: the rail cannot be used.
	ErrRailDead = errors.New("the rail cannot be used")
	// ErrStale: somebody else controls the job now.
	ErrStale = errors.New("the epoch is over")
	// ErrRefused: the controller refuses, for any other reason.
	ErrRefused = errors.New("the controller refuses")
	// ErrLost: there is no connection to the controller.
	ErrLost = errors.New("the connection to the controller is lost")
	// ErrProtocol: the controller said what makes no sense.
	ErrProtocol = errors.New("the controller said what makes no sense")
	// ErrBadOp: the rank has no such operation. That is a mistake of the caller; nobody was asked.
	ErrBadOp = errors.New("no such operation")
	// ErrClosed: the shim is closed.
	ErrClosed = errors.New("the shim is closed")
)

// NotGranted is the error of an operation that must not run. It matches one of the errors above, and what Err wraps.
type NotGranted struct {
	Rail   string
	Rank   int
	Op     Op
	Code   proto.Code // of the controller; "" if it did not refuse
	Detail string     // one sentence for people
	Err    error      // which of the errors above
}

// Error is one sentence that names rank, rail, operation and group.
func (e *NotGranted) Error() string {
	code := ""
	if e.Code != "" {
		code = fmt.Sprintf(" (%s)", e.Code)
	}
	return fmt.Sprintf("rank %d of %s must not run %s: %s%s", e.Rank, e.Rail, name(e.Op.OpRef), e.Detail, code)
}

// Unwrap returns which of the errors of this package it is, with its cause.
func (e *NotGranted) Unwrap() error { return e.Err }

// name returns an operation in words: "operation 7 of dp/0", "transfer 3 of pp/1 between stages 0 and 1".
func name(r proto.OpRef) string {
	if len(r.Group) > 3 && r.Group[:3] == "pp/" {
		return fmt.Sprintf("transfer %d of %s between stages %d and %d", r.Op, r.Group, r.Way, r.Way+1)
	}
	return fmt.Sprintf("operation %d of %s", r.Op, r.Group)
}

func ofCode(c proto.Code) error {
	switch c {
	case proto.Timeout:
		return ErrTimeout
	case proto.RankLost:
		return ErrRankLost
	case proto.RailDead:
		return ErrRailDead
	case proto.Stale:
		return ErrStale
	}
	return ErrRefused
}
