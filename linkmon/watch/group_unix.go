//go:build unix

package watch

import (
	"os/exec"
	"syscall"
)

// ownGroup keeps the signals of our terminal from a command.
func ownGroup(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
