package fabric

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	firmwarenotes "github.com/ocslab/ocslab/firmware-notes"
)

// fixed is firmware without chance: debounce 5, detect 2, train 8, carrier 1.
var fixed = firmwarenotes.Profile{
	Debounce: firmwarenotes.Span{Median: 5},
	Detect:   firmwarenotes.Span{Median: 2},
	Train:    firmwarenotes.Span{Median: 8},
	Carrier:  firmwarenotes.Span{Median: 1},
}

func machine(p firmwarenotes.Profile, seed uint64) *firmware {
	return newFirmware(p, rand.New(rand.NewPCG(seed, 0)))
}

// change is light that comes or goes.
type change struct {
	at  int64
	lit bool
}

func TestFirmware(t *testing.T) {
	burst := fixed
	burst.Burst = &firmwarenotes.Burst{Window: 40, Free: 1, Step: 10, Most: 15}
	for _, c := range []struct {
		name    string
		profile firmwarenotes.Profile
		light   []change
		want    []action // op is the number of the change
	}{
		{"comes", fixed, []change{{100, true}}, []action{{firmwareUp, 110, 1}, {carrierUp, 111, 1}}},
		{"goes", fixed, []change{{0, true}, {100, false}}, []action{{firmwareUp, 10, 1}, {carrierUp, 11, 1}, {loseLink, 105, 2}}},
		{"back within the debounce", fixed, []change{{0, true}, {100, false}, {104, true}}, []action{{firmwareUp, 10, 1}, {carrierUp, 11, 1}}},
		{
			"back when the debounce ends", fixed, []change{{0, true}, {100, false}, {105, true}},
			[]action{{firmwareUp, 10, 1}, {carrierUp, 11, 1}, {loseLink, 105, 2}, {firmwareUp, 115, 3}, {carrierUp, 116, 3}},
		},
		{"goes while detecting", fixed, []change{{0, true}, {1, false}, {3, true}}, []action{{firmwareUp, 13, 3}, {carrierUp, 14, 3}}},
		{"goes while training", fixed, []change{{0, true}, {9, false}, {20, true}}, []action{{firmwareUp, 30, 3}, {carrierUp, 31, 3}}},
		{"goes before the driver has told", fixed, []change{{0, true}, {10, false}}, []action{{firmwareUp, 10, 1}, {carrierUp, 11, 1}, {loseLink, 15, 2}}},
		{"said twice", fixed, []change{{0, true}, {1, true}, {50, false}, {51, false}}, []action{{firmwareUp, 10, 1}, {carrierUp, 11, 1}, {loseLink, 55, 3}}},
		{
			"burst", burst, []change{{0, true}, {11, false}, {17, true}, {28, false}, {34, true}, {80, false}, {150, true}},
			[]action{
				{firmwareUp, 10, 1}, {carrierUp, 11, 1}, {loseLink, 16, 2},
				{firmwareUp, 27, 3}, {carrierUp, 28, 3}, {loseLink, 33, 4},
				{firmwareUp, 54, 5}, {carrierUp, 55, 5}, {loseLink, 85, 6}, // one too many: 10 longer
				{firmwareUp, 160, 7}, {carrierUp, 161, 7},
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := machine(c.profile, 1)
			var got []action
			for i, l := range c.light {
				got = append(got, m.light(l.lit, l.at, i+1)...)
			}
			got = append(got, m.advance(1000)...)
			if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(action{})); diff != "" {
				t.Error(diff)
			}
			if m.due() != never {
				t.Errorf("due at %d, want never", m.due())
			}
		})
	}
}

// TestFirmware_NoDebounce: a link goes down before it would come up at the same
// moment.
func TestFirmware_NoDebounce(t *testing.T) {
	p := fixed
	p.Debounce = firmwarenotes.Span{}
	m := machine(p, 1)
	m.light(true, 0, 1)
	got := append(m.advance(10), m.light(false, 11, 2)...)
	want := []action{{firmwareUp, 10, 1}, {carrierUp, 11, 1}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(action{})); diff != "" {
		t.Error(diff)
	}
	if got := m.advance(11); len(got) != 1 || got[0].step != loseLink {
		t.Errorf("light lost: %v", got)
	}
}

// TestFirmware_EndOfTime: delays that do not fit are far away and no overflow.
func TestFirmware_EndOfTime(t *testing.T) {
	p := fixed
	p.Train = firmwarenotes.Span{Median: 1 << 62, Min: 1<<63 - 1}
	m := machine(p, 1)
	m.light(true, 1<<62, 1)
	if got := m.advance(never - 2); got != nil {
		t.Errorf("got %v", got)
	}
}

