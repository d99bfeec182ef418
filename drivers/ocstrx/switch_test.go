package ocstrx_test

import (
	"context"
	"errors"
	"math"
	"net"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ocslab/ocslab/drivers/internal/drivertest"
	"github.com/ocslab/ocslab/drivers/ocstrx"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// TestIdentity: one module is itself, a bundle is the board it is in, and what differs
// between modules is told of all.
func TestIdentity(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, board string
		modules     int
		want        ocs.Identity
	}{
		{"one", "B7", 1, ocs.Identity{Vendor: "Example", Model: "OCSTRX-8", Serial: "SN1", Firmware: "1.4", Geometry: ocs.Transceivers(1, 8)}},
		{"two on a board", "B7", 2, ocs.Identity{Vendor: "Example", Model: "OCSTRX-8", Serial: "B7", Firmware: "1.4", Geometry: ocs.Transceivers(2, 8)}},
		{"two without", "", 2, ocs.Identity{Vendor: "Example", Model: "OCSTRX-8", Serial: "SN1+SN2", Firmware: "1.4", Geometry: ocs.Transceivers(2, 8)}},
	} {
		b := newFake(c.modules)
		b.serial = c.board
		if id, err := openFake(t, b).Identify(t.Context()); err != nil || id != c.want {
			t.Errorf("%s: got %+v, %v, want %+v", c.name, id, err, c.want)
		}
	}
}

// TestOpen: what does not fail it, what does, and that the Bus is closed when it fails.
func TestOpen(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		set  func(*fakeBus, *ocstrx.Config)
		text string // of the error
		took time.Duration
	}{
		{"ready", func(b *fakeBus, _ *ocstrx.Config) {}, "", 0},
		{"one starts", func(b *fakeBus, _ *ocstrx.Config) { b.modules[1].reset() }, "", 0},
		{"one starts slowly", func(b *fakeBus, _ *ocstrx.Config) { b.modules[1].reset(); b.modules[1].looks = 30 }, "", 210 * time.Millisecond},
		{"one never starts", func(b *fakeBus, _ *ocstrx.Config) { b.modules[1].state(ocst.StateWarmUp) }, "", time.Second},
		{"one in fault", func(b *fakeBus, _ *ocstrx.Config) { b.modules[1].fail(ocst.FaultHot, 0xff) }, "", 0},
		{"one without a table", func(b *fakeBus, _ *ocstrx.Config) { b.modules[1].state(ocst.StateCal) }, "", 0},
		{"one slot empty", func(b *fakeBus, _ *ocstrx.Config) { b.modules[0] = nil }, "", 0},
		{"all slots empty", func(b *fakeBus, _ *ocstrx.Config) { b.modules[0], b.modules[1] = nil, nil }, "no module in any of 2 slots", 0},
		{"no slots", func(b *fakeBus, _ *ocstrx.Config) { b.modules = nil }, "no slot", 0},
		{"another module", func(b *fakeBus, _ *ocstrx.Config) { b.modules[1].magic = "\x00\x00\x00\x00" }, `module 2 (Example OCSTRX-8) is no OCSTrx: B0h:128 reads "\x00\x00\x00\x00", not "OCST"`, 0},
		{"another map", func(b *fakeBus, _ *ocstrx.Config) { b.modules[1].version = 2 }, "module 2 has version 2 of the register map, and only 1 is known", 0},
		{"no such page", func(b *fakeBus, _ *ocstrx.Config) {
			b.before = func(q ocstrx.Request) error {
				if q.Slot == 1 && q.At.Page == ocst.PageControl {
					return ocs.ErrDenied
				}
				return nil
			}
		}, "module 2 (Example OCSTRX-8) is no OCSTrx: it has no page B0h", 0},
		{"dead bus", func(b *fakeBus, _ *ocstrx.Config) { b.closed = true }, "closed", 0},
		{"settle timeout", func(_ *fakeBus, cfg *ocstrx.Config) { cfg.Settle = 70 * time.Millisecond }, "a settle timeout of 70ms: want 1µs to 65.535ms", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newFake(2)
				cfg := ocstrx.Config{Bus: b}
				c.set(b, &cfg)
				begun := time.Now()
				sw, err := ocstrx.Open(t.Context(), cfg)
				if (err == nil) != (c.text == "") || err != nil && !strings.Contains(err.Error(), c.text) {
					t.Fatalf("got %v, want %q", err, c.text)
				}
				if took := time.Since(begun); took < c.took || took > c.took+100*time.Millisecond {
					t.Errorf("took %v, want about %v", took, c.took)
				}
				if err == nil {
					sw.Close()
				} else if op := (*ocs.OpError)(nil); !errors.As(err, &op) || op.Device != "fake" {
					t.Errorf("got %T %v", err, err)
				}
				if !b.closed {
					t.Error("the bus is left open")
				}
			})
		})
	}
	if _, err := ocstrx.Open(t.Context(), ocstrx.Config{}); err == nil {
		t.Error("opened without a bus")
	}
}

