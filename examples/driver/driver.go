// Package patchbox is an example: a whole driver for an invented switch, which speaks lines of text.
//
//	ID               ID ACME,PB-16,1234,1.0,16x16
//	MAP              MAP 1>17,2>18
//	CHANGE 1>17 1>18 OK                      removes the first map and adds the second; "-" is the empty one
//	anything         ERR BUSY port 1         or ERR PORT, ERR and a text
package patchbox

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/ocslab/ocslab/drivers/transport"
	"github.com/ocslab/ocslab/ocs"
)

// Switch is a box. It is safe for concurrent use; calls are served one after another.
type Switch struct {
	dialer transport.Dialer
	id     ocs.Identity
	life   context.Context // ends with Close, by net.ErrClosed
	end    context.CancelCauseFunc
	turn   chan struct{} // who has put something in may use what follows
	conn   transport.Conn
	in     *bufio.Reader
}

var _ ocs.Switch = (*Switch)(nil)

// Open connects and asks the box what it is. The caller has to close the Switch.
func Open(ctx context.Context, d transport.Dialer) (*Switch, error) {
	s := &Switch{dialer: d, turn: make(chan struct{}, 1)}
	s.life, s.end = context.WithCancelCause(context.Background())
	if err := s.identify(ctx); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (s *Switch) identify(ctx context.Context) error {
	line, _, err := s.ask(ctx, "identify", "ID")
	if err != nil {
		return err
	}
	f := strings.Split(line, ",")
	if len(f) != 5 {
		return s.failed("identify", "ID", line, fmt.Errorf("%w: want five fields", ocs.ErrNotSupported))
	}
	g, err := ocs.ParseGeometry(f[4])
	if err != nil {
		return s.failed("identify", "ID", line, err)
	}
	s.id = ocs.Identity{Vendor: f[0], Model: f[1], Serial: f[2], Firmware: f[3], Geometry: g}
	return nil
}

// Identify returns what the box said when it was opened.
func (s *Switch) Identify(ctx context.Context) (ocs.Identity, error) { return s.id, s.over(ctx) }

// CrossConnects asks the box what it holds.
func (s *Switch) CrossConnects(ctx context.Context) (ocs.Map, error) {
	line, _, err := s.ask(ctx, "read circuits", "MAP")
	if err != nil {
		return ocs.Map{}, err
	}
	m, err := ocs.ParseMap(line)
	if err != nil {
		return ocs.Map{}, s.failed("read circuits", "MAP", line, err)
	}
	return m, nil
}

// Apply sends all of a change as one request.
func (s *Switch) Apply(ctx context.Context, c ocs.Change) (ocs.Receipt, error) {
	if err := s.over(ctx); err != nil || c.Empty() {
		return ocs.Receipt{}, err
	}
	_, rc, err := s.ask(ctx, "change circuits", "CHANGE "+text(c.Remove)+" "+text(c.Add))
	return rc, err
}

// Close ends the session, and calls that are under way.
func (s *Switch) Close() error {
	s.end(net.ErrClosed)
	s.turn <- struct{}{}
	s.drop()
	<-s.turn
	return nil
}

// ask sends a request, and returns what follows the first word of the reply.
func (s *Switch) ask(ctx context.Context, op, request string) (reply string, rc ocs.Receipt, err error) {
	if err := s.over(ctx); err != nil {
		return "", rc, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(s.life, func() { cancel(net.ErrClosed) })()
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return "", rc, context.Cause(ctx)
	}
	line, err := s.exchange(ctx, request, &rc)
	if ctx.Err() != nil && err != nil {
		err = context.Cause(ctx) // not what the closed stream said
	}
	word, rest, _ := strings.Cut(strings.TrimRight(line, "\r\n"), " ")
	switch verb, _, _ := strings.Cut(request, " "); {
	case err != nil:
	case word == "ERR":
		why := ocs.ErrDenied
		if strings.HasPrefix(rest, "BUSY") {
			why = ocs.ErrConflict
		} else if strings.HasPrefix(rest, "PORT") {
			why = ocs.ErrPort
		}
		err = fmt.Errorf("%w: %s", why, rest)
	case word != verb && !(verb == "CHANGE" && word == "OK"):
		err = fmt.Errorf("the reply is not one to %s: %w", verb, ocs.ErrNotSupported)
	}
	if err != nil {
		return "", rc, s.failed(op, request, line, err)
	}
	return rest, rc, nil
}

// exchange writes a line and reads one. A stream on which either was cut short is not used again, since what comes next
// on it would be taken for another reply.
func (s *Switch) exchange(ctx context.Context, request string, rc *ocs.Receipt) (string, error) {
	if s.conn == nil {
		conn, err := s.dialer.Dial(ctx)
		if err != nil {
			return "", err
		}
		s.conn, s.in = conn, bufio.NewReaderSize(conn, 64<<10) // no reply is longer
	}
	conn := s.conn
	stop := context.AfterFunc(ctx, func() { conn.Close() }) // unblocks what follows
	line, err := func() ([]byte, error) {
		rc.SendStart = time.Now()
		rc.Begun, rc.Requests = rc.SendStart, 1
		if _, err := io.WriteString(conn, request+"\n"); err != nil {
			return nil, err
		}
		rc.Sent = time.Now()
		if _, err := s.in.Peek(1); err != nil {
			return nil, err
		}
		rc.FirstByte = time.Now()
		return s.in.ReadSlice('\n')
	}()
	if err == nil {
		rc.Acked = time.Now()
	}
	reply := string(line)
	if !stop() || err != nil {
		s.drop()
	}
	return reply, err
}

func (s *Switch) drop() {
	if s.conn != nil {
		s.conn.Close()
		s.conn = nil
	}
}

// over returns why no call can begin.
func (s *Switch) over(ctx context.Context) error {
	if err := context.Cause(s.life); err != nil {
		return err
	}
	return context.Cause(ctx)
}

func (s *Switch) failed(op, request, reply string, why error) error {
	return &ocs.OpError{Op: op, Device: s.dialer.String(), Request: request, Reply: reply, Err: why}
}

func text(m ocs.Map) string {
	if m.Len() == 0 {
		return "-"
	}
	return m.String()
}
