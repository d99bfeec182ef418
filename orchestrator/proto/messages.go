package proto

import "github.com/ocslab/ocslab/topology/opus"

// Version is what hello and open carry; others are refused.
const Version = 1

// Kind is the "kind" of a message.
type Kind string

// Message is any of the messages of this package, as a pointer.
type Message interface{ kind() Kind }

// Mode says what a topo-write is for.
type Mode string

const (
	Demand    Mode = "demand"    // the operation is about to start; an acknowledgement is the leave to run it
	Provision Mode = "provision" // it is likely to be the next: have the circuits ready
)

// Result is what an acknowledgement found.
type Result string

const (
	Applied  Result = "applied"  // circuits were moved
	NoOp     Result = "noop"     // they were there already: the switch got no command
	OnRing   Result = "fallback" // the rail is on its giant ring: the operation runs on that
	Detoured Result = "detour"   // the rail is dead: its traffic takes the other rails
)

// Code says why something was refused.
type Code string

const (
	Stale        Code = "stale"         // of an epoch that is over
	UnknownGroup Code = "unknown-group" // the job has no such group, or the rank is not in it
	Conflict     Code = "conflict"      // somebody else's circuit, a protected port, or another request in the way
	Timeout      Code = "timeout"       // the others of the group did not come, or the switch did not answer
	RankLost     Code = "rank-lost"     // a rank of the group has gone
	Verify       Code = "verify"        // the switch reads back something else
	RailDead     Code = "rail-dead"     // the rail cannot be used
	Withdrawn    Code = "withdrawn"     // the rank took its request back
	Bad          Code = "bad"           // the request makes no sense; the detail says why
)

// OpRef names an operation of a group.
type OpRef struct {
	Group string `json:"group"` // "dp/3"; see opus.Group
	Op    uint64 `json:"op"`    // from 0, counted by each member of the group in the same way
	Way   int    `json:"way"`   // of a PP transfer, the lower of its two stages; 0 otherwise. Each pair of stages counts its own
}

// Between shim and controller.
type (
	// Hello begins the connection of a shim.
	Hello struct {
		Version   int     `json:"version"`
		Job       string  `json:"job"`
		Rail      string  `json:"rail"`
		Rank      int     `json:"rank"` // of the rail, from 0
		Host      string  `json:"host"` // for people
		LocalRank int     `json:"local_rank"`
		Epoch     uint64  `json:"epoch"`         // of the connection before; 0 for the first
		Run       uint64  `json:"run,omitempty"` // of the welcome before; 0: the first, or it said none
		Holds     []OpRef `json:"holds,omitempty"`
	}
	// Welcome answers hello.
	Welcome struct {
		Epoch     uint64 `json:"epoch"`         // of the controller: what the shim's requests carry from now on
		Run       uint64 `json:"run,omitempty"` // of the job in this epoch, from 1: a hello of one that has ended is refused
		MonoNS    int64  `json:"mono_ns"`
		TimeoutNS int64  `json:"timeout_ns"` // how long an acknowledgement may take; 0: for ever
	}
	// JoinGroup says which group the rank is in, so that a disagreement is found before anything moves.
	JoinGroup struct {
		Group   string `json:"group"`
		Axis    string `json:"axis"`
		Members []int  `json:"members"`
		Index   int    `json:"index"` // of the rank in it
	}
	// GroupOK is sent to all members when all have joined.
	GroupOK struct {
		Group  string   `json:"group"`
		Domain string   `json:"domain"` // "rail", "scale-up" or "front-end"
		Rails  []string `json:"rails"`
	}
	// PhaseTable is what a rank has learnt while profiling: where its phases begin and end. Steps are periodic.
	PhaseTable struct {
		Step   uint64            `json:"step"`   // how many steps the rank has ended: tables of the same step go together
		Period map[string]uint64 `json:"period"` // by group and way ("dp/3", "pp/0@1"): operations in one step
		Starts []OpRef           `json:"starts"` // with op relative to the step
		Ends   []OpRef           `json:"ends"`
	}
	// Boundaries answers a phase table when all members of all groups of the rank have sent theirs: the union over each
	// group's members.
	Boundaries struct {
		Starts []OpRef `json:"starts"`
		Ends   []OpRef `json:"ends"`
	}
	// TopoWrite asks for the circuits of an operation.
	TopoWrite struct {
		Req   uint64 `json:"req"`
		Epoch uint64 `json:"epoch"`
		OpRef
		Mode Mode `json:"mode"`
		// Last is the last operation that the rank has completed: it holds no circuits any more.
		Last    *OpRef `json:"last,omitempty"`
		IssueNS int64  `json:"issue_ns"`
	}
	// Withdraw takes back a request of mode provision that turned out to be wrong. It is answered, with the acknowledgement that
	// was under way or with a topo-nack.
	Withdraw struct {
		Req uint64 `json:"req"`
	}
	// Release says that the rank has completed an operation and uses its circuits no longer. It is not answered.
	Release struct {
		Epoch uint64 `json:"epoch"`
		OpRef
	}
	// TopoAck answers a topo-write. Times are the controller's, and zero where nothing of the kind happened.
	TopoAck struct {
		Req         uint64 `json:"req"`
		ID          string `json:"topology_id,omitempty"` // with stage digits
		Generation  uint64 `json:"generation"`            // of the rail
		Result      Result `json:"result"`
		ReadyNS     int64  `json:"ready_ns"` // the last that had to ask had asked
		CommandNS   int64  `json:"command_ns"`
		SwitchAckNS int64  `json:"switch_ack_ns"`
		VerifiedNS  int64  `json:"verified_ns"`
		Removed     int    `json:"removed"` // cross-connects
		Added       int    `json:"added"`
		// Lanes is, of a transfer, how many circuits join the two ranks. They may use all of them until they release the
		// operation. It is 0, and missing, for all else.
		Lanes int `json:"lanes,omitempty"`
	}
	// TopoNack refuses a topo-write: the operation must not run.
	TopoNack struct {
		Req    uint64 `json:"req"`
		Code   Code   `json:"code"`
		Detail string `json:"detail"` // one sentence for people
	}
	// Fallback says that a rail has left its plan: it is on the giant ring or, if Dead, of no use.
	Fallback struct {
		Rail       string `json:"rail"`
		Generation uint64 `json:"generation"`
		Dead       bool   `json:"dead"`
		Reason     string `json:"reason"`
	}
	// Resume says that a rail is back at its plan.
	Resume struct {
		Rail       string `json:"rail"`
		Generation uint64 `json:"generation"`
	}
	// Bye is the last message of either side.
	Bye struct {
		Code   Code   `json:"code,omitempty"` // empty: all is well
		Reason string `json:"reason"`
	}
)

