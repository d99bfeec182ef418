package sshserver_test

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/emulator/internal/servertest"
	"github.com/ocslab/ocslab/emulator/sshserver"
)

func TestLogin(t *testing.T) {
	s := newServer(t)
	listed, unlisted := sshserver.HostKey("listed", 0), sshserver.HostKey("unlisted", 0)
	s.AuthorizedKeys = map[string][]ssh.PublicKey{"admin": {listed.PublicKey()}, "nobody": {listed.PublicKey()}}
	addr, _ := serve(t, s)
	asked := 0
	answer := func(text string) ssh.AuthMethod {
		return ssh.KeyboardInteractive(func(_, _ string, questions []string, echos []bool) ([]string, error) {
			if asked++; len(questions) != 1 || questions[0] != "Password: " || echos[0] {
				t.Errorf("asked %q, echo %v", questions, echos)
			}
			return []string{text}, nil
		})
	}
	for _, tt := range []struct {
		what, user string
		auth       ssh.AuthMethod
		ok         bool
	}{
		{"password", "admin", ssh.Password("root"), true},
		{"wrong password", "admin", ssh.Password("toor"), false},
		{"empty password", "admin", ssh.Password(""), false},
		{"user without a password", "guest", ssh.Password(""), true},
		{"no user", "nobody", ssh.Password("root"), false},
		{"answer", "admin", answer("root"), true},
		{"wrong answer", "admin", answer("toor"), false},
		{"key", "admin", ssh.PublicKeys(listed), true},
		{"unlisted key", "admin", ssh.PublicKeys(unlisted), false},
		{"key of another", "guest", ssh.PublicKeys(listed), false},
		{"key of no user", "nobody", ssh.PublicKeys(listed), false},
	} {
		c, err := dial(addr, tt.user, tt.auth)
		if err == nil {
			c.Close()
		}
		if (err == nil) != tt.ok {
			t.Errorf("%s: got %v", tt.what, err)
		}
	}
	if c, err := dial(addr, "guest"); err == nil {
		c.Close()
		t.Error("got in with nothing")
	}
	if asked != 2 {
		t.Errorf("asked %d times", asked)
	}
}

// TestRequests is what a session may ask for.
func TestRequests(t *testing.T) {
	s := newServer(t)
	addr, _ := serve(t, s)
	c := mustDial(t, addr)
	if ok, _, err := c.SendRequest("keepalive@openssh.com", true, nil); ok || err != nil {
		t.Errorf("keep-alive: got %v, %v", ok, err)
	}
	name := func(s string) []byte { return ssh.Marshal(struct{ Name string }{s}) }
	terminal := ssh.Marshal(struct {
		Term                         string
		Columns, Rows, Width, Height uint32
		Modes                        string
	}{"vt100", 80, 24, 0, 0, "\x00"})
	for _, tt := range []struct {
		kind    string
		payload []byte
		ok      bool
	}{
		{"exec", name("id"), false},
		{"env", name("LANG"), false},
		{"x11-req", nil, false},
		{"auth-agent-req@openssh.com", nil, false},
		{"window-change", nil, false},
		{"pty-req", nil, false},
		{"pty-req", terminal, true},
		{"subsystem", nil, false},
		{"subsystem", name("netconf"), false},
		{"subsystem", name("echo"), true},
		{"shell", nil, false}, // one is enough
		{"pty-req", terminal, false},
		{"window-change", nil, true},
	} {
		t.Run(tt.kind, func(t *testing.T) {
			session := newSession(t, c)
			if tt.ok || tt.kind == "shell" || tt.kind == "pty-req" && tt.payload != nil {
				// What comes before, on the same session.
				for _, first := range []string{"pty-req", "subsystem"} {
					payload := map[string][]byte{"pty-req": terminal, "subsystem": name("echo")}[first]
					if first == tt.kind && tt.ok {
						break
					}
					if ok, err := session.SendRequest(first, true, payload); !ok || err != nil {
						t.Fatalf("%s: got %v, %v", first, ok, err)
					}
				}
			}
			if ok, err := session.SendRequest(tt.kind, true, tt.payload); ok != tt.ok || err != nil {
				t.Errorf("got %v, %v, want %v", ok, err, tt.ok)
			}
		})
	}

	s2 := newServer(t)
	s2.Shell = nil
	addr, _ = serve(t, s2)
	if err := newSession(t, mustDial(t, addr)).Shell(); err == nil {
		t.Error("got a shell where there is none")
	}
	var refused *ssh.OpenChannelError
	if _, err := c.Dial("tcp", addr); !errors.As(err, &refused) || refused.Reason != ssh.Prohibited {
		t.Errorf("forwarding: got %v", err)
	}
	if _, _, err := c.OpenChannel("x11", nil); !errors.As(err, &refused) || refused.Reason != ssh.UnknownChannelType {
		t.Errorf("X11: got %v", err)
	}
}

