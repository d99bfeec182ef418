package trace

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ocslab/ocslab/topology/opus"
)

// ErrNoGenerator: there is no generator of that name. Test with errors.Is.
var ErrNoGenerator = errors.New("no such generator of traces")

// Options are what a generator can be told. The zero value of each field is the generator's own default. Times are
// rounded to microseconds.
type Options struct {
	Steps int // from 1; default 1. All are equal

	// What follows is for 1f1b and fsdp; other generators refuse it, since they are what was published.

	Stages       int         // of the pipeline
	Microbatches int         // of a step
	Axes         []opus.Axis // dp (or fsdp), cp, ep in any order; dp of 2 if there are none. An axis of size 1 is no operation
	Layers       int         // of the whole model, the same number in each stage; default 2 for each
	Ports        int         // duplex ports of a rank; default 2
	Rails        int         // ranks of a host; default 1
	Gbps         float64     // of a duplex port; default 100

	Forward   time.Duration // of a layer, for one microbatch; default 10 ms
	Backward  time.Duration // the same; default twice Forward
	Optimizer time.Duration // default 5 ms
	Launch    time.Duration // from the arrival of an activation or gradient until its first collective; default 0

	LayerBytes      int64 // that a rank sends to gather or reduce a layer; default 50 MB
	ActivationBytes int64 // of a transfer, of a CP operation, of an EP one; default 25 MB

	// KeepParameters keeps what was gathered for the forward pass until the backward one, whose gradients are reduced together
	// at the end of the stage's layers. Otherwise each layer is gathered again, and reduced at once.
	KeepParameters bool
}

// Generator makes traces of a workload.
type Generator struct {
	Name     string
	About    string // what is published, what was fitted to that, and what is assumed
	generate func(g Generator, opt Options) (*Trace, error)
}

// Generate makes a trace, which passes [Trace.Check]. Options that are impossible, or that this generator does not have,
// are errors.
func (g Generator) Generate(opt Options) (*Trace, error) {
	if opt.Steps < 0 || opt.Steps > maxSteps {
		return nil, fmt.Errorf("generator %s: %d steps: want 1 to %d", g.Name, opt.Steps, maxSteps)
	}
	t, err := g.generate(g, opt)
	if err != nil {
		return nil, fmt.Errorf("generator %s: %w", g.Name, err)
	}
	t.Name, t.About = g.Name, g.About
	for range max(opt.Steps, 1) - 1 {
		t.Steps = append(t.Steps, t.Steps[0])
	}
	if err := t.Check(); err != nil {
		return nil, fmt.Errorf("generator %s: %w", g.Name, err)
	}
	return t, nil
}

// Generators returns all generators.
func Generators() []Generator {
	return []Generator{
		{"1f1b", about1F1B, func(_ Generator, o Options) (*Trace, error) {
			o.Stages, o.Microbatches = cmp.Or(o.Stages, 4), cmp.Or(o.Microbatches, 8)
			return pipeline(o)
		}},
		{"fsdp", aboutFSDP, func(_ Generator, o Options) (*Trace, error) {
			o.Stages, o.Microbatches = cmp.Or(o.Stages, 1), cmp.Or(o.Microbatches, 1)
			o.Layers = cmp.Or(o.Layers, 8*o.Stages)
			return pipeline(o)
		}},
		{"lab-job", aboutLab, fixed(labJob)},
		{"config-1", aboutConfig1, fixed(config1)},
		{"config-2", aboutConfig2, fixed(config2)},
		{"config-3", aboutConfig3, fixed(config3)},
		{"smoke", aboutSmoke, fixed(smoke)},
		{"exp-1", aboutExp1, fixed(func() (*Trace, error) { return exp(llama8B, 2, 2, 4, 4, 8192, 2) })},
		{"exp-2", aboutExp2, fixed(func() (*Trace, error) { return exp(llama8B, 8, 2, 4, 4, 8192, 2) })},
		{"exp-3", aboutExp3, fixed(func() (*Trace, error) { return exp(llama70B, 4, 8, 4, 1, 1024, 8) })},
		{"figure-8", aboutFigure8, fixed(figure8)},
		{"hazard", aboutHazard, fixed(hazard)},
	}
}

// Find returns the generator of that name. The error matches [ErrNoGenerator].
func Find(name string) (Generator, error) {
	var names []string
	for _, g := range Generators() {
		if g.Name == name {
			return g, nil
		}
		names = append(names, g.Name)
	}
	return Generator{}, fmt.Errorf("%w: %q is none of %q", ErrNoGenerator, name, names)
}

