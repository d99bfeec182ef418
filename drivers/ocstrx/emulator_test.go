package ocstrx_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/drivers/conformance"
	"github.com/ocslab/ocslab/drivers/internal/drivertest"
	"github.com/ocslab/ocslab/drivers/ocstrx"
	"github.com/ocslab/ocslab/drivers/transport"
	"github.com/ocslab/ocslab/emulator"
	emulated "github.com/ocslab/ocslab/emulator/ocstrx"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/wire/cmis/ocst"
	"github.com/ocslab/ocslab/wire/trxlink"
)

var update = flag.Bool("update", false, "write the golden files of this package")

// rig is an emulated board and how it is reached: over pipes, each a session.
type rig struct {
	*emulated.Board
	tb    testing.TB
	clock *emulated.VirtualClock // nil: the real one
	step  time.Duration          // by which each write of a host moves clock
	wg    sync.WaitGroup
}

// newRig makes a board; step 0 is real time.
func newRig(tb testing.TB, model string, modules int, step time.Duration) *rig {
	tb.Helper()
	p, err := emulated.LoadPersonality(model)
	if err != nil {
		tb.Fatal(err)
	}
	if modules > 0 {
		p.Modules = modules
	}
	r := &rig{tb: tb, step: step}
	opt := emulated.Options{Name: "trx0", Seed: 5}
	if step > 0 {
		r.clock = new(emulated.VirtualClock)
		opt.Clock = r.clock
	}
	if r.Board, err = emulated.NewBoard(p, opt); err != nil {
		tb.Fatal(err)
	}
	if step > 0 {
		r.clock.Advance(20 * time.Millisecond) // until the modules are ready
	}
	tb.Cleanup(r.wg.Wait)
	return r
}

func (r *rig) String() string { return "pipe" }

// Dial opens a session.
func (r *rig) Dial(context.Context) (transport.Conn, error) {
	near, far := net.Pipe()
	r.wg.Go(func() { r.ServeSession(context.Background(), far, emulator.SessionInfo{}) })
	return &pipeEnd{near, r}, nil
}

type pipeEnd struct {
	net.Conn
	rig *rig
}

// Write moves the clock, so that what the board does with a piece is done at a time that
// does not depend on the machine.
func (p *pipeEnd) Write(b []byte) (int, error) {
	if p.rig.clock != nil {
		p.rig.clock.Advance(p.rig.step)
	}
	return p.Conn.Write(b)
}

// open opens a Switch on a link of its own.
func (r *rig) open(ctx context.Context, trace func(bool, []byte)) (*ocstrx.Switch, error) {
	l, err := ocstrx.OpenLink(ctx, ocstrx.LinkConfig{Dialer: r, Device: "trx0", Trace: trace})
	if err != nil {
		return nil, err
	}
	return ocstrx.Open(ctx, ocstrx.Config{Bus: l, Device: "trx0"})
}

func (r *rig) mustOpen(trace func(bool, []byte)) *ocstrx.Switch {
	r.tb.Helper()
	sw, err := r.open(context.Background(), trace)
	if err != nil {
		r.tb.Fatal(err)
	}
	r.tb.Cleanup(func() { sw.Close() })
	return sw
}

const (
	single = "ocstrx-8x112g"
	eight  = "ocstrx-8x112g-x8"
)

// TestConformance runs the suite of all drivers on one module and on a bundle of eight.
func TestConformance(t *testing.T) {
	t.Parallel()
	for _, model := range []string{single, eight} {
		t.Run(model, func(t *testing.T) {
			t.Parallel()
			rig := newRig(t, model, 0, 0)
			r, err := conformance.Run(t.Context(), conformance.Config{
				Open:     func(ctx context.Context) (ocs.Switch, error) { return rig.open(ctx, nil) },
				AllPorts: true, Settle: time.Second,
			})
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range r.Checks {
				switch c.Result {
				case conformance.Fail:
					t.Errorf("%s: %s", c.Name, c.Reason)
				case conformance.Pass:
				default:
					t.Logf("%s: %s: %s", c.Name, c.Result, c.Reason)
				}
			}
			for _, q := range r.Quirks {
				t.Logf("%s: %s (%s)", q.Name, q.Value, q.Evidence)
			}
		})
	}
}

