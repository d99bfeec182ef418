// Package panics is the record of panics in a state directory: who called each, why, what it has darkened on which
// switch, and what that keeps from getting light. Package blackout darkens and gives back.
//
// # Files
//
// panic.json holds one line: a JSON object with "v", the version of its form, "calls", the panics that are remembered,
// and "crc", a checksum as lines of the history have. It is replaced as a whole, under the lock on panic.lock. Version
// 1 had no checksum. A file that is damaged, or of a version above 2, is left alone.
//
// A panic that cannot wait for the lock, or for which panic.json cannot be read or written, has a file of its own,
// "panic-20260102T030405.000000000-4711.json" with its time and process, of the same form. It needs no lock, as only
// that process writes it. Readers merge all files; the next change of panic.json takes the others in and removes them.
package panics

import (
	"os"
	"os/user"
	"slices"
	"strings"
	"time"

	"github.com/ocslab/ocslab/lab/history"
	"github.com/ocslab/ocslab/ocs"
)

// State is what became of a switch.
type State string

// The states. IsDark is a switch on which no light of the lab is left but what its note says.
// IsAsked is one that was asked to go dark, and has no outcome on record.
const (
	IsAsked  State = "asked"
	IsDark   State = "dark"
	IsFailed State = "failed"
	IsLifted State = "lifted"
)

// Call is one panic: who called it, why, and what it has darkened.
type Call struct {
	N      int       `json:"n"`  // from 1
	At     time.Time `json:"at"` // its place among the changes of the history
	Who    string    `json:"who"`
	Reason string    `json:"reason"`
	Lifted time.Time `json:"lifted,omitzero"` // zero while it is in force
	// Again says that it was called once more after it had been lifted, in its old place.
	Again bool `json:"again,omitempty"`
	// Round counts how often it was called again, and Rev how often its program has written it since: of two records
	// of one panic, that with more is the newer.
	Round int    `json:"round,omitempty"`
	Rev   int    `json:"rev,omitempty"`
	Dark  []Dark `json:"dark"`
	// Changes are the changes in the history that it has made.
	Changes []int `json:"changes,omitempty"`

	file string // of its own, see [Spill]; "" for panic.json
}

// Dark is what a panic has darkened on one switch, or was about to. Closed are also shutters
// that another panic in force had closed before: they open when both are lifted. It is empty,
// and Removed too, when that one had left nothing to do.
type Dark struct {
	Switch  string     `json:"switch"` // name in the lab
	Device  string     `json:"device"` // as in the history
	Closed  []ocs.Port `json:"closed,omitempty"`
	Removed ocs.Map    `json:"removed,omitzero"`
	Change  int        `json:"change,omitempty"` // in the history, that removed these; 0 if not known
	Lifted  bool       `json:"lifted,omitempty"`
	// State says what became of it: IsDark, IsFailed, or IsAsked as long as that is not known.
	// Files of older versions do not have it, which is read as IsAsked.
	State State  `json:"state,omitempty"`
	Why   string `json:"why,omitempty"` // why it failed: "not reached: connection refused"
}

// Became sets what became of a switch.
func (d *Dark) Became(s State, why string) { d.State, d.Why = s, why }

// Now is what is known of the switch: IsDark, IsFailed or IsAsked.
func (d Dark) Now() State {
	if d.State == IsDark || d.State == IsFailed {
		return d.State
	}
	return IsAsked
}

// What says for people what is known of the switch, without its name; "" of one on which
// another panic had left nothing to do.
func (d Dark) What() string {
	var did, asked []string
	if len(d.Closed) > 0 {
		ports := ocs.FormatPorts(d.Closed)
		did, asked = append(did, "shutters of "+ports+" closed"), append(asked, "close the shutters of "+ports)
	}
	if d.Removed.Len() > 0 {
		did, asked = append(did, d.Removed.String()+" removed"), append(asked, "remove "+d.Removed.String())
	}
	switch d.Now() {
	case IsDark:
		return strings.Join(did, ", ")
	case IsFailed:
		return d.Why + "; its light may still be on"
	}
	if len(asked) == 0 {
		return ""
	}
	return "asked to " + strings.Join(asked, " and ") + ", and has not confirmed that; its light may still be on"
}

// On returns what is dark on a device, and whether anything is.
func (c Call) On(device string) (Dark, bool) {
	i := slices.IndexFunc(c.Dark, func(d Dark) bool { return d.Device == device && !d.Lifted })
	if i < 0 {
		return Dark{}, false
	}
	return c.Dark[i], true
}

// What says for people what a panic has darkened, and what it has not.
func (c Call) What() string {
	var parts []string
	for _, d := range c.Dark {
		if text := d.What(); text != "" && !d.Lifted {
			parts = append(parts, d.Switch+": "+text)
		}
	}
	return strings.Join(parts, "; ")
}

// Lit are the switches of which it is not known that they are dark, in order of names.
func (c Call) Lit() (switches []string) {
	for _, d := range c.Dark {
		if !d.Lifted && d.Now() != IsDark {
			switches = append(switches, d.Switch)
		}
	}
	return switches
}

// Device returns the record of a device, to be changed; it adds one if there is none.
func (c *Call) Device(switchName, device string) *Dark {
	find := func(d Dark) bool { return d.Device == device && !d.Lifted }
	i := slices.IndexFunc(c.Dark, find)
	if i < 0 {
		c.Dark = append(c.Dark, Dark{Switch: switchName, Device: device})
		slices.SortFunc(c.Dark, func(a, b Dark) int { return strings.Compare(a.Switch, b.Switch) })
		i = slices.IndexFunc(c.Dark, find)
	}
	return &c.Dark[i]
}

// Prune drops a device on which nothing came to be dark.
func (c *Call) Prune(device string) {
	c.Dark = slices.DeleteFunc(c.Dark, func(d Dark) bool {
		return d.Device == device && len(d.Closed) == 0 && d.Removed.Len() == 0
	})
}

// Made reports whether a change of the history is one that the panic has made. A program
// that was killed may not have come to write down which it was: then it is the one that
// removes just that, since then.
func (c Call) Made(e history.Entry) bool {
	if slices.Contains(c.Changes, e.ID) {
		return true
	}
	return slices.ContainsFunc(c.Dark, func(d Dark) bool {
		return d.Change == 0 && d.Device == e.Device && d.Removed.Len() > 0 && e.UndoOf == 0 &&
			e.Change.Add.Len() == 0 && e.Change.Remove.Equal(d.Removed) && !e.Began.Before(c.At)
	})
}

// Me says who runs this program: "alice@lab1".
func Me() string {
	name := ""
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if name == "" {
		name = os.Getenv("USER")
	}
	if name == "" {
		name = "somebody"
	}
	if host, err := os.Hostname(); err == nil {
		name += "@" + host
	}
	return name
}
