package watch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ocslab/ocslab/linkmon"
	"github.com/ocslab/ocslab/linkmon/optics"
	"github.com/ocslab/ocslab/linkmon/phy"
	"github.com/ocslab/ocslab/linkmon/probe"
	"github.com/ocslab/ocslab/timeline"
)

// DefaultFirmware is the time between two readings of the state that firmware
// reports. One takes a few microseconds a port.
const DefaultFirmware = time.Millisecond

// DefaultOptics is the time between two readings of an emulated module. Real ones
// take longer, and disturb what is measured; see [Options.Optics].
const DefaultOptics = 5 * time.Millisecond

// Options say what is watched, and how.
type Options struct {
	Hosts []Host

	// Of package linkmon: time between sweeps of the carrier counters, sweeps
	// without pause, and forcing the kernel to announce changes at once.
	Poll        time.Duration
	Tight, Sync bool
	NoCounters  bool

	// Firmware is the time between two readings of the ports' state; 0 is
	// DefaultFirmware, below 0 is never.
	Firmware time.Duration
	// Optics is the time between two readings of the modules; 0 is DefaultOptics
	// where a host has a Tree and else never, since reading a real module through
	// ethtool holds the lock that link events of all interfaces need. Below 0 is
	// never.
	Optics time.Duration

	// Reasons asks drivers through ethtool why a link is down, each time its carrier
	// has gone. That takes the lock that link events of all interfaces need.
	Reasons bool
	// Kmsg reads what drivers log of the links of this machine's own interfaces.
	Kmsg bool

	// Probe is the traffic between NICs of this machine's hosts; without flows
	// there is none.
	Probe probe.Options
	// Pairs are flows between NICs of other machines, at the Pace of Probe: a packet
	// goes there and back, see [SourceRoundTrip].
	Pairs []probe.Flow

	// Lenient begins without the hosts that are out of reach. The agent of such a host, or one
	// that has ended, is started again and again until that succeeds, and one that does not
	// answer is not waited for until it does. The host is a source that is off meanwhile, with
	// why. Without Lenient a host that is out of reach is an error.
	Lenient bool

	// Tap, if not nil, is called for each record when it is added, by the goroutine that
	// saw it, one call at a time and in the order of the queue; the queue is as without it.
	// It must not block, nor call the Watch.
	Tap func(Record)
}

// Host is a set of interfaces in one network namespace of this machine, or those
// of another machine.
type Host struct {
	linkmon.Host

	// Tree is a directory with class/infiniband and module/NIC/eeprom in place of the
	// machine's own, as emulated hosts publish them.
	Tree string
	// Module opens the module of an interface in place of what Tree has of it. Nil reads Tree.
	Module func(iface string) (optics.Reader, error)
	// Lag is how old the values of a module may be; 0 is DefaultLag.
	Lag time.Duration

	// Agent is the command that runs ocslab on another machine, such as
	// ["ssh", "gpu1", "ocslab"]; the host's NS, Counters and Tree are then of no
	// meaning here.
	Agent []string
}

// DefaultLag is how long a module may take to bring its readings up to date
// (SFF-8636 section 6.2.3 and the data sheets: flags within 100 ms).
const DefaultLag = 100 * time.Millisecond

// Watch watches hosts. It is safe for concurrent use, but records are for one
// reader.
type Watch struct {
	opt     Options
	monitor *linkmon.Monitor // nil when every host is another machine
	hosts   map[string]*Host // those of this machine, by name
	ports   *ports
	rest    *atomic.Int64 // ns; see Rest
	stop    context.CancelFunc
	readers sync.WaitGroup // everything that adds records

	stopAgents context.CancelFunc // ends those who start agents again
	keepers    sync.WaitGroup     // those
	pairing    sync.Mutex         // held while agents are asked to send traffic to each other

	mu         sync.Mutex      // guards what follows
	agents     []*agent        // that run
	silent     map[string]bool // hosts whose agents do not answer
	probes     []*probe.Probe
	reflectors []*probe.Reflector
	queue      []Record
	more       chan struct{} // closed and replaced when the queue grows or ends
	ended      bool          // nothing will be added
	err        error         // why it ended early
	sources    []Source
	passed     int             // transitions of the monitor that are or were in the queue
	gone       map[string]bool // interfaces that were there, by subject
	heard      []Announcement
	opened     map[string]context.CancelFunc // samplers of modules, by subject
	reasons    map[string]*phy.Ethtool       // whom to ask, by subject
}

