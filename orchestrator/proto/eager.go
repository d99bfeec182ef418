package proto

import (
	"net"
	"syscall"
)

// An Eager writes to a connection as much as that takes at once, without ever waiting: the frame for a peer that reads is
// on its way without the changes of goroutine that a writer of its own costs. What is left is for such a writer. It must not be used by several
// goroutines at a time, nor while another writes to the connection.
type Eager struct {
	raw  syscall.RawConn
	rest []byte
	once func(fd uintptr) bool
}

// NewEager returns nil for a connection that is no socket, such as one with TLS. A nil Eager takes nothing.
func NewEager(conn net.Conn) *Eager {
	socket, ok := conn.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return nil
	}
	e := &Eager{raw: raw}
	e.once = func(fd uintptr) bool {
		e.rest = e.rest[writeOnce(fd, e.rest):]
		return true
	}
	return e
}

// Write returns what is left of p. That is all of it after an error, which whoever writes it next will have, too.
func (e *Eager) Write(p []byte) []byte {
	if e == nil || len(p) == 0 {
		return p
	}
	e.rest = p
	_ = e.raw.Write(e.once)
	p, e.rest = e.rest, nil
	return p
}
