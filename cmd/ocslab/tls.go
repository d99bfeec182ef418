package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"github.com/spf13/pflag"
)

// tlsFlags are how the connections of a control plane are protected.
type tlsFlags struct {
	cert, key, ca, name string
}

func (t *tlsFlags) add(f *pflag.FlagSet) {
	f.StringVar(&t.cert, "tls-cert", "", "certificate `FILE` (PEM), for TLS")
	f.StringVar(&t.key, "tls-key", "", "`FILE` with its key")
	f.StringVar(&t.ca, "tls-ca", "", "`FILE` with the authorities of the other side")
}

// given reports whether there is to be TLS.
func (t *tlsFlags) given() bool { return t.cert != "" || t.key != "" || t.ca != "" }

// config returns nil if there is to be no TLS.
func (t *tlsFlags) config() (*tls.Config, error) {
	if !t.given() {
		return nil, nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS13, ServerName: t.name}
	if (t.cert == "") != (t.key == "") {
		return nil, usagef("--tls-cert and --tls-key go together")
	}
	if t.cert != "" {
		pair, err := tls.LoadX509KeyPair(t.cert, t.key)
		if err != nil {
			return nil, usagef("--tls-cert %s, --tls-key %s: %w", t.cert, t.key, err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	if t.ca != "" {
		pem, err := os.ReadFile(t.ca)
		if err != nil {
			return nil, usagef("--tls-ca: %w", err)
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(pem) {
			return nil, usagef("--tls-ca %s: there is no certificate in it", t.ca)
		}
		c.RootCAs, c.ClientCAs, c.ClientAuth = pool, pool, tls.RequireAndVerifyClientCert
	}
	return c, nil
}

// listen listens on a TCP address, with TLS if the flags say so.
func (t *tlsFlags) listen(address string) (net.Listener, error) {
	c, err := t.config()
	if err != nil {
		return nil, err
	}
	if c != nil && len(c.Certificates) == 0 {
		return nil, usagef("to listen with TLS takes --tls-cert and --tls-key")
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		var op *net.AddrError
		if errors.As(err, &op) {
			return nil, usagef("listen on %s: %w", address, err)
		}
		return nil, fmt.Errorf("listen on %s: %w", address, err)
	}
	if c != nil {
		return &tellingListener{Listener: tls.NewListener(l, c), said: map[string]time.Time{}}, nil
	}
	if host, _, err := net.SplitHostPort(l.Addr().String()); err == nil && !net.ParseIP(host).IsLoopback() {
		fmt.Fprintf(os.Stderr, "ocslab: %s can be reached from other machines, and has no TLS: who reaches it can move light\n", l.Addr())
	}
	return l, nil
}

// dialer returns what connects to an address.
func (t *tlsFlags) dialer(address string) (func(context.Context) (net.Conn, error), error) {
	c, err := t.config()
	if err != nil {
		return nil, err
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, usagef("address %q: want HOST:PORT", address)
	}
	if c == nil {
		return func(ctx context.Context) (net.Conn, error) { return new(net.Dialer).DialContext(ctx, "tcp", address) }, nil
	}
	if c.ServerName == "" {
		c.ServerName = host
	}
	return func(ctx context.Context) (net.Conn, error) {
		return (&tls.Dialer{Config: c}).DialContext(ctx, "tcp", address)
	}, nil
}

// errWire: the other side of a connection of the control plane cannot be reached.
var errWire = errors.New("no connection")

// firstRead is a connection that tells how its first Read ended.
type firstRead struct {
	net.Conn
	once sync.Once
	done func(error)
}

func (c *firstRead) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 || err != nil {
		c.once.Do(func() {
			if n > 0 {
				c.done(nil)
			} else {
				c.done(err)
			}
		})
	}
	return n, err
}

// tellingListener says on stderr which connections have no certificate that is good: the other side may say less. Of
// one that tries again and again it says so twice a minute.
type tellingListener struct {
	net.Listener
	mu   sync.Mutex
	said map[string]time.Time // by host and error
}

// tell says it, unless it has been said.
func (l *tellingListener) tell(from net.Addr, err error) {
	host, _, split := net.SplitHostPort(from.String())
	if split != nil {
		host = from.String()
	}
	what := host + ": " + err.Error()
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Since(l.said[what]) < 30*time.Second {
		return
	}
	if len(l.said) > 1000 {
		clear(l.said)
	}
	l.said[what] = time.Now()
	fmt.Fprintf(os.Stderr, "ocslab: refused a connection from %s\n", what)
}

func (l *tellingListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &firstRead{Conn: c, done: func(err error) {
		if t, ok := c.(*tls.Conn); ok && err != nil && !t.ConnectionState().HandshakeComplete {
			l.tell(c.RemoteAddr(), err)
		}
	}}, nil
}
