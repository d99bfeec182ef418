package conformance_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/ocslab/ocslab/drivers"
	"github.com/ocslab/ocslab/drivers/conformance"
	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/internal/secret"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/timeline"
	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "write the golden files")

// TestMain fails when goroutines are left. Runs of the suite mostly wait, so
// more of them go side by side than there are processors, and fewer random ones
// are made than rapid would; the command line has the last word.
func TestMain(m *testing.M) {
	for name, value := range map[string]string{"test.parallel": "6", "rapid.checks": "40"} {
		if err := flag.Set(name, value); err != nil {
			panic(err)
		}
	}
	flag.Parse()
	before := runtime.NumGoroutine()
	code := m.Run()
	deadline := time.Now().Add(5 * time.Second)
	for runtime.NumGoroutine() > before && time.Now().Before(deadline) {
		time.Sleep(10 * time.Millisecond)
	}
	if n := runtime.NumGoroutine(); n > before && code == 0 {
		fmt.Fprintf(os.Stderr, "%d goroutines are left\n", n-before)
		_ = pprof.Lookup("goroutine").WriteTo(os.Stderr, 1)
		code = 1
	}
	os.Exit(code)
}

// tester is what *testing.T and *rapid.T share.
type tester interface {
	Helper()
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
	Logf(format string, args ...any)
}

// quick returns a personality that switches in next to no time.
func quick(t tester, model string) emulator.Personality {
	t.Helper()
	p, err := emulator.LoadPersonality(model)
	if err != nil {
		t.Fatalf("%v", err)
	}
	p.Switching.Single, p.Switching.Bulk = time.Millisecond, time.Millisecond
	p.Switching.Jitter, p.Switching.Rise = 0, 50*time.Microsecond
	p.Monitors.Default = 1 // 10 ms
	return p
}

// bed is an emulated device with circuits of others on it.
type bed struct {
	*lab.Emulated
	foreign ocs.Map
	before  state
	since   int           // where the truth log stood when the suite began
	timeout time.Duration // for one reply
}

// state is all that the suite has to leave as it was.
type state struct {
	Map      string
	Labels   map[ocs.Port]string
	Closed   map[ocs.Port]bool
	Monitors map[ocs.Port]string
	Boot     ocs.BootMode
}

func stateOf(d *emulator.Device) state {
	s := state{d.CrossConnects().String(), map[ocs.Port]string{}, map[ocs.Port]bool{}, map[ocs.Port]string{}, d.BootMode()}
	for _, p := range d.Geometry().Ports() {
		s.Labels[p], s.Closed[p] = d.Label(p), d.ShutterClosed(p)
		s.Monitors[p] = fmt.Sprint(d.Monitor(emulator.Forward, p))
	}
	return s
}

func start(t tester, e lab.Emulation, foreign ocs.Map, prepare func(*emulator.Device)) *bed {
	t.Helper()
	em, err := e.Start()
	if err != nil {
		t.Fatalf("%v", err)
	}
	b := &bed{Emulated: em, foreign: foreign, timeout: 5 * time.Second}
	op, err := em.Device.Connect(foreign.Slice())
	if err != nil {
		t.Fatalf("%v", err)
	}
	if prepare != nil {
		prepare(em.Device)
	}
	time.Sleep(time.Until(op.Settled))
	b.before = stateOf(em.Device)
	_, b.since = em.Device.Truth(0)
	return b
}

func (b *bed) open(ctx context.Context) (ocs.Switch, error) {
	return drivers.Open(ctx, b.URL(), drivers.Options{Name: "dut", Password: secret.New("root"), Timeout: b.timeout})
}

func (b *bed) config() conformance.Config {
	return conformance.Config{Open: b.open, Name: "dut"}
}

// unharmed fails the test when anything is not as it was, or when light of
// others was ever dark.
func (b *bed) unharmed(t tester) {
	t.Helper()
	if diff := cmp.Diff(b.before, stateOf(b.Device)); diff != "" {
		t.Errorf("not left as it was found (-before +after):\n%s", diff)
	}
	b.neverDark(t)
}

func (b *bed) neverDark(t tester) {
	t.Helper()
	marks, _ := b.Device.Truth(b.since)
	for c := range b.foreign.All() {
		for _, m := range marks {
			if m.Stage == timeline.Dark && m.Subject == fmt.Sprintf("%s/%d", b.Device.Name(), c.Egress) {
				t.Errorf("%v, which is not of the suite, went dark: %v", c, m)
			}
		}
	}
}