// fixed is a generator whose workload is given.
func fixed(make func() (*Trace, error)) func(Generator, Options) (*Trace, error) {
	return func(_ Generator, o Options) (*Trace, error) {
		o.Steps = 0
		if o.Axes != nil || o.Stages != 0 || o.Microbatches != 0 || o.Layers != 0 || o.Ports != 0 || o.Rails != 0 || o.Gbps != 0 ||
			o.Forward != 0 || o.Backward != 0 || o.Optimizer != 0 || o.Launch != 0 || o.LayerBytes != 0 || o.ActivationBytes != 0 ||
			o.KeepParameters {
			return nil, errors.New("its workload is fixed: the number of steps is all that can be chosen (1f1b " +
				"and fsdp take the rest)")
		}
		return make()
	}
}

// pipeline makes a step of a 1F1B schedule with FSDP, CP and EP where the job has these axes.
func pipeline(o Options) (*Trace, error) {
	o.Layers = cmp.Or(o.Layers, 2*o.Stages)
	o.Forward = cmp.Or(o.Forward, 10*time.Millisecond)
	o.Backward = cmp.Or(o.Backward, 2*o.Forward)
	o.Optimizer = cmp.Or(o.Optimizer, 5*time.Millisecond)
	o.LayerBytes, o.ActivationBytes = cmp.Or(o.LayerBytes, 50e6), cmp.Or(o.ActivationBytes, 25e6)
	if o.Axes == nil {
		o.Axes = []opus.Axis{{Name: "dp", Size: 2}}
	}
	const most = 1 << 14
	switch {
	case o.Stages < 1 || o.Stages > most:
		return nil, fmt.Errorf("%d stages: want 1 to %d", o.Stages, most)
	case o.Microbatches < 1 || o.Microbatches > most:
		return nil, fmt.Errorf("%d microbatches: want 1 to %d", o.Microbatches, most)
	case o.Layers < 1 || o.Layers > most || o.Layers%o.Stages != 0:
		return nil, fmt.Errorf("%d layers in %d stages: want the same number, from 1, in each, and %d at "+
			"most", o.Layers, o.Stages, most)
	case min(o.Forward, o.Backward, o.Optimizer, o.Launch) < 0:
		return nil, errors.New("a time is below 0")
	}
	if len(o.Axes) == 0 {
		o.Axes = nil // as it is read again
	}
	t := &Trace{Job: opus.Job{Stages: o.Stages, Axes: o.Axes, Ports: o.Ports}, Rails: cmp.Or(o.Rails, 1), Gbps: o.Gbps}
	if err := t.checkHeader(); err != nil {
		return nil, err
	}
	b := builder{o: o}
	for i, a := range o.Axes {
		to := map[string]*int{"dp": &b.dp, "fsdp": &b.dp, "cp": &b.cp, "ep": &b.ep}[a.Name]
		switch {
		case to == nil:
			return nil, fmt.Errorf("axis %q: there are operations for dp (or fsdp), cp and ep", a.Name)
		case *to != 0:
			return nil, errors.New("dp and fsdp are the same axis here, and the job has both")
		case a.Size > 1:
			*to = i + 1
		}
	}
	if n := int64(t.Job.RanksPerStage()) * int64(o.Layers) * int64(o.Microbatches); n > 1<<20 {
		return nil, fmt.Errorf("ranks of a stage times layers times microbatches are %d: want %d at most", n, 1<<20)
	}
	s := Step{Ranks: make([][]Op, 0, t.Job.Ranks())}
	n := t.Job.RanksPerStage()
	for stage := range o.Stages {
		ops := b.stage(stage)
		s.TailUS = b.pending // the same for all: nothing but the optimizer's last operation
		for rank := stage * n; rank < (stage+1)*n; rank++ {
			own := slices.Clone(ops)
			for i, op := range own {
				if op.Kind.transfer() {
					own[i].Peer = rank + op.Peer*n
				}
			}
			s.Ranks = append(s.Ranks, own)
		}
	}
	t.Steps = []Step{s}
	return t, nil
}

// builder makes the operations of a stage. Peer of transfers is -1 and +1: the stage before, and after.
type builder struct {
	o          Options
	dp, cp, ep int // axes; 0: none

	ops     []Op
	pending int64 // computation since the last operation, in µs
}

func (b *builder) compute(d time.Duration) { b.pending += d.Microseconds() }

func (b *builder) add(op Op) {
	op.ComputeBeforeUS, b.pending = b.pending, 0
	b.ops = append(b.ops, op)
}

func (b *builder) collective(axis int, kind Kind, bytes int64, note string, args ...any) {
	if axis != 0 {
		b.add(Op{Axis: axis, Kind: kind, Bytes: bytes, Note: fmt.Sprintf(note, args...)})
	}
}

func (b *builder) transfer(kind Kind, peer int, note string, args ...any) {
	b.add(Op{Axis: opus.PP, Kind: kind, Peer: peer, Bytes: b.o.ActivationBytes, Note: fmt.Sprintf(note, args...)})
}

