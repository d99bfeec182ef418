package mesh

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"
)

// What is accepted and assumed.
const (
	MostNodes       = 1 << 16
	DefaultSettling = 3700 * time.Nanosecond
	// Tolerance is how near a heater is, in radians, to where it was sent when it has settled.
	Tolerance = math.Pi / 100
)

// Errors of a device. Test with errors.Is.
var (
	ErrOptions = errors.New("there is no such mesh")
	ErrOrder   = errors.New("the mesh cannot be set so")
)

// Options of [New].
type Options struct {
	Rows, Columns int
	Settling      time.Duration // of a heater, 0 to an hour; 0 is DefaultSettling
}

// Side is where a waveguide leaves a node.
type Side uint8

// The sides.
const (
	North Side = iota
	East
	South
	West
	sides
)

func (s Side) String() string {
	if s >= sides {
		return fmt.Sprintf("side %d", uint8(s))
	}
	return [...]string{"north", "east", "south", "west"}[s]
}

// Tap is a resonator that is on.
type Tap struct {
	Node       int
	Side       Side // the waveguide that it is on
	Wavelength int  // 1 or more
	Adds       bool // it adds light; otherwise it takes what comes to the node
}

// Fault is what is wrong with a heater: it rests at a phase, whatever it is sent to.
type Fault struct {
	Phase float64 // radians, 0 to π
	// Unseen: the device takes it for healthy, and reports the phase that it would have.
	Unseen bool
}

// heater is an MZI's.
type heater struct {
	from, to float64 // radians
	since    time.Time
	fault    *Fault
}

// Device is a mesh. Make one with New.
type Device struct {
	rows, columns int
	tau           time.Duration // in which a heater does all but 1/e of its way

	mu      sync.Mutex // guards what follows
	heaters []heater   // by node
	taps    []Tap
}

// New returns a mesh whose heaters are at 0 and whose taps are off. The error matches ErrOptions.
func New(opt Options) (*Device, error) {
	if opt.Rows < 1 || opt.Columns < 1 || opt.Rows > MostNodes || opt.Columns > MostNodes || opt.Rows*opt.Columns > MostNodes {
		return nil, fmt.Errorf("%w: %d x %d MZIs: want 1 to %d in all", ErrOptions, opt.Rows, opt.Columns, MostNodes)
	}
	if opt.Settling == 0 {
		opt.Settling = DefaultSettling
	}
	if opt.Settling < 0 || opt.Settling > time.Hour {
		return nil, fmt.Errorf("%w: heaters that settle in %v: want 0 to 1h", ErrOptions, opt.Settling)
	}
	return &Device{
		rows: opt.Rows, columns: opt.Columns, tau: time.Duration(float64(opt.Settling) / math.Log(math.Pi/Tolerance)),
		heaters: make([]heater, opt.Rows*opt.Columns),
	}, nil
}

// Size returns its rows and columns.
func (d *Device) Size() (rows, columns int) { return d.rows, d.columns }

// Set sends heaters to phases in radians, 0 to π, by node, and has those taps on and no others. It is all or nothing, and
// returns at once: heaters take their time. The error matches ErrOrder.
func (d *Device) Set(phases map[int]float64, taps []Tap) error {
	for n, p := range phases {
		if n < 0 || n >= len(d.heaters) || !(p >= 0 && p <= math.Pi) { // NaN is neither
			return fmt.Errorf("%w: node %d to %g radians: want nodes 0 to %d, and 0 to π", ErrOrder, n, p, len(d.heaters)-1)
		}
	}
	on := map[Tap]bool{}
	for _, t := range taps {
		if t.Node < 0 || t.Node >= len(d.heaters) || t.Side >= sides || t.Wavelength < 1 {
			return fmt.Errorf("%w: a tap at node %d, %v, wavelength %d: want nodes 0 to %d, and wavelengths from 1",
				ErrOrder, t.Node, t.Side, t.Wavelength, len(d.heaters)-1)
		}
		if on[t] {
			return fmt.Errorf("%w: the tap at node %d, %v, is there twice", ErrOrder, t.Node, t.Side)
		}
		on[t] = true
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	for n, p := range phases {
		h := &d.heaters[n]
		h.from, h.to, h.since = d.healthy(h, now), p, now
	}
	d.taps = slices.Clone(taps)
	return nil
}

// healthy returns the phase that a heater has, or would have without its fault.
func (d *Device) healthy(h *heater, now time.Time) float64 {
	gone := float64(now.Sub(h.since)) / float64(d.tau)
	return h.to + (h.from-h.to)*math.Exp(-gone)
}

// Phases returns what the device reports of its heaters now, in radians, by node.
func (d *Device) Phases() []float64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.phases(true)
}

// phases returns what heaters are at, or what the device takes that for. The caller holds mu.
func (d *Device) phases(reported bool) []float64 {
	now := time.Now()
	all := make([]float64, len(d.heaters))
	for n := range d.heaters {
		h := &d.heaters[n]
		all[n] = d.healthy(h, now)
		if h.fault != nil && !(reported && h.fault.Unseen) {
			all[n] = h.fault.Phase
		}
	}
	return all
}

// Taps returns those that are on, in the order in which they were set.
func (d *Device) Taps() []Tap {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.taps)
}

// Stick has a heater fail. The error matches ErrOrder.
func (d *Device) Stick(node int, f Fault) error {
	if node < 0 || node >= len(d.heaters) || !(f.Phase >= 0 && f.Phase <= math.Pi) {
		return fmt.Errorf("%w: node %d stuck at %g radians: want nodes 0 to %d, and 0 to π", ErrOrder, node, f.Phase, len(d.heaters)-1)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.heaters[node].fault = &f
	return nil
}
