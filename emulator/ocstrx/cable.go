package ocstrx

import (
	"errors"
	"fmt"
	"reflect"
	"sync"
	"time"

	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// Join connects fibre fibreA (0 or 1) of module a to fibre fibreB of module b by a cable with
// a fibre for each lane and way, each of which loses loss: a lane of one hears the same lane
// of the other. Infinity is a cable that passes no light. What a fibre brings is from then on
// what the module at the other end sends, at the time at which it sends it, less the loss of
// both facets and the cable; SetInput has no effect on it. The light needs no time.
//
// A fibre has one cable, and both modules must live in the same [Clock], or in the machine's.
//
// Cut takes the cable away: both fibres are dark then. It may be called more than once.
func Join(a *Module, fibreA int, b *Module, fibreB int, loss ocs.DB) (cut func(), err error) {
	shift, err := between(a.clock, b.clock)
	switch {
	case err != nil:
	case fibreA&^1 != 0 || fibreB&^1 != 0:
		err = fmt.Errorf("fibres %d and %d: want 0 or 1", fibreA, fibreB)
	case a == b && fibreA == fibreB:
		err = fmt.Errorf("fibre %d is to be joined to itself", fibreA)
	case !(loss >= 0): // NaN is not
		err = fmt.Errorf("a loss of %v: want 0 or more", loss)
	}
	if err != nil {
		return nil, fmt.Errorf("cable from %s to %s: %w", a.name, b.name, err)
	}
	through := fromDB(-float64(loss))
	ab := &ray{from: a, shift: shift, through: through}
	ba := &ray{from: b, shift: -shift, through: through}

	joining.Lock()
	defer joining.Unlock()
	for _, end := range []struct {
		m     *Module
		fibre int
	}{{a, fibreA}, {b, fibreB}} {
		if end.m.feeds[end.fibre].Load() != nil {
			return nil, fmt.Errorf("cable from %s to %s: fibre %d of %s has a cable", a.name, b.name, end.fibre, end.m.name)
		}
	}
	a.plug(fibreA, ab)
	b.plug(fibreB, ba)
	a.feeds[fibreA].Store(ba)
	b.feeds[fibreB].Store(ab)
	return sync.OnceFunc(func() {
		joining.Lock()
		defer joining.Unlock()
		a.plug(fibreA, nil)
		b.plug(fibreB, nil)
		a.unfeed(fibreA)
		b.unfeed(fibreB)
	}), nil
}

// JoinBoards joins all modules of two boards, module i to module i, as [Join] does.
func JoinBoards(a *Board, fibreA int, b *Board, fibreB int, loss ocs.DB) (cut func(), err error) {
	if len(a.modules) != len(b.modules) {
		return nil, fmt.Errorf("cable from %s to %s: one has %d modules, the other %d", a.name, b.name, len(a.modules), len(b.modules))
	}
	var cuts []func()
	cut = func() {
		for _, c := range cuts {
			c()
		}
	}
	for i, m := range a.modules {
		c, err := Join(m, fibreA, b.modules[i], fibreB, loss)
		if err != nil {
			cut()
			return nil, err
		}
		cuts = append(cuts, c)
	}
	return cut, nil
}

// joining is held while cables come and go.
var joining sync.Mutex

// between returns by how much clock a is ahead of clock b.
func between(a, b Clock) (time.Duration, error) {
	x, ok := a.(realClock)
	y, alike := b.(realClock)
	switch {
	case ok && alike:
		return y.start.Sub(x.start), nil
	case reflect.TypeOf(a).Comparable() && reflect.TypeOf(b).Comparable() && a == b:
		return 0, nil
	}
	return 0, errors.New("they have different clocks")
}

// ray is the light in one way of a cable: what the module that sends has to tell the one that
// hears. Neither waits for the other: what is sent does not depend on what is heard.
type ray struct {
	from    *Module
	shift   time.Duration // by which its clock is ahead of that of the module that hears
	through float64       // transmission

	mu    sync.Mutex // guards what follows; a module's is taken before it
	last  beam       // the last that was sent
	sent  bool
	beams []beam // not heard yet, in order of time
}

// beam is the light in a ray from a time on.
type beam struct {
	at   time.Duration
	mw   [ocst.Lanes]float64 // before the cable
	data uint8               // lanes that carry data
}

// mostBeams is how many changes wait to be heard: of a module that nobody asks for longer, the
// oldest are forgotten.
const mostBeams = 1024

// send notes what is sent from a time of the sender on. What is nearly as it was is not sent
// when that is rough.
func (r *ray) send(b beam, rough bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	b.at -= r.shift
	if r.sent && (b.like(&r.last, 1) || rough && b.like(&r.last, roughly)) {
		return
	}
	if len(r.beams) == mostBeams {
		r.beams = r.beams[1:]
	}
	r.last, r.sent = b, true
	r.beams = append(r.beams, b)
}

// Of light on its way from one output to another, cables are told every beamStep, what has
// changed by a decibel or more.
const beamStep = 4 * settleStep

var roughly = fromDB(1)

// like reports whether two beams differ by no more than a factor.
func (b *beam) like(o *beam, factor float64) bool {
	if b.data != o.data {
		return false
	}
	for lane, mw := range b.mw {
		if mw > o.mw[lane]*factor || mw*factor < o.mw[lane] {
			return false
		}
	}
	return true
}

// next returns when the next beam comes that has not been heard.
func (r *ray) next() time.Duration {
	if r == nil {
		return noEvent
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.beams) == 0 {
		return noEvent
	}
	return r.beams[0].at
}

// take returns that beam.
func (r *ray) take() beam {
	r.mu.Lock()
	defer r.mu.Unlock()
	b := r.beams[0]
	if r.beams = r.beams[1:]; len(r.beams) == 0 {
		r.beams = nil
	}
	return b
}

// plug has what a fibre sends go into a ray from now on; nil is no cable any more.
func (m *Module) plug(fibre int, r *ray) {
	m.lockNow()
	defer m.mu.Unlock()
	if old := m.out[fibre]; old != nil {
		old.send(beam{at: m.now}, false)
	}
	m.out[fibre] = r
	m.send(false)
}

// unfeed hears the rest of what a cable has brought, and forgets it.
func (m *Module) unfeed(fibre int) {
	m.lockNow()
	defer m.mu.Unlock()
	m.feeds[fibre].Store(nil)
}

// callSenders has the modules at the other ends of the cables say what they have sent until
// a time. Nothing is locked meanwhile: two modules may call each other.
func (m *Module) callSenders(at time.Duration) {
	for i := range m.feeds {
		r := m.feeds[i].Load()
		if r == nil {
			continue
		}
		r.from.mu.Lock()
		r.from.happen(at + r.shift)
		r.from.send(false)
		r.from.mu.Unlock()
	}
}

// lockNow takes the lock of a module, and has it catch up with its clock.
func (m *Module) lockNow() {
	at := m.clock.Now()
	m.callSenders(at)
	m.mu.Lock()
	m.advanceTo(at)
}

// send tells the cables what the fibres send as of now.
func (m *Module) send(rough bool) {
	if m.out[0] == nil && m.out[1] == nil {
		return
	}
	var beams [2]beam
	bright := m.bright()
	for lane := range ocst.Lanes {
		if bright>>lane&1 != 0 {
			one, two, _ := m.chip.lane(m.now, lane)
			beams[0].mw[lane], beams[1].mw[lane] = m.chip.outside(one), m.chip.outside(two)
		}
	}
	for fibre, r := range m.out {
		if r == nil {
			continue
		}
		b := &beams[fibre]
		b.at, b.data = m.now, bright
		if m.run != nil {
			b.data &^= m.run.lanes
		}
		r.send(*b, rough)
	}
}

// outside is what of a power in a waveguide comes into the fibre: a tap and a facet are between.
func (c *chip) outside(mw float64) float64 { return mw * c.tapped * c.facet }
