package lab

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ocslab/ocslab/lab/history"
	"github.com/ocslab/ocslab/lab/lease"
	"github.com/ocslab/ocslab/lab/panics"
	"github.com/ocslab/ocslab/ocs"
)

// guard is around every session that this package opens. It lets no change pass that protection, a lease or a panic
// forbids, whoever calls it, so that what goes around [Gate.Apply] is not unsafe, only unrecorded: the sessions of a
// rail and of the conformance suite, which keep records of their own.
type guard struct {
	ocs.Switch // the session inside
	at         *site
	gate       *Gate
	book       history.Book // where settings are recorded
}

// guarded puts a guard around a session, and around whatever else it has to move light or to change settings with.
func (g *Gate) guarded(at *site, sw ocs.Switch) ocs.Switch { return g.guardedBy(at, sw, g.auth) }

func (g *Gate) guardedBy(at *site, sw ocs.Switch, book history.Book) ocs.Switch {
	in := &guard{sw, at, g, book}
	var out ocs.Switch = in
	if s, ok := ocs.As[ocs.Shutter](sw); ok {
		out = &shutterGuard{out, s, in}
	}
	if s, ok := ocs.As[ocs.Restarter](sw); ok {
		out = &restartGuard{out, s, in}
	}
	if s, ok := ocs.As[ocs.PowerMeter](sw); ok {
		out = &meterGuard{out, s, in}
	}
	if s, ok := ocs.As[ocs.Attenuator](sw); ok {
		out = &attenuatorGuard{out, s, in}
	}
	if s, ok := ocs.As[ocs.Labeler](sw); ok {
		out = &labelGuard{out, s, in}
	}
	return out
}

// Unwrap returns the switch inside. Its capabilities that change something have guards of their own.
func (g *guard) Unwrap() ocs.Switch { return g.Switch }

// Apply refuses, or does what the switch inside does. It looks for panics once more after the device has answered: a
// change that brought light to where a panic has begun meanwhile is taken back.
func (g *guard) Apply(ctx context.Context, c ocs.Change) (ocs.Receipt, error) {
	if c.Empty() {
		return g.Switch.Apply(ctx, c)
	}
	if err := g.permitChange(ctx, c); err != nil {
		return ocs.Receipt{}, err
	}
	r, err := g.Switch.Apply(ctx, c)
	if r.Requests == 0 {
		return r, err
	}
	if lost := g.gate.inPanic(ctx, g.at, c.Add); lost != nil {
		return r, g.takeBack(ctx, c.Add, lost)
	}
	return r, err
}

// takeBack removes circuits that lost the race with a panic, and returns the error for that.
func (g *guard) takeBack(ctx context.Context, add ocs.Map, lost error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), takeBackTime)
	defer cancel()
	have, err := g.Switch.CrossConnects(ctx)
	if err == nil {
		var there []ocs.CrossConnect
		for c := range add.All() {
			if have.Has(c) {
				there = append(there, c)
			}
		}
		if len(there) > 0 {
			_, err = g.Switch.Apply(ctx, ocs.Change{Remove: ocs.MustMap(there...)})
		}
	}
	if err != nil {
		return fmt.Errorf("%w; %v was connected meanwhile and could not be removed: %w", lost, add, err)
	}
	return fmt.Errorf("%w; what was connected meanwhile was removed again", lost)
}

// takeBackTime limits how long a change that lost the race with a panic takes to remove its circuits.
const takeBackTime = 30 * time.Second

// permitChange refuses a change of circuits.
func (g *guard) permitChange(ctx context.Context, c ocs.Change) error {
	return g.permitOn(ctx, c, func() (ocs.Map, error) { return g.Switch.CrossConnects(ctx) })
}

// permitOn is permitChange for a device that holds what have returns. It is asked where anything is kept, since a device
// that takes over busy ports darkens circuits that the change does not name.
func (g *guard) permitOn(ctx context.Context, c ocs.Change, have func() (ocs.Map, error)) error {
	kept, err := g.kept(ctx)
	if err != nil {
		return err
	}
	touched := c.Ports()
	if c.Add.Len() > 0 && len(kept) > 0 {
		now, err := have()
		if err != nil {
			return err
		}
		for a := range c.Add.All() {
			for _, p := range []ocs.Port{a.Ingress, a.Egress} {
				for _, held := range now.At(p) {
					touched = append(touched, held.Ingress, held.Egress)
				}
			}
		}
	}
	if err := g.refuse("change circuits", kept, touched); err != nil {
		return err
	}
	return g.gate.inPanic(ctx, g.at, c.Add)
}

