package wiring

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ocslab/ocslab/emulator/fabric"
	"github.com/ocslab/ocslab/experiment"
	"github.com/ocslab/ocslab/internal/natural"
	"github.com/ocslab/ocslab/internal/pause"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/lab/history"
	"github.com/ocslab/ocslab/linkmon/optics"
	"github.com/ocslab/ocslab/linkmon/watch"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/timeline"
)

// DefaultCarrierWait is how long NICs may take from light to carrier.
const DefaultCarrierWait = 12 * time.Second

// TestbedOptions say how a lab is searched.
type TestbedOptions struct {
	Only []string // NICs and hosts to look for, by name; none: all of the lab
	// Policy is what may happen to circuits that are there: Safe refuses, Update moves them
	// and puts them back.
	Policy ocs.Policy
	Fabric lab.FabricOptions // how hosts are emulated when the lab is
	// CarrierWait is how long NICs may take from light to carrier; 0 is DefaultCarrierWait.
	CarrierWait time.Duration
}

// Testbed is a lab as a [Plant]. It is used by one goroutine at a time.
type Testbed struct {
	Fabric *fabric.Fabric // nil: the hosts are real

	lab     *lab.Lab
	opt     TestbedOptions
	bed     *experiment.Testbed
	mover   *experiment.Mover
	found   map[string]ocs.Map // circuits before anything was moved
	rigs    map[string]*rig
	find    Options
	nics    []*nic
	notes   []string
	lag     time.Duration // of the modules
	close   []func() error
	moved   bool
	leases  []func() error // end those of the ports in question, from the first change to the end
	calm    bool           // NICs behind agents were seen in the dark
	carrier map[string]bool
}

// rig is a switch.
type rig struct {
	sw        *lab.Opened
	meter     ocs.PowerMeter // nil: it has none
	averaging time.Duration
	ports     map[ocs.Port]bool // in question, of both sides
	egress    []ocs.Port        // of those
	busy      ocs.Map           // circuits that were there before, on these ports
}

// nic is a NIC that is looked for.
type nic struct {
	*lab.NIC
	name    string
	sampler *optics.Sampler // nil: its module cannot be read
	err     error           // why
	tx      []ocs.DBm
	seen    bool // its carrier can be seen, here or through an agent
	far     bool // behind an agent
	voice   *voice
	mute    string // why it cannot say its name
}

// OpenTestbed opens the switches and NICs of a lab and emulates what is to be emulated. Nothing
// is moved yet. Under the policy Safe, circuits on ports in question are an error that
// matches [ocs.ErrConflict]. Power monitors are set to their shortest averaging, and set
// back by Close.
func OpenTestbed(ctx context.Context, l *lab.Lab, opt TestbedOptions) (t *Testbed, err error) {
	opt.CarrierWait = cmp.Or(opt.CarrierWait, DefaultCarrierWait)
	t = &Testbed{
		lab: l, opt: opt, found: map[string]ocs.Map{}, rigs: map[string]*rig{}, carrier: map[string]bool{},
		mover: experiment.NewMover(ocs.Update, nil),
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, t.Close())
			t = nil
		}
	}()
	names, err := chosen(l.File, opt.Only)
	if err != nil {
		return t, err
	}
	if len(names) == 0 {
		return t, errors.New("the lab has no NICs whose fibres could be looked for")
	}
	w := watch.Options{Firmware: -1, Optics: -1}
	w.Probe.Pace = experiment.Quiet
	t.bed, err = experiment.OpenTestbed(ctx, l, experiment.TestbedOptions{Watch: w, Only: opt.Only, Fabric: opt.Fabric})
	if err != nil {
		return t, err
	}
	t.close = append(t.close, t.bed.Close)
	t.Fabric = t.bed.Fabric
	if t.bed.Watch != nil {
		t.bed.Watch.Rest(true)
	}
	t.find.OneSided = map[string]bool{}
	var conflicts []error
	for i := range l.File.Switches {
		if err := t.openSwitch(ctx, l.File.Switches[i].Name, names); err != nil {
			if !errors.Is(err, ocs.ErrConflict) {
				return t, err
			}
			conflicts = append(conflicts, err)
		}
	}
	if err := errors.Join(conflicts...); err != nil {
		return t, err
	}
	if len(t.find.Ingress) == 0 || len(t.find.Egress) == 0 {
		return t, t.nothingLeft()
	}
	return t, t.openNICs(ctx, names)
}

