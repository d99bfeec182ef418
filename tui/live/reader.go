package live

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/ocslab/ocslab/drivers/drift"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/ocs"
)

// factsEvery is how often labels, shutters and what else changes rarely are read.
const factsEvery = 10 * time.Second

// A switch that does not answer is tried again after retryFirst, twice that, and so on, up
// to retryMost.
const (
	retryFirst = 500 * time.Millisecond
	retryMost  = 5 * time.Second
)

// retryRefused is when a switch that refused the login is tried again: who asks it with a wrong
// password every few seconds may lock the account, also for others.
const retryRefused = time.Minute

// readTime is how long one reading may take at most, and openTime how long a session may
// take to be opened.
const (
	readTime = 5 * time.Second
	openTime = 15 * time.Second
)

// reader keeps up with one switch: it has a session of its own, so that reading never
// stands in front of a change.
type reader struct {
	s    *Session
	b    *bed
	name string
	// dial opens the session for changes, and begin one more for reading.
	dial  func(ctx context.Context) (*lab.Opened, error)
	begin func(ctx context.Context) (ocs.Switch, error)

	kick  chan struct{} // holds one: look now
	own   *ledger
	heard told
	raw   ocs.Switch // the session that is read over; set by run

	mu      sync.Mutex    // guards what follows
	opened  *lab.Opened   // for changes; nil until it is open
	dialing chan struct{} // closed when dial that is under way has returned; nil if none is
	failed  error         // of the dial that returned last
	all     bool          // labels and powers are to be read, too, at the next look
	meter   ocs.Switch    // a session for measuring; nil until one is needed
	second  ocs.Switch    // the session for reading; nil while there is none
}

func newReader(b *bed, name string) *reader {
	r := &reader{s: b.s, b: b, name: name, kick: make(chan struct{}, 1), own: newLedger()}
	r.dial = func(ctx context.Context) (*lab.Opened, error) { return b.lab.Switch(ctx, name) }
	r.begin = func(ctx context.Context) (ocs.Switch, error) { return b.lab.Session(ctx, name) }
	return r
}

// touch has everything read anew, now.
func (r *reader) touch() {
	r.mu.Lock()
	r.all = true
	r.mu.Unlock()
	r.look()
}

// look has the circuits read, now.
func (r *reader) look() {
	select {
	case r.kick <- struct{}{}:
	default:
	}
}

