package linkmon

import "github.com/ocslab/ocslab/timeline"

// toldLocked takes a message from the kernel. The carrier in it is told to the link only
// if carriers is set: else the same is told by other means.
func (h *host) toldLocked(msg linkMessage, seen timeline.Interval, carriers bool) {
	n := notice{msg.index, msg.carrier, msg.changes, msg.counted, seen, fromNetlink}
	l := h.links[msg.index]
	if msg.gone {
		delete(h.early, msg.index)
		h.dead[msg.index] = true
		if l != nil && l.farewell == nil {
			l.farewell = &n
		}
		h.look()
		return
	}
	delete(h.dead, msg.index)
	if l == nil || l.farewell != nil {
		h.noteEarlyLocked(n, carriers)
		return
	}
	if msg.name != "" {
		l.renameLocked(msg.name, seen, fromNetlink)
	}
	if msg.oper != "" {
		l.operateLocked(msg.oper, seen, fromNetlink)
	}
	if carriers {
		l.noticeLocked(n)
	}
}

// noteEarlyLocked keeps what is told of a link that no scan has shown yet. The first
// message is kept in any case: it tells what the counter was when the link came.
func (h *host) noteEarlyLocked(n notice, carriers bool) {
	const most = 64
	if notices := h.early[n.index]; len(notices) == 0 || carriers && len(notices) < most {
		h.early[n.index] = append(notices, n)
	}
	h.look()
}

// stampedLocked takes what the stamper wrote down about a message.
func (h *host) stampedLocked(n notice) {
	if l := h.links[n.index]; l != nil && l.farewell == nil {
		l.noticeLocked(n)
		return
	}
	if !h.dead[n.index] {
		h.noteEarlyLocked(n, true)
	}
}

func (l *link) renameLocked(name string, at timeline.Interval, source string) {
	old := l.acct.Interface
	if name == old {
		return
	}
	l.acct.Interface = name
	e := l.eventLocked(Renamed, at, source)
	e.Text = old
	l.host.m.pushLocked(e)
}

func (l *link) operateLocked(state string, at timeline.Interval, source string) {
	if state == l.oper {
		return
	}
	l.oper = state
	e := l.eventLocked(OperState, at, source)
	e.Text = state
	l.host.m.pushLocked(e)
}
