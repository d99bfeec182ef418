// Package transport is how drivers reach a device: a stream of bytes that can
// be opened again when it breaks. It may be a TCP connection, TLS, a shell or
// subsystem over SSH, or a serial line.
//
// SSH channels have no deadlines, and a TLS connection does not survive one that
// strikes a Write. There a goroutine writes, and for SSH another one reads ahead,
// up to 64 KiB. A Write that hits its deadline has then taken what is still on its
// way; it is out when another Write, which may be of nothing, returns without an
// error.
package transport

import (
	"context"
	"fmt"
	"io"
	"net"
	"time"
)

// Conn is an open stream. Close unblocks Read and Write, which then return an
// error.
type Conn interface {
	io.ReadWriteCloser
	// SetWriteDeadline makes a Write fail from t on with an error that matches
	// os.ErrDeadlineExceeded. Write then returns how much it has written, and
	// may be called with the rest.
	SetWriteDeadline(t time.Time) error
	// SetReadDeadline does the same for Read, also for one under way. The zero
	// time takes either deadline away.
	SetReadDeadline(t time.Time) error
}

// Dialer opens streams to one device. A driver calls it again after a stream
// has broken; it is not called concurrently.
type Dialer interface {
	Dial(ctx context.Context) (Conn, error)
	// String is the address for messages, without secrets.
	String() string
}

// TCP dials host:port. Small requests leave at once (TCP_NODELAY, the default
// of package net), and a peer that vanished is noticed by keep-alives.
type TCP struct{ Addr string }

// Dial connects; the error names the address.
func (t TCP) Dial(ctx context.Context) (Conn, error) {
	d := net.Dialer{KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3}}
	c, err := d.DialContext(ctx, "tcp", t.Addr)
	if err != nil {
		return nil, fmt.Errorf("cannot connect: %w", err)
	}
	return c.(*net.TCPConn), nil
}

// String returns the address.
func (t TCP) String() string { return t.Addr }
