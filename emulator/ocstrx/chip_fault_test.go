package ocstrx

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

func mustFault(t *testing.T, s string) DeviceFault {
	t.Helper()
	f, err := ParseDeviceFault(s)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// A broken heater shows in its current, and gives no phase; its partner is as before.
func TestBrokenHeaters(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		fault  string
		lo, hi float64 // measured current of arm A, A
	}{{"heater-open:12.a", 0, 1e-4}, {"heater-short:12.a", 0.0395, 0.0405}} {
		c := newChip(DefaultParams(), 1)
		const e = 11
		c.setDirect(0, e, 0, 3)
		c.setDirect(0, e, 1, 2)
		at := time.Second
		before := heatOf(c, at, e)
		power := c.power(at)
		c.fault(at, mustFault(t, test.fault))
		// Heat that was there leaves as fast as it does.
		near(t, test.fault+": phase at once", heatOf(c, at, e), before, 1e-12)
		at += time.Second
		b := c.truth().Elements[e].Phase(1, dac(2))
		near(t, test.fault+": phase", heatOf(c, at, e), -b, 1e-3)
		if got := c.current(at, e, 0); got < test.lo || got > test.hi {
			t.Errorf("%s: the current is %g A", test.fault, got)
		}
		near(t, test.fault+": current of the other arm", c.current(at, e, 1), 2.0/400, 8e-4)
		if now := c.power(at); (now > power) != strings.HasPrefix(test.fault, "heater-short") {
			t.Errorf("%s: power goes from %.2f to %.2f W", test.fault, power, now)
		}
		near(t, test.fault+": power that the case has been told of", c.heaters.steady, c.heaters.power(at), 1e-6)
		c.setDirect(at, e, 0, 1)
		near(t, test.fault+": phase when driven", heatOf(c, at+time.Second, e), -b, 2e-3)
	}
}

func TestWeakHeater(t *testing.T) {
	t.Parallel()
	c := newChip(DefaultParams(), 1)
	before := c.truth().Elements[4]
	c.fault(0, mustFault(t, "weak-heater:5"))
	after := c.truth().Elements[4]
	for arm := range 2 {
		near(t, "power for π", after.PowerPi[arm], 1.8*before.PowerPi[arm], 1e-9)
		if p := after.Phase(arm, ocst.DACFull); p > math.Pi {
			t.Errorf("arm %d still reaches %.2f rad", arm, p)
		}
		near(t, "resistance", after.Resistance[arm], before.Resistance[arm], 1e-9)
	}
	if _, ok := after.Drive(math.Pi); ok {
		t.Error("an element with weak heaters still gains π")
	}
}

func TestStuckPhotodiode(t *testing.T) {
	t.Parallel()
	c := newChip(DefaultParams(), 1)
	c.light(0, 0xff)
	c.fault(0, mustFault(t, "stuck-pd:launched:3"))
	first := c.read(0)
	c.light(0, 0)
	later := c.read(0)
	if got := later[ocst.PDLaunched][2]; got != first[ocst.PDLaunched][2] || got < 15000 {
		t.Errorf("the stuck photodiode reads %d, then %d", first[ocst.PDLaunched][2], got)
	}
	if got := later[ocst.PDLaunched][3]; got > 300 {
		t.Errorf("its neighbour reads %d in the dark", got)
	}
}

// Swapped photodiodes are read in each other's place, with their own dark readings. To swap
// them again puts them right.
func TestSwappedTaps(t *testing.T) {
	t.Parallel()
	p := DefaultParams()
	p.Noise, p.Floor = 0, 0
	for _, s := range []string{"swapped-taps:out1:3:5", "swapped-taps:out1:3:out2:7"} {
		c := newChip(p, 1)
		c.light(0, 0b1010100)
		before := c.read(0)
		f := mustFault(t, s)
		c.fault(0, f)
		after := c.read(0)
		a, b := f.Diode, f.Other
		if before[a.Array][a.Lane] == before[b.Array][b.Lane] {
			t.Fatalf("%s: the two read the same before: choose another seed", s)
		}
		for array, lanes := range before {
			for lane, v := range lanes {
				want := v
				switch (Photodiode{array, lane}) {
				case a:
					want = before[b.Array][b.Lane]
				case b:
					want = before[a.Array][a.Lane]
				}
				if after[array][lane] != want {
					t.Errorf("%s: %v reads %d, want %d", s, Photodiode{array, lane}, after[array][lane], want)
				}
			}
		}
		c.fault(0, f)
		if c.read(0) != before {
			t.Errorf("%s twice is not as before", s)
		}
	}
}

