//go:build !linux

package phy

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Kmsg cannot be had on this system.
type Kmsg struct{}

// OpenKmsg fails.
func OpenKmsg(...string) (*Kmsg, error) {
	return nil, fmt.Errorf("/dev/kmsg is Linux only: %w", errors.ErrUnsupported)
}

// Calibration fails.
func (*Kmsg) Calibration() (time.Duration, error) { return 0, errors.ErrUnsupported }

// Next fails.
func (*Kmsg) Next(context.Context) (KmsgEvent, error) { return KmsgEvent{}, errors.ErrUnsupported }

// Close does nothing.
func (*Kmsg) Close() error { return nil }

func tryLog() error {
	_, err := OpenKmsg()
	return err
}
