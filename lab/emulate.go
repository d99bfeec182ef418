package lab

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/emulator/tl1server"
	"github.com/ocslab/ocslab/ocs"
)

// Emulation is how to emulate one switch.
type Emulation struct {
	Name        string // default: the model
	Personality emulator.Personality
	Seed        uint64
	Light       map[ocs.Port]ocs.DBm // from outside; nil lights every ingress port
	Memory      emulator.Memory      // nil forgets
	TL1         string               // address to listen on; default 127.0.0.1:0
	Faults      []emulator.Fault
}

// Emulated is an emulated switch that serves clients.
type Emulated struct {
	Device *emulator.Device
	// Endpoints are the addresses it listens on, by protocol: "tl1".
	Endpoints map[string]string

	stop  context.CancelFunc
	ended chan struct{}
	err   error // set before ended is closed
}

// Start listens and serves until Close. An address that is in use or not one
// of this machine is an error that names it.
func (e Emulation) Start() (*Emulated, error) {
	if e.Name == "" {
		e.Name = e.Personality.Model
	}
	if e.TL1 == "" {
		e.TL1 = "127.0.0.1:0"
	}
	dev, err := emulator.New(e.Personality, emulator.Options{Name: e.Name, Seed: e.Seed, Light: e.Light, Memory: e.Memory})
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", e.TL1)
	if err != nil {
		return nil, fmt.Errorf("emulated switch %s: cannot serve TL1: %w", e.Name, err)
	}
	srv := &tl1server.Server{Device: dev}
	for _, f := range e.Faults {
		srv.Faults.Add(f)
	}
	ctx, stop := context.WithCancel(context.Background())
	r := &Emulated{
		Device: dev, stop: stop, ended: make(chan struct{}),
		Endpoints: map[string]string{"tl1": l.Addr().String()},
	}
	go func() {
		defer close(r.ended)
		r.err = srv.Serve(ctx, l)
	}()
	return r, nil
}

// URL returns the address for a driver.
func (e *Emulated) URL() string { return "tl1://admin@" + e.Endpoints["tl1"] }

// Wait returns when ctx ends, or earlier when the device can no longer be
// served, with the reason.
func (e *Emulated) Wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-e.ended:
		return e.err
	}
}

// Close ends every session and returns when they have ended.
func (e *Emulated) Close() error {
	e.stop()
	<-e.ended
	return e.err
}

// adapt changes a personality as an emulate section says.
func (s *Emulate) adapt(p emulator.Personality) emulator.Personality {
	if s.Switching != nil {
		p.Switching.Single, p.Switching.Bulk = *s.Switching, *s.Switching
		p.Switching.Rise = min(p.Switching.Rise, *s.Switching/10)
		p.Switching.Jitter = min(p.Switching.Jitter, *s.Switching/10)
	}
	if s.Ack != "" {
		p.Switching.Ack = emulator.AckMode(s.Ack)
	}
	if s.Busy != "" {
		p.Control.Busy = emulator.BusyMode(s.Busy)
	}
	return p
}

var errNotEmulated = errors.New("the lab file does not say how to emulate it: add emulate: {model: NAME}")

// Emulation returns how to emulate the switch of that name. Light enters where
// the lab has a NIC that sends, or at every ingress port if no NIC of the lab
// is on the switch.
func (f *File) Emulation(name string) (Emulation, error) {
	s, ok := f.Switch(name)
	if !ok {
		return Emulation{}, f.unknownSwitch(name)
	}
	if s.Emulate == nil {
		return Emulation{}, fmt.Errorf("switch %s: %w", name, errNotEmulated)
	}
	p, err := emulator.LoadPersonality(s.Emulate.Model)
	if err != nil {
		return Emulation{}, fmt.Errorf("switch %s: %w", name, err)
	}
	e := Emulation{Name: name, Personality: s.Emulate.adapt(p)}
	if s.Emulate.Seed != nil {
		e.Seed = *s.Emulate.Seed
	}
	for n := range f.nics {
		if n.Tx.Switch == name || n.Rx.Switch == name {
			if e.Light == nil {
				e.Light = map[ocs.Port]ocs.DBm{}
			}
			if n.Tx.Switch == name {
				e.Light[n.Tx.Port] = ocs.DBm(p.Optics.Launch)
			}
		}
	}
	return e, nil
}
