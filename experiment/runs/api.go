package runs

import "time"

// Entry is a line of the list of runs.
type Entry struct {
	ID       string    `json:"run"`
	Name     string    `json:"name"`
	State    State     `json:"state"`
	Created  time.Time `json:"created"`
	Ended    time.Time `json:"ended,omitzero"` // zero while it is not
	Lab      string    `json:"lab"`
	Emulated bool      `json:"emulated"`
	Figure   string    `json:"figure,omitempty"`
	Points   int       `json:"points"`
	Planned  int       `json:"planned"`
	Verdict  string    `json:"verdict,omitempty"`
	Dir      string    `json:"dir"`
}

// Control is what somebody wants of a run that goes on in another process.
type Control string

// The controls.
const (
	Pause    Control = "pause"    // after the point that is under way
	Continue Control = "continue" // after a pause
	Stop     Control = "stop"     // after the point that is under way; finally is run
	Abort    Control = "abort"    // at once; finally is run
)
