package tl1switch_test

import (
	"testing"

	"github.com/ocslab/ocslab/drivers/internal/drivertest"
	"github.com/ocslab/ocslab/drivers/tl1switch"
	"github.com/ocslab/ocslab/drivers/transport"
	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/emulator/tl1server"
	"github.com/ocslab/ocslab/internal/secret"
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
	return dev, drivertest.Listen(tb, (&tl1server.Server{Device: dev}).Serve)
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

func dialRaw(tb testing.TB, addr string) *drivertest.Raw {
	tb.Helper()
	raw := drivertest.DialRaw(tb, addr)
	raw.Ask(tb, []byte("ACT-USER::admin:1::root;"), ";")
	raw.Ask(tb, []byte("OPR-ARC-EQPT::REPMGR:2::IND;"), ";")
	return raw
}

// BenchmarkApplyVsRaw has the same commands sent by a bare socket.
func BenchmarkApplyVsRaw(b *testing.B) {
	const model = "polatis-6000-32x32"
	dev, addr := serve(b, model)
	_, rawAddr := serve(b, model)
	requests := [2][]byte{[]byte("ENT-PATCH::1,33:100001:;"), []byte("ENT-PATCH::1,34:100002:;")}
	drivertest.VersusRaw(b, openTCP(b, addr), dev, dialRaw(b, rawAddr), requests, ";")
}

// BenchmarkBulk moves all circuits of a full switch in one change, and one of
// another.
func BenchmarkBulk(b *testing.B) {
	const model = "polatis-7000-192x192"
	dev, addr := serve(b, model)
	_, other := serve(b, model)
	drivertest.Bulk(b, openTCP(b, addr), dev, openTCP(b, other))
}
