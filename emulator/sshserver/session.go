package sshserver

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/ocslab/ocslab/emulator"
)

// goodbye is how long a client may take to agree that a session has ended.
const goodbye = time.Second

// session serves one channel until the client or the front end ends it.
func (s *Server) session(ctx context.Context, offered ssh.NewChannel, conn net.Conn, info emulator.SessionInfo) {
	if !s.enter() {
		_ = offered.Reject(ssh.ResourceShortage, "too many sessions")
		return
	}
	defer s.leave()
	channel, requests, err := offered.Accept()
	if err != nil {
		return
	}
	st := &stream{Channel: channel, conn: conn, gone: make(chan struct{})}
	defer st.bye.Wait()
	defer st.Close()
	// A client may only change its window once the session runs, but what it
	// asks must be answered until the channel is closed.
	begun := make(chan emulator.FrontEnd, 1)
	go func() {
		defer close(st.gone)
		defer close(begun)
		started := false
		for r := range requests {
			fe, ok := s.answer(r, st, started)
			_ = r.Reply(ok, nil) // a client that is gone is noticed by all
			if fe != nil {
				started = true
				begun <- fe
			}
		}
	}()
	fe, ok := <-begun
	if !ok {
		return
	}
	fe.ServeSession(ctx, st, info)
}

// answer says whether a request is granted, and which front end it begins.
func (s *Server) answer(r *ssh.Request, st *stream, started bool) (emulator.FrontEnd, bool) {
	if started {
		return nil, r.Type == "window-change"
	}
	switch r.Type {
	case "shell":
		return s.Shell, s.Shell != nil
	case "subsystem":
		var wanted struct{ Name string }
		if ssh.Unmarshal(r.Payload, &wanted) != nil {
			return nil, false
		}
		fe := s.Subsystems[wanted.Name]
		return fe, fe != nil
	case "pty-req":
		var wanted struct {
			Term                         string
			Columns, Rows, Width, Height uint32
			Modes                        string
		}
		if ssh.Unmarshal(r.Payload, &wanted) != nil {
			return nil, false
		}
		st.terminal = true
		st.echo = !s.NoEcho && mode(wanted.Modes, ssh.ECHO)
		return nil, true
	}
	return nil, false // exec, env, agents, X11
}

// mode returns a terminal mode of RFC 4254, section 8, which is on unless the
// client turns it off.
func mode(encoded string, opcode byte) bool {
	const end, undefined = 0, 160
	for modes := []byte(encoded); len(modes) >= 5 && modes[0] != end && modes[0] < undefined; modes = modes[5:] {
		if modes[0] == opcode {
			return binary.BigEndian.Uint32(modes[1:]) != 0
		}
	}
	return true
}

// stream is a channel as front ends want it: Close unblocks Read and Write, and
// tells the client that all went well.
type stream struct {
	ssh.Channel
	conn net.Conn      // that the channel is one of
	gone chan struct{} // closed when the client has agreed that it is closed
	// Set before the session begins: a terminal turns the carriage return of
	// the enter key into a line feed, and shows what is typed.
	terminal, echo bool

	once sync.Once
	bye  sync.WaitGroup
}

// Read reads what the client types or sends.
func (st *stream) Read(p []byte) (int, error) {
	n, err := st.Channel.Read(p)
	if !st.terminal || n == 0 {
		return n, err
	}
	typed := p[:n]
	for i, c := range typed {
		if c == '\r' {
			typed[i] = '\n'
		}
	}
	if st.echo {
		shown := bytes.ReplaceAll(typed, []byte("\n"), []byte("\r\n"))
		if _, failed := st.Channel.Write(shown); failed != nil && err == nil {
			err = io.ErrClosedPipe
		}
	}
	return n, err
}

// Close ends the session. A client that does not agree within a second loses the
// connection with all its sessions, since nothing else unblocks what waits for
// it. Close does not wait for that.
func (st *stream) Close() error {
	st.once.Do(func() {
		st.bye.Go(func() {
			expired := time.AfterFunc(goodbye, func() { st.conn.Close() })
			defer expired.Stop()
			// These fail only when the client is gone.
			_, _ = st.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{0}))
			_ = st.Channel.Close()
			<-st.gone
		})
	})
	return nil
}
