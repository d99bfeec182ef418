package loss_test

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ocslab/ocslab/calibration/loss"
	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/ocs"
)

// device is an emulated switch without a wire.
type device struct{ *emulator.Device }

func (d device) apply(ctx context.Context, m ocs.Map) error {
	op, err := d.Edit(nil, emulator.Edit{Only: true, Add: m.Slice()})
	if err == nil && op.Number != 0 {
		time.Sleep(time.Until(op.Settled))
	}
	return err
}

func (d device) Power(_ context.Context, ports ...ocs.Port) (ocs.PowerReading, error) {
	r := ocs.PowerReading{Earliest: time.Now(), Latest: time.Now(), Ports: map[ocs.Port]ocs.DBm{}}
	for _, p := range ports {
		r.Ports[p] = d.Device.Power(p)
	}
	return r, nil
}

func (d device) Monitors(_ context.Context, ports ...ocs.Port) ([]ocs.Monitor, error) {
	var list []ocs.Monitor
	for _, p := range ports {
		list = append(list, ocs.Monitor{Port: p, Averaging: emulator.AveragingTime(d.Monitor(emulator.Forward, p).Averaging)})
	}
	return list, nil
}

func (d device) SetMonitor(context.Context, ocs.Monitor) error { return ocs.ErrNotSupported }

// Faults planted in emulated switches of 32 x 32 ports are found, and nothing else; without them
// nothing is.
func TestMeasure_Emulated(t *testing.T) {
	p, err := emulator.LoadPersonality("polatis-6000-32x32")
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			dev, err := emulator.New(p, emulator.Options{Seed: seed})
			if err != nil {
				t.Fatal(err)
			}
			d := device{dev}
			b := loss.Bench{Geometry: dev.Geometry(), Meter: d, Apply: d.apply}
			find := func() []string {
				m, err := loss.Measure(t.Context(), b, b.Geometry.IngressPorts(), b.Geometry.EgressPorts(), loss.Options{Readings: 3})
				if err != nil {
					t.Fatal(err)
				}
				return kinds(m.Analyze(loss.Limits{}))
			}
			if got := find(); len(got) > 0 {
				t.Errorf("seed %d, a sound switch: %v", seed, got)
			}
			for _, err := range []error{
				dev.SetPortLoss(7, 3), dev.SetPortLoss(44, ocs.DB(math.Inf(1))),
				dev.SetPathLoss(ocs.CrossConnect{Ingress: 12, Egress: 45}, 4),
			} {
				if err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff([]string{"bad-path 12>45", "dead-egress 44", "dirty-ingress 7"}, find()); diff != "" {
				t.Errorf("seed %d: %s", seed, diff)
			}
		})
	}
}
