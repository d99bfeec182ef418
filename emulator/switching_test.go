package emulator_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/timeline/dist"
)

// Ensure that a seed means the same device for good: what was drawn before there were
// modes and planted losses is drawn still.
func TestSeeds(t *testing.T) {
	want := []string{
		"1>65 25.739827ms -59.99 dBm", "2>66,3>67,4>68 25.506298ms -2.68 dBm",
		"1>66 25.125749ms -2.13 dBm", "5>69 25.040671ms -2.14 dBm",
	}
	synctest.Test(t, func(t *testing.T) {
		p, err := emulator.LoadPersonality("fast-mems-25ms")
		if err != nil {
			t.Fatal(err)
		}
		d := newDevice(t, p, emulator.Options{Name: "rail0", Seed: 7})
		var got []string
		for _, m := range []string{"1>65", "2>66,3>67,4>68", "1>66", "5>69"} {
			took := time.Until(connect(t, d, m).Settled)
			time.Sleep(time.Second)
			got = append(got, fmt.Sprintf("%s %v %v", m, took, d.Power(66)))
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	})
}

// took returns how long a command of the map m takes on a device where it is not.
func took(t *testing.T, d *emulator.Device, m string) time.Duration {
	t.Helper()
	if _, err := d.Disconnect(); err != nil {
		t.Fatal(err)
	}
	takes := time.Until(connect(t, d, m).Settled)
	time.Sleep(time.Second)
	return takes
}

// Ensure that times come from the modes in their shares, those of a path from its own, and
// are never below zero.
func TestSwitching_Modes(t *testing.T) {
	p := exact("8x8")
	p.Switching = emulator.Switching{
		Rise: time.Millisecond, Ack: emulator.AckAfter,
		Modes: dist.Mixture{{Share: 3, Median: 20 * time.Millisecond, Spread: time.Millisecond}, {Share: 1, Median: 90 * time.Millisecond}},
		Paths: []emulator.PathSwitching{
			{Path: emulator.Path{Ingress: 1, Egress: 9}, Modes: dist.Mixture{{Share: 1, Median: 300 * time.Millisecond}}},
			{Path: emulator.Path{Ingress: 2, Egress: 9}, Modes: dist.Mixture{{Share: 1, Spread: 10 * time.Millisecond}}},
		},
	}
	synctest.Test(t, func(t *testing.T) {
		d := newDevice(t, p, emulator.Options{Seed: 1})
		if s := d.Personality().Switching; s.Single != p.Switching.Modes.Quantile(0.5) || s.Bulk != s.Single {
			t.Errorf("single %v, bulk %v: want the median of the modes", s.Single, s.Bulk)
		}
		const n = 2000
		slow := 0
		for range n {
			switch takes := took(t, d, "3>11"); {
			case takes == 90*time.Millisecond:
				slow++
			case takes < 15*time.Millisecond || takes > 25*time.Millisecond:
				t.Fatalf("%v is in no mode", takes)
			}
		}
		if slow < n/4-60 || slow > n/4+60 { // three standard deviations
			t.Errorf("%d of %d are slow, want about a quarter", slow, n)
		}
		if takes := took(t, d, "1>9"); takes != 300*time.Millisecond {
			t.Errorf("1>9 takes %v, want 300ms, as it is said of this path", takes)
		}
		zero := 0
		for range 20 {
			takes := took(t, d, "2>9")
			if takes < 0 {
				t.Fatalf("takes %v", takes)
			}
			if takes == 0 {
				zero++
			}
		}
		if zero == 0 || zero == 20 {
			t.Errorf("%d of 20 take no time, want about half", zero)
		}
		// Of several the slowest counts, and each settles when it does.
		if takes := took(t, d, "1>9,3>11"); takes != 300*time.Millisecond {
			t.Errorf("1>9,3>11 take %v, want 300ms", takes)
		}
		marks, _ := d.Truth(0)
		light := map[string]int64{}
		for _, m := range marks {
			if m.Stage == "light" {
				light[m.Subject] = m.Latest
			}
		}
		if by := time.Duration(light["test/9"] - light["test/11"]); by < 200*time.Millisecond {
			t.Errorf("the light of the slow path came %v after that of the other one", by)
		}
	})
}

// Ensure that in a command with several cross-connects paths with modes take longer by what
// Bulk is longer than Single.
func TestSwitching_ModesInBulk(t *testing.T) {
	one := dist.Mixture{{Share: 1, Median: 30 * time.Millisecond}}
	for name, s := range map[string]emulator.Switching{
		"all":  {Modes: one, Bulk: 50 * time.Millisecond},
		"path": {Single: 30 * time.Millisecond, Bulk: 50 * time.Millisecond, Paths: []emulator.PathSwitching{{Path: emulator.Path{Ingress: 1, Egress: 9}, Modes: one}}},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := exact("8x8")
			p.Switching, p.Switching.Ack = s, emulator.AckAfter
			d := newDevice(t, p, emulator.Options{})
			for m, want := range map[string]time.Duration{"1>9": 30 * time.Millisecond, "1>9,2>10": 50 * time.Millisecond} {
				if got := took(t, d, m); got != want {
					t.Errorf("%s: %s takes %v, want %v", name, m, got, want)
				}
				if got := d.Personality().Switching.Median(parseMap(t, m).Len()); got != want {
					t.Errorf("%s: the median of %s is %v, want %v", name, m, got, want)
				}
			}
		})
	}
}

