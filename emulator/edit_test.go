package emulator_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/ocs"
)

// state is all that an Edit can change.
func state(d *emulator.Device) string {
	var b strings.Builder
	fmt.Fprintln(&b, d.CrossConnects(), d.BootMode(), d.Notes(), d.Users())
	for _, n := range d.Geometry().Ports() {
		fmt.Fprintln(&b, n, d.ShutterClosed(n), d.Label(n), d.Peer(n), d.Monitor(emulator.Forward, n), d.VOA(n))
	}
	return b.String()
}

// Ensure that an edit of which one part is wrong changes nothing.
func TestDevice_EditAllOrNothing(t *testing.T) {
	p := exact("4x4")
	p.Control.Failed = []uint32{4}
	p.Optics.VOAMax = 20
	notes := "new"
	good := func() emulator.Edit {
		return emulator.Edit{
			Drop: []ocs.Port{1}, Add: []ocs.CrossConnect{pair(2, 6)}, Closed: map[ocs.Port]bool{3: true},
			Labels: map[ocs.Port]string{1: "one"}, Peers: map[ocs.Port]string{1: "gpu1"},
			Monitors: map[ocs.Port]emulator.Monitor{5: {Wavelength: 1310, Averaging: 2}},
			VOAs:     map[ocs.Port]emulator.VOA{6: {Mode: emulator.VOAMaximum}},
			Boot:     ocs.BootDark, Notes: &notes,
			Users: func(us []emulator.User) ([]emulator.User, error) {
				return append(us, emulator.User{Name: "lab", Group: emulator.Viewer}), nil
			},
		}
	}
	for name, spoil := range map[string]func(*emulator.Edit){
		"port to drop": func(e *emulator.Edit) { e.Drop = append(e.Drop, 9) },
		"port to add":  func(e *emulator.Edit) { e.Add = append(e.Add, pair(1, 9)) },
		"port twice":   func(e *emulator.Edit) { e.Add = append(e.Add, pair(2, 7)) },
		"failed port":  func(e *emulator.Edit) { e.Add = append(e.Add, pair(4, 7)) },
		"shutter":      func(e *emulator.Edit) { e.Closed[0] = true },
		"label":        func(e *emulator.Edit) { e.Labels[2] = "\n" },
		"peer":         func(e *emulator.Edit) { e.Peers[9] = "x" },
		"monitor":      func(e *emulator.Edit) { e.Monitors[6] = emulator.Monitor{} },
		"attenuator":   func(e *emulator.Edit) { e.VOAs[1] = emulator.VOA{} },
		"mode":         func(e *emulator.Edit) { e.VOAs[7] = emulator.VOA{Mode: "OTHER"} },
		"reference":    func(e *emulator.Edit) { e.VOAs[7] = emulator.VOA{Mode: emulator.VOARelative, Reference: 99} },
		"level":        func(e *emulator.Edit) { e.VOAs[7] = emulator.VOA{Mode: emulator.VOAAbsolute, Level: 101} },
		"boot":         func(e *emulator.Edit) { e.Boot = "bright" },
		"users":        func(e *emulator.Edit) { e.Users = func([]emulator.User) ([]emulator.User, error) { return nil, nil } },
		"users' own say": func(e *emulator.Edit) {
			e.Users = func([]emulator.User) ([]emulator.User, error) { return nil, io.EOF }
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDevice(t, p, emulator.Options{})
			connect(t, d, "1>5")
			before := state(d)
			e := good()
			spoil(&e)
			if op, err := d.Edit(nil, e); err == nil || op.Number != 0 {
				t.Errorf("got operation %d, %v", op.Number, err)
			}
			if diff := cmp.Diff(before, state(d)); diff != "" {
				t.Errorf("a refused edit has changed something (-before +after):\n%s", diff)
			}
		})
	}
	d := newDevice(t, p, emulator.Options{})
	connect(t, d, "1>5")
	if op, err := d.Edit(nil, good()); err != nil || op.Number != 2 {
		t.Fatal(op, err)
	}
	wantMap(t, d, "2>6")
	if !d.ShutterClosed(3) || d.Label(1) != "one" || d.Peer(1) != "gpu1" || d.Monitor(emulator.Forward, 5).Averaging != 2 ||
		d.VOA(6).Mode != emulator.VOAMaximum || d.BootMode() != ocs.BootDark || d.Notes() != "new" || len(d.Users()) != 2 {
		t.Errorf("not all was done: %s", state(d))
	}
}

