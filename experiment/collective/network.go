package collective

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/ocslab/ocslab/topology/pccl"
)

// Bounds of the pieces that transfers are cut into. A piece waits at every hop until it is there as a whole, so
// small pieces make a path of d hops cost d times the time of a hop and not d times the transfer; each
// wakes a goroutine at each hop, so there cannot be too many.
const (
	mostPieces  = 192
	mostWakeups = 400_000 // of a round
	leastPiece  = 500 * time.Microsecond
)

// depth is how much time a link makes up for when the goroutine that serves it was woken late: the depth of its
// bucket.
const depth = 20 * time.Millisecond

// light says which links there are.
type light interface {
	// lit reports whether all circuits of a link have settled light, and since when.
	lit(link pccl.Transfer) (since time.Time, ok bool)
	// changed returns a channel that is closed when any answer of lit may be another than now.
	changed() <-chan struct{}
	// dark tells for people what is missing of a link.
	dark(link pccl.Transfer) string
}

// network is the links of a topology during one round.
type network struct {
	alpha    time.Duration
	perByte  float64 // nanoseconds
	patience time.Duration
	light    light

	links map[pccl.Transfer]*link
	fail  context.CancelCauseFunc
}

// link is a circuit, or several in parallel, from one GPU to another: a bucket whose tokens are time.
type link struct {
	pccl.Transfer
	net *network

	more chan struct{} // holds one: something was put in the queue
	mu   sync.Mutex    // guards what follows
	// queues are the pieces that wait, by transfer; those at the front are served in turn.
	queues map[*transfer][]piece
	turn   []*transfer

	free time.Time // when the last piece has left; of serve
}

// transfer is a transfer under way.
type transfer struct {
	path    []*link
	arrived chan piece // holds all its pieces
}

// piece is a part of a transfer, at is when it is in front of its next link.
type piece struct {
	of    *transfer
	hop   int
	bytes float64
	at    time.Time
}

// run lets the transfers of a round take their time, and returns when the last byte was there. paths are the GPUs
// that each passes, its own ends included.
func (n *network) run(ctx context.Context, paths [][]int, bytes float64) (time.Time, error) {
	ctx, n.fail = context.WithCancelCause(ctx)
	n.links = map[pccl.Transfer]*link{}
	var serving, under sync.WaitGroup
	begin := time.Now()
	size := n.size(paths, bytes)
	all := make([]*transfer, len(paths))
	for i, path := range paths {
		all[i] = n.transfer(path, int(bytes/size)+1, begin)
	}
	for _, l := range n.links {
		serving.Go(func() { l.serve(ctx) })
	}
	ends := make([]time.Time, len(all))
	for i, t := range all {
		under.Go(func() { ends[i] = t.send(ctx, bytes, size, begin) })
	}
	under.Wait()
	err := context.Cause(ctx)
	n.fail(nil)
	serving.Wait()
	if err != nil || len(ends) == 0 {
		return begin, err
	}
	return slices.MaxFunc(ends, time.Time.Compare), nil
}

// size is how large a piece is.
func (n *network) size(paths [][]int, bytes float64) float64 {
	hops := 1
	for _, p := range paths {
		hops += len(p) - 1
	}
	pieces := max(1, min(mostPieces, mostWakeups/hops))
	return max(bytes/float64(pieces), float64(leastPiece)/max(n.perByte, 1e-9), 1)
}

// transfer makes a transfer along a path.
func (n *network) transfer(path []int, pieces int, begin time.Time) *transfer {
	t := &transfer{arrived: make(chan piece, pieces+1)}
	for i := range len(path) - 1 {
		key := pccl.Transfer{Src: path[i], Dst: path[i+1]}
		l, ok := n.links[key]
		if !ok {
			l = &link{Transfer: key, net: n, more: make(chan struct{}, 1), queues: map[*transfer][]piece{}, free: begin}
			n.links[key] = l
		}
		t.path = append(t.path, l)
	}
	return t
}

