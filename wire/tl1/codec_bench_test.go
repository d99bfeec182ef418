package tl1_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/ocslab/ocslab/wire/tl1"
)

// BenchmarkCodec decodes the reply to RTRV-PATCH of a full 384x384 switch and,
// interleaved with that, cuts the same bytes into lines with bytes.Split. The
// ratio of the medians, x-split, is about the same on any machine.
func BenchmarkCodec(b *testing.B) {
	m := tl1.Message{SID: "POLATIS1", Date: "26-11-20", Time: "10:00:00", CTAG: "123", Completion: tl1.COMPLD}
	for p := 1; p <= 384; p++ {
		m.Text = append(m.Text, fmt.Sprintf("%d,%d", p, 384+p))
	}
	stream := tl1.AppendMessage(nil, m, tl1.Style{})

	var (
		d      tl1.Decoder
		decode = make([]time.Duration, 0, b.N)
		split  = make([]time.Duration, 0, b.N)
		lines  [][]byte
	)
	b.SetBytes(int64(len(stream)))
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		start := time.Now()
		d.Feed(stream)
		got, ok, err := d.Next()
		decode = append(decode, time.Since(start))
		if !ok || err != nil || len(got.Text) != 384 {
			b.Fatalf("Next: %d lines, %t, %v", len(got.Text), ok, err)
		}

		b.StopTimer()
		start = time.Now()
		lines = bytes.Split(stream, []byte("\r\n"))
		split = append(split, time.Since(start))
		b.StartTimer()
	}
	b.StopTimer()
	if want := 384 + 4; len(lines) != want {
		b.Fatalf("%d lines, want %d", len(lines), want)
	}
	slices.Sort(decode)
	slices.Sort(split)
	b.ReportMetric(float64(decode[len(decode)/2])/float64(split[len(split)/2]), "x-split")
}
