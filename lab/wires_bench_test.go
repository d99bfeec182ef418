package lab_test

import (
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/ocslab/ocslab/drivers"
	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/internal/secret"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/ocs"
)

// BenchmarkWires connects 1, 16 and 192 circuits over every wire of one
// emulated device that moves in no time: what is measured is the wire and the
// programs at its ends. The wires take turns, so that what the machine does to
// one it does to all.
func BenchmarkWires(b *testing.B) {
	const ports = 192
	p, err := emulator.LoadPersonality("polatis-7000-192x192")
	if err != nil {
		b.Fatal(err)
	}
	p.Switching = emulator.Switching{Ack: emulator.AckAfter}
	listen := map[lab.Endpoint]string{lab.TL1: "", lab.TL1SSH: "", lab.SCPI: "", lab.NETCONF: ""}
	if runtime.GOOS == "linux" {
		listen[lab.Serial] = filepath.Join(b.TempDir(), "tty")
	}
	e, err := lab.Emulation{Personality: p, Listen: listen}.Start()
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { e.Close() })
	var wires []lab.Endpoint
	switches := map[lab.Endpoint]ocs.Switch{}
	for at := range listen {
		sw, err := drivers.Open(b.Context(), e.URLs()[at], drivers.Options{Password: secret.New(lab.EmulatedPassword)})
		if err != nil {
			b.Fatal(at, err)
		}
		b.Cleanup(func() { sw.Close() })
		wires, switches[at] = append(wires, at), sw
	}
	slices.Sort(wires)
	for _, n := range []int{1, 16, ports} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var maps [2]ocs.Map
			for k := range maps {
				ccs := make([]ocs.CrossConnect, n)
				for i := range ccs {
					ccs[i] = ocs.CrossConnect{Ingress: ocs.Port(i + 1), Egress: ocs.Port(ports + 1 + (i+k)%max(n, 2))}
				}
				maps[k] = ocs.MustMap(ccs...)
			}
			if _, err := e.Device.Edit(nil, emulator.Edit{Only: true, Add: maps[1].Slice()}); err != nil {
				b.Fatal(err)
			}
			times := map[lab.Endpoint][]time.Duration{}
			for i := 0; b.Loop(); i++ {
				for j := range wires {
					at := wires[(i+j)%len(wires)]
					k := (i*len(wires) + j) % 2
					change := ocs.Diff(maps[1-k], maps[k])
					begun := time.Now()
					if _, err := switches[at].Apply(b.Context(), change); err != nil {
						b.Fatal(at, err)
					}
					times[at] = append(times[at], time.Since(begun))
				}
			}
			for _, at := range wires {
				slices.Sort(times[at])
				for _, q := range []struct {
					q    float64
					name string
				}{{0.5, "p50"}, {0.99, "p99"}} {
					b.ReportMetric(float64(times[at][int(q.q*float64(len(times[at])-1))])/1e3, fmt.Sprintf("%s-%s-us", at, q.name))
				}
			}
		})
	}
}
