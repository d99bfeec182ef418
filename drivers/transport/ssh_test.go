package transport_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/ocslab/ocslab/drivers/tl1switch"
	"github.com/ocslab/ocslab/drivers/transport"
	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/emulator/sshserver"
	"github.com/ocslab/ocslab/internal/secret"
	"github.com/ocslab/ocslab/ocs"
)

// TestTL1OverSSH drives a switch: the SSH account is the TL1 user, so that the
// login of the driver is answered with "Already logged in", and each reply is
// followed by a prompt.
func TestTL1OverSSH(t *testing.T) {
	dev := newDevice(t)
	addr, stop := serveSSH(t, dev, nil)
	d := transport.SSH{Addr: addr, User: "admin", Password: secret.New("root"), HostKey: sshserver.Fingerprint(sshserver.HostKey("rail0", 1))}
	if d.String() != addr {
		t.Errorf("got %s", d)
	}
	sw, err := tl1switch.Open(t.Context(), tl1switch.Config{Dialer: d, Password: d.Password})
	if err != nil {
		t.Fatal(err)
	}
	defer sw.Close()
	want := ocs.MustMap(ocs.CrossConnect{Ingress: 1, Egress: 33}, ocs.CrossConnect{Ingress: 2, Egress: 40})
	r, err := ocs.Reconcile(t.Context(), sw, want, ocs.Safe)
	if err != nil || !r.After.Equal(want) || !dev.CrossConnects().Equal(want) {
		t.Errorf("got %+v, %v", r, err)
	}
	if power, err := sw.Power(t.Context()); err != nil || len(power.Ports) != 64 {
		t.Errorf("got %d readings, %v", len(power.Ports), err)
	}
	// The device ends the session; the driver opens another one.
	for _, info := range dev.Sessions() {
		dev.EndSession(info.ID)
	}
	for again := time.Now(); ; {
		m, err := sw.CrossConnects(t.Context())
		if err == nil {
			if !m.Equal(want) {
				t.Errorf("got %v", m)
			}
			break
		}
		if time.Since(again) > 10*time.Second {
			t.Fatal(err)
		}
	}
	stop()
	if _, err := sw.CrossConnects(t.Context()); err == nil {
		t.Error("got an answer of nobody")
	}
}