func run(t *testing.T, cfg conformance.Config) conformance.Report {
	t.Helper()
	r, err := conformance.Run(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			var text strings.Builder
			_ = r.WriteText(&text)
			t.Log(text.String())
		}
	})
	return r
}

// names returns the checks with a result.
func names(r conformance.Report, result conformance.Result) []string {
	var ns []string
	for _, c := range r.Checks {
		if c.Result == result {
			ns = append(ns, c.Name)
		}
	}
	return ns
}

func quirk(r conformance.Report, name string) string {
	for _, q := range r.Quirks {
		if q.Name == name {
			return q.Value
		}
	}
	return ""
}

func fails(t *testing.T, r conformance.Report, want ...string) {
	t.Helper()
	if got := names(r, conformance.Fail); !slices.Equal(got, want) {
		t.Errorf("failed=%q, want %q", got, want)
	}
}

func skips(t *testing.T, r conformance.Report, want ...string) {
	t.Helper()
	if got := names(r, conformance.Skip); !slices.Equal(got, want) {
		t.Errorf("skipped=%q, want %q", got, want)
	}
}

// lacks wants these checks not supported.
func lacks(t *testing.T, r conformance.Report, want ...string) {
	t.Helper()
	if got := names(r, conformance.Unsupported); !slices.Equal(got, want) {
		t.Errorf("unsupported=%q, want %q", got, want)
	}
}

// notMatrix are the checks that are not supported by a matrix, in which any
// ingress reaches any egress; notAttenuated those of a device without attenuators.
var (
	notMatrix     = []string{"every-egress", "unreachable", "exclusive"}
	notAttenuated = append(slices.Clone(notMatrix), "attenuator")
)

// onlyAllPorts are the checks that are skipped unless everything may be
// darkened.
var onlyAllPorts = []string{"busy-overwrite", "bulk-all-ports", "restart-restore", "restart-dark"}

// someForeign is two circuits at the low ports, and one at each high end.
func someForeign(g ocs.Geometry) ocs.Map {
	in, out := g.IngressPorts(), g.EgressPorts()
	if g.SingleSided {
		return ocs.MustMap(ocs.CrossConnect{Ingress: 1, Egress: 2}, ocs.CrossConnect{Ingress: in[len(in)-1], Egress: 5})
	}
	return ocs.MustMap(ocs.CrossConnect{Ingress: in[0], Egress: out[1]}, ocs.CrossConnect{Ingress: in[1], Egress: out[0]},
		ocs.CrossConnect{Ingress: in[len(in)-1], Egress: out[2]}, ocs.CrossConnect{Ingress: in[2], Egress: out[len(out)-1]})
}

// Ensure that every shipped personality passes, however it treats busy ports
// and whenever it acknowledges, with and without the right to darken all.
func TestPersonalities(t *testing.T) {
	t.Parallel()
	for _, model := range emulator.Models() {
		if quick(t, model).TL1.Dialect != "" { // they refuse busy ports whatever is said here; see TestMatrix
			continue
		}
		for _, busy := range []emulator.BusyMode{emulator.Takeover, emulator.Deny} {
			for _, ack := range []emulator.AckMode{emulator.AckBefore, emulator.AckAfter} {
				all := ack == emulator.AckAfter
				t.Run(fmt.Sprintf("%s/%s/ack-%s/all=%v", model, busy, ack, all), func(t *testing.T) {
					t.Parallel()
					p := quick(t, model)
					p.Control.Busy, p.Switching.Ack = busy, ack
					g, err := ocs.ParseGeometry(p.Size)
					if err != nil {
						t.Fatal(err)
					}
					b := start(t, lab.Emulation{Personality: p}, someForeign(g), func(d *emulator.Device) {
						d.SetShutters(true, 3)
						d.SetLabel(3, "of others")
						d.SetLabel(g.Ports()[len(g.Ports())-2], `"kept"`)
					})
					defer b.Close()
					cfg := b.config()
					cfg.AllPorts = all
					r := run(t, cfg)
					fails(t, r)
					var skipped, lacking []string
					for _, c := range r.Checks {
						switch {
						case !all && slices.Contains(onlyAllPorts, c.Name):
							skipped = append(skipped, c.Name)
						case c.Capability == "power-meter" && p.Monitors.Sides == emulator.MonitorsNone,
							c.Name == "power-loss" && p.Monitors.Sides == emulator.MonitorsEgress,
							c.Name == "power-dark" && g.SingleSided,
							c.Name == "attenuator" && p.Optics.VOAMax == 0,
							c.Name == "exclusive" && !g.SingleSided,
							c.Name == "every-egress", c.Name == "unreachable":
							lacking = append(lacking, c.Name)
						}
					}
					skips(t, r, skipped...)
					lacks(t, r, lacking...)
					if !r.Restored || r.Cancelled || len(r.Others) > 0 {
						t.Errorf("restored=%v cancelled=%v others=%v", r.Restored, r.Cancelled, r.Others)
					}
					if got, want := quirk(r, "busy port"), string(busy); got != want {
						t.Errorf("busy port=%q, want %q", got, want)
					}
					if got := quirk(r, "bulk is all or nothing"); got != "yes" {
						t.Errorf("bulk is all or nothing=%q, want yes", got)
					}
					if got := quirk(r, "label length"); got != "128" {
						t.Errorf("label length=%q, want 128", got)
					}
					if all { // the map is back, the light was gone meanwhile
						if diff := cmp.Diff(b.before, stateOf(b.Device)); diff != "" {
							t.Errorf("not left as it was found (-before +after):\n%s", diff)
						}
						return
					}
					b.unharmed(t)
				})
			}
		}
	}
}

