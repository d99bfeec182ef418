package transport_test

import (
	"context"
	"io"
	"net"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ocslab/ocslab/drivers/transport"
	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/emulator/sshserver"
	"github.com/ocslab/ocslab/emulator/tl1server"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newDevice makes a switch that moves light in no time.
func newDevice(t testing.TB) *emulator.Device {
	t.Helper()
	p, err := emulator.LoadPersonality("polatis-6000-32x32")
	if err != nil {
		t.Fatal(err)
	}
	p.Switching = emulator.Switching{Ack: emulator.AckAfter}
	dev, err := emulator.New(p, emulator.Options{Name: "rail0", Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	return dev
}

// frontEnd is a front end that is a function.
type frontEnd func(conn io.ReadWriter)

func (f frontEnd) ServeSession(ctx context.Context, conn io.ReadWriteCloser, _ emulator.SessionInfo) {
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	f(conn)
}

var echo = frontEnd(func(conn io.ReadWriter) { _, _ = io.Copy(conn, conn) })

// serveSSH is the SSH server of dev, with TL1 as shell and an echo as subsystem,
// changed as the test likes.
func serveSSH(t testing.TB, dev *emulator.Device, change func(*sshserver.Server)) (addr string, stop func()) {
	t.Helper()
	s := &sshserver.Server{
		Device: dev, HostKey: sshserver.HostKey("rail0", 1), Shell: &tl1server.Server{Device: dev},
		Subsystems: map[string]emulator.FrontEnd{"echo": echo},
	}
	if change != nil {
		change(s)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l.Addr().String(), start(t, func(ctx context.Context) error { return s.Serve(ctx, l) })
}

// start runs serve until the test or the function ends.
func start(t testing.TB, serve func(context.Context) error) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- serve(ctx) }()
	stop = func() {
		cancel()
		select {
		case err := <-ended:
			ended <- nil
			if err != nil {
				t.Error(err)
			}
		case <-time.After(10 * time.Second):
			t.Error("Serve does not return")
		}
	}
	t.Cleanup(stop)
	return stop
}

// open dials, and closes with the test.
func open(t testing.TB, d transport.Dialer) transport.Conn {
	t.Helper()
	conn, err := d.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// ask sends p and wants it back.
func ask(t testing.TB, conn transport.Conn, p string) {
	t.Helper()
	if err := conn.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, p); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len(p))
	if n, err := io.ReadFull(conn, got); err != nil || string(got) != p {
		t.Fatalf("sent %.100q, got %.100q, %v", p, got[:n], err)
	}
}