// Source is something that is watched, or why it is not.
type Source struct {
	Host    string `json:"host"`
	Subject string `json:"subject,omitempty"` // one interface or flow, or "" for all of the host
	Name    string `json:"source"`
	On      bool   `json:"on"`
	Why     string `json:"why,omitempty"` // for people: one sentence
}

// Announcement is how late the kernel announced a transition of carrier to those who
// listen to it.
type Announcement struct {
	Subject string
	Late    timeline.Interval // from the transition to the announcement
}

// Start begins to watch. The context bounds the start only; call Close to end.
func Start(ctx context.Context, opt Options) (w *Watch, err error) {
	run, stop := context.WithCancel(context.WithoutCancel(ctx))
	keeping, stopAgents := context.WithCancel(run)
	w = &Watch{
		opt: opt, stop: stop, stopAgents: stopAgents, more: make(chan struct{}), silent: map[string]bool{},
		hosts: map[string]*Host{}, rest: new(atomic.Int64), gone: map[string]bool{}, opened: map[string]context.CancelFunc{}, reasons: map[string]*phy.Ethtool{},
	}
	w.ports = newPorts(orDefault(opt.Firmware, DefaultFirmware), w.rest)
	defer func() {
		if err != nil {
			err = errors.Join(err, w.Close())
			w = nil
		}
	}()
	var local []linkmon.Host
	var later []*Host // with agents that are not waited for
	for i := range opt.Hosts {
		h := &opt.Hosts[i]
		switch {
		case len(h.Agent) > 0 && opt.Lenient:
			w.source(Source{Host: h.Name, Name: sourceAgent, Why: "it is being reached"})
			later = append(later, h)
			continue
		case len(h.Agent) > 0:
			a, err := w.startAgent(ctx, h)
			if err != nil {
				return w, err
			}
			w.join(a)
			continue
		}
		local = append(local, h.Host)
		w.hosts[h.Name] = h
	}
	if len(local) > 0 {
		w.monitor, err = linkmon.Start(run, linkmon.Options{
			Hosts: local, Poll: opt.Poll, Tight: opt.Tight, Sync: opt.Sync, NoCounters: opt.NoCounters,
		})
		if err != nil {
			return w, err
		}
		for _, s := range w.monitor.Sources() {
			w.source(Source{Host: s.Host, Name: s.Name, On: s.On, Why: s.Why})
		}
		for _, l := range w.monitor.Links() {
			w.take(run, l.Host, l.Interface)
		}
		for _, h := range local {
			if h.NS == nil && h.Counters == nil {
				var names []string
				for _, l := range w.monitor.Links() {
					if l.Host == h.Name {
						names = append(names, l.Interface)
					}
				}
				w.watchLog(run, h.Name, names)
			}
		}
		w.readers.Go(func() { w.watchLinks(run) })
	}
	w.readers.Go(func() { w.ports.run(run, w.mark) })
	if len(opt.Probe.Flows) > 0 {
		w.startProbe(run)
	}
	if len(opt.Pairs) > 0 && !opt.Lenient {
		w.startPairs(ctx)
	}
	for _, h := range later {
		w.keepers.Go(func() { w.keepAgent(keeping, h) })
	}
	return w, nil
}

// startProbe begins to send. Without traffic the rest is still worth watching, so a
// probe that cannot be had is a source that is off.
func (w *Watch) startProbe(ctx context.Context) {
	p, err := probe.Start(ctx, w.opt.Probe)
	if err != nil {
		for _, e := range w.opt.Probe.Endpoints {
			if e.Conn != nil {
				e.Conn.Close()
			}
		}
		for _, f := range w.opt.Probe.Flows {
			w.source(Source{Subject: f.String(), Name: sourceProbe, Why: err.Error()})
		}
		return
	}
	for _, f := range p.Flows() {
		w.source(Source{Subject: f.Flow.String(), Name: sourceProbe, On: f.Err == nil, Why: why(f.Err)})
	}
	w.follow(p, sourceProbe)
}

func orDefault(d, def time.Duration) time.Duration {
	if d == 0 {
		return def
	}
	return d
}

// The times between two looks of a Watch that rests: at carriers, and at firmware and modules.
const (
	RestCarriers = 2 * time.Millisecond
	RestOthers   = 20 * time.Millisecond
)

