package wiring

import (
	"errors"
	"strings"
	"time"

	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/ocs"
)

// ErrMute is why transmit fibres cannot be told: no NIC can send frames.
var ErrMute = errors.New("no frames can be sent")

// ErrDark: no light enters the switches at any port that may be used.
var ErrDark = errors.New("no light enters the switches at any port that may be used: switch the NICs' transmitters on first")

// End is one of the two fibres of a NIC.
type End string

// The ends.
const (
	Rx End = "rx" // from an egress port of a switch to the NIC
	Tx End = "tx" // from the NIC to an ingress port
)

// Verdict is what is known of where a fibre is.
type Verdict string

// The verdicts.
const (
	AsClaimed     Verdict = "as claimed"    // seen where the lab file says
	Elsewhere     Verdict = "elsewhere"     // seen at another port
	Dead          Verdict = "dead"          // no light at all, at none of the ports that were tried
	Ambiguous     Verdict = "ambiguous"     // at one of Candidates
	Contradictory Verdict = "contradictory" // what was seen cannot be; see Why
	NotFound      Verdict = "not found"     // at none of the ports that were tried, and others were left out
	Unverified    Verdict = "unverified"    // could not be looked at; see Why
)

// How says how a fibre was told.
type How string

// The ways.
const (
	ByLight       How = "light"       // the module's received power followed the port's word
	ByCarrier     How = "carrier"     // so did the carrier; the module could not be read
	ByName        How = "name"        // frames with its name came in there
	ByElimination How = "elimination" // it is the only one left for this port, and this the only port left for it
)

// Fibre is what is known of one fibre of a NIC.
type Fibre struct {
	NIC     string // full name
	End     End
	Claimed lab.PortRef // by the lab file
	Found   lab.PortRef // the zero PortRef unless Verdict is AsClaimed or Elsewhere
	Verdict Verdict
	How     How
	Why     string // one sentence, if there is something to say

	// Candidates are the ports it may be at, when it was not found.
	Candidates []lab.PortRef
	// Swapped are the NICs whose places are exchanged, this one's first: each is where the
	// next is claimed to be, and the last where the first is. Empty: there is no such circle.
	Swapped []string
	// At is the NIC that the lab file has at Found, "" for none.
	At string

	// Bits is what the NIC saw, one of "0", "1" and "?" for each step; of rx only.
	Bits string

	// Loss of the fibre, with what is at its ends, and by how much it exceeds the median of
	// its peers. Valid if Compared; Excess needs at least one peer, which Peers counts.
	Loss, Excess ocs.DB
	Measured     bool // Loss is valid
	Peers        int
	Dirty        bool // Excess is more than the limit, or Loss more than that and [ModuleError]
}

// OK reports whether the fibre is where the lab file says, seen there, and clean.
func (f Fibre) OK() bool { return f.Verdict == AsClaimed && f.How != ByElimination && !f.Dirty }

// State is the verdict in words, "elsewhere, dirty".
func (f Fibre) State() string {
	s := string(f.Verdict)
	if f.How == ByElimination {
		s += ", by elimination"
	}
	if f.Dirty {
		s += ", dirty"
	}
	return s
}

// PortNote is something about a port of a switch.
type PortNote struct {
	Port   lab.PortRef
	Egress bool    // it is about light that leaves there
	Power  ocs.DBm // that comes in there, of strays
	Why    string
}

// Step is one map that was lit for the words.
type Step struct {
	Number int // from 1, of Of
	Of     int
	Bit    int // which bit of the words, from 0; or one of BitConfirm, BitNames and BitLight
	Part   int // from 1, of Parts, where there is too little light for a step at once
	Parts  int
	Lit    int // egress ports
	Repeat bool
	Took   time.Duration
	Unsure []string // NICs whose reading was neither light nor dark
}

// What a [Step] is for, beside a bit.
const (
	BitConfirm = -1
	BitNames   = -2
	BitLight   = -3 // finds out which ingress ports without a monitor have light
)

// Result is what was found.
type Result struct {
	Fibres []Fibre // the NICs in the order of the lab file, rx before tx
	// Strays are ingress ports with light that belongs to no NIC.
	Strays []PortNote
	// Faults are ports that did not do as they were told.
	Faults []PortNote
	// LeftOut are the ports that were not tried, and why.
	LeftOut []PortNote
	// Notes are what else is to be known, a sentence each.
	Notes []string

	Ports   int // egress ports that got a word
	Sources int // ingress ports with light
	Bits    int // of each word
	Weight  int // how many of them are ones
	Maps    []Step
	// Information is the least that would tell Ports apart: the binary logarithm, rounded up.
	Information int
	Limit       ocs.DB // over the peers from which a fibre is dirty
	Accuracy    ocs.DB // of the monitors, that the losses are to be read with: plus or minus
	// Complete is false if it ended early; fibres are then what was known.
	Complete bool
}

// OK reports whether all is as the lab file says.
func (r *Result) OK() bool {
	for _, f := range r.Fibres {
		if !f.OK() {
			return false
		}
	}
	return r.Complete && len(r.Strays) == 0 && len(r.Faults) == 0
}

// Count returns how many maps were lit to read words, to confirm, and for names. All there were,
// with those to find light where there is no monitor, is len(r.Maps).
func (r *Result) Count() (words, confirm, names int) {
	for _, s := range r.Maps {
		switch s.Bit {
		case BitLight:
		case BitConfirm:
			confirm++
		case BitNames:
			names++
		default:
			words++
		}
	}
	return words, confirm, names
}

// joinPorts is ports for people.
func joinPorts(ports []lab.PortRef) string {
	s := make([]string, len(ports))
	for i, p := range ports {
		s[i] = p.String()
	}
	return strings.Join(s, ", ")
}
