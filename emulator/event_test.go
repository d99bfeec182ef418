package emulator_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/ocs"
)

// take returns the events that have come.
func take(s *emulator.Subscription) (es []string) {
	for {
		select {
		case e := <-s.C:
			es = append(es, fmt.Sprintf("%s/%s/%s", e.Severity, e.Condition, e.Text))
		default:
			return es
		}
	}
}

func wantEvents(t *testing.T, s *emulator.Subscription, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, take(s)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func setAlarm(t *testing.T, d *emulator.Device, kind emulator.AlarmType, a emulator.Alarm) {
	t.Helper()
	if err := d.SetAlarms(emulator.Forward, kind, map[ocs.Port]emulator.Alarm{5: a}); err != nil {
		t.Fatal(err)
	}
}

// litDevice holds 1>5 and has been at it for a while.
func litDevice(t *testing.T) (*emulator.Device, *emulator.Subscription) {
	d := newDevice(t, exact("4x4"), emulator.Options{Light: map[ocs.Port]ocs.DBm{1: 0}})
	connect(t, d, "1>5")
	time.Sleep(time.Second)
	s := d.Subscribe()
	t.Cleanup(s.Close)
	return d, s
}

var none = ocs.DBm(math.Inf(-1))

func TestDevice_AlarmSingle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, s := litDevice(t)
		setAlarm(t, d, emulator.LossOfSignal, emulator.Alarm{Mode: emulator.AlarmSingle, Edge: emulator.EdgeLow, Low: -30})
		d.SetInput(1, none)
		time.Sleep(9 * time.Millisecond)
		wantEvents(t, s) // not before the averaging time is over
		time.Sleep(time.Millisecond)
		synctest.Wait()
		wantEvents(t, s, "major/LOS/Port 5 power alarm: -60.00 dBm")
		if a := d.Alarm(emulator.Forward, 5, emulator.LossOfSignal); a.Mode != emulator.AlarmOff || !a.Triggered {
			t.Errorf("alarm=%+v, want off and triggered", a)
		}
		d.SetInput(1, 0)
		time.Sleep(time.Second)
		d.SetInput(1, none)
		time.Sleep(time.Second)
		wantEvents(t, s)
		d.ClearAlarms(emulator.Forward, 5, 6)
		if d.Alarm(emulator.Forward, 5, emulator.LossOfSignal).Triggered {
			t.Error("still triggered")
		}
	})
}

func TestDevice_AlarmContinuous(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, s := litDevice(t)
		setAlarm(t, d, emulator.LossOfSignal, emulator.Alarm{Mode: emulator.AlarmContinuous, Edge: emulator.EdgeHigh, High: 5})
		setAlarm(t, d, emulator.Degraded, emulator.Alarm{Mode: emulator.AlarmContinuous, Edge: emulator.EdgeLow, Low: -8})
		for _, level := range []ocs.DBm{-5, -20, -21, 0, 15, 16, 0} {
			d.SetInput(1, level)
			time.Sleep(time.Second)
		}
		loss := d.Power(1).Sub(d.Power(5))
		low, back, high := ocs.DBm(-20).Add(-loss), ocs.DBm(0).Add(-loss), ocs.DBm(15).Add(-loss)
		wantEvents(t, s,
			fmt.Sprintf("major/DEGRADED/Port 5 power alarm: %v", low),
			fmt.Sprintf("/DEGRADED/Port 5 power alarm cleared: %v", back),
			fmt.Sprintf("major/LOS/Port 5 power alarm: %v", high),
			fmt.Sprintf("/LOS/Port 5 power alarm cleared: %v", back))

		connect(t, d, "2>5") // a move to a port without light
		time.Sleep(time.Second)
		wantEvents(t, s, "/OXC/disconnected 1>5, connected 2>5", "major/DEGRADED/Port 5 power alarm: -60.00 dBm")
		setAlarm(t, d, emulator.Degraded, emulator.Alarm{Mode: emulator.AlarmContinuous, Edge: emulator.EdgeLow, Low: -8})
		connect(t, d, "1>5") // set while beyond: only the return is a crossing
		time.Sleep(time.Second)
		// The monitor has not quite caught up with the light, which is 0.5 dB
		// down when it has settled.
		if got := take(s); len(got) != 2 || !strings.HasPrefix(got[1], "/DEGRADED/Port 5 power alarm cleared: -") {
			t.Errorf("events %q", got)
		}
		if a := d.Alarm(emulator.Reverse, 5, emulator.Degraded); a.Mode != emulator.AlarmOff {
			t.Errorf("the reverse alarm is %+v", a)
		}
	})
}

