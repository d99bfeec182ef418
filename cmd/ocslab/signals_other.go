//go:build !unix

package main

import (
	"os"
	"os/exec"
)

// passSignals does nothing here: what interrupts us interrupts the command as well.
func passSignals(*os.Process) (stop func()) { return func() {} }

// endedWith is the exit code of a command that failed.
func endedWith(err *exec.ExitError) int { return err.ExitCode() }
