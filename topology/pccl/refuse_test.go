package pccl_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/ocslab/ocslab/topology/pccl"
)

func TestRefused(t *testing.T) {
	halving := func(edit func(*pccl.Problem)) func() error {
		return func() error {
			p := problem(t, pccl.RHDHalving, 8, 1*MB)
			edit(&p)
			_, err := p.Best(5 * us)
			return err
		}
	}
	params := func(edit func(*pccl.Params)) func() error {
		return halving(func(p *pccl.Problem) { edit(&p.Params) })
	}
	ask := func(do func(*pccl.Table) error) func() error {
		return func() error { return do(table(t, problem(t, pccl.RHDHalving, 8, 1*MB))) }
	}
	dark := get[*pccl.Topology](t)(pccl.Dark(8))
	seven := pccl.Round{Bytes: 1}
	for d := 1; d < 8; d++ {
		seven.Transfers = append(seven.Transfers, pccl.Transfer{Dst: d})
	}
	for name, test := range map[string]struct {
		do   func() error
		want error
		says string
	}{
		"alpha":        {params(func(p *pccl.Params) { p.Alpha = -1 }), pccl.ErrArgument, "alpha -1 s"},
		"alpha NaN":    {params(func(p *pccl.Params) { p.Alpha = math.NaN() }), pccl.ErrArgument, "alpha NaN s"},
		"beta":         {params(func(p *pccl.Params) { p.Beta = math.Inf(1) }), pccl.ErrArgument, "beta +Inf"},
		"transmitters": {params(func(p *pccl.Params) { p.Transmitters = -1 }), pccl.ErrArgument, "-1 transmitters"},
		"split":        {params(func(p *pccl.Params) { p.Split = true }), pccl.ErrArgument, "say how many"},
		"ties":         {params(func(p *pccl.Params) { p.Ties = "fair" }), pccl.ErrArgument, `"lex" or "greedy"`},
		"no start":     {halving(func(p *pccl.Problem) { p.Start = nil }), pccl.ErrArgument, "no start"},
		"no standard": {halving(func(p *pccl.Problem) {
			p.Standard = make([]*pccl.Topology, 1)
		}), pccl.ErrArgument, "standard topology 0"},
		"other size": {halving(func(p *pccl.Problem) {
			p.Standard = []*pccl.Topology{topology(t, "grid 4x4", 16)}
		}), pccl.ErrSize, "grid 4x4 joins 16 GPUs, the schedule 8"},
		"unions":         {halving(func(p *pccl.Problem) { p.Unions = -1 }), pccl.ErrArgument, "want 0 or more"},
		"unions of what": {halving(func(p *pccl.Problem) { p.Unions = 3 }), pccl.ErrArgument, "how many transmitters"},
		"start too wide": {params(func(p *pccl.Params) { p.Transmitters = 1 }), pccl.ErrTransmitters, "topology ring: "},
		"standard too wide": {halving(func(p *pccl.Problem) {
			p.Params.Transmitters = 2
			p.Standard = []*pccl.Topology{topology(t, "torus 2x2x2", 8)}
		}), pccl.ErrTransmitters, "topology torus 2x2x2: more circuits than transmitters or receivers: " +
			"3 circuits begin at a GPU, which has 2 transmitters"},
		"receivers": {halving(func(p *pccl.Problem) {
			p.Params.Receivers = 2
			p.Standard = []*pccl.Topology{topology(t, "torus 2x2x2", 8)}
		}), pccl.ErrTransmitters, "3 circuits end at a GPU, which has 2 receivers"},
		"sub-rounds": {halving(func(p *pccl.Problem) {
			p.Params.Transmitters = 2
			p.Schedule.Rounds = append(p.Schedule.Rounds, seven)
		}), pccl.ErrTransmitters, "round 3: more circuits than transmitters or receivers: 7 circuits begin at a GPU, " +
			"which has 2 transmitters: Schedule.Split makes 4 sub-rounds of it"},
		"bytes": {halving(func(p *pccl.Problem) { p.Schedule.Rounds[1].Bytes = 1e300 }), pccl.ErrSize, "round 1: "},
		"transfer": {halving(func(p *pccl.Problem) {
			p.Schedule.Rounds[1].Transfers[0].Dst = 8
		}), pccl.ErrArgument, "round 1: "},
		"too many rounds": {halving(func(p *pccl.Problem) {
			a, b := p.Schedule.Rounds[0], p.Schedule.Rounds[1]
			for range 1100 {
				p.Schedule.Rounds = append(p.Schedule.Rounds, a, b)
			}
		}), pccl.ErrSize, "plan them in parts"},
		"switching time": {ask(func(t *pccl.Table) error {
			_, err := t.Best(-1)
			return err
		}), pccl.ErrArgument, "switching time -1 s"},
		"infinite": {ask(func(t *pccl.Table) error {
			_, err := t.Best(math.Inf(1))
			return err
		}), pccl.ErrArgument, "+Inf s"},
		"robust": {ask(func(t *pccl.Table) error {
			_, _, err := t.Robust(2, 1)
			return err
		}), pccl.ErrArgument, "lower one first"},
		"short choice": {ask(func(t *pccl.Table) error {
			_, err := t.Follow([]int{0}, 0)
			return err
		}), pccl.ErrArgument, "has 3"},
		"no candidate": {ask(func(t *pccl.Table) error {
			_, err := t.Follow([]int{0, 9, 0}, 0)
			return err
		}), pccl.ErrArgument, "0 to 3"},
		"returned to": {ask(func(t *pccl.Table) error {
			_, err := t.Follow([]int{1, 0, 1}, 0)
			return err
		}), pccl.ErrArgument, "before round 2"},
		"no path": {ask(func(t *pccl.Table) error {
			_, err := t.Follow([]int{1, 1, 0}, 0)
			return err
		}), pccl.ErrDisconnected,
			"round 1, transfer 0>2 on round 0"},
		"negative price": {ask(func(t *pccl.Table) error {
			_, err := t.BestBy(func(_, _ int) float64 { return -1 })
			return err
		}), pccl.ErrArgument, "rewiring round 0 to ring takes -1 s"},
		"nothing to choose": {func() error { _, err := pccl.Choose(nil, 0); return err }, pccl.ErrArgument, "no problems"},
		"dark and static": {func() error {
			p := problem(t, pccl.RHDHalving, 8, 1*MB)
			p.Start = dark
			_, err := table(t, p).Static()
			return err
		}, pccl.ErrDisconnected, "round 0, transfer 0>4 on dark"},
		"dark and fixed": {func() error {
			p := problem(t, pccl.RHDHalving, 8, 1*MB)
			p.Start = dark
			_, err := table(t, p).BestBy(func(_, _ int) float64 { return math.Inf(1) })
			return err
		}, pccl.ErrDisconnected, "no plan serves all rounds"},
		"concat": {func() error {
			a, b := schedule(t, pccl.AllGather, "ring", 4, 1), schedule(t, pccl.AllGather, "ring", 5, 1)
			_, err := pccl.Concat(a, b)
			return err
		}, pccl.ErrSize, "schedule 1 is of 5 GPUs, the first of 4"},
		"twice": {func() error {
			r := pccl.Round{Transfers: []pccl.Transfer{{Src: 0, Dst: 1}, {Src: 1, Dst: 0}, {Src: 0, Dst: 1}}}
			_, err := paper().Cost(dark, r)
			return err
		}, pccl.ErrArgument, "0>1 is there twice"},
		"portfolio of one": {func() error {
			_, err := pccl.Portfolio(pccl.AllReduce, 1, 1*MB, dark, nil, paper())
			return err
		}, pccl.ErrSize, "2 to"},
		"portfolio of nothing": {func() error {
			_, err := pccl.Portfolio("broadcast", 8, 1*MB, dark, nil, paper())
			return err
		}, pccl.ErrArgument, "broadcast"},
	} {
		t.Run(name, func(t *testing.T) {
			err := test.do()
			if !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.says) {
				t.Errorf("error %v\nwant %v that says %q", err, test.want, test.says)
			}
		})
	}
}

