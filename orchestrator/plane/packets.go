package plane

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ocslab/ocslab/emulator/fabric"
	"github.com/ocslab/ocslab/linkmon/probe"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/topology/opus"
)

// Defaults of PacketsOptions.
const (
	DefaultRepeat    = 4 * time.Millisecond
	DefaultDatagrams = 16
	DefaultPort      = 61734 // dynamic (RFC 6335), beside that of package probe
)

// Limits of PacketsOptions.
const (
	MaxDatagrams = 1 << 16
	MinRepeat    = 100 * time.Microsecond
)

// ErrStalled: nothing of an operation got through for as long as Patience. RDMA would have given up long before.
var ErrStalled = errors.New("nothing gets through")

// PacketsOptions say between which NICs packets are sent.
type PacketsOptions struct {
	Fabric *fabric.Fabric
	// NIC returns which NIC of the fabric a duplex port of the job is: a host, and the name of an interface of it.
	NIC func(rail string, port int) (host, name string, err error)
	// Assignments are for Outcome.Uses only.
	Assignments map[string]opus.Assignment // by Transfer.Rail

	Datagrams int           // of an operation, in each direction of each circuit; 0 is DefaultDatagrams
	Repeat    time.Duration // after which a datagram is sent again; 0 is DefaultRepeat
	Port      uint16        // UDP, from and to; 0 is DefaultPort
	Patience  time.Duration // for members that do not come, and without any acknowledgement; 0 is DefaultPatience
	Clock     *Clock        // nil is package time; it must outlast the plane
}

// Packets is a plane of real datagrams between the NICs of a fabric, on any of its rungs: network devices with sockets
// that are bound to them, or NICs in memory.
//
// An operation sends, along each circuit of Transfer.Uses and in both directions, a number of small UDP datagrams, spread evenly
// over its Duration times its Slowdown. The NIC at the other end acknowledges each; what is not acknowledged is sent again
// and again, as RDMA does. It is complete when all members have all acknowledgements. So it stalls while there is no light, and as
// long as the firmware of a NIC takes to bring its link up. Begin and end of its outcomes are measured. Nothing is lost for good, so
// Outcome.Lost is 0: what was lost on the way is in Repeated, and Dark says how much was sent by NICs without carrier.
//
// Bytes do not matter. Hosts do not forward: on the giant ring, each circuit that an operation
// uses gets its datagrams, which shows that all of the way is there.
type Packets struct {
	opt PacketsOptions
	meetings
	nextFlow atomic.Uint64
	readers  sync.WaitGroup

	endsMu sync.Mutex // guards what follows
	ends   map[string]*endpoint
	flows  sync.Map // uint64 to *flow
}

// endpoint is a NIC.
type endpoint struct {
	host, name string
	addr       netip.Addr
	conn       probe.Conn
}

// NewPackets returns the plane. NICs are opened when they are first used. Close it before the fabric.
func NewPackets(opt PacketsOptions) (*Packets, error) {
	switch {
	case opt.Fabric == nil || opt.NIC == nil:
		return nil, fmt.Errorf("%w: a plane of packets needs a fabric, and which of its NICs the ports are", ErrTransfer)
	case opt.Datagrams < 0 || opt.Datagrams > MaxDatagrams:
		return nil, fmt.Errorf("%w: %d datagrams: want 1 to %d", ErrTransfer, opt.Datagrams, MaxDatagrams)
	case opt.Repeat != 0 && opt.Repeat < MinRepeat:
		return nil, fmt.Errorf("%w: datagrams are repeated after %v: want %v or more", ErrTransfer, opt.Repeat, MinRepeat)
	}
	if opt.Datagrams == 0 {
		opt.Datagrams = DefaultDatagrams
	}
	if opt.Repeat == 0 {
		opt.Repeat = DefaultRepeat
	}
	if opt.Port == 0 {
		opt.Port = DefaultPort
	}
	p := &Packets{opt: opt, ends: map[string]*endpoint{}}
	p.init(opt.Patience, opt.Clock, nil)
	return p, nil
}

