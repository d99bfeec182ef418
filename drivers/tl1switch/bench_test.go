package tl1switch_test

import (
	"bytes"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/ocslab/ocslab/drivers/tl1switch"
	"github.com/ocslab/ocslab/drivers/transport"
	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/emulator/tl1server"
	"github.com/ocslab/ocslab/internal/secret"
	"github.com/ocslab/ocslab/ocs"
)

// serve emulates a switch that moves light in no time, so that only the wire
// and the programs at its ends are measured, and returns its address.
func serve(tb testing.TB, model string) (*emulator.Device, string) {
	tb.Helper()
	p, err := emulator.LoadPersonality(model)
	if err != nil {
		tb.Fatal(err)
	}
	p.Switching = emulator.Switching{Ack: emulator.AckAfter}
	dev, err := emulator.New(p, emulator.Options{Name: "rail0", Seed: 1})
	if err != nil {
		tb.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- (&tl1server.Server{Device: dev}).Serve(tb.Context(), l) }()
	tb.Cleanup(func() {
		if err := <-served; err != nil {
			tb.Error(err)
		}
	})
	return dev, l.Addr().String()
}

func openTCP(tb testing.TB, addr string) *tl1switch.Switch {
	tb.Helper()
	sw, err := tl1switch.Open(tb.Context(), tl1switch.Config{
		Dialer: transport.TCP{Addr: addr}, Device: "rail0", Password: secret.New("root"),
	})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { sw.Close() })
	return sw
}

// socket is the least a client can be.
type socket struct {
	net.Conn
	buf [4096]byte
}

func dialRaw(tb testing.TB, addr string) *socket {
	tb.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { c.Close() })
	s := &socket{Conn: c}
	s.ask(tb, []byte("ACT-USER::admin:1::root;"))
	s.ask(tb, []byte("OPR-ARC-EQPT::REPMGR:2::IND;"))
	return s
}

func (s *socket) ask(tb testing.TB, request []byte) {
	if _, err := s.Write(request); err != nil {
		tb.Fatal(err)
	}
	for n := 0; !bytes.HasSuffix(s.buf[:n], []byte(";")); {
		m, err := s.Read(s.buf[n:])
		if err != nil {
			tb.Fatal(err)
		}
		n += m
	}
}

// BenchmarkApplyVsRaw moves one circuit to and fro with Apply and with a bare
// socket, each on an emulated switch of its own, in turns. What the machine
// does to one it does to the other.
func BenchmarkApplyVsRaw(b *testing.B) {
	const model = "polatis-6000-32x32"
	dev, addr := serve(b, model)
	_, rawAddr := serve(b, model)
	sw, raw := openTCP(b, addr), dialRaw(b, rawAddr)

	at33, at34 := ocs.MustMap(ocs.CrossConnect{Ingress: 1, Egress: 33}), ocs.MustMap(ocs.CrossConnect{Ingress: 1, Egress: 34})
	changes := []ocs.Change{{Remove: at34, Add: at33}, {Remove: at33, Add: at34}}
	requests := [][]byte{[]byte("ENT-PATCH::1,33:100001:;"), []byte("ENT-PATCH::1,34:100002:;")}
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
		raw.ask(b, requests[i%2])
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

// BenchmarkBulk moves all circuits of a full switch in one change, and one of
// them, in turns.
func BenchmarkBulk(b *testing.B) {
	const model, n = "polatis-7000-192x192", 192
	dev, addr := serve(b, model)
	sw := openTCP(b, addr)
	full := make([]ocs.Map, 2)
	for k := range full {
		ccs := make([]ocs.CrossConnect, n)
		for i := range ccs {
			ccs[i] = ocs.CrossConnect{Ingress: ocs.Port(i + 1), Egress: ocs.Port(n + 1 + (i+k)%n)}
		}
		full[k] = ocs.MustMap(ccs...)
	}
	// The single circuit is on a switch of the same kind.
	_, addr1 := serve(b, model)
	sw1 := openTCP(b, addr1)
	single := []ocs.Map{
		ocs.MustMap(ocs.CrossConnect{Ingress: 1, Egress: n + 1}),
		ocs.MustMap(ocs.CrossConnect{Ingress: 1, Egress: n + 2}),
	}
	ctx := b.Context()
	timed := func(sw *tl1switch.Switch, maps []ocs.Map, i int) (time.Duration, int) {
		change := ocs.Diff(maps[(i+1)%2], maps[i%2])
		begun := time.Now()
		r, err := sw.Apply(ctx, change)
		if err != nil {
			b.Fatal(err)
		}
		return time.Since(begun), r.Requests
	}
	timed(sw, full, 1)
	timed(sw1, single, 1)
	var bulks, singles []time.Duration
	requests, i := 0, 0
	for b.Loop() {
		d, r := timed(sw, full, i)
		bulks, requests = append(bulks, d), max(requests, r)
		d, _ = timed(sw1, single, i)
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