// TestSSHDeadlines: a device that stops reading does not stop us.
func TestSSHDeadlines(t *testing.T) {
	read, got := make(chan struct{}), make(chan int64, 1)
	addr, _ := serveSSH(t, newDevice(t), func(s *sshserver.Server) {
		s.Shell = frontEnd(func(conn io.ReadWriter) {
			<-read
			n, _ := io.CopyN(io.Discard, conn, 16<<20)
			got <- n
		})
	})
	conn := open(t, transport.SSH{Addr: addr, User: "admin", Password: secret.New("root"), AnyHostKey: true})
	stopped := 0
	for rest := make([]byte, 16<<20); ; {
		if err := conn.SetWriteDeadline(time.Now().Add(20 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		n, err := conn.Write(rest)
		if rest = rest[n:]; err == nil {
			break
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal(err)
		}
		if stopped++; stopped == 3 {
			close(read)
		}
	}
	if n := <-got; n != 16<<20 {
		t.Errorf("%d bytes have arrived", n)
	}
}

// TestSSHBytes: nothing is changed on the way.
func TestSSHBytes(t *testing.T) {
	addr, _ := serveSSH(t, newDevice(t), nil)
	all := make([]byte, 1<<16)
	for i := range all {
		all[i] = byte(i + i>>8)
	}
	ask(t, open(t, transport.SSH{Addr: addr, User: "admin", Password: secret.New("root"), AnyHostKey: true, Subsystem: "echo"}), string(all))
}

func TestSSHLogin(t *testing.T) {
	dir := t.TempDir()
	key := newKey(t, "ed25519")
	plain := writeKey(t, filepath.Join(dir, "plain"), key)
	unlisted := writeKey(t, filepath.Join(dir, "unlisted"), newKey(t, "ed25519"))
	garbage := filepath.Join(dir, "garbage")
	if err := os.WriteFile(garbage, []byte("hunter2"), 0o600); err != nil {
		t.Fatal(err)
	}
	public := signer(t, key).PublicKey()
	serveAgent(t, key)
	addr, _ := serveSSH(t, newDevice(t), func(s *sshserver.Server) {
		s.AuthorizedKeys = map[string][]ssh.PublicKey{"admin": {public}}
	})
	for _, tt := range []struct {
		name   string
		ssh    transport.SSH
		want   string // of the error; "" is none
		denied bool
	}{
		{"Password", transport.SSH{Password: secret.New("root")}, "", false},
		{"Key", transport.SSH{KeyFile: plain}, "", false},
		{"Agent", transport.SSH{Agent: true}, "", false},
		{"PasswordAfterKey", transport.SSH{KeyFile: unlisted, Password: secret.New("root")}, "", false},
		{"WrongPassword", transport.SSH{Password: secret.New("hunter2")}, `login as "admin" with password, keyboard-interactive: refused by the device`, true},
		{"NoPassword", transport.SSH{}, `login as "admin" with password: refused by the device`, true},
		{"WrongKey", transport.SSH{KeyFile: unlisted}, `login as "admin" with publickey: refused by the device`, true},
		{"NoKey", transport.SSH{KeyFile: dir + "/none"}, "SSH key: open " + dir + "/none: no such file or directory", false},
		{"GarbageKey", transport.SSH{KeyFile: garbage}, "SSH key " + garbage + ": is not a private key that can be read", false},
		{"NoSubsystem", transport.SSH{Password: secret.New("root"), Subsystem: "sftp"}, `"sftp": subsystem: refused by the device`, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.ssh.Addr, tt.ssh.User, tt.ssh.AnyHostKey = addr, "admin", true
			if tt.want == "" {
				tt.ssh.Subsystem = "echo"
				ask(t, open(t, tt.ssh), "hello")
				return
			}
			_, err := tt.ssh.Dial(t.Context())
			if err == nil || err.Error() != tt.want || errors.Is(err, ocs.ErrDenied) != tt.denied {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
	t.Run("NoAgent", func(t *testing.T) {
		d := transport.SSH{Addr: addr, User: "admin", AnyHostKey: true, Agent: true}
		for _, path := range []string{"", dir + "/none"} {
			t.Setenv("SSH_AUTH_SOCK", path)
			if _, err := d.Dial(t.Context()); err == nil || !strings.Contains(err.Error(), "SSH agent") {
				t.Errorf("got %v", err)
			}
		}
	})
}

// TestSSHEncryptedKey: the password opens the key, and is not sent.
func TestSSHEncryptedKey(t *testing.T) {
	program, err := exec.LookPath("ssh-keygen")
	if err != nil {
		t.Skip("there is no ssh-keygen: install openssh-client")
	}
	path := filepath.Join(t.TempDir(), "id")
	// One round: with the usual number the race detector takes seconds.
	if out, err := exec.Command(program, "-q", "-t", "ed25519", "-a", "1", "-N", "hunter2", "-f", path).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	line, err := os.ReadFile(path + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	public, _, _, _, err := ssh.ParseAuthorizedKey(line)
	if err != nil {
		t.Fatal(err)
	}
	var accepted atomic.Bool
	config := &ssh.ServerConfig{
		PublicKeyCallback: func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
			if !accepted.Load() || !bytes.Equal(key.Marshal(), public.Marshal()) {
				return nil, errors.New("no")
			}
			return nil, nil
		},
		PasswordCallback: func(ssh.ConnMetadata, []byte) (*ssh.Permissions, error) {
			t.Error("the passphrase was sent")
			return nil, errors.New("no")
		},
	}
	d := transport.SSH{Addr: bareServer(t, config, nil), KeyFile: path, AnyHostKey: true}
	for _, tt := range []struct{ password, want string }{
		{"", "SSH key " + path + ": is encrypted: give its passphrase as the password"},
		{"hunter3", "SSH key " + path + ": the password does not open it"},
		{"hunter2", `login as "" with publickey: refused by the device`},
	} {
		d.Password = secret.New(tt.password)
		if _, err := d.Dial(t.Context()); err == nil || err.Error() != tt.want {
			t.Errorf("got %v, want %s", err, tt.want)
		}
	}
	accepted.Store(true)
	ask(t, open(t, d), "hello")
}

// TestSSHAnswers: a password is an answer to one hidden question, and is not
// sent anywhere else.
func TestSSHAnswers(t *testing.T) {
	type question struct {
		text string
		echo bool
	}
	for _, tt := range []struct {
		name   string
		rounds [][]question
		ok     bool
		asked  int
	}{
		{"Password", [][]question{{{"Password:", false}}}, true, 1},
		{"TextFirst", [][]question{{}, {{"Password:", false}}}, true, 2},
		{"Visible", [][]question{{{"Name:", true}}}, false, 1},
		{"Two", [][]question{{{"Password:", false}, {"Token:", false}}}, false, 1},
		{"Again", [][]question{{{"Password:", false}}, {{"Password:", false}}}, false, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			asked := 0
			config := &ssh.ServerConfig{KeyboardInteractiveCallback: func(_ ssh.ConnMetadata, ask ssh.KeyboardInteractiveChallenge) (*ssh.Permissions, error) {
				for _, round := range tt.rounds {
					var texts []string
					var echos []bool
					for _, q := range round {
						texts, echos = append(texts, q.text), append(echos, q.echo)
					}
					asked++
					answers, err := ask("", "Welcome.", texts, echos)
					if err != nil {
						return nil, err
					}
					if len(answers) > 0 && answers[0] != "root" {
						return nil, errors.New("wrong")
					}
				}
				return nil, nil
			}}
			addr := bareServer(t, config, nil)
			conn, err := transport.SSH{Addr: addr, Password: secret.New("root"), AnyHostKey: true}.Dial(t.Context())
			if err == nil {
				conn.Close()
			}
			if (err == nil) != tt.ok || asked != tt.asked || !tt.ok && !errors.Is(err, ocs.ErrDenied) {
				t.Errorf("got %v after %d rounds", err, asked)
			}
		})
	}
}

// TestSSHTerminal: gear that gives no shell without a terminal gets one that
// does not echo.
func TestSSHTerminal(t *testing.T) {
	var mu sync.Mutex
	var asked []string
	addr := bareServer(t, &ssh.ServerConfig{NoClientAuth: true}, func(r *ssh.Request) bool {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, r.Type)
		if r.Type == "pty-req" && !bytes.Contains(r.Payload, []byte{ssh.ECHO, 0, 0, 0, 0}) {
			t.Errorf("got %q", r.Payload)
		}
		return len(asked) > 1
	})
	ask(t, open(t, transport.SSH{Addr: addr, AnyHostKey: true}), "hello")
	if got := fmt.Sprint(asked); got != "[shell pty-req shell]" {
		t.Errorf("asked for %s", got)
	}

	addr = bareServer(t, &ssh.ServerConfig{NoClientAuth: true}, func(*ssh.Request) bool { return false })
	if _, err := (transport.SSH{Addr: addr, AnyHostKey: true}).Dial(t.Context()); !errors.Is(err, ocs.ErrDenied) || err.Error() != "shell: refused by the device" {
		t.Errorf("got %v", err)
	}
}

// TestSSHTooMany: a device that opens no more sessions says so.
func TestSSHTooMany(t *testing.T) {
	addr, _ := serveSSH(t, newDevice(t), func(s *sshserver.Server) { s.MaxSessions = 1 })
	d := transport.SSH{Addr: addr, User: "admin", Password: secret.New("root"), AnyHostKey: true, Subsystem: "echo"}
	ask(t, open(t, d), "hello")
	if _, err := d.Dial(t.Context()); !errors.Is(err, ocs.ErrDenied) || err.Error() != "the device opens no session (too many sessions): refused by the device" {
		t.Errorf("got %v", err)
	}
}

// TestSSHEnds: when the device is gone, reading ends, and so does writing.
func TestSSHEnds(t *testing.T) {
	addr, stop := serveSSH(t, newDevice(t), nil)
	conn := open(t, transport.SSH{Addr: addr, User: "admin", Password: secret.New("root"), AnyHostKey: true, Subsystem: "echo"})
	stop()
	if n, err := conn.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("got %d, %v", n, err)
	}
	for range 100 {
		if _, err := conn.Write([]byte("x")); err != nil {
			return
		}
	}
	t.Error("writes to nobody")
}

// TestSSHFails is what happens before any login.
func TestSSHFails(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d := transport.SSH{Addr: l.Addr().String(), Password: secret.New("hunter2"), AnyHostKey: true}
	go func() {
		conn, err := l.Accept()
		if err == nil {
			_, _ = io.WriteString(conn, "HTTP/1.0 400 Bad Request\r\n\r\n")
			conn.Close()
		}
	}()
	if _, err := d.Dial(t.Context()); err == nil || errors.Is(err, ocs.ErrDenied) {
		t.Errorf("got %v", err)
	}
	l.Close()
	if _, err := d.Dial(t.Context()); err == nil || !strings.Contains(err.Error(), "cannot connect") {
		t.Errorf("got %v", err)
	}
}

// TestSSHBreaks: a connection that breaks is told from a channel that is closed.
func TestSSHBreaks(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	config := &ssh.ServerConfig{NoClientAuth: true}
	config.AddHostKey(sshserver.HostKey("bare", 1))
	start(t, func(ctx context.Context) error {
		return emulator.Accept(ctx, l, func(_ context.Context, tcp net.Conn) {
			defer tcp.Close()
			_, channels, requests, err := ssh.NewServerConn(tcp, config)
			if err != nil {
				return
			}
			go ssh.DiscardRequests(requests)
			ch, requests, err := (<-channels).Accept()
			if err != nil {
				return
			}
			go func() {
				for r := range requests {
					_ = r.Reply(true, nil)
				}
			}()
			_, _ = io.ReadFull(ch, make([]byte, 1))
			_ = tcp.(*net.TCPConn).SetLinger(0) // so that the kernel sends RST
		})
	})
	conn := open(t, transport.SSH{Addr: l.Addr().String(), AnyHostKey: true, Subsystem: "echo"})
	if _, err := conn.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if n, err := conn.Read(make([]byte, 10)); n != 0 || !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("got %d, %v", n, err)
		}
	}
	if _, err := conn.Write([]byte("x")); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("got %v", err)
	}
}