// Ensure that the suite tells whether an acknowledgement waits for the light.
func TestAckLight(t *testing.T) {
	t.Parallel()
	for ack, tc := range map[emulator.AckMode]struct {
		switching time.Duration // long where it must not be missed
		want      string
	}{
		emulator.AckBefore: {150 * time.Millisecond, "before the light"},
		emulator.AckAfter:  {20 * time.Millisecond, "after the light"},
	} {
		t.Run(string(ack), func(t *testing.T) {
			t.Parallel()
			p := quick(t, "polatis-6000-32x32")
			p.Switching.Single, p.Switching.Bulk, p.Switching.Ack = tc.switching, tc.switching, ack
			b := start(t, lab.Emulation{Personality: p}, ocs.Map{}, nil)
			defer b.Close()
			cfg := b.config()
			cfg.MaxPorts = 2
			r := run(t, cfg)
			if got := quirk(r, "acknowledges"); got != tc.want {
				t.Errorf("acknowledges=%q, want %q", got, tc.want)
			}
			fails(t, r)
			b.unharmed(t)
		})
	}
}

// full returns circuits on all but the last n pairs of a 32 x 32 switch.
func full(n int) ocs.Map {
	var ccs []ocs.CrossConnect
	for i := range 32 - n {
		ccs = append(ccs, ocs.CrossConnect{Ingress: ocs.Port(1 + i), Egress: ocs.Port(33 + (i+7)%(32-n))})
	}
	return ocs.MustMap(ccs...)
}