// TestSessions: several at a time on one connection, each with its user, and
// their number is limited.
func TestSessions(t *testing.T) {
	s := newServer(t)
	s.MaxSessions, s.Shell = 3, echo
	addr, _ := serve(t, s)
	c := mustDial(t, addr)
	var open []*session
	for range 3 {
		session := newSession(t, c)
		if err := session.Shell(); err != nil {
			t.Fatal(err)
		}
		session.want(t, "admin from 127.0.0.1;")
		open = append(open, session)
	}
	for i, session := range open {
		text := fmt.Sprintf("I am %d;", i)
		if _, err := io.WriteString(session.in, text); err != nil {
			t.Fatal(err)
		}
		session.want(t, text)
	}
	var refused *ssh.OpenChannelError
	if _, err := mustDial(t, addr).NewSession(); !errors.As(err, &refused) || refused.Reason != ssh.ResourceShortage {
		t.Errorf("got %v", err)
	}
	// Who has ended his side still gets the rest, and how it went.
	if _, err := io.WriteString(open[0].in, "the last;"); err != nil {
		t.Fatal(err)
	}
	open[0].in.Close()
	if rest, err := io.ReadAll(open[0].out); err != nil || string(rest) != "the last;" {
		t.Errorf("got %q, %v", rest, err)
	}
	if err := open[0].Wait(); err != nil { // status 0, else an ExitError
		t.Error(err)
	}
	for deadline := time.Now().Add(10 * time.Second); ; { // the server notices that later
		next, err := c.NewSession()
		if err == nil {
			next.Close()
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

// TestTL1 is a shell: the user is logged in, and has a prompt.
func TestTL1(t *testing.T) {
	s := newServer(t)
	addr, _ := serve(t, s)
	session := newSession(t, mustDial(t, addr))
	if err := session.Shell(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(session.in, "ACT-USER::admin:1::root;ENT-PATCH::1,33:2:;"); err != nil {
		t.Fatal(err)
	}
	got, err := servertest.ReadUntil(session.out, func(got string) bool { return strings.Count(got, ";\r\n>") >= 2 })
	if err != nil {
		t.Fatalf("got %q, %v", got, err)
	}
	for _, want := range []string{"M  1 DENY", "Already logged in", "M  2 COMPLD"} {
		if !strings.Contains(got, want) {
			t.Errorf("got %q, want %q in it", got, want)
		}
	}
	infos := s.Device.Sessions()
	if len(infos) != 1 || infos[0].User != "admin" || infos[0].Protocol != "SSH-TL1" || infos[0].Client != "127.0.0.1" || infos[0].Port == 0 {
		t.Errorf("got %+v", infos)
	}
	// An administrator ends it.
	if !s.Device.EndSession(infos[0].ID) {
		t.Error("no such session")
	}
	if err := session.Wait(); err != nil {
		t.Error(err)
	}
}

// TestTerminal: what is typed is shown, unless one side says no, and the enter
// key ends a line.
func TestTerminal(t *testing.T) {
	for _, tt := range []struct {
		name   string
		modes  ssh.TerminalModes
		noEcho bool
		want   string
	}{
		{"Default", nil, false, "admin;*IDN?\r\n(*IDN?\n)"},
		{"On", ssh.TerminalModes{ssh.TTY_OP_ISPEED: 9600, ssh.ECHO: 1}, false, "admin;*IDN?\r\n(*IDN?\n)"},
		{"Off", ssh.TerminalModes{ssh.ECHO: 0}, false, "admin;(*IDN?\n)"},
		{"Never", ssh.TerminalModes{ssh.ECHO: 1}, true, "admin;(*IDN?\n)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newServer(t)
			s.NoEcho = tt.noEcho
			s.Shell = frontEnd(func(_ context.Context, conn io.ReadWriteCloser, info emulator.SessionInfo) {
				fmt.Fprintf(conn, "%s;", info.User)
				buf := make([]byte, 100)
				n, _ := conn.Read(buf)
				fmt.Fprintf(conn, "(%s)", buf[:n])
			})
			addr, _ := serve(t, s)
			session := newSession(t, mustDial(t, addr))
			if err := errors.Join(session.RequestPty("vt100", 24, 80, tt.modes), session.Shell()); err != nil {
				t.Fatal(err)
			}
			session.want(t, "admin;")
			if _, err := io.WriteString(session.in, "*IDN?\r"); err != nil {
				t.Fatal(err)
			}
			if rest, err := io.ReadAll(session.out); err != nil || "admin;"+string(rest) != tt.want {
				t.Errorf("got %q, %v, want %q", rest, err, tt.want)
			}
		})
	}
}

// TestReboot: no connection survives it, and none is made meanwhile.
func TestReboot(t *testing.T) {
	s := newServer(t)
	addr, _ := serve(t, s)
	idle, busy := mustDial(t, addr), mustDial(t, addr)
	session := newSession(t, busy)
	if err := session.Shell(); err != nil {
		t.Fatal(err)
	}
	s.Device.Reboot()
	for _, c := range []*ssh.Client{idle, busy} {
		if err := c.Wait(); err == nil {
			t.Error("closed without an error")
		}
	}
	if c, err := dial(addr, "admin", ssh.Password("root")); err == nil {
		c.Close()
		t.Error("got in")
	}
}

// TestHandshakeTimeout: who connects and says nothing is sent away.
func TestHandshakeTimeout(t *testing.T) {
	s := newServer(t)
	s.Handshake = 20 * time.Millisecond
	s.Version, s.Banner = "SSH-2.0-OpenSSH_5.3", "no trespassing"
	addr, _ := serve(t, s)
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(conn)
	if !strings.HasPrefix(string(got), "SSH-2.0-OpenSSH_5.3\r\n") || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %q, %v", got, err)
	}
}

// TestStops: Serve returns at once, whatever its clients do or do not.
func TestStops(t *testing.T) {
	s := newServer(t)
	flood := make(chan struct{})
	s.Shell = frontEnd(func(_ context.Context, conn io.ReadWriteCloser, _ emulator.SessionInfo) {
		p := make([]byte, 1<<20)
		for i := 0; ; i++ {
			if i == 3 { // the window of a client is 2 MB
				close(flood)
			}
			if _, err := conn.Write(p); err != nil {
				return
			}
		}
	})
	addr, stop := serve(t, s)
	silent, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	mustDial(t, addr)
	c := mustDial(t, addr)
	reads := newSession(t, c) // nobody reads what it gets
	newSession(t, c)          // and this one does nothing
	if err := reads.Shell(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(reads.out, make([]byte, 2<<20)); err != nil {
		t.Fatal(err)
	}
	<-flood
	stop()
}

// TestClientDoesNotAgree: a front end can end a session of a client that never
// closes its own side.
func TestClientDoesNotAgree(t *testing.T) {
	s := newServer(t)
	ended := make(chan error, 1)
	s.Shell = frontEnd(func(_ context.Context, conn io.ReadWriteCloser, _ emulator.SessionInfo) {
		go conn.Close()
		_, err := conn.Read(make([]byte, 1))
		ended <- err
	})
	addr, _ := serve(t, s)
	near, far := net.Pipe()
	defer near.Close()
	tcp, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	go func() { _, _ = io.Copy(tcp, far) }()
	deaf := make(chan struct{})
	go func() {
		defer far.Close()
		buf := make([]byte, 1<<16)
		for {
			n, err := tcp.Read(buf)
			if err != nil {
				return
			}
			select {
			case <-deaf: // hears nothing any more
			default:
				if _, err := far.Write(buf[:n]); err != nil {
					return
				}
			}
		}
	}()
	conn, channels, requests, err := ssh.NewClientConn(near, addr, &ssh.ClientConfig{
		User: "admin", Auth: []ssh.AuthMethod{ssh.Password("root")}, HostKeyCallback: ssh.InsecureIgnoreHostKey(),
	})
	if err != nil {
		t.Fatal(err)
	}
	c := ssh.NewClient(conn, channels, requests)
	defer c.Close()
	session := newSession(t, c)
	close(deaf)
	if _, err := session.SendRequest("shell", false, nil); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if err == nil {
			t.Error("read something")
		}
	case <-time.After(10 * time.Second):
		t.Error("Close does not unblock Read")
	}
}

func TestLegacy(t *testing.T) {
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	key, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	s := newServer(t)
	s.HostKey = key
	s.Legacy = []string{"diffie-hellman-group1-sha1", "diffie-hellman-group14-sha1", "aes128-cbc", "hmac-sha1-96", "ssh-rsa"}
	addr, _ := serve(t, s)
	config := &ssh.ClientConfig{User: "admin", Auth: []ssh.AuthMethod{ssh.Password("root")}, HostKeyCallback: ssh.FixedHostKey(key.PublicKey())}
	config.KeyExchanges, config.Ciphers, config.MACs = []string{"curve25519-sha256"}, []string{"aes128-ctr"}, []string{"hmac-sha2-256"}
	config.HostKeyAlgorithms = []string{"rsa-sha2-256"}
	for range 5 {
		c, err := ssh.Dial("tcp", addr, config)
		if err == nil {
			c.Close()
			return
		}
		var differ *ssh.AlgorithmNegotiationError
		if !errors.As(err, &differ) {
			t.Fatal(err)
		}
		switch {
		case strings.Contains(differ.What, "key exchange"):
			config.KeyExchanges = s.Legacy[:1]
		case strings.Contains(differ.What, "cipher"):
			config.Ciphers = s.Legacy[2:3]
		case strings.Contains(differ.What, "MAC"):
			config.MACs = s.Legacy[3:4]
		default:
			config.HostKeyAlgorithms = s.Legacy[4:]
		}
	}
	t.Error("does not get in with the old algorithms")
}

func TestBadServer(t *testing.T) {
	good := newServer(t)
	for want, change := range map[string]func(*sshserver.Server){
		"sshserver: a Server needs a Device and a HostKey":                                func(s *sshserver.Server) { s.Device = nil },
		"sshserver: a Server needs a Device and a HostKey ":                               func(s *sshserver.Server) { s.HostKey = nil },
		`sshserver: algorithm "rot13" is not known`:                                       func(s *sshserver.Server) { s.Legacy = []string{"rot13"} },
		`sshserver: ssh: algorithm "ssh-rsa" is not supported for key type "ssh-ed25519"`: func(s *sshserver.Server) { s.Legacy = []string{"ssh-rsa"} },
		"sshserver: the host key cannot be told to sign with ssh-rsa":                     func(s *sshserver.Server) { s.Legacy = []string{"ssh-rsa"}; s.HostKey = plainSigner{s.HostKey} },
	} {
		s := &sshserver.Server{Device: good.Device, HostKey: good.HostKey}
		change(s)
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Serve(t.Context(), l); err == nil || err.Error() != strings.TrimSpace(want) {
			t.Errorf("got %v, want %s", err, want)
		}
		if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("the listener is open: %v", err)
		}
	}
}

// plainSigner is a key that signs in one way only.
type plainSigner struct{ ssh.Signer }

func TestHostKey(t *testing.T) {
	a, again := sshserver.HostKey("rail0", 1), sshserver.HostKey("rail0", 1)
	const want = "SHA256:XysAiZj3VS5HjV4u+FboQ8QGsFQ5acXWDxul7KB1/6s"
	if f := sshserver.Fingerprint(a); f != sshserver.Fingerprint(again) || f != want {
		t.Errorf("got %s, then %s, want %s", f, sshserver.Fingerprint(again), want)
	}
	for _, other := range []ssh.Signer{sshserver.HostKey("rail0", 2), sshserver.HostKey("rail1", 1)} {
		if sshserver.Fingerprint(other) == sshserver.Fingerprint(a) {
			t.Error("two devices have the same key")
		}
	}
}
