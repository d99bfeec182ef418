package genl

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/ocslab/ocslab/internal/netns"
)

// Conn asks the ethtool family of one network namespace. It is safe for concurrent use;
// requests are made one after the other.
type Conn struct {
	mu     sync.Mutex // guards all below
	fd     int        // -1 when closed
	seq    uint32
	family uint16
	buf    []byte
}

// answerSeconds bounds the wait for an answer. The kernel works off a request before
// sendto(2) returns, so the answer is there by then unless memory ran out.
const answerSeconds = 2

// Dial opens a socket in the namespace, or in that of the program when ns is nil, and
// looks the ethtool family up, which Linux has since 5.6.
func Dial(ns *netns.NS) (*Conn, error) {
	c := &Conn{fd: -1, buf: make([]byte, 32<<10)}
	open := func() (err error) {
		c.fd, err = unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_GENERIC)
		return os.NewSyscallError("netlink socket", err)
	}
	var err error
	if ns == nil {
		err = open()
	} else {
		err = ns.Do(open)
	}
	if err == nil {
		err = c.start()
	}
	if err != nil {
		c.Close()
		return nil, fmt.Errorf("ethtool netlink: %w", err)
	}
	return c, nil
}

func (c *Conn) start() error {
	// Both are for better errors only; kernels before 4.12 and 4.3 go without.
	_ = unix.SetsockoptInt(c.fd, unix.SOL_NETLINK, unix.NETLINK_EXT_ACK, 1)
	_ = unix.SetsockoptInt(c.fd, unix.SOL_NETLINK, unix.NETLINK_CAP_ACK, 1)
	timeout := unix.Timeval{Sec: answerSeconds}
	if err := unix.SetsockoptTimeval(c.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &timeout); err != nil {
		return os.NewSyscallError("setsockopt", err)
	}
	if err := unix.Bind(c.fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return os.NewSyscallError("bind", err)
	}
	b, err := c.do(ctrlFamily, ctrlGetFamily, ctrlVersion, AppendAttr(nil, ctrlAttrName, []byte(ethtoolFamily+"\x00")))
	if errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("this kernel does not have it; want Linux 5.6 or newer: %w", errors.ErrUnsupported)
	}
	if err != nil {
		return fmt.Errorf("look the family up: %w", err)
	}
	attrs, err := Attrs(b)
	if err != nil {
		return err
	}
	if id := attrs[ctrlAttrID]; len(id) == 2 {
		c.family = native.Uint16(id)
		return nil
	}
	return errMalformed
}

// Ethtool sends one ETHTOOL_MSG_*_GET and returns the attributes of the reply. A refusal
// is an [*Error]. The context is looked at before: a request that is under way cannot be
// taken back, and it lasts as long as the driver needs.
func (c *Conn) Ethtool(ctx context.Context, command uint8, attrs []byte) (map[uint16][]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if c.fd < 0 {
		return nil, os.ErrClosed
	}
	b, err := c.do(c.family, command, ethtoolVersion, attrs)
	if err != nil {
		return nil, err
	}
	return Attrs(b)
}

func (c *Conn) do(family uint16, command, version uint8, attrs []byte) ([]byte, error) {
	c.seq++
	r := reply{family: family, seq: c.seq}
	b := request(family, command, version, c.seq, attrs)
	if err := retry(func() error { return unix.Sendto(c.fd, b, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}) }); err != nil {
		return nil, os.NewSyscallError("send", err)
	}
	for !r.done {
		var n, flags int
		var from unix.Sockaddr
		err := retry(func() (err error) {
			n, _, flags, from, err = unix.Recvmsg(c.fd, c.buf, nil, 0)
			return err
		})
		switch {
		case errors.Is(err, unix.EAGAIN):
			return nil, fmt.Errorf("the kernel did not answer within %d s: %w", answerSeconds, os.ErrDeadlineExceeded)
		case err != nil:
			return nil, os.NewSyscallError("receive", err)
		case flags&unix.MSG_TRUNC != 0:
			return nil, errMalformed
		}
		if sa, ok := from.(*unix.SockaddrNetlink); !ok || sa.Pid != 0 {
			continue // another process may send to us; only the kernel has port 0
		}
		if err := r.add(c.buf[:n]); err != nil {
			return nil, err
		}
	}
	if r.err == nil && !r.replied {
		return nil, fmt.Errorf("the kernel acknowledged and did not reply: %w", errMalformed)
	}
	return r.attrs, r.err
}

func retry(fn func() error) error {
	for {
		if err := fn(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// Close closes the socket, after the request that is under way.
func (c *Conn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fd < 0 {
		return nil
	}
	err := unix.Close(c.fd)
	c.fd = -1
	return os.NewSyscallError("close", err)
}