// Ensure that the suite does what can be done on a device that offers little,
// and says what cannot.
func TestScarce(t *testing.T) {
	t.Parallel()
	needTwo := []string{"move-ingress", "move-egress", "swap", "bulk", "bulk-bad-port", "busy-safe", "busy-update", "busy-overwrite", "busy-apply", "ack-time", "bulk-all-ports", "two-clients", "ack-light", "restart-restore", "restart-dark"}
	for name, tc := range map[string]struct {
		foreign ocs.Map
		adapt   func(*emulator.Personality)
		prepare func(*emulator.Device)
		light   map[ocs.Port]ocs.DBm
		ports   string
		skipped []string // nil: those that need more than one pair
		lacking []string // nil: those of attenuators, and what no matrix can do
		reason  string   // in that of a check that was not done
	}{
		"one pair": {foreign: full(1), ports: "32,64", reason: "needs 2 free pairs of ports, 1 can be used: 1 ingress and 1 egress ports were free"},
		"no pair": {foreign: full(0), ports: "", reason: "0 ingress and 0 egress", skipped: []string{
			"free-pairs", "connect", "reconnect", "move-ingress", "move-egress", "swap", "bulk", "bulk-bad-port", "bad-port-reconcile", "bad-port-apply",
			"disconnect-ingress", "disconnect-egress", "disconnect-unconnected", "busy-safe", "busy-update", "busy-overwrite", "busy-apply", "ack-time",
			"bulk-all-ports", "read-back", "second-client-visible", "two-clients", "cancel", "close-reopen", "power-loss", "power-dark",
			"monitor-averaging", "ack-light", "shutter", "label", "label-text", "label-length", "notify", "restart-restore", "restart-dark"}},
		"closed shutters": {foreign: full(3), ports: "30,62", prepare: func(d *emulator.Device) { d.SetShutters(true, 32, 31, 64, 63) }, reason: "1 ingress and 1 egress"},
		"failed ports": {foreign: full(3), ports: "30-32,62-64", adapt: func(p *emulator.Personality) { p.Control.Failed = []uint32{32, 63} },
			skipped: []string{"busy-update", "busy-overwrite", "bulk-all-ports", "restart-restore", "restart-dark"}, reason: "needs 3 free pairs of ports, 2 can"},
		"one pair after refusals": {foreign: full(2), ports: "31,32,63,64", adapt: func(p *emulator.Personality) { p.Control.Failed = []uint32{31, 64} }, reason: "1 can be used"},
		"no monitors": {adapt: func(p *emulator.Personality) { p.Monitors.Sides = emulator.MonitorsNone }, ports: "25-32,57-64",
			skipped: []string{"busy-overwrite", "bulk-all-ports", "restart-restore", "restart-dark"},
			lacking: append(slices.Clone(notMatrix), "power-loss", "power-dark", "monitor-averaging", "ack-light", "attenuator"), reason: "there is no power-meter"},
		"no light": {light: map[ocs.Port]ocs.DBm{1: 0}, ports: "25-32,57-64",
			skipped: []string{"busy-overwrite", "bulk-all-ports", "power-loss", "ack-light", "restart-restore", "restart-dark"}, reason: "no light at the free ports"},
		"one session": {adapt: func(p *emulator.Personality) { p.TL1.MaxSessions = 1 }, ports: "25-32,57-64",
			skipped: []string{"busy-overwrite", "bulk-all-ports", "read-back", "second-client-visible", "two-clients", "notify", "restart-restore", "restart-dark"}, reason: "a second session cannot be opened"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := quick(t, "polatis-6000-32x32")
			if tc.adapt != nil {
				tc.adapt(&p)
			}
			b := start(t, lab.Emulation{Personality: p, Light: tc.light}, tc.foreign, tc.prepare)
			defer b.Close()
			r := run(t, b.config())
			fails(t, r)
			want := tc.skipped
			if want == nil {
				want = needTwo
			}
			skips(t, r, want...)
			if tc.lacking == nil {
				tc.lacking = notAttenuated
			}
			lacks(t, r, tc.lacking...)
			if r.PortsUsed != tc.ports {
				t.Errorf("ports used=%q, want %q", r.PortsUsed, tc.ports)
			}
			if !slices.ContainsFunc(r.Checks, func(c conformance.Check) bool {
				return c.Result != conformance.Pass && strings.Contains(c.Reason, tc.reason)
			}) {
				t.Errorf("every check was done, none left for %q", tc.reason)
			}
			b.unharmed(t)
		})
	}
}

