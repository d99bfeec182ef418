package fibre

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/ocslab/ocslab/internal/natural"
	"github.com/ocslab/ocslab/topology/internal/graph"
)

// maxLength is the highest length that a bound is made of: enough to tell weights apart, and no sum overflows.
const maxLength = 1e5

// Bound is a number of fibres that every routing needs on some link, and what proves it.
type Bound struct {
	Fibres int // ceil((Distance + Existing) / Length)
	// Lengths are of the links, or of their directions if Directed, 0 or more. Nil if no link needs a fibre.
	Lengths  []int
	Distance int    // sum over all requests of the distance from source to destination
	Existing int    // sum of lengths times existing fibres
	Length   int    // sum of the lengths
	Name     string // what the lengths are: "the cut around rows 0 to 3, columns 2 to 7"
}

// String says what proves the bound: "the cut around rows 0 to 3, columns 0 to 7: 262 crossings of 8 links".
func (b Bound) String() string {
	if b.Lengths == nil {
		return "nothing"
	}
	text := fmt.Sprintf("%s: the shortest ways of all circuits come to %d, the links to %d", b.Name, b.Distance, b.Length)
	if slices.Max(b.Lengths) == 1 {
		text = fmt.Sprintf("%s: %s of %s", b.Name, natural.Count(b.Distance, "crossing"), natural.Count(b.Length, "link"))
	}
	if b.Existing > 0 {
		text += fmt.Sprintf(", and existing fibres to %d", b.Existing)
	}
	return text
}

// raise makes what lengths prove the bound of r if that is more.
func (r *Result) raise(lengths []int, name string) {
	if b := r.prove(lengths, name); b.Fibres > r.Bound.Fibres {
		r.Bound = b
	}
}

// firstBound returns the best bound that is known without a search.
func (r *Result) firstBound() Bound {
	try := &Result{Graph: r.Graph, Requests: r.Requests, Options: r.Options}
	if lengths, name := r.rectangle(); lengths != nil {
		try.raise(lengths, name)
	}
	for s := range r.Graph.servers {
		if r.Graph.rows > 0 {
			break // a server is a rectangle
		}
		for _, out := range []bool{true, false} {
			try.raise(r.boundary(func(v int) bool { return v == s }, out), fmt.Sprintf("the cut around server %d", s))
			if !r.Options.Directed {
				break
			}
		}
	}
	all := make([]int, r.Options.places(r.Graph))
	for k := range all {
		all[k] = 1
	}
	try.raise(all, "the average over all links")
	if r.Options.Existing != nil {
		clear(all)
		k := 0
		for i, n := range r.Options.Existing {
			if n > r.Options.Existing[k] {
				k = i
			}
		}
		if len(all) > 0 {
			all[k] = 1
			try.raise(all, "a link that was this full before")
		}
	}
	return try.Bound
}

// boundary returns lengths that are 1 where links leave a set of servers, if Directed only outwards or
// only inwards.
func (r *Result) boundary(inside func(server int) bool, out bool) []int {
	lengths := make([]int, r.Options.places(r.Graph))
	for k, l := range r.Graph.links {
		a, b := inside(l[0]), inside(l[1])
		switch {
		case a == b:
		case !r.Options.Directed:
			lengths[k] = 1
		case a == out:
			lengths[2*k] = 1
		default:
			lengths[2*k+1] = 1
		}
	}
	return lengths
}

// prove returns the bound that lengths prove; it is 0 if they are all 0. It keeps a copy of them.
func (r *Result) prove(lengths []int, name string) Bound {
	b := Bound{Name: name}
	for k, n := range lengths {
		b.Length += n
		if r.Options.Existing != nil {
			b.Existing += n * r.Options.Existing[k]
		}
	}
	if b.Length == 0 {
		return Bound{}
	}
	b.Lengths = slices.Clone(lengths)
	to := make([][]int, r.Graph.servers)
	for _, q := range r.Requests {
		to[q.Src] = append(to[q.Src], q.Dst)
	}
	for src, all := range to {
		if len(all) == 0 {
			continue
		}
		distance := r.distances(src, lengths)
		for _, dst := range all {
			b.Distance += distance[dst]
		}
	}
	b.Fibres = (b.Distance + b.Existing + b.Length - 1) / b.Length
	return b
}

// distances returns how far every server is from one, by lengths (Dijkstra). Keys are exact: they are far below 2^53.
func (r *Result) distances(src int, lengths []int) []int {
	d := make([]int, r.Graph.servers)
	for s := range d {
		d[s] = math.MaxInt
	}
	d[src] = 0
	var q graph.Queue
	for q.Push(src, 0); q.Len() > 0; {
		v, key := q.Pop()
		if int(key) > d[v] {
			continue
		}
		for _, h := range r.Graph.at[v] {
			if to := d[v] + lengths[r.Options.of(h.arc(v))]; to < d[h.to] {
				d[h.to] = to
				q.Push(h.to, float64(to))
			}
		}
	}
	return d
}

// demand is n circuits from one place of a grid to another. Existing fibres are demands between neighbours: they
// cross just the cuts that their link crosses.
type demand struct {
	src, dst [2]int // row and column
	n        int
}

