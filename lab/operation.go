package lab

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/ocslab/ocslab/lab/history"
	"github.com/ocslab/ocslab/lab/lease"
	"github.com/ocslab/ocslab/ocs"
)

// Operation records many changes, of one or several switches, as one group of the history, which one undo takes back. Make
// it with [Gate.Operation]; it is safe for concurrent use.
type Operation struct {
	gate *Gate

	mu    sync.Mutex // guards group
	group int
}

// Operation begins an operation. Nothing is recorded before its first change.
func (g *Gate) Operation() *Operation { return &Operation{gate: g} }

// Session opens one more session with a switch, for changes that are made directly on it: each is guarded and recorded, but
// not planned or read back. It is for the conformance suite, which tests the driver's own calls. The caller closes it.
func (op *Operation) Session(ctx context.Context, on *Opened) (ocs.Switch, error) {
	sw, err := on.again(ctx)
	if err != nil {
		return nil, err
	}
	e := op.gate.entry(on, Intent{})
	return history.Wrap(op, op.gate.guardedBy(on.at, sw, op), e), nil
}

// BeginAll records changes as part of the operation.
func (op *Operation) BeginAll(ctx context.Context, entries []history.Entry) ([]int, error) {
	op.mu.Lock()
	defer op.mu.Unlock()
	for i := range entries {
		if entries[i].Group = op.group; op.group == 0 {
			entries[i].Group = history.NewGroup
		}
	}
	ids, err := op.gate.auth.BeginAll(ctx, entries)
	if err == nil && op.group == 0 {
		op.group = ids[0]
	}
	return ids, err
}

// End records what became of a change.
func (op *Operation) End(id int, state history.State, detail history.Result) error {
	return op.gate.auth.End(id, state, detail)
}

// Lease takes the right to move ports of a switch for as long as this program runs, or until release is called. It
// waits for a change of the switch that is in progress. The error matches [lease.ErrLeased] if another has any of them.
func (g *Gate) Lease(ctx context.Context, o *Opened, ports []ocs.Port, holder string) (release func() error, err error) {
	unlock, err := g.lock(ctx, o.at)
	if err != nil {
		return nil, named(o.Name, err)
	}
	defer unlock()
	ports = slices.Sorted(slices.Values(ports))
	leases, err := g.leases(ctx, o.at)
	if err != nil {
		return nil, err
	}
	for _, l := range leases {
		for _, p := range ports {
			if slices.Contains(l.Ports, p) {
				return nil, fmt.Errorf("port %d of %s: %w: %v", p, o.Name, lease.ErrLeased, l)
			}
		}
	}
	return g.auth.Take(ctx, lease.Lease{Device: o.Device, Switch: o.Name, Ports: slices.Compact(ports), Holder: holder})
}

// Send makes a change on a session of a switch that is guarded, see [Lab.Session], and neither plans, records nor reads
// it back. It is for a control plane that has the lease of the ports and keeps a journal of its own, and for what wraps a
// switch inside of [Gate.Apply] and passes a change on.
func Send(ctx context.Context, session ocs.Switch, c ocs.Change) (ocs.Receipt, error) {
	return session.Apply(ctx, c)
}

// Kept returns the ports of a switch that this program may not touch now, and why: they are protected, or leased to
// others.
func (g *Gate) Kept(ctx context.Context, o *Opened) (map[ocs.Port]error, error) {
	in, ok := ocs.As[*guard](o)
	if !ok {
		return nil, nil
	}
	return in.kept(ctx)
}

// InPanic returns an error that matches [panics.ErrInForce] while a panic keeps ports of a switch dark.
func (g *Gate) InPanic(ctx context.Context, o *Opened) error {
	calls, err := g.calls(ctx, o.at)
	if err != nil {
		return err
	}
	for _, c := range calls {
		if _, dark := c.On(o.Device); dark && c.Lifted.IsZero() {
			return c.Refusal()
		}
	}
	return nil
}