// Ensure that light of others never goes dark and that everything is as it
// was, whatever was on the device and whenever the suite is cancelled.
func TestForeignLight(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := quick(t, rapid.SampledFrom([]string{"polatis-6000-32x32", "single-sided-48xCC"}).Draw(t, "model"))
		p.Size = map[bool]string{true: "12xCC", false: "8x8"}[p.Size == "48xCC"]
		p.Switching.Single, p.Switching.Bulk, p.Switching.Rise = 100*time.Microsecond, 100*time.Microsecond, 10*time.Microsecond
		p.Monitors.Sides = rapid.SampledFrom([]emulator.MonitorSides{emulator.MonitorsNone, emulator.MonitorsNone, emulator.MonitorsNone, emulator.MonitorsBoth}).Draw(t, "monitors")
		p.Control.Busy = rapid.SampledFrom([]emulator.BusyMode{emulator.Takeover, emulator.Deny}).Draw(t, "busy")
		p.Switching.Ack = rapid.SampledFrom([]emulator.AckMode{emulator.AckBefore, emulator.AckAfter}).Draw(t, "ack")
		g, err := ocs.ParseGeometry(p.Size)
		if err != nil {
			t.Fatalf("%v", err)
		}
		in, out := rapid.Permutation(g.IngressPorts()).Draw(t, "ingress"), rapid.Permutation(g.EgressPorts()).Draw(t, "egress")
		if g.SingleSided {
			in, out = in[:6], in[6:]
		}
		var ccs []ocs.CrossConnect
		for i := range rapid.IntRange(0, len(in)).Draw(t, "circuits") {
			ccs = append(ccs, ocs.CrossConnect{Ingress: in[i], Egress: out[i]})
		}
		closed := rapid.SliceOfN(rapid.SampledFrom(g.Ports()), 0, 3).Draw(t, "closed")
		b := start(t, lab.Emulation{Personality: p}, ocs.MustMap(ccs...), func(d *emulator.Device) {
			if err := d.SetShutters(true, closed...); err != nil {
				t.Fatalf("%v", err)
			}
			for _, n := range g.Ports() {
				if err := d.SetLabel(n, "of port "+n.String()); err != nil {
					t.Fatalf("%v", err)
				}
			}
		})
		defer b.Close()

		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		at := rapid.IntRange(0, 60).Draw(t, "cancel at check")
		after := time.Duration(rapid.IntRange(0, 2000).Draw(t, "cancel after µs")) * time.Microsecond
		cfg := b.config()
		cfg.Settle = 2 * time.Second // a tenth of it is spent on each change that was given up
		cfg.MaxPorts = rapid.IntRange(1, 4).Draw(t, "pairs")
		cfg.Progress = func(done, _ int, _ string) {
			if done == at {
				time.AfterFunc(after, cancel)
			}
		}
		r, err := conformance.Run(ctx, cfg)
		if err != nil {
			t.Fatalf("%v", err)
		}
		if len(names(r, conformance.Fail)) > 0 || !r.Restored {
			var text strings.Builder
			_ = r.WriteText(&text)
			t.Errorf("failed=%q restored=%v\n%s", names(r, conformance.Fail), r.Restored, text.String())
		}
		for c := range b.foreign.All() {
			used, err := ocs.ParsePorts(r.PortsUsed)
			if err != nil || slices.Contains(used, c.Ingress) || slices.Contains(used, c.Egress) {
				t.Errorf("ports used=%q (%v), but %v is of others", r.PortsUsed, err, c)
			}
		}
		b.unharmed(t)
	})
}

// Ensure that a port that somebody takes meanwhile is given up, and that what
// others do to their own is told and not undone.
func TestOthersMeanwhile(t *testing.T) {
	t.Parallel()
	b := start(t, lab.Emulation{Personality: quick(t, "polatis-6000-32x32")}, ocs.MustMap(ocs.CrossConnect{Ingress: 1, Egress: 33}), nil)
	defer b.Close()
	theirs := []ocs.CrossConnect{{Ingress: 2, Egress: 64}, {Ingress: 31, Egress: 34}}
	cfg := b.config()
	cfg.MaxPorts = 4
	cfg.Progress = func(_, _ int, check string) {
		switch check {
		case "swap":
			op, err := b.Device.Connect(theirs)
			if err != nil {
				t.Error(err)
			}
			time.Sleep(time.Until(op.Settled))
			_, b.since = b.Device.Truth(0)
			b.foreign = ocs.MustMap(theirs...)
		case "cancel":
			if _, err := b.Device.Disconnect(1); err != nil {
				t.Error(err)
			}
		}
	}
	r := run(t, cfg)
	fails(t, r)
	skips(t, r, append([]string{"busy-update"}, onlyAllPorts...)...) // only two pairs are left
	if !r.Restored {
		t.Errorf("not restored: %q", r.NotRestored)
	}
	if got, want := r.Others, []string{"2>64 appeared", "31>34 appeared", "1>33 vanished"}; !slices.Equal(got, want) {
		t.Errorf("others=%q, want %q", got, want)
	}
	if got, want := b.Device.CrossConnects().String(), "2>64,31>34"; got != want {
		t.Errorf("map=%s, want %s", got, want)
	}
	b.neverDark(t)
}

