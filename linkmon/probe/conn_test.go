package probe_test

import (
	"errors"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ocslab/ocslab/linkmon/probe"
)

// fake is a Conn whose packets take a while, and are lost while it is closed.
type fake struct {
	name    netip.Addr
	peer    *fake
	delay   time.Duration
	closed  atomic.Bool
	broken  atomic.Bool            // Send fails
	stalls  atomic.Bool            // the next Send takes 100 ms
	last    atomic.Pointer[[]byte] // sent
	packets chan fakePacket
	end     chan struct{}
	once    sync.Once
}

type fakePacket struct {
	data []byte
	at   time.Time
}

func newFake() *fake { return &fake{packets: make(chan fakePacket, 1000), end: make(chan struct{})} }

func (f *fake) Send(payload []byte, to netip.Addr) error {
	if f.stalls.CompareAndSwap(true, false) {
		time.Sleep(100 * time.Millisecond)
	}
	if f.broken.Load() {
		return errors.New("no fibre")
	}
	if f.closed.Load() || to != f.peer.name {
		return nil
	}
	data := append([]byte(nil), payload...)
	f.last.Store(&data)
	time.AfterFunc(f.delay, func() { f.peer.packets <- fakePacket{data, time.Now()} })
	return nil
}

func (f *fake) Recv(buf []byte) (int, netip.Addr, time.Time, error) {
	select {
	case p := <-f.packets:
		return copy(buf, p.data), f.peer.name, p.at, nil
	case <-f.end:
		return 0, netip.Addr{}, time.Time{}, errors.New("closed")
	}
}

func (f *fake) Close() error { f.once.Do(func() { close(f.end) }); return nil }

func fakes(delay time.Duration) (a, b *fake, opt probe.Options) {
	a, b = newFake(), newFake()
	a.name, b.name = netip.MustParseAddr("fd00::1"), netip.MustParseAddr("fd00::2")
	a.peer, b.peer, a.delay, b.delay = b, a, delay, delay
	return a, b, probe.Options{
		Endpoints: []probe.Endpoint{{Name: "a", Addr: a.name, Conn: a}, {Name: "b", Addr: b.name, Conn: b}},
		Flows:     []probe.Flow{{From: "a", To: "b"}, {From: "b", To: "a"}},
	}
}

func TestConn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _, opt := fakes(30 * time.Microsecond)
		p := start(t, opt)
		now := func() int64 { return axis.NS(time.Now()) }
		time.Sleep(10*time.Millisecond + 50*time.Microsecond)
		a.closed.Store(true)
		closed := now()
		time.Sleep(5 * time.Millisecond)
		a.closed.Store(false)
		open := now()
		lost, resumed := nextOf(t, p, opt.Flows[0]), nextOf(t, p, opt.Flows[0])
		if lost.Kind != probe.Lost || !lost.Contains(closed) || lost.Width() > 140*time.Microsecond {
			t.Errorf("%v %+v, want a loss at %d", lost, lost.Interval, closed)
		}
		if resumed.Kind != probe.Resumed || !resumed.Contains(open) || resumed.Lost != 50 || resumed.Width() > 140*time.Microsecond {
			t.Errorf("%v %+v, want resumption at %d", resumed, resumed.Interval, open)
		}

		a.broken.Store(true)
		if e := nextOf(t, p, opt.Flows[0]); e.Kind != probe.Lost || !strings.HasSuffix(e.Text, "could not be sent: no fibre") || now()-e.Latest > int64(2*time.Millisecond) {
			t.Errorf("%v at %d, want it at once", e, now())
		}
		a.Close() // by somebody else
		next(t, p, "end of Recv", func(e probe.Event) bool { return strings.Contains(e.Text, "no more packets to a") })
		if s := p.Flows(); s[0].Refused["no fibre"] == 0 || s[0].Alive || s[0].SendGapMax != probe.DefaultPace {
			t.Errorf("%+v", s)
		}
		rest(t, p)
	})
}

// What comes later than Silence is missing, and what comes within it is not.
func TestConn_Slow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, tt := range []struct {
			delay time.Duration
			late  bool
		}{{probe.DefaultSilence - 2*time.Millisecond, false}, {probe.DefaultSilence + 2*time.Millisecond, true}} {
			_, _, opt := fakes(tt.delay)
			p := start(t, opt)
			time.Sleep(time.Second)
			if s := p.Flows()[0]; s.Alive == tt.late || (s.Late > 0) != tt.late || (s.Lost > 0) != tt.late {
				t.Errorf("delay of %v: %+v", tt.delay, s)
			}
			if events := rest(t, p); len(events) > 0 {
				t.Errorf("delay of %v: %v", tt.delay, events)
			}
		}
	})
}

func TestConn_Spin(t *testing.T) {
	a, _, opt := fakes(0)
	opt.Spin, opt.Pace = true, time.Millisecond
	p := start(t, opt)
	until(t, "received", func() bool { return p.Flows()[0].Received > 3 && p.Flows()[0].JudgedNS > 0 })
	a.closed.Store(true)
	// On a busy machine there may have been outages before: a sender that spins takes a processor.
	next(t, p, "lost", func(e probe.Event) bool { return e.Flow == opt.Flows[0] && e.Kind == probe.Lost })
}

// A sender that is held up makes a gap and no outage, and no burst afterwards.
func TestConn_Starved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _, opt := fakes(0)
		p := start(t, opt)
		time.Sleep(10 * time.Millisecond)
		a.stalls.Store(true)
		from := axis.NS(time.Now())
		e := next(t, p, "gap", func(probe.Event) bool { return true })
		if e.Kind != probe.Gap || e.Flow != (probe.Flow{}) || e.Earliest < from-int64(2*opt.Pace)-int64(probe.DefaultPace)*2 ||
			(e.Width()-100*time.Millisecond).Abs() > time.Millisecond || e.Lost < 990 {
			t.Errorf("%v %+v after %d", e, e, from)
		}
		time.Sleep(100 * time.Millisecond)
		if s := p.Flows()[0]; s.Lost > 0 || s.Skipped != uint64(e.Lost) || s.SendGapMax < 99*time.Millisecond || !s.Alive || s.Sent > 1300 {
			t.Errorf("%+v", s)
		}
		if events := rest(t, p); len(events) > 0 {
			t.Error(events)
		}
	})
}

// Packets of another run are ignored, whatever else they say.
func TestConn_OtherRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, opt := fakes(0)
		p := start(t, opt)
		time.Sleep(10*time.Millisecond + 350*time.Microsecond) // the last packet has no verdict yet
		packet := *a.last.Load()
		for _, change := range []func([]byte){
			func(d []byte) { d[8]++ },    // another run
			func(d []byte) { d[19] = 9 }, // no such flow
			func(d []byte) { d[19] = 1 }, // one that ends elsewhere
			func(d []byte) { d[24] = 1 }, // never sent
			func(d []byte) { d[39]++ },   // at another time
		} {
			data := append([]byte(nil), packet...)
			change(data)
			b.packets <- fakePacket{data, time.Now()}
		}
		time.Sleep(time.Millisecond)
		for _, s := range p.Flows() {
			if s.Duplicated+s.Late > 0 || s.Received > s.Sent {
				t.Errorf("%+v", s)
			}
		}
		rest(t, p)
	})
}
