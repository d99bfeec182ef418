package fabric

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/ocslab/ocslab/emulator"
	firmwarenotes "github.com/ocslab/ocslab/firmware-notes"
	"github.com/ocslab/ocslab/linkmon/optics"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/timeline"
)

// starved is a ground on which the goroutines of NICs get no processor time until the channel
// is closed.
type starved struct {
	ground
	until chan struct{}
}

func (g starved) sleeper() (sleeper, error) { return starvedSleeper(g), nil }

type starvedSleeper starved

func (s starvedSleeper) sleep(int64) { <-s.until }
func (s starvedSleeper) wake()       {}
func (s starvedSleeper) close()      {}

// TestModule_Starved: marks made from readings of a module contain the truth although nothing
// brings the published tree up to date.
func TestModule_Starved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const refresh = 10 * time.Millisecond
		d, err := emulator.New(emulator.Personality{
			Model: "test", Vendor: "V", Product: "P", Firmware: "1", Size: "2x2",
			Switching: emulator.Switching{Single: 200 * time.Millisecond, Rise: time.Millisecond, Ack: emulator.AckBefore},
			Optics:    emulator.Optics{Loss: 1.5, LossMax: 2.7},
			Monitors:  emulator.Monitors{Sides: emulator.MonitorsBoth, Floor: -60, Default: 1},
			Control: emulator.Control{
				Busy: emulator.Takeover, Boot: ocs.BootRestore, Reboot: time.Minute,
				Users: []emulator.User{{Name: "admin", Password: "root", Group: emulator.Admin}},
			},
		}, emulator.Options{Name: "rail0"})
		if err != nil {
			t.Fatal(err)
		}
		profile := firmwarenotes.Profile{Name: "x", Refresh: refresh}
		f, err := Start(Config{
			Switches: map[string]*emulator.Device{"rail0": d}, Seed: 1, Rung: Memory, Dir: t.TempDir(),
			NICs: []NIC{{Host: "gpu2", Name: "ens1f0", Tx: Port{"rail0", 2}, Rx: Port{"rail0", 4}, Profile: profile}},
		})
		if err != nil {
			t.Fatal(err)
		}
		ground := starved{f.ground, make(chan struct{})}
		f.ground = ground
		if err := f.Add(NIC{
			Host: "gpu1", Name: "ens1f0", Tx: Port{"rail0", 1}, Rx: Port{"rail0", 3},
			Profile: profile,
		}); err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		defer close(ground.until)

		r, err := f.Module("gpu1", "ens1f0")
		if err != nil {
			t.Fatal(err)
		}
		s := optics.Sampler{Reader: r, Period: 3 * time.Millisecond}
		tracker := optics.Tracker{Subject: "gpu1/ens1f0", Lag: refresh}
		var marks []timeline.Mark
		watch := func(d time.Duration) {
			for end := time.Now().Add(d); time.Now().Before(end); {
				sample, err := s.Sample(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if m, ok := tracker.Add(sample); ok {
					m.Reconfiguration = len(marks)
					marks = append(marks, m)
				}
			}
		}
		watch(10 * time.Millisecond)
		for _, ingress := range []ocs.Port{1, 2, 1} {
			add := []ocs.CrossConnect{{Ingress: ingress, Egress: 3}}
			if _, err := d.Edit(nil, emulator.Edit{Only: true, Add: add}); err != nil {
				t.Fatal(err)
			}
			watch(300 * time.Millisecond)
		}
		truth, _ := f.Truth(0)
		if len(marks) != 5 || len(truth) != 5 {
			t.Fatalf("%d marks and %d truths, want 5 each: %v", len(marks), len(truth), marks)
		}
		for i, m := range marks {
			if m.Stage != truth[i].Stage || !m.Contains(truth[i].Earliest) {
				t.Errorf("%v does not contain the truth, %v", m, truth[i])
			}
			if m.Width() > refresh+2*s.Period {
				t.Errorf("%v is wider than the readings and the refresh demand", m)
			}
		}
	})
}