// Ensure that what is dropped and made again stays lit, that Only drops the
// rest, and that what is dropped does not stand in the way on a device that
// denies busy ports.
func TestDevice_EditKeeps(t *testing.T) {
	for _, busy := range []emulator.BusyMode{emulator.Takeover, emulator.Deny} {
		p := exact("4x4")
		p.Control.Busy = busy
		d := newDevice(t, p, emulator.Options{})
		connect(t, d, "1>5,2>6,3>7")
		_, since := d.Truth(0)
		if _, err := d.Edit(nil, emulator.Edit{Drop: []ocs.Port{1, 6}, Add: []ocs.CrossConnect{pair(1, 5), pair(2, 8)}}); err != nil {
			t.Fatal(busy, err)
		}
		wantMap(t, d, "1>5,2>8,3>7")
		marks, _ := d.Truth(since)
		for _, m := range marks {
			if m.Subject == "test/5" || m.Subject == "test/7" {
				t.Errorf("%s: light that was to stay went: %v", busy, m)
			}
		}
		if _, err := d.Edit(nil, emulator.Edit{Only: true, Add: []ocs.CrossConnect{pair(3, 5)}}); err != nil {
			t.Fatal(busy, err)
		}
		wantMap(t, d, "3>5")
		_, err := d.Edit(nil, emulator.Edit{Add: []ocs.CrossConnect{pair(1, 5)}})
		if busy == emulator.Deny != errors.Is(err, ocs.ErrConflict) {
			t.Errorf("%s: got %v", busy, err)
		}
	}
}

// Ensure that every edit leaves the map that its parts say, and tells of exactly
// the difference.
func TestDevice_EditModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d, err := emulator.New(exact("4x4"), emulator.Options{})
		if err != nil {
			t.Fatal(err)
		}
		s := d.Subscribe()
		defer s.Close()
		me := d.Enter(emulator.SessionInfo{Protocol: "TEST", User: "admin"}, func() {})
		port := rapid.Custom(func(t *rapid.T) ocs.Port { return ocs.Port(rapid.IntRange(1, 8).Draw(t, "port")) })
		for range rapid.IntRange(1, 8).Draw(t, "edits") {
			e := emulator.Edit{Only: rapid.Bool().Draw(t, "only"), Drop: rapid.SliceOfN(port, 0, 3).Draw(t, "drop")}
			in := rapid.Permutation([]ocs.Port{1, 2, 3, 4}).Draw(t, "in")
			out := rapid.Permutation([]ocs.Port{5, 6, 7, 8}).Draw(t, "out")
			for i := range rapid.IntRange(0, 3).Draw(t, "add") {
				e.Add = append(e.Add, pair(in[i], out[i]))
			}
			before := d.CrossConnects()
			want := map[ocs.Port]ocs.Port{}
			for c := range before.All() {
				if !e.Only && !slices.Contains(e.Drop, c.Ingress) && !slices.Contains(e.Drop, c.Egress) {
					want[c.Ingress] = c.Egress
				}
			}
			for _, c := range e.Add {
				for in, out := range want {
					if out == c.Egress {
						delete(want, in)
					}
				}
				want[c.Ingress] = c.Egress
			}
			if _, err := d.Edit(me, e); err != nil {
				t.Fatal(err)
			}
			after := d.CrossConnects()
			if after.Len() != len(want) {
				t.Fatalf("%+v on %v gives %v, want %v", e, before, after, want)
			}
			for in, out := range want {
				if !after.Has(pair(in, out)) {
					t.Fatalf("%+v on %v gives %v, want %v", e, before, after, want)
				}
			}
			change := ocs.Diff(before, after)
			select {
			case got := <-s.C:
				if got.Kind != emulator.CircuitEvent || got.Change.String() != change.String() || got.By.User != "admin" {
					t.Fatalf("told %+v, want %v", got, change)
				}
			default:
				if !change.Empty() {
					t.Fatalf("%v was not told", change)
				}
			}
		}
	})
}

