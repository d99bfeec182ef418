package interposer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/ocslab/ocslab/internal/pause"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/timeline"
	"github.com/ocslab/ocslab/topology/pccl/mesh"
)

// Limits of what is taken for right.
const (
	tolerance = math.Pi / 100 // radians: how far a heater is from its state when it has settled
	margin    = 1             // dB that light may be below what is expected
	spins     = 500           // readings without a pause
	between   = 100 * time.Microsecond
)

// ErrNoWay: there is no way for all circuits, or none was found. [Report.Result] says which.
var ErrNoWay = errors.New("the circuits have no way through the mesh")

// Options of [New]. The zero value is one wavelength.
type Options struct {
	Wavelengths int           // 0: 1
	Patience    time.Duration // with heaters that do not settle; 0 is 20 ms
	Attempts    int           // of Bring, each after having found an MZI that is stuck; 0 is 100
}

// Bench drives a device. It remembers which of its MZIs are stuck. It is for one goroutine at a time.
type Bench struct {
	device Device
	sheet  Sheet
	mesh   *mesh.Mesh
	opt    Options
	stuck  map[int]Stuck
}

// Stuck is an MZI that does not do as it is told.
type Stuck struct {
	Node   int
	Wanted mesh.State
	// Read is the state that was read back; mesh.Third if it is between bar and cross.
	Read mesh.State
	// Dark: it reads back what it should, and lets light pass to where it should not. No circuit crosses it any more.
	// Otherwise circuits may cross it as it is, if that is a state.
	Dark   bool
	Probes int // receivers that were put on a circuit's way to find it
}

// state is what the MZI can still be used in; mesh.Third is nothing.
func (s Stuck) state() mesh.State {
	if s.Dark {
		return mesh.Third
	}
	return s.Read
}

// Attempt is one time that the mesh was set.
type Attempt struct {
	Set  int // heaters that were sent elsewhere
	Kept int // MZIs that circuits cross and that were as they should be
	Taps int // that are on
	// Switching is from the order to when all MZIs that circuits cross were as they should be. Settled is false if they
	// did not become so; it is the zero Interval then.
	Switching timeline.Interval
	Settled   bool
	Faults    []mesh.Fault // of the light, followed through the states that were read back
	Dark      []int        // circuits whose receiver does not see what it should, by request
	Weakest   ocs.DBm      // of the circuits that are lit
	// Crosstalk is the light of others at the receiver that has most of it, relative to its own: below 0. It is -Inf if there
	// is none.
	Crosstalk ocs.DB
	Stuck     []Stuck // that were found by it
}

// Right says that everything was as it should be.
func (a *Attempt) Right() bool { return a.Settled && len(a.Faults) == 0 && len(a.Dark) == 0 }

// Report is what bringing circuits about came to.
type Report struct {
	Requests []mesh.Request
	Result   *mesh.Result // of the router, the last time
	Attempts []Attempt
	Routing  time.Duration // all times together
}

// New returns a bench for a device. The error is that of [mesh.Grid].
func New(d Device, opt Options) (*Bench, error) {
	s := d.Sheet()
	m, err := mesh.Grid(s.Rows, s.Columns)
	if err != nil {
		return nil, err
	}
	if opt.Patience == 0 {
		opt.Patience = 20 * time.Millisecond
	}
	if opt.Attempts == 0 {
		opt.Attempts = 100
	}
	return &Bench{device: d, sheet: s, mesh: m, opt: opt, stuck: map[int]Stuck{}}, nil
}

// Mesh returns the mesh of the device.
func (b *Bench) Mesh() *mesh.Mesh { return b.mesh }

// Bring brings circuits about in place of those that there are: they are routed, the mesh is set, read back and traced,
// and the light is looked at. MZIs that turn out to be stuck are routed around, and that again until all is right. The
// error matches [ErrNoWay] if the circuits cannot be routed, and [ocs.ErrVerify] if the light is wrong and nothing explains it;
// the Report holds what was done.
func (b *Bench) Bring(ctx context.Context, requests []mesh.Request) (*Report, error) {
	r := &Report{Requests: requests}
	for range b.opt.Attempts {
		pins := map[int]mesh.State{}
		for n, s := range b.stuck {
			pins[n] = s.state()
		}
		began := time.Now()
		result, err := b.mesh.Route(ctx, requests, mesh.Options{
			Strict: true, Wavelengths: b.opt.Wavelengths, Layout: b.mesh.Pinned(b.sheet.Layout, pins)})
		r.Routing += time.Since(began)
		if err != nil {
			return r, err
		}
		r.Result = result
		if result.Verdict != mesh.Routed {
			return r, noWay(result)
		}
		a, err := b.set(ctx, result)
		if err == nil && !a.Right() {
			err = b.explain(ctx, result, a)
		}
		r.Attempts = append(r.Attempts, *a)
		if err != nil || a.Right() {
			return r, err
		}
	}
	return r, fmt.Errorf("%w: an MZI was found stuck %d times", ocs.ErrVerify, b.opt.Attempts)
}

