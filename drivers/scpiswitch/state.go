package scpiswitch

import (
	"context"
	"fmt"
	"strings"

	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/wire/scpi"
)

const portStates = ":OXC:SWIT:PORT:STAT?"

// Shutters reads the states of ports with one query: disabled is closed. Ports
// that have failed are left out.
func (sw *Switch) Shutters(ctx context.Context, ports ...ocs.Port) (map[ocs.Port]bool, error) {
	r := request{op: "read shutters", query: portStates, ports: true}
	if len(ports) > 0 {
		r.query += " " + list(ports)
	}
	a, err := sw.do(ctx, r)
	if err != nil {
		return nil, err
	}
	states, err := sw.states(r.op, a, len(ports))
	if err != nil {
		return nil, err
	}
	closed := make(map[ocs.Port]bool, len(states))
	for i, state := range states {
		p := ocs.Port(i + 1)
		if len(ports) > 0 {
			p = ports[i]
		}
		if state != 'F' {
			closed[p] = state == 'D'
		}
	}
	return closed, nil
}

// states reads "(D,E,F)" as one letter for each of n ports, or of all.
func (sw *Switch) states(op string, a answer, n int) (string, error) {
	values, err := scpi.ParseValues(a.data)
	letters := strings.ToUpper(strings.Join(values, ""))
	if err != nil || len(letters) != len(values) || strings.Trim(letters, "DEF") != "" || n > 0 && len(letters) != n {
		return "", sw.garbled(op, a)
	}
	return letters, nil
}

// SetShutters disables or enables ports with one command, and reads their states
// back with it. The error matches [ocs.ErrVerify] when a port is in another
// state, as one that has failed is.
func (sw *Switch) SetShutters(ctx context.Context, closed bool, ports ...ocs.Port) error {
	if len(ports) == 0 {
		return nil
	}
	r := request{op: "open shutters", command: ":OXC:SWIT:PORT:ENAB " + list(ports), query: portStates + " " + list(ports), ports: true}
	want := byte('E')
	if closed {
		r.op, r.command, want = "close shutters", ":OXC:SWIT:PORT:DIS "+list(ports), 'D'
	}
	a, err := sw.do(ctx, r)
	if err != nil {
		return err
	}
	states, err := sw.states(r.op, a, len(ports))
	if err != nil {
		return err
	}
	for i := range states {
		if states[i] != want {
			is := map[byte]string{'D': "is closed", 'E': "is open", 'F': "has failed"}[states[i]]
			return sw.fail(r.op, r.text(), a.data, fmt.Errorf("%w: port %d %s", ocs.ErrVerify, ports[i], is))
		}
	}
	return nil
}

// bootModes are the short and the long form of each mode.
var bootModes = map[ocs.BootMode][2]string{
	ocs.BootDark: {"DARK", "DARK"}, ocs.BootRestore: {"REST", "RESTORE"}, ocs.BootAutosave: {"AUT", "AUTOSAVE"},
}

const askBootMode = ":OXC:BOOT:MODE?"

// BootMode reads what a restart of the device does with the cross-connects.
func (sw *Switch) BootMode(ctx context.Context) (ocs.BootMode, error) {
	if err := sw.take(ctx, opBootMode); err != nil {
		return "", err
	}
	defer sw.turn.Pass()
	return sw.bootMode(ctx)
}

const opBootMode = "read boot mode"

// bootMode is BootMode for who has the turn.
func (sw *Switch) bootMode(ctx context.Context) (ocs.BootMode, error) {
	a, err := sw.perform(ctx, request{op: opBootMode, query: askBootMode})
	if err != nil {
		return "", err
	}
	return sw.parseBootMode(opBootMode, a)
}

func (sw *Switch) parseBootMode(op string, a answer) (ocs.BootMode, error) {
	for m, forms := range bootModes {
		if strings.EqualFold(a.data, forms[0]) || strings.EqualFold(a.data, forms[1]) {
			return m, nil
		}
	}
	return "", sw.garbled(op, a)
}

// SetBootMode changes it, and reads it back with the same request: the error
// matches [ocs.ErrVerify] when it is another.
func (sw *Switch) SetBootMode(ctx context.Context, m ocs.BootMode) error {
	forms, ok := bootModes[m]
	if !ok {
		return fmt.Errorf("boot mode %q: want dark, restore or autosave", m)
	}
	r := request{op: "set boot mode", command: ":OXC:BOOT:MODE " + forms[1], query: askBootMode}
	a, err := sw.do(ctx, r)
	if err != nil {
		return err
	}
	now, err := sw.parseBootMode(r.op, a)
	if err == nil && now != m {
		err = sw.fail(r.op, r.text(), a.data, fmt.Errorf("%w: the boot mode is %s", ocs.ErrVerify, now))
	}
	return err
}

// errWouldDrop is that *RST does not do what the boot mode says.
var errWouldDrop = fmt.Errorf("%w over SCPI in this boot mode: *RST drops all circuits; set boot mode dark, or use TL1", ocs.ErrNotSupported)

// Restart resets the device with *RST, which interrupts all light and drops all
// circuits. That is a restart in boot mode dark only; in other modes nothing is
// sent, and the error matches [ocs.ErrNotSupported].
func (sw *Switch) Restart(ctx context.Context) error {
	const op = "restart"
	if err := sw.take(ctx, op); err != nil {
		return err
	}
	defer sw.turn.Pass()
	m, err := sw.bootMode(ctx)
	if err != nil {
		return err
	}
	if m != ocs.BootDark {
		return sw.fail(op, "", "", errWouldDrop)
	}
	_, err = sw.perform(ctx, request{op: op, command: "*RST"})
	return err
}