// Ensure that the attenuators do what their modes say, and remember it.
func TestDevice_VOA(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := exact("4x4")
		p.Optics = emulator.Optics{Loss: 2, LossMax: 2, VOAMax: 20}
		mem := &memory{}
		d := newDevice(t, p, emulator.Options{Memory: mem, Light: map[ocs.Port]ocs.DBm{1: 0, 2: -5}})
		connect(t, d, "1>5")
		set := func(v emulator.VOA) {
			t.Helper()
			if _, err := d.Edit(nil, emulator.Edit{VOAs: map[ocs.Port]emulator.VOA{5: v}}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		wants := func(power ocs.DBm, attenuation ocs.DB) {
			t.Helper()
			if got := d.Power(5); got.Sub(power) > 0.01 || got.Sub(power) < -0.01 {
				t.Errorf("%+v: %v leaves, want %v", d.VOA(5), got, power)
			}
			if got := d.Attenuation(5); got-attenuation > 0.01 || got-attenuation < -0.01 {
				t.Errorf("%+v attenuates %v, want %v", d.VOA(5), got, attenuation)
			}
		}
		time.Sleep(time.Second)
		wants(-2, 0)
		set(emulator.VOA{Mode: emulator.VOAAbsolute, Level: -10})
		wants(-10, 8)
		set(emulator.VOA{Mode: emulator.VOAFixed})
		wants(-10, 8)
		set(emulator.VOA{Mode: emulator.VOARelative, Level: -5})
		wants(-5, 3)
		set(emulator.VOA{Mode: emulator.VOARelative, Level: -5, Reference: 2})
		wants(-10, 8)
		set(emulator.VOA{Mode: emulator.VOAMaximum})
		wants(-22, 20)
		set(emulator.VOA{Mode: emulator.VOAAbsolute, Level: 10}) // an attenuator does not amplify
		wants(-2, 0)
		set(emulator.VOA{Mode: emulator.VOAConverged, Level: -7})
		wants(-7, 5)
		d.SetInput(1, -3) // and stays there
		time.Sleep(time.Second)
		wants(-10, 5)
		d.SetInput(1, 0)

		again := newDevice(t, p, emulator.Options{Memory: mem, Light: map[ocs.Port]ocs.DBm{1: 0}})
		if again.VOA(5) != (emulator.VOA{Mode: emulator.VOAConverged, Level: -7}) || again.Power(5) > -6.9 || again.Power(5) < -7.1 {
			t.Errorf("remembers %+v, %v", again.VOA(5), again.Power(5))
		}
		set(emulator.VOA{})
		wants(-2, 0)
		if d.HasVOA(1) || d.Attenuation(6) != 0 || d.VOA(6).Mode != emulator.VOANone {
			t.Error("an attenuator where there is none")
		}
	})
}

// Ensure that sessions are listed, named and ended.
func TestDevice_Sessions(t *testing.T) {
	d := newDevice(t, exact("4x4"), emulator.Options{})
	ended := 0
	a := d.Enter(emulator.SessionInfo{Protocol: "TL1", Port: 3082, Client: "192.0.2.1"}, func() { ended++ })
	b := d.Enter(emulator.SessionInfo{Protocol: "SCPI"}, func() {})
	a.SetUser("admin")
	list := d.Sessions()
	if len(list) != 2 || list[0] != a.Info() || list[0].User != "admin" || list[0].ID != 1 || list[1].ID != 2 || list[1].Protocol != "SCPI" {
		t.Errorf("got %+v", list)
	}
	if !d.EndSession(1) || ended != 1 || d.EndSession(7) {
		t.Error("not ended as asked")
	}
	a.Leave()
	a.Leave()
	if list := d.Sessions(); len(list) != 1 || list[0] != b.Info() {
		t.Errorf("got %+v", list)
	}
	s := d.Subscribe()
	defer s.Close()
	d.Report(b, "USER", "did something")
	d.Report(nil, "SYSTEM", "did something else")
	if e := <-s.C; e.Kind != emulator.ActivityEvent || e.By != b.Info() || e.Condition != "USER" {
		t.Errorf("got %+v", e)
	}
	if e := <-s.C; e.By != (emulator.SessionInfo{}) || e.Text != "did something else" {
		t.Errorf("got %+v", e)
	}
}

