package emulator

import (
	"fmt"
	"time"
)

// TL1 is how the TL1 front end speaks.
type TL1 struct {
	SID         string        `yaml:"sid"`          // default: the device's name
	NoSID       bool          `yaml:"no_sid"`       // the header shows ( nil )
	ShortLead   bool          `yaml:"short_lead"`   // CR LF before the header instead of CR LF LF
	Echo        bool          `yaml:"echo"`         // repeats each command
	Prompt      string        `yaml:"prompt"`       // after each message
	Idle        time.Duration `yaml:"idle"`         // logs a session out after; 0 is never
	IdleCloses  bool          `yaml:"idle_closes"`  // and closes it
	MaxSessions int           `yaml:"max_sessions"` // 0 is no limit
	Quiet       bool          `yaml:"quiet"`        // autonomous messages are off at login
	// OwnCircuits keeps what other clients do to cross-connects out of the
	// autonomous messages.
	OwnCircuits bool `yaml:"own_circuits"`
}

func (t *TL1) check() error {
	switch {
	case t.MaxSessions < 0:
		return fmt.Errorf("tl1.max_sessions: want 0 (no limit) or more")
	case len(t.SID) > MaxSID || !printable(t.SID):
		return fmt.Errorf("tl1.sid: %.40q: want at most %d printable ASCII characters", t.SID, MaxSID)
	}
	return nil
}