func drawSpan(t *rapid.T, what string) firmwarenotes.Span {
	low := time.Duration(rapid.IntRange(0, 20).Draw(t, what+" min"))
	high := low + time.Duration(rapid.IntRange(1, 20).Draw(t, what+" more"))
	return firmwarenotes.Span{Median: (low + high) / 2, Spread: (high - low) / 2, Min: low, Max: high}
}

func drawProfile(t *rapid.T) firmwarenotes.Profile {
	p := firmwarenotes.Profile{
		Debounce: drawSpan(t, "debounce"), Detect: drawSpan(t, "detect"),
		Train: drawSpan(t, "train"), Carrier: drawSpan(t, "carrier"),
	}
	if rapid.Bool().Draw(t, "burst") {
		p.Burst = &firmwarenotes.Burst{Window: 200, Free: rapid.IntRange(0, 3).Draw(t, "free"), Step: 10, Most: 35}
	}
	return p
}

// invariants of any run: light has changed as given, and these actions followed.
func invariants(t interface{ Fatalf(string, ...any) }, p firmwarenotes.Profile, light []change, actions []action) {
	// since returns when light became as it is at the instant before t.
	since := func(at int64) (int64, bool) {
		from, lit := int64(-never), false
		for _, l := range light {
			if l.at >= at {
				break
			}
			if l.lit != lit {
				from, lit = l.at, l.lit
			}
		}
		return from, lit
	}
	up, carrier, last := false, false, int64(-never)
	for _, a := range actions {
		if a.at < last {
			t.Fatalf("%v after something at %d", a, last)
		}
		last = a.at
		from, lit := since(a.at)
		switch a.step {
		case firmwareUp:
			if need := int64(p.Detect.Min + p.Train.Min); up || need > 0 && (!lit || a.at-from < need) {
				t.Fatalf("%v: was up %v, lit %v since %d", a, up, lit, from)
			}
			up = true
		case carrierUp:
			if carrier || !up {
				t.Fatalf("%v: carrier %v, firmware %v", a, carrier, up)
			}
			carrier = true
		case loseLink:
			if need := int64(p.Debounce.Min); !up || need > 0 && (lit || a.at-from < need) {
				t.Fatalf("%v: was up %v, lit %v since %d", a, up, lit, from)
			}
			up, carrier = false, false
		}
	}
	if n := len(light); n > 0 && (up != light[n-1].lit || carrier != light[n-1].lit) {
		t.Fatalf("in the end lit %v, but firmware %v, carrier %v", light[n-1].lit, up, carrier)
	}
}

func TestFirmware_Invariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, seed := drawProfile(t), rapid.Uint64().Draw(t, "seed")
		prompt, lazy := machine(p, seed), machine(p, seed)
		var light []change
		var got, late []action
		now := int64(0)
		for range rapid.IntRange(0, 30).Draw(t, "changes") {
			now += rapid.Int64Range(0, 60).Draw(t, "pause")
			lit := rapid.Bool().Draw(t, "lit")
			light = append(light, change{now, lit})
			for prompt.due() <= now { // as a timer that is never late
				got = append(got, prompt.advance(prompt.due())...)
			}
			got = append(got, prompt.light(lit, now, len(light))...)
			late = append(late, lazy.light(lit, now, len(light))...)
			if due := prompt.due(); due < now {
				t.Fatalf("at %d something is due at %d", now, due)
			}
		}
		got = append(got, prompt.advance(now+10000)...)
		late = append(late, lazy.advance(now+10000)...)
		invariants(t, p, light, got)
		if !slices.Equal(got, late) {
			t.Fatalf("lateness of the caller matters:\n%v\n%v", got, late)
		}
		if prompt.due() != never {
			t.Fatalf("never at rest: due %d", prompt.due())
		}
	})
}

// FuzzFirmware reads its input as changes of light, two bytes each: a pause, whose
// last bit is the light, and how late the machine is told.
func FuzzFirmware(f *testing.F) {
	f.Fuzz(func(t *testing.T, data []byte) {
		m := machine(fixed, 1)
		up, carrier := false, false
		take := func(actions []action) {
			for _, a := range actions {
				switch {
				case a.step == firmwareUp && !up:
					up = true
				case a.step == carrierUp && up && !carrier:
					carrier = true
				case a.step == loseLink && up:
					up, carrier = false, false
				default:
					t.Fatalf("%v with firmware %v, carrier %v", a, up, carrier)
				}
			}
		}
		now, lit := int64(0), false
		for ; len(data) >= 2; data = data[2:] {
			now += int64(data[0])
			lit = data[0]&1 == 1
			take(m.advance(now + int64(data[1]))) // told of what is due, but not yet of the light
			take(m.light(lit, now, 1))
		}
		take(m.advance(now + 1000))
		if up != lit || carrier != lit {
			t.Fatalf("lit %v, firmware %v, carrier %v", lit, up, carrier)
		}
	})
}
