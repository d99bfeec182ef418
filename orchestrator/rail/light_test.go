package rail_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/orchestrator/proto"
	"github.com/ocslab/ocslab/orchestrator/rail"
)

// metered drives an emulated switch without a wire, so that it works in virtual time, and reads its monitors.
type metered struct {
	dev   *emulator.Device
	power func(ports []ocs.Port) (ocs.PowerReading, error) // in place of the monitors; nil is those
}

func (s *metered) Identify(context.Context) (ocs.Identity, error) {
	return ocs.Identity{Vendor: "test", Model: "metered", Serial: "1", Geometry: s.dev.Geometry()}, nil
}

func (s *metered) CrossConnects(context.Context) (ocs.Map, error) { return s.dev.CrossConnects(), nil }

func (s *metered) Apply(ctx context.Context, c ocs.Change) (ocs.Receipt, error) {
	r := ocs.Receipt{Begun: time.Now(), SendStart: time.Now(), Sent: time.Now(), Requests: 1}
	op, err := s.dev.Edit(nil, emulator.Edit{DropPairs: c.Remove.Slice(), Add: c.Add.Slice()})
	if err != nil {
		return r, err
	}
	if !emulator.SleepUntil(ctx, op.Ack) {
		return r, context.Cause(ctx)
	}
	r.FirstByte, r.Acked = time.Now(), time.Now()
	return r, nil
}

func (s *metered) Power(_ context.Context, ports ...ocs.Port) (ocs.PowerReading, error) {
	if s.power != nil {
		return s.power(ports)
	}
	r := ocs.PowerReading{Earliest: time.Now(), Latest: time.Now(), Ports: map[ocs.Port]ocs.DBm{}}
	for _, p := range ports {
		if s.dev.HasMonitor(p) {
			r.Ports[p] = s.dev.Power(p)
		}
	}
	return r, nil
}

func (s *metered) Monitors(_ context.Context, ports ...ocs.Port) (all []ocs.Monitor, _ error) {
	for _, p := range ports {
		if s.dev.HasMonitor(p) {
			all = append(all, ocs.Monitor{Port: p, Averaging: emulator.AveragingTime(s.dev.Monitor(emulator.Forward, p).Averaging)})
		}
	}
	return all, nil
}

func (s *metered) SetMonitor(context.Context, ocs.Monitor) error { return nil }
func (s *metered) Close() error                                  { return nil }

// newMetered returns an emulated switch for figure8, at the ports of options, that takes so long for a change.
func newMetered(t testing.TB, takes time.Duration, change func(*emulator.Personality)) *metered {
	t.Helper()
	p, err := emulator.LoadPersonality("polatis-6000-32x32")
	if err != nil {
		t.Fatal(err)
	}
	p.Size = "24x24"
	p.Switching = emulator.Switching{Single: takes, Bulk: takes, Ack: emulator.AckAfter}
	if change != nil {
		change(&p)
	}
	dev, err := emulator.New(p, emulator.Options{Name: "ocs1", Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	return &metered{dev: dev}
}

var noLoss, noLight = ocs.DB(0), ocs.DB(math.Inf(1))

// TestLight_Default: where there are monitors a change is acknowledged only when they show light, without asking for
// that, and a circuit that was dark is not taken for good by the next request because the switch has it.
func TestLight_Default(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw := newMetered(t, 20*time.Millisecond, nil)
		o := start(t, options(sw))
		a, _ := opened(t, o)
		if got := a.id("111"); got.err != nil || got.done.LightNS < got.done.VerifiedNS {
			t.Fatalf("got %+v", got)
		}
		if st := o.Status(); st.Verify != rail.Light || len(st.Dark)+len(st.NoInput) > 0 {
			t.Errorf("status %+v", st)
		}
		if err := sw.dev.SetPortLoss(26, noLight); err != nil {
			t.Fatal(err)
		}
		for range 2 { // the second request finds the circuit connected
			got := a.id("222")
			if codeOf(got.err) != proto.Verify {
				t.Fatalf("got %+v", got)
			}
			for _, want := range []string{"no light came within 1s at port 26, port 1 of rank 0, of ocs1, though ", ">26: in -", " dBm, out -"} {
				if !strings.Contains(got.err.Error(), want) {
					t.Errorf("%q does not say %q", got.err, want)
				}
			}
			st := o.Status()
			if len(st.Dark) != 1 || st.Dark[0].Egress != 26 || st.Dark[0].In == nil || *st.Dark[0].In < -5 || st.Dark[0].Out > -59 {
				t.Errorf("dark: %v", st.Dark)
			}
		}
		if err := sw.dev.SetPortLoss(26, noLoss); err != nil {
			t.Fatal(err)
		}
		if got := a.id("222"); got.err != nil {
			t.Error(got.err)
		}
	})
}

