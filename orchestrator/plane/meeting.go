package plane

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ocslab/ocslab/internal/natural"
)

// meetings is where members of operations wait for each other.
type meetings struct {
	patience time.Duration
	clock    *Clock
	often    func(before int64) // called now and then: no operation asks about what was before
	end      chan struct{}      // closed with the plane

	mu      sync.Mutex // guards what follows
	waiting map[key]*meeting
	running map[*meeting]struct{} // that have begun, and whose members have not all left
	closed  bool
	begun   int
}

// oftenEvery is after how many operations meetings.often is called.
const oftenEvery = 4096

func (ms *meetings) init(patience time.Duration, clock *Clock, often func(before int64)) {
	if patience == 0 {
		patience = DefaultPatience
	}
	ms.patience, ms.clock, ms.often = patience, clock, often
	ms.end = make(chan struct{})
	ms.waiting, ms.running = map[key]*meeting{}, map[*meeting]struct{}{}
}

// close ends all meetings, and reports whether it was the first to.
func (ms *meetings) close() bool {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	if ms.closed {
		return false
	}
	ms.closed = true
	close(ms.end)
	return true
}

// meeting is an operation, from when its first member has come until its last has left. What is not said to stay is
// guarded by the mutex of the meetings.
type meeting struct {
	key     key
	members []int  // stays
	came    []bool // by place in members
	inside  int    // members in Do
	missing int
	issued  int64         // when the last was ready
	begun   chan struct{} // closed when all are here; from then on, begin and longest stay
	begin   int64
	longest time.Duration // that a member needs

	// Of planes that find out when an operation is complete:
	complete int           // members for which it is
	over     chan struct{} // closed when it is for all; from then on, ended stays
	ended    int64
	broken   chan struct{} // closed when a member fails; from then on, why stays
	why      error

	// Of planes that know: one alarm wakes all.
	alarm   *waiter       // stays
	looked  bool          // a member looks what has become of the light
	settled chan struct{} // closed when it has
}

// join adds a rank to its operation. The last one begins it. Each who has joined must leave.
func (ms *meetings) join(t Transfer, took time.Duration) (*meeting, error) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	if ms.closed {
		return nil, fmt.Errorf("%v: %w", t, ErrClosed)
	}
	m := ms.waiting[t.key()]
	if m == nil {
		m = &meeting{
			key: t.key(), members: t.Members, came: make([]bool, len(t.Members)), missing: len(t.Members),
			begun: make(chan struct{}), over: make(chan struct{}), broken: make(chan struct{}), settled: make(chan struct{}), issued: math.MinInt64,
		}
		ms.waiting[m.key] = m
	}
	if !slices.Equal(m.members, t.Members) {
		return nil, fmt.Errorf("%v: %w: this rank takes its members to be %v, and others %v", t, ErrTransfer, t.Members, m.members)
	}
	i, _ := slices.BinarySearch(m.members, t.Rank)
	if m.came[i] {
		return nil, fmt.Errorf("%v: %w: the rank takes part already", t, ErrTransfer)
	}
	m.came[i] = true
	m.inside++
	m.missing--
	issued := nowNS()
	if t.IssuedNS != 0 {
		issued = min(t.IssuedNS, issued)
	}
	m.issued = max(m.issued, issued)
	m.longest = max(m.longest, took)
	if m.missing > 0 {
		return m, nil
	}
	m.begin = m.issued
	m.alarm = ms.clock.alarm(m.begin + int64(m.longest))
	delete(ms.waiting, m.key)
	ms.running[m] = struct{}{}
	if ms.begun++; ms.begun%oftenEvery == 0 && ms.often != nil {
		oldest := never
		for m := range ms.running {
			oldest = min(oldest, m.begin)
		}
		for _, m := range ms.waiting {
			oldest = min(oldest, m.issued)
		}
		ms.often(oldest)
	}
	close(m.begun)
	return m, nil
}

// gather waits until all members have come. The error names those who have not.
func (ms *meetings) gather(ctx context.Context, m *meeting, t Transfer) error {
	select {
	case <-m.begun:
		return nil
	default:
	}
	since := time.Now()
	patience := time.NewTimer(ms.patience)
	defer patience.Stop()
	var why error
	select {
	case <-m.begun:
		return nil
	case <-patience.C:
		why = ErrMissing
	case <-ctx.Done():
		why = context.Cause(ctx)
	case <-ms.end:
		why = ErrClosed
	}
	ms.mu.Lock()
	defer ms.mu.Unlock()
	select {
	case <-m.begun: // just now
		return nil
	default:
	}
	var missing []string
	for i, here := range m.came {
		if !here {
			missing = append(missing, strconv.Itoa(m.members[i]))
		}
	}
	i, _ := slices.BinarySearch(m.members, t.Rank)
	m.came[i] = false
	m.missing++
	who := "rank"
	if len(missing) > 1 {
		who = "ranks"
	}
	const most = 16
	more := ""
	if len(missing) > most {
		more = " and " + natural.Count(len(missing)-most, "other")
		missing = missing[:most]
	}
	return fmt.Errorf("%v: it has waited %v for %s %s%s: %w", t, time.Since(since).Round(time.Millisecond), who,
		strings.Join(missing, ", "), more, why)
}

// completed notes that an operation is complete for one more member, and waits until it is for all, or one fails.
func (ms *meetings) completed(ctx context.Context, m *meeting) error {
	ms.mu.Lock()
	if m.complete++; m.complete == len(m.members) {
		m.ended = nowNS()
		close(m.over)
	}
	ms.mu.Unlock()
	select {
	case <-m.broken:
		return m.why
	case <-m.over:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-ms.end:
		return ErrClosed
	}
}

// fail ends an operation for all members that wait for this one.
func (ms *meetings) fail(m *meeting, why error) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	if m.why == nil {
		m.why = why
		close(m.broken)
	}
}

// await waits for something, or for the end of ctx or of the plane.
func (ms *meetings) await(ctx context.Context, what <-chan struct{}) error {
	select {
	case <-what:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-ms.end:
		return ErrClosed
	}
}

// leave is called by each member that has joined.
func (ms *meetings) leave(m *meeting) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	if m.inside--; m.inside > 0 {
		return
	}
	if m.alarm != nil {
		m.alarm.stop()
	}
	delete(ms.running, m)
	if ms.waiting[m.key] == m {
		delete(ms.waiting, m.key)
	}
}
