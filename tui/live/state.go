package live

import (
	"time"

	"github.com/ocslab/ocslab/experiment"
	"github.com/ocslab/ocslab/experiment/analysis"
	"github.com/ocslab/ocslab/experiment/plan"
	"github.com/ocslab/ocslab/experiment/runner"
	"github.com/ocslab/ocslab/experiment/runs"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/timeline"
)

// PublishEvery is how often there is a newer State at most.
const PublishEvery = 50 * time.Millisecond

// KeepMoves is how many reconfigurations a State remembers, KeepLog how many lines of
// log, KeepSamples how many readings of power per NIC, and KeepDrift how many foreign
// changes per switch.
const (
	KeepMoves   = 50
	KeepLog     = 10000
	KeepSamples = 240
	KeepDrift   = 20
)

// State is a lab as far as it is known at a moment. It and all it points to do not
// change; neither may who gets it.
type State struct {
	Version  uint64    // of two, the greater is newer
	At       time.Time // when it was put together
	File     *lab.File // the lab
	Program  []string  // how ocslab is called to open this lab: "ocslab", "--lab", "lab.yaml"
	Emulated bool
	ReadOnly bool   // the session refuses to change anything
	Rung     string // what emulated hosts are: "tap", "veth", "memory"; "" for real ones
	Opening  string // what is still being opened, for people; "" when all is

	Switches []*Switch // in the order of the lab file
	NICs     []*NIC    // in the order of the lab file
	Moves    []*Move   // newest first; the first may be under way
	Run      *Run      // the experiment that is loaded or under way; nil if none is
	Runs     []RunLine // those that are kept, newest first
	Log      []*Entry  // oldest first
	Panic    *Panic    // in force; nil if none is

	// What undo and redo would take back, in words: "connect rail0 1>33 (change 12)"; ""
	// when there is nothing.
	Undo, Redo string
	// Pending is what a change that is being sent or read back does, in words; "" if none is.
	Pending string
	// Lacks says what is not watched, and why.
	Lacks []experiment.Lack
	// LastEvent is the newest line of Log that is an Event or was Bad, and is not Routine, for
	// a line that all screens show.
	LastEvent *Entry
}

// Command is a command line for a shell that ocslab does in this lab: "ocslab --lab
// lab.yaml connect rail0 '1>33'". Words that a shell would take apart are quoted.
func (s *State) Command(args ...string) string { return command(s.Program, args) }

// Switch returns the switch of a name, nil if there is none.
func (s *State) Switch(name string) *Switch {
	for _, x := range s.Switches {
		if x.Name == name {
			return x
		}
	}
	return nil
}

// NIC returns the NIC of a full name, nil if there is none.
func (s *State) NIC(name string) *NIC {
	for _, x := range s.NICs {
		if x.Name == name {
			return x
		}
	}
	return nil
}

// Status is how it stands with a switch.
type Status string

// The states of a switch.
const (
	Opening Status = "opening" // is being reached for the first time
	Up      Status = "up"      // answers
	Lost    Status = "lost"    // does not answer any more, and is tried again
	Lent    Status = "lent"    // a run has it; what is shown is what the run has seen
)

// Switch is a switch as it has presented itself.
type Switch struct {
	Name     string
	URL      string // without a password
	Device   string // as in the history
	Emulated bool

	Status Status
	Since  time.Time // of Status
	Err    error     // why it is not Up
	Tries  int       // in vain, since it was lost

	Identity ocs.Identity
	Facts    []Fact // what else it says of itself: sessions, boot mode, averaging, calibration

	Map   ocs.Map
	MapAt time.Time // when that was read; zero if never
	// Set says of circuits how they came to be there, as far as this session knows.
	Set map[ocs.CrossConnect]Origin

	Power   map[ocs.Port]ocs.DBm // what the monitors said last
	PowerAt time.Time            // zero if never
	// PowerEvery and MapEvery are how often these are read; what is older than thrice that
	// is stale.
	PowerEvery, MapEvery time.Duration

	Labels    map[ocs.Port]string
	Shut      map[ocs.Port]bool // shutters that are closed
	Shutters  bool              // it has shutters
	Protected map[ocs.Port]bool // by the lab file
	Monitored bool              // it has power monitors

	Drift   []Drift  // what others have changed, newest first
	Alarms  []Alarm  // what it has reported, newest first
	Modules []Module // of a bundle of transceivers
}

// Stale reports whether something that was read at a time, and is read so often, may be
// otherwise by now.
func Stale(read time.Time, every time.Duration, now time.Time) bool {
	return read.IsZero() || now.Sub(read) > 3*max(every, time.Second)
}

// MapStale reports whether the circuits may be others by now.
func (s *Switch) MapStale(now time.Time) bool {
	return s.Status != Up || Stale(s.MapAt, s.MapEvery, now)
}

// PowerStale reports whether the powers may be others by now.
func (s *Switch) PowerStale(now time.Time) bool {
	return s.Status != Up || Stale(s.PowerAt, s.PowerEvery, now)
}

// Fact is something a switch says of itself, for people.
type Fact struct{ Name, Value string }

// Origin is how a circuit came to be there.
type Origin struct {
	Who  string // "us", "run opus-toggle", "others"; "" is not known: it was there before
	ID   int    // of the change in the history, 0 if none
	When time.Time
}

// Drift is a change that was not made here.
type Drift struct {
	At     time.Time
	Change ocs.Change
	Who    string // as the device tells; "" if it does not
	// Away says that it was made while the switch did not answer: by somebody, or by the
	// switch itself when it restarted.
	Away bool
	Raw  string
}

