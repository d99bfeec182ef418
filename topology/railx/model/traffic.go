package model

import (
	"fmt"
	"math"
	"slices"
)

// Training is a transformer, and how it is cut over chips. Dimensions in the order of ranks are tensor, context, expert, data
// and pipeline; data parallelism of attention is over Expert·Data.
type Training struct {
	Batch        int // B: sequences of a micro batch
	Sequence     int // S: tokens
	Hidden       int // H
	Intermediate int // I of the feed-forward network
	TopK         int // K: experts of a token
	Layers       int // L
	Vocabulary   int // tokens there are
	MicroBatches int // NB
	// Heads are those of attention, and KVHeads of them are of keys and values.
	Heads, KVHeads int

	Tensor, Context, Expert, Data, Pipeline int // T, C, E, De, P: 1 or more

	Element float64 // bytes of a number; 0 is 2
}

// Traffic is one kind of what a chip sends in a step (table 4).
type Traffic struct {
	Parallelism string   // "tensor", "context", "expert", "data, vocabulary", "data, attention", "data, feed-forward", "pipeline"
	Pattern     string   // "reduce-scatter and all-gather", "point to point", "all-to-all", "all-reduce"
	Bytes       float64  // V: of each
	Times       float64  // F: how often in a step
	Over        []string // "T", "C", "E", "D", "P": the dimensions that its group goes over
	Dimensions  int      // of the group
}

// Total returns bytes of a step.
func (t Traffic) Total() float64 { return t.Bytes * t.Times }

// Traffic returns table 4 for a step. What no group of more than one does is left out. An error matches [ErrArgument].
func (t Training) Traffic() ([]Traffic, error) {
	if err := t.check(); err != nil {
		return nil, err
	}
	if t.Element == 0 {
		t.Element = 2
	}
	f := func(n int) float64 { return float64(n) }
	tokens := f(t.Batch) * f(t.Sequence) * f(t.Hidden) * t.Element
	heads := 2 * f(t.KVHeads) / f(t.Heads)
	layers, passes := f(t.Layers)/f(t.Pipeline), f(t.MicroBatches)*f(t.Layers)/f(t.Pipeline)
	T, TC := f(t.Tensor), f(t.Tensor)*f(t.Context)
	weights := f(t.Hidden) * t.Element
	all := []Traffic{
		{"tensor, attention", scatter, tokens, 4 * passes, []string{"T"}, 1},
		{"tensor, experts", scatter, tokens * f(t.TopK), 4 * passes, []string{"T"}, 1},
		{"context", "point to point", tokens * heads / T, 2 * passes, []string{"C"}, 1},
		{"expert", "all-to-all", tokens * f(t.TopK) / TC, 4 * passes, []string{"E"}, 1},
		{"data, vocabulary", "all-reduce", 2 * weights * f(t.Vocabulary) / TC, 1, []string{"E", "D"}, 2},
		{"data, attention", scatter, (2 + heads) * weights * f(t.Hidden) / T, layers, []string{"C", "E", "D"}, 3},
		{"data, feed-forward", scatter, 3 * weights * f(t.Intermediate) / T, layers, []string{"C", "D"}, 2},
		{"pipeline", "point to point", tokens / TC, 2 * f(t.MicroBatches), []string{"P"}, 1},
	}
	sizes := map[string]int{"T": t.Tensor, "C": t.Context, "E": t.Expert, "D": t.Data, "P": t.Pipeline}
	out := all[:0]
	for _, x := range all {
		members := 1
		for _, d := range x.Over {
			members *= sizes[d]
		}
		if members > 1 {
			out = append(out, x)
		}
	}
	return out, nil
}

const scatter = "reduce-scatter and all-gather"