// send puts all pieces in front of the first link, and waits until they are at the end of the last.
func (t *transfer) send(ctx context.Context, bytes, size float64, begin time.Time) (end time.Time) {
	sent := 0
	for left := bytes; left > 0 || sent == 0; left -= size {
		t.path[0].put(piece{of: t, bytes: min(size, left), at: begin})
		sent++
	}
	end = begin
	for range sent {
		select {
		case p := <-t.arrived:
			if p.at.After(end) {
				end = p.at
			}
		case <-ctx.Done():
			return begin
		}
	}
	until(ctx, end)
	return end
}

// put puts a piece in front of the link.
func (l *link) put(p piece) {
	l.mu.Lock()
	if len(l.queues[p.of]) == 0 {
		l.turn = append(l.turn, p.of)
	}
	l.queues[p.of] = append(l.queues[p.of], p)
	l.mu.Unlock()
	select {
	case l.more <- struct{}{}:
	default:
	}
}

// take takes the piece whose turn it is. When none is there, it returns false and when the next will be, zero if
// none is on its way.
func (l *link) take(now time.Time) (p piece, ok bool, next time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, t := range l.turn {
		p := l.queues[t][0]
		if p.at.After(now) {
			if next.IsZero() || p.at.Before(next) {
				next = p.at
			}
			continue
		}
		l.turn = slices.Delete(l.turn, i, i+1)
		if l.queues[t] = l.queues[t][1:]; len(l.queues[t]) > 0 {
			l.turn = append(l.turn, t)
		}
		return p, true, time.Time{}
	}
	return piece{}, false, next
}

// serve lets pieces through, one after the other, until ctx ends.
func (l *link) serve(ctx context.Context) {
	for ctx.Err() == nil {
		p, ok, next := l.take(time.Now())
		if !ok {
			l.wait(ctx, next)
			continue
		}
		if !l.pass(ctx, p.bytes, p.at) {
			return
		}
		p.at = l.free.Add(l.net.alpha)
		if p.hop++; p.hop < len(p.of.path) {
			p.of.path[p.hop].put(p)
		} else {
			p.of.arrived <- p
		}
	}
}

// wait waits for a piece, until next at most.
func (l *link) wait(ctx context.Context, next time.Time) {
	var due <-chan time.Time
	if !next.IsZero() {
		t := time.NewTimer(time.Until(next))
		defer t.Stop()
		due = t.C
	}
	select {
	case <-due:
	case <-l.more:
	case <-ctx.Done():
	}
}

// pass occupies the link with bytes that were there at a time. A link whose light has gone meanwhile has lost
// them, and they are sent again. It reports false when ctx has ended.
func (l *link) pass(ctx context.Context, bytes float64, at time.Time) bool {
	for {
		since, ok := l.lit(ctx)
		if !ok {
			return false
		}
		start := latest(l.free, at, since, time.Now().Add(-depth))
		end := start.Add(time.Duration(bytes * l.net.perByte))
		if !until(ctx, end) {
			return false
		}
		if now, ok := l.net.light.lit(l.Transfer); ok && !now.After(start) {
			l.free = end
			return true
		}
	}
}

// lit waits until the link is there, and returns since when. Out of patience it ends the round.
func (l *link) lit(ctx context.Context) (since time.Time, ok bool) {
	var out <-chan time.Time
	for {
		changed := l.net.light.changed()
		if since, ok = l.net.light.lit(l.Transfer); ok {
			return since, true
		}
		if out == nil {
			t := time.NewTimer(l.net.patience)
			defer t.Stop()
			out = t.C
		}
		select {
		case <-changed:
		case <-out:
			l.net.fail(fmt.Errorf("%w: nothing has got from GPU %d to GPU %d for %v: %s",
				ErrStalled, l.Src, l.Dst, l.net.patience, l.net.light.dark(l.Transfer)))
			return since, false
		case <-ctx.Done():
			return since, false
		}
	}
}

// until waits for a time, and reports false when ctx has ended before.
func until(ctx context.Context, at time.Time) bool {
	d := time.Until(at)
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func latest(times ...time.Time) time.Time { return slices.MaxFunc(times, time.Time.Compare) }
