package emulator_test

import (
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/timeline"
)

// viewer collects what a device tells of its light.
type viewer struct {
	mu   sync.Mutex
	seen []emulator.LightChange
	stop func()
}

func watch(t testing.TB, d *emulator.Device) *viewer {
	t.Helper()
	v := &viewer{}
	v.stop = d.WatchLight(func(c emulator.LightChange) {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.seen = append(v.seen, c)
	})
	t.Cleanup(v.stop)
	return v
}

// take returns what was told since the last take: port, whether lit, where from,
// operation, and when in virtual time since begun.
func (v *viewer) take(begun int64) (got []string) {
	synctest.Wait()
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, c := range v.seen {
		got = append(got, fmt.Sprintf("%d %v from %d op %d at %v", c.Port, c.Lit(), c.From, c.Operation, time.Duration(c.AtNS-begun)))
	}
	v.seen = nil
	return got
}

func wantSeen(t *testing.T, v *viewer, begun int64, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, v.take(begun)); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
}

func nowNS() int64 { return timeline.HostAxis().NS(time.Now()) }

func TestWatchLight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDevice(t, exact("4x4"), emulator.Options{})
		connect(t, d, "1>5") // settles after 20 ms, two at once after 40
		time.Sleep(100 * time.Millisecond)
		begun := nowNS()
		v := watch(t, d)
		wantSeen(t, v, begun, "5 true from 1 op 1 at 0s")

		connect(t, d, "1>6") // moves: dark at once, light when settled
		time.Sleep(20*time.Millisecond - 1)
		wantSeen(t, v, begun, "5 false from 0 op 2 at 0s")
		time.Sleep(time.Nanosecond)
		wantSeen(t, v, begun, "6 true from 1 op 2 at 20ms")

		if err := d.SetShutters(true, 1); err != nil {
			t.Fatal(err)
		}
		if err := d.SetShutters(false, 1); err != nil {
			t.Fatal(err)
		}
		wantSeen(t, v, begun, "6 false from 1 op 2 at 20ms", "6 true from 1 op 2 at 20ms")

		connect(t, d, "2>7,3>8") // the second is given up before its light has come
		time.Sleep(30 * time.Millisecond)
		if _, err := d.Disconnect(8); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		wantSeen(t, v, begun, "8 false from 0 op 4 at 50ms", "7 true from 2 op 3 at 60ms")

		if err := d.SetInput(2, -10); err != nil { // weaker, still light
			t.Fatal(err)
		}
		synctest.Wait()
		if c := v.seen[0]; c.Port != 7 || !c.Lit() || math.Abs(float64(c.Power)+11.5) > 2 {
			t.Errorf("weaker light: %+v", c)
		}
	})
}

// TestWatchLight_Late begins to watch while light is on its way, with and without
// somebody who watches already.
func TestWatchLight_Late(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDevice(t, exact("4x4"), emulator.Options{})
		begun := nowNS()
		connect(t, d, "1>5")
		time.Sleep(10 * time.Millisecond)
		first := watch(t, d)
		second := watch(t, d)
		time.Sleep(time.Second)
		for _, v := range []*viewer{first, second} {
			wantSeen(t, v, begun, "5 true from 1 op 1 at 20ms")
		}
	})
}

// TestWatchLight_Stop: after stop nothing is told, others are, and a device that
// nobody watches has no timers: time stands still once nothing else waits.
func TestWatchLight_Stop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDevice(t, exact("4x4"), emulator.Options{})
		begun := nowNS()
		one, two := watch(t, d), watch(t, d)
		connect(t, d, "1>5")
		one.stop()
		one.stop()
		time.Sleep(time.Second)
		wantSeen(t, one, begun)
		wantSeen(t, two, begun, "5 true from 1 op 1 at 20ms")
		connect(t, d, "1>6")
		synctest.Wait()
		two.stop()
		time.Sleep(time.Second)
		three := watch(t, d)
		wantSeen(t, two, begun, "5 false from 0 op 2 at 1s")
		wantSeen(t, three, begun, "6 true from 1 op 2 at 2s")
	})
}

// TestWatchLight_StopWaits: when stop returns, the function does not run.
func TestWatchLight_StopWaits(t *testing.T) {
	d := newDevice(t, exact("4x4"), emulator.Options{})
	connect(t, d, "1>5")
	var running atomic.Bool
	in, out := make(chan struct{}), make(chan struct{})
	stop := d.WatchLight(func(emulator.LightChange) {
		running.Store(true)
		close(in)
		<-out
		running.Store(false)
	})
	<-in // soon: the path settles in 20 ms
	stopped := make(chan struct{})
	go func() { stop(); close(stopped) }()
	select {
	case <-stopped:
		t.Error("stop did not wait")
	case <-time.After(10 * time.Millisecond):
	}
	close(out)
	<-stopped
	if running.Load() {
		t.Error("stop returned while the function ran")
	}
}

