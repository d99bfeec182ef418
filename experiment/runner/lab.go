package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ocslab/ocslab/emulator/fabric"
	"github.com/ocslab/ocslab/experiment"
	"github.com/ocslab/ocslab/experiment/plan"
	"github.com/ocslab/ocslab/experiment/runs"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/linkmon/watch"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/timeline"
)

// Lab opens the testbeds of a plan in a lab, real or emulated, and leaves its light as the
// run is to leave it. It is used by one goroutine at a time.
type Lab struct {
	File    *lab.File
	Options lab.Options
	Plan    *plan.Plan
	Measure plan.Measure
	Mover   *experiment.Mover
	Rung    fabric.Rung // of emulated hosts; 0 is the best there is

	// Circuits are those that the run has found, by switch: [Lab.Find] sets them, or who
	// resumes a run.
	Circuits map[string]ocs.Map

	// Tap, if it is not nil, is called for each record of the watches of the testbeds, by the
	// goroutine that saw it; it must not block. See [watch.Options].
	Tap func(watch.Record)

	// Moved, if it is not nil, is told of each Move of the testbeds, also of warm-ups and ways
	// to where a point begins: what was to be brought about, by switch, and what came of
	// it, which after an error is what was seen until then. It is called by the goroutine
	// that moves, after all has been measured, so the run waits for it.
	Moved func(to map[string]ocs.Map, mv experiment.Move)

	// Opened, if it is not nil, is called with each testbed as soon as it is open, and before it is
	// used; its error is one of opening it.
	Opened func(*experiment.Testbed) error
}

// NewLab returns a Lab.
func NewLab(f *lab.File, opt lab.Options, p *plan.Plan, m plan.Measure, policy ocs.Policy) *Lab {
	var all []map[string]ocs.Map
	for _, c := range p.Conditions {
		all = append(all, c.Maps...)
	}
	if p.Finally != nil {
		all = append(all, p.Finally)
	}
	mover := experiment.NewMover(policy, all)
	mover.Exact = p.Exact
	return &Lab{File: f, Options: opt, Plan: p, Measure: m, Mover: mover}
}

// Find reads what the switches of the plan hold, and checks that every configuration fits
// them and that nothing is in the way; see [experiment.Mover.Check].
func (l *Lab) Find(ctx context.Context) error {
	open := lab.New(l.File, l.Options)
	found := map[string]ocs.Map{}
	for _, name := range slices.Sorted(maps.Keys(l.Mover.Ours)) {
		have, err := l.find(ctx, open, name)
		if err != nil {
			return errors.Join(err, open.Close())
		}
		found[name] = have
	}
	l.Circuits = found
	return open.Close()
}

// find reads what one switch holds, and checks it.
func (l *Lab) find(ctx context.Context, open *lab.Lab, name string) (ocs.Map, error) {
	sw, err := open.Switch(ctx, name)
	if err != nil {
		return ocs.Map{}, err
	}
	id, err := sw.Identify(ctx)
	if err != nil {
		return ocs.Map{}, err
	}
	have, err := sw.CrossConnects(ctx)
	if err != nil {
		return ocs.Map{}, err
	}
	for _, c := range l.Plan.Conditions {
		for i, m := range c.Maps {
			if err := id.Geometry.Check(m[name]); err != nil && c.Settings.Model == "" {
				return ocs.Map{}, fmt.Errorf("the configuration %s does not fit %s: %w", c.Sequence[i], name, err)
			}
			if err := l.Mover.Check(name, have, m[name]); err != nil {
				return ocs.Map{}, err
			}
		}
	}
	return have, nil
}

// Open opens a testbed for conditions that share a set-up. The error of a configuration
// that does not fit a switch matches [ocs.ErrPort] and names the port; nothing has moved
// then.
func (l *Lab) Open(ctx context.Context, conditions []plan.Condition) (_ Bench, err error) {
	s := conditions[0].Settings
	b := &labBench{of: l, lab: lab.New(s.Apply(l.File), l.Options)}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.Close())
		}
	}()
	opt := experiment.TestbedOptions{
		Only: l.Measure.Only,
		Watch: watch.Options{
			Poll: l.Measure.Poll, Tight: l.Measure.Tight, Sync: l.Measure.Sync, Tap: l.Tap,
		},
		Fabric: lab.FabricOptions{Seed: l.Plan.Seed, Rung: l.Rung},
	}
	opt.Watch.Probe.Pace, opt.Watch.Probe.Spin = s.Pace, l.Measure.Spin
	if t := l.Measure.Traffic; t != nil && !*t {
		opt.Watch.Probe.Pace = experiment.Quiet
	}
	for _, c := range conditions {
		opt.Maps = append(opt.Maps, c.Maps...)
	}
	if b.bed, err = experiment.OpenTestbed(ctx, b.lab, opt); err != nil {
		return nil, err
	}
	b.bed.Bench.LinkPatience = l.Measure.Patience
	if b.devices, err = Devices(ctx, b.bed); err != nil {
		return nil, err
	}
	if _, err = l.Mover.TakeOver(ctx, b.bed); err == nil && l.Opened != nil {
		err = l.Opened(b.bed)
	}
	return b, err
}

