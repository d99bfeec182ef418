package crosswiring_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/topology/crosswiring"
)

func incremental(t fataler, c *crosswiring.Config) *crosswiring.Incremental {
	t.Helper()
	x, err := crosswiring.NewIncremental(c)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// drawLink draws a link of two pods.
func drawLink(t *rapid.T, f crosswiring.Fabric) crosswiring.Link {
	a := rapid.IntRange(0, f.Pods-1).Draw(t, "a")
	b := rapid.IntRange(0, f.Pods-2).Draw(t, "b")
	if b >= a {
		b++
	}
	return crosswiring.Link{Group: rapid.IntRange(0, f.Groups-1).Draw(t, "h"), A: a, B: b}
}

// As links come and go every one finds a place as long as there are ports, and without touching others as long as no spine
// has more than half of its ports in use.
func TestIncremental_Properties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := drawFabric(t)
		f.Pods = max(2, f.Pods)
		d, _ := crosswiring.NewDemand(f.Pods, f.Groups)
		dark, err := crosswiring.NewConfig(f)
		if err != nil {
			t.Fatal(err)
		}
		x := incremental(t, dark)
		before := dark
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			l := drawLink(t, f)
			if rapid.IntRange(0, 3).Draw(t, "remove") == 0 {
				if err := x.Remove(l); (err == nil) != (d.At(l.Group, l.A, l.B) > 0) || err != nil && !errors.Is(err, crosswiring.ErrDemand) {
					t.Fatal(l, err)
				} else if err == nil {
					d, _ = d.Without(l)
				}
				before = x.Config()
				continue
			}
			most := max(d.Degree(l.Group, l.A), d.Degree(l.Group, l.B)) + 1
			moved, err := x.Insert(l)
			if (err == nil) != (most <= f.SpinePorts) || err != nil && !errors.Is(err, crosswiring.ErrDemand) {
				t.Fatal(l, most, err)
			}
			if err == nil {
				d, _ = d.With(l)
			}
			after := x.Config()
			change, err := crosswiring.Diff(before, after)
			if err != nil {
				t.Fatal(err)
			}
			if change.Removed > 2*moved || moved > 0 && most <= f.SpinePorts/2 {
				t.Fatalf("%v: %d circuits removed, %d links moved, with %d links on %d ports", l, change.Removed, moved, most, f.SpinePorts)
			}
			before = after
		}
		if err := before.Check(); err != nil || !before.Demand().Equal(d) {
			t.Fatal("not what was inserted", err)
		}
	})
}

// From an empty cluster up to all ports in use, with jobs that come and go.
func TestIncremental_FillsUp(t *testing.T) {
	f := crosswiring.Fabric{Pods: 24, SpinePorts: 14, Groups: 1}
	full, err := crosswiring.RandomFull(f, 4)
	if err != nil {
		t.Fatal(err)
	}
	var links []crosswiring.Link
	for a := range f.Pods {
		for b := range a {
			for range full.At(0, a, b) {
				links = append(links, crosswiring.Link{A: a, B: b})
			}
		}
	}
	random := rand.New(rand.NewPCG(1, 1))
	random.Shuffle(len(links), func(i, j int) { links[i], links[j] = links[j], links[i] })
	dark, _ := crosswiring.NewConfig(f)
	x := incremental(t, dark)
	moved := 0
	for i, l := range links {
		n, err := x.Insert(l)
		if err != nil {
			t.Fatalf("link %d: %v", i, err)
		}
		moved += n
	}
	verify(t, x.Config(), full)
	t.Logf("%d links moved for %d", moved, len(links))
	if moved == 0 || moved > 8*len(links) {
		t.Errorf("%d links moved for %d", moved, len(links))
	}
	for range 200 { // at full load
		l := links[random.IntN(len(links))]
		if err := x.Remove(l); err != nil {
			t.Fatal(err)
		}
		if _, err := x.Insert(l); err != nil {
			t.Fatal(err)
		}
	}
	verify(t, x.Config(), full)
}

// Both ends send on all pairs, so that a link has no room until others turn round; and the same where both receive.
func TestIncremental_Turns(t *testing.T) {
	f := crosswiring.Fabric{Pods: 6, SpinePorts: 4, Groups: 1}
	out := []crosswiring.Circuit{{In: 0, Out: 2}, {In: 1, Out: 3}}
	more := []crosswiring.Circuit{{In: 0, Out: 4}, {In: 1, Out: 5}}
	for _, x := range []byIndex{
		{{}: out, {Index: 1}: back(out), {Index: 2}: more, {Index: 3}: back(more)},
		{{}: back(out), {Index: 1}: out, {Index: 2}: back(more), {Index: 3}: more},
	} {
		from := circuits(t, f, x)
		l := crosswiring.Link{A: 0, B: 1}
		want, err := from.Demand().With(l)
		if err != nil {
			t.Fatal(err)
		}
		next, moved, err := crosswiring.Insert(from, l)
		if err != nil {
			t.Fatal(err)
		}
		verify(t, next, want)
		if moved < 1 || moved > 2 {
			t.Errorf("%d links moved: want 1, or one more", moved)
		}
	}
}

func TestIncremental_Choose(t *testing.T) {
	f := crosswiring.Fabric{Pods: 3, SpinePorts: 2, Groups: 3}
	dark, _ := crosswiring.NewConfig(f)
	x := incremental(t, dark)
	for i := range 6 { // the less loaded group each time
		h, err := x.Choose(0, 1)
		if err != nil || h != i%3 {
			t.Fatalf("link %d: group %d, %v: want %d", i, h, err, i%3)
		}
		if moved, err := x.Insert(crosswiring.Link{Group: h, A: 0, B: 1}); err != nil || moved > 0 {
			t.Fatal(i, moved, err)
		}
	}
	if _, err := x.Choose(0, 1); !errors.Is(err, crosswiring.ErrDemand) || !strings.Contains(err.Error(), "no group has a port left") {
		t.Error(err)
	}
	if _, err := x.Choose(1, 1); !errors.Is(err, crosswiring.ErrDemand) {
		t.Error(err)
	}
}

