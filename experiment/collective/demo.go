package collective

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/ocslab/ocslab/experiment/runs"
	"github.com/ocslab/ocslab/internal/natural"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/topology/pccl"
)

// What the demo runs: the example of the paper's size 8, with hops and bytes 1000 times slower than the paper has
// them, so that plans change where the switching times of real switches are.
const (
	demoGPUs  = 8
	demoBytes = 100e6
	demoAlpha = 3e-3
	demoBeta  = 1 / 0.45e9
)

// Bounds and defaults of [DemoOptions].
const (
	DefaultRepeats = 3
	DefaultToggles = 6
	MostRepeats    = 100
)

// DemoOptions say how [Demo] is done. The zero value is as it is meant.
type DemoOptions struct {
	Repeats int // of each plan on each switch; 0 is DefaultRepeats, MostRepeats at most
	Toggles int // by which each switch's switching time is measured, even; 0 is DefaultToggles
	Seed    uint64
	// Progress, if it is not nil, is told what is done next, in a few words.
	Progress func(text string)
}

// Report is what [Demo] has found.
type Report struct {
	Schedule string // "reduce-scatter by rhd-halving"
	GPUs     int
	Bytes    float64     // of the buffer of each GPU
	Params   pccl.Params // of the links
	Classes  []Class     // of switches, the quickest first
}

// Class is a class of emulated switches.
type Class struct {
	Name      string          // "mems"
	About     string          // "MEMS mirrors"
	Protocol  string          // that the switch was spoken to in: "TL1"
	Nominal   time.Duration   // the switching time of the emulated switch
	Switching []time.Duration // as measured, from the decision to light and read-back; sorted
	Measured  time.Duration   // the median of Switching, which the plans were made with
	Light     time.Duration   // the median of the part of it from the request on the wire to the light
	Plans     []Outcome       // by falling number of changes
}

// Outcome is a plan that was run.
type Outcome struct {
	Name      string          // "3 changes"
	Plan      pccl.Plan       // its cost at the measured switching time
	Chosen    bool            // the planner's
	Predicted time.Duration   // its total
	Nominal   time.Duration   // what its total would be at the nominal switching time
	Measured  time.Duration   // median of Totals
	Totals    []time.Duration // by repeat, in order
	Rounds    []Round         // of the repeat that is the median
}

// Chosen returns the plan that the planner has chosen.
func (c Class) Chosen() Outcome {
	i := slices.IndexFunc(c.Plans, func(o Outcome) bool { return o.Chosen })
	if i < 0 {
		return Outcome{}
	}
	return c.Plans[i]
}

// Fastest returns the plan that took the least time.
func (c Class) Fastest() Outcome {
	if len(c.Plans) == 0 {
		return Outcome{}
	}
	return slices.MinFunc(c.Plans, func(a, b Outcome) int { return cmp.Compare(a.Measured, b.Measured) })
}

// Deviation is how much more was measured than predicted, as a share of that.
func (o Outcome) Deviation() float64 { return float64(o.Measured-o.Predicted) / float64(o.Predicted) }

// class is a class of switches as it is emulated.
type class struct {
	name, about, protocol, scheme, model string
	switching                            time.Duration
}

// classes are one for each regime of the demo.
var classes = [...]class{
	{"mems", "MEMS mirrors, acknowledges before the light", "TL1", "tl1", "fast-mems-25ms", 25 * time.Millisecond},
	{"liquid-crystal", "as of liquid crystals", "SCPI", "scpi", "polatis-6000-32x32", 100 * time.Millisecond},
	{"piezo", "piezo-steered beams", "NETCONF", "netconf", "polatis-6000-32x32", 200 * time.Millisecond},
}

// Demo measures the switching time of three classes of emulated switches, plans a ReduceScatter for each with
// the time it measured, runs that plan and those that are best for other switching times, and reports what was predicted and
// what it took. It takes some half a minute, needs a quiet machine to be exact, and leaves nothing behind.
func Demo(ctx context.Context, opt DemoOptions) (*Report, error) {
	if opt.Repeats == 0 {
		opt.Repeats = DefaultRepeats
	}
	if opt.Toggles == 0 {
		opt.Toggles = DefaultToggles
	}
	if opt.Repeats < 1 || opt.Repeats > MostRepeats || opt.Toggles < 2 || opt.Toggles > MostRepeats || opt.Toggles%2 != 0 {
		return nil, fmt.Errorf("%w: %d repeats and %d toggles: want 1 to %d repeats, and 2 to %d toggles, an even number",
			pccl.ErrArgument, opt.Repeats, opt.Toggles, MostRepeats, MostRepeats)
	}
	if opt.Progress == nil {
		opt.Progress = func(string) {}
	}
	d, err := newDemo(opt)
	if err != nil {
		return nil, err
	}
	report := &Report{
		Schedule: fmt.Sprintf("%s by %s", d.problem.Schedule.Collective, d.problem.Schedule.Algorithm),
		GPUs:     demoGPUs, Bytes: demoBytes, Params: d.problem.Params,
	}
	for _, c := range classes {
		done, err := d.class(ctx, c)
		if err != nil {
			return report, fmt.Errorf("%s: %w", c.name, err)
		}
		report.Classes = append(report.Classes, done)
	}
	return report, nil
}

// demo is a demo under way.
type demo struct {
	opt     DemoOptions
	problem pccl.Problem
	table   *pccl.Table
	pieces  []pccl.Piece
}

