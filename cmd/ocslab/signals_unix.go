//go:build unix

package main

import (
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// passSignals passes the signals that end this program to a command that runs in it, until the
// function returned is called. Ctrl-C comes from the terminal to the command as well, and is
// not passed a second time: programs take that for impatience.
func passSignals(p *os.Process) (stop func()) {
	c := make(chan os.Signal, 4)
	signal.Notify(c, os.Interrupt, syscall.SIGTERM)
	terminal := foreground()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for s := range c {
			if s != os.Interrupt || !terminal {
				_ = p.Signal(s) // it may have ended
			}
		}
	}()
	return func() {
		signal.Stop(c)
		close(c)
		<-ended
	}
}

// foreground reports whether what is typed in the terminal interrupts us and what we start.
func foreground() bool {
	tty, err := os.Open("/dev/tty")
	if err != nil {
		return false
	}
	defer tty.Close()
	group, err := unix.IoctlGetInt(int(tty.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

// endedWith is the exit code of a command that failed, as shells tell it.
func endedWith(err *exec.ExitError) int {
	if s, ok := err.Sys().(syscall.WaitStatus); ok && s.Signaled() {
		return 128 + int(s.Signal())
	}
	return err.ExitCode()
}
