//go:build !linux

package genl

import (
	"context"
	"errors"
	"fmt"

	"github.com/ocslab/ocslab/internal/netns"
)

// Conn cannot be had on this system.
type Conn struct{}

// Dial fails.
func Dial(*netns.NS) (*Conn, error) {
	return nil, fmt.Errorf("ethtool netlink is Linux only: %w", errors.ErrUnsupported)
}

// Ethtool fails.
func (*Conn) Ethtool(context.Context, uint8, []byte) (map[uint16][]byte, error) {
	return nil, errors.ErrUnsupported
}

// Close does nothing.
func (*Conn) Close() error { return nil }
