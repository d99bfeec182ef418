package linkmon

import (
	"runtime"
	"time"
)

// onDemand is the pace of NoCounters: the counters are read when somebody asks.
type onDemand struct{ m *Monitor }

func (p *onDemand) begin()             {}
func (p *onDemand) pause()             { <-p.m.kick }
func (p *onDemand) cpu() time.Duration { return 0 }

// sleeper leaves the pauses to the Go runtime: not as punctual as a thread, but it
// runs everywhere, also in virtual time.
type sleeper struct{ m *Monitor }

func (p *sleeper) begin()             {}
func (p *sleeper) cpu() time.Duration { return 0 }

func (p *sleeper) pause() {
	if p.m.opt.Tight {
		runtime.Gosched()
		return
	}
	t := time.NewTimer(p.m.nap())
	defer t.Stop()
	select {
	case <-t.C:
	case <-p.m.kick:
	}
}