// TestLight_Start: circuits that the switch holds from before are looked at, too.
func TestLight_Start(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw := newMetered(t, 20*time.Millisecond, nil)
		opt := options(sw)
		opt.Dir = t.TempDir()
		o := start(t, opt)
		a, _ := opened(t, o)
		if got := a.id("111"); got.err != nil {
			t.Fatal(got.err)
		}
		o.Close()
		if err := sw.dev.SetPortLoss(30, noLight); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second) // the monitors average
		st := start(t, opt).Status()
		if st.Shape != proto.Dead || !strings.Contains(st.Reason, "no light came within 1s at port 30") {
			t.Errorf("got %+v", st)
		}
	})
}

// TestLight_Table: who asks for the table has the table.
func TestLight_Table(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw := newMetered(t, 20*time.Millisecond, nil)
		sw.power = func([]ocs.Port) (ocs.PowerReading, error) { panic("the light is read") }
		opt := options(sw)
		opt.Verify = rail.Table
		o := start(t, opt)
		a, _ := opened(t, o)
		if got := a.id("111"); got.err != nil || got.done.LightNS != 0 || o.Status().Verify != rail.Table {
			t.Errorf("got %+v, status %+v", got, o.Status())
		}
	})
}

// TestLight_NoMonitors: a switch without monitors is verified by its table, unless light was asked for. Answers that do
// not say that there are no monitors do not count as that.
func TestLight_NoMonitors(t *testing.T) {
	for _, x := range []struct {
		name   string
		verify rail.Verify
		power  func(n int) (map[ocs.Port]ocs.DBm, error) // of the nth reading from 1; nil readings are those of the switch
		model  func(*emulator.Personality)
		want   rail.Verify
		dead   string
	}{
		{name: "ports left out", model: func(p *emulator.Personality) { p.Monitors.Sides = emulator.MonitorsNone }, want: rail.Table},
		{
			name: "not supported", want: rail.Table,
			power: func(int) (map[ocs.Port]ocs.DBm, error) { return nil, fmt.Errorf("power: %w", ocs.ErrNotSupported) },
		},
		{
			name: "denied", want: rail.Table,
			power: func(int) (map[ocs.Port]ocs.DBm, error) { return nil, fmt.Errorf("power: %w", ocs.ErrDenied) },
		},
		{name: "denied once", want: rail.Light, power: func(n int) (map[ocs.Port]ocs.DBm, error) {
			if n == 1 {
				return nil, fmt.Errorf("power: %w", ocs.ErrDenied)
			}
			return nil, nil
		}},
		{
			name: "no answer", want: rail.Light, dead: "no answer about the light of ocs1 within 1s",
			power: func(int) (map[ocs.Port]ocs.DBm, error) { return nil, context.DeadlineExceeded },
		},
		{
			name: "asked for", verify: rail.Light, want: rail.Light, dead: "the light of ocs1 cannot be verified: it has no power monitors",
			model: func(p *emulator.Personality) { p.Monitors.Sides = emulator.MonitorsNone },
		},
	} {
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sw := newMetered(t, 20*time.Millisecond, x.model)
				if n := 0; x.power != nil {
					inner := &metered{dev: sw.dev}
					sw.power = func(ports []ocs.Port) (ocs.PowerReading, error) {
						n++
						if all, err := x.power(n); all != nil || err != nil {
							return ocs.PowerReading{Ports: all}, err
						}
						return inner.Power(context.Background(), ports...)
					}
				}
				opt := options(sw)
				opt.Verify = x.verify
				o := start(t, opt)
				st := o.Status()
				if dead := st.Shape == proto.Dead; st.Verify != x.want || dead != (x.dead != "") || !strings.Contains(st.Reason, x.dead) {
					t.Fatalf("got %+v", st)
				}
				if x.dead != "" {
					return
				}
				a, _ := opened(t, o)
				if got := a.id("111"); got.err != nil || (got.done.LightNS != 0) != (x.want == rail.Light) {
					t.Errorf("got %+v", got)
				}
			})
		})
	}
}

