package emulator

import (
	"context"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/timeline"
	"github.com/ocslab/ocslab/timeline/dist"
)

// Options are what tells one device from another of the same personality.
type Options struct {
	Name string // default: the model
	Seed uint64

	// Light is what enters at ports from outside, before the first command.
	// Nil lights every ingress port as the personality says.
	Light map[ocs.Port]ocs.DBm

	// Memory keeps the configuration over restarts of the program. Nil
	// forgets it.
	Memory Memory
}

// Device is one emulated switch. It is safe for concurrent use; commands take
// effect one after another, in the order in which they were given.
type Device struct {
	p    Personality
	g    ocs.Geometry
	name string
	seed uint64
	axis timeline.Axis
	mem  Memory

	mu        sync.Mutex // guards all that follows
	switches  *rand.Rand // jitter and repeatability of the mirrors
	noise     *rand.Rand // of the monitors
	ports     []port     // by port number; ports[0] is unused
	labels    map[ocs.Port]string
	peers     map[ocs.Port]string
	voas      map[ocs.Port]voa
	notes     string
	sessions  map[int]*Session
	entered   int                              // sessions so far
	monitors  [directions]map[ocs.Port]Monitor // those not at the default
	inputs    map[ocs.Port]trace               // light from outside that has changed
	flaps     map[ocs.Port]Flap
	flapping  map[ocs.Port]*flapping
	users     []User
	sid       string
	boot      ocs.BootMode
	timeouts  map[Group]time.Duration
	clock     time.Duration // device clock minus ours
	back      time.Time     // when the network card is up again
	up        context.Context
	down      context.CancelFunc // ends up
	ops       int                // matrix operations so far
	stuck     map[ocs.Port]bool
	unlit     map[ocs.Port]bool
	losses    losses
	slow      map[ocs.CrossConnect]dist.Mixture // paths with switching times of their own; never changes
	subs      []*Subscription
	observers []func(Event)
	truth     truthLog
	alarms    map[alarmKey]*Alarm

	lightWatches []*lightWatch
	lightTimers  map[ocs.Port]*time.Timer // by port: light that comes and is watched
}

// port is the state of one port.
type port struct {
	peer    ocs.Port // other end of the cross-connect, 0 if none
	ingress bool     // which end this is
	closed  bool     // shutter
	blocked bool     // by a shutter programme
	failed  bool     // hardware
	launch  float32  // dBm entering from outside; -Inf is none
	loss    float32  // of the path that ends here, dB
	path    path     // of the light that ends here
	settled int64    // when that path settles or has settled
	out     trace    // power leaving here
}

// New returns a device in the state in which it leaves the factory or, when
// opt.Memory holds one, in the state that it remembers, with its light settled.
func New(p Personality, opt Options) (*Device, error) {
	if opt.Name == "" {
		opt.Name = p.Model
	}
	g, err := p.check()
	if err != nil {
		return nil, fmt.Errorf("emulated switch %s: %w", opt.Name, err)
	}
	p.Switching.Modes = slices.Clone(p.Switching.Modes) // the caller's own
	h := fnv.New64a()
	h.Write([]byte(opt.Name))
	d := &Device{
		p: p, g: g, name: opt.Name, mem: opt.Memory,
		seed:     opt.Seed ^ h.Sum64(),
		axis:     timeline.HostAxis(),
		ports:    make([]port, len(g.Ports())+1),
		labels:   map[ocs.Port]string{},
		peers:    map[ocs.Port]string{},
		voas:     map[ocs.Port]voa{},
		sessions: map[int]*Session{},
		inputs:   map[ocs.Port]trace{},
		flaps:    map[ocs.Port]Flap{},
		flapping: map[ocs.Port]*flapping{},
		users:    slices.Clone(p.Control.Users),
		sid:      p.TL1.SID,
		boot:     p.Control.Boot,
		timeouts: map[Group]time.Duration{Admin: p.TL1.Idle, Operator: p.TL1.Idle},
		stuck:    map[ocs.Port]bool{},
		unlit:    map[ocs.Port]bool{},
		losses:   lossesOf(&p.Optics),
		slow:     p.Switching.byPath(),
		alarms:   map[alarmKey]*Alarm{},
	}
	for dir := range d.monitors {
		d.monitors[dir] = map[ocs.Port]Monitor{}
	}
	d.up, d.down = context.WithCancel(context.Background())
	d.switches = d.draw(drawSwitch, 0, 0)
	d.noise = d.draw(drawNoise, 0, 0)
	if d.sid == "" && !p.TL1.NoSID {
		d.sid = opt.Name
	}
	for _, f := range p.Control.Failed {
		d.ports[f].failed = true
	}
	for i := 1; i < len(d.ports); i++ {
		n := ocs.Port(i)
		level := math.Inf(-1)
		if opt.Light != nil {
			if l, lit := opt.Light[n]; lit {
				level = float64(l)
			}
		} else if g.IsIngress(n) {
			level = p.Optics.Launch + p.Optics.LaunchSpread*d.fixed(drawLaunch, n)
		}
		d.ports[i].launch = float32(level)
	}
	if d.mem != nil {
		if err := d.load(); err != nil {
			return nil, fmt.Errorf("emulated switch %s: %w", d.name, err)
		}
	}
	return d, nil
}

// Name returns the name given in Options.
func (d *Device) Name() string { return d.name }

// Personality returns how the device behaves.
func (d *Device) Personality() *Personality { return &d.p }

// Geometry returns the ports of the device.
func (d *Device) Geometry() ocs.Geometry { return d.g }

// Serial returns the serial number, which follows from name and seed.
func (d *Device) Serial() string { return strconv.FormatUint(100000+d.seed%900000, 10) }

// What a fixed draw is for; it keeps draws for the same ports apart.
const (
	drawSwitch = iota + 1
	drawNoise
	drawLaunch
	drawLoss
	drawMonitor
)

// draw returns the random numbers of this device for a purpose and up to two
// ports.
func (d *Device) draw(what uint64, a, b ocs.Port) *rand.Rand {
	return rand.New(rand.NewPCG(d.seed, what<<48|uint64(a)<<24|uint64(b)))
}

// fixed returns a number in -1..1 that belongs to a port of this device for
// good.
func (d *Device) fixed(what uint64, n ocs.Port) float64 {
	return 2*d.draw(what, n, 0).Float64() - 1
}

// Stick jams the mirrors of ports: commands on them are acknowledged, and
// nothing moves.
func (d *Device) Stick(ports ...ocs.Port) { d.fault(d.stuck, ports) }

// Unlight makes every path through ports dark, as a dirty connector does: the
// device goes on to list the cross-connect.
func (d *Device) Unlight(ports ...ocs.Port) { d.fault(d.unlit, ports) }

func (d *Device) fault(set map[ocs.Port]bool, ports []ocs.Port) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.nowLocked()
	for _, n := range ports {
		if d.g.Has(n) {
			set[n] = true
			d.relightLocked(n, now)
		}
	}
}
