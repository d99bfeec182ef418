package experiment

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/timeline"
)

// meter reads the monitors of a switch until it is stopped.
type meter struct {
	cancel context.CancelFunc
	ended  chan struct{}
	more   chan struct{} // holds one: readings have come

	mu       sync.Mutex // guards what follows
	readings []ocs.PowerReading
	err      error
}

func (r *Rig) watch(ctx context.Context, ports []ocs.Port, poll time.Duration) *meter {
	ctx, cancel := context.WithCancel(ctx)
	m := &meter{cancel: cancel, ended: make(chan struct{}), more: make(chan struct{}, 1)}
	if len(ports) == 0 {
		close(m.ended)
		return m
	}
	go func() {
		defer close(m.ended)
		pace := time.NewTicker(poll)
		defer pace.Stop()
		for ctx.Err() == nil {
			var power ocs.PowerReading
			err := Guard(func() (err error) { power, err = r.Meter.Power(ctx, ports...); return err })
			m.mu.Lock()
			if err != nil {
				m.err = err
				m.mu.Unlock()
				return
			}
			m.readings = append(m.readings, power)
			m.mu.Unlock()
			select {
			case m.more <- struct{}{}:
			default:
			}
			select {
			case <-pace.C:
			case <-ctx.Done():
			}
		}
	}()
	return m
}

// stop ends the reading; a nil meter never began.
func (m *meter) stop() {
	if m == nil {
		return
	}
	m.cancel()
	<-m.ended
}

func (m *meter) count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.readings)
}

// age is the time since the first reading.
func (m *meter) age() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.readings) == 0 {
		return 0
	}
	return time.Since(m.readings[0].Earliest)
}

// next waits for another reading; false when none will come.
func (m *meter) next(ctx context.Context) (bool, error) {
	select {
	case <-m.more:
		return true, nil
	case <-m.ended:
		m.mu.Lock()
		defer m.mu.Unlock()
		return false, m.err
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
}

func (m *meter) atLeast(ctx context.Context, n int) error {
	for m.count() < n {
		if ok, err := m.next(ctx); !ok {
			return err
		}
	}
	return nil
}

// levels returns the power at each port before the change, in dBm; minus
// infinity for a port whose monitor is at its floor.
func (m *meter) levels() map[ocs.Port]float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	levels := map[ocs.Port]float64{}
	for _, r := range m.readings {
		for p, power := range r.Ports {
			levels[p] = float64(power)
			if power < ocs.NoLight {
				levels[p] = math.Inf(-1)
			}
		}
	}
	return levels
}

// samples returns the readings of one port.
func (m *meter) samples(p ocs.Port) []timeline.Sample {
	m.mu.Lock()
	defer m.mu.Unlock()
	axis := timeline.HostAxis()
	var s []timeline.Sample
	for _, r := range m.readings {
		if power, ok := r.Ports[p]; ok {
			s = append(s, timeline.Sample{Interval: axis.Span(r.Earliest, r.Latest), PowerDBm: float64(power)})
		}
	}
	return s
}

// unseen is how long after the acknowledgement light that was never dark is taken
// to have come back in less time than a monitor can tell.
const unseen = 500 * time.Millisecond

// settled waits until the light of every port in lit is back, and some more so
// that it can be told to have stayed.
func (m *meter) settled(ctx context.Context, before map[ocs.Port]float64, lit map[ocs.Port]bool, rule timeline.SettleRule, patience time.Duration) error {
	began := time.Now()
	var since time.Time // when all were first seen settled
	for time.Since(began) < patience {
		if ok, err := m.next(ctx); !ok {
			return err
		}
		all := true
		for p := range lit {
			samples := m.samples(p)
			if len(samples) == 0 {
				continue // has no monitor
			}
			switch _, light := timeline.Edges(before[p], samples, rule); light.State() {
			case timeline.Known:
			case timeline.NoDark:
				all = all && time.Since(began) >= unseen+3*rule.Averaging
			default:
				all = false
			}
		}
		switch {
		case !all:
			since = time.Time{}
		case since.IsZero():
			since = time.Now()
		case time.Since(since) >= max(3*rule.Averaging, m.age()/3):
			return nil // as long as timeline.Edges wants it
		}
	}
	return nil
}

// ErrNoMonitor: none of the ports has a power monitor.
var ErrNoMonitor = errors.New("none of the ports has a power monitor")

// AssumedAveraging is over what time the readings of monitors are averaged whose
// settings cannot be read: what most come with.
const AssumedAveraging = 100 * time.Millisecond

// restoreTime is how long the settings of monitors are tried to be put back.
const restoreTime = 5 * time.Second

// Quicken sets the averaging of the monitors at ports to the shortest that the
// device offers, returns what it then is, and a function that puts the former
// settings back, for which it takes a few seconds at most, also when its context has ended.
func Quicken(ctx context.Context, meter ocs.PowerMeter, ports ...ocs.Port) (time.Duration, func(context.Context) error, error) {
	old, err := meter.Monitors(ctx, ports...)
	if err != nil {
		return 0, nil, err
	}
	if len(old) == 0 {
		return 0, nil, ErrNoMonitor
	}
	quick := slices.Clone(old)
	for i := range quick {
		quick[i].Averaging = 1 // nanosecond: rounded up to the first step
	}
	restore := func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), restoreTime)
		defer cancel()
		var errs []error
		for _, m := range old {
			errs = append(errs, meter.SetMonitor(ctx, m))
		}
		return once(errs...)
	}
	if of, ok := meter.(lab.MonitorSetter); ok { // it is restored even if this program is killed
		if restore, err = of.SetMonitorsMeanwhile(ctx, quick); err != nil {
			return 0, nil, err
		}
		quick = nil
	}
	for _, m := range quick {
		if err := meter.SetMonitor(ctx, m); err != nil {
			return 0, nil, once(err, restore(ctx))
		}
	}
	now, err := meter.Monitors(ctx, ports...)
	if err != nil {
		return 0, nil, once(err, restore(ctx))
	}
	var longest time.Duration
	for _, m := range now {
		longest = max(longest, m.Averaging)
	}
	return longest, restore, nil
}

// once joins errors. Those that say the same are there once: a switch that cannot be reached
// says so for every port.
func once(errs ...error) error {
	var kept []error
	for _, err := range errs {
		if err != nil && !slices.ContainsFunc(kept, func(had error) bool { return had.Error() == err.Error() }) {
			kept = append(kept, err)
		}
	}
	return errors.Join(kept...)
}
