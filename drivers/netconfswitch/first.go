package netconfswitch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	juniper "github.com/Juniper/go-netconf/netconf"

	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/wire/netconf"
)

// firstWait is how long the first request of a session waits for a reply before
// it is sent again. Then it waits twice as long, and so on.
const firstWait = 250 * time.Millisecond

// first asks the device who it is until it says anything to that, or ctx ends. A
// server may lose a request that comes in the same read as our hello: this one
// may be lost. A late reply to an earlier copy counts, too. With an error first
// returns what the device said. Nobody else uses the session yet.
func (s *session) first(ctx context.Context) (reply netconf.Reply, said string, err error) {
	stop := context.AfterFunc(ctx, func() { s.conn.Close() })
	r, err := s.askFirst(ctx)
	if !stop() { // closed, or about to be
		err = fmt.Errorf("no reply to the first request: %w", s.sw.life.Gone(ctx))
	}
	if err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		if said = string(s.tail); said == "" {
			said = s.stray.text
		}
		return reply, said, err
	}
	s.setReadDeadline(time.Time{})
	return r.reply, "", nil
}

func (s *session) askFirst(ctx context.Context) (reading, error) {
	const most = 32 // copies; the last would be sent after decades
	c := &call{got: make(chan reading, most)}
	var ids []string
	body := juniper.RawMethod(get("", "product-information", "").body)
	for wait := firstWait; len(ids) < most; wait *= 2 {
		rpc := juniper.NewRPCMessage([]juniper.RPCMethod{body})
		ids = append(ids, rpc.MessageID)
		s.mu.Lock()
		s.calls[rpc.MessageID] = c
		s.mu.Unlock()
		s.out = netconf.AppendMessage(s.out[:0], marshal(rpc), s.framing)
		s.sw.sent(s.out)
		var when ocs.Receipt
		if _, err := s.send(ctx, s.out, &when); err != nil {
			return reading{}, err
		}
		s.setReadDeadline(when.Sent.Add(wait))
		for {
			_, err := s.piece()
			if len(c.got) > 0 {
				r := <-c.got
				s.settle(ids, r.reply.MessageID)
				return r, r.err
			}
			if errors.Is(err, os.ErrDeadlineExceeded) {
				break
			}
			if err != nil {
				return reading{}, err
			}
		}
	}
	return reading{}, errors.New("no reply to the first request")
}

// settle forgets the copies of the first request. Replies come in the order of
// the requests (RFC 6241, section 4.5), so that those to later copies than the
// answered one are still to come.
func (s *session) settle(ids []string, answered string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range ids[slices.Index(ids, answered)+1:] {
		if s.calls[id] != nil {
			s.owed++
		}
	}
	clear(s.calls)
}
