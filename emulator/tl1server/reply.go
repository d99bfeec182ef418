package tl1server

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/wire/tl1"
)

// reply is what a command comes to.
type reply struct {
	text   []string
	notes  []string // comments behind the text
	err    *denial
	op     emulator.Operation // of a command to the matrix, acknowledged when it says
	reboot bool
	login  func() // what the session is from this reply on
}

// denial is a refusal.
type denial struct {
	code tl1.Code
	text string
}

// deny makes a refusal. What it quotes of the command is made printable.
func deny(code tl1.Code, format string, args ...any) *denial {
	return &denial{code, strings.Map(func(c rune) rune {
		if c < ' ' || c > '~' {
			return '?'
		}
		return c
	}, fmt.Sprintf(format, args...))}
}

// nullTag answers a command that has no CTAG.
const nullTag = "0"

// answerLocked writes a reply, in the way of a fault if it has a kind. It reports
// whether the session goes on, and whether the client was told the truth.
func (ss *session) answerLocked(ctx context.Context, r reply, ctag string, f emulator.Fault) (goOn, told bool) {
	if r.login != nil {
		r.login()
	}
	if f.Kind == emulator.FaultTag {
		ctag = "SOMEBODY"
	}
	m := tl1.Message{Kind: tl1.Response, CTAG: ctag, Completion: tl1.COMPLD, Text: r.text, Comments: r.notes}
	if r.err != nil {
		m.Completion, m.Code, m.Text = tl1.DENY, string(r.err.code), nil
		m.Comments = []string{r.err.text}
	}
	whole := ss.encodeBlocksLocked(m)
	switch f.Kind {
	case emulator.FaultHang:
		return true, false
	case emulator.FaultClose:
		ss.writeLocked(whole[:len(whole)/2])
		return false, false
	case emulator.FaultFlood:
		return ss.floodLocked(ctx, whole), false
	case emulator.FaultTwice:
		ss.writeLocked(whole)
	case emulator.FaultShred:
		ok := ss.shredLocked(whole)
		return ok, ok
	}
	ok := ss.writeLocked(whole)
	return ok, ok && f.Kind != emulator.FaultTag
}

// encodeBlocksLocked is encodeLocked for a reply that may be so long that it
// is cut. The prompt of a device that ends each block as if it were the last comes
// behind the last.
func (ss *session) encodeBlocksLocked(m tl1.Message) []byte {
	limit := ss.dev.Personality().TL1.Block
	if limit == 0 || len(m.Text) < 2 {
		return ss.encodeLocked(m)
	}
	var whole []byte
	style, rest := ss.style, m
	for first := 0; ; {
		end, size := first+1, len(m.Text[first])+lineFrame
		for end < len(m.Text) && size+len(m.Text[end])+lineFrame <= limit {
			size += len(m.Text[end]) + lineFrame
			end++
		}
		rest.Text, rest.Comments = m.Text[first:end], nil
		if end == len(m.Text) {
			rest.Comments = m.Comments
			return append(whole, ss.encodeLocked(rest)...)
		}
		if ss.dialect.marksLast {
			rest.More = true
		} else {
			ss.style.After = ""
		}
		whole = append(whole, ss.encodeLocked(rest)...)
		ss.style, rest.More = style, false
		first = end
	}
}

// lineFrame is what a data line has beside its text: three blanks, two quotes, CR
// and LF.
const lineFrame = 7

// encodeLocked returns m with its header in wire form, valid until the next
// call.
func (ss *session) encodeLocked(m tl1.Message) []byte {
	now := ss.dev.Now()
	if s := now.Unix(); s != ss.stamp {
		ss.stamp, ss.date, ss.clock = s, now.Format("06-01-02"), now.Format("15:04:05")
	}
	m.SID, m.Date, m.Time = ss.dev.SID(), ss.date, ss.clock
	ss.buf = tl1.AppendMessage(ss.buf[:0], m, ss.style)
	return ss.buf
}

func (ss *session) writeLocked(p []byte) bool {
	_, err := ss.conn.Write(p)
	return err == nil
}

// echoLocked repeats a command, if the device does. A terminal has no line end
// there until the reply comes with its own, and shows no password.
func (ss *session) echoLocked(raw []byte, code string) {
	end := ";\r\n"
	switch {
	case !ss.dev.Personality().TL1.Echo:
		return
	case !ss.dialect.plainEcho:
	case code == "ACT-USER":
		return
	default:
		end = ";"
	}
	ss.writeLocked(append(append([]byte(nil), raw...), end...))
}

// shredLocked sends p in pieces of 1 to 7 bytes.
func (ss *session) shredLocked(p []byte) bool {
	for n := 1; len(p) > 0; n = n%7 + 1 {
		piece := p[:min(n, len(p))]
		if !ss.writeLocked(piece) {
			return false
		}
		p = p[len(piece):]
	}
	return true
}

// floodLocked sends a reply that does not end.
func (ss *session) floodLocked(ctx context.Context, whole []byte) bool {
	ok := ss.writeLocked(whole[:bytes.LastIndexByte(whole, ';')])
	line := bytes.Repeat([]byte("   \"0123456789\"\r\n"), 1024)
	for sent := 0; sent < 10<<20 && ok && ctx.Err() == nil; sent += len(line) {
		ok = ss.writeLocked(line)
	}
	return ok
}
