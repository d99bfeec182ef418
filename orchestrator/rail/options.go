package rail

import (
	"fmt"
	"time"

	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/orchestrator/proto"
	"github.com/ocslab/ocslab/topology/opus"
)

// Verify says what a change has to pass before it is done.
type Verify string

const (
	// Table compares the switch's table of circuits with what was asked for.
	Table Verify = "table"
	// Light is Table, and then waits for power at the egress of each circuit.
	Light Verify = "light"
)

// Defaults of [Options].
const (
	DefaultAttempts = 3
	DefaultTimeout  = time.Second // at least; see Options.Timeout
	DefaultHealth   = 10 * time.Second
	DefaultPatience = time.Second
)

// Options are what an Orchestrator works with. Job, Assignment and one session are required.
type Options struct {
	Rail, Switch string // names, for people and the journal
	Job          opus.Job
	Policy       opus.Policy // how runs of zeros are joined; empty is opus.Pair
	Assignment   opus.Assignment

	// Sessions are one or more sessions with the switch. Changes of ports that have nothing in common run at the same
	// time on different ones; the first also looks after the health. They are closed by the caller, after the
	// Orchestrator.
	Sessions []ocs.Switch
	// Dir is the directory of the journal, which is created if need be. Rails and jobs have files of their own in it.
	// Empty keeps none: a new process then begins with the giant ring.
	Dir string
	// Protected are ports that nothing may touch. A job that is cabled to one is refused.
	Protected []ocs.Port

	// Revive has a rail that the journal has as dead looked at again at the start: it is brought to its last plan, or else
	// to the giant ring. Without it such a rail stays dead until a controller marks it as no longer dead.
	Revive bool

	Attempts int // of each change; 0 is DefaultAttempts
	// Timeout is how long an attempt may take from its first command until it is read back. 0 is three times
	// what changes of this switch take, as measured, and DefaultTimeout at least.
	Timeout time.Duration
	// Takeover says what becomes of circuits from ports of the job to ports of others. Safe, which is the default,
	// refuses to begin with them and to change their ports; Update removes them.
	Takeover ocs.Policy

	// Verify is Light by default where the switch has power monitors at the egress, else Table. With Light, a switch
	// without monitors fails every change. A circuit without light is a failure of the change, unless a monitor at its
	// ingress shows no light either: then nobody sends, and Status.NoInput lists the port. Ports without a monitor are
	// not measured.
	Verify Verify
	// Threshold is the power that counts as light; 0 is ocs.NoLight. For Light.
	Threshold ocs.DBm
	// Patience is how long light may take after the read-back; 0 is DefaultPatience. For Light.
	Patience time.Duration

	// Health is how often the switch is read while nothing is asked for, to find what others changed; with Light its
	// power, too. 0 is DefaultHealth, less than 0 never.
	Health time.Duration
	// Gate is asked before each change; an error refuses it. Nil permits all.
	Gate func() error
	// Dark is asked for each request, also one that needs no change, and with the health: an error says why there is no light
	// whatever the circuits are, as in a panic of the lab. It refuses the request, and is an alarm. Nil is for light at all times.
	Dark func() error
	// Where says whose a port of the switch is, for messages: "port 1 of rank 3 (gpu4/ens1f1)". Nil, or an empty answer,
	// takes the numbers of the job.
	Where func(ocs.Port) string
	// Changed is called for all that happens to the switch, one event at a time, and must neither block nor call the
	// Orchestrator. It may be nil.
	Changed func(Event)
}

// What is a kind of [Event].
type What string

const (
	Disconnected What = "disconnected" // the switch acknowledged the removal of what goes dark
	Connected    What = "connected"    // the switch acknowledged the rest of the change
	Verified     What = "verified"     // it reads back as it should
	Lit          What = "lit"          // light was seen
	Retried      What = "retried"      // an attempt failed and is to be repeated
	Failed       What = "failed"       // the last attempt failed
	Drifted      What = "drifted"      // somebody else changed circuits of the job, or light has gone
	Opened       What = "opened"       // a controller took the job over
	Marked       What = "marked"       // the rail was marked dead, or is no longer
)

// Event is something that happened on a rail.
type Event struct {
	Rail, Switch string
	What         What
	At           time.Time
	Epoch        uint64
	Generation   uint64
	Requests     []uint64 // of the controller, as proto.Apply.Req; several when they were carried out with one command
	Attempt      int      // from 1
	Change       ocs.Change
	Receipt      ocs.Receipt // of the command that brought it about; zero for others
	Err          error       // of Retried, Failed and Drifted
}

// Status is what a rail is in. Circuits are pairs of duplex ports of the job.
type Status struct {
	Rail, Switch, Job string
	Epoch             uint64
	Controller        string // that has the epoch, for people
	Generation        uint64
	Shape             proto.Shape
	ID                string     // of shape Digits: what the job shall have when all that was asked for is done
	Circuits          [][2]int   // that the switch was last seen to hold
	Unsure            []int      // ports of which that is not certain
	Pending           int        // requests that are not answered yet
	Reason            string     // of giant ring, dead, or a failure
	Verify            Verify     // what a change has to pass; Light only where the switch has power monitors
	Dark              []Path     // circuits that failed a change because they had no light, as last read
	NoInput           []ocs.Port // ingress ports of circuits that could not be verified, since no light came in
	Counters          Counters
}

// Path is a circuit and the power at its ends. In is nil where no monitor measures it.
type Path struct {
	ocs.CrossConnect
	In  *ocs.DBm
	Out ocs.DBm
}

func (p Path) String() string {
	in := "not measured"
	if p.In != nil {
		in = p.In.String()
	}
	return fmt.Sprintf("%v: in %s, out %v", p.CrossConnect, in, p.Out)
}

// Counters count since the start.
type Counters struct {
	Requests uint64 // that were accepted
	NoOps    uint64
	Changes  uint64 // requests that moved circuits
	Commands uint64 // changes that were sent to the driver
	Batched  uint64 // requests that shared a command with others
	Retries  uint64
	Failures uint64
	Alarms   uint64
	Removed  uint64 // cross-connects
	Added    uint64
}
