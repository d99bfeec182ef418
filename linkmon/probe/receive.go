package probe

import (
	"fmt"
	"time"

	"github.com/ocslab/ocslab/timeline"
)

// round is the time between readings of the sockets. Packets are stamped by the kernel, so
// reading them later costs no precision, but saves waking a thread for each.
const round = time.Millisecond

// receive empties the sockets and judges the flows, round by round.
func (p *Probe) receive() {
	every := min(round, p.opt.Silence/4)
	ticks := time.NewTicker(every)
	defer ticks.Stop()
	for {
		select {
		case <-p.stop:
			return
		case <-ticks.C:
		}
		for _, x := range p.ends {
			horizon := p.now()
			if x.sock != nil {
				horizon = p.drain(x)
			}
			for _, t := range x.to {
				t.judge(horizon, p.tell)
			}
		}
	}
}

// drain takes in what has arrived at x, and returns a time before which all has.
func (p *Probe) drain(x *end) (horizon int64) {
	before := x.sock.horizon
	dropped, err := x.sock.drain(func(payload []byte, at func(sent int64) timeline.Interval, read int64) {
		if h, err := parse(payload); err == nil {
			p.arrive(x, arrival{h, at(h.sent), read})
		}
	})
	if err != nil && !x.sock.broken {
		x.sock.broken = true
		p.gap(Flow{}, before, fmt.Sprintf("packets to %s cannot be read: %v", x.Name, err))
	}
	if dropped > 0 {
		for _, t := range x.to {
			t.spoil()
		}
		p.tell(Event{
			Kind: Gap, Interval: timeline.Between(before, p.now()), Lost: dropped, Late: true,
			Text: fmt.Sprintf("the socket of %s dropped %d packets that had arrived; give the receiver more CPU or raise net.core.rmem_max", x.Name, dropped),
		})
	}
	return x.sock.horizon
}

func (p *Probe) arrive(x *end, a arrival) {
	if a.run != p.run || uint64(a.flow) >= uint64(len(p.tracks)) || p.backs[a.flow] != x {
		return
	}
	p.tracks[a.flow].arrive(a, p.tell)
}

// read takes in what arrives at a Conn.
func (p *Probe) read(x *end) {
	buf := make([]byte, 2*packetSize)
	for {
		n, _, at, err := x.Conn.Recv(buf)
		read := p.now()
		if err != nil {
			select {
			case <-p.stop:
			default:
				p.gap(Flow{}, read, fmt.Sprintf("no more packets to %s: %v", x.Name, err))
			}
			return
		}
		h, err := parse(buf[:n])
		if err != nil {
			continue
		}
		stamp := timeline.Between(h.sent, read)
		if point := timeline.Point(p.axis.NS(at)); !at.IsZero() && stamp.Contains(point.Earliest) {
			stamp = point
		}
		p.arrive(x, arrival{h, stamp, read})
	}
}
