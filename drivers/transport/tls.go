package transport

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"
)

// TLS dials host:port and speaks TLS 1.2 or later there (RFC 5246, RFC 8446).
// The server's certificate must be good for ServerName and lead to an authority
// of the system, or to one in CAFile; or it is the one that is pinned.
type TLS struct {
	Addr       string // host:port
	ServerName string // in the certificate; default the host of Addr
	CAFile     string // PEM; the authorities that count instead of the system's
	// CertFile and KeyFile are shown to a server that asks for them (PEM).
	CertFile, KeyFile string
	// Pin is "SHA256:" and the digest of the server's certificate (DER) in
	// base64 or in hexadecimal, with or without colons. It replaces all other
	// checks, so that a device with a certificate of its own making can be told
	// from any other.
	Pin string
}

// String returns the address.
func (t TLS) String() string { return t.Addr }

// Dial connects and shakes hands.
func (t TLS) Dial(ctx context.Context) (Conn, error) {
	config, err := t.config()
	if err != nil {
		return nil, err
	}
	raw, err := TCP{t.Addr}.Dial(ctx)
	if err != nil {
		return nil, err
	}
	c := tls.Client(raw.(*net.TCPConn), config)
	if err := c.HandshakeContext(ctx); err != nil {
		raw.Close()
		if ctx.Err() != nil {
			return nil, fmt.Errorf("TLS with %s: %w", t.Addr, context.Cause(ctx))
		}
		return nil, fmt.Errorf("TLS with %s: %w", t.Addr, t.explain(err))
	}
	return &tlsConn{c, newWriter(c, bufferSize)}, nil
}

func (t TLS) config() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName}
	if config.ServerName == "" {
		host, _, err := net.SplitHostPort(t.Addr)
		if err != nil {
			return nil, fmt.Errorf("cannot connect: %w", err)
		}
		config.ServerName = host
	}
	if t.CAFile != "" {
		pem, err := os.ReadFile(t.CAFile)
		if err != nil {
			return nil, fmt.Errorf("TLS authorities: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("TLS authorities: %s holds no certificate (PEM)", t.CAFile)
		}
	}
	if t.CertFile != "" || t.KeyFile != "" {
		pair, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("TLS certificate %q with key %q: %w", t.CertFile, t.KeyFile, err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	if t.Pin != "" {
		want, err := parsePin(t.Pin)
		if err != nil {
			return nil, err
		}
		config.InsecureSkipVerify = true // VerifyConnection does, also for sessions that are resumed
		config.VerifyConnection = func(state tls.ConnectionState) error {
			if got := sha256.Sum256(state.PeerCertificates[0].Raw); !bytes.Equal(got[:], want) {
				return fmt.Errorf("the device shows the certificate %s, but the pinned one is %s: if the device was replaced, pin the new one; if not, somebody is in between",
					fingerprint(got[:]), fingerprint(want))
			}
			return nil
		}
	}
	return config, nil
}

func fingerprint(sum []byte) string { return "SHA256:" + base64.RawStdEncoding.EncodeToString(sum) }

func parsePin(pin string) ([]byte, error) {
	digest, found := strings.CutPrefix(pin, "SHA256:")
	if found {
		sum, err := hex.DecodeString(strings.ReplaceAll(digest, ":", ""))
		if err != nil {
			sum, err = base64.RawStdEncoding.DecodeString(strings.TrimRight(digest, "="))
		}
		if err == nil && len(sum) == sha256.Size {
			return sum, nil
		}
	}
	return nil, fmt.Errorf(`the pinned certificate %.100q is no digest: want "SHA256:" and 32 bytes in base64 or hexadecimal`, pin)
}

// explain adds what to do about a certificate that is not trusted.
func (t TLS) explain(err error) error {
	var bad *tls.CertificateVerificationError
	if !errors.As(err, &bad) || len(bad.UnverifiedCertificates) == 0 {
		return err
	}
	sum := sha256.Sum256(bad.UnverifiedCertificates[0].Raw)
	return fmt.Errorf("%w: the device shows the certificate %s: compare it with what the device says of itself, then pin it or name its authority",
		err, fingerprint(sum[:]))
}

// tlsConn reads directly. After a Write that hit its deadline a tls.Conn is
// broken, so writing is left to a goroutine that has none.
type tlsConn struct {
	*tls.Conn
	out *writer
}

func (c *tlsConn) Write(p []byte) (int, error)        { return c.out.Write(p) }
func (c *tlsConn) SetWriteDeadline(t time.Time) error { return c.out.SetWriteDeadline(t) }

func (c *tlsConn) Close() error {
	c.out.stop()
	err := c.Conn.Close()
	<-c.out.ended
	return err
}
