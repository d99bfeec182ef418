package emulator

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// FaultKind is what goes wrong with a command on the wire. Not every protocol
// has every kind; what a front end does not know strikes nobody.
type FaultKind string

const (
	FaultDeny  FaultKind = "deny"  // refused; has no effect
	FaultLose  FaultKind = "lose"  // has no effect, and is never answered
	FaultHang  FaultKind = "hang"  // takes effect, but is never answered
	FaultClose FaultKind = "close" // takes effect; the session is closed in mid-reply
	FaultTag   FaultKind = "ctag"  // takes effect; the reply carries somebody else's CTAG or message-id
	FaultFlood FaultKind = "flood" // takes effect; 10 MB without an end follow
	FaultTwice FaultKind = "twice" // takes effect; the reply is sent twice
	FaultShred FaultKind = "shred" // takes effect; the reply comes in pieces (and NETCONF chunks) of 1 to 7 bytes
)

var faultKinds = []FaultKind{FaultDeny, FaultLose, FaultHang, FaultClose, FaultTag, FaultFlood, FaultTwice, FaultShred}

// Fault makes commands go wrong.
type Fault struct {
	Kind FaultKind
	// Verb is the command it strikes, in capitals: "ENT-PATCH" in TL1,
	// "OXC.SWIT.CONN.ADD" in SCPI (short forms, dots for colons),
	// "EDIT-CONFIG" in NETCONF; "*" is any.
	Verb  string
	After int // commands of that code that are spared first
	Times int // how many it strikes then; 0 is all
}

// ParseFault reads "KIND:VERB", "KIND:VERB:TIMES" or "KIND:VERB:TIMES:AFTER",
// such as "close:ENT-PATCH:1".
func ParseFault(s string) (Fault, error) {
	parts := strings.Split(s, ":")
	f := Fault{Kind: FaultKind(parts[0])}
	if !slices.Contains(faultKinds, f.Kind) || len(parts) < 2 || len(parts) > 4 || parts[1] == "" {
		return Fault{}, fmt.Errorf("fault %q: want KIND:VERB[:TIMES[:AFTER]] with KIND one of %v", s, faultKinds)
	}
	f.Verb = strings.ToUpper(parts[1])
	for i, into := range []*int{&f.Times, &f.After} {
		if len(parts) > 2+i {
			n, err := strconv.Atoi(parts[2+i])
			if err != nil || n < 0 {
				return Fault{}, fmt.Errorf("fault %q: %q is not a count", s, parts[2+i])
			}
			*into = n
		}
	}
	return f, nil
}

// Faults is a list of faults; the first that fits a command strikes. The zero
// value has none.
type Faults struct {
	mu   sync.Mutex // guards list and what its elements count
	list []*faultState
}

type faultState struct {
	Fault
	seen int
}

// Add adds a fault to the end.
func (fs *Faults) Add(f Fault) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.list = append(fs.list, &faultState{Fault: f})
}

// Next returns the fault that strikes a command, which has no Kind if none does.
// The verb is in the form of Fault.Verb, in any case.
func (fs *Faults) Next(verb string) Fault {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	for _, f := range fs.list {
		if f.Verb != "*" && !strings.EqualFold(f.Verb, verb) {
			continue
		}
		f.seen++
		if n := f.seen - f.After; n > 0 && (f.Times == 0 || n <= f.Times) {
			return f.Fault
		}
	}
	return Fault{}
}
