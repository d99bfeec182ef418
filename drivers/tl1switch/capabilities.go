package tl1switch

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/ocslab/ocslab/drivers/internal/polatiscard"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/wire/tl1"
)

// portList is the AID that names ports, or all of them when there are none.
func portList(ports []ocs.Port) string {
	if len(ports) == 0 {
		return ""
	}
	ps := make([]uint32, len(ports))
	for i, p := range ports {
		ps[i] = uint32(p)
	}
	return string(tl1.AppendPorts(nil, ps))
}

// perPort is eachPort for who has not the turn.
func (sw *Switch) perPort(ctx context.Context, op, code string, ports []ocs.Port, line func(p ocs.Port, rest string) bool) (answer, error) {
	if !sw.d.has(code) {
		return answer{}, sw.lacks(op)
	}
	if err := sw.take(ctx, op); err != nil {
		return answer{}, err
	}
	defer sw.turn.Pass()
	return sw.eachPort(ctx, op, code, ports, line)
}

// eachPort sends a question about ports and calls line with each answer line
// "<port>:<rest>". Called with the turn.
func (sw *Switch) eachPort(ctx context.Context, op, code string, ports []ocs.Port, line func(p ocs.Port, rest string) bool) (answer, error) {
	a, err := sw.perform(ctx, request{op: op, code: code, aid: portList(ports), again: true, read: true})
	if err != nil {
		return a, err
	}
	for _, text := range a.msg.Text {
		head, rest, found := strings.Cut(text, ":")
		p, err := parsePort(head)
		if err != nil || !found || !line(p, rest) {
			return a, sw.garbled(op, a, text)
		}
	}
	return a, nil
}

// Power reads the monitors with one request. Of a Glimmerglass or Calient unit it
// has the ports that show a power.
func (sw *Switch) Power(ctx context.Context, ports ...ocs.Port) (ocs.PowerReading, error) {
	if err := sw.take(ctx, opPower); err != nil {
		return ocs.PowerReading{}, err
	}
	defer sw.turn.Pass()
	return sw.d.power(ctx, ports)
}

func (d *polatis) power(ctx context.Context, ports []ocs.Port) (ocs.PowerReading, error) {
	r := ocs.PowerReading{Ports: make(map[ocs.Port]ocs.DBm, len(ports))}
	a, err := d.sw.eachPort(ctx, opPower, "RTRV-PORT-POWER", ports, func(p ocs.Port, rest string) bool {
		x, ok := number(rest)
		r.Ports[p] = ocs.DBm(x)
		return ok
	})
	if err != nil {
		return ocs.PowerReading{}, err
	}
	r.Earliest, r.Latest = a.receipt.SendStart, a.receipt.Acked
	return r, nil
}

// number reads a decimal number, perhaps in parentheses; minus infinity is no
// light.
func number(s string) (x float64, ok bool) {
	x, err := strconv.ParseFloat(strings.Trim(s, " ()"), 64)
	return x, err == nil && !math.IsNaN(x) && !math.IsInf(x, 1)
}

// Monitors reads the settings with one RTRV-PORT-PMON.
func (sw *Switch) Monitors(ctx context.Context, ports ...ocs.Port) ([]ocs.Monitor, error) {
	var ms []ocs.Monitor
	_, err := sw.perPort(ctx, "read monitor settings", "RTRV-PORT-PMON", ports, func(p ocs.Port, rest string) bool {
		f := strings.Split(rest, ",")
		if len(f) != 3 {
			return false
		}
		wave, ok1 := number(f[0])
		offset, ok2 := number(f[1])
		step, err := strconv.Atoi(f[2])
		if !ok1 || !ok2 || math.IsInf(wave+offset, 0) || err != nil || step < 1 || step > len(polatiscard.Averaging) {
			return false
		}
		ms = append(ms, ocs.Monitor{Port: p, WavelengthNM: wave, Offset: ocs.DB(offset), Averaging: polatiscard.Averaging[step-1]})
		return true
	})
	return ms, err
}

// SetMonitor sends one SET-PORT-PMON. A WavelengthNM or Averaging of zero is
// left as it is; the averaging time is rounded up to the next step.
func (sw *Switch) SetMonitor(ctx context.Context, m ocs.Monitor) error {
	var params []string
	if m.WavelengthNM != 0 {
		params = append(params, "WAVE="+strconv.FormatFloat(m.WavelengthNM, 'f', -1, 64))
	}
	params = append(params, "OFFSET="+signed(float64(m.Offset)))
	if m.Averaging != 0 {
		params = append(params, "ATIME="+strconv.Itoa(polatiscard.AveragingStep(m.Averaging)))
	}
	_, err := sw.do(ctx, request{op: "set monitor", code: "SET-PORT-PMON", aid: portList([]ocs.Port{m.Port}), blocks: []string{"", strings.Join(params, ",")}, again: true})
	return err
}