// Permits returns the error with which a change of a switch that holds have would be refused now: a port is protected or
// leased, or a panic keeps it dark.
func (g *Gate) Permits(ctx context.Context, o *Opened, have ocs.Map, c ocs.Change) error {
	if c.Empty() {
		return nil
	}
	return (&guard{at: o.at, gate: g}).permitOn(ctx, c, func() (ocs.Map, error) { return have, nil })
}

// kept are the ports that this program may not touch now, and why.
func (g *guard) kept(ctx context.Context) (map[ocs.Port]error, error) {
	kept := map[ocs.Port]error{}
	for _, p := range g.at.protected {
		kept[p] = fmt.Errorf("%w: the lab file protects port %d", ocs.ErrInterlock, p)
	}
	leases, err := g.gate.leases(ctx, g.at)
	for _, l := range leases {
		for _, p := range l.Ports {
			kept[p] = fmt.Errorf("port %d: %w: %v", p, lease.ErrLeased, l)
		}
	}
	return kept, err
}

// refuse returns the error about the lowest port that is kept and touched.
func (g *guard) refuse(op string, kept map[ocs.Port]error, touched []ocs.Port) error {
	for _, p := range slices.Sorted(maps.Keys(kept)) {
		if slices.Contains(touched, p) {
			return &ocs.OpError{Op: op, Device: g.at.name, Err: kept[p]}
		}
	}
	return nil
}

// inPanic refuses circuits where a panic keeps the light away.
func (g *Gate) inPanic(ctx context.Context, at *site, add ocs.Map) error {
	if add.Len() == 0 {
		return nil
	}
	calls, err := g.calls(ctx, at)
	if err == nil {
		err = panics.Refuse(calls, at.device, at.own, add)
	}
	return about(at.name, "change circuits", err)
}

// calls are the panics, those that are about the device under another name too.
func (g *Gate) calls(ctx context.Context, at *site) ([]panics.Call, error) {
	calls, err := g.auth.Panics()
	for i := range calls {
		for j := range calls[i].Dark {
			if d := &calls[i].Dark[j]; at.is(ctx, d.Device) {
				d.Device = at.device
			}
		}
	}
	return calls, err
}

// about puts the name of a switch before errors that do not have one.
func about(name, op string, err error) error {
	var of *ocs.OpError
	if err == nil || errors.As(err, &of) {
		return err
	}
	return &ocs.OpError{Op: op, Device: name, Err: err}
}

// setting is a change of something other than circuits.
type setting struct {
	op    string // "close shutters", for errors
	ports []ocs.Port
	whole bool // all of the device is concerned, whatever the ports are
	// darkens is set where the change takes light away and brings none: a panic does not forbid that.
	darkens bool
	values  func(ctx context.Context) ([]history.Setting, error) // what it is now, and what it is to be
	send    func(ctx context.Context) error
	until   string // see [history.Entry.Until]
	undoOf  int
	// restores is set where a value is restored that this program or one that died was to change for a while: neither
	// protection, a lease nor a panic keeps that back.
	restores bool
}

// set makes a setting: in its turn, permitted, recorded.
func (g *guard) set(ctx context.Context, s setting) error {
	_, err := g.gate.set(ctx, g, s)
	return err
}

// permit refuses a setting.
func (g *guard) permit(ctx context.Context, s setting) error {
	kept, err := g.kept(ctx)
	if err != nil {
		return err
	}
	touched := s.ports
	if s.whole {
		touched = slices.Collect(maps.Keys(kept))
	}
	if err := g.refuse(s.op, kept, touched); err != nil || s.darkens {
		return err
	}
	calls, err := g.gate.calls(ctx, g.at)
	if err != nil {
		return err
	}
	for _, c := range calls {
		d, dark := c.On(g.at.device)
		if !dark || !c.Lifted.IsZero() {
			continue
		}
		if s.whole {
			return c.Refusal()
		}
		for _, p := range s.ports {
			if slices.Contains(d.Closed, p) || len(d.Removed.At(p)) > 0 || slices.Contains(g.at.own, p) {
				return fmt.Errorf("port %d: %w", p, c.Refusal())
			}
		}
	}
	return nil
}

