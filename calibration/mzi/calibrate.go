package mzi

import (
	"fmt"
	"time"

	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// Scope is which procedures are done.
type Scope uint8

const (
	All      Scope = iota // sweep, coupling, operating point, verification; the table is loaded
	Sweep                 // sweep and fit only; nothing is loaded
	Coupling              // as All, with the phases and slopes of the table in the module
	Verify                // the table in the module is verified; nothing is loaded
	TrimOnly              // [Trim], while the module carries light
)

var scopeNames = [...]string{"all", "sweep", "coupling", "verify", "trim"}

// String is the scope in small letters.
func (s Scope) String() string {
	if int(s) < len(scopeNames) {
		return scopeNames[s]
	}
	return fmt.Sprintf("scope %d", uint8(s))
}

// ParseScope is the inverse of [Scope.String].
func ParseScope(text string) (Scope, error) {
	for i, name := range scopeNames {
		if text == name {
			return Scope(i), nil
		}
	}
	return 0, fmt.Errorf("scope %q: want all, sweep, coupling, verify or trim", text)
}

// Options say what [Calibrate] does. The zero value calibrates all of a module, for a year,
// and replaces its table.
type Options struct {
	Scope   Scope
	Lanes   uint8            // whose elements S1 and S2, bit 0 is lane 1; 0: all. Others, and the loop network then, stay as the module's table has them
	Limits  Limits           // of verification
	Expires time.Duration    // of the table, from now; 0: [DefaultExpiry]
	Merge   bool             // keep what the module's table says of other temperatures
	DryRun  bool             // load nothing: the times of switches are not verified then
	Trim    TrimOptions      // of scope TrimOnly
	Now     func() time.Time // nil: time.Now
	// Soak is the longest wait for the case to come to a steady temperature, each time; 0:
	// 20 s, negative: none.
	Soak time.Duration
}

// Report is what a calibration has done and found. Its JSON has no NaN and no infinity.
type Report struct {
	Serial      string           `json:"serial"`
	Scope       string           `json:"scope"`
	Made        time.Time        `json:"made"`
	Celsius     float64          `json:"temperature_celsius"` // of the case, where the figures belong to
	Fits        []SweepFit       `json:"fits,omitempty"`
	Coupling    *CouplingFigures `json:"coupling,omitempty"`
	Operating   []OperatingPoint `json:"operating_points,omitempty"`
	Paths       []PathFigure     `json:"paths,omitempty"`
	Loop        []LoopFigure     `json:"loop,omitempty"`
	Changes     []ChangeFigure   `json:"changes,omitempty"`
	Failures    []string         `json:"failures,omitempty"` // of verification
	Trim        *TrimReport      `json:"trim,omitempty"`
	Table       *ocst.Table      `json:"-"` // made, or verified
	Version     uint32           `json:"table_version,omitempty"`
	Expires     *time.Time       `json:"table_expires,omitempty"`
	Loaded      bool             `json:"loaded"` // the module uses Table
	Readings    int              `json:"reads"`  // transactions with the module
	Writes      int              `json:"writes"`
	TookSeconds float64          `json:"took_s"`
	WaitSeconds float64          `json:"waited_s"` // of it, for heaters to settle
}