// laneMaps are maps that a bundle can hold.
func laneMaps(modules int) *rapid.Generator[ocs.Map] {
	n := ocs.Port(modules * ocst.Lanes)
	return rapid.Custom(func(t *rapid.T) ocs.Map {
		var ccs []ocs.CrossConnect
		for slot := range modules {
			base := ocs.Port(slot * ocst.Lanes)
			path := rapid.SliceOfN(rapid.IntRange(0, 3), ocst.Lanes, ocst.Lanes).Draw(t, "paths")
			loop := rapid.Permutation([]int{0, 1, 2, 3, 4, 5, 6, 7}).Draw(t, "loop")
			for lane, p := range path {
				in := base + ocs.Port(lane) + 1
				switch p {
				case 1, 2:
					ccs = append(ccs, ocs.CrossConnect{Ingress: in, Egress: ocs.Port(p)*n + in})
				case 3: // unless the receiver listens to its fibre
					if to := path[loop[lane]]; to == 0 || to == 3 {
						ccs = append(ccs, ocs.CrossConnect{Ingress: in, Egress: 3*n + base + ocs.Port(loop[lane]) + 1})
					}
				}
			}
		}
		return ocs.MustMap(ccs...)
	})
}

// TestProperty: after Apply of Diff(a, b) the modules hold b, and the light is where b says
// and nowhere else.
func TestProperty(t *testing.T) {
	t.Parallel()
	const modules = 2
	rig := newRig(t, eight, modules, time.Millisecond)
	sw := rig.mustOpen(nil)
	ctx := t.Context()
	have := ocs.Map{}
	rapid.Check(t, func(rt *rapid.T) {
		want := laneMaps(modules).Draw(rt, "map")
		change := ocs.Diff(have, want)
		r, err := sw.Apply(ctx, change)
		if err != nil {
			rt.Fatal(err)
		}
		for _, p := range r.Parts {
			if p.Took <= 0 || p.Took > time.Millisecond {
				rt.Fatalf("%s took %v", p.Name, p.Took)
			}
		}
		if have, err = sw.CrossConnects(ctx); err != nil || !have.Equal(want) {
			rt.Fatalf("%v: holds %v, %v, want %v", change, have, err, want)
		}
		power, err := sw.Power(ctx)
		if err != nil {
			rt.Fatal(err)
		}
		for p, x := range power.Ports {
			_, sends := want.EgressOf(p)
			_, gets := want.IngressOf(p)
			if lit := sends || gets; lit != (x > -10) {
				rt.Fatalf("%v: port %d reads %v", want, p, x)
			}
		}
	})
}

// TestPlan: on modules without physics, any change, also a wrong one, comes to what the
// maps and the geometry say, and a refused one changes nothing.
func TestPlan(t *testing.T) {
	t.Parallel()
	const modules = 2
	rapid.Check(t, func(rt *rapid.T) {
		b := newFake(modules)
		sw := openFake(t, b)
		have := laneMaps(modules).Draw(rt, "holds")
		if _, err := sw.Apply(t.Context(), ocs.Change{Add: have}); err != nil {
			rt.Fatal(err)
		}
		next := laneMaps(modules).Draw(rt, "wanted")
		some := func(m ocs.Map, what string) ocs.Map {
			return m.Minus(ocs.MustMap(slices.DeleteFunc(m.Slice(), func(ocs.CrossConnect) bool { return rapid.Float64Range(0, 1).Draw(rt, what) < 0.8 })...))
		}
		c := ocs.Change{Remove: some(have, "keep"), Add: some(next, "leave out")}
		if rapid.IntRange(0, 9).Draw(rt, "foreign") == 0 {
			c.Remove = some(next, "not there")
		}
		want, refusal := outcome(ocs.Transceivers(modules, ocst.Lanes), have, c)
		b.requests()
		_, err := sw.Apply(t.Context(), c)
		if !drivertest.Is(err, refusal) {
			rt.Fatalf("%v on %v: got %v, want %v", c, have, err, refusal)
		}
		if w := b.writes(); refusal != nil && len(w) > 0 {
			rt.Fatalf("%v on %v was refused after %q", c, have, w)
		}
		if m, err := sw.CrossConnects(t.Context()); err != nil || !m.Equal(want) {
			rt.Fatalf("%v on %v: holds %v, %v, want %v", c, have, m, err, want)
		}
	})
}