// nothingLeft is why no port may be lit, or none lit with.
func (t *Testbed) nothingLeft() error {
	var whys []string
	for _, n := range t.find.LeftOut {
		if why := fmt.Sprintf("%v: %s", n.Port, n.Why); !slices.Contains(whys, why) {
			whys = append(whys, why)
		}
	}
	whys = append(whys, t.notes...)
	if more := len(whys) - 3; more > 0 {
		whys = append(whys[:3], fmt.Sprintf("and %d more", more))
	}
	if len(t.find.LeftOut) == 0 { // nobody forbids it
		return fmt.Errorf("%w: no switch of the lab has ports that could be lit one by one (%s)", ocs.ErrNotSupported, strings.Join(whys, "; "))
	}
	return fmt.Errorf("%w: no ports are left that could be lit (%s)", ocs.ErrInterlock, strings.Join(whys, "; "))
}

// lease takes all ports in question for as long as the search lasts.
func (t *Testbed) lease(ctx context.Context) error {
	if len(t.leases) > 0 {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(t.rigs)) {
		r := t.rigs[name]
		if len(r.ports) == 0 {
			continue
		}
		held, err := r.sw.Gate().Lease(ctx, r.sw, slices.Collect(maps.Keys(r.ports)), "ocslab wiring")
		if err != nil {
			return errors.Join(err, t.release())
		}
		t.leases = append(t.leases, held)
	}
	return nil
}

func (t *Testbed) release() error {
	var errs []error
	for _, h := range t.leases {
		errs = append(errs, h())
	}
	t.leases = nil
	return errors.Join(errs...)
}

// chosen returns the NICs that are named, by full name.
func chosen(f *lab.File, only []string) (map[string]*lab.NIC, error) {
	names := map[string]*lab.NIC{}
	for i := range f.Hosts {
		for j := range f.Hosts[i].NICs {
			n := &f.Hosts[i].NICs[j]
			if len(only) == 0 || slices.Contains(only, n.Host) {
				names[n.FullName()] = n
			}
		}
	}
	for _, name := range only {
		if slices.ContainsFunc(f.Hosts, func(h lab.Host) bool { return h.Name == name }) {
			continue
		}
		n, err := f.NIC(name)
		if err != nil {
			return nil, err
		}
		names[n.FullName()] = n
	}
	return names, nil
}

// openSwitch opens a switch and tells which of its ports are in question.
func (t *Testbed) openSwitch(ctx context.Context, name string, names map[string]*lab.NIC) error {
	o, err := t.lab.Switch(ctx, name)
	if err != nil {
		return err
	}
	id, err := o.Identify(ctx)
	if err != nil {
		return err
	}
	g := id.Geometry
	if !g.Known() {
		return fmt.Errorf("%s does not say which ports it has, so there is nothing to light one by one", name)
	}
	if g.Lanes > 0 {
		t.notes = append(t.notes, name+" is a bundle of transceivers: its fibres are not looked at")
		return nil
	}
	have, err := o.CrossConnects(ctx)
	if err != nil {
		return err
	}
	kept, err := t.kept(o, have)
	if err != nil {
		return err
	}
	for i := range t.lab.File.Hosts {
		for j := range t.lab.File.Hosts[i].NICs {
			n := &t.lab.File.Hosts[i].NICs[j]
			for _, p := range []lab.PortRef{n.Tx, n.Rx} {
				if p.Switch == name && names[n.FullName()] == nil && kept[p.Port] == "" {
					kept[p.Port] = "it is that of " + n.FullName() + ", which is not looked for"
				}
			}
		}
	}
	r := &rig{sw: o, ports: map[ocs.Port]bool{}}
	t.find.OneSided[name] = g.SingleSided
	for _, p := range g.IngressPorts() {
		t.offer(r, kept, lab.PortRef{Switch: name, Port: p}, false)
	}
	for _, p := range g.EgressPorts() {
		t.offer(r, kept, lab.PortRef{Switch: name, Port: p}, true)
	}
	var busy []ocs.CrossConnect
	for c := range have.All() {
		if r.ports[c.Ingress] || r.ports[c.Egress] {
			busy = append(busy, c)
		}
	}
	if len(busy) > 0 && t.opt.Policy != ocs.Update {
		return fmt.Errorf("%w: %s has %s on the ports in question (%v): --mode update moves them meanwhile, and puts them back",
			ocs.ErrConflict, name, natural.Count(len(busy), "circuit"), ocs.MustMap(busy...))
	}
	r.busy = ocs.MustMap(busy...)
	t.found[name] = have
	t.rigs[name] = r
	return t.openMeter(ctx, name, r)
}

