package scpiswitch_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ocslab/ocslab/drivers/conformance"
	"github.com/ocslab/ocslab/drivers/internal/drivertest"
	"github.com/ocslab/ocslab/drivers/scpiswitch"
	"github.com/ocslab/ocslab/drivers/transport"
	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/emulator/scpiserver"
	"github.com/ocslab/ocslab/ocs"
)

// newServer emulates a switch; adjust changes its personality.
func newServer(tb testing.TB, model string, adjust func(*emulator.Personality)) *scpiserver.Server {
	tb.Helper()
	p, err := emulator.LoadPersonality(model)
	if err != nil {
		tb.Fatal(err)
	}
	if adjust != nil {
		adjust(&p)
	}
	dev, err := emulator.New(p, emulator.Options{Name: "rail0", Seed: 1})
	if err != nil {
		tb.Fatal(err)
	}
	return &scpiserver.Server{Device: dev}
}

// instant is a switch that moves light in no time, so that only the wire and the
// programs at its ends are measured.
func instant(p *emulator.Personality) {
	p.Switching = emulator.Switching{Ack: emulator.AckAfter}
}

func serve(tb testing.TB, model string, adjust func(*emulator.Personality)) (*scpiserver.Server, string) {
	tb.Helper()
	srv := newServer(tb, model, adjust)
	return srv, drivertest.Listen(tb, srv.Serve)
}

func openTCP(tb testing.TB, addr string) *scpiswitch.Switch {
	tb.Helper()
	sw, err := scpiswitch.Open(tb.Context(), scpiswitch.Config{Dialer: transport.TCP{Addr: addr}, Device: "rail0"})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { sw.Close() })
	return sw
}

// TestAgainstEmulator is everything once against the emulated switch.
func TestAgainstEmulator(t *testing.T) {
	for _, model := range []string{"polatis-6000-32x32", "polatis-7000-384x384"} {
		t.Run(model, func(t *testing.T) {
			srv, addr := serve(t, model, instant)
			testEverything(t, srv.Device, openTCP(t, addr))
		})
	}
}

