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

	mu       sync.Mutex // guards all that follows
	switches *rand.Rand // jitter and repeatability of the mirrors
	noise    *rand.Rand // of the monitors
	ports    []port     // by port number; ports[0] is unused
	labels   map[ocs.Port]string
	peers    map[ocs.Port]string
	voas     map[ocs.Port]voa
	notes    string
	sessions map[int]*Session
	entered  int                              // sessions so far
	monitors [directions]map[ocs.Port]Monitor // those not at the default
	inputs   map[ocs.Port]trace               // light from outside that has changed
	flaps    map[ocs.Port]Flap
	flapping map[ocs.Port]*flapping
	users    []User
	sid      string
	boot     ocs.BootMode
	timeouts map[Group]time.Duration
	clock    time.Duration // device clock minus ours
	back     time.Time     // when the network card is up again
	up       context.Context
	down     context.CancelFunc // ends up
	ops      int                // matrix operations so far
	stuck    map[ocs.Port]bool
	unlit    map[ocs.Port]bool
	subs     []*Subscription
	truth    truthLog
	alarms   map[alarmKey]*Alarm

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

// pathLoss returns the insertion loss of the path, without the part that
// changes each time it is made.
func (d *Device) pathLoss(c ocs.CrossConnect) float64 {
	o := d.p.Optics
	// The sum of four even draws of variance 1/12 is normal enough, and much
	// cheaper than a normal one: there is a loss to draw for each new path.
	u := rand.NewPCG(d.seed, drawLoss<<48|uint64(c.Ingress)<<24|uint64(c.Egress)).Uint64()
	sum := u&0xffff + u>>16&0xffff + u>>32&0xffff + u>>48
	n := (float64(sum)/(1<<16) - 2) * math.Sqrt(3)
	return min(max(o.Loss+o.LossSpread*n, o.Loss/2), o.LossMax-o.Repeatability)
}

// Operation is a command to the matrix that the device has accepted.
type Operation struct {
	Number  int       // 1 for the first; the Reconfiguration of its truth marks
	Ack     time.Time // when the device acknowledges it
	Settled time.Time // when the last path of it has settled
}

// FailedPortError is a port whose hardware has failed.
type FailedPortError struct{ Port ocs.Port }

// Error returns one sentence.
func (e *FailedPortError) Error() string { return fmt.Sprintf("port %d has failed", e.Port) }

// LimitError is a command with more cross-connects than the device takes.
type LimitError struct{ Pairs, Max int }

// Error returns one sentence.
func (e *LimitError) Error() string {
	return fmt.Sprintf("%d cross-connects in one command, at most %d are possible", e.Pairs, e.Max)
}

func (d *Device) checkPorts(ports []ocs.Port) error {
	for _, n := range ports {
		if !d.g.Has(n) {
			return &ocs.PortError{Port: n, Geometry: d.g, Reason: "is not a port"}
		}
	}
	return nil
}

func (d *Device) beginLocked(now int64) Operation {
	d.ops++
	t := d.axis.Time(now)
	return Operation{Number: d.ops, Ack: t, Settled: t}
}

// heldLocked returns the cross-connect that uses n.
func (d *Device) heldLocked(n ocs.Port) (ocs.CrossConnect, bool) {
	switch p := &d.ports[n]; {
	case p.peer == 0:
		return ocs.CrossConnect{}, false
	case p.ingress:
		return ocs.CrossConnect{Ingress: n, Egress: p.peer}, true
	default:
		return ocs.CrossConnect{Ingress: p.peer, Egress: n}, true
	}
}

// jammedLocked reports whether n cannot be moved: its mirror is stuck, or the
// one that it is joined to.
func (d *Device) jammedLocked(n ocs.Port) bool {
	return d.stuck[n] || d.stuck[d.ports[n].peer]
}

