package mesh

import (
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// Ensure a heater takes its time, is at its goal to 1 % after that, and turns round in the middle of its way.
func TestDevice_Settles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const settling = time.Millisecond
		d, err := New(Options{Rows: 1, Columns: 3, Settling: settling})
		if err != nil {
			t.Fatal(err)
		}
		taps := []Tap{{Node: 0, Side: East, Wavelength: 1, Adds: true}, {Node: 2, Side: West, Wavelength: 1}}
		set := func(phase float64) {
			t.Helper()
			if err := d.Set(map[int]float64{1: phase}, taps); err != nil {
				t.Fatal(err)
			}
		}
		set(math.Pi)
		if p := d.Phases()[1]; p != 0 {
			t.Errorf("at once at %g", p)
		}
		if l := d.Light(); len(l) != 1 || math.Abs(l[0].Power-passes*(1-leak)) > 1e-9 {
			t.Errorf("straight on there is %+v", l)
		}
		time.Sleep(settling - time.Microsecond)
		if p := d.Phases()[1]; math.Pi-p <= Tolerance {
			t.Errorf("settled too early, at %g", p)
		}
		time.Sleep(2 * time.Microsecond)
		if p := d.Phases()[1]; math.Pi-p > Tolerance {
			t.Errorf("at %g when it should have settled", p)
		}
		time.Sleep(settling)
		if l := d.Light(); len(l) != 1 || math.Abs(l[0].Power-passes*leak) > 1e-6 {
			t.Errorf("in cross, %+v is left of it", l)
		}
		set(0)
		time.Sleep(settling / 10)
		middle := d.Phases()[1]
		set(math.Pi)
		if p := d.Phases()[1]; middle < 0.5 || middle > 3 || math.Abs(p-middle) > 1e-9 {
			t.Errorf("jumps from %g to %g", middle, p)
		}
	})
}

// Ensure no light comes from nothing, of whatever phases, faults and taps.
func TestDevice_Light(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows, columns := rapid.IntRange(1, 6).Draw(t, "rows"), rapid.IntRange(1, 6).Draw(t, "columns")
		d, err := New(Options{Rows: rows, Columns: columns})
		if err != nil {
			t.Fatal(err)
		}
		node := rapid.IntRange(0, rows*columns-1)
		for n := range rows * columns {
			if err := d.Stick(n, Fault{Phase: rapid.Float64Range(0, math.Pi).Draw(t, "phase")}); err != nil {
				t.Fatal(err)
			}
		}
		on := map[Tap]bool{}
		var taps []Tap
		for range rapid.IntRange(1, 8).Draw(t, "taps") {
			tap := Tap{node.Draw(t, "node"), Side(rapid.IntRange(0, 3).Draw(t, "side")), rapid.IntRange(1, 2).Draw(t, "wavelength"), rapid.Bool().Draw(t, "adds")}
			if !on[tap] {
				on[tap], taps = true, append(taps, tap)
			}
		}
		if err := d.Set(nil, taps); err != nil {
			t.Fatal(err)
		}
		sum := map[int]float64{}
		for _, r := range d.Light() {
			source, sink := taps[r.Source], taps[r.Sink]
			if !source.Adds || sink.Adds || source.Wavelength != sink.Wavelength || !(r.Power > 0) {
				t.Fatalf("light from %+v to %+v: %g mW", source, sink, r.Power)
			}
			sum[r.Source] += r.Power
		}
		for source, power := range sum {
			if power > 1+1e-9 {
				t.Fatalf("source %+v has 1 mW, and %g come out", taps[source], power)
			}
		}
	})
}

// Ensure a fault is told or hidden, and light follows what is.
func TestDevice_Stick(t *testing.T) {
	for _, unseen := range []bool{false, true} {
		d, err := New(Options{Rows: 1, Columns: 3})
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Set(nil, []Tap{{0, East, 1, true}, {2, West, 1, false}}); err != nil {
			t.Fatal(err)
		}
		if err := d.Stick(1, Fault{Phase: math.Pi, Unseen: unseen}); err != nil {
			t.Fatal(err)
		}
		if told := d.Phases()[1] == math.Pi; told == unseen {
			t.Errorf("unseen %v: it reads %g", unseen, d.Phases()[1])
		}
		if l := d.Light(); len(l) != 1 || l[0].Power > 2*leak {
			t.Errorf("unseen %v: light %+v", unseen, l)
		}
	}
}

// Ensure what cannot be is refused as a whole.
func TestDevice_Refuses(t *testing.T) {
	for _, opt := range []Options{{}, {Rows: -1, Columns: 5}, {Rows: 1 << 40, Columns: 1 << 40}, {Rows: 2, Columns: 2, Settling: -1}, {Rows: 2, Columns: 2, Settling: 2 * time.Hour}} {
		if _, err := New(opt); !errors.Is(err, ErrOptions) {
			t.Errorf("%+v: %v", opt, err)
		}
	}
	d, err := New(Options{Rows: 2, Columns: 2})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		phases map[int]float64
		taps   []Tap
	}{
		{map[int]float64{0: 1, 4: 1}, nil}, {map[int]float64{-1: 1}, nil}, {map[int]float64{0: 4}, nil}, {map[int]float64{0: math.NaN()}, nil},
		{map[int]float64{0: 1}, []Tap{{4, North, 1, true}}}, {map[int]float64{0: 1}, []Tap{{0, 4, 1, true}}},
		{map[int]float64{0: 1}, []Tap{{0, North, 0, true}}}, {map[int]float64{0: 1}, []Tap{{0, North, 1, true}, {0, North, 1, true}}},
	} {
		if err := d.Set(tt.phases, tt.taps); !errors.Is(err, ErrOrder) {
			t.Errorf("%+v: %v", tt, err)
		}
	}
	if err := d.Stick(4, Fault{}); !errors.Is(err, ErrOrder) {
		t.Error(err)
	}
	if len(d.Taps()) != 0 || d.Phases()[0] != 0 {
		t.Error("something was set all the same")
	}
}
