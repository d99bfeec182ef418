package scpiswitch_test

import (
	"bytes"
	"fmt"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/ocslab/ocslab/drivers/scpiswitch"
	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/ocs"
)

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
	return &socket{Conn: c}
}

func (s *socket) ask(tb testing.TB, request []byte) {
	if _, err := s.Write(request); err != nil {
		tb.Fatal(err)
	}
	for n := 0; !bytes.HasSuffix(s.buf[:n], []byte("\"\r\n")); {
		m, err := s.Read(s.buf[n:])
		if err != nil {
			tb.Fatal(err)
		}
		n += m
	}
}

// BenchmarkApplyVsRaw moves one circuit to and fro with Apply and with a bare
// socket that sends the same bytes, each on an emulated switch of its own, in
// turns. What the machine does to one it does to the other.
func BenchmarkApplyVsRaw(b *testing.B) {
	const model = "polatis-6000-32x32"
	srv, addr := serve(b, model, instant)
	_, rawAddr := serve(b, model, instant)
	sw, raw := openTCP(b, addr), dialRaw(b, rawAddr)

	at33, at34 := ocs.MustMap(ocs.CrossConnect{Ingress: 1, Egress: 33}), ocs.MustMap(ocs.CrossConnect{Ingress: 1, Egress: 34})
	changes := []ocs.Change{{Remove: at34, Add: at33}, {Remove: at33, Add: at34}}
	var requests [2][]byte
	for i := range requests {
		requests[i] = fmt.Appendf(nil, ":OXC:SWIT:CONN:ADD (@1),(@%d)\r\n*OPC?\r\n:SYST:ERR?\r\n", 33+i)
	}
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
	if !srv.Device.CrossConnects().Equal(changes[(i-1)%2].Add) {
		b.Fatal(srv.Device.CrossConnects())
	}
	report(b, applied, "apply")
	report(b, bare, "raw")
	b.ReportMetric(float64(quantile(applied, 0.5))/float64(quantile(bare, 0.5)), "x-raw")
}

func report(b *testing.B, ds []time.Duration, what string) {
	b.ReportMetric(float64(quantile(ds, 0.5))/1e3, what+"-p50-us")
	b.ReportMetric(float64(quantile(ds, 0.99))/1e3, what+"-p99-us")
}

func quantile(ds []time.Duration, q float64) time.Duration {
	slices.Sort(ds)
	return ds[int(q*float64(len(ds)-1))]
}

// rotations are two maps of n circuits of which each moves every one of the
// other.
func rotations(first ocs.Port, n int) []ocs.Map {
	maps := make([]ocs.Map, 2)
	for k := range maps {
		ccs := make([]ocs.CrossConnect, n)
		for i := range ccs {
			ccs[i] = ocs.CrossConnect{Ingress: ocs.Port(i + 1), Egress: first + ocs.Port((i+k)%max(n, 2))}
		}
		maps[k] = ocs.MustMap(ccs...)
	}
	return maps
}

// timed applies the change to maps[i%2] from the other one.
func timed(b *testing.B, sw *scpiswitch.Switch, maps []ocs.Map, i int) time.Duration {
	change := ocs.Diff(maps[(i+1)%2], maps[i%2])
	begun := time.Now()
	r, err := sw.Apply(b.Context(), change)
	if err != nil || r.Requests != 1 {
		b.Fatal(r.Requests, err)
	}
	return time.Since(begun)
}

// BenchmarkConnect moves 1, 16 or 192 circuits in one change.
func BenchmarkConnect(b *testing.B) {
	for _, n := range []int{1, 16, 192} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			_, addr := serve(b, "polatis-7000-192x192", instant)
			sw, maps := openTCP(b, addr), rotations(193, n)
			timed(b, sw, maps, 1)
			var ds []time.Duration
			for i := 0; b.Loop(); i++ {
				ds = append(ds, timed(b, sw, maps, i))
			}
			report(b, ds, "apply")
		})
	}
}

// BenchmarkBulk moves all circuits of a full switch in one change, and one of
// them on another switch, in turns.
func BenchmarkBulk(b *testing.B) {
	const model, n = "polatis-7000-192x192", 192
	srv, addr := serve(b, model, instant)
	_, addr1 := serve(b, model, instant)
	sw, sw1 := openTCP(b, addr), openTCP(b, addr1)
	full, single := rotations(n+1, n), rotations(n+1, 1)
	timed(b, sw, full, 1)
	timed(b, sw1, single, 1)
	var bulks, singles []time.Duration
	i := 0
	for b.Loop() {
		bulks = append(bulks, timed(b, sw, full, i))
		singles = append(singles, timed(b, sw1, single, i))
		i++
	}
	if !srv.Device.CrossConnects().Equal(full[(i-1)%2]) {
		b.Fatal("the device holds something else")
	}
	report(b, bulks, "bulk")
	report(b, singles, "single")
	b.ReportMetric(float64(quantile(bulks, 0.5))/float64(quantile(singles, 0.5)), "x-single")
}

// BenchmarkPower reads all monitors of a switch that has them at egress only. The
// first reading finds that out.
func BenchmarkPower(b *testing.B) {
	_, addr := serve(b, "polatis-7000-192x192", func(p *emulator.Personality) {
		instant(p)
		p.Monitors.Sides = emulator.MonitorsEgress
	})
	sw := openTCP(b, addr)
	var ds []time.Duration
	for b.Loop() {
		begun := time.Now()
		if _, err := sw.Power(b.Context()); err != nil {
			b.Fatal(err)
		}
		ds = append(ds, time.Since(begun))
	}
	b.ReportMetric(float64(ds[0])/1e3, "first-us")
	report(b, ds, "power")
}
