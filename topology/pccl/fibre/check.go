package fibre

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// ErrRouting is matched by what [Result.Check] and [Patch.Check] find.
var ErrRouting = errors.New("the routing is not right")

func wrong(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrRouting, fmt.Sprintf(format, args...))
}

// Check returns what is wrong with a result: a path that does not lead where it should, goes between servers that
// are no neighbours, or meets a server twice; a number of fibres that is not that of the fullest link; a bound that its
// lengths do not prove. It shares no code with what made the result. The error matches ErrRouting.
func (r *Result) Check() error {
	if len(r.Paths) != len(r.Requests) {
		return wrong("%d paths for %d circuits", len(r.Paths), len(r.Requests))
	}
	fibres := map[[2]int]int{} // by pair of servers: the lower first unless Directed
	for k, l := range r.Graph.links {
		if r.Options.Directed {
			fibres[l], fibres[[2]int{l[1], l[0]}] = 0, 0
		} else {
			fibres[l] = 0
		}
		if r.Options.Existing == nil {
			continue
		}
		if r.Options.Directed {
			fibres[l], fibres[[2]int{l[1], l[0]}] = r.Options.Existing[2*k], r.Options.Existing[2*k+1]
		} else {
			fibres[l] = r.Options.Existing[k]
		}
	}
	for i, path := range r.Paths {
		if err := r.checkPath(i, path, fibres); err != nil {
			return err
		}
	}
	z := 0
	for _, n := range fibres {
		z = max(z, n)
	}
	if z != r.Fibres {
		return wrong("the fullest link needs %d fibres and not %d", z, r.Fibres)
	}
	if r.Bound.Fibres > z {
		return wrong("a bound of %d, and %d fibres suffice", r.Bound.Fibres, z)
	}
	return r.checkBound()
}

// checkPath follows a path and counts it.
func (r *Result) checkPath(i int, path []int, fibres map[[2]int]int) error {
	q := r.Requests[i]
	if len(path) == 0 || path[0] != q.Src || path[len(path)-1] != q.Dst {
		return wrong("circuit %d is from server %d to %d, and its path is %v", i, q.Src, q.Dst, path)
	}
	for k := 1; k < len(path); k++ {
		pair := [2]int{path[k-1], path[k]}
		if !r.Options.Directed {
			slices.Sort(pair[:])
		}
		if _, neighbours := fibres[pair]; !neighbours {
			return wrong("circuit %d goes from server %d to %d, which are no neighbours", i, path[k-1], path[k])
		}
		if slices.Contains(path[:k], path[k]) {
			return wrong("circuit %d meets server %d twice", i, path[k])
		}
		fibres[pair]++
	}
	return nil
}

// checkBound adds up what the lengths prove, with distances by Bellman's equations.
func (r *Result) checkBound() error {
	b := r.Bound
	if b.Lengths == nil {
		if b.Fibres != 0 {
			return wrong("nothing proves the bound of %d", b.Fibres)
		}
		return nil
	}
	want := len(r.Graph.links)
	if r.Options.Directed {
		want *= 2
	}
	if len(b.Lengths) != want {
		return wrong("the bound has %d lengths, want %d", len(b.Lengths), want)
	}
	total, length := 0, 0
	for k, n := range b.Lengths {
		if n < 0 || n > maxLength {
			return wrong("length %d of the bound is %d", k, n)
		}
		length += n
		if r.Options.Existing != nil {
			total += n * r.Options.Existing[k]
		}
	}
	from := map[int][]int{}
	for _, q := range r.Requests {
		from[q.Dst] = append(from[q.Dst], q.Src)
	}
	for dst, all := range from {
		distance := r.toward(dst)
		for _, src := range all {
			total += distance[src]
		}
	}
	if length == 0 || (b.Fibres-1)*length >= total || b.Fibres*length < total {
		return wrong("the lengths of the bound come to %d and circuits over them to %d, which does not prove %d", length, total, b.Fibres)
	}
	return nil
}

// toward returns how far every server is from dst by the lengths of the bound: a server whose distance has
// become less is looked at again, until none has.
func (r *Result) toward(dst int) []int {
	d := make([]int, r.Graph.servers)
	for s := range d {
		d[s] = math.MaxInt / 2
	}
	d[dst] = 0
	waits := make([]bool, r.Graph.servers)
	for queue := []int{dst}; len(queue) > 0; {
		v := queue[0]
		queue, waits[v] = queue[1:], false
		for _, h := range r.Graph.at[v] {
			k := h.link
			if r.Options.Directed { // the direction from h.to to v
				k = 2 * h.link
				if h.to > v {
					k++
				}
			}
			if n := d[v] + r.Bound.Lengths[k]; n < d[h.to] {
				d[h.to] = n
				if !waits[h.to] {
					queue, waits[h.to] = append(queue, h.to), true
				}
			}
		}
	}
	return d
}
