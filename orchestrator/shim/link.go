package shim

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"time"

	"github.com/ocslab/ocslab/orchestrator/proto"
	"github.com/ocslab/ocslab/orchestrator/trace"
)

// A link is one connection to the controller. The shim's lock guards it but for conn.
type link struct {
	conn    net.Conn
	eager   *proto.Eager
	quit    chan struct{} // closed when the link has failed
	wake    chan struct{} // there is something for the goroutine that writes
	out     []byte
	writing bool  // the goroutine is
	goodbye bool  // what is in out is the last
	err     error // why it failed; nil while it works

	held    []proto.OpRef // that hello has told of
	first   uint64        // requests up to here are of links before
	welcome *proto.Welcome
	joined  map[string]bool // groups that are complete
	ready   bool            // all are
	pending map[uint64]*request
}

const (
	firstPause = 10 * time.Millisecond // before a connection is tried again
	longPause  = time.Second
	// goodbyeTime is how long the last message may take to be written.
	goodbyeTime = time.Second
)

// Reconnect makes a new connection in place of a lost one, and returns when all groups are complete. It tells the
// controller what the rank holds. With a connection that works it does nothing.
func (s *Shim) Reconnect(ctx context.Context) error {
	if err := s.connect(ctx); err != nil {
		return fmt.Errorf("rank %d of %s: %w", s.opt.Rank, s.opt.Rail, err)
	}
	return nil
}

// connect connects unless there is a connection, or somebody else is about to make one; it waits for that, too.
func (s *Shim) connect(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.dialling {
		if err := s.waitLocked(ctx, time.Time{}); err != nil {
			return err
		}
	}
	if s.closed {
		return ErrClosed
	}
	if s.readyLocked() {
		return nil
	}
	s.dialling = true
	defer func() {
		s.dialling = false
		s.notifyLocked()
	}()
	err := s.connectLocked(ctx)
	if err != nil {
		s.lost = err
	}
	return err
}

func (s *Shim) connectLocked(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)() // Close ends it
	s.mu.Unlock()
	conn, err := s.opt.Dial(ctx)
	s.mu.Lock()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrLost, err)
	}
	if s.closed {
		conn.Close()
		return ErrClosed
	}
	l := &link{
		conn: conn, eager: proto.NewEager(conn), quit: make(chan struct{}), wake: make(chan struct{}, 1), first: s.req,
		joined: map[string]bool{}, pending: map[uint64]*request{},
	}
	if s.hold.active {
		l.held = []proto.OpRef{s.hold.ref}
	}
	s.link = l
	s.wg.Add(2)
	go s.read(l)
	go s.write(l)
	s.sendLocked(l, &proto.Hello{
		Version: proto.Version, Job: s.opt.Job.Name, Rail: s.opt.Rail, Rank: s.opt.Rank, Host: s.opt.Host,
		LocalRank: s.opt.LocalRank, Epoch: s.epoch, Run: s.run, Holds: l.held,
	})
	for !l.ready && l.err == nil {
		err := s.waitLocked(ctx, time.Time{})
		if s.closed {
			return ErrClosed // Close says goodbye
		}
		if err != nil && !l.ready && l.err == nil {
			was := s.lost
			s.failLocked(l, fmt.Errorf("%w: it was given up before all groups were complete: %w", ErrLost, err))
			s.lost = cmp.Or(was, s.lost) // why it was not there before the time was over says more
		}
	}
	if l.err != nil {
		return l.err
	}
	s.lost = nil
	s.logLocked(Event{Kind: Connected, Detail: fmt.Sprintf("epoch %d of the controller", s.epoch)})
	return nil
}

// redialLocked tries to connect, again and again for as long as an answer may take, unless that is going on.
func (s *Shim) redialLocked() {
	if s.dialling || s.closed || s.opt.NoReconnect {
		return
	}
	s.dialling = true
	s.wg.Add(1)
	go func() {
		defer s.wg.Done()
		s.mu.Lock()
		defer s.mu.Unlock()
		ctx, cancel := context.WithTimeout(s.ctx, s.timeout)
		defer cancel()
		for pause := firstPause; ; pause = min(2*pause, longPause) {
			err := s.connectLocked(ctx)
			if err == nil {
				s.stats.Reconnects++
			} else if ctx.Err() == nil { // else the reason is why it was not there before the time was over
				s.lost = err
			}
			if err == nil || ctx.Err() != nil || errors.Is(err, ErrRefused) || errors.Is(err, ErrClosed) {
				break
			}
			s.mu.Unlock()
			select {
			case <-ctx.Done():
			case <-time.After(pause):
			}
			s.mu.Lock()
		}
		s.dialling = false
		s.notifyLocked()
	}()
}

