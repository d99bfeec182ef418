package drivertest

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/ocslab/ocslab/ocs"
)

// Quantile sorts ds, and returns what the share q of them, in 0 to 1, does not
// exceed.
func Quantile(ds []time.Duration, q float64) time.Duration {
	slices.Sort(ds)
	return ds[int(q*float64(len(ds)-1))]
}

// Report reports the median and the 99th percentile of what took ds.
func Report(b *testing.B, ds []time.Duration, what string) {
	b.ReportMetric(float64(Quantile(ds, 0.5))/1e3, what+"-p50-us")
	b.ReportMetric(float64(Quantile(ds, 0.99))/1e3, what+"-p99-us")
}

// Ratio reports the median of ds in medians of base.
func Ratio(b *testing.B, ds, base []time.Duration, unit string) {
	b.ReportMetric(float64(Quantile(ds, 0.5))/float64(Quantile(base, 0.5)), unit)
}

// Raw is the least a client can be: it knows no more of a protocol than how a
// reply ends.
type Raw struct {
	W   io.Writer
	R   io.Reader
	buf [4096]byte
}

// DialRaw connects until the end of the test.
func DialRaw(tb testing.TB, addr string) *Raw {
	tb.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { c.Close() })
	return &Raw{W: c, R: c}
}

// Ask sends a request and reads until end comes.
func (r *Raw) Ask(tb testing.TB, request []byte, end string) {
	if _, err := r.W.Write(request); err != nil {
		tb.Fatal(err)
	}
	for n := 0; !bytes.HasSuffix(r.buf[:n], []byte(end)); {
		m, err := r.R.Read(r.buf[n:])
		if err != nil {
			tb.Fatal(err)
		}
		n += m
	}
}

// VersusRaw moves one circuit of a 32 x 32 switch to and fro, with Apply and with
// a bare connection to another switch of the same kind, in turns: what the
// machine does to one it does to the other. Requests move the circuit of ingress
// 1 to egress 33 and to 34; replies end with end.
func VersusRaw(b *testing.B, sw ocs.Switch, dev Device, raw *Raw, requests [2][]byte, end string) {
	at33, at34 := ocs.MustMap(ocs.CrossConnect{Ingress: 1, Egress: 33}), ocs.MustMap(ocs.CrossConnect{Ingress: 1, Egress: 34})
	maps := []ocs.Map{at33, at34}
	var applied, bare []time.Duration
	apply := func(i int) { applied = append(applied, timed(b, sw, maps, i)) }
	ask := func(i int) {
		begun := time.Now()
		raw.Ask(b, requests[i%2], end)
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
	if !dev.CrossConnects().Equal(maps[(i-1)%2]) {
		b.Fatal(dev.CrossConnects())
	}
	Report(b, applied, "apply")
	Report(b, bare, "raw")
	Ratio(b, applied, bare, "x-raw")
}

// Rotations are two maps of n circuits of a size x size switch, of which each
// moves every circuit of the other.
func Rotations(size, n int) []ocs.Map {
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

// timed goes to maps[i%2] from the other one, in one request.
func timed(b *testing.B, sw ocs.Switch, maps []ocs.Map, i int) time.Duration {
	b.Helper()
	change := ocs.Diff(maps[(i+1)%2], maps[i%2])
	begun := time.Now()
	r, err := sw.Apply(b.Context(), change)
	took := time.Since(begun)
	if err != nil || r.Requests != 1 {
		b.Fatal(r.Requests, err)
	}
	return took
}

// Bulk moves all circuits of a full 192 x 192 switch in one change, and a circuit
// of another switch of the same kind, in turns.
func Bulk(b *testing.B, sw ocs.Switch, dev Device, other ocs.Switch) {
	const n = 192
	full, single := Rotations(n, n), Rotations(n, 1)
	timed(b, sw, full, 1)
	timed(b, other, single, 1)
	var bulks, singles []time.Duration
	i := 0
	for b.Loop() {
		bulks = append(bulks, timed(b, sw, full, i))
		singles = append(singles, timed(b, other, single, i))
		i++
	}
	if !dev.CrossConnects().Equal(full[(i-1)%2]) {
		b.Fatal("the device holds something else")
	}
	Report(b, bulks, "bulk")
	Report(b, singles, "single")
	Ratio(b, bulks, singles, "x-single")
}

// Connect moves 1, 16 or 192 circuits of a 192 x 192 switch in one change. Open
// is asked for a switch that holds nothing.
func Connect(b *testing.B, open func(b *testing.B) ocs.Switch) {
	for _, n := range []int{1, 16, 192} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			sw, maps := open(b), Rotations(192, n)
			timed(b, sw, maps, 1)
			var ds []time.Duration
			for i := 0; b.Loop(); i++ {
				ds = append(ds, timed(b, sw, maps, i))
			}
			Report(b, ds, "apply")
		})
	}
}
