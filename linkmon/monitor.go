package linkmon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ocslab/ocslab/timeline"
)

// Monitor watches the carrier of interfaces. Start makes one.
type Monitor struct {
	opt   Options // with defaults
	axis  timeline.Axis
	hosts []*host

	links    atomic.Pointer[[]*link] // what the poller sweeps; replaced, never changed
	stopping atomic.Bool
	rest     atomic.Int64  // ns that a pause takes at least; see Rest
	asked    atomic.Bool   // flushes or retired is not empty
	kick     chan struct{} // holds one: wakes a poller that waits to be asked
	polled   chan struct{} // closed when the poller has ended

	// Of the poller alone.
	lastSweep time.Time
	pace      pace

	sweeps, late atomic.Int64
	longest, cpu atomic.Int64 // in ns

	stop     chan struct{} // closed to end the scanners
	scanners sync.WaitGroup
	closing  sync.Once

	mu      sync.Mutex // guards what follows, and parts of hosts and links
	queue   queue
	gaps    int
	flushes []chan struct{} // to be closed after the next sweep
	retired []*link         // the poller is to let go of them
	gone    []LinkAccount
	cancel  func() bool // takes Close off the context of Start
}

// Link is an interface that is watched, as it is now.
type Link struct {
	Host, Interface string
	Index           int
	Carrier         bool
	OperState       string // RFC 2863, as in sysfs; "" where there is none
	Transitions     int    // since it was taken up
}

// Source is one of the ways in which a host is observed.
type Source struct {
	Host string
	Name string // "counters", "netlink", "bpf" or "sync"
	On   bool
	Why  string // why it is not used and what to do about it, or what is odd about it
}

// Start begins to watch. When it returns, the interfaces that exist are known and
// their counters read. The monitor runs until Close, or until ctx is done, which is the
// same.
//
// It fails where the counters of a host cannot be read at all; whatever else is missing
// is told by [Monitor.Sources]. To watch a namespace other than our own
// needs CAP_SYS_ADMIN.
func Start(ctx context.Context, opt Options) (*Monitor, error) {
	opt, err := opt.withDefaults()
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	m := &Monitor{
		opt: opt, axis: timeline.HostAxis(),
		kick: make(chan struct{}, 1), polled: make(chan struct{}), stop: make(chan struct{}),
		queue: queue{more: make(chan struct{}, 1)},
	}
	m.links.Store(&[]*link{})
	kernel := false
	for _, h := range opt.Hosts {
		h, err := m.newHost(h)
		if err != nil {
			m.abandon()
			return nil, err
		}
		m.hosts = append(m.hosts, h)
		kernel = kernel || h.Counters == nil
	}
	for _, h := range m.hosts {
		h.startAnnouncer()
		if err := h.scan(true); err != nil {
			m.abandon()
			return nil, fmt.Errorf("linkmon: host %s: %w", h.Name, err)
		}
	}
	switch {
	case opt.NoCounters:
		m.pace = &onDemand{m}
	case kernel:
		m.pace = newThread(m)
	default:
		m.pace = &sleeper{m}
	}
	go m.poll()
	for _, h := range m.hosts {
		m.scanners.Go(h.scanLoop)
	}
	cancel := context.AfterFunc(ctx, func() { m.Close() })
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cancel = cancel
	return m, nil
}

// abandon undoes what Start did before the poller began.
func (m *Monitor) abandon() {
	for _, h := range m.hosts {
		h.close()
	}
	for _, l := range *m.links.Load() {
		l.counter.Close()
	}
}

// Flush waits for a look at the list of interfaces and a sweep of the counters that
// both began after the call, and reads what has been announced until then: what
// happened before the call is in the queue. It fails when ctx is done, and after Close.
func (m *Monitor) Flush(ctx context.Context) error {
	for _, h := range m.hosts {
		if err := m.await(ctx, h.rescan()); err != nil {
			return err
		}
	}
	if m.opt.NoCounters {
		// What is heard after the counters were read would be too much.
		if err := m.drain(ctx); err != nil {
			return err
		}
	}
	if err := m.await(ctx, m.swept()); err != nil {
		return err
	}
	if m.opt.NoCounters {
		return nil
	}
	return m.drain(ctx)
}

