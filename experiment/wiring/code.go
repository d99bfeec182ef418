package wiring

import (
	"math/bits"
	"slices"
)

// Word is the bits of a port: the steps that light it, from 0, in ascending order.
type Word []int

// Has reports whether step s lights the port.
func (w Word) Has(s int) bool {
	_, ok := slices.BinarySearch(w, s)
	return ok
}

// Group is ports that are lit with the same light: those of one switch.
type Group struct {
	Ports   int
	Sources int // how many of them can be lit at once, 1 or more
}

// Steps returns the least number of bits with which so many ports get different words of
// the same weight, half of them ones: 7 for 32 ports, 8 for 64. It is 0 for no ports, and
// never 1, since a word needs a one and a zero.
func Steps(ports int) int {
	if ports < 1 {
		return 0
	}
	for n := 2; ; n++ {
		if binomial(n, n/2) >= ports {
			return n
		}
	}
}

// binomial returns n over k, or a number that is large enough for all ports there are.
func binomial(n, k int) int {
	const enough = 1 << 31
	c := 1
	for i := range k {
		if c = c * (n - i) / (i + 1); c > enough {
			return enough
		}
	}
	return c
}

// Code returns a word for each port of the groups in order, all of the same weight, of as few
// steps as there can be: [Steps] with half the bits ones if there is light enough for that.
// Where there is not, words with fewer ones and more steps take fewer maps, since no step
// has to be divided. The steps light about as many ports of each group.
func Code(groups []Group) (words []Word, steps, weight int) {
	ports := 0
	for _, g := range groups {
		ports += g.Ports
	}
	if ports == 0 {
		return nil, 0, 0
	}
	most := Steps(ports) / 2
	// A weight of 1 would make two ports that lose their light in one step look dead.
	for w := min(2, most); w <= most; w++ {
		n := w + 1
		for binomial(n, w) < ports {
			n++
		}
		for _, g := range groups {
			n = max(n, (g.Ports*w+g.Sources-1)/g.Sources)
		}
		if steps == 0 || n < steps {
			steps, weight = n, w
		}
	}
	free := combinations(steps, weight)
	if weight == 2 {
		// Pairs of the same distance, taken first, load all steps alike.
		slices.SortStableFunc(free, func(a, b Word) int { return distance(a, steps) - distance(b, steps) })
	}
	for _, g := range groups {
		// The first words of the list share their ones. So each time that of the steps which
		// light the fewest ports of the group up to now is taken.
		load := make([]int, steps)
		for range g.Ports {
			best, least := 0, -1
			for i, w := range free {
				sum := 0
				for _, s := range w {
					sum += load[s] * load[s]
				}
				if least < 0 || sum < least {
					best, least = i, sum
				}
			}
			w := free[best]
			free = slices.Delete(free, best, best+1)
			for _, s := range w {
				load[s]++
			}
			words = append(words, w)
		}
	}
	return words, steps, weight
}

// distance is that of the two steps of a word, round the end.
func distance(w Word, steps int) int { return min(w[1]-w[0], steps-w[1]+w[0]) }

// combinations returns all words of n bits with k ones.
func combinations(n, k int) []Word {
	var all []Word
	w := make(Word, k)
	for i := range w {
		w[i] = i
	}
	for {
		all = append(all, slices.Clone(w))
		i := k - 1
		for i >= 0 && w[i] == n-k+i {
			i--
		}
		if i < 0 {
			return all
		}
		w[i]++
		for j := i + 1; j < k; j++ {
			w[j] = w[j-1] + 1
		}
	}
}

// Information returns how many bits tell so many ports apart at least: the binary logarithm,
// rounded up.
func Information(ports int) int { return bits.Len(uint(max(ports, 1) - 1)) }
