package conformance

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ocslab/ocslab/internal/pause"
	"github.com/ocslab/ocslab/ocs"
)

// dirty is what the suite may have changed besides circuits at its own ports,
// which the ledger knows.
type dirty struct {
	whole    *ocs.Map // set while everything may be darkened: the map before
	shutters map[ocs.Port]bool
	labels   map[ocs.Port]bool
	monitors map[ocs.Port]bool
	dimmed   map[ocs.Port]bool // attenuators, which attenuated nothing
	boot     bool
}

func newDirty() dirty {
	return dirty{
		shutters: map[ocs.Port]bool{}, labels: map[ocs.Port]bool{},
		monitors: map[ocs.Port]bool{}, dimmed: map[ocs.Port]bool{},
	}
}

// SetShutters operates shutters at ports of the suite.
func (b *bench) setShutters(ctx context.Context, sw ocs.Switch, closed bool, ports ...ocs.Port) error {
	if err := b.claim(ctx, sw, ports...); err != nil {
		return err
	}
	for _, p := range ports {
		b.dirty.shutters[p] = true
	}
	s, _ := ocs.As[ocs.Shutter](sw)
	return s.SetShutters(ctx, closed, ports...)
}

// setLabel labels a port of the suite.
func (b *bench) setLabel(ctx context.Context, p ocs.Port, text string) error {
	if err := b.claim(ctx, b.first, p); err != nil {
		return err
	}
	b.dirty.labels[p] = true
	l, _ := ocs.As[ocs.Labeler](b.first)
	return l.SetLabel(ctx, p, text)
}

// setMonitor sets the monitor at a port of the suite.
func (b *bench) setMonitor(ctx context.Context, m ocs.Monitor) error {
	if err := b.claim(ctx, b.first, m.Port); err != nil {
		return err
	}
	was := b.dirty.monitors[m.Port]
	b.dirty.monitors[m.Port] = true
	pm, _ := ocs.As[ocs.PowerMeter](b.first)
	err := pm.SetMonitor(ctx, m)
	if errors.Is(err, ocs.ErrNotSupported) && !was {
		delete(b.dirty.monitors, m.Port) // nothing has changed
	}
	return err
}

// setAttenuation sets the attenuator at a port of the suite.
func (b *bench) setAttenuation(ctx context.Context, p ocs.Port, loss ocs.DB) error {
	if err := b.claim(ctx, b.first, p); err != nil {
		return err
	}
	b.dirty.dimmed[p] = true
	a, _ := ocs.As[ocs.Attenuator](b.first)
	return a.SetAttenuation(ctx, p, loss)
}

// setBoot changes the boot mode.
func (b *bench) setBoot(ctx context.Context, m ocs.BootMode) error {
	b.dirty.boot = true
	r, _ := ocs.As[ocs.Restarter](b.first)
	return r.SetBootMode(ctx, m)
}

// dirt says for people what may not be as it was found.
func (b *bench) dirt() []string {
	var left []string
	if b.dirty.whole != nil {
		left = append(left, "the map, which was "+orNothing(*b.dirty.whole))
	}
	for _, c := range b.ledger.held() {
		left = append(left, fmt.Sprintf("%v, which was not there", c))
	}
	for _, p := range sortedPorts(b.dirty.shutters) {
		was := "open"
		if b.shutters[p] {
			was = "closed"
		}
		left = append(left, fmt.Sprintf("the shutter of port %d, which was %s", p, was))
	}
	for _, p := range sortedPorts(b.dirty.labels) {
		left = append(left, fmt.Sprintf("the label of port %d, which was %q", p, b.labels[p]))
	}
	for _, p := range sortedPorts(b.dirty.monitors) {
		m := b.monitors[p]
		left = append(left, fmt.Sprintf("the monitor of port %d, which was set to %g nm, %v, %v", p, m.WavelengthNM, m.Offset, m.Averaging))
	}
	for _, p := range sortedPorts(b.dirty.dimmed) {
		left = append(left, fmt.Sprintf("the attenuator of port %d, which was off", p))
	}
	if b.dirty.boot {
		left = append(left, fmt.Sprintf("the boot mode, which was %s", b.boot))
	}
	return left
}

// attempts is how often putting back is tried, each time over a new session.
const attempts = 3

