package netconfswitch

import (
	"context"
	"fmt"
	"time"

	juniper "github.com/Juniper/go-netconf/netconf"

	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/wire/netconf"
)

// exchange sends one request and waits for its reply.
func (s *session) exchange(ctx context.Context, r request) (answer, error) {
	var a answer
	rpc := juniper.NewRPCMessage([]juniper.RPCMethod{juniper.RawMethod(r.body)})
	message := marshal(rpc)
	if err := s.sw.life.Take(ctx, s.writing); err != nil {
		return a, s.sw.fail(r.op, "", "", err)
	}
	s.out = netconf.AppendMessage(s.out[:0], message, s.framing)
	s.sw.sent(s.out)
	c := s.await(rpc.MessageID, time.Now())
	n, err := s.send(ctx, s.out, &a.receipt)
	s.writing.Pass()
	if n > 0 {
		a.receipt.Requests = 1
	}
	var got reading
	if err == nil {
		got = s.wait(ctx, c, a.receipt.Sent)
		err = got.err
	}
	if err != nil {
		a.givenUp = s.alive()
		said, why := s.giveUp(rpc.MessageID, c, err)
		if got.raw != nil {
			said, why = string(got.raw), err
		}
		return a, s.sw.fail(r.op, string(message), said, why)
	}
	a.reply, a.raw = got.reply, got.raw
	a.receipt.FirstByte, a.receipt.Acked = got.first, got.last
	if err := r.judge(a.reply); err != nil {
		return a, s.sw.fail(r.op, string(message), string(a.raw), err)
	}
	return a, nil
}

// marshal writes the same as xml.Marshal does for an RPCMessage, in a seventh of
// the time. The message-id is a UUID, and methods are XML already.
func marshal(rpc *juniper.RPCMessage) []byte {
	const begin, middle, end = `<rpc message-id="`, `" xmlns="` + netconf.Base + `">`, `</rpc>`
	var body string
	for _, m := range rpc.Methods {
		body += m.MarshalMethod()
	}
	p := make([]byte, 0, len(begin)+len(rpc.MessageID)+len(middle)+len(body)+len(end))
	p = append(append(p, begin...), rpc.MessageID...)
	p = append(append(p, middle...), body...)
	return append(p, end...)
}

// await makes the session expect the reply to a request.
func (s *session) await(id string, now time.Time) *call {
	c := &call{now, make(chan reading, 1)}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.since = now
	if !s.alive() { // nobody reads any more
		c.got <- reading{err: s.err}
		return c
	}
	s.calls[id] = c
	if !s.timing {
		s.timing = true
		s.timer.Reset(s.sw.cfg.Timeout)
	}
	return c
}

// send writes the whole message, says when, and returns how much it wrote. When
// that is only a part the stream is closed. Called with the turn to write.
func (s *session) send(ctx context.Context, p []byte, when *ocs.Receipt) (n int, err error) {
	n, broken, err := s.to.Write(ctx, p, time.Now(), s.sw.cfg.Timeout, when)
	if broken {
		s.close(err)
		err = s.err // Close or the reader may have come first
	}
	return n, err
}

// wait waits for the reply to c.
func (s *session) wait(ctx context.Context, c *call, sent time.Time) reading {
	s.readReply(ctx, c, sent)
	select {
	case r := <-c.got: // the usual case, and much cheaper alone
		return r
	default:
	}
	select {
	case r := <-c.got:
		return r
	case <-ctx.Done():
		select {
		case r := <-c.got: // it was there, too
			return r
		default:
			return reading{err: fmt.Errorf("no reply: %w", context.Cause(ctx))}
		}
	}
}

// giveUp stops waiting for the reply to a request. It returns what the device
// said instead, and err with what is to be said about that.
func (s *session) giveUp(id string, c *call, err error) (said string, why error) {
	s.mu.Lock()
	delete(s.calls, id)
	s.owed++
	last := s.retired && len(s.calls) == 0
	said = string(s.tail)
	if said == "" && s.stray.at.After(c.since) {
		said = s.stray.text
		if s.alive() {
			err = fmt.Errorf("%w; what came belongs to another request", err)
		}
	}
	s.mu.Unlock()
	if last {
		s.close(errRetired)
	} else {
		s.relieve() // the reply may still come
	}
	return said, err
}