func TestSSHLegacy(t *testing.T) {
	key := signer(t, newKey(t, "rsa"))
	old := []string{"diffie-hellman-group1-sha1", "aes128-cbc", "hmac-sha1-96", "ssh-rsa"}
	addr, _ := serveSSH(t, newDevice(t), func(s *sshserver.Server) { s.HostKey, s.Legacy = key, old })
	d := transport.SSH{Addr: addr, User: "admin", Password: secret.New("root"), HostKey: ssh.FingerprintSHA256(key.PublicKey()), Subsystem: "echo"}
	// Each error names what to allow next.
	for range old {
		_, err := d.Dial(t.Context())
		if err == nil {
			t.Fatalf("got in with %v", d.Legacy)
		}
		_, rest, found := strings.Cut(err.Error(), "allow the legacy algorithm ")
		name, _, _ := strings.Cut(rest, ":")
		if !found || !strings.Contains(fmt.Sprint(old), name) {
			t.Fatalf("got %v", err)
		}
		d.Legacy = append(d.Legacy, name)
	}
	ask(t, open(t, d), "hello")

	d.Legacy = []string{"rot13"}
	if _, err := d.Dial(t.Context()); err == nil || !strings.HasPrefix(err.Error(), `old SSH algorithm "rot13" is not known: want some of 3des-cbc, aes128-cbc, `) {
		t.Errorf("got %v", err)
	}
	if names := strings.Join(transport.LegacyAlgorithms(), " "); !strings.Contains(names, "ssh-dss") || strings.Contains(names, "cert") {
		t.Errorf("got %s", names)
	}
}

