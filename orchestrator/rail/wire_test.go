package rail_test

import (
	"bufio"
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/orchestrator/proto"
	"github.com/ocslab/ocslab/orchestrator/rail"
)

// network connects clients with a rail, and can break.
type network struct {
	o     *rail.Orchestrator
	ctx   context.Context
	serve sync.WaitGroup

	mu    sync.Mutex // guards what follows
	down  bool
	conns []net.Conn
}

func (n *network) dial(context.Context) (net.Conn, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.down {
		return nil, errors.New("no route to host")
	}
	a, b := net.Pipe()
	n.conns = append(n.conns, a)
	n.serve.Go(func() { rail.ServeConn(n.ctx, b, map[string]*rail.Orchestrator{"rail0": n.o}) })
	return a, nil
}

// cut breaks all connections, and permits or forbids new ones.
func (n *network) cut(down bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.down = down
	for _, c := range n.conns {
		c.Close()
	}
	n.conns = nil
}

func wired(t *testing.T, o *rail.Orchestrator) (*network, *rail.Client) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	n := &network{o: o, ctx: ctx}
	c := rail.Dial(ctx, n.dial, rail.ClientOptions{Rail: "rail0"})
	t.Cleanup(func() {
		c.Close()
		cancel()
		n.serve.Wait()
	})
	return n, c
}

func TestClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw := newDevice()
		opt := options(sw)
		opt.Health = time.Minute
		o := start(t, opt)
		n, c := wired(t, o)
		if got := <-(&asker{}).later(func(done func(proto.Done, error)) { c.Apply(proto.Apply{Req: 1, ID: "111"}, done) }); codeOf(got.err) != proto.Stale {
			t.Errorf("nobody has opened: %v", got.err)
		}
		a, state := opened(t, c)
		if state.Shape != proto.Giant || len(state.Circuits) != 12 {
			t.Errorf("got %+v", state)
		}
		got := a.id("111")
		if got.err != nil || got.done.Result != proto.Applied || got.done.SwitchAckNS < got.done.CommandNS || got.done.VerifiedNS < got.done.SwitchAckNS {
			t.Errorf("got %+v, %v", got, got.err)
		}
		if got := a.id("11"); codeOf(got.err) != proto.Bad {
			t.Errorf("got %+v, %v", got, got.err)
		}

		// The connection is lost while the switch is at work: the request is repeated, and carried out once.
		sw.apply = func(ctx context.Context, ch ocs.Change) (ocs.Receipt, error) {
			time.Sleep(500 * time.Millisecond)
			return sw.Switch.Apply(ctx, ch)
		}
		before := sw.commands()
		later := a.idLater("222")
		synctest.Wait()
		n.cut(false)
		if got := <-later; got.err != nil || got.done.Removed != 24 || sw.commands() != before+1 {
			t.Errorf("got %+v, %v", got, got.err)
		}
		sw.apply = nil
		n.cut(false)
		if got := a.id("111"); got.err != nil {
			t.Errorf("got %+v, %v", got, got.err)
		}
		sw.Set(ocs.Map{})
		if alarm := <-c.Alarms(); len(alarm.Circuits) != 12 {
			t.Errorf("got %+v", alarm)
		}

		// Nobody answers for too long.
		n.cut(true)
		if got := a.id("222"); !errors.Is(got.err, context.DeadlineExceeded) || !strings.Contains(got.err.Error(), "rail0") {
			t.Errorf("got %+v, %v", got, got.err)
		}

		// Another controller takes over meanwhile.
		other := rail.Dial(t.Context(), n.dial, rail.ClientOptions{})
		defer other.Close()
		later = a.idLater("222")
		synctest.Wait()
		n.cut(false)
		opened(t, other)
		if got := <-later; codeOf(got.err) != proto.Stale {
			t.Errorf("got %+v, %v", got, got.err)
		}
		if got := a.id("222"); codeOf(got.err) != proto.Stale {
			t.Errorf("got %+v, %v", got, got.err)
		}
		a, _ = opened(t, c)
		if got := a.id("222"); got.err != nil {
			t.Errorf("got %+v, %v", got, got.err)
		}
		later = a.idLater("222")
		c.Close()
		if got := <-later; got.err != nil && !errors.Is(got.err, net.ErrClosed) {
			t.Errorf("got %+v, %v", got, got.err)
		}
		if _, open := <-c.Alarms(); open {
			t.Error("the channel of alarms is open")
		}
	})
}

func TestServeConn_Refuses(t *testing.T) {
	o := start(t, options(newDevice()))
	wrong := openMessage()
	wrong.Job.Stages = 9
	lost := openMessage()
	lost.Rail = "rail9"
	stale := openMessage()
	stale.Resume = 7
	for _, x := range []struct {
		m    proto.Message
		want proto.Code
	}{
		{&proto.Apply{Req: 1, ID: "111"}, proto.Bad},
		{&proto.Hello{}, proto.Bad},
		{&lost, proto.Bad},
		{&wrong, proto.Bad},
		{&stale, proto.Stale},
	} {
		a, b := net.Pipe()
		var served sync.WaitGroup
		served.Go(func() { rail.ServeConn(t.Context(), b, map[string]*rail.Orchestrator{"rail0": o}) })
		frame, err := proto.Append(nil, x.m)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := a.Write(frame); err != nil {
			t.Fatal(err)
		}
		got, err := proto.Read(bufio.NewReader(a))
		if bye, ok := got.(*proto.Bye); !ok || bye.Code != x.want || bye.Reason == "" {
			t.Errorf("%s: got %+v, %v", proto.KindOf(x.m), got, err)
		}
		a.Close()
		served.Wait()
	}
}

// TestClient_OpenAfterResume: an Open right after the connection was made anew gets an epoch of its own.
func TestClient_OpenAfterResume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := start(t, options(newDevice()))
		n, c := wired(t, o)
		a, _ := opened(t, c)
		for range 20 {
			n.cut(false)
			b, _ := opened(t, c)
			if b.epoch <= a.epoch || b.epoch != o.Status().Epoch {
				t.Fatalf("epoch %d after %d, and the rail is at %d", b.epoch, a.epoch, o.Status().Epoch)
			}
			a = b
			time.Sleep(time.Duration(a.epoch) * 37 * time.Millisecond)
		}
		if got := a.id("111"); got.err != nil {
			t.Error(got.err)
		}
	})
}

// TestServe is over TCP.
func TestServe(t *testing.T) {
	sw := newDevice()
	o := start(t, options(sw))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- rail.Serve(ctx, l, map[string]*rail.Orchestrator{"rail0": o}) }()
	c := rail.Dial(ctx, func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", l.Addr().String())
	}, rail.ClientOptions{Rail: "rail0"})
	a, _ := opened(t, c)
	if got := a.id("221"); got.err != nil {
		t.Error(got.err)
	}
	b, state := opened(t, o)
	if state.ID != "221" {
		t.Errorf("got %+v", state)
	}
	if got := a.id("111"); codeOf(got.err) != proto.Stale {
		t.Errorf("got %+v, %v", got, got.err)
	}
	if got := b.id("111"); got.err != nil {
		t.Error(got.err)
	}
	c.Close()
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if d := cmp.Diff(proto.Digits, o.Status().Shape); d != "" {
		t.Error(d)
	}
}
