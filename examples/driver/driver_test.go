package patchbox_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/ocslab/ocslab/drivers/conformance"
	"github.com/ocslab/ocslab/drivers/transport"
	patchbox "github.com/ocslab/ocslab/examples/driver"
	"github.com/ocslab/ocslab/ocs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// box is the device: a matrix of 16x16 that refuses busy ports, behind a socket.
type box struct {
	addr string
	// spoil, if it is set, changes replies, and returns "" to send none.
	spoil func(request, reply string) string

	mu sync.Mutex // guards what follows
	m  ocs.Map
}

func start(t *testing.T, holds ocs.Map) *box {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &box{addr: l.Addr().String(), m: holds}
	var clients sync.WaitGroup
	clients.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			clients.Go(func() { b.serve(c) })
		}
	})
	t.Cleanup(func() { l.Close(); clients.Wait() })
	return b
}

func (b *box) serve(c net.Conn) {
	defer c.Close()
	for in := bufio.NewScanner(c); in.Scan(); {
		reply := b.reply(in.Text())
		if b.spoil != nil {
			reply = b.spoil(in.Text(), reply)
		}
		if reply != "" {
			fmt.Fprintf(c, "%s\r\n", reply)
		}
	}
}

func (b *box) reply(request string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	f := strings.Fields(request)
	switch {
	case request == "ID":
		return "ID ACME,PB-16,1234,1.0,16x16"
	case request == "MAP":
		return "MAP " + b.m.String()
	case len(f) != 3 || f[0] != "CHANGE":
		return "ERR what?"
	}
	remove, err1 := ocs.ParseMap(strings.Trim(f[1], "-"))
	add, err2 := ocs.ParseMap(strings.Trim(f[2], "-"))
	if err := errors.Join(err1, err2); err != nil {
		return "ERR what?"
	}
	if err := ocs.TwoSided(16, 16).Check(add); err != nil {
		return "ERR PORT"
	}
	after, err := ocs.Change{Remove: remove, Add: add}.ApplyTo(b.m)
	if err != nil {
		return "ERR BUSY"
	}
	b.m = after
	return "OK"
}

func (b *box) open(ctx context.Context) (ocs.Switch, error) {
	sw, err := patchbox.Open(ctx, transport.TCP{Addr: b.addr})
	if err != nil {
		return nil, err // not a Switch that is a nil pointer
	}
	return sw, nil
}

// The driver passes the suite, and the suite leaves the light of others alone.
func TestConformance(t *testing.T) {
	theirs := ocs.MustMap(ocs.CrossConnect{Ingress: 1, Egress: 18}, ocs.CrossConnect{Ingress: 16, Egress: 17})
	b := start(t, theirs)
	r, err := conformance.Run(t.Context(), conformance.Config{Open: b.open})
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := r.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	if r.Failed > 0 || r.Passed < 20 || !r.Restored {
		t.Errorf("want 20 checks passed or more, none failed, and all put back:\n%s", text.String())
	}
	if left := b.reply("MAP"); left != "MAP "+theirs.String() {
		t.Errorf("left with %v, found with %v", left, theirs)
	}
}

// What the device says wrong is an error that quotes it, and the Switch goes on to work.
func TestBadReplies(t *testing.T) {
	for name, reply := range map[string]string{
		"foreign":    "ID ACME,PB-16,1234,1.0,16x16",
		"no map":     "MAP 1>>17",
		"twice":      "MAP 1>17,1>18",
		"refused":    "ERR on fire",
		"endless":    "MAP " + strings.Repeat("1>17,", 1<<15),
		"blank":      " ",
		"half a map": "MAP 1>",
	} {
		t.Run(name, func(t *testing.T) {
			b := start(t, ocs.Map{})
			bad := true
			b.spoil = func(request, good string) string {
				if request == "MAP" && bad {
					bad = false
					return reply
				}
				return good
			}
			sw, err := b.open(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer sw.Close()
			var op *ocs.OpError
			if m, err := sw.CrossConnects(t.Context()); !errors.As(err, &op) || op.Request != "MAP" {
				t.Errorf("got %v, %v, want an OpError of MAP", m, err)
			}
			if _, err := sw.CrossConnects(t.Context()); err != nil {
				t.Errorf("it does not go on: %v", err)
			}
		})
	}
}

// A reply that never comes ends with the context, and does not answer the next request.
func TestCancelled(t *testing.T) {
	b := start(t, ocs.Map{})
	ctx, cancel := context.WithCancel(t.Context())
	b.spoil = func(request, reply string) string {
		if request == "MAP" && ctx.Err() == nil {
			cancel()
			return ""
		}
		return reply
	}
	sw, err := b.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer sw.Close()
	if _, err := sw.CrossConnects(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	if m, err := sw.CrossConnects(t.Context()); err != nil || m.Len() != 0 {
		t.Errorf("afterwards got %v, %v", m, err)
	}
}

// canned is a box that says this, whatever it is asked.
type canned string

func (c canned) String() string { return "canned" }

func (c canned) Dial(context.Context) (transport.Conn, error) {
	here, there := net.Pipe()
	go func() {
		defer there.Close()
		go io.Copy(io.Discard, there) // what it is asked
		io.WriteString(there, string(c))
	}()
	return here, nil
}

// Whatever a box says, it is read or refused, and no call hangs.
func FuzzReplies(f *testing.F) {
	f.Add("ID ACME,PB-16,1234,1.0,16x16\r\nMAP 1>17\r\nOK\r\n")
	f.Add("ID ACME,PB-16,1234,1.0,16x16\nMAP 1>17,1>18\nERR BUSY port 1\n")
	f.Add("ID ,,,,\n")
	f.Add("ERR")
	f.Fuzz(func(t *testing.T, said string) {
		sw, err := patchbox.Open(t.Context(), canned(said))
		if err != nil {
			return
		}
		defer sw.Close()
		if m, err := sw.CrossConnects(t.Context()); err != nil && m.Len() > 0 {
			t.Errorf("got %v with %v", m, err)
		}
		_, err = sw.Apply(t.Context(), ocs.Change{Add: ocs.MustMap(ocs.CrossConnect{Ingress: 2, Egress: 18})})
		if op := (*ocs.OpError)(nil); err != nil && !errors.As(err, &op) {
			t.Errorf("%v is no OpError", err)
		}
	})
}
