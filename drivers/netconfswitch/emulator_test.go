package netconfswitch_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ocslab/ocslab/drivers/conformance"
	"github.com/ocslab/ocslab/drivers/internal/drivertest"
	"github.com/ocslab/ocslab/drivers/netconfswitch"
	"github.com/ocslab/ocslab/drivers/transport"
	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/emulator/netconfserver"
	"github.com/ocslab/ocslab/emulator/sshserver"
	"github.com/ocslab/ocslab/internal/secret"
	"github.com/ocslab/ocslab/ocs"
)

// rail0 is an emulated switch and its server.
type rail0 struct {
	*emulator.Device
	server *netconfserver.Server
	addr   string // of NETCONF over TCP
	ssh    transport.SSH
}

// serve emulates a switch that moves light in no time, over TCP and SSH. Adapt
// changes its personality.
func serve(tb testing.TB, model string, adapt func(*emulator.Personality)) *rail0 {
	tb.Helper()
	p, err := emulator.LoadPersonality(model)
	if err != nil {
		tb.Fatal(err)
	}
	p.Switching = emulator.Switching{Ack: emulator.AckAfter}
	p.Control.Reboot = 50 * time.Millisecond
	if adapt != nil {
		adapt(&p)
	}
	dev, err := emulator.New(p, emulator.Options{Name: "rail0", Seed: 1})
	if err != nil {
		tb.Fatal(err)
	}
	r := &rail0{Device: dev, server: &netconfserver.Server{Device: dev}}
	key := sshserver.HostKey("rail0", 1)
	secure := &sshserver.Server{Device: dev, HostKey: key, Subsystems: map[string]emulator.FrontEnd{"netconf": r.server}}
	r.addr = drivertest.Listen(tb, r.server.Serve)
	r.ssh = transport.SSH{
		Addr: drivertest.Listen(tb, secure.Serve), User: "admin", Password: secret.New("root"),
		HostKey: sshserver.Fingerprint(key), Subsystem: "netconf",
	}
	return r
}

func openOn(tb testing.TB, d transport.Dialer) *netconfswitch.Switch {
	tb.Helper()
	sw, err := netconfswitch.Open(tb.Context(), netconfswitch.Config{Dialer: d, Device: "rail0"})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { sw.Close() })
	return sw
}

func (r *rail0) open(tb testing.TB) *netconfswitch.Switch {
	return openOn(tb, transport.TCP{Addr: r.addr})
}

// withVOA gives a switch attenuators.
func withVOA(p *emulator.Personality) { p.Optics.VOAMax = 20 }

// revisions are devices of all ages.
var revisions = []struct {
	name  string
	adapt func(*emulator.Personality)
}{
	{"newest", withVOA},
	{"base 1.0", func(p *emulator.Personality) { withVOA(p); p.NETCONF.Base10 = true }},
	{"no interleave", func(p *emulator.Personality) { withVOA(p); p.NETCONF.NoInterleave = true; p.NETCONF.Compact = true }},
	{"2017-08-04", func(p *emulator.Personality) {
		withVOA(p)
		p.NETCONF.OpticalSwitch, p.NETCONF.PolatisSwitch = "2017-08-04", "2017-05-30"
	}},
	{"2017-02-09", func(p *emulator.Personality) {
		p.NETCONF.OpticalSwitch, p.NETCONF.PolatisSwitch, p.NETCONF.Base10 = "2017-02-09", "2017-05-30", true
	}},
	{"2015-09-14", func(p *emulator.Personality) {
		p.NETCONF.OpticalSwitch, p.NETCONF.PolatisSwitch = "2015-09-14", "2015-09-14"
	}},
}

// TestAgainstEmulator is everything once against emulated switches of all ages.
func TestAgainstEmulator(t *testing.T) {
	t.Parallel()
	for _, rev := range revisions {
		t.Run(rev.name, func(t *testing.T) {
			t.Parallel()
			everything(t, serve(t, "polatis-6000-32x32", rev.adapt))
		})
	}
}

