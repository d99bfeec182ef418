package fabric

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/ocslab/ocslab/internal/netns"
)

// memory is a ground without a kernel.
type memory struct{}

func newMemory() ground { return memory{} }

func (memory) host(string) (*netns.NS, error) { return nil, nil }

func (memory) device(_ *host, l link) (device, error) { return &memoryDevice{link: l}, nil }

func (memory) introduce(*host, device, []link) error { return nil }

func (memory) sleeper() (sleeper, error) { return newTimerSleeper(), nil }

func (memory) close() error { return nil }

// memoryDevice is a NIC in memory. Its frames are the addresses of sender and
// receiver, and the payload.
type memoryDevice struct {
	link link

	mu     sync.Mutex // guards what follows
	wires  []*Wire
	closed bool
}

// addrLen is the length of an address in a frame.
const addrLen = 4

func (d *memoryDevice) index() int { return d.link.nth }

func (d *memoryDevice) carrier(bool) error { return nil }

var (
	errNotMine = errors.New("the frame is for another host")
	errFull    = errors.New("the queue is full")
)

func (d *memoryDevice) write(frame []byte) error {
	from, to := netip.AddrFrom4([addrLen]byte(frame)), netip.AddrFrom4([addrLen]byte(frame[addrLen:]))
	if to != d.link.addr.Addr() {
		return errNotMine
	}
	p := packet{slices.Clone(frame[2*addrLen:]), from, time.Now()}
	d.mu.Lock()
	defer d.mu.Unlock()
	var err error
	for _, w := range d.wires {
		select {
		case w.in <- p:
		default:
			err = errFull
		}
	}
	return err
}

// flush has nothing to do: a frame is handed on by whoever sends it.
func (d *memoryDevice) flush() time.Time { return time.Now() }

func (d *memoryDevice) close() error {
	d.mu.Lock()
	wires := d.wires
	d.wires, d.closed = nil, true
	d.mu.Unlock()
	for _, w := range wires {
		w.end()
	}
	return nil
}

// Wire sends and receives at a NIC in memory, as a datagram socket does at a real
// one. It is safe for concurrent use.
type Wire struct {
	dev  *memoryDevice
	in   chan packet
	done chan struct{}
	once sync.Once
}

type packet struct {
	payload []byte
	from    netip.Addr
	at      time.Time
}

// wireQueue is how many packets wait to be received before they are lost.
const wireQueue = 1024

// Wire opens a way to send and receive at a NIC of a fabric on the rung [Memory].
// Each Wire that is open at a NIC receives every packet. Close it.
func (f *Fabric) Wire(host, name string) (*Wire, error) {
	n, err := f.find(host, name)
	if err != nil {
		return nil, err
	}
	d, ok := n.dev.(*memoryDevice)
	if !ok {
		return nil, fmt.Errorf("fabric: %s is a network interface; open a socket in the namespace of its host instead of a wire", n.key)
	}
	w := &Wire{dev: d, in: make(chan packet, wireQueue), done: make(chan struct{})}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, fmt.Errorf("fabric: %s: %w", n.key, net.ErrClosed)
	}
	d.wires = append(d.wires, w)
	return w, nil
}

// Send sends payload to the NIC of that address. That it cannot get there (no
// light, no carrier, another NIC at the end of the circuit) is no error. A Wire that
// is closed, or whose NIC was removed, gives [net.ErrClosed].
func (w *Wire) Send(payload []byte, to netip.Addr) error {
	select {
	case <-w.done:
		return w.wrap("send", net.ErrClosed)
	default:
	}
	const headers = 28 // of IPv4 and UDP, so that the same payloads fit as in a datagram
	if most := w.dev.link.mtu - headers; len(payload) > most {
		return w.wrap("send", fmt.Errorf("%d bytes; at most %d fit into a packet", len(payload), most))
	}
	if !network.Contains(to) {
		return w.wrap("send", fmt.Errorf("%v is no address of the fabric (%v)", to, network))
	}
	frame := make([]byte, 0, 2*addrLen+len(payload))
	frame = append(frame, w.dev.link.addr.Addr().AsSlice()...)
	frame = append(frame, to.AsSlice()...)
	w.dev.link.sends(append(frame, payload...))
	return nil
}

// Recv waits for a packet, copies as much of it into buf as fits, and returns how
// much that is, who sent it, and when it arrived. After Close, or when the NIC was
// removed, it gives [net.ErrClosed].
func (w *Wire) Recv(buf []byte) (n int, from netip.Addr, at time.Time, err error) {
	select {
	case <-w.done:
		return 0, netip.Addr{}, time.Time{}, w.wrap("receive", net.ErrClosed)
	case p := <-w.in:
		return copy(buf, p.payload), p.from, p.at, nil
	}
}

// Close ends Recv and all that follows. It returns nil.
func (w *Wire) Close() error {
	w.dev.mu.Lock()
	w.dev.wires = slices.DeleteFunc(w.dev.wires, func(o *Wire) bool { return o == w })
	w.dev.mu.Unlock()
	w.end()
	return nil
}

func (w *Wire) end() { w.once.Do(func() { close(w.done) }) }

func (w *Wire) wrap(what string, err error) error {
	return fmt.Errorf("fabric: wire at %s: %s: %w", w.dev.link.name, what, err)
}