func testEverything(t *testing.T, dev *emulator.Device, sw *scpiswitch.Switch) {
	ctx := t.Context()
	id, err := sw.Identify(ctx)
	if err != nil || id.Geometry != dev.Geometry() || id.Serial != dev.Serial() || id.Vendor != "Polatis" {
		t.Errorf("got %+v, %v", id, err)
	}
	out := id.Geometry.EgressPorts()
	want := ocs.MustMap(ocs.CrossConnect{Ingress: 1, Egress: out[0]}, ocs.CrossConnect{Ingress: 2, Egress: out[1]})
	r, err := ocs.Reconcile(ctx, sw, want, ocs.Safe)
	if err != nil || r.Receipt.Requests != 1 || !r.After.Equal(want) {
		t.Errorf("got %+v, %v", r, err)
	}
	if _, err := sw.Apply(ctx, ocs.Change{Add: drivertest.Map(t, "9999>10000")}); !errors.Is(err, ocs.ErrPort) || !errors.Is(err, ocs.ErrDenied) {
		t.Errorf("port 9999: got %v", err)
	}
	wanted := map[ocs.Port]bool{}
	for _, p := range id.Geometry.Ports() {
		if dev.HasMonitor(p) {
			wanted[p] = true
		}
	}
	power, err := sw.Power(ctx)
	if err != nil || len(power.Ports) != len(wanted) || power.Ports[out[2]] > -40 {
		t.Errorf("got %d readings, want %d, %v", len(power.Ports), len(wanted), err)
	}
	for lit := false; !lit; { // the monitors average
		r, err := sw.Power(ctx, out[0])
		if err != nil {
			t.Fatal(err)
		}
		lit = r.Ports[out[0]] > -10
	}
	if _, err := sw.Power(ctx, 9999); !errors.Is(err, ocs.ErrPort) {
		t.Errorf("got %v", err)
	}
	if err := sw.SetShutters(ctx, true, 3); err != nil {
		t.Error(err)
	}
	closed, err := sw.Shutters(ctx, 3, 4)
	if err != nil || !closed[3] || closed[4] {
		t.Errorf("got shutters %v, %v", closed, err)
	}
	all, err := sw.Shutters(ctx)
	if err != nil || len(all) != len(id.Geometry.Ports()) || !all[3] || all[4] {
		t.Errorf("got %d shutters, %v", len(all), err)
	}
	for _, m := range []ocs.BootMode{ocs.BootAutosave, ocs.BootRestore, ocs.BootDark} {
		if err := sw.SetBootMode(ctx, m); err != nil {
			t.Error(err)
		}
		if mode, err := sw.BootMode(ctx); err != nil || mode != m {
			t.Errorf("got %v, %v", mode, err)
		}
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

// Monitors at one side, and a port that has failed.
func TestMonitorsOfOneSide(t *testing.T) {
	srv, addr := serve(t, "polatis-6000-32x32", func(p *emulator.Personality) {
		instant(p)
		p.Monitors.Sides = emulator.MonitorsEgress
		p.Control.Failed = []uint32{7}
	})
	sw := openTCP(t, addr)
	for range 2 {
		r, err := sw.Power(t.Context())
		if err != nil || len(r.Ports) != 32 {
			t.Errorf("got %d readings, %v", len(r.Ports), err)
		}
		for p := range r.Ports {
			if !srv.Device.HasMonitor(p) {
				t.Errorf("port %d has no monitor", p)
			}
		}
	}
	closed, err := sw.Shutters(t.Context())
	if _, has := closed[7]; err != nil || has || len(closed) != 63 {
		t.Errorf("got %v, %v", closed, err)
	}
	if err := sw.SetShutters(t.Context(), true, 7); !errors.Is(err, ocs.ErrVerify) {
		t.Errorf("got %v", err)
	}
}

// Ensure that a large unit without monitors is found out to be one by a few
// queries, and only once.
func TestNoMonitors(t *testing.T) {
	_, addr := serve(t, "polatis-7000-192x192", func(p *emulator.Personality) {
		instant(p)
		p.Monitors.Sides = emulator.MonitorsNone
	})
	queries := 0
	sw, err := scpiswitch.Open(t.Context(), scpiswitch.Config{
		Dialer: transport.TCP{Addr: addr},
		Trace: func(sent bool, p []byte) {
			if sent {
				queries += bytes.Count(p, []byte(":PMON:POW?"))
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer sw.Close()
	for range 2 {
		if r, err := sw.Power(t.Context()); err != nil || len(r.Ports) != 0 {
			t.Errorf("got %v, %v", r, err)
		}
	}
	if queries > 6 { // two of many ports, and two of each side
		t.Errorf("%d power queries", queries)
	}
}

func TestSingleSided(t *testing.T) {
	srv, addr := serve(t, "single-sided-48xCC", instant)
	sw := openTCP(t, addr)
	for _, s := range []string{"1>2,3>4", "2>1,4>48", "48>2"} {
		want := drivertest.Map(t, s)
		if r, err := ocs.Reconcile(t.Context(), sw, want, ocs.Overwrite); err != nil || !r.After.Equal(want) || !srv.Device.CrossConnects().Equal(want) {
			t.Errorf("%s: got %+v, %v", s, r, err)
		}
	}
}

// TestEmulatorProperty: after Apply of Diff(a, b) the device holds b, and the
// driver says so, whether the device takes over busy ports or denies them.
func TestEmulatorProperty(t *testing.T) {
	for busy, most := range map[emulator.BusyMode]int{emulator.Takeover: 2, emulator.Deny: 4} {
		srv, addr := serve(t, "polatis-6000-32x32", func(p *emulator.Personality) {
			instant(p)
			p.Control.Busy = busy
			if busy == emulator.Deny {
				p.SCPI.NoBlank, p.SCPI.CROnly, p.SCPI.TerseErrors = true, true, true
			}
		})
		drivertest.Property(t, openTCP(t, addr), srv.Device, drivertest.Matchings(32), most)
	}
}

// pipes dials a front end in memory, so that it is in the bubble of the test.
type pipes struct {
	ctx    context.Context
	fe     emulator.FrontEnd
	served sync.WaitGroup
}

func (p *pipes) Dial(context.Context) (transport.Conn, error) {
	near, far := net.Pipe()
	p.served.Go(func() { p.fe.ServeSession(p.ctx, far, emulator.SessionInfo{}) })
	return near, nil
}

func (p *pipes) String() string { return "emulated" }

// talkTo runs a test against an emulated switch in a bubble.
func talkTo(t *testing.T, adjust func(*emulator.Personality), set func(*scpiswitch.Config), client func(t *testing.T, srv *scpiserver.Server, sw *scpiswitch.Switch)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		srv := newServer(t, "polatis-6000-32x32", adjust)
		ctx, cancel := context.WithCancel(t.Context())
		d := &pipes{ctx: ctx, fe: srv}
		cfg := scpiswitch.Config{Dialer: d, Device: "rail0", MaxReply: 64 << 10}
		if set != nil {
			set(&cfg)
		}
		sw, err := scpiswitch.Open(ctx, cfg)
		if err != nil {
			t.Fatal(err)
		}
		client(t, srv, sw)
		sw.Close()
		cancel()
		d.served.Wait()
	})
}

// The acknowledgement comes when the light has settled, or at once on a device
// that acknowledges early.
func TestAcknowledgement(t *testing.T) {
	for _, ack := range []emulator.AckMode{emulator.AckBefore, emulator.AckAfter} {
		talkTo(t, func(p *emulator.Personality) {
			p.Switching = emulator.Switching{Single: 50 * time.Millisecond, Bulk: 50 * time.Millisecond, Ack: ack}
		}, nil, func(t *testing.T, _ *scpiserver.Server, sw *scpiswitch.Switch) {
			r, err := sw.Apply(t.Context(), ocs.Change{Add: drivertest.Map(t, "1>33")})
			want := map[emulator.AckMode]time.Duration{emulator.AckAfter: 50 * time.Millisecond}[ack]
			if err != nil || r.Acked.Sub(r.Sent) != want || r.FirstByte.Sub(r.Sent) != want {
				t.Errorf("%s: acknowledged after %v, %v", ack, r.Acked.Sub(r.Sent), err)
			}
		})
	}
}

// Firmware that loses what comes too soon works with a gap. Without one not
// even a session can be opened.
func TestOldFirmware(t *testing.T) {
	const gap = 100 * time.Millisecond
	old := func(p *emulator.Personality) {
		instant(p)
		p.SCPI.Gap = gap
	}
	talkTo(t, old, func(c *scpiswitch.Config) { c.Gap = gap }, func(t *testing.T, _ *scpiserver.Server, sw *scpiswitch.Switch) {
		for _, s := range []string{"1>33,2>34", "1>34", "3>33,1>35"} {
			if r, err := ocs.Reconcile(t.Context(), sw, drivertest.Map(t, s), ocs.Overwrite); err != nil {
				t.Errorf("got %+v, %v", r, err)
			}
		}
		if err := sw.SetShutters(t.Context(), true, 1); err != nil {
			t.Error(err)
		}
		if r, err := sw.Power(t.Context()); err != nil || len(r.Ports) != 64 {
			t.Errorf("got %v, %v", r, err)
		}
	})
	talkTo(t, old, nil, func(t *testing.T, _ *scpiserver.Server, sw *scpiswitch.Switch) {
		if _, err := sw.CrossConnects(t.Context()); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	})
}

// What another client does wrong stays in a queue that both share.
func TestSharedErrors(t *testing.T) {
	talkTo(t, func(p *emulator.Personality) {
		instant(p)
		p.SCPI.SharedErrors = true
	}, nil, func(t *testing.T, srv *scpiserver.Server, sw *scpiswitch.Switch) {
		near, far := net.Pipe()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			srv.ServeSession(t.Context(), far, emulator.SessionInfo{})
		}()
		spoil := func() {
			if _, err := near.Write([]byte("NONSENSE\nNONSENSE 1\n")); err != nil {
				t.Error(err)
			}
			synctest.Wait()
		}
		c := ocs.Change{Add: drivertest.Map(t, "1>33")}
		spoil()
		time.Sleep(time.Second)
		if _, err := sw.Apply(t.Context(), c); err != nil {
			t.Error(err)
		}
		spoil()
		if m, err := sw.CrossConnects(t.Context()); err != nil || !m.Equal(c.Add) {
			t.Errorf("got %v, %v", m, err)
		}
		spoil()
		if _, err := sw.Apply(t.Context(), c); !errors.Is(err, ocs.ErrNotSupported) || !strings.Contains(err.Error(), "NONSENSE") {
			t.Errorf("got %v", err)
		}
		if _, err := sw.Apply(t.Context(), c); err != nil {
			t.Error(err)
		}
		near.Close()
		<-ended
	})
}

// TestEmulatedFaults is every fault of the emulator at every kind of line: what
// each gives, that nothing is taken for success that is none, and that the next
// call works.
func TestEmulatedFaults(t *testing.T) {
	c := ocs.Change{Add: ocs.MustMap(ocs.CrossConnect{Ingress: 1, Egress: 33})}
	calls := []struct {
		name string
		verb string // is struck
		call func(ctx context.Context, sw *scpiswitch.Switch) error
	}{
		{"Apply", "OXC.SWIT.CONN.ADD", func(ctx context.Context, sw *scpiswitch.Switch) error { _, err := sw.Apply(ctx, c); return err }},
		{"Apply, done", "*OPC", func(ctx context.Context, sw *scpiswitch.Switch) error { _, err := sw.Apply(ctx, c); return err }},
		{"Apply, error", "SYST.ERR", func(ctx context.Context, sw *scpiswitch.Switch) error { _, err := sw.Apply(ctx, c); return err }},
		{"CrossConnects", "OXC.SWIT.CONN.STAT", func(ctx context.Context, sw *scpiswitch.Switch) error { _, err := sw.CrossConnects(ctx); return err }},
		{"Identify", "*IDN", func(ctx context.Context, sw *scpiswitch.Switch) error { _, err := sw.Identify(ctx); return err }},
		{"Power", "PMON.POW", func(ctx context.Context, sw *scpiswitch.Switch) error { _, err := sw.Power(ctx, 1, 33); return err }},
		{"SetShutters", "OXC.SWIT.PORT.DIS", func(ctx context.Context, sw *scpiswitch.Switch) error { return sw.SetShutters(ctx, true, 5) }},
		{"SetBootMode", "OXC.BOOT.MODE", func(ctx context.Context, sw *scpiswitch.Switch) error { return sw.SetBootMode(ctx, ocs.BootDark) }},
	}
	// A call that ends well, a refusal, and so on.
	silence, hangUp := context.DeadlineExceeded, io.ErrUnexpectedEOF
	for _, tt := range []struct {
		kind emulator.FaultKind
		want []error // of the calls
	}{
		{emulator.FaultDeny, []error{ocs.ErrDenied, drivertest.ErrAny, silence, ocs.ErrDenied, ocs.ErrDenied, ocs.ErrDenied, ocs.ErrDenied, ocs.ErrDenied}},
		// A command that is lost leaves no trace: only what is read back shows it.
		{emulator.FaultLose, []error{nil, silence, silence, silence, silence, silence, ocs.ErrVerify, ocs.ErrVerify}},
		{emulator.FaultHang, []error{nil, silence, silence, silence, silence, silence, nil, nil}},
		{emulator.FaultClose, []error{io.EOF, drivertest.ErrAny, hangUp, nil, nil, nil, io.EOF, io.EOF}}, // reads are repeated
		{emulator.FaultFlood, []error{drivertest.ErrTooLong, drivertest.ErrTooLong, drivertest.ErrTooLong, nil, nil, nil, drivertest.ErrTooLong, drivertest.ErrTooLong}},
		{emulator.FaultTwice, make([]error, 8)},
		{emulator.FaultShred, make([]error, 8)},
	} {
		for i, call := range calls {
			t.Run(string(tt.kind)+"/"+call.name, func(t *testing.T) {
				talkTo(t, instant, nil, func(t *testing.T, srv *scpiserver.Server, sw *scpiswitch.Switch) {
					srv.Faults.Add(emulator.Fault{Kind: tt.kind, Verb: call.verb, Times: 1})
					if err := call.call(t.Context(), sw); !matches(err, tt.want[i]) {
						t.Errorf("got %v, want %v", err, tt.want[i])
					}
					if call.verb == "OXC.SWIT.CONN.ADD" && tt.kind != emulator.FaultDeny && tt.kind != emulator.FaultLose && !srv.Device.CrossConnects().Equal(c.Add) {
						t.Errorf("the device holds %v", srv.Device.CrossConnects())
					}
					for range 2 {
						if err := call.call(t.Context(), sw); err != nil {
							t.Errorf("afterwards: %v", err)
						}
					}
				})
			})
		}
	}
}

// TestConformance runs the suite that every driver must pass.
func TestConformance(t *testing.T) {
	srv, addr := serve(t, "polatis-6000-32x32", func(p *emulator.Personality) {
		p.Switching.Single, p.Switching.Bulk, p.Switching.Jitter = 5*time.Millisecond, 5*time.Millisecond, 0
	})
	before := srv.Device.CrossConnects()
	r, err := conformance.Run(t.Context(), conformance.Config{
		Open: func(ctx context.Context) (ocs.Switch, error) {
			return scpiswitch.Open(ctx, scpiswitch.Config{Dialer: transport.TCP{Addr: addr}, Device: "rail0"})
		},
		AllPorts: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	var skipped, unsupported []string
	for _, k := range r.Checks {
		its := slices.Contains([]string{"shutter", "restarter"}, k.Capability)
		switch {
		case k.Result == conformance.Fail:
			t.Errorf("%s: %s", k.Name, k.Reason)
		case k.Result == conformance.Skip && (its || k.Capability == "switch"):
			skipped = append(skipped, k.Name)
		case k.Result == conformance.Unsupported && its:
			unsupported = append(unsupported, k.Name)
		}
	}
	if want := []string{"restart-restore"}; !slices.Equal(unsupported, want) || len(skipped) > 0 {
		t.Errorf("skipped %v, not supported %v, want %v", skipped, unsupported, want)
	}
	if !srv.Device.CrossConnects().Equal(before) {
		t.Errorf("left %v", srv.Device.CrossConnects())
	}
}