func everything(t *testing.T, dev *rail0) {
	sw := openOn(t, dev.ssh)
	id, err := sw.Identify(ctx)
	if err != nil || id.Geometry != ocs.TwoSided(32, 32) || id.Serial != dev.Serial() || id.Vendor != "Polatis" || id.Firmware == "" {
		t.Errorf("got %+v, %v", id, err)
	}
	want := drivertest.Map(t, "1>33,2>34")
	r, err := ocs.Reconcile(ctx, sw, want, ocs.Safe)
	if err != nil || r.Receipt.Requests != 1 || !r.After.Equal(want) {
		t.Errorf("got %+v, %v", r, err)
	}
	for _, bad := range []string{"99>100", "1>31"} {
		if _, err := sw.Apply(ctx, ocs.Change{Add: drivertest.Map(t, bad)}); !errors.Is(err, ocs.ErrPort) || !errors.Is(err, ocs.ErrDenied) {
			t.Errorf("%s: got %v", bad, err)
		}
	}
	if r, err := sw.Apply(ctx, ocs.Change{Remove: drivertest.Map(t, "5>37")}); err != nil || r.Requests > 1 {
		t.Errorf("what is not there: got %+v, %v", r, err)
	}
	power, err := sw.Power(ctx, 1, 33, 35)
	if err != nil || len(power.Ports) != 3 || power.Ports[1] < -10 || power.Ports[35] > -40 {
		t.Errorf("got %v, %v", power, err)
	}
	if power, err := sw.Power(ctx); err != nil || len(power.Ports) != 64 {
		t.Errorf("got %v, %v", power, err)
	}
	if _, err := sw.Power(ctx, 1, 1000); !errors.Is(err, ocs.ErrPort) {
		t.Errorf("got %v", err)
	}
	set := ocs.Monitor{Port: 33, WavelengthNM: 1310, Offset: -0.5, Averaging: 20 * time.Millisecond}
	if err := sw.SetMonitor(ctx, set); err != nil {
		t.Error(err)
	}
	if ms, err := sw.Monitors(ctx, 33); err != nil || len(ms) != 1 || ms[0] != set {
		t.Errorf("got %v, %v", ms, err)
	}
	hear(t, sw)
	closed, err := sw.Shutters(ctx, 3, 4)
	if err != nil || !closed[3] || closed[4] || len(closed) != 2 {
		t.Errorf("got shutters %v, %v", closed, err)
	}
	const label = ` gpu1: a & b, "<tx>"; 100%]]>`
	if err := sw.SetLabel(ctx, 7, label); err != nil {
		t.Error(err)
	}
	if labels, err := sw.Labels(ctx, 7, 8); err != nil || len(labels) != 1 || labels[7] != label {
		t.Errorf("got %q, %v", labels, err)
	}
	if err := sw.SetLabel(ctx, 7, ""); err != nil || dev.Label(7) != "" {
		t.Errorf("got %q, %v", dev.Label(7), err)
	}
	if err := sw.SetLabel(ctx, 1000, "x"); !errors.Is(err, ocs.ErrPort) {
		t.Errorf("got %v", err)
	}
	attenuate(t, sw, dev)

	if err := sw.SetBootMode(ctx, ocs.BootDark); err != nil {
		t.Error(err)
	}
	if mode, err := sw.BootMode(ctx); err != nil || mode != ocs.BootDark {
		t.Errorf("got %v, %v", mode, err)
	}
	if err := sw.Close(); err != nil {
		t.Error(err)
	}
	if _, err := sw.CrossConnects(ctx); !errors.Is(err, net.ErrClosed) {
		t.Errorf("got %v", err)
	}
}

// TestEmulatorRestarts ends the session, and the driver opens it again when the
// device is back.
func TestEmulatorRestarts(t *testing.T) {
	t.Parallel()
	dev := serve(t, "polatis-6000-32x32", nil)
	sw := openOn(t, dev.ssh)
	if _, err := sw.Apply(ctx, ocs.Change{Add: drivertest.Map(t, "1>33")}); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(sw.SetBootMode(ctx, ocs.BootDark), sw.Restart(ctx)); err != nil {
		t.Fatal(err)
	}
	m, err := sw.CrossConnects(ctx)
	for ; err != nil; m, err = sw.CrossConnects(ctx) { // until it is back
		time.Sleep(10 * time.Millisecond)
	}
	if m.Len() != 0 {
		t.Errorf("got %v", m)
	}
}

