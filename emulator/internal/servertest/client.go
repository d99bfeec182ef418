// Package servertest is what the tests of the emulator's front ends share: a
// client inside a synctest bubble, a server on loopback, clients over real
// sockets, and golden sessions. It knows neither devices nor protocols, which
// are the front ends' own.
package servertest

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Session serves one client on a stream until the session or ctx ends, as
// ServeSession of a front end does.
type Session func(ctx context.Context, conn io.ReadWriteCloser)

// Client is the client's end of a session inside a synctest bubble. Its methods
// are for one goroutine at a time.
type Client struct {
	net.Conn
	T   testing.TB
	Got <-chan []byte // what each Read of the client has returned

	ended chan struct{} // closed when the session has ended
}

// Dial begins a session that ends with the test.
func Dial(t testing.TB, serve Session) *Client {
	t.Helper()
	ours, theirs := net.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	got := make(chan []byte, 1<<16)
	c := &Client{Conn: ours, T: t, Got: got, ended: make(chan struct{})}
	go func() {
		defer close(c.ended)
		serve(ctx, theirs)
	}()
	go func() {
		defer close(got)
		for {
			buf := make([]byte, 4096)
			n, err := ours.Read(buf)
			if err != nil {
				return
			}
			got <- buf[:n]
		}
	}()
	t.Cleanup(func() { cancel(); ours.Close() })
	return c
}

// Send sends text, or ends the test.
func (c *Client) Send(text string) {
	c.T.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		c.T.Fatalf("%.80q: %v", text, err)
	}
}

// Hear returns what has come when nothing more comes now.
func (c *Client) Hear() string {
	synctest.Wait()
	var b strings.Builder
	for {
		select {
		case p, ok := <-c.Got:
			if !ok {
				return b.String()
			}
			b.Write(p)
			synctest.Wait()
		default:
			return b.String()
		}
	}
}

// Do sends text and returns what comes back within a second.
func (c *Client) Do(text string) string {
	c.T.Helper()
	c.Send(text)
	time.Sleep(time.Second)
	return c.Hear()
}

// Closed reports whether the server has ended the session.
func (c *Client) Closed() bool {
	synctest.Wait()
	select {
	case <-c.ended:
		return true
	default:
		return false
	}
}

// Converse returns all that a session inside a synctest bubble says to texts
// until the client leaves, which it does when all that was complete is
// answered. The error says that the session has ended before.
func Converse(t testing.TB, serve Session, texts ...string) (said string, err error) {
	t.Helper()
	ours, theirs := net.Pipe()
	go serve(t.Context(), theirs)
	read := make(chan string)
	go func() {
		p, _ := io.ReadAll(ours)
		read <- string(p)
	}()
	for _, text := range texts {
		_, failed := io.WriteString(ours, text)
		err = errors.Join(err, failed)
	}
	synctest.Wait()
	ours.Close()
	return <-read, err
}
