package tl1

import (
	"bytes"
	"strings"
)

// A Field is one field of a command, as written.
type Field struct {
	// Raw is the text on the wire, with quotes, escapes and blanks.
	Raw string
	// Offset is the position of the first character of the field in the
	// command, counted from 1. For an empty field it is the position of the
	// character that ends it: a colon, a comma in a block, or the terminator.
	// For a field the command does not have it is the position just behind
	// the command.
	//
	// This is the number Polatis switches put into "Parse error at offset
	// <n> in command", as far as public test suites show.
	Offset int
}

// Text returns the value of the field: blanks around it are dropped, quotes
// removed and escapes resolved.
func (f Field) Text() string { return Unquote(strings.Trim(f.Raw, whitespace)) }

// A Param is one comma-separated parameter of a block.
type Param struct {
	// Name is the keyword in upper case for a name-defined parameter
	// (NAME=VALUE), and "" for a position-defined one.
	Name string
	// Value is what follows the '=', or the whole parameter. Raw is needed
	// for a value that is a list of quoted strings, see [ParseList].
	Value Field
}

// A Block is one payload block of a command.
type Block struct {
	Field
	// Params are the parameters, split at commas outside quotes and outside
	// balanced parentheses. An empty block has none.
	Params []Param
}

// Value returns the text of the first parameter called name, in any case, and
// whether there is one.
func (b Block) Value(name string) (string, bool) {
	for _, p := range b.Params {
		if p.Name != "" && strings.EqualFold(p.Name, name) {
			return p.Value.Text(), true
		}
	}
	return "", false
}

// A Command is a parsed input message.
type Command struct {
	// Code is the command code in upper case without blanks, such as
	// "ENT-PATCH".
	Code string
	// TID is the target, AID the access identifier, CTAG the correlation
	// tag and GB the general block.
	TID, AID, CTAG, GB Field
	// Blocks are the payload blocks behind GB.
	Blocks []Block
	// Raw is the command without leading blanks and without the terminator.
	Raw string
}

// Block returns c.Blocks[i], or the zero Block if there is none. Counting
// starts at 0, whereas TL1 error texts call the same block "block 1".
func (c *Command) Block(i int) Block {
	if i < 0 || i >= len(c.Blocks) {
		return Block{}
	}
	return c.Blocks[i]
}

// ParseCommand parses one command, with or without the terminating semicolon.
// Blanks and line ends before the command and behind the semicolon are
// ignored, and line ends inside it count as blanks. Trailing fields may be
// missing, as in "RTRV-HDR;".
//
// The error is a [*SyntaxError] for the first thing wrong: no command code, a
// character that cannot be part of one, a quoted string that is not closed on
// its line, or text behind the semicolon. The Command then still holds all
// that could be made out, so that a reply can carry the CTAG.
func ParseCommand(text []byte) (Command, error) {
	s := strings.TrimLeft(string(text), whitespace)
	fields, end, err := splitFields(s)
	c := Command{Raw: s[:end]}

	code := fields[0].Raw
	c.Code = strings.ToUpper(stripper.Replace(code))
	if i := badCodeByte(code); i >= 0 {
		err = &SyntaxError{Offset: i + 1, Text: s, Msg: "invalid character in the command code"}
	} else if c.Code == "" {
		err = &SyntaxError{Offset: 1, Text: s, Msg: "the command code is missing"}
	}

	head := [...]*Field{&c.TID, &c.AID, &c.CTAG, &c.GB}
	for i, f := range head {
		*f = Field{Offset: end + 1}
		if i+1 < len(fields) {
			*f = fields[i+1]
		}
	}
	if n := len(head) + 1; len(fields) > n {
		c.Blocks = make([]Block, 0, len(fields)-n)
		for _, f := range fields[n:] {
			c.Blocks = append(c.Blocks, parseBlock(f))
		}
	}
	if err != nil {
		return c, err
	}
	return c, nil
}

var stripper = strings.NewReplacer(" ", "", "\t", "", "\r", "", "\n", "")

// badCodeByte returns the index of the first byte that cannot be part of a
// command code, or -1. Switches accept blanks ("ACT - USER").
func badCodeByte(s string) int {
	return strings.IndexFunc(s, func(r rune) bool {
		return r >= 0x80 || !isAlnum(byte(r)) && !strings.ContainsRune("-_./"+whitespace, r)
	})
}

// splitFields cuts s at the colons outside quotes, up to the first semicolon
// outside quotes, and returns the index where the command ends.
func splitFields(s string) (fields []Field, end int, err *SyntaxError) {
	var (
		q     quoting
		first int // start of the current field
		quote int // start of the current quoted string
	)
	fields = make([]Field, 0, 8)
	unclosed := func() {
		if err == nil {
			err = &SyntaxError{Offset: quote + 1, Text: s, Msg: "the quoted string is not closed"}
		}
	}
	for end = 0; end < len(s); end++ {
		wasOpen := q.open
		if q.next(s[end]) {
			if !wasOpen {
				quote = end
			}
			continue
		}
		if wasOpen { // a line end inside a string
			unclosed()
		}
		if s[end] == ':' {
			fields = append(fields, Field{s[first:end], first + 1})
			first = end + 1
		} else if s[end] == ';' {
			break
		}
	}
	if q.open {
		unclosed()
	}
	fields = append(fields, Field{s[first:end], first + 1})
	if end < len(s) && err == nil {
		rest := s[end+1:]
		if more := strings.TrimLeft(rest, whitespace); more != "" {
			err = &SyntaxError{Offset: len(s) - len(more) + 1, Text: s, Msg: "there is text behind the terminator"}
		}
	}
	return fields, end, err
}