// Light leaves the light as want says, by switch; nil is as the run has found it.
func (l *Lab) Light(ctx context.Context, want map[string]ocs.Map) error {
	if want == nil {
		want = l.Circuits
	}
	open := lab.New(l.File, l.Options)
	return errors.Join(l.Mover.Leave(ctx, open, want), open.Close())
}

// labBench is a Bench on a lab.
type labBench struct {
	of      *Lab
	lab     *lab.Lab
	bed     *experiment.Testbed
	devices []runs.Device
}

func (b *labBench) Move(ctx context.Context, number int, to map[string]ocs.Map, wait plan.Wait) (experiment.Move, error) {
	bench := &b.bed.Bench
	bench.Until, bench.Fixed = "", 0
	switch wait.Until {
	case plan.UntilSettled:
		bench.Until = timeline.Light
	case plan.UntilCarrier:
		bench.Until = timeline.CarrierUp
	case plan.UntilFixed:
		bench.Fixed = wait.For
	}
	mv, err := bench.Move(ctx, number, to, ocs.Update)
	if b.of.Moved != nil {
		b.of.Moved(to, mv)
	}
	return mv, err
}

func (b *labBench) Null(ctx context.Context, number int, window time.Duration) (experiment.Move, error) {
	return b.bed.Bench.Null(ctx, number, window)
}

func (b *labBench) Truth(number int) []timeline.Mark { return b.bed.Truth(number) }

// Close closes the testbed and the lab.
func (b *labBench) Close() error {
	var err error
	if b.bed != nil {
		err = b.bed.Close()
	}
	return errors.Join(err, b.lab.Close())
}

// Devices asks the switches of a testbed what they are.
func Devices(ctx context.Context, t *experiment.Testbed) ([]runs.Device, error) {
	var list []runs.Device
	for _, r := range t.Bench.Rigs {
		id, err := r.Switch.Identify(ctx)
		if err != nil {
			return nil, err
		}
		sw := r.Switch.(*lab.Opened)
		d := runs.Device{
			Name: r.Name, URL: sw.Device, Vendor: id.Vendor, Model: id.Model, Serial: id.Serial, Firmware: id.Firmware,
			Size: id.Geometry.String(), Emulated: sw.Emulated != nil, AveragingNS: int64(t.Average[r.Name]),
		}
		if d.Emulated {
			d.Model = sw.Emulated.Model()
		}
		list = append(list, d)
	}
	return list, nil
}

// Setup says how the testbed is set up.
func (b *labBench) Setup() runs.Setup { return SetupOf(b.bed, b.devices, b.of.Measure) }

// SetupOf says how a testbed with the given devices is set up, when its hosts are watched as m says.
func SetupOf(t *experiment.Testbed, devices []runs.Device, m plan.Measure) runs.Setup {
	s := runs.Setup{
		Devices: devices, Carrier: "counters", PollNS: int64(m.Poll), PaceNS: int64(t.Pace), Missing: []string{},
	}
	if m.Tight {
		s.Carrier = "counters without pause"
	}
	if m.Sync {
		s.Carrier += ", kernel made to announce"
	}
	if t.Fabric != nil {
		s.Rung = t.Fabric.Rung().String()
	}
	sources := t.Sources
	if t.Watch == nil {
		s.Carrier, s.PollNS = "", 0
	} else {
		sources = slices.Concat(sources, t.Watch.Sources())
		s.Boots = boots(t)
	}
	for _, x := range experiment.Missing(sources, s.Rung == fabric.Memory.String()) {
		s.Missing = append(s.Missing, x.String())
	}
	for _, h := range t.Lab.File.Hosts {
		for _, n := range h.NICs {
			s.NICs = append(s.NICs, nic(t, h, n))
		}
	}
	return s
}

// bootTime is how long the agents of a testbed may take, all together, to say in which boot their machines
// are.
const bootTime = 2 * time.Second

// boots asks the agents of a testbed. One that does not answer, or does not know, is left out.
func boots(t *experiment.Testbed) map[string]string {
	ctx, cancel := context.WithTimeout(context.Background(), bootTime)
	defer cancel()
	var known map[string]string
	for _, host := range t.Watch.Agents() {
		if m, err := t.Watch.Machine(ctx, host); err == nil && m.Boot != "" {
			if known == nil {
				known = map[string]string{}
			}
			known[host] = m.Boot
		}
	}
	return known
}

// nic is a network interface, with what can be found out about it from here.
func nic(t *experiment.Testbed, h lab.Host, n lab.NIC) runs.NIC {
	x := runs.NIC{Name: n.FullName(), Tx: n.Tx.String(), Rx: n.Rx.String()}
	if t.Fabric != nil {
		x.Firmware = cmp.Or(n.Firmware, lab.DefaultFirmware)
		x.Driver = "emulated"
	} else if len(h.Agent) == 0 {
		x.Driver, x.Firmware = driver(h.NetNS, n.Name)
	}
	return x
}
