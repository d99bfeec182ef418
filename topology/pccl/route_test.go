package pccl

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// paths returns all shortest paths, in order of the numbers of their GPUs, by trying everything.
func paths(t *Topology, a, b int) [][]int {
	for length := range t.gpus {
		var all [][]int
		var walk func(path []int)
		walk = func(path []int) {
			at := path[len(path)-1]
			if len(path) == length+1 {
				if at == b {
					all = append(all, slices.Clone(path))
				}
				return
			}
			for _, next := range t.Out(at) {
				walk(append(path, next))
			}
		}
		walk([]int{a})
		if len(all) > 0 {
			return all
		}
	}
	return nil
}

// slowLoad routes a round by the definition of ties.
func slowLoad(t *Topology, transfers []Transfer, ties Ties) load {
	loads := map[Transfer]int32{}
	var l load
	for _, x := range transfers {
		all := paths(t, x.Src, x.Dst)
		if all == nil {
			return load{dilation: noPath}
		}
		weight := func(path []int) (most, sum int32) {
			for i := 1; i < len(path); i++ {
				on := loads[Transfer{path[i-1], path[i]}]
				most, sum = max(most, on), sum+on
			}
			return most, sum
		}
		best := all[0] // which lex takes
		for _, path := range all[1:] {
			most, sum := weight(best)
			if m, s := weight(path); ties == Greedy && (m < most || m == most && s < sum) {
				best = path
			}
		}
		l.dilation = max(l.dilation, int32(len(best)-1))
		for i := 1; i < len(best); i++ {
			e := Transfer{best[i-1], best[i]}
			loads[e]++
			l.congestion = max(l.congestion, loads[e])
		}
	}
	return l
}

// The router's loads are those of trying all paths, on topologies of all kinds and many rounds at once.
func TestRoute(t *testing.T) {
	var shared router // what it has in memory from before must not matter
	instances(t, 200, func(t *testing.T, draw *rand.Rand) {
		gpus := 2 + draw.IntN(7)
		var circuits []Transfer
		switch draw.IntN(5) {
		case 0: // one each way
			to := draw.Perm(gpus)
			for a, b := range to {
				if a != b && draw.IntN(4) > 0 {
					circuits = append(circuits, Transfer{a, b})
				}
			}
		case 1: // each to the one so many further, around all
			by := 1 + draw.IntN(gpus-1)
			for a := range gpus {
				circuits = append(circuits, Transfer{a, (a + by) % gpus})
			}
		case 2: // duplex rings and lines, in any order
			row, first := draw.Perm(gpus), 0
			for i := range row {
				next := i + 1
				if cut := draw.IntN(6) == 0; cut || next == gpus {
					next, first = first, i+1
					if i-next < 2 || draw.IntN(3) == 0 {
						continue // no ring
					}
				}
				a, b := row[i], row[next]
				circuits = append(circuits, Transfer{a, b}, Transfer{b, a})
			}
		case 3: // well connected, so that there are many shortest paths
			for a := range gpus {
				for b := range gpus {
					if a != b && draw.IntN(2) == 0 {
						circuits = append(circuits, Transfer{a, b})
					}
				}
			}
		default:
			for a := range gpus {
				b := (a + 1) % gpus
				circuits = append(circuits, Transfer{a, b}, Transfer{b, a})
				if c := draw.IntN(gpus); c != a && draw.IntN(2) == 0 {
					circuits = append(circuits, Transfer{a, c})
				}
			}
		}
		x, err := NewTopology("drawn", gpus, circuits)
		if err != nil {
			t.Fatal(err)
		}
		rounds := make([]set, 1+draw.IntN(batch+8))
		for i := range rounds {
			var transfers []Transfer
			if by := draw.IntN(2 * gpus); by > 0 && by < gpus { // around all
				for a := range gpus {
					transfers = append(transfers, Transfer{a, (a + by) % gpus})
				}
				rounds[i] = newSet(gpus, transfers)
				continue
			}
			for a := range gpus {
				for b := range gpus {
					if a != b && draw.IntN(3) == 0 {
						transfers = append(transfers, Transfer{a, b})
					}
				}
			}
			rounds[i] = newSet(gpus, transfers)
		}
		n := newNetwork(x)
		for _, ties := range []Ties{Lex, Greedy} {
			got := make([]load, len(rounds))
			shared.route(n, rounds, ties, got)
			for i := range rounds {
				transfers := rounds[i].transfers
				want := slowLoad(x, transfers, ties)
				if got[i].dilation != want.dilation || want.dilation != noPath && got[i] != want {
					t.Fatalf("%s: %v on %v: %v, want %v", ties, transfers, x.out, got[i], want)
				}
			}
			if n.chain == nil {
				continue
			}
			// Chains have a way of their own; the general one has to agree.
			n.chain = nil
			general := make([]load, len(rounds))
			shared.route(n, rounds, ties, general)
			for i := range rounds {
				if general[i].dilation != got[i].dilation || got[i].dilation != noPath && general[i] != got[i] {
					t.Fatalf("%s: chains %v, else %v", ties, got[i], general[i])
				}
			}
			n.chain = newChains(n)
		}
	})
}