// outcome is what a change should come to, found out without modules and lanes.
func outcome(g ocs.Geometry, have ocs.Map, c ocs.Change) (ocs.Map, error) {
	if c.Remove.Minus(have).Len() > 0 {
		return have, ocs.ErrNotConnected
	}
	rest := have.Minus(c.Remove)
	after, err := rest.Plus(c.Add)
	if err != nil {
		return have, ocs.ErrConflict
	}
	for a := range c.Add.All() {
		for o := range after.All() {
			if g.Excludes(a, o) {
				return have, ocs.ErrConflict
			}
		}
	}
	return after, nil
}

// TestTranscript is what passes between host and board when a bundle of eight goes from
// fibre 1 to fibre 2: armed one by one, triggered at once. Left out is what modules reply to
// reads: how long they took is the emulator's business.
func TestTranscript(t *testing.T) {
	t.Parallel()
	rig := newRig(t, eight, 0, time.Millisecond)
	// Sequence numbers begin anywhere, and replies come in pieces of any size.
	var mu sync.Mutex
	var lines []string
	on := false
	var decoders [2]trxlink.Decoder
	sw := rig.mustOpen(func(sent bool, p []byte) {
		mu.Lock()
		defer mu.Unlock()
		d, arrow := &decoders[0], "<"
		if sent {
			d, arrow = &decoders[1], ">"
		}
		d.Feed(p)
		for f, ok := d.Next(); ok; f, ok = d.Next() {
			if on && f.Kind != trxlink.Read|trxlink.Reply {
				_, text, _ := strings.Cut(f.String(), " ")
				lines = append(lines, arrow+" "+strings.TrimSpace(text))
			}
		}
	})
	maps := fibres(64)
	if _, err := sw.Apply(t.Context(), ocs.Change{Add: maps[0]}); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	on = true
	mu.Unlock()
	r, err := sw.Apply(t.Context(), ocs.Diff(maps[0], maps[1]))
	if err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	var b strings.Builder
	// What is asked, in order; then what came back, in order: how they interleave is the
	// machine's business.
	for _, arrow := range []string{">", "<"} {
		for _, l := range lines {
			if strings.HasPrefix(l, arrow) {
				fmt.Fprintln(&b, l)
			}
		}
	}
	t.Log(r.Parts)
	golden(t, "bundle.txt", []byte(b.String()))
	if len(r.Parts) != 8 || r.Requests != 9 {
		t.Errorf("%d requests, parts %v", r.Requests, r.Parts)
	}
}

// fibres are the maps of all lanes on fibre 1, and of all on fibre 2.
func fibres(lanes ocs.Port) (maps [2]ocs.Map) {
	for k := range maps {
		var ccs []ocs.CrossConnect
		for i := range lanes {
			ccs = append(ccs, ocs.CrossConnect{Ingress: i + 1, Egress: lanes*ocs.Port(k+1) + i + 1})
		}
		maps[k] = ocs.MustMap(ccs...)
	}
	return maps
}

// golden compares with a file of testdata, or writes it.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("differs from %s (%v); got\n%s", path, err, got)
	}
}

// TestDeviceFaults: what breaks in a module of a bundle is named with its place, the module
// goes dark, the others switch, and a restart after repair brings it back.
func TestDeviceFaults(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ fault, text string }{
		{"heater-open:1", "module 2 failed to switch: heater open at S1 of lane 1; it is dark"},
		{"heater-short:1", "module 2 failed to switch: heater short at S1 of lane 1; it is dark"},
		{"laser-low", "module 2 failed to switch: laser low at lane 1; it is dark"},
	} {
		t.Run(c.fault, func(t *testing.T) {
			t.Parallel()
			rig := newRig(t, eight, 3, time.Millisecond)
			sw := rig.mustOpen(nil)
			f, err := emulated.ParseDeviceFault(c.fault)
			if err != nil {
				t.Fatal(err)
			}
			rig.Modules()[1].Inject(f)
			r, err := sw.Apply(t.Context(), change(t, "+1>25 +9>33 +17>41"))
			if err == nil || !strings.Contains(err.Error(), c.text) || !strings.Contains(err.Error(), "modules 1 and 3 switched") || len(r.Parts) != 2 {
				t.Errorf("got %v, parts %v, want %q", err, r.Parts, c.text)
			}
			drivertest.Holds(t, sw, "1>25,17>41")
			if p, err := sw.Power(t.Context(), 9, 33, 57, 81); err != nil || slices.ContainsFunc([]ocs.Port{9, 33, 57, 81}, func(q ocs.Port) bool { return p.Ports[q] > ocs.NoLight }) {
				t.Errorf("the module in fault is lit: %v, %v", p.Ports, err)
			}
			logs, err := sw.Log(t.Context())
			if err != nil || len(logs) != 3 || len(logs[1]) == 0 || logs[1][0].Result == ocst.NoFault || len(logs[0]) != 1 || logs[0][0].Duration != r.Parts[0].Took {
				t.Errorf("logs %v, %v", logs, err)
			}
		})
	}
}

