package ocstrx

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// ErrNoPower is what a module says at its bus that has no power: nothing.
var ErrNoPower = errors.New("the module has no power")

// SetPower takes power from the board, or gives it back. Without it all modules are dark from
// one moment on, every connection breaks, and so does every new one. With it the modules start
// anew, as after [NewBoard], with what they keep without power: table, log and the counter of
// switches. A switch that was under way is in the log with [ocst.FaultBrownOut].
func (b *Board) SetPower(on bool) {
	b.power.Lock()
	defer b.power.Unlock()
	if on != b.off {
		return // as it is
	}
	held, release := b.hold(math.MaxUint16)
	for _, m := range held {
		if on {
			m.powerUp()
		} else {
			m.powerDown()
		}
	}
	release()
	b.off = !on
	for s := range b.sessions {
		s.conn.Close()
	}
}

// Powered reports whether the board has power.
func (b *Board) Powered() bool {
	b.power.Lock()
	defer b.power.Unlock()
	return !b.off
}

// enter lists a session, to be ended with the power. It reports false where there is none.
func (b *Board) enter(s *boardSession) bool {
	b.power.Lock()
	defer b.power.Unlock()
	if b.off {
		return false
	}
	if b.sessions == nil {
		b.sessions = map[*boardSession]struct{}{}
	}
	b.sessions[s] = struct{}{}
	return true
}

func (b *Board) leave(s *boardSession) {
	b.power.Lock()
	defer b.power.Unlock()
	delete(b.sessions, s)
}

// powerDown takes light, heat and power from the module.
func (m *Module) powerDown() {
	m.brokenOff = m.run != nil
	m.abort(ocst.FaultBrownOut)
	m.until = noEvent
	m.setState(ocst.StateReset)
	m.quiet()
	m.chip.unpower(m.now, true)
	m.dead = true
}

// powerUp is the supply that comes back.
func (m *Module) powerUp() {
	m.dead = false
	m.chip.unpower(m.now, false)
	m.reset()
	if m.brokenOff {
		m.result = ocst.FaultBrownOut
	}
}

// powerFault is the fault power-off, or power-off:AFTER.
func powerFault(s, after string) (func(*Board) error, error) {
	if after == "" && !strings.Contains(s, ":") {
		return func(b *Board) error { b.SetPower(false); return nil }, nil
	}
	d, err := time.ParseDuration(after)
	if err != nil || d < 0 {
		return nil, fmt.Errorf("fault %q: %q is no time after which the power goes, want one such as 5s", s, after)
	}
	return func(b *Board) error {
		time.AfterFunc(d, func() { b.SetPower(false) })
		return nil
	}, nil
}
