package live

import (
	"context"
	"fmt"
	"time"

	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/ocs"
)

// gate is around every session that this package opens: nothing that changes a switch
// passes while the Session is read-only, and what passes is entered in the ledger.
type gate struct {
	ocs.Switch // the session inside
	s          *Session
	name       string
	own        *ledger
}

var _ ocs.Wrapper = (*gate)(nil)

// Unwrap returns the switch inside or, while the Session is read-only, what can be read of
// it.
func (g *gate) Unwrap() ocs.Switch {
	if g.s.readOnly() {
		return reading{g.Switch}
	}
	return g.Switch
}

// Apply changes circuits.
func (g *gate) Apply(ctx context.Context, c ocs.Change) (ocs.Receipt, error) {
	if g.s.readOnly() {
		return ocs.Receipt{}, refused(g.name, "change circuits")
	}
	ports := g.own.sending(c)
	r, err := lab.Send(ctx, g.Switch, c)
	g.own.sent(c, ports, r.Requests, err, time.Now())
	return r, err
}

// refused is the error of what read-only does not let pass.
func refused(name, op string) error {
	return &ocs.OpError{Op: op, Device: name, Err: ErrReadOnly}
}

// reading is what can be read of a switch. What is inside cannot be reached through it, so
// [ocs.As] finds nothing that changes the switch. It has all capabilities that read
// something; those that the switch lacks fail with an error that matches
// [ocs.ErrNotSupported].
type reading struct{ sw ocs.Switch }

var (
	_ ocs.Switch     = reading{}
	_ ocs.PowerMeter = reading{}
	_ ocs.Shutter    = reading{}
	_ ocs.Labeler    = reading{}
	_ ocs.Attenuator = reading{}
	_ ocs.Notifier   = reading{}
	_ ocs.Restarter  = reading{}
)

// lacks is the error of a capability that a switch does not have.
func lacks(op string) error { return fmt.Errorf("%s: %w", op, ocs.ErrNotSupported) }

func (r reading) Identify(ctx context.Context) (ocs.Identity, error) { return r.sw.Identify(ctx) }

func (r reading) CrossConnects(ctx context.Context) (ocs.Map, error) { return r.sw.CrossConnects(ctx) }

// Apply refuses.
func (r reading) Apply(context.Context, ocs.Change) (ocs.Receipt, error) {
	return ocs.Receipt{}, refused("", "change circuits")
}

func (r reading) Close() error { return r.sw.Close() }

func (r reading) Power(ctx context.Context, ports ...ocs.Port) (ocs.PowerReading, error) {
	if x, ok := ocs.As[ocs.PowerMeter](r.sw); ok {
		return x.Power(ctx, ports...)
	}
	return ocs.PowerReading{}, lacks("read power")
}

func (r reading) Monitors(ctx context.Context, ports ...ocs.Port) ([]ocs.Monitor, error) {
	if x, ok := ocs.As[ocs.PowerMeter](r.sw); ok {
		return x.Monitors(ctx, ports...)
	}
	return nil, lacks("read monitors")
}

// SetMonitor refuses.
func (r reading) SetMonitor(context.Context, ocs.Monitor) error { return refused("", "set monitor") }

func (r reading) Shutters(ctx context.Context, ports ...ocs.Port) (map[ocs.Port]bool, error) {
	if x, ok := ocs.As[ocs.Shutter](r.sw); ok {
		return x.Shutters(ctx, ports...)
	}
	return nil, lacks("read shutters")
}

// SetShutters refuses.
func (r reading) SetShutters(context.Context, bool, ...ocs.Port) error {
	return refused("", "set shutters")
}

func (r reading) Labels(ctx context.Context, ports ...ocs.Port) (map[ocs.Port]string, error) {
	if x, ok := ocs.As[ocs.Labeler](r.sw); ok {
		return x.Labels(ctx, ports...)
	}
	return nil, lacks("read labels")
}

// SetLabel refuses.
func (r reading) SetLabel(context.Context, ocs.Port, string) error { return refused("", "set label") }

func (r reading) Attenuation(ctx context.Context, p ocs.Port) (ocs.DB, error) {
	if x, ok := ocs.As[ocs.Attenuator](r.sw); ok {
		return x.Attenuation(ctx, p)
	}
	return 0, lacks("read attenuation")
}

// SetAttenuation refuses.
func (r reading) SetAttenuation(context.Context, ocs.Port, ocs.DB) error {
	return refused("", "set attenuation")
}

func (r reading) Notify(ctx context.Context, f func(ocs.Event)) error {
	if x, ok := ocs.As[ocs.Notifier](r.sw); ok {
		return x.Notify(ctx, f)
	}
	return lacks("listen")
}

func (r reading) BootMode(ctx context.Context) (ocs.BootMode, error) {
	if x, ok := ocs.As[ocs.Restarter](r.sw); ok {
		return x.BootMode(ctx)
	}
	return "", lacks("read boot mode")
}

// SetBootMode refuses.
func (r reading) SetBootMode(context.Context, ocs.BootMode) error {
	return refused("", "set boot mode")
}

// Restart refuses.
func (r reading) Restart(context.Context) error { return refused("", "restart") }
