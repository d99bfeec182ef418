package linkmon

import "golang.org/x/sys/unix"

// Stall keeps everybody from taking notice of anything, with a receive buffer of the
// given size, until release is called.
func (m *Monitor) Stall(buffer int) (release func()) {
	for _, h := range m.hosts {
		r := h.announcer.(*reader)
		_ = unix.SetsockoptInt(r.fd, unix.SOL_SOCKET, unix.SO_RCVBUF, buffer)
	}
	m.mu.Lock()
	return m.mu.Unlock
}

// Deafen breaks the netlink socket of every host.
func (m *Monitor) Deafen() error {
	null, err := unix.Open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(null)
	for _, h := range m.hosts {
		r := h.announcer.(*reader)
		if err := unix.Dup3(null, r.fd, unix.O_CLOEXEC); err != nil {
			return err
		}
		r.wake()
	}
	return nil
}
