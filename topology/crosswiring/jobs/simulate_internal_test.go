package jobs

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/ocslab/ocslab/topology/crosswiring"
	"github.com/ocslab/ocslab/topology/crosswiring/baseline"
)

func TestThroughput(t *testing.T) {
	for _, x := range []struct {
		parts []float64
		want  float64
	}{
		{nil, 1}, {[]float64{.5}, .5}, {[]float64{1, 1, 1}, 1}, {[]float64{1, 0, 1}, .5}, {[]float64{0, 1, 1}, .5},
		{[]float64{5. / 8, 6. / 8, 5. / 8}, 5. / 8}, {[]float64{1, 0, 0, 1}, 0}, {[]float64{.2, .6, .4, .9}, .3},
		{[]float64{.9, .4, .6, .2}, .3},
	} {
		if got := throughput(x.parts); math.Abs(got-x.want) > 1e-12 {
			t.Errorf("%v: got %v, want %v", x.parts, got, x.want)
		}
	}
}

func TestBundles(t *testing.T) {
	for _, x := range []struct {
		ring []share
		want [][3]int
	}{
		{[]share{{1, 3}}, nil},
		{[]share{{1, 3}, {4, 2}}, [][3]int{{1, 4, 4}}},
		{[]share{{1, 3}, {4, 2}, {5, 3}}, [][3]int{{1, 4, 2}, {4, 5, 2}, {5, 1, 3}}},
	} {
		var got [][3]int
		(&job{ring: x.ring}).bundles(func(a, b, links int) { got = append(got, [3]int{a, b, links}) })
		if !slices.Equal(got, x.want) {
			t.Errorf("%v: got %v, want %v", x.ring, got, x.want)
		}
	}
}

func TestPlace(t *testing.T) {
	s := newSimulation(crosswiring.Fabric{Pods: 4, SpinePorts: 8, Groups: 1}, nil, Architecture{}, 0)
	s.free = []int{4, 2, 3, 3}
	for blocks, want := range map[int][]share{
		1: {{1, 1}}, 2: {{1, 2}}, 3: {{2, 3}}, 4: {{0, 4}}, 5: {{2, 3}, {3, 2}}, 6: {{2, 3}, {3, 3}}, 7: {{0, 3}, {2, 2}, {3, 2}},
		8: {{0, 3}, {2, 3}, {3, 2}}, 10: nil, 13: nil,
	} {
		if got := s.place(blocks); !slices.Equal(got, want) {
			t.Errorf("%d blocks: got %v, want %v", blocks, got, want)
		}
	}
}

// Two triangles on Uniform wiring have four of their six links. When one ends the other has all of its three.
func TestEnd(t *testing.T) {
	f := crosswiring.Fabric{Pods: 3, SpinePorts: 4, Groups: 1}
	s := newSimulation(f, []Job{{0, 3, time.Minute}, {0, 3, time.Minute}}, Architecture{Planner: &baseline.UniformPlanners()[0]}, .3)
	for _, j := range s.jobs {
		j.Pods, j.ring = 3, []share{{0, 1}, {1, 1}, {2, 1}}
	}
	if err := s.start(s.jobs); err != nil {
		t.Fatal(err)
	}
	for _, j := range s.jobs {
		if math.Abs(j.rate-1/1.3) > 1e-12 { // of two bundles half of the links
			t.Errorf("rate %v, want 1/1.3", j.rate)
		}
	}
	if err := s.end(1); err != nil {
		t.Fatal(err)
	}
	if s.jobs[0].rate != 1 {
		t.Errorf("rate %v, want 1", s.jobs[0].rate)
	}
}