// TestEmptySlot: the ports of an empty slot stay where they are, dark, and are refused.
func TestEmptySlot(t *testing.T) {
	t.Parallel()
	b := newFake(3)
	b.modules[1] = nil
	b.modules[2].hold(t, "1>9")
	sw := openFake(t, b)
	drivertest.Holds(t, sw, "17>41")
	if _, err := sw.Apply(t.Context(), change(t, "+9>33")); !errors.Is(err, ocs.ErrDenied) || !strings.Contains(err.Error(), "there is no module 2, its slot is empty") {
		t.Errorf("got %v", err)
	}
	r, err := sw.Power(t.Context())
	if _, has := r.Ports[9]; err != nil || has || len(r.Ports) != 2*32 {
		t.Errorf("%d readings, %v", len(r.Ports), err)
	}
	if r, err := sw.Power(t.Context(), 9, 10); err != nil || len(r.Ports) != 0 {
		t.Errorf("got %v, %v", r, err)
	}
	all, err := sw.Telemetry(t.Context())
	if err != nil || len(all) != 2 || all[1].Slot != 2 || all[1].Name != "module 3" {
		t.Errorf("got %+v, %v", all, err)
	}
	logs, err := sw.Log(t.Context())
	if err != nil || len(logs) != 3 || logs[1] != nil {
		t.Errorf("got %v, %v", logs, err)
	}
	if err := sw.Restart(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestSettings are written when the Switch is opened, once, and to a module that has lost
// them since.
func TestSettings(t *testing.T) {
	t.Parallel()
	b := newFake(2)
	b.modules[1].status.SettleTimeout = 300 * time.Microsecond
	b.modules[1].lanes.Control = 0x81
	on := true
	sw, err := ocstrx.Open(t.Context(), ocstrx.Config{Bus: b, Settle: 300 * time.Microsecond, PreEmphasis: &on})
	if err != nil {
		t.Fatal(err)
	}
	defer sw.Close()
	if got, want := b.writes(), []string{"1 B0h:148 <- 01 2c", "1 B0h:174 <- 01"}; !slices.Equal(got, want) {
		t.Errorf("wrote %q, want %q", got, want)
	}
	b.modules[0].lanes.Control = 0 // a brown-out
	if _, err := sw.Apply(t.Context(), change(t, "+1>17")); err != nil {
		t.Fatal(err)
	}
	if got, want := b.writes(), []string{"1 B0h:174 <- 01", "1 B0h:136 <- 01 01 01"}; !slices.Equal(got, want) {
		t.Errorf("wrote %q, want %q", got, want)
	}
	if err := sw.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i, m := range b.modules {
		if m.lanes.Control&ocst.PreEmphasis == 0 || m.status.SettleTimeout != 300*time.Microsecond {
			t.Errorf("module %d after a restart: control %02x, settle timeout %v", i+1, m.lanes.Control, m.status.SettleTimeout)
		}
	}
	off := false
	again, err := ocstrx.Open(t.Context(), ocstrx.Config{Bus: b, PreEmphasis: &off})
	if err != nil || b.modules[0].lanes.Control != 0 {
		t.Errorf("control %02x, %v", b.modules[0].lanes.Control, err)
	}
	again.Close()
}

// TestCrossConnects: what the lanes say, a switch that is under way, and a module that
// makes no sense.
func TestCrossConnects(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		set  func(*fakeModule)
		want string
		text string
	}{
		{"dark", func(*fakeModule) {}, "", ""},
		{"all kinds", func(m *fakeModule) { m.hold(t, "1>9,2>18,3>27") }, "1>17,2>34,3>51", ""},
		{"in fault", func(m *fakeModule) { m.hold(t, "1>9"); m.state(ocst.StateFault) }, "", ""},
		{"calibration lights a lane", func(m *fakeModule) { m.hold(t, "1>9"); m.state(ocst.StateCal) }, "", ""},
		{"switching", func(m *fakeModule) {
			m.state(ocst.StateSettle)
			m.looks, m.after = 3, func(m *fakeModule) { m.state(ocst.StateReady); m.hold(t, "1>9") }
		}, "1>17", ""},
		{"switching without end", func(m *fakeModule) { m.hold(t, "1>9"); m.state(ocst.StateSettle) }, "1>17", ""},
		{"a loop to a receiver on its fibre", func(m *fakeModule) { m.hold(t, "1>29,5>13") }, "1>53,5>21", ""},
		{"a loop to nowhere", func(m *fakeModule) { m.lanes.Path[0] = ocst.LoopPath; m.lanes.Loop[0] = 12 }, "", "module 1 contradicts itself: its loop takes lane 1 to a lane 13"},
		{"two loops to one", func(m *fakeModule) { m.hold(t, "1>29,2>30"); m.lanes.Loop[0] = m.lanes.Loop[1] }, "", "contradict themselves"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newFake(2)
				sw := openFake(t, b)
				c.set(b.modules[0])
				m, err := sw.CrossConnects(t.Context())
				if (err == nil) != (c.text == "") || err != nil && !strings.Contains(err.Error(), c.text) || !m.Equal(drivertest.Map(t, c.want)) {
					t.Errorf("got %v, %v, want %s %s", m, err, c.want, c.text)
				}
				if errors.Is(err, ocs.ErrConflict) {
					t.Errorf("nobody has asked for anything: %v", err)
				}
			})
		})
	}
}

