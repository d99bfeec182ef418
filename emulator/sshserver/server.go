package sshserver

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/ocslab/ocslab/emulator"
)

// Server is the SSH server of a device. Set the fields before the first use; the
// methods are safe for concurrent use.
type Server struct {
	Device     *emulator.Device
	HostKey    ssh.Signer                   // see [HostKey]
	Shell      emulator.FrontEnd            // nil: there is none
	Subsystems map[string]emulator.FrontEnd // by name, such as "netconf"

	// AuthorizedKeys are accepted from users of the device, by name.
	AuthorizedKeys map[string][]ssh.PublicKey
	// Version is what the server calls itself, after RFC 4253, section 4.2;
	// default "SSH-2.0-OCS".
	Version string
	// Banner is shown before authentication; "" is none.
	Banner string
	// MaxSessions is the number of sessions at a time, of all clients together;
	// one more is not opened. 0 is no limit.
	MaxSessions int
	// Handshake is how long a client may take from connecting to having logged
	// in; default 30 s.
	Handshake time.Duration
	// NoEcho is when a terminal echoes nothing, whatever the client asks for.
	NoEcho bool
	// Legacy are the only algorithms of their kind that are offered, as by old
	// gear: "diffie-hellman-group1-sha1", "aes128-cbc", "hmac-sha1-96", and
	// "ssh-rsa" for an RSA key as HostKey.
	Legacy []string

	mu       sync.Mutex // guards sessions
	sessions int
}

// Serve accepts clients on l until ctx ends; see [emulator.Serve]. An error that
// has nothing to do with l is one of the Server's fields.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	config, err := s.config()
	if err != nil {
		l.Close()
		return err
	}
	return emulator.Accept(ctx, l, func(ctx context.Context, conn net.Conn) { s.serve(ctx, conn, config) })
}

// config has what is the same for all clients.
func (s *Server) config() (*ssh.ServerConfig, error) {
	if s.Device == nil || s.HostKey == nil {
		return nil, errors.New("sshserver: a Server needs a Device and a HostKey")
	}
	config := &ssh.ServerConfig{ServerVersion: s.Version}
	if config.ServerVersion == "" {
		config.ServerVersion = "SSH-2.0-OCS"
	}
	if s.Banner != "" {
		config.BannerCallback = func(ssh.ConnMetadata) string { return s.Banner }
	}
	s.authenticate(config)
	key, err := s.restrict(config)
	if err != nil {
		return nil, err
	}
	config.AddHostKey(key)
	return config, nil
}

// serve serves one connection, with any number of sessions.
func (s *Server) serve(ctx context.Context, conn net.Conn, config *ssh.ServerConfig) {
	defer conn.Close()
	ctx, end := context.WithCancel(ctx)
	defer end()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	stopReboot := context.AfterFunc(s.Device.Up(), end)
	defer stopReboot()
	if s.Device.Rebooting() {
		return
	}
	handshake := s.Handshake
	if handshake <= 0 {
		handshake = 30 * time.Second
	}
	_ = conn.SetDeadline(time.Now().Add(handshake)) // if it fails, so does what follows
	client, channels, requests, err := ssh.NewServerConn(conn, config)
	if err != nil {
		return
	}
	_ = conn.SetDeadline(time.Time{})
	var all sync.WaitGroup
	defer all.Wait()
	defer end()
	all.Go(func() { ssh.DiscardRequests(requests) }) // also what keeps alive
	info := emulator.ClientOf(conn)
	info.User = client.User()
	for offered := range channels {
		switch {
		case offered.ChannelType() == "session":
			all.Go(func() { s.session(ctx, offered, conn, info) })
		case offered.ChannelType() == "direct-tcpip":
			_ = offered.Reject(ssh.Prohibited, "forwarding is not allowed")
		default:
			_ = offered.Reject(ssh.UnknownChannelType, "unknown channel type")
		}
	}
}

// enter counts a session in, unless there are too many.
func (s *Server) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.MaxSessions > 0 && s.sessions >= s.MaxSessions {
		return false
	}
	s.sessions++
	return true
}

func (s *Server) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sessions--
}
