package emulator_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/ocs"
)

// Ensure that every change is told once, to all tongues alike, with who did it,
// and what is as it was is not told.
func TestDevice_EditTells(t *testing.T) {
	p := exact("4x4")
	p.Optics.VOAMax = 20
	d := newDevice(t, p, emulator.Options{})
	s := d.Subscribe()
	defer s.Close()
	me := d.Enter(emulator.SessionInfo{Protocol: "TL1", User: "admin"}, func() {})
	defer me.Leave()
	monitor := d.Monitor(emulator.Forward, 1)
	monitor.Wavelength = 1310
	voa := emulator.VOA{Mode: emulator.VOAAbsolute, Level: -10}
	e := emulator.Edit{
		Labels:          map[ocs.Port]string{1: "a", 2: "b", 3: "c", 5: "d", 8: ""},
		Peers:           map[ocs.Port]string{4: "nic"},
		Monitors:        map[ocs.Port]emulator.Monitor{1: monitor, 2: d.Monitor(emulator.Forward, 2)},
		ReverseMonitors: map[ocs.Port]emulator.Monitor{3: monitor},
		VOAs:            map[ocs.Port]emulator.VOA{5: voa, 6: {Mode: emulator.VOANone}},
		Boot:            ocs.BootDark,
		Users: func(us []emulator.User) ([]emulator.User, error) {
			us[0].Password = "secret"
			return append(us, emulator.User{Name: "bob", Password: "secret", Group: emulator.Viewer}), nil
		},
	}
	if _, err := d.Edit(me, e); err != nil {
		t.Fatal(err)
	}
	var got []string
	for len(s.C) > 0 {
		ev := <-s.C
		if ev.Kind != emulator.ActivityEvent || ev.By.ID != me.Info().ID || ev.Time.IsZero() {
			t.Errorf("got %+v", ev)
		}
		got = append(got, ev.Condition+" "+ev.Text)
	}
	want := []string{
		"SYSTEM Label of ports 1-3,5 changed", "SYSTEM Peer of port 4 changed", "OPM Monitor of port 1 changed",
		"OPM Reverse monitor of port 3 changed", "OPM Attenuator of port 5 changed", "SYSTEM Boot mode set to dark",
		"USER User admin changed, user bob added as VIEW",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	e.Users = nil
	if _, err := d.Edit(me, e); err != nil {
		t.Fatal(err)
	}
	wantEvents(t, s)
	if err := errors.Join(d.EditUser(me, "bob", emulator.User{Name: "rob"}), d.DeleteUser(me, "rob")); err != nil {
		t.Fatal(err)
	}
	wantEvents(t, s, "/USER/User bob removed, user rob added as VIEW", "/USER/User rob removed")
}

// Ensure that pairs go only as they are, and nothing of an edit is done when one
// of them has changed.
func TestDevice_EditDropPairs(t *testing.T) {
	pair := func(in, out ocs.Port) ocs.CrossConnect { return ocs.CrossConnect{Ingress: in, Egress: out} }
	for name, test := range map[string]struct {
		e    emulator.Edit
		want string
		err  error
	}{
		"There":          {emulator.Edit{DropPairs: []ocs.CrossConnect{pair(1, 5)}}, "2>6", nil},
		"Gone":           {emulator.Edit{DropPairs: []ocs.CrossConnect{pair(3, 7), pair(1, 5), pair(1, 5)}}, "2>6", nil},
		"IngressMoved":   {emulator.Edit{DropPairs: []ocs.CrossConnect{pair(2, 6), pair(1, 7)}}, "1>5,2>6", &emulator.NotHeldError{Drop: pair(1, 7), Held: pair(1, 5)}},
		"EgressMoved":    {emulator.Edit{DropPairs: []ocs.CrossConnect{pair(3, 6)}, Labels: map[ocs.Port]string{1: "x"}}, "1>5,2>6", &emulator.NotHeldError{Drop: pair(3, 6), Held: pair(2, 6)}},
		"Wanted":         {emulator.Edit{DropPairs: []ocs.CrossConnect{pair(1, 5)}, Add: []ocs.CrossConnect{pair(1, 5), pair(3, 7)}}, "1-3>5-7", nil},
		"Swap":           {emulator.Edit{DropPairs: []ocs.CrossConnect{pair(1, 5), pair(2, 6)}, Add: []ocs.CrossConnect{pair(1, 6), pair(2, 5)}}, "1>6,2>5", nil},
		"NoSuchPort":     {emulator.Edit{DropPairs: []ocs.CrossConnect{pair(1, 9)}}, "1>5,2>6", ocs.ErrPort},
		"IsErrConflict":  {emulator.Edit{DropPairs: []ocs.CrossConnect{pair(1, 7)}}, "1>5,2>6", ocs.ErrConflict},
		"DropsNotBeside": {emulator.Edit{DropPairs: []ocs.CrossConnect{pair(1, 5)}, Drop: []ocs.Port{6, 3}}, "", nil},
	} {
		p := exact("4x4")
		p.Control.Busy = emulator.Deny
		d := newDevice(t, p, emulator.Options{})
		connect(t, d, "1>5,2>6")
		_, err := d.Edit(nil, test.e)
		var held, wanted *emulator.NotHeldError
		switch {
		case errors.As(test.err, &wanted):
			if !errors.As(err, &held) || *held != *wanted {
				t.Errorf("%s: error %v, want %v", name, err, test.err)
			}
		case !errors.Is(err, test.err):
			t.Errorf("%s: error %v, want %v", name, err, test.err)
		}
		if d.Label(1) != "" {
			t.Errorf("%s: done in part", name)
		}
		wantMap(t, d, test.want)
	}
}

// Ensure that a restart of the matrix that drops circuits and opens shutters is
// told.
func TestDevice_ResetMatrixTells(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDevice(t, exact("4x4"), emulator.Options{})
		connect(t, d, "1>5,2>6")
		if err := d.SetShutters(true, 2, 4); err != nil {
			t.Fatal(err)
		}
		s := d.Subscribe()
		defer s.Close()
		d.ResetMatrix(nil)
		wantEvents(t, s) // all is as it was
		setBoot(t, d, ocs.BootDark)
		d.ResetMatrix(nil)
		wantEvents(t, s, "/SYSTEM/Boot mode set to dark", "/OXC/disconnected 1>5,2>6", "/PORT/Port 2 enabled", "/PORT/Port 4 enabled")
	})
}