// Close ends the operations under way, with ErrClosed, and the sockets.
func (p *Packets) Close() error {
	p.close()
	p.endsMu.Lock()
	for _, e := range p.ends {
		e.conn.Close()
	}
	p.ends = nil
	p.endsMu.Unlock()
	p.readers.Wait()
	return nil
}

// endpoint returns the NIC of a duplex port.
func (p *Packets) endpoint(rail string, port int) (*endpoint, error) {
	host, name, err := p.opt.NIC(rail, port)
	if err != nil {
		return nil, err
	}
	full := host + "/" + name
	p.endsMu.Lock()
	defer p.endsMu.Unlock()
	if p.ends == nil {
		return nil, ErrClosed
	}
	if e := p.ends[full]; e != nil {
		return e, nil
	}
	for _, h := range p.opt.Fabric.Hosts() {
		for _, i := range h.NICs {
			if h.Name != host || i.Name != name {
				continue
			}
			e := &endpoint{host: host, name: name, addr: i.Addr.Addr()}
			if h.NS == nil {
				e.conn, err = p.opt.Fabric.Wire(host, name)
			} else {
				e.conn, err = openSocket(h.NS, name, e.addr, p.opt.Port)
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w", full, err)
			}
			p.ends[full] = e
			p.readers.Go(func() { p.read(e) })
			return e, nil
		}
	}
	return nil, fmt.Errorf("%w: the fabric has no NIC %s", ErrTransfer, full)
}

// A datagram is the magic, what it is, the number of its flow and its own.
const (
	magic        = "ocslabop"
	datagram     = 'd'
	acknowledged = 'a'
	packetSize   = len(magic) + 1 + 8 + 4
)

func packet(kind byte, flow uint64, seq uint32) []byte {
	b := append(make([]byte, 0, packetSize), magic...)
	b = append(b, kind)
	b = binary.BigEndian.AppendUint64(b, flow)
	return binary.BigEndian.AppendUint32(b, seq)
}

// read acknowledges what comes to a NIC, and hands acknowledgements to their flows, until the NIC is closed.
func (p *Packets) read(e *endpoint) {
	buf := make([]byte, packetSize+1)
	for {
		n, from, _, err := e.conn.Recv(buf)
		if err != nil {
			return
		}
		if n != packetSize || string(buf[:len(magic)]) != magic {
			continue
		}
		kind, rest := buf[len(magic)], buf[len(magic)+1:]
		id, seq := binary.BigEndian.Uint64(rest), binary.BigEndian.Uint32(rest[8:])
		switch kind {
		case datagram:
			_ = e.conn.Send(packet(acknowledged, id, seq), from) // lost like any other: the datagram comes again
		case acknowledged:
			if f, ok := p.flows.Load(id); ok {
				f.(*flow).ack(from, seq)
			}
		}
	}
}

// flow is one direction of one circuit in one operation.
type flow struct {
	id       uint64
	from, to *endpoint
	progress chan<- struct{} // of the operation; holds one

	mu    sync.Mutex // guards what follows
	acked []bool
	left  int
}

func (f *flow) ack(from netip.Addr, seq uint32) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if from.Unmap() != f.to.addr || int(seq) >= len(f.acked) || f.acked[seq] {
		return
	}
	f.acked[seq] = true
	f.left--
	select {
	case f.progress <- struct{}{}:
	default:
	}
}

