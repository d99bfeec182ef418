package emulator_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/timeline"
)

// exact is a personality without anything that is drawn at random in readings.
func exact(size string) emulator.Personality {
	return emulator.Personality{
		Model: "test", Vendor: "V", Product: "P", Firmware: "1", Size: size,
		Switching: emulator.Switching{Single: 20 * time.Millisecond, Bulk: 40 * time.Millisecond, Rise: time.Millisecond, Ack: emulator.AckAfter},
		Optics:    emulator.Optics{Loss: 1.5, LossMax: 2.7, LossSpread: 0.3},
		Monitors:  emulator.Monitors{Sides: emulator.MonitorsBoth, Floor: -60, Default: 1},
		Control: emulator.Control{
			Busy: emulator.Takeover, Boot: ocs.BootRestore, Reboot: time.Minute,
			Users: []emulator.User{{Name: "admin", Password: "root", Group: emulator.Admin}},
		},
	}
}

func newDevice(t testing.TB, p emulator.Personality, opt emulator.Options) *emulator.Device {
	t.Helper()
	d, err := emulator.New(p, opt)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func connect(t testing.TB, d *emulator.Device, m string) emulator.Operation {
	t.Helper()
	op, err := d.Connect(parseMap(t, m).Slice())
	if err != nil {
		t.Fatal(err)
	}
	return op
}

func parseMap(t testing.TB, s string) ocs.Map {
	t.Helper()
	m, err := ocs.ParseMap(s)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func pair(in, out ocs.Port) ocs.CrossConnect { return ocs.CrossConnect{Ingress: in, Egress: out} }

func wantMap(t testing.TB, d *emulator.Device, want string) {
	t.Helper()
	if got := d.CrossConnects().String(); got != want {
		t.Errorf("map=%q, want %q", got, want)
	}
}

const dark = -50 // dBm, below any light here

func lit(d *emulator.Device, n ocs.Port) bool { return d.Power(n) > dark }

func wantLit(t testing.TB, d *emulator.Device, n ocs.Port, want bool) {
	t.Helper()
	if got := lit(d, n); got != want {
		t.Errorf("port %d lit=%v (%v), want %v", n, got, d.Power(n), want)
	}
}

func stages(t testing.TB, d *emulator.Device) []string {
	t.Helper()
	marks, _ := d.Truth(0)
	var ss []string
	for _, m := range marks {
		ss = append(ss, fmt.Sprintf("%s %s %d", m.Stage, m.Subject, m.Reconfiguration))
	}
	return ss
}

func TestDevice_TakeoverDropsBoth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDevice(t, exact("4x4"), emulator.Options{Name: "s"})
		connect(t, d, "1>5,2>6")
		time.Sleep(time.Second)
		op := connect(t, d, "1>6")
		wantMap(t, d, "1>6")
		if got, want := time.Until(op.Ack), 20*time.Millisecond; got != want {
			t.Errorf("acknowledged in %v, want %v", got, want)
		}
		time.Sleep(15 * time.Millisecond)
		wantLit(t, d, 5, false)
		wantLit(t, d, 6, false)
		time.Sleep(20 * time.Millisecond)
		wantLit(t, d, 5, false)
		wantLit(t, d, 6, true)
		connect(t, d, "1>6") // there already: nothing happens
		wantLit(t, d, 6, true)
		want := []string{"light s/5 1", "light s/6 1", "dark s/5 2", "dark s/6 2", "light s/6 2"}
		if diff := cmp.Diff(want, stages(t, d)); diff != "" {
			t.Error(diff)
		}
	})
}

func TestDevice_AckBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := exact("4x4")
		p.Switching.Ack = emulator.AckBefore
		d := newDevice(t, p, emulator.Options{})
		op := connect(t, d, "1>5,2>6")
		if got := time.Until(op.Ack); got != 0 {
			t.Errorf("acknowledged in %v, want at once", got)
		}
		if got, want := time.Until(op.Settled), 40*time.Millisecond; got != want {
			t.Errorf("settled in %v, want %v", got, want)
		}
	})
}