func TestInsert(t *testing.T) {
	f := crosswiring.Fabric{Pods: 3, SpinePorts: 2, Groups: 1}
	dark, _ := crosswiring.NewConfig(f)
	triangle := []crosswiring.Link{{A: 0, B: 1}, {A: 1, B: 2}, {A: 2, B: 0}}
	next, moved, err := crosswiring.Insert(dark, triangle...)
	if err != nil || moved != 0 {
		t.Fatal(moved, err)
	}
	verify(t, next, matrices(t, [][]int{{0, 1, 1}, {1, 0, 1}, {1, 1, 0}}))
	none, err := crosswiring.Remove(next, triangle...)
	if err != nil || !none.Equal(dark) || dark.Count() != 0 {
		t.Error("after all links are removed something is left", err)
	}
	for _, l := range []crosswiring.Link{
		{A: 0, B: 1}, {A: 0, B: 0}, {A: 0, B: 3}, {A: -1, B: 1}, {Group: 1, A: 0, B: 1}, {Group: -1, A: 0, B: 1},
	} {
		if c, _, err := crosswiring.Insert(next, l); !errors.Is(err, crosswiring.ErrDemand) || c != nil {
			t.Errorf("%+v: %v", l, err)
		}
		if c, err := crosswiring.Remove(dark, l); !errors.Is(err, crosswiring.ErrDemand) || c != nil {
			t.Errorf("%+v: %v", l, err)
		}
	}
	_, _, err = crosswiring.Insert(next, triangle[0])
	if err == nil || !strings.Contains(err.Error(), "pod 0 in group 0 has 2 links on 2 ports") {
		t.Error(err)
	}
	uniform := f
	uniform.Wiring = crosswiring.Uniform
	for _, x := range []struct {
		from *crosswiring.Config
		err  error
	}{
		{circuits(t, uniform, nil), crosswiring.ErrFabric},
		{&crosswiring.Config{}, crosswiring.ErrFabric},
		{circuits(t, f, byIndex{{}: ring(3)}), crosswiring.ErrConfig},
	} {
		if _, _, err := crosswiring.Insert(x.from); !errors.Is(err, x.err) {
			t.Errorf("%v: want %v", err, x.err)
		}
		if _, err := crosswiring.Remove(x.from); !errors.Is(err, x.err) {
			t.Errorf("%v: want %v", err, x.err)
		}
	}
}

// A link at 80 % load of a cluster of 32,768 GPUs.
func BenchmarkIncremental(b *testing.B) {
	f := crosswiring.Fabric{Pods: 128, SpinePorts: 16, Groups: 16}
	d, err := crosswiring.RandomFull(crosswiring.Fabric{Pods: 128, SpinePorts: 12, Groups: 16}, 1)
	if err != nil {
		b.Fatal(err)
	}
	x := incremental(b, plan(b, f, d))
	random := rand.New(rand.NewPCG(1, 1))
	moved, links := 0, 0
	for b.Loop() {
		l := crosswiring.Link{Group: random.IntN(16), A: random.IntN(128)}
		l.B = (l.A + 1 + random.IntN(127)) % 128
		n, err := x.Insert(l)
		if err != nil {
			continue
		}
		moved += n
		links++
		if err := x.Remove(l); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(moved)/float64(max(links, 1)), "moved/op")
}

// Rings of pods come and go at 80 % load: what a link moves on average, and a job at most, stays small.
func TestIncremental_JobsMoveFew(t *testing.T) {
	f := crosswiring.Fabric{Pods: 32, SpinePorts: 16, Groups: 1}
	dark, err := crosswiring.NewConfig(f)
	if err != nil {
		t.Fatal(err)
	}
	x := incremental(t, dark)
	random := rand.New(rand.NewPCG(1, 1))
	var jobs [][]crosswiring.Link
	links, moved, inserted, worst := 0, 0, 0, 0
	for range 3000 {
		for links > f.Ports()/2*80/100 {
			i := random.IntN(len(jobs))
			for _, l := range jobs[i] {
				if err := x.Remove(l); err != nil {
					t.Fatal(err)
				}
			}
			links -= len(jobs[i])
			jobs = slices.Delete(jobs, i, i+1)
		}
		pods := random.Perm(f.Pods)[:3+random.IntN(10)]
		var job []crosswiring.Link
		sum := 0
		for i, a := range pods {
			l := crosswiring.Link{A: a, B: pods[(i+1)%len(pods)]}
			n, err := x.Insert(l)
			if errors.Is(err, crosswiring.ErrDemand) {
				continue // no port is left
			}
			sum += n
			job = append(job, l)
		}
		jobs = append(jobs, job)
		links += len(job)
		inserted += len(job)
		moved += sum
		worst = max(worst, sum)
	}
	mean := float64(moved) / float64(inserted)
	t.Logf("%.2f links moved for each of %d, %d for a job at most", mean, inserted, worst)
	if mean > .65 || worst > 20 || x.Config().Demand().Total() != links {
		t.Errorf("%.2f links moved for each, %d for a job: want .65 and 20 at most", mean, worst)
	}
	if err := x.Config().Check(); err != nil {
		t.Error(err)
	}
}
