package plane

import (
	"math"
	"strconv"
	"strings"
	"sync"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/timeline"
)

// light is what an emulated switch has done with its light, as far as operations can still ask for it.
type light struct {
	dev  *emulator.Device
	stop func()

	mu     sync.Mutex           // guards what follows
	lit    map[ocs.Port][]span  // by egress, in order of time
	told   map[ocs.Port]instant // the last that change was told
	closed bool

	truthMu sync.Mutex           // guards what follows
	next    int                  // mark of the device's truth log
	truth   map[ocs.Port]instant // what change has not been told, as far as we know
}

// instant is when the light of an egress came or went.
type instant struct {
	ns  int64
	lit bool
}

// span is the time in which an egress had the settled light of an ingress; until is never while it has.
type span struct {
	from        ocs.Port
	since, till int64
}

// watch follows the light of a switch until stop.
func watch(d *emulator.Device) *light {
	l := &light{
		dev: d, lit: map[ocs.Port][]span{}, told: map[ocs.Port]instant{}, truth: map[ocs.Port]instant{},
	}
	// That circuits go is known at once, in the call that removes them. Light is told by another goroutine a little later,
	// with the instant at which it came or went.
	d.Observe(l.event)
	_, l.next = d.Truth(math.MaxInt)
	l.stop = d.WatchLight(l.change)
	return l
}

// close lets go of the switch. A device keeps its observers for good, so this one falls silent.
func (l *light) close() {
	l.stop()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	l.lit = nil
}

func (l *light) event(e emulator.Event) {
	if e.Kind != emulator.CircuitEvent {
		return
	}
	now := nowNS()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	for c := range e.Change.Remove.All() {
		// Its light has gone: when exactly is told by change, maybe after an operation has asked; or before, and
		// then the egress may have the light of another ingress already.
		if n := len(l.lit[c.Egress]); n > 0 && l.lit[c.Egress][n-1].from == c.Ingress {
			l.darkLocked(c.Egress, now)
		}
	}
}

func (l *light) change(c emulator.LightChange) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	l.told[c.Port] = instant{c.AtNS, c.Lit()}
	spans := l.lit[c.Port]
	if c.Lit() {
		if n := len(spans); n > 0 && spans[n-1].till == never && spans[n-1].from == c.From {
			return // brighter or darker, but there
		}
		l.darkLocked(c.Port, c.AtNS)
		l.lit[c.Port] = append(l.lit[c.Port], span{c.From, c.AtNS, never})
		return
	}
	if n := len(spans); n > 0 && spans[n-1].till >= c.AtNS {
		spans[n-1].till = c.AtNS
	}
}

func (l *light) darkLocked(egress ocs.Port, at int64) {
	if spans := l.lit[egress]; len(spans) > 0 && spans[len(spans)-1].till == never {
		spans[len(spans)-1].till = at
	}
}

// caughtUp reports whether change has been told all that has become of light by now. The truth log of the device knows at once,
// but not whose light it was.
func (l *light) caughtUp() bool {
	l.truthMu.Lock()
	defer l.truthMu.Unlock()
	var marks []timeline.Mark
	marks, l.next = l.dev.Truth(l.next)
	for _, m := range marks {
		if m.Stage != timeline.Dark && m.Stage != timeline.Light {
			continue
		}
		port, err := strconv.ParseUint(strings.TrimPrefix(m.Subject, l.dev.Name()+"/"), 10, 32)
		if err == nil {
			l.truth[ocs.Port(port)] = instant{m.Latest, m.Stage == timeline.Light}
		}
	}
	if len(l.truth) == 0 {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for egress, is := range l.truth {
		if told, ok := l.told[egress]; ok && (told == is || told.ns > is.ns) {
			delete(l.truth, egress)
		}
	}
	return len(l.truth) == 0
}

// dark returns for how many of the nanoseconds of [begin, end) at least one of the cross-connects did not have settled light.
func (l *light) dark(all []ocs.CrossConnect, begin, end int64) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	total, at := int64(0), begin
	for at < end {
		// From at on: either all are lit, until the first goes, or some are not, until the last of those that are not has come.
		litUntil, darkUntil := end, int64(math.MinInt64)
		for _, c := range all {
			until, on := l.atLocked(c, at)
			switch {
			case on:
				litUntil = min(litUntil, until)
			default:
				darkUntil = max(darkUntil, min(until, end))
			}
		}
		if darkUntil == math.MinInt64 {
			at = litUntil
			continue
		}
		total += darkUntil - at
		at = darkUntil
	}
	return total
}

// atLocked reports whether a cross-connect had light at an instant, and until when that stays so.
func (l *light) atLocked(c ocs.CrossConnect, at int64) (until int64, on bool) {
	for _, s := range l.lit[c.Egress] {
		if s.from != c.Ingress || s.till <= at {
			continue
		}
		if s.since <= at {
			return s.till, true
		}
		return s.since, false
	}
	return never, false
}

// forget drops what was before an instant that nobody asks about any more.
func (l *light) forget(before int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for egress, spans := range l.lit {
		n := 0
		for n < len(spans) && spans[n].till < before {
			n++
		}
		if n > 0 {
			l.lit[egress] = append([]span(nil), spans[n:]...)
		}
	}
}
