package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"

	"golang.org/x/crypto/ssh"

	"github.com/ocslab/ocslab/internal/secret"
	"github.com/ocslab/ocslab/ocs"
)

// SSH dials host:port and opens a shell or a subsystem there (RFC 4254, section
// 6). The key of the host is always checked, unless AnyHostKey says otherwise.
// Certificates of hosts are not asked for.
//
// Errors of Dial match [ocs.ErrDenied] when the device refuses the login, and
// are a [*HostKeyError] when it is not the device it should be. None of them
// holds the password.
type SSH struct {
	Addr string // host:port
	User string
	// Password is offered as a password and as the answer to a question that
	// is not to be echoed. When KeyFile is encrypted it opens that instead, and
	// is not sent.
	Password secret.Secret
	KeyFile  string // private key, as ssh-keygen writes it
	Agent    bool   // offer the keys of the agent at $SSH_AUTH_SOCK
	// HostKey pins the key of the host: a fingerprint "SHA256:..." or a key
	// "ssh-ed25519 AAAA...". When it is set, KnownHosts is not read.
	HostKey string
	// KnownHosts are files as of sshd(8), which must be there; the default is
	// ~/.ssh/known_hosts and /etc/ssh/ssh_known_hosts as far as they are.
	KnownHosts []string
	AnyHostKey bool // accept every key: anybody in between can read the password
	// Legacy are old algorithms to offer in addition, last in preference, such
	// as "diffie-hellman-group1-sha1", "aes128-cbc" or "ssh-rsa".
	Legacy    []string
	Subsystem string // "netconf"; "" is a shell
}

// String returns the address.
func (s SSH) String() string { return s.Addr }

// Dial connects, authenticates and opens the shell or subsystem. It ends with
// ctx at any stage.
func (s SSH) Dial(ctx context.Context) (Conn, error) {
	check, err := s.hostKeys()
	if err != nil {
		return nil, err
	}
	config, err := s.config()
	if err != nil {
		return nil, err
	}
	auth, err := s.credentials(ctx)
	if err != nil {
		return nil, err
	}
	defer auth.close()
	for {
		check.configure(config)
		auth.configure(config)
		conn, err := s.dial(ctx, config)
		if err == nil {
			return conn, nil
		}
		// The device may have several keys, and shows the first of those asked for.
		if !check.another(err) {
			return nil, s.explain(ctx, check.first(err), auth)
		}
	}
}

func (s SSH) dial(ctx context.Context, config *ssh.ClientConfig) (Conn, error) {
	tcp, err := TCP{s.Addr}.Dial(ctx)
	if err != nil {
		return nil, err
	}
	raw := &tcpConn{Conn: tcp.(*net.TCPConn)}
	stop := context.AfterFunc(ctx, func() { raw.Close() })
	defer stop()
	conn, channels, requests, err := ssh.NewClientConn(raw, s.Addr, config)
	if err != nil {
		return nil, err // and raw is closed
	}
	go ssh.DiscardRequests(requests)
	go func() {
		for c := range channels {
			_ = c.Reject(ssh.Prohibited, "nothing is offered here")
		}
	}()
	ch, err := s.open(conn)
	if err == nil && !stop() {
		err = context.Cause(ctx)
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return newStream(&sshChannel{ch, conn, raw}, bufferSize), nil
}

// open opens the shell or subsystem.
func (s SSH) open(conn ssh.Conn) (ssh.Channel, error) {
	ch, requests, err := conn.OpenChannel("session", nil)
	if err != nil {
		var refused *ssh.OpenChannelError
		if errors.As(err, &refused) {
			return nil, fmt.Errorf("the device opens no session (%s): %w", refused.Message, ocs.ErrDenied)
		}
		return nil, fmt.Errorf("cannot open a session: %w", err)
	}
	go ssh.DiscardRequests(requests) // how it exited
	// Nobody reads it, and what is not read is lacking in the window.
	go func() { _, _ = io.Copy(io.Discard, ch.Stderr()) }()
	ask := func(what string, wanted []byte) error {
		ok, err := ch.SendRequest(what, true, wanted)
		switch {
		case err != nil:
			return fmt.Errorf("cannot open the %s: %w", what, err)
		case !ok:
			return fmt.Errorf("%s: %w", what, ocs.ErrDenied)
		}
		return nil
	}
	if s.Subsystem != "" {
		if err := ask("subsystem", ssh.Marshal(struct{ Name string }{s.Subsystem})); err != nil {
			return nil, fmt.Errorf("%q: %w", s.Subsystem, err)
		}
		return ch, nil
	}
	// A terminal would echo; only gear that gives no shell without one gets it.
	err = ask("shell", nil)
	if errors.Is(err, ocs.ErrDenied) && ask("pty-req", rawTerminal) == nil {
		err = ask("shell", nil)
	}
	if err != nil {
		return nil, err
	}
	return ch, nil
}

// rawTerminal asks for a terminal that changes and echoes nothing: RFC 4254,
// sections 6.2 and 8.
var rawTerminal = ssh.Marshal(struct {
	Term                         string
	Columns, Rows, Width, Height uint32
	Modes                        string
}{"dumb", 80, 24, 0, 0, terminalModes(ssh.ECHO, ssh.ICRNL, ssh.ICANON, ssh.ISIG, ssh.OPOST)})

// terminalModes turns modes off.
func terminalModes(off ...uint8) string {
	var b strings.Builder
	for _, mode := range off {
		b.Write([]byte{mode, 0, 0, 0, 0})
	}
	b.WriteByte(0)
	return b.String()
}

// explain makes an error for people.
func (s SSH) explain(ctx context.Context, err error, auth *credentials) error {
	var (
		differ *ssh.AlgorithmNegotiationError
		key    *HostKeyError
	)
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("cannot connect: %w", context.Cause(ctx))
	case errors.As(err, &key):
		return key
	case errors.As(err, &differ):
		return noCommonAlgorithm(differ, err)
	case auth.begun && !broken(err):
		return auth.refused(s.User, err)
	}
	return err
}

// broken reports whether a connection ended rather than that somebody said no.
func broken(err error) bool {
	var netErr net.Error
	return errors.Is(err, io.EOF) || errors.As(err, &netErr) || errors.Is(err, ocs.ErrDenied)
}

// sshChannel is a channel that is alone on its connection. Closing the
// connection is what closes the channel without waiting for the other side.
type sshChannel struct {
	ssh.Channel
	conn ssh.Conn
	raw  *tcpConn
}

func (c *sshChannel) Read(p []byte) (int, error) {
	n, err := c.Channel.Read(p)
	return n, c.raw.explain(err)
}

func (c *sshChannel) Write(p []byte) (int, error) {
	if broke := c.raw.broke.Load(); broke != nil {
		return 0, *broke // package ssh may not know it yet
	}
	n, err := c.Channel.Write(p)
	return n, c.raw.explain(err)
}

func (c *sshChannel) Close() error { return c.conn.Close() }

// tcpConn remembers how it broke: package ssh says io.EOF to that, as if the
// device had closed the channel.
type tcpConn struct {
	net.Conn
	broke atomic.Pointer[error] // the first
}

func (c *tcpConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	return n, c.note(err)
}

func (c *tcpConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	return n, c.note(err)
}

func (c *tcpConn) note(err error) error {
	if err != nil {
		c.broke.CompareAndSwap(nil, &err)
	}
	return err
}

// explain returns how the connection broke where a channel says io.EOF.
func (c *tcpConn) explain(err error) error {
	if broke := c.broke.Load(); errors.Is(err, io.EOF) && broke != nil {
		return *broke
	}
	return err
}