// Rest makes the watch look rarely while nobody measures, or, with false, as often as the
// Options say again. Nothing is missed by that; when it was is known less well, as the marks
// say. Agents and traffic do not rest. It may be called at any time; [Watch.Flush] returns when
// it has taken effect on carriers.
func (w *Watch) Rest(on bool) {
	carriers, others := time.Duration(0), time.Duration(0)
	if on {
		carriers, others = RestCarriers, RestOthers
	}
	w.rest.Store(int64(others))
	if w.monitor != nil {
		w.monitor.Rest(carriers)
	}
}

// Next waits for records and returns all there are. After Close, when all have been
// read, it returns io.EOF.
func (w *Watch) Next(ctx context.Context) ([]Record, error) {
	for {
		w.mu.Lock()
		records, more, ended, err := w.queue, w.more, w.ended, w.err
		w.queue = nil
		w.mu.Unlock()
		switch {
		case len(records) > 0:
			return records, nil
		case err != nil:
			return nil, err
		case ended:
			return nil, io.EOF
		}
		select {
		case <-more:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// Drain returns the records there are, without waiting.
func (w *Watch) Drain() []Record {
	w.mu.Lock()
	defer w.mu.Unlock()
	records := w.queue
	w.queue = nil
	return records
}

// add appends records.
func (w *Watch) add(records ...Record) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.addLocked(records...)
}

func (w *Watch) addLocked(records ...Record) {
	for _, r := range records {
		if n := r.Note; n != nil && n.Kind == Link {
			switch n.Event {
			case linkmon.Added.String():
				delete(w.gone, n.Subject)
			case linkmon.Removed.String():
				w.gone[n.Subject] = true
			case linkmon.Renamed.String():
				delete(w.gone, n.Subject)
				w.gone[n.Host+"/"+n.Text] = true
			}
		}
	}
	if !w.ended {
		w.queue = append(w.queue, records...)
		if w.opt.Tap != nil {
			for _, r := range records {
				w.opt.Tap(r)
			}
		}
		close(w.more)
		w.more = make(chan struct{})
	}
}

func (w *Watch) mark(m timeline.Mark) { w.add(Record{Mark: &m}) }

// caughtUp waits until the transitions that the monitor has reported are in the
// queue.
func (w *Watch) caughtUp(ctx context.Context) error {
	reported := w.monitor.Account().Reported
	for {
		w.mu.Lock()
		passed, more, over := w.passed, w.more, w.ended || w.err != nil
		w.mu.Unlock()
		if passed >= reported || over {
			return nil
		}
		select {
		case <-more:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (w *Watch) source(s Source) {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := slices.IndexFunc(w.sources, func(x Source) bool { return x.Host == s.Host && x.Subject == s.Subject && x.Name == s.Name })
	if i >= 0 {
		w.sources[i] = s
		return
	}
	w.sources = append(w.sources, s)
}

// watchLinks passes on what the monitor tells.
func (w *Watch) watchLinks(ctx context.Context) {
	for {
		e, err := w.monitor.Next(context.Background())
		if err != nil {
			if !errors.Is(err, io.EOF) {
				w.fail(err)
			}
			return
		}
		switch e.Kind {
		case linkmon.Transition, linkmon.Announcement:
			m, _ := e.Mark()
			if e.Kind == linkmon.Announcement {
				late := e.Seen.Sub(e.Interval)
				m.Detail = fmt.Sprintf("announced %v later", time.Duration(late.Mid()).Round(time.Microsecond))
				w.mu.Lock()
				w.heard = append(w.heard, Announcement{Subject: m.Subject, Late: late})
				w.mu.Unlock()
			}
			if e.Kind == linkmon.Transition {
				w.mu.Lock()
				w.passed++ // the mark follows before anybody is woken
				w.addLocked(Record{Mark: &m})
				w.mu.Unlock()
			} else {
				w.mark(m)
			}
			if e.Kind == linkmon.Transition && !e.Up {
				w.reason(ctx, m.Subject, m.Host)
			}
			continue
		case linkmon.Added:
			w.take(ctx, e.Host, e.Interface)
		case linkmon.Removed:
			w.drop(e.Host, e.Interface)
		case linkmon.Renamed:
			w.drop(e.Host, e.Text)
			w.take(ctx, e.Host, e.Interface)
		}
		n := Note{Kind: Link, Event: e.Kind.String(), Host: e.Host, Interval: e.Interval, Source: e.Source, Text: e.Text}
		if e.Interface != "" {
			n.Subject = e.Host + "/" + e.Interface
		}
		if e.Kind == linkmon.Gap {
			n.Kind, n.Event = Gap, lateEvent(e.Late)
		}
		w.add(Record{Note: &n})
	}
}

// watchTraffic passes on what a probe tells.
func (w *Watch) watchTraffic(p *probe.Probe, source string) {
	for {
		e, err := p.Next(context.Background())
		if err != nil {
			if !errors.Is(err, io.EOF) {
				w.fail(err)
			}
			return
		}
		if m, ok := e.Mark(); ok {
			m.Source = source
			w.mark(m)
			continue
		}
		n := &Note{Kind: Gap, Event: lateEvent(e.Late), Host: e.Host, Interval: e.Interval, Source: source, Text: e.Text}
		if e.Flow != (probe.Flow{}) {
			n.Subject = e.Flow.String()
		}
		w.add(Record{Note: n})
	}
}

// lateEvent is the event of a gap.
func lateEvent(late bool) string {
	if late {
		return Late
	}
	return ""
}

// fail ends the stream with an error.
func (w *Watch) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil && !w.ended {
		w.err = err
		close(w.more)
		w.more = make(chan struct{})
	}
}

// Flush returns when the records of all that the carrier counters counted before the
// call are there to be read, also from other machines.
func (w *Watch) Flush(ctx context.Context) error {
	var errs []error
	if w.monitor != nil {
		errs = append(errs, w.monitor.Flush(ctx), w.caughtUp(ctx))
	}
	for _, a := range w.running() {
		if w.opt.Lenient && w.isSilent(a.host.Name) {
			continue
		}
		err := a.flush(ctx)
		if err != nil && w.opt.Lenient && ctx.Err() == nil {
			err = nil // a note tells it, and what the host covers
			w.hush(a, true)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// Sources returns what is watched, and what is not and why.
func (w *Watch) Sources() []Source {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.sources)
}

// covering are the sources that see a stage.
var covering = map[timeline.Stage][]string{
	timeline.CarrierDown: {"counters", "netlink"},
	timeline.CarrierUp:   {"counters", "netlink"},
	timeline.Dark:        {optics.Source},
	timeline.Light:       {optics.Source},
	timeline.Firmware:    {phy.SourceIB}, // not every driver logs
	timeline.TrafficLost: {sourceProbe, SourceRoundTrip},
	timeline.Traffic:     {sourceProbe, SourceRoundTrip},
}

// Covers reports whether a source that is on would see the subject reach the stage.
// An interface that is gone reaches none.
func (w *Watch) Covers(stage timeline.Stage, subject string) bool {
	host, _, _ := strings.Cut(subject, "/")
	from, to, _ := strings.Cut(subject, ">")
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.gone[from] || w.gone[to] || w.silent[hostOf(from)] || w.silent[hostOf(to)] {
		return false
	}
	for _, s := range w.sources {
		if s.On && slices.Contains(covering[stage], s.Name) && (s.Subject == subject || s.Subject == "" && s.Host == host) {
			return true
		}
	}
	return false
}

// Carriers returns which interfaces of this machine's hosts have carrier now, by
// subject.
func (w *Watch) Carriers() map[string]bool {
	up := map[string]bool{}
	if w.monitor != nil {
		for _, l := range w.monitor.Links() {
			up[l.Host+"/"+l.Interface] = l.Carrier
		}
	}
	return up
}

// Announcements returns how late the kernel told of transitions so far.
func (w *Watch) Announcements() []Announcement {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.heard)
}

// Close ends it. Records that are there can still be read.
func (w *Watch) Close() error {
	var errs []error
	w.stopAgents()
	w.keepers.Wait()
	w.mu.Lock()
	probes, reflectors := w.probes, w.reflectors
	w.mu.Unlock()
	for _, p := range probes {
		errs = append(errs, p.Close())
	}
	for _, r := range reflectors {
		errs = append(errs, r.Close())
	}
	if w.monitor != nil {
		errs = append(errs, w.monitor.Close())
	}
	for _, a := range w.running() {
		errs = append(errs, a.close())
	}
	w.stop()
	w.readers.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	for subject, e := range w.reasons {
		errs = append(errs, e.Close())
		delete(w.reasons, subject)
	}
	if !w.ended {
		w.ended = true
		close(w.more)
	}
	return errors.Join(errs...)
}