// forward is the forward pass of a microbatch.
func (b *builder) forward(k int) {
	b.compute(b.o.Launch)
	for l := range b.o.Layers / b.o.Stages {
		b.collective(b.dp, AllGather, b.o.LayerBytes, "layer %d, forward of microbatch %d", l, k)
		b.collective(b.cp, AllGather, b.o.ActivationBytes, "layer %d, forward of microbatch %d", l, k)
		b.compute(b.o.Forward / 2)
		b.collective(b.ep, AllToAll, b.o.ActivationBytes, "layer %d, dispatch, forward of microbatch %d", l, k)
		b.compute(b.o.Forward - b.o.Forward/2)
		b.collective(b.ep, AllToAll, b.o.ActivationBytes, "layer %d, combine, forward of microbatch %d", l, k)
	}
}

// backward is the backward pass of a microbatch.
func (b *builder) backward(k int) {
	b.compute(b.o.Launch)
	layers := b.o.Layers / b.o.Stages
	for l := layers - 1; l >= 0; l-- {
		if !b.o.KeepParameters {
			b.collective(b.dp, AllGather, b.o.LayerBytes, "layer %d, backward of microbatch %d", l, k)
		}
		b.collective(b.ep, AllToAll, b.o.ActivationBytes, "layer %d, combine, backward of microbatch %d", l, k)
		b.compute(b.o.Backward / 2)
		b.collective(b.ep, AllToAll, b.o.ActivationBytes, "layer %d, dispatch, backward of microbatch %d", l, k)
		b.compute(b.o.Backward - b.o.Backward/2)
		b.collective(b.cp, ReduceScatter, b.o.ActivationBytes, "layer %d, backward of microbatch %d", l, k)
		if !b.o.KeepParameters {
			b.collective(b.dp, ReduceScatter, b.o.LayerBytes, "layer %d, backward of microbatch %d", l, k)
		}
	}
	if b.o.KeepParameters {
		for l := layers - 1; l >= 0; l-- {
			b.collective(b.dp, ReduceScatter, b.o.LayerBytes, "layer %d, gradients of microbatch %d", l, k)
		}
	}
}

// stage makes the operations of a stage: as many forward passes as there are stages behind, then one forward and one
// backward in turn, then the backward passes that remain. In the middle, transfers to and from the same neighbour are one
// operation, which is also what keeps two stages from sending to each other both at once and waiting for ever.
func (b *builder) stage(s int) []Op {
	b.ops, b.pending = nil, 0
	var (
		m           = b.o.Microbatches
		warm        = min(b.o.Stages-1-s, m)
		first, last = s == 0, s == b.o.Stages-1
	)
	recvForward := func(k int) {
		if !first {
			b.transfer(Recv, -1, "activation of microbatch %d", k)
		}
	}
	for k := range warm {
		recvForward(k)
		b.forward(k)
		b.transfer(Send, +1, "activation of microbatch %d", k)
	}
	if warm < m {
		recvForward(warm)
	}
	for i := range m - warm {
		b.forward(i + warm)
		if !last {
			b.transfer(SendRecv, +1, "activation of microbatch %d, gradient of %d", i+warm, i)
		}
		b.backward(i)
		switch {
		case first:
		case i+warm+1 < m:
			b.transfer(SendRecv, -1, "gradient of microbatch %d, activation of %d", i, i+warm+1)
		default:
			b.transfer(Send, -1, "gradient of microbatch %d", i)
		}
	}
	for i := m - warm; i < m; i++ {
		b.transfer(Recv, +1, "gradient of microbatch %d", i)
		b.backward(i)
		if !first {
			b.transfer(Send, -1, "gradient of microbatch %d", i)
		}
	}
	if b.o.Stages > 1 {
		b.add(Op{Axis: opus.PP, Kind: AllReduce, Net: FrontEnd, Bytes: 8, DurationUS: 100, Note: "norm of all gradients"})
	}
	const reductions = 3 // several short ones
	for i := range reductions {
		b.collective(b.dp, AllReduce, 4096, "optimizer, %d of %d", i+1, reductions)
	}
	b.compute(b.o.Optimizer)
	return b.ops
}

const about1F1B = "A pipeline of any size with the 1F1B schedule. Published: the schedule, and which axis has " +
	"which operations (dp: all-gather forward and reduce-scatter backward for each layer, cp the same, ep " +
	"all-to-all both ways, pp each microbatch both ways, short all-reduces in the optimizer). Assumed: all times " +
	"and sizes, and that a stage gathers when its activation has come. Transfers of the steady state are batched."

const aboutFSDP = "Fully sharded data parallelism: all-gather before the forward pass of each layer, again " +
	"before its backward pass, then reduce-scatter, each when it is needed. Published: these operations. " +
	"Assumed: all times and sizes. With one stage, the default, there is one axis only, and nothing to " +
	"reconfigure."