// dropLocked removes the cross-connect at n, if there is one, and returns it.
func (d *Device) dropLocked(n ocs.Port, now int64) (c ocs.CrossConnect, dropped bool) {
	c, dropped = d.heldLocked(n)
	if dropped {
		d.ports[c.Ingress].peer, d.ports[c.Egress].peer = 0, 0
		d.shineLocked(c.Egress, 0, now)
	}
	return c, dropped
}

// joinLocked makes cross-connects between free ports and sets when the
// operation has settled and is acknowledged.
func (d *Device) joinLocked(ccs []ocs.CrossConnect, now int64, op *Operation) {
	sw := d.p.Switching
	last := now
	for _, c := range ccs {
		out := d.seatLocked(c)
		dur := sw.Single
		if len(ccs) > 1 {
			dur = sw.Bulk
		}
		dur += time.Duration(min(max(d.switches.NormFloat64(), -3), 3) * float64(sw.Jitter))
		out.settled = now + int64(max(dur, 0))
		out.path = settling(now, out.settled, sw.Rise)
		out.loss += float32(d.p.Optics.Repeatability * (2*d.switches.Float64() - 1))
		d.shineLocked(c.Egress, d.levelLocked(c), now)
		last = max(last, out.settled)
	}
	op.Settled = d.axis.Time(last)
	if sw.Ack == AckAfter {
		op.Ack = op.Settled
	}
}

// seatLocked enters a cross-connect between free ports, with light that has
// always been there, and returns its egress.
func (d *Device) seatLocked(c ocs.CrossConnect) *port {
	in, out := &d.ports[c.Ingress], &d.ports[c.Egress]
	in.peer, in.ingress = c.Egress, true
	out.peer, out.ingress = c.Ingress, false
	out.loss, out.path, out.settled = float32(d.pathLoss(c)), path{begin: always}, always
	return out
}

// levelLocked returns the power in mW that leaves at the egress of c when it
// has settled.
func (d *Device) levelLocked(c ocs.CrossConnect) float64 {
	in, out := &d.ports[c.Ingress], &d.ports[c.Egress]
	if in.closed || out.closed || in.blocked || out.blocked || d.unlit[c.Ingress] || d.unlit[c.Egress] {
		return 0
	}
	level := ocs.DBm(in.launch - out.loss)
	if len(d.voas) > 0 {
		level -= ocs.DBm(d.attenuationLocked(c))
	}
	return level.Milliwatts()
}

// relightLocked brings the power of the cross-connect at n, if there is one, in
// line after something other than the mirrors has changed: a shutter, a source.
func (d *Device) relightLocked(n ocs.Port, now int64) {
	if c, ok := d.heldLocked(n); ok {
		d.shineLocked(c.Egress, d.levelLocked(c), now)
	}
}

// shineLocked changes the level that the power at an egress goes to, and says
// in the truth log what that means for the light.
func (d *Device) shineLocked(n ocs.Port, level float64, now int64) {
	p := &d.ports[n]
	was := p.out.level()
	if was == level {
		return
	}
	seen := now
	switch {
	case level == 0:
		if !d.truth.cancel(n) {
			d.truth.add(fact{Interval: timeline.Point(now), stage: timeline.Dark, op: d.ops, port: n})
		}
	case now < p.settled:
		seen = p.settled
		if was == 0 {
			d.truth.expect(fact{Interval: timeline.Point(p.settled), stage: timeline.Light, op: d.ops, port: n})
		}
	case was == 0:
		d.truth.add(fact{Interval: timeline.Point(now), stage: timeline.Light, op: d.ops, port: n})
	}
	p.out = p.out.then(segment{now, p.path, level})
	d.tellLightLocked(n, level, seen, now)
	d.watchAlarmsLocked(n, seen, now)
}

// CrossConnects returns what the device holds.
func (d *Device) CrossConnects() ocs.Map {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.mapLocked()
}

func (d *Device) mapLocked() ocs.Map {
	var ccs []ocs.CrossConnect
	for i := range d.ports {
		if p := &d.ports[i]; p.peer != 0 && p.ingress {
			ccs = append(ccs, ocs.CrossConnect{Ingress: ocs.Port(i), Egress: p.peer})
		}
	}
	return ocs.MustMap(ccs...)
}

