package baseline_test

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/ocslab/ocslab/topology/crosswiring"
	"github.com/ocslab/ocslab/topology/crosswiring/baseline"
)

// compare also returns the rows by planner.
func compare(t fataler, f crosswiring.Fabric, s baseline.Sequence,
	p []baseline.Planner) (*baseline.Comparison, map[string]baseline.Row) {
	c := must(baseline.Compare(f, s, p))(t)
	rows := map[string]baseline.Row{}
	for i, r := range c.Rows {
		if r.Planner != p[i].Name || r.Wiring != p[i].Wiring {
			t.Fatalf("row %d is of %s", i, r.Planner)
		}
		rows[r.Planner] = r
	}
	return c, rows
}

// 100 topologies of 6 pods: beside the search ours keeps 98 %, the reference-like bisection about 80 %.
func TestCompare_Exact(t *testing.T) {
	all := slices.Concat(baseline.ExactPlanners(), baseline.CrossPlanners(), baseline.UniformPlanners())
	f := crosswiring.Fabric{Pods: 6, SpinePorts: 6, Groups: 1}
	c, rows := compare(t, f, baseline.Sequence{Changed: .3}, all)
	if !c.Exact || c.Reference != baseline.NameExact || rows[baseline.NameExact].MRAR != 1 {
		t.Errorf("the reference is %q", c.Reference)
	}
	full := baseline.Spread{Mean: 1, Min: 1}
	for name, r := range rows {
		if r.Wiring == crosswiring.Cross && (r.LTRR != full || r.Realised != full) {
			t.Errorf("%s: LTRR %v, realised %v, want 1", name, r.LTRR, r.Realised)
		}
		if r.Kept.Min > r.Kept.Mean || r.LTRR.Min > r.LTRR.Mean || r.PlanMax < r.PlanMean {
			t.Errorf("%s: %+v", name, r)
		}
	}
	if got := rows["best"].MRAR; got < .97 || got > 1.03 {
		t.Errorf("MRAR of ours is %v", got)
	}
	if got := rows["bisect"].MRAR; got > .9 {
		t.Errorf("MRAR of the bisection is %v", got)
	}
	if u := rows["uniform greedy"]; u.Realised.Mean > .95 || u.LTRR.Mean > .99 {
		t.Errorf("greedy realises %v", u.Realised)
	}
}

// Where a search is out of reach the best that is known is the reference. The same arguments give the same rows.
func TestCompare_Known(t *testing.T) {
	f := crosswiring.Fabric{Pods: 32, SpinePorts: 16, Groups: 1}
	all := append(baseline.CrossPlanners(crosswiring.Euler, crosswiring.OrientSeq), baseline.UniformPlanners()...)
	s := baseline.Sequence{Changed: .1, Length: 5, Seed: 7}
	c, rows := compare(t, f, s, all)
	if c.Exact || c.Reference != "orient+seq" || rows["orient+seq"].MRAR != 1 || rows["euler"].MRAR > .5 {
		t.Errorf("got %+v", c)
	}
	again := must(baseline.Compare(f, s, all))(t)
	for i := range c.Rows {
		c.Rows[i].PlanMean, c.Rows[i].PlanMax = again.Rows[i].PlanMean, again.Rows[i].PlanMax
	}
	if !slices.Equal(c.Rows, again.Rows) {
		t.Errorf("got %+v, then %+v", c.Rows, again.Rows)
	}
	_, rows = compare(t, f, baseline.Sequence{Length: 2}, all)
	for name, r := range rows {
		if r.Kept.Mean != r.Kept.Min || r.PlanMean != r.PlanMax {
			t.Errorf("%s: of a single step the mean is not the least: %+v", name, r)
		}
	}
	c, rows = compare(t, f, baseline.Sequence{Jobs: true, Length: 3}, baseline.UniformPlanners())
	if c.Reference != "" || rows["uniform greedy"].MRAR != 0 || rows["uniform greedy"].Realised.Mean > .8 {
		t.Errorf("got %+v", c)
	}
}

func TestCompare_Errors(t *testing.T) {
	f := crosswiring.Fabric{Pods: 7, SpinePorts: 2, Groups: 1}
	for _, x := range []struct {
		f    crosswiring.Fabric
		s    baseline.Sequence
		p    []baseline.Planner
		want error
	}{
		{f, baseline.Sequence{Length: 1}, nil, crosswiring.ErrDemand},
		{f, baseline.Sequence{Length: -1}, nil, crosswiring.ErrDemand},
		{f, baseline.Sequence{Changed: math.NaN()}, nil, crosswiring.ErrDemand},
		{f, baseline.Sequence{Changed: 2}, nil, crosswiring.ErrDemand},
		{f, baseline.Sequence{}, baseline.ExactPlanners(), baseline.ErrTooLarge},
		{crosswiring.Fabric{}, baseline.Sequence{}, baseline.UniformPlanners(), crosswiring.ErrFabric},
	} {
		if _, err := baseline.Compare(x.f, x.s, x.p); !errors.Is(err, x.want) {
			t.Errorf("%+v: got %v, want %v", x.s, err, x.want)
		}
	}
}
