package crosswiring

import (
	"fmt"
	"math/rand/v2"
)

// RandomFull returns a random demand in which every spine has as many links as ports, or none if there is but one pod:
// in each group S/2 random permutations of pods without fixed points, and their transposes (ours). The same seed gives the
// same. The error matches ErrFabric.
func RandomFull(f Fabric, seed uint64) (*Demand, error) {
	if err := f.Check(); err != nil {
		return nil, err
	}
	d := newDemand(f.Pods, f.Groups)
	if f.Pods == 1 {
		return d, nil
	}
	random := rand.New(rand.NewPCG(seed, 1))
	to := make([]int, f.Pods)
	for h := range f.Groups {
		c := d.group(h)
		for range f.Pairs() {
			derange(to, random)
			for i, j := range to {
				c[i*f.Pods+j]++
				c[j*f.Pods+i]++
			}
		}
	}
	return d, nil
}

// derange makes to a random permutation that leaves nothing where it is: it tries until one does, some e times.
func derange(to []int, random *rand.Rand) {
	for fixed := true; fixed; {
		for i := range to {
			to[i] = i
		}
		random.Shuffle(len(to), func(i, j int) { to[i], to[j] = to[j], to[i] })
		fixed = false
		for i, j := range to {
			fixed = fixed || i == j
		}
	}
}

// Swapped returns the demand with a fraction of the links of each group, from 0 to 1, between other pods: two links at
// a time exchange their ends, so that every spine has as many as before, and nothing is moved back. It moves fewer where
// there are no more to exchange, as with three pods. The same seed gives the same. The error matches ErrDemand.
func Swapped(d *Demand, fraction float64, seed uint64) (*Demand, error) {
	if !(fraction >= 0 && fraction <= 1) {
		return nil, fmt.Errorf("%w: a fraction of %v of the links moves: want 0 to 1", ErrDemand, fraction)
	}
	if err := d.check(MaxPorts); err != nil {
		return nil, err
	}
	o := newDemand(d.pods, d.groups)
	o.podLevel = d.podLevel
	copy(o.links, d.links)
	random := rand.New(rand.NewPCG(seed, 2))
	for h := range d.groups {
		s := swapper{pods: d.pods, old: d.group(h), now: o.group(h), random: random}
		s.move(fraction)
	}
	return o, nil
}

// swapper exchanges the ends of links of a group.
type swapper struct {
	pods     int
	old, now []int32
	random   *rand.Rand
}

// move moves that fraction of the links.
func (s *swapper) move(fraction float64) {
	var rest [][2]int // links that have not moved
	for i := range s.pods {
		for j := i + 1; j < s.pods; j++ {
			for range s.old[i*s.pods+j] {
				rest = append(rest, [2]int{i, j})
			}
		}
	}
	s.random.Shuffle(len(rest), func(i, j int) { rest[i], rest[j] = rest[j], rest[i] })
	for left := int(fraction*float64(len(rest)) + .5); left >= 2 && len(rest) >= 2; {
		last := len(rest) - 1
		a := rest[last]
		rest = rest[:last]
		for k := last - 1; k >= 0; k-- {
			if s.swap(a, rest[k]) {
				rest[k] = rest[last-1]
				rest = rest[:last-1]
				left -= 2
				break
			}
		}
	}
}

// swap exchanges the second ends of two links, or if that cannot be one's second with the other's first, in random order.
func (s *swapper) swap(a, b [2]int) bool {
	if s.random.IntN(2) == 1 {
		b[0], b[1] = b[1], b[0]
	}
	if s.exchange(a, b) {
		return true
	}
	return s.exchange(a, [2]int{b[1], b[0]})
}

// exchange makes (a0,b1) and (b0,a1) of (a0,a1) and (b0,b1), if that makes links between two pods, adds none of which
// some were taken away, and takes none away of which some were added.
func (s *swapper) exchange(a, b [2]int) bool {
	x, y := [2]int{a[0], b[1]}, [2]int{b[0], a[1]}
	if x[0] == x[1] || y[0] == y[1] || s.change(a) > 0 || s.change(b) > 0 || s.change(x) < 0 || s.change(y) < 0 {
		return false
	}
	if sameEnds(a, x) || sameEnds(a, y) || sameEnds(b, x) || sameEnds(b, y) {
		return false
	}
	s.add(a, -1)
	s.add(b, -1)
	s.add(x, 1)
	s.add(y, 1)
	return true
}

// sameEnds tells whether two links are between the same pods.
func sameEnds(a, b [2]int) bool { return a == b || a[0] == b[1] && a[1] == b[0] }

// change returns how many links two pods have more than before.
func (s *swapper) change(l [2]int) int32 {
	return s.now[l[0]*s.pods+l[1]] - s.old[l[0]*s.pods+l[1]]
}

func (s *swapper) add(l [2]int, n int32) {
	s.now[l[0]*s.pods+l[1]] += n
	s.now[l[1]*s.pods+l[0]] += n
}

// JobShaped returns the demand of random jobs of 3 or 5 pods that are each a ring with all ports, half to the pod before and
// half to the one after: the shape on which Uniform wiring loses most. A job has its pods in all groups; one or two
// pods, or four, may be left without one. The same seed gives the same. The error matches ErrFabric.
func JobShaped(f Fabric, seed uint64) (*Demand, error) {
	if err := f.Check(); err != nil {
		return nil, err
	}
	d := newDemand(f.Pods, f.Groups)
	random := rand.New(rand.NewPCG(seed, 3))
	rest := random.Perm(f.Pods)
	for len(rest) >= 3 {
		size := 3 + 2*random.IntN(2)
		if size > len(rest) {
			size = 3
		}
		ring := rest[:size]
		rest = rest[size:]
		for h := range f.Groups {
			c := d.group(h)
			for k, i := range ring {
				j := ring[(k+1)%size]
				c[i*f.Pods+j] += int32(f.Pairs())
				c[j*f.Pods+i] += int32(f.Pairs())
			}
		}
	}
	return d, nil
}
