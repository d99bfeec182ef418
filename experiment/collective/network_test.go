package collective

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/topology/pccl"
)

// sun is light everywhere, but for links that are dark until told otherwise.
type sun struct {
	mu   sync.Mutex
	gone map[pccl.Transfer]bool
	at   map[pccl.Transfer]time.Time
	news chan struct{}
}

func newSun() *sun {
	return &sun{gone: map[pccl.Transfer]bool{}, at: map[pccl.Transfer]time.Time{}, news: make(chan struct{})}
}

func (s *sun) set(link pccl.Transfer, lit bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gone[link], s.at[link] = !lit, time.Now()
	close(s.news)
	s.news = make(chan struct{})
}

func (s *sun) lit(link pccl.Transfer) (time.Time, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.at[link], !s.gone[link]
}

func (s *sun) changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.news
}

func (s *sun) dark(pccl.Transfer) string { return "it is night" }

func demoNetwork(l light) *network {
	return &network{alpha: 3 * time.Millisecond, perByte: 1 / 0.45, patience: time.Second, light: l}
}

// ringRound returns the paths of the first round of recursive halving on a ring of 8.
func demoRound(t *testing.T, topology *pccl.Topology, number int, ties pccl.Ties) ([][]int, pccl.Round) {
	t.Helper()
	s, err := pccl.New(pccl.ReduceScatter, "rhd-halving", 8, 100e6)
	if err != nil {
		t.Fatal(err)
	}
	r := s.Rounds[number]
	if topology == nil {
		if topology, err = pccl.Direct(8, "own", r); err != nil {
			t.Fatal(err)
		}
	}
	paths, err := routes(topology, r.Transfers, ties)
	if err != nil {
		t.Fatal(err)
	}
	return paths, r
}

// Ensure that congestion and dilation come about about as the paper's cost model has them, though nothing here knows of
// it: 100 MB on 8 GPUs, 3 ms a hop, 0.45 GB/s. On a ring they cost a hop less, as the link that most share is never idle
// while the longest path fills.
func TestNetwork_Rounds(t *testing.T) {
	ring, err := pccl.Ring(8)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name     string
		topology *pccl.Topology
		round    int
		want     time.Duration // alpha d + beta c w
	}{
		{"round 0 on its own", nil, 0, 114111111},
		{"round 1 on its own", nil, 1, 58555556},
		{"round 2 on its own", nil, 2, 30777778},
		{"round 0 on the ring", ring, 0, 456444444},
		{"round 1 on the ring", ring, 1, 117111111},
		{"round 2 on the ring", ring, 2, 30777778},
	} {
		t.Run(c.name, func(t *testing.T) {
			paths, r := demoRound(t, c.topology, c.round, pccl.Lex)
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				end, err := demoNetwork(newSun()).run(t.Context(), paths, r.Bytes)
				if err != nil {
					t.Fatal(err)
				}
				got := end.Sub(begin)
				if off := float64(got-c.want) / float64(c.want); off < -0.03 || off > 0.01 {
					t.Errorf("took %v, want %v: %+.2f %%", got, c.want, 100*off)
				}
				if since := time.Since(begin); since != got {
					t.Errorf("returned after %v, and says that it took %v", since, got)
				}
			})
		})
	}
}

