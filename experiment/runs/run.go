package runs

import (
	"time"

	"github.com/ocslab/ocslab/experiment/plan"
	"github.com/ocslab/ocslab/linkmon/watch"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/timeline"
)

// Format is the version of a run's directory that this program writes. It reads that and
// all before; a later one is an [ErrNewer].
const Format = 1

// State is what has become of a run.
type State string

// The states of a run.
const (
	Running     State = "running"     // a process holds its lock
	Interrupted State = "interrupted" // it ended without a summary: killed, or stopped; it can be resumed
	Done        State = "done"        // all points are done
	Stopped     State = "stopped"     // somebody stopped or aborted it; it can be resumed
	Failed      State = "failed"      // an error ended it; it can be resumed
)

// Meta says what a run is. It is run.json in its directory, written first, once.
type Meta struct {
	Format   int       `json:"format"`
	ID       string    `json:"run"` // "20261122T101500-opus-night-3f2a"
	Name     string    `json:"name"`
	About    string    `json:"about,omitempty"`
	Created  time.Time `json:"created"`  // wall clock, UTC
	Version  string    `json:"version"`  // of ocslab
	Revision string    `json:"revision"` // it was built from, "" if unknown
	Command  []string  `json:"command"`  // the arguments that began it; holds no secret
	File     string    `json:"file"`     // of the experiment, absolute; "" for a preset
	Lab      string    `json:"lab"`      // name of the lab
	LabPath  string    `json:"lab_path"` // of its file; "" for the built-in testbed
	Emulated bool      `json:"emulated"`
	Figure   string    `json:"figure,omitempty"` // the preset it was begun by
	StateDir string    `json:"state_dir"`        // the history is there
	Mode     string    `json:"mode"`             // what may happen to circuits that are in the way: safe or update
	Rung     string    `json:"rung,omitempty"`   // what emulated NICs are to be; "" is the best there is
}

// Session is one process that worked on a run: the first, and one for each resume.
type Session struct {
	Number   int       `json:"session"` // from 1
	Begun    time.Time `json:"begun"`   // wall clock, UTC
	MonoNS   int64     `json:"mono_ns"` // the same moment on the axis of the marks
	Boot     string    `json:"boot"`    // of the machine: axes of different boots have nothing to do with each other
	Host     string    `json:"host"`
	Kernel   string    `json:"kernel"`
	Version  string    `json:"version"`
	Revision string    `json:"revision"`
	Ended    string    `json:"ended,omitempty"` // why; "" while it goes on or if it was killed
	// Found are the circuits that the run found, which finally restores; only one session
	// has them, the first that could be recorded.
	Found map[string]ocs.Map `json:"found,omitempty"`
}

// Setup is how a testbed was set up: once for each time it was opened.
type Setup struct {
	Session    int      `json:"session"`
	Conditions []int    `json:"conditions"` // measured on it, by number
	Devices    []Device `json:"devices"`
	NICs       []NIC    `json:"nics"`
	Rung       string   `json:"rung,omitempty"` // what emulated NICs are, in words
	Carrier    string   `json:"carrier"`        // how carriers are watched, in words
	PollNS     int64    `json:"poll_ns"`
	PaceNS     int64    `json:"pace_ns"` // of the probe; 0: no traffic
	Missing    []string `json:"missing"` // what is not watched, and why
}

// Device is a switch as it presented itself.
type Device struct {
	Name        string `json:"device"`
	URL         string `json:"url"` // without secrets
	Vendor      string `json:"vendor"`
	Model       string `json:"model"`
	Serial      string `json:"serial"`
	Firmware    string `json:"firmware"`
	Size        string `json:"size"` // "32x32"
	Emulated    bool   `json:"emulated"`
	AveragingNS int64  `json:"averaging_ns"` // of its power monitors; 0: none were read
}

