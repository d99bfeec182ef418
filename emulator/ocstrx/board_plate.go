package ocstrx

import (
	"math"
	"time"

	"github.com/ocslab/ocslab/wire/trxlink"
)

// plate is the temperature around the modules of a board: that of a plate which is heated
// or cooled with one pole. Modules follow it on a grid of times, so that what they go
// through does not depend on who asks when.
type plate struct {
	at       time.Duration // when it began
	from, to float64       // °C
	next     time.Duration // when the module that has it looks next
}

const (
	plateTime  = 4 * time.Second // its time constant
	plateStep  = 250 * time.Millisecond
	plateSteps = 64 // 16 s, four time constants; then it is there
	plateLeast = -20.0
	plateMost  = 110.0
)

func (p *plate) celsius(at time.Duration) float64 {
	return p.to + (p.from-p.to)*math.Exp(-float64(max(at-p.at, 0))/float64(plateTime))
}

// follow gives the module a plate, from a time on.
func (m *Module) follow(p plate) {
	m.callSenders(p.at)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.advanceTo(p.at)
	p.next = m.now
	m.plate = &p
}

// followPlate takes over the temperature of the plate.
func (m *Module) followPlate() {
	p := m.plate
	if m.now >= p.at+plateSteps*plateStep {
		m.plate = nil
		m.setAmbient(p.to)
		return
	}
	m.setAmbient(p.celsius(m.now))
	p.next = p.at + ((m.now-p.at)/plateStep+1)*plateStep
}

// setPlate is the request PLATE.
func (b *Board) setPlate(s trxlink.PlateSetting) trxlink.PlateStatus {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.clock.Now()
	celsius, holds := s.Celsius()
	if s != trxlink.PlateLeave {
		b.holds = holds
		if !holds {
			celsius = b.ambient
		}
		b.plate = plate{at: now, from: b.plate.celsius(now), to: min(max(celsius, plateLeast), plateMost)}
		for _, m := range b.modules {
			m.follow(b.plate)
		}
	}
	status := trxlink.PlateStatus{Set: trxlink.PlateOff, Now: b.plate.celsius(now)}
	if b.holds {
		status.Set = trxlink.PlateAt(b.plate.to)
	}
	return status
}
