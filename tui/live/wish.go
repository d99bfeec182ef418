package live

import (
	"errors"
	"time"

	"github.com/ocslab/ocslab/ocs"
)

// Errors of changes; test with errors.Is. Beside them are those of package ocs.
var (
	// ErrReadOnly: the session is for reading, and sends nothing that changes anything.
	ErrReadOnly = errors.New("read-only: nothing was sent")
	// ErrChanged: the switch holds something else than what was looked at, a panic was called
	// since, or the lab file was read anew. Nothing was sent to that switch.
	ErrChanged = errors.New("the switch has changed since the preview")
	// ErrBusy: another change is being sent, or a run has the switches. Nothing was sent.
	ErrBusy = errors.New("busy")
	// ErrNothing: there is nothing to undo, redo, lift or disconnect.
	ErrNothing = errors.New("nothing to do")
)

// Verb is what is wished for.
type Verb string

// The verbs.
const (
	Connect    Verb = "connect"    // Switch, Map
	Disconnect Verb = "disconnect" // Switch, Ports
	Link       Verb = "link"       // NICs: two
	Unlink     Verb = "unlink"     // NICs: one or more
	Configure  Verb = "configure"  // Configuration of the lab
	Restore    Verb = "restore"    // File: a plan file or a snapshot
	Undo       Verb = "undo"
	Redo       Verb = "redo"
	PanicNow   Verb = "panic" // Reason
	Lift       Verb = "lift"
)

// Wish is a change that somebody would like, before it is known what that comes to.
type Wish struct {
	Verb          Verb
	Switch        string
	Map           ocs.Map
	Ports         []ocs.Port
	NICs          []string
	Configuration string
	File          string
	Reason        string
	Policy        ocs.Policy // "" is Safe; of Connect, Link, Configure and Restore
}

// Preview is what a wish comes to now. Nothing has been sent.
type Preview struct {
	Wish  Wish
	Title string   // the wish in words
	CLI   []string // the commands that do the same
	At    time.Time
	Parts []Part // by switch, those where something changes or is refused
	// Panic is the number of the one panic that an undo lifts or a redo calls again; 0 if it
	// is about none, or about all.
	Panic int

	// Err is why it cannot be done, nil if it can; then Apply does it. It matches the errors
	// of package ocs, ErrReadOnly, ErrBusy or ErrNothing.
	Err error

	basis *basis // what it rests on; nil of one that no Session has made
}

// Empty reports whether everything is as wished already. An undo of which nothing is left is
// not empty: applying it takes the change out of the way of the next undo. Neither is a panic
// of which a switch has not said that it is dark.
func (p Preview) Empty() bool {
	for _, x := range p.Parts {
		if !x.Change.Empty() || len(x.Shut) > 0 || len(x.Unshut) > 0 || x.Undo != 0 || x.Silent {
			return false
		}
	}
	return p.Err == nil && p.Panic == 0
}

// Part is what a wish comes to on one switch.
type Part struct {
	Switch string
	Have   ocs.Map // what it held when it was looked at
	Change ocs.Change
	Shut   []ocs.Port // shutters to close, and to open
	Unshut []ocs.Port
	Keep   ocs.Map // what was wished for and is there already
	Undo   int     // the change in the history that is taken back, 0 if none
	Err    error   // why this switch refuses

	Dark    []Ends // circuits whose light goes away
	Lit     []Ends // circuits that get light
	Foreign []Ends // of Dark, those that are neither wished away nor made by us: taken over
	Risks   []string
	// Outage is how long light will be away, and LinkUp how long the links behind it, as
	// far as that can be told; 0 is not known.
	Outage, LinkUp time.Duration
	Basis          string // what that rests on, for people
	Stale          bool   // the switch did not answer; Have is what it said last
	Silent         bool   // of a panic: the switch did not answer, and is tried nevertheless
}

// Ends is a circuit with what hangs on it.
type Ends struct {
	Circuit  ocs.CrossConnect
	From, To string // NICs, or labels of ports; "" if nothing is known there
	InPower  ocs.DBm
	HasPower bool
	Origin   Origin
	Traffic  bool // packets are flowing through it now
}

// Outcome is what became of a change.
type Outcome struct {
	Title   string
	Text    string                // one sentence for people
	Reports map[string]ocs.Report // by switch
	ID      []int                 // in the history
	Move    int                   // number of the Move that measures it, 0 if none does
	Err     error
}
