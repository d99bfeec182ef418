package ocstrx

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/bits"
	"sync"
	"time"

	"github.com/ocslab/ocslab/wire/cmis"
	"github.com/ocslab/ocslab/wire/trxlink"
)

// boardSession is one host at the line. Requests are done as they come, on the goroutine
// that reads; the timer only gives up what has begun and does not go on.
type boardSession struct {
	b    *Board
	conn io.ReadWriteCloser

	mu      sync.Mutex // guards all that follows; held while requests are done
	decoder trxlink.Decoder
	window  [trxlink.Window]exchange
	next    int // place in window that is overwritten next
	greeted bool
	out     []byte
	gap     *time.Timer
	fed     int // chunks that have come
	broken  bool
}

// exchange is a request, by all of its bytes, and the reply to it.
type exchange struct{ request, reply []byte }

func newBoardSession(b *Board, conn io.ReadWriteCloser) *boardSession {
	return &boardSession{b: b, conn: conn}
}

// serve ends when the line breaks or ctx does.
func (s *boardSession) serve(ctx context.Context) {
	defer s.conn.Close()
	if !s.b.enter(s) {
		return
	}
	defer s.b.leave(s)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { s.conn.Close() })
	defer stop()
	defer s.end()
	buf := make([]byte, 4096)
	for {
		n, err := s.conn.Read(buf)
		if !s.take(ctx, s.b.spoil(buf[:n])) || err != nil {
			return
		}
	}
}

// end waits for what the timer has begun.
func (s *boardSession) end() {
	s.conn.Close() // a reply that nobody takes would keep the timer's goroutine
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken = true
	if s.gap != nil {
		s.gap.Stop()
	}
}

// take takes bytes from the line, and reports whether the line is still good.
func (s *boardSession) take(ctx context.Context, p []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fed++
	s.decoder.Feed(p)
	s.serveFrames(ctx)
	switch {
	case !s.decoder.Pending():
		if s.gap != nil {
			s.gap.Stop()
		}
	case s.gap == nil:
		s.gap = time.AfterFunc(trxlink.Gap, func() { s.silence(ctx) })
	default:
		s.gap.Reset(trxlink.Gap)
	}
	return !s.broken
}

// silence is a frame that did not go on: what is behind its beginning is looked at again.
// What has not gone on for so long is given up altogether.
func (s *boardSession) silence(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for !s.broken && s.decoder.Pending() {
		s.decoder.Expire()
		s.serveFrames(ctx)
	}
}

// serveFrames does all requests that are complete, and sends their replies at once.
func (s *boardSession) serveFrames(ctx context.Context) {
	s.out = s.out[:0]
	for s.b.Powered() {
		f, ok := s.decoder.Next()
		if !ok {
			break
		}
		if f.Kind&trxlink.Reply != 0 {
			continue // an echo of our own: an answer to it would never end
		}
		s.out = append(s.out, s.answer(ctx, f)...)
	}
	if p := s.b.spoil(s.out); len(p) > 0 && !s.broken && s.b.Powered() {
		if _, err := s.conn.Write(p); err != nil {
			s.broken = true
		}
	}
}

// answer returns the bytes of the reply. A request that has come before is not done again.
func (s *boardSession) answer(ctx context.Context, f trxlink.Frame) []byte {
	request := f.Append(nil)
	for i := range s.window {
		if bytes.Equal(s.window[i].request, request) {
			return s.window[i].reply
		}
	}
	if f.Kind == trxlink.Hello && f.Version == trxlink.Version {
		s.window = [trxlink.Window]exchange{}
		s.greeted = true
	}
	payload := []byte{byte(trxlink.CodeHello)}
	if s.greeted || f.Version != trxlink.Version {
		payload = s.b.do(ctx, f)
	}
	reply := trxlink.Frame{Kind: f.Kind | trxlink.Reply, Slot: f.Slot, Seq: f.Seq, Payload: payload}.Append(nil)
	s.window[s.next] = exchange{request, reply}
	s.next = (s.next + 1) % trxlink.Window
	return reply
}

