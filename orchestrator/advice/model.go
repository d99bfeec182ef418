package advice

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/ocslab/ocslab/orchestrator/trace"
	"github.com/ocslab/ocslab/topology/opus"
)

// Case is a cluster and a job of the paper's large studies, which it simulated; what it found is in Paper.
//
// All cases train the model of the paper's table 3: vocabulary 32 000, width 8192, feed-forward width 28
// 672, 64 heads of which 8 for keys and values, 96 layers, sequences of 4096, 256 of them a step.
type Case struct {
	Name   string        `json:"name"`
	Stages int           `json:"stages"` // of the pipeline, 2 or more
	DP     int           `json:"dp"`     // replicas, 2 or more; divides 256
	TP     int           `json:"tp"`     // GPUs of a scale-up domain, so rails
	Gbps   float64       `json:"gbps"`   // of a GPU on its rail, all ports together
	PFLOPS float64       `json:"pflops"` // of a GPU: 10^15 operations a second
	Switch time.Duration `json:"switch_ns"`
	Paper  Finding       `json:"paper"` // NaN where the paper has no number
}

// GPUs returns how many the cluster has.
func (c Case) GPUs() int { return c.Stages * c.DP * c.TP }

// Finding is by how much a step takes longer than with another network.
type Finding struct {
	EPS     Percent `json:"eps"`      // than with packet switches
	OneShot Percent `json:"one_shot"` // than with circuits that are set once
}

// Percent is a number of per cent. NaN is one that nobody knows, null in JSON.
type Percent float64

func (p Percent) known() bool { return !math.IsNaN(float64(p)) }

// String writes it with its sign, or nothing if nobody knows.
func (p Percent) String() string {
	if !p.known() {
		return ""
	}
	return fmt.Sprintf("%+.2f %%", float64(p))
}

// MarshalJSON writes the number, or null.
func (p Percent) MarshalJSON() ([]byte, error) {
	if !p.known() {
		return []byte("null"), nil
	}
	return json.Marshal(float64(p))
}

// Peaks of dense 16-bit arithmetic of a GPU, by NVIDIA's data sheets.
const (
	peakH200  = 0.989
	peakGB200 = 2.5
)

// Cases returns the paper's cases that have numbers (figures 12 to 14).
//
// The paper gives DP and PP of the first two only. For the larger ones (figure 14) DP is taken to grow and
// the rest to stay. For the sweeps over bandwidth (figures 12 and 13, right) its numbers have no sign in
// what we have of it. They are taken for an advantage over the one-shot network: the same text has them
// fall with the bandwidth, and it is the one-shot network that suffers from a narrow link, not the
// reconfiguration.
func Cases() []Case {
	unknown := Percent(math.NaN())
	h200 := Case{Stages: 4, DP: 4, TP: 8, Gbps: 400, PFLOPS: peakH200, Switch: 100 * time.Millisecond}
	gb200 := Case{Stages: 4, DP: 4, TP: 32, Gbps: 800, PFLOPS: peakGB200, Switch: 10 * time.Millisecond}
	of := func(c Case, name string, change func(*Case), eps, oneShot Percent) Case {
		change(&c)
		c.Name, c.Paper = fmt.Sprintf("%s, %d GPUs, %g Gb/s, %v", name, c.GPUs(), c.Gbps, c.Switch), Finding{eps, oneShot}
		return c
	}
	cases := []Case{
		of(h200, "H200", func(*Case) {}, 5.31, 3.32),
		of(gb200, "GB200", func(*Case) {}, 2.49, 0.93),
	}
	for _, x := range []struct {
		c         Case
		name      string
		low, high Percent
	}{{h200, "H200", -7.73, -0.72}, {gb200, "GB200", -11.63, -0.34}} {
		for _, gbps := range []float64{100, 200, 400, 800, 1600} {
			oneShot := unknown
			switch gbps {
			case 100:
				oneShot = x.low
			case 1600:
				oneShot = x.high
			}
			cases = append(cases, of(x.c, x.name, func(c *Case) { c.Gbps, c.Switch = gbps, 10*time.Millisecond }, unknown, oneShot))
		}
	}
	return append(cases,
		of(h200, "H200", func(c *Case) { c.DP, c.Switch = 16, 10*time.Millisecond }, 6.62, unknown),
		of(gb200, "GB200", func(c *Case) { c.DP = 16 }, 11.22, unknown),
	)
}

