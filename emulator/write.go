package emulator

import (
	"time"

	"github.com/ocslab/ocslab/internal/strictyaml"
)

// YAML returns the text of a file that [ParsePersonality] reads as p; what need not be said
// is left out. The error is that of a personality that cannot be. In one that was not
// read by ParsePersonality, what is not set is filled in first, as there.
func (p *Personality) YAML() ([]byte, error) {
	full := *p
	full.fill()
	if _, err := full.check(); err != nil {
		return nil, err
	}
	base := defaults()
	// What the rest follows from. Single must be said, or Modes in its place.
	base.Switching.Single, base.Switching.Modes = full.Switching.Single, full.Switching.Modes
	base.fill()
	base.Switching.Modes = nil
	if full.Switching.Modes == nil {
		base.Switching.Single = -time.Nanosecond
	}
	return strictyaml.Encode(full, base), nil
}
