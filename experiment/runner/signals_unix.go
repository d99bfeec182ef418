//go:build unix

package runner

import (
	"os"
	"syscall"
)

// handled are the signals that control a run.
var handled = []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, pauseSignal, unreadSignal}

// pauseSignal pauses and continues.
var pauseSignal os.Signal = syscall.SIGUSR1

// unreadSignal comes when something is printed that nobody reads any more. It ends a process
// that does not handle it.
var unreadSignal os.Signal = syscall.SIGPIPE
