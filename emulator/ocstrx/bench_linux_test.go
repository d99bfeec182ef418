package ocstrx

import (
	"fmt"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// BenchmarkFabricSwitch256 is a switch of 256 modules at once, from commit to the last look,
// in CPU time of the emulator; p50-us and p99-us are durations in model time, for which the
// modules go round all three paths.
func BenchmarkFabricSwitch256(b *testing.B) {
	for _, control := range []uint8{0, ocst.PreEmphasis} {
		b.Run(fmt.Sprintf("pre-emphasis=%d", control), func(b *testing.B) {
			clock := new(VirtualClock)
			modules := make([]*bench, 256)
			for i := range modules {
				modules[i] = &bench{b, NewModule(DefaultParams(), Options{Seed: uint64(i), Clock: clock, Wall: testWall}), clock}
			}
			clock.Advance(20 * time.Millisecond)
			for _, m := range modules {
				m.put(ocst.At(ocst.RegControl), control)
				m.order(ocst.Path1, 0xff, ocst.CommitNow)
			}
			clock.Advance(2 * time.Millisecond)
			paths := []ocst.Path{ocst.Path2, ocst.LoopPath, ocst.Path1}
			n := 0
			begun := cpuTime(b)
			for b.Loop() {
				for _, m := range modules {
					m.order(paths[n%len(paths)], 0xff, ocst.CommitNow)
				}
				clock.Advance(2 * time.Millisecond)
				for _, m := range modules {
					m.status()
				}
				n++
			}
			cpu := cpuTime(b) - begun
			for _, m := range modules {
				if s := m.status(); s.Sequence != uint32(n+1) {
					b.Fatalf("%d switches, want %d; fault %v", s.Sequence, n+1, m.lanes().Fault)
				}
			}
			b.ReportMetric(cpu.Seconds()*1e3/float64(n), "cpu-ms/fabric")
			all := durations(b, 300, control)
			b.ReportMetric(float64(all[len(all)/2])/1e3, "p50-us")
			b.ReportMetric(float64(all[len(all)*99/100])/1e3, "p99-us")
			b.ReportMetric(float64(all[len(all)-1])/1e3, "most-us")
		})
	}
}

// BenchmarkModuleStatus is a look at the status of a module that carries light.
func BenchmarkModuleStatus(b *testing.B) {
	m := readyBench(b, 1)
	m.switchTo(ocst.Path1, 0xff)
	b.ReportAllocs()
	for b.Loop() {
		m.clock.Advance(time.Microsecond)
		m.status()
	}
}

// cpuTime is what the process has used of the processor, which other programs on the machine
// do not change as they do the time on the wall.
func cpuTime(b *testing.B) time.Duration {
	var use unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &use); err != nil {
		b.Fatal(err)
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}