// TestPower: each port has the photodiode that it should, and what a dark one reads is no
// light.
func TestPower(t *testing.T) {
	t.Parallel()
	b := newFake(2)
	sw := openFake(t, b)
	m := b.modules[1]
	// 1.2, 1.3 mW ...: the fake adds 0.1 mW for each further array.
	m.out1[2], m.others[2] = 11000, 12000
	r, err := sw.Power(t.Context())
	if err != nil || len(r.Ports) != 4*16 || r.Latest.Before(r.Earliest) || r.Earliest.IsZero() {
		t.Fatalf("%d readings from %v to %v, %v", len(r.Ports), r.Earliest, r.Latest, err)
	}
	want := map[ocs.Port]float64{11: 1.7, 16 + 11: 1.1, 32 + 11: 1.2, 48 + 11: 1.6}
	for p, x := range r.Ports {
		if mw := want[p]; math.Abs(x.Milliwatts()-mw) > 1e-9 || mw == 0 && !math.IsInf(float64(x), -1) {
			t.Errorf("port %d reads %v, want %g mW", p, x, mw)
		}
	}
	b.requests()
	for _, c := range []struct {
		ports []ocs.Port
		want  []string
	}{
		{[]ocs.Port{16 + 11, 16 + 12}, []string{"2 B0h:176+16"}},
		{[]ocs.Port{11, 32 + 11, 48 + 16}, []string{"2 B1h:128+96"}},
		{[]ocs.Port{1, 17, 9}, []string{"1 B1h:128+96", "1 B0h:176+16", "2 B1h:128+96"}},
	} {
		r, err := sw.Power(t.Context(), c.ports...)
		if got := b.requests(); err != nil || len(r.Ports) != len(c.ports) || !slices.Equal(got, c.want) {
			t.Errorf("%v: %v, %v, asked %q, want %q", c.ports, r.Ports, err, got, c.want)
		}
	}
	// 5 µW is light, less is not.
	m.out1[0], m.out1[1] = 50, 49
	if r, err = sw.Power(t.Context(), 25, 26); err != nil || math.Abs(float64(r.Ports[25])+23.01) > .01 || !math.IsInf(float64(r.Ports[26]), -1) {
		t.Errorf("got %v, %v", r.Ports, err)
	}
	var port *ocs.PortError
	if _, err := sw.Power(t.Context(), 1, 65); !errors.As(err, &port) || port.Port != 65 {
		t.Errorf("got %v", err)
	}
	if _, err := sw.Monitors(t.Context()); !errors.Is(err, ocs.ErrNotSupported) {
		t.Errorf("got %v", err)
	}
	if err := sw.SetMonitor(t.Context(), ocs.Monitor{Port: 1}); !errors.Is(err, ocs.ErrNotSupported) {
		t.Errorf("got %v", err)
	}
}

