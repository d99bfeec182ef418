package ocstrx

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/wire/cmis"
	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// BootMode is always dark: a module starts with no light.
func (sw *Switch) BootMode(ctx context.Context) (ocs.BootMode, error) {
	if err := sw.life.Gone(ctx); err != nil {
		return "", sw.fail("read boot mode", err)
	}
	return ocs.BootDark, nil
}

// SetBootMode accepts dark; the others are errors that match [ocs.ErrNotSupported].
func (sw *Switch) SetBootMode(ctx context.Context, m ocs.BootMode) error {
	const op = "set boot mode"
	if err := sw.life.Gone(ctx); err != nil {
		return sw.fail(op, err)
	}
	if m != ocs.BootDark {
		return sw.fail(op, fmt.Errorf("boot mode %.40q: transceivers start dark, and keep no circuits: %w", string(m), ocs.ErrNotSupported))
	}
	return nil
}

// spanControls is ModuleGlobalControls of CMIS; its bit 3 resets the module.
var spanControls = cmis.Span{Address: cmis.Address{Offset: cmis.RegGlobalControl}, Length: 1}

// Restart resets all modules, which takes all light away and clears faults, and returns
// when they are ready again, dark. A module that comes back in fault, or does not come
// back within Config.Timeout, is an error; the others have restarted nonetheless.
func (sw *Switch) Restart(ctx context.Context) error {
	const op = "restart"
	if err := sw.take(ctx, op); err != nil {
		return err
	}
	defer sw.turn.Pass()
	slots := sw.present()
	var b batch
	controls := make([][]byte, len(slots))
	for i, slot := range slots {
		controls[i] = b.read(slot, spanControls)
	}
	if _, err := sw.do(ctx, op, b...); err != nil {
		return err
	}
	b = b[:0]
	for i, slot := range slots {
		b = append(b, Request{Op: OpWrite, Slot: slot, At: spanControls.Address, Data: []byte{controls[i][0] | byte(cmis.SoftwareReset)}})
	}
	begun := time.Now()
	if _, err := sw.do(ctx, op, b...); err != nil {
		return err
	}
	for n := 0; ; n++ {
		all, _, err := sw.look(ctx, op, slots)
		if err != nil {
			return err
		}
		var errs []error
		starting := false
		for _, s := range all {
			err := s.restarted()
			var still *startingError
			starting = starting || errors.As(err, &still)
			errs = append(errs, err)
		}
		if starting && time.Since(begun) < sw.cfg.Timeout {
			if err := sw.pause(ctx, pauses(n)); err != nil {
				return sw.fail(op, err)
			}
			continue
		}
		if err := sw.configure(ctx, op, all); err != nil {
			return err
		}
		return sw.restartError(op, errs)
	}
}

// startingError is a module that has not come back, or not yet.
type startingError struct{ seen seen }

func (e *startingError) Error() string {
	return fmt.Sprintf("%s has not restarted: it is %v, with %d switches since its start", moduleName(e.seen.slot), e.seen.state(), e.seen.status.Sequence)
}

// restarted returns why a module that was reset is not as it should be: dark, and with a
// count of switches that begins anew.
func (s seen) restarted() error {
	switch state := s.state(); {
	case state == ocst.StateReset, state == ocst.StateWarmUp, s.status.Sequence != 0, aimsOf(s.lanes) != aims{}:
		return &startingError{s}
	case state == ocst.StateReady:
		return nil
	}
	return s.ready()
}

// restartError makes one error of those of the modules.
func (sw *Switch) restartError(op string, errs []error) error {
	var all error
	for _, err := range errs {
		all = and(all, err)
	}
	if all == nil {
		return nil
	}
	return sw.fail(op, all)
}