// Result is what a small model makes of a case.
type Result struct {
	Case    Case          `json:"case"`
	EPS     time.Duration `json:"eps_ns"`      // a step with packet switches: each axis has all bandwidth, always
	OneShot time.Duration `json:"one_shot_ns"` // with circuits set once, the bandwidth split between the axes as is best
	PPShare float64       `json:"pp_share"`    // of the bandwidth, with OneShot
	Opus    time.Duration `json:"opus_ns"`     // with rails reconfigured at each boundary, provisioned
	Found   Finding       `json:"found"`
}

// Study plays a step of a case on three networks. It is a report, to see whether the paper's numbers are of
// the order that such a job makes plausible, and no reproduction: the paper used a simulator with traces of
// its own.
//
// # Model
//
// A plain 1F1B pipeline of one sequence per microbatch (trace generator 1f1b), on each of whose
// microbatches a stage computes forward, and backward twice as long. Gradients are reduced once, after the
// last microbatch, by one all-reduce around the ring. All operations block; nothing overlaps with
// computation but what the schedule lets overlap. Packet switches give each axis the whole bandwidth at any
// time; the one-shot network splits it once, in real numbers, and the best split is searched (time is
// convex in it); rails give each phase the whole bandwidth, and wait for what of the switch time its window
// does not hide. Pipelines of three stages or more use one of two ports for each neighbour, on all
// networks.
//
// # Assumed
//
//   - GPUs compute at their peak. So seems the paper's simulator to do: the archive's small run of this
//     model, 8 GPUs, takes 62.24 s, which is 1.04 PFLOP/s for each GPU by our count of operations. Real
//     jobs reach half of that or less, and would hide more.
//   - Operations are 6 for each parameter and token, attention's quadratic part and the embedding left out.
//     Both model families have the parameters of table 3, with gated feed-forward layers: 82 billion.
//   - Parallelism inside scale-up domains costs no time, the optimizer 5 ms, control none.
//   - Activations are split among the GPUs of the domain, two bytes a value; so are gradients.
//
// # What comes of it
//
// Nothing was fitted to the paper's results. The two cases of figures 12 and 13 come out within three
// points of them (H200: 6.5 % longer than with packet switches and 2.7 % than one-shot, the paper has 5.31
// % and 3.32 %; GB200: 5.4 % and 0.8 %, the paper 2.49 % and 0.93 %). Over bandwidth, the advantage falls
// as in the paper but is larger by half at 100 Gb/s, and on GB200 it turns into a disadvantage from 800
// Gb/s on, which is not in the paper. The large clusters of figure 14 are far off: for 512 H200 GPUs the
// windows hide all of the 10 ms (the paper has 6.62 %), and for 2048 GB200 ones it is 16 % instead of 11.22
// %. The paper's traces surely have more boundaries, and windows of other lengths.
func Study(c Case) (Result, error) {
	t, err := c.trace()
	if err != nil {
		return Result{}, err
	}
	r := Result{Case: c, EPS: t.StepTime()}
	r.Opus = trace.Simulate(t, trace.Model{Delta: c.Switch, Mode: trace.Provision}).Step
	r.PPShare, r.OneShot = oneShot(t)
	longer := func(than time.Duration) Percent { return Percent(100 * (float64(r.Opus)/float64(than) - 1)) }
	r.Found = Finding{EPS: longer(r.EPS), OneShot: longer(r.OneShot)}
	return r, nil
}

// The workload of table 3.
const (
	width, feedForward, heads, keyHeads, layers = 8192, 28672, 64, 8, 96
	sequence, batch                             = 4096, 256
	layerParameters                             = 2*width*width + 2*width*width*keyHeads/heads + 3*width*feedForward
)

