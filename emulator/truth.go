package emulator

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/timeline"
)

// truthLimit is how many marks a device remembers; older ones are forgotten.
const truthLimit = 1 << 16

// truthLog is what the device did. Light that is still to come is kept apart,
// since a later command may prevent it.
type truthLog struct {
	facts  []fact // a ring once it is full: fact number i is at i modulo truthLimit
	next   int    // number of the next fact
	coming map[ocs.Port]fact
}

// fact is a mark in short, which a thousand devices can keep many of.
type fact struct {
	timeline.Interval
	stage timeline.Stage
	op    int
	port  ocs.Port // 0 is the device itself
}

func (l *truthLog) add(f fact) {
	if len(l.facts) < truthLimit {
		l.facts = append(l.facts, f)
	} else {
		l.facts[l.next%truthLimit] = f
	}
	l.next++
}

func (l *truthLog) expect(f fact) {
	if l.coming == nil {
		l.coming = map[ocs.Port]fact{}
	}
	l.coming[f.port] = f
}

// cancel forgets the light that is to come at n and reports whether there was
// any.
func (l *truthLog) cancel(n ocs.Port) bool {
	_, ok := l.coming[n]
	delete(l.coming, n)
	return ok
}

// arrive moves what has come true by now into the log.
func (l *truthLog) arrive(now int64) {
	var due []fact
	for n, f := range l.coming {
		if f.Latest <= now {
			due = append(due, f)
			delete(l.coming, n)
		}
	}
	slices.SortFunc(due, func(a, b fact) int {
		return cmp.Or(cmp.Compare(a.Latest, b.Latest), cmp.Compare(a.port, b.port))
	})
	for _, f := range due {
		l.add(f)
	}
}

// Truth returns what the device did from mark number since on, and the number
// to ask for next time. Marks are in the words of package timeline on the
// host's monotonic clock: command and ack of the device, dark and light of the
// port "<device>/<port>", which alternate. Their Reconfiguration is the number
// of the operation, or of the last one before something else that changed the
// light. They are in the order in which they became certain. The last 65,536
// are kept.
func (d *Device) Truth(since int) ([]timeline.Mark, int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.nowLocked()
	l := &d.truth
	first := min(max(since, l.next-len(l.facts)), l.next)
	marks := make([]timeline.Mark, l.next-first)
	for i := range marks {
		f := l.facts[(first+i)%truthLimit]
		marks[i] = timeline.Mark{
			Stage: f.stage, Subject: d.name, Interval: f.Interval,
			Source: "emulator", Reconfiguration: f.op,
		}
		if f.port != 0 {
			marks[i].Subject += "/" + strconv.FormatUint(uint64(f.port), 10)
		}
	}
	return marks, l.next
}

// Record adds a mark of a front end, command or ack, to the truth log.
func (d *Device) Record(stage timeline.Stage, from, to time.Time, op Operation) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.truth.arrive(d.axis.NS(to))
	d.truth.add(fact{Interval: d.axis.Span(from, to), stage: stage, op: op.Number})
}

// nowLocked reads the clock. Every change begins with it, so that light which was
// due by then is in the log before what the change brings.
func (d *Device) nowLocked() int64 {
	now := d.axis.NS(time.Now())
	d.truth.arrive(now)
	return now
}
