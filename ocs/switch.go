package ocs

import (
	"context"
	"slices"
	"time"
)

// Switch is an optical circuit switch, or anything that moves light from
// ports to ports.
//
// Implementations are safe for concurrent use; calls may be served one after
// another. Every call honours its context: a call that is cancelled returns
// soon with an error that matches context.Cause, leaves the Switch usable, and
// may or may not have taken effect at the device.
//
// Errors of the device are *[OpError].
type Switch interface {
	// Identify says what the device is. It may be answered from what was
	// read when the Switch was opened.
	Identify(ctx context.Context) (Identity, error)

	// CrossConnects returns what the device says it holds now.
	CrossConnects(ctx context.Context) (Map, error)

	// Apply removes and adds cross-connects in as few requests as the device
	// allows, and returns when the device has acknowledged. It does not read
	// before or after, and on a device that takes over busy ports (Polatis)
	// it does, even those not named in c.Remove: use [Reconcile] unless that
	// is what you want. An error may leave the change partly done; the
	// Receipt then tells how many requests were sent.
	Apply(ctx context.Context, c Change) (Receipt, error)

	// Close ends the session, unblocks calls under way with an error that
	// matches net.ErrClosed, and may be called more than once.
	Close() error
}

// Identity is what a device says of itself.
type Identity struct {
	Vendor   string   `json:"vendor"`
	Model    string   `json:"model"`
	Serial   string   `json:"serial"`
	Firmware string   `json:"firmware"`
	Geometry Geometry `json:"-"`
}

// Receipt says when a change was on the wire, by the local clock with its
// monotonic reading. It says nothing about light. On a fast path the reply may
// have been read before the write returned, so count durations from SendStart.
type Receipt struct {
	// Begun is when the first request began to be sent. With one request it is
	// SendStart; with several, the device was at work from here on.
	Begun time.Time
	// The last write of request bytes was between SendStart and Sent. With
	// several requests: of the last of them.
	SendStart, Sent time.Time
	// FirstByte is when the first byte of the reply to the last request had
	// been read.
	FirstByte time.Time
	// Acked is when the byte that completed that reply had been read. Zero
	// when no acknowledgement came.
	Acked time.Time
	// Requests is the number of requests sent, zero for an empty change.
	Requests int
	// Parts is what the parts of the device that took part say, where it has
	// such: the modules of a bundle of transceivers.
	Parts []Part
}

// Part is what one part of a device says of its share in a change.
type Part struct {
	Name string
	// Took is how long its light was away, by the clock of the part.
	Took time.Duration
}

// Then returns the receipt of a change that took the requests of r, and those of
// next after them.
func (r Receipt) Then(next Receipt) Receipt {
	if next.Requests == 0 {
		return r
	}
	if next.Begun.IsZero() {
		next.Begun = next.SendStart
	}
	if r.Requests > 0 {
		next.Begun = r.Begun
	}
	next.Requests += r.Requests
	next.Parts = slices.Concat(r.Parts, next.Parts)
	return next
}

// Wrapper is a Switch that adds something to another one: a recorder, a lease
// gate, an interlock. [As] looks through it.
type Wrapper interface {
	Switch
	Unwrap() Switch
}

// As finds capability T in sw or in what it wraps, outermost first:
//
//	if pm, ok := ocs.As[ocs.PowerMeter](sw); ok { ... }
func As[T any](sw Switch) (T, bool) {
	for sw != nil {
		if t, ok := sw.(T); ok {
			return t, true
		}
		w, ok := sw.(Wrapper)
		if !ok {
			break
		}
		sw = w.Unwrap()
	}
	var zero T
	return zero, false
}

// PowerMeter is a Switch with optical power monitors.
type PowerMeter interface {
	// Power reads the monitors at ports, or all of them when none is named.
	// Ports without a monitor are left out of the readings.
	Power(ctx context.Context, ports ...Port) (PowerReading, error)
	// Monitors returns how the monitors at ports are set, or all of them.
	Monitors(ctx context.Context, ports ...Port) ([]Monitor, error)
	// SetMonitor sets wavelength, offset and averaging of the monitor at
	// m.Port. The averaging time is rounded up to what the device offers; a
	// zero wavelength or averaging time stays as it is, the offset is always
	// set.
	SetMonitor(ctx context.Context, m Monitor) error
}

// PowerReading is what the monitors said to one question. The device sampled
// them between Earliest and Latest, each averaged over the time before that
// its [Monitor] is set to.
type PowerReading struct {
	Earliest, Latest time.Time
	Ports            map[Port]DBm
}

// Monitor is the setting of an optical power monitor.
type Monitor struct {
	Port         Port
	WavelengthNM float64 // nanometres, 1260 to 1640
	Offset       DB      // added to readings
	Averaging    time.Duration
}

// Shutter is a Switch that can block the light of single ports without
// touching their cross-connects.
type Shutter interface {
	// Shutters returns true for each port whose shutter is closed, false for
	// each that is open; all ports when none is named.
	Shutters(ctx context.Context, ports ...Port) (map[Port]bool, error)
	SetShutters(ctx context.Context, closed bool, ports ...Port) error
}

// Labeler is a Switch that stores a text for each port.
type Labeler interface {
	// Labels returns the labels of ports, or of all; ports without one are
	// left out.
	Labels(ctx context.Context, ports ...Port) (map[Port]string, error)
	// SetLabel stores a label; the empty text removes it.
	SetLabel(ctx context.Context, p Port, label string) error
}

// Attenuator is a Switch with variable optical attenuators at its egress.
type Attenuator interface {
	// Attenuation returns the loss that the attenuator at egress p keeps between
	// the ends of the circuit there, mirrors included; zero when it is off. A
	// mode in which the device does not tell is an error that matches
	// ErrUntold, and a port without one ErrNotSupported alone.
	Attenuation(ctx context.Context, p Port) (DB, error)
	// SetAttenuation makes it keep that loss, of which less than the mirrors
	// take has no effect. Zero switches it off.
	SetAttenuation(ctx context.Context, p Port, loss DB) error
}

// Notifier is a Switch that reports what happens to it, by whomever caused.
type Notifier interface {
	// Notify calls f for each event, one at a time and in order, until ctx
	// ends or the session is lost, and returns why. What happened before the
	// device has agreed to report is not among them: read the state once
	// Notify runs. f must not call the Switch. Events that come while f is busy are queued up to a limit, then
	// dropped and counted in the Lost field of the next one.
	Notify(ctx context.Context, f func(Event)) error
}

// Event is something a device reported on its own.
type Event struct {
	Received time.Time
	Severity string // "critical", "major", "minor" or "event"
	Port     Port   // zero if it concerns no port
	Text     string
	// Drift is what somebody else has changed of the circuits; empty unless the
	// event is of that kind.
	Drift Change
	Lost  int    // events dropped before this one
	Raw   string // as on the wire
}

// Calibrator is a Switch whose light paths are tuned by the tool.
type Calibrator interface {
	Calibrate(ctx context.Context, ports ...Port) error
}

// BootMode is what a device does with its cross-connects when it restarts.
type BootMode string

const (
	BootDark     BootMode = "dark"     // starts with none
	BootRestore  BootMode = "restore"  // brings back those it had
	BootAutosave BootMode = "autosave" // the same, and saves each change as it is made
)

// Restarter is a Switch that can be restarted from remote.
type Restarter interface {
	BootMode(ctx context.Context) (BootMode, error)
	SetBootMode(ctx context.Context, m BootMode) error
	// Restart resets the switch matrix, which interrupts all light, and
	// returns when the device has acknowledged.
	Restart(ctx context.Context) error
}
