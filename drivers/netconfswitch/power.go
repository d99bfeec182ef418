package netconfswitch

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/ocslab/ocslab/drivers/internal/polatiscard"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/wire/netconf"
)

// Power reads the monitors with one get.
func (sw *Switch) Power(ctx context.Context, ports ...ocs.Port) (ocs.PowerReading, error) {
	dev, err := sw.device(ctx)
	if err != nil {
		return ocs.PowerReading{}, err
	}
	container, leaves := "opm-power", "<power/>"
	if dev.oldOptical {
		container, leaves = "ports", "<opm><power/></opm>"
	}
	r := ocs.PowerReading{Ports: make(map[ocs.Port]ocs.DBm, len(ports))}
	a, err := sw.perPort(ctx, "read power", container, leaves, ports, func(p ocs.Port, n *netconf.Node) bool {
		if opm := n.Child("", "opm"); opm != nil {
			n = opm
		}
		power := n.Child("", "power")
		if power == nil {
			return true // no monitor
		}
		x, ok := number(power.Text)
		r.Ports[p] = ocs.DBm(x)
		return ok
	})
	if err != nil {
		return ocs.PowerReading{}, err
	}
	r.Earliest, r.Latest = a.receipt.SendStart, a.receipt.Acked
	return r, nil
}

// number reads a decimal number; minus infinity is no light.
func number(s string) (x float64, ok bool) {
	x, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	return x, err == nil && !math.IsNaN(x) && !math.IsInf(x, 1)
}

// monitors says where the settings of monitors are.
type monitors struct {
	container           string
	wave, offset, steps string // leaves
	opm                 bool   // in a container of that name in the port
	ns                  string // xmlns attribute of offset and steps
}

func (a *announced) monitors() monitors {
	if a.oldOptical {
		return monitors{"ports", "lambda", "offset", "averaging-time-select", true, ` xmlns="` + polatisNS + `"`}
	}
	return monitors{"opm-config", "wavelength", "offset", "averaging-time", false, ""}
}

// wrap puts leaves where they belong in a port.
func (m monitors) wrap(leaves string) string {
	if m.opm {
		return "<opm>" + leaves + "</opm>"
	}
	return leaves
}

// Monitors reads the settings with one get. Leaves that the device does not
// send are at the defaults of the YANG module.
func (sw *Switch) Monitors(ctx context.Context, ports ...ocs.Port) ([]ocs.Monitor, error) {
	dev, err := sw.device(ctx)
	if err != nil {
		return nil, err
	}
	at := dev.monitors()
	leaves := at.wrap("<" + at.wave + "/><" + at.offset + at.ns + "/><" + at.steps + at.ns + "/>")
	var ms []ocs.Monitor
	_, err = sw.perPort(ctx, "read monitor settings", at.container, leaves, ports, func(p ocs.Port, n *netconf.Node) bool {
		if at.opm {
			if n = n.Child("", "opm"); n == nil {
				return true // no monitor
			}
		}
		wave, ok1 := setting(n, at.wave, 1550)
		offset, ok2 := setting(n, at.offset, 0)
		step, ok3 := setting(n, at.steps, 4)
		if !ok1 || !ok2 || !ok3 || step != math.Trunc(step) || step < 1 || step > float64(len(polatiscard.Averaging)) {
			return false
		}
		ms = append(ms, ocs.Monitor{Port: p, WavelengthNM: wave, Offset: ocs.DB(offset), Averaging: polatiscard.Averaging[int(step)-1]})
		return true
	})
	if err != nil {
		return nil, err
	}
	return ms, nil
}

// setting reads a finite number.
func setting(n *netconf.Node, leaf string, otherwise float64) (float64, bool) {
	c := n.Child("", leaf)
	if c == nil {
		return otherwise, true
	}
	x, ok := number(c.Text)
	return x, ok && !math.IsInf(x, 0)
}

// SetMonitor sends one edit-config. A WavelengthNM or Averaging of zero is left
// as it is; the averaging time is rounded up to the next step, wavelength and
// offset to two decimals.
func (sw *Switch) SetMonitor(ctx context.Context, m ocs.Monitor) error {
	const op = "set monitor"
	if err := finite(m.WavelengthNM, float64(m.Offset)); err != nil {
		return sw.fail(op, "", "", err)
	}
	dev, err := sw.device(ctx)
	if err != nil {
		return err
	}
	at := dev.monitors()
	leaves := ""
	set := func(leaf, ns, value string) { leaves += "<" + leaf + ns + ">" + value + "</" + leaf + ">" }
	if m.WavelengthNM != 0 {
		set(at.wave, "", decimal(m.WavelengthNM))
	}
	set(at.offset, at.ns, decimal(float64(m.Offset)))
	if m.Averaging != 0 {
		set(at.steps, at.ns, strconv.Itoa(polatiscard.AveragingStep(m.Averaging)))
	}
	_, err = sw.do(ctx, dev.edit(op, opticalNS, at.container, entries([]ocs.Port{m.Port}, at.wrap(leaves))))
	return err
}

func finite(xs ...float64) error {
	for _, x := range xs {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return fmt.Errorf("%g is not a number that can be set", x)
		}
	}
	return nil
}

// decimal writes a decimal64 with two fraction digits.
func decimal(x float64) string {
	if s := strconv.FormatFloat(x, 'f', 2, 64); s != "-0.00" {
		return s
	}
	return "0.00"
}
