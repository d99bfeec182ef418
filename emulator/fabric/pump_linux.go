package fabric

import (
	"errors"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// pump reads frames from a device as they come. It waits in the poller of the
// runtime: a thread for each device, blocked in read(2), was no faster, and slower at
// the 99th percentile.
type pump struct {
	fd    int
	file  *os.File // the same
	sends func([]byte)
	done  chan struct{}

	mu  sync.Mutex // held from the reading of a frame until it is handed on; guards buf
	buf []byte
}

// maxFrame is the longest frame: a packet of 64 KiB (of a veth with its
// segmentation left to do) and what is before it.
const maxFrame = 1<<16 + 128

// newPump begins to read from fd, which does not block. The pump owns it.
func newPump(fd int, name string, sends func([]byte)) *pump {
	p := &pump{fd: fd, file: os.NewFile(uintptr(fd), name), sends: sends, done: make(chan struct{}), buf: make([]byte, maxFrame)}
	go p.run()
	return p
}

func (p *pump) run() {
	defer close(p.done)
	raw, err := p.file.SyscallConn()
	for err == nil {
		var failed error
		err = raw.Read(func(uintptr) bool { // fails when the file is closed
			failed = p.next()
			return !errors.Is(failed, unix.EAGAIN)
		})
		if failed != nil && !errors.Is(failed, unix.ENETDOWN) { // a veth that lost its carrier
			return // somebody has deleted the interface
		}
	}
}

// next hands on one frame, if there is one.
func (p *pump) next() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	n, err := unix.Read(p.fd, p.buf)
	switch {
	case err == unix.EINTR:
		return nil
	case err != nil:
		return err
	case n == 0:
		return unix.ENODEV
	}
	p.sends(p.buf[:n])
	return nil
}

// flush hands on the frames that wait, and returns a time at which none did. On a busy
// machine they may have waited for long.
func (p *pump) flush() time.Time {
	for range 2 * tapQueue { // not for ever, should somebody send faster
		before := time.Now()
		if p.next() != nil {
			return before
		}
	}
	return time.Now()
}

// write hands the device a frame, or fails when it cannot take it now. It goes past
// the poller, which would wait until it can.
func (p *pump) write(frame []byte) error {
	_, err := unix.Write(p.fd, frame)
	return err
}

// close ends the reading and closes the device.
func (p *pump) close() error {
	err := p.file.Close()
	<-p.done
	return err
}
