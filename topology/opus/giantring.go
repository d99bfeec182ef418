package opus

// RingOrder returns the ranks in the order of the giant ring: reflected mixed radix, so that from each to the
// next only one coordinate changes, by one. Where an axis of even size exists, the first of them is outermost,
// and then the way from the last rank to the first changes that one only, too. The job must be possible.
func RingOrder(j Job) []int {
	type wheel struct{ size, stride int }
	wheels := make([]wheel, 0, len(j.Axes)+1)
	even := false
	for axis := range len(j.Axes) + 1 {
		w := wheel{j.size(axis), j.stride(axis)}
		if !even && w.size%2 == 0 {
			even = true
			wheels = append([]wheel{w}, wheels...)
			continue
		}
		wheels = append(wheels, w)
	}
	order := make([]int, j.Ranks())
	for i := range order {
		left, before := len(order), 0 // how many ranks share the coordinates so far, and which of them this is
		for _, w := range wheels {
			left /= w.size
			value := i / left
			turn := value - before*w.size
			if before%2 == 1 {
				turn = w.size - 1 - turn
			}
			order[i] += turn * w.stride
			before = value
		}
	}
	return order
}

// GiantRing returns the one ring through all ranks, on which any of them reaches any other while others forward: what
// a rail falls back to, and what it starts with. In the order of [RingOrder], the right port of each rank leads
// to the left one of the next. A hop along an axis of two is thus a circuit of that axis' configuration as well, and stays
// where it is when the rail falls back. One rank alone has no circuits.
func GiantRing(j Job) (Matching, error) {
	if err := j.Check(); err != nil {
		return Matching{}, err
	}
	m := dark(j)
	order := RingOrder(j)
	if len(order) < 2 {
		return m, nil
	}
	for i, x := range order {
		next := order[(i+1)%len(order)]
		for k := range j.planes() {
			if err := m.join(j.right(x, k), j.left(next, k)); err != nil {
				return Matching{}, err
			}
		}
	}
	return m, nil
}