var errClosed = errors.New("linkmon: the monitor was closed")

func (m *Monitor) await(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-m.polled:
		return errClosed
	}
}

// drain waits until the announcements that are there have been read.
func (m *Monitor) drain(ctx context.Context) error {
	for _, h := range m.hosts {
		if err := m.await(ctx, h.drained()); err != nil {
			return err
		}
	}
	return nil
}

// swept returns a channel that is closed after the next sweep that begins.
func (m *Monitor) swept() <-chan struct{} {
	done := make(chan struct{})
	m.mu.Lock()
	m.flushes = append(m.flushes, done)
	m.askLocked()
	m.mu.Unlock()
	return done
}

// askLocked tells the poller that there is something to do beside sweeping.
func (m *Monitor) askLocked() {
	m.asked.Store(true)
	select {
	case m.kick <- struct{}{}:
	default:
	}
}

// Close does what Flush does and ends the monitor; it waits for a read of the counters
// that is under way. What is queued can still be read. Further calls do nothing.
func (m *Monitor) Close() error {
	m.closing.Do(func() {
		m.mu.Lock()
		cancel := m.cancel
		m.mu.Unlock()
		if cancel != nil { // nil: the context ended as Start did
			cancel()
		}
		_ = m.Flush(context.Background()) // fails only after Close
		close(m.stop)
		m.scanners.Wait()
		m.stopping.Store(true)
		m.mu.Lock()
		m.askLocked()
		m.mu.Unlock()
		<-m.polled
		for _, h := range m.hosts {
			h.close()
		}
		for _, l := range *m.links.Load() {
			l.counter.Close()
		}
		m.mu.Lock()
		m.queue.closed = true
		m.queue.wake()
		m.mu.Unlock()
	})
	return nil
}

// Links returns the interfaces that are watched, ordered by host and index.
func (m *Monitor) Links() []Link {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []Link
	for _, h := range m.hosts {
		n := len(all)
		for _, l := range h.links {
			all = append(all, Link{h.Name, l.acct.Interface, l.index, l.state == up, l.oper, l.number})
		}
		slices.SortFunc(all[n:], func(a, b Link) int { return cmp.Compare(a.Index, b.Index) })
	}
	return all
}

// Sources tells for each host what is used to observe it, what is not, and why.
func (m *Monitor) Sources() []Source {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []Source
	for _, h := range m.hosts {
		all = append(all, h.sourcesLocked()...)
	}
	return all
}

// Account returns the account so far.
func (m *Monitor) Account() Account {
	m.mu.Lock()
	defer m.mu.Unlock()
	a := Account{
		Gaps: m.gaps,
		Sweeps: Sweeps{
			Count: int(m.sweeps.Load()), Late: int(m.late.Load()),
			Longest: time.Duration(m.longest.Load()), CPU: time.Duration(m.cpu.Load()),
		},
		PerLink: slices.Clone(m.gone),
	}
	for _, h := range m.hosts {
		for _, l := range h.links {
			a.PerLink = append(a.PerLink, l.accountLocked())
		}
	}
	slices.SortStableFunc(a.PerLink, func(x, y LinkAccount) int {
		return cmp.Or(cmp.Compare(x.Host, y.Host), cmp.Compare(x.Index, y.Index))
	})
	for _, l := range a.PerLink {
		a.Counted += l.Counted
		a.Reported += l.Reported
		a.Merged += l.Merged
		a.Announced += l.Announced
	}
	return a
}

// accountLocked returns the account of a link. What was reported since the last audit
// counts as counted; the next audit will tell.
func (l *link) accountLocked() LinkAccount {
	a := l.acct
	a.Counted += a.Reported + a.Merged - l.audited
	return a
}