// TestTelemetry: every field has what its register says, and nothing clears flags but
// Flags.
func TestTelemetry(t *testing.T) {
	t.Parallel()
	b := newFake(1)
	sw := openFake(t, b)
	m := b.modules[0]
	m.hold(t, "2>10,3>32")
	m.lanes.Lock[1] = ocst.Locked
	m.lanes.Fault, m.lanes.FaultAt, m.lanes.Control = ocst.FaultOpen, 9, ocst.PreEmphasis
	m.status.Sequence, m.status.Switches, m.status.Duration, m.status.Result = 5, 105, 71230*time.Nanosecond, ocst.FaultBusy
	m.out1[1], m.others[1] = 100, 200
	m.flags = ocst.FlagDone | ocst.FlagRejected
	all, err := sw.Telemetry(t.Context())
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	want := ocstrx.Telemetry{
		Name: "module 1", Vendor: "Example", PartNumber: "OCSTRX-8", Serial: "SN1", Firmware: "1.4",
		State: ocst.StateReady, Fault: ocst.FaultOpen, FaultAt: "S2 of lane 2", Celsius: 41.5, Volts: 3.3, Watts: 9.5,
		Sequence: 5, Switches: 105, LastResult: ocst.FaultBusy, LastDuration: 71230 * time.Nanosecond,
		SettleTimeout: 200 * time.Microsecond, PreEmphasis: true, Loop: m.lanes.Loop,
	}
	want.Lanes[1] = ocstrx.LaneTelemetry{Path: ocst.Path1, Lock: ocst.Locked, Launched: 5200, Fibre1: 100, Fibre2: 200, Loop: 1200, Rx1: 2200, Rx2: 3200, RxLoop: 4200}
	want.Lanes[2].Path = ocst.LoopPath
	if got := all[0]; !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v, want\n%+v", got, want)
	}
	if _, err := sw.CrossConnects(t.Context()); err != nil {
		t.Fatal(err)
	}
	if f, err := sw.Flags(t.Context()); err != nil || !slices.Equal(f, []ocst.Flags{ocst.FlagDone | ocst.FlagRejected}) {
		t.Errorf("flags %v, %v", f, err)
	}
	if f, err := sw.Flags(t.Context()); err != nil || f[0] != 0 {
		t.Errorf("flags again %v, %v", f, err)
	}
}

