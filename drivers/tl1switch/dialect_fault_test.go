package tl1switch_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ocslab/ocslab/drivers/internal/drivertest"
	"github.com/ocslab/ocslab/drivers/tl1switch"
	"github.com/ocslab/ocslab/drivers/transport"
	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/emulator/tl1server"
	"github.com/ocslab/ocslab/internal/secret"
	"github.com/ocslab/ocslab/ocs"
)

// piped connects to an emulated switch in memory.
type piped struct{ srv *tl1server.Server }

func (p piped) Dial(ctx context.Context) (transport.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	near, far := net.Pipe()
	go p.srv.ServeConn(context.Background(), far)
	return near, nil
}

func (piped) String() string { return "in memory" }

// dialectMethods are what the dialects have in common. Each returns an error when what it was
// told is not true.
var dialectMethods = map[string]func(context.Context, *tl1switch.Switch, *emulator.Device) error{
	"Identify": func(ctx context.Context, sw *tl1switch.Switch, d *emulator.Device) error {
		id, err := sw.Identify(ctx)
		return drivertest.Checked(err, id.Serial == d.Serial() && id.Geometry == d.Geometry(), id)
	},
	"CrossConnects": func(ctx context.Context, sw *tl1switch.Switch, d *emulator.Device) error {
		m, err := sw.CrossConnects(ctx)
		return drivertest.Checked(err, m.Equal(d.CrossConnects()), m)
	},
	"Connect": func(ctx context.Context, sw *tl1switch.Switch, d *emulator.Device) error {
		cc := ocs.CrossConnect{Ingress: 3, Egress: ocs.Port(d.Geometry().Ingress) + 3}
		_, err := sw.Apply(ctx, ocs.Change{Add: ocs.MustMap(cc)})
		return drivertest.Checked(err, d.CrossConnects().Has(cc), d.CrossConnects())
	},
	"Disconnect": func(ctx context.Context, sw *tl1switch.Switch, d *emulator.Device) error {
		cc := ocs.CrossConnect{Ingress: 1, Egress: ocs.Port(d.Geometry().Ingress) + 2}
		_, err := sw.Apply(ctx, ocs.Change{Remove: ocs.MustMap(cc)})
		return drivertest.Checked(err, !d.CrossConnects().Has(cc), d.CrossConnects())
	},
	"Power": func(ctx context.Context, sw *tl1switch.Switch, d *emulator.Device) error {
		monitored := 0
		for _, p := range d.Geometry().Ports() {
			if d.HasMonitor(p) {
				monitored++
			}
		}
		r, err := sw.Power(ctx)
		return drivertest.Checked(err, len(r.Ports) == monitored, r)
	},
	"Labels": func(ctx context.Context, sw *tl1switch.Switch, d *emulator.Device) error {
		labels, err := sw.Labels(ctx)
		return drivertest.Checked(err, labels[1] == "gpu1", labels)
	},
}

// Ensure that whatever goes wrong with whichever command of a method, the method ends, what it
// says is true, and the Switch works afterwards.
func TestDialects_Faults(t *testing.T) {
	t.Parallel()
	for _, d := range dialects {
		if d.cfg.Async || d.cfg.TwoStep == tl1switch.TwoStepNever {
			continue
		}
		p, err := emulator.LoadPersonality(d.model)
		if err != nil {
			t.Fatal(err)
		}
		p.Size, p.TL1.Block = "4x4", 200
		for _, kind := range []emulator.FaultKind{
			emulator.FaultDeny, emulator.FaultLose, emulator.FaultHang, emulator.FaultClose,
			emulator.FaultTag, emulator.FaultFlood, emulator.FaultTwice, emulator.FaultShred,
		} {
			t.Run(fmt.Sprintf("%s%s/%s", d.model, d.cfg.TwoStep, kind), func(t *testing.T) {
				t.Parallel()
				for name, call := range dialectMethods {
					if name == "Identify" && kind == emulator.FaultDeny && d.cfg.Dialect == "" {
						continue // one answer of three will do
					}
					// The last round has the fault strike what comes after the method.
					for after, struck := 0, true; struck && !t.Failed(); after++ {
						synctest.Test(t, func(t *testing.T) { struck = strike(t, p, d.cfg, kind, after, name, call) })
					}
				}
			})
		}
	}
}

// strike lets a fault meet a command of a method, and reports whether there was
// such a command.
func strike(t *testing.T, p emulator.Personality, cfg tl1switch.Config, kind emulator.FaultKind, after int, name string, call func(context.Context, *tl1switch.Switch, *emulator.Device) error) (struck bool) {
	dev, err := emulator.New(p, emulator.Options{Name: "rail0", Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := dev.SetLabel(1, "gpu1"); err != nil {
		t.Fatal(err)
	}
	srv := &tl1server.Server{Device: dev}
	cfg.Dialer, cfg.Password, cfg.Device, cfg.MaxReply = piped{srv}, secret.New("root"), "rail0", 64<<10
	var sent atomic.Int64
	cfg.Trace = func(d tl1switch.Direction, p []byte) {
		if d == tl1switch.Sent {
			sent.Add(int64(bytes.Count(p, []byte(";"))))
		}
	}
	sw, err := tl1switch.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer sw.Close()
	first := ocs.MustMap(ocs.CrossConnect{Ingress: 1, Egress: 6}, ocs.CrossConnect{Ingress: 2, Egress: 5})
	if _, err := sw.Apply(t.Context(), ocs.Change{Add: first}); err != nil {
		t.Fatal(err)
	}
	srv.Faults.Add(emulator.Fault{Kind: kind, Verb: "*", After: after, Times: 1})
	sent.Store(0)
	err = call(t.Context(), sw, dev)
	struck = int(sent.Load()) > after
	var op *ocs.OpError
	if err != nil && (!errors.As(err, &op) || kind == emulator.FaultShred) {
		t.Errorf("%s, %s of command %d: got %v", name, kind, after, err)
	}
	time.Sleep(time.Second)
	// A fault that has not struck yet may do so now.
	for try := range 3 {
		m, err := sw.CrossConnects(t.Context())
		if err == nil && m.Equal(dev.CrossConnects()) {
			break
		}
		if err == nil && kind != emulator.FaultDeny || try == 2 {
			t.Errorf("%s, %s of command %d: afterwards got %v, %v, want %v", name, kind, after, m, err, dev.CrossConnects())
			break
		}
	}
	return struck
}
