package timeline

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// Sample is one reading of an optical power monitor. The interval runs from before
// the reading was asked for until after it was there.
type Sample struct {
	Interval
	PowerDBm float64 // -Inf is no light at all; NaN and +Inf are failed readings
}

// String shows power and time.
func (s Sample) String() string { return fmt.Sprintf("%.2f dBm at %s", s.PowerDBm, s.Interval) }

// Defaults of a [SettleRule].
const (
	DefaultWithin = 0.5 // dB
	DefaultDark   = 3.0 // dB
)

// weakest is the power in dBm below which a port counts as dark, however far it stands out of the dark:
// no receiver works there, and it may be light that strays.
const weakest = -45

// SettleRule says what counts as dark and what as settled. Zero or negative fields
// stand for the defaults; the default of Averaging is none.
type SettleRule struct {
	Within float64 // dB: settled is within this of the final power
	Dark   float64 // dB: dark is lower than this below the power before or, if that was dark, below the final power

	// Averaging is the time over which the monitor averages, plus how old a reading
	// may be when it is handed out: the true power crossed a level up to this long
	// before a reading shows it.
	Averaging time.Duration
}

// EdgeState says whether an [Edge] is known, and if not, why.
type EdgeState uint8

const (
	TooFewSamples EdgeState = iota // fewer than three usable samples
	Known                          // the edge lies in the interval
	NoDark                         // no sample is dark: nothing happened, or between two samples
	AlreadyDark                    // it was dark before the first sample
	NoLight                        // it is dark at the end
	NotSettled                     // the last three samples are not all within the rule
)

// String is a short reason for tables.
func (s EdgeState) String() string {
	switch s {
	case TooFewSamples:
		return "too few samples"
	case Known:
		return "known"
	case NoDark:
		return "never seen dark"
	case AlreadyDark:
		return "dark before the first sample"
	case NoLight:
		return "dark at the end"
	case NotSettled:
		return "not settled"
	}
	return fmt.Sprintf("EdgeState(%d)", uint8(s))
}

// Edge is one crossing of optical power, if it is known. The interval can be had only
// together with the answer to that. The zero Edge is unknown.
type Edge struct {
	at    Interval
	state EdgeState
}

// Interval returns when the power crossed. Unless known, it is the zero Interval.
func (e Edge) Interval() (at Interval, known bool) { return e.at, e.state == Known }

// State says whether the edge is known, and if not, why.
func (e Edge) State() EdgeState { return e.state }

// minSettled is how many samples at the end must agree before power has settled.
const minSettled = 3

// Edges finds when the light went and when it was back, from the samples of one
// monitor in order of time. The power before the change is given in dBm; math.Inf(-1)
// says that it was dark. Failed readings count as never taken.
//
// Dark is known when a sample is below the dark level and one before it is not: from
// Averaging before the start of the last sample that was not, to the end of the first
// that was. That holds the true crossing if the power fell once between those two.
//
// Light is known when after a dark sample the power settled: the first sample from
// which on all stay within rule.Within of the final power. It reaches from Averaging
// before the start of the sample before that one to its end, and never begins before
// dark does. That holds the true crossing if power rises into the band once; ringing
// that an average hides is not seen. The final power is the median of the last quarter
// of the samples, at least three; so sample for a third longer than settling takes. A
// final power below -45 dBm of a port that was dark is dark. A final power below the dark level
// of a lit port is dark, unless it is -45 dBm or more and
// higher by rule.Dark than the darkest sample: then another, weaker light has come. And a final
// power that does not stand out of the band that the dark samples are in is dark.
func Edges(before float64, samples []Sample, rule SettleRule) (dark, light Edge) {
	rule = rule.withDefaults()
	usable := make([]Sample, 0, len(samples))
	for _, s := range samples {
		if s.PowerDBm < math.Inf(1) { // also false for NaN
			usable = append(usable, s)
		}
	}
	wasDark := math.IsInf(before, -1)
	if wasDark {
		dark.state = AlreadyDark
	}
	if len(usable) < minSettled {
		return dark, light
	}

	final := finalPower(usable)
	reference := before
	if wasDark {
		reference = final
	}
	level := reference - rule.Dark
	firstDark := slices.IndexFunc(usable, func(s Sample) bool { return s.PowerDBm < level })
	switch {
	case wasDark:
	case firstDark < 0:
		dark.state = NoDark
	case firstDark == 0:
		dark.state = AlreadyDark
	default:
		dark = known(usable[firstDark-1], usable[firstDark], rule)
	}

	settled := len(usable)
	for settled > 0 && math.Abs(usable[settled-1].PowerDBm-final) <= rule.Within {
		settled--
	}
	switch {
	case math.IsInf(final, -1) || wasDark && final < weakest || final < level && (final < weakest || final-lowest(usable) < rule.Dark):
		light.state = NoLight
	case firstDark < 0:
		light.state = NoDark
	case len(usable)-settled < minSettled:
		light.state = NotSettled
	case settled <= firstDark:
		light.state = NoLight
	default:
		light = known(usable[settled-1], usable[settled], rule)
	}
	return dark, light
}

func (r SettleRule) withDefaults() SettleRule {
	if !(r.Within > 0) { // also for NaN
		r.Within = DefaultWithin
	}
	if !(r.Dark > 0) {
		r.Dark = DefaultDark
	}
	r.Averaging = max(r.Averaging, 0)
	return r
}

func lowest(samples []Sample) float64 {
	low := math.Inf(1)
	for _, s := range samples {
		low = min(low, s.PowerDBm)
	}
	return low
}

func finalPower(samples []Sample) float64 {
	last := samples[len(samples)-max(minSettled, len(samples)/4):]
	powers := make([]float64, len(last))
	for i, s := range last {
		powers[i] = s.PowerDBm
	}
	slices.Sort(powers)
	return powers[len(powers)/2]
}

// known is the edge between two readings. The later one bounds it without Averaging:
// an average below a level means that the power itself was below it at some time.
func known(last, next Sample, rule SettleRule) Edge {
	return Edge{Interval{sub(last.Earliest, int64(rule.Averaging)), next.Latest}, Known}
}