// TestLight_NoInput: a circuit into which nobody sends is not the fault of the switch. Where no monitor is at the
// ingress that cannot be known.
func TestLight_NoInput(t *testing.T) {
	for _, x := range []struct {
		sides emulator.MonitorSides
		want  proto.Code
	}{{emulator.MonitorsBoth, ""}, {emulator.MonitorsEgress, proto.Verify}} {
		t.Run(string(x.sides), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sw := newMetered(t, 20*time.Millisecond, func(p *emulator.Personality) { p.Monitors.Sides = x.sides })
				opt := options(sw)
				opt.Health = time.Second
				o := start(t, opt)
				a, _ := opened(t, o)
				if err := sw.dev.SetInput(2, ocs.DBm(math.Inf(-1))); err != nil { // the NIC is off
					t.Fatal(err)
				}
				time.Sleep(time.Second)
				got := a.id("111")
				if codeOf(got.err) != x.want {
					t.Fatalf("got %+v", got)
				}
				st := o.Status()
				if x.want != "" {
					if len(st.Dark) != 1 || st.Dark[0].Ingress != 2 || st.Dark[0].In != nil || !strings.Contains(got.err.Error(), "2>29: in not measured, out -") {
						t.Errorf("%v; dark: %v", got.err, st.Dark)
					}
					return
				}
				if got.done.LightNS != 0 || !slices.Equal(st.NoInput, []ocs.Port{2}) || len(st.Dark) > 0 {
					t.Errorf("got %+v, status %+v", got, st)
				}
				time.Sleep(5 * time.Second)
				select {
				case alarm := <-o.Alarms():
					t.Errorf("alarm: %v", alarm)
				default:
				}
				if err := sw.dev.SetInput(2, 0); err != nil {
					t.Fatal(err)
				}
				if got := a.id("222"); got.err != nil || got.done.LightNS == 0 || len(o.Status().NoInput) > 0 {
					t.Errorf("got %+v, status %+v", got, o.Status())
				}
			})
		})
	}
}

// TestLight_Averaging: a monitor that averages over 100 ms goes on to show the light of the circuit before. That is
// never taken for the new one. Where the switch takes longer than that, new light is known as soon as it rises.
func TestLight_Averaging(t *testing.T) {
	for _, takes := range []time.Duration{time.Millisecond, 30 * time.Millisecond, 90 * time.Millisecond, 200 * time.Millisecond} {
		t.Run(takes.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sw := newMetered(t, takes, nil)
				a, _ := opened(t, start(t, options(sw)))
				for range 3 {
					for _, id := range []string{"111", "222"} {
						got := a.id(id)
						if got.err != nil {
							t.Fatal(got.err)
						}
						took := time.Duration(got.done.LightNS - got.done.SwitchAckNS)
						if most := 105 * time.Millisecond; took > most || takes > 100*time.Millisecond && took > 10*time.Millisecond {
							t.Errorf("%s: light was seen %v after the acknowledgement", id, took)
						}
					}
				}
				if err := sw.dev.SetPathLoss(ocs.CrossConnect{Ingress: feeds(t, "111", 26), Egress: 26}, noLight); err != nil {
					t.Fatal(err)
				}
				if got := a.id("111"); codeOf(got.err) != proto.Verify {
					t.Errorf("got %+v", got)
				}
			})
		})
	}
}

// feeds returns which ingress leads to an egress.
func feeds(t testing.TB, id string, egress ocs.Port) ocs.Port {
	t.Helper()
	for c := range mapOf(t, id).All() {
		if c.Egress == egress {
			return c.Ingress
		}
	}
	t.Fatalf("%s has no circuit to port %v", id, egress)
	return 0
}

// TestLight_Doubt: a circuit whose light the health check has found gone is not granted before it has been seen again.
func TestLight_Doubt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw := newMetered(t, 20*time.Millisecond, nil)
		opt := options(sw)
		opt.Health = time.Second
		o := start(t, opt)
		a, _ := opened(t, o)
		if got := a.id("222"); got.err != nil {
			t.Fatal(got.err)
		}
		if err := sw.dev.SetPortLoss(26, noLight); err != nil {
			t.Fatal(err)
		}
		if alarm := <-o.Alarms(); !strings.Contains(alarm.Detail, "no light arrives at 1 port (port 1 of rank 0), though the circuits are there: ") {
			t.Errorf("alarm: %+v", alarm)
		}
		if got := a.id("222"); codeOf(got.err) != proto.Verify {
			t.Errorf("got %+v", got)
		}
	})
}