func TestDevice_ConnectErrors(t *testing.T) {
	p := exact("4x4")
	p.Control.Busy = emulator.Deny
	p.Control.Failed = []uint32{4}
	p.Control.MaxPairs = 2
	d := newDevice(t, p, emulator.Options{})
	connect(t, d, "1>5")
	var failed *emulator.FailedPortError
	var limit *emulator.LimitError
	for name, test := range map[string]struct {
		ccs  []ocs.CrossConnect
		want func(error) bool
	}{
		"Busy":      {[]ocs.CrossConnect{pair(2, 6), pair(1, 7)}, func(err error) bool { return errors.Is(err, ocs.ErrConflict) }},
		"BusyOut":   {[]ocs.CrossConnect{pair(2, 5)}, func(err error) bool { return errors.Is(err, ocs.ErrConflict) }},
		"Duplicate": {[]ocs.CrossConnect{pair(2, 6), pair(2, 7)}, func(err error) bool { return errors.Is(err, ocs.ErrConflict) }},
		"Egress":    {[]ocs.CrossConnect{pair(2, 6), pair(7, 3)}, func(err error) bool { return errors.Is(err, ocs.ErrPort) }},
		"NoPort":    {[]ocs.CrossConnect{pair(2, 9)}, func(err error) bool { return errors.Is(err, ocs.ErrPort) }},
		"Failed":    {[]ocs.CrossConnect{pair(2, 6), pair(4, 7)}, func(err error) bool { return errors.As(err, &failed) && failed.Port == 4 }},
		"Limit":     {[]ocs.CrossConnect{pair(1, 5), pair(2, 6), pair(3, 7)}, func(err error) bool { return errors.As(err, &limit) && limit.Pairs == 3 }},
	} {
		_, err := d.Connect(test.ccs)
		if err == nil || !test.want(err) || err.Error() == "" {
			t.Errorf("%s: error %v", name, err)
		}
		wantMap(t, d, "1>5")
	}
	if _, err := d.Disconnect(1, 9); !errors.Is(err, ocs.ErrPort) {
		t.Errorf("Disconnect: error %v", err)
	}
	for name, err := range map[string]error{
		"SetShutters": d.SetShutters(true, 1, 9), "SetInput": d.SetInput(9, 0), "SetLabel": d.SetLabel(9, "x"),
		"SetFlap": d.SetFlap(emulator.Flap{Off: time.Second, On: time.Second}, 5), "SetMonitors": d.SetMonitors(nil, emulator.Forward, map[ocs.Port]emulator.Monitor{9: {}}),
		"SetAlarms": d.SetAlarms(emulator.Forward, emulator.Degraded, map[ocs.Port]emulator.Alarm{9: {}}),
	} {
		if !errors.Is(err, ocs.ErrPort) {
			t.Errorf("%s: error %v", name, err)
		}
	}
	for _, x := range []float64{math.NaN(), math.Inf(1), 1e6} {
		if d.SetInput(1, ocs.DBm(x)) == nil {
			t.Errorf("SetInput(%v) succeeds", x)
		}
	}
	wantMap(t, d, "1>5")
}

func TestDevice_StuckAndUnlit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDevice(t, exact("4x4"), emulator.Options{})
		connect(t, d, "1>5,2>6")
		time.Sleep(time.Second)
		d.Stick(5, 99)
		connect(t, d, "1>7,3>5") // neither can move
		wantMap(t, d, "1>5,2>6")
		if _, err := d.Disconnect(); err != nil {
			t.Fatal(err)
		}
		wantMap(t, d, "1>5")
		d.ResetMatrix(nil)
		wantMap(t, d, "1>5")
		wantLit(t, d, 5, true)
		d.Unlight(1)
		connect(t, d, "2>6")
		d.Unlight(6)
		time.Sleep(time.Second)
		wantMap(t, d, "1>5,2>6")
		wantLit(t, d, 5, false)
		wantLit(t, d, 6, false)
	})
}

func TestDevice_ShutterDuringMove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDevice(t, exact("4x4"), emulator.Options{Name: "s"})
		connect(t, d, "1>5")
		time.Sleep(5 * time.Millisecond)
		d.SetShutters(true, 1, 5)
		time.Sleep(40 * time.Millisecond)
		wantLit(t, d, 5, false)
		if !d.ShutterClosed(5) || d.ShutterClosed(6) {
			t.Error("wrong shutters are closed")
		}
		d.SetShutters(false, 1)
		time.Sleep(40 * time.Millisecond)
		wantLit(t, d, 5, false)
		d.SetShutters(false, 5)
		time.Sleep(10 * time.Millisecond)
		wantLit(t, d, 5, true) // at once, the mirrors have settled
		wantMap(t, d, "1>5")

		connect(t, d, "2>5")
		d.SetShutters(true, 5)
		time.Sleep(10 * time.Millisecond)
		d.SetShutters(false, 5) // still moving
		time.Sleep(5 * time.Millisecond)
		wantLit(t, d, 5, false)
		time.Sleep(15 * time.Millisecond)
		wantLit(t, d, 5, true)
		want := []string{"light s/5 1", "dark s/5 2", "light s/5 2"}
		if diff := cmp.Diff(want, stages(t, d)); diff != "" {
			t.Error(diff)
		}
	})
}

