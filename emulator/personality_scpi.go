package emulator

import (
	"fmt"
	"time"
)

// SCPI is how the SCPI front end speaks.
type SCPI struct {
	// Gap is how long after a line the next one is lost, as old firmware does.
	// 0 loses none.
	Gap time.Duration `yaml:"gap"`
	// MaxPowerPorts is how many ports one power query may name; default 256.
	MaxPowerPorts int  `yaml:"max_power_ports"`
	MaxSessions   int  `yaml:"max_sessions"`  // 0 is no limit
	ErrorQueue    int  `yaml:"error_queue"`   // how many errors are kept; default 20
	SharedErrors  bool `yaml:"shared_errors"` // one error queue for all sessions
	TerseErrors   bool `yaml:"terse_errors"`  // errors in the words of the standard, without details
	NoBlank       bool `yaml:"no_blank"`      // no blank after the comma of an error, as in the standard
	Apart         bool `yaml:"apart"`         // several replies of a line are lines of their own, not joined by ";"
	CROnly        bool `yaml:"cr_only"`       // replies end with CR, not CR LF
	EmptyNothing  bool `yaml:"empty_nothing"` // PORT? of a free port gives an empty line, not ""
	LongForm      bool `yaml:"long_form"`     // words in replies are in the long form
}

func (s *SCPI) fill() {
	if s.MaxPowerPorts == 0 {
		s.MaxPowerPorts = 256
	}
	if s.ErrorQueue == 0 {
		s.ErrorQueue = 20
	}
}

func (s *SCPI) check() error {
	switch {
	case s.MaxPowerPorts < 1:
		return fmt.Errorf("scpi.max_power_ports: want 1 or more")
	case s.MaxSessions < 0:
		return fmt.Errorf("scpi.max_sessions: want 0 (no limit) or more")
	case s.ErrorQueue < 2 || s.ErrorQueue > 10_000:
		return fmt.Errorf("scpi.error_queue: want 2 to 10000")
	}
	return nil
}
