//go:build !linux

package probe

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/ocslab/ocslab/timeline"
)

// socket exists on Linux only.
type socket struct {
	horizon int64
	broken  bool
}

func listen(e Endpoint, _ uint16, _ timeline.Axis) (*socket, error) {
	return nil, fmt.Errorf("endpoint %s: packets with kernel stamps are Linux only, use a Conn: %w", e.Name, errors.ErrUnsupported)
}

func (s *socket) sender(netip.Addr, uint16) func([]byte) error { return nil }

func (s *socket) drain(func([]byte, func(int64) timeline.Interval, int64)) (int, error) {
	return 0, errors.ErrUnsupported
}

func (s *socket) close() error { return nil }

func (p *Probe) befriend(_, _ *end) error { return nil }

func bindToInterface(int, string) error { return errors.ErrUnsupported }
