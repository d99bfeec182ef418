package scpiswitch

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/wire/scpi"
)

const opPower = "read power"

// Power reads the monitors, Config.MaxPorts in one query. The first reading that
// meets ports without a monitor takes more queries, to find out which they are;
// see the package comment.
func (sw *Switch) Power(ctx context.Context, ports ...ocs.Port) (ocs.PowerReading, error) {
	if err := sw.take(ctx, opPower); err != nil {
		return ocs.PowerReading{}, err
	}
	defer sw.turn.Pass()
	if len(ports) == 0 {
		id, err := sw.identify(ctx)
		if err != nil {
			return ocs.PowerReading{}, err
		}
		if ports = id.Geometry.Ports(); len(ports) == 0 {
			return ocs.PowerReading{}, sw.fail(opPower, "", "", errors.New("the device does not tell its size: name the ports to read"))
		}
	}
	r := ocs.PowerReading{Ports: make(map[ocs.Port]ocs.DBm, len(ports))}
	for ports = sw.monitored(ports); len(ports) > 0; ports = sw.monitored(ports) {
		some := ports[:min(len(ports), sw.cfg.MaxPorts)]
		ports = ports[len(some):]
		if _, err := sw.measure(ctx, some, false, &r); err != nil {
			return ocs.PowerReading{}, err
		}
	}
	return r, nil
}

// monitored returns ports without those that are known to have no monitor.
func (sw *Switch) monitored(ports []ocs.Port) []ocs.Port {
	return slices.DeleteFunc(slices.Clone(ports), func(p ocs.Port) bool { return sw.unmonitored[p] })
}

// few ports are asked one by one sooner than whole sides are found out about.
const few = 4

// learnSides finds out, once, whether a whole side of the switch is without
// monitors, as is usual: when its first and its last port have none. Finding that
// out port by port would take hundreds of queries.
func (sw *Switch) learnSides(ctx context.Context, r *ocs.PowerReading) error {
	id, err := sw.identify(ctx)
	if err != nil {
		return err
	}
	sw.sidesKnown = true
	sides := [][]ocs.Port{id.Geometry.IngressPorts(), id.Geometry.EgressPorts()}
	if id.Geometry.SingleSided {
		sides = sides[:1]
	}
	for _, side := range sides {
		bare := len(side) > 0
		for _, i := range []int{0, len(side) - 1} {
			if bare && !sw.unmonitored[side[i]] {
				has, err := sw.measure(ctx, side[i:i+1], false, r)
				if err != nil {
					return err
				}
				bare = !has
			}
		}
		if bare {
			for _, p := range side {
				sw.unmonitored[p] = true
			}
		}
	}
	return nil
}

// measure adds readings of ports to r. It reports whether all of them have a
// monitor; missing says that this is known not to be so.
func (sw *Switch) measure(ctx context.Context, ports []ocs.Port, missing bool, r *ocs.PowerReading) (all bool, err error) {
	one := len(ports) == 1
	if one || !missing {
		a, err := sw.perform(ctx, request{op: opPower, query: ":PMON:POW? " + list(ports), ports: true})
		if err == nil {
			return true, sw.enter(a, ports, r)
		}
		if !lacksMonitor(err) {
			return false, err
		}
		if one {
			id, err2 := sw.identify(ctx)
			switch {
			case err2 != nil:
				return false, err2
			case !id.Geometry.Has(ports[0]):
				return false, err
			}
			sw.unmonitored[ports[0]] = true
			return false, nil
		}
		if len(ports) > few && !sw.sidesKnown {
			if err := sw.learnSides(ctx, r); err != nil {
				return false, err
			}
			if ports = sw.monitored(ports); len(ports) == 0 {
				return false, nil
			}
			_, err := sw.measure(ctx, ports, false, r)
			return false, err
		}
	}
	half := len(ports) / 2
	all, err = sw.measure(ctx, ports[:half], false, r)
	if err == nil {
		// If the first half is good, the second one is not.
		_, err = sw.measure(ctx, ports[half:], all, r)
	}
	return false, err
}

// lacksMonitor reports whether a power query may have been refused since a port
// has no monitor.
func lacksMonitor(err error) bool {
	var r *refusal
	return errors.As(err, &r) && !slices.ContainsFunc(r.said, func(e scpi.Error) bool {
		switch e.Code {
		case scpi.SettingsConflict, scpi.DataOutOfRange, scpi.IllegalParameterValue, scpi.HardwareMissing:
			return false
		}
		return true
	})
}

// enter takes the reply to a power query into r.
func (sw *Switch) enter(a answer, ports []ocs.Port, r *ocs.PowerReading) error {
	values, err := scpi.ParseValues(a.data)
	if err != nil || len(values) != len(ports) {
		return sw.garbled(opPower, a)
	}
	for i, v := range values {
		x, err := strconv.ParseFloat(v, 64)
		// Far beyond 1e37 are the numbers of SCPI-99, 7.2.1.4 and 5, for what is
		// infinite, or none.
		switch {
		case math.IsNaN(x), err == nil && x == notANumber:
			continue
		case err != nil, x > 1e37:
			return sw.garbled(opPower, a)
		case x < -1e37:
			x = math.Inf(-1)
		}
		r.Ports[ports[i]] = ocs.DBm(x)
	}
	if r.Earliest.IsZero() {
		r.Earliest = a.receipt.SendStart
	}
	r.Latest = a.receipt.Acked
	return nil
}

// notANumber is NAN of SCPI-99, 7.2.1.5.
const notANumber = 9.91e37

// errSettings is that monitors cannot be set up over SCPI.
var errSettings = fmt.Errorf("%w over SCPI: the settings of monitors; use TL1 or NETCONF", ocs.ErrNotSupported)

// Monitors returns an error that matches [ocs.ErrNotSupported].
func (sw *Switch) Monitors(context.Context, ...ocs.Port) ([]ocs.Monitor, error) {
	return nil, sw.fail("read monitor settings", "", "", errSettings)
}

// SetMonitor returns an error that matches [ocs.ErrNotSupported].
func (sw *Switch) SetMonitor(context.Context, ocs.Monitor) error {
	return sw.fail("set monitor", "", "", errSettings)
}
