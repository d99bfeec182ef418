package transport_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ocslab/ocslab/drivers/tl1switch"
	"github.com/ocslab/ocslab/drivers/transport"
	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/emulator/serialline"
	"github.com/ocslab/ocslab/emulator/tl1server"
	"github.com/ocslab/ocslab/internal/secret"
	"github.com/ocslab/ocslab/ocs"
)

// serveLine makes a serial line with fe at its other end.
func serveLine(t testing.TB, fe emulator.FrontEnd) (link string, stop func()) {
	t.Helper()
	line, err := serialline.Listen(filepath.Join(t.TempDir(), "tty"))
	if err != nil {
		t.Fatal(err)
	}
	return line.Link(), start(t, func(ctx context.Context) error { return line.Serve(ctx, fe) })
}

// TestTL1OverSerial drives a switch over a line, and again after it was
// unplugged.
func TestTL1OverSerial(t *testing.T) {
	dev := newDevice(t)
	path, stop := serveLine(t, &tl1server.Server{Device: dev})
	d := transport.Serial{Path: path}
	if d.String() != path {
		t.Errorf("got %s", d)
	}
	sw, err := tl1switch.Open(t.Context(), tl1switch.Config{Dialer: d, Password: secret.New("root")})
	if err != nil {
		t.Fatal(err)
	}
	defer sw.Close()
	want := ocs.MustMap(ocs.CrossConnect{Ingress: 1, Egress: 33})
	if r, err := ocs.Reconcile(t.Context(), sw, want, ocs.Safe); err != nil || !r.After.Equal(want) || !dev.CrossConnects().Equal(want) {
		t.Errorf("got %+v, %v", r, err)
	}
	if power, err := sw.Power(t.Context()); err != nil || len(power.Ports) != 64 {
		t.Errorf("got %d readings, %v", len(power.Ports), err)
	}
	stop()
	for {
		if _, err := sw.CrossConnects(t.Context()); errors.Is(err, fs.ErrNotExist) {
			break // it has noticed, and tried again
		} else if err == nil {
			t.Fatal("got an answer of nobody")
		}
	}
	line, err := serialline.Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	start(t, func(ctx context.Context) error { return line.Serve(ctx, &tl1server.Server{Device: dev}) })
	if m, err := sw.CrossConnects(t.Context()); err != nil || !m.Equal(want) {
		t.Errorf("got %v, %v", m, err)
	}
}

// TestSerialBytes: nothing is changed on the way, whatever the settings.
func TestSerialBytes(t *testing.T) {
	path, _ := serveLine(t, echo)
	all := make([]byte, 3000) // more than one piece
	for i := range all {
		all[i] = byte(i + i>>8)
	}
	for _, d := range []transport.Serial{{}, {Baud: 9600, DataBits: 8, Parity: "none", StopBits: "2"}, {Baud: 250000}} {
		d.Path = path
		conn := open(t, d)
		ask(t, conn, string(all))
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
		if _, err := conn.Read(all); !errors.Is(err, net.ErrClosed) {
			t.Errorf("got %v", err)
		}
	}
}

// TestSerialLock: a line has one user, also among those who are root.
func TestSerialLock(t *testing.T) {
	path, _ := serveLine(t, echo)
	d := transport.Serial{Path: path}
	conn := open(t, d)
	comm, err := os.ReadFile("/proc/self/comm")
	if err != nil {
		t.Fatal(err)
	}
	_, err = d.Dial(t.Context())
	want := fmt.Sprintf("serial line %s: is in use by %s (process %d): resource temporarily unavailable", path, strings.TrimSpace(string(comm)), os.Getpid())
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	ask(t, conn, "still mine")
	conn.Close()
	ask(t, open(t, d), "mine")
}

// TestSerialPulled: an adapter that is pulled out in the middle of a reply.
func TestSerialPulled(t *testing.T) {
	half := make(chan struct{})
	path, stop := serveLine(t, frontEnd(func(conn io.ReadWriter) {
		_, _ = io.WriteString(conn, "M  1 COM")
		close(half)
		_, _ = io.Copy(io.Discard, conn)
	}))
	conn := open(t, transport.Serial{Path: path})
	got := make([]byte, 8)
	if _, err := io.ReadFull(conn, got); err != nil || string(got) != "M  1 COM" {
		t.Fatalf("got %q, %v", got, err)
	}
	<-half
	stop()
	if _, err := conn.Read(got); !errors.Is(err, io.ErrUnexpectedEOF) || !strings.Contains(err.Error(), "pulled out") {
		t.Errorf("got %v", err)
	}
	if _, err := conn.Write(got); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %v", err)
	}
}

