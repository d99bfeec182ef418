package scpi

import "bytes"

// Longest lines that decoders accept by default, in bytes without the end.
const (
	DefaultMaxLine  = 64 << 10
	DefaultMaxReply = 1 << 20
)

// A Decoder cuts what a device receives into program messages. The zero value is
// ready for use. It is not safe for concurrent use.
type Decoder struct {
	// MaxLen is the longest line accepted, in bytes without its end; 0 or less
	// means DefaultMaxLine. Set it before the first Feed.
	MaxLen int

	lines splitter
}

// Feed appends a copy of p to the stream. Call Next until it has no more
// before the next Feed, otherwise the buffer grows without limit.
func (d *Decoder) Feed(p []byte) { d.lines.feed(p) }

// Next returns the next line without its end, valid until the next Feed. When
// ok is false, more input is needed. Lines with nothing but blanks are left out.
//
// An error is a [*TooLongError]. Then line is nil, ok is true, and decoding goes
// on behind the next line end, be it in a string or not.
func (d *Decoder) Next() (line []byte, ok bool, err error) {
	for {
		line, ok, err = d.lines.next(orDefault(d.MaxLen, DefaultMaxLine))
		if !ok || err != nil || !blank(line) {
			return line, ok, err
		}
	}
}

// A ReplyDecoder cuts what a device sends into replies. The zero value is ready
// for use. It is not safe for concurrent use.
type ReplyDecoder struct {
	// MaxLen is the longest reply accepted, in bytes without its end; 0 or less
	// means DefaultMaxReply. Set it before the first Feed.
	MaxLen int

	lines splitter
}

// Feed is [Decoder.Feed].
func (d *ReplyDecoder) Feed(p []byte) {
	d.lines.scan.plain = true
	d.lines.feed(p)
}

// Next is [Decoder.Next], but empty lines are replies, too. A reply that ends
// with CR is complete before it is known whether LF follows. Only double quotes
// make strings.
func (d *ReplyDecoder) Next() (reply []byte, ok bool, err error) {
	return d.lines.next(orDefault(d.MaxLen, DefaultMaxReply))
}

// Pending reports whether a part of a reply has come. It is meant to be asked
// after Next has run out of replies.
func (d *ReplyDecoder) Pending() bool {
	l := &d.lines
	return l.skip || !blank(l.buf[l.start:])
}

func orDefault(n, def int) int {
	if n > 0 {
		return n
	}
	return def
}

func blank(line []byte) bool {
	return !bytes.ContainsFunc(line, func(c rune) bool { return c > ' ' })
}

// splitter cuts a stream at line ends.
type splitter struct {
	buf   []byte
	start int // first byte of the current line
	pos   int // first byte not looked at
	scan  scan
	cr    bool // the last line ended with CR: LF belongs to it
	skip  bool // the line is too long and has been reported
}

func (l *splitter) feed(p []byte) {
	if l.start > len(l.buf)/2 || l.start == len(l.buf) {
		l.buf = append(l.buf[:0], l.buf[l.start:]...)
		l.pos -= l.start
		l.start = 0
	}
	l.buf = append(l.buf, p...)
}

func (l *splitter) next(limit int) (line []byte, ok bool, err error) {
	for l.pos < len(l.buf) {
		c := l.buf[l.pos]
		if l.cr {
			l.cr = false
			if c == '\n' {
				l.pos++
				l.start = l.pos
				continue
			}
		}
		if l.skip {
			l.pos++
			l.start = l.pos
			if c == '\n' || c == '\r' {
				l.end(c)
			}
			continue
		}
		end := !l.scan.inside(c) && (c == '\n' || c == '\r')
		if n := l.pos - l.start; end && n <= limit {
			line = l.buf[l.start:l.pos]
			l.pos++
			l.end(c)
			return line, true, nil
		} else if end || n+l.scan.left >= limit {
			err = newTooLongError(limit, l.buf[l.start:l.pos+1])
			// The byte may be a line end, in a string or not: look at it again.
			l.skip, l.start = true, l.pos
			return nil, true, err
		}
		l.pos++
	}
	return nil, false, nil
}

// end begins a new line behind pos.
func (l *splitter) end(c byte) {
	plain := l.scan.plain
	l.start, l.scan, l.skip, l.cr = l.pos, scan{plain: plain}, false, c == '\r'
}
