package tl1switch_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/ocslab/ocslab/drivers/internal/drivertest"
	"github.com/ocslab/ocslab/drivers/tl1switch"
	"github.com/ocslab/ocslab/drivers/transport"
	"github.com/ocslab/ocslab/internal/secret"
	"github.com/ocslab/ocslab/ocs"
)

// TestAgainstEmulator is everything once against the emulated switch.
func TestAgainstEmulator(t *testing.T) {
	dev, addr := serve(t, "polatis-6000-32x32")
	sw := openTCP(t, addr)
	ctx := t.Context()
	id, err := sw.Identify(ctx)
	if err != nil || id.Geometry != ocs.TwoSided(32, 32) || id.Serial != dev.Serial() || id.Vendor != "Polatis" {
		t.Errorf("got %+v, %v", id, err)
	}
	want := drivertest.Map(t, "1>33,2>34")
	r, err := ocs.Reconcile(ctx, sw, want, ocs.Safe)
	if err != nil || r.Receipt.Requests != 1 || !r.After.Equal(want) {
		t.Errorf("got %+v, %v", r, err)
	}
	if _, err := sw.Apply(ctx, ocs.Change{Add: drivertest.Map(t, "99>100")}); !errors.Is(err, ocs.ErrPort) || !errors.Is(err, ocs.ErrDenied) {
		t.Errorf("port 99: got %v", err)
	}
	power, err := sw.Power(ctx, 1, 33, 35)
	if err != nil || len(power.Ports) != 3 || power.Ports[1] < -10 || power.Ports[35] > -40 {
		t.Errorf("got %v, %v", power, err)
	}
	if err := sw.SetMonitor(ctx, ocs.Monitor{Port: 33, WavelengthNM: 1310, Offset: -0.5, Averaging: 20 * time.Millisecond}); err != nil {
		t.Error(err)
	}
	ms, err := sw.Monitors(ctx, 33)
	if err != nil || len(ms) != 1 || ms[0] != (ocs.Monitor{Port: 33, WavelengthNM: 1310, Offset: -0.5, Averaging: 20 * time.Millisecond}) {
		t.Errorf("got %v, %v", ms, err)
	}

	events := make(chan ocs.Event, 1)
	listening, stop := context.WithCancel(ctx)
	ended := make(chan error)
	go func() { ended <- sw.Notify(listening, func(e ocs.Event) { events <- e }) }()
	for heard := false; !heard; { // Notify needs a moment
		if err := errors.Join(sw.SetShutters(ctx, false, 3), sw.SetShutters(ctx, true, 3)); err != nil {
			t.Fatal(err)
		}
		select {
		case e := <-events:
			heard = true
			if e.Port != 3 {
				t.Errorf("got event %+v", e)
			}
		case <-time.After(10 * time.Millisecond):
		}
	}
	stop()
	for done := false; !done; {
		select {
		case <-events:
		case <-ended:
			done = true
		}
	}
	closed, err := sw.Shutters(ctx, 3, 4)
	if err != nil || !closed[3] || closed[4] {
		t.Errorf("got shutters %v, %v", closed, err)
	}

	const label = `gpu1: a & b, "tx"; 100%`
	if err := sw.SetLabel(ctx, 7, label); err != nil {
		t.Error(err)
	}
	if labels, err := sw.Labels(ctx, 7, 8); err != nil || len(labels) != 1 || labels[7] != label {
		t.Errorf("got %q, %v", labels, err)
	}
	if err := sw.SetBootMode(ctx, ocs.BootDark); err != nil {
		t.Error(err)
	}
	if mode, err := sw.BootMode(ctx); err != nil || mode != ocs.BootDark {
		t.Errorf("got %v, %v", mode, err)
	}
	if err := sw.Restart(ctx); err != nil {
		t.Error(err)
	}
	if m, err := sw.CrossConnects(ctx); err != nil || m.Len() != 0 {
		t.Errorf("got %v, %v", m, err)
	}
	if err := sw.Close(); err != nil {
		t.Error(err)
	}
	if _, err := sw.CrossConnects(ctx); !errors.Is(err, net.ErrClosed) {
		t.Errorf("got %v", err)
	}
}

func TestWrongPassword(t *testing.T) {
	_, addr := serve(t, "polatis-6000-32x32")
	_, err := tl1switch.Open(t.Context(), tl1switch.Config{Dialer: transport.TCP{Addr: addr}, Password: secret.New("toor")})
	if !errors.Is(err, ocs.ErrDenied) {
		t.Errorf("got %v", err)
	}
}

// TestEmulatorProperty: after Apply of Diff(a, b) the device holds b, and the
// driver says so.
func TestEmulatorProperty(t *testing.T) {
	dev, addr := serve(t, "polatis-6000-32x32")
	drivertest.Property(t, openTCP(t, addr), dev, drivertest.Matchings(32), 2)
}
