package store

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ocslab/ocslab/ocs"
)

// Format is the version of the form of the files that this program writes. It reads that and
// all before; a later one is an [ErrNewer].
const Format = 1

// Kind is what was calibrated.
type Kind string

// The kinds there are.
const (
	Loss   Kind = "loss"   // insertion loss of the paths of a switch; the subject is the switch
	Clock  Kind = "clock"  // offset and rate of a host's clock; the subject is the host
	Timing Kind = "timing" // what a set-up cannot resolve; the subject is the lab
)

// Kinds returns all kinds.
func Kinds() []Kind { return []Kind{Loss, Clock, Timing} }

// ParseKind reads the name of a kind.
func ParseKind(name string) (Kind, error) {
	if k := Kind(name); slices.Contains(Kinds(), k) {
		return k, nil
	}
	return "", fmt.Errorf("no kind of calibration %.40q is kept: want %v", name, Kinds())
}

// DefaultExpiry is how long a calibration of a kind is good if nobody says otherwise.
//
// A loss map is good for 90 days: mirrors hold for years, but connectors get dirty and fibres
// are bent by people, which no fingerprint of the set-up shows. A clock is good for an
// hour: what temperature does to a crystal, some 0.1 to 1 ppm in a machine room, is by then as
// much as 3.6 ms. Timing is good for 30 days: kernels and firmware are compared anyway, and
// what creeps in beside them, as other load on the machine, does so in weeks.
func DefaultExpiry(k Kind) time.Duration {
	switch k {
	case Clock:
		return time.Hour
	case Timing:
		return 30 * 24 * time.Hour
	default:
		return 90 * 24 * time.Hour
	}
}

// Record is one calibration.
type Record struct {
	Kind    Kind      `json:"calibration"`
	Subject string    `json:"subject"` // what it is of: the name of a switch, a lab or a host
	Version int       `json:"version"` // 1, 2, 3 ... of its kind, lab and subject
	Made    time.Time `json:"made"`    // wall clock, UTC
	Expires time.Time `json:"expires"` // likewise; from then on it is stale

	Lab      string `json:"lab"`              // the lab's name
	Device   string `json:"device,omitempty"` // what the subject is, in words: "Polatis 6000 32x32, serial 1234"
	Program  string `json:"program"`          // that made it: "ocslab v0.9.0"
	Emulated bool   `json:"emulated"`         // it is of an emulated lab, and says nothing of the real one
	Complete bool   `json:"complete"`         // false: something is missing, see the data

	// Setup are the things whose change makes it worthless, by what they are; see
	// [Record.Changed].
	Setup map[string]string `json:"setup,omitempty"`

	// Data is what was found, one JSON object whose form is that of the package of its kind.
	Data json.RawMessage `json:"data"`
}

// Stale reports whether a calibration is too old to be used at a time, and why in words that
// follow "it": "expired 3 days ago". One that was made later than now is stale, too: a clock is wrong
// that both times come from.
func (r Record) Stale(now time.Time) (why string, stale bool) {
	const skew = time.Minute // between machines that share a state directory
	switch {
	case r.Made.Sub(now) > skew:
		return fmt.Sprintf("was made %s from now: one of the clocks is wrong", Age(r.Made.Sub(now))), true
	case !now.Before(r.Expires):
		return fmt.Sprintf("expired %s ago", Age(now.Sub(r.Expires))), true
	}
	return "", false
}

// Changed says what is no longer as it was when the calibration was made, one phrase for each
// thing, sorted: "rail0 firmware was 6.7.3.9, is 6.8.0.1". Things that only one of the two knows,
// or knows as "", cannot be compared and are left out.
func (r Record) Changed(now map[string]string) []string {
	var changed []string
	for _, what := range slices.Sorted(maps.Keys(r.Setup)) {
		was, is := r.Setup[what], now[what]
		if was != "" && is != "" && was != is {
			changed = append(changed, fmt.Sprintf("%s was %s, is %s", what, was, is))
		}
	}
	return changed
}

// OfSwitch is what a calibration depends on of a switch, for [Record.Setup]: its model, serial number
// and firmware, as far as the device says.
func OfSwitch(name string, id ocs.Identity) map[string]string {
	return known(name, map[string]string{"model": id.Model, "serial": id.Serial, "firmware": id.Firmware})
}

// OfHost is what a calibration depends on of a machine, for [Record.Setup]: its kernel, and for what
// does not outlive a reboot, as the offset of a clock, the ID of the boot. What is "" is left out.
func OfHost(host, kernel, boot string) map[string]string {
	return known(host, map[string]string{"kernel": kernel, "boot": boot})
}

func known(name string, of map[string]string) map[string]string {
	setup := map[string]string{}
	for what, value := range of {
		if value != "" {
			setup[name+" "+what] = value
		}
	}
	return setup
}

// Age is a time in the words of people: "3 days", "2 hours", "40 seconds", "less than a second". It is rounded down.
func Age(d time.Duration) string {
	count := func(n int64, unit string) string {
		if n != 1 {
			unit += "s"
		}
		return fmt.Sprintf("%d %s", n, unit)
	}
	switch d = max(d, 0); {
	case d >= 48*time.Hour:
		return count(int64(d/(24*time.Hour)), "day")
	case d >= 2*time.Hour:
		return count(int64(d/time.Hour), "hour")
	case d >= 2*time.Minute:
		return count(int64(d/time.Minute), "minute")
	case d >= time.Second:
		return count(int64(d/time.Second), "second")
	default:
		return "less than a second"
	}
}

// check says why a record cannot be kept.
func (r Record) check() error {
	if _, err := ParseKind(string(r.Kind)); err != nil {
		return err
	}
	switch data := bytes.TrimSpace(r.Data); {
	case r.Subject == "":
		return errors.New("it does not say what it is of")
	case r.Version < 1:
		return fmt.Errorf("version %d: they count from 1", r.Version)
	case r.Made.IsZero() || r.Expires.IsZero():
		return errors.New("it does not say when it was made and until when it is good")
	case !r.Expires.After(r.Made):
		return fmt.Errorf("it expires at %s and was made at %s", r.Expires.Format(time.RFC3339), r.Made.Format(time.RFC3339))
	case len(data) == 0 || data[0] != '{' || !json.Valid(data):
		return errors.New("its data is no JSON object")
	}
	return nil
}

// file is the form of a record on disk.
type file struct {
	Format int `json:"format"`
	Record
}

// parse reads the content of a file.
func parse(text []byte) (Record, error) {
	var f file
	if err := json.Unmarshal(text, &f); err != nil {
		return Record{}, err
	}
	switch {
	case f.Format < 1:
		return Record{}, errors.New(`it has no "format"`)
	case f.Format > Format:
		return Record{}, fmt.Errorf("%w: its format is %d, this program reads up to %d", ErrNewer, f.Format, Format)
	}
	return f.Record, f.check()
}

// newestFirst is the order of lists: by when they were made, and where that is equal by all
// that names them.
func newestFirst(a, b Record) int {
	return cmp.Or(b.Made.Compare(a.Made), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Lab, b.Lab),
		cmp.Compare(a.Subject, b.Subject), cmp.Compare(b.Version, a.Version))
}