// bareServer is an SSH server that grants what grant says and echoes, until the
// test ends.
func bareServer(t *testing.T, config *ssh.ServerConfig, grant func(*ssh.Request) bool) (addr string) {
	t.Helper()
	config.AddHostKey(sshserver.HostKey("bare", 1))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	serve := func(ctx context.Context, tcp net.Conn) {
		stop := context.AfterFunc(ctx, func() { tcp.Close() })
		defer stop()
		defer tcp.Close()
		_, channels, requests, err := ssh.NewServerConn(tcp, config)
		if err != nil {
			return
		}
		go ssh.DiscardRequests(requests)
		for offered := range channels {
			ch, requests, err := offered.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(ch, ch) }()
			for r := range requests {
				_ = r.Reply(grant == nil || grant(r), nil)
			}
		}
	}
	start(t, func(ctx context.Context) error { return emulator.Accept(ctx, l, serve) })
	return l.Addr().String()
}

// newKey makes a private key.
func newKey(t testing.TB, kind string) (key any) {
	t.Helper()
	var err error
	switch kind {
	case "ed25519":
		_, key, err = ed25519.GenerateKey(rand.Reader)
	case "ecdsa":
		key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case "rsa":
		key, err = rsa.GenerateKey(rand.Reader, 2048)
	}
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func signer(t testing.TB, key any) ssh.Signer {
	t.Helper()
	s, err := ssh.NewSignerFromKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// writeKey writes a private key as ssh-keygen does.
func writeKey(t testing.TB, path string, key any) string {
	t.Helper()
	block, err := ssh.MarshalPrivateKey(key, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// serveAgent holds key for the time of the test.
func serveAgent(t *testing.T, key any) {
	t.Helper()
	ring := agent.NewKeyring()
	if err := ring.Add(agent.AddedKey{PrivateKey: key}); err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "agent") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	path := filepath.Join(dir, "socket")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("SSH_AUTH_SOCK", path)
	start(t, func(ctx context.Context) error {
		return emulator.Accept(ctx, l, func(ctx context.Context, conn net.Conn) {
			stop := context.AfterFunc(ctx, func() { conn.Close() })
			defer stop()
			defer conn.Close()
			_ = agent.ServeAgent(ring, conn)
		})
	})
}
