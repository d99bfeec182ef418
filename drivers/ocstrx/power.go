package ocstrx

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/wire/cmis"
	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// Where the powers of the lanes are. Neither read clears a flag.
var (
	spanOut1   = ocst.PowersAt(ocst.PDOut1)
	spanPowers = cmis.Span{Address: cmis.Address{Page: ocst.PageMonitors, Offset: ocst.RegOut2}, Length: ocst.RegLaunched + 2*ocst.Lanes - ocst.RegOut2}
)

// darkness is the power below which [Switch.Power] tells no light. It is in the counts of
// the module, 0.1 µW: 5 µW, or -23 dBm. A port without light reads up to that, by the
// noise and the resolution of the photodiodes; Telemetry gives what they read.
const darkness cmis.Power = 50

const opPower = "read power"

// Power reads the monitors: at an ingress what the lane launches, at the egress of a fibre
// what the tap in front of it sees, so without the loss of the facet, and at the egress of
// a receiver what that gets from the loop. Less than 5 µW (-23 dBm), which is what a port
// without light may read, is told as no light. A reading is a single conversion, without
// averaging. In State Cal readings are not corrected for what the photodiodes give in the
// dark. Ports of empty slots have no monitor.
func (sw *Switch) Power(ctx context.Context, ports ...ocs.Port) (ocs.PowerReading, error) {
	if len(ports) == 0 {
		ports = sw.geo.Ports()
	}
	n := sw.geo.Ingress
	var b batch
	arrays := map[int]*powers{} // by slot
	for _, p := range ports {
		if !sw.geo.Has(p) {
			return ocs.PowerReading{}, sw.fail(opPower, &ocs.PortError{Port: p, Geometry: sw.geo, Reason: "is not a port"})
		}
		slot := int(p-1) % n / ocst.Lanes
		if !sw.in[slot].there {
			continue
		}
		a := arrays[slot]
		if a == nil {
			a = new(powers)
			arrays[slot] = a
		}
		if int(p-1)/n == 1 {
			if a.out1 == nil {
				a.out1 = b.read(slot, spanOut1)
			}
		} else if a.others == nil {
			a.others = b.read(slot, spanPowers)
		}
	}
	reading := ocs.PowerReading{Ports: make(map[ocs.Port]ocs.DBm, len(ports))}
	if len(b) == 0 {
		return reading, nil
	}
	r, err := sw.do(ctx, opPower, b...)
	if err != nil {
		return reading, err
	}
	for _, p := range ports {
		lane := int(p-1) % n % ocst.Lanes
		a := arrays[int(p-1)%n/ocst.Lanes]
		if a == nil {
			continue
		}
		counts := a.at([]int{ocst.PDLaunched, ocst.PDOut1, ocst.PDOut2, ocst.PDRxLoop}[int(p-1)/n], lane)
		if counts < darkness {
			counts = 0
		}
		reading.Ports[p] = ocs.Milliwatts(counts.Microwatts() / 1000)
	}
	reading.Earliest, reading.Latest = r.Begun, r.Acked
	return reading, nil
}

// powers are what was read of a module: spanOut1 and spanPowers.
type powers struct{ out1, others []byte }

// at returns the power at one photodiode.
func (p powers) at(array, lane int) cmis.Power {
	from, span := p.others, spanPowers
	if array == ocst.PDOut1 {
		from, span = p.out1, spanOut1
	}
	at := int(ocst.PowersAt(array).Offset-span.Offset) + 2*lane
	return cmis.Power(binary.BigEndian.Uint16(from[at:]))
}

// errMonitors is that monitors have no settings.
var errMonitors = fmt.Errorf("%w: a monitor of a transceiver has no settings, and does not average", ocs.ErrNotSupported)

// Monitors returns an error that matches [ocs.ErrNotSupported].
func (sw *Switch) Monitors(context.Context, ...ocs.Port) ([]ocs.Monitor, error) {
	return nil, sw.fail("read monitor settings", errMonitors)
}

// SetMonitor returns an error that matches [ocs.ErrNotSupported].
func (sw *Switch) SetMonitor(context.Context, ocs.Monitor) error {
	return sw.fail("set monitor", errMonitors)
}
