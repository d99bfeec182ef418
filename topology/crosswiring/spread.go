package crosswiring

// SplitOverGroups returns a demand for all groups of a fabric from one that is for one group, pod-level: its links between
// two pods are spread over the groups as evenly as can be, and so are those of every pod: what leads either way is in
// each group the whole number below or above its G-th part (Theorem 3.2; that the parts are symmetric, since links are given
// directions before, is ours). The error matches ErrFabric or ErrDemand.
func SplitOverGroups(f Fabric, d *Demand) (*Demand, error) {
	if err := f.Check(); err != nil {
		return nil, err
	}
	if d.pods != f.Pods || d.groups != 1 {
		return nil, d.misfit(Fabric{Pods: f.Pods, Groups: 1})
	}
	if err := d.check(f.PodPorts()); err != nil {
		return nil, err
	}
	n := f.Pods
	s := newSplitter(n)
	a := make([]int32, n*n)
	for _, arc := range s.orient(d.links) {
		a[int(arc[0])*n+int(arc[1])]++
	}
	o := newDemand(n, f.Groups)
	h := 0
	s.spread(a, f.Groups, func(part []int32) {
		c := o.group(h)
		h++
		for i := range n {
			for j := range n {
				c[i*n+j] = part[i*n+j] + part[j*n+i]
			}
		}
	})
	return o, nil
}

// spread splits a matrix into parts, of which every entry, row sum and column sum is the whole number below or above its
// fair part of the matrix's: it halves where the number of parts is even, and takes one part away where it is odd. It calls each
// for every part, and may change the matrix.
func (s *splitter) spread(a []int32, parts int, each func(part []int32)) {
	for ; parts > 1 && parts%2 == 1; parts-- {
		each(s.take(a, parts))
	}
	if parts == 1 {
		each(a)
		return
	}
	s.spread(s.half(a), parts/2, each)
	s.spread(a, parts/2, each)
}

// half takes half of a matrix away and returns it: of what is left over when entries are halved, it halves the graph.
func (s *splitter) half(a []int32) []int32 {
	b := make([]int32, len(a))
	s.arcs = s.arcs[:0]
	for k, x := range a {
		b[k] = x / 2
		if x%2 == 1 {
			s.arcs = append(s.arcs, [2]int32{int32(k / s.pods), int32(k % s.pods)})
		}
	}
	for _, arc := range s.arcs[:s.halve(s.arcs)] {
		b[int(arc[0])*s.pods+int(arc[1])]++
	}
	for k, x := range b {
		a[k] -= x
	}
	return b
}

// take takes one of so many parts of a matrix away and returns it: the whole number below of every entry, and one more
// of some, so that no row and column has fewer or more than its bounds.
func (s *splitter) take(a []int32, parts int) []int32 {
	b := make([]int32, len(a))
	t := taking{pods: s.pods, side: [2]bounds{newBounds(s.pods), newBounds(s.pods)}, from: make([]int32, 2*s.pods)}
	t.adjacent = make([][]int32, 2*s.pods)
	t.taken = make([]bool, len(a))
	for i := range s.pods {
		for j := range s.pods {
			k := i*s.pods + j
			b[k] = a[k] / int32(parts)
			if rest := int(a[k]) % parts; rest > 0 {
				t.side[0].low[i] += rest
				t.side[1].low[j] += rest
				t.adjacent[i] = append(t.adjacent[i], int32(j))
				t.adjacent[s.pods+j] = append(t.adjacent[s.pods+j], int32(i))
			}
		}
	}
	for side := range t.side {
		t.side[side].divide(parts)
	}
	t.run()
	for k, more := range t.taken {
		if more {
			b[k]++
		}
		a[k] -= b[k]
	}
	return b
}

// bounds say how many entries of each row, or column, are taken: from low to high, and now has.
type bounds struct{ low, high, has []int }

func newBounds(n int) bounds { return bounds{make([]int, n), make([]int, n), make([]int, n)} }

// divide makes bounds of sums in low.
func (b *bounds) divide(parts int) {
	for i, sum := range b.low {
		b.low[i], b.high[i] = sum/parts, (sum+parts-1)/parts
	}
}

// taking chooses entries of a matrix of zeros and ones within bounds of rows and columns. There is a choice, since taking
// an equal part of every entry is one but for being fractional.
type taking struct {
	pods     int
	side     [2]bounds // rows and columns
	adjacent [][]int32 // columns of a row, then rows of a column
	taken    []bool
	from     []int32 // by row and column, the one before it on the way, or -1; unseen is -2
	queue    []int32
}

const unseen = -2

// run takes entries: first any that rows and columns still lack, and then for each row and column that lacks some by way of
// others, in turns taken and not, which changes only what its ends have. What others have stays within bounds.
func (t *taking) run() {
	rows, columns := &t.side[0], &t.side[1]
	for i := range t.pods {
		for _, j := range t.adjacent[i] {
			if rows.has[i] < rows.low[i] && columns.has[j] < columns.low[j] {
				t.taken[i*t.pods+int(j)] = true
				rows.has[i]++
				columns.has[j]++
			}
		}
	}
	for v := range 2 * t.pods {
		b := &t.side[v/t.pods]
		for b.has[v%t.pods] < b.low[v%t.pods] && t.augment(v) {
		}
	}
}

// augment gives a row or column one more. It searches by way of entries that are not taken from its own side, and of
// taken ones back, for one of the other side that may have more or one of its own that may have fewer.
func (t *taking) augment(v int) bool {
	for i := range t.from {
		t.from[i] = unseen
	}
	own := v / t.pods
	t.from[v] = -1
	t.queue = append(t.queue[:0], int32(v))
	for k := 0; k < len(t.queue); k++ {
		u := int(t.queue[k])
		b, side, i := &t.side[u/t.pods], u/t.pods, u%t.pods
		if side != own && b.has[i] < b.high[i] || side == own && b.has[i] > b.low[i] {
			t.turn(u, v)
			return true
		}
		for _, w := range t.adjacent[u] {
			next := int(w) + (1-side)*t.pods
			if t.from[next] == unseen && t.taken[t.entry(u, next)] == (side != own) {
				t.from[next] = int32(u)
				t.queue = append(t.queue, int32(next))
			}
		}
	}
	return false
}

// entry returns the entry of a row and a column, in any order.
func (t *taking) entry(u, w int) int {
	if u > w {
		u, w = w, u
	}
	return u*t.pods + w - t.pods
}

// turn takes what is not taken, and the other way round, on the way from one that was reached back to v.
func (t *taking) turn(u, v int) {
	end := &t.side[u/t.pods].has[u%t.pods]
	*end--
	if u/t.pods != v/t.pods {
		*end += 2
	}
	t.side[v/t.pods].has[v%t.pods]++
	for t.from[u] >= 0 {
		k := t.entry(u, int(t.from[u]))
		t.taken[k] = !t.taken[k]
		u = int(t.from[u])
	}
}
