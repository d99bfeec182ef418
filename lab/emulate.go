package lab

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/ocs"
)

// adapt changes a personality as an emulate section says.
func (s *Emulate) adapt(p emulator.Personality) emulator.Personality {
	if s.Switching != nil {
		p.Switching.Single, p.Switching.Bulk = *s.Switching, *s.Switching
		p.Switching.Rise = min(p.Switching.Rise, *s.Switching/10)
		p.Switching.Jitter = min(p.Switching.Jitter, *s.Switching/10)
	}
	if s.Jitter != nil {
		p.Switching.Jitter = *s.Jitter
	}
	if s.Switching != nil || s.Jitter != nil { // in place of what the model has of them
		p.Switching.Modes, p.Switching.Paths = nil, nil
	}
	p.Optics = s.planted(p.Optics)
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
// is on the switch; where fibres are planted elsewhere, it enters there.
func (f *File) Emulation(name string) (Emulation, error) {
	s, ok := f.Switch(name)
	if !ok {
		return Emulation{}, f.unknownSwitch(name)
	}
	if s.Emulate == nil {
		return Emulation{}, fmt.Errorf("switch %s: %w", name, errNotEmulated)
	}
	e, err := EmulationOf(f.model(s.Emulate))
	if err != nil {
		return Emulation{}, fmt.Errorf("switch %s: %w", name, err)
	}
	e.Name = name
	if s.Emulate.Seed != nil {
		e.Seed = *s.Emulate.Seed
	}
	if e.Transceivers != nil {
		e.First = OCSTrx
		return e, s.checkBoard()
	}
	e.Personality = s.Emulate.adapt(e.Personality)
	if err := e.Personality.Check(); err != nil {
		return Emulation{}, fmt.Errorf("switch %s, emulated: %w", name, err)
	}
	if e.First, err = s.first(e.Personality); err != nil {
		return Emulation{}, err
	}
	for n := range f.nics {
		p := n.plant()
		if e.Light == nil && (p.tx.Switch == name || p.rx.Switch == name || n.Tx.Switch == name || n.Rx.Switch == name) {
			e.Light = map[ocs.Port]ocs.DBm{}
		}
		if p.tx.Switch == name {
			e.Light[p.tx.Port] = ocs.DBm(e.Personality.Optics.Launch).Add(-p.txLoss)
		}
	}
	return e, nil
}

// checkBoard refuses what makes no sense for a switch that is emulated as transceivers.
func (s *Switch) checkBoard() error {
	if e := s.Emulate; e.Switching != nil || e.Jitter != nil || e.Ack != "" || e.Busy != "" || len(e.PortLoss)+len(e.PathLoss) > 0 {
		return fmt.Errorf("switch %s: the model %s follows from its physics: emulate takes model and seed only", s.Name, s.Emulate.Model)
	}
	if scheme, _, found := strings.Cut(s.URL, "://"); found && Endpoint(scheme) != OCSTrx && !strings.HasPrefix(scheme, "ocstrx+") {
		return fmt.Errorf("switch %s: its url is %s, and the model %s, by which it is emulated, has %s", s.Name, scheme, s.Emulate.Model, OCSTrx)
	}
	return nil
}

// first is the endpoint that stands for the switch when it is emulated: that of
// its URL, or the same protocol over TCP where that is a serial line or needs
// certificates. A switch without URL is spoken to in the first protocol of its
// model.
func (s *Switch) first(p emulator.Personality) (Endpoint, error) {
	scheme, _, found := strings.Cut(s.URL, "://")
	if !found {
		return "", nil
	}
	at := Endpoint(scheme)
	if base, _, _ := strings.Cut(scheme, "+"); at != TL1SSH {
		at = Endpoint(base)
	}
	if known := Endpoints(p); !slices.Contains(known, at) {
		return "", fmt.Errorf("switch %s: its url is %s, and the model %s, by which it is emulated, has %v", s.Name, scheme, p.Model, known)
	}
	return at, nil
}