// SetInput changes the light that enters at port n from outside; minus
// infinity is none.
func (d *Device) SetInput(n ocs.Port, power ocs.DBm) error {
	if err := d.checkPorts([]ocs.Port{n}); err != nil {
		return err
	}
	if mw := power.Milliwatts(); math.IsNaN(mw) || math.IsInf(mw, 0) {
		return fmt.Errorf("input of port %d: %v is no power", n, power)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.nowLocked()
	p := &d.ports[n]
	light := func() segment {
		return segment{from: now, path: path{begin: always}, level: ocs.DBm(p.launch).Milliwatts()}
	}
	if d.inputs[n] == nil {
		before := light()
		before.from = always
		d.inputs[n] = trace{before}
	}
	p.launch = float32(power)
	d.inputs[n] = d.inputs[n].then(light())
	if p.ingress {
		d.relightLocked(n, now)
	}
	if !d.measuresOutputLocked(n) {
		d.watchAlarmsLocked(n, now, now)
	}
	return nil
}

// ShutterClosed reports whether the shutter of port n is closed.
func (d *Device) ShutterClosed(n ocs.Port) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.ports[n].closed
}

// Label returns the label of port n.
func (d *Device) Label(n ocs.Port) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.labels[n]
}

// Peer returns what was noted as the other end of the fibre at port n.
func (d *Device) Peer(n ocs.Port) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.peers[n]
}

// Failed reports whether the hardware of port n has failed.
func (d *Device) Failed(n ocs.Port) bool { return d.ports[n].failed } // never changes

// Notes returns the text of [Edit.Notes].
func (d *Device) Notes() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.notes
}

// MaxLabel is the longest label in bytes.
const MaxLabel = 128

func (d *Device) checkLabel(n ocs.Port, label string) error {
	if len(label) > MaxLabel || !printable(label) {
		return fmt.Errorf("label %.40q: want at most %d printable ASCII characters", label, MaxLabel)
	}
	return d.checkPorts([]ocs.Port{n})
}

func printable(s string) bool {
	for _, c := range []byte(s) {
		if c < ' ' || c > '~' {
			return false
		}
	}
	return true
}

// BootMode returns what a restart does with the cross-connects.
func (d *Device) BootMode() ocs.BootMode {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.boot
}

// ResetMatrix restarts the matrix: all light goes dark; in boot mode restore
// the cross-connects settle again, in mode dark they are gone, every shutter is
// open and no shutter programme runs.
func (d *Device) ResetMatrix() Operation {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.resetLocked()
}

func (d *Device) resetLocked() Operation {
	now := d.nowLocked()
	op := d.beginLocked(now)
	var dropped []ocs.CrossConnect
	for c := range d.mapLocked().All() {
		if !d.jammedLocked(c.Ingress) {
			d.dropLocked(c.Ingress, now)
			dropped = append(dropped, c)
		}
	}
	if d.boot == ocs.BootDark {
		for i := range d.ports {
			d.ports[i].closed = false
			d.stopFlapLocked(ocs.Port(i), now)
			d.relightLocked(ocs.Port(i), now) // of mirrors that are stuck
		}
	} else {
		d.joinLocked(dropped, now, &op)
	}
	d.saveLocked()
	return op
}

// Reboot restarts the network card: every session ends, and none can begin
// until it is back. Light is not touched, except that in boot mode dark the
// matrix is reset.
func (d *Device) Reboot() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.back = time.Now().Add(d.p.Control.Reboot)
	d.down()
	d.up, d.down = context.WithCancel(context.Background())
	if d.boot == ocs.BootDark {
		d.resetLocked()
	}
}

// Up returns a context that ends when the network card restarts.
func (d *Device) Up() context.Context {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.up
}

// Rebooting reports whether the network card is down.
func (d *Device) Rebooting() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return time.Now().Before(d.back)
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
