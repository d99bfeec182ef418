package linkmon

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ocslab/ocslab/timeline"
)

// rescanAfter is how often the list of interfaces is looked at unasked.
const rescanAfter = 250 * time.Millisecond

func (h *host) scanLoop() {
	tick := time.NewTicker(rescanAfter)
	defer tick.Stop()
	for {
		select {
		case <-h.m.stop:
			return
		case <-h.ask:
		case <-tick.C:
		}
		h.m.mu.Lock()
		askers := h.askers
		h.askers = nil
		h.m.mu.Unlock()
		err := h.scan(false)
		if err != nil && !h.blind {
			h.gap(timeline.Interval{}, fmt.Sprintf("the interfaces cannot be listed: %v", err), fromCounters)
		}
		h.blind = err != nil
		for _, done := range askers {
			close(done)
		}
	}
}

// scan compares the interfaces that are there with those that are known.
func (h *host) scan(first bool) error {
	began := time.Now()
	if first {
		h.scanned = began
	}
	h.m.mu.Lock()
	lost, stale := h.lost, h.stale || h.announcer == nil
	h.lost, h.stale = nil, false
	h.m.mu.Unlock()
	if len(lost) > 0 {
		h.retire(lost)
	}
	list, err := h.counters.Interfaces()
	if err != nil {
		return err
	}
	there := map[int]string{}
	for _, i := range list {
		there[i.Index] = i.Name
	}
	h.forget(there)
	for _, i := range list {
		h.take(i, first)
	}
	h.refresh(there, stale)
	h.scanned = began
	return nil
}

// retire takes links out of the sweep and leaves the rest to the poller.
func (h *host) retire(gone []*link) {
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	links := slices.DeleteFunc(slices.Clone(*h.m.links.Load()), func(l *link) bool { return slices.Contains(gone, l) })
	h.m.links.Store(&links)
	for _, l := range gone {
		if h.links[l.index] == l { // else it has been retired already
			delete(h.links, l.index)
			h.m.retired = append(h.m.retired, l)
		}
	}
	h.m.askLocked()
}

// forget drops what is no longer there.
func (h *host) forget(there map[int]string) {
	var gone []*link
	h.m.mu.Lock()
	for index, l := range h.links {
		if _, ok := there[index]; !ok || l.farewell != nil {
			gone = append(gone, l)
		}
	}
	for index := range h.dead {
		if _, ok := there[index]; !ok {
			delete(h.dead, index)
		}
	}
	h.missing = slices.DeleteFunc(h.exact(), func(name string) bool {
		for _, n := range there {
			if n == name {
				return true
			}
		}
		return false
	})
	h.m.mu.Unlock()
	if len(gone) > 0 {
		h.retire(gone)
	}
	for index := range h.ignored {
		if _, ok := there[index]; !ok {
			delete(h.ignored, index)
			h.hear(index, true)
		}
	}
	for i := range h.refused {
		if there[i.Index] != i.Name {
			delete(h.refused, i)
		}
	}
	for index := range h.waiting {
		if _, ok := there[index]; !ok {
			delete(h.waiting, index)
		}
	}
}

// hear says whether messages about an interface are wanted.
func (h *host) hear(index int, yes bool) {
	if h.announcer != nil {
		h.announcer.ignore(index, !yes)
	}
}

// take takes up an interface if it is new and wanted.
func (h *host) take(i Interface, first bool) {
	h.m.mu.Lock()
	known := h.links[i.Index] != nil || h.dead[i.Index]
	h.m.mu.Unlock()
	if known {
		return
	}
	name, old := h.ignored[i.Index]
	if old && name == i.Name {
		return
	}
	if !h.wants(i.Name) {
		h.ignored[i.Index] = i.Name
		h.hear(i.Index, false)
		h.m.mu.Lock()
		delete(h.early, i.Index)
		h.m.mu.Unlock()
		return
	}
	if !first && !old && h.isUntold(i.Index) {
		return
	}
	opened := time.Now()
	c, err := h.counters.Open(i)
	var r reading
	if err == nil {
		if r, err = read(c, true); err != nil {
			c.Close()
		}
	}
	if err != nil {
		if !errors.Is(err, ErrGone) && !h.refused[i] {
			h.refused[i] = true
			h.gap(timeline.Interval{}, fmt.Sprintf("interface %s cannot be watched: %v", i.Name, err), fromCounters)
		}
		return
	}
	if old {
		delete(h.ignored, i.Index)
		h.hear(i.Index, true)
	}
	delete(h.waiting, i.Index)
	l := &link{host: h, index: i.Index, counter: c, last: r.changes, from: opened}
	l.acct = LinkAccount{Host: h.Name, Interface: i.Name, Index: i.Index}
	if o, ok := c.(operStater); ok {
		l.oper, _ = o.operState() // "" when it has just gone
	}
	h.begin(l, r, first, first || old)
}

// isUntold reports whether an interface is to wait because netlink, which says how
// often its carrier moved before it came here, has not told of it yet. One that netlink does
// not tell of until the next scan is taken for new.
func (h *host) isUntold(index int) bool {
	if h.announcer == nil || h.waiting[index] {
		return false
	}
	select {
	case <-h.announcer.drained():
	case <-h.m.stop:
	}
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	h.waiting[index] = len(h.early[index]) == 0
	return h.waiting[index]
}

// begin makes a link known and reports what it did between its appearance, after
// the last scan, and now. An old link has a past that is none of ours.
func (h *host) begin(l *link, r reading, first, old bool) {
	at := h.m.axis.Span(h.scanned, time.Now())
	m := h.m
	m.mu.Lock()
	defer m.mu.Unlock()
	early := h.early[l.index]
	delete(h.early, l.index)
	l.since, l.heard = at.Earliest, at.Earliest
	l.sum0, l.state = r.changes, r.state
	if !old {
		l.sum0 = 0
		if len(early) > 0 && early[0].counted {
			l.sum0 = early[0].changes
		}
	}
	if !first {
		m.pushLocked(l.eventLocked(Added, at, fromCounters))
	}
	l.sum = l.sum0
	switch k := r.changes - l.sum0; {
	case m.opt.NoCounters:
		if len(early) > 0 {
			l.state = carrierOf(early[0].carrier)
		}
	case int32(k) > 0:
		dir := up // unless something tells otherwise
		switch {
		case r.state != unknown && k%2 == 1:
			dir = r.state
		case r.state != unknown:
			dir = r.state.other()
		case r.halves && l.sum0 == 0:
			dir = firstOf(unknown, r.up, r.down)
		}
		l.movedLocked(k, dir, at, fromCounters)
	default: // nothing, or the first message is younger than the reading
		l.sum0, l.sum = r.changes, r.changes
	}
	l.halves, l.ups, l.downs = r.halves, r.up, r.down
	h.links[l.index] = l
	for _, n := range early {
		l.noticeLocked(n)
	}
	links := append(slices.Clone(*m.links.Load()), l)
	m.links.Store(&links)
}

// refresh looks whether known links have another name, and another operational state if
// nothing else would tell.
func (h *host) refresh(there map[int]string, states bool) {
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	at := h.m.axis.Span(h.scanned, time.Now())
	for _, l := range h.links {
		if name := there[l.index]; name != "" {
			l.renameLocked(name, at, fromCounters)
		}
		if o, ok := l.counter.(operStater); ok && states {
			if s, err := o.operState(); err == nil {
				l.operateLocked(s, at, fromCounters)
			}
		}
	}
}
