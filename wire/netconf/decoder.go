package netconf

import (
	"bytes"
	"fmt"
)

// DefaultMaxMessage is the longest message, in bytes without framing, that a
// [Decoder] accepts by default.
const DefaultMaxMessage = 16 << 20

// A FramingError is a stream that does not follow RFC 6242, or a message that
// is too long. A stream cannot be trusted after that, so it is final.
type FramingError struct {
	Offset  int64  // of the offending byte in the stream, counted from 0; of a message that is too long, its first or that of the chunk too many
	Excerpt []byte // some bytes of the stream from there on
	Msg     string // one clause, without position
}

func (e *FramingError) Error() string {
	return fmt.Sprintf("netconf: %s at byte %d of the stream, at %q; close the session, as nothing behind that can be made out", e.Msg, e.Offset, e.Excerpt)
}

// A Decoder cuts a byte stream into messages. The zero value expects
// [EndOfMessage] framing, as every session begins. It is not safe for
// concurrent use.
type Decoder struct {
	// MaxMessage is the longest message accepted, in bytes without framing; 0
	// or less means DefaultMaxMessage. Set it before the first Feed.
	MaxMessage int

	framing Framing
	lenient bool // framing has just become Chunked: white space may precede the first chunk
	err     *FramingError

	// buf[start:end] is what has been put together of the current message from
	// chunks, and buf[pos:] is what has not been used. Without chunks there is
	// no end of message before buf[scan].
	buf                   []byte
	start, end, pos, scan int
	base                  int64 // buf[pos] is byte base+pos of the stream
	left                  int   // bytes to come of the current chunk
	chunks                bool  // the current message has a chunk
}

// SetFraming makes d expect framing f behind the last message that Next has
// returned. It is meant to be called then, before another call of Next.
//
// White space between the last message with [EndOfMessage] and the first chunk
// is skipped: some peers send a line end behind every delimiter.
func (d *Decoder) SetFraming(f Framing) {
	d.lenient = f == Chunked && d.framing == EndOfMessage
	d.framing = f
}

// Feed appends a copy of p to the stream. Messages that Next has returned
// become invalid. Call Next until it has no more before the next Feed,
// otherwise the buffer grows without limit.
func (d *Decoder) Feed(p []byte) {
	const keep = 1 << 20 // of a buffer that is empty again
	switch used := d.start + d.pos - d.end; {
	case d.err != nil:
		return
	case used == len(d.buf) && cap(d.buf) > keep:
		d.base += int64(d.pos)
		d.buf = nil
		d.next(0)
	case used > len(d.buf)/2:
		n := copy(d.buf, d.buf[d.start:d.end])
		n += copy(d.buf[n:], d.buf[d.pos:])
		d.buf = d.buf[:n]
		d.base += int64(used)
		d.start, d.end, d.pos, d.scan = 0, d.end-d.start, d.pos-used, d.scan-used
	}
	d.buf = append(d.buf, p...)
}

// Next returns the next complete message without its framing, valid until the
// next Feed. When ok is false, more input is needed, or err tells why no more
// will come: a [*FramingError], which all further calls repeat.
func (d *Decoder) Next() (msg []byte, ok bool, err error) {
	if d.err == nil {
		if d.framing == Chunked {
			msg, ok = d.nextChunked()
		} else {
			msg, ok = d.nextEndOfMessage()
		}
	}
	if d.err != nil {
		return nil, false, d.err
	}
	return msg, ok, nil
}

// Pending reports whether a message has begun and is not complete. It is meant
// to be asked after Next has run out of messages. White space behind a message
// is not the beginning of one with [EndOfMessage].
func (d *Decoder) Pending() bool {
	rest := d.buf[d.pos:]
	if d.framing == EndOfMessage || d.lenient {
		rest = bytes.TrimLeft(rest, whitespace)
	}
	return d.chunks || len(rest) > 0
}

func (d *Decoder) limit() int {
	if d.MaxMessage > 0 {
		return d.MaxMessage
	}
	return DefaultMaxMessage
}

