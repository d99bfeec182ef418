package linkmon

import (
	"fmt"
	"strings"
	"time"

	"github.com/ocslab/ocslab/timeline"
)

// host is one of the hosts watched.
type host struct {
	Host
	m         *Monitor
	counters  Counters
	announcer announcer // nil when nothing listens to the kernel
	sync      *syncer   // nil when not wanted or not possible

	ask chan struct{} // holds one: somebody wants a scan

	// Of the scanner alone.
	scanned time.Time          // when the last scan began
	ignored map[int]string     // names of interfaces that are there and not wanted
	refused map[Interface]bool // could not be opened, and that was told
	waiting map[int]bool       // new, and netlink has not told of them yet
	blind   bool               // the last scan failed

	// What follows is guarded by Monitor.mu.

	links   map[int]*link
	lost    []*link          // found to be gone by the poller
	early   map[int][]notice // of links that are not known yet
	dead    map[int]bool     // RTM_DELLINK has come, and no RTM_NEWLINK since
	stale   bool             // operational states may have changed unheard
	askers  []chan struct{}  // to be closed after the next scan
	missing []string         // interfaces that are wanted by name and not there
	sources []Source         // but for counters
}

// announcer listens to what the kernel announces about a host.
type announcer interface {
	// drained returns a channel that is closed when all that is there has been read.
	drained() <-chan struct{}
	// ignore says whether messages about an interface are wanted.
	ignore(index int, yes bool)
	close()
}

// operStater is a Counter that knows the operational state as well.
type operStater interface{ operState() (string, error) }

func (m *Monitor) newHost(opt Host) (*host, error) {
	h := &host{
		Host: opt, m: m, counters: opt.Counters,
		ask: make(chan struct{}, 1), ignored: map[int]string{}, refused: map[Interface]bool{}, waiting: map[int]bool{},
		links: map[int]*link{}, early: map[int][]notice{}, dead: map[int]bool{},
	}
	if h.counters == nil {
		c, err := openSysfs(opt.NS)
		if err != nil {
			return nil, fmt.Errorf("linkmon: host %s: %w", h.Name, err)
		}
		h.counters = c
	}
	return h, nil
}

func (h *host) close() {
	if h.sync != nil {
		h.sync.close()
	}
	if h.announcer != nil {
		h.announcer.close()
	}
	if c, ok := h.counters.(*sysfs); ok {
		c.close()
	}
}

// look asks for a scan.
func (h *host) look() {
	select {
	case h.ask <- struct{}{}:
	default:
	}
}

// rescan returns a channel that is closed after the next scan that begins.
func (h *host) rescan() <-chan struct{} {
	done := make(chan struct{})
	h.m.mu.Lock()
	h.askers = append(h.askers, done)
	h.m.mu.Unlock()
	h.look()
	return done
}

// drained returns a channel that is closed when all that was announced has been read.
func (h *host) drained() <-chan struct{} {
	if h.announcer != nil {
		return h.announcer.drained()
	}
	done := make(chan struct{})
	close(done)
	return done
}

// gap reports a Gap of the whole host; a zero interval is now.
func (h *host) gap(at timeline.Interval, text, source string) {
	if at == (timeline.Interval{}) {
		at = h.m.axis.Span(h.scanned, time.Now())
	}
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	h.m.pushLocked(Event{Kind: Gap, Host: h.Name, Interval: at, Source: source, Text: text})
}

func (h *host) sourcesLocked() []Source {
	c := Source{Host: h.Name, Name: "counters", On: !h.m.opt.NoCounters}
	if !c.On {
		c.Why = "left out on request, but for the accounting"
	}
	if len(h.missing) > 0 {
		if c.Why != "" {
			c.Why += "; "
		}
		c.Why += "waits for " + strings.Join(h.missing, ", ") + ", not there yet"
	}
	return append([]Source{c}, h.sources...)
}