func newDemo(opt DemoOptions) (*demo, error) {
	d := &demo{opt: opt}
	s, err := pccl.New(pccl.ReduceScatter, "rhd-halving", demoGPUs, demoBytes)
	if err != nil {
		return nil, err
	}
	ring, err := pccl.Ring(demoGPUs)
	if err != nil {
		return nil, err
	}
	d.problem = pccl.Problem{Schedule: s, Start: ring, Params: pccl.Params{Alpha: demoAlpha, Beta: demoBeta}}
	if d.table, err = pccl.NewTable(d.problem); err != nil {
		return nil, err
	}
	d.pieces, err = d.table.Envelope()
	return d, err
}

// class measures, plans and runs on one class of switches.
func (d *demo) class(ctx context.Context, c class) (_ Class, err error) {
	done := Class{Name: c.name, About: c.about, Protocol: c.protocol, Nominal: c.switching}
	dir, err := os.MkdirTemp("", "ocslab-demo-")
	if err != nil {
		return done, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	f, opt, err := d.lab(c, dir)
	if err != nil {
		return done, err
	}
	d.opt.Progress(fmt.Sprintf("%s: measuring the switching time", c.name))
	if done.Switching, done.Light, err = d.toggle(ctx, f, opt); err != nil {
		return done, err
	}
	done.Measured = median(done.Switching)
	best, err := d.table.Best(done.Measured.Seconds())
	if err != nil {
		return done, err
	}
	for _, piece := range d.pieces {
		p := retimed(piece.Plan, done.Measured.Seconds())
		d.opt.Progress(fmt.Sprintf("%s: running the plan with %d changes", c.name, p.Changes))
		o := Outcome{Name: natural.Count(p.Changes, "change"), Plan: p, Chosen: p.Changes == best.Changes, Predicted: seconds(p.Total)}
		o.Nominal = seconds(retimed(p, c.switching.Seconds()).Total)
		with := opt
		with.Repeats = d.opt.Repeats
		r, err := Run(ctx, f, Job{Plan: p, Start: d.problem.Start, Params: d.problem.Params}, with)
		if err != nil {
			return done, err
		}
		o.take(r)
		done.Plans = append(done.Plans, o)
	}
	return done, nil
}

// lab returns the lab of a class of switches, and how plans are run there.
func (d *demo) lab(c class, dir string) (f *lab.File, opt Options, err error) {
	var b strings.Builder
	fmt.Fprintf(&b, "name: pccl-%s\nswitches:\n  - {name: rail0, url: \"%s://admin@192.0.2.10\", emulate: {model: %s, switching: %v, seed: %d}}\nhosts:\n",
		c.name, c.scheme, c.model, c.switching, d.opt.Seed+1)
	half := 32
	if c.model == "fast-mems-25ms" {
		half = 64
	}
	for i := range demoGPUs {
		a, z := 2*i+1, 2*i+2
		fmt.Fprintf(&b, "  - {name: gpu%d, nics: [{name: p0, tx: rail0/%d, rx: rail0/%d}, {name: p1, tx: rail0/%d, rx: rail0/%d}]}\n", i, a, a+half, z, z+half)
	}
	if f, err = lab.Parse("", []byte(b.String())); err != nil {
		return nil, opt, err
	}
	opt.Name, opt.About, opt.LabText = "pccl", "demo of PCCL", []byte(b.String())
	opt.Lab = lab.Options{Emulated: true, Authority: lab.Files(dir), Command: "demo pccl"}
	opt.Store, err = runs.Open(dir)
	return f, opt, err
}

// toggle measures the switching time: it goes from the ring to the first round's own topology and back, with
// transfers that take no time.
func (d *demo) toggle(ctx context.Context, f *lab.File, opt Options) (all []time.Duration, light time.Duration, err error) {
	s := d.problem.Schedule
	away, back := s.Rounds[0], s.Rounds[len(s.Rounds)-1]
	own, err := pccl.Direct(demoGPUs, "round 0", away)
	if err != nil {
		return nil, 0, err
	}
	p := pccl.Plan{Schedule: s}
	p.Schedule.Rounds = nil
	for i := range d.opt.Toggles {
		t, r := own, away
		if i%2 > 0 {
			t, r = d.problem.Start, back
		}
		r.Bytes = 1
		p.Schedule.Rounds = append(p.Schedule.Rounds, r)
		p.Rounds = append(p.Rounds, pccl.PlannedRound{Topology: t, Changed: true})
	}
	r, err := Run(ctx, f, Job{Plan: p, Start: d.problem.Start}, opt)
	if err != nil {
		return nil, 0, err
	}
	var lights []time.Duration
	for _, x := range r.Repeats[0].Rounds {
		all = append(all, x.Switching)
		lights = append(lights, time.Duration(x.Light-x.Command))
	}
	slices.Sort(all)
	return all, median(lights), nil
}

// retimed is a plan at another switching time.
func retimed(p pccl.Plan, r float64) pccl.Plan {
	p.Switch, p.Reconfiguration = r, float64(p.Changes)*r
	p.Total = p.Alpha + p.Beta + p.Reconfiguration
	return p
}

// take takes down what running the plan came to.
func (o *Outcome) take(r *Result) {
	for _, x := range r.Repeats {
		o.Totals = append(o.Totals, x.Total)
	}
	o.Measured = median(o.Totals)
	i := slices.Index(o.Totals, o.Measured)
	o.Rounds = r.Repeats[i].Rounds
}

// median is the value in the middle, of an even number the lower one.
func median(all []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[(len(sorted)-1)/2]
}
