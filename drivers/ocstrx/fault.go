package ocstrx

import (
	"fmt"

	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// ModuleError is a module that cannot switch, or has failed to. It matches
// [ocs.ErrDenied] when the module has not done what it was told.
type ModuleError struct {
	Slot  int        // from 0
	State ocst.State // afterwards
	Fault ocst.Fault
	At    string // "S1 of lane 3" or "lane 3"; "" where that is not told

	refused bool // nothing was switched
	tried   bool // it was told to
}

// Error says what is wrong and what to do.
func (e *ModuleError) Error() string {
	fault := e.Fault.String()
	if e.At != "" {
		fault += " at " + e.At
	}
	name := moduleName(e.Slot)
	if e.tried {
		what := "failed to switch"
		if e.refused {
			what = "did not switch"
		}
		switch e.State {
		case ocst.StateFault:
			return fmt.Sprintf("%s %s: %s; it is dark, and a restart of the module clears the fault", name, what, fault)
		case ocst.StateReady, ocst.StateLocking, ocst.StateArmed, ocst.StateBreak, ocst.StateSettle:
			return fmt.Sprintf("%s %s: %s", name, what, fault)
		}
		return fmt.Sprintf("%s %s: %s; it is dark (%v)", name, what, fault, e.State)
	}
	switch e.State {
	case ocst.StateFault:
		return fmt.Sprintf("%s is dark, in fault: %s; restart the module to clear it", name, fault)
	case ocst.StateCal:
		if e.Fault == ocst.NoFault {
			return name + " is dark: it is being calibrated"
		}
		return fmt.Sprintf("%s is dark, waiting for calibration: %s; calibrate it, or load its table", name, fault)
	case ocst.StateLowPower:
		return name + " is dark, in low-power mode; clear the request for that (00h:26)"
	case ocst.StateReset, ocst.StateWarmUp:
		return fmt.Sprintf("%s is dark: it is still starting (%v)", name, e.State)
	case ocst.StateArmed:
		return name + " stays armed for another host"
	case ocst.StateBreak, ocst.StateSettle:
		return fmt.Sprintf("%s is busy with a switch that does not end (%v)", name, e.State)
	}
	return fmt.Sprintf("%s cannot switch (%v): %s", name, e.State, fault)
}

// Is reports whether target is [ocs.ErrDenied] and the module has refused.
func (e *ModuleError) Is(target error) bool { return e.refused && target == ocs.ErrDenied }

// where says at which element or lane the fault of a module is.
func where(s ocst.LaneStatus) string {
	switch {
	case s.Fault == ocst.NoFault || s.FaultAt == nowhere:
		return ""
	case s.Fault == ocst.FaultOpen || s.Fault == ocst.FaultShort:
		return ocst.Element(s.FaultAt).String()
	}
	return fmt.Sprintf("lane %d", s.FaultAt+1)
}

const nowhere = 0xff

// and joins two errors in one sentence; either may be nil.
func and(a, b error) error {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return fmt.Errorf("%w; %w", a, b)
}