// Ensure that devices that misbehave on the wire or in the matrix fail, and
// are left as they were all the same.
func TestMisbehaviour(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		faults  []string
		prepare func(*emulator.Device)
		want    string // a check that has to fail; "" means that none may
	}{
		"refuses all circuits":           {[]string{"deny:ENT-PATCH"}, nil, "free-pairs"},
		"refuses a circuit":              {[]string{"deny:ENT-PATCH:1:4"}, nil, "connect"},
		"refuses to remove once":         {[]string{"deny:DLT-PATCH:1"}, nil, "free-pairs"},
		"refuses to remove for a while":  {[]string{"deny:DLT-PATCH:2:4"}, nil, "connect"},
		"refuses labels":                 {[]string{"deny:ED-PORT-LABEL"}, nil, "label"},
		"refuses to delete a label":      {[]string{"deny:DLT-PORT-LABEL:1"}, nil, "label"},
		"refuses to close shutters":      {[]string{"deny:OPR-PORT-SHUTTER"}, nil, "shutter"},
		"refuses to open shutters once":  {[]string{"deny:RLS-PORT-SHUTTER:1"}, nil, "shutter"},
		"refuses to tell power":          {[]string{"deny:RTRV-PORT-POWER"}, nil, "power-loss"},
		"refuses to set a monitor":       {[]string{"deny:SET-PORT-PMON"}, nil, "monitor-averaging"},
		"refuses to tell the boot mode":  {[]string{"deny:RTRV-EQPT:0:1"}, nil, "boot-mode"},
		"refuses to tell the map once":   {[]string{"deny:RTRV-PATCH:1"}, nil, "read-map"},
		"refuses to tell the map":        {[]string{"deny:RTRV-PATCH"}, nil, "read-map"},
		"hangs on a circuit":             {[]string{"hang:ENT-PATCH:1:3"}, nil, "free-pairs"},
		"hangs on each removal":          {[]string{"hang:DLT-PATCH"}, nil, "free-pairs"},
		"hangs on a reading":             {[]string{"hang:RTRV-PATCH:1:100"}, nil, ""}, // judged below
		"hangs on a label":               {[]string{"hang:ED-PORT-LABEL:1:2"}, nil, "label-text"},
		"hangs on a shutter":             {[]string{"hang:OPR-PORT-SHUTTER:1"}, nil, "shutter"},
		"closes on a circuit":            {[]string{"close:ENT-PATCH:1:4"}, nil, "connect"},
		"closes on each circuit":         {[]string{"close:ENT-PATCH"}, nil, "free-pairs"},
		"closes on each removal":         {[]string{"close:DLT-PATCH"}, nil, "free-pairs"},
		"closes on a shutter":            {[]string{"close:OPR-PORT-SHUTTER:1"}, nil, "shutter"},
		"closes when it is to restore":   {[]string{"close:DLT-PATCH:2:4"}, nil, "connect"},
		"answers others on a circuit":    {[]string{"ctag:ENT-PATCH:1:4"}, nil, "connect"},
		"answers others on each removal": {[]string{"ctag:DLT-PATCH"}, nil, "free-pairs"},
		"floods":                         {[]string{"flood:ENT-PATCH:1:4"}, nil, "connect"},
		"answers twice":                  {[]string{"twice:*"}, nil, "none"}, // a good driver drops the second
		"stuck mirror":                   {nil, func(d *emulator.Device) { d.Stick(31) }, "free-pairs"},
		"all mirrors stuck":              {nil, func(d *emulator.Device) { d.Stick(d.Geometry().Ports()...) }, "free-pairs"},
		"connected but dark":             {nil, func(d *emulator.Device) { d.Unlight(64) }, "power-loss"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := lab.Emulation{Personality: quick(t, "polatis-6000-32x32")}
			for _, s := range tc.faults {
				f, err := emulator.ParseFault(s)
				if err != nil {
					t.Fatal(err)
				}
				e.Faults = append(e.Faults, f)
			}
			b := start(t, e, ocs.MustMap(ocs.CrossConnect{Ingress: 1, Egress: 40}, ocs.CrossConnect{Ingress: 32, Egress: 34}), tc.prepare)
			defer b.Close()
			cfg := b.config()
			cfg.MaxPorts, cfg.Settle = 4, 2*time.Second
			if strings.Contains(name, "hangs") || strings.Contains(name, "answers others") {
				b.timeout = 300 * time.Millisecond // is waited for
			}
			if strings.Contains(name, "dark") {
				cfg.Settle = 300 * time.Millisecond // is waited for
			}
			r := run(t, cfg)
			failed := names(r, conformance.Fail)
			switch {
			case tc.want == "none":
				fails(t, r)
			case len(failed) == 0 || tc.want != "" && !slices.Contains(failed, tc.want):
				t.Errorf("failed=%q, want %q among them", failed, tc.want)
			}
			for _, c := range r.Checks {
				if (c.Reason == "") != (c.Result == conformance.Pass) || strings.ContainsAny(c.Reason, "\r\n") {
					t.Errorf("%s: %s with reason %q", c.Name, c.Result, c.Reason)
				}
			}
			if !r.Restored {
				t.Errorf("not restored: %q", r.NotRestored)
			}
			b.unharmed(t)
		})
	}
}

