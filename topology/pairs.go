package topology

// pairs joins each NIC that is still free, in order, with the one at a distance from it, in
// blocks of twice the distance: 0-1, 2-3 at a distance of 1, and 0-2, 1-3 at 2.
func pairs(n int, args map[string]int) ([]int, error) {
	d := args["distance"]
	if d < 1 || n%(2*d) != 0 {
		return nil, badArgument("distance", d, "1 or more, of which the double divides %d, so that nobody is left over", n)
	}
	to := make([]int, n)
	for i := range to {
		if i%(2*d) < d {
			to[i] = i + d
		} else {
			to[i] = i - d
		}
	}
	return to, nil
}

// roundRobin is the circle method: the last NIC stays where it is, the others go around it
// by one place a round, and who stands opposite are a pair. If n is odd, nobody stands in
// the middle, and whoever would be opposite is left out.
func roundRobin(n int, args map[string]int) ([]int, error) {
	circle := n - 1 + n%2 // those that go around, and the number of rounds
	round := args["round"]
	if round < 1 || round > circle {
		return nil, badArgument("round", round, "1 to %d", circle)
	}
	to := make([]int, n)
	for i := range to {
		if i == circle {
			to[i] = round - 1
			continue
		}
		to[i] = around(2*(round-1)-i, circle)
		if to[i] == i && circle < n {
			to[i] = circle
		}
	}
	return to, nil
}
