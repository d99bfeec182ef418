package emulator

import (
	"context"
	"errors"
	"io"
	"net"
	"strconv"
	"sync"
	"time"
)

// FrontEnd speaks one protocol with the clients of a device.
type FrontEnd interface {
	// ServeSession serves one client on a stream that is connected already, and
	// closes it when the session ends, ctx does, or the device restarts its
	// network card. Closing must unblock a Read or Write under way, as it does
	// for a net.Conn. A client whose User is set has shown who it is, as over
	// SSH.
	ServeSession(ctx context.Context, conn io.ReadWriteCloser, client SessionInfo)
}

// Pauses between attempts to accept when the system is short of something,
// such as file descriptors.
const (
	minAcceptPause = 5 * time.Millisecond
	maxAcceptPause = time.Second
)

// Serve accepts clients on l until ctx ends, then closes l and every session
// and returns nil once they have ended. A failure to accept that will not pass
// is returned in the same way.
func Serve(ctx context.Context, l net.Listener, fe FrontEnd) error {
	return Accept(ctx, l, func(ctx context.Context, c net.Conn) { fe.ServeSession(ctx, c, ClientOf(c)) })
}

// ClientOf returns what is known of the client at the other end of c.
func ClientOf(c net.Conn) SessionInfo {
	var info SessionInfo
	info.Client, _, _ = net.SplitHostPort(c.RemoteAddr().String())
	if _, port, err := net.SplitHostPort(c.LocalAddr().String()); err == nil {
		info.Port, _ = strconv.Atoi(port)
	}
	return info
}

// Accept is [Serve] for what is not a session yet, such as a TLS or SSH
// handshake: session is called for each connection, on a goroutine of its own,
// and has to close it when it is done or ctx ends.
func Accept(ctx context.Context, l net.Listener, session func(context.Context, net.Conn)) error {
	var sessions sync.WaitGroup
	defer sessions.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer l.Close()
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	for pause := minAcceptPause; ; {
		conn, err := l.Accept()
		var passing interface{ Temporary() bool }
		switch {
		case err == nil:
			pause = minAcceptPause
			sessions.Go(func() { session(ctx, conn) })
		case ctx.Err() != nil:
			return nil
		case errors.As(err, &passing) && passing.Temporary():
			SleepUntil(ctx, time.Now().Add(pause))
			pause = min(2*pause, maxAcceptPause)
		default:
			return err
		}
	}
}

// SleepUntil reports whether t came before the end of ctx.
func SleepUntil(ctx context.Context, t time.Time) bool {
	d := time.Until(t)
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