// Ensure that a dip shorter than the averaging time that the monitor does not
// see raises no alarm.
func TestDevice_AlarmAveraging(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, s := litDevice(t)
		setAlarm(t, d, emulator.LossOfSignal, emulator.Alarm{Mode: emulator.AlarmContinuous, Edge: emulator.EdgeLow, Low: -30})
		d.SetShutters(true, 5)
		time.Sleep(5 * time.Millisecond)
		d.SetShutters(false, 5)
		time.Sleep(time.Second)
		wantEvents(t, s, "/PORT/Port 5 disabled", "/PORT/Port 5 enabled")
	})
}

func TestSubscription(t *testing.T) {
	d := newDevice(t, exact("4x4"), emulator.Options{})
	s, other := d.Subscribe(), d.Subscribe()
	for range 100 { // nobody reads
		d.SetShutters(true, 1)
		d.SetShutters(false, 1)
	}
	s.Close()
	s.Close()
	n := 0
	for range s.C {
		n++
	}
	if n == 0 || n > 100 {
		t.Errorf("%d events", n)
	}
	take(other)
	d.SetShutters(true, 1, 1, 2)
	wantEvents(t, other, "/PORT/Port 1 disabled", "/PORT/Port 2 disabled")
	other.Close()
}

func TestDevice_Flap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, _ := litDevice(t)
		f := emulator.Flap{Off: 100 * time.Millisecond, On: 500 * time.Millisecond, Cycles: 2}
		if err := d.StartFlap(1); !errors.Is(err, emulator.ErrNoFlap) {
			t.Errorf("StartFlap: error %v", err)
		}
		if err := d.SetFlap(f, 1, 2); err != nil {
			t.Fatal(err)
		}
		if got, ok := d.Flap(1); !ok || got != f {
			t.Errorf("Flap=%v, %v", got, ok)
		}
		from := len(stages(t, d))
		for range 3 { // the first two starts are overtaken by the next
			if err := d.StartFlap(1, 2); err != nil {
				t.Fatal(err)
			}
		}
		start := time.Now()
		time.Sleep(5 * time.Second)
		marks, _ := d.Truth(from)
		var got []string
		for _, m := range marks {
			got = append(got, fmt.Sprintf("%s %v", m.Stage, time.Duration(m.Earliest-marks[0].Earliest)))
		}
		want := []string{"dark 0s", "light 0s", "dark 0s", "light 0s", "dark 0s", "light 100ms", "dark 600ms", "light 700ms"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("from %v:\n%s", start, diff)
		}

		f.Cycles = 0 // until stopped
		d.SetFlap(f, 1)
		d.StartFlap(1)
		time.Sleep(time.Hour + 50*time.Millisecond)
		wantLit(t, d, 5, false)
		if d.ShutterClosed(1) {
			t.Error("the programme shows as a shutter that is closed")
		}
		d.StopFlap(1, 2)
		time.Sleep(20 * time.Millisecond)
		wantLit(t, d, 5, true)
		d.StartFlap(1)
		setBoot(t, d, ocs.BootDark)
		d.ResetMatrix(nil)
		n := len(stages(t, d))
		connect(t, d, "1>5")
		time.Sleep(time.Minute)
		if got := len(stages(t, d)) - n; got != 1 {
			t.Errorf("%d marks after a reset, want the light of the new circuit", got)
		}
		for _, bad := range []emulator.Flap{
			{Off: 9 * time.Millisecond, On: time.Second}, {Off: 11 * time.Second, On: time.Second},
			{Off: time.Second, On: 499 * time.Millisecond}, {Off: time.Second, On: 31 * time.Second},
			{Off: time.Second, On: time.Second, Cycles: -1},
		} {
			if err := d.SetFlap(bad, 1); err == nil {
				t.Errorf("%v is accepted", bad)
			}
		}
	})
}
