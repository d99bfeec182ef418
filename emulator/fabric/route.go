package fabric

import (
	"runtime"
	"sync/atomic"
	"time"

	"github.com/ocslab/ocslab/timeline"
)

// path is a way for frames that is open: there is light from one NIC to the other
// and both have carrier. A path that has been closed is not used again.
type path struct {
	from, to *nic
	op       int         // what opened it
	opened   int64       // on the axis of the host
	used     atomic.Bool // a frame has passed
	busy     atomic.Int64
}

func (p *path) subject() string { return p.from.key + ">" + p.to.key }

// forward sends a frame that n has sent along the open path, if there is one. It is
// called from several goroutines at once and takes no lock.
func (n *nic) forward(frame []byte) {
	p := n.out.Load()
	if p == nil {
		n.stats.dark.Add(1)
		return
	}
	// After this either the path is still open, or whoever closed it waits for us.
	p.busy.Add(1)
	defer p.busy.Add(-1)
	if n.out.Load() != p {
		n.stats.dark.Add(1)
		return
	}
	if p.used.Load() {
		n.count(p.to.dev.write(frame))
		return
	}
	before := time.Now()
	err := p.to.dev.write(frame)
	n.count(err)
	if err == nil && p.used.CompareAndSwap(false, true) {
		f := n.fabric
		at := f.axis.Span(before, time.Now())
		f.log.add(timeline.Mark{
			Stage: timeline.Traffic, Subject: p.subject(), Host: p.to.Host, Interval: at,
			Reconfiguration: p.op,
			Detail:          "path opened " + time.Duration(at.Earliest-p.opened).String() + " before",
		})
	}
}

func (n *nic) count(err error) {
	if err != nil {
		n.stats.refused.Add(1)
		return
	}
	n.stats.forwarded.Add(1)
}

// routeLocked opens or closes the path that ends at n, in line with light and
// carriers. The operation is the reason for it.
func (n *nic) routeLocked(op int) {
	f := n.fabric
	var want *nic
	if n.lit && n.carrier {
		if a := f.byTx[n.from]; a != nil && a.carrier {
			want = a
		}
	}
	if n.source == want {
		return
	}
	if n.source != nil {
		f.closePath(n.source, op)
	}
	if n.source = want; want != nil {
		want.out.Store(&path{from: want, to: n, op: op, opened: f.axis.NS(time.Now())})
	}
}

// closePath closes the path from n. When it returns, no frame passes any more. Frames that
// the host had sent before pass, however long they have waited for us.
func (f *Fabric) closePath(n *nic, op int) {
	before := n.dev.flush()
	p := n.out.Swap(nil)
	for p.busy.Load() != 0 { // one frame, on its way into a device
		runtime.Gosched()
	}
	if p.used.Load() {
		f.log.add(timeline.Mark{
			Stage: timeline.TrafficLost, Subject: p.subject(), Host: p.to.Host,
			Interval: f.axis.Span(before, time.Now()), Reconfiguration: op,
		})
	}
}

// routesLocked brings the paths that begin or end at n in line.
func (n *nic) routesLocked(op int) {
	n.routeLocked(op)
	for _, other := range n.fabric.byRx {
		if other != n && (other.source == n || other.lit && other.from == n.Tx) {
			other.routeLocked(op)
		}
	}
}