func TestDevice_SetInput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDevice(t, exact("4x4"), emulator.Options{Name: "s", Light: map[ocs.Port]ocs.DBm{1: 3}})
		connect(t, d, "1>5,2>6")
		time.Sleep(10 * time.Millisecond)
		d.SetInput(1, 1) // in the move: no light comes earlier or later
		time.Sleep(time.Second)
		if got := d.Power(1); math.Abs(float64(got-1)) > 1e-5 {
			t.Errorf("Power(1)=%v, want 1 dBm", got)
		}
		loss := d.Power(1).Sub(d.Power(5))
		if loss < 0.7 || loss > 2.7 {
			t.Errorf("loss=%v", loss)
		}
		d.SetInput(1, -9)
		time.Sleep(5 * time.Millisecond) // half the averaging time
		mean := ocs.Milliwatts((ocs.DBm(1).Milliwatts() + ocs.DBm(-9).Milliwatts()) / 2)
		if got := d.Power(1); math.Abs(float64(got-mean)) > 1e-5 {
			t.Errorf("Power(1)=%v, want %v", got, mean)
		}
		if got, want := d.Power(5), mean.Add(-loss); math.Abs(float64(got-want)) > 1e-5 {
			t.Errorf("Power(5)=%v, want %v", got, want)
		}
		wantLit(t, d, 6, false)
		d.SetInput(2, 0)
		d.SetInput(1, ocs.DBm(math.Inf(-1)))
		time.Sleep(time.Second)
		wantLit(t, d, 6, true)
		wantLit(t, d, 5, false)
		wantLit(t, d, 1, false)
		want := []string{"light s/5 1", "light s/6 1", "dark s/5 1"}
		if diff := cmp.Diff(want, stages(t, d)); diff != "" {
			t.Error(diff)
		}
	})
}

func TestDevice_ResetMatrix(t *testing.T) {
	for _, boot := range []ocs.BootMode{ocs.BootRestore, ocs.BootDark} {
		synctest.Test(t, func(t *testing.T) {
			d := newDevice(t, exact("4x4"), emulator.Options{})
			connect(t, d, "1>5,2>6")
			time.Sleep(time.Second)
			d.SetShutters(true, 3)
			setBoot(t, d, boot)
			op := d.ResetMatrix(nil)
			time.Sleep(15 * time.Millisecond)
			wantLit(t, d, 5, false)
			time.Sleep(40 * time.Millisecond)
			restored := boot == ocs.BootRestore
			wantLit(t, d, 5, restored)
			if got := d.ShutterClosed(3); got != restored {
				t.Errorf("%s: shutter closed=%v", boot, got)
			}
			if got := d.CrossConnects().Len() > 0; got != restored {
				t.Errorf("%s: map %v", boot, d.CrossConnects())
			}
			if got := op.Ack.Equal(op.Settled) && d.BootMode() == boot; !got {
				t.Errorf("%s: acknowledged at %v, settled at %v", boot, op.Ack, op.Settled)
			}
		})
	}
}

func TestDevice_Reboot(t *testing.T) {
	for _, boot := range []ocs.BootMode{ocs.BootRestore, ocs.BootDark} {
		synctest.Test(t, func(t *testing.T) {
			d := newDevice(t, exact("4x4"), emulator.Options{})
			connect(t, d, "1>5")
			setBoot(t, d, boot)
			time.Sleep(time.Second)
			up := d.Up()
			d.Reboot()
			if up.Err() == nil || d.Up().Err() != nil || !d.Rebooting() {
				t.Error("not rebooting")
			}
			time.Sleep(30 * time.Millisecond)
			wantLit(t, d, 5, boot == ocs.BootRestore)
			time.Sleep(time.Minute)
			if d.Rebooting() {
				t.Error("still rebooting")
			}
		})
	}
}

