package trace

import (
	"fmt"
	"strings"
	"time"

	"github.com/ocslab/ocslab/topology/opus"
)

const aboutLab = "The lab job of the Opus paper (section 5.1): Llama-3 with six layers, TP2 inside the servers, " +
	"DP2 and PP2 on two rails. Published: these sizes, two ports of 100 Gb/s, four reconfigurations in a step. " +
	"Assumed: one microbatch, parameters gathered for each pass (else no stage would go over four times), all " +
	"times and sizes."

func labJob() (*Trace, error) {
	return pipeline(Options{
		Stages: 2, Microbatches: 1, Layers: 6, Rails: 2,
		Forward: 15 * time.Millisecond, Optimizer: 10 * time.Millisecond, Launch: 2 * time.Millisecond,
	})
}

// fit is a step in lockstep: all ranks go through the same phases at the same times, with computation spread evenly between
// the operations of a phase. Windows and the length of the step are then exactly what they shall be.
type fit struct {
	dp, rails int
	step      time.Duration
	pp, op    time.Duration // of a transfer; of another operation
	gbps      float64       // of a port
	phases    []fitPhase
}

// fitPhase is a phase of a fit. An operation is a letter: f transfers from stage 0 to stage 1, b back, x both; g is
// an all-gather, r a reduce-scatter, a an all-reduce.
type fitPhase struct {
	window time.Duration // before it
	ops    string
}

func (f fit) trace() (*Trace, error) {
	t := &Trace{Job: opus.Job{Stages: 2, Axes: []opus.Axis{{Name: "dp", Size: f.dp}}}, Rails: f.rails, Gbps: f.gbps}
	kinds := map[rune][2]Kind{ // at stage 0 and at stage 1
		'f': {Send, Recv}, 'b': {Recv, Send}, 'x': {SendRecv, SendRecv},
		'g': {AllGather, AllGather}, 'r': {ReduceScatter, ReduceScatter}, 'a': {AllReduce, AllReduce},
	}
	compute, gaps := f.step, 0
	for _, p := range f.phases {
		compute -= p.window
		gaps += len(p.ops) - 1
		for _, k := range p.ops {
			if kinds[k][0].transfer() {
				compute -= f.pp
			} else {
				compute -= f.op
			}
		}
	}
	if compute < 0 {
		return nil, fmt.Errorf("windows and operations take %v longer than the step of %v", -compute, f.step)
	}
	gap, rest := compute.Microseconds()/int64(gaps), compute.Microseconds()%int64(gaps)
	s := Step{Ranks: make([][]Op, t.Job.Ranks())}
	for _, p := range f.phases {
		before := p.window.Microseconds()
		for i, k := range p.ops {
			if i > 0 {
				if before = gap; rest > 0 {
					before, rest = gap+1, rest-1
				}
			}
			for rank := range s.Ranks {
				stage := t.Job.Stage(rank)
				op := Op{Axis: 1, Kind: kinds[k][stage], ComputeBeforeUS: before, DurationUS: f.op.Microseconds()}
				if op.Kind.transfer() {
					op.Axis, op.DurationUS, op.Peer = opus.PP, f.pp.Microseconds(), rank+f.dp*(1-2*stage)
				}
				op.Bytes = int64(float64(op.DurationUS) * 1e3 * f.gbps * float64(t.Job.PortsPerRank()) / 8)
				s.Ranks[rank] = append(s.Ranks[rank], op)
			}
		}
	}
	t.Steps = []Step{s}
	return t, nil
}

// sixWindows is a step of configurations 1 and 2: five short windows and a long one.
func sixWindows(dp int, step, short, long time.Duration) (*Trace, error) {
	r := strings.Repeat
	return fit{
		dp: dp, rails: 4, gbps: 100, step: step, pp: 3 * time.Millisecond, op: 4 * time.Millisecond,
		phases: []fitPhase{
			{short, "fff"},
			{short, r("g", 9) + r("r", 9)},
			{short, "x"},
			{short, r("g", 10) + r("r", 10)},
			{short, "b"},
			{long, r("r", 9) + r("g", 8)},
		},
	}.trace()
}

const aboutSix = " Published: the job, six reconfigurations in a step, phases PP, DP, PP, DP, PP, DP of 3, 18, " +
	"1, 20, 1 and 17 operations (archived for configuration 1), step times for switching delays. Fitted by us to " +
	"the step times with provisioning: %s. Assumed: which operations these are, that both stages keep step, that " +
	"what the next step's first forward pass needs is gathered at the end of the step, how computation is " +
	"spread, times and sizes of operations. The step without delay is the one measured with provisioning, so it " +
	"includes what the paper's own control plane takes."

