package serialline_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/emulator/internal/servertest"
	"github.com/ocslab/ocslab/emulator/serialline"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// frontEnd is a front end that is a function.
type frontEnd func(ctx context.Context, conn io.ReadWriteCloser)

func (f frontEnd) ServeSession(ctx context.Context, conn io.ReadWriteCloser, _ emulator.SessionInfo) {
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	f(ctx, conn)
}

// echo sends back all it reads, and tells how many sessions it has had.
type echo struct {
	mu           sync.Mutex
	begun, ended int
	change       chan struct{} // holds one when either has changed
}

func newEcho() *echo { return &echo{change: make(chan struct{}, 1)} }

func (e *echo) ServeSession(ctx context.Context, conn io.ReadWriteCloser, info emulator.SessionInfo) {
	e.count(&e.begun)
	defer e.count(&e.ended)
	frontEnd(func(_ context.Context, conn io.ReadWriteCloser) {
		buf := make([]byte, 1000)
		for {
			n, err := conn.Read(buf)
			if _, failed := conn.Write(buf[:n]); err != nil || failed != nil {
				return
			}
		}
	}).ServeSession(ctx, conn, info)
}

func (e *echo) count(n *int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	*n++
	select {
	case e.change <- struct{}{}:
	default:
	}
}

// wait waits until so many sessions have begun and ended.
func (e *echo) wait(t *testing.T, begun, ended int) {
	t.Helper()
	for limit := time.After(10 * time.Second); ; {
		e.mu.Lock()
		b, n := e.begun, e.ended
		e.mu.Unlock()
		if b == begun && n == ended {
			return
		}
		select {
		case <-e.change:
		case <-limit:
			t.Fatalf("%d sessions have begun and %d ended, want %d and %d", b, n, begun, ended)
		}
	}
}

// listen makes a line and serves it until the test or the function ends.
func listen(t *testing.T, fe emulator.FrontEnd) (line *serialline.Line, stop func()) {
	t.Helper()
	line, err := serialline.Listen(filepath.Join(t.TempDir(), "tty"))
	if err != nil {
		t.Fatal(err)
	}
	return line, servertest.Run(t, func(ctx context.Context) error { return line.Serve(ctx, fe) })
}

// open opens a terminal as a program does that has never heard of raw mode.
func open(t *testing.T, path string) *os.File {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if err := f.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return f
}

func ask(t *testing.T, f *os.File, p []byte) {
	t.Helper()
	if _, err := f.Write(p); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len(p))
	if n, err := io.ReadFull(f, got); err != nil || !bytes.Equal(got, p) {
		t.Fatalf("sent %q, got %q, %v", p, got[:n], err)
	}
}

// TestSessions: a session begins with the first that opens the line and ends
// with the last that closes it, again and again, and all bytes pass.
func TestSessions(t *testing.T) {
	e := newEcho()
	line, stop := listen(t, e)
	if target, err := os.Readlink(line.Link()); err != nil || target != line.Path() {
		t.Errorf("the link is to %s, %v, want %s", target, err, line.Path())
	}
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	for i := range 20 {
		f := open(t, line.Link())
		e.wait(t, i+1, i)
		ask(t, f, all)
		second := open(t, line.Path())
		ask(t, second, all)
		f.Close()
		ask(t, second, []byte("still there"))
		e.wait(t, i+1, i)
		second.Close()
		e.wait(t, i+1, i+1)
	}
	stop()
	if _, err := os.Lstat(line.Link()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the link is still there: %v", err)
	}
	if err := line.Close(); err != nil {
		t.Error(err)
	}
}

// TestGoneBeforeSeen: what somebody writes who closes the line at once is read.
func TestGoneBeforeSeen(t *testing.T) {
	heard := make(chan string, 1)
	line, _ := listen(t, frontEnd(func(_ context.Context, conn io.ReadWriteCloser) {
		if p, err := io.ReadAll(conn); err != nil || len(p) > 0 {
			heard <- fmt.Sprint(string(p), err)
		}
	}))
	f := open(t, line.Path())
	if _, err := f.WriteString("*RST\r\n"); err != nil {
		t.Fatal(err)
	}
	f.Close()
	if got := <-heard; got != "*RST\r\n<nil>" {
		t.Errorf("got %q", got)
	}
}

// TestNothingIsLeft: who opens the line does not get what was written for the
// one before, and not that one's settings.
func TestNothingIsLeft(t *testing.T) {
	e := newEcho()
	line, _ := listen(t, e)
	first := open(t, line.Path())
	cook(t, first)
	if _, err := first.WriteString("stale\n"); err != nil {
		t.Fatal(err)
	}
	e.wait(t, 1, 0)
	waitReadable(t, first)
	first.Close()
	e.wait(t, 1, 1)
	for {
		// The line is made ready after the session has ended.
		f := open(t, line.Path())
		raw := !cooked(t, f)
		if raw {
			ask(t, f, []byte("\rfresh\x03\n"))
			return
		}
		f.Close()
	}
}

