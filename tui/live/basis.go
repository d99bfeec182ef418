package live

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/lab/panics"
)

// basis is what a preview rests on beside what the switches hold. Who has accepted it has
// accepted it of this lab file, in which the name of a switch is that of a device, and while
// no other panics were in force than these.
type basis struct {
	file  *lab.File
	calls []int // panics in force, by number, oldest first
}

// basisNow is what a preview that begins now rests on.
func (s *Session) basisNow() *basis {
	b := &basis{file: s.file()}
	for _, c := range s.inForce() {
		b.calls = append(b.calls, c.N)
	}
	return b
}

// inForce are the panics of this lab that are in force now, as far as they can be read.
func (s *Session) inForce() []panics.Call {
	if s.opt.StateDir == "" {
		return nil
	}
	calls, _ := s.blackout(nil).InForce() // who lifts one is told that it cannot be read
	return calls
}

// changedError says what is otherwise since a preview. It matches ErrChanged.
type changedError string

func (e changedError) Error() string { return string(e) }

// Is reports whether target is ErrChanged.
func (e changedError) Is(target error) bool { return target == ErrChanged }

// onBasis returns an error that matches ErrChanged when a preview does not hold any more,
// whatever the switches hold: the lab is another, or a panic was called that nobody who
// accepted it knew of.
func (s *Session) onBasis(p Preview) error {
	if p.basis == nil {
		return nil
	}
	if s.file() != p.basis.file {
		return changedError("the lab file was read anew since the preview")
	}
	for _, c := range s.inForce() {
		if !slices.Contains(p.basis.calls, c.N) {
			return changedError(fmt.Sprintf("a panic was called since the preview, by %s: %s", c.Who, c.Reason))
		}
	}
	return nil
}

// liftUnchanged plans once more what lifting comes to, and returns an error that matches
// ErrChanged when light would come that the preview did not show.
func (s *Session) liftUnchanged(ctx context.Context, p Preview) error {
	lifted := numbers(p.Panic)
	if p.Panic == 0 {
		lifted = p.basis.calls
	}
	steps, err := s.blackout(nil).PlanLift(ctx, lifted...)
	if err != nil {
		return nil // lifting finds the same, and says so
	}
	for _, step := range steps {
		i := slices.IndexFunc(p.Parts, func(x Part) bool { return x.Switch == step.Switch })
		var seen Part
		if i >= 0 {
			seen = p.Parts[i]
		}
		if more := step.Change.Add.Minus(seen.Change.Add); more.Len() > 0 {
			return changedError(fmt.Sprintf("%s: lifting would connect %v, which the preview did not show", step.Switch, more))
		}
		for _, port := range step.Open {
			was, is := seen.Have.At(port), step.Have.Map.At(port)
			switch {
			case !slices.Contains(seen.Unshut, port):
				return changedError(fmt.Sprintf("%s: lifting would open the shutter of %d, which the preview did not show", step.Switch, port))
			case !slices.Equal(was, is):
				return fmt.Errorf("%w: port %d of %s %s; it %s", ErrChanged, port, step.Switch, holds(is, "holds"), holds(was, "held"))
			}
		}
	}
	return nil
}

// reasonsText says of panics who called them, and why, so that nobody gives light back that
// somebody else took without having read that.
func reasonsText(calls []panics.Call) string {
	var texts []string
	for _, c := range calls {
		texts = append(texts, fmt.Sprintf("%s (%s, %s)", c.Reason, c.Who, c.At.Local().Format("15:04:05")))
	}
	return strings.Join(texts, "; ")
}