// TestWatchLight_Calls: the function may use the device.
func TestWatchLight_Calls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDevice(t, exact("4x4"), emulator.Options{})
		n := 0
		stop := d.WatchLight(func(c emulator.LightChange) {
			if n++; n < 4 {
				if err := d.SetShutters(c.Lit(), 1); err != nil {
					t.Error(err)
				}
			}
		})
		defer stop()
		connect(t, d, "1>5")
		time.Sleep(time.Second)
		stop()
		if n != 4 {
			t.Errorf("told %d times, want 4", n)
		}
	})
}

// TestWatchLight_IsTruth: whoever watches sees what the truth log says, also where two
// things happen at the same instant, and never before it happens.
func TestWatchLight_IsTruth(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		type move struct {
			Kind, In, Out int
			Pause         time.Duration
		}
		moves := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) move {
			return move{
				rapid.IntRange(0, 3).Draw(t, "kind"), rapid.IntRange(1, 3).Draw(t, "in"), rapid.IntRange(4, 6).Draw(t, "out"),
				20 * time.Millisecond * time.Duration(rapid.IntRange(0, 2).Draw(t, "pause")), // when light is due
			}
		}), 1, 30).Draw(rt, "moves")
		var bad string
		synctest.Test(t, func(t *testing.T) {
			d := newDevice(t, exact("3x3"), emulator.Options{Name: "s"})
			var got []string
			lit := map[ocs.Port]bool{}
			stop := d.WatchLight(func(c emulator.LightChange) {
				if c.AtNS > nowNS() {
					bad = fmt.Sprintf("%+v told %v before", c, time.Duration(c.AtNS-nowNS()))
				}
				if lit[c.Port] != c.Lit() {
					lit[c.Port] = c.Lit()
					got = append(got, fmt.Sprintf("s/%d %v %d %d", c.Port, c.Lit(), c.AtNS, c.Operation))
				}
			})
			for _, m := range moves {
				switch m.Kind {
				case 0, 1:
					connect(t, d, fmt.Sprintf("%d>%d", m.In, m.Out))
				case 2:
					if _, err := d.Disconnect(ocs.Port(m.In)); err != nil {
						t.Fatal(err)
					}
				case 3:
					if err := d.SetShutters(!d.ShutterClosed(ocs.Port(m.In)), ocs.Port(m.In)); err != nil {
						t.Fatal(err)
					}
				}
				time.Sleep(m.Pause)
			}
			time.Sleep(time.Second)
			stop()
			// By port: light that comes at several at once has no order.
			byPort := func(all []string) map[string][]string {
				ports := map[string][]string{}
				for _, s := range all {
					ports[s[:3]] = append(ports[s[:3]], s)
				}
				return ports
			}
			var want []string
			marks, _ := d.Truth(0)
			for _, m := range marks {
				want = append(want, fmt.Sprintf("%s %v %d %d", m.Subject, m.Stage == timeline.Light, m.Earliest, m.Reconfiguration))
			}
			if diff := cmp.Diff(byPort(want), byPort(got)); diff != "" {
				bad = diff
			}
		})
		if bad != "" {
			rt.Fatal(bad)
		}
	})
}

// TestDevice_DeliverLight: when it returns, all that has happened to the light has been told, no
// matter when goroutines and timers run.
func TestDevice_DeliverLight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDevice(t, exact("4x4"), emulator.Options{})
		var lit atomic.Bool
		stop := d.WatchLight(func(c emulator.LightChange) {
			if c.Port == 5 {
				lit.Store(c.Lit())
			}
		})
		defer stop()
		for range 100 {
			connect(t, d, "1>5")
			time.Sleep(20 * time.Millisecond) // until it has settled, as does the timer
			if d.DeliverLight(); !lit.Load() {
				t.Fatal("the light has come and was not told")
			}
			if err := d.SetShutters(true, 1); err != nil {
				t.Fatal(err)
			}
			if d.DeliverLight(); lit.Load() {
				t.Fatal("the light has gone and was not told")
			}
			if err := d.SetShutters(false, 1); err != nil {
				t.Fatal(err)
			}
			time.Sleep(100 * time.Millisecond)
			d.Edit(nil, emulator.Edit{Only: true})
			d.DeliverLight()
		}
	})
}
