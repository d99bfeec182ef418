package lab

import (
	"context"
	"fmt"
	"slices"

	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/wire/cmis/ocst"
	"github.com/ocslab/ocslab/wire/trxlink"
)

// mostLanes is how many lanes a board of transceivers can have, each of which is a port that light goes in by.
const mostLanes = trxlink.MaxSlots * ocst.Lanes

// OwnPorts returns the ports of a switch that are the lab's to darken, without those that are
// protected, in ascending order: those of its NICs and, of a board of transceivers that the
// lab has a cable of, the lanes of as many modules as there can be.
func (f *File) OwnPorts(switchName string) []ocs.Port {
	protected := f.ProtectedPorts(switchName)
	var ports []ocs.Port
	if slices.ContainsFunc(f.Cables, func(c Cable) bool { return c.A.Switch == switchName || c.B.Switch == switchName }) {
		for p := ocs.Port(1); p <= mostLanes; p++ {
			if !slices.Contains(protected, p) {
				ports = append(ports, p)
			}
		}
	}
	for _, h := range f.Hosts {
		for _, n := range h.NICs {
			for _, p := range []PortRef{n.Tx, n.Rx} {
				if p.Switch == switchName && !slices.Contains(protected, p.Port) {
					ports = append(ports, p.Port)
				}
			}
		}
	}
	slices.Sort(ports)
	return slices.Compact(ports)
}

// Emergency opens a session of its own with a switch, past the guard of the lab: neither protected ports nor leases nor
// panics bind it, and whatever another session of this program waits for does not hold it up. It is for taking light
// away, and for giving back what was taken. The caller closes it. device is what [Opened.Device] is.
func (l *Lab) Emergency(ctx context.Context, name string) (sw ocs.Switch, device string, err error) {
	s, ok := l.File.Switch(name)
	if !ok {
		return nil, "", l.File.unknownSwitch(name)
	}
	var o *Opened
	if l.opt.Emulated { // a switch that this program emulates, or another one does
		if o, err = l.Switch(ctx, name); err != nil {
			return nil, "", err
		}
	}
	return l.session(ctx, s, o, fmt.Sprintf("%s#%d", name, 1+l.place(name).more.Add(1)))
}
