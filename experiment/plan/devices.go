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
	model        string
	geometry     ocs.Geometry
	single, bulk time.Duration // from command to settled light
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

// emulated returns what a switch of a lab is emulated as.
func emulated(l *lab.File, name string) (device, error) {
	e, err := l.Emulation(name)
	if err != nil {
		return device{}, err
	}
	if t := e.Transceivers; t != nil {
		return device{e.Model(), ocs.Transceivers(t.Personality.Modules, ocst.Lanes), boardSwitching, boardSwitching}, nil
	}
	g, err := ocs.ParseGeometry(e.Personality.Size)
	s := e.Personality.Switching
	return device{e.Model(), g, s.Single, s.Bulk}, err
}
