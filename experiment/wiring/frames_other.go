//go:build !linux

package wiring

import (
	"errors"
	"fmt"

	"github.com/ocslab/ocslab/internal/netns"
)

func openFrames(_ *netns.NS, iface string) (conn, error) {
	return nil, fmt.Errorf("a packet socket at %s: %w", iface, errors.ErrUnsupported)
}
