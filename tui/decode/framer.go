package decode

import (
	"bytes"
	"strings"
)

// MaxMessage is how many bytes of a message are kept until it is complete. One that is longer
// is given out in parts.
const MaxMessage = 1 << 20

// Framer cuts what goes one way of one session into messages. All bytes come out again, those
// between messages with the message behind them: prompts, line ends, echoes. It is not safe
// for concurrent use.
type Framer struct {
	cut  cutter
	buf  []byte
	over bool // the beginning of the message has been given out
}

// cutter finds ends of messages.
type cutter interface {
	// end returns how many bytes at the front of buf are a message, 0 when more must come.
	// The bytes from fresh on are new; over says that buf begins in mid-message.
	end(buf []byte, fresh int, over bool) int
	// last is asked when end has found no more: whether buf is a message nevertheless.
	last(buf []byte) bool
	// opens reports whether a piece begins a message, so that what was there before it is one
	// that will never be complete.
	opens(buf, piece []byte) bool
}

// New returns a Framer for a scheme of switch URLs and one direction.
func New(scheme string, sent bool) *Framer {
	f := &Framer{}
	switch language(scheme) {
	case "tl1":
		f.cut = &tl1Cutter{sent: sent}
	case "netconf":
		f.cut = xmlCutter{}
	case "ocstrx":
		f.cut = pieceCutter{}
	default:
		f.cut = &lineCutter{}
	}
	return f
}

// Add takes the next bytes and returns the messages that they complete. It keeps no part
// of p.
func (f *Framer) Add(p []byte) []string {
	if len(p) == 0 {
		return nil
	}
	var out []string
	if len(f.buf) > 0 && f.cut.opens(f.buf, p) {
		out = append(out, f.Rest())
	}
	fresh := len(f.buf)
	f.buf = append(f.buf, p...)
	at := 0
	for at < len(f.buf) {
		n := f.cut.end(f.buf[at:], fresh, f.over)
		if n == 0 {
			break
		}
		out = append(out, string(f.buf[at:at+n]))
		at += n
		fresh, f.over = 0, false
	}
	if rest := f.buf[at:]; len(rest) > 0 && f.cut.last(rest) {
		out = append(out, string(rest))
		at, f.over = len(f.buf), false
	}
	for len(f.buf)-at > MaxMessage {
		out = append(out, string(f.buf[at:at+MaxMessage]))
		at += MaxMessage
		f.over = true
	}
	f.buf = append(f.buf[:0], f.buf[at:]...)
	if cap(f.buf) > 2*MaxMessage && len(f.buf) < MaxMessage/2 {
		f.buf = bytes.Clone(f.buf)
	}
	return out
}

// Rest returns the bytes of a message that is not complete and forgets them: the session has
// ended. It is "" when there are none.
func (f *Framer) Rest() string {
	s := string(f.buf)
	f.buf, f.over = f.buf[:0], false
	if t, ok := f.cut.(*tl1Cutter); ok {
		*t = tl1Cutter{sent: t.sent}
	}
	return s
}

// pieceCutter: each piece is a message, as drivers trace the controller link.
type pieceCutter struct{}

func (pieceCutter) end(buf []byte, _ int, _ bool) int { return min(len(buf), MaxMessage) }
func (pieceCutter) last([]byte) bool                  { return false }
func (pieceCutter) opens(_, _ []byte) bool            { return false }

// lineCutter: lines that end in LF, CR LF or CR. The LF of a CR LF that comes in the piece
// behind its CR is put before the next line.
type lineCutter struct {
	cr bool // the last line was given out at its CR
}

func (c *lineCutter) end(buf []byte, fresh int, _ bool) int {
	for i := max(0, fresh-1); i < len(buf); i++ {
		switch {
		case buf[i] == '\n' && i == 0 && c.cr: // that of the line before
		case buf[i] == '\n', buf[i] == '\r' && i+1 < len(buf) && buf[i+1] != '\n':
			c.cr = false
			return i + 1
		}
	}
	return 0
}

func (c *lineCutter) last(buf []byte) bool {
	if buf[len(buf)-1] != '\r' {
		return false
	}
	c.cr = true
	return true
}

func (*lineCutter) opens(_, _ []byte) bool { return false }

// tl1Cutter: commands end with ';'. Messages end at a line that starts with ';' or, when more
// is to come, '>', at the '<' behind an acknowledgement, and at a ';' that is neither in a
// quoted string nor in a comment. Quotes do not extend over a line end.
type tl1Cutter struct {
	sent    bool
	column  int  // in the line, of the next byte
	text    bool // there was something but blanks and prompts
	blank   bool // the line has been blank so far
	quote   bool
	escape  bool
	comment bool
	before  byte
}

func (t *tl1Cutter) end(buf []byte, fresh int, _ bool) int {
	for i := fresh; i < len(buf); i++ {
		if t.ends(buf[i]) {
			*t = tl1Cutter{sent: t.sent}
			return i + 1
		}
	}
	return 0
}

func (t *tl1Cutter) last([]byte) bool { return false }

func (t *tl1Cutter) opens(_, _ []byte) bool { return false }