var (
	aboutConfig1 = "Configuration 1 of the Opus paper: Llama 8B on 16 GPUs, TP4 inside the hosts, FSDP2 and PP2 " +
		"on four rails, batch 16, sequences of 8192." +
		fmt.Sprintf(aboutSix, "10.222 s without delay, five windows of 26 ms and one of 1680 ms")
	aboutConfig2 = "Configuration 2 of the Opus paper: Llama 8B on 64 GPUs, TP4 inside the hosts, FSDP8 and PP2 " +
		"on four rails, batch 64, sequences of 8192." +
		fmt.Sprintf(aboutSix, "13.973 s without delay, five windows of 42 ms and one of 940 ms")
)

func config1() (*Trace, error) {
	return sixWindows(2, 10222*time.Millisecond, 26*time.Millisecond, 1680*time.Millisecond)
}

func config2() (*Trace, error) {
	return sixWindows(8, 13973*time.Millisecond, 42*time.Millisecond, 940*time.Millisecond)
}

const aboutConfig3 = "Configuration 3 of the Opus paper: DeepSeek-v3-16B on 16 GPUs, TP4 inside the hosts, PP4 " +
	"on four rails, no other axis. Published: that, and the same step time for any switching delay, since " +
	"nothing is reconfigured after the start. Fitted by us: a step of 7.2788 s, archived without a control " +
	"plane. Assumed: eight microbatches, times and sizes of operations."

func config3() (*Trace, error) {
	const step = 7278800 * time.Microsecond
	o := Options{
		Stages: 4, Microbatches: 8, Layers: 4, Rails: 4, Axes: []opus.Axis{},
		Forward: 216 * time.Millisecond, Optimizer: time.Millisecond,
	}
	t, err := pipeline(o)
	if err != nil {
		return nil, err
	}
	// Nobody goes on to the next step before the norm of all gradients is known, so the tail is in every step as it is.
	t.Steps[0].TailUS += (step - t.StepTime()).Microseconds()
	return t, nil
}

const aboutSmoke = "The smoke simulation that is published with the Opus paper: DP2, PP2 on two rails, TP2 " +
	"inside the hosts, batch 256, sequences of 4096, 96 layers, 50 GB/s of a rank. Published: a step of 62.2416 " +
	"s without delay, and how delays of 1, 10 and 50 ms lengthen it. Fitted by us: two windows, one of 1.1 ms, " +
	"and one longer than any of the delays. Assumed: 400 ms for that, and all else."

func smoke() (*Trace, error) {
	return fit{
		dp: 2, rails: 2, gbps: 200, step: 62241600 * time.Microsecond, pp: 20 * time.Millisecond, op: 50 * time.Millisecond,
		phases: []fitPhase{
			{400 * time.Millisecond, "fxxb"},
			{1100 * time.Microsecond, strings.Repeat("a", 48)},
		},
	}.trace()
}

// model is a language model, for estimates.
type model struct {
	layers, hidden int
	layerParams    float64
}

var (
	llama8B  = model{32, 4096, 218e6}
	llama70B = model{80, 8192, 856e6}
)

const aboutExp = " The job is published (window experiments of the Opus paper), and so is that most windows are " +
	"longer than 1 ms and the longest precedes a reduce-scatter. Assumed: microbatches of %s; two operations for " +
	"each parameter and token and causal attention at 40 %% of an A100's 312 Tflop/s, backward twice that, no " +
	"recomputation; 16-bit parameters, gradients and activations; 2 ms on the host between the arrival of an " +
	"activation and the first collective; parameters kept for the backward pass, whose gradients are reduced at " +
	"the end. Tensor parallelism is left out, as it is inside the hosts."

var (
	aboutExp1 = "Experiment 1: Llama 8B, TP4, FSDP2, PP2, batch 16, sequences of " +
		"8192." + fmt.Sprintf(aboutExp, "four sequences, so two of them")
	aboutExp2 = "Experiment 2: Llama 8B, TP4, FSDP8, PP2, batch 64, sequences of " +
		"8192." + fmt.Sprintf(aboutExp, "four sequences, so two of them")
	aboutExp3 = "Experiment 3: Llama 70B, TP4, FSDP4, PP8, batch 32, sequences of " +
		"1024." + fmt.Sprintf(aboutExp, "one sequence, so eight of them")
)

