package ocstrx

import (
	"context"
	"encoding/binary"
	"time"

	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/wire/cmis"
	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// batch is a list of requests that are done in order.
type batch []Request

// read adds a read, and returns where it will be put.
func (b *batch) read(slot int, s cmis.Span) []byte {
	p := make([]byte, s.Length)
	*b = append(*b, Request{Op: OpRead, Slot: slot, At: s.Address, Data: p})
	return p
}

// write adds a write of a register of the control page and those behind it.
func (b *batch) write(slot int, reg uint8, data ...byte) {
	*b = append(*b, Request{Op: OpWrite, Slot: slot, At: ocst.At(reg), Data: data})
}

// look adds the reads of what a module does; see gaze.decode.
func (b *batch) look(slot int) gaze {
	return gaze{slot, b.read(slot, ocst.StatusSpan), b.read(slot, ocst.LanesSpan)}
}

// gaze is a look at a module that is not decoded.
type gaze struct {
	slot          int
	status, lanes []byte
}

// seen is what a module says.
type seen struct {
	slot   int
	status ocst.Status
	lanes  ocst.LaneStatus
}

func (g gaze) decode() seen {
	// Neither can fail, as the lengths are right.
	s := seen{slot: g.slot}
	s.status, _ = ocst.DecodeStatus(g.status)
	s.lanes, _ = ocst.DecodeLanes(g.lanes)
	return s
}

// state is what the module does, by the later of both readings.
func (s seen) state() ocst.State { return s.lanes.State }

// look reads modules.
func (sw *Switch) look(ctx context.Context, op string, slots []int) ([]seen, ocs.Receipt, error) {
	b := make(batch, 0, 2*len(slots))
	gazes := make([]gaze, len(slots))
	for i, slot := range slots {
		gazes[i] = b.look(slot)
	}
	r, err := sw.do(ctx, op, b...)
	if err != nil {
		return nil, r, err
	}
	all := make([]seen, len(slots))
	for i, g := range gazes {
		all[i] = g.decode()
	}
	return all, r, nil
}

// pauses returns how long to wait before a module is looked at the nth time, from 0: not
// at all for as long as a switch may take, then longer and longer.
func pauses(n int) time.Duration {
	const atOnce = 8
	if n <= atOnce {
		return 0
	}
	return min(time.Duration(n-atOnce)*time.Millisecond, 20*time.Millisecond)
}

// settled reads modules until none of them is about to change its state by itself, or
// Config.Timeout is over; of one that is armed, also the time after which it disarms
// itself.
func (sw *Switch) settled(ctx context.Context, op string, slots []int) ([]seen, ocs.Receipt, error) {
	var begun time.Time
	for n := 0; ; n++ {
		all, r, err := sw.look(ctx, op, slots)
		if err != nil {
			return nil, r, err
		}
		if begun.IsZero() {
			begun = r.Begun
		}
		patience := time.Duration(0)
		for _, s := range all {
			switch state := s.state(); {
			case state == ocst.StateArmed:
				patience = max(patience, sw.cfg.Timeout+ocst.ArmTimeout)
			case state.Busy(), state == ocst.StateReset, state == ocst.StateWarmUp:
				patience = max(patience, sw.cfg.Timeout)
			}
		}
		if time.Since(begun) >= patience {
			return all, r, nil
		}
		if err := sw.pause(ctx, pauses(n)); err != nil {
			return nil, r, sw.fail(op, err)
		}
	}
}

// ready returns why circuits of a module cannot be changed, if they cannot.
func (s seen) ready() error {
	switch s.state() {
	case ocst.StateReady, ocst.StateLocking:
		return nil
	}
	return &ModuleError{Slot: s.slot, State: s.state(), Fault: s.lanes.Fault, At: where(s.lanes), refused: true}
}

// settings adds the writes that give a module the settings of Config which it has not, or
// has lost.
func (sw *Switch) settings(b *batch, s seen) {
	if d := sw.cfg.Settle; d != 0 && d.Truncate(time.Microsecond) != s.status.SettleTimeout {
		b.write(s.slot, ocst.RegTimeout, binary.BigEndian.AppendUint16(nil, uint16(d/time.Microsecond))...)
	}
	if on := sw.cfg.PreEmphasis; on != nil {
		control := s.lanes.Control &^ ocst.PreEmphasis
		if *on {
			control |= ocst.PreEmphasis
		}
		if control != s.lanes.Control {
			b.write(s.slot, ocst.RegControl, control)
		}
	}
}

// configure gives modules their settings.
func (sw *Switch) configure(ctx context.Context, op string, all []seen) error {
	var b batch
	for _, s := range all {
		sw.settings(&b, s)
	}
	if len(b) == 0 {
		return nil
	}
	_, err := sw.do(ctx, op, b...)
	return err
}
