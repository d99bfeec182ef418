package tl1switch_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/drivers/conformance"
	"github.com/ocslab/ocslab/drivers/internal/drivertest"
	"github.com/ocslab/ocslab/drivers/tl1switch"
	"github.com/ocslab/ocslab/drivers/transport"
	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/internal/secret"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/ocs"
)

// dialects are the personalities and what they are spoken to with.
var dialects = []struct {
	model string
	cfg   tl1switch.Config
}{
	{"polatis-old-16x16", tl1switch.Config{}},
	{"calient-s320", tl1switch.Config{Dialect: tl1switch.Calient}},
	{"calient-s320", tl1switch.Config{Dialect: tl1switch.Calient, TwoStep: tl1switch.TwoStepNever}},
	{"calient-s162", tl1switch.Config{Dialect: tl1switch.Calient}},
	{"calient-s162", tl1switch.Config{Dialect: tl1switch.Calient, TwoStep: tl1switch.TwoStepAlways, Group: "lab"}},
	{"glimmerglass-48x48", tl1switch.Config{Dialect: tl1switch.Glimmerglass}},
	{"glimmerglass-48x48", tl1switch.Config{Dialect: tl1switch.Glimmerglass, Async: true, MaxPairs: 3}},
}

// eachDialect runs f for each of dialects, against an emulated switch that change,
// when not nil, has changed.
func eachDialect(t *testing.T, change func(*emulator.Personality), f func(*testing.T, *emulator.Device, tl1switch.Config)) {
	for _, d := range dialects {
		name := d.model
		if d.cfg.TwoStep != "" {
			name += "-" + string(d.cfg.TwoStep)
		}
		if d.cfg.Async {
			name += "-async"
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dev, cfg := emulated(t, d.model, change)
			cfg.Dialect, cfg.TwoStep, cfg.Group, cfg.Async, cfg.MaxPairs = d.cfg.Dialect, d.cfg.TwoStep, d.cfg.Group, d.cfg.Async, d.cfg.MaxPairs
			f(t, dev, cfg)
		})
	}
}

// emulated serves a personality and returns how to connect to it.
func emulated(t *testing.T, model string, change func(*emulator.Personality)) (*emulator.Device, tl1switch.Config) {
	t.Helper()
	p, err := emulator.LoadPersonality(model)
	if err != nil {
		t.Fatal(err)
	}
	p.Switching.Single, p.Switching.Bulk, p.Switching.Jitter, p.Switching.Rise = 2*time.Millisecond, 2*time.Millisecond, 0, 0
	if change != nil {
		change(&p)
	}
	e, err := lab.Emulation{Name: "rail0", Personality: p, Seed: 1}.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e.Device, tl1switch.Config{Dialer: transport.TCP{Addr: e.Endpoints["tl1"]}, Device: "rail0", Password: secret.New("root")}
}

func openWith(t *testing.T, cfg tl1switch.Config) *tl1switch.Switch {
	t.Helper()
	sw, err := tl1switch.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sw.Close() })
	return sw
}

func TestDialects_Conformance(t *testing.T) {
	t.Parallel()
	var runs sync.WaitGroup // all at once, since they wait more than they work
	defer runs.Wait()
	for _, d := range dialects {
		if d.cfg.TwoStep != "" || d.cfg.Async {
			continue // differ in how changes are made, which the property covers
		}
		_, cfg := emulated(t, d.model, func(p *emulator.Personality) {
			if d.cfg.Dialect != "" { // every port is used one by one
				p.Size, p.TL1.Block = "12x12", 1024
			}
		})
		cfg.Dialect = d.cfg.Dialect
		runs.Go(func() {
			r, err := conformance.Run(t.Context(), conformance.Config{
				Name: "rail0", AllPorts: true, MaxPorts: 4,
				Open: func(ctx context.Context) (ocs.Switch, error) { return tl1switch.Open(ctx, cfg) },
			})
			if err != nil {
				t.Errorf("%s: %v", d.model, err)
			} else if r.Failed > 0 || r.Passed < 20 {
				var b strings.Builder
				_ = r.WriteText(&b)
				t.Errorf("%s: %d failed, %d passed\n%s", d.model, r.Failed, r.Passed, b.String())
			}
		})
	}
}

// Ensure that after Apply of Diff(a, b) the device holds b, and that the driver says so.
func TestDialects_Property(t *testing.T) {
	t.Parallel()
	instant := func(p *emulator.Personality) { p.Switching = emulator.Switching{Ack: emulator.AckAfter} }
	eachDialect(t, instant, func(t *testing.T, dev *emulator.Device, cfg tl1switch.Config) {
		drivertest.Property(t, openWith(t, cfg), dev, someOf(dev.Geometry()), math.MaxInt)
	})
}

// someOf are maps with a few cross-connects.
func someOf(g ocs.Geometry) *rapid.Generator[ocs.Map] {
	return rapid.Custom(func(t *rapid.T) ocs.Map {
		n := rapid.IntRange(0, 6).Draw(t, "pairs")
		in := rapid.SliceOfNDistinct(rapid.IntRange(1, g.Ingress), n, n, rapid.ID).Draw(t, "ingress")
		out := rapid.SliceOfNDistinct(rapid.IntRange(g.Ingress+1, g.Ingress+g.Egress), n, n, rapid.ID).Draw(t, "egress")
		var ccs []ocs.CrossConnect
		for i := range in {
			ccs = append(ccs, ocs.CrossConnect{Ingress: ocs.Port(in[i]), Egress: ocs.Port(out[i])})
		}
		return ocs.MustMap(ccs...)
	})
}

// Ensure that a connection that the device lists as failed is never taken for
// success, and can be asked for again.
func TestDialects_FailedConnection(t *testing.T) {
	t.Parallel()
	fail := func(p *emulator.Personality) { p.TL1.Fail = []uint32{2} }
	eachDialect(t, fail, func(t *testing.T, dev *emulator.Device, cfg tl1switch.Config) {
		if cfg.Dialect == "" {
			return // Polatis units show no failures
		}
		sw := openWith(t, cfg)
		n := ocs.Port(dev.Geometry().Ingress)
		want := ocs.MustMap(ocs.CrossConnect{Ingress: 2, Egress: n + 3}, ocs.CrossConnect{Ingress: 4, Egress: n + 5})
		for range 2 {
			r, err := ocs.Reconcile(t.Context(), sw, want, ocs.Safe)
			if !errors.Is(err, ocs.ErrVerify) || r.After.Len() != 1 {
				t.Fatalf("got %v, %+v", err, r)
			}
		}
		if dev.CrossConnects().Len() != 2 {
			t.Errorf("the device holds %v", dev.CrossConnects())
		}
		// A port that is held by nothing but our own failure is free.
		other := ocs.MustMap(ocs.CrossConnect{Ingress: 7, Egress: n + 3})
		if _, err := ocs.Reconcile(t.Context(), sw, other, ocs.Safe); err != nil {
			t.Error(err)
		}
		// That of another is not.
		cfg.Group, cfg.User = "others", "admin"
		if _, err := ocs.Reconcile(t.Context(), sw, want, ocs.Update); !errors.Is(err, ocs.ErrVerify) {
			t.Fatal(err)
		}
		if cfg.Dialect == tl1switch.Calient {
			_, err := openWith(t, cfg).Apply(t.Context(), ocs.Change{Add: ocs.MustMap(ocs.CrossConnect{Ingress: 9, Egress: n + 3})})
			if !errors.Is(err, ocs.ErrConflict) || !strings.Contains(err.Error(), "has failed") {
				t.Errorf("got %v", err)
			}
		}
	})
}