// signed writes a number the way the device wants it: negative ones in
// parentheses.
func signed(x float64) string {
	s := strconv.FormatFloat(x, 'f', -1, 64)
	if x < 0 {
		return "(" + s + ")"
	}
	return s
}

// Shutters reads with one RTRV-PORT-SHUTTER.
func (sw *Switch) Shutters(ctx context.Context, ports ...ocs.Port) (map[ocs.Port]bool, error) {
	closed := map[ocs.Port]bool{}
	_, err := sw.perPort(ctx, "read shutters", "RTRV-PORT-SHUTTER", ports, func(p ocs.Port, rest string) bool {
		closed[p] = strings.EqualFold(rest, "CLOSED")
		return closed[p] || strings.EqualFold(rest, "OPEN")
	})
	return closed, err
}

// SetShutters sends one OPR-PORT-SHUTTER or RLS-PORT-SHUTTER.
func (sw *Switch) SetShutters(ctx context.Context, closed bool, ports ...ocs.Port) error {
	if len(ports) == 0 {
		return nil
	}
	r := request{op: "open shutters", code: "RLS-PORT-SHUTTER", aid: portList(ports), again: true}
	if closed {
		r.op, r.code = "close shutters", "OPR-PORT-SHUTTER"
	}
	_, err := sw.do(ctx, r)
	return err
}

// Labels reads with one request. On a Calient or Glimmerglass unit labels can be
// read only.
func (sw *Switch) Labels(ctx context.Context, ports ...ocs.Port) (map[ocs.Port]string, error) {
	if err := sw.take(ctx, opLabels); err != nil {
		return nil, err
	}
	defer sw.turn.Pass()
	return sw.d.labels(ctx, ports)
}

func (d *polatis) labels(ctx context.Context, ports []ocs.Port) (map[ocs.Port]string, error) {
	labels := map[ocs.Port]string{}
	_, err := d.sw.eachPort(ctx, opLabels, "RTRV-PORT-LABEL", ports, func(p ocs.Port, rest string) bool {
		if rest != "" {
			labels[p] = rest
		}
		return true
	})
	return labels, err
}

// SetLabel sends ED-PORT-LABEL, or DLT-PORT-LABEL for the empty label.
func (sw *Switch) SetLabel(ctx context.Context, p ocs.Port, label string) error {
	r := request{op: "set label", code: "ED-PORT-LABEL", aid: p.String(), blocks: []string{"", "LABEL=" + tl1.Quote(label)}, again: true}
	if label == "" {
		r.op, r.code, r.blocks = "delete label", "DLT-PORT-LABEL", nil
	}
	_, err := sw.do(ctx, r)
	return err
}

// BootMode reads what a restart does with the cross-connects.
func (sw *Switch) BootMode(ctx context.Context) (ocs.BootMode, error) {
	const op = "read boot mode"
	a, err := sw.do(ctx, request{op: op, code: "RTRV-EQPT", aid: "BOOT", blocks: []string{"", "PARAMETER=MODE"}, again: true, read: true})
	if err != nil {
		return "", err
	}
	for _, line := range a.msg.Text {
		switch upper := strings.ToUpper(line); {
		case strings.HasSuffix(upper, "DARK"):
			return ocs.BootDark, nil
		case strings.HasSuffix(upper, "RESTORE"):
			return ocs.BootRestore, nil
		}
	}
	return "", sw.garbled(op, a, strings.Join(a.msg.Text, " "))
}

// SetBootMode changes it.
func (sw *Switch) SetBootMode(ctx context.Context, m ocs.BootMode) error {
	if m != ocs.BootDark && m != ocs.BootRestore {
		return fmt.Errorf("boot mode %q: want dark or restore", m)
	}
	_, err := sw.do(ctx, request{op: "set boot mode", code: "ED-EQPT", aid: "BOOT", blocks: []string{"", "MODE=" + strings.ToUpper(string(m))}, again: true})
	return err
}

// Restart resets the switch matrix with INIT-SYS phase 1. It interrupts all
// light.
func (sw *Switch) Restart(ctx context.Context) error {
	_, err := sw.do(ctx, request{op: "restart", code: "INIT-SYS", aid: "SYSTEM", blocks: []string{"1"}})
	return err
}