// From nothing wired, each plan begins with a change, and one piece of the envelope reaches to infinity.
func TestDarkStart(t *testing.T) {
	p := problem(t, pccl.RHDHalving, 8, 1*MB)
	p.Standard = []*pccl.Topology{p.Start}
	p.Start = get[*pccl.Topology](t)(pccl.Dark(8))
	all := table(t, p)
	plan := get[pccl.Plan](t)(all.Best(1))
	checkPlan(t, plan, p.Start)
	if plan.Changes != 1 || wired(plan) != "ring ring ring" {
		t.Errorf("%d changes to %s, want a ring and nothing else", plan.Changes, wired(plan))
	}
	pieces := get[[]pccl.Piece](t)(all.Envelope())
	if last := pieces[len(pieces)-1]; last.Changes != 1 || !math.IsInf(last.To, 1) {
		t.Errorf("the last piece has %d changes and ends at %v", last.Changes, last.To)
	}
	list := get[[]pccl.Alternative](t)(pccl.Choose([]pccl.Problem{p}, 1))
	if s := list[0].Static; !math.IsInf(s.Total, 1) || len(s.Rounds) != 0 {
		t.Errorf("without rewiring: %v", s)
	}
}

// Always wires each round's own topology; a ring algorithm on its own ring has nothing to change.
func TestAlways(t *testing.T) {
	p := problem(t, pccl.RHDHalving, 8, 1*MB)
	plan := get[pccl.Plan](t)(table(t, p).Always(5 * us))
	checkPlan(t, plan, p.Start)
	if got := wired(plan) + " " + figure(plan.Total, 4); got != "I0 I1 I2 25.9444" {
		t.Errorf("got %s", got)
	}
	p.Schedule = schedule(t, pccl.AllReduce, pccl.RHDHalving, 8, 1*MB)
	if plan := get[pccl.Plan](t)(table(t, p).Always(5 * us)); plan.Changes != 5 {
		t.Errorf("all-reduce: %d changes, want 5: the rounds in its middle are the same", plan.Changes)
	}
	p.Schedule = schedule(t, pccl.AllReduce, pccl.RingPass, 8, 1*MB)
	if plan := get[pccl.Plan](t)(table(t, p).Always(5 * us)); plan.Changes != 1 {
		t.Errorf("ring: %d changes, want 1, from two directions to one", plan.Changes)
	}
}

