package rail

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ocslab/ocslab/internal/natural"
	"github.com/ocslab/ocslab/ocs"
)

// failure says in one sentence for people why a request failed. What the device said in full is in what it wraps.
type failure struct {
	rail, text string
	err        error
}

func (f *failure) Error() string { return "rail " + f.rail + ": " + f.text }
func (f *failure) Unwrap() error { return f.err }

// errUnread is a change that was acknowledged, and what became of it could not be read.
var errUnread = errors.New("the change was acknowledged but could not be read back")

// unlit is about circuits that are connected and dark. It matches ocs.ErrVerify.
type unlit struct {
	text  string
	paths []Path
}

func (u *unlit) Error() string        { return u.text }
func (u *unlit) Is(target error) bool { return target == ocs.ErrVerify }

// bare returns a reason without the name of the rail, which whoever prints it says himself.
func (o *Orchestrator) bare(reason string) string {
	return strings.TrimPrefix(reason, "rail "+o.opt.Rail+": ")
}

// sentence tells of the last attempt at t: the switch, the ports, what the device said, how often it was tried.
func (o *Orchestrator) sentence(t *ticket, err error, limit time.Duration) string {
	where := o.names(t.ports)
	verb := "to change "
	if errors.Is(err, errUnread) {
		verb = "to say what became of "
	}
	text := ""
	switch said := words(err); {
	case errors.As(err, new(final)), errors.Is(err, ocs.ErrVerify), errors.Is(err, errUnseen):
		text = err.Error() // made here, with all there is to say
	case timedOut(err):
		within := "in time"
		if errors.Is(err, context.DeadlineExceeded) {
			within = fmt.Sprintf("within %v", limit)
		}
		text = fmt.Sprintf("%s did not answer %s when it was asked %s%s", o.opt.Switch, within, verb, where)
	case refusal(err) != nil:
		text = fmt.Sprintf("%s refused %s%s", o.opt.Switch, verb, where)
		if said != refusal(err).Error() {
			text += ": " + said
		}
	default:
		text = fmt.Sprintf("%s could not be asked %s%s: %s", o.opt.Switch, verb, where, said)
	}
	if t.attempt > 1 {
		text += fmt.Sprintf(" (%s)", natural.Count(t.attempt, "attempt"))
	}
	return text
}

// timedOut reports whether the switch said nothing in time.
func timedOut(err error) bool {
	var timeout net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout()
}

// refusal returns what kind of refusal of the device err is, or nil.
func refusal(err error) error {
	for _, kind := range []error{ocs.ErrConflict, ocs.ErrNotConnected, ocs.ErrInterlock, ocs.ErrPort, ocs.ErrNotSupported, ocs.ErrDenied} {
		if errors.Is(err, kind) {
			return kind
		}
	}
	return nil
}

// words is what the device, or the session with it, said: the first line, and not more of it than fits.
func words(err error) string {
	const most = 80
	if op := (*ocs.OpError)(nil); errors.As(err, &op) && op.Err != nil {
		err = op.Err
	}
	said, _, _ := strings.Cut(strings.TrimSpace(err.Error()), "\n")
	said = strings.TrimSpace(said)
	if utf8.RuneCountInString(said) > most {
		said = string([]rune(said)[:most-1]) + "…"
	}
	return said
}
