package sshserver_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/crypto/ssh"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/emulator/internal/servertest"
	"github.com/ocslab/ocslab/emulator/sshserver"
	"github.com/ocslab/ocslab/emulator/tl1server"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// frontEnd is a front end that is a function.
type frontEnd func(ctx context.Context, conn io.ReadWriteCloser, info emulator.SessionInfo)

func (f frontEnd) ServeSession(ctx context.Context, conn io.ReadWriteCloser, info emulator.SessionInfo) {
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	f(ctx, conn, info)
}

// echo says who has come, and then what that one says.
var echo = frontEnd(func(_ context.Context, conn io.ReadWriteCloser, info emulator.SessionInfo) {
	fmt.Fprintf(conn, "%s from %s;", info.User, info.Client)
	_, _ = io.Copy(conn, conn)
})

func newServer(t testing.TB) *sshserver.Server {
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
	if err := dev.AddUser(nil, emulator.User{Name: "guest", Group: emulator.Viewer}); err != nil {
		t.Fatal(err)
	}
	return &sshserver.Server{
		Device: dev, HostKey: sshserver.HostKey("rail0", 1), Shell: &tl1server.Server{Device: dev},
		Subsystems: map[string]emulator.FrontEnd{"echo": echo},
	}
}

// serve starts a server on loopback until the test or the function ends.
func serve(t testing.TB, s *sshserver.Server) (addr string, stop func()) {
	t.Helper()
	return servertest.Serve(t, s.Serve)
}

// dial logs in as a user of package ssh does.
func dial(addr, user string, auth ...ssh.AuthMethod) (*ssh.Client, error) {
	return ssh.Dial("tcp", addr, &ssh.ClientConfig{
		User: user, Auth: auth, Timeout: 10 * time.Second,
		HostKeyCallback: ssh.FixedHostKey(sshserver.HostKey("rail0", 1).PublicKey()),
	})
}

func mustDial(t testing.TB, addr string) *ssh.Client {
	t.Helper()
	c, err := dial(addr, "admin", ssh.Password("root"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// session is a session with the ends of its stream.
type session struct {
	*ssh.Session
	in  io.WriteCloser
	out io.Reader
}

func newSession(t testing.TB, c *ssh.Client) *session {
	t.Helper()
	s, err := c.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	in, err := s.StdinPipe()
	out, err2 := s.StdoutPipe()
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	return &session{s, in, out}
}

// want reads exactly text.
func (s *session) want(t testing.TB, text string) {
	t.Helper()
	got := make([]byte, len(text))
	if n, err := io.ReadFull(s.out, got); err != nil || string(got) != text {
		t.Fatalf("got %q, %v, want %q", got[:n], err, text)
	}
}
