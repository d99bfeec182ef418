package crosswiring

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ocslab/ocslab/topology/internal/graph"
)

// rewirer plans all groups for Rewire.
type rewirer struct {
	running, next *Config
	demand        *Demand
	opt           RewireOptions
	on            [][]int // by group, the pairs that are on
	report        *RewireReport
	groups        []groupPlan
}

// groupPlan is what a worker says of a group.
type groupPlan struct {
	report              GroupReport
	lost                []LinkCount
	displaced, rerouted int
	time                RewireTimes
	late                bool
}

func newRewirer(running *Config, d *Demand, opt RewireOptions) (*rewirer, error) {
	f := running.fabric
	if err := d.Check(f); err != nil {
		return nil, err
	}
	if f.Wiring == Uniform {
		return nil, fmt.Errorf("%w: uniform wiring cannot satisfy every demand, so this planner is not for it: "+
			"want cross or dual-link", ErrFabric)
	}
	var err error
	if opt.Method, err = ParseMethod(string(opt.Method)); err != nil {
		return nil, err
	}
	if opt.Rounds == 0 {
		opt.Rounds = max(fewestRounds, roundLinks/(f.Pods*f.Pairs()))
	}
	r := &rewirer{running: running, next: darkConfig(f), demand: d, opt: opt, report: &RewireReport{}}
	if err := r.switchOff(opt.Without); err != nil {
		return nil, err
	}
	r.groups = make([]groupPlan, f.Groups)
	return r, nil
}

// switchOff finds which pairs are on, and checks what runs on those.
func (r *rewirer) switchOff(off []Pair) error {
	f := r.running.fabric
	live := r.running
	if len(off) > 0 {
		live = live.clone()
	}
	dark := slices.Repeat([]int32{Dark}, f.Pods)
	for _, p := range off {
		if p.Group < 0 || p.Group >= f.Groups || p.Index < 0 || p.Index >= f.Pairs() {
			return fmt.Errorf("%w: there is no %v that could be off: want group 0 to %d, pair 0 to %d",
				ErrFabric, p, f.Groups-1, f.Pairs()-1)
		}
		live.setPeers(p, dark)
	}
	if err := live.Check(); err != nil {
		return err
	}
	r.on = make([][]int, f.Groups)
	for h := range r.on {
		for c := range f.Pairs() {
			if !slices.Contains(off, Pair{h, c}) {
				r.on[h] = append(r.on[h], c)
			}
		}
	}
	return nil
}

// run plans all groups, some at a time. Each has random numbers of its own, so that the result is the same however many.
func (r *rewirer) run(workers int) {
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	var next atomic.Int64
	var all sync.WaitGroup
	for range min(workers, len(r.groups)) {
		all.Go(func() {
			k := newKeeper(r.running.fabric.Pods)
			for h := int(next.Add(1)) - 1; h < len(r.groups); h = int(next.Add(1)) - 1 {
				r.groups[h] = r.plan(h, k)
			}
		})
	}
	all.Wait()
	for i := range r.groups {
		g := &r.groups[i]
		r.report.Groups = append(r.report.Groups, g.report)
		r.report.Lost = append(r.report.Lost, g.lost...)
		r.report.Displaced += g.displaced
		r.report.Rerouted += g.rerouted
		r.report.Time.Orient += g.time.Orient
		r.report.Time.Methods += g.time.Methods
		r.report.Time.Improve += g.time.Improve
		r.report.Late = r.report.Late || g.late
	}
}

// plan plans a group.
func (r *rewirer) plan(h int, k *keeper) (g groupPlan) {
	begin := time.Now()
	on, pods := r.on[h], r.running.fabric.Pods
	old := matchings(len(on), pods)
	for i, c := range on {
		r.running.peers(Pair{h, c}, old[i])
	}
	k.reset()
	k.wantAll(r.demand.group(h))
	for _, peers := range old {
		k.running(peers)
	}
	if !k.fits(len(on)) {
		g.lost = k.cut(h, len(on))
	}
	if len(on) < r.running.fabric.Pairs() {
		g.displaced, g.rerouted = r.displaced(h, k.ties)
	}
	k.orient(len(on)) // there is room, since it fits or was cut
	g.report = GroupReport{Group: h, AtMost: 2 * k.kept()}
	g.time.Orient = time.Since(begin)

	begin = time.Now()
	random := rand.New(rand.NewPCG(r.opt.Seed, uint64(h)))
	next := r.try(k, &g.report, old, random)
	g.time.Methods = time.Since(begin)

	begin = time.Now()
	if r.opt.Method == Best && g.report.Kept < g.report.AtMost && r.opt.Rounds > 0 {
		x := newImprover(old, next, k, random)
		g.report.Rounds, g.late = x.run(r.opt.Rounds, r.opt.Deadline)
	}
	kept := 2 * keptLinks(old, next)
	g.report.Improved, g.report.Kept = kept-g.report.Kept, kept
	for i, c := range on {
		g.report.Running += 2 * litCount(old[i])
		g.report.Planned += 2 * litCount(next[i])
		r.next.setPeers(Pair{h, c}, next[i])
	}
	g.time.Improve = time.Since(begin)
	return g
}

func litCount(peers []int32) (n int) {
	for _, v := range peers {
		n += int(lit(v))
	}
	return n
}

// bisected is how many links a group may have at most for Best to try OrientBisect, which takes longest and keeps far
// less of larger ones than OrientSeq; see RewireTable.
const bisected = 256