func TestDevice_SingleSided(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDevice(t, exact("4xCC"), emulator.Options{})
		connect(t, d, "3>1,2>4")
		time.Sleep(time.Second)
		for n, out := range map[ocs.Port]bool{1: true, 2: false, 3: false, 4: true} {
			if got := d.MeasuresOutput(n); got != out {
				t.Errorf("port %d measures output=%v, want %v", n, got, out)
			}
			wantLit(t, d, n, true)
		}
		connect(t, d, "1>2") // both change their role
		wantMap(t, d, "1>2")
		time.Sleep(time.Second)
		if d.MeasuresOutput(1) || !d.MeasuresOutput(2) {
			t.Error("the monitors have not changed sides")
		}
		d.SetInput(3, ocs.DBm(math.Inf(-1)))
		connect(t, d, "3>2")
		time.Sleep(time.Second)
		wantLit(t, d, 2, false)
		for _, bad := range [][]ocs.CrossConnect{{pair(1, 1)}, {pair(1, 2), pair(2, 3)}} {
			if _, err := d.Connect(bad); !errors.Is(err, ocs.ErrPort) {
				t.Errorf("%v: error %v", bad, err)
			}
		}
	})
}

// Ensure that a device under any commands holds what a model of it holds, and
// that its truth log says of every port what its monitor shows.
func TestDevice_Model(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		// What rapid throws must reach it, out of the bubble.
		var thrown any
		synctest.Test(t, func(*testing.T) {
			defer func() { thrown = recover() }()
			testModel(rt)
		})
		// It tells failures apart by the line they come from, and must not take
		// an attempt at a shorter case that makes no sense for one.
		switch fmt.Sprintf("%T", thrown) {
		case "<nil>":
		case "rapid.invalidData":
			panic(thrown)
		default:
			panic(thrown)
		}
	})
}

func testModel(t *rapid.T) {
	p := exact(rapid.SampledFrom([]string{"4x4", "6xCC"}).Draw(t, "size"))
	p.Switching.Jitter = 3 * time.Millisecond
	if rapid.Bool().Draw(t, "instant") {
		p.Switching = emulator.Switching{Ack: emulator.AckBefore}
	}
	d, err := emulator.New(p, emulator.Options{Name: "s", Seed: 7})
	if err != nil {
		t.Fatal(err)
	}
	g := d.Geometry()
	closed := map[ocs.Port]bool{}
	sources := map[ocs.Port]bool{}
	for _, n := range g.IngressPorts() {
		sources[n] = true
	}
	var model ocs.Map
	port := rapid.SampledFrom(g.Ports())
	var touched time.Time
	pause := func() { touched = time.Now(); time.Sleep(time.Duration(rapid.Int64Range(0, 30*1e6).Draw(t, "pause"))) }
	shines := func(egress ocs.Port) bool {
		in, ok := model.IngressOf(egress)
		return ok && sources[in] && !closed[in] && !closed[egress]
	}
	t.Repeat(map[string]func(*rapid.T){
		"connect": func(t *rapid.T) {
			n := rapid.IntRange(1, 3).Draw(t, "n")
			in := rapid.SliceOfNDistinct(rapid.SampledFrom(g.IngressPorts()), n, n, rapid.ID).Draw(t, "in")
			out := rapid.SliceOfNDistinct(rapid.SampledFrom(g.EgressPorts()), n, n, rapid.ID).Draw(t, "out")
			var ccs []ocs.CrossConnect
			for i := range in {
				ccs = append(ccs, ocs.CrossConnect{Ingress: in[i], Egress: out[i]})
			}
			want := ocs.MustMap(ccs...)
			_, err := d.Connect(ccs)
			if bad := g.Check(want); (err != nil) != (bad != nil) {
				t.Fatalf("Connect(%v): error %v, want %v", ccs, err, bad)
			} else if bad == nil {
				var rest []ocs.CrossConnect
				for c := range model.All() {
					if want.Has(c) || !slices.Contains(want.Ports(), c.Ingress) && !slices.Contains(want.Ports(), c.Egress) {
						rest = append(rest, c)
					}
				}
				model, _ = ocs.MustMap(rest...).Plus(want)
			}
			pause()
		},
		"disconnect": func(t *rapid.T) {
			n := port.Draw(t, "port")
			d.Disconnect(n)
			model = model.Minus(ocs.MustMap(model.At(n)...))
			pause()
		},
		"shutter": func(t *rapid.T) {
			n := port.Draw(t, "port")
			closed[n] = !closed[n]
			d.SetShutters(closed[n], n)
			pause()
		},
		"source": func(t *rapid.T) {
			n := port.Draw(t, "port")
			level := rapid.SampledFrom([]float64{math.Inf(-1), -3, 2}).Draw(t, "level")
			sources[n] = !math.IsInf(level, -1)
			d.SetInput(n, ocs.DBm(level))
			pause()
		},
		"": func(t *rapid.T) {
			if got := d.CrossConnects(); !got.Equal(model) {
				t.Fatalf("map=%v, want %v", got, model)
			}
			now := timeline.HostAxis().NS(time.Now())
			last := map[string]timeline.Mark{}
			marks, _ := d.Truth(0)
			for _, m := range marks {
				was := last[m.Subject].Stage
				if was == m.Stage || was == "" && m.Stage != timeline.Light {
					t.Fatalf("%v after %q", m, was)
				}
				if was != "" && m.Earliest < last[m.Subject].Earliest || m.Latest > now {
					t.Fatalf("%v: after %v, now %d", m, last[m.Subject], now)
				}
				last[m.Subject] = m
			}
			for _, n := range g.EgressPorts() {
				m := last[fmt.Sprintf("s/%d", n)]
				long := now-m.Latest > int64(10*time.Millisecond)
				switch {
				case m.Stage == timeline.Light && !shines(n):
					t.Fatalf("port %d: truth is light, model is dark", n)
				case m.Stage == timeline.Light && long && !lit(d, n):
					t.Fatalf("port %d: truth is light, power is %v", n, d.Power(n))
				case m.Stage != timeline.Light && long && time.Since(touched) > 10*time.Millisecond && !shines(n) && d.MeasuresOutput(n) && lit(d, n):
					t.Fatalf("port %d: truth is dark, power is %v", n, d.Power(n))
				}
			}
		},
	})
	time.Sleep(time.Second)
	marks, _ := d.Truth(0)
	for _, n := range g.EgressPorts() {
		light := false
		for _, m := range marks {
			if m.Subject == fmt.Sprintf("s/%d", n) {
				light = m.Stage == timeline.Light
			}
		}
		if light != shines(n) {
			t.Fatalf("port %d: truth is light=%v, model %v", n, light, shines(n))
		}
	}
}