// Ensure that what shares a link waits for it, that small things take a hop's time a hop, and that bounds hold for any
// transfers on any topology: never quicker than the slowest link or the longest path allow.
func TestNetwork_Bounds(t *testing.T) {
	ring, err := pccl.Torus(3, 4)
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(rt *rapid.T) {
		bytes := rapid.Float64Range(0, 5e6).Draw(rt, "bytes")
		var transfers []pccl.Transfer
		for range rapid.IntRange(1, 12).Draw(rt, "transfers") {
			a := rapid.IntRange(0, 11).Draw(rt, "from")
			transfers = append(transfers, pccl.Transfer{Src: a, Dst: (a + rapid.IntRange(1, 11).Draw(rt, "to")) % 12})
		}
		paths, err := routes(ring, transfers, rapid.SampledFrom([]pccl.Ties{pccl.Lex, pccl.Greedy}).Draw(rt, "ties"))
		if err != nil {
			rt.Fatal(err)
		}
		load := map[[2]int]int{}
		congestion, dilation := 0, 0
		for _, p := range paths {
			dilation = max(dilation, len(p)-1)
			for i := range len(p) - 1 {
				load[[2]int{p[i], p[i+1]}]++
				congestion = max(congestion, load[[2]int{p[i], p[i+1]}])
			}
		}
		synctest.Test(t, func(t *testing.T) {
			begin := time.Now()
			n := demoNetwork(newSun())
			end, err := n.run(t.Context(), paths, bytes)
			if err != nil {
				t.Fatal(err)
			}
			once := time.Duration(bytes * n.perByte)
			least := max(time.Duration(congestion)*once+n.alpha, once+time.Duration(dilation)*n.alpha)
			most := time.Duration(dilation) * (time.Duration(congestion)*once + n.alpha)
			const rounding = time.Microsecond // of each piece
			if got := end.Sub(begin); got < least-rounding || got > most+time.Millisecond {
				t.Errorf("took %v, want %v to %v (congestion %d, dilation %d)", got, least, most, congestion, dilation)
			}
		})
	})
}

