//go:build !linux

package netns

import (
	"errors"
	"fmt"
	"os"
)

func unsupported(what string) error {
	return fmt.Errorf("%s: network namespaces are Linux only: %w", what, errors.ErrUnsupported)
}

// Current returns the only one there is.
func Current() (*NS, error) { return &NS{}, nil }

// Open fails, except for "".
func Open(ref string) (*NS, error) {
	if ref == "" {
		return Current()
	}
	return nil, unsupported("network namespace " + ref)
}

// New fails.
func New(string) (*NS, error) { return nil, unsupported("new network namespace") }

// Do runs fn.
func (n *NS) Do(fn func() error) error { return fn() }

// Enter does nothing.
func (n *NS) Enter() error { return nil }

// Sysfs fails.
func (n *NS) Sysfs() (*os.File, error) { return nil, unsupported("sysfs") }