func TestDevice_Power(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDevice(t, exact("4x4"), emulator.Options{})
		connect(t, d, "1>5")
		time.Sleep(10 * time.Second)
		full := d.Power(5)
		for step := 1; step <= 8; step++ {
			window := emulator.AveragingTime(step)
			if err := d.SetMonitors(nil, emulator.Forward, map[ocs.Port]emulator.Monitor{5: {Wavelength: 1310, Averaging: step}}); err != nil {
				t.Fatal(err)
			}
			if m := d.Monitor(emulator.Forward, 5); m.Averaging != step || m.Wavelength != 1310 {
				t.Errorf("Monitor=%v", m)
			}
			d.SetShutters(true, 5)
			time.Sleep(window / 2)
			if got, want := d.Power(5), full.Add(-3.0103); math.Abs(float64(got-want)) > 1e-3 {
				t.Errorf("half of %v after the light went: %v, want %v", window, got, want)
			}
			time.Sleep(window / 2)
			if got, want := d.Power(5), ocs.DBm(-60); got != want {
				t.Errorf("%v after the light went: %v, want %v", window, got, want)
			}
			d.SetShutters(false, 5)
			time.Sleep(window)
			if got := d.Power(5); math.Abs(float64(got-full)) > 1e-9 {
				t.Errorf("%v after the light came: %v, want %v", window, got, full)
			}
			time.Sleep(2 * time.Second)
		}
		d.SetMonitors(nil, emulator.Forward, map[ocs.Port]emulator.Monitor{5: {Wavelength: 1310, Averaging: 1, Offset: 2}})
		d.SetMonitors(nil, emulator.Reverse, map[ocs.Port]emulator.Monitor{5: {Wavelength: 1310, Averaging: 1, Offset: 1}})
		if got, want := d.Power(5), full.Add(2); got != want {
			t.Errorf("with offset: %v, want %v", got, want)
		}
		if got, want := d.ReversePower(5), ocs.DBm(-59); got != want {
			t.Errorf("reverse: %v, want %v", got, want)
		}
	})
	p := exact("4x4")
	for sides, want := range map[emulator.MonitorSides][2]bool{
		emulator.MonitorsNone: {false, false}, emulator.MonitorsEgress: {false, true}, emulator.MonitorsBoth: {true, true},
	} {
		p.Monitors.Sides = sides
		d := newDevice(t, p, emulator.Options{})
		if got := [2]bool{d.HasMonitor(1), d.HasMonitor(5)}; got != want {
			t.Errorf("%s: monitors %v, want %v", sides, got, want)
		}
	}
	d := newDevice(t, exact("4x4"), emulator.Options{})
	for _, m := range []emulator.Monitor{
		{Wavelength: 1259, Averaging: 1}, {Wavelength: 1641, Averaging: 1}, {Wavelength: math.NaN(), Averaging: 1},
		{Wavelength: 1550, Offset: 101, Averaging: 1}, {Wavelength: 1550, Offset: -101, Averaging: 1}, {Wavelength: 1550}, {Wavelength: 1550, Averaging: 9},
	} {
		if d.SetMonitors(nil, emulator.Forward, map[ocs.Port]emulator.Monitor{1: m}) == nil {
			t.Errorf("%v is accepted", m)
		}
	}
}

