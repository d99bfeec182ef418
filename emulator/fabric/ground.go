package fabric

import (
	"net"
	"net/netip"
	"time"

	"github.com/ocslab/ocslab/internal/netns"
)

// ground is what the NICs of a fabric stand on.
type ground interface {
	// host makes a host; its namespace is nil where there are none.
	host(name string) (*netns.NS, error)
	// device makes the device of a NIC, up and without carrier.
	device(h *host, l link) (device, error)
	// introduce tells host h how to reach the NICs there from its device.
	introduce(h *host, from device, to []link) error
	sleeper() (sleeper, error)
	close() error
}

// link is what the device of a NIC is to be.
type link struct {
	name  string
	nth   int // of the fabric, from 1
	addr  netip.Prefix
	mac   net.HardwareAddr
	mtu   int
	sends func(frame []byte) // what the host sends, one after another
}

// device is the device of one NIC.
type device interface {
	index() int
	// carrier gives the kernel a carrier or takes it; it has it when carrier returns.
	carrier(on bool) error
	// write hands the host a frame. It does not wait and keeps no reference.
	write(frame []byte) error
	// flush hands on what the host has sent until the time that it returns.
	flush() time.Time
	// close removes the device. Nothing is sent and nothing is to be written when it
	// returns.
	close() error
}

// network is for benchmarking networks (RFC 2544): it is routed nowhere.
var network = netip.MustParsePrefix("198.18.0.0/15")

// address returns the address of NIC number nth, from 1.
func address(nth int) netip.Prefix {
	a := network.Addr().As4()
	a[1] += byte(nth >> 16)
	a[2], a[3] = byte(nth>>8), byte(nth)
	return netip.PrefixFrom(netip.AddrFrom4(a), network.Bits())
}

// hardwareAddr returns a locally administered address that goes with addr.
func hardwareAddr(addr netip.Addr) net.HardwareAddr {
	a := addr.As4()
	return net.HardwareAddr{0x02, 0x00, a[0], a[1], a[2], a[3]}
}