// command returns the session for changes, which is opened if it is not. It is waited for
// as long as ctx allows, and the opening goes on when that ends.
func (r *reader) command(ctx context.Context) (*lab.Opened, error) {
	r.mu.Lock()
	if r.opened != nil {
		defer r.mu.Unlock()
		return r.opened, nil
	}
	under := r.dialing
	if under == nil {
		under = make(chan struct{})
		r.dialing = under
		if !r.b.start1(func() { r.dialOnce(under) }) {
			r.dialing = nil
			r.mu.Unlock()
			return nil, errClosed
		}
	}
	r.mu.Unlock()
	select {
	case <-under:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.opened == nil {
		return nil, r.failed
	}
	return r.opened, nil
}

// dialOnce opens the session for changes.
func (r *reader) dialOnce(done chan struct{}) {
	ctx, cancel := context.WithTimeoutCause(r.b.ctx, openTime, fmt.Errorf("no session with %s within %v", r.name, openTime))
	defer cancel()
	o, err := r.dial(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	defer close(done)
	r.dialing, r.failed = nil, err
	if err == nil {
		r.opened = o.Around(r.gated)
	}
}

// run keeps up with the switch until ctx ends.
func (r *reader) run(ctx context.Context) {
	sw, ok := r.open(ctx)
	if !ok {
		return
	}
	// What can be told of transceivers is in registers, which only the driver itself can
	// read; all else is asked for through reading.
	r.raw, sw = sw, reading{sw}
	var listening sync.WaitGroup
	defer listening.Wait()
	listening.Go(func() { r.listen(ctx, sw) })
	r.keepUp(ctx, sw)
}

// open opens the sessions, again and again until that succeeds or ctx ends.
func (r *reader) open(ctx context.Context) (ocs.Switch, bool) {
	for pause := retryFirst; ; pause = min(2*pause, retryMost) {
		o, err := r.command(ctx)
		if err == nil {
			return r.readBy(ctx, o), ctx.Err() == nil
		}
		if ctx.Err() != nil {
			return nil, false
		}
		wait := pause
		if errors.Is(err, ocs.ErrDenied) {
			wait, err = retryRefused, fmt.Errorf("%w; see that user and password are right in the lab file, as it is asked again only every minute", err)
		}
		r.lost(err)
		r.s.update(func(p *parts) { delete(p.opening, r.name) })
		if !r.rest(ctx, wait) {
			return nil, false
		}
	}
}

// readBy opens a session for reading. Where there is only one, as on a serial line, that is
// it.
func (r *reader) readBy(ctx context.Context, o *lab.Opened) ocs.Switch {
	limited, cancel := context.WithTimeout(ctx, openTime)
	defer cancel()
	second, err := r.begin(limited)
	sessions := Fact{"sessions", "two: one for changes, one for reading"}
	if err != nil {
		sessions.Value = fmt.Sprintf("one, so reading and changes take turns: %v", err)
	} else {
		r.mu.Lock()
		r.second = second
		r.mu.Unlock()
	}
	r.s.update(func(p *parts) {
		delete(p.opening, r.name)
		p.edit(r.name, func(x *Switch) {
			x.Device, x.Facts = o.Device, []Fact{sessions}
			if o.Emulated != nil {
				x.URL = o.Emulated.URL()
			}
		})
	})
	if err != nil {
		return bare(o)
	}
	return second
}

// bare is a switch without what looks for foreign changes around it: the ledger does.
func bare(sw ocs.Switch) ocs.Switch {
	if d, ok := ocs.As[*drift.Switch](sw); ok {
		return d.Switch
	}
	return sw
}

// rest waits; false when ctx has ended. Whoever wants the switch read ends it early.
func (r *reader) rest(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-r.kick:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

// due is when things are to be read next.
type due struct{ circuits, power, facts time.Time }

func (d due) first() time.Time {
	t := d.circuits
	for _, x := range []time.Time{d.power, d.facts} {
		if x.Before(t) {
			t = x
		}
	}
	return t
}

// keepUp reads what is due until ctx ends. The circuits come first: if they cannot be read,
// the switch is lost, and nothing else is asked for.
func (r *reader) keepUp(ctx context.Context, sw ocs.Switch) {
	var next due // everything, now
	pause := retryFirst
	for ctx.Err() == nil {
		now := time.Now()
		if r.wantsAll() {
			next = due{}
		}
		if !now.Before(next.circuits) {
			if err := r.circuits(ctx, sw); err != nil {
				if ctx.Err() != nil {
					return
				}
				r.lost(err)
				next = due{} // when it is back, everything is read anew
				if !r.rest(ctx, pause) {
					return
				}
				pause = min(2*pause, retryMost)
				continue
			}
			pause = retryFirst
			next.circuits = now.Add(r.s.opt.MapEvery)
		}
		if !now.Before(next.power) {
			r.power(ctx, sw)
			next.power = now.Add(r.s.opt.PowerEvery)
		}
		if !now.Before(next.facts) {
			r.facts(ctx, r.raw)
			next.facts = now.Add(factsEvery)
		}
		if kicked := r.await(ctx, time.Until(next.first())); kicked {
			next.circuits = time.Time{}
		}
	}
}

// wantsAll reports whether everything is to be read, and forgets it.
func (r *reader) wantsAll() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.all
	r.all = false
	return all
}

// await waits until something is due, and reports whether somebody wants it to be read now.
func (r *reader) await(ctx context.Context, d time.Duration) (kicked bool) {
	t := time.NewTimer(max(d, 0))
	defer t.Stop()
	select {
	case <-t.C:
	case <-r.kick:
		return true
	case <-ctx.Done():
	}
	return false
}

// circuits reads the circuits, and who the switch says that it is when that is not known.
func (r *reader) circuits(ctx context.Context, sw ocs.Switch) error {
	ctx, cancel := context.WithTimeoutCause(ctx, readTime, fmt.Errorf("no answer within %v", readTime))
	defer cancel()
	began := time.Now()
	before := r.own.look(began)
	m, err := sw.CrossConnects(ctx)
	if err != nil {
		return err
	}
	var id ocs.Identity
	fresh := r.isNew()
	if fresh {
		if id, err = sw.Identify(ctx); err != nil {
			return err
		}
	}
	r.saw(m, before, began, id, fresh)
	return nil
}

// isNew reports whether the switch is not Up: then it is asked who it is.
func (r *reader) isNew() bool {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	x := r.s.parts.at(r.name)
	return x == nil || x.Status != Up
}

// saw enters circuits that were read, and tells what others have changed.
func (r *reader) saw(m ocs.Map, before glance, began time.Time, id ocs.Identity, fresh bool) {
	now := time.Now()
	foreign := r.own.saw(m, before)
	who, raw := r.heard.who(foreign, r.own.changedSince(now.Add(-r.s.opt.MapEvery-time.Second)), now.Add(-r.s.opt.MapEvery-time.Second))
	r.s.update(func(p *parts) {
		away := time.Duration(0)
		if fresh {
			p.edit(r.name, func(x *Switch) {
				if x.Status == Lost {
					away = now.Sub(x.Since)
				}
				x.Status, x.Since, x.Err, x.Tries, x.Identity = Up, now, nil, 0, id
			})
			if away > 0 {
				p.say(Entry{At: now, Kind: Event, Switch: r.name, Text: fmt.Sprintf("%s is back after %s", r.name, brief(away))})
			}
		}
		p.took(r.name, m, began)
		if !foreign.Empty() {
			p.drifted(r.name, Drift{At: now, Change: foreign, Who: who, Away: away > 0, Raw: raw}, r.s.opt.MapEvery)
		}
	})
}

// brief is a duration for people.
func brief(d time.Duration) string {
	unit := 100 * time.Millisecond
	if d < time.Second {
		unit = time.Millisecond
	}
	return d.Round(unit).String()
}

// drifted enters a change that was not made here.
func (p *parts) drifted(name string, d Drift, every time.Duration) {
	text := d.By() + " " + changeText(d.Change)
	if d.Away {
		text += " while it was away"
	}
	p.edit(name, func(x *Switch) {
		x.Drift = slices.Concat([]Drift{d}, x.Drift[:min(len(x.Drift), KeepDrift-1)])
	})
	for c := range d.Change.Add.All() {
		p.set(name, c, Origin{Who: "others", When: d.At})
	}
	p.say(Entry{At: d.At, Kind: Event, Switch: name, Text: name + ": " + text, Raw: d.Raw, Bad: true})
	p.byOthers(name, d, text, every)
}

// changeText is a change in words that has happened: "disconnected 1>33 and connected
// 1>36".
func changeText(c ocs.Change) string {
	text := ""
	if c.Remove.Len() > 0 {
		text = "disconnected " + c.Remove.String()
	}
	if c.Add.Len() > 0 {
		if text != "" {
			text += " and "
		}
		text += "connected " + c.Add.String()
	}
	return text
}

// power reads the monitors. Without an answer what was read last stays, and gets old; the
// circuits are read then to see whether the switch is still there.
func (r *reader) power(ctx context.Context, sw ocs.Switch) {
	meter, ok := ocs.As[ocs.PowerMeter](sw)
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	read, err := meter.Power(ctx)
	switch {
	case errors.Is(err, ocs.ErrNotSupported):
	case err != nil:
		r.complain(ctx, fmt.Errorf("its power monitors cannot be read: %w", err))
	default:
		r.s.update(func(p *parts) { p.power(r.name, read.Ports, read.Earliest) })
	}
}

// facts reads what changes rarely.
func (r *reader) facts(ctx context.Context, sw ocs.Switch) {
	ctx, cancel := context.WithTimeout(ctx, 2*readTime)
	defer cancel()
	f, err := readFacts(ctx, sw)
	if err != nil {
		r.complain(ctx, err)
	}
	r.s.update(func(p *parts) {
		p.edit(r.name, func(x *Switch) {
			if f.Labels != nil {
				x.Labels = f.Labels
			}
			if f.Shut != nil {
				x.Shut = f.Shut
			}
			x.Shutters = x.Shutters || f.Shutters
			x.Monitored = x.Monitored || f.Monitored
			if err == nil || len(f.Modules) > 0 {
				x.Modules = f.Modules
			}
			kept := x.Facts[:min(1, len(x.Facts))] // how many sessions there are
			if err == nil || len(f.Facts) > 0 {
				x.Facts = slices.Concat(kept, f.Facts)
			}
		})
	})
}

// complain writes an error of a reading to the log, each text once in a row, and has the
// circuits read to see whether the switch is still there.
func (r *reader) complain(ctx context.Context, err error) {
	if r.b.ctx.Err() != nil {
		return
	}
	text := fmt.Sprintf("%s: %v", r.name, err)
	if r.heard.once(text) {
		r.s.say(Entry{Kind: Event, Switch: r.name, Text: text, Bad: true})
	}
	r.look()
}

// lost enters that the switch did not answer.
func (r *reader) lost(err error) {
	now := time.Now()
	r.s.chunks.add(chunk{at: now, name: r.name}) // its sessions have ended
	r.s.update(func(p *parts) {
		was := p.at(r.name)
		if was == nil {
			return
		}
		if was.Status != Lost {
			text := fmt.Sprintf("%s does not answer any more: %v", r.name, err)
			if was.MapAt.IsZero() {
				text = fmt.Sprintf("%s cannot be reached: %v", r.name, err)
			}
			p.say(Entry{At: now, Kind: Event, Switch: r.name, Text: text, Bad: true})
		}
		p.edit(r.name, func(x *Switch) {
			if x.Status == Lost {
				x.Tries++
			} else {
				x.Status, x.Since, x.Tries = Lost, now, 0
			}
			x.Err = err
		})
	})
}

// listen follows what the switch reports, if it reports anything, until ctx ends.
func (r *reader) listen(ctx context.Context, sw ocs.Switch) {
	n, ok := ocs.As[ocs.Notifier](sw)
	if !ok {
		return
	}
	for pause := retryFirst; ; pause = min(2*pause, retryMost) {
		began := time.Now()
		err := n.Notify(ctx, r.event)
		if errors.Is(err, ocs.ErrNotSupported) {
			return
		}
		if time.Since(began) > retryMost {
			pause = retryFirst
		}
		t := time.NewTimer(pause)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return
		}
	}
}

// event takes in what the switch reports. It must not call the switch.
func (r *reader) event(e ocs.Event) {
	r.heard.add(e)
	if e.Severity == "critical" || e.Severity == "major" || e.Severity == "minor" {
		r.s.update(func(p *parts) {
			p.edit(r.name, func(x *Switch) {
				a := Alarm{At: e.Received, Severity: e.Severity, Port: e.Port, Text: e.Text}
				x.Alarms = slices.Concat([]Alarm{a}, x.Alarms[:min(len(x.Alarms), KeepDrift-1)])
			})
			p.say(Entry{At: e.Received, Kind: Event, Switch: r.name, Text: fmt.Sprintf("%s: %s alarm: %s", r.name, e.Severity, e.Text), Raw: e.Raw, Bad: e.Severity != "minor"})
		})
	}
	if e.Lost > 0 {
		r.s.say(Entry{Kind: Event, Switch: r.name, Text: fmt.Sprintf("%s: %d reports came faster than they could be read, and are lost", r.name, e.Lost), Bad: true})
	}
	r.look()
}

// close ends the sessions that the reader has opened beside the one for changes.
func (r *reader) close() error {
	r.mu.Lock()
	second, meter := r.second, r.meter
	r.second, r.meter = nil, nil
	r.mu.Unlock()
	var errs []error
	for _, sw := range []ocs.Switch{second, meter} {
		if sw != nil {
			errs = append(errs, sw.Close())
		}
	}
	return errors.Join(errs...)
}

// told is what a switch has reported lately: it may say who has changed what.
type told struct {
	mu    sync.Mutex // guards what follows
	list  []ocs.Event
	wrote string // what was complained about last
}

// mostTold is how many reports are kept to be asked who it was.
const mostTold = 32

func (t *told) add(e ocs.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.list = append(last(t.list, mostTold-1), e)
}

// once reports whether a complaint is another than the last one.
func (t *told) once(text string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	first := t.wrote != text
	t.wrote = text
	return first
}

// who returns who has made a change, as far as reports since a time tell, and the report. One that
// names ports must name one of the change's; one that names none counts only if we have
// changed nothing ourselves, since it may be of that.
func (t *told) who(c ocs.Change, ours bool, since time.Time) (name, raw string) {
	if c.Empty() {
		return "", ""
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	ports := c.Ports()
	for _, e := range slices.Backward(t.list) {
		if e.Received.Before(since) {
			break
		}
		named := portsIn(e)
		about := slices.ContainsFunc(named, func(p ocs.Port) bool { return slices.Contains(ports, p) })
		if !about && (len(named) > 0 || ours) {
			continue
		}
		if by := userIn(e); by != "" {
			return by, e.Raw
		}
	}
	return "", ""
}

// byUser is how reports name a user: Polatis units in a leaf of their notifications, others in
// words at the end of a text.
var byUser = []*regexp.Regexp{
	regexp.MustCompile(`<(?:\w+:)?notification-username[^>]*>\s*([^<\s]+)\s*<`),
	regexp.MustCompile(`(?i)\bby (?:user )?"?([A-Za-z0-9][\w.@-]*)`),
	regexp.MustCompile(`(?i)\buser(?:name)?\s*[=:]\s*"?([A-Za-z0-9][\w.@-]*)`),
}

// userIn returns the user that a report names, "" if it names none.
func userIn(e ocs.Event) string {
	for _, re := range byUser {
		for _, text := range []string{e.Raw, e.Text} {
			if sub := re.FindStringSubmatch(text); sub != nil {
				return sub[1]
			}
		}
	}
	return ""
}

// inPorts are the ports that a report names: "Port 1,36", "port-id 3".
var inPorts = regexp.MustCompile(`(?i)\bports? ?[- ]?(\d{1,5})(?:[,>&-](\d{1,5}))?`)

// portsIn returns the ports that a report names.
func portsIn(e ocs.Event) []ocs.Port {
	var ports []ocs.Port
	if e.Port != 0 {
		ports = append(ports, e.Port)
	}
	for _, sub := range inPorts.FindAllStringSubmatch(e.Text, -1) {
		for _, text := range sub[1:] {
			if n, err := strconv.Atoi(text); err == nil {
				ports = append(ports, ocs.Port(n))
			}
		}
	}
	return ports
}