// offer makes a port one in question unless it is kept.
func (t *Testbed) offer(r *rig, kept map[ocs.Port]string, p lab.PortRef, egress bool) {
	if why := kept[p.Port]; why != "" {
		t.find.LeftOut = append(t.find.LeftOut, PortNote{Port: p, Egress: egress, Why: why})
		return
	}
	r.ports[p.Port] = true
	if egress {
		r.egress = append(r.egress, p.Port)
		t.find.Egress = append(t.find.Egress, p)
	} else {
		t.find.Ingress = append(t.find.Ingress, p)
	}
}

// kept returns the ports that nobody may move, or somebody else has, and what is joined to
// them, with why.
func (t *Testbed) kept(o *lab.Opened, have ocs.Map) (map[ocs.Port]string, error) {
	kept := map[ocs.Port]string{}
	for _, p := range t.lab.File.ProtectedPorts(o.Name) {
		kept[p] = "it is protected"
	}
	leases, err := o.Gate().Authority().Leases(o.Device)
	if err != nil {
		return nil, err
	}
	for _, l := range leases {
		for _, p := range l.Ports {
			kept[p] = "it is leased to " + l.Holder
		}
	}
	for _, p := range slices.Collect(maps.Keys(kept)) {
		for _, c := range have.At(p) {
			for _, q := range []ocs.Port{c.Ingress, c.Egress} {
				if kept[q] == "" {
					kept[q] = fmt.Sprintf("it is joined to %v, and %s", p, strings.TrimPrefix(kept[p], "it "))
				}
			}
		}
	}
	return kept, nil
}

// openMeter opens a second session for the monitors, where there are any.
func (t *Testbed) openMeter(ctx context.Context, name string, r *rig) error {
	if _, ok := ocs.As[ocs.PowerMeter](r.sw); !ok || len(r.ports) == 0 {
		return nil
	}
	second, err := t.lab.Session(ctx, name)
	if err != nil {
		if ctx.Err() != nil {
			return err
		}
		second = r.sw // a serial line has one session
	} else {
		t.close = append(t.close, second.Close)
	}
	meter, _ := ocs.As[ocs.PowerMeter](second)
	averaging, restore, err := experiment.Quicken(ctx, meter, slices.Sorted(maps.Keys(r.ports))...)
	switch {
	case errors.Is(err, experiment.ErrNoMonitor):
		return nil
	case errors.Is(err, ocs.ErrNotSupported):
		averaging = experiment.AssumedAveraging
	case err != nil:
		return err
	default:
		t.close = append(t.close, func() error { return restore(ctx) })
	}
	r.meter, r.averaging = meter, averaging
	return nil
}

// openNICs opens the modules, and what NICs say their names with.
func (t *Testbed) openNICs(ctx context.Context, names map[string]*lab.NIC) error {
	var hosts []watch.Host
	if t.Fabric != nil {
		hosts = experiment.FabricHosts(t.Fabric)
	} else {
		list, not, closers, err := experiment.Hosts(t.lab.File)
		t.close = append(t.close, closers...)
		if err != nil {
			return err
		}
		hosts = list
		for _, s := range not {
			t.notes = append(t.notes, s.Host+" is not looked at: "+s.Why)
		}
	}
	t.lag = 0
	for i := range t.lab.File.Hosts {
		for j := range t.lab.File.Hosts[i].NICs {
			if n := names[t.lab.File.Hosts[i].NICs[j].FullName()]; n != nil {
				t.nics = append(t.nics, &nic{NIC: n, name: n.FullName(), err: errors.New("its host cannot be reached from here"), mute: "its host cannot be reached from here"})
				t.find.NICs = append(t.find.NICs, NIC{Name: n.FullName(), Tx: n.Tx, Rx: n.Rx})
			}
		}
	}
	for _, n := range t.nics {
		i := slices.IndexFunc(hosts, func(h watch.Host) bool { return h.Name == n.Host })
		if i < 0 {
			continue
		}
		h := &hosts[i]
		n.seen, n.far = true, len(h.Agent) > 0
		if n.far {
			n.err = errors.New("an agent does not tell what a module reads")
			n.mute = "its host is reached through an agent, which sends no frames"
			continue
		}
		t.lag = max(t.lag, cmp.Or(h.Lag, watch.DefaultLag))
		t.openModule(ctx, n, h)
		if v, err := t.openVoice(n, h); err != nil {
			n.mute = err.Error()
		} else {
			n.voice, n.mute = v, ""
			t.close = append(t.close, v.conn.Close)
		}
	}
	t.lag = cmp.Or(t.lag, watch.DefaultLag)
	return nil
}

