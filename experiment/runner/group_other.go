//go:build !unix

package runner

import (
	"os"
	"os/exec"
)

// Without process groups only the command itself can be ended.

func ownGroup(*exec.Cmd) {}

func endGroup(p *os.Process) error { return p.Kill() }

func killGroup(p *os.Process) { _ = p.Kill() } // it is gone