// Ensure that what cannot be put back is said, that nothing is changed after
// that, and that it fails.
func TestNotRestored(t *testing.T) {
	t.Parallel()
	b := start(t, lab.Emulation{Personality: quick(t, "polatis-6000-32x32"), Faults: []emulator.Fault{
		{Kind: emulator.FaultDeny, Verb: "DLT-PATCH", After: 8},
	}}, ocs.MustMap(ocs.CrossConnect{Ingress: 1, Egress: 40}), nil)
	defer b.Close()
	r := run(t, b.config())
	fails(t, r, "connect", "restored")
	if got, want := r.NotRestored, []string{"32>64, which was not there"}; r.Restored || !slices.Equal(got, want) {
		t.Errorf("restored=%v, %q, want %q", r.Restored, got, want)
	}
	for _, c := range r.Checks {
		if c.Name == "swap" && !strings.HasPrefix(c.Reason, "nothing is changed any more") {
			t.Errorf("swap: %s %q, want that nothing is changed any more", c.Result, c.Reason)
		}
	}
	if got, want := b.Device.CrossConnects().String(), "1>40,32>64"; got != want {
		t.Errorf("map=%s, want %s", got, want)
	}
	b.neverDark(t)
}

// Ensure that a cancel is heeded at once while a device does not answer, and
// that everything is put back all the same, also over a new session.
func TestCancelledInTrouble(t *testing.T) {
	t.Parallel()
	for _, kind := range []emulator.FaultKind{emulator.FaultHang, emulator.FaultClose} {
		t.Run(string(kind), func(t *testing.T) {
			b := start(t, lab.Emulation{Personality: quick(t, "polatis-6000-32x32"), Faults: []emulator.Fault{
				{Kind: kind, Verb: "ENT-PATCH", After: 11, Times: 1},
			}}, full(8), nil)
			defer b.Close()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			cfg := b.config()
			cfg.Open = func(ctx context.Context) (ocs.Switch, error) { // would wait for a minute
				return drivers.Open(ctx, b.URL(), drivers.Options{Password: secret.New("root"), Timeout: time.Minute})
			}
			cfg.Progress = func(_, _ int, check string) {
				if check == "move-ingress" {
					time.AfterFunc(20*time.Millisecond, cancel)
				}
			}
			began := time.Now()
			r, err := conformance.Run(ctx, cfg)
			if err != nil || !r.Cancelled || !r.Restored || time.Since(began) > 20*time.Second {
				t.Errorf("err=%v cancelled=%v restored=%v %q, took %v", err, r.Cancelled, r.Restored, r.NotRestored, time.Since(began))
			}
			if n := len(r.Checks); n != len(names(r, conformance.Pass))+len(names(r, conformance.Skip))+len(names(r, conformance.Fail))+len(names(r, conformance.Unsupported)) || r.Skipped == 0 {
				t.Errorf("%d checks, %d skipped", n, r.Skipped)
			}
			b.unharmed(t)
		})
	}
}

func TestRunCannot(t *testing.T) {
	t.Parallel()
	errNo := errors.New("no route")
	for name, open := range map[string]func(context.Context) (ocs.Switch, error){
		"no Open": nil,
		"refused": func(context.Context) (ocs.Switch, error) { return nil, errNo },
		"nothing": func(context.Context) (ocs.Switch, error) { return nil, nil },
		"panics":  func(context.Context) (ocs.Switch, error) { panic("boom") },
	} {
		_, err := conformance.Run(t.Context(), conformance.Config{Open: open})
		if err == nil || name == "refused" && !errors.Is(err, errNo) {
			t.Errorf("%s: err=%v", name, err)
		}
	}
}