// frontEnd answers every client with who it is.
type frontEnd struct{}

func (frontEnd) ServeSession(ctx context.Context, c io.ReadWriteCloser, client emulator.SessionInfo) {
	defer c.Close()
	fmt.Fprintf(c, "%s %v\n", client.Client, client.Port > 0)
	<-ctx.Done()
}

// Ensure that Serve ends every session with its context, and survives a passing
// failure to accept.
func TestServe(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- emulator.Serve(ctx, &flaky{Listener: l}, frontEnd{}) }()
	var clients sync.WaitGroup
	for range 3 {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 64)
		n, err := c.Read(buf)
		if got := string(buf[:n]); got != "127.0.0.1 true\n" || err != nil {
			t.Errorf("got %q, %v", got, err)
		}
		clients.Go(func() { // sees the end
			_, _ = io.Copy(io.Discard, c)
			c.Close()
		})
	}
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
	clients.Wait()

	broken := errors.New("broken")
	if err := emulator.Serve(t.Context(), &flaky{Listener: l, fatal: broken}, frontEnd{}); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

// flaky fails first.
type flaky struct {
	net.Listener
	calls int
	fatal error
}

type temporary struct{ error }

func (temporary) Temporary() bool { return true }

func (f *flaky) Accept() (net.Conn, error) {
	if f.calls++; f.calls <= 2 {
		return nil, temporary{errors.New("out of descriptors")}
	}
	if f.fatal != nil {
		return nil, f.fatal
	}
	return f.Listener.Accept()
}

func TestParseFault(t *testing.T) {
	for text, want := range map[string]emulator.Fault{
		"lose:OXC.SWIT.CONN.ADD": {Kind: emulator.FaultLose, Verb: "OXC.SWIT.CONN.ADD"},
		"shred:edit-config:2:1":  {Kind: emulator.FaultShred, Verb: "EDIT-CONFIG", Times: 2, After: 1},
	} {
		if got, err := emulator.ParseFault(text); got != want || err != nil {
			t.Errorf("%s: got %+v, %v", text, got, err)
		}
	}
	var fs emulator.Faults
	fs.Add(emulator.Fault{Kind: emulator.FaultHang, Verb: "GET", Times: 1, After: 1})
	fs.Add(emulator.Fault{Kind: emulator.FaultDeny, Verb: "*"})
	var got []string
	for _, verb := range []string{"get", "lock", "Get", "GET"} {
		got = append(got, string(fs.Next(verb).Kind))
	}
	if want := []string{"deny", "deny", "hang", "deny"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func setBoot(t *testing.T, d *emulator.Device, m ocs.BootMode) {
	t.Helper()
	if _, err := d.Edit(nil, emulator.Edit{Boot: m}); err != nil {
		t.Fatal(err)
	}
}

// Ensure that who has no account any more is disconnected, over whatever
// language the account was deleted, and who did that is not.
func TestDevice_Evicts(t *testing.T) {
	p := exact("4x4")
	p.Control.Users = append(p.Control.Users, emulator.User{Name: "lab", Group: emulator.Operator})
	d := newDevice(t, p, emulator.Options{})
	ended := make(chan string, 4)
	enter := func(user string) *emulator.Session {
		return d.Enter(emulator.SessionInfo{Protocol: "TEST", User: user}, func() { ended <- user })
	}
	admin, me := enter("admin"), enter("lab")
	enter("")
	enter("lab")
	if err := d.EditUser(admin, "lab", emulator.User{Group: emulator.Viewer}); err != nil {
		t.Fatal(err)
	}
	if err := d.DeleteUser(me, "lab"); err != nil {
		t.Fatal(err)
	}
	if who := <-ended; who != "lab" {
		t.Errorf("%q was disconnected", who)
	}
	select {
	case who := <-ended:
		t.Errorf("%q was disconnected, too", who)
	default:
	}
}
