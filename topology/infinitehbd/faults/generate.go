package faults

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
)

// GenerateOptions of [Generate]. Zero values are those of the published sample.
type GenerateOptions struct {
	Servers int     // 0: 400
	Days    float64 // 0: 349
	// PerYear is how often a server fails in a year of 365 days on average; 0: 1.54.
	PerYear float64
	Seed    uint64
}

// What the published sample is like: 584 faults of 400 servers in 345 days.
const (
	sampleServers = 400
	sampleDays    = 349
	sampleRate    = 584.0 / 400 / 345.08 * 365
	// sampleShape is that of the gamma distribution of rates: of a negative binomial with that mean which leaves
	// as many servers without a fault as the sample has.
	sampleShape = 0.89
)

// repairs are quantiles of the time to repair in the sample, days; between them its logarithm is interpolated, which
// makes a mean of 5.8 days of its 5.5. The shortest 2.4 % are of no length at all in the sample, and 0.0001 here.
var repairs = []struct{ share, days float64 }{
	{0, 1e-4}, {0.024, 1e-4}, {0.05, 0.0082}, {0.10, 0.0094}, {0.25, 0.0855}, {0.50, 0.85}, {0.75, 3.16}, {0.90, 13.0},
	{0.95, 30.9}, {0.99, 85}, {1, 131},
}

// Generate draws a trace that is like the published sample: each server fails at a rate of its own, drawn from a gamma
// distribution, at random times, and is repaired after a time drawn from that of the sample, or when the trace ends. The
// same options give the same trace. The error matches [ErrArgument].
func Generate(opt GenerateOptions) (*Trace, error) {
	opt.Servers = cmp.Or(opt.Servers, sampleServers)
	opt.Days = cmp.Or(opt.Days, sampleDays)
	opt.PerYear = cmp.Or(opt.PerYear, sampleRate)
	const most = 100_000
	switch {
	case opt.Servers < 1 || opt.Servers > most:
		return nil, fmt.Errorf("%w: a trace of %d servers: want 1 to %d", ErrArgument, opt.Servers, most)
	case !(opt.Days > 0 && opt.Days <= most):
		return nil, fmt.Errorf("%w: a trace of %g days: want more than 0, and up to %d", ErrArgument, opt.Days, most)
	case !(opt.PerYear > 0 && opt.PerYear <= 1000):
		return nil, fmt.Errorf("%w: %g faults of a server a year: want more than 0, and up to 1000", ErrArgument, opt.PerYear)
	}
	if n := float64(opt.Servers) * opt.Days / 365 * opt.PerYear; n > MostEvents/2 {
		return nil, fmt.Errorf("%w: a trace of about %.2g faults: want up to %d", ErrArgument, n, MostEvents/2)
	}
	rng := rand.New(rand.NewPCG(opt.Seed, 0x0c51ab))
	t := &Trace{End: opt.Days}
	for s := range opt.Servers {
		t.Names = append(t.Names, "server-"+strconv.Itoa(s+1))
		rate := gamma(rng, sampleShape) / sampleShape * opt.PerYear / 365
		for at := rng.ExpFloat64() / rate; at < opt.Days; at += rng.ExpFloat64() / rate {
			end := min(at+repair(rng.Float64()), opt.Days)
			t.Faults = append(t.Faults, Fault{Server: s, Start: at, End: end, Kind: Kind{"Generated", "Generated", "drawn at random"}})
			at = end // a server that is down does not fail
		}
	}
	t.sort()
	return t, nil
}

// repair returns the time to repair that a share of u of all faults is below.
func repair(u float64) float64 {
	for i := 1; ; i++ {
		lo, hi := repairs[i-1], repairs[i]
		if u <= hi.share || i == len(repairs)-1 {
			f := (u - lo.share) / (hi.share - lo.share)
			return math.Exp(math.Log(lo.days)*(1-f) + math.Log(hi.days)*f)
		}
	}
}

// gamma draws from the gamma distribution of a shape and scale 1 (Marsaglia and Tsang, "A simple method for generating gamma
// variables", 2000).
func gamma(rng *rand.Rand, shape float64) float64 {
	if shape < 1 {
		return gamma(rng, shape+1) * math.Pow(rng.Float64(), 1/shape)
	}
	d := shape - 1.0/3
	c := 1 / math.Sqrt(9*d)
	for {
		x := rng.NormFloat64()
		v := 1 + c*x
		if v <= 0 {
			continue
		}
		v *= v * v
		if u := rng.Float64(); math.Log(u) < x*x/2+d-d*v+d*math.Log(v) {
			return d * v
		}
	}
}
