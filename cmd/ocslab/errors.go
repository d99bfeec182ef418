package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/ocslab/ocslab/calibration/mzi"
	"github.com/ocslab/ocslab/drivers"
	"github.com/ocslab/ocslab/drivers/transport"
	"github.com/ocslab/ocslab/experiment"
	"github.com/ocslab/ocslab/experiment/collective"
	"github.com/ocslab/ocslab/experiment/fit"
	"github.com/ocslab/ocslab/experiment/hbd"
	"github.com/ocslab/ocslab/experiment/runs"
	firmwarenotes "github.com/ocslab/ocslab/firmware-notes"
	"github.com/ocslab/ocslab/internal/strictyaml"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/lab/blackout"
	"github.com/ocslab/ocslab/lab/panics"
	"github.com/ocslab/ocslab/linkmon/watch"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/orchestrator/controller"
	"github.com/ocslab/ocslab/orchestrator/plane"
	"github.com/ocslab/ocslab/orchestrator/replay"
	"github.com/ocslab/ocslab/orchestrator/shim"
)

// Exit codes; scripts rely on them.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitRefused     = 3
	exitDevice      = 4
	exitVerify      = 5
	exitInterrupted = 130
)

// usageError is a mistake in the command line or in an input file.
type usageError struct{ err error }

func (e usageError) Error() string { return e.err.Error() }
func (e usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// exitCode says what an error means to a script.
func exitCode(err error) int {
	var (
		usage  usageError
		syntax *ocs.SyntaxError
		url    *drivers.URLError
		file   lab.Errors
		model  *lab.ModelError
		op     *ocs.OpError
		stop   interrupted
	)
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &stop):
		return exitInterrupted
	case errors.As(err, &file) && !slices.ContainsFunc(file, func(p *strictyaml.Error) bool { return !errors.Is(p, ocs.ErrInterlock) }):
		return exitRefused // all that is wrong in the file is that it moves protected ports
	case errors.As(err, &usage), errors.As(err, &syntax), errors.As(err, &url), errors.As(err, &file), errors.As(err, &model),
		errors.Is(err, lab.ErrUnknown), errors.Is(err, firmwarenotes.ErrUnknown), errors.Is(err, ocs.ErrPort), errors.Is(err, runs.ErrUnknown),
		errors.Is(err, replay.ErrOptions), errors.Is(err, controller.ErrOptions):
		return exitUsage
	case errors.Is(err, ocs.ErrConflict), errors.Is(err, ocs.ErrInterlock), errors.Is(err, runs.ErrBusy),
		errors.Is(err, panics.ErrInForce), errors.Is(err, shim.ErrRefused), errors.Is(err, shim.ErrStale):
		return exitRefused
	case errors.Is(err, ocs.ErrVerify), errors.Is(err, blackout.ErrContradiction), errors.Is(err, mzi.ErrVerification), errors.Is(err, watch.ErrIncomplete), errors.Is(err, errLimit),
		errors.Is(err, experiment.ErrBusy), errors.Is(err, experiment.ErrDark),
		errors.Is(err, errUnsafe), errors.Is(err, errRail), errors.Is(err, fit.ErrDrifted), errors.Is(err, errLoss),
		errors.Is(err, collective.ErrStalled), errors.Is(err, hbd.ErrMixed), errors.Is(err, hbd.ErrHalfOpen):
		return exitVerify
	case errors.As(err, &op), errors.Is(err, ocs.ErrDenied), errors.Is(err, shim.ErrRailDead), errors.Is(err, shim.ErrLost),
		errors.Is(err, plane.ErrClosed), errors.Is(err, errWire):
		return exitDevice
	}
	return exitFailed
}

// fail reports an error: a sentence on stderr and, with --json, an object on
// stdout.
func (a *app) fail(err error, code int) {
	fmt.Fprintf(a.err, "ocslab: %v\n", err)
	var key *transport.HostKeyError
	if errors.As(err, &key) && key.Problem == transport.HostKeyUnknown {
		fmt.Fprintf(a.err, "in the URL, that is ?hostkey=%s\n", key.Fingerprint)
	}
	if a.set.JSON {
		line := errorLine{Kind: "error", Error: err.Error(), ExitCode: code}
		var op *ocs.OpError
		if errors.As(err, &op) {
			line.Device, line.Request, line.Reply = op.Device, op.Request, op.Reply
		}
		a.json(line)
	}
}

type errorLine struct {
	Kind     string `json:"kind"`
	Error    string `json:"error"`
	ExitCode int    `json:"exit_code"`
	Device   string `json:"device,omitempty"`
	Request  string `json:"request,omitempty"`
	Reply    string `json:"reply,omitempty"`
}
