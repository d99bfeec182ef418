package ocstrx

import (
	"context"
	"testing"
	"time"

	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// BenchmarkJoined is what cables cost: a look at the lanes of a module that is alone, or has lit
// modules at both fibres, and a switch of all lanes of one that is heard.
func BenchmarkJoined(b *testing.B) {
	for _, cables := range []int{0, 2} {
		clock := new(VirtualClock)
		ring := make([]*bench, 3)
		for i := range ring {
			ring[i] = &bench{b, NewModule(DefaultParams(), Options{Seed: uint64(i), Clock: clock, Wall: testWall}), clock}
		}
		for i := range cables {
			if _, err := Join(ring[i].Module, 1, ring[i+1].Module, 0, 1); err != nil {
				b.Fatal(err)
			}
		}
		clock.Advance(20 * time.Millisecond)
		for i, p := range []ocst.Path{ocst.Path2, ocst.Path1, ocst.Path1} {
			ring[i].switchTo(p, 0xff)
		}
		name := map[int]string{0: "alone", 2: "cables"}[cables]
		buf := make([]byte, ocst.LanesSpan.Length)
		b.Run("look/"+name, func(b *testing.B) {
			for b.Loop() {
				clock.Advance(time.Microsecond)
				if err := ring[1].Read(context.Background(), ocst.LanesSpan.Address, buf); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("switch/"+name, func(b *testing.B) {
			paths := [2]ocst.Path{ocst.Path2, ocst.Path1}
			for n := 0; b.Loop(); n++ {
				ring[1].switchTo(paths[n%2], 0xff)
			}
		})
	}
}