// do does a request and returns the payload of its reply.
func (b *Board) do(ctx context.Context, f trxlink.Frame) []byte {
	reply := func(c trxlink.Code, p ...byte) []byte { return append([]byte{byte(c)}, p...) }
	if f.Version != trxlink.Version {
		return reply(trxlink.CodeVersion)
	}
	ofBoard := false
	switch f.Kind {
	case trxlink.Hello, trxlink.Trigger, trxlink.Plate:
		ofBoard = true
	case trxlink.Read, trxlink.Write, trxlink.CDB:
	default:
		return reply(trxlink.CodeKind)
	}
	if ofBoard {
		if f.Slot != trxlink.Board {
			return reply(trxlink.CodeSlot)
		}
		return b.doBoard(f, reply)
	}
	if int(f.Slot) >= len(b.modules) {
		return reply(trxlink.CodeSlot)
	}
	m := b.modules[f.Slot]
	switch f.Kind {
	case trxlink.Read:
		a, n, err := trxlink.ParseRead(f.Payload)
		if err != nil {
			return reply(trxlink.CodeArgument)
		}
		p := make([]byte, 1+n)
		if m.Read(ctx, a, p[1:]) != nil {
			return reply(trxlink.CodeArgument)
		}
		return p
	case trxlink.Write:
		a, data, err := trxlink.ParseWrite(f.Payload)
		if err != nil || m.Write(ctx, a, data) != nil {
			return reply(trxlink.CodeArgument)
		}
		return reply(trxlink.CodeOK)
	}
	command, message, err := trxlink.ParseCDB(f.Payload)
	if err != nil {
		return reply(trxlink.CodeArgument)
	}
	status, answer, err := boardCDB(ctx, m, command, message)
	if err != nil {
		return reply(trxlink.CodeBusy)
	}
	return reply(trxlink.CodeOK, append([]byte{byte(status)}, answer...)...)
}

func (b *Board) doBoard(f trxlink.Frame, reply func(trxlink.Code, ...byte) []byte) []byte {
	switch f.Kind {
	case trxlink.Hello:
		nonce, err := trxlink.ParseHello(f.Payload)
		if err != nil {
			return reply(trxlink.CodeArgument)
		}
		info := trxlink.Info{Version: trxlink.Version, Slots: len(b.modules), Serial: b.serial, Firmware: boardFirmware}
		if b.personality.Trigger {
			info.Features |= trxlink.HasTrigger
		}
		if b.personality.Plate {
			info.Features |= trxlink.HasPlate
		}
		return info.Append(reply(trxlink.CodeOK), nonce)
	case trxlink.Trigger:
		slots, err := trxlink.ParseTrigger(f.Payload)
		switch {
		case !b.personality.Trigger:
			return reply(trxlink.CodeNotPresent)
		case err != nil || slots == 0:
			return reply(trxlink.CodeArgument)
		case bits.Len16(slots) > len(b.modules):
			return reply(trxlink.CodeSlot)
		}
		if slot, ok := b.trigger(slots); !ok {
			return reply(trxlink.CodeNotArmed, byte(slot))
		}
		return reply(trxlink.CodeOK)
	}
	set, err := trxlink.ParsePlate(f.Payload)
	switch {
	case !b.personality.Plate:
		return reply(trxlink.CodeNotPresent)
	case err != nil:
		return reply(trxlink.CodeArgument)
	}
	return b.setPlate(set).Append(reply(trxlink.CodeOK))
}

// trigger pulls the trigger lines of slots at one moment if all of their modules are armed;
// if not, it returns the first that is not.
func (b *Board) trigger(slots uint16) (notArmed int, ok bool) {
	// Nobody can disarm one in between.
	held, release := b.hold(slots)
	defer release()
	for i, m := range b.modules {
		if slots>>i&1 != 0 && m.armed == 0 {
			return i, false
		}
	}
	for _, m := range held {
		m.trigger()
	}
	return 0, true
}

// hold takes the locks of the modules in slots, in the order of these, and has them catch up
// with one moment.
func (b *Board) hold(slots uint16) (held []*Module, release func()) {
	for i, m := range b.modules {
		if slots>>i&1 != 0 {
			held = append(held, m)
		}
	}
	for _, m := range held {
		m.mu.Lock()
	}
	now := b.clock.Now()
	for _, m := range held {
		m.happen(now) // and hears when it is asked itself
	}
	return held, func() {
		for _, m := range held {
			m.mu.Unlock()
		}
	}
}

// boardCDB has a module do a command as a host at its bus would. An error is that it has
// not ended in time, or that ctx has.
func boardCDB(ctx context.Context, m *Module, command uint16, message []byte) (cmis.CDBStatus, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, trxlink.CDBTime)
	defer cancel()
	reply, err := cmis.DoCDB(ctx, m, command, message, func(ctx context.Context) error {
		timer := time.NewTimer(cdbPoll)
		defer timer.Stop()
		select {
		case <-timer.C:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	var refused *cmis.CDBError
	switch {
	case err == nil:
		return cmis.CDBSuccess, reply, nil
	case errors.As(err, &refused):
		return refused.Status, refused.Reply, nil
	}
	return 0, nil, err
}

// cdbPoll is how often the board looks whether a command has ended.
const cdbPoll = 50 * time.Microsecond