// Do implements [Plane].
func (p *Packets) Do(ctx context.Context, t Transfer) (Outcome, error) {
	if err := t.check(); err != nil {
		return Outcome{}, err
	}
	out := Outcome{}
	progress := make(chan struct{}, 1)
	var flows []*flow
	for _, c := range t.Uses {
		a, err := p.endpoint(t.Rail, c.A)
		if err != nil {
			return Outcome{}, fmt.Errorf("%v: %w", t, err)
		}
		b, err := p.endpoint(t.Rail, c.B)
		if err != nil {
			return Outcome{}, fmt.Errorf("%v: %w", t, err)
		}
		for _, ends := range [][2]*endpoint{{a, b}, {b, a}} {
			flows = append(flows, &flow{
				id: p.nextFlow.Add(1), from: ends[0], to: ends[1], progress: progress,
				acked: make([]bool, p.opt.Datagrams), left: p.opt.Datagrams,
			})
		}
	}
	var err error
	if out.Uses, err = p.uses(t); err != nil {
		return Outcome{}, err
	}
	m, err := p.join(t, t.takes())
	if err != nil {
		return Outcome{}, err
	}
	defer p.leave(m)
	if err := p.gather(ctx, m, t); err != nil {
		return Outcome{}, err
	}
	for _, f := range flows {
		p.flows.Store(f.id, f)
		defer p.flows.Delete(f.id)
	}
	err = p.send(ctx, m, flows, progress, &out)
	if err == nil {
		err = p.await(ctx, m.alarm.done) // also when there is nothing to send
	}
	if err == nil {
		err = p.completed(ctx, m)
	}
	if err != nil {
		err = fmt.Errorf("%v, which was under way: %w", t, err)
		p.fail(m, err)
		return Outcome{}, err
	}
	out.BeginNS, out.EndNS = m.begin, m.ended
	return out, nil
}

func (p *Packets) uses(t Transfer) (ocs.Map, error) {
	a, ok := p.opt.Assignments[t.Rail]
	if !ok {
		return ocs.Map{}, nil
	}
	all, err := crossConnects(a, t, t.Uses)
	if err != nil {
		return ocs.Map{}, err
	}
	m, err := ocs.NewMap(all...)
	if err != nil {
		return ocs.Map{}, fmt.Errorf("%v: %w: its circuits: %w", t, ErrTransfer, err)
	}
	return m, nil
}

// send sends the datagrams of the flows, each in its time, and again until it is acknowledged.
func (p *Packets) send(ctx context.Context, m *meeting, flows []*flow, progress <-chan struct{}, out *Outcome) error {
	n := p.opt.Datagrams
	due := make([][]int64, len(flows)) // when each datagram is to be sent next
	first := make([][]bool, len(flows))
	for i := range flows {
		due[i], first[i] = make([]int64, n), make([]bool, n)
		for seq := range n {
			due[i][seq], first[i][seq] = m.begin+int64(m.longest)/int64(n)*int64(seq), true
		}
	}
	lately := nowNS() // something was acknowledged
	for {
		now, next, left := nowNS(), never, 0
		for i, f := range flows {
			f.mu.Lock()
			acked := append([]bool(nil), f.acked...)
			left += f.left
			f.mu.Unlock()
			for seq, done := range acked {
				if done {
					continue
				}
				if due[i][seq] <= now {
					out.Sent++
					if !first[i][seq] {
						out.Repeated++
					}
					first[i][seq] = false
					if _, _, carrier, err := p.opt.Fabric.Counts(f.from.host, f.from.name); err == nil && !carrier {
						out.Dark++
					}
					_ = f.from.conn.Send(packet(datagram, f.id, uint32(seq)), f.to.addr) // it is repeated
					due[i][seq] = now + int64(p.opt.Repeat)
				}
				next = min(next, due[i][seq])
			}
		}
		if left == 0 {
			return nil
		}
		if now-lately > int64(p.patience) && now > m.begin+int64(m.longest) {
			return p.stalled(flows)
		}
		alarm := p.clock.alarm(next)
		select {
		case <-progress:
			lately = nowNS()
		case <-alarm.done:
		case <-ctx.Done():
			alarm.stop()
			return context.Cause(ctx)
		case <-p.end:
			alarm.stop()
			return ErrClosed
		}
		alarm.stop()
	}
}

// stalled says where nothing gets through.
func (p *Packets) stalled(flows []*flow) error {
	for _, f := range flows {
		f.mu.Lock()
		left := f.left
		f.mu.Unlock()
		if left > 0 {
			return fmt.Errorf("%w: %s/%s has waited %v for %s/%s to acknowledge %d of %d datagrams", ErrStalled,
				f.from.host, f.from.name, p.patience, f.to.host, f.to.name, left, p.opt.Datagrams)
		}
	}
	return ErrStalled
}
