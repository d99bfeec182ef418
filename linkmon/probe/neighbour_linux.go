package probe

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// befriend makes a permanent neighbour entry for to where from sends from, and
// notes with from how to take it away.
func (p *Probe) befriend(from, to *end) error {
	if to.MAC == nil || from.Conn != nil {
		return nil
	}
	in := func(fn func() error) error {
		if from.NS == nil {
			return fn()
		}
		return from.NS.Do(fn)
	}
	var entry *netlink.Neigh
	err := in(func() error {
		var err error
		entry, err = setNeighbour(from.Interface, to.Endpoint)
		return err
	})
	if err != nil {
		return fmt.Errorf("no permanent neighbour entry for %s at %s: %w", to.Name, from.Name, err)
	}
	if entry == nil { // was there
		return nil
	}
	from.tidy = append(from.tidy, func() error {
		err := in(func() error { return netlink.NeighDel(entry) })
		if err == nil || errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENODEV) || errors.Is(err, unix.ENXIO) {
			return nil // it may have gone with its interface
		}
		return fmt.Errorf("remove the neighbour entry for %s at %s: %w", to.Name, from.Name, err)
	})
	return nil
}

// setNeighbour returns the entry that it made, or nil if there was one.
func setNeighbour(dev string, to Endpoint) (*netlink.Neigh, error) {
	link, err := netlink.LinkByName(dev)
	if err != nil {
		return nil, fmt.Errorf("interface %s: %w", dev, err)
	}
	entry := &netlink.Neigh{
		LinkIndex: link.Attrs().Index, State: netlink.NUD_PERMANENT,
		IP: to.Addr.Unmap().AsSlice(), HardwareAddr: to.MAC,
	}
	there, err := netlink.NeighList(entry.LinkIndex, netlink.FAMILY_ALL)
	if err != nil {
		return nil, err
	}
	for _, n := range there {
		if n.IP.Equal(entry.IP) && n.State&netlink.NUD_PERMANENT != 0 {
			if !bytes.Equal(n.HardwareAddr, to.MAC) {
				return nil, fmt.Errorf("there is one with another MAC address, %v", n.HardwareAddr)
			}
			return nil, nil
		}
	}
	if err := netlink.NeighSet(entry); err != nil {
		return nil, err
	}
	return entry, nil
}
