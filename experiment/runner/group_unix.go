//go:build unix

package runner

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
)

// ownGroup gives a command a process group of its own, so that it can be ended with all
// that it has started, and so that the signals of our terminal do not reach it.
func ownGroup(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// endGroup asks the group that p leads to end.
func endGroup(p *os.Process) error { return signalGroup(p, syscall.SIGTERM) }

// killGroup ends it.
func killGroup(p *os.Process) { _ = signalGroup(p, syscall.SIGKILL) } // it is gone, or there is no more to be done

func signalGroup(p *os.Process, signal syscall.Signal) error {
	err := syscall.Kill(-p.Pid, signal)
	if errors.Is(err, syscall.ESRCH) {
		return os.ErrProcessDone
	}
	return err
}
