package emulator

import (
	"errors"
	"fmt"
	"time"

	"github.com/ocslab/ocslab/ocs"
)

// Limits of a [Flap].
const (
	MinFlapOff, MaxFlapOff = 10 * time.Millisecond, 10 * time.Second
	MinFlapOn, MaxFlapOn   = 500 * time.Millisecond, 30 * time.Second
)

// Flap is the programme of a programmable shutter: it blocks the light for Off
// and lets it pass for On, Cycles times or, with 0, until it is stopped.
type Flap struct {
	Off, On time.Duration
	Cycles  int
}

// flapping is a programme that runs.
type flapping struct {
	Flap
	left  int   // cycles to go
	due   int64 // when it moves next
	timer *time.Timer
}

// ErrNoFlap is a start of a port that has no programme.
var ErrNoFlap = errors.New("port has no shutter programme")

// SetFlap stores the programme of ingress ports. One that runs goes on as it
// was.
func (d *Device) SetFlap(f Flap, ports ...ocs.Port) error {
	if f.Off < MinFlapOff || f.Off > MaxFlapOff || f.On < MinFlapOn || f.On > MaxFlapOn || f.Cycles < 0 {
		return fmt.Errorf("shutter programme %v off, %v on, %d cycles: want %v to %v off, %v to %v on",
			f.Off, f.On, f.Cycles, MinFlapOff, MaxFlapOff, MinFlapOn, MaxFlapOn)
	}
	for _, n := range ports {
		if !d.g.IsIngress(n) {
			return &ocs.PortError{Port: n, Geometry: d.g, Reason: "is not an ingress port"}
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, n := range ports {
		d.flaps[n] = f
	}
	return nil
}

// Flap returns the programme of port n, if it has one.
func (d *Device) Flap(n ocs.Port) (Flap, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f, ok := d.flaps[n]
	return f, ok
}

// StartFlap starts the programmes of ports, from the beginning if they run: all
// or, when one has none, no port ([ErrNoFlap]).
func (d *Device) StartFlap(ports ...ocs.Port) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, n := range ports {
		if _, ok := d.flaps[n]; !ok {
			return fmt.Errorf("port %d: %w", n, ErrNoFlap)
		}
	}
	now := d.nowLocked()
	for _, n := range ports {
		d.stopFlapLocked(n, now)
		f := &flapping{Flap: d.flaps[n], left: d.flaps[n].Cycles, due: now}
		d.flapping[n] = f
		d.flapLocked(n, f, now)
	}
	return nil
}

// StopFlap stops the programmes of ports and lets their light pass.
func (d *Device) StopFlap(ports ...ocs.Port) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.nowLocked()
	for _, n := range ports {
		d.stopFlapLocked(n, now)
	}
}

func (d *Device) stopFlapLocked(n ocs.Port, now int64) {
	f := d.flapping[n]
	if f == nil {
		return
	}
	f.timer.Stop()
	delete(d.flapping, n)
	d.ports[n].blocked = false
	d.relightLocked(n, now)
}

// flapLocked moves the shutter of port n, which is due, and sees to its next
// move.
func (d *Device) flapLocked(n ocs.Port, f *flapping, now int64) {
	p := &d.ports[n]
	p.blocked = !p.blocked
	d.relightLocked(n, now)
	wait := f.Off
	if !p.blocked {
		wait = f.On
		if f.left--; f.left == 0 {
			delete(d.flapping, n)
			return
		}
	}
	f.due += int64(wait)
	f.timer = time.AfterFunc(time.Duration(f.due-now), func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.flapping[n] == f { // and has not been stopped meanwhile
			d.flapLocked(n, f, d.nowLocked())
		}
	})
}
