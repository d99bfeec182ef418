package netconfswitch_test

import (
	"context"
	"fmt"
	"net"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/ocslab/ocslab/drivers/internal/drivertest"
	"github.com/ocslab/ocslab/ocs"
)

// dialRaw opens a session in the way of transport.SSH, without its deadlines.
func dialRaw(tb testing.TB, dev *rail0) *drivertest.Raw {
	tb.Helper()
	conn, err := net.Dial("tcp", dev.ssh.Addr)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { conn.Close() })
	c, chans, reqs, err := ssh.NewClientConn(conn, dev.ssh.Addr, &ssh.ClientConfig{
		User: "admin", Auth: []ssh.AuthMethod{ssh.Password("root")},
		HostKeyCallback: ssh.InsecureIgnoreHostKey(), // of this very process
	})
	if err != nil {
		tb.Fatal(err)
	}
	session, err := ssh.NewClient(c, chans, reqs).NewSession()
	if err != nil {
		tb.Fatal(err)
	}
	w, err1 := session.StdinPipe()
	r, err2 := session.StdoutPipe()
	if err1 != nil || err2 != nil {
		tb.Fatal(err1, err2)
	}
	if err := session.RequestSubsystem("netconf"); err != nil {
		tb.Fatal(err)
	}
	raw := &drivertest.Raw{W: w, R: r}
	raw.Ask(tb, []byte(ourHello), "]]>]]>")
	return raw
}

// BenchmarkApplyVsRaw has the same bytes exchanged over a bare SSH channel.
func BenchmarkApplyVsRaw(b *testing.B) {
	const model = "polatis-6000-32x32"
	dev := serve(b, model, nil)
	request := func(to string) []byte {
		message := `<rpc message-id="6ba7b810-9dad-41d1-80b4-00c04fd430c8" xmlns="urn:ietf:params:xml:ns:netconf:base:1.0">` +
			pairEdit("pair", "remove", to) + `</rpc>`
		return fmt.Appendf(nil, "\n#%d\n%s\n##\n", len(message), message)
	}
	requests := [2][]byte{request("1>33"), request("1>34")}
	drivertest.VersusRaw(b, openOn(b, dev.ssh), dev, dialRaw(b, serve(b, model, nil)), requests, "\n##\n")
}

// BenchmarkBulk moves all circuits of a full switch in one change, and one of
// another.
func BenchmarkBulk(b *testing.B) {
	const model = "polatis-7000-192x192"
	dev, other := serve(b, model, nil), serve(b, model, nil)
	drivertest.Bulk(b, openOn(b, dev.ssh), dev, openOn(b, other.ssh))
}

// BenchmarkConnect moves so many circuits in one change.
func BenchmarkConnect(b *testing.B) {
	drivertest.Connect(b, func(b *testing.B) ocs.Switch { return openOn(b, serve(b, "polatis-7000-192x192", nil).ssh) })
}

// BenchmarkRead reads the map and the monitors of a full switch.
func BenchmarkRead(b *testing.B) {
	dev := serve(b, "polatis-7000-192x192", nil)
	sw := openOn(b, dev.ssh)
	if _, err := sw.Apply(b.Context(), ocs.Change{Add: drivertest.Rotations(192, 192)[0]}); err != nil {
		b.Fatal(err)
	}
	for name, read := range map[string]func(context.Context) error{
		"map":   func(ctx context.Context) error { _, err := sw.CrossConnects(ctx); return err },
		"power": func(ctx context.Context) error { _, err := sw.Power(ctx); return err },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := read(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
