package tl1switch

import (
	"errors"
	"fmt"
	"strings"

	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/wire/tl1"
)

// fail makes the error for an operation.
func (sw *Switch) fail(op, request, reply string, err error) error {
	return &ocs.OpError{Op: op, Device: sw.cfg.Device, Request: sw.hide.text(request), Reply: sw.hide.text(reply), Err: err}
}

// denial is a refusal by the device; it matches the sentinels of ocs that fit,
// and *tl1.Error.
type denial struct {
	said *tl1.Error
	kind error
}

func (d *denial) Error() string   { return d.said.Error() }
func (d *denial) Unwrap() []error { return []error{d.kind, d.said} }

// errBadPort is a port that the device does not have: refused as well.
var errBadPort = fmt.Errorf("%w: %w", ocs.ErrDenied, ocs.ErrPort)

// classify says which contract of ocs a refusal falls under.
func (sw *Switch) classify(err error) error {
	var e *tl1.Error
	if !errors.As(err, &e) {
		return err
	}
	e.Text = sw.hide.text(e.Text)
	text := strings.ToLower(e.Text)
	kind := ocs.ErrDenied
	switch code := tl1.Code(e.Code); {
	case e.Completion != tl1.DENY:
		// Done in part: none of the others, as they promise that nothing was.
	case code == tl1.IICM, code == tl1.ICNV, code == tl1.INUP:
		kind = ocs.ErrNotSupported
	case code == tl1.IDNC, strings.Contains(text, "in use"):
		kind = ocs.ErrConflict
	case strings.Contains(text, "invalid oxc port"):
		kind = errBadPort
	case sw.cfg.Dialect == Glimmerglass && strings.Contains(text, "locked"):
		kind = ocs.ErrInterlock
	}
	return &denial{e, kind}
}

// notLoggedIn reports whether a request had no effect because the device has
// forgotten the login.
func notLoggedIn(err error) bool {
	var e *tl1.Error
	return errors.As(err, &e) && e.Completion == tl1.DENY && e.NotLoggedIn()
}
