package plane

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/orchestrator/proto"
	"github.com/ocslab/ocslab/topology/opus"
)

// Errors of planes. Test with errors.Is.
var (
	// ErrMissing: members of the operation did not come. The error names them.
	ErrMissing = errors.New("members of the operation are missing")
	// ErrTransfer: the operation makes no sense, or its members disagree on it.
	ErrTransfer = errors.New("not a possible operation")
	// ErrClosed: the plane was closed, or the connection to it has ended.
	ErrClosed = errors.New("the data plane is closed")
)

// Plane is what carries the bytes of operations.
type Plane interface {
	// Do plays one rank's part in an operation, and returns when the operation is complete, or ctx ends, or it is certain that
	// it cannot be completed. Each member of the operation calls it, with the same Rail, Ref and Members. An
	// error matches the cause of ctx, ErrMissing, ErrTransfer or ErrClosed; then the outcome is not known. It
	// is safe for concurrent use.
	Do(ctx context.Context, t Transfer) (Outcome, error)
}

// Transfer is one rank's part in an operation.
type Transfer struct {
	Rail    string      `json:"rail"`
	Switch  string      `json:"switch"`        // of the rail
	Net     string      `json:"net,omitempty"` // "" is the rail: operations of different networks are counted apart
	Rank    int         `json:"rank"`
	Ref     proto.OpRef `json:"ref"`
	Axis    int         `json:"axis"`    // of the job; opus.PP
	Members []int       `json:"members"` // who takes part, ascending, Rank among them
	Bytes   int64       `json:"bytes"`   // that the rank sends, or receives if that is more

	// Duration is how long the operation takes at the full bandwidth of a rank, once it has begun. Slowdown is by how much longer it
	// takes on Uses; 0 is 1.
	Duration time.Duration `json:"duration_ns"`
	Slowdown float64       `json:"slowdown,omitempty"`

	// Uses are the circuits that the rank's traffic needs, by duplex ports of the job: those that end at its own
	// ports and, on the giant ring, those through which others forward it. None: the traffic takes
	// another network, and nothing can be lost.
	Uses []opus.Circuit `json:"uses,omitempty"`

	// IssuedNS is when the rank was ready, on the axis of the host; 0, or what is to come: when Do is called. A rank
	// that had to wait for nobody says when it should have issued the operation, so that a late process does not make
	// steps longer.
	IssuedNS int64 `json:"issued_ns,omitempty"`

	Grant proto.Result `json:"grant,omitempty"` // how the control plane let it run
}

// String names the operation and the rank: "rank 3 of dp/1 operation 7 on rail0".
func (t Transfer) String() string { return fmt.Sprintf("rank %d of %s", t.Rank, t.key()) }

// Outcome is what became of a rank's part in an operation.
type Outcome struct {
	BeginNS int64   `json:"begin_ns"` // all members had come
	EndNS   int64   `json:"end_ns"`   // it was complete
	Lost    int64   `json:"lost"`     // bytes that did not get through, of Transfer.Bytes
	Uses    ocs.Map `json:"uses"`     // the cross-connects that the rank's traffic was on

	// Of planes that send packets: datagrams sent, those of them that were repetitions, and those that were sent
	// while the NIC had no carrier.
	Sent     int64 `json:"sent,omitempty"`
	Repeated int64 `json:"repeated,omitempty"`
	Dark     int64 `json:"dark,omitempty"`
}

// key is what members of one operation have in common.
type key struct {
	rail, net string
	ref       proto.OpRef
}

func (t Transfer) key() key { return key{t.Rail, t.Net, t.Ref} }

func (k key) String() string {
	s := fmt.Sprintf("%s operation %d", k.ref.Group, k.ref.Op)
	if strings.HasPrefix(k.ref.Group, "pp/") {
		s += fmt.Sprintf(" between stages %d and %d", k.ref.Way, k.ref.Way+1)
	}
	return s + " on " + k.rail
}

func (t Transfer) check() error {
	switch {
	case t.Bytes < 0:
		return fmt.Errorf("%v: %w: it has %d bytes", t, ErrTransfer, t.Bytes)
	case t.Duration < 0:
		return fmt.Errorf("%v: %w: it lasts %v", t, ErrTransfer, t.Duration)
	case !(t.Slowdown >= 0) || t.Slowdown > 1e9:
		return fmt.Errorf("%v: %w: it is slowed down %v times", t, ErrTransfer, t.Slowdown)
	case float64(t.Duration)*max(t.Slowdown, 1) > float64(longest):
		return fmt.Errorf("%v: %w: it lasts longer than %v", t, ErrTransfer, longest)
	case !slices.Contains(t.Members, t.Rank):
		return fmt.Errorf("%v: %w: its members are ranks %v", t, ErrTransfer, t.Members)
	}
	for i := 1; i < len(t.Members); i++ {
		if t.Members[i] <= t.Members[i-1] {
			return fmt.Errorf("%v: %w: its members %v do not ascend", t, ErrTransfer, t.Members)
		}
	}
	return nil
}

// longest is how long an operation may take.
const longest = 24 * time.Hour
