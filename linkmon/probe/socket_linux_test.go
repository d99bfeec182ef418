package probe

import (
	"context"
	"errors"
	"io"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ocslab/ocslab/timeline"
)

// Loopback needs no privilege, but its port must be free.
var local = []Endpoint{
	{Name: "a", Addr: netip.MustParseAddr("127.0.7.1")},
	{Name: "b", Addr: netip.MustParseAddr("127.0.7.2")},
}

const localPort = 61734

// shrink makes the receive buffer as small as it can be, which is two or three packets.
func shrink(t *testing.T, s *socket) {
	t.Helper()
	if err := unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_RCVBUF, 1); err != nil {
		t.Fatal(err)
	}
}

func TestSocket(t *testing.T) {
	var ends [2]*socket
	for i, e := range local {
		s, err := listen(e, localPort, timeline.HostAxis())
		if err != nil {
			t.Fatal(err)
		}
		defer s.close()
		ends[i] = s
	}
	axis := timeline.HostAxis()
	send := ends[0].sender(local[1].Addr, localPort)
	packet := make([]byte, packetSize)
	stamped := false // by the kernel when the last packet came, and not when it was read
	drain := func(sent timeline.Interval) (n, dropped int) {
		dropped, err := ends[1].drain(func(payload []byte, at func(int64) timeline.Interval, read int64) {
			h, err := parse(payload)
			got := at(h.sent)
			if err != nil || got.Earliest > sent.Latest || got.Latest < h.sent || got.Latest > read {
				t.Errorf("packet %v, %v came at %+v of %+v, and was read at %d", h, err, got, sent, read)
			}
			stamped = got.Latest < sent.Latest+int64(clockNoise)
			n++
		})
		if err != nil {
			t.Fatal(err)
		}
		return n, dropped
	}
	burst := func(n int) timeline.Interval {
		from := axis.NS(time.Now())
		for range n {
			header{sent: axis.NS(time.Now())}.put(packet)
			if err := send(packet); err != nil {
				t.Fatal(err)
			}
		}
		return timeline.Between(from, axis.NS(time.Now()))
	}
	was := ends[1].horizon
	if n, dropped := drain(burst(3*batch + 1)); n != 3*batch+1 || dropped != 0 || ends[1].horizon <= was {
		t.Errorf("%d packets read, %d dropped", n, dropped)
	}
	for end := time.Now().Add(10 * time.Second); !stamped; time.Sleep(time.Millisecond) {
		sent := burst(1)
		time.Sleep(time.Millisecond)
		if drain(sent); time.Now().After(end) {
			t.Fatal("the kernel does not stamp")
		}
	}
	shrink(t, ends[1])
	if n, dropped := drain(burst(20)); n == 0 || dropped == 0 || n+dropped != 20 {
		t.Errorf("of 20 packets %d read, %d dropped", n, dropped)
	}
	if n, dropped := drain(burst(0)); n != 0 || dropped != 0 {
		t.Errorf("of nothing %d read, %d dropped", n, dropped)
	}
}

// What the socket drops is no outage.
func TestSocket_Overrun(t *testing.T) {
	p, err := Start(context.Background(), Options{
		Endpoints: local, Flows: []Flow{{"a", "b"}}, Pace: MinPace, Spin: true, Port: localPort,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	shrink(t, p.ends[1].sock)
	for end := time.Now().Add(10 * time.Second); p.Flows()[0].Unknown < 1000; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%+v", p.Flows())
		}
	}
	if s := p.Flows()[0]; !s.Alive || s.Received == 0 {
		t.Errorf("%+v", s)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	told := 0
	for {
		e, err := p.Next(context.Background())
		if errors.Is(err, io.EOF) {
			break
		}
		if e.Kind != Gap {
			t.Errorf("%v %v", e, err)
		}
		told += e.Lost
	}
	if told < 1000 {
		t.Errorf("%d packets told of", told)
	}
}
