package plan

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/ocslab/ocslab/internal/strictyaml"
	"github.com/ocslab/ocslab/timeline"
)

// Wait is what ends a reconfiguration: text "settled" (light), "carrier", "traffic", or a
// time after the acknowledgement such as "2s".
type Wait struct {
	Until Until
	For   time.Duration // of UntilFixed
}

// Until is a kind of [Wait].
type Until string

// The kinds of Wait.
const (
	UntilSettled Until = "settled" // all light has settled
	UntilCarrier Until = "carrier" // and all links are up
	UntilTraffic Until = "traffic" // and traffic flows: all that is watched has come back
	UntilFixed   Until = "fixed"   // a fixed time
)

// UnmarshalText reads the text form.
func (w *Wait) UnmarshalText(text []byte) error {
	words := []string{string(UntilSettled), string(UntilCarrier), string(UntilTraffic)}
	if slices.Contains(words, string(text)) {
		*w = Wait{Until: Until(text)}
		return nil
	}
	d, err := time.ParseDuration(string(text))
	switch {
	case err != nil:
		return fmt.Errorf("want settled, carrier, traffic, or a time such as 2s, found %.60q%s", text, strictyaml.DidYouMean(string(text), words))
	case d <= 0 || d > longest:
		return fmt.Errorf("want a time above zero, up to %v, found %v", longest, d)
	}
	*w = Wait{UntilFixed, d}
	return nil
}

// String returns the text form.
func (w Wait) String() string {
	if w.Until == UntilFixed {
		return w.For.String()
	}
	return string(w.Until)
}

// MarshalText returns the text form; it never fails.
func (w Wait) MarshalText() ([]byte, error) { return []byte(w.String()), nil }

// waits is what ends a reconfiguration of the file: nil is all that is watched.
func (f *File) waits() Wait {
	if f != nil && f.Wait != nil {
		return *f.Wait
	}
	return Wait{Until: UntilTraffic}
}

// after reports whether a reconfiguration may end before stage is reached.
func (w Wait) after(stage timeline.Stage) bool {
	later := map[timeline.Stage]int{timeline.Firmware: 1, timeline.CarrierUp: 1, timeline.Traffic: 2}
	ends := map[Until]int{UntilSettled: 0, UntilCarrier: 1}
	end, ok := ends[cmp.Or(w.Until, UntilTraffic)]
	return ok && later[stage] > end
}
