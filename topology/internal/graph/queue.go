package graph

// Queue is a priority queue of nodes for Dijkstra's algorithm: the lowest key first, and of equal keys
// the lowest node, so that what is found does not depend on the order of insertion. The zero Queue is empty.
type Queue struct{ items []item }

type item struct {
	key  float64
	node int
}

func (a item) before(b item) bool { return a.key < b.key || a.key == b.key && a.node < b.node }

// Len returns how many items are in q.
func (q *Queue) Len() int { return len(q.items) }

// Clear empties q and keeps its memory.
func (q *Queue) Clear() { q.items = q.items[:0] }

// Push puts a node into q. A node may be in it more than once.
func (q *Queue) Push(node int, key float64) {
	q.items = append(q.items, item{key, node})
	i := len(q.items) - 1
	for x := q.items[i]; i > 0; {
		up := (i - 1) / 2
		if !x.before(q.items[up]) {
			break
		}
		q.items[i], q.items[up] = q.items[up], x
		i = up
	}
}

// Pop takes the first item out of q, which must not be empty.
func (q *Queue) Pop() (node int, key float64) {
	first := q.items[0]
	last := len(q.items) - 1
	x := q.items[last]
	q.items = q.items[:last]
	for i := 0; ; {
		down := 2*i + 1
		if down >= last {
			if last > 0 {
				q.items[i] = x
			}
			return first.node, first.key
		}
		if down+1 < last && q.items[down+1].before(q.items[down]) {
			down++
		}
		if !q.items[down].before(x) {
			q.items[i] = x
			return first.node, first.key
		}
		q.items[i] = q.items[down]
		i = down
	}
}
