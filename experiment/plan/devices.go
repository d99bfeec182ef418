package plan

import (
	"fmt"
	"time"

	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// device is what is known beforehand of an emulated switch.
type device struct {
	model    string
	geometry ocs.Geometry
	// median is how long a command of so many cross-connects takes to settled light.
	median func(crossConnects int) time.Duration
}

// boardSwitching is how long emulated transceivers take, about.
const boardSwitching = time.Millisecond

// emulation returns what is emulated for a lab, by name: switches that are needed, and
// those that NICs hang on.
func emulation(l *lab.File, needed map[string]bool) (map[string]device, error) {
	found := map[string]device{}
	for _, name := range sorted(needed) {
		var err error
		if found[name], err = emulated(l, name); err != nil {
			return found, err
		}
	}
	for _, h := range l.Hosts {
		for _, n := range h.NICs {
			for _, p := range []lab.PortRef{n.Tx, n.Rx} {
				d, ok := found[p.Switch]
				if !ok {
					var err error
					if d, err = emulated(l, p.Switch); err != nil {
						return found, err
					}
					found[p.Switch] = d
				}
				if d.geometry.Lanes > 0 {
					return found, fmt.Errorf("NIC %s is on %v, which is emulated as a transceiver, %s: NICs cannot be emulated there, only on a matrix", n.FullName(), p, d.model)
				}
			}
		}
	}
	return found, nil
}

// firmware reports a profile that NICs are told to have and that is not there, such as one
// of a note of the user's: others have been looked for when the value was read.
func firmware(l *lab.File, s Settings) error {
	for _, h := range l.Hosts {
		for i := range h.NICs {
			if s.Firmware != "" {
				_, err := l.Profile(&h.NICs[i])
				return err // they all have the same
			}
		}
	}
	return nil
}

// emulated returns what a switch of a lab is emulated as.
func emulated(l *lab.File, name string) (device, error) {
	e, err := l.Emulation(name)
	if err != nil {
		return device{}, err
	}
	if t := e.Transceivers; t != nil {
		return device{e.Model(), ocs.Transceivers(t.Personality.Modules, ocst.Lanes), func(int) time.Duration { return boardSwitching }}, nil
	}
	g, err := ocs.ParseGeometry(e.Personality.Size)
	return device{e.Model(), g, e.Personality.Switching.Median}, err
}
