package live

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ocslab/ocslab/drivers/ocstrx"
	"github.com/ocslab/ocslab/internal/natural"
	"github.com/ocslab/ocslab/ocs"
)

// facts is what a switch says of itself beside its identity, circuits and powers.
type facts struct {
	// Labels and Shut are nil when they could not be read, or when the switch has none to
	// tell; a switch without a label or a closed shutter has an empty map.
	Labels map[ocs.Port]string
	Shut   map[ocs.Port]bool

	Shutters  bool // it has shutters
	Monitored bool // it has power monitors
	Facts     []Fact
	Modules   []Module
}

// mostAttenuators is how many egress ports are asked for their attenuators, one request
// each. A switch that has more is not asked: the session is for other things, too.
const mostAttenuators = 64

// readFacts asks a switch for all that it can tell and that does not change by the second.
// It sends nothing that changes the device. What the switch does not support is left out;
// what fails is left out, too, and named in the error beside the facts that were read. The
// end of ctx ends it.
func readFacts(ctx context.Context, sw ocs.Switch) (facts, error) {
	var f facts
	var failed []error
	for _, read := range []func(context.Context, ocs.Switch) error{
		f.readMonitors, f.readShutters, f.readLabels, f.readAttenuators, f.readBoot, f.readModules,
	} {
		if ctx.Err() != nil {
			failed = append(failed, context.Cause(ctx))
			break
		}
		if err := read(ctx, sw); err != nil && !errors.Is(err, ocs.ErrNotSupported) {
			failed = append(failed, err)
		}
	}
	return f, errors.Join(failed...)
}

func (f *facts) tell(name, format string, args ...any) {
	f.Facts = append(f.Facts, Fact{name, fmt.Sprintf(format, args...)})
}

// readMonitors tells how the monitors are set. A driver that cannot read that may have
// monitors all the same, so it is asked for a reading.
func (f *facts) readMonitors(ctx context.Context, sw ocs.Switch) error {
	pm, ok := ocs.As[ocs.PowerMeter](sw)
	if !ok {
		return nil
	}
	list, err := pm.Monitors(ctx)
	if err == nil && len(list) > 0 {
		f.Monitored = true
		f.tell("monitors", "%s", monitors(list))
		return nil
	}
	r, perr := pm.Power(ctx)
	if perr != nil {
		return perr
	}
	if f.Monitored = len(r.Ports) > 0; f.Monitored {
		f.tell("monitors", "on %s; how they are set is not told", natural.Count(len(r.Ports), "port"))
	}
	return err
}

// monitors says how monitors are set: "averaging 10 ms to 1 s on 64 ports, 1550 nm".
func monitors(list []ocs.Monitor) string {
	least, most := list[0], list[0]
	offset := 0
	for _, m := range list {
		least.Averaging, most.Averaging = min(least.Averaging, m.Averaging), max(most.Averaging, m.Averaging)
		least.WavelengthNM, most.WavelengthNM = min(least.WavelengthNM, m.WavelengthNM), max(most.WavelengthNM, m.WavelengthNM)
		if m.Offset != 0 {
			offset++
		}
	}
	text := "averaging " + span(least.Averaging)
	if most.Averaging != least.Averaging {
		text += " to " + span(most.Averaging)
	}
	text += " on " + natural.Count(len(list), "port")
	if least.WavelengthNM > 0 {
		text += fmt.Sprintf(", %g", least.WavelengthNM)
		if most.WavelengthNM != least.WavelengthNM {
			text += fmt.Sprintf(" to %g", most.WavelengthNM)
		}
		text += " nm"
	}
	if offset > 0 {
		text += ", " + natural.Count(offset, "reading") + " with an offset"
	}
	return text
}

// span writes how long monitors average: "10 ms", "1.28 s".
func span(d time.Duration) string {
	if d < time.Second {
		return fmt.Sprintf("%g ms", float64(d)/1e6)
	}
	return fmt.Sprintf("%g s", d.Seconds())
}

