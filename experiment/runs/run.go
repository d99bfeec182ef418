package runs

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ocslab/ocslab/calibration/store"
	"github.com/ocslab/ocslab/calibration/timing"
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
	// Boots tell the boots of hosts that are watched by an agent from others, by host, as far as they
	// say: a clock that was calibrated in another has begun anew since.
	Boots map[string]string `json:"boots,omitempty"`
	// Calibrations are those that there were of the lab, its switches and its hosts. Runs of
	// earlier versions, and set-ups of which there was none, have none.
	Calibrations []Calibration `json:"calibrations,omitempty"`
}

// Calibration is one as it stood when a testbed was set up. What a run needs of it is here, so
// that the run can be read where the calibration is not.
type Calibration struct {
	Kind     store.Kind `json:"calibration"`
	Subject  string     `json:"subject"` // the lab, a switch or a host
	Version  int        `json:"version"`
	Made     time.Time  `json:"made"`
	Expires  time.Time  `json:"expires"`
	Complete bool       `json:"complete"` // nothing was missing in it
	// Stale says why it was too old, in words that follow "it"; "" if it was not.
	Stale string `json:"stale,omitempty"`
	// Changed is what was no longer as it was calibrated. What it says then holds for something
	// else, and Floors are not used.
	Changed []string `json:"changed,omitempty"`
	// Floors are what the set-up cannot resolve, of a timing calibration.
	Floors []timing.Floor `json:"floors,omitempty"`
}

// String names a calibration: "timing #3 of opus-testbed".
func (c Calibration) String() string {
	return fmt.Sprintf("%s #%d of %s", c.Kind, c.Version, c.Subject)
}

// Remark says what is wrong with a calibration, in one sentence; "" if nothing is.
func (c Calibration) Remark() string {
	why := slices.Clone(c.Changed)
	if c.Stale != "" {
		why = append([]string{"it " + c.Stale}, why...)
	}
	if len(why) == 0 {
		return ""
	}
	text := fmt.Sprintf("%v does not hold as it is: %s", c, strings.Join(why, "; "))
	if c.Kind == store.Timing && len(c.Changed) > 0 {
		text += ". Its floors are not used"
	}
	return text + ": ocslab calibrate " + string(c.Kind) + " makes a new one"
}

// Timing is the timing calibration that holds for a set-up; false when there is none, or when the
// set-up has changed since. It may be stale.
func (s Setup) Timing() (Calibration, bool) {
	for _, c := range s.Calibrations {
		if c.Kind == store.Timing && len(c.Changed) == 0 {
			return c, true
		}
	}
	return Calibration{}, false
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
	Busy       []string `json:"busy,omitempty"`       // why it cannot be trusted: the machine was too busy
	Dark       []string `json:"dark,omitempty"`       // ports, "rail0/37", that stayed dark though their circuit has input light
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
	Kind    string    `json:"event"` // "clock", "clock-step", "recovered", "stopped-early", "skipped", "paused", "continued", "hook", "lab-changed", ...
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
