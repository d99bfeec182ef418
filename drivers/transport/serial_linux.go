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

const (
	// serialPiece is the most that is written at once, in bytes.
	serialPiece = 1 << 10
	// serialPause is how long one read waits, and so how long Close may take.
	serialPause = 50 * time.Millisecond
	// serialGrace is how long Close waits for a write to end.
	serialGrace = 100 * time.Millisecond
)

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
	lock, err := lockSerial(s.Path)
	if err != nil {
		return nil, err
	}
	// No InitialStatusBits: not every line has modem lines to set.
	port, err := serial.Open(s.Path, &serial.Mode{BaudRate: s.Baud, DataBits: s.DataBits, Parity: parity, StopBits: stop})
	if err != nil {
		lock.Close()
		return nil, serialError(err)
	}
	p := &serialPort{port: port, lock: lock, closing: make(chan struct{})}
	if err := p.begin(); err != nil {
		port.Close()
		lock.Close()
		return nil, err
	}
	return newStream(p, serialPiece), nil
}

// lockSerial opens the line a first time, to lock it: the exclusive mode of a
// terminal does not keep root out.
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

// serialPort keeps package serial from what it does not survive: its port
// must not be closed while it is read, a read of nothing looks like the end, and
// a write cannot be ended.
type serialPort struct {
	port serial.Port
	lock *os.File

	first []byte // read by begin

	closing chan struct{} // closed by Close
	reading sync.Mutex    // held while port is read
	writing sync.Mutex    // held while port is written and that is waited for
}

// begin reads once without waiting. This is where package serial panics when the
// program has too many files open: it uses select(2), which knows 1024 of them.
func (p *serialPort) begin() (err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("this program has too many files open: serial lines need one of the first 1024 descriptors, so open them early or lower the limit (ulimit -n)")
		}
	}()
	if err := p.port.SetReadTimeout(0); err != nil {
		return err
	}
	buf := make([]byte, 4096)
	n, err := p.port.Read(buf)
	if err != nil {
		return errPulled
	}
	p.first = buf[:n]
	return p.port.SetReadTimeout(serialPause)
}

// Read waits until something comes.
func (p *serialPort) Read(b []byte) (int, error) {
	p.reading.Lock()
	defer p.reading.Unlock()
	if n := copy(b, p.first); n > 0 {
		p.first = p.first[n:]
		return n, nil
	}
	for {
		select {
		case <-p.closing:
			return 0, net.ErrClosed
		default:
		}
		n, err := p.port.Read(b)
		switch {
		case n > 0:
			return n, nil
		case err != nil:
			return 0, errPulled
		}
	}
}

// Write is called by one goroutine, which does not touch b again after an error.
func (p *serialPort) Write(b []byte) (int, error) {
	p.writing.Lock()
	defer p.writing.Unlock()
	type result struct {
		n   int
		err error
	}
	done, left := make(chan result), make(chan struct{})
	go func() {
		n, err := p.port.Write(b)
		select {
		case done <- result{n, err}:
		case <-left:
			stuck.Add(-1)
		}
	}()
	select {
	case r := <-done:
		return r.n, writeError(r.err)
	case <-p.closing:
	}
	select {
	case r := <-done:
		return r.n, writeError(r.err)
	case <-time.After(serialGrace):
		stuck.Add(1)
		close(left)
		return 0, net.ErrClosed
	}
}

func writeError(err error) error {
	if err == nil || errors.Is(err, unix.EINTR) {
		return nil
	}
	return errPulled
}

// Close ends reading first, as the descriptor may be somebody else's as soon as
// it is closed. A write that does not end is left to itself.
func (p *serialPort) Close() error {
	close(p.closing)
	p.reading.Lock()
	defer p.reading.Unlock()
	p.writing.Lock()
	defer p.writing.Unlock()
	err := p.port.Close()
	p.lock.Close()
	return err
}
