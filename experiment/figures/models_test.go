package figures

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// off is how far a is from b, as a part of b.
func off(a, b time.Duration) float64 { return math.Abs(float64(a-b)) / float64(b) }

// The archive of the Opus paper's measurements, in seconds by milliseconds of switching.
func TestWindowsAgainstArchive(t *testing.T) {
	const ms = time.Millisecond
	config2 := Windows{Base: 13973 * ms, Windows: []time.Duration{42 * ms, 42 * ms, 42 * ms, 42 * ms, 42 * ms, 940 * ms}}
	smoke := Windows{Base: 62241600 * time.Microsecond, Windows: []time.Duration{50 * ms, 1100 * time.Microsecond}}
	for _, tt := range []struct {
		name   string
		model  Windows
		delta  time.Duration
		step   float64
		within float64
	}{
		{"config 1", opusConfig1, 0, 10.222, 0},
		{"config 1, the noisy point", opusConfig1, 10 * ms, 10.3705, 0.0145},
		{"config 1", opusConfig1, 50 * ms, 10.3203, 0.008},
		{"config 1", opusConfig1, 100 * ms, 10.6142, 0.008},
		{"config 1", opusConfig1, 250 * ms, 11.2692, 0.008},
		{"config 1", opusConfig1, 500 * ms, 12.5570, 0.008},
		{"config 1", opusConfig1, 750 * ms, 13.9538, 0.00805},
		{"config 1", opusConfig1, 1000 * ms, 15.1215, 0.008},
		{"config 1", opusConfig1, 2000 * ms, 20.3465, 0.008},
		{"config 1", opusConfig1, 3000 * ms, 26.4348, 0.008},
		{"config 2", config2, 0, 13.973, 0},
		{"config 2", config2, 10 * ms, 13.986, 0.006},
		{"config 2", config2, 50 * ms, 14.093, 0.006},
		{"config 2", config2, 100 * ms, 14.308, 0.006},
		{"config 2", config2, 250 * ms, 15.027, 0.006},
		{"config 2", config2, 500 * ms, 16.173, 0.006},
		{"config 2", config2, 750 * ms, 17.593, 0.006},
		{"config 2", config2, 1000 * ms, 18.721, 0.006},
		{"smoke simulation", smoke, 1 * ms, 62.2415, 3e-6},
		{"smoke simulation", smoke, 10 * ms, 62.2505, 3e-6},
		{"smoke simulation", smoke, 50 * ms, 62.2905, 3e-6},
	} {
		want := time.Duration(tt.step * float64(time.Second))
		if got := tt.model.Step(tt.delta); off(got, want) > tt.within {
			t.Errorf("%s at %v: a step of %v, archived %v: %.2f %% off", tt.name, tt.delta, got, want, 100*off(got, want))
		}
	}
	for delta, step := range map[time.Duration]float64{1 * ms: 62.2436, 10 * ms: 62.2616, 50 * ms: 62.3416} {
		if got := smoke.Demand(delta); off(got, time.Duration(step*float64(time.Second))) > 1e-9 {
			t.Errorf("on demand at %v: a step of %v, archived %g s", delta, got, step)
		}
	}
	// The table that the figure shows is the same.
	for _, a := range opusArchive {
		if off(opusConfig1.Step(a.Delay), a.Step) > 0.0145 {
			t.Errorf("archive at %v: %v, the model says %v", a.Delay, a.Step, opusConfig1.Step(a.Delay))
		}
	}
}

func TestWindowsOverhead(t *testing.T) {
	w := Windows{Base: time.Second, Windows: []time.Duration{10, 100}, Overhead: 20}
	if got := w.Step(30); got != time.Second+40 {
		t.Errorf("a step of %v, want 1 s and 40 ns", got)
	}
	if got := w.Demand(30); got != time.Second+100 {
		t.Errorf("on demand %v, want 1 s and 100 ns", got)
	}
}

