package fabric

import (
	"math"
	"math/rand/v2"
	"slices"

	firmwarenotes "github.com/ocslab/ocslab/firmware-notes"
)

// never is later than any time on an axis.
const never = math.MaxInt64

// firmware is what a NIC makes of the light that it receives. It has no clock:
// light and advance are told the time, due says when advance is wanted next, and
// what follows comes back as actions. Times are nanoseconds on the host's axis, and
// each is counted from the one before it and not from when the machine was
// told, so lateness of the caller does not add up.
type firmware struct {
	profile firmwarenotes.Profile
	rand    *rand.Rand

	phase   phase
	lit     bool
	op      int     // of the last light that came or went
	step    int64   // when detecting or training ends
	carrier int64   // when the driver tells the kernel; never when it has, or has no reason to
	loss    int64   // when lost light is noticed; never while there is light
	lossOp  int     // what took it
	ups     []int64 // when the link came up lately
}

// phase is how far a link has come.
type phase uint8

const (
	linkDown  phase = iota // waits for light
	detecting              // light is there, the PHY looks for a signal
	training               // signal detected
	linkUp                 // the firmware reports a link
)

// step is what a NIC does.
type step uint8

const (
	firmwareUp step = iota + 1 // the firmware reports a link
	carrierUp                  // the driver tells the kernel
	loseLink                   // firmware and carrier go down together
)

// action is a step, when it is due, and the matrix operation that led to it.
type action struct {
	step step
	at   int64
	op   int
}

func newFirmware(p firmwarenotes.Profile, r *rand.Rand) *firmware {
	return &firmware{profile: p, rand: r, step: never, carrier: never, loss: never}
}

// due returns when advance has something to do next.
func (m *firmware) due() int64 { return min(m.step, m.carrier, m.loss) }

// light says that there is light from at on, or none, and returns what had
// become due before.
func (m *firmware) light(lit bool, at int64, op int) []action {
	done := m.advance(at)
	if lit == m.lit {
		return done
	}
	m.lit = lit
	switch {
	case m.phase == linkUp && lit: // unnoticed
		m.loss = never
	case m.phase == linkUp:
		m.loss, m.lossOp = after(at, m.profile.Debounce, m.rand), op
	case lit:
		m.phase, m.step, m.op = detecting, after(at, m.profile.Detect, m.rand), op
	default:
		m.phase, m.step = linkDown, never
	}
	return done
}

// advance returns what is due at now, in order of time.
func (m *firmware) advance(now int64) []action {
	var done []action
	for {
		at := m.due()
		if at > now || at == never {
			return done
		}
		switch at {
		case m.loss: // first: a link that is lost does not come up at the same moment
			m.phase, m.loss, m.carrier = linkDown, never, never
			done = append(done, action{loseLink, at, m.lossOp})
		case m.carrier:
			m.carrier = never
			done = append(done, action{carrierUp, at, m.op})
		default:
			if m.phase == detecting {
				m.phase, m.step = training, m.trained(at)
				continue
			}
			m.phase, m.step = linkUp, never
			m.carrier = after(at, m.profile.Carrier, m.rand)
			m.ups = append(m.ups, at)
			done = append(done, action{firmwareUp, at, m.op})
		}
	}
}

// trained returns when training that begins at at ends.
func (m *firmware) trained(at int64) int64 {
	end := after(at, m.profile.Train, m.rand)
	if b := m.profile.Burst; b != nil {
		m.ups = slices.DeleteFunc(m.ups, func(t int64) bool { return t <= at-int64(b.Window) })
		return add(end, int64(b.Stretch(m.ups, at)))
	}
	m.ups = m.ups[:0]
	return end
}

// after returns the time that is a span after at.
func after(at int64, s firmwarenotes.Span, r *rand.Rand) int64 { return add(at, int64(s.Draw(r))) }

// add returns at + d for d >= 0 and stops short of never.
func add(at, d int64) int64 {
	if at > never-1-d {
		return never - 1
	}
	return at + d
}