// openModule opens the module of a NIC.
func (t *Testbed) openModule(ctx context.Context, n *nic, h *watch.Host) {
	r, err := h.OpenModule(n.Name)
	if n.err = err; err != nil {
		return
	}
	s := &optics.Sampler{Reader: r}
	if _, n.err = s.Identify(ctx); n.err != nil {
		r.Close()
		return
	}
	n.sampler = s
	t.close = append(t.close, r.Close)
	if tx, err := s.Transmit(ctx); err == nil {
		n.tx = tx
	}
}

// Options returns what is looked for, to be completed.
func (t *Testbed) Options() Options {
	opt := t.find
	opt.LeftOut = slices.Clone(opt.LeftOut)
	return opt
}

// Notes returns what else is to be known, a sentence each.
func (t *Testbed) Notes() []string {
	notes := slices.Clone(t.notes)
	blind := map[string][]string{} // by why
	for _, n := range t.nics {
		if n.sampler == nil && n.err != nil {
			blind[n.err.Error()] = append(blind[n.err.Error()], n.name)
		}
	}
	for _, why := range slices.Sorted(maps.Keys(blind)) {
		notes = append(notes, fmt.Sprintf("%s: the received power is not read, so the carrier has to tell: %s", strings.Join(blind[why], ", "), why))
	}
	for name, r := range t.rigs {
		if r.meter == nil {
			notes = append(notes, name+" has no power monitors: whether its light is as it should be is not seen")
		}
	}
	slices.Sort(notes)
	return notes
}

// Expect returns about how long so many maps take.
func (t *Testbed) Expect(steps int) time.Duration {
	one := 2*t.lag + t.lag/2
	slowest := time.Duration(0)
	for name, r := range t.rigs {
		ack := 100 * time.Millisecond
		if list, _, err := t.lab.Gate().Authority().Entries(); err == nil {
			if median, n := history.MedianAck(list, r.sw.Device); n > 0 {
				ack = median
			}
		}
		if s, ok := t.lab.File.Switch(name); ok && t.lab.Emulated() && s.Emulate != nil && s.Emulate.Switching != nil {
			ack = *s.Emulate.Switching
		}
		slowest = max(slowest, ack+4*r.averaging)
	}
	one += slowest
	if t.byCarrier() {
		one += t.opt.CarrierWait
	}
	return time.Duration(steps) * one
}

// byCarrier reports whether any NIC is told by its carrier.
func (t *Testbed) byCarrier() bool {
	return slices.ContainsFunc(t.nics, func(n *nic) bool { return n.sampler == nil && n.seen })
}

// Set brings circuits about on all switches at once, and waits for the light.
func (t *Testbed) Set(ctx context.Context, want map[string]ocs.Map) error {
	if err := t.settleAgents(ctx); err != nil {
		return err
	}
	return t.set(ctx, want)
}