// shutterGuard guards the shutters of a switch that has them.
type shutterGuard struct {
	ocs.Switch
	ocs.Shutter
	g *guard
}

// Unwrap returns the switch inside.
func (s *shutterGuard) Unwrap() ocs.Switch { return s.Switch }

// SetShutters closes or opens shutters. No ports are refused where any is kept: they are no port for some drivers, and
// all for others.
func (s *shutterGuard) SetShutters(ctx context.Context, closed bool, ports ...ocs.Port) error {
	op, to := "open shutters", "open"
	if closed {
		op, to = "close shutters", "closed"
	}
	return s.g.set(ctx, setting{op: op, ports: ports, whole: len(ports) == 0, darkens: closed,
		values: func(ctx context.Context) (all []history.Setting, _ error) {
			now, err := s.Shutters(ctx, ports...)
			for _, p := range slices.Sorted(maps.Keys(now)) {
				from := "open"
				if now[p] {
					from = "closed"
				}
				all = append(all, history.Setting{Kind: "shutter", Port: p, From: from, To: to})
			}
			return all, err
		},
		send: func(ctx context.Context) error { return s.Shutter.SetShutters(ctx, closed, ports...) },
	})
}

// restartGuard guards the restart of a switch that has it.
type restartGuard struct {
	ocs.Switch
	ocs.Restarter
	g *guard
}

// Unwrap returns the switch inside.
func (r *restartGuard) Unwrap() ocs.Switch { return r.Switch }

// SetBootMode is refused while any port is kept, as it decides about these at the next restart.
func (r *restartGuard) SetBootMode(ctx context.Context, mode ocs.BootMode) error {
	return r.g.set(ctx, setting{op: "set boot mode", whole: true,
		values: func(ctx context.Context) ([]history.Setting, error) {
			now, err := r.BootMode(ctx)
			return []history.Setting{{Kind: "boot mode", From: string(now), To: string(mode)}}, err
		},
		send: func(ctx context.Context) error { return r.Restarter.SetBootMode(ctx, mode) },
	})
}

// Restart is refused while any port is kept: it interrupts all light.
func (r *restartGuard) Restart(ctx context.Context) error {
	return r.g.set(ctx, setting{op: "restart", whole: true,
		values: func(context.Context) ([]history.Setting, error) { return []history.Setting{{Kind: "restart"}}, nil },
		send:   r.Restarter.Restart,
	})
}

// meterGuard guards the settings of power monitors.
type meterGuard struct {
	ocs.Switch
	ocs.PowerMeter
	g *guard
}

// Unwrap returns the switch inside.
func (m *meterGuard) Unwrap() ocs.Switch { return m.Switch }

// SetMonitor sets one monitor.
func (m *meterGuard) SetMonitor(ctx context.Context, to ocs.Monitor) error {
	return m.g.set(ctx, m.setting([]ocs.Monitor{to}))
}

// setting sets monitors, one after another.
func (m *meterGuard) setting(to []ocs.Monitor) setting {
	var ports []ocs.Port
	for _, x := range to {
		ports = append(ports, x.Port)
	}
	return setting{op: "set monitors", ports: ports,
		values: func(ctx context.Context) (all []history.Setting, _ error) {
			now, err := m.Monitors(ctx, ports...)
			if err != nil {
				return nil, err
			}
			for _, x := range to {
				s := history.Setting{Kind: "monitor", Port: x.Port, To: formatMonitor(x)}
				if i := slices.IndexFunc(now, func(n ocs.Monitor) bool { return n.Port == x.Port }); i >= 0 {
					s.From = formatMonitor(now[i])
				}
				all = append(all, s)
			}
			return all, nil
		},
		send: func(ctx context.Context) error {
			var errs []error
			for _, x := range to {
				if err := m.PowerMeter.SetMonitor(ctx, x); err != nil {
					errs = append(errs, err)
				}
			}
			return errors.Join(errs...)
		},
	}
}