// Close says goodbye and ends the connection; circuits that the rank held it holds no more. Operations that wait fail
// with ErrClosed.
func (s *Shim) Close() error {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		s.cancel()
		if l := s.link; l != nil {
			s.sendLocked(l, &proto.Bye{Reason: fmt.Sprintf("rank %d of %s has finished", s.opt.Rank, s.opt.Rail)})
			l.goodbye = true
			l.wakeUp()
			// It may be writing already; an error means that it cannot wait for long.
			_ = l.conn.SetWriteDeadline(time.Now().Add(goodbyeTime))
		}
		s.notifyLocked()
	}
	s.mu.Unlock()
	s.wg.Wait()
	return nil
}

// sendLocked sends a message. Nobody waits for the network with the lock: what the socket does not take at once, and all to a
// connection that is no socket, is for the goroutine that writes.
func (s *Shim) sendLocked(l *link, m proto.Message) {
	s.queueLocked(l, m)
	if l.err != nil || l.goodbye || len(l.out) == 0 {
		return
	}
	if !l.writing {
		l.out = l.out[:copy(l.out, l.eager.Write(l.out))]
	}
	if len(l.out) > 0 {
		l.wakeUp()
	}
}

// queueLocked leaves a message to go with the one that is sent next.
func (s *Shim) queueLocked(l *link, m proto.Message) {
	if l.err != nil || l.goodbye {
		return
	}
	out, err := proto.Append(l.out, m)
	if err != nil {
		s.failLocked(l, err)
		return
	}
	l.out = out
}

func (l *link) wakeUp() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// write is the goroutine that writes.
func (s *Shim) write(l *link) {
	defer s.wg.Done()
	var spare []byte
	for {
		select {
		case <-l.wake:
		case <-l.quit:
			return
		}
		s.mu.Lock()
		out, goodbye, patience := l.out, l.goodbye, s.timeout
		l.out, l.writing = spare[:0], true
		if goodbye {
			patience = min(patience, goodbyeTime)
		}
		err := l.conn.SetWriteDeadline(time.Now().Add(patience)) // with the lock, since Close sets it, too
		s.mu.Unlock()
		if err == nil && len(out) > 0 {
			_, err = l.conn.Write(out)
		}
		spare = out
		s.mu.Lock()
		l.writing = false
		if err == nil && !goodbye {
			s.mu.Unlock()
			continue
		}
		if err == nil {
			err = ErrClosed
		} else {
			err = fmt.Errorf("%w: %w", ErrLost, err)
		}
		s.failLocked(l, err)
		s.mu.Unlock()
		return
	}
}

// read is the goroutine that reads.
func (s *Shim) read(l *link) {
	defer s.wg.Done()
	r := bufio.NewReader(l.conn)
	for {
		m, err := proto.Read(r)
		s.mu.Lock()
		switch {
		case errors.Is(err, proto.ErrFrame):
			err = fmt.Errorf("%w: %w", ErrProtocol, err)
		case errors.Is(err, io.EOF):
			err = fmt.Errorf("%w: it hung up", ErrLost)
		case err != nil:
			err = fmt.Errorf("%w: %w", ErrLost, err)
		case l.err == nil:
			err = s.handleLocked(l, m)
		}
		if err != nil {
			s.failLocked(l, err)
		}
		over := l.err != nil
		s.mu.Unlock()
		if over {
			return
		}
	}
}

// failLocked gives a link up: what was asked on it has no answer. Circuits that the rank holds stay its own, and the
// next hello says so.
func (s *Shim) failLocked(l *link, err error) {
	if l.err != nil {
		return
	}
	l.err = err
	close(l.quit)
	l.conn.Close()
	if s.link == l {
		s.link, s.lost, s.guess = nil, err, nil
		if l.ready {
			s.logLocked(Event{Kind: Disconnected, Detail: err.Error()})
			if !errors.Is(err, ErrRefused) && !errors.Is(err, ErrClosed) {
				s.redialLocked()
			}
		}
	}
	s.notifyLocked()
}