// TestSerialReaderStops: a write that never ends is an error, and keeps neither
// Close nor the next Dial from working.
func TestSerialReaderStops(t *testing.T) {
	read := make(chan struct{})
	path, stop := serveLine(t, frontEnd(func(conn io.ReadWriter) {
		<-read
		_, _ = io.Copy(io.Discard, conn)
	}))
	conn := open(t, transport.Serial{Path: path})
	if err := conn.SetWriteDeadline(time.Now().Add(200 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	n, err := conn.Write(make([]byte, 1<<20))
	if !errors.Is(err, os.ErrDeadlineExceeded) || n == 0 || n == 1<<20 {
		t.Fatalf("got %d, %v", n, err)
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
	open(t, transport.Serial{Path: path})
	close(read)
	stop()
}

// TestSerialDeadlines: a deadline ends a Read and a Write that are under way, and
// so does Close. A Write says how much the line has taken, no more and no less.
func TestSerialDeadlines(t *testing.T) {
	read := make(chan struct{})
	arrived := make(chan int)
	path, _ := serveLine(t, frontEnd(func(conn io.ReadWriter) {
		<-read
		n, _ := io.Copy(io.Discard, io.LimitReader(conn, 1))
		more, _ := io.Copy(io.Discard, conn)
		arrived <- int(n + more)
	}))
	conn := open(t, transport.Serial{Path: path})
	result := make(chan error)
	wait := func(what string, f func() (int, error), end func(), want error) int {
		t.Helper()
		var n int
		go func() {
			var err error
			n, err = f()
			result <- err
		}()
		time.Sleep(20 * time.Millisecond) // mostly it waits by then
		end()
		select {
		case err := <-result:
			if !errors.Is(err, want) {
				t.Errorf("%s: got %v, want %v", what, err, want)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("%s does not end", what)
		}
		return n
	}
	past := time.Unix(1, 0)
	reading := func() (int, error) { return conn.Read(make([]byte, 1)) }
	writing := func() (int, error) { return conn.Write(make([]byte, 1<<20)) }
	wait("a read", reading, func() { _ = conn.SetReadDeadline(past) }, os.ErrDeadlineExceeded)
	sent := wait("a write", writing, func() { _ = conn.SetWriteDeadline(past) }, os.ErrDeadlineExceeded)
	_ = conn.SetReadDeadline(time.Time{})
	_ = conn.SetWriteDeadline(time.Time{})
	wait("a read", reading, func() { _ = conn.SetReadDeadline(past) }, os.ErrDeadlineExceeded)
	sent += wait("a write", writing, func() { _ = conn.SetWriteDeadline(past) }, os.ErrDeadlineExceeded)
	close(read)
	_ = conn.SetReadDeadline(time.Time{})
	wait("a read", reading, func() { conn.Close() }, net.ErrClosed)
	if n := <-arrived; n != sent {
		t.Errorf("%d bytes have come of %d", n, sent)
	}
	if _, err := conn.Write([]byte{1}); !errors.Is(err, net.ErrClosed) {
		t.Errorf("got %v", err)
	}
}

// TestSerialManyFiles: a line works with all low descriptors taken, which those
// who use select(2) do not.
func TestSerialManyFiles(t *testing.T) {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil || limit.Cur < 1200 {
		t.Skipf("the limit of open files is %d, %v", limit.Cur, err)
	}
	path, _ := serveLine(t, echo)
	for fd := 0; fd < 1030; {
		var err error
		if fd, err = unix.FcntlInt(0, unix.F_DUPFD_CLOEXEC, 0); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { unix.Close(fd) })
	}
	ask(t, open(t, transport.Serial{Path: path}), "far up")
}

func TestSerialFails(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	path, _ := serveLine(t, echo)
	for _, tt := range []struct {
		serial transport.Serial
		want   string
	}{
		{transport.Serial{Path: dir + "/none"}, "is not there: is the adapter plugged in? no such file or directory"},
		{transport.Serial{Path: file}, "is not a serial line"},
		{transport.Serial{Path: "/dev/null"}, "is not a serial line"},
		{transport.Serial{Path: path, Parity: "strange"}, `parity "strange": want none, odd, even, mark or space`},
		{transport.Serial{Path: path, StopBits: "3"}, `stop bits "3": want 1, 1.5 or 2`},
		{transport.Serial{Path: path, Baud: -1}, "-1 baud, 8 data bits: want a positive rate and 5 to 8"},
		{transport.Serial{Path: path, DataBits: 9}, "38400 baud, 9 data bits: want a positive rate and 5 to 8"},
	} {
		_, err := tt.serial.Dial(t.Context())
		if want := "serial line " + tt.serial.Path + ": " + tt.want; err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if _, err := (transport.Serial{Path: path, StopBits: "1.5"}).Dial(t.Context()); err == nil {
		t.Error("there are no one and a half stop bits on Linux")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (transport.Serial{Path: path}).Dial(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	ask(t, open(t, transport.Serial{Path: path}), "nothing is locked")
	if ports, err := transport.SerialPorts(); err != nil {
		t.Errorf("got %v, %v", ports, err)
	}
}
