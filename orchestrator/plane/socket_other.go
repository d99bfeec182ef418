//go:build !linux

package plane

import (
	"errors"
	"net/netip"

	"github.com/ocslab/ocslab/internal/netns"
	"github.com/ocslab/ocslab/linkmon/probe"
)

func openSocket(*netns.NS, string, netip.Addr, uint16) (probe.Conn, error) {
	return nil, errors.ErrUnsupported
}
