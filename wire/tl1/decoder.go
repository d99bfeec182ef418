package tl1

import (
	"bytes"
	"strings"
)

// DefaultMaxMessage is the longest output message, in bytes with header and
// terminator, that a [Decoder] accepts by default.
const DefaultMaxMessage = 1 << 20

// A Decoder cuts a byte stream into output messages and parses them. The zero
// value is ready for use. It is not safe for concurrent use.
//
// A message starts at its header line, or at the first line of an
// acknowledgement. Before that the decoder skips prompts ("<", ">", "agent>")
// and the echo of a command. A message ends at
//
//   - a line that starts with ';', or with '>' if more is to come;
//   - a ';' elsewhere that is neither in a quoted string nor in a comment.
//
// The first rule needs no state, so that a quote or comment which is not closed
// spoils one message at most.
type Decoder struct {
	// MaxLen is the longest message accepted, in bytes from header to
	// terminator; 0 or less means DefaultMaxMessage. Set it before the first
	// Feed.
	MaxLen int

	buf   []byte
	start int // first byte of the current message, or of text that is none
	line  int // first byte of the current line, while no message has begun
	pos   int // first byte not looked at
	state state
	mid   bool // pos is in the middle of a line
	skip  bool // the message is too long and has been reported

	// State at pos, if mid is set inside a message.
	quote   quoting
	prev    byte
	comment bool // also across lines
}

type state uint8

const (
	idle   state = iota // no message has begun
	acked               // behind the first line of an acknowledgement
	inBody              // behind a header line
)

// Feed appends a copy of p to the stream. Call Next until it has no more
// before the next Feed, otherwise the buffer grows without limit.
func (d *Decoder) Feed(p []byte) {
	if d.start > len(d.buf)/2 {
		d.buf = append(d.buf[:0], d.buf[d.start:]...)
		d.line -= d.start
		d.pos -= d.start
		d.start = 0
	}
	d.buf = append(d.buf, p...)
}

// Next returns the next complete message. When ok is false, more input is
// needed.
//
// An error is a [*MessageError] for text that was delimited like a message but
// is none, or a [*TooLongError]. Then m is the zero Message, ok is true, and
// decoding goes on behind the bad message. The memory of m is not reused.
func (d *Decoder) Next() (m Message, ok bool, err error) {
	for {
		var raw []byte
		switch d.state {
		case idle:
			raw, err = d.scanIdle()
		case acked:
			raw, err = d.scanAcked()
		case inBody:
			raw, err = d.scanBody()
		}
		switch {
		case err != nil:
			return Message{}, true, err
		case raw != nil:
			m, err = ParseMessage(bytes.Clone(raw))
			return m, true, err
		case d.pos == len(d.buf):
			return Message{}, false, nil
		}
	}
}

// Pending reports whether a message has begun and is not complete: some text
// has come that is not a prompt and not the echo of a command. It is meant to
// be asked after Next has run out of messages.
func (d *Decoder) Pending() bool {
	if d.state != idle || d.start < d.line {
		return true
	}
	text := bytes.Trim(d.buf[d.line:], whitespace)
	return len(text) > 0 && !isPrompt(text) && !isEcho(text)
}

func (d *Decoder) limit() int {
	if d.MaxLen > 0 {
		return d.MaxLen
	}
	return DefaultMaxMessage
}

// take ends the current message before index end and makes d ready for what
// follows. Nothing is known about that, so it is taken as the start of a line.
func (d *Decoder) take(end int) []byte {
	raw := d.buf[d.start:end]
	d.start, d.line, d.pos = end, end, end
	d.state, d.mid, d.skip = idle, false, false
	return raw
}

// drop gives up on text that is too long to be, or to precede, the first line
// of a message. Where it cuts must not depend on how much has been fed.
func (d *Decoder) drop() error {
	limit := d.limit()
	return newTooLongError(limit, d.take(d.start+limit))
}

// scanIdle looks for the first line of a message. The lines from start to line
// belong to none; they matter only if they turn out to be delimited like one.
func (d *Decoder) scanIdle() ([]byte, error) {
	for d.pos < len(d.buf) {
		if !d.mid {
			switch c := d.buf[d.pos]; c {
			case '\r', '\n', '<', '>':
				d.nextLine(d.pos + 1)
			case ' ', '\t':
				d.pos++
			case ';':
				stray := d.start == d.line
				if raw := d.take(d.pos + 1); !stray {
					return raw, nil
				}
			default:
				d.mid = true
			}
			if d.pos-d.start > d.limit() {
				return nil, d.drop()
			}
			continue
		}

		end := bytes.IndexByte(d.buf[d.pos:], '\n') + d.pos
		if end < d.pos {
			d.pos = len(d.buf)
			if d.pos-d.start > d.limit() {
				return nil, d.drop()
			}
			break
		}
		if end-d.start > d.limit() {
			return nil, d.drop()
		}
		line := bytes.Trim(d.buf[d.line:end], blanks)
		switch state, at := firstLine(string(d.buf[d.line:end])); {
		case state != idle:
			d.start, d.line, d.pos = d.line+at, end+1, end+1
			d.state, d.mid, d.comment = state, false, false
			return nil, nil
		case isEcho(line): // a new exchange begins
			d.take(end + 1)
		case line[len(line)-1] == ';':
			return d.take(end + 1), nil
		case isPrompt(line):
			d.nextLine(end + 1)
		default:
			d.line, d.pos, d.mid = end+1, end+1, false
		}
	}
	return nil, nil
}

