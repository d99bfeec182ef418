//go:build !linux

package serialline

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"github.com/ocslab/ocslab/emulator"
)

// Line is a serial line of which the device has one end.
type Line struct{}

// Listen makes a line. Linux only.
func Listen(string) (*Line, error) { return nil, errNotHere() }

// Path returns the terminal.
func (*Line) Path() string { return "" }

// Link returns where clients find it.
func (*Line) Link() string { return "" }

// Close removes the link and the terminal.
func (*Line) Close() error { return nil }

// Serve serves whoever opens the line.
func (*Line) Serve(context.Context, emulator.FrontEnd) error { return errNotHere() }

func errNotHere() error {
	return fmt.Errorf("serial line: not on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}