// By says in words whose change it was.
func (d Drift) By() string {
	switch {
	case d.Who != "":
		return d.Who
	case d.Away:
		return "somebody, or a restart,"
	}
	return "somebody else"
}

// Alarm is something a switch has reported.
type Alarm struct {
	At       time.Time
	Severity string
	Port     ocs.Port
	Text     string
}

// Module is a transceiver of a bundle.
type Module struct {
	Name   string // "module 1"
	Status string // "ready, path 1"
	Facts  []Fact // temperature, calibration table and its age
	Heater []Reading
	Tap    []Reading
	// Expires is until when its calibration may be used; zero if that is not known, or for ever.
	Expires time.Time
}

// Reading is a value with a name, for bars.
type Reading struct {
	Name string
	Text string  // with its unit
	Part float64 // of the most there can be, 0 to 1
}

// Carrier is whether a NIC has carrier.
type Carrier string

// The states of a carrier.
const (
	CarrierUnknown Carrier = "unknown"
	CarrierUp      Carrier = "up"
	CarrierDown    Carrier = "down"
)

// NIC is a network interface as it is seen now.
type NIC struct {
	Name     string // "gpu1/ens1f0"
	Host     string
	Tx, Rx   lab.PortRef
	Firmware string // the profile of the lab file

	Watched bool
	Why     string // it is not watched, for people

	// Hears and HeardBy are the NICs whose light comes here, and that this one's goes to;
	// "" if none does.
	Hears, HeardBy string

	Carrier Carrier
	Since   timeline.Interval // of Carrier, on the axis of the marks; zero if never seen to change
	SinceAt time.Time         // the same by the clock, about; zero if never seen to change
	// State is what the firmware says of the link: "up", "down", "polling"; "" if it is
	// not asked.
	State string
	// RxPower is the power that comes to the NIC, where it was measured: at its module, or where
	// the switch lets it go.
	RxPower  ocs.DBm
	RxAt     time.Time // zero if never
	RxSource string    // "module", "switch"
	RxTrail  []Sample  // oldest first

	Flaps   int               // times carrier went since the session began
	Outage  timeline.Interval // how long the last one took, in nanoseconds; zero if none
	OutAt   time.Time         // when it ended
	Traffic string            // "flows", "lost", "late", "" if there is none to see
}

// Sample is one reading of power.
type Sample struct {
	At    time.Time
	Power ocs.DBm
}

// Move is one reconfiguration, done here, by a run, or by somebody else.
type Move struct {
	Number int
	Title  string // what was done: "connect rail0 1>33"
	CLI    string // the same as a command
	By     string // "us", "run opus-toggle", "others"
	// Began is when the command was sent, which is the earliest instant of the first command
	// mark: so an instant t is at that instant plus t less Began on the axis of the marks.
	Began   time.Time
	Running bool
	Phase   string // what is waited for, in words: "light", "carrier of gpu1/ens1f0"

	Marks      []timeline.Mark
	Expected   []timeline.Expectation
	Unresolved []string
	Held       []string
	Reports    map[string]ocs.Report
	Err        error
	ID         []int // changes in the history
}

// Run is an experiment.
type Run struct {
	Path     string
	File     *plan.File
	Plan     *plan.Plan
	ID       string // of the run; "" while it is only planned
	Dir      string
	Progress runner.Progress
	Told     time.Time // when Progress was so
	Err      error
	Ended    bool
	// Stages are the durations measured so far, of points that are finished.
	Stages []StageStat
	// Analysis is there when the run has ended.
	Analysis *analysis.Analysis

	Total time.Duration // about how long all of the plan takes
	Moves []string      // what it will move, in words, by switch
	// Limits are those of the experiment and how it stands with each: so far, or, with an
	// Analysis, in the end.
	Limits []LimitStat
	State  runs.State // what has become of it, once it has Ended
	Began  time.Time  // of this session; zero while it is only planned
	Setup  string     // what the testbed lacks and how it is watched, in words; "" while that is not known
}

// StageStat is the durations from the command to one stage under one condition.
type StageStat struct {
	Condition int
	Label     string // of the condition; "" if there is only one
	Stage     timeline.Stage
	Durations []timeline.Interval // in the order they were measured
	Missing   int                 // expected and not seen

	// Median and P95 are of Durations, with bounds of 95 % confidence that count each
	// reconfiguration once and include what the intervals leave open. They are 0 without
	// any.
	Median, P95 timeline.Estimate
	Moves       int // reconfigurations that Durations are of
}

// Kind is what a line of the log is.
type Kind string

// The kinds of lines.
const (
	Sent     Kind = "sent"
	Received Kind = "received"
	Did      Kind = "did"   // something that was done here, with its command
	Event    Kind = "event" // something happened: drift, a switch lost or back, an alarm
)

// Entry is a line of the log.
type Entry struct {
	N      uint64 // counts up
	At     time.Time
	Kind   Kind
	Switch string // "" if it concerns none
	// Routine is what is read again and again to keep the State true.
	Routine bool
	Raw     string // of Sent and Received: the bytes, secrets masked
	Text    string // what that means, for people; of the others: what happened
	CLI     string // of Did: the command line that does the same
	Bad     bool   // it failed, or is a reason to look
}

// Panic is a panic in force: shutters closed, circuits removed, for a reason.
type Panic struct {
	At     time.Time
	Reason string
	Who    string
	What   string // what was darkened, and what was not, in words
	// Lit says which switches have not said that they are dark, and why: "light may still be
	// on at rail1: not reached: connection refused"; "" when all are dark.
	Lit string
}