func cook(t *testing.T, f *os.File) {
	t.Helper()
	ts, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	ts.Iflag |= unix.ICRNL
	ts.Lflag |= unix.ISIG
	if err := unix.IoctlSetTermios(int(f.Fd()), unix.TCSETS, ts); err != nil {
		t.Fatal(err)
	}
}

func cooked(t *testing.T, f *os.File) bool {
	t.Helper()
	ts, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	return ts.Iflag != 0 || ts.Lflag != 0 || ts.Oflag != 0
}

func waitReadable(t *testing.T, f *os.File) {
	t.Helper()
	fds := []unix.PollFd{{Fd: int32(f.Fd()), Events: unix.POLLIN}}
	for {
		if n, err := unix.Poll(fds, 10000); err == unix.EINTR {
			continue
		} else if n != 1 || err != nil {
			t.Fatalf("got %d, %v", n, err)
		}
		return
	}
}

// TestFrontEndEnds: when the front end ends a session on an open line, there is
// another one, and what came in between is lost.
func TestFrontEndEnds(t *testing.T) {
	var sessions int
	line, _ := listen(t, frontEnd(func(_ context.Context, conn io.ReadWriteCloser) {
		sessions++
		fmt.Fprintf(conn, "%d;", sessions)
		if sessions > 1 {
			_, _ = io.Copy(conn, conn)
		}
	}))
	f := open(t, line.Path())
	got := make([]byte, 4)
	if _, err := io.ReadFull(f, got); err != nil || string(got) != "1;2;" {
		t.Fatalf("got %q, %v", got, err)
	}
	ask(t, f, []byte("hello"))
}

// TestReaderStops: a client that does not read keeps neither the front end nor
// Serve from ending.
func TestReaderStops(t *testing.T) {
	full, ended := make(chan struct{}), make(chan error, 1)
	line, stop := listen(t, frontEnd(func(_ context.Context, conn io.ReadWriteCloser) {
		p := bytes.Repeat([]byte("x"), 1<<10)
		for i := 0; ; i++ {
			if i == 100 { // more than any buffer of the kernel
				t.Error("the line takes it all")
			}
			written := make(chan error, 1)
			go func() {
				_, err := conn.Write(p)
				written <- err
			}()
			select {
			case err := <-written:
				if err != nil {
					ended <- err
					return
				}
			case <-time.After(100 * time.Millisecond):
				close(full)
				ended <- <-written
				return
			}
		}
	}))
	open(t, line.Path())
	<-full
	stop()
	if err := <-ended; !strings.Contains(err.Error(), "closed") {
		t.Errorf("got %v", err)
	}
}

func TestLink(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "tty")
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	// Left by one that was killed.
	check(os.Symlink("/dev/pts/99999", path))
	first, err := serialline.Listen(path)
	check(err)
	if second, err := serialline.Listen(path); err == nil || second != nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("a second line at %s: %v", path, err)
	}
	if target, err := os.Readlink(path); err != nil || target != first.Path() {
		t.Errorf("got %s, %v, want %s", target, err, first.Path())
	}
	check(os.Remove(path))
	second, err := serialline.Listen(path)
	check(err)
	check(first.Close()) // no longer its link
	if target, err := os.Readlink(path); err != nil || target != second.Path() {
		t.Errorf("got %s, %v, want %s", target, err, second.Path())
	}
	check(second.Close())
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Errorf("left are %v, %v", entries, err)
	}

	none, err := serialline.Listen("")
	check(err)
	if none.Link() != "" {
		t.Errorf("got %s", none.Link())
	}
	check(none.Close())

	check(os.WriteFile(path, []byte("precious"), 0o600))
	check(os.Symlink(path, path+"2"))
	for path, want := range map[string]string{
		path:                                 "serial line: " + path + " is there and is not a link: remove it or choose another name",
		path + "2":                           "serial line: " + path + "2 is a link to " + path + ", not to a terminal: remove it or choose another name",
		filepath.Join(dir, "none", "tty"):    "no such file or directory",
		filepath.Join(path, "below", "file"): "not a directory",
	} {
		line, err := serialline.Listen(path)
		if err == nil || line != nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", path, err, want)
		}
	}
	if p, err := os.ReadFile(path); err != nil || string(p) != "precious" {
		t.Errorf("got %q, %v", p, err)
	}
}