// Ensure that a link without light stops what needs it, that bytes on their way are lost when it goes, and that a
// link that does not come back ends the round with an error that says which it is.
func TestNetwork_Dark(t *testing.T) {
	link := pccl.Transfer{Src: 0, Dst: 4}
	paths, r := demoRound(t, nil, 0, pccl.Lex)
	synctest.Test(t, func(t *testing.T) {
		s := newSun()
		go func() {
			time.Sleep(50 * time.Millisecond)
			s.set(link, false)
			time.Sleep(500 * time.Millisecond)
			s.set(link, true)
		}()
		begin := time.Now()
		end, err := demoNetwork(s).run(t.Context(), paths, r.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := end.Sub(begin), 614*time.Millisecond; got < want || got > want+2*time.Millisecond {
			t.Errorf("with 500 ms of night: %v, want %v and a piece", got, want)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		s := newSun()
		s.set(link, false)
		begin := time.Now()
		_, err := demoNetwork(s).run(t.Context(), paths, r.Bytes)
		if !errors.Is(err, ErrStalled) || !strings.Contains(err.Error(), "from GPU 0 to GPU 4 for 1s: it is night") {
			t.Errorf("error: %v", err)
		}
		if got := time.Since(begin); got != time.Second {
			t.Errorf("stalled after %v", got)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		if _, err := demoNetwork(newSun()).run(ctx, paths, r.Bytes); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("when it was ended: %v", err)
		}
	})
}

// Ensure that paths are the shortest, that ties are broken as the words of pccl.Ties say, and that the loads are those
// of the planner's cost table.
func TestRoutes(t *testing.T) {
	ring, err := pccl.Ring(4)
	if err != nil {
		t.Fatal(err)
	}
	across := []pccl.Transfer{{Src: 0, Dst: 2}, {Src: 1, Dst: 3}, {Src: 2, Dst: 0}, {Src: 3, Dst: 1}}
	for _, c := range []struct {
		ties pccl.Ties
		want [][]int
	}{
		{pccl.Lex, [][]int{{0, 1, 2}, {1, 0, 3}, {2, 1, 0}, {3, 0, 1}}},
		{pccl.Greedy, [][]int{{0, 1, 2}, {1, 0, 3}, {2, 3, 0}, {3, 2, 1}}},
	} {
		got, err := routes(ring, across, c.ties)
		if err != nil || !slices.EqualFunc(got, c.want, slices.Equal) {
			t.Errorf("%s: %v, %v, want %v", c.ties, got, err, c.want)
		}
	}
	one, err := pccl.NewTopology("one way", 3, []pccl.Transfer{{Src: 0, Dst: 1}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := routes(one, []pccl.Transfer{{Src: 1, Dst: 0}}, pccl.Lex); !errors.Is(err, pccl.ErrDisconnected) {
		t.Errorf("without a path: %v", err)
	}
	rapid.Check(t, func(rt *rapid.T) {
		torus, err := pccl.Torus(rapid.IntRange(2, 4).Draw(rt, "rows"), rapid.IntRange(2, 5).Draw(rt, "columns"))
		if err != nil {
			rt.Fatal(err)
		}
		n := torus.GPUs()
		of := map[pccl.Transfer]bool{}
		for range rapid.IntRange(1, 12).Draw(rt, "transfers") {
			a := rapid.IntRange(0, n-1).Draw(rt, "from")
			of[pccl.Transfer{Src: a, Dst: (a + rapid.IntRange(1, n-1).Draw(rt, "to")) % n}] = true
		}
		r := pccl.Round{Bytes: 1}
		for x := range of {
			r.Transfers = append(r.Transfers, x)
		}
		slices.SortFunc(r.Transfers, byEnds)
		p := pccl.Params{Alpha: 1, Beta: 1, Ties: rapid.SampledFrom([]pccl.Ties{pccl.Lex, pccl.Greedy}).Draw(rt, "ties")}
		want, err := p.Cost(torus, r)
		if err != nil {
			rt.Fatal(err)
		}
		paths, err := routes(torus, r.Transfers, p.Ties)
		if err != nil {
			rt.Fatal(err)
		}
		load := map[[2]int]int{}
		congestion, dilation := 0, 0
		for i, path := range paths {
			if path[0] != r.Transfers[i].Src || path[len(path)-1] != r.Transfers[i].Dst {
				rt.Fatalf("%v goes %v", r.Transfers[i], path)
			}
			dilation = max(dilation, len(path)-1)
			for k := range len(path) - 1 {
				e := [2]int{path[k], path[k+1]}
				if !torus.Has(e[0], e[1]) {
					rt.Fatalf("%v goes %v, and there is no circuit %v", r.Transfers[i], path, e)
				}
				load[e]++
				congestion = max(congestion, load[e])
			}
		}
		if congestion != want.Congestion || dilation != want.Dilation {
			rt.Errorf("congestion %d, dilation %d; the planner has %d, %d", congestion, dilation, want.Congestion, want.Dilation)
		}
	})
}

// Ensure that a link is there when all its circuits have the light that they are to have, and no sooner.
func TestLights(t *testing.T) {
	l := newLights()
	link := pccl.Transfer{Src: 0, Dst: 1}
	l.wire(map[pccl.Transfer][]at{link: {{"rail0", ocs.CrossConnect{Ingress: 1, Egress: 34}}, {"rail1", ocs.CrossConnect{Ingress: 2, Egress: 35}}}})
	begin := time.Now()
	if _, ok := l.lit(link); ok {
		t.Error("lit with nothing seen")
	}
	l.see("rail0", 34, 1, begin)
	l.see("rail1", 35, 7, begin)
	if _, ok := l.lit(link); ok {
		t.Error("lit with light of another port")
	}
	if got, want := l.dark(link), "rail1 2>35 is wanted, and the light there comes from port 7"; got != want {
		t.Errorf("dark: %q, want %q", got, want)
	}
	changed := l.changed()
	l.see("rail1", 35, 2, begin.Add(time.Second))
	select {
	case <-changed:
	default:
		t.Error("nobody was told")
	}
	if since, ok := l.lit(link); !ok || !since.Equal(begin.Add(time.Second)) {
		t.Errorf("lit: %v since %v", ok, since)
	}
	l.see("rail1", 35, 0, begin.Add(2*time.Second))
	if got, want := l.dark(link), "rail1 2>35 has no light"; got != want {
		t.Errorf("dark: %q, want %q", got, want)
	}
	if _, ok := l.lit(pccl.Transfer{Src: 1, Dst: 0}); ok {
		t.Error("a link that is not wired is lit")
	}
	synctest.Test(t, func(t *testing.T) {
		l := newLights()
		l.wire(map[pccl.Transfer][]at{link: {{"rail0", ocs.CrossConnect{Ingress: 1, Egress: 34}}}})
		if _, err := l.wait(t.Context(), time.Second); !errors.Is(err, ErrStalled) || !strings.Contains(err.Error(), "GPU 0 to 1: rail0 1>34 has no light") {
			t.Errorf("wait: %v", err)
		}
		go func() {
			time.Sleep(time.Second)
			l.see("rail0", 34, 1, time.Now())
		}()
		begin := time.Now()
		since, err := l.wait(t.Context(), time.Minute)
		if err != nil || !since.Equal(begin.Add(time.Second)) {
			t.Errorf("since %v, %v", since.Sub(begin), err)
		}
	})
}
