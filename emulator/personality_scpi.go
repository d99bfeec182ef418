package emulator

import (
	"fmt"
	"time"
)

// SCPI is how the SCPI front end speaks.
type SCPI struct {
	// Gap is how long after a command the next one is lost, as old firmware
	// does. 0 loses none.
	Gap time.Duration `yaml:"gap"`
	// MaxPowerPorts is how many ports one power query may name; default 256.
	MaxPowerPorts int  `yaml:"max_power_ports"`
	MaxSessions   int  `yaml:"max_sessions"`  // 0 is no limit
	SharedErrors  bool `yaml:"shared_errors"` // one error queue for all sessions
	Apart         bool `yaml:"apart"`         // several replies of a line are lines of their own, not joined by ";"
	NoBlank       bool `yaml:"no_blank"`      // no blank after the comma of an error, as in the standard
	EmptyNothing  bool `yaml:"empty_nothing"` // PORT? of a free port gives an empty line, not ""
}

func (s *SCPI) fill() {
	if s.MaxPowerPorts == 0 {
		s.MaxPowerPorts = 256
	}
}

func (s *SCPI) check() error {
	if s.MaxPowerPorts < 1 || s.MaxSessions < 0 {
		return fmt.Errorf("scpi.max_power_ports: want 1 or more; scpi.max_sessions: want 0 (no limit) or more")
	}
	return nil
}
