package netconfswitch

import (
	"fmt"
	"strings"

	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/wire/netconf"
)

// denial is what the device refused, with all its reasons. It matches the
// sentinels of ocs that fit, and *netconf.Error.
type denial struct{ said []*netconf.Error }

func newDenial(said []*netconf.Error) *denial { return &denial{said} }

func (d *denial) Error() string {
	texts := make([]string, len(d.said))
	for i, e := range d.said {
		texts[i] = e.Error()
	}
	return mask(strings.Join(texts, "; "))
}

func (d *denial) Unwrap() []error {
	errs := make([]error, 0, 2*len(d.said))
	for _, e := range d.said {
		errs = append(errs, kindOf(e), e)
	}
	return errs
}

// errBadPort is a port that the device does not have: refused as well.
var errBadPort = fmt.Errorf("%w: %w", ocs.ErrDenied, ocs.ErrPort)

// kindOf says which contract of ocs a refusal falls under. The texts are those
// of the devices, whose tags are not known for sure.
func kindOf(e *netconf.Error) error {
	text := strings.ToLower(e.Message)
	switch {
	case strings.Contains(text, "invalid oxc port"), strings.Contains(text, "invalid port"), strings.Contains(text, "port is invalid"):
		return errBadPort
	case e.Tag == netconf.InUse, e.Tag == netconf.LockDenied:
		return ocs.ErrConflict
	case e.Tag == netconf.DataMissing:
		return ocs.ErrNotConnected
	case e.Tag == netconf.OperationNotSupported, e.Tag == netconf.UnknownElement, e.Tag == netconf.UnknownNamespace:
		return ocs.ErrNotSupported
	}
	return ocs.ErrDenied
}