// exp estimates a window experiment: dp, pp and tp ranks, microbatches of so many sequences of so many tokens.
func exp(m model, dp, pp, tp, sequences, tokens, microbatches int) (*Trace, error) {
	const rate = 0.4 * 312e12
	n := float64(sequences * tokens)
	flops := 2*m.layerParams*n + 2*float64(tokens)*float64(m.hidden)*n
	return pipeline(Options{
		Stages: pp, Microbatches: microbatches, Layers: m.layers, Rails: tp, Gbps: 100,
		Axes:            []opus.Axis{{Name: "fsdp", Size: dp}},
		Forward:         time.Duration(flops / float64(tp) / rate * 1e9),
		Optimizer:       20 * time.Millisecond,
		Launch:          2 * time.Millisecond,
		LayerBytes:      int64(2*m.layerParams) / int64(tp) * int64(dp-1) / int64(dp),
		ActivationBytes: int64(2 * n * float64(m.hidden) / float64(tp)),
		KeepParameters:  true,
	})
}

const aboutFigure8 = "The job of figure 8 of the Opus paper, PP3, DP2 and CP2 on one rail, going through " +
	"topology IDs 111, 001, 111, 222, 000 and back. Published: the job, and topology IDs that one stage reaches " +
	"without the others. Made up by us: the sequence, all times and sizes. Several stages go over at once, and " +
	"single digits change one after the other, in any order."

func figure8() (*Trace, error) {
	t := &Trace{
		Job:   opus.Job{Stages: 3, Axes: []opus.Axis{{Name: "dp", Size: 2}, {Name: "cp", Size: 2}}},
		Rails: 1, Gbps: 100,
	}
	n := t.Job.RanksPerStage()
	s := Step{Ranks: make([][]Op, t.Job.Ranks()), TailUS: 5000}
	all := func(axis int, kind Kind) {
		for rank := range s.Ranks {
			s.Ranks[rank] = append(s.Ranks[rank], Op{Axis: axis, Kind: kind, Bytes: 50e6, ComputeBeforeUS: 20000})
		}
	}
	send := func(from, to int) {
		for i := range n {
			a, b := from*n+i, to*n+i
			s.Ranks[a] = append(s.Ranks[a], Op{Axis: opus.PP, Kind: Send, Peer: b, Bytes: 25e6, ComputeBeforeUS: 20000})
			s.Ranks[b] = append(s.Ranks[b], Op{Axis: opus.PP, Kind: Recv, Peer: a, Bytes: 25e6})
		}
	}
	all(1, AllGather)     // 111
	send(0, 1)            // 001
	all(1, ReduceScatter) // 111
	for rank := 2 * n; rank < 3*n; rank++ {
		s.Ranks[rank][1].ComputeBeforeUS = 41000 // the third stage computes while the others transfer
	}
	all(2, AllGather) // 222
	send(0, 1)
	send(1, 2) // 000
	send(2, 1)
	send(1, 0)
	all(1, AllReduce) // 111
	t.Steps = []Step{s}
	return t, nil
}

const aboutHazard = "A job of PP2, DP2 and CP2 on which the published rule goes wrong, by which a stage changes its circuits when one " +
	"of its groups has asked. Made up by us: half of the ranks, those at the second place along CP, are still in a transfer of the " +
	"pipeline when the others go over to DP."

func hazard() (*Trace, error) {
	j := opus.Job{Stages: 2, Axes: []opus.Axis{{Name: "dp", Size: 2}, {Name: "cp", Size: 2}}}
	t := &Trace{Job: j, Rails: 1}
	var s Step
	for x := range j.Ranks() {
		transfer := Op{Axis: opus.PP, Kind: Send, Peer: x + j.RanksPerStage(), Bytes: 1 << 20, DurationUS: 1000}
		if j.Stage(x) == 1 {
			transfer.Kind, transfer.Peer = Recv, x-j.RanksPerStage()
		}
		if j.Coordinate(x, 2) == 1 {
			transfer.Bytes, transfer.DurationUS = 1<<28, 400_000
		}
		s.Ranks = append(s.Ranks, []Op{transfer, {Axis: 1, Kind: AllReduce, Bytes: 1 << 20, DurationUS: 1000}})
	}
	t.Steps = []Step{s}
	return t, nil
}
