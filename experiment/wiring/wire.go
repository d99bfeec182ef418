package wiring

import (
	"errors"
	"net/netip"
	"os"
	"slices"
	"time"

	"github.com/ocslab/ocslab/emulator/fabric"
)

// wireConn is a conn at a NIC in memory, where a frame arrives only at the NIC that it is
// addressed to: so one is sent to each.
type wireConn struct {
	wire *fabric.Wire
	to   []netip.Addr
	in   chan []byte
}

func newWireConn(wire *fabric.Wire, to []netip.Addr) *wireConn {
	c := &wireConn{wire: wire, to: to, in: make(chan []byte, 256)}
	go func() {
		defer close(c.in)
		buf := make([]byte, nameHeader+maxName)
		for {
			n, _, _, err := wire.Recv(buf)
			if err != nil {
				return
			}
			select {
			case c.in <- slices.Clone(buf[:n]):
			default: // nobody listens now
			}
		}
	}()
	return c
}

func (c *wireConn) send(payload []byte) error {
	var errs []error
	for _, to := range c.to {
		errs = append(errs, c.wire.Send(payload, to))
	}
	return errors.Join(errs...)
}

func (c *wireConn) receive(until time.Time) ([]byte, error) {
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case p, ok := <-c.in:
		if !ok {
			return nil, errEnded
		}
		return p, nil
	case <-timer.C:
		return nil, os.ErrDeadlineExceeded
	}
}

func (c *wireConn) Close() error {
	err := c.wire.Close()
	for range c.in { // until its reader has ended
	}
	return err
}
