package live

import (
	"errors"
	"testing"

	"github.com/ocslab/ocslab/linkmon/probe"
)

// Traffic is lost only when packets are missing; late ones, and a sender that is late, are not
// the circuit's doing.
func TestTraffic(t *testing.T) {
	const now = 100_000_000_000
	recent := int64(now - 90_000_000)
	before := probe.FlowState{Sent: 100, Received: 90, Late: 3, JudgedNS: recent - 500_000_000}
	for name, x := range map[string]struct {
		f    probe.FlowState
		want string
	}{
		"arrives":                  {probe.FlowState{Alive: true, Sent: 200, Received: 190, Late: 3, JudgedNS: recent}, "flows"},
		"arrives, some were late":  {probe.FlowState{Alive: true, Sent: 200, Received: 180, Late: 9, JudgedNS: recent}, "flows"},
		"missing":                  {probe.FlowState{Sent: 200, Received: 90, Late: 3, Lost: 80, JudgedNS: recent}, "lost"},
		"missing, began just now":  {probe.FlowState{Sent: 200, Received: 150, Late: 3, Lost: 20, JudgedNS: recent}, "lost"},
		"counted missing, arrives": {probe.FlowState{Sent: 200, Received: 90, Late: 80, Lost: 80, JudgedNS: recent}, "late"},
		"nothing was sent":         {probe.FlowState{Sent: 100, Received: 90, Late: 3, Lost: 10, JudgedNS: recent}, "late"},
		"no verdict for long":      {probe.FlowState{Alive: true, Sent: 200, Received: 190, Late: 3, JudgedNS: now - 3_000_000_000}, "late"},
		"no verdict yet":           {probe.FlowState{Sent: 3}, ""},
		"cannot be set up":         {probe.FlowState{Err: errors.New("no"), JudgedNS: recent}, ""},
		"of an agent, arrives":     {probe.FlowState{Alive: true, JudgedNS: recent}, "flows"},
		"of an agent, missing":     {probe.FlowState{JudgedNS: recent}, "lost"},
	} {
		if got := traffic(x.f, before, now); got != x.want {
			t.Errorf("%s: %q, want %q", name, got, x.want)
		}
	}
}
