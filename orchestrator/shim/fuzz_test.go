package shim_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ocslab/ocslab/orchestrator/proto"
	"github.com/ocslab/ocslab/orchestrator/shim"
)

// A canned is a connection on which everything has been said already.
type canned struct {
	r    io.Reader
	quit chan struct{}
}

func (c *canned) Read(b []byte) (int, error) {
	if n, err := c.r.Read(b); err == nil {
		return n, nil
	}
	<-c.quit
	return 0, net.ErrClosed
}
func (c *canned) Write(b []byte) (int, error) { return len(b), nil }
func (c *canned) Close() error {
	select {
	case <-c.quit:
	default:
		close(c.quit)
	}
	return nil
}
func (c *canned) LocalAddr() net.Addr              { return nil }
func (c *canned) RemoteAddr() net.Addr             { return nil }
func (c *canned) SetDeadline(time.Time) error      { return nil }
func (c *canned) SetReadDeadline(time.Time) error  { return nil }
func (c *canned) SetWriteDeadline(time.Time) error { return nil }

// FuzzSession: whatever a controller says, nothing panics, nothing hangs, and an operation is granted only if there is
// an acknowledgement of its request.
func FuzzSession(f *testing.F) {
	seed := func(bodies ...string) {
		var all []byte
		for _, b := range bodies {
			all = append(all, frame(b)...)
		}
		f.Add(all)
	}
	seed(welcome, okDP, okPP, ack(1, "applied"))
	seed(welcome, okDP, okPP, nack(1, "timeout"))
	seed(welcome, okDP, okPP, ack(2, "applied"))
	seed(welcome, okDP, okPP, `{"kind":"fallback","rail":"rail0","dead":true}`, `{"kind":"boundaries"}`, ack(1, "detour"), ack(1, "noop"))
	seed(okDP)
	seed(`{"kind":"bye","code":"bad","reason":"no"}`)
	f.Fuzz(func(t *testing.T, said []byte) {
		leave := false
		for r := bufio.NewReader(bytes.NewReader(said)); ; {
			m, err := proto.Read(r)
			if err != nil {
				break
			}
			if a, ok := m.(*proto.TopoAck); ok && a.Req == 1 {
				leave = true
			}
		}
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			s, err := shim.Dial(ctx, shim.Options{
				Dial: func(context.Context) (net.Conn, error) {
					return &canned{bytes.NewReader(said), make(chan struct{})}, nil
				},
				Job: lab, Rail: "rail0", Rank: 1, NoReconnect: true, Timeout: time.Second,
			})
			if err != nil {
				return
			}
			defer s.Close()
			g, err := s.PreOp(ctx, dp(0))
			var n *shim.NotGranted
			switch {
			case err == nil && g != (shim.Grant{}) && !leave:
				t.Errorf("granted without leave: %+v", g)
			case err != nil && !errors.As(err, &n):
				t.Errorf("%v is no *NotGranted", err)
			case err == nil:
				if err := s.PostOp(dp(0)); err != nil {
					t.Error(err)
				}
			}
		})
	})
}
