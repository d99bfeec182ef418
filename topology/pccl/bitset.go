package pccl

import "math/bits"

// bitset is a set of small numbers.
type bitset []uint64

// newBitsets returns n empty sets of numbers below size, in one piece of memory.
func newBitsets(n, size int) []bitset {
	words := (size + 63) / 64
	all := make(bitset, n*words)
	sets := make([]bitset, n)
	for i := range sets {
		sets[i] = all[i*words : (i+1)*words : (i+1)*words]
	}
	return sets
}

func (b bitset) set(i int)      { b[i/64] |= 1 << (i % 64) }
func (b bitset) clear(i int)    { b[i/64] &^= 1 << (i % 64) }
func (b bitset) has(i int) bool { return b[i/64]>>(i%64)&1 != 0 }

func (b bitset) or(o bitset) {
	for i, w := range o {
		b[i] |= w
	}
}

func (b bitset) count() int {
	n := 0
	for _, w := range b {
		n += bits.OnesCount64(w)
	}
	return n
}

// countWithout returns how many numbers of b are not in o.
func (b bitset) countWithout(o bitset) int {
	n := 0
	for i, w := range b {
		n += bits.OnesCount64(w &^ o[i])
	}
	return n
}

// eachWithout calls f with each number of b that is not in o, in order. f may change both.
func (b bitset) eachWithout(o bitset, f func(i int)) {
	for i, w := range b {
		for w &^= o[i]; w != 0; w &= w - 1 {
			f(i*64 + bits.TrailingZeros64(w))
		}
	}
}

// meets reports whether both have a number in common.
func (b bitset) meets(o bitset) bool {
	for i, w := range b {
		if w&o[i] != 0 {
			return true
		}
	}
	return false
}
