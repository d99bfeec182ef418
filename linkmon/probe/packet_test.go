package probe

import (
	"bytes"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/timeline"
)

func FuzzParse(f *testing.F) {
	b := make([]byte, packetSize)
	header{run: 1 << 63, flow: 7, seq: 3, sent: -1}.put(b)
	f.Add(b)
	f.Add(b[:packetSize-1])
	f.Add(append(bytes.Clone(b), 0))
	f.Add([]byte{})
	for _, i := range []int{0, 4, 5, 20} { // magic, version, what must be zero
		bad := bytes.Clone(b)
		bad[i]++
		f.Add(bad)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := parse(b)
		if err != nil {
			if h != (header{}) {
				t.Errorf("%v beside an error", h)
			}
			return
		}
		again := make([]byte, packetSize)
		h.put(again)
		if !bytes.Equal(b, again) {
			t.Errorf("%x is written as %x", b, again)
		}
	})
}

func TestParse_Version(t *testing.T) {
	b := make([]byte, packetSize)
	header{seq: 1}.put(b)
	if _, err := parse(b); err != nil {
		t.Fatal(err)
	}
	b[4] = 2
	if _, err := parse(b); err == nil || err.Error() != "packet of a probe of version 2, want 1" {
		t.Error(err)
	}
}

func TestGaps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ns := rapid.Uint64Range(0, 1<<63-1).Draw(t, "ns")
		i := gapBucket(ns)
		end := uint64(gapEnd(i))
		if end < ns || end-ns > ns/8 || i > 0 && uint64(gapEnd(i-1)) >= ns {
			t.Fatalf("%d is in bucket %d, which ends with %d", ns, i, end)
		}
	})
	var g gaps
	if g.quantile(0.5) != 0 {
		t.Error("a median of nothing")
	}
	for ns := range int64(1000) {
		g.add(ns + 1)
	}
	g.add(-1)
	for q, want := range map[float64]time.Duration{0: 0, 0.5: 500, 0.99: 990, 1: 1000} {
		if got := g.quantile(q); got < want || got > want+want/8 {
			t.Errorf("quantile %v = %v, want %v or an eighth more", q, got, want)
		}
	}
}

func TestWallclock(t *testing.T) {
	const off = int64(1e18)
	for _, tt := range []struct {
		name     string
		base     clockSample
		now      clockSample
		stamp    int64
		earliest int64
		latest   int64
	}{
		{"still", clockSample{0, off}, clockSample{2e6, off}, off + 1e6, 1e6 - 250, 1e6 + 250},
		{"slewed", clockSample{0, off}, clockSample{1e9, off + 5e5}, off + 5e5 + 1e6, 1e6 - 500250, 1e6 + 500250},
		{"noise", clockSample{0, off}, clockSample{2e6, off - 100}, off + 1e6, 1e6 - 250, 1e6 + 450},
		{"stepped forward", clockSample{0, off}, clockSample{2e6, off + 5000}, off + 1e6, 5e5, 19e5},
		{"stepped back", clockSample{0, off}, clockSample{2e6, off - 1e9}, off + 1e6, 5e5, 19e5},
		{"before it was sent", clockSample{0, off}, clockSample{2e6, off}, off + 4e5, 5e5, 19e5},
		{"after it was read", clockSample{0, off}, clockSample{2e6, off}, off + 3e6, 5e5, 19e5},
		{"just sent", clockSample{0, off}, clockSample{2e6, off}, off + 5e5 + 100, 5e5, 5e5 + 350},
		{"while it was read", clockSample{0, off}, clockSample{2e6, off}, off + 18e5, 5e5, 18e5 + 250},
		{"none", clockSample{0, off}, clockSample{2e6, off}, 0, 5e5, 19e5},
	} {
		w := wallclock{base: tt.base}
		w.use(tt.now)
		got := w.interval(tt.stamp, 5e5, 17e5, 19e5)
		want := timeline.Interval{Earliest: max(tt.earliest, 5e5), Latest: min(tt.latest, 19e5)}
		if got != want {
			t.Errorf("%s: %+v, want %+v", tt.name, got, want)
		}
	}
	a, b := sampleClocks(timeline.HostAxis()), sampleClocks(timeline.HostAxis())
	if d := b.off - a.off; b.at < a.at || max(d, -d) > 1e6 {
		t.Errorf("clocks compare as %v and then as %v", a, b)
	}
}
