package fabric

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/ocslab/ocslab/internal/netns"
)

// tap is a TAP device: Documentation/networking/tuntap.rst.
type tap struct {
	*pump
	ifindex int
}

// tun is the device that makes TAP devices.
const tun = "/dev/net/tun"

// tapQueue is how many frames wait for us, as in a common NIC.
const tapQueue = 1000

func newTAP(ns *netns.NS, nl *netlink.Handle, l link) (device, error) {
	fd := -1
	err := ns.Do(func() (err error) {
		if fd, err = unix.Open(tun, unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0); err != nil {
			return &fs.PathError{Op: "open", Path: tun, Err: err}
		}
		ifr, err := unix.NewIfreq(l.name)
		if err != nil {
			return err
		}
		ifr.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI)
		if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, ifr); err != nil {
			return fmt.Errorf("ioctl TUNSETIFF: %w", err)
		}
		return nil
	})
	t := &tap{}
	if err == nil {
		err = setCarrier(fd, false)
	}
	if err == nil {
		t.ifindex, err = settle(nl, l)
	}
	if err == nil {
		err = nl.LinkSetTxQLen(&netlink.Tuntap{LinkAttrs: netlink.LinkAttrs{Index: t.ifindex}}, tapQueue)
	}
	if err != nil {
		if fd >= 0 {
			err = errors.Join(err, unix.Close(fd))
		}
		return nil, err
	}
	t.pump = newPump(fd, l.name, l.sends)
	return t, nil
}

func (t *tap) index() int { return t.ifindex }

func (t *tap) carrier(on bool) error { return setCarrier(t.fd, on) }

func setCarrier(fd int, on bool) error {
	v := 0
	if on {
		v = 1
	}
	if err := unix.IoctlSetPointerInt(fd, unix.TUNSETCARRIER, v); err != nil {
		return fmt.Errorf("ioctl TUNSETCARRIER: %w", err)
	}
	return nil
}