func stalls(t *rapid.T) Stall {
	return Stall{
		Step:   time.Duration(rapid.IntRange(1, 5000).Draw(t, "step")) * time.Millisecond,
		Share:  rapid.Float64Range(0, 1).Draw(t, "share"),
		Outage: time.Duration(rapid.IntRange(0, 12000).Draw(t, "outage")) * time.Millisecond,
	}
}

// The closed form, and what goes from event to event, say the same.
func TestStallEventsAgainstClosedForm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := stalls(t)
		if rapid.Bool().Draw(t, "slots") {
			s.Resume = func(away time.Duration) time.Duration { // the next whole second
				return (away + time.Second - 1).Truncate(time.Second)
			}
		}
		period := s.Outage + 2*s.Step + time.Second + time.Duration(rapid.IntRange(1, 60000).Draw(t, "more"))*time.Millisecond
		want, ok := s.Average(period)
		if !ok {
			t.Fatalf("an outage of %v in %v leaves time to work", s.Outage, period)
		}
		const outages = 1000
		got := s.Simulate(period, outages, rapid.Uint64().Draw(t, "seed"))
		// What an outage costs varies by at most the outage (and a second) in each of 1000.
		lost, found := lostPerEvent(s.Step, want, period), lostPerEvent(s.Step, got, period)
		spread := float64(min(s.Outage, s.Step)+time.Second) / math.Sqrt(outages)
		if miss := math.Abs(float64(found - lost)); miss > 6*spread+float64(s.Step)/outages*4+float64(10*time.Microsecond) {
			t.Fatalf("every %v: event by event %v (%v lost), closed form %v (%v lost)", period, got, found, want, lost)
		}
	})
}

// With Resume the integral is done in slices; without, in closed form.
func TestStallIntegral(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := stalls(t)
		exact := s.Lost()
		s.Resume = func(away time.Duration) time.Duration { return away }
		if got := s.Lost(); math.Abs(float64(got-exact)) > 10e3+1e-6*float64(exact) {
			t.Fatalf("the integral is %v, the closed form %v", got, exact)
		}
	})
}

func TestStallBounds(t *testing.T) {
	s := Stall{Step: time.Second, Share: 1, Outage: 3 * time.Second}
	if got := s.Lost(); got != 3*time.Second {
		t.Errorf("all communication: %v lost of an outage of 3 s", got)
	}
	s.Share = 0
	// One that lasts longer than the computation holds up what follows, though it has no length.
	if got := s.Lost(); got != 2500*time.Millisecond {
		t.Errorf("no communication: %v lost, want 3 s less the half of a step", got)
	}
	s.Outage = 0
	if got := s.Lost(); got != 0 {
		t.Errorf("no outage: %v lost", got)
	}
	s = Stall{Step: time.Second, Share: 0.5, Outage: 100 * time.Millisecond}
	if got := s.Lost(); got != 55*time.Millisecond { // 0.5*100 + 0.5*(100*100/2)/500 = 50 + 5
		t.Errorf("%v lost, want 55 ms", got)
	}
	if _, ok := (Stall{Step: time.Second, Share: 1, Outage: time.Minute}).Average(30 * time.Second); ok {
		t.Error("an outage of a minute every 30 s leaves no time to work")
	}
	// Outages without an end to them do not keep the simulation from one.
	if got := (Stall{Step: time.Second, Share: 1, Outage: time.Minute}).Simulate(30*time.Second, 10, 1); got < time.Minute {
		t.Errorf("a step of %v", got)
	}
}

// What the paper's table says is lost in each period, by arithmetic.
func TestLostPerEvent(t *testing.T) {
	for _, p := range crossWiringTable {
		want := map[time.Duration]float64{30 * time.Second: 1.848, 60 * time.Second: 0.528, 90 * time.Second: 0.0163}[p.Period]
		if got := lostPerEvent(crossWiringStep, p.Step, p.Period).Seconds(); math.Abs(got-want) > 0.001 {
			t.Errorf("every %v: %.4f s lost, want %.4f", p.Period, got, want)
		}
	}
}
