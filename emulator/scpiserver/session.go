package scpiserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/timeline"
	"github.com/ocslab/ocslab/wire/scpi"
)

// session is one client. One goroutine reads and answers its lines.
type session struct {
	srv    *Server
	dev    *emulator.Device
	conn   io.ReadWriteCloser
	me     *emulator.Session
	status scpi.Status

	before time.Time            // when the last line that was not lost was read
	busy   time.Time            // until when the matrix works for this session
	silent []emulator.Operation // that no reply has confirmed
}

// maxSilent bounds the operations that wait for a reply to confirm them. A client
// that never asks loses the oldest of them in the truth log.
const maxSilent = 1024

// run serves until the client is gone or ctx ends.
func (ss *session) run(ctx context.Context) {
	var in scpi.Decoder
	buf := make([]byte, 4096)
	for {
		n, err := ss.conn.Read(buf)
		read := time.Now()
		in.Feed(buf[:n])
		for {
			line, ok, tooLong := in.Next()
			if !ok {
				break
			}
			switch {
			case ctx.Err() != nil:
				return
			case tooLong != nil:
				ss.fail(scpi.NewError(scpi.InputBufferOverrun, ""))
			case !ss.lost(read) && !ss.handle(ctx, line, read):
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// lost reports whether a line has come too soon after the one before.
func (ss *session) lost(read time.Time) bool {
	gap := ss.dev.Personality().SCPI.Gap
	if gap > 0 && !ss.before.IsZero() && read.Sub(ss.before) < gap {
		return true
	}
	ss.before = read
	return false
}

// output is what answers a line.
type output struct {
	replies [][]byte
	// confirms is how many of the silent operations were there before the last
	// reply was made.
	confirms int
	strike   emulator.FaultKind // what happens to the line as a whole
}

// handle carries out a line and reports whether the session goes on.
func (ss *session) handle(ctx context.Context, line []byte, read time.Time) bool {
	m, _ := scpi.ParseMessage(line) // errors are those of the units, too
	var out output
	var path scpi.Path
	for i := range m.Units {
		u := &m.Units[i]
		if !emulator.SleepUntil(ctx, ss.busy) || ctx.Err() != nil {
			return false
		}
		cmd, verb, next, err := commands.Find(path, *u)
		if path = next; u.Err != nil {
			err = u.Err
		}
		fault := ss.srv.Faults.Next(verb)
		switch fault.Kind {
		case emulator.FaultDeny:
			ss.fail(scpi.NewError(scpi.ExecutionError, "refused"))
			continue
		case emulator.FaultLose:
			continue
		}
		if err == nil {
			err = ss.carryOut(cmd, u, &out, fault, read)
		}
		if err != nil {
			ss.fail(refusal(err))
		}
		switch fault.Kind {
		case emulator.FaultTwice, emulator.FaultShred:
			out.strike = fault.Kind
		case emulator.FaultClose, emulator.FaultFlood:
			out.strike = fault.Kind
			return ss.answer(ctx, out)
		}
	}
	return ss.answer(ctx, out)
}

// carryOut does what u asks for, and adds the reply if it is a query.
func (ss *session) carryOut(cmd command, u *scpi.Unit, out *output, f emulator.Fault, read time.Time) error {
	switch n := len(u.Params); {
	case n < cmd.least:
		return scpi.NewError(scpi.MissingParameter, fmt.Sprintf("%s has %d of %d", u.Header, n, cmd.least))
	case n > cmd.most:
		return scpi.NewError(scpi.ParameterNotAllowed, fmt.Sprintf("%s has %d, at most %d are possible", u.Header, n, cmd.most))
	}
	r, err := cmd.run(&call{session: ss, params: u.Params, waiting: len(out.replies) > 0})
	if err != nil {
		return err
	}
	if r.op.Number > 0 {
		ss.dev.Record(timeline.Command, read, read, r.op)
		if len(ss.silent) == maxSilent {
			ss.silent = ss.silent[1:]
			out.confirms = max(out.confirms-1, 0)
		}
		ss.silent = append(ss.silent, r.op)
		ss.busy = r.op.Ack
	}
	if u.Query && f.Kind != emulator.FaultHang {
		out.replies = append(out.replies, r.reply)
		out.confirms = len(ss.silent)
	}
	return nil
}

// fail puts an error in the queue.
func (ss *session) fail(e scpi.Error) {
	if ss.dev.Personality().SCPI.TerseErrors {
		e = scpi.NewError(e.Code, "")
	}
	ss.status.Fail(e)
}

// answer writes what a line comes to and reports whether the session goes on.
func (ss *session) answer(ctx context.Context, out output) bool {
	p := ss.dev.Personality().SCPI
	end, join := "\r\n", ";"
	if p.CROnly {
		end = "\r"
	}
	if p.Apart {
		join = end
	}
	whole := bytes.Join(out.replies, []byte(join))
	if len(out.replies) > 0 {
		whole = append(whole, end...)
	}
	before := time.Now()
	told := true
	switch out.strike {
	case emulator.FaultClose:
		ss.write(whole[:len(whole)/2])
		return false
	case emulator.FaultFlood:
		return ss.flood(ctx, bytes.TrimSuffix(whole, []byte(end)))
	case emulator.FaultShred:
		for size := 1; len(whole) > 0 && told; size = size%7 + 1 {
			n := min(size, len(whole))
			told = ss.write(whole[:n])
			whole = whole[n:]
		}
	case emulator.FaultTwice:
		told = ss.write(bytes.Repeat(whole, 2))
	default:
		told = ss.write(whole)
	}
	if told && out.confirms > 0 {
		after := time.Now()
		for _, op := range ss.silent[:out.confirms] {
			ss.dev.Record(timeline.Ack, before, after, op)
		}
		ss.silent = append(ss.silent[:0], ss.silent[out.confirms:]...)
	}
	return told
}

func (ss *session) write(p []byte) bool {
	if len(p) == 0 {
		return true
	}
	_, err := ss.conn.Write(p)
	return err == nil
}

// flood sends 10 MB without a line end behind what there is of a reply.
func (ss *session) flood(ctx context.Context, begin []byte) bool {
	ok := ss.write(begin)
	block := bytes.Repeat([]byte("(@1,2),"), 2048)
	for sent := 0; sent < 10<<20 && ok && ctx.Err() == nil; sent += len(block) {
		ok = ss.write(block)
	}
	return ok
}

// refusal is the entry of the error queue for whatever went wrong.
func refusal(err error) scpi.Error {
	var e scpi.Error
	var syntax *scpi.SyntaxError
	switch {
	case errors.As(err, &e):
		return e
	case errors.As(err, &syntax) && (syntax.Code == scpi.UndefinedHeader || syntax.Code == scpi.HeaderSuffixRange):
		return scpi.NewError(syntax.Code, syntax.Text)
	case errors.As(err, &syntax):
		return scpi.NewError(syntax.Code, fmt.Sprintf("%s at offset %d", syntax.Reason, syntax.Offset))
	}
	return deviceRefusal(err)
}