func (c Case) trace() (*trace.Trace, error) {
	if c.Stages < 2 || layers%c.Stages != 0 || c.DP < 2 || batch%c.DP != 0 || c.TP < 1 ||
		!(c.Gbps > 0) || !(c.PFLOPS > 0) || c.Switch < 0 {
		return nil, fmt.Errorf("case %q: %w: %d stages must divide %d layers, %d replicas %d sequences, and all else be above 0",
			c.Name, ErrOptions, c.Stages, layers, c.DP, batch)
	}
	g, err := trace.Find("1f1b")
	if err != nil {
		return nil, err
	}
	perStage := float64(layerParameters) * float64(layers/c.Stages) / float64(c.TP) // parameters of a GPU
	forward := time.Duration(2 * perStage * sequence / c.PFLOPS / 1e6)              // ns
	t, err := g.Generate(trace.Options{
		Stages: c.Stages, Layers: c.Stages, Microbatches: batch / c.DP, Axes: []opus.Axis{{Name: "dp", Size: c.DP}},
		Rails: c.TP, Gbps: c.Gbps / opus.DefaultPorts, Forward: forward,
	})
	if err != nil {
		return nil, err
	}
	us := func(bytes, gbps float64) int64 { return max(1, int64(math.Round(bytes*8/gbps/1e3))) }
	ppGbps := c.Gbps
	if c.Stages > 2 {
		ppGbps /= 2
	}
	transfer := us(2*sequence*width/float64(c.TP), ppGbps)
	reduce := us(2*float64(c.DP-1)/float64(c.DP)*2*perStage, c.Gbps)
	return rewrite(t, func(op *trace.Op, last bool) bool {
		switch {
		case !onRail(*op):
			return true
		case op.Axis == opus.PP:
			op.DurationUS = transfer
			return true
		}
		// The generator gathers and reduces each layer; here is one all-reduce, in place of the optimizer's
		// last.
		op.DurationUS = reduce
		return last
	}), nil
}

// oneShot returns the best share of the bandwidth for the pipeline, and the step with it, if the rest is
// for the other axis and both are set once. The step is the longest of sums of terms a, b/share and
// c/(1-share), so convex: a search by golden sections finds the lowest point, to a few thousandths, where
// it is flat.
func oneShot(t *trace.Trace) (float64, time.Duration) {
	step := func(share float64) time.Duration {
		return rewrite(t, func(op *trace.Op, _ bool) bool {
			if onRail(*op) {
				part := share
				if op.Axis != opus.PP {
					part = 1 - share
				}
				op.DurationUS = int64(math.Round(float64(op.DurationUS) / part))
			}
			return true
		}).StepTime()
	}
	const golden = 0.6180339887498949
	low, high := 0.001, 0.999
	a, b := high-golden*(high-low), low+golden*(high-low)
	at, bt := step(a), step(b)
	for high-low > 0.005 {
		if at <= bt {
			high, b, bt = b, a, at
			a = high - golden*(high-low)
			at = step(a)
		} else {
			low, a, at = a, b, bt
			b = low + golden*(high-low)
			bt = step(b)
		}
	}
	if at <= bt {
		return a, at
	}
	return b, bt
}

// StudyText returns results beside what the paper has, as a table for a terminal. Negative numbers are an
// advantage of the rails.
func StudyText(results []Result) string {
	var b strings.Builder
	b.WriteString(wrap("Steps with reconfigured rails, and by how much they are longer than with packet switches (EPS) and with " +
		"circuits set once. Report only: a small model with assumptions of its own beside the paper's simulation."))
	g := grid{{"case", "step", "EPS", "paper", "once", "paper"}}
	for _, r := range results {
		g = append(g, []string{r.Case.Name, span(r.Opus), r.Found.EPS.String(), r.Case.Paper.EPS.String(),
			r.Found.OneShot.String(), r.Case.Paper.OneShot.String()})
	}
	g.write(&b, "lrrrrr")
	return b.String()
}
