package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/ocslab/ocslab/internal/statedir"
)

// How long to wait for an emulated switch that another process has, and how long before
// the next look at what that one offers.
const (
	memoryWait = 5 * time.Second
	offerWait  = 20 * time.Millisecond
)

// offer is what a process that emulates a switch leaves beside the lock of its memory, for
// others to reach the switch meanwhile. It counts only while that process holds the lock:
// a process that was killed leaves its offer, but no lock.
type offer struct {
	Process int       `json:"process"`
	Since   time.Time `json:"since"`
	URL     string    `json:"url"`
}

// BusyError is returned when another process emulates a switch.
type BusyError struct {
	Switch string
	Holder string    // "process 4711"
	Since  time.Time // zero if that is not known
	URL    string    // where the switch can be reached meanwhile; "" if nowhere
	Err    error
}

// Error says who has the switch, and what can be done about it.
func (e *BusyError) Error() string {
	text := "emulated switch " + e.Switch + " is in use by another ocslab: " + e.Holder
	if !e.Since.IsZero() {
		text += " since " + e.Since.Local().Format("2006-01-02 15:04:05")
	}
	text += "; wait until it has ended, or keep another state with --state-dir"
	if e.URL != "" {
		text += "; meanwhile the switch can be reached at its URL: ocslab show '" + e.URL + "'"
	}
	return text
}

// Unwrap returns why the wait has ended.
func (e *BusyError) Unwrap() error { return e.Err }

// takeMemory locks the memory of an emulated switch in a file until unlock is called, so
// that two programs do not emulate one switch. When another program has it, the error
// matches [*BusyError].
func (l *Lab) takeMemory(ctx context.Context, name string) (m *fileMemory, unlock func(), err error) {
	m = l.memory(name)
	if err := statedir.Make(filepath.Dir(m.path)); err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, memoryWait)
	defer cancel()
	for {
		try, done := context.WithTimeout(ctx, offerWait)
		unlock, err := statedir.Lock(try, m.lock())
		done()
		if err == nil {
			m.withdraw() // of one that was killed
			return m, unlock, nil
		}
		if !errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
			return nil, nil, fmt.Errorf("emulated switch %s: %w", name, err)
		}
		o := m.offered()
		if ctx.Err() != nil || o.URL != "" { // who offers it keeps it for long
			return nil, nil, &BusyError{name, statedir.Holder(m.lock()), o.Since, o.URL, err}
		}
	}
}

// memory is where the memory of an emulated switch is kept.
func (l *Lab) memory(name string) *fileMemory {
	return &fileMemory{path: filepath.Join(l.opt.StateDir, "emulated", l.File.key(), name+".json")}
}

// lock is the path of the lock on the memory.
func (m *fileMemory) lock() string { return m.path + ".lock" }

// offering is the path of the offer.
func (m *fileMemory) offering() string { return m.path + ".offer" }

// offer tells others where the switch can be reached while this process emulates it.
func (m *fileMemory) offer(url string) {
	data, err := json.Marshal(offer{os.Getpid(), time.Now(), url})
	if err == nil {
		err = statedir.WriteFile(m.offering(), append(data, '\n'))
	}
	if err != nil {
		slog.Warn("other programs cannot reach the emulated switch", "file", m.offering(), "error", err)
	}
}

// withdraw takes the offer back.
func (m *fileMemory) withdraw() { _ = os.Remove(m.offering()) }

// offered returns what the process that holds the lock offers; nothing if that is unknown.
func (m *fileMemory) offered() (o offer) {
	data, err := os.ReadFile(m.offering())
	if err != nil || json.Unmarshal(data, &o) != nil || statedir.Holder(m.lock()) != fmt.Sprintf("process %d", o.Process) {
		return offer{}
	}
	return o
}
