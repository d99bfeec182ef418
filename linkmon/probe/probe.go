package probe

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/ocslab/ocslab/internal/netns"
	"github.com/ocslab/ocslab/timeline"
)

// Defaults of [Options].
const (
	DefaultPace = 100 * time.Microsecond
	// DefaultSilence is longer than a busy machine usually holds a packet back. It costs no precision: the
	// intervals of outages do not depend on it.
	DefaultSilence = 100 * time.Millisecond // or 20 paces if that is longer
	DefaultPort    = 61733                  // dynamic (RFC 6335), above the ports that Linux gives out by itself
)

// Limits of [Options].
const (
	MinPace    = 20 * time.Microsecond
	MaxPace    = time.Second
	MaxSilence = time.Minute
)

// Endpoint is a NIC, or what stands for one.
type Endpoint struct {
	Name string    // as in flows: "gpu1/ens1f0"
	NS   *netns.NS // where the NIC is; nil is where the program runs. It must stay open until [Probe.Close]

	// Interface is what the socket is bound to (SO_BINDTODEVICE in socket(7)); "" leaves
	// the way to the routing table.
	Interface string
	Addr      netip.Addr // of the interface, IPv4 or IPv6

	// MAC is that of the interface. When set, a permanent neighbour entry is made for it
	// where packets to it are sent from, and taken away by [Probe.Close] unless it was
	// there before. That needs CAP_NET_ADMIN. When not, the caller has seen to it.
	MAC net.HardwareAddr

	// Reflected is an endpoint on another machine, where a [Reflector] sends packets
	// back. A flow to it is there and back: what is sent by From arrives at From
	// again. Of the rest only Name, Addr and MAC are then used.
	Reflected bool

	// Conn is used instead of sockets when it is not nil, as in an emulation without
	// network devices. Of the rest only Name and Addr are then used. The probe
	// closes it.
	Conn Conn
}

// Conn sends and receives packets for one endpoint. Send is called from one
// goroutine and Recv from another, and Close from any.
type Conn interface {
	// Send does not wait. An error says that the packet will not arrive.
	Send(payload []byte, to netip.Addr) error
	// Recv waits for a packet and says who sent it and when it arrived; the time
	// needs a monotonic reading, and the zero time stands for "before now". It must be
	// handed over at once: what is handed over later than Silence after it was sent
	// counts as missing. An error says that there will be no more.
	Recv(buf []byte) (n int, from netip.Addr, at time.Time, err error)
	// Close makes Recv return.
	Close() error
}

// Options of [Start]. Zero fields stand for the defaults.
type Options struct {
	Endpoints []Endpoint
	Flows     []Flow
	Host      string // of the marks

	// Pace is the time from packet to packet of each flow, from MinPace to MaxPace. A
	// resumption is known about to the pace. One thread sends for all flows and needs
	// some 10 µs for a packet, so many flows need a longer pace; SendGapP50 and
	// Skipped of FlowState tell.
	Pace time.Duration

	// Spin makes the sender wait without sleeping. That takes a whole core, and
	// makes paces below DefaultPace possible.
	Spin bool

	// Silence is how long after its send call a packet counts as missing. It is at least
	// two paces and at most MaxSilence, and should be longer than any delay of
	// packets that do arrive.
	Silence time.Duration

	Port uint16 // UDP, from and to
}

