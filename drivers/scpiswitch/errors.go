package scpiswitch

import (
	"errors"
	"fmt"
	"strings"

	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/wire/scpi"
)

// fail makes the error for an operation.
func (sw *Switch) fail(op, request, reply string, err error) error {
	return &ocs.OpError{Op: op, Device: sw.cfg.Device, Request: request, Reply: reply, Err: err}
}

// cause returns what an *ocs.OpError is about.
func cause(err error) error {
	var op *ocs.OpError
	if errors.As(err, &op) {
		return op.Err
	}
	return err
}

// refusal is what was in the error queue behind a request. It matches the
// sentinels of ocs that fit, and *scpi.Error.
type refusal struct {
	said []scpi.Error
	kind error
}

// newRefusal returns the refusal of a request, which names ports or does not. It
// is of a kind if all errors are.
func newRefusal(said []scpi.Error, ports bool) *refusal {
	kind := classify(said[0].Code, ports)
	for _, e := range said[1:] {
		if !errors.Is(classify(e.Code, ports), kind) {
			kind = ocs.ErrDenied
		}
	}
	return &refusal{said, kind}
}

func (r *refusal) Error() string {
	const most = 5
	var parts []string
	for _, e := range r.said[:min(len(r.said), most)] {
		parts = append(parts, e.Error())
	}
	text := strings.Join(parts, ", ")
	if n := len(r.said) - most; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	return text
}

func (r *refusal) Unwrap() []error {
	errs := []error{r.kind}
	for i := range r.said {
		errs = append(errs, &r.said[i])
	}
	return errs
}

// errBadPort is a port that the device does not have: refused as well.
var errBadPort = fmt.Errorf("%w: %w", ocs.ErrDenied, ocs.ErrPort)

// classify says which contract of ocs an error falls under.
func classify(code int, ports bool) error {
	switch code {
	case scpi.UndefinedHeader:
		return ocs.ErrNotSupported
	case scpi.SettingsConflict:
		return ocs.ErrConflict
	case scpi.DataOutOfRange, scpi.IllegalParameterValue:
		if ports {
			return errBadPort
		}
	}
	return ocs.ErrDenied
}

// tooLong is a scpi.TooLongError without the excerpt, which is in the reply.
type tooLong struct{ *scpi.TooLongError }

func (e tooLong) Error() string { return fmt.Sprintf("more than %d bytes", e.Limit) }
func (e tooLong) Unwrap() error { return e.TooLongError }