// TestLog reads both banks.
func TestLog(t *testing.T) {
	t.Parallel()
	b := newFake(2)
	sw := openFake(t, b)
	for i := range 11 {
		b.modules[1].log = append(b.modules[1].log, ocst.LogEntry{At: uint32(i), Sequence: 11 - uint32(i), To: ocst.Path1, Mask: 0xff, Duration: 70 * time.Microsecond})
	}
	logs, err := sw.Log(t.Context())
	if err != nil || len(logs) != 2 || len(logs[0]) != 0 || !slices.Equal(logs[1], b.modules[1].log) {
		t.Errorf("got %v, %v", logs, err)
	}
}

// TestRestart resets each module once and returns when all are back, dark; what does not
// come back well is named.
func TestRestart(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		set  func(*fakeBus)
		text string
	}{
		{"all well", func(*fakeBus) {}, ""},
		{"clears a fault", func(b *fakeBus) { b.modules[1].fail(ocst.FaultTimeout, 2) }, ""},
		{"fault comes back", func(b *fakeBus) {
			b.before = func(q ocstrx.Request) error {
				if m := b.modules[1]; q.Slot == 1 && m.resets > 0 && m.looks == 1 {
					m.after = func(m *fakeModule) { m.fail(ocst.FaultHot, 0xff) }
				}
				return nil
			}
		}, "module 2 is dark, in fault: over-temperature"},
		{"does not reset", func(b *fakeBus) {
			b.modules[1].hold(t, "1>9")
			b.before = func(q ocstrx.Request) error {
				if q.Slot == 1 && q.Op == ocstrx.OpWrite {
					q.Data[0] = 0
				}
				return nil
			}
		}, "module 2 has not restarted: it is ready"},
		{"does not reset, dark", func(b *fakeBus) {
			b.modules[1].status.Sequence = 5
			b.before = func(q ocstrx.Request) error {
				if q.Slot == 1 && q.Op == ocstrx.OpWrite {
					q.Data[0] = 0
				}
				return nil
			}
		}, "module 2 has not restarted: it is ready, with 5 switches"},
		{"does not come back", func(b *fakeBus) {
			b.before = func(q ocstrx.Request) error {
				if m := b.modules[1]; m.resets > 0 {
					m.after = nil
				}
				return nil
			}
		}, "module 2 has not restarted: it is warm-up"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newFake(2)
				b.modules[0].hold(t, "1>9,2>31")
				sw := openFake(t, b)
				c.set(b)
				err := sw.Restart(t.Context())
				if (err == nil) != (c.text == "") || err != nil && !strings.Contains(err.Error(), c.text) {
					t.Errorf("got %v, want %q", err, c.text)
				}
				if got, want := b.writes(), []string{"1 00h:26 <- 08", "2 00h:26 <- 08"}; !slices.Equal(got, want) && !strings.HasPrefix(c.name, "does not reset") {
					t.Errorf("wrote %q, want %q", got, want)
				}
				if b.modules[0].resets != 1 || b.modules[0].lanes.State != ocst.StateReady {
					t.Errorf("module 1 was reset %d times, and is %v", b.modules[0].resets, b.modules[0].lanes.State)
				}
			})
		})
	}
}

func TestBootMode(t *testing.T) {
	t.Parallel()
	sw := openFake(t, newFake(1))
	if m, err := sw.BootMode(t.Context()); err != nil || m != ocs.BootDark {
		t.Errorf("got %v, %v", m, err)
	}
	for m, want := range map[ocs.BootMode]error{ocs.BootDark: nil, ocs.BootRestore: ocs.ErrNotSupported, ocs.BootAutosave: ocs.ErrNotSupported, "x": ocs.ErrNotSupported} {
		if err := sw.SetBootMode(t.Context(), m); !drivertest.Is(err, want) {
			t.Errorf("%s: got %v, want %v", m, err, want)
		}
	}
}

