package transport_test

import (
	"context"
	"io"
	"net"
	"slices"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/ocslab/ocslab/drivers/transport"
	"github.com/ocslab/ocslab/internal/secret"
)

// BenchmarkSSHEcho sends 64 bytes and reads them back, through the transport
// and through a bare channel of package ssh on a connection of its own, in
// turns. What the machine does to one it does to the other.
func BenchmarkSSHEcho(b *testing.B) {
	addr, _ := serveSSH(b, newDevice(b), nil)
	conn, err := transport.SSH{Addr: addr, User: "admin", Password: secret.New("root"), AnyHostKey: true, Subsystem: "echo"}.Dial(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	bare := bareChannel(b, addr)

	request, reply := make([]byte, 64), make([]byte, 64)
	ask := func(rw io.ReadWriter) time.Duration {
		begun := time.Now()
		if _, err := rw.Write(request); err != nil {
			b.Fatal(err)
		}
		if _, err := io.ReadFull(rw, reply); err != nil {
			b.Fatal(err)
		}
		return time.Since(begun)
	}
	// Deadlines as drivers set them: now and then, some time ahead.
	var by time.Time
	through := func() time.Duration {
		if now := time.Now(); by.Sub(now) < 10*time.Millisecond {
			by = now.Add(20 * time.Millisecond)
			conn.SetReadDeadline(by)
			conn.SetWriteDeadline(by)
		}
		return ask(conn)
	}
	var ours, theirs []time.Duration
	for i := 0; b.Loop(); i++ {
		if i%2 == 0 { // who goes first alternates
			ours = append(ours, through())
			theirs = append(theirs, ask(bare))
		} else {
			theirs = append(theirs, ask(bare))
			ours = append(ours, through())
		}
	}
	p50 := func(ds []time.Duration) float64 { return float64(quantile(ds, 0.5)) / 1e3 }
	b.ReportMetric(p50(ours), "ssh-p50-us")
	b.ReportMetric(float64(quantile(ours, 0.99))/1e3, "ssh-p99-us")
	b.ReportMetric(p50(theirs), "bare-p50-us")
	b.ReportMetric(p50(ours)/p50(theirs), "x-bare")
}

func quantile(ds []time.Duration, q float64) time.Duration {
	slices.Sort(ds)
	return ds[int(q*float64(len(ds)-1))]
}

// bareChannel is the least an SSH client can be.
func bareChannel(tb testing.TB, addr string) ssh.Channel {
	tb.Helper()
	c, err := ssh.Dial("tcp", addr, &ssh.ClientConfig{
		User: "admin", Auth: []ssh.AuthMethod{ssh.Password("root")}, HostKeyCallback: ssh.InsecureIgnoreHostKey(),
	})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { c.Close() })
	ch, requests, err := c.OpenChannel("session", nil)
	if err != nil {
		tb.Fatal(err)
	}
	go ssh.DiscardRequests(requests)
	if ok, err := ch.SendRequest("subsystem", true, ssh.Marshal(struct{ Name string }{"echo"})); !ok || err != nil {
		tb.Fatal(ok, err)
	}
	return ch
}

// BenchmarkTLSEcho is the same over TLS, without anything to compare with.
func BenchmarkTLSEcho(b *testing.B) {
	ca := newCA(b)
	addr := serveTLS(b, ca.config(b), func(conn net.Conn) { _, _ = io.Copy(conn, conn) })
	conn, err := transport.TLS{Addr: addr, CAFile: ca.file}.Dial(context.Background())
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	p := make([]byte, 64)
	for b.Loop() {
		if _, err := conn.Write(p); err != nil {
			b.Fatal(err)
		}
		if _, err := io.ReadFull(conn, p); err != nil {
			b.Fatal(err)
		}
	}
}
