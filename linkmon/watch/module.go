package watch

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ocslab/ocslab/linkmon/optics"
	"github.com/ocslab/ocslab/linkmon/phy"
	"github.com/ocslab/ocslab/timeline"
)

// take begins to watch the firmware and the module of an interface.
func (w *Watch) take(ctx context.Context, host, iface string) {
	h := w.hosts[host]
	subject := host + "/" + iface
	err := errOff
	if w.opt.Firmware >= 0 {
		err = w.ports.take(h, subject, iface)
	}
	w.source(Source{Host: host, Subject: subject, Name: phy.SourceIB, On: err == nil, Why: why(err)})
	w.source(w.linkState(ctx, h, subject, iface))
	period, err := w.opticsPeriod(h)
	var r optics.Reader
	if err == nil {
		r, err = h.OpenModule(iface)
	}
	if err == nil {
		s := &optics.Sampler{Reader: r, Period: period}
		if _, err = s.Identify(ctx); err == nil {
			ctx, cancel := context.WithCancel(ctx)
			w.mu.Lock()
			w.opened[subject] = cancel
			w.mu.Unlock()
			w.readers.Go(func() {
				defer r.Close()
				w.sample(ctx, s, &optics.Tracker{Subject: subject, Host: host, Lag: orDefault(h.Lag, DefaultLag)})
			})
		} else {
			r.Close()
		}
	}
	s := Source{Host: host, Subject: subject, Name: optics.Source, On: err == nil, Why: why(err)}
	if r, ok := r.(interface{ DisturbsLinkTiming() bool }); ok && err == nil && r.DisturbsLinkTiming() {
		s.Why = "each reading holds the lock that link events need: announcements may come late; the counters do not mind"
	}
	w.source(s)
}

func why(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// drop ends what take began.
func (w *Watch) drop(host, iface string) {
	subject := host + "/" + iface
	w.ports.drop(subject)
	w.mu.Lock()
	defer w.mu.Unlock()
	if cancel := w.opened[subject]; cancel != nil {
		cancel()
		delete(w.opened, subject)
	}
	if e := w.reasons[subject]; e != nil {
		e.Close()
		delete(w.reasons, subject)
	}
	for i := range w.sources {
		if s := &w.sources[i]; s.Subject == subject {
			s.On, s.Why = false, "the interface is gone"
		}
	}
}

var (
	errOpticsOff = errors.New("modules are not read (--optics 20ms), since reading one through ethtool holds the lock that link events need")
	errOff       = errors.New("switched off")
)

// opticsPeriod returns how often the modules of a host are to be read, or why not.
func (w *Watch) opticsPeriod(h *Host) (time.Duration, error) {
	switch {
	case w.opt.Optics < 0:
		return 0, errOff
	case w.opt.Optics > 0:
		return w.opt.Optics, nil
	case h.Tree != "":
		return DefaultOptics, nil
	}
	return 0, errOpticsOff
}

// OpenModule opens the memory of an interface's module.
func (h *Host) OpenModule(iface string) (optics.Reader, error) {
	switch {
	case h.Module != nil:
		return h.Module(iface)
	case h.Tree != "":
		return optics.OpenFile(filepath.Join(h.Tree, "module", iface, "eeprom"))
	}
	return optics.OpenEthtool(h.NS, iface)
}

// sample reads a module until ctx ends. What cannot be read is told once, and again
// when it has been readable meanwhile.
func (w *Watch) sample(ctx context.Context, s *optics.Sampler, t *optics.Tracker) {
	blind := int64(0) // since when it cannot be read; 0: it can
	last := timeline.Interval{}
	busy := s.Period
	for {
		s.Period = max(busy, time.Duration(w.rest.Load()))
		sample, err := s.Sample(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && blind == 0:
			blind = timeline.HostAxis().NS(time.Now())
			w.add(Record{Note: &Note{Kind: Gap, Subject: t.Subject, Host: t.Host, Source: optics.Source,
				Interval: timeline.Between(max(last.Latest, blind-int64(time.Second)), blind), Text: err.Error()}})
		case err == nil:
			blind, last = 0, sample.Interval
			if m, ok := t.Add(sample); ok {
				w.mark(m)
			}
		}
	}
}

// ports reads the state of all ports that firmware reports.
type ports struct {
	period time.Duration
	rest   *atomic.Int64 // ns between two readings at least

	mu   sync.Mutex // guards list
	list map[string]*port
}

type port struct {
	ib      *phy.IBPort
	tracker phy.Tracker
}

func newPorts(period time.Duration, rest *atomic.Int64) *ports {
	return &ports{period: period, rest: rest, list: map[string]*port{}}
}

func (p *ports) take(h *Host, subject, iface string) error {
	root, err := treeOf(h)
	if err != nil {
		return err
	}
	defer root.Close()
	ib, err := phy.FindIB(root, iface)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.list[subject] = &port{ib: ib, tracker: phy.Tracker{Subject: subject, Host: h.Name}}
	return nil
}

// treeOf opens the directory that has class/infiniband.
func treeOf(h *Host) (*os.Root, error) {
	if h.Tree != "" {
		return os.OpenRoot(h.Tree)
	}
	return phy.OpenSys(h.NS)
}

func (p *ports) drop(subject string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if x := p.list[subject]; x != nil {
		x.ib.Close()
		delete(p.list, subject)
	}
}

// run reads until ctx ends.
func (p *ports) run(ctx context.Context, mark func(timeline.Mark)) {
	if p.period < 0 {
		return
	}
	due := time.Now()
	pace := time.NewTimer(p.period)
	defer pace.Stop()
	for {
		due = due.Add(max(p.period, time.Duration(p.rest.Load())))
		pace.Reset(time.Until(due))
		if now := time.Now(); due.Before(now) { // what was missed is not made up for
			due = now
		}
		select {
		case <-pace.C:
		case <-ctx.Done():
			p.mu.Lock()
			defer p.mu.Unlock()
			for _, x := range p.list {
				x.ib.Close()
			}
			return
		}
		p.mu.Lock()
		for _, x := range p.list {
			if state, at, err := x.ib.Read(); err == nil {
				if m, ok := x.tracker.Add(state, at); ok {
					mark(m)
				}
			}
		}
		p.mu.Unlock()
	}
}
