// Package labtest has an [lab.Authority] for tests. A test begins panics, holds leases and makes calls fail with it.
package labtest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/lab/history"
	"github.com/ocslab/ocslab/lab/lease"
	"github.com/ocslab/ocslab/lab/panics"
	"github.com/ocslab/ocslab/ocs"
)

// Authority adds panics, leases and failures to another Authority. It is safe for concurrent use; the functions are set
// before the lab is used, and may be called by several goroutines.
type Authority struct {
	lab.Authority

	// Begun, if not nil, is called with the changes of one operation before they are recorded. Its error is that of
	// BeginAll. A panic or a lease that it begins applies to these changes.
	Begun func([]history.Entry) error
	// Ended, if not nil, is called before an outcome is recorded. Its error is that of End.
	Ended func(id int, state history.State) error
	// Locked, if not nil, is called before a device is locked. Its error is that of Lock.
	Locked func(device string) error

	mu     sync.Mutex // guards what follows
	panics []panics.Call
	leases []lease.Lease
	token  uint64 // of the last lease
}

// Around returns an Authority around another; nil stands for [lab.Alone].
func Around(of lab.Authority) *Authority {
	if of == nil {
		of = lab.Alone()
	}
	return &Authority{Authority: of}
}

// Panic begins a panic that keeps ports of a device dark.
func (a *Authority) Panic(device string, ports ...ocs.Port) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.panics = append(a.panics, panics.Call{N: len(a.panics) + 1, At: time.Now(), Who: "bob@lab1", Reason: "a fibre is open",
		Dark: []panics.Dark{{Switch: device, Device: device, Closed: ports}}})
}

// Lift lifts all panics.
func (a *Authority) Lift() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := range a.panics {
		a.panics[i].Lifted = time.Now()
	}
}

// Lease leases ports of a device to another program, until release is called.
func (a *Authority) Lease(device string, ports ...ocs.Port) (release func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.token++
	token := a.token
	a.leases = append(a.leases, lease.Lease{Device: device, Switch: device, Ports: ports, Holder: "bob", Since: time.Now(), Token: token})
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.leases = slices.DeleteFunc(a.leases, func(l lease.Lease) bool { return l.Token == token })
	}
}

// Recorded returns what is in the history.
func (a *Authority) Recorded(t testing.TB) []history.Entry {
	t.Helper()
	entries, problems, err := a.Entries()
	if err != nil || len(problems) > 0 {
		t.Fatalf("history: %v, %v", problems, err)
	}
	return entries
}

// BeginAll implements [lab.Authority].
func (a *Authority) BeginAll(ctx context.Context, entries []history.Entry) ([]int, error) {
	if a.Begun != nil {
		if err := a.Begun(entries); err != nil {
			return nil, err
		}
	}
	return a.Authority.BeginAll(ctx, entries)
}

// End implements [lab.Authority].
func (a *Authority) End(id int, state history.State, detail history.Result) error {
	if a.Ended != nil {
		if err := a.Ended(id, state); err != nil {
			return err
		}
	}
	return a.Authority.End(id, state, detail)
}

// Lock implements [lab.Authority].
func (a *Authority) Lock(ctx context.Context, device, identity string) (func(), error) {
	if a.Locked != nil {
		if err := a.Locked(device); err != nil {
			return nil, err
		}
	}
	return a.Authority.Lock(ctx, device, identity)
}

// Panics implements [lab.Authority].
func (a *Authority) Panics() ([]panics.Call, error) {
	calls, err := a.Authority.Panics()
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, c := range a.panics {
		c.Dark = slices.Clone(c.Dark) // the gate writes to it
		calls = append(calls, c)
	}
	return calls, err
}

// Leases implements [lab.Authority].
func (a *Authority) Leases(device string) ([]lease.Lease, error) {
	leases, err := a.Authority.Leases(device)
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, l := range a.leases {
		if device == "" || l.Device == device {
			leases = append(leases, l)
		}
	}
	return leases, err
}

// Take implements [lab.Authority].
func (a *Authority) Take(ctx context.Context, l lease.Lease) (func() error, error) {
	theirs, err := a.Leases(l.Device)
	if err != nil {
		return nil, err
	}
	for _, x := range theirs {
		if slices.ContainsFunc(l.Ports, func(p ocs.Port) bool { return slices.Contains(x.Ports, p) }) {
			return nil, fmt.Errorf("%w: %v", lease.ErrLeased, x)
		}
	}
	return a.Authority.Take(ctx, l)
}