// Ensure that a panic in the caller's Progress is not swallowed, and that the
// device is as it was.
func TestProgressPanics(t *testing.T) {
	t.Parallel()
	b := start(t, lab.Emulation{Personality: quick(t, "polatis-6000-32x32")}, full(8), nil)
	defer b.Close()
	cfg := b.config()
	cfg.Progress = func(_, _ int, check string) {
		if check == "swap" {
			panic("boom")
		}
	}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was swallowed")
			}
		}()
		_, _ = conformance.Run(t.Context(), cfg)
	}()
	b.unharmed(t)
}

var (
	someTime  = regexp.MustCompile(`-?\b\d+(\.\d+)?(ns|µs|ms|s)\b`)
	someLevel = regexp.MustCompile(`-?\b\d+\.\d+ dBm?\b`)
	someDate  = regexp.MustCompile(`\d\d-\d\d-\d\d \d\d:\d\d:\d\d M \d+`)
)

// masked replaces what differs from run to run.
func masked(r conformance.Report) conformance.Report {
	mask := func(s string) string {
		s = someDate.ReplaceAllString(s, "<date> M <ctag>")
		s = strings.Replace(s, " disabled", " enabled", 1) // which of the two is heard first
		return someLevel.ReplaceAllString(someTime.ReplaceAllString(s, "<time>"), "<level>")
	}
	r.Started, r.DurNS = time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC), 0
	r.Checks, r.Quirks = slices.Clone(r.Checks), slices.Clone(r.Quirks)
	for i := range r.Checks {
		r.Checks[i].DurNS, r.Checks[i].Reason = 0, mask(r.Checks[i].Reason)
	}
	for i := range r.Quirks {
		q := &r.Quirks[i]
		q.Value, q.Evidence = mask(q.Value), mask(q.Evidence)
	}
	return r
}

func TestWriteText(t *testing.T) {
	t.Parallel()
	b := start(t, lab.Emulation{Name: "dut", Personality: quick(t, "polatis-6000-32x32")}, ocs.MustMap(ocs.CrossConnect{Ingress: 1, Egress: 33}), nil)
	defer b.Close()
	r := run(t, b.config())
	var text strings.Builder
	if err := masked(r).WriteText(&text); err != nil {
		t.Fatal(err)
	}
	golden := filepath.Join("testdata", "polatis-6000-32x32.txt")
	if *update {
		if err := os.WriteFile(golden, []byte(text.String()), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), text.String()); diff != "" {
		t.Errorf("WriteText (-want +got):\n%s", diff)
	}
	for line := range strings.Lines(text.String()) {
		if strings.HasSuffix(line, " \n") {
			t.Errorf("blanks at the end of %q", line)
		}
	}
	if err := r.WriteText(brokenPipe{}); !errors.Is(err, os.ErrClosed) {
		t.Errorf("err=%v, want %v", err, os.ErrClosed)
	}
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, os.ErrClosed }

// Ensure that scripts can rely on the keys, and that no list is null.
func TestReportJSON(t *testing.T) {
	t.Parallel()
	b := start(t, lab.Emulation{Personality: quick(t, "single-sided-48xCC")}, ocs.Map{}, nil)
	defer b.Close()
	for _, cancelled := range []bool{false, true} {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		cfg := b.config()
		cfg.Progress = func(done, _ int, _ string) {
			if cancelled && done == 0 {
				cancel()
			}
		}
		r, err := conformance.Run(ctx, cfg)
		if err != nil || r.Cancelled != cancelled || r.Passed+r.Failed+r.Skipped+r.Unsupported != len(r.Checks) {
			t.Fatalf("err=%v cancelled=%v, want %v; %d+%d+%d+%d of %d", err, r.Cancelled, cancelled, r.Passed, r.Failed, r.Skipped, r.Unsupported, len(r.Checks))
		}
		data, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		var got map[string]any
		if err := json.Unmarshal(data, &got); err != nil {
			t.Fatal(err)
		}
		want := []string{"all_ports", "cancelled", "capabilities", "changed_by_others", "checks", "device", "dur_ns", "failed", "firmware", "kind",
			"model", "not_restored", "passed", "ports_used", "quirks", "restored", "serial", "size", "skipped", "started", "unsupported", "vendor"}
		if keys := slices.Sorted(maps.Keys(got)); !slices.Equal(keys, want) {
			t.Errorf("keys=%q, want %q", keys, want)
		}
		for _, k := range []string{"capabilities", "checks", "quirks", "not_restored", "changed_by_others"} {
			if _, isList := got[k].([]any); !isList {
				t.Errorf("%s=%v, want a list", k, got[k])
			}
		}
	}
}
