package serialline_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/emulator/internal/servertest"
	"github.com/ocslab/ocslab/emulator/tl1server"
)

// TestReopenAtOnce: who opens the line right after another has closed it gets a
// session of its own, and all that it sends is read.
func TestReopenAtOnce(t *testing.T) {
	const clients = 300
	served := make(chan string, 10*clients) // what was read in each session
	line, stop := listen(t, frontEnd(func(_ context.Context, conn io.ReadWriteCloser) {
		var all []byte
		defer func() { served <- string(all) }()
		buf := make([]byte, 100)
		for {
			n, err := conn.Read(buf)
			all = append(all, buf[:n]...)
			if _, failed := conn.Write(buf[:n]); err != nil || failed != nil {
				return
			}
		}
	}))
	for i := range clients {
		f := open(t, line.Path())
		ask(t, f, fmt.Appendf(nil, "client %d;", i))
		f.Close()
	}
	stop()
	close(served)
	next := 0
	for s := range served {
		if want := fmt.Sprintf("client %d;", next); s == want {
			next++
		} else if s != "" {
			t.Errorf("a session has read %q, want %q", s, want)
		}
	}
	if next != clients {
		t.Errorf("%d sessions of %d clients", next, clients)
	}
}

// TestShared: somebody who looks in and leaves, again and again, does not end the
// session of the one who stays.
func TestShared(t *testing.T) {
	e := newEcho()
	line, _ := listen(t, e)
	stays := open(t, line.Path())
	ask(t, stays, []byte("first"))
	for range 100 {
		open(t, line.Path()).Close()
		ask(t, stays, []byte("still there"))
	}
	e.wait(t, 1, 0)
}

// TestLoginIsNotInherited: a login ends when the line is closed, even if somebody
// opens it at once.
func TestLoginIsNotInherited(t *testing.T) {
	p, err := emulator.LoadPersonality("polatis-6000-32x32")
	if err != nil {
		t.Fatal(err)
	}
	d, err := emulator.New(p, emulator.Options{})
	if err != nil {
		t.Fatal(err)
	}
	line, _ := listen(t, &tl1server.Server{Device: d})
	for range 30 {
		for _, say := range []struct{ command, want string }{
			{"ACT-USER::admin:1::root;", "M  1 COMPLD"}, {"RTRV-PATCH:::2:;", "M  2 DENY"},
		} {
			f := open(t, line.Path())
			if _, err := f.WriteString(say.command); err != nil {
				t.Fatal(err)
			}
			if got := reply(t, f); !strings.Contains(got, say.want) {
				t.Fatalf("%s: got %q", say.command, got)
			}
			f.Close()
		}
	}
}

// reply reads one message.
func reply(t *testing.T, f *os.File) string {
	t.Helper()
	got, err := servertest.ReadUntil(f, func(got string) bool { return strings.HasSuffix(got, "\r\n;") })
	if err != nil {
		t.Fatalf("got %q, %v", got, err)
	}
	return got
}

// TestNoDescriptorLeft: a line that has had clients leaves nothing open.
func TestNoDescriptorLeft(t *testing.T) {
	count := func() int {
		fds, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(fds)
	}
	before := count()
	for range 10 {
		e := newEcho()
		line, stop := listen(t, e)
		f := open(t, line.Path())
		ask(t, f, []byte("hello"))
		stop()
		if _, err := f.Write([]byte("x")); !errors.Is(err, unix.EIO) {
			t.Errorf("the adapter is gone, and writing to it gives %v", err)
		}
		f.Close()
	}
	if after := count(); after > before {
		t.Errorf("%d descriptors, %d before", after, before)
	}
}
