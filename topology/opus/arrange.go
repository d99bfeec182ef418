package opus

import (
	"fmt"
	"slices"
)

// smallLoop is up to how many ranks all orders of a loop are tried: 2,520 then.
const smallLoop = 8

// Loop is ranks that communicate with each other in a phase, by way of their neighbours.
type Loop struct {
	// Ranks has them in the order of a plain ring. Unless Ordered, any other order serves as well.
	Ranks   []int
	Ordered bool // neighbours must stay neighbours: a pipeline
	Open    bool // nothing leads from the last to the first; only if Ordered
}

// Phase is what communicates at the same time. No rank is in two of its loops; one in none is dark.
type Phase []Loop

// Phase returns what communicates at a topology ID: the groups of each stage, or the runs of its pipelines.
func (j Job) Phase(id ID, p Policy) (Phase, error) {
	if err := j.Check(); err != nil {
		return nil, err
	}
	if err := j.checkID(id); err != nil {
		return nil, err
	}
	if err := p.check(); err != nil {
		return nil, err
	}
	var phase Phase
	per := j.RanksPerStage()
	all := links(id, p, nil)
	for s := 0; s < len(all); s++ {
		if axis := int(all[s].axis); axis != PP {
			for x := s * per; x < (s+1)*per; x++ {
				if j.Coordinate(x, axis) == 0 {
					phase = append(phase, Loop{Ranks: j.GroupOf(x, axis).Members})
				}
			}
			continue
		}
		first := s
		for s+1 < len(all) && all[s].right == int32(s+1) {
			s++
		}
		for c := range per {
			run := Loop{Ordered: true, Open: all[first].left < 0}
			for t := first; t <= s; t++ {
				run.Ranks = append(run.Ranks, t*per+c)
			}
			phase = append(phase, run)
		}
	}
	return phase, nil
}

// RingPhase returns the phase of a rail on its giant ring, in which any rank reaches any other.
func (j Job) RingPhase() Phase { return Phase{{Ranks: RingOrder(j)}} }

// Arrangement is matchings for the phases of a step.
type Arrangement struct {
	Matchings []Matching // by phase
	// Ports is how many duplex ports, and so how many ingress ports, have their circuit changed in a step: from each phase to
	// the next, and from the last to the first. Naive is how many it would be with each loop as it stands, right to left.
	Ports, Naive int
}

// Arrange chooses for the phases of a step, which is repeated, the order of each ring and which port of each rank leads
// to which neighbour, so that few ports have to move. Each loop in its turn takes what suits its neighbours in time
// best until nothing gets better. Of up to eight ranks that is the best there is, all orders being tried; a longer one is
// put together greedily from the circuits there are before and after it. The whole is thus never worse than
// the naive choice, but there may be a better one.
//
// Between phases of one topology ID and another there is nothing to gain: two groups of different axes have no two ranks
// in common, and where stages keep their axis so do their circuits. It is for groups that overlap: data parallelism
// over two axes at once, and the giant ring.
func Arrange(j Job, phases ...Phase) (Arrangement, error) {
	if err := j.Check(); err != nil {
		return Arrangement{}, err
	}
	plain := make(plan, len(phases))
	for i, phase := range phases {
		seen := make([]bool, j.Ranks())
		for _, l := range phase {
			for _, x := range l.Ranks {
				if x < 0 || x >= len(seen) {
					return Arrangement{}, fmt.Errorf("phase %d: %w: there is no rank %d: want 0 to %d", i, ErrJob, x, len(seen)-1)
				}
				if seen[x] {
					return Arrangement{}, fmt.Errorf("phase %d: %w: rank %d is in it twice", i, ErrJob, x)
				}
				seen[x] = true
			}
			if l.Open && !l.Ordered {
				return Arrangement{}, fmt.Errorf("phase %d: %w: an open loop must be ordered", i, ErrJob)
			}
			plain[i].laid = append(plain[i].laid, laid{l, slices.Clone(l.Ranks), make([]bool, len(l.Ranks))})
		}
		plain[i].peer = make([]int32, 2*j.Ranks())
		plain[i].wire()
	}
	best := plain.clone()
	best.improve()
	// Another beginning: each phase as it suits the one before it.
	second := plain.clone()
	for i := range max(len(second)-1, 0) {
		second.relay(i+1, []int{i})
	}
	second.improve()
	if second.moved() < best.moved() {
		best = second
	}
	a := Arrangement{Ports: best.moved() * j.planes(), Naive: plain.moved() * j.planes()}
	for i := range best {
		m := dark(j)
		for q, peer := range best[i].peer {
			for k := range j.planes() {
				if peer >= 0 {
					m.peer[q/2*m.perRank+2*k+q%2] = peer/2*int32(m.perRank) + 2*int32(k) + peer%2
				}
			}
		}
		a.Matchings = append(a.Matchings, m)
	}
	return a, nil
}