// Ensure that attenuators stay as they are over a restart of the program: those
// at free ports, and the ones that hold what they had come to.
func TestDevice_MemoryVOA(t *testing.T) {
	for _, boot := range []ocs.BootMode{ocs.BootRestore, ocs.BootDark} {
		synctest.Test(t, func(t *testing.T) {
			mem := &memory{}
			p := exact("4x4")
			p.Optics.VOAMax = 20
			d := newDevice(t, p, emulator.Options{Memory: mem})
			connect(t, d, "1>5,2>6")
			time.Sleep(time.Second)
			voas := map[ocs.Port]emulator.VOA{
				5: {Mode: emulator.VOAConverged, Level: -10}, 6: {Mode: emulator.VOAMaximum}, 7: {Mode: emulator.VOARelative, Level: -3, Reference: 2},
			}
			for _, e := range []emulator.Edit{{VOAs: voas}, {VOAs: map[ocs.Port]emulator.VOA{6: {Mode: emulator.VOAFixed}}, Boot: boot}} {
				if _, err := d.Edit(nil, e); err != nil {
					t.Fatal(err)
				}
			}
			again := newDevice(t, p, emulator.Options{Memory: mem})
			connect(t, again, "1>5,2>6")
			for n := ocs.Port(5); n <= 8; n++ {
				if got, want := again.VOA(n), d.VOA(n); got != want {
					t.Errorf("%s: port %d: %+v, want %+v", boot, n, got, want)
				}
				if got, want := again.Attenuation(n), d.Attenuation(n); got != want {
					t.Errorf("%s: port %d: %v, want %v", boot, n, got, want)
				}
			}
		})
	}
}

// BenchmarkEdit is what one cross-connect costs on a full switch of 384 ports,
// and what all of them cost at once.
func BenchmarkEdit(b *testing.B) {
	full := func(b *testing.B) (*emulator.Device, []ocs.CrossConnect) {
		p, err := emulator.LoadPersonality("polatis-7000-384x384")
		if err != nil {
			b.Fatal(err)
		}
		d, err := emulator.New(p, emulator.Options{})
		if err != nil {
			b.Fatal(err)
		}
		ccs := make([]ocs.CrossConnect, d.Geometry().Ingress)
		for i := range ccs {
			ccs[i] = ocs.CrossConnect{Ingress: ocs.Port(i + 1), Egress: ocs.Port(len(ccs) + i + 1)}
		}
		if _, err := d.Connect(ccs); err != nil {
			b.Fatal(err)
		}
		return d, ccs
	}
	run := func(name string, edits ...func([]ocs.CrossConnect) emulator.Edit) {
		b.Run(name, func(b *testing.B) {
			d, ccs := full(b)
			var es []emulator.Edit
			for _, e := range edits {
				es = append(es, e(ccs))
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if _, err := d.Edit(nil, es[i%len(es)]); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	run("DropAddOne",
		func(c []ocs.CrossConnect) emulator.Edit { return emulator.Edit{Drop: []ocs.Port{c[0].Ingress}} },
		func(c []ocs.CrossConnect) emulator.Edit { return emulator.Edit{Add: c[:1]} })
	run("SwapTwo",
		func(c []ocs.CrossConnect) emulator.Edit {
			return emulator.Edit{Add: []ocs.CrossConnect{{Ingress: c[0].Ingress, Egress: c[1].Egress}, {Ingress: c[1].Ingress, Egress: c[0].Egress}}}
		},
		func(c []ocs.CrossConnect) emulator.Edit { return emulator.Edit{Add: c[:2]} })
	run("DropAddAll",
		func([]ocs.CrossConnect) emulator.Edit { return emulator.Edit{Only: true} },
		func(c []ocs.CrossConnect) emulator.Edit { return emulator.Edit{Add: c} })
}