// demands returns those of a grid, with rows and columns exchanged if asked, in falling order of their lower column.
func (r *Result) demands(exchange bool) []demand {
	at := func(server int) [2]int {
		p := [2]int{server / r.Graph.columns, server % r.Graph.columns}
		if exchange {
			p[0], p[1] = p[1], p[0]
		}
		return p
	}
	var all []demand
	for _, q := range r.Requests {
		all = append(all, demand{at(q.Src), at(q.Dst), 1})
	}
	for k, n := range r.Options.Existing {
		link, back := k, false
		if r.Options.Directed {
			link, back = k/2, k%2 == 1
		}
		a, b := at(r.Graph.links[link][0]), at(r.Graph.links[link][1])
		if back {
			a, b = b, a
		}
		if n > 0 {
			all = append(all, demand{a, b, n})
		}
	}
	low := func(d demand) int { return min(d.src[1], d.dst[1]) }
	slices.SortStableFunc(all, func(a, b demand) int { return cmp.Compare(low(b), low(a)) })
	return all
}

// rectangle returns the lengths of the cut around the rectangle of servers that proves most; nil if the
// servers are no grid, or it has no links. All of them are tried, each in constant time beside one look at the demands for each
// pair of rows.
func (r *Result) rectangle() (lengths []int, name string) {
	rows, columns := r.Graph.rows, r.Graph.columns
	if rows*columns < 2 {
		return nil, ""
	}
	exchange := rows > columns
	if exchange {
		rows, columns = columns, rows
	}
	scan := newRectangles(rows, columns, r.Options.Directed, r.demands(exchange))
	for a := range rows {
		for b := a; b < rows; b++ {
			scan.rows(a, b)
		}
	}
	first, last := scan.first, scan.last
	if exchange {
		first[0], first[1], last[0], last[1] = first[1], first[0], last[1], last[0]
	}
	inside := func(s int) bool {
		y, x := s/r.Graph.columns, s%r.Graph.columns
		return y >= first[0] && y <= last[0] && x >= first[1] && x <= last[1]
	}
	return r.boundary(inside, scan.out), fmt.Sprintf("the cut around %s, %s", span("row", first[0], last[0]), span("column", first[1], last[1]))
}

// span returns "row 3" or "rows 3 to 5".
func span(what string, first, last int) string {
	if first == last {
		return fmt.Sprintf("%s %d", what, first)
	}
	return fmt.Sprintf("%ss %d to %d", what, first, last)
}

// rectangles is the scan for the best cut around one.
type rectangles struct {
	height, width int
	directed      bool
	demands       []demand
	sent, got     [][]int // how many circuits begin and end above and to the left of a place

	within      []int // scratch, by column, of the circuits within the rows that end there
	best        int
	first, last [2]int // the corners of the best
	out         bool   // whether it is the links outwards that are full
}

func newRectangles(height, width int, directed bool, demands []demand) *rectangles {
	s := &rectangles{height: height, width: width, directed: directed, demands: demands, within: make([]int, width)}
	for range height + 1 {
		s.sent, s.got = append(s.sent, make([]int, width+1)), append(s.got, make([]int, width+1))
	}
	for _, d := range demands {
		s.sent[d.src[0]+1][d.src[1]+1] += d.n
		s.got[d.dst[0]+1][d.dst[1]+1] += d.n
	}
	for _, sum := range [][][]int{s.sent, s.got} {
		for y := 1; y <= height; y++ {
			for x := 1; x <= width; x++ {
				sum[y][x] += sum[y-1][x] + sum[y][x-1] - sum[y-1][x-1]
			}
		}
	}
	return s
}

// rows tries all rectangles of rows a to b.
func (s *rectangles) rows(a, b int) {
	clear(s.within)
	next := 0
	for c := s.width - 1; c >= 0; c-- {
		for ; next < len(s.demands) && min(s.demands[next].src[1], s.demands[next].dst[1]) >= c; next++ {
			d := s.demands[next]
			if min(d.src[0], d.dst[0]) >= a && max(d.src[0], d.dst[0]) <= b {
				s.within[max(d.src[1], d.dst[1])] += d.n
			}
		}
		both := 0 // circuits with both ends in the rectangle
		for d := c; d < s.width; d++ {
			both += s.within[d]
			s.try(a, b, c, d, both)
		}
	}
}

// try looks at the rectangle of rows a to b and columns c to d.
func (s *rectangles) try(a, b, c, d, both int) {
	links := 0
	for _, side := range [4]struct {
		is     bool
		length int
	}{{a > 0, d - c + 1}, {b < s.height-1, d - c + 1}, {c > 0, b - a + 1}, {d < s.width-1, b - a + 1}} {
		if side.is {
			links += side.length
		}
	}
	if links == 0 {
		return
	}
	in := func(sum [][]int) int { return sum[b+1][d+1] - sum[a][d+1] - sum[b+1][c] + sum[a][c] - both }
	sent, got := in(s.sent), in(s.got)
	crossing := sent + got
	if s.directed {
		crossing = max(sent, got)
	}
	if n := (crossing + links - 1) / links; n > s.best {
		s.best, s.first, s.last, s.out = n, [2]int{a, c}, [2]int{b, d}, sent >= got
	}
}
