package transport

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"go.bug.st/serial"
	"golang.org/x/sys/unix"
)

// serialPiece is the most that is written at once, in bytes.
const serialPiece = 1 << 10

var (
	parities = map[string]serial.Parity{
		"none": serial.NoParity, "odd": serial.OddParity, "even": serial.EvenParity,
		"mark": serial.MarkParity, "space": serial.SpaceParity,
	}
	stopBits = map[string]serial.StopBits{"1": serial.OneStopBit, "1.5": serial.OnePointFiveStopBits, "2": serial.TwoStopBits}
)

// open is Dial with all defaults filled in.
func (s Serial) open() (Conn, error) {
	parity, known := parities[s.Parity]
	if !known {
		return nil, fmt.Errorf("parity %q: want none, odd, even, mark or space", s.Parity)
	}
	stop, known := stopBits[s.StopBits]
	if !known {
		return nil, fmt.Errorf("stop bits %q: want 1, 1.5 or 2", s.StopBits)
	}
	if s.Baud < 0 || s.DataBits < 5 || s.DataBits > 8 {
		return nil, fmt.Errorf("%d baud, %d data bits: want a positive rate and 5 to 8", s.Baud, s.DataBits)
	}
	file, err := lockSerial(s.Path)
	if err != nil {
		return nil, err
	}
	// No InitialStatusBits: not every line has modem lines to set.
	port, err := serial.Open(s.Path, &serial.Mode{BaudRate: s.Baud, DataBits: s.DataBits, Parity: parity, StopBits: stop})
	if err != nil {
		file.Close()
		return nil, serialError(err)
	}
	return &serialConn{file: file, port: port}, nil
}

// lockSerial opens the line a first time, and locks it: the exclusive mode of a
// terminal does not keep root out. The file does not block.
func lockSerial(path string) (*os.File, error) {
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, serialError(err)
	}
	f := os.NewFile(uintptr(fd), path)
	if _, err := unix.IoctlGetTermios(fd, unix.TCGETS); err != nil {
		f.Close()
		return nil, errors.New("is not a serial line")
	}
	if err := f.SetDeadline(time.Time{}); err != nil { // every terminal can be polled
		f.Close()
		return nil, fmt.Errorf("cannot be waited for: %w", err)
	}
	if err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); err != nil {
		defer f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("is in use%s: %w", holder(fd), err)
		}
		return nil, fmt.Errorf("cannot be locked: %w", err)
	}
	return f, nil
}

// holder says which program has locked the file, if the kernel tells.
func holder(fd int) string {
	var st unix.Stat_t
	locks, err := os.ReadFile("/proc/locks")
	if err != nil || unix.Fstat(fd, &st) != nil {
		return ""
	}
	file := fmt.Sprintf("%02x:%02x:%d", unix.Major(st.Dev), unix.Minor(st.Dev), st.Ino)
	for line := range strings.Lines(string(locks)) {
		// "1: FLOCK  ADVISORY  WRITE 4711 00:16:5 0 EOF"
		f := strings.Fields(line)
		if len(f) < 6 || f[1] != "FLOCK" || f[5] != file {
			continue
		}
		name, err := os.ReadFile("/proc/" + f[4] + "/comm")
		if err != nil {
			return " by process " + f[4]
		}
		return fmt.Sprintf(" by %s (process %s)", strings.TrimSpace(string(name)), f[4])
	}
	return ""
}

// serialError puts an error of the system or of package serial into our words.
func serialError(err error) error {
	var pe *serial.PortError
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ENXIO), errors.Is(err, unix.ENODEV):
		return fmt.Errorf("is not there: is the adapter plugged in? %w", err)
	case errors.Is(err, fs.ErrPermission), errors.As(err, &pe) && pe.Code() == serial.PermissionDenied:
		return fmt.Errorf("is not for this user, who should be in the group of the line, mostly dialout: %w", fs.ErrPermission)
	case errors.As(err, &pe) && pe.Code() == serial.PortBusy, errors.Is(err, unix.EBUSY):
		return fmt.Errorf("is in use by a program that does not lock it: %w", unix.EBUSY)
	}
	return err
}

// errPulled is a line that ended by itself.
var errPulled = fmt.Errorf("the serial line is gone, the adapter may have been pulled out: %w", io.ErrUnexpectedEOF)

// serialConn is an open line. It is read and written through a descriptor of its own that
// does not block, so that deadlines and Close are those of the runtime's poller: package
// serial, which has set the mode, has none, and its port is only kept open.
type serialConn struct {
	file    *os.File
	port    serial.Port
	writing sync.Mutex
	once    sync.Once
	err     error // of closing
}

// Read implements [Conn].
func (c *serialConn) Read(p []byte) (int, error) {
	n, err := c.file.Read(p)
	return n, lineError(err)
}

// Write implements [Conn].
func (c *serialConn) Write(p []byte) (n int, err error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	for err == nil {
		var m int
		m, err = c.file.Write(p[n:min(n+serialPiece, len(p))])
		if n += m; n == len(p) {
			break
		}
	}
	return n, lineError(err)
}

// SetReadDeadline implements [Conn].
func (c *serialConn) SetReadDeadline(t time.Time) error { return lineError(c.file.SetReadDeadline(t)) }

// SetWriteDeadline implements [Conn].
func (c *serialConn) SetWriteDeadline(t time.Time) error {
	return lineError(c.file.SetWriteDeadline(t))
}

// Close closes the line. The lock goes with the last descriptor.
func (c *serialConn) Close() error {
	c.once.Do(func() {
		c.err = errors.Join(c.port.Close(), c.file.Close())
	})
	return c.err
}

// lineError is an error of the descriptor as those of [Conn] are.
func lineError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, os.ErrDeadlineExceeded):
		return os.ErrDeadlineExceeded
	case errors.Is(err, os.ErrClosed):
		return net.ErrClosed
	}
	return errPulled
}
