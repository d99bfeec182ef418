package ocstrx

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/wire/cmis"
	"github.com/ocslab/ocslab/wire/trxlink"
)

// refused returns why the reply to m is not what m asked for.
func (m *message) refused() error {
	if len(m.reply.Payload) == 0 {
		return fmt.Errorf("the board answers %v with nothing, not even a code", m.kind)
	}
	switch code := trxlink.Code(m.reply.Payload[0]); code {
	case trxlink.CodeOK:
		if n := len(m.reply.Payload) - 1; m.length >= 0 && n != m.length {
			return fmt.Errorf("the board answers %v with %d bytes where %d belong", m.kind, n, m.length)
		}
		return nil
	case trxlink.CodeNotArmed:
		if len(m.reply.Payload) > 1 && m.reply.Payload[1] < trxlink.MaxSlots {
			return &NotArmedError{int(m.reply.Payload[1])}
		}
		return fmt.Errorf("a module is not armed, so none was triggered: %w", ocs.ErrDenied)
	case trxlink.CodeNoModule:
		return fmt.Errorf("%w: %w", cmis.ErrNoModule, ocs.ErrDenied)
	case trxlink.CodeHello:
		return errRestarted
	case trxlink.CodeVersion, trxlink.CodeKind, trxlink.CodeNotPresent:
		return fmt.Errorf("%v: %w", code, ocs.ErrNotSupported)
	default:
		return fmt.Errorf("%v: %w", code, ocs.ErrDenied)
	}
}

// errRestarted is a board that has started since it was greeted.
var errRestarted = errors.New("the board has restarted meanwhile")

// startedAnew reports whether the board has not done m since it has not been greeted.
func (m *message) startedAnew() bool {
	return m.done && len(m.reply.Payload) > 0 && trxlink.Code(m.reply.Payload[0]) == trxlink.CodeHello
}

// stale reports whether f is the reply to another HELLO than m, perhaps of a host that was
// here before. What cannot be read, or is of another version, says something else.
func (m *message) stale(f trxlink.Frame) bool {
	if m.kind != trxlink.Hello || len(f.Payload) == 0 || trxlink.Code(f.Payload[0]) != trxlink.CodeOK {
		return false
	}
	info, nonce, err := trxlink.ParseInfo(f.Payload[1:])
	return err == nil && info.Version == trxlink.Version && string(nonce[:]) != string(m.payload)
}

// one sends one message with a turn of its own.
func (l *Link) one(ctx context.Context, op string, m message) ([]byte, error) {
	if err := l.life.Take(ctx, l.turn); err != nil {
		return nil, &ocs.OpError{Op: op, Device: l.cfg.Device, Err: err}
	}
	defer l.turn.Pass()
	msgs := make([]message, 1)
	_, f, err := l.talk(ctx, msgs, func() { msgs[0] = m })
	switch {
	case err != nil:
		return nil, err
	case f != nil:
		return nil, &RequestError{Unsure: f.unsure, Err: l.opError(op, &msgs[0], f.err)}
	}
	return msgs[0].reply.Payload[1:], nil
}

// CDB has the module in a slot, from 0, do a CDB command, and returns its reply. One that the
// module refuses is a *[cmis.CDBError] and matches ocs.ErrDenied. When no reply has come, the
// error holds a *[RequestError] that is Unsure.
func (l *Link) CDB(ctx context.Context, slot int, command uint16, payload []byte) ([]byte, error) {
	op := fmt.Sprintf("CDB command %04Xh of module %d", command, slot+1)
	fail := func(err error) error { return &ocs.OpError{Op: op, Device: l.cfg.Device, Err: err} }
	if n := l.Slots(); slot < 0 || slot >= n {
		return nil, fail(fmt.Errorf("there is no module %d, only 1 to %d: %w", slot+1, n, ocs.ErrDenied))
	}
	if len(payload) > cmis.CDBMaxPayload {
		return nil, fail(fmt.Errorf("a payload of %d bytes, and at most %d fit", len(payload), cmis.CDBMaxPayload))
	}
	reply, err := l.one(ctx, op, message{
		kind: trxlink.CDB, slot: uint8(slot), payload: trxlink.AppendCDB(nil, command, payload), length: -1,
		timeout: l.cfg.Timeout + trxlink.CDBTime, tries: l.cfg.Retries + 1,
	})
	if err != nil {
		return nil, err
	}
	if len(reply) == 0 || len(reply) > 1+cmis.CDBMaxPayload {
		return nil, fail(fmt.Errorf("the board answers with %d bytes where a status and up to %d belong: %w", len(reply), cmis.CDBMaxPayload, cmis.ErrCDB))
	}
	if status := cmis.CDBStatus(reply[0]); status != cmis.CDBSuccess {
		return nil, fail(denied{&cmis.CDBError{Command: command, Status: status, Reply: reply[1:]}})
	}
	return reply[1:], nil
}

// denied is an error that is a refusal.
type denied struct{ error }

func (e denied) Unwrap() []error { return []error{e.error, ocs.ErrDenied} }

// Plate sets the temperature that the plate under the modules holds, in °C, and returns
// that and its own. Nil leaves it as it is; NaN is off, also of what is returned. A
// board without a plate gives an error that matches ocs.ErrNotSupported.
func (l *Link) Plate(ctx context.Context, set *float64) (held, now float64, err error) {
	const op = "set plate"
	fail := func(err error) (float64, float64, error) {
		return math.NaN(), math.NaN(), &ocs.OpError{Op: op, Device: l.cfg.Device, Err: err}
	}
	setting := trxlink.PlateLeave
	switch {
	case l.Info().Features&trxlink.HasPlate == 0:
		return fail(fmt.Errorf("this board has no plate: %w", ocs.ErrNotSupported))
	case set == nil:
	case math.IsNaN(*set):
		setting = trxlink.PlateOff
	case math.Abs(*set) > 127:
		return fail(fmt.Errorf("%g °C: a plate is set to -127 to 127 °C", *set))
	default:
		setting = trxlink.PlateAt(*set)
	}
	reply, err := l.one(ctx, op, message{
		kind: trxlink.Plate, slot: trxlink.Board, payload: setting.Append(nil), length: 4,
		timeout: l.cfg.Timeout, tries: l.cfg.Retries + 1,
	})
	if err != nil {
		return math.NaN(), math.NaN(), err
	}
	status, err := trxlink.ParsePlateStatus(reply)
	if err != nil {
		return fail(err)
	}
	held, on := status.Set.Celsius()
	if !on {
		held = math.NaN()
	}
	return held, status.Now, nil
}
