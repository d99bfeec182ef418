package pccl

import (
	"fmt"
	"math"
	"slices"

	"github.com/ocslab/ocslab/internal/natural"
)

// largest is the longest time (seconds), the largest time of a byte (seconds) and, squared, the largest number of
// bytes that is computed with: no sum of costs of any schedule overflows.
const largest = 1e12

// Cost returns what a round costs on a topology: each transfer goes by a shortest path, and the round is over when its
// longest path and its fullest circuit are through (equation 1). A transfer without a path makes the time +Inf.
// The order of the transfers matters to Greedy, which takes them by Src, then Dst, whatever their order here.
//
// It matches ErrArgument or ErrSize if the parameters, the topology or the round are not right, and ErrTransmitters
// if the topology has more circuits at a GPU than it has transmitters or receivers.
func (p Params) Cost(t *Topology, r Round) (Cost, error) {
	if err := p.check(); err != nil {
		return Cost{}, err
	}
	if t == nil {
		return Cost{}, fmt.Errorf("%w: no topology", ErrArgument)
	}
	transfers, err := r.inOrder(t.gpus)
	if err != nil {
		return Cost{}, fmt.Errorf("the round: %w", err)
	}
	n := newNetwork(t)
	if err := p.fits(n); err != nil {
		return Cost{}, t.tooWide(err)
	}
	var (
		at [1]load
		rt router
	)
	rt.route(n, []set{newSet(t.gpus, transfers)}, p.Ties, at[:])
	return p.cost(at[0], p.slowdown(n), r.Bytes), nil
}

// cost returns what a load costs. It is +Inf without a path.
func (p Params) cost(l load, slowdown, bytes float64) Cost {
	if l.dilation < 0 {
		return Cost{Time: math.Inf(1)}
	}
	hops, shared := p.parts(l, slowdown, bytes)
	return Cost{Congestion: int(l.congestion), Dilation: int(l.dilation), Time: hops + shared}
}

// parts returns the seconds for hops and for bytes.
func (p Params) parts(l load, slowdown, bytes float64) (hops, shared float64) {
	return p.Alpha * float64(l.dilation), p.Beta * slowdown * float64(l.congestion) * bytes
}

func (p Params) check() error {
	switch {
	case !(p.Alpha >= 0 && p.Alpha <= largest): // nor NaN
		return fmt.Errorf("%w: alpha %v s: want 0 to %g", ErrArgument, p.Alpha, float64(largest))
	case !(p.Beta >= 0 && p.Beta <= largest):
		return fmt.Errorf("%w: beta %v s/B: want 0 to %g", ErrArgument, p.Beta, float64(largest))
	case p.Transmitters < 0 || p.Receivers < 0:
		return fmt.Errorf("%w: %d transmitters and %d receivers: want 0 (as many as needed) or more",
			ErrArgument, p.Transmitters, p.Receivers)
	case p.Split && p.Transmitters == 0:
		return fmt.Errorf("%w: circuits cannot share the bandwidth of a GPU that has as many transmitters as needed: "+
			"say how many it has", ErrArgument)
	case p.Ties != "" && p.Ties != Lex && p.Ties != Greedy:
		return fmt.Errorf("%w: ties %.40q: want %q or %q", ErrArgument, p.Ties, Lex, Greedy)
	}
	return nil
}

// checkTime returns why a switching time is none.
func checkTime(what string, seconds float64) error {
	if !(seconds >= 0 && seconds <= largest) {
		return fmt.Errorf("%w: %s %v s: want 0 to %g", ErrArgument, what, seconds, float64(largest))
	}
	return nil
}

// fits returns why a network cannot be wired.
func (p Params) fits(n *network) error {
	switch {
	case p.Transmitters > 0 && n.out > p.Transmitters:
		return fmt.Errorf("%w: %d circuits begin at a GPU, which has %s", ErrTransmitters, n.out,
			natural.Count(p.Transmitters, "transmitter"))
	case p.Receivers > 0 && n.in > p.Receivers:
		return fmt.Errorf("%w: %d circuits end at a GPU, which has %s", ErrTransmitters, n.in,
			natural.Count(p.Receivers, "receiver"))
	}
	return nil
}

// tooWide says of a topology that it does not fit.
func (t *Topology) tooWide(err error) error {
	return fmt.Errorf("topology %s: %w: give each GPU as many, or take a topology with fewer circuits at a GPU; dark has none", t.name, err)
}

// slowdown returns how many times slower than 1/Beta each circuit of a network is. Transmitters that are left over
// when they are shared out equally do nothing. Circuits share receivers as they share transmitters, if it is said how
// many there are.
func (p Params) slowdown(n *network) float64 {
	if !p.Split {
		return 1
	}
	slow := 1.0
	if n.out > 0 {
		slow = float64(p.Transmitters) / float64(p.Transmitters/n.out)
	}
	if n.in > 0 && p.Receivers > 0 {
		slow = max(slow, float64(p.Receivers)/float64(p.Receivers/n.in))
	}
	return slow
}

// inOrder returns the transfers of a round in order of Src, then Dst.
func (r Round) inOrder(gpus int) ([]Transfer, error) {
	if err := r.checkBytes(); err != nil {
		return nil, err
	}
	transfers := r.Transfers
	if !slices.IsSortedFunc(transfers, compareTransfers) {
		transfers = slices.SortedFunc(slices.Values(transfers), compareTransfers)
	}
	for i, t := range transfers {
		if err := checkTransfer(t, gpus); err != nil {
			return nil, err
		}
		if i > 0 && t == transfers[i-1] {
			return nil, fmt.Errorf("%w: transfer %d>%d is there twice: make it one of more bytes, or two rounds",
				ErrArgument, t.Src, t.Dst)
		}
	}
	return transfers, nil
}

func (r Round) checkBytes() error {
	if !(r.Bytes >= 0 && r.Bytes <= largest*largest) {
		return fmt.Errorf("%w: transfers of %v bytes: want 0 to %g", ErrSize, r.Bytes, float64(largest*largest))
	}
	return nil
}