// hear closes the shutter of port 3 until an event says so.
func hear(t *testing.T, sw *netconfswitch.Switch) {
	t.Helper()
	events := make(chan ocs.Event, 1)
	listening, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() {
		ended <- sw.Notify(listening, func(e ocs.Event) {
			if e.Port == 3 {
				select {
				case events <- e:
				default:
				}
			}
		})
	}()
	for heard := false; !heard; { // Notify needs a moment
		if err := errors.Join(sw.SetShutters(ctx, false, 3), sw.SetShutters(ctx, true, 3)); err != nil {
			t.Fatal(err)
		}
		select {
		case <-events:
			heard = true
		case err := <-ended:
			t.Fatal(err)
		case <-time.After(10 * time.Millisecond):
		}
	}
	stop()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func attenuate(t *testing.T, sw *netconfswitch.Switch, dev *rail0) {
	t.Helper()
	if dev.Personality().NETCONF.OpticalSwitch < "2017-08-04" {
		if err := sw.SetAttenuation(ctx, 33, 10); !errors.Is(err, ocs.ErrNotSupported) {
			t.Errorf("got %v", err)
		}
		return
	}
	if loss, err := sw.Attenuation(ctx, 33); err != nil || loss != 0 {
		t.Errorf("got %v, %v", loss, err)
	}
	if err := sw.SetAttenuation(ctx, 33, 10); err != nil {
		t.Error(err)
	}
	if loss, err := sw.Attenuation(ctx, 33); err != nil || loss != 10 || dev.Attenuation(33) < 5 {
		t.Errorf("got %v, %v, the device %v", loss, err, dev.Attenuation(33))
	}
	if err := sw.SetAttenuation(ctx, 33, 0); err != nil || dev.Attenuation(33) != 0 {
		t.Errorf("got %v, the device %v", err, dev.Attenuation(33))
	}
}

// TestNoAttenuator is a device without any.
func TestNoAttenuator(t *testing.T) {
	sw := serve(t, "polatis-6000-32x32", func(p *emulator.Personality) { p.Optics.VOAMax = 0 }).open(t)
	if _, err := sw.Attenuation(ctx, 33); !errors.Is(err, ocs.ErrNotSupported) {
		t.Errorf("got %v", err)
	}
	if err := sw.SetAttenuation(ctx, 33, 3); !errors.Is(err, ocs.ErrNotSupported) {
		t.Errorf("got %v", err)
	}
}

// TestDeniedByGroup is a user who may only read.
func TestDeniedByGroup(t *testing.T) {
	dev := serve(t, "polatis-6000-32x32", func(p *emulator.Personality) {
		p.Control.Users = []emulator.User{{Name: "admin", Password: "root", Group: emulator.Admin}, {Name: "view", Password: "root", Group: emulator.Viewer}}
	})
	dev.ssh.User = "view"
	sw := openOn(t, dev.ssh)
	if _, err := sw.Apply(ctx, ocs.Change{Add: drivertest.Map(t, "1>33")}); !errors.Is(err, ocs.ErrDenied) || errors.Is(err, ocs.ErrPort) {
		t.Errorf("got %v", err)
	}
	if err := sw.Restart(ctx); !errors.Is(err, ocs.ErrDenied) {
		t.Errorf("got %v", err)
	}
	if m, err := sw.CrossConnects(ctx); err != nil || m.Len() != 0 {
		t.Errorf("got %v, %v", m, err)
	}
	dev.ssh.Password = secret.New("toor")
	if _, err := netconfswitch.Open(ctx, netconfswitch.Config{Dialer: dev.ssh}); !errors.Is(err, ocs.ErrDenied) || strings.Contains(err.Error(), "toor") {
		t.Errorf("got %v", err)
	}
}

// TestDeniesTakeover is a device that refuses busy ports.
func TestDeniesTakeover(t *testing.T) {
	dev := serve(t, "polatis-6000-32x32", func(p *emulator.Personality) { p.Control.Busy = emulator.Deny })
	sw := dev.open(t)
	for range 2 { // the second time it knows
		for _, text := range []string{"1>33,2>34", "1>34,2>33", "2>34"} {
			want := drivertest.Map(t, text)
			if _, err := sw.Apply(ctx, ocs.Diff(dev.CrossConnects(), want)); err != nil || !dev.CrossConnects().Equal(want) {
				t.Errorf("got %v, the device holds %v, want %v", err, dev.CrossConnects(), want)
			}
		}
	}
	if _, err := sw.Apply(ctx, ocs.Change{Add: drivertest.Map(t, "3>34")}); !errors.Is(err, ocs.ErrConflict) {
		t.Errorf("got %v", err)
	}
}

// TestConformance runs the suite, over SSH.
func TestConformance(t *testing.T) {
	t.Parallel()
	for _, i := range []int{0, 4} {
		rev := revisions[i]
		t.Run(rev.name, func(t *testing.T) {
			t.Parallel()
			dev := serve(t, "polatis-6000-32x32", func(p *emulator.Personality) {
				rev.adapt(p)
				p.Switching.Single = 5 * time.Millisecond
			})
			report, err := conformance.Run(t.Context(), conformance.Config{
				Name: "rail0", AllPorts: true, Settle: 2 * time.Second,
				Open: func(ctx context.Context) (ocs.Switch, error) {
					return netconfswitch.Open(ctx, netconfswitch.Config{Dialer: dev.ssh, Device: "rail0"})
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			if report.Failed > 0 {
				report.WriteText(os.Stderr)
				t.Error("the suite fails")
			}
		})
	}
}

// TestEmulatorProperty: after Apply of Diff(a, b) the device holds b, and the
// driver says so.
func TestEmulatorProperty(t *testing.T) {
	t.Parallel()
	for _, i := range []int{0, 4} {
		t.Run(revisions[i].name, func(t *testing.T) {
			t.Parallel()
			dev := serve(t, "polatis-6000-32x32", revisions[i].adapt)
			drivertest.Property(t, dev.open(t), dev, drivertest.Matchings(32), 1)
		})
	}
}

// method is a public method of Switch and the operations that it sends.
type method struct {
	name  string
	verbs []string
	read  bool // is repeated when the session broke
	call  func(ctx context.Context, sw *netconfswitch.Switch) error
}

var methods = []method{
	{"CrossConnects", []string{"GET"}, true, func(ctx context.Context, sw *netconfswitch.Switch) error {
		m, err := sw.CrossConnects(ctx)
		return drivertest.Checked(err, m.String() == "1>33" || m.String() == "1>33,2>34", m)
	}},
	{"Apply", []string{"EDIT-CONFIG"}, false, func(ctx context.Context, sw *netconfswitch.Switch) error {
		_, err := sw.Apply(ctx, ocs.Change{Add: ocs.MustMap(ocs.CrossConnect{Ingress: 2, Egress: 34})})
		return err
	}},
	{"Power", []string{"GET"}, true, func(ctx context.Context, sw *netconfswitch.Switch) error {
		r, err := sw.Power(ctx, 1, 33)
		return drivertest.Checked(err, len(r.Ports) == 2, r)
	}},
	{"Monitors", []string{"GET"}, true, func(ctx context.Context, sw *netconfswitch.Switch) error {
		ms, err := sw.Monitors(ctx)
		return drivertest.Checked(err, len(ms) == 64, ms)
	}},
	{"SetMonitor", []string{"EDIT-CONFIG"}, false, func(ctx context.Context, sw *netconfswitch.Switch) error {
		return sw.SetMonitor(ctx, ocs.Monitor{Port: 1, WavelengthNM: 1310})
	}},
	{"Shutters", []string{"GET"}, true, func(ctx context.Context, sw *netconfswitch.Switch) error {
		m, err := sw.Shutters(ctx)
		return drivertest.Checked(err, len(m) == 64, m)
	}},
	{"SetShutters", []string{"PORT-SET-STATE"}, false, func(ctx context.Context, sw *netconfswitch.Switch) error {
		return sw.SetShutters(ctx, false, 5)
	}},
	{"Labels", []string{"GET"}, true, func(ctx context.Context, sw *netconfswitch.Switch) error {
		m, err := sw.Labels(ctx)
		return drivertest.Checked(err, len(m) < 2, m)
	}},
	{"SetLabel", []string{"EDIT-CONFIG"}, false, func(ctx context.Context, sw *netconfswitch.Switch) error {
		return sw.SetLabel(ctx, 1, "gpu1")
	}},
	{"Attenuation", []string{"GET"}, true, func(ctx context.Context, sw *netconfswitch.Switch) error {
		loss, err := sw.Attenuation(ctx, 40)
		return drivertest.Checked(err, loss == 0, loss)
	}},
	{"SetAttenuation", []string{"EDIT-CONFIG"}, false, func(ctx context.Context, sw *netconfswitch.Switch) error {
		return sw.SetAttenuation(ctx, 41, 10)
	}},
	{"BootMode", []string{"GET"}, true, func(ctx context.Context, sw *netconfswitch.Switch) error {
		m, err := sw.BootMode(ctx)
		return drivertest.Checked(err, m == ocs.BootRestore, m)
	}},
	{"SetBootMode", []string{"EDIT-CONFIG"}, false, func(ctx context.Context, sw *netconfswitch.Switch) error {
		return sw.SetBootMode(ctx, ocs.BootRestore)
	}},
	{"Notify", []string{"CREATE-SUBSCRIPTION"}, false, func(ctx context.Context, sw *netconfswitch.Switch) error {
		enough, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
		defer cancel()
		err := sw.Notify(enough, func(ocs.Event) {})
		if enough.Err() != nil && ctx.Err() == nil {
			return nil
		}
		return err
	}},
}

// TestFaults lets each method meet each fault once: it ends in time, with an
// error where that must be, and then works again.
func TestFaults(t *testing.T) {
	t.Parallel()
	kinds := []emulator.FaultKind{
		emulator.FaultDeny, emulator.FaultLose, emulator.FaultHang, emulator.FaultClose,
		emulator.FaultTag, emulator.FaultFlood, emulator.FaultTwice, emulator.FaultShred,
	}
	harmless := []emulator.FaultKind{emulator.FaultTwice, emulator.FaultShred}
	// The session breaks: a read is repeated.
	breaks := []emulator.FaultKind{emulator.FaultClose, emulator.FaultFlood}
	for _, kind := range kinds {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			for _, m := range methods {
				dev := serve(t, "polatis-6000-32x32", withVOA)
				if _, err := dev.Connect([]ocs.CrossConnect{{Ingress: 1, Egress: 33}}); err != nil {
					t.Fatal(err)
				}
				sw, err := netconfswitch.Open(t.Context(), netconfswitch.Config{
					Dialer: transport.TCP{Addr: dev.addr}, Device: "rail0", Timeout: time.Minute, MaxMessage: 1 << 20,
				})
				if err != nil {
					t.Fatal(err)
				}
				dev.server.Faults.Add(emulator.Fault{Kind: kind, Verb: m.verbs[0], Times: 1})
				waits := kind == emulator.FaultLose || kind == emulator.FaultHang || kind == emulator.FaultTag
				limit := time.Minute
				if waits {
					limit = 40 * time.Millisecond
				}
				short, cancel := context.WithTimeout(t.Context(), limit)
				err = m.call(short, sw)
				cancel()
				good := slices.Contains(harmless, kind) || m.read && slices.Contains(breaks, kind)
				switch {
				case m.name == "Notify": // then
				case good != (err == nil):
					t.Errorf("%s: got %v", m.name, err)
				case waits && err != nil && !errors.Is(err, context.DeadlineExceeded):
					t.Errorf("%s: got %v", m.name, err)
				case kind == emulator.FaultDeny && err != nil && !errors.Is(err, ocs.ErrDenied):
					t.Errorf("%s: got %v", m.name, err)
				}
				// On a slow machine the first call may have ended before the
				// fault struck; then it strikes the second.
				if waits {
					limit = time.Second
				}
				patient, cancel := context.WithTimeout(t.Context(), limit)
				err = m.call(patient, sw)
				cancel()
				if waits && errors.Is(err, context.DeadlineExceeded) {
					err = m.call(t.Context(), sw)
				}
				if err != nil {
					t.Errorf("%s: then got %v", m.name, err)
				}
				sw.Close()
			}
		})
	}
}

// TestManyOverSSH has calls of all kinds under way at once while notifications
// come, over a real channel.
func TestManyOverSSH(t *testing.T) {
	t.Parallel()
	dev := serve(t, "polatis-6000-32x32", nil)
	sw := openOn(t, dev.ssh)
	listening, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- sw.Notify(listening, func(ocs.Event) {}) }()
	var calls sync.WaitGroup
	for i := 1; i <= 16; i++ {
		p := ocs.Port(i)
		calls.Go(func() {
			for k := range 30 {
				label := fmt.Sprintf("%d.%d", i, k)
				c := ocs.Change{Add: ocs.MustMap(ocs.CrossConnect{Ingress: p, Egress: p + 32})}
				if k%2 == 1 {
					c = c.Inverse()
				}
				_, err1 := sw.Apply(ctx, c)
				err2 := sw.SetLabel(ctx, p, label)
				labels, err3 := sw.Labels(ctx, p)
				m, err4 := sw.CrossConnects(ctx)
				if err := errors.Join(err1, err2, err3, err4); err != nil || labels[p] != label || m.Has(ocs.CrossConnect{Ingress: p, Egress: p + 32}) != (k%2 == 0) {
					t.Errorf("port %d: got %v, %q, %v", p, err, labels, m)
				}
			}
		})
	}
	calls.Wait()
	stop()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if m := dev.CrossConnects(); m.Len() != 0 {
		t.Errorf("the device holds %v", m)
	}
}
