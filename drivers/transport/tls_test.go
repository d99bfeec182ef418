package transport_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ocslab/ocslab/drivers/transport"
)

// authority signs certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	file string
}

func newCA(t testing.TB) *authority {
	t.Helper()
	ca := &authority{file: filepath.Join(t.TempDir(), "ca.pem")}
	der, key := ca.sign(t, &x509.Certificate{
		Subject: pkix.Name{CommonName: "lab"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	})
	var err error
	if ca.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	ca.key = key
	writePEM(t, ca.file, "CERTIFICATE", der)
	return ca
}

// sign makes a certificate; the first of an authority is its own.
func (ca *authority) sign(t testing.TB, c *x509.Certificate) ([]byte, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c.SerialNumber = big.NewInt(time.Now().UnixNano())
	c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, signer := ca.cert, ca.key
	if parent == nil {
		parent, signer = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	return der, key
}

// config is that of a server on 127.0.0.1, alias rail0.
func (ca *authority) config(t testing.TB) *tls.Config {
	t.Helper()
	der, key := ca.sign(t, &x509.Certificate{
		DNSNames: []string{"rail0"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
}

func writePEM(t testing.TB, file, kind string, der []byte) {
	t.Helper()
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
}

// serveTLS calls f for each client that shakes hands, until the test ends.
func serveTLS(t testing.TB, config *tls.Config, f func(net.Conn)) (addr string) {
	t.Helper()
	l, err := tls.Listen("tcp", "127.0.0.1:0", config)
	if err != nil {
		t.Fatal(err)
	}
	var clients sync.WaitGroup
	clients.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			clients.Go(func() {
				defer conn.Close()
				if conn.(*tls.Conn).HandshakeContext(t.Context()) == nil {
					f(conn)
				}
			})
		}
	})
	t.Cleanup(func() { l.Close(); clients.Wait() })
	return l.Addr().String()
}

func TestTLS(t *testing.T) {
	ca, other := newCA(t), newCA(t)
	config := ca.config(t)
	addr := serveTLS(t, config, func(conn net.Conn) { _, _ = io.Copy(conn, conn) })
	sum := sha256.Sum256(config.Certificates[0].Certificate[0])
	good := "SHA256:" + base64.RawStdEncoding.EncodeToString(sum[:])
	bad := "SHA256:" + strings.Repeat("00:", 31) + "00"
	empty := filepath.Join(t.TempDir(), "empty.pem")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		tls  transport.TLS
		want string // of the error
	}{
		{"CA", transport.TLS{CAFile: ca.file}, ""},
		{"Name", transport.TLS{CAFile: ca.file, ServerName: "rail0"}, ""},
		{"Pin", transport.TLS{Pin: good}, ""},
		{"PinPadded", transport.TLS{Pin: good + "="}, ""},
		{"PinHex", transport.TLS{Pin: fmt.Sprintf("SHA256:%x", sum)}, ""},
		{"PinOfOpenSSL", transport.TLS{Pin: "SHA256:" + strings.Trim(strings.ReplaceAll(fmt.Sprintf("% X", sum), " ", ":"), ":")}, ""},
		{"WrongCA", transport.TLS{CAFile: other.file}, "pin it or name its authority"},
		{"WrongCAFingerprint", transport.TLS{CAFile: other.file}, good},
		{"SystemCAs", transport.TLS{}, "pin it or name its authority"},
		{"WrongName", transport.TLS{CAFile: ca.file, ServerName: "rail1"}, "rail1"},
		{"WrongPin", transport.TLS{CAFile: ca.file, Pin: bad}, good + ", but the pinned one is SHA256:" + strings.Repeat("A", 43)},
		{"NoPin", transport.TLS{Pin: "hunter2"}, `want "SHA256:" and 32 bytes`},
		{"ShortPin", transport.TLS{Pin: "SHA256:AAAA"}, `want "SHA256:" and 32 bytes`},
		{"NoCAFile", transport.TLS{CAFile: "/nonexistent"}, "TLS authorities: open /nonexistent"},
		{"EmptyCAFile", transport.TLS{CAFile: empty}, "holds no certificate"},
		{"NoCertFile", transport.TLS{CAFile: ca.file, CertFile: "/nonexistent"}, "/nonexistent"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.tls.Addr = addr
			if tt.tls.String() != addr {
				t.Errorf("got %s", tt.tls)
			}
			if tt.want == "" {
				ask(t, open(t, tt.tls), "hello")
				return
			}
			conn, err := tt.tls.Dial(t.Context())
			if conn != nil || err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q in it", err, tt.want)
			}
		})
	}
	if _, err := (transport.TLS{Addr: "nowhere"}).Dial(t.Context()); err == nil {
		t.Error("dialed an address without a port")
	}
}