func (t *Testbed) set(ctx context.Context, want map[string]ocs.Map) error {
	if err := t.lease(ctx); err != nil {
		return err
	}
	names := slices.Sorted(maps.Keys(t.rigs))
	errs := make([]error, len(names))
	changed := make([]bool, len(names))
	for _, name := range names {
		t.mover.Own(name, want[name])
		t.mover.Own(name, t.rigs[name].busy)
	}
	t.moved = true
	var all sync.WaitGroup
	for i, name := range names {
		all.Go(func() {
			errs[i] = experiment.Guard(func() (err error) {
				r := t.rigs[name]
				changed[i], err = t.mover.Hold(ctx, r.sw, r.ports, want[name])
				return err
			})
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if !slices.Contains(changed, true) {
		return nil
	}
	for _, name := range names {
		if err := t.settle(ctx, t.rigs[name], want[name]); err != nil {
			return err
		}
	}
	return pause.For(ctx, t.lag)
}

// How long to wait for light that does not come or go as it should, and without monitors.
const (
	settlePatience = 3 * time.Second
	blindWait      = time.Second
	settled        = 0.3 // dB between two readings
)

// settle waits until the monitors of the egress ports stand still and show what was set, or
// patience is over: what they then show is for the caller to judge.
func (t *Testbed) settle(ctx context.Context, r *rig, want ocs.Map) error {
	if r.meter == nil {
		return pause.For(ctx, blindWait)
	}
	var before map[ocs.Port]ocs.DBm
	for began := time.Now(); time.Since(began) < settlePatience; {
		reading, err := r.meter.Power(ctx, r.egress...)
		if err != nil {
			return err
		}
		still := before != nil
		for p, level := range reading.Ports {
			_, on := want.IngressOf(p)
			lit := level >= DefaultThreshold
			if on && !lit {
				still = false
			}
			// Light at a port that is not on may be here to stay: of a port that takes it in.
			if was, ok := before[p]; lit && (!ok || math.Abs(float64(level.Sub(was))) > settled) {
				still = false
			}
		}
		if still {
			return nil
		}
		before = reading.Ports
		if err := pause.For(ctx, max(2*r.averaging, 5*time.Millisecond)); err != nil {
			return err
		}
	}
	return nil
}

// Power reads the monitors at ports.
func (t *Testbed) Power(ctx context.Context, ports []lab.PortRef) (map[lab.PortRef]ocs.DBm, error) {
	by := map[string][]ocs.Port{}
	for _, p := range ports {
		by[p.Switch] = append(by[p.Switch], p.Port)
	}
	power := map[lab.PortRef]ocs.DBm{}
	for name, list := range by {
		r := t.rigs[name]
		if r == nil || r.meter == nil {
			continue
		}
		reading, err := r.meter.Power(ctx, list...)
		if err != nil {
			return nil, err
		}
		for p, level := range reading.Ports {
			power[lab.PortRef{Switch: name, Port: p}] = level
		}
	}
	return power, nil
}

// looks is how often a module is read for one look.
const looks = 3

// Look reads every module a few times, as far apart as it takes a module to notice, and waits
// for the carriers of those that cannot be read.
func (t *Testbed) Look(ctx context.Context, names []string) (map[string]Look, error) {
	result := map[string]Look{}
	for i := range looks {
		if i > 0 {
			if err := pause.For(ctx, t.lag/(looks-1)); err != nil {
				return nil, err
			}
		}
		for _, n := range t.nics {
			if n.sampler == nil || !slices.Contains(names, n.name) {
				continue
			}
			look := result[n.name]
			sample, err := n.sampler.Sample(ctx)
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			if err != nil {
				look.Err = err
			} else {
				look.Rx, look.Tx = append(look.Rx, sample.Lanes), n.tx
			}
			result[n.name] = look
		}
	}
	if t.byCarrier() {
		if err := t.waitCarriers(ctx, nil); err != nil {
			return nil, err
		}
		for _, n := range t.nics {
			if n.sampler != nil || !slices.Contains(names, n.name) {
				continue
			}
			look := Look{Err: n.err}
			if n.seen {
				look.Carrier = bitOf(t.carrier[n.name])
			}
			result[n.name] = look
		}
	}
	for name, look := range result {
		if len(look.Rx) > 0 && len(look.Rx) < looks { // it failed now and then: nothing is said
			look.Rx = nil
			result[name] = look
		}
	}
	return result, nil
}

// settleAgents shows the NICs behind agents the dark once: an agent tells what changes, and
// not how things are.
func (t *Testbed) settleAgents(ctx context.Context) error {
	if t.calm || !slices.ContainsFunc(t.nics, func(n *nic) bool { return n.far }) {
		return nil
	}
	if err := t.set(ctx, nil); err != nil {
		return err
	}
	t.calm = true
	return t.waitCarriers(ctx, nil)
}

// waitCarriers waits until all of names have a carrier, or patience is over; with none it
// waits in any case, since a NIC that stays dark is not told from one that is slow.
func (t *Testbed) waitCarriers(ctx context.Context, names []string) error {
	const look = 5 * time.Millisecond
	for began := time.Now(); ; {
		t.carriers()
		if len(names) > 0 && !slices.ContainsFunc(names, func(n string) bool { return !t.carrier[n] }) || time.Since(began) >= t.opt.CarrierWait {
			return nil
		}
		if err := pause.For(ctx, look); err != nil {
			return err
		}
	}
}

// carriers brings t.carrier up to date.
func (t *Testbed) carriers() {
	w := t.bed.Watch
	if w == nil {
		return
	}
	for _, r := range w.Drain() {
		if r.Mark == nil {
			continue
		}
		switch r.Mark.Stage {
		case timeline.CarrierUp:
			t.carrier[r.Mark.Subject] = true
		case timeline.CarrierDown:
			t.carrier[r.Mark.Subject] = false
		}
	}
	maps.Copy(t.carrier, w.Carriers())
}

// Close puts the circuits back as they were, and ends all that was opened. It does so also when
// the context of the search has ended.
func (t *Testbed) Close() error {
	var errs []error
	if t.moved {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		errs = append(errs, t.mover.Leave(ctx, t.lab, t.found))
		t.moved = false
	}
	errs = append(errs, t.release())
	for _, c := range slices.Backward(t.close) {
		errs = append(errs, c())
	}
	t.close = nil
	return errors.Join(errs...)
}
