package lab

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ocslab/ocslab/ocs"
)

// Verify says how far a change is verified.
type Verify string

const (
	// VerifyLight looks at the light of circuits, where the device has power monitors.
	VerifyLight Verify = "light"
	// VerifyTable reads back the map, and looks at no light.
	VerifyTable Verify = "table"
)

// ParseVerify reads "light" or "table".
func ParseVerify(s string) (Verify, error) {
	switch v := Verify(s); v {
	case VerifyLight, VerifyTable:
		return v, nil
	}
	return "", fmt.Errorf("verify %q: want table or light", s)
}

// LightState is what the power monitors say of a circuit.
type LightState string

const (
	LightOn      LightState = "light"          // light leaves by its egress
	LightDark    LightState = "dark"           // none does
	LightNoInput LightState = "no input light" // none does, and none goes in
	LightShut    LightState = "shutter closed" // none does, since a shutter is closed
	LightUnknown LightState = "not measured"   // there is no monitor at its egress, or it could not be read
)

// Light is what the power monitors say of one circuit.
type Light struct {
	Circuit ocs.CrossConnect
	State   LightState
	In, Out *ocs.DBm // nil where there is no monitor
}

// DarkError says which circuits pass no light though light goes in. It matches [ocs.ErrVerify].
type DarkError struct {
	Switch string
	Dark   []Light
}

// Error names the ports, and what the monitors say.
func (e *DarkError) Error() string {
	var texts []string
	for _, l := range e.Dark {
		texts = append(texts, fmt.Sprintf("port %d of %s is dark (%.1f dBm), though port %d receives %.1f dBm: %v passes no light",
			l.Circuit.Egress, e.Switch, float64(*l.Out), l.Circuit.Ingress, float64(*l.In), l.Circuit))
	}
	return strings.Join(texts, "; ") + "; check the path and its connectors, or use --verify table to ignore the light"
}

// Unwrap returns [ocs.ErrVerify].
func (e *DarkError) Unwrap() error { return ocs.ErrVerify }

const (
	lightTimeout = 3 * time.Second       // how long the light of a circuit may take to come
	lightPause   = 20 * time.Millisecond // between two readings of the monitors
	mostSettle   = time.Second           // how long monitors are given to forget what was before
)

// look says of each circuit that was connected, or kept as asked, whether light passes. The error is a [*DarkError], or
// nil: monitors that cannot be read give no error.
func (g *Gate) look(ctx context.Context, o *Opened, i Intent, r ocs.Report) ([]Light, error) {
	verify := i.Verify
	if verify == "" {
		verify = g.verify
	}
	var lights []Light
	for _, x := range r.Outcomes {
		if x.State == ocs.Connected || x.State == ocs.Kept {
			lights = append(lights, Light{Circuit: x.CrossConnect, State: LightUnknown})
		}
	}
	meter, has := ocs.As[ocs.PowerMeter](o)
	if verify == VerifyTable || !has || len(lights) == 0 || !r.ReadBack {
		return lights, nil
	}
	if r.Change.Remove.Len() > 0 && !settle(ctx, meter, r) {
		return lights, nil
	}
	for end := time.Now().Add(lightTimeout); ; {
		if !readLights(ctx, meter, lights) {
			return lights, nil
		}
		dark := func(l Light) bool { return l.State == LightDark }
		if slices.ContainsFunc(lights, dark) {
			shut(ctx, o, lights)
		}
		if !slices.ContainsFunc(lights, dark) || time.Now().After(end) || !pause(ctx, lightPause) {
			break
		}
	}
	var dark []Light
	for _, l := range lights {
		if l.State == LightDark && l.In != nil {
			dark = append(dark, l)
		}
	}
	if len(dark) > 0 {
		return lights, &DarkError{Switch: o.Name, Dark: dark}
	}
	return lights, nil
}