// restore puts back what was changed, also when ctx has ended. It returns what
// went wrong on the way, even if it went right at last.
func (b *bench) restore(ctx context.Context) error {
	var trouble error
	for attempt := 0; attempt < attempts && len(b.dirt()) > 0; attempt++ {
		// Each attempt has its share of the time, so that a device that hangs
		// does not use it all up at once.
		one, cancel := context.WithTimeout(context.WithoutCancel(ctx), b.cfg.Timeout/attempts)
		var err error
		if attempt > 0 || b.first == nil {
			err = b.reopen(one)
		}
		if err == nil {
			err = safely(func() error { return b.putBack(one, attempt > 0) })
		}
		cancel()
		if trouble == nil {
			trouble = err
		}
	}
	return trouble
}

// putBack puts back everything once. Shutters come first: light that is to be
// blocked does not come back before.
func (b *bench) putBack(ctx context.Context, singly bool) error {
	var errs []error
	for _, step := range []func() error{
		func() error { return b.putShutters(ctx) },
		func() error { return b.putCircuits(ctx, singly) },
		func() error { return b.putLabels(ctx) },
		func() error { return b.putMonitors(ctx) },
		func() error { return b.putAttenuators(ctx) },
		func() error { return b.putBoot(ctx) },
	} {
		if err := step(); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func (b *bench) putShutters(ctx context.Context) error {
	s, ok := ocs.As[ocs.Shutter](b.first)
	if !ok || len(b.dirty.shutters) == 0 {
		return nil
	}
	ports := map[bool][]ocs.Port{}
	for _, p := range sortedPorts(b.dirty.shutters) {
		ports[b.shutters[p]] = append(ports[b.shutters[p]], p)
	}
	var errs []error
	for _, closed := range []bool{true, false} {
		if len(ports[closed]) > 0 {
			errs = append(errs, s.SetShutters(ctx, closed, ports[closed]...))
		}
	}
	now, err := s.Shutters(ctx, sortedPorts(b.dirty.shutters)...)
	if err != nil {
		return errors.Join(append(errs, err)...)
	}
	for p := range b.dirty.shutters {
		if closed, told := now[p]; told && closed == b.shutters[p] {
			delete(b.dirty.shutters, p)
		} else {
			errs = append(errs, fmt.Errorf("the shutter of port %d does not read back as it was", p))
		}
	}
	return errors.Join(errs...)
}

// putCircuits removes what is of the suite or, after a check that may darken
// everything, brings back the map before it.
func (b *bench) putCircuits(ctx context.Context, singly bool) error {
	if b.dirty.whole == nil && len(b.ledger.held()) == 0 {
		return nil
	}
	err := b.remove(ctx, singly)
	if b.ledger.doubts() {
		// A request whose reply was lost may take effect still.
		if err := pause.For(ctx, min(b.cfg.Settle/10, time.Second)); err != nil {
			return err
		}
		b.ledger.settle()
		err = errors.Join(err, b.remove(ctx, singly))
	}
	return err
}

func (b *bench) remove(ctx context.Context, singly bool) error {
	m, err := b.first.CrossConnects(ctx)
	if err != nil {
		return err
	}
	var disturbed, applied error
	var change ocs.Change
	if b.dirty.whole != nil {
		change = ocs.Diff(m, *b.dirty.whole)
	} else {
		disturbed = b.observe(m)
		change.Remove = b.ledger.ours(m)
	}
	switch {
	case change.Empty():
	case singly && b.dirty.whole == nil: // one of them may be what is refused
		for c := range change.Remove.All() {
			applied = errors.Join(applied, b.take(ctx, ocs.Change{Remove: ocs.MustMap(c)}))
		}
	default:
		applied = b.take(ctx, change)
	}
	if m, err = b.first.CrossConnects(ctx); err != nil {
		return errors.Join(disturbed, applied, err)
	}
	if w := b.dirty.whole; w != nil {
		if !m.Equal(*w) {
			return errors.Join(applied, fmt.Errorf("the map should be %s again, but %s reads back", orNothing(*w), orNothing(m)))
		}
		b.dirty.whole = nil
		b.ledger.start(m)
		return applied
	}
	disturbed = errors.Join(disturbed, b.observe(m))
	if left := b.ledger.ours(m); left.Len() > 0 {
		return errors.Join(disturbed, applied, fmt.Errorf("%s should be gone, but reads back", left))
	}
	return errors.Join(disturbed, applied)
}

// take applies a change of the restoring.
func (b *bench) take(ctx context.Context, c ocs.Change) error {
	if b.dirty.whole == nil {
		b.ledger.note(c)
	}
	_, err := b.first.Apply(ctx, c)
	return err
}

func (b *bench) putLabels(ctx context.Context) error {
	l, ok := ocs.As[ocs.Labeler](b.first)
	if !ok || len(b.dirty.labels) == 0 {
		return nil
	}
	var errs []error
	for _, p := range sortedPorts(b.dirty.labels) {
		errs = append(errs, l.SetLabel(ctx, p, b.labels[p]))
	}
	now, err := l.Labels(ctx, sortedPorts(b.dirty.labels)...)
	if err != nil {
		return errors.Join(append(errs, err)...)
	}
	for p := range b.dirty.labels {
		if now[p] == b.labels[p] {
			delete(b.dirty.labels, p)
		} else {
			errs = append(errs, fmt.Errorf("the label of port %d should be %q again, but %q reads back", p, b.labels[p], now[p]))
		}
	}
	return errors.Join(errs...)
}

func (b *bench) putMonitors(ctx context.Context) error {
	pm, ok := ocs.As[ocs.PowerMeter](b.first)
	if !ok || len(b.dirty.monitors) == 0 {
		return nil
	}
	var errs []error
	for _, p := range sortedPorts(b.dirty.monitors) {
		errs = append(errs, pm.SetMonitor(ctx, b.monitors[p]))
	}
	now, err := pm.Monitors(ctx, sortedPorts(b.dirty.monitors)...)
	if err != nil {
		return errors.Join(append(errs, err)...)
	}
	for _, m := range now {
		if m == b.monitors[m.Port] {
			delete(b.dirty.monitors, m.Port)
		}
	}
	for _, p := range sortedPorts(b.dirty.monitors) {
		errs = append(errs, fmt.Errorf("the monitor of port %d does not read back as it was", p))
	}
	return errors.Join(errs...)
}

func (b *bench) putAttenuators(ctx context.Context) error {
	a, ok := ocs.As[ocs.Attenuator](b.first)
	if !ok {
		return nil
	}
	var errs []error
	for _, p := range sortedPorts(b.dirty.dimmed) {
		err := a.SetAttenuation(ctx, p, 0)
		now, readErr := a.Attenuation(ctx, p)
		switch {
		case err != nil || readErr != nil:
			errs = append(errs, err, readErr)
		case now != 0:
			errs = append(errs, fmt.Errorf("the attenuator of port %d should be off again, but %v reads back", p, now))
		default:
			delete(b.dirty.dimmed, p)
		}
	}
	return errors.Join(errs...)
}

func (b *bench) putBoot(ctx context.Context) error {
	r, ok := ocs.As[ocs.Restarter](b.first)
	if !ok || !b.dirty.boot {
		return nil
	}
	err := r.SetBootMode(ctx, b.boot)
	now, readErr := r.BootMode(ctx)
	switch {
	case readErr != nil:
		return errors.Join(err, readErr)
	case now != b.boot:
		return errors.Join(err, fmt.Errorf("the boot mode should be %s again, but %s reads back", b.boot, now))
	}
	b.dirty.boot = false
	return err
}

// leave puts back what is left, looks once more, and returns what is not as it
// was found.
func (b *bench) leave(ctx context.Context) []string {
	if b.lookErr != nil {
		return nil // nothing was changed
	}
	_ = b.restore(ctx) // what is left counts, not how it went
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), b.cfg.Timeout)
	defer cancel()
	left := b.dirt()
	if len(b.used) == 0 && b.stopped == nil && len(left) == 0 {
		return nil
	}
	// Over a new session, in case the old one remembers.
	err := b.reopen(ctx)
	var m ocs.Map
	if err == nil {
		err = safely(func() (err error) { m, err = b.first.CrossConnects(ctx); return err })
	}
	if err != nil {
		return append(left, "the map could not be read at the end: "+sentence(err))
	}
	if b.dirty.whole == nil {
		_ = b.observe(m) // enters what is disturbed
	}
	for _, d := range b.ledger.disturbed {
		if m.Has(d.c) != (d.what == vanished) {
			left = append(left, fmt.Sprintf("%s; it is for people to judge, and left as it is", &d))
		}
	}
	return left
}