// around is a Bus with something that happens before or after its requests.
type around struct {
	ocstrx.Bus
	before, after func(ocstrx.Op)
}

func (a *around) Do(ctx context.Context, requests ...ocstrx.Request) (ocs.Receipt, error) {
	if a.before != nil {
		a.before(requests[0].Op)
	}
	r, err := a.Bus.Do(ctx, requests...)
	if a.after != nil {
		a.after(requests[0].Op)
	}
	return r, err
}

// TestBrownOut: the supply of one module of a bundle breaks down when it is armed, or while
// it switches. In the first case nothing switches, in the second the others do.
func TestBrownOut(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, text, after string
		mid               bool
	}{
		{"armed", "module 2 is not armed, so none was triggered", "", false},
		{"in mid-switch", "module 2 failed to switch: brown-out; it is dark (reset); modules 1 and 3 switched", "1>25,17>41", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			rig := newRig(t, eight, 3, 100*time.Microsecond)
			l, err := ocstrx.OpenLink(t.Context(), ocstrx.LinkConfig{Dialer: rig})
			if err != nil {
				t.Fatal(err)
			}
			bus := &around{Bus: l}
			sw, err := ocstrx.Open(t.Context(), ocstrx.Config{Bus: bus, Device: "trx0"})
			if err != nil {
				t.Fatal(err)
			}
			defer sw.Close()
			out := func(op ocstrx.Op) {
				if op == ocstrx.OpTrigger {
					rig.Modules()[1].BrownOut()
				}
			}
			if c.mid {
				bus.after = out
			} else {
				bus.before = out
			}
			if _, err = sw.Apply(t.Context(), change(t, "+1>25 +9>33 +17>41")); err == nil || !strings.Contains(err.Error(), c.text) {
				t.Errorf("got %v, want %q", err, c.text)
			}
			bus.before, bus.after = nil, nil
			drivertest.Holds(t, sw, c.after)
			for i, m := range rig.Modules() {
				if m.Armed() {
					t.Errorf("module %d is left armed", i+1)
				}
			}
			// It starts by itself, and then all is as before.
			rig.clock.Advance(20 * time.Millisecond)
			if _, err := ocs.Reconcile(t.Context(), sw, drivertest.Map(t, "1>25,9>33,17>41"), ocs.Overwrite); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestNoise: over a bad line changes take longer. Those that are acknowledged have been
// done, each once.
func TestNoise(t *testing.T) {
	t.Parallel()
	rig := newRig(t, eight, 2, 0)
	l, err := ocstrx.OpenLink(t.Context(), ocstrx.LinkConfig{Dialer: rig, Timeout: 25 * time.Millisecond, Retries: 10})
	if err != nil {
		t.Fatal(err)
	}
	sw, err := ocstrx.Open(t.Context(), ocstrx.Config{Bus: l})
	if err != nil {
		t.Fatal(err)
	}
	defer sw.Close()
	rig.Noise(emulated.Noise{Flip: 0.0005, Drop: 0.0005, Seed: 3})
	gen := laneMaps(2)
	have, switches := ocs.Map{}, map[string]uint32{}
	for seed := range 30 {
		want := gen.Example(seed)
		r, err := sw.Apply(t.Context(), ocs.Diff(have, want))
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range r.Parts {
			switches[p.Name]++
		}
		if have, err = sw.CrossConnects(t.Context()); err != nil || !have.Equal(want) {
			t.Fatalf("holds %v, %v, want %v", have, err, want)
		}
	}
	all, err := sw.Telemetry(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range all {
		if m.Sequence != switches[m.Name] || m.Switches != m.Sequence {
			t.Errorf("%s has switched %d times for %d changes", m.Name, m.Sequence, switches[m.Name])
		}
	}
}