// TestClosed: every call of a closed Switch says so, and so does one that waits.
func TestClosed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newFake(1)
		sw := openFake(t, b)
		b.modules[0].state(ocst.StateWarmUp) // which Apply waits for
		waiting := make(chan error)
		go func() {
			_, err := sw.Apply(t.Context(), change(t, "+1>9"))
			waiting <- err
		}()
		queued := make(chan error)
		go func() {
			time.Sleep(10 * time.Millisecond)
			_, err := sw.Apply(t.Context(), change(t, "+1>9"))
			queued <- err
		}()
		time.Sleep(100 * time.Millisecond)
		sw.Close()
		sw.Close()
		calls := map[string]error{"waiting": <-waiting, "queued": <-queued}
		ctx := t.Context()
		_, calls["Identify"] = sw.Identify(ctx)
		_, calls["CrossConnects"] = sw.CrossConnects(ctx)
		_, calls["Apply"] = sw.Apply(ctx, change(t, "+1>9"))
		_, calls["Power"] = sw.Power(ctx)
		_, calls["Telemetry"] = sw.Telemetry(ctx)
		_, calls["Log"] = sw.Log(ctx)
		_, calls["Flags"] = sw.Flags(ctx)
		_, calls["BootMode"] = sw.BootMode(ctx)
		calls["SetBootMode"] = sw.SetBootMode(ctx, ocs.BootDark)
		calls["Restart"] = sw.Restart(ctx)
		for name, err := range calls {
			if op := (*ocs.OpError)(nil); !errors.Is(err, net.ErrClosed) || !errors.As(err, &op) {
				t.Errorf("%s: got %T %v", name, err, err)
			}
		}
	})
}

// TestCancelled: a call whose context ends returns its cause, and the next one works.
func TestCancelled(t *testing.T) {
	t.Parallel()
	enough := errors.New("enough")
	synctest.Test(t, func(t *testing.T) {
		b := newFake(1)
		sw := openFake(t, b)
		for _, state := range []ocst.State{ocst.StateWarmUp, ocst.StateReady} {
			b.modules[0].state(state)
			b.modules[0].end = func(m *fakeModule) { m.state(ocst.StateSettle) } // a switch without end
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(50*time.Millisecond, func() { cancel(enough) })
			begun := time.Now()
			r, err := sw.Apply(ctx, change(t, "+1>9"))
			if !errors.Is(err, enough) || time.Since(begun) > 60*time.Millisecond || !r.Acked.IsZero() {
				t.Errorf("%v: got %v after %v, acknowledged %v", state, err, time.Since(begun), r.Acked)
			}
		}
		b.modules[0].end = nil
		b.modules[0].state(ocst.StateReady)
		if _, err := sw.Apply(t.Context(), change(t, "+1>9")); err != nil {
			t.Error(err)
		}
	})
}

// TestConcurrent: changes come one after another, and reads in between see one or the
// other.
func TestConcurrent(t *testing.T) {
	t.Parallel()
	b := newFake(2)
	sw := openFake(t, b)
	var wg sync.WaitGroup
	for lane := range 8 {
		in := ocs.Port(lane + 1)
		wg.Go(func() {
			for range 10 {
				for _, c := range []ocs.Change{
					{Add: ocs.MustMap(ocs.CrossConnect{Ingress: in, Egress: 16 + in}, ocs.CrossConnect{Ingress: 8 + in, Egress: 40 + in})},
					{Remove: ocs.MustMap(ocs.CrossConnect{Ingress: in, Egress: 16 + in}, ocs.CrossConnect{Ingress: 8 + in, Egress: 40 + in})},
				} {
					if _, err := sw.Apply(t.Context(), c); err != nil {
						t.Error(err)
					}
				}
			}
		})
		wg.Go(func() {
			for range 10 {
				if _, err := sw.CrossConnects(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if m, err := sw.CrossConnects(t.Context()); err != nil || m.Len() > 0 {
		t.Errorf("left %v, %v", m, err)
	}
}
