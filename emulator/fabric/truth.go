package fabric

import (
	"sync"

	"github.com/ocslab/ocslab/timeline"
)

// truthLimit bounds the memory of a fabric that runs for months.
const truthLimit = 1 << 16

// truthLog is what really happened: a ring of marks.
type truthLog struct {
	mu    sync.Mutex
	marks []timeline.Mark
	next  int // number of the next mark
}

func (l *truthLog) add(m timeline.Mark) {
	m.Source = "fabric"
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.marks) < truthLimit {
		l.marks = append(l.marks, m)
	} else {
		l.marks[l.next%truthLimit] = m
	}
	l.next++
}

func (l *truthLog) since(n int) ([]timeline.Mark, int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	first := min(max(n, l.next-len(l.marks)), l.next)
	marks := make([]timeline.Mark, l.next-first)
	for i := range marks {
		marks[i] = l.marks[(first+i)%truthLimit]
	}
	return marks, l.next
}

// Truth returns what happened from mark number since on, and the number to ask
// for next time, so 0 asks for all. The last 65,536 marks are kept. See the
// package comment for what they say.
func (f *Fabric) Truth(since int) ([]timeline.Mark, int) { return f.log.since(since) }