// settle waits until what monitors average has nothing in it of before the change, which may have lit the same ports
// otherwise. It reports false if ctx has ended.
func settle(ctx context.Context, meter ocs.PowerMeter, r ocs.Report) bool {
	var ports []ocs.Port
	for c := range r.Change.Add.All() {
		if len(r.Before.At(c.Egress)) > 0 {
			ports = append(ports, c.Egress)
		}
	}
	if len(ports) == 0 {
		return true
	}
	var longest time.Duration
	if set, err := meter.Monitors(ctx, ports...); err == nil {
		for _, m := range set {
			longest = max(longest, m.Averaging)
		}
	}
	return pause(ctx, min(longest, mostSettle))
}

// readLights reads the monitors at both ends of circuits once, and reports whether that went well.
func readLights(ctx context.Context, meter ocs.PowerMeter, lights []Light) bool {
	var ports []ocs.Port
	for _, l := range lights {
		ports = append(ports, l.Circuit.Ingress, l.Circuit.Egress)
	}
	slices.Sort(ports)
	now, err := meter.Power(ctx, slices.Compact(ports)...)
	if err != nil && !errors.Is(err, ocs.ErrNotSupported) && ctx.Err() == nil {
		now, err = meter.Power(ctx) // a device may refuse ports that have no monitor
	}
	if err != nil {
		return false
	}
	for i := range lights {
		l := &lights[i]
		in, hasIn := now.Ports[l.Circuit.Ingress]
		out, hasOut := now.Ports[l.Circuit.Egress]
		l.In, l.Out = nil, nil
		if hasIn {
			l.In = &in
		}
		if hasOut {
			l.Out = &out
		}
		switch {
		case !hasOut:
			l.State = LightUnknown
		case out > ocs.NoLight:
			l.State = LightOn
		case hasIn && in <= ocs.NoLight:
			l.State = LightNoInput
		default:
			l.State = LightDark
		}
	}
	return true
}

// shut finds the circuits that are dark since a shutter is closed at one of their ports.
func shut(ctx context.Context, o *Opened, lights []Light) {
	s, has := ocs.As[ocs.Shutter](o)
	if !has {
		return
	}
	for i := range lights {
		l := &lights[i]
		if l.State != LightDark {
			continue
		}
		closed, err := s.Shutters(ctx, l.Circuit.Ingress, l.Circuit.Egress)
		if err == nil && (closed[l.Circuit.Ingress] || closed[l.Circuit.Egress]) {
			l.State = LightShut
		}
	}
}

// pause waits, and reports false if ctx has ended before.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// expectation is what a switch is expected to hold after the last change of this program.
type expectation struct {
	at      time.Time
	present ocs.Map
}

// expect remembers what a change has connected.
func (g *Gate) expect(o *Opened, r ocs.Report) {
	if r.Change.Empty() {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	was := g.expected[o]
	var present []ocs.CrossConnect
	for c := range r.After.All() {
		if was.present.Has(c) && !r.Change.Remove.Has(c) || r.Change.Add.Has(c) {
			present = append(present, c)
		}
	}
	g.expected[o] = expectation{time.Now(), ocs.MustMap(present...)}
}

// Recheck reads the switches that were changed once more, a time after their last change, and returns an error that
// matches [ocs.ErrVerify] for circuits that are no longer there: another user has removed them. Emulations that this
// program runs are not asked. It does nothing when after is not above 0, and for what it has asked about before.
func (g *Gate) Recheck(ctx context.Context, after time.Duration) error {
	g.mu.Lock()
	expected := g.expected
	g.expected = map[*Opened]expectation{}
	g.mu.Unlock()
	var missing error
	for o, e := range expected {
		if after <= 0 || e.present.Len() == 0 || o.Emulated != nil && o.memory == nil || !pause(ctx, time.Until(e.at.Add(after))) {
			continue
		}
		have, err := o.CrossConnects(ctx)
		if err != nil {
			missing = ocs.Join(missing, fmt.Errorf("%s could not be read once more after the change: %w", o.Name, err))
			continue
		}
		if gone := e.present.Minus(have); gone.Len() > 0 {
			missing = ocs.Join(missing, fmt.Errorf("%s: %w: %v was read back, and %v later it is not there: another user removed it",
				o.Name, ocs.ErrVerify, gone, time.Since(e.at).Round(time.Millisecond)))
		}
	}
	return missing
}
