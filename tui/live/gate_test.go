package live

import (
	"context"
	"errors"
	"testing"

	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/ocs/ocstest"
)

// able is a switch that can do everything, and counts what changes it.
type able struct {
	*ocstest.Switch
	changed *int
}

func (a able) change() error { *a.changed++; return nil }

func (a able) Apply(context.Context, ocs.Change) (ocs.Receipt, error) {
	return ocs.Receipt{Requests: 1}, a.change()
}

func (able) Power(context.Context, ...ocs.Port) (ocs.PowerReading, error) {
	return ocs.PowerReading{Ports: map[ocs.Port]ocs.DBm{9: -1}}, nil
}
func (able) Monitors(context.Context, ...ocs.Port) ([]ocs.Monitor, error) {
	return []ocs.Monitor{{Port: 9}}, nil
}
func (a able) SetMonitor(context.Context, ocs.Monitor) error { return a.change() }
func (able) Shutters(context.Context, ...ocs.Port) (map[ocs.Port]bool, error) {
	return map[ocs.Port]bool{1: true}, nil
}
func (a able) SetShutters(context.Context, bool, ...ocs.Port) error { return a.change() }
func (able) Labels(context.Context, ...ocs.Port) (map[ocs.Port]string, error) {
	return map[ocs.Port]string{1: "one"}, nil
}
func (a able) SetLabel(context.Context, ocs.Port, string) error       { return a.change() }
func (able) Attenuation(context.Context, ocs.Port) (ocs.DB, error)    { return 3, nil }
func (a able) SetAttenuation(context.Context, ocs.Port, ocs.DB) error { return a.change() }
func (able) Notify(_ context.Context, f func(ocs.Event)) error        { f(ocs.Event{Port: 1}); return nil }
func (a able) Calibrate(context.Context, ...ocs.Port) error           { return a.change() }
func (able) BootMode(context.Context) (ocs.BootMode, error)           { return ocs.BootDark, nil }
func (a able) SetBootMode(context.Context, ocs.BootMode) error        { return a.change() }
func (a able) Restart(context.Context) error                          { return a.change() }

// everything calls all that a switch may have, found as the rest of the program finds it, and
// returns what each said. A capability that is not there is left out.
func everything(ctx context.Context, sw ocs.Switch) (changing, reading map[string]error) {
	changing, reading = map[string]error{}, map[string]error{}
	_, changing["apply"] = sw.Apply(ctx, ocs.Change{})
	_, reading["identify"] = sw.Identify(ctx)
	_, reading["circuits"] = sw.CrossConnects(ctx)
	if x, ok := ocs.As[ocs.PowerMeter](sw); ok {
		_, reading["power"] = x.Power(ctx)
		_, reading["monitors"] = x.Monitors(ctx)
		changing["set monitor"] = x.SetMonitor(ctx, ocs.Monitor{})
	}
	if x, ok := ocs.As[ocs.Shutter](sw); ok {
		_, reading["shutters"] = x.Shutters(ctx)
		changing["set shutters"] = x.SetShutters(ctx, true, 1)
	}
	if x, ok := ocs.As[ocs.Labeler](sw); ok {
		_, reading["labels"] = x.Labels(ctx)
		changing["set label"] = x.SetLabel(ctx, 1, "x")
	}
	if x, ok := ocs.As[ocs.Attenuator](sw); ok {
		_, reading["attenuation"] = x.Attenuation(ctx, 9)
		changing["set attenuation"] = x.SetAttenuation(ctx, 9, 1)
	}
	if x, ok := ocs.As[ocs.Notifier](sw); ok {
		reading["notify"] = x.Notify(ctx, func(ocs.Event) {})
	}
	if x, ok := ocs.As[ocs.Calibrator](sw); ok {
		changing["calibrate"] = x.Calibrate(ctx)
	}
	if x, ok := ocs.As[ocs.Restarter](sw); ok {
		_, reading["boot mode"] = x.BootMode(ctx)
		changing["set boot mode"] = x.SetBootMode(ctx, ocs.BootRestore)
		changing["restart"] = x.Restart(ctx)
	}
	return changing, reading
}

// Ensure nothing of any capability changes a switch while the session is read-only, that
// everything can be read all the same, and that everything passes when it is not.
func TestGate(t *testing.T) {
	changed := 0
	inside := able{ocstest.New(8, ocs.Map{}), &changed}
	s := &Session{opt: Options{}, wake: make(chan struct{}, 1)}
	s.reading = true
	g := &gate{Switch: inside, s: s, name: "sw0", own: newLedger()}
	for name, sw := range map[string]ocs.Switch{"gate": g, "reading": reading{inside}} {
		changing, reading := everything(t.Context(), sw)
		for what, err := range changing {
			if !errors.Is(err, ErrReadOnly) {
				t.Errorf("%s: %s: %v", name, what, err)
			}
		}
		if len(changing) != 7 { // calibrating has nothing to read, so it is not there at all
			t.Errorf("%s: %d capabilities that change something were tried: %v", name, len(changing), changing)
		}
		for what, err := range reading {
			if err != nil {
				t.Errorf("%s: %s: %v", name, what, err)
			}
		}
		if len(reading) != 9 {
			t.Errorf("%s: %d readings were tried: %v", name, len(reading), reading)
		}
	}
	if changed != 0 {
		t.Errorf("%d changes got through", changed)
	}
	s.reading = false
	changing, _ := everything(t.Context(), g)
	if len(changing) != 8 || changed != 8 {
		t.Errorf("%d changes of %d got through", changed, len(changing))
	}
}

// Ensure reading what a switch does not have is told as not supported.
func TestReading_Lacks(t *testing.T) {
	_, read := everything(t.Context(), reading{ocstest.New(8, ocs.Map{})})
	for what, err := range read {
		if want := what != "identify" && what != "circuits"; errors.Is(err, ocs.ErrNotSupported) != want {
			t.Errorf("%s: %v", what, err)
		}
	}
}
