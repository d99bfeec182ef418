//go:build !unix

package runner

import (
	"os"
	"syscall"
)

// handled are the signals that control a run.
var handled = []os.Signal{os.Interrupt, syscall.SIGTERM}

// pauseSignal would pause and continue, and unreadSignal tell that nobody reads the output,
// but there are none here.
var pauseSignal, unreadSignal os.Signal
