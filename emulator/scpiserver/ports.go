package scpiserver

import (
	"fmt"
	"strconv"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/wire/scpi"
)

func (c *call) size() (result, error) {
	g := c.dev.Geometry()
	return say(fmt.Sprintf("%d,%d", g.Ingress, g.Egress))
}

func (c *call) disable() (result, error) { return c.setShutters(true) }
func (c *call) enable() (result, error)  { return c.setShutters(false) }

func (c *call) setShutters(closed bool) (result, error) {
	ps, err := c.anyPorts(0)
	if err != nil {
		return result{}, err
	}
	return c.edit(emulator.Edit{Closed: shutters(closed, ps)})
}

func shutters(closed bool, ps []ocs.Port) map[ocs.Port]bool {
	set := make(map[ocs.Port]bool, len(ps))
	for _, p := range ps {
		set[p] = closed
	}
	return set
}

func (c *call) portStates() (result, error) {
	ps := c.dev.Geometry().Ports()
	if len(c.params) > 0 {
		var err error
		if ps, err = c.anyPorts(0); err != nil {
			return result{}, err
		}
	}
	return each(ps, func(dst []byte, p ocs.Port) []byte {
		switch {
		case c.dev.Failed(p):
			return append(dst, 'F')
		case c.dev.ShutterClosed(p):
			return append(dst, 'D')
		}
		return append(dst, 'E')
	}), nil
}

func (c *call) power() (result, error) {
	ps, err := c.anyPorts(0)
	if err != nil {
		return result{}, err
	}
	if limit := c.dev.Personality().SCPI.MaxPowerPorts; len(ps) > limit {
		return result{}, scpi.NewError(scpi.TooMuchData, fmt.Sprintf("%d ports, at most %d are possible", len(ps), limit))
	}
	for _, p := range ps {
		if !c.dev.HasMonitor(p) {
			return result{}, scpi.NewError(scpi.HardwareMissing, fmt.Sprintf("port %d has no power monitor", p))
		}
	}
	return each(ps, func(dst []byte, p ocs.Port) []byte {
		return strconv.AppendFloat(dst, float64(c.dev.Power(p)), 'f', 2, 64)
	}), nil
}

// each answers with a value for each port, in parentheses.
func each(ps []ocs.Port, value func([]byte, ocs.Port) []byte) result {
	reply := []byte{'('}
	for i, p := range ps {
		if i > 0 {
			reply = append(reply, ',')
		}
		reply = value(reply, p)
	}
	return result{reply: append(reply, ')')}
}
