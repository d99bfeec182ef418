package conformance

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ocslab/ocslab/ocs"
)

// Defaults of [Config].
const (
	DefaultMaxPorts = 8
	DefaultSettle   = 5 * time.Second
	DefaultTimeout  = time.Minute
)

// Config says what to run the suite against. Only Open is required.
type Config struct {
	// Open opens a new session with the device. It is called again for the
	// second client and whenever a session has died.
	Open func(ctx context.Context) (ocs.Switch, error)
	Name string // of the device in the report; default its model

	// AllPorts allows to darken everything on the device, others' light
	// included: for the checks of restarts, of overwriting, and of all ports
	// at once. Without it they are skipped.
	AllPorts bool
	// Avoid are ports that are left alone.
	Avoid []ocs.Port
	// MaxPorts is how many free pairs of ports are used at most; 0 means
	// DefaultMaxPorts.
	MaxPorts int
	// Settle is how long light, or a notification, may take after the
	// acknowledgement before a check gives up; 0 means DefaultSettle.
	Settle time.Duration
	// Timeout is how long one check may take, and the putting back after it;
	// 0 means DefaultTimeout.
	Timeout time.Duration
	// Progress, when set, is called before each check and, with an empty
	// check, after the last.
	Progress func(done, total int, check string)
}

// check is one entry of the table.
type check struct {
	name, capability string
	pairs            int                                 // free pairs it needs
	second           bool                                // needs a second session
	allPorts         bool                                // darkens others' light
	cannot           func(ocs.Geometry) string           // why devices of a kind cannot do it; "" if they can
	run              func(*bench, context.Context) error // a method of bench
}

// Names of capabilities.
const (
	capSwitch     = "switch"
	capPower      = "power-meter"
	capShutter    = "shutter"
	capLabel      = "labeler"
	capAttenuator = "attenuator"
	capNotifier   = "notifier"
	capCalibrator = "calibrator"
	capRestarter  = "restarter"
)