// A device keeps to its modes, whatever becomes of the personality that it was made from.
func TestSwitching_ModesAreItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := exact("4x4")
		p.Switching.Modes = dist.Mixture{{Share: 1, Median: 20 * time.Millisecond}}
		p.Switching.Paths = []emulator.PathSwitching{{Path: emulator.Path{Ingress: 1, Egress: 6}, Modes: dist.Mixture{{Share: 1, Median: 30 * time.Millisecond}}}}
		d := newDevice(t, p, emulator.Options{Name: "s"})
		p.Switching.Modes[0].Median, p.Switching.Paths[0].Modes[0].Median = time.Second, time.Second
		if got := took(t, d, "1>5"); got != 20*time.Millisecond {
			t.Errorf("1>5 took %v", got)
		}
		if got := took(t, d, "1>6"); got != 30*time.Millisecond {
			t.Errorf("1>6 took %v", got)
		}
	})
}

func TestParsePersonality_Modes(t *testing.T) {
	with := func(switching string) string {
		return "model: m\nvendor: v\nproduct: p\nfirmware: f\nsize: 4x4\noptics: {loss_db: 1, loss_max_db: 2}\nswitching: " + switching + "\n"
	}
	p, err := emulator.ParsePersonality("f", []byte(with("{modes: [{share: 0.7, median: 20ms, spread: 1ms}, {share: 0.3, median: 25ms}], paths: [{path: 1>6, modes: [{share: 1, median: 1s}]}]}")))
	if err != nil {
		t.Fatal(err)
	}
	if s := p.Switching; len(s.Modes) != 2 || s.Single < 20*time.Millisecond || s.Single > 25*time.Millisecond || s.Paths[0].Path.String() != "1>6" {
		t.Errorf("%+v", s)
	}
	for switching, want := range map[string]string{
		"{single: 1s, modes: [{share: 1, median: 1s}]}": `f:7:13: switching.single: modes say how long a cross-connect takes: remove this, or them`,
		"{jitter: 0s, modes: [{share: 1, median: 1s}]}": `switching.jitter`,
		"{bulk: 1s}":                                                `f:7:12: switching: how long a cross-connect takes is missing: want "single", or "modes"`,
		"{modes: []}":                                               "there are no modes",
		"{modes: [{share: 0, median: 1s}]}":                         "share of mode 1",
		"{modes: [{share: 1, median: 2h}]}":                         "more than 1h",
		"{modes: [{share: 1, median: 1s, spread: 2h}]}":             "mode 1 is more than 1h",
		"{modes: [{share: 1, median: 2000000h, spread: 2000000h}]}": "more than 1h",
		"{modes: [{share: 1e308, median: 1s}, {share: 1e308, median: 2s, spread: 100us}]}":                                  "too large to be added up",
		"{modes: [{share: 1, median: 20}]}":                                                                                 "has no unit",
		"{single: 1s, paths: [{path: 1>2, modes: [{share: 1, median: 1s}]}]}":                                               "1>2: port 2 is not an egress port",
		"{single: 1s, paths: [{path: 1, modes: [{share: 1, median: 1s}]}]}":                                                 "want INGRESS>EGRESS",
		"{single: 1s, paths: [{path: 1>5, modes: []}]}":                                                                     "no modes",
		"{single: 1s, paths: [{path: 1>5, modes: [{share: 1, median: 1s}]}, {path: 1>5, modes: [{share: 1, median: 1s}]}]}": "twice",
	} {
		if _, err := emulator.ParsePersonality("f", []byte(with(switching))); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", switching, err, want)
		}
	}
	var port *ocs.PortError
	p.Switching.Paths[0].Path.Egress = 99
	if _, err := emulator.New(p, emulator.Options{}); !errors.As(err, &port) {
		t.Errorf("a path that is not there: %v", err)
	}
}