func (d *Decoder) nextEndOfMessage() (msg []byte, ok bool) {
	n := bytes.Index(d.buf[d.scan:], []byte(endOfMessage))
	end := d.scan + n
	if n < 0 {
		// The delimiter may be there in part.
		end = max(len(d.buf)-len(endOfMessage)+1, d.scan)
		d.scan = end
	}
	switch {
	case end-d.pos > d.limit():
		d.tooLong()
		return nil, false
	case n < 0:
		return nil, false
	}
	msg = d.buf[d.pos:end:end]
	d.next(end + len(endOfMessage))
	return msg, true
}

// next makes d ready for a message that begins at p.
func (d *Decoder) next(p int) {
	d.start, d.end, d.pos, d.scan = p, p, p, p
	d.chunks = false
}

func (d *Decoder) nextChunked() (msg []byte, ok bool) {
	for d.pos < len(d.buf) {
		if d.left > 0 {
			n := min(d.left, len(d.buf)-d.pos)
			if d.end != d.pos {
				copy(d.buf[d.end:], d.buf[d.pos:d.pos+n])
			}
			d.end += n
			d.pos += n
			d.left -= n
			continue
		}
		if d.lenient && d.skipSpace() {
			continue
		}
		size, n, last := d.header()
		switch {
		case d.err != nil || n == 0:
			return nil, false
		case last:
			msg = d.buf[d.start:d.end:d.end]
			d.next(d.pos + n)
			return msg, true
		case size > uint64(d.limit()-(d.end-d.start)):
			d.tooLong()
			return nil, false
		}
		d.lenient = false
		if !d.chunks {
			d.next(d.pos + n) // the first chunk stays where it is
			d.chunks = true
		} else {
			d.pos += n
		}
		d.left = int(size)
	}
	return nil, false
}

// skipSpace drops one byte of white space that is not the first of a chunk,
// and reports whether it did.
func (d *Decoder) skipSpace() bool {
	rest := d.buf[d.pos:]
	if !isSpace(rest[0]) || rest[0] == '\n' && (len(rest) == 1 || rest[1] == '#') {
		return false
	}
	d.next(d.pos + 1)
	return true
}

// header reads the header at d.pos: that of a chunk of the given size or, if
// last is set, the end of the chunks. It is n bytes long; 0 if it is not
// complete.
func (d *Decoder) header() (size uint64, n int, last bool) {
	h := d.buf[d.pos:]
	for i, c := range h {
		switch {
		case i == 0 && c != '\n', i == 1 && c != '#':
			d.fail(i, `a chunk must begin with a line end and "#"`)
			return 0, 0, false
		case i < 2:
		case i == 2 && c == '#':
			last = true
		case i == 3 && last && c == '\n':
			if !d.chunks {
				d.fail(2, "a message without any chunk ends")
			}
			return 0, 4, true
		case last:
			d.fail(i, `"##" must be followed by a line end`)
			return 0, 0, false
		case i == 2 && (c < '1' || c > '9'):
			d.fail(i, "the size of a chunk must be a number without leading zeros")
			return 0, 0, false
		case c >= '0' && c <= '9':
			if size = 10*size + uint64(c-'0'); size > maxChunk {
				d.fail(2, "a chunk is larger than 4294967295 bytes")
				return 0, 0, false
			}
		case c == '\n':
			return size, i + 1, false
		default:
			d.fail(i, "the size of a chunk must be followed by a line end")
			return 0, 0, false
		}
	}
	return 0, 0, false
}

const excerptLen = 32

// fail ends decoding for what is i bytes behind pos.
func (d *Decoder) fail(i int, msg string) {
	at := d.pos + i
	d.err = &FramingError{
		Offset:  d.base + int64(at),
		Excerpt: bytes.Clone(d.buf[at:min(at+excerptLen, len(d.buf))]),
		Msg:     msg,
	}
	d.buf = nil
	d.next(0)
}

func (d *Decoder) tooLong() {
	d.fail(0, fmt.Sprintf("a message is longer than %d bytes", d.limit()))
}
