//go:build !unix

package runner

import (
	"os"
	"syscall"
)

// handled are the signals that control a run.
var handled = []os.Signal{os.Interrupt, syscall.SIGTERM}

// pauseSignal would pause and continue, but there is none here.
var pauseSignal os.Signal
