package netconfserver_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"io"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/ocslab/ocslab/emulator/internal/servertest"
)

// converse sends messages and returns what comes back, one for each and the
// hello before.
func converse(c net.Conn, messages ...string) (replies []string, err error) {
	for _, msg := range append([]string{hello}, messages...) {
		if _, err := io.WriteString(c, msg+eom); err != nil {
			return replies, err
		}
		reply, err := servertest.ReadUntil(c, whole)
		if err != nil {
			return replies, fmt.Errorf("after %q: %w", reply, err)
		}
		replies = append(replies, reply)
	}
	return replies, nil
}

// whole reports whether got ends with a message.
func whole(got string) bool { return strings.HasSuffix(got, eom) }

// oneClient connects, makes a cross-connect and leaves.
func oneClient(addr, in, out string) error {
	c, err := servertest.DialTCP(addr)
	if err != nil {
		return err
	}
	defer c.Close()
	replies, err := converse(c,
		`<rpc message-id="1" `+base+`><edit-config><target><running/></target><config><cross-connects `+opsw+`><pair><ingress>`+in+`</ingress><egress>`+out+`</egress></pair></cross-connects></config></edit-config></rpc>`,
		`<rpc message-id="2" `+base+`><close-session/></rpc>`)
	if err != nil {
		return err
	}
	for _, r := range replies[1:] {
		if !strings.Contains(r, "<ok/>") {
			return fmt.Errorf("got %q", r)
		}
	}
	return nil
}

// authority makes certificates.
type authority struct {
	t    *testing.T
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
	pool *x509.CertPool
}

func newAuthority(t *testing.T) *authority {
	a := &authority{t: t, pool: x509.NewCertPool()}
	c := a.issue("test authority")
	a.key = c.PrivateKey.(*ecdsa.PrivateKey)
	a.cert = c.Leaf
	a.pool.AddCert(a.cert)
	return a
}

func (a *authority) issue(name string) tls.Certificate {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: a.cert == nil, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		a.t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

func TestServeTLS(t *testing.T) {
	ours, others := newAuthority(t), newAuthority(t)
	s := newServer(t, personality())
	addr, stop := servertest.Serve(t, func(ctx context.Context, l net.Listener) error {
		return s.ServeTLS(ctx, l, &tls.Config{Certificates: []tls.Certificate{ours.issue("rail0")}, ClientCAs: ours.pool})
	})
	const lock = `<rpc message-id="1" ` + base + `><lock><target><running/></target></lock></rpc>`
	for name, test := range map[string]struct {
		certs []tls.Certificate
		want  string // "" is no session
	}{
		"Admin":   {[]tls.Certificate{ours.issue("admin")}, "<ok/>"},
		"Viewer":  {[]tls.Certificate{ours.issue("view")}, "access-denied"},
		"Nobody":  {[]tls.Certificate{ours.issue("nobody")}, ""},
		"None":    {nil, ""},
		"Foreign": {[]tls.Certificate{others.issue("admin")}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := tls.Dial("tcp", addr, &tls.Config{Certificates: test.certs, RootCAs: ours.pool, ServerName: "127.0.0.1"})
			if err != nil {
				if test.want != "" {
					t.Fatal(err)
				}
				return
			}
			defer c.Close()
			replies, err := converse(c, lock)
			if test.want == "" {
				if err == nil {
					t.Errorf("got %q", replies)
				}
				return
			}
			if err != nil || !strings.Contains(replies[1], test.want) {
				t.Errorf("got %q, error %v", replies, err)
			}
		})
	}
	// Who is no TLS client does not keep the server from ending.
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	stop()
}
