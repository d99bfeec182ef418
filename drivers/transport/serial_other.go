//go:build !linux

package transport

import (
	"errors"
	"fmt"
	"runtime"
)

func (Serial) open() (Conn, error) {
	return nil, fmt.Errorf("not on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}

// SerialPorts lists the serial lines of this machine by USB identity. Linux
// only.
func SerialPorts() ([]SerialPort, error) {
	return nil, fmt.Errorf("serial lines: not on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}
