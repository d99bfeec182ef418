package scpiserver_test

import (
	"strings"
	"testing"
	"time"

	"github.com/ocslab/ocslab/emulator"
)

const minimal = `model: m
vendor: v
product: p
firmware: f
size: 4x4
switching: {single: 50ms}
optics: {loss_db: 1, loss_max_db: 2}
`

func TestPersonality(t *testing.T) {
	p, err := emulator.ParsePersonality("p.yaml", []byte(minimal))
	if want := (emulator.SCPI{MaxPowerPorts: 256, ErrorQueue: 20}); err != nil || p.SCPI != want {
		t.Errorf("defaults: %+v, %v", p.SCPI, err)
	}
	p, err = emulator.ParsePersonality("p.yaml", []byte(minimal+`scpi: {gap: 100ms, max_power_ports: 1, max_sessions: 2, error_queue: 3, shared_errors: true,
  terse_errors: true, no_blank: true, apart: true, cr_only: true, empty_nothing: true, long_form: true}
`))
	want := emulator.SCPI{
		Gap: 100 * time.Millisecond, MaxPowerPorts: 1, MaxSessions: 2, ErrorQueue: 3, SharedErrors: true,
		TerseErrors: true, NoBlank: true, Apart: true, CROnly: true, EmptyNothing: true, LongForm: true,
	}
	if err != nil || p.SCPI != want {
		t.Errorf("%+v, %v", p.SCPI, err)
	}
	for _, bad := range []string{"gap: -1s", "max_power_ports: -1", "max_sessions: -1", "error_queue: 1", "error_queue: 10001"} {
		key, _, _ := strings.Cut(bad, ":")
		if _, err := emulator.ParsePersonality("p.yaml", []byte(minimal+"scpi: {"+bad+"}\n")); err == nil || !strings.Contains(err.Error(), "scpi."+key) {
			t.Errorf("%s: error %v", bad, err)
		}
	}
}