// checks is the suite, in the order in which it runs.
var checks = []check{
	{name: "identify", capability: capSwitch, run: (*bench).identify},
	{name: "read-map", capability: capSwitch, run: (*bench).readMap},
	{name: "free-pairs", capability: capSwitch, run: (*bench).freePairs},
	{name: "connect", capability: capSwitch, pairs: 1, run: (*bench).connectOne},
	{name: "reconnect", capability: capSwitch, pairs: 1, run: (*bench).reconnect},
	{name: "move-ingress", capability: capSwitch, pairs: 2, run: (*bench).moveIngress},
	{name: "move-egress", capability: capSwitch, pairs: 2, run: (*bench).moveEgress},
	{name: "swap", capability: capSwitch, pairs: 2, run: (*bench).swap},
	{name: "every-egress", capability: capSwitch, pairs: 1, cannot: onlyMatrix, run: (*bench).everyEgress},
	{name: "bulk", capability: capSwitch, pairs: 2, run: (*bench).bulk},
	{name: "bulk-bad-port", capability: capSwitch, pairs: 2, run: (*bench).bulkBadPort},
	{name: "bad-port-reconcile", capability: capSwitch, pairs: 1, run: (*bench).badPortReconcile},
	{name: "bad-port-apply", capability: capSwitch, pairs: 1, run: (*bench).badPortApply},
	{name: "unreachable", capability: capSwitch, pairs: 1, cannot: onlyMatrix, run: (*bench).unreachable},
	{name: "disconnect-ingress", capability: capSwitch, pairs: 1, run: (*bench).disconnectIngress},
	{name: "disconnect-egress", capability: capSwitch, pairs: 1, run: (*bench).disconnectEgress},
	{name: "disconnect-unconnected", capability: capSwitch, pairs: 1, run: (*bench).disconnectUnconnected},
	{name: "busy-safe", capability: capSwitch, pairs: 2, run: (*bench).busySafe},
	{name: "busy-update", capability: capSwitch, pairs: 3, run: (*bench).busyUpdate},
	{name: "busy-overwrite", capability: capSwitch, pairs: 2, allPorts: true, run: (*bench).busyOverwrite},
	{name: "busy-apply", capability: capSwitch, pairs: 2, run: (*bench).busyApply},
	{name: "exclusive", capability: capSwitch, pairs: 2, cannot: noExclusion, run: (*bench).exclusive},
	{name: "ack-time", capability: capSwitch, pairs: 2, run: (*bench).ackTime},
	{name: "bulk-all-ports", capability: capSwitch, allPorts: true, run: (*bench).bulkAllPorts},
	{name: "read-back", capability: capSwitch, pairs: 1, second: true, run: (*bench).readBack},
	{name: "second-client-visible", capability: capSwitch, pairs: 1, second: true, run: (*bench).secondClientVisible},
	{name: "two-clients", capability: capSwitch, pairs: 2, second: true, run: (*bench).twoClients},
	{name: "cancel", capability: capSwitch, pairs: 1, run: (*bench).cancelledCall},
	{name: "close-reopen", capability: capSwitch, pairs: 1, run: (*bench).closeReopen},
	{name: "power-loss", capability: capPower, pairs: 1, run: (*bench).powerLoss},
	{name: "power-dark", capability: capPower, pairs: 1, cannot: measuresBothWays, run: (*bench).powerDark},
	{name: "monitor-averaging", capability: capPower, pairs: 1, run: (*bench).monitorAveraging},
	{name: "ack-light", capability: capPower, pairs: 2, run: (*bench).ackLight},
	{name: "shutter", capability: capShutter, pairs: 1, run: (*bench).shutter},
	{name: "attenuator", capability: capAttenuator, pairs: 1, run: (*bench).attenuator},
	{name: "label", capability: capLabel, pairs: 1, run: (*bench).label},
	{name: "label-text", capability: capLabel, pairs: 1, run: (*bench).labelText},
	{name: "label-length", capability: capLabel, pairs: 1, run: (*bench).labelLength},
	{name: "notify", capability: capNotifier, pairs: 1, second: true, run: (*bench).notify},
	{name: "boot-mode", capability: capRestarter, run: (*bench).bootMode},
	{name: "restart-restore", capability: capRestarter, allPorts: true, run: (*bench).restartRestore},
	{name: "restart-dark", capability: capRestarter, allPorts: true, run: (*bench).restartDark},
}

// checkRestored is the last line of every report.
const checkRestored = "restored"

// Run runs the suite and puts everything back. It returns an error only when
// nothing could be tried at all: no session can be opened. What the device does
// wrong, also that it does not tell its map, is in the Report.
//
// When ctx ends the check under way and those to come are skipped, what was
// changed is put back over a context that has not ended, and the report says
// Cancelled.
func Run(ctx context.Context, cfg Config) (Report, error) {
	if cfg.Open == nil {
		return Report{}, errors.New("conformance: no Open")
	}
	if cfg.MaxPorts <= 0 {
		cfg.MaxPorts = DefaultMaxPorts
	}
	if cfg.Settle <= 0 {
		cfg.Settle = DefaultSettle
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = DefaultTimeout
	}
	if cfg.Progress == nil {
		cfg.Progress = func(int, int, string) {}
	}
	started := time.Now()
	b := &bench{cfg: cfg, ledger: newLedger(cfg.AllPorts), supported: map[string]bool{}, given: map[ocs.Port]bool{}, dirty: newDirty()}
	var err error
	if b.first, err = open(ctx, cfg); err != nil {
		return Report{}, fmt.Errorf("conformance: cannot open a session: %w", err)
	}
	defer b.close()
	left := false
	defer func() {
		if !left { // Progress panicked
			_ = b.restore(ctx)
		}
	}()

	b.look(ctx)
	r := b.report(started)
	for i, c := range checks {
		cfg.Progress(i, len(checks)+1, c.name)
		r.Checks = append(r.Checks, b.try(ctx, c))
	}
	cfg.Progress(len(checks), len(checks)+1, checkRestored)
	began := time.Now()
	r.NotRestored = append(r.NotRestored, b.leave(ctx)...)
	left = true
	last := Check{Name: checkRestored, Capability: capSwitch, Result: Pass, DurNS: int64(time.Since(began))}
	if r.Restored = len(r.NotRestored) == 0; !r.Restored {
		last.Result, last.Reason = Fail, fmt.Sprintf("%d things are not as they were found: %s", len(r.NotRestored), joined(r.NotRestored))
	}
	r.Checks = append(r.Checks, last)
	for _, c := range r.Checks {
		switch c.Result {
		case Pass:
			r.Passed++
		case Fail:
			r.Failed++
		case Skip:
			r.Skipped++
		case Unsupported:
			r.Unsupported++
		}
	}
	r.Quirks = append(r.Quirks, b.quirks...)
	r.Others = append(r.Others, b.ledger.others...)
	r.PortsUsed = ocs.FormatPorts(b.used)
	r.Cancelled = ctx.Err() != nil
	r.DurNS = int64(time.Since(started))
	cfg.Progress(len(checks)+1, len(checks)+1, "")
	return r, nil
}

