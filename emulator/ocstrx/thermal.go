package ocstrx

import (
	"math"
	"math/bits"
	"time"

	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// heaters are all the heaters of a chip, two to an element, and the heat that has come to
// the arms. Heat is counted in radians: what it adds to the phase of its own arm.
//
// Heat follows the power of a heater with two poles. What the controller sets is constant
// or, from the lead network, a constant and one exponential; so heat between two events is
// a sum of a constant and three exponentials, and is known for any time without stepping.
// Where the lead network meets the end of the converter's range there is an event of its
// own, at a time that is known in advance.
//
// Two simplifications: the resistance of a heater follows its temperature as though that
// were already what the drive leads to; and within an exponential of the lead network phase
// is linear in V². Both are off by less than a milliradian.
type heaters struct {
	own  [ocst.Elements]float64                // heat of arm A less that of arm B
	heat [ocst.Elements + 2*ocst.Reach]float64 // of both; element 0 is at ocst.Reach

	at     time.Duration // to which own and heat belong
	moving uint64        // elements that still change

	elements [ocst.Elements]thermal
	lead     leadNetwork
	bend     float64 // heat h takes power as h·(1 + bend·h): the resistance rises with it
	steady   float64 // mW when all has settled, at the reference temperature
}

// leadNetwork is the controller's filter in front of its converters. With the response
// (1-w)/(1+sτ) + w/(1+sτs) = (1+sτz)/((1+sτ)(1+sτs)), τz = (1-w)τs + wτ, it is
// (1+sτs)/(1+sτz): a step is followed by itself and an exponential of gain τs/τz - 1, and
// heat follows the step with τ alone.
type leadNetwork struct {
	rate float64 // 1/τz in 1/ns
	gain float64
	memo struct {
		age   time.Duration
		value float64
	}
}

// decay is what an exponential of the network has fallen to.
func (n *leadNetwork) decay(age time.Duration) float64 {
	if age != n.memo.age {
		n.memo.age, n.memo.value = age, math.Exp(-float64(age)*n.rate)
	}
	return n.memo.value
}

// thermal is one element: what its heaters are asked for, and how heat responds.
type thermal struct {
	from, until time.Duration // the present segment; until is its end, or endless
	fast, slow  float64       // rates of the poles, 1/ns
	own, heat   response
	arms        [2]heater
	lag         float64 // of the lead network at from: V² of arm A, negative of arm B
	weight      float64 // of the slow pole
	kFast       float64 // gain of the fast pole at the rate of the lead network
	kSlow       float64
}

// response is a constant and three exponentials, at the rates of the lead network, the fast
// and the slow pole.
type response struct{ c, lead, fast, slow float64 }

func (r *response) at(lead, fast, slow float64) float64 {
	return r.c + r.lead*lead + r.fast*fast + r.slow*slow
}

// heater is one arm of an element.
type heater struct {
	gain        float64 // radians per V², cold
	mwPerRadian float64
	ohm         float64 // cold, at the reference temperature
	broken      breakage

	asked float64 // V², without the lead network
	// Heat through the fast and the slow pole at the begin of the segment, and what drives
	// both since: c0 + c1·exp(-x/τz).
	fast, slow float64
	c0, c1     float64
}

type breakage uint8

const (
	intact breakage = iota
	open
	short
)

const (
	endless = time.Duration(math.MaxInt64)
	// settled is after how many time constants an exponential is nothing: less than the
	// resolution of a float64.
	settled = 40
	fullV2  = ocst.DACFull * ocst.DACFull
)

// radians is the heat that V² leads to.
func (h *heater) radians(v2, bend float64) float64 {
	if h.broken != intact || v2 <= 0 {
		return 0
	}
	q := h.gain * v2
	return 2 * q / (1 + math.Sqrt(1+4*bend*q))
}

// advance brings own and heat to a time.
func (hs *heaters) advance(at time.Duration) {
	if at == hs.at {
		return
	}
	hs.at = at
	for m := hs.moving; m != 0; m &= m - 1 {
		hs.update(bits.TrailingZeros64(m), at)
	}
}

func (hs *heaters) update(i int, at time.Duration) {
	e := &hs.elements[i]
	for e.until <= at {
		hs.begin(e, e.until)
	}
	age := at - e.from
	x := float64(age)
	if x*e.slow > settled && e.until == endless {
		hs.moving &^= 1 << i
		hs.own[i], hs.heat[i+ocst.Reach] = e.own.c, e.heat.c
		return
	}
	lead, fast, slow := hs.decays(e, age)
	hs.own[i] = e.own.at(lead, fast, slow)
	hs.heat[i+ocst.Reach] = e.heat.at(lead, fast, slow)
}

func (hs *heaters) decays(e *thermal, age time.Duration) (lead, fast, slow float64) {
	x := float64(age)
	if y := x * e.fast; y < settled {
		fast = math.Exp(-y)
	}
	return hs.lead.decay(age), fast, math.Exp(-x * e.slow)
}

// set changes the voltage of an arm. With lead, the change goes through the lead network;
// without, the network of the element is switched off.
func (hs *heaters) set(at time.Duration, i, arm int, volts float64, lead bool) {
	e := &hs.elements[i]
	h := &e.arms[arm]
	v2 := volts * volts
	if v2 == h.asked && (lead || e.lag == 0) {
		return
	}
	for e.until <= at {
		hs.begin(e, e.until)
	}
	hs.rest(e, at)
	change := v2 - h.asked
	if arm == 1 {
		change = -change
	}
	if lead {
		e.lag += hs.lead.gain * change
	} else {
		e.lag = 0
	}
	before := h.power(hs.bend)
	h.asked = v2
	hs.steady += h.power(hs.bend) - before
	hs.replan(i, at)
}

// power is what a heater draws when settled, in mW.
func (h *heater) power(bend float64) float64 {
	if h.broken == short {
		volts := math.Sqrt(h.asked)
		return volts * shorted(volts) * 1000
	}
	return h.radians(h.asked, bend) * h.mwPerRadian
}

// replan begins a segment of an element after its drives, or what it is, have changed.
func (hs *heaters) replan(i int, at time.Duration) {
	e := &hs.elements[i]
	hs.rest(e, at)
	hs.plan(e)
	hs.moving |= 1 << i
	if at == hs.at {
		hs.update(i, at)
	}
}

// begin ends the present segment of an element and begins the next.
func (hs *heaters) begin(e *thermal, at time.Duration) {
	hs.rest(e, at)
	hs.plan(e)
}

// rest moves the begin of the segment to a time within it: the states of the poles and the
// lead network are what they are then. A new plan must follow.
func (hs *heaters) rest(e *thermal, at time.Duration) {
	if at == e.from {
		return
	}
	lead, fast, slow := hs.decays(e, at-e.from)
	for a := range e.arms {
		h := &e.arms[a]
		f, s := e.kFast*h.c1, e.kSlow*h.c1
		h.fast = h.c0 + f*lead + (h.fast-h.c0-f)*fast
		h.slow = h.c0 + s*lead + (h.slow-h.c0-s)*slow
	}
	e.lag *= lead
	e.from = at
}

// plan finds what drives both arms from e.from on, and until when. The lead network may ask
// an arm for less than nothing: then the other arm is heated instead, so that a fall is as
// quick as a rise. It ends at the converter's range.
func (hs *heaters) plan(e *thermal) {
	to, from := &e.arms[0], &e.arms[1] // the network moves V² to one arm from the other
	lag := e.lag
	if lag < 0 {
		to, from, lag = from, to, -lag
	}
	var end float64 // the lag at which the segment ends
	switch clipped := from.asked + fullV2 - to.asked; {
	case lag > clipped:
		to.c0, to.c1 = to.radians(fullV2, hs.bend), 0
		from.c0, from.c1 = 0, 0
		end = clipped
	case lag > from.asked:
		begin, rest := to.radians(to.asked+lag-from.asked, hs.bend), to.radians(to.asked, hs.bend)
		slope := (begin - rest) / (lag - from.asked)
		to.c0, to.c1 = rest-slope*from.asked, slope*lag
		from.c0, from.c1 = 0, 0
		end = from.asked
	default:
		to.c0, to.c1 = to.radians(to.asked, hs.bend), 0
		from.c0 = from.radians(from.asked, hs.bend)
		from.c1 = from.radians(from.asked-lag, hs.bend) - from.c0
	}
	e.until = endless
	if end > 0 {
		e.until = e.from + max(1, time.Duration(math.Ceil(math.Log(lag/end)/hs.lead.rate)))
	}
	a, b := e.response(0), e.response(1)
	e.own = response{a.c - b.c, a.lead - b.lead, a.fast - b.fast, a.slow - b.slow}
	e.heat = response{a.c + b.c, a.lead + b.lead, a.fast + b.fast, a.slow + b.slow}
}

// response is the heat of an arm in the present segment.
func (e *thermal) response(arm int) response {
	h := &e.arms[arm]
	f, s := e.kFast*h.c1, e.kSlow*h.c1
	return response{
		c:    h.c0,
		lead: (1-e.weight)*f + e.weight*s,
		fast: (1 - e.weight) * (h.fast - h.c0 - f),
		slow: e.weight * (h.slow - h.c0 - s),
	}
}

// input is what drives an arm at a time in the present segment, in radians.
func (hs *heaters) input(i, arm int, at time.Duration) float64 {
	e := &hs.elements[i]
	return e.arms[arm].c0 + e.arms[arm].c1*hs.lead.decay(at-e.from)
}

// power is that of all heaters, in mW at the reference temperature. The heaters must have
// been brought to that time.
func (hs *heaters) power(at time.Duration) (mw float64) {
	for i := range hs.elements {
		for arm := range 2 {
			h := &hs.elements[i].arms[arm]
			if h.broken == short {
				mw += h.power(hs.bend)
			} else {
				mw += hs.input(i, arm, at) * h.mwPerRadian
			}
		}
	}
	return mw
}

// band holds the coupling of one element to its neighbours, ocst.Reach before and behind.
type band [2*ocst.Reach + 1]float64

// of is the phase that an element gains from the heat of its neighbours. It is asked twice
// for each lane and step of a settle loop: four sums side by side take half the time of one.
func (b *band) of(heat *[ocst.Elements + 2*ocst.Reach]float64, e int) float64 {
	h := (*[len(b)]float64)(heat[e:])
	return (b[0]*h[0] + b[1]*h[1] + b[2]*h[2]) + (b[3]*h[3] + b[4]*h[4] + b[5]*h[5]) +
		((b[7]*h[7] + b[8]*h[8] + b[9]*h[9]) + (b[10]*h[10] + b[11]*h[11] + b[12]*h[12]))
}