func noWay(r *mesh.Result) error {
	if r.Verdict == mesh.Impossible {
		return fmt.Errorf("%w: proved", ErrNoWay)
	}
	return fmt.Errorf("%w: %d of %d were routed, and whether all can be is not known", ErrNoWay, r.Routed, len(r.Circuits))
}

// stateOf returns the state that a phase is.
func stateOf(phase float64) mesh.State {
	switch {
	case math.Abs(phase) <= tolerance:
		return mesh.Bar
	case math.Abs(phase-math.Pi) <= tolerance:
		return mesh.Cross
	}
	return mesh.Third
}

func phaseOf(s mesh.State) float64 {
	if s == mesh.Cross {
		return math.Pi
	}
	return 0
}

// crossed returns the nodes that circuits cross, in rising order.
func crossed(r *mesh.Result) []int {
	all := map[int]bool{}
	for _, c := range r.Circuits {
		for i := 1; i < len(c.Nodes)-1; i++ {
			all[c.Nodes[i]] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// set sets the mesh for a routing and looks at what comes of it. MZIs that no circuit crosses stay as they are.
func (b *Bench) set(ctx context.Context, result *mesh.Result) (*Attempt, error) {
	a := &Attempt{Taps: len(result.Setting.Taps)}
	phases, _, err := b.device.Read(ctx)
	if err != nil {
		return a, err
	}
	needed := crossed(result)
	orders := map[int]float64{}
	for _, n := range needed {
		if want := result.Setting.States[n]; stateOf(phases[n]) != want {
			orders[n] = phaseOf(want)
		}
	}
	a.Set, a.Kept = len(orders), len(needed)-len(orders)
	before := time.Now()
	if err := b.device.Set(ctx, orders, result.Setting.Taps); err != nil {
		return a, err
	}
	have, err := b.settle(ctx, a, before, needed, result.Setting.States)
	if err != nil {
		return a, err
	}
	a.Faults = b.mesh.Check(b.asked(result), have, b.sheet.Layout)
	for _, n := range needed {
		if s := have.States[n]; s != result.Setting.States[n] {
			a.Stuck = append(a.Stuck, Stuck{Node: n, Wanted: result.Setting.States[n], Read: s})
		}
	}
	return a, b.look(ctx, a, result, have.Taps)
}

// asked returns the requests of a routing as it has them: each on its wavelength.
func (b *Bench) asked(result *mesh.Result) []mesh.Request {
	all := make([]mesh.Request, len(result.Circuits))
	for i, c := range result.Circuits {
		all[i] = c.Request
	}
	return all
}

// settle reads until all that is needed is as it should be, or patience ends, and returns what was read last.
func (b *Bench) settle(ctx context.Context, a *Attempt, before time.Time, needed []int, want []mesh.State) (*mesh.Setting, error) {
	sent := time.Now()
	var moved time.Duration // until when something certainly moved
	for reading := 0; ; reading++ {
		began := time.Now()
		phases, taps, err := b.device.Read(ctx)
		if err != nil {
			return nil, err
		}
		have := &mesh.Setting{States: make([]mesh.State, len(phases)), Taps: taps}
		for n, p := range phases {
			have.States[n] = stateOf(p)
		}
		a.Settled = !slices.ContainsFunc(needed, func(n int) bool { return have.States[n] != want[n] })
		if a.Settled {
			a.Switching = timeline.Between(int64(moved), int64(time.Since(before)))
			return have, nil
		}
		moved = max(0, began.Sub(sent))
		if moved >= b.opt.Patience {
			return have, nil
		}
		if reading >= spins {
			if err := pause.For(ctx, between); err != nil {
				return nil, err
			}
		}
	}
}

// look compares what receivers see with what they should.
func (b *Bench) look(ctx context.Context, a *Attempt, result *mesh.Result, taps []mesh.Tap) error {
	rays, err := b.device.Light(ctx)
	if err != nil {
		return err
	}
	a.Weakest, a.Crosstalk = ocs.DBm(math.Inf(1)), ocs.DB(math.Inf(-1))
	for i, c := range result.Circuits {
		if len(c.Nodes) < 2 {
			continue
		}
		source, sink := ends(c, b.mesh, taps)
		own, others := math.Inf(-1), 0.0 // dBm, mW
		for _, r := range rays {
			switch {
			case r.Sink != sink:
			case r.Source == source:
				own = float64(r.Power)
			default:
				others += math.Pow(10, float64(r.Power)/10)
			}
		}
		if own < float64(b.expected(len(c.Nodes)-2))-margin {
			a.Dark = append(a.Dark, i)
			continue
		}
		a.Weakest = min(a.Weakest, ocs.DBm(own))
		a.Crosstalk = max(a.Crosstalk, ocs.DB(10*math.Log10(others)-own))
	}
	return nil
}

// expected returns the power of light that has crossed so many MZIs.
func (b *Bench) expected(mzis int) ocs.DBm {
	return b.sheet.Launch - ocs.DBm(float64(b.sheet.Loss)*float64(mzis))
}

// ends returns the taps of a circuit, by index; -1 is one that is not on.
func ends(c mesh.Circuit, m *mesh.Mesh, taps []mesh.Tap) (source, sink int) {
	alone, _ := m.Program([]mesh.Circuit{c}, nil)
	return slices.Index(taps, alone.Taps[0]), slices.Index(taps, alone.Taps[1])
}

// explain finds what is stuck, by what was read back, or by light, and remembers it.
func (b *Bench) explain(ctx context.Context, result *mesh.Result, a *Attempt) error {
	if len(a.Stuck) == 0 { // all MZIs say that they are right
		for _, i := range a.Dark {
			s, found, err := b.locate(ctx, result, i)
			switch {
			case err != nil:
				return err
			case found && !slices.ContainsFunc(a.Stuck, func(o Stuck) bool { return o.Node == s.Node }):
				a.Stuck = append(a.Stuck, s)
			}
		}
	}
	if len(a.Stuck) == 0 {
		text := "the light is not as it should be, and nothing says why"
		if len(a.Faults) > 0 {
			text = a.Faults[0].Text
		}
		return fmt.Errorf("%w: %s", ocs.ErrVerify, text)
	}
	for _, s := range a.Stuck {
		if old, is := b.stuck[s.Node]; is && old.state() == s.state() {
			return fmt.Errorf("%w: node %d was known to be stuck, and is not as it was", ocs.ErrVerify, s.Node)
		}
		b.stuck[s.Node] = s
	}
	return nil
}

// locate finds the MZI at which a circuit loses its light: a receiver is put where the circuit comes to a node, in the
// middle of those between the last that is known to be lit and the first that is known to be dark.
func (b *Bench) locate(ctx context.Context, result *mesh.Result, circuit int) (s Stuck, found bool, err error) {
	c := result.Circuits[circuit]
	last := len(c.Nodes) - 1
	lit, dark := 1, last // light comes to the first neighbour without having crossed anything
	for dark-lit > 1 {
		at := (lit + dark) / 2
		s.Probes++
		probe, _ := b.mesh.Program([]mesh.Circuit{{Request: c.Request, Nodes: c.Nodes[:at+1]}}, nil)
		taps := slices.Clone(result.Setting.Taps)
		source := slices.Index(taps, probe.Taps[0])
		if err := b.device.Set(ctx, nil, append(taps, probe.Taps[1])); err != nil {
			return s, false, err
		}
		rays, err := b.device.Light(ctx)
		if err != nil {
			return s, false, err
		}
		if slices.ContainsFunc(rays, func(r Ray) bool {
			return r.Sink == len(taps) && r.Source == source && r.Power >= b.expected(at-1)-margin
		}) {
			lit = at
		} else {
			dark = at
		}
	}
	if dark == lit { // nothing is crossed
		return s, false, nil
	}
	s.Node, s.Dark = c.Nodes[lit], true
	s.Wanted = result.Setting.States[s.Node]
	s.Read = s.Wanted
	return s, true, b.device.Set(ctx, nil, result.Setting.Taps)
}