// TestTLSOld: a server that speaks TLS 1.1 at most is refused.
func TestTLSOld(t *testing.T) {
	ca := newCA(t)
	config := ca.config(t)
	config.MinVersion, config.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
	addr := serveTLS(t, config, func(net.Conn) { t.Error("shook hands") })
	if _, err := (transport.TLS{Addr: addr, CAFile: ca.file}).Dial(t.Context()); err == nil || !strings.Contains(err.Error(), "protocol version") {
		t.Errorf("got %v", err)
	}
}

// TestTLSClient shows a certificate to a server that asks for one.
func TestTLSClient(t *testing.T) {
	ca := newCA(t)
	config := ca.config(t)
	config.ClientCAs = x509.NewCertPool()
	config.ClientCAs.AddCert(ca.cert)
	config.ClientAuth = tls.RequireAndVerifyClientCert
	config.MaxVersion = tls.VersionTLS12 // where a client hears of it at once
	addr := serveTLS(t, config, func(conn net.Conn) { _, _ = io.Copy(conn, conn) })
	der, key := ca.sign(t, &x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	secret, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	d := transport.TLS{Addr: addr, CAFile: ca.file, CertFile: filepath.Join(t.TempDir(), "cert.pem")}
	d.KeyFile = d.CertFile + ".key"
	writePEM(t, d.CertFile, "CERTIFICATE", der)
	writePEM(t, d.KeyFile, "EC PRIVATE KEY", secret)
	ask(t, open(t, d), "hello")
	d.CertFile, d.KeyFile = "", ""
	if _, err := d.Dial(t.Context()); err == nil {
		t.Error("got in without a certificate")
	}
}

// TestTLSDeadline: a Write that is stopped goes on where it was, which a plain
// tls.Conn does not do.
func TestTLSDeadline(t *testing.T) {
	ca := newCA(t)
	read := make(chan struct{})
	got := make(chan []byte, 1)
	const size = 8 << 20
	addr := serveTLS(t, ca.config(t), func(conn net.Conn) {
		<-read
		p := make([]byte, size)
		n, _ := io.ReadFull(conn, p)
		got <- p[:n]
	})
	conn := open(t, transport.TLS{Addr: addr, CAFile: ca.file})
	sent := make([]byte, size)
	if _, err := rand.Read(sent); err != nil {
		t.Fatal(err)
	}
	stopped := 0
	for rest := sent; ; {
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
	if p := <-got; !bytes.Equal(p, sent) {
		t.Error("something else has arrived")
	}
	conn.Close()
	if _, err := conn.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
		t.Errorf("got %v", err)
	}
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("got %v", err)
	}
}

// TestDialContext: a server that does not shake hands is given up with the
// context.
func TestDialContext(t *testing.T) {
	for _, stage := range []string{"silent", "SSH version"} {
		for name, dialer := range map[string]func(addr string) transport.Dialer{
			"SSH": func(addr string) transport.Dialer { return transport.SSH{Addr: addr, AnyHostKey: true} },
			"TLS": func(addr string) transport.Dialer { return transport.TLS{Addr: addr} },
		} {
			t.Run(name+" "+stage, func(t *testing.T) {
				l, err := net.Listen("tcp", "127.0.0.1:0")
				if err != nil {
					t.Fatal(err)
				}
				defer l.Close()
				why := errors.New("the user has lost patience")
				ctx, cancel := context.WithCancelCause(t.Context())
				go func() {
					conn, err := l.Accept()
					if err != nil {
						return
					}
					defer conn.Close()
					if stage != "silent" && name == "SSH" {
						_, _ = io.WriteString(conn, "SSH-2.0-x\r\n")
					}
					_, _ = conn.Read(make([]byte, 1)) // it has begun
					cancel(why)
					_, _ = io.Copy(io.Discard, conn)
				}()
				if _, err := dialer(l.Addr().String()).Dial(ctx); !errors.Is(err, why) {
					t.Errorf("got %v", err)
				}
			})
		}
	}
}
