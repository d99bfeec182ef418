package ocstrx

import (
	"testing"
	"time"

	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// BenchmarkChipLane is what one question of a settle loop costs.
func BenchmarkChipLane(b *testing.B) {
	// All sixteen elements of the external paths begin to move, and 50 times, 1 µs apart,
	// all lanes are asked. The drives of the elements are in the figure.
	b.Run("moving", func(b *testing.B) {
		c := newChip(DefaultParams(), 1)
		c.light(0, 0xff)
		drives := [2][ocst.Elements]ocst.Drive{
			solve(b, c.truth(), pathStates(ocst.LoopPath)), solve(b, c.truth(), pathStates(ocst.Path2)),
		}
		at := time.Duration(0)
		asked := 0
		for i := 0; b.Loop(); i++ {
			at += time.Millisecond
			apply(c, at, drives[i%2])
			for step := range 50 {
				for lane := range ocst.Lanes {
					c.lane(at+time.Duration(step)*time.Microsecond, lane)
					asked++
				}
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(asked), "ns/lane")
	})
	b.Run("settled", func(b *testing.B) {
		c := newChip(DefaultParams(), 1)
		c.light(0, 0xff)
		at := settle(b, c, 0, pathStates(ocst.Path1))
		for i := 0; b.Loop(); i++ {
			c.lane(at+time.Duration(i)*time.Microsecond, i%8)
		}
	})
}

// litLoop returns a chip with all lanes settled on the loop, and when that is.
func litLoop(b *testing.B) (c *chip, at time.Duration) {
	c = newChip(DefaultParams(), 1)
	c.light(0, 0xff)
	return c, settle(b, c, 0, loopStates(b, ocst.DefaultPermutation()))
}

func BenchmarkChipPowers(b *testing.B) {
	c, at := litLoop(b)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		c.powers(at + time.Duration(i))
	}
}

func BenchmarkChipRead(b *testing.B) {
	c, at := litLoop(b)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		c.read(at + time.Duration(i))
	}
}

// BenchmarkChipSet is one drive of a heater.
func BenchmarkChipSet(b *testing.B) {
	c := newChip(DefaultParams(), 1)
	for i := 0; b.Loop(); i++ {
		c.set(time.Duration(i)*10*time.Microsecond, ocst.Element(i%ocst.Elements), 0, 1+float64(i/ocst.Elements%2))
	}
}

func BenchmarkNewChip(b *testing.B) {
	for i := 0; b.Loop(); i++ {
		newChip(DefaultParams(), uint64(i))
	}
}
