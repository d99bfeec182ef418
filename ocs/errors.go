package ocs

import (
	"errors"
	"fmt"
	"strings"
)

// Sentinel errors. Test with errors.Is. Beside them the standard ones are
// used where they fit: context.Canceled, context.DeadlineExceeded,
// net.ErrClosed, io.ErrUnexpectedEOF, os.ErrDeadlineExceeded.
var (
	// ErrConflict: a port is busy with another cross-connect and the policy
	// or the device forbids to take it over. Nothing was changed.
	ErrConflict = errors.New("port is busy")
	// ErrDenied: the device understood and refused.
	ErrDenied = errors.New("refused by the device")
	// ErrNotConnected: there is no such cross-connect.
	ErrNotConnected = errors.New("not connected")
	// ErrVerify: the device acknowledged, but reads back something else.
	ErrVerify = errors.New("device does not hold what was asked for")
	// ErrInterlock: a rule of the lab forbids to touch the port. Nothing was
	// changed.
	ErrInterlock = errors.New("port is protected")
	// ErrNotSupported: the device or the driver cannot do this.
	ErrNotSupported = errors.New("not supported")
	// ErrPort: the device has no such port, or not in that role. Nothing was
	// changed.
	ErrPort = errors.New("no such port")
	// ErrUntold: the port has it, and the device does not say how it is at present. It
	// matches ErrNotSupported, too.
	ErrUntold = fmt.Errorf("not told: %w", ErrNotSupported)
)

// OpError is an operation on a device that failed: what was asked of whom,
// and what came back.
type OpError struct {
	Op      string // "connect", "read power", ...
	Device  string // name or address
	Request string // wire text sent, secrets masked; "" if nothing was sent
	Reply   string // wire text received, raw; "" if nothing was received
	Err     error  // why; matches the sentinels
}

// Error returns one sentence; the raw reply is quoted in it, shortened when
// it is long. The whole reply is in the Reply field.
func (e *OpError) Error() string {
	var b strings.Builder
	b.WriteString(e.Device)
	if e.Op != "" {
		b.WriteString(": " + e.Op)
	}
	if e.Err != nil {
		b.WriteString(": " + e.Err.Error())
	}
	if reply := strings.TrimSpace(e.Reply); reply != "" {
		fmt.Fprintf(&b, " (reply %q)", abbreviate(strings.Join(strings.Fields(reply), " ")))
	}
	return b.String()
}

// Unwrap returns Err.
func (e *OpError) Unwrap() error { return e.Err }

// ConflictError says which cross-connect stands in the way of which. It
// matches [ErrConflict].
type ConflictError struct {
	Want, Have CrossConnect
	Where      string // "" means the device
}

// Error returns one sentence that names the shared port.
func (e *ConflictError) Error() string {
	if e.Want.Ingress != e.Have.Ingress && e.Want.Egress != e.Have.Egress && !shareAny(e.Want, e.Have) {
		return fmt.Sprintf("%v excludes %v, which is there", e.Want, e.Have)
	}
	side, p := "ingress", e.Want.Ingress
	if e.Have.Ingress != p {
		side, p = "egress", e.Want.Egress
	}
	where := ""
	if e.Where != "" {
		where = " of " + e.Where
	}
	return fmt.Sprintf("%v: %s %d is busy with %v%s", e.Want, side, p, e.Have, where)
}

// shareAny reports whether c and d use a port in whatever role.
func shareAny(c, d CrossConnect) bool { return c.Ingress == d.Egress || c.Egress == d.Ingress }

// Is reports whether target is ErrConflict.
func (e *ConflictError) Is(target error) bool { return target == ErrConflict }

// PortError is a port that the device does not have, or not in that role. It
// matches [ErrPort].
type PortError struct {
	Port         Port
	Geometry     Geometry     // of the device, if known
	CrossConnect CrossConnect // in which the port was named, if in one
	Reason       string       // "is not an ingress port"
}

// Error returns one sentence with the ports that the device does have.
func (e *PortError) Error() string {
	var b strings.Builder
	if e.CrossConnect != (CrossConnect{}) {
		fmt.Fprintf(&b, "%v: ", e.CrossConnect)
	}
	fmt.Fprintf(&b, "port %d %s", e.Port, e.Reason)
	if e.Geometry.Lanes > 0 {
		fmt.Fprintf(&b, " of %v (%s)", e.Geometry, e.Geometry.ranges())
	} else if e.Geometry.Known() {
		fmt.Fprintf(&b, " of this %v switch (%s)", e.Geometry, e.Geometry.ranges())
	}
	return b.String()
}

// Is reports whether target is ErrPort.
func (e *PortError) Is(target error) bool { return target == ErrPort }

// VerifyError says which cross-connects do not read back as asked for. It
// matches [ErrVerify].
type VerifyError struct {
	Wrong []CrossConnect // missing though added, or there though removed
	After Map            // what the device holds
}

// Error returns one sentence that names each wrong cross-connect and what
// stands at its ports instead.
func (e *VerifyError) Error() string {
	var b strings.Builder
	b.WriteString(ErrVerify.Error())
	for i, c := range e.Wrong {
		sep := "; "
		if i == 0 {
			sep = ": "
		}
		b.WriteString(sep + c.String())
		switch rivals := e.After.Rivals(c); {
		case e.After.Has(c):
			b.WriteString(" is still there")
		case len(rivals) > 0:
			fmt.Fprintf(&b, " is missing, %v is there", rivals[0])
		default:
			b.WriteString(" is missing")
		}
	}
	return b.String()
}

// Is reports whether target is ErrVerify.
func (e *VerifyError) Is(target error) bool { return target == ErrVerify }

// Join is errors.Join in one sentence: nil without errors, and "a; b" of two. It matches all of them.
func Join(errs ...error) error {
	var sum error
	for _, e := range errs {
		switch {
		case e == nil:
		case sum == nil:
			sum = e
		default:
			sum = fmt.Errorf("%w; %w", sum, e)
		}
	}
	return sum
}