// SetMonitorsMeanwhile sets monitors for as long as this program runs, and returns what sets them back to what they
// were, for which it takes a few seconds at most, also when its context has ended. When the program dies before
// that, the next one that changes the switch restores them.
func (m *meterGuard) SetMonitorsMeanwhile(ctx context.Context, to []ocs.Monitor) (restore func(context.Context) error, err error) {
	name, release, err := m.g.gate.auth.Hold()
	if err != nil {
		return nil, named(m.g.at.name, err)
	}
	s := m.setting(to)
	s.until = name
	id, err := m.g.gate.set(ctx, m.g, s)
	if err != nil && id == 0 {
		release()
		return nil, err
	}
	restore = func(ctx context.Context) error {
		defer release()
		return m.g.gate.restoreSettings(context.WithoutCancel(ctx), m.g, id)
	}
	if err != nil {
		return nil, errors.Join(err, restore(ctx))
	}
	return restore, nil
}

// MonitorSetter is a switch of a lab whose monitors can be set for a while.
type MonitorSetter interface {
	ocs.PowerMeter
	SetMonitorsMeanwhile(ctx context.Context, to []ocs.Monitor) (restore func(context.Context) error, err error)
}

// formatMonitor writes the settings of a monitor for the history: "1550 nm, 0.5 dB, 100ms".
func formatMonitor(m ocs.Monitor) string {
	return fmt.Sprintf("%s nm, %s dB, %v", strconv.FormatFloat(m.WavelengthNM, 'g', -1, 64), strconv.FormatFloat(float64(m.Offset), 'g', -1, 64), m.Averaging)
}

// parseMonitor reads what formatMonitor writes.
func parseMonitor(p ocs.Port, text string) (m ocs.Monitor, err error) {
	m.Port = p
	parts := strings.Split(text, ", ")
	if len(parts) != 3 {
		return m, fmt.Errorf("monitor %q: want wavelength, offset and averaging", text)
	}
	nm, err1 := strconv.ParseFloat(strings.TrimSuffix(parts[0], " nm"), 64)
	db, err2 := strconv.ParseFloat(strings.TrimSuffix(parts[1], " dB"), 64)
	m.WavelengthNM, m.Offset = nm, ocs.DB(db)
	m.Averaging, err = time.ParseDuration(parts[2])
	return m, errors.Join(err1, err2, err)
}

// attenuatorGuard guards the attenuators of a switch that has them.
type attenuatorGuard struct {
	ocs.Switch
	ocs.Attenuator
	g *guard
}

// Unwrap returns the switch inside.
func (a *attenuatorGuard) Unwrap() ocs.Switch { return a.Switch }

// SetAttenuation sets one attenuator.
func (a *attenuatorGuard) SetAttenuation(ctx context.Context, p ocs.Port, loss ocs.DB) error {
	return a.g.set(ctx, setting{op: "set attenuation", ports: []ocs.Port{p},
		values: func(ctx context.Context) ([]history.Setting, error) {
			s := history.Setting{Kind: "attenuation", Port: p, To: strconv.FormatFloat(float64(loss), 'g', -1, 64)}
			now, err := a.Attenuation(ctx, p)
			if err == nil {
				s.From = strconv.FormatFloat(float64(now), 'g', -1, 64)
			} else if errors.Is(err, ocs.ErrUntold) {
				err = nil
			}
			return []history.Setting{s}, err
		},
		send: func(ctx context.Context) error { return a.Attenuator.SetAttenuation(ctx, p, loss) },
	})
}

// labelGuard guards the labels of a switch that has them.
type labelGuard struct {
	ocs.Switch
	ocs.Labeler
	g *guard
}

// Unwrap returns the switch inside.
func (l *labelGuard) Unwrap() ocs.Switch { return l.Switch }

// SetLabel stores a label.
func (l *labelGuard) SetLabel(ctx context.Context, p ocs.Port, text string) error {
	return l.g.set(ctx, setting{op: "set label", ports: []ocs.Port{p},
		values: func(ctx context.Context) ([]history.Setting, error) {
			now, err := l.Labels(ctx, p)
			return []history.Setting{{Kind: "label", Port: p, From: now[p], To: text}}, err
		},
		send: func(ctx context.Context) error { return l.Labeler.SetLabel(ctx, p, text) },
	})
}