// nextLine continues at p, the start of a line, with what came before it
// dropped unless it was preceded by text that belongs to no message.
func (d *Decoder) nextLine(p int) {
	if d.start == d.line {
		d.start = p
	}
	d.line, d.pos, d.mid = p, p, false
}

// firstLine returns the state behind a line that may be the first of a message,
// and where in the line the message starts. An acknowledgement has no line end
// in front and so may be on the line of a prompt.
func firstLine(line string) (next state, at int) {
	if _, _, _, ok := parseHeader(line); ok {
		return inBody, 0
	}
	for _, at := range [...]int{0, strings.IndexAny(line, "<>") + 1} {
		if _, _, ok := parseAck(line[at:]); ok {
			return acked, at
		}
	}
	return idle, 0
}

// isPrompt reports whether a line without blanks around it is a prompt, such
// as "agent>".
func isPrompt(line []byte) bool {
	last := line[len(line)-1]
	return last == '>' || last == '<'
}

// isEcho reports whether a line without blanks around it is an echoed command,
// perhaps behind a prompt.
func isEcho(line []byte) bool {
	if line[len(line)-1] != ';' {
		return false
	}
	code := line[:bytes.IndexAny(line, ":;")]
	code = bytes.Trim(code[bytes.LastIndexAny(code, "<>")+1:], blanks)
	return len(code) > 0 && isLetter(code[0]) && badCodeByte(string(code)) < 0 &&
		(bytes.IndexByte(code, '-') >= 0 || !bytes.ContainsAny(code, blanks))
}

// scanAcked looks for the terminator of an acknowledgement. GR-831 has '<';
// some devices send '>', or nothing.
func (d *Decoder) scanAcked() ([]byte, error) {
	for ; d.pos < len(d.buf); d.pos++ {
		if d.pos-d.start > d.limit() {
			return nil, d.drop()
		}
		switch d.buf[d.pos] {
		case '\n':
			d.line = d.pos + 1
		case ' ', '\t', '\r':
		case '<', '>':
			return d.take(d.pos + 1), nil
		default:
			return d.take(d.line), nil
		}
	}
	return nil, nil
}

// scanBody looks for the end of a message whose header line is complete.
func (d *Decoder) scanBody() ([]byte, error) {
	for d.pos < len(d.buf) {
		c := d.buf[d.pos]
		if !d.mid {
			if c == ';' || c == '>' {
				return d.endBody()
			}
			if c == '\r' {
				d.pos++
				continue
			}
			// Most lines have neither an end of message nor of a comment.
			rest := d.buf[d.pos:]
			if i := bytes.IndexByte(rest, '\n'); i >= 0 &&
				bytes.IndexByte(rest[:i], ';') < 0 && bytes.IndexByte(rest[:i], '/') < 0 {
				d.pos += i + 1
				continue
			}
			d.mid, d.prev, d.quote = true, 0, quoting{}
		}
		switch {
		case c == '\n':
			d.mid = false
		case d.comment:
			d.comment = d.prev != '*' || c != '/'
		case d.quote.next(c):
		case c == ';':
			return d.endBody()
		case c == '*' && d.prev == '/':
			d.comment = true
			c = 0 // "/*/" does not close
		}
		d.prev = c
		d.pos++
	}

	switch {
	case d.skip:
		d.start = d.pos
	case d.pos-d.start > d.limit():
		err := newTooLongError(d.limit(), d.buf[d.start:d.start+d.limit()])
		d.start, d.skip = d.pos, true
		return nil, err
	}
	return nil, nil
}

// endBody ends the message at its terminator, which is at pos.
func (d *Decoder) endBody() ([]byte, error) {
	skipped := d.skip
	raw := d.take(d.pos + 1)
	switch {
	case skipped:
		return nil, nil
	case len(raw) > d.limit():
		return nil, newTooLongError(d.limit(), raw[:d.limit()])
	}
	return raw, nil
}
