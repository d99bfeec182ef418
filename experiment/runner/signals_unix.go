//go:build unix

package runner

import (
	"os"
	"syscall"
)

// handled are the signals that control a run.
var handled = []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, pauseSignal}

// pauseSignal pauses and continues.
var pauseSignal os.Signal = syscall.SIGUSR1
