package netconfserver

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"sync"
	"time"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/ocs"
)

// handshakeTimeout is how long a client may take for a TLS handshake.
const handshakeTimeout = 10 * time.Second

// Server speaks NETCONF for a device. Set the fields before the first use; the
// methods are safe for concurrent use.
type Server struct {
	Device *emulator.Device
	Faults emulator.Faults // what goes wrong on the wire; the zero value is nothing

	// editing is held from reading the configuration to changing it. It is
	// locked before mu.
	editing sync.Mutex

	log    eventLog
	logged sync.Once // begins the log

	mu       sync.Mutex // guards what follows
	sessions int
	lock     int                    // session that holds the lock on running, 0 if none
	restart  *time.Timer            // a restart that is to come
	up       context.Context        // of the network card when the last session came
	booted   time.Time              // by the device's clock
	armed    bool                   // alarms of the notes are set
	flaps    map[ocs.Port]time.Time // shutter programmes that were started, and their end; zero is none
}

// Serve accepts sessions on l until ctx ends; see [emulator.Serve]. It asks
// nobody who they are: all are the first administrator. It is meant for tests
// and for loopback.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	s.Record()
	return emulator.Accept(ctx, l, func(ctx context.Context, c net.Conn) {
		client := emulator.ClientOf(c)
		for _, u := range s.Device.Users() {
			if u.Group == emulator.Admin {
				client.User = u.Name
				break
			}
		}
		s.ServeSession(ctx, c, client)
	})
}

// ServeTLS accepts sessions over TLS (RFC 7589) on l until ctx ends; see
// [emulator.Serve]. Whatever cfg says, a client has to show a certificate that
// cfg.ClientCAs vouch for; the common name of its subject is the user, who needs
// an account on the device. A handshake may take ten seconds.
func (s *Server) ServeTLS(ctx context.Context, l net.Listener, cfg *tls.Config) error {
	s.Record()
	cfg = cfg.Clone()
	cfg.ClientAuth = tls.RequireAndVerifyClientCert
	return emulator.Accept(ctx, l, func(ctx context.Context, c net.Conn) {
		secure := tls.Server(c, cfg)
		shaking, cancel := context.WithTimeout(ctx, handshakeTimeout)
		defer cancel()
		if err := secure.HandshakeContext(shaking); err != nil {
			c.Close()
			return
		}
		client := emulator.ClientOf(c)
		client.User = secure.ConnectionState().PeerCertificates[0].Subject.CommonName
		s.ServeSession(ctx, secure, client)
	})
}

// ServeSession implements [emulator.FrontEnd]. A client whose User has no account
// is closed without a word.
func (s *Server) ServeSession(ctx context.Context, conn io.ReadWriteCloser, client emulator.SessionInfo) {
	defer conn.Close()
	ctx, end := context.WithCancel(ctx)
	defer end()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	stopReboot := context.AfterFunc(s.Device.Up(), end)
	defer stopReboot()
	impatient := time.AfterFunc(s.Device.Personality().NETCONF.Hello, end)
	defer impatient.Stop()
	group, known := s.Device.GroupOf(client.User)
	if !known || s.Device.Rebooting() || !s.enter() {
		return
	}
	defer s.leave()
	client.Protocol = "NETCONF"
	ss := newSession(s, conn, end, group)
	ss.me = s.Device.Enter(client, end)
	defer ss.me.Leave()
	s.Device.Report(ss.me, "USER", "Logged in")
	defer s.Device.Report(ss.me, "USER", "Logged out")
	ss.id = ss.me.Info().ID
	ss.run(ctx, impatient.Stop)
}

// enter counts a session in, unless there are too many.
func (s *Server) enter() bool {
	s.Record()
	s.rearm()
	s.mu.Lock()
	defer s.mu.Unlock()
	if limit := s.Device.Personality().NETCONF.MaxSessions; limit > 0 && s.sessions >= limit {
		return false
	}
	if up := s.Device.Up(); up != s.up {
		s.up, s.booted = up, s.Device.Now()
	}
	s.sessions++
	return true
}

func (s *Server) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sessions--
}