func TestLightAndHeat(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		fault string
		db    float64
	}{{"laser-low", -10}, {"laser-step", -1}} {
		c := newChip(DefaultParams(), 1)
		c.light(0, 1)
		before := c.powers(0)
		c.fault(0, mustFault(t, test.fault))
		after := c.powers(0)
		for _, array := range []int{ocst.PDLaunched, ocst.PDLoopTap, ocst.PDOut1} {
			near(t, test.fault, toDB(after[array][0]/before[array][0]), test.db, 1e-9)
		}
	}
	c := newChip(DefaultParams(), 1)
	c.fault(0, mustFault(t, "hot"))
	near(t, "case temperature", c.temperature(time.Hour), 80+8.5*1.2, 1e-6)
}

func TestParseDeviceFault(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		in   string
		want DeviceFault
	}{
		{"heater-open:12", DeviceFault{Kind: HeaterOpen, Element: 11}},
		{"heater-open:1.a", DeviceFault{Kind: HeaterOpen, Arm: ArmA}},
		{"heater-short:36.b", DeviceFault{Kind: HeaterShort, Element: 35, Arm: ArmB}},
		{"weak-heater:9", DeviceFault{Kind: WeakHeater, Element: 8}},
		{"stuck-pd:rx-loop:8", DeviceFault{Kind: StuckPD, Diode: Photodiode{ocst.PDRxLoop, 7}}},
		{"swapped-taps:loop:1:2", DeviceFault{Kind: SwappedTaps, Diode: Photodiode{ocst.PDLoopTap, 0}, Other: Photodiode{ocst.PDLoopTap, 1}}},
		{"swapped-taps:out1:1:out2:1", DeviceFault{Kind: SwappedTaps, Other: Photodiode{ocst.PDOut2, 0}}},
		{"laser-low", DeviceFault{Kind: LaserLow}}, {"laser-step", DeviceFault{Kind: LaserStep}}, {"hot", DeviceFault{Kind: Hot}},
	} {
		got, err := ParseDeviceFault(test.in)
		if err != nil || got != test.want {
			t.Errorf("%q is %+v, %v; want %+v", test.in, got, err, test.want)
		}
		if got.String() != test.in {
			t.Errorf("%q is written as %q", test.in, got.String())
		}
	}
	for in, want := range map[string]string{
		"": "no such fault", "melted": "no such fault", "heater-open": "want ELEMENT", "heater-open:0": "from 1 to 36",
		"heater-open:37": "from 1 to 36", "heater-open:3.c": "ELEMENT.a", "heater-open:3.": "ELEMENT.a", "heater-open:+": "want ELEMENT",
		"stuck-pd:3": "want ARRAY:LANE", "stuck-pd:out3:1": "out1, out2, loop", "stuck-pd:out1:9": "from 1 to 8",
		"stuck-pd:out1:1:2": "too much", "swapped-taps:out1:1": "want ARRAY:LANE", "swapped-taps:out1:1:1": "with itself",
		"swapped-taps:out1:1:2:3": "too much", "hot:2": "takes nothing", "laser-low:": "takes nothing",
	} {
		if _, err := ParseDeviceFault(in); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: the error is %v, want one with %q", in, err, want)
		}
	}
}

// What is read and written again is the same fault; a chip survives any of them.
func FuzzParseDeviceFault(f *testing.F) {
	for _, s := range []string{"heater-open:12.a", "heater-short:3", "weak-heater:36", "stuck-pd:out1:8", "swapped-taps:rx1:1:launched:2", "laser-low", "hot", "heater-open:12.b.a", "swapped-taps:out1"} {
		f.Add(s)
	}
	c := newChip(DefaultParams(), 1)
	f.Fuzz(func(t *testing.T, s string) {
		got, err := ParseDeviceFault(s)
		if err != nil {
			return
		}
		again, err := ParseDeviceFault(got.String())
		if err != nil || again != got {
			t.Errorf("%q is %+v, and written as %v read as %+v, %v", s, got, got, again, err)
		}
		c.fault(0, got)
		c.read(0)
	})
}

// Faults that nobody could have parsed do nothing.
func TestFaultOutOfRange(t *testing.T) {
	t.Parallel()
	c := newChip(DefaultParams(), 1)
	before := c.truth()
	for _, f := range []DeviceFault{
		{}, {Kind: HeaterOpen, Element: -1}, {Kind: WeakHeater, Element: 36}, {Kind: StuckPD, Diode: Photodiode{7, 0}},
		{Kind: SwappedTaps, Diode: Photodiode{0, -1}}, {Kind: "melted"},
	} {
		c.fault(0, f)
		_ = f.String()
	}
	c.read(0)
	if c.truth() != before {
		t.Error("a fault that is none changes the chip")
	}
}