func parseBlock(f Field) Block {
	b := Block{Field: f}
	if f.Raw == "" {
		return b
	}
	params, balanced := splitParams(f, true)
	if !balanced {
		// A lone parenthesis, in a password say, groups nothing.
		params, _ = splitParams(f, false)
	}
	b.Params = params
	return b
}

// splitParams cuts a block at the commas outside quotes and, if group is set,
// outside parentheses, and reports whether all parentheses were closed.
func splitParams(f Field, group bool) (params []Param, balanced bool) {
	var (
		q     quoting
		depth int
		first int  // start of the current parameter
		equal = -1 // first '=' in it
	)
	flush := func(end int) {
		p := Param{Value: Field{f.Raw[first:end], f.Offset + first}}
		if equal >= 0 {
			p.Name = strings.ToUpper(strings.Trim(f.Raw[first:equal], whitespace))
			p.Value = Field{f.Raw[equal+1 : end], f.Offset + equal + 1}
		}
		params = append(params, p)
		first, equal = end+1, -1
	}
	for i := range len(f.Raw) {
		c := f.Raw[i]
		if q.next(c) {
			continue
		}
		switch {
		case c == '(' && group:
			depth++
		case c == ')' && depth > 0:
			depth--
		case c == ',' && depth == 0:
			flush(i)
		case c == '=' && depth == 0 && equal < 0:
			equal = i
		}
	}
	flush(len(f.Raw))
	return params, depth == 0
}

// AppendCommand appends a command to dst and returns the extended slice. All
// arguments are taken as they are: use [Quote] for free text. The general
// block is left empty, and the colon before it is always written:
//
//	ENT-PATCH::1,17:4:;
//	RTRV-EQPT::SYSTEM:3:::PARAMETER=SIZE;
func AppendCommand(dst []byte, code, tid, aid, ctag string, blocks ...string) []byte {
	dst = append(dst, code...)
	for _, f := range [...]string{tid, aid, ctag} {
		dst = append(dst, ':')
		dst = append(dst, f...)
	}
	dst = append(dst, ':')
	for _, b := range blocks {
		dst = append(dst, ':')
		dst = append(dst, b...)
	}
	return append(dst, ';')
}

// DefaultMaxCommand is the longest command, in bytes without the terminator,
// that a [CommandDecoder] accepts by default. It leaves room for one bulk
// command that names every port of the largest switches.
const DefaultMaxCommand = 64 << 10

// A CommandDecoder cuts a byte stream into commands. The zero value is ready
// for use. It is not safe for concurrent use.
type CommandDecoder struct {
	// MaxLen is the longest command accepted, in bytes without the
	// terminator; 0 or less means DefaultMaxCommand. Set it before the first
	// Feed.
	MaxLen int

	buf   []byte
	start int     // first byte of the current command
	pos   int     // first byte not looked at
	quote quoting // state at pos
	skip  bool    // the command is too long and has been reported
}

// Feed appends a copy of p to the stream. Call Next until it has no more
// before the next Feed, otherwise the buffer grows without limit.
func (d *CommandDecoder) Feed(p []byte) {
	if d.start > len(d.buf)/2 {
		d.buf = append(d.buf[:0], d.buf[d.start:]...)
		d.pos -= d.start
		d.start = 0
	}
	d.buf = append(d.buf, p...)
}

// Next returns the next complete command without its terminator and without
// blanks and line ends before it, to be given to [ParseCommand]. It is valid
// until the next Feed. A lone semicolon is an empty command.
//
// When ok is false, more input is needed. The only error is a [*TooLongError];
// ok is true then, the command is dropped up to its terminator, and decoding
// goes on with the one that follows.
func (d *CommandDecoder) Next() (raw []byte, ok bool, err error) {
	limit := d.MaxLen
	if limit <= 0 {
		limit = DefaultMaxCommand
	}
	for d.pos < len(d.buf) {
		c := d.buf[d.pos]
		d.pos++
		if d.start == d.pos-1 && !d.skip && (isBlank(c) || c == '\n') {
			d.start = d.pos
			continue
		}
		end := !d.quote.next(c) && c == ';'
		switch {
		case end && d.skip:
			d.start, d.skip = d.pos, false
		case end:
			raw = d.buf[d.start : d.pos-1]
			d.start = d.pos
			return raw, true, nil
		case !d.skip && d.pos-d.start > limit:
			d.skip = true
			return nil, true, newTooLongError(limit, d.buf[d.start:d.start+limit])
		}
	}
	if d.skip {
		d.start = d.pos
	}
	return nil, false, nil
}

// Pending reports whether a command has begun and is not complete. It is
// meant to be asked after Next has run out of commands.
func (d *CommandDecoder) Pending() bool {
	return d.skip || len(bytes.TrimLeft(d.buf[d.start:], whitespace)) > 0
}
