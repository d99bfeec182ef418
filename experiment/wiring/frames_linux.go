package wiring

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ocslab/ocslab/internal/netns"
)

// frames is a conn at a network interface: a packet socket, which needs neither addresses nor
// neighbours. See packet(7).
type frames struct {
	file *os.File
	head []byte // of what is sent
}

const (
	etherHeader = 14
	etherLeast  = 60 // without the check sequence
)

// openFrames opens a packet socket at an interface; ns is where that is, nil for where
// the program runs. It needs CAP_NET_RAW over the namespace.
func openFrames(ns *netns.NS, iface string) (conn, error) {
	f := &frames{}
	open := func() error {
		i, err := net.InterfaceByName(iface)
		if err != nil {
			return err
		}
		kind := binary.BigEndian.AppendUint16(nil, EtherType)
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, int(binary.NativeEndian.Uint16(kind)))
		if err != nil {
			return os.NewSyscallError("socket", err)
		}
		if err := unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: binary.NativeEndian.Uint16(kind), Ifindex: i.Index}); err != nil {
			unix.Close(fd)
			return os.NewSyscallError("bind", err)
		}
		f.head = append(f.head, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff)
		f.head = append(append(f.head, i.HardwareAddr...), kind...)
		f.file = os.NewFile(uintptr(fd), "packet socket of "+iface)
		return nil
	}
	var err error
	if ns == nil {
		err = open()
	} else {
		err = ns.Do(open)
	}
	switch {
	case errors.Is(err, os.ErrPermission):
		return nil, fmt.Errorf("a packet socket at %s needs CAP_NET_RAW: %w", iface, err)
	case err != nil:
		return nil, fmt.Errorf("a packet socket at %s: %w", iface, err)
	case len(f.head) != etherHeader:
		f.file.Close()
		return nil, fmt.Errorf("%s is no Ethernet interface", iface)
	}
	return f, nil
}

func (f *frames) send(payload []byte) error {
	frame := append(append(make([]byte, 0, etherLeast+len(payload)), f.head...), payload...)
	for len(frame) < etherLeast {
		frame = append(frame, 0)
	}
	_, err := f.file.Write(frame)
	return err
}

func (f *frames) receive(until time.Time) ([]byte, error) {
	if err := f.file.SetReadDeadline(until); err != nil {
		return nil, err
	}
	buf := make([]byte, 2048)
	for {
		n, err := f.file.Read(buf)
		if err != nil {
			return nil, err
		}
		if n > etherHeader {
			return buf[etherHeader:n], nil
		}
	}
}

func (f *frames) Close() error { return f.file.Close() }