// ends takes the next byte and reports whether a message ends with it.
func (t *tl1Cutter) ends(c byte) bool {
	column, before := t.column, t.before
	t.column, t.before = column+1, c
	switch {
	case c == '\r' || c == '\n':
		t.column, t.blank, t.quote, t.escape = 0, true, false, false
		return false
	case c == ' ' || c == '\t' || c == 0:
		t.escape = false
		return false
	}
	blank := t.blank || column == 0
	t.blank = false
	if !t.sent && column == 0 && (c == '>' || c == '<') && !t.comment {
		return t.text // with nothing before it, a prompt
	}
	t.text = true
	switch {
	case c == ';' && blank && !t.sent:
		return true
	case t.quote:
		switch {
		case t.escape:
			t.escape = false
		case c == '\\':
			t.escape = true
		case c == '"':
			t.quote = false
		}
	case t.comment:
		t.comment = c != '/' || before != '*'
	case c == '"':
		t.quote = true
	case c == '*' && before == '/' && !t.sent:
		t.comment, t.before = true, 0
	case c == ';':
		return true
	}
	return false
}

// xmlCutter: NETCONF in either framing. A message without framing, as the driver traces what
// it receives, is complete when its root element is.
type xmlCutter struct{}

const (
	endOfMessage = "]]>]]>"
	endOfChunks  = "\n##\n"
)

func (xmlCutter) end(buf []byte, fresh int, over bool) int {
	lead := lead(buf)
	if over {
		return firstEnd(buf, max(0, fresh-len(endOfMessage)))
	}
	if n, chunked := chunks(buf, lead); chunked {
		return n
	}
	from := max(lead, fresh-len(endOfMessage)+1)
	if from > len(buf) {
		return 0
	}
	if i := bytes.Index(buf[from:], []byte(endOfMessage)); i >= 0 {
		return from + i + len(endOfMessage)
	}
	return 0
}

func (xmlCutter) last(buf []byte) bool {
	text := bytes.TrimSpace(buf[lead(buf):])
	return len(text) > 1 && text[0] == '<' && closed(text)
}

func (xmlCutter) opens(buf, piece []byte) bool {
	old := bytes.TrimSpace(buf)
	if len(old) == 0 || bytes.HasSuffix(old, []byte("?>")) || bytes.HasSuffix(old, []byte("\n")) {
		return false
	}
	if bytes.HasPrefix(piece, []byte("<?xml")) {
		return true
	}
	for _, root := range []string{"<hello", "<rpc", "<rpc-reply", "<notification"} { // and not <notification-activity
		rest, found := bytes.CutPrefix(piece, []byte(root))
		if found && len(rest) > 0 && bytes.IndexByte([]byte(" \t\r\n>"), rest[0]) >= 0 {
			return true
		}
	}
	return false
}

// lead returns how many bytes at the front of buf belong to no message: blanks, and the end
// of one that was given out without its end.
func lead(buf []byte) int {
	n := 0
	for n < len(buf) {
		switch {
		case buf[n] == ' ' || buf[n] == '\t' || buf[n] == '\r' || buf[n] == '\n':
			n++
		case bytes.HasPrefix(buf[n:], []byte(endOfMessage)) && n+len(endOfMessage) < len(buf):
			n += len(endOfMessage)
		default:
			return n
		}
	}
	return n
}

// chunks returns where a message in chunks ends, 0 when it does not yet. It reports false
// when there are no chunks.
func chunks(buf []byte, lead int) (int, bool) {
	if lead == 0 || lead >= len(buf) || buf[lead] != '#' || buf[lead-1] != '\n' {
		return 0, false
	}
	at := lead - 1
	for {
		rest := buf[at:]
		if len(rest) < len(endOfChunks) {
			return 0, true
		}
		if string(rest[:len(endOfChunks)]) == endOfChunks {
			return at + len(endOfChunks), true
		}
		size, n := chunkSize(rest)
		switch {
		case n < 0: // no header: whatever ends first
			return firstEnd(buf, 0), true
		case n == 0 || at+n+size > len(buf):
			return 0, true
		}
		at += n + size
	}
}

// chunkSize reads the header of a chunk, "\n#12\n", and returns how long it is: 0 when it is
// not complete, below 0 when it is none.
func chunkSize(p []byte) (size, n int) {
	if p[0] != '\n' || p[1] != '#' {
		return 0, -1
	}
	for i, c := range p[2:] {
		switch {
		case c == '\n' && i > 0:
			return size, i + 3
		case c < '0' || c > '9' || i > 9 || size > 1<<28:
			return 0, -1
		}
		size = 10*size + int(c-'0')
	}
	return 0, 0
}

// firstEnd returns where the first end of either framing behind from is, 0 if there is none.
func firstEnd(buf []byte, from int) int {
	best := 0
	for _, e := range []string{endOfMessage, endOfChunks} {
		if i := bytes.Index(buf[from:], []byte(e)); i >= 0 {
			if n := from + i + len(e); best == 0 || n < best {
				best = n
			}
		}
	}
	return best
}

// closed reports whether a text that begins with an element ends with the end of the same.
func closed(text []byte) bool {
	s := string(text[:min(len(text), 4096)])
	for strings.HasPrefix(s, "<?") || strings.HasPrefix(s, "<!--") {
		_, rest, found := strings.Cut(s, ">")
		if !found {
			return false
		}
		s = strings.TrimSpace(rest)
	}
	if !strings.HasPrefix(s, "<") {
		return false
	}
	i := strings.IndexAny(s, " \t\r\n/>")
	if i < 2 {
		return false
	}
	if bytes.HasSuffix(text, []byte("</"+s[1:i]+">")) {
		return true
	}
	head, _, found := strings.Cut(s, ">")
	return found && strings.HasSuffix(head, "/") && bytes.HasSuffix(text, []byte("/>")) && len(head)+1 == len(s)
}
