package tl1switch

import (
	"context"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/wire/tl1"
)

// eventHub hands autonomous messages to those who listen.
type eventHub struct {
	mu   sync.Mutex // guards what follows
	subs []*listener
}

// queued is how many events may wait for a listener.
const queued = 256

// listener is one call of Notify.
type listener struct {
	queue chan ocs.Event
	lost  int // dropped since the last one queued; guarded by the hub
}

func (h *eventHub) wanted() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.subs) > 0
}

func (h *eventHub) add() *listener {
	h.mu.Lock()
	defer h.mu.Unlock()
	l := &listener{queue: make(chan ocs.Event, queued)}
	h.subs = append(h.subs, l)
	return l
}

func (h *eventHub) remove(l *listener) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.subs = slices.DeleteFunc(h.subs, func(o *listener) bool { return o == l })
}

func (h *eventHub) publish(e ocs.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, l := range h.subs {
		e.Lost = l.lost
		select {
		case l.queue <- e:
			l.lost = 0
		default:
			l.lost++
		}
	}
}

// Notify allows autonomous messages on this session and hands them to f. When
// the last call of it ends they are inhibited again, for which it takes up to a
// second longer. See [ocs.Notifier].
func (sw *Switch) Notify(ctx context.Context, f func(ocs.Event)) error {
	l := sw.events.add()
	s, err := sw.listen(ctx)
	if err == nil {
		err = sw.fail("listen", "", "", l.run(ctx, s, f))
	}
	sw.events.remove(l)
	sw.unlisten(ctx)
	return err
}

// run calls f until ctx or the session ends, and returns why.
func (l *listener) run(ctx context.Context, s *session, f func(ocs.Event)) error {
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case e := <-l.queue:
			f(e)
			continue
		case <-s.ended:
		}
		select {
		case e := <-l.queue: // came before the end
			f(e)
		default:
			return s.err
		}
	}
}

// listen returns the session that autonomous messages are allowed on.
func (sw *Switch) listen(ctx context.Context) (*session, error) {
	const op = "listen"
	if err := sw.take(ctx, op); err != nil {
		return nil, err
	}
	defer sw.pass()
	if sw.s == nil || !sw.s.usable() {
		if err := sw.connect(ctx); err != nil {
			return nil, err
		}
	}
	err := sw.inhibit(ctx, sw.s)
	if notLoggedIn(err) {
		err = sw.login(ctx, sw.s)
	}
	sw.s.relieve() // from now on it reads all the time
	return sw.s, err
}

// unlisten inhibits autonomous messages if nobody listens any more. If that
// fails, they are dropped when they come.
func (sw *Switch) unlisten(ctx context.Context) {
	if sw.events.wanted() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if sw.take(ctx, "") != nil {
		return
	}
	defer sw.pass()
	if sw.s != nil && sw.s.usable() {
		_ = sw.inhibit(ctx, sw.s) // looks again whether anybody listens
	}
}

var severities = map[string]string{"*C": "critical", "**": "major", "*": "minor", "A": "event"}

// The port is what stands before the colon of an autonomous message's text, or
// is named in it.
var (
	leadingPort = regexp.MustCompile(`^"?(\d{1,5}):`)
	namedPort   = regexp.MustCompile(`(?i)\bport (\d{1,5})\b`)
)

// announce hands an autonomous message to those who listen.
func (sw *Switch) announce(m tl1.Message, received time.Time) {
	if !sw.events.wanted() {
		return
	}
	e := ocs.Event{Received: received, Severity: severities[m.Alarm], Text: m.Event, Raw: sw.hide.text(string(m.Raw))}
	for _, line := range m.Text {
		e.Text += ": " + sw.hide.text(line)
		for _, re := range []*regexp.Regexp{leadingPort, namedPort} {
			if sub := re.FindStringSubmatch(line); e.Port == 0 && sub != nil {
				n, _ := strconv.Atoi(sub[1]) // at most five digits
				e.Port = ocs.Port(n)
			}
		}
	}
	sw.events.publish(e)
}
