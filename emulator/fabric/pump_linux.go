package fabric

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// pump reads frames from a device as they come. It waits in the poller of the
// runtime: a thread for each device, blocked in read(2), was no faster, and slower at
// the 99th percentile.
type pump struct {
	fd   int
	file *os.File // the same
	done chan struct{}
}

// maxFrame is the longest frame: a packet of 64 KiB (of a veth with its
// segmentation left to do) and what is before it.
const maxFrame = 1<<16 + 128

// newPump begins to read from fd, which does not block. The pump owns it.
func newPump(fd int, name string, sends func([]byte)) *pump {
	p := &pump{fd: fd, file: os.NewFile(uintptr(fd), name), done: make(chan struct{})}
	go p.run(sends)
	return p
}

func (p *pump) run(sends func([]byte)) {
	defer close(p.done)
	buf := make([]byte, maxFrame)
	for {
		n, err := p.file.Read(buf)
		switch {
		case err == nil:
			sends(buf[:n])
		case errors.Is(err, unix.ENETDOWN): // a veth that lost its carrier
		default: // closed, or somebody has deleted the interface
			return
		}
	}
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