// handleLocked takes a message in. The error is why there can be no sense in what follows.
func (s *Shim) handleLocked(l *link, m proto.Message) error {
	odd := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", ErrProtocol, fmt.Sprintf(format, args...))
	}
	if bye, ok := m.(*proto.Bye); ok {
		switch bye.Code {
		case "":
			return fmt.Errorf("%w: the controller has finished: %s", ErrLost, bye.Reason)
		case proto.Stale:
			return fmt.Errorf("%w: %s", ErrStale, bye.Reason)
		}
		return fmt.Errorf("%w: %s (%s)", ErrRefused, bye.Reason, bye.Code)
	}
	if w, ok := m.(*proto.Welcome); ok {
		if l.welcome != nil {
			return odd("it said welcome twice")
		}
		s.welcomeLocked(l, w)
		return nil
	}
	if l.welcome == nil {
		return odd("it said %s before welcome", proto.KindOf(m))
	}
	switch m := m.(type) {
	case *proto.GroupOK:
		if _, ok := s.groups[m.Group]; !ok {
			return odd("rank %d is in no group %.40q", s.opt.Rank, m.Group)
		}
		net := trace.Net(m.Domain)
		if net == "" {
			net = trace.RailNet
		}
		if !slices.Contains([]trace.Net{trace.RailNet, trace.ScaleUp, trace.FrontEnd}, net) {
			return odd("there is no network %.40q", m.Domain)
		}
		s.domains[m.Group] = net
		l.joined[m.Group] = true
		if !l.ready && len(l.joined) == len(s.groups) {
			l.ready = true
			if s.sent != nil {
				// Answered or not: a controller that has started anew knows no tables, and others may wait for this one.
				s.sendLocked(l, s.sent)
			}
			s.notifyLocked()
		}
	case *proto.TopoAck:
		if !slices.Contains([]proto.Result{proto.Applied, proto.NoOp, proto.OnRing, proto.Detoured}, m.Result) {
			return odd("request %d was acknowledged with %.40q", m.Req, m.Result)
		}
		r, err := s.answerLocked(l, m.Req)
		if r != nil {
			r.ack = m
			s.answeredLocked(r)
		}
		return err
	case *proto.TopoNack:
		r, err := s.answerLocked(l, m.Req)
		if r != nil {
			r.nack = m
			s.answeredLocked(r)
		}
		return err
	case *proto.Boundaries:
		// A table that was sent on two connections is answered twice.
		if s.round != nil && s.round.agreed == nil {
			s.round.agreed = m
			s.notifyLocked()
		}
	case *proto.Fallback:
		if m.Rail == s.opt.Rail {
			s.stats.Fallback, s.stats.Dead, s.stats.Reason = true, m.Dead, m.Reason
			s.logLocked(Event{Kind: FellBack, Generation: m.Generation, Detail: m.Reason})
		}
	case *proto.Resume:
		if m.Rail == s.opt.Rail {
			s.stats.Fallback, s.stats.Dead, s.stats.Reason = false, false, ""
			s.logLocked(Event{Kind: Resumed, Generation: m.Generation})
		}
	default:
		return odd("%s is no message for a shim", proto.KindOf(m))
	}
	return nil
}

func (s *Shim) welcomeLocked(l *link, w *proto.Welcome) {
	l.welcome, s.epoch, s.run = w, w.Epoch, w.Run
	if s.opt.Timeout == 0 {
		s.patience = time.Duration(max(w.TimeoutNS, 0))
		s.timeout = cmp.Or(s.patience, DefaultTimeout)
	}
	for _, ref := range l.held {
		if !s.hold.active {
			s.sendLocked(l, &proto.Release{Epoch: w.Epoch, OpRef: ref}) // it ended after hello
		}
	}
	for axis, name := range s.opt.Job.AxisNames() {
		g := s.opt.Job.GroupOf(s.opt.Rank, axis)
		index := slices.Index(g.Members, s.opt.Rank)
		s.sendLocked(l, &proto.JoinGroup{Group: g.Name, Axis: name, Members: g.Members, Index: index})
	}
}

// answerLocked finds what an answer is of. A second answer is ignored.
func (s *Shim) answerLocked(l *link, req uint64) (*request, error) {
	if r := l.pending[req]; r != nil {
		delete(l.pending, req)
		return r, nil
	}
	if req <= l.first || req > s.req {
		return nil, fmt.Errorf("%w: it answered request %d, which was not asked", ErrProtocol, req)
	}
	return nil, nil
}

func (s *Shim) answeredLocked(r *request) {
	if r.Mode == proto.Provision {
		e := Event{Kind: Provisioned, Op: r.OpRef}
		if r.ack != nil {
			e.Result, e.Generation = r.ack.Result, r.ack.Generation
		} else {
			e.Code, e.Detail = r.nack.Code, r.nack.Detail
		}
		s.logLocked(e)
		return
	}
	s.notifyLocked()
}