func (f *facts) readShutters(ctx context.Context, sw ocs.Switch) error {
	sh, ok := ocs.As[ocs.Shutter](sw)
	if !ok {
		return nil
	}
	all, err := sh.Shutters(ctx)
	if err != nil {
		f.Shutters = !errors.Is(err, ocs.ErrNotSupported)
		return err
	}
	f.Shutters = len(all) > 0
	f.Shut = map[ocs.Port]bool{}
	for p, closed := range all {
		if closed {
			f.Shut[p] = true
		}
	}
	switch {
	case !f.Shutters:
	case len(f.Shut) == 0:
		f.tell("shutters", "%d, all open", len(all))
	default:
		f.tell("shutters", "%d of %d closed", len(f.Shut), len(all))
	}
	return nil
}

func (f *facts) readLabels(ctx context.Context, sw ocs.Switch) error {
	l, ok := ocs.As[ocs.Labeler](sw)
	if !ok {
		return nil
	}
	labels, err := l.Labels(ctx)
	if err != nil {
		return err
	}
	f.Labels = map[ocs.Port]string{}
	for p, text := range labels {
		if text != "" {
			f.Labels[p] = text
		}
	}
	f.tell("labels", "%s", natural.Count(len(f.Labels), "port"))
	return nil
}

// readAttenuators counts the attenuators that are at work.
func (f *facts) readAttenuators(ctx context.Context, sw ocs.Switch) error {
	a, ok := ocs.As[ocs.Attenuator](sw)
	if !ok {
		return nil
	}
	id, err := sw.Identify(ctx)
	if err != nil {
		return err
	}
	ports := id.Geometry.EgressPorts()
	if len(ports) > mostAttenuators {
		_, err := a.Attenuation(ctx, ports[0])
		if err == nil {
			f.tell("attenuators", "fitted; not read, as that takes a request for each of %d ports", len(ports))
		}
		return err
	}
	var used []ocs.Port
	told, most := 0, ocs.DB(0)
	for i, p := range ports {
		loss, err := a.Attenuation(ctx, p)
		switch {
		case errors.Is(err, ocs.ErrNotSupported):
			// Of the first port it means that there are none, but for modes in which the
			// device does not tell, and those are rare.
			if i == 0 {
				return err
			}
			continue
		case err != nil:
			return err
		}
		told++
		if loss > 0 {
			used, most = append(used, p), max(most, loss)
		}
	}
	switch {
	case told == 0:
	case len(used) == 0:
		f.tell("attenuators", "%d, none in use", told)
	default:
		f.tell("attenuators", "%d of %d in use, up to %v: %s", len(used), told, most, ocs.FormatPorts(used))
	}
	return nil
}

func (f *facts) readBoot(ctx context.Context, sw ocs.Switch) error {
	r, ok := ocs.As[ocs.Restarter](sw)
	if !ok {
		return nil
	}
	mode, err := r.BootMode(ctx)
	if err != nil {
		return err
	}
	means := map[ocs.BootMode]string{
		ocs.BootDark: "a restart leaves it without circuits", ocs.BootRestore: "a restart brings its circuits back",
		ocs.BootAutosave: "a restart brings its circuits back, and each change is saved",
	}
	if text := means[mode]; text != "" {
		f.tell("boot mode", "%s: %s", mode, text)
	} else {
		f.tell("boot mode", "%s", mode)
	}
	return nil
}

// readModules asks the modules of a bundle of transceivers; another switch has none.
func (f *facts) readModules(ctx context.Context, sw ocs.Switch) error {
	trx, ok := ocs.As[*ocstrx.Switch](sw)
	if !ok {
		return nil
	}
	list, err := trx.Telemetry(ctx)
	if err != nil {
		return err
	}
	var failed []error
	for _, t := range list {
		m, err := readModule(ctx, trx, t, time.Now())
		f.Modules = append(f.Modules, m)
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", t.Name, err))
		}
	}
	f.tell("modules", "%s", natural.Count(len(list), "module"))
	return errors.Join(failed...)
}

// days writes a time in whole days.
func days(d time.Duration) string {
	if d < 24*time.Hour {
		return "less than a day"
	}
	return natural.Count(int(d/(24*time.Hour)), "day")
}

// median returns the middle of some numbers, 0 of none. It sorts them.
func median(list []float64) float64 {
	if len(list) == 0 {
		return 0
	}
	slices.Sort(list)
	return list[len(list)/2]
}