func (o *Options) check() error {
	if o.Pace == 0 {
		o.Pace = DefaultPace
	}
	if o.Silence == 0 {
		o.Silence = max(DefaultSilence, 20*o.Pace)
	}
	if o.Port == 0 {
		o.Port = DefaultPort
	}
	if o.Pace < MinPace || o.Pace > MaxPace {
		return fmt.Errorf("probe: pace %v: want %v to %v", o.Pace, MinPace, MaxPace)
	}
	if o.Silence < 2*o.Pace || o.Silence > MaxSilence {
		return fmt.Errorf("probe: silence of %v: want at least two paces of %v, and at most %v", o.Silence, o.Pace, MaxSilence)
	}
	if len(o.Flows) == 0 {
		return errors.New("probe: no flows; name at least one pair of endpoints")
	}
	ends := map[string]Endpoint{}
	for _, e := range o.Endpoints {
		switch {
		case e.Name == "" || ends[e.Name].Name != "":
			return fmt.Errorf("probe: endpoint %q: each needs a name of its own", e.Name)
		case !e.Addr.IsValid():
			return fmt.Errorf("probe: endpoint %s has no address", e.Name)
		case e.Reflected && e.Conn != nil:
			return fmt.Errorf("probe: endpoint %s: nothing is reflected through a Conn", e.Name)
		case len(e.MAC) != 0 && len(e.MAC) != 6:
			return fmt.Errorf("probe: endpoint %s: MAC address %v: want six bytes", e.Name, e.MAC)
		}
		ends[e.Name] = e
	}
	flows := map[Flow]bool{}
	for _, f := range o.Flows {
		for _, name := range []string{f.From, f.To} {
			if ends[name].Name == "" {
				return fmt.Errorf("probe: flow %v: there is no endpoint %q", f, name)
			}
		}
		if f.From == f.To || flows[f] {
			return fmt.Errorf("probe: flow %v: want two different endpoints, and each flow once", f)
		}
		if ends[f.From].Reflected {
			return fmt.Errorf("probe: flow %v: %s is on another machine and cannot send from here", f, f.From)
		}
		if (ends[f.From].Conn == nil) != (ends[f.To].Conn == nil) {
			return fmt.Errorf("probe: flow %v: want a Conn at both ends or at none", f)
		}
		flows[f] = true
	}
	return nil
}

// Probe sends and receives until it is closed. Its methods may be called from
// several goroutines at once.
type Probe struct {
	opt    Options
	axis   timeline.Axis
	run    uint64
	ends   []*end
	tracks []*track // as Options.Flows
	backs  []*end   // where their packets arrive

	stop    chan struct{}
	closing sync.Once
	closed  error          // of closing
	working sync.WaitGroup // the sender and the receiver
	readers sync.WaitGroup // of Conns

	more  chan struct{} // holds one: there are events
	mu    sync.Mutex    // guards queue and over
	queue []Event
	over  bool
}

// end is an endpoint at work.
type end struct {
	Endpoint
	sock *socket // nil with a Conn, and when err is not
	err  error
	to   []*track // flows that end here
	tidy []func() error
}

// Start begins to send and to watch. An endpoint that cannot be used is no error as
// long as a flow is left that can: the others are told of in a [Gap] each and in
// [FlowState].Err. The end of ctx closes the probe. After an error the Conns are open
// still.
func Start(ctx context.Context, opt Options) (*Probe, error) {
	if err := opt.check(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("probe: %w", err)
	}
	var run [8]byte
	_, _ = rand.Read(run[:]) // never fails
	p := &Probe{
		opt: opt, axis: timeline.HostAxis(), run: binary.BigEndian.Uint64(run[:]),
		stop: make(chan struct{}), more: make(chan struct{}, 1),
	}
	byName := map[string]*end{}
	for _, e := range opt.Endpoints {
		x := &end{Endpoint: e}
		if e.Conn == nil && !e.Reflected {
			x.sock, x.err = listen(e, opt.Port, p.axis)
		}
		byName[e.Name] = x
		p.ends = append(p.ends, x)
	}
	var lanes []*lane
	var failed []error
	for i, f := range opt.Flows {
		from, to := byName[f.From], byName[f.To]
		t := newTrack(f, opt.Silence, opt.Pace)
		p.tracks = append(p.tracks, t)
		back, port := to, opt.Port
		if to.Reflected {
			back, port = from, reflectorPort(opt.Port)
		}
		p.backs = append(p.backs, back)
		if t.failed = errors.Join(from.err, to.err); t.failed != nil {
			failed = append(failed, fmt.Errorf("flow %v: %w", f, t.failed))
			p.gap(f, 0, fmt.Sprintf("no traffic: %v", t.failed))
			continue
		}
		if err := p.befriend(from, to); err != nil {
			p.gap(f, 0, fmt.Sprintf("%v; after a loss of carrier, the time of ARP may be measured", err))
		}
		back.to = append(back.to, t)
		lanes = append(lanes, newLane(p.run, uint32(i), t, from, to, port))
	}
	if len(lanes) == 0 {
		for _, x := range p.ends {
			x.close()
		}
		return nil, fmt.Errorf("probe: no flow can be set up: %w", errors.Join(failed...))
	}
	p.working.Go(func() { p.send(lanes) })
	p.working.Go(p.receive)
	for _, x := range p.ends {
		if x.Conn != nil {
			p.readers.Go(func() { p.read(x) })
		}
	}
	go func() {
		select {
		case <-ctx.Done():
			p.Close()
		case <-p.stop:
		}
	}()
	return p, nil
}

