package probe

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"syscall"
)

// Reflector sends packets of probes back to where they came from, so that a probe on
// another machine can time a pair of NICs by its own clock: there and back.
type Reflector struct {
	conn  *net.UDPConn
	ended sync.WaitGroup
}

// reflectorPort is where reflectors listen, given the port of the probes.
func reflectorPort(port uint16) uint16 {
	if port == 0 {
		port = DefaultPort
	}
	return port + 1
}

// Reflect begins to send back what probes that use the given port (0 is DefaultPort)
// send to an endpoint. Of the endpoint NS, Interface and Addr are used.
func Reflect(e Endpoint, port uint16) (*Reflector, error) {
	var conn net.PacketConn
	listen := func() (err error) {
		lc := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
			var bindErr error
			err := c.Control(func(fd uintptr) { bindErr = bindToInterface(int(fd), e.Interface) })
			return errors.Join(err, bindErr)
		}}
		conn, err = lc.ListenPacket(context.Background(), "udp", netip.AddrPortFrom(e.Addr, reflectorPort(port)).String())
		return err
	}
	var err error
	if e.NS == nil {
		err = listen()
	} else {
		err = e.NS.Do(listen)
	}
	if err != nil {
		return nil, fmt.Errorf("reflector of %s: %w", e.Name, err)
	}
	r := &Reflector{conn: conn.(*net.UDPConn)}
	r.ended.Go(r.run)
	return r, nil
}

func (r *Reflector) run() {
	var buf [packetSize + 1]byte
	for {
		n, from, err := r.conn.ReadFromUDPAddrPort(buf[:])
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil: // such as ENETDOWN, when the interface loses its carrier
			continue
		}
		if _, err := parse(buf[:n]); err == nil { // nothing else is sent back to anybody
			_, _ = r.conn.WriteToUDPAddrPort(buf[:n], from) // what does not arrive is what is measured
		}
	}
}

// Close ends it.
func (r *Reflector) Close() error {
	err := r.conn.Close()
	r.ended.Wait()
	return err
}
