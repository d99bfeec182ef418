package plan

import (
	"fmt"
	"time"

	"github.com/ocslab/ocslab/ocs"
)

// Plan is what a run will do. It is written to the run's directory as JSON and read
// back on resume; Points are then done in this order.
type Plan struct {
	Name       string      `json:"name"`
	Seed       uint64      `json:"seed"`
	Emulated   bool        `json:"emulated"`
	Order      Order       `json:"order"`
	WarmUps    int         `json:"warm_ups"` // laps
	Window     int64       `json:"null_window_ns"`
	Varied     []string    `json:"varied"` // parameters that differ between conditions, in order
	Conditions []Condition `json:"conditions"`
	Points     []Point     `json:"points"` // in the order in which they are run
	// Finally are the maps that the run leaves behind, by switch; nil: as they were.
	Finally map[string]ocs.Map `json:"finally,omitempty"`
	// Exact says that a reconfiguration also removes circuits of other configurations that are in
	// nobody's way; otherwise they stay. Only package sequence makes such plans.
	Exact bool `json:"exact,omitempty"`
}

// GoOn says how to go on with the run of p with that ID when it has ended before its time; restored: its light is as it
// is to be left. What belongs between the steps of a sequence is not stored with it, so that is begun again.
func (p *Plan) GoOn(id string, restored bool) string {
	switch {
	case !p.Exact:
		return fmt.Sprintf("ocslab runs resume %s goes on with it", id)
	case restored:
		return "to do it, begin it again by the command that began it"
	}
	return fmt.Sprintf("ocslab runs finish %s puts the light back, and then it can be begun again", id)
}

// Condition is one choice of all parameters.
type Condition struct {
	Number     int               `json:"condition"` // from 1
	Label      string            `json:"label"`     // "firmware=quick switching=10ms"; what varies, "" if nothing does
	Parameters map[string]string `json:"parameters"`
	Settings   Settings          `json:"settings"` // what ocslab knows of them
	Sequence   []string          `json:"sequence"` // configurations, after ${}
	// Maps are those of Sequence, by switch.
	Maps []map[string]ocs.Map `json:"maps"`
	// Once says that a repeat goes through the sequence from the first configuration to the last,
	// and not back to the first.
	Once bool `json:"once,omitempty"`
	// Setup is equal for conditions that can be measured on one testbed without opening it anew.
	Setup string `json:"setup"`
	// Expected is about how long one reconfiguration takes, dwell included, and Basis on
	// what that rests.
	Expected time.Duration `json:"expected_ns"`
	Basis    string        `json:"expected_basis"`
}

// Settings are the parameters that ocslab knows, read.
type Settings struct {
	Firmware  string         `json:"firmware,omitempty"`     // of all emulated NICs; "": that of the lab
	Model     string         `json:"model,omitempty"`        // of all emulated switches; "": that of the lab
	Ack       string         `json:"ack,omitempty"`          // before or after; "": that of the lab
	Switching *time.Duration `json:"switching_ns,omitempty"` // of all emulated switches; nil: that of the lab
	Dwell     time.Duration  `json:"dwell_ns"`               // rest before each reconfiguration
	Pace      time.Duration  `json:"pace_ns"`                // between two packets of a flow; 0: the default
}

// Point is the unit of order, of progress, and of resuming: one repeat of a condition, or
// a null toggle.
type Point struct {
	// ID is from 1, in the order conditions and repeats are written, so that it does not
	// depend on the order in which points are run. Null toggles come last.
	ID        int  `json:"point"`
	Condition int  `json:"condition"` // its Number; of a null toggle, that whose first configuration is held
	Repeat    int  `json:"repeat"`    // from 1
	Null      bool `json:"null,omitempty"`
	// First is the number of its first reconfiguration; the others follow. All are
	// distinct in a run, and from 1.
	First int `json:"first_reconfiguration"`
}

// Condition returns the condition of that number, or nil if there is none, or no plan.
func (p *Plan) Condition(number int) *Condition {
	if p == nil || number < 1 || number > len(p.Conditions) {
		return nil
	}
	return &p.Conditions[number-1]
}

// Reconfigurations is how many reconfigurations the point is made of: one for each
// configuration of the sequence of its condition c, one less if that is gone through once, or the
// one of a null toggle.
func (p Point) Reconfigurations(c *Condition) int {
	switch {
	case p.Null:
		return 1
	case c.Once:
		return len(c.Sequence) - 1
	}
	return len(c.Sequence)
}

// Words are the words of the command, with each ${name} replaced by the value of that
// parameter.
func (h Hook) Words(params map[string]string) []string {
	words := make([]string, len(h.Run))
	for i, w := range h.Run {
		words[i] = substitute(w, params)
	}
	return words
}