// try plans by the method, or for Best by several of which the best is taken, and notes what each keeps.
func (r *rewirer) try(k *keeper, g *GroupReport, old [][]int32, random *rand.Rand) (best [][]int32) {
	methods := []Method{r.opt.Method}
	if r.opt.Method == Best {
		methods = []Method{OrientSeq, Kempe}
		if k.pods*len(old) <= bisected {
			methods = append(methods, OrientBisect)
		}
	}
	g.Kept = -1
	for _, m := range methods {
		if g.Kept == g.AtMost {
			break // no other is better
		}
		count := MethodCount{m, -1}
		for i := range tries(m, r.opt.Method) {
			next := matchings(len(old), k.pods)
			k.attempt(i)
			k.by(m, old, next, random)
			kept := 2 * keptLinks(old, next)
			count.Kept = max(count.Kept, kept)
			if kept > g.Kept {
				g.Method, g.Kept, best = m, kept, next
			}
		}
		g.Methods = append(g.Methods, count)
	}
	return best
}

// orders is how many orders of the pairs Best tries.
const orders = 2

// tries returns how often a method is tried as a part of another.
func tries(m, of Method) int {
	if m == OrientSeq && of == Best {
		return orders
	}
	return 1
}

// by plans a group by a single method.
func (k *keeper) by(m Method, old, next [][]int32, random *rand.Rand) {
	switch m {
	case Euler:
		k.afresh(next)
	case Bisect:
		k.afresh(nil)
		k.bisect(old, next)
	case OrientBisect:
		k.bisect(old, next)
	case Kempe:
		k.kempe(old, next)
	default:
		k.sequence(old, next, random)
	}
}

// afresh gives the links directions, and pairs if there are next, as Plan does, which knows of nothing that runs.
func (k *keeper) afresh(next [][]int32) {
	links := make([]int32, k.pods*k.pods)
	for i := range k.all {
		x := &k.all[i]
		links[int(x.u)*k.pods+int(x.v)], links[int(x.v)*k.pods+int(x.u)] = x.links, x.links
		x.out = 0
	}
	s := newSplitter(k.pods)
	arcs := s.orient(links)
	for _, a := range arcs {
		if way := k.way(a[0], a[1]); way&1 == 0 {
			k.all[way>>1].out++
		}
	}
	if next == nil {
		return
	}
	s.colour(arcs, len(next), func(pair int, arcs [][2]int32) {
		for _, a := range arcs {
			next[pair][a[0]] = a[1]
		}
	})
}

// fits tells whether no pod has more links than so many pairs have ports.
func (t *ties) fits(pairs int) bool {
	t.guess()
	return slices.Max(t.degree) <= int32(2*pairs)
}

// cut takes links away until so many pairs can carry the rest, and returns them. It orients them evenly, and of what then
// leads out of each pod and into each it leaves as much as goes, and of that as many running ones: so for each pair less
// it loses no more links than there are pods, since those of a colour could be dropped.
func (t *ties) cut(group, pairs int) (lost []LinkCount) {
	t.orientEvenly()
	source, sink := 2*t.pods, 2*t.pods+1
	flow := graph.NewFlow(2*t.pods + 2)
	for u := range t.pods {
		flow.Arc(source, u, pairs, 0)
		flow.Arc(t.pods+u, sink, pairs, 0)
	}
	arcs := make([][4]int, len(t.all))
	for i := range t.all {
		x := &t.all[i]
		arcs[i] = [4]int{
			flow.Arc(int(x.u), t.pods+int(x.v), int(min(x.out, x.there)), -1),
			flow.Arc(int(x.u), t.pods+int(x.v), int(max(0, x.out-x.there)), 0),
			flow.Arc(int(x.v), t.pods+int(x.u), int(min(x.links-x.out, x.back)), -1),
			flow.Arc(int(x.v), t.pods+int(x.u), int(max(0, x.links-x.out-x.back)), 0),
		}
	}
	flow.Send(source, sink, pairs*t.pods)
	for i := range t.all {
		x := &t.all[i]
		links := int32(0)
		for _, a := range arcs[i] {
			links += int32(flow.On(a))
		}
		if links < x.links {
			lost = append(lost, LinkCount{Link{group, int(x.u), int(x.v)}, int(x.links - links)})
			x.links = links
		}
	}
	return lost
}

// displaced returns how many links ran on the pairs of a group that are off, and how many of those run on others then.
func (r *rewirer) displaced(h int, t *ties) (displaced, rerouted int) {
	on, peers := r.on[h], make([]int32, t.pods)
	ran := map[[2]int32]int32{}
	for c := range r.running.fabric.Pairs() {
		if slices.Contains(on, c) {
			continue
		}
		r.running.either(Pair{h, c}, peers)
		for u, v := range peers {
			if v != Dark {
				ran[[2]int32{min(int32(u), v), max(int32(u), v)}]++
			}
		}
	}
	for pods, n := range ran {
		displaced += int(n)
		if w := t.way(pods[0], pods[1]); w >= 0 {
			x := &t.all[w>>1]
			rerouted += int(max(0, min(n, x.links-x.there-x.back)))
		}
	}
	return displaced, rerouted
}

// either writes the links of a pair as peers does, also those of which only the way back is there, as when the even
// switch of the pair failed.
func (c *Config) either(p Pair, into []int32) {
	c.peers(p, into)
	_, odd, _ := c.both(p)
	for i, j := range into {
		if j < 0 || int(j) >= len(into) { // on a DualLink switch that went wrong circuits may join two even ports
			into[i] = Dark
		}
	}
	for j, i := range odd {
		if i >= 0 && int(i) < len(into) && into[i] == Dark {
			into[i] = int32(j)
		}
	}
}