// plan is how the phases of a step are laid. In it each rank x has two ports, 2x and 2x+1.
type plan []layer

type layer struct {
	laid []laid
	peer []int32 // by port; -1 is none
}

// laid is a loop with an order, and for each place in it whether the ports of the rank have changed roles: its right
// one leads to the rank before it, then.
type laid struct {
	Loop
	order []int
	flip  []bool
}

func (l laid) next(i int) int { return outward(l.order[i], l.flip[i]) }
func (l laid) prev(i int) int { return outward(l.order[i], !l.flip[i]) }

func outward(rank int, flip bool) int {
	if flip {
		return 2 * rank
	}
	return 2*rank + 1
}

// hops returns how many circuits the loop has.
func (l laid) hops() int {
	switch n := len(l.order); {
	case n < 2:
		return 0
	case l.Open:
		return n - 1
	default:
		return n
	}
}

func (p plan) clone() plan {
	c := slices.Clone(p)
	for i := range c {
		c[i].laid = slices.Clone(c[i].laid) // orders are replaced, never changed
		c[i].peer = slices.Clone(c[i].peer)
	}
	return c
}

// wire writes the peers of the layer.
func (y layer) wire() {
	for q := range y.peer {
		y.peer[q] = -1
	}
	for _, l := range y.laid {
		for i := range l.hops() {
			a, b := l.next(i), l.prev((i+1)%len(l.order))
			y.peer[a], y.peer[b] = int32(b), int32(a)
		}
	}
}

// moved returns how many ports change in a step.
func (p plan) moved() int {
	n := 0
	for i := range p {
		for q, peer := range p[i].peer {
			if p[(i+1)%len(p)].peer[q] != peer {
				n++
			}
		}
	}
	return n
}

// improve lays loops anew until none gets better. Each time the number of circuits that stay grows, so it ends.
func (p plan) improve() {
	for better := len(p) > 1; better; {
		better = false
		for i := range p {
			better = p.relay(i, []int{(i + len(p) - 1) % len(p), (i + 1) % len(p)}) || better
		}
	}
}

// relay lays the loops of a phase as it suits others, and reports whether any has got better.
func (p plan) relay(phase int, others []int) (better bool) {
	worth := func(a, b int) (n int) {
		for _, o := range others {
			if p[o].peer[a] == int32(b) {
				n++
			}
		}
		return n
	}
	for k, l := range p[phase].laid {
		have, wanted := l.value(worth), p.wanted(l, others)
		most := min(len(wanted), l.hops()*len(others))
		if have >= most {
			continue
		}
		candidate, value := l, 0
		if l.Ordered {
			candidate.flip, value = l.roles(l.order, worth)
		} else if len(l.order) <= smallLoop {
			candidate, value = l.orders(worth, most)
		} else {
			candidate = l.chained(wanted, worth)
			value = candidate.value(worth)
		}
		if value > have {
			p[phase].laid[k] = candidate
			better = true
		}
	}
	p[phase].wire()
	return better
}