// Every transfer finds all of its GPU's bandwidth on a topology of one circuit, half of it on one of two, and
// transmitters that are left over do nothing.
func TestSplitBandwidth(t *testing.T) {
	round := pccl.Round{Transfers: []pccl.Transfer{{Src: 0, Dst: 1}}, Bytes: 1}
	for _, test := range []struct {
		transmitters, receivers int
		on                      string
		want                    float64
	}{
		{6, 0, "0>1", 1}, {6, 0, "0>1,0>2", 2}, {6, 0, "0>1,0>2,0>3,0>4", 6}, {5, 0, "0>1,0>2", 2.5},
		{6, 3, "0>1,2>1", 3}, {6, 5, "0>1,2>1", 2.5}, {6, 0, "0>1,2>1", 1},
	} {
		var circuits []pccl.Transfer
		for c := range strings.SplitSeq(test.on, ",") {
			circuits = append(circuits, pccl.Transfer{Src: int(c[0] - '0'), Dst: int(c[2] - '0')})
		}
		on := get[*pccl.Topology](t)(pccl.NewTopology("drawn", 6, circuits))
		p := pccl.Params{Beta: 1, Split: true, Transmitters: test.transmitters, Receivers: test.receivers}
		if got := get[pccl.Cost](t)(p.Cost(on, round)); got.Time != test.want {
			t.Errorf("%s, %d transmitters, %d receivers: %v, want %v", test.on, test.transmitters, test.receivers, got.Time, test.want)
		}
	}
}

// A transfer without a path takes for ever, also where circuits share bandwidth and there are none.
func TestSplitBandwidth_noPath(t *testing.T) {
	round := pccl.Round{Transfers: []pccl.Transfer{{Src: 0, Dst: 1}, {Src: 2, Dst: 3}, {Src: 3, Dst: 1}}, Bytes: 1}
	for _, on := range []*pccl.Topology{get[*pccl.Topology](t)(pccl.ParseTopology("0-1,2-3", 4)), get[*pccl.Topology](t)(pccl.Dark(4))} {
		for _, receivers := range []int{0, 4} {
			p := pccl.Params{Beta: 1, Split: true, Transmitters: 4, Receivers: receivers}
			if cost := get[pccl.Cost](t)(p.Cost(on, round)); !math.IsInf(cost.Time, 1) {
				t.Errorf("%v: %v: want no path", on, cost)
			}
		}
	}
}