// Plan is what Run would use.
type Plan struct {
	Ingress, Egress []ocs.Port // that are free, in the order in which they are used
	Checks          []string   // that can be tried
}

// Preview returns what [Run] would use now. It reads the device and changes nothing.
func Preview(ctx context.Context, cfg Config) (Plan, error) {
	if cfg.Timeout <= 0 {
		cfg.Timeout = DefaultTimeout
	}
	b := &bench{cfg: cfg, ledger: newLedger(cfg.AllPorts), supported: map[string]bool{}, given: map[ocs.Port]bool{}, dirty: newDirty()}
	var err error
	if b.first, err = open(ctx, cfg); err != nil {
		return Plan{}, fmt.Errorf("conformance: cannot open a session: %w", err)
	}
	defer b.close()
	b.look(ctx)
	if b.lookErr != nil {
		return Plan{}, b.lookErr
	}
	p := Plan{Ingress: b.in, Egress: b.out}
	for _, c := range checks {
		if b.supported[c.capability] && b.kindCannot(c) == "" && (!c.allPorts || cfg.AllPorts) && c.pairs <= min(len(b.in), len(b.out)) {
			p.Checks = append(p.Checks, c.name)
		}
	}
	return p, nil
}

// open is cfg.Open with panics and nil as errors.
func open(ctx context.Context, cfg Config) (sw ocs.Switch, err error) {
	err = safely(func() error {
		sw, err = cfg.Open(ctx)
		if err == nil && sw == nil {
			return errors.New("Open returned no switch")
		}
		return err
	})
	return sw, err
}

// safely makes a panic an error.
func safely(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return f()
}

// report begins a report with what was found out at the start.
func (b *bench) report(started time.Time) Report {
	r := Report{
		Kind: "conformance", Device: b.cfg.Name, Vendor: b.id.Vendor, Model: b.id.Model, Serial: b.id.Serial,
		Firmware: b.id.Firmware, Size: b.id.Geometry.String(), Started: started, AllPorts: b.cfg.AllPorts,
		Capabilities: b.capabilities, Checks: []Check{}, Quirks: []Quirk{}, NotRestored: []string{}, Others: []string{},
	}
	if r.Device == "" {
		r.Device = b.id.Model
	}
	return r
}

// changes reports whether the check changes anything.
func (c check) changes() bool { return c.pairs > 0 || c.allPorts || c.name == "free-pairs" }

