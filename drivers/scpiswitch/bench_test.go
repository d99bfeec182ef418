package scpiswitch_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/ocslab/ocslab/drivers/internal/drivertest"
	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/ocs"
)

// BenchmarkApplyVsRaw has the same bytes sent by a bare socket.
func BenchmarkApplyVsRaw(b *testing.B) {
	const model = "polatis-6000-32x32"
	srv, addr := serve(b, model, instant)
	_, rawAddr := serve(b, model, instant)
	var requests [2][]byte
	for i := range requests {
		requests[i] = fmt.Appendf(nil, ":OXC:SWIT:CONN:ADD (@1),(@%d)\r\n*OPC?\r\n:SYST:ERR?\r\n", 33+i)
	}
	drivertest.VersusRaw(b, openTCP(b, addr), srv.Device, drivertest.DialRaw(b, rawAddr), requests, "\"\r\n")
}

// BenchmarkConnect moves 1, 16 or 192 circuits in one change.
func BenchmarkConnect(b *testing.B) {
	drivertest.Connect(b, func(b *testing.B) ocs.Switch {
		_, addr := serve(b, "polatis-7000-192x192", instant)
		return openTCP(b, addr)
	})
}

// BenchmarkBulk moves all circuits of a full switch in one change, and one of
// another.
func BenchmarkBulk(b *testing.B) {
	const model = "polatis-7000-192x192"
	srv, addr := serve(b, model, instant)
	_, other := serve(b, model, instant)
	drivertest.Bulk(b, openTCP(b, addr), srv.Device, openTCP(b, other))
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
	drivertest.Report(b, ds, "power")
}
