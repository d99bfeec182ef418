package probe

import (
	"fmt"
	"time"

	"github.com/ocslab/ocslab/timeline"
)

// lane is the sender's side of a flow.
type lane struct {
	*track
	head   header
	packet [packetSize]byte
	out    func(payload []byte) error
}

func newLane(run uint64, number uint32, t *track, from, to *end, port uint16) *lane {
	l := &lane{track: t, head: header{run: run, flow: number}}
	if from.Conn != nil {
		l.out = func(payload []byte) error { return from.Conn.Send(payload, to.Addr) }
	} else {
		l.out = from.sock.sender(to.Addr, port)
	}
	return l
}

// send paces the packets of all lanes. It keeps to a grid of instants and leaves out those
// that it is too late for, since a burst would say no more than its first packet.
func (p *Probe) send(lanes []*lane) {
	wait := p.metronome()
	pace := int64(p.opt.Pace)
	last := p.now() // when it last began with the first lane
	for due := last; wait(due); due += pace {
		now := p.now()
		if missed := (now - due) / pace; missed > 0 {
			due += missed * pace
			for _, l := range lanes {
				l.skipped.Add(uint64(missed))
			}
			if now-last >= int64(p.opt.Silence) {
				p.tell(Event{
					Kind: Gap, Interval: timeline.Between(last, now), Lost: int(missed), Late: true,
					Text: fmt.Sprintf("the sender was held up for %v; give it more CPU, or fewer flows", time.Duration(now-last)),
				})
			}
		}
		for _, l := range lanes {
			p.sendOne(l)
		}
		last = now
	}
}

func (p *Probe) sendOne(l *lane) {
	l.head.sent = p.now()
	seq, ok := l.begin(l.head.sent)
	if !ok {
		return
	}
	l.head.seq = seq
	l.head.put(l.packet[:])
	err := l.out(l.packet[:])
	if news := l.end(seq, p.now(), err); news != "" {
		p.gap(l.flow, l.head.sent, fmt.Sprintf("packets cannot be sent: %s", news))
	}
}

// sleepTo waits for an instant with a timer. It reports false when the probe is to
// stop.
func (p *Probe) sleepTo(due int64) bool {
	select {
	case <-p.stop:
		return false
	case <-time.After(time.Duration(due - p.now())):
		return true
	}
}

// spinTo waits for an instant without sleeping.
func (p *Probe) spinTo(due int64) bool {
	for {
		select {
		case <-p.stop:
			return false
		default:
			if p.now() >= due {
				return true
			}
		}
	}
}