// fingerprint is what follows from name, seed and commands.
func fingerprint(t testing.TB, name string, seed uint64) (lines []string) {
	p, err := emulator.LoadPersonality("polatis-6000-32x32")
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t.(*testing.T), func(t *testing.T) {
		d := newDevice(t, p, emulator.Options{Name: name, Seed: seed})
		lines = append(lines, "serial "+d.Serial())
		for i := range ocs.Port(4) {
			d.Power(i + 1) // must not change how the mirrors move
			op, _ := d.Connect([]ocs.CrossConnect{{Ingress: i + 1, Egress: 40 - i}})
			lines = append(lines, fmt.Sprintf("%d>%d settles in %v", i+1, 40-i, time.Until(op.Settled)))
		}
		time.Sleep(time.Second)
		for i := range ocs.Port(4) {
			lines = append(lines, fmt.Sprintf("%d: %v, %d: %v", i+1, d.Power(i+1), 40-i, d.Power(40-i)))
		}
	})
	return lines
}

func TestDevice_Seed(t *testing.T) {
	want := `serial 810826
1>40 settles in 205.899548ms
2>39 settles in 201.697615ms
3>38 settles in 200.570707ms
4>37 settles in 197.704727ms
1: -1.33 dBm, 40: -2.69 dBm
2: -1.91 dBm, 39: -2.99 dBm
3: -1.61 dBm, 38: -2.92 dBm
4: -0.16 dBm, 37: -1.69 dBm`
	got := strings.Join(fingerprint(t, "rail0", 1), "\n")
	if got != want {
		t.Errorf("rail0 with seed 1:\n%s\nwant:\n%s", got, want)
	}
	for _, other := range [][]string{fingerprint(t, "rail1", 1), fingerprint(t, "rail0", 2)} {
		for i, line := range strings.Split(got, "\n") {
			if other[i] == line {
				t.Errorf("another device has the same line: %s", line)
			}
		}
	}
}

func TestDevice_Labels(t *testing.T) {
	d := newDevice(t, exact("4x4"), emulator.Options{})
	if d.Name() != "test" || d.Geometry() != ocs.TwoSided(4, 4) || d.Personality().Vendor != "V" {
		t.Error("not the device that was made")
	}
	if _, err := d.Edit(nil, emulator.Edit{Labels: map[ocs.Port]string{1: "a b/c", 5: strings.Repeat("x", emulator.MaxLabel)}}); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []map[ocs.Port]string{{1: "y", 2: "\t"}, {1: "y", 2: "é"}, {1: "y", 2: strings.Repeat("x", emulator.MaxLabel+1)}} {
		if _, err := d.Edit(nil, emulator.Edit{Labels: bad}); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
	if got, want := d.Label(1), "a b/c"; got != want {
		t.Errorf("label=%q, want %q", got, want)
	}
	d.SetLabel(1, "")
	if got := d.Label(1); got != "" {
		t.Errorf("label=%q, want none", got)
	}
}

func TestDevice_Clock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDevice(t, exact("4x4"), emulator.Options{})
		want := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
		d.SetClock(want)
		time.Sleep(time.Hour)
		if got := d.Now(); !got.Equal(want.Add(time.Hour)) {
			t.Errorf("Now=%v", got)
		}
	})
}