// Group returns the ranks that rank exchanges traffic with, itself included, rising: those that differ from it only in
// the dimensions given, of "T", "C", "E", "D" and "P", as in [Traffic].Over. Ranks count from 0, tensor changing fastest
// and pipeline slowest, so that a group of one dimension has a fixed step: 1, T, TC, TCE and TCED (table 4). An error
// matches [ErrArgument].
func (t Training) Group(rank int, over ...string) ([]int, error) {
	if err := t.check(); err != nil {
		return nil, err
	}
	names := [...]string{"T", "C", "E", "D", "P"}
	for _, d := range over {
		if !slices.Contains(names[:], d) {
			return nil, fmt.Errorf("%w: a group over %.20q: want some of %v", ErrArgument, d, names)
		}
	}
	group, step, rest := []int{0}, 1, rank
	for i, size := range [...]int{t.Tensor, t.Context, t.Expert, t.Data, t.Pipeline} {
		if size > maxRanks/step {
			return nil, fmt.Errorf("%w: more than %d ranks: want fewer", ErrArgument, maxRanks)
		}
		places := []int{rest % size}
		if slices.Contains(over, names[i]) {
			places = places[:0]
			for place := range size {
				places = append(places, place)
			}
		}
		rest /= size
		wider := make([]int, 0, len(group)*len(places))
		for _, place := range places { // a later dimension has the larger step: ranks rise
			for _, r := range group {
				wider = append(wider, r+place*step)
			}
		}
		group, step = wider, step*size
	}
	if rank < 0 || rank >= step {
		return nil, fmt.Errorf("%w: rank %d: want 0 to %d", ErrArgument, rank, step-1)
	}
	return group, nil
}

// maxRanks bounds the ranks of [Training.Group].
const maxRanks = 1 << 24

// maxSize bounds each number of a [Training]: products of four stay exact.
const maxSize = 1 << 24

// check is for Element of 0 as for 2, which it stands for.
func (t Training) check() error {
	for _, v := range []struct {
		name string
		n    int
	}{
		{"sequences in a micro batch", t.Batch}, {"tokens of a sequence", t.Sequence}, {"hidden size", t.Hidden},
		{"intermediate size", t.Intermediate}, {"experts of a token", t.TopK}, {"layers", t.Layers}, {"micro batches", t.MicroBatches},
		{"size of the vocabulary", t.Vocabulary}, {"heads", t.Heads}, {"heads of keys and values", t.KVHeads}, {"tensor parallelism", t.Tensor},
		{"context parallelism", t.Context}, {"expert parallelism", t.Expert}, {"data parallelism", t.Data}, {"pipeline stages", t.Pipeline},
	} {
		if v.n < 1 || v.n > maxSize {
			return fmt.Errorf("%w: %s: %d: want 1 to %d", ErrArgument, v.name, v.n, maxSize)
		}
	}
	if t.Layers%t.Pipeline != 0 || t.KVHeads > t.Heads {
		return fmt.Errorf("%w: %d layers in %d stages, %d heads of keys for %d: want as many layers in each stage, and no more heads of keys than heads",
			ErrArgument, t.Layers, t.Pipeline, t.KVHeads, t.Heads)
	}
	if !(t.Element >= 0) || math.IsInf(t.Element, 1) {
		return fmt.Errorf("%w: %v bytes of a number: want more than 0, or 0 for 2", ErrArgument, t.Element)
	}
	return nil
}

// ContextTime and ExpertTime return what table 4 says of a step: seconds of what a context-parallel rank sends with that many
// lanes of bandwidth b, and of what an expert-parallel one does; m is the side of a node's mesh, whose chips share a lane.
func (t Traffic) ContextTime(ranks, lanes, m int, b, alpha float64) float64 {
	return (float64(ranks)*alpha + t.Bytes/(2*float64(lanes)*b/float64(m))) * t.Times
}

// ExpertTime is the time of an all-to-all; see [Traffic.ContextTime].
func (t Traffic) ExpertTime(lanes, m int, b, alpha float64) float64 {
	return t.ContextTime(1, lanes, m, b, alpha)
}

// LongContext is where the best split goes as sequences get longer (figure 16): lanes of each edge chip between context and
// expert parallelism. Each rank keeps as many tokens, so context parallelism grows with the sequence. That is ours: the
// paper does not say what it keeps.
func (t Training) LongContext(sequence, tokens, lanes int, b float64) (Shares, error) {
	if tokens < 1 || sequence < tokens || sequence%tokens != 0 {
		return Shares{}, fmt.Errorf("%w: sequences of %d tokens over ranks of %d: want a multiple", ErrArgument, sequence, tokens)
	}
	t.Sequence, t.Context = sequence, sequence/tokens
	all, err := t.Traffic()
	if err != nil {
		return Shares{}, err
	}
	var context, expert Use
	for _, x := range all {
		switch x.Parallelism {
		case "context":
			context.Bytes = x.Total()
		case "expert":
			expert.Bytes = x.Total()
		}
	}
	return Split(lanes, b, context, expert, Sum)
}