// NIC is a network interface of the lab.
type NIC struct {
	Name     string `json:"nic"` // "gpu1/ens1f0"
	Tx       string `json:"tx"`  // "rail0/1"
	Rx       string `json:"rx"`
	Firmware string `json:"firmware,omitempty"` // the profile of an emulated one, or what the card says
	Driver   string `json:"driver,omitempty"`
}

// Reconfiguration is one move of the sequence, or a null toggle.
type Reconfiguration struct {
	Number    int    `json:"reconfiguration"`
	Point     int    `json:"point"`
	Condition int    `json:"condition"`
	Repeat    int    `json:"repeat"`
	Null      bool   `json:"null,omitempty"`
	Session   int    `json:"session"`
	From      string `json:"from"` // configuration
	To        string `json:"to"`
	// Removed and Added are the circuits that were changed, by switch.
	Removed map[string]ocs.Map `json:"removed,omitempty"`
	Added   map[string]ocs.Map `json:"added,omitempty"`
	Wall    time.Time          `json:"wall"`    // when it began, UTC
	MonoNS  int64              `json:"mono_ns"` // the same on the axis of the marks

	Held       []string `json:"held,omitempty"`       // NICs whose link did not go down
	Unresolved []string `json:"unresolved,omitempty"` // what no mark could be made of, and why
	Readings   int      `json:"readings"`             // of power monitors
	PatienceNS int64    `json:"patience_ns"`          // how long was waited for what did not come
}

// Sample is one reading of a power monitor. Of a long row of equal readings the first
// and the last are kept.
type Sample struct {
	Reconfiguration int     `json:"reconfiguration"`
	Subject         string  `json:"subject"`        // "rail0/33"
	EarliestNS      int64   `json:"earliest_ns"`    // the reading was taken between
	LatestNS        int64   `json:"latest_ns"`      // these
	PowerDBm        float64 `json:"power_dbm"`      // finite; see Dark
	Dark            bool    `json:"dark,omitempty"` // below what the monitor can show; PowerDBm is then left out
}

// Event is something that a reader of the report should know.
type Event struct {
	Kind    string    `json:"event"` // "clock-step", "recovered", "stopped-early", "skipped", "paused", "continued", "hook", "lab-changed", ...
	Session int       `json:"session"`
	Point   int       `json:"point,omitempty"`
	Wall    time.Time `json:"wall"`
	Text    string    `json:"text"` // one sentence
}

// Run is a run as far as it is recorded: finished points only. It is read from its
// directory by [Store.Load], and reading does not disturb who writes.
type Run struct {
	Meta  Meta
	Dir   string
	State State
	File  *plan.File // the experiment as given
	Plan  *plan.Plan
	Lab   []byte // the text of the lab file

	Sessions []Session
	Setups   []Setup
	Done     map[int]bool // finished points, by ID
	Dropped  map[int]bool // points that the stop rule or somebody made unnecessary

	// In order of Number. What follows is of these only.
	Reconfigurations []Reconfiguration
	Marks            []timeline.Mark // merged; texts that are equal share their bytes
	Truth            []timeline.Mark // of an emulated lab
	Expected         []timeline.Expectation
	Notes            []watch.Note
	NoteOf           []int // the reconfiguration of each note
	Samples          []Sample
	Events           []Event

	// Summary is what was written at the end; nil while there is none.
	Summary *Summary
}

// Summary is how a run ended. It is summary.json, written last, by rename.
type Summary struct {
	Format  int       `json:"format"`
	Run     string    `json:"run"`
	State   State     `json:"state"`
	Reason  string    `json:"reason,omitempty"` // why it is not Done
	Ended   time.Time `json:"ended"`
	Points  int       `json:"points"` // finished
	Planned int       `json:"planned"`
	Verdict string    `json:"verdict,omitempty"` // "pass", "fail", "undecided"; "" without limits
	// Restored is whether finally has put the light where it should be; Finally says what
	// went wrong, if anything.
	Restored bool   `json:"restored"`
	Finally  string `json:"finally,omitempty"`
}
