package transport_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/ocslab/ocslab/drivers/transport"
)

func TestTCP(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	d := transport.TCP{Addr: l.Addr().String()}
	if d.String() != l.Addr().String() {
		t.Errorf("got %s", d)
	}
	near, err := d.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	far, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer far.Close()
	if _, err := near.Write([]byte("hello")); err != nil {
		t.Error(err)
	}
	got := make([]byte, 5)
	if _, err := io.ReadFull(far, got); err != nil || string(got) != "hello" {
		t.Errorf("got %q, %v", got, err)
	}

	// Nobody reads any more: in the end a write fails, and says how much it wrote.
	n := 0
	for n == 0 { // on a busy machine the deadline may come first
		if err := near.SetWriteDeadline(time.Now().Add(20 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		if n, err = near.Write(make([]byte, 64<<20)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("got %d, %v", n, err)
		}
	}

	ended := make(chan error)
	go func() {
		_, err := near.Read(make([]byte, 1))
		ended <- err
	}()
	near.Close()
	if err := <-ended; !errors.Is(err, net.ErrClosed) {
		t.Errorf("got %v", err)
	}
}

func TestTCPFails(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d := transport.TCP{Addr: l.Addr().String()}
	l.Close()
	if _, err := d.Dial(t.Context()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.Dial(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
