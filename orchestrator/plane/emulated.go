package plane

import (
	"context"
	"fmt"
	"math/bits"
	"time"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/topology/opus"
)

// DefaultPatience is how long a member of an operation waits for the others.
const DefaultPatience = time.Minute

// EmulatedOptions are the switches of an emulated plane. Without any, as when the switches are real ones, or there are
// none, all operations get through, and all that they may use is taken to be there.
type EmulatedOptions struct {
	Devices     map[string]*emulator.Device // by Transfer.Switch
	Assignments map[string]opus.Assignment  // by Transfer.Rail

	// Patience is how long a member waits for the others before Do fails with ErrMissing; 0 is DefaultPatience.
	Patience time.Duration
	// Clock ends the operations; nil is package time. It must outlast the plane, which does not close it.
	Clock *Clock
}

// Emulated is a model of the data plane over emulated switches. Make one with [NewEmulated].
type Emulated struct {
	opt    EmulatedOptions
	lights map[string]*light
	meetings
}

// NewEmulated starts to watch the light of the switches. Close the plane.
func NewEmulated(opt EmulatedOptions) *Emulated {
	e := &Emulated{opt: opt, lights: map[string]*light{}}
	e.init(opt.Patience, opt.Clock, e.forget)
	for name, d := range opt.Devices {
		e.lights[name] = watch(d)
	}
	return e
}

// Close ends the operations under way, with ErrClosed. The switches stay as they are.
func (e *Emulated) Close() error {
	if e.close() {
		for _, l := range e.lights {
			l.close()
		}
	}
	return nil
}

// forget drops what the lights remember of before an instant.
func (e *Emulated) forget(before int64) {
	for _, l := range e.lights {
		l.forget(before)
	}
}

// part is what Do knows of its rank's part.
type part struct {
	light *light
	uses  []ocs.CrossConnect
	want  ocs.Map
}

// Do implements [Plane]. Bytes of a rank are lost while any cross-connect of its own Uses does not have settled light:
// that share of them, rounded up.
func (e *Emulated) Do(ctx context.Context, t Transfer) (Outcome, error) {
	if err := t.check(); err != nil {
		return Outcome{}, err
	}
	p, took, err := e.part(t)
	if err != nil {
		return Outcome{}, err
	}
	m, err := e.join(t, took)
	if err != nil {
		return Outcome{}, err
	}
	defer e.leave(m)
	if err := e.gather(ctx, m, t); err != nil {
		return Outcome{}, err
	}
	if err := e.await(ctx, m.alarm.done); err != nil {
		return Outcome{}, fmt.Errorf("%v, which was under way: %w", t, err)
	}
	out := Outcome{BeginNS: m.begin, EndNS: m.alarm.at, Uses: p.want}
	if p.light != nil {
		e.settle(m, p.light)
		dark := p.light.dark(p.uses, out.BeginNS, out.EndNS)
		out.Lost = share(t.Bytes, dark, out.EndNS-out.BeginNS)
	}
	return out, nil
}

// part finds the cross-connects of a transfer, and how long it takes on them.
func (e *Emulated) part(t Transfer) (part, time.Duration, error) {
	if len(t.Uses) == 0 {
		return part{}, t.takes(), nil
	}
	p := part{light: e.lights[t.Switch]}
	if p.light == nil && len(e.lights) > 0 {
		return part{}, 0, fmt.Errorf("%v: %w: the plane has no switch %s", t, ErrTransfer, t.Switch)
	}
	a, ok := e.opt.Assignments[t.Rail]
	if !ok && p.light != nil {
		return part{}, 0, fmt.Errorf("%v: %w: the plane has no rail %s", t, ErrTransfer, t.Rail)
	}
	if !ok {
		return part{}, t.takes(), nil
	}
	var err error
	if p.uses, err = crossConnects(a, t, t.Uses); err != nil {
		return part{}, 0, err
	}
	if p.want, err = ocs.NewMap(p.uses...); err != nil {
		return part{}, 0, fmt.Errorf("%v: %w: its circuits: %w", t, ErrTransfer, err)
	}
	return p, t.takes(), nil
}

// takes is how long a transfer takes on its Uses.
func (t Transfer) takes() time.Duration {
	if t.Slowdown == 0 {
		return t.Duration
	}
	return time.Duration(float64(t.Duration) * t.Slowdown)
}

// crossConnects returns those of circuits on the rail of a transfer.
func crossConnects(a opus.Assignment, t Transfer, circuits []opus.Circuit) ([]ocs.CrossConnect, error) {
	all := make([]ocs.CrossConnect, 0, 2*len(circuits))
	for _, c := range circuits {
		if c.A < 0 || c.B < 0 || c.A >= len(a) || c.B >= len(a) {
			return nil, fmt.Errorf("%v: %w: rail %s has no circuit between duplex ports %d and %d, but %d ports",
				t, ErrTransfer, t.Rail, c.A, c.B, len(a))
		}
		both := a.CrossConnects(c)
		all = append(all, both[:]...)
	}
	return all, nil
}

// settle waits until a light knows what has become of it. It is told a little later, by another goroutine, and on a busy machine
// much later: so a late process neither loses bytes nor saves them. One member looks for all, since they are on one switch.
func (e *Emulated) settle(m *meeting, l *light) {
	e.mu.Lock()
	first := !m.looked
	m.looked = true
	e.mu.Unlock()
	if !first {
		<-m.settled // no mutex: time stands still for a test whose goroutines wait for one
		return
	}
	defer close(m.settled)
	const pause, most = 200 * time.Microsecond, 2 * time.Second
	for since := time.Now(); !l.caughtUp() && time.Since(since) < most; {
		if e.opt.Clock.Sleep(context.Background(), nowNS()+int64(pause)) != nil {
			return
		}
	}
}

// share returns part/whole of n, rounded up; all of n if whole is 0 and part is not.
func share(n, part, whole int64) int64 {
	if n <= 0 || part <= 0 {
		return 0
	}
	if part >= whole {
		return n
	}
	hi, lo := bits.Mul64(uint64(n), uint64(part))
	q, r := bits.Div64(hi, lo, uint64(whole)) // hi < whole, as part < whole and n < 2^63
	if r > 0 {
		q++
	}
	return int64(q)
}
