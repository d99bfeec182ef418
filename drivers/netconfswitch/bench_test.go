package netconfswitch_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/ocslab/ocslab/drivers/netconfswitch"
	"github.com/ocslab/ocslab/ocs"
)

// channel is the least a client can be: a bare SSH channel, and no more of
// NETCONF than to know the end of a reply.
type channel struct {
	w   io.Writer
	r   io.Reader
	buf [4096]byte
}

// dialRaw opens a session in the way of transport.SSH, without its deadlines.
func dialRaw(tb testing.TB, dev *rail0) *channel {
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
	raw := &channel{w: w, r: r}
	raw.ask(tb, []byte(ourHello), "]]>]]>")
	return raw
}

func (c *channel) ask(tb testing.TB, request []byte, end string) {
	if _, err := c.w.Write(request); err != nil {
		tb.Fatal(err)
	}
	for n := 0; !bytes.HasSuffix(c.buf[:n], []byte(end)); {
		m, err := c.r.Read(c.buf[n:])
		if err != nil {
			tb.Fatal(err)
		}
		n += m
	}
}

// BenchmarkApplyVsRaw moves one circuit to and fro with Apply and with a bare
// SSH channel that exchanges the same bytes, each on an emulated switch of its
// own, in turns. What the machine does to one it does to the other.
func BenchmarkApplyVsRaw(b *testing.B) {
	const model = "polatis-6000-32x32"
	dev := serve(b, model, nil)
	sw, raw := openOn(b, dev.ssh), dialRaw(b, serve(b, model, nil))

	at33, at34 := ocs.MustMap(ocs.CrossConnect{Ingress: 1, Egress: 33}), ocs.MustMap(ocs.CrossConnect{Ingress: 1, Egress: 34})
	changes := []ocs.Change{{Remove: at34, Add: at33}, {Remove: at33, Add: at34}}
	request := func(to string) []byte {
		message := `<rpc message-id="6ba7b810-9dad-41d1-80b4-00c04fd430c8" xmlns="urn:ietf:params:xml:ns:netconf:base:1.0">` +
			pairEdit("pair", "remove", to) + `</rpc>`
		return fmt.Appendf(nil, "\n#%d\n%s\n##\n", len(message), message)
	}
	requests := [][]byte{request("1>33"), request("1>34")}
	var applied, bare []time.Duration
	ctx := b.Context()
	apply := func(i int) {
		begun := time.Now()
		r, err := sw.Apply(ctx, changes[i%2])
		applied = append(applied, time.Since(begun))
		if err != nil || r.Requests != 1 {
			b.Fatal(r.Requests, err)
		}
	}
	ask := func(i int) {
		begun := time.Now()
		raw.ask(b, requests[i%2], "\n##\n")
		bare = append(bare, time.Since(begun))
	}
	i := 0
	for b.Loop() {
		if i%4 < 2 { // who goes first alternates, and so does who moves where
			apply(i)
			ask(i)
		} else {
			ask(i)
			apply(i)
		}
		i++
	}
	if !dev.CrossConnects().Equal(changes[(i-1)%2].Add) {
		b.Fatal(dev.CrossConnects())
	}
	report := func(d time.Duration, unit string) { b.ReportMetric(float64(d)/1e3, unit) }
	report(quantile(applied, 0.5), "apply-p50-us")
	report(quantile(applied, 0.99), "apply-p99-us")
	report(quantile(bare, 0.5), "raw-p50-us")
	b.ReportMetric(float64(quantile(applied, 0.5))/float64(quantile(bare, 0.5)), "x-raw")
}

func quantile(ds []time.Duration, q float64) time.Duration {
	slices.Sort(ds)
	return ds[int(q*float64(len(ds)-1))]
}

// turned are the maps of n circuits each, shifted by 0 and 1.
func turned(size, n int) []ocs.Map {
	maps := make([]ocs.Map, 2)
	for k := range maps {
		ccs := make([]ocs.CrossConnect, n)
		for i := range ccs {
			ccs[i] = ocs.CrossConnect{Ingress: ocs.Port(i + 1), Egress: ocs.Port(size + 1 + (i+k)%max(n, 2))}
		}
		maps[k] = ocs.MustMap(ccs...)
	}
	return maps
}

// timed moves from one of two maps to the other.
func timed(b *testing.B, sw *netconfswitch.Switch, maps []ocs.Map, i int) (time.Duration, int) {
	change := ocs.Diff(maps[(i+1)%2], maps[i%2])
	begun := time.Now()
	r, err := sw.Apply(b.Context(), change)
	if err != nil {
		b.Fatal(err)
	}
	return time.Since(begun), r.Requests
}

// BenchmarkBulk moves all circuits of a full switch in one change, and one of
// them on a switch of the same kind, in turns.
func BenchmarkBulk(b *testing.B) {
	const model, n = "polatis-7000-192x192", 192
	dev, other := serve(b, model, nil), serve(b, model, nil)
	sw, sw1 := openOn(b, dev.ssh), openOn(b, other.ssh)
	full, single := turned(n, n), turned(n, 1)
	timed(b, sw, full, 1)
	timed(b, sw1, single, 1)
	var bulks, singles []time.Duration
	requests, i := 0, 0
	for b.Loop() {
		d, r := timed(b, sw, full, i)
		bulks, requests = append(bulks, d), max(requests, r)
		d, _ = timed(b, sw1, single, i)
		singles = append(singles, d)
		i++
	}
	if !dev.CrossConnects().Equal(full[(i-1)%2]) {
		b.Fatal("the device holds something else")
	}
	b.ReportMetric(float64(requests), "requests")
	b.ReportMetric(float64(quantile(bulks, 0.5))/1e3, "bulk-p50-us")
	b.ReportMetric(float64(quantile(singles, 0.5))/1e3, "single-p50-us")
	b.ReportMetric(float64(quantile(bulks, 0.5))/float64(quantile(singles, 0.5)), "x-single")
}

// BenchmarkConnect moves so many circuits in one change.
func BenchmarkConnect(b *testing.B) {
	for _, n := range []int{1, 16, 192} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			dev := serve(b, "polatis-7000-192x192", nil)
			sw := openOn(b, dev.ssh)
			maps := turned(192, n)
			timed(b, sw, maps, 1)
			var took []time.Duration
			i := 0
			for b.Loop() {
				d, _ := timed(b, sw, maps, i)
				took = append(took, d)
				i++
			}
			b.ReportMetric(float64(quantile(took, 0.5))/1e3, "p50-us")
			b.ReportMetric(float64(quantile(took, 0.99))/1e3, "p99-us")
		})
	}
}

// BenchmarkRead reads the map and the monitors of a full switch.
func BenchmarkRead(b *testing.B) {
	dev := serve(b, "polatis-7000-192x192", nil)
	sw := openOn(b, dev.ssh)
	timed(b, sw, turned(192, 192), 1)
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
