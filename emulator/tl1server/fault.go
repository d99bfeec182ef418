package tl1server

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// FaultKind is what goes wrong with a command on the wire.
type FaultKind string

const (
	FaultDeny  FaultKind = "deny"  // refused with SROF; has no effect
	FaultHang  FaultKind = "hang"  // takes effect, but is never answered
	FaultClose FaultKind = "close" // takes effect; the session is closed in mid-reply
	FaultCTAG  FaultKind = "ctag"  // takes effect; the reply carries somebody else's CTAG
	FaultFlood FaultKind = "flood" // takes effect; 10 MB without a terminator follow
	FaultTwice FaultKind = "twice" // takes effect; the reply is sent twice
)

var faultKinds = []FaultKind{FaultDeny, FaultHang, FaultClose, FaultCTAG, FaultFlood, FaultTwice}

// Fault makes commands go wrong.
type Fault struct {
	Kind  FaultKind
	Verb  string // command code it strikes, such as "ENT-PATCH"; "*" is any
	After int    // commands of that code that are spared first
	Times int    // how many it strikes then; 0 is all
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

// next returns the fault that strikes a command, which has no Kind if none does.
func (fs *Faults) next(code string) Fault {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	for _, f := range fs.list {
		if f.Verb != "*" && f.Verb != code {
			continue
		}
		f.seen++
		if n := f.seen - f.After; n > 0 && (f.Times == 0 || n <= f.Times) {
			return f.Fault
		}
	}
	return Fault{}
}

// floodLocked sends a reply that does not end.
func (ss *session) floodLocked(ctx context.Context, whole []byte) bool {
	ok := ss.writeLocked(whole[:bytes.LastIndexByte(whole, ';')])
	line := bytes.Repeat([]byte("   \"0123456789\"\r\n"), 1024)
	for sent := 0; sent < 10<<20 && ok && ctx.Err() == nil; sent += len(line) {
		ok = ss.writeLocked(line)
	}
	return ok
}
