package watch

import (
	"context"
	"errors"
	"fmt"

	"github.com/ocslab/ocslab/linkmon/phy"
)

// SourceEthtool is what a driver says of a link through ethtool: asked once each
// time its carrier has gone, for the reason.
const SourceEthtool = "ethtool"

var (
	errNotReal  = errors.New("the interface is emulated")
	errAskEvent = errors.New("not asked why a link is down (--reasons), since that takes the lock that link events need")
	errAskLog   = errors.New("the kernel log is not read (--kmsg); some drivers write of their links there")
)

// linkState says whether the driver of an interface tells of its link.
func (w *Watch) linkState(ctx context.Context, h *Host, subject, iface string) Source {
	s := Source{Host: h.Name, Subject: subject, Name: SourceEthtool}
	if h.Counters != nil {
		s.Why = errNotReal.Error()
		return s
	}
	e, err := phy.OpenEthtool(h.NS, iface)
	if err == nil {
		var l phy.Link
		l, _, err = e.Read(ctx)
		switch {
		case err != nil:
			e.Close()
		case !w.opt.Reasons:
			e.Close()
			s.Why = fmt.Sprintf("%v; now it is %v", errAskEvent, l)
			return s
		default:
			w.mu.Lock()
			w.reasons[subject] = e
			w.mu.Unlock()
		}
	}
	s.On, s.Why = err == nil, why(err)
	return s
}

// reason asks why a carrier went, if somebody wants to know.
func (w *Watch) reason(ctx context.Context, subject, host string) {
	w.mu.Lock()
	e := w.reasons[subject]
	w.mu.Unlock()
	if e == nil {
		return
	}
	if l, at, err := e.Read(ctx); err == nil && !l.Up {
		w.add(Record{Note: &Note{Kind: Link, Event: "reason", Subject: subject, Host: host, Interval: at, Source: SourceEthtool, Text: l.String()}})
	}
}

// watchLog follows the kernel log for the interfaces of the hosts that share this
// machine's.
func (w *Watch) watchLog(ctx context.Context, host string, interfaces []string) {
	s := Source{Host: host, Name: phy.SourceKmsg}
	if !w.opt.Kmsg {
		s.Why = errAskLog.Error()
		w.source(s)
		return
	}
	k, err := phy.OpenKmsg(interfaces...)
	s.On, s.Why = err == nil, why(err)
	if err != nil {
		w.source(s)
		return
	}
	if bound, err := k.Calibration(); err != nil {
		s.Why = "its clock could not be compared with ours: " + err.Error()
	} else {
		s.Why = fmt.Sprintf("its clock is known to ±%v", bound)
	}
	w.source(s)
	w.readers.Go(func() {
		defer k.Close()
		for {
			e, err := k.Next(ctx)
			switch {
			case ctx.Err() != nil:
				return
			case err != nil:
				w.source(Source{Host: host, Name: phy.SourceKmsg, Why: err.Error()})
				return
			}
			if m, ok := e.Mark(host); ok {
				w.mark(m)
				continue
			}
			n := Note{Kind: Gap, Host: host, Interval: e.Interval, Source: phy.SourceKmsg, Text: e.Text}
			if e.Interface != "" { // a link that went down: no stage, but worth knowing
				n.Kind, n.Event, n.Subject = Link, "logged", host+"/"+e.Interface
			}
			w.add(Record{Note: &n})
		}
	})
}