// try runs one check, puts back what it changed, and judges.
func (b *bench) try(ctx context.Context, c check) Check {
	began := time.Now()
	err := b.possible(ctx, c)
	if err == nil {
		limited, cancel := context.WithTimeoutCause(ctx, b.cfg.Timeout, fmt.Errorf("the check took longer than %v", b.cfg.Timeout))
		err = safely(func() error { return c.run(b, limited) })
		cancel()
		var conflict *ocs.ConflictError
		if errors.As(err, &conflict) && b.ledger.foreign(conflict.Have) {
			p := conflict.Want.Egress
			if h := conflict.Have; h.Ingress == conflict.Want.Ingress || h.Egress == conflict.Want.Ingress {
				p = conflict.Want.Ingress
			}
			err = &takenError{p, conflict.Have}
		}
		if err != nil && !untried(err) {
			b.reopen(ctx) // the next check begins with a session that is known to be good
		}
	}
	if c.changes() && b.stopped == nil {
		if trouble := b.restore(ctx); trouble != nil && (err == nil || untried(err)) {
			err = fmt.Errorf("putting back what the check changed: %w", trouble)
		}
		if len(b.dirt()) > 0 {
			b.stop(fmt.Errorf("what the check %s changed could not be put back", c.name))
		}
	}
	k := Check{Name: c.name, Capability: c.capability, DurNS: int64(time.Since(began))}
	k.Result, k.Reason = b.judge(ctx, c, err)
	return k
}

// kindCannot says why devices of the kind of this one cannot do a check; "" if
// they can, or if the kind is not known.
func (b *bench) kindCannot(c check) string {
	if c.cannot == nil || !b.id.Geometry.Known() {
		return ""
	}
	return c.cannot(b.id.Geometry)
}

// possible makes sure that a check can be tried. A *skipError or an
// *unsupportedError says why it cannot; other errors fail the check.
func (b *bench) possible(ctx context.Context, c check) error {
	switch {
	case ctx.Err() != nil:
		return skipf("cancelled: %v", context.Cause(ctx))
	case !b.supported[c.capability]:
		return unsupportedf("there is no %s", c.capability)
	case b.kindCannot(c) != "":
		return unsupportedf("%s", b.kindCannot(c))
	case b.lookErr != nil && c.changes():
		return skipf("the device did not say what it holds, so nothing is changed: %s", sentence(b.lookErr))
	case b.stopped != nil && c.changes():
		return skipf("nothing is changed any more: %s", sentence(b.stopped))
	case c.allPorts && !b.cfg.AllPorts:
		return skipf("would darken light that is not of this suite; the option for all ports allows it")
	case b.dead != nil:
		return skipf("there is no session any more: %s", sentence(b.dead))
	}
	if b.first == nil {
		if err := b.reopen(ctx); err != nil {
			if ctx.Err() == nil {
				b.dead = err
			}
			return fmt.Errorf("no session can be opened any more: %w", err)
		}
	}
	if c.pairs > 0 {
		if err := safely(func() error { return b.giveTaken(ctx) }); err != nil {
			return err
		}
		if len(b.pairs) < c.pairs {
			return skipf("needs %d free pairs of ports, %s", c.pairs, b.available())
		}
	}
	if c.second && b.second == nil {
		var err error
		if b.second, err = open(ctx, b.cfg); err != nil {
			b.quirk("second session", "refused", "%s", sentence(err))
			return skipf("a second session cannot be opened: %s", sentence(err))
		}
	}
	return nil
}

// judge makes an error a result.
func (b *bench) judge(ctx context.Context, c check, err error) (Result, string) {
	var skipped *skipError
	var unsupported *unsupportedError
	var taken *takenError
	switch {
	case err == nil:
		return Pass, ""
	case errors.As(err, &unsupported):
		return Unsupported, unsupported.reason
	case errors.As(err, &skipped):
		return Skip, skipped.reason
	case ctx.Err() != nil:
		return Skip, "cancelled: " + sentence(context.Cause(ctx))
	case errors.As(err, &taken):
		b.give(taken.port)
		return Skip, sentence(taken)
	case errors.Is(err, ocs.ErrNotSupported) && c.capability != capSwitch:
		return Unsupported, sentence(err)
	}
	return Fail, sentence(err)
}