// Shape is what a rail is in.
type Shape string

const (
	Digits   Shape = "digits"   // the matching of a topology ID
	Circuits Shape = "circuits" // circuits of groups, each asked for by itself
	Giant    Shape = "giant-ring"
	Dead     Shape = "dead"
)

// Between controller and the orchestrator of a rail.
type (
	// Open begins the connection of a controller. Whoever opens a job last has it: the epoch goes up, and what others ask
	// is stale.
	Open struct {
		Version    int         `json:"version"`
		Rail       string      `json:"rail"`
		Controller string      `json:"controller"` // for people: "ocslab on gpu1, process 4711"
		Job        opus.Job    `json:"job"`        // must be that of the orchestrator
		Policy     opus.Policy `json:"policy"`
		// Resume is the epoch that a controller had before its connection was lost: it keeps that, and what it had asked for. If
		// another has opened the job since, the open is refused as stale. 0 takes the job over.
		Resume uint64 `json:"resume,omitempty"`
	}
	// Opened answers open. The orchestrator is the truth: a controller that starts anew goes on from here.
	Opened struct {
		Epoch      uint64   `json:"epoch"`
		Generation uint64   `json:"generation"`
		Shape      Shape    `json:"shape"`
		ID         string   `json:"topology_id,omitempty"` // of Digits
		Circuits   [][2]int `json:"circuits,omitempty"`    // pairs of duplex ports of the job, whatever the shape
		Reason     string   `json:"reason,omitempty"`      // of Giant and Dead
	}
	// Apply asks for circuits. One of ID and Join is set. Requests are carried out in the order in which they arrive where they touch
	// the same ports, and at the same time where they do not.
	Apply struct {
		Req   uint64 `json:"req"`
		Epoch uint64 `json:"epoch"`
		// ID is the topology ID that the job shall have once all requests before it are done.
		ID string `json:"topology_id,omitempty"`
		// Join are circuits to make; those that end at one of their ports, or at one of Part, are removed.
		Join [][2]int `json:"join,omitempty"`
		Part []int    `json:"part,omitempty"`
	}
	// GiantRing asks for the giant ring. The controller has made sure that nothing runs on the rail.
	GiantRing struct {
		Req    uint64 `json:"req"`
		Epoch  uint64 `json:"epoch"`
		Reason string `json:"reason"`
	}
	// Mark asks for the rail to be marked dead, or, with Dead false, to be looked at again and brought to its last plan.
	Mark struct {
		Req    uint64 `json:"req"`
		Epoch  uint64 `json:"epoch"`
		Dead   bool   `json:"dead"`
		Reason string `json:"reason"`
	}
	// Done answers apply, giant-ring and mark when the switch reads back what it should.
	Done struct {
		Req         uint64 `json:"req"`
		Generation  uint64 `json:"generation"` // goes up with each change
		Shape       Shape  `json:"shape"`
		Result      Result `json:"result"` // applied or noop
		Removed     int    `json:"removed"`
		Added       int    `json:"added"`
		Attempts    int    `json:"attempts"` // 1, or more if it had to be repeated
		CommandNS   int64  `json:"command_ns"`
		SwitchAckNS int64  `json:"switch_ack_ns"`
		VerifiedNS  int64  `json:"verified_ns"`
		LightNS     int64  `json:"light_ns,omitempty"` // power was seen, where it is waited for
	}
	// Failed answers apply, giant-ring and mark when it could not be done, after all attempts.
	Failed struct {
		Req      uint64 `json:"req"`
		Code     Code   `json:"code"`
		Attempts int    `json:"attempts"`
		Detail   string `json:"detail"` // one sentence for people, with the ports
	}
	// Alarm is sent unasked when the rail is no longer what it was left as: circuits that others moved, light that has gone.
	Alarm struct {
		Generation uint64   `json:"generation"`
		Detail     string   `json:"detail"`
		Circuits   [][2]int `json:"circuits,omitempty"` // that are concerned
	}
)
