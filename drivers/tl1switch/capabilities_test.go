package tl1switch_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/ocslab/ocslab/drivers/tl1switch"
	"github.com/ocslab/ocslab/ocs"
)

// TestGarbledReplies is data that cannot be understood: an error with the raw
// reply, never a wrong value.
func TestGarbledReplies(t *testing.T) {
	ctx := context.Background()
	type call func(sw *tl1switch.Switch) error
	patches := call(func(sw *tl1switch.Switch) error { _, err := sw.CrossConnects(ctx); return err })
	power := call(func(sw *tl1switch.Switch) error { _, err := sw.Power(ctx); return err })
	monitors := call(func(sw *tl1switch.Switch) error { _, err := sw.Monitors(ctx); return err })
	shutters := call(func(sw *tl1switch.Switch) error { _, err := sw.Shutters(ctx); return err })
	labels := call(func(sw *tl1switch.Switch) error { _, err := sw.Labels(ctx); return err })
	boot := call(func(sw *tl1switch.Switch) error { _, err := sw.BootMode(ctx); return err })
	for _, tt := range []struct {
		call  call
		lines []string
	}{
		{patches, []string{"1"}},
		{patches, []string{"1,x"}},
		{patches, []string{"1,17,33"}},
		{patches, []string{"0,17"}},
		{patches, []string{"1,70000"}},
		{patches, []string{"1,17", "1,18"}},
		{patches, []string{"1,17", "2,17"}},
		{power, []string{"1"}},
		{power, []string{"x:-1"}},
		{power, []string{"1:"}},
		{power, []string{"1:NaN"}},
		{power, []string{"1:+Inf"}},
		{monitors, []string{"1:1550,0"}},
		{monitors, []string{"1:x,0,4"}},
		{monitors, []string{"1:1550,NaN,4"}},
		{monitors, []string{"1:1550,0,0"}},
		{monitors, []string{"1:1550,0,9"}},
		{shutters, []string{"1:AJAR"}},
		{labels, []string{"label"}},
		{boot, []string{"BOOT:MODE=BRIGHT"}},
		{boot, nil},
	} {
		talk(t, func(t *testing.T, sw *tl1switch.Switch) {
			err := tt.call(sw)
			var op *ocs.OpError
			if !errors.As(err, &op) || !strings.Contains(op.Reply, "COMPLD") || strings.Contains(err.Error(), "\n") {
				t.Errorf("%q: got %v", tt.lines, err)
			}
			if errors.Is(err, ocs.ErrConflict) || errors.Is(err, ocs.ErrPort) {
				t.Errorf("%q: %v is taken for a refusal", tt.lines, err)
			}
		}, func(l *line) {
			l.login(1)
			command := l.next()
			l.Send(completed(tag(command), tt.lines...))
		})
	}
}

// Some firmware may have a line for a port that is not connected, or for one
// that is dark.
func TestTolerance(t *testing.T) {
	talk(t, func(t *testing.T, sw *tl1switch.Switch) {
		m, err := sw.CrossConnects(t.Context())
		if err != nil || m.String() != "1>17" {
			t.Errorf("got %v, %v", m, err)
		}
		r, err := sw.Power(t.Context())
		if err != nil || !math.IsInf(float64(r.Ports[1]), -1) || r.Ports[2] != -3 {
			t.Errorf("got %v, %v", r, err)
		}
	}, func(l *line) {
		l.login(1)
		l.ask("RTRV-PATCH:::3:;", " 1 , 17 ", "2,", "3,0")
		l.ask("RTRV-PORT-POWER:::4:;", "1:-inf", "2: (-3.00)")
	})
}

func TestIdentify(t *testing.T) {
	const netype, inv, size = "RTRV-NETYPE:::3:;", "RTRV-INV::OCS:4:;", "RTRV-EQPT::SYSTEM:5:::PARAMETER=SIZE;"
	for _, tt := range []struct {
		name   string
		script func(l *line)
		want   ocs.Identity
	}{
		{"size from the product code", func(l *line) {
			l.ask(netype, "Polatis,N-VST-48xCC-LU1,OCS,6.7")
			l.ask(inv, "SN=1")
			l.expect(size)
			l.Send(denied("5", "IIAC", "no"))
		}, ocs.Identity{Vendor: "Polatis", Model: "N-VST-48xCC-LU1", Firmware: "6.7", Serial: "1", Geometry: ocs.SingleSided(48)}},
		{"nothing but a size", func(l *line) {
			l.ask(netype, "what?")
			l.expect(inv)
			l.Send(denied("4", "IICM", "no"))
			l.ask(size, "SYSTEM:SIZE=8x8")
		}, ocs.Identity{Geometry: ocs.TwoSided(8, 8)}},
		{"no size", func(l *line) {
			l.ask(netype, "Acme,OXC,OCS,1")
			l.ask(inv)
			l.ask(size)
			// Asked again, as the size is not known.
			l.ask("RTRV-NETYPE:::6:;", "Acme,OXC,OCS,1")
			l.ask("RTRV-INV::OCS:7:;")
			l.ask("RTRV-EQPT::SYSTEM:8:::PARAMETER=SIZE;")
		}, ocs.Identity{Vendor: "Acme", Model: "OXC", Firmware: "1"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			talk(t, func(t *testing.T, sw *tl1switch.Switch) {
				for range 2 {
					id, err := sw.Identify(t.Context())
					if err != nil || id != tt.want {
						t.Errorf("got %+v, %v, want %+v", id, err, tt.want)
					}
				}
			}, func(l *line) { l.login(1); tt.script(l) })
		})
	}
}