// roles returns the best roles of the ports for an order of the ranks, and what they are worth.
func (l laid) roles(order []int, worth func(a, b int) int) (flip []bool, best int) {
	n := len(order)
	best = -1
	came := make([][2]bool, n)
	for _, first := range []bool{false, true} {
		// value[f] is the best so far if the roles at the present place are f.
		const never = -1 << 30
		value := [2]int{never, never}
		value[bit(first)] = 0
		for i := 1; i < n; i++ {
			next := [2]int{never, never}
			for _, f := range []bool{false, true} {
				for _, g := range []bool{false, true} {
					v := value[bit(f)]
					if v >= 0 {
						v += worth(outward(order[i-1], f), outward(order[i], !g))
					}
					if v > next[bit(g)] {
						next[bit(g)], came[i][bit(g)] = v, f
					}
				}
			}
			value = next
		}
		for _, last := range []bool{false, true} {
			v := value[bit(last)]
			if v >= 0 && !l.Open {
				v += worth(outward(order[n-1], last), outward(order[0], !first))
			}
			if v <= best {
				continue
			}
			best = v
			flip = make([]bool, n)
			for i, f := n-1, last; i >= 0; i-- {
				flip[i] = f
				f = came[i][bit(f)]
			}
		}
	}
	return flip, best
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// orders returns the best of all orders; most is what none is worth more than.
func (l laid) orders(worth func(a, b int) int, most int) (best laid, value int) {
	best, value = l, -1
	order := slices.Clone(l.order)
	var permute func(k int)
	permute = func(k int) {
		if k < len(order) {
			for i := k; i < len(order) && value < most; i++ {
				order[k], order[i] = order[i], order[k]
				permute(k + 1)
				order[k], order[i] = order[i], order[k]
			}
			return
		}
		if len(order) > 2 && order[1] > order[len(order)-1] {
			return // the same the other way round
		}
		if flip, v := l.roles(order, worth); v > value {
			best.order, best.flip, value = slices.Clone(order), flip, v
		}
	}
	permute(1) // a ring begins anywhere
	return best, value
}

// wanted returns the circuits between ranks of a loop that others have, in order of its ranks; one that two of them
// have is there twice.
func (p plan) wanted(l laid, others []int) []Circuit {
	member := make(map[int]bool, len(l.order))
	for _, x := range l.order {
		member[x] = true
	}
	var all []Circuit
	for _, x := range l.order {
		for _, a := range []int{2 * x, 2*x + 1} {
			for _, o := range others {
				if b := int(p[o].peer[a]); b > a && member[b/2] {
					all = append(all, Circuit{a, b})
				}
			}
		}
	}
	return all
}

// value returns what the circuits of the loop are worth.
func (l laid) value(worth func(a, b int) int) (sum int) {
	for i := range l.hops() {
		sum += worth(l.next(i), l.prev((i+1)%len(l.order)))
	}
	return sum
}

// chained returns the loop put together from circuits of wanted, the most useful first.
func (l laid) chained(wanted []Circuit, worth func(a, b int) int) laid {
	place := make(map[int]int, len(l.order))
	for i, x := range l.order {
		place[x] = i
	}
	slices.SortStableFunc(wanted, func(c, d Circuit) int { return worth(d.A, d.B) - worth(c.A, c.B) })
	peer := make(map[int]int, 2*len(l.order))
	root := make([]int, len(l.order)) // of the piece that a place belongs to
	for i := range root {
		root[i] = i
	}
	find := func(i int) int {
		for ; root[i] != i; i = root[i] {
			root[i] = root[root[i]]
		}
		return i
	}
	for _, c := range wanted {
		_, busyA := peer[c.A]
		_, busyB := peer[c.B]
		from, to := find(place[c.A/2]), find(place[c.B/2])
		if !busyA && !busyB && from != to {
			peer[c.A], peer[c.B] = c.B, c.A
			root[from] = to
		}
	}
	// Walk the pieces one after the other, each from the end that comes first.
	out := l
	out.order, out.flip = nil, nil
	done := make([]bool, len(l.order))
	for i, x := range l.order {
		_, left := peer[2*x]
		_, right := peer[2*x+1]
		if done[i] || left && right {
			continue
		}
		for flip := left; ; {
			done[place[x]] = true
			out.order, out.flip = append(out.order, x), append(out.flip, flip)
			in, ok := peer[outward(x, flip)]
			if !ok {
				break
			}
			x, flip = in/2, in%2 == 1
		}
	}
	return out
}