// Close ends the probe and frees what it holds. Events that were not read can
// be; there will be none about packets that are on their way. It can be called again.
func (p *Probe) Close() error {
	p.closing.Do(func() {
		close(p.stop)
		p.working.Wait()
		var errs []error
		for _, x := range p.ends {
			if x.Conn != nil {
				errs = append(errs, x.Conn.Close())
			}
		}
		p.readers.Wait()
		for _, x := range p.ends {
			errs = append(errs, x.close())
		}
		p.mu.Lock()
		p.over = true
		p.mu.Unlock()
		p.wake()
		if err := errors.Join(errs...); err != nil {
			p.closed = fmt.Errorf("probe: %w", err)
		}
	})
	return p.closed
}

// close frees what listen and befriend have made.
func (x *end) close() error {
	var errs []error
	for _, tidy := range x.tidy {
		errs = append(errs, tidy())
	}
	if x.sock != nil {
		errs = append(errs, x.sock.close())
	}
	return errors.Join(errs...)
}

// Next returns the next event, in order of becoming known; of one flow that is also
// the order of happening. Events wait for it without limit. The error is that of ctx, or
// io.EOF after Close when all have been read.
func (p *Probe) Next(ctx context.Context) (Event, error) {
	for {
		if e, ok, over := p.pop(); ok {
			return e, nil
		} else if over {
			return Event{}, io.EOF
		}
		select {
		case <-p.more:
		case <-ctx.Done():
			return Event{}, ctx.Err()
		}
	}
}

func (p *Probe) pop() (e Event, ok, over bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.queue) > 0 {
		e, p.queue, ok = p.queue[0], p.queue[1:], true
	}
	if len(p.queue) > 0 || p.over {
		p.wake() // the next one who waits
	}
	return e, ok, p.over
}

func (p *Probe) wake() {
	select {
	case p.more <- struct{}{}:
	default:
	}
}

// tell queues an event. Its times are widened by what the axis leaves open.
func (p *Probe) tell(e Event) {
	e.Host = p.opt.Host
	for _, i := range []*timeline.Interval{
		&e.Interval, &e.LastBefore.Sent, &e.LastBefore.Received, &e.FirstAfter.Sent, &e.FirstAfter.Received,
	} {
		if *i != (timeline.Interval{}) {
			*i = p.axis.Span(p.axis.Time(i.Earliest), p.axis.Time(i.Latest))
		}
	}
	p.mu.Lock()
	p.queue = append(p.queue, e)
	p.mu.Unlock()
	p.wake()
}

// gap tells of a Gap that was noticed now and began at from, if that is not 0.
func (p *Probe) gap(f Flow, from int64, text string) {
	now := p.now()
	if from == 0 {
		from = now
	}
	p.tell(Event{Kind: Gap, Flow: f, Interval: timeline.Between(from, now), Text: text})
}

func (p *Probe) now() int64 { return p.axis.NS(time.Now()) }

// Flows returns how the flows stand, in the order of Options.Flows.
func (p *Probe) Flows() []FlowState {
	states := make([]FlowState, len(p.tracks))
	for i, t := range p.tracks {
		states[i] = t.state()
	}
	return states
}
