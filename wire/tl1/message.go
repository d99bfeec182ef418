package tl1

import (
	"slices"
	"strings"
)

// A Kind tells the three sorts of output messages apart.
type Kind uint8

const (
	Response        Kind = iota // answers a command
	Autonomous                  // an alarm or event report
	Acknowledgement             // tells that a command is being worked on, or will not be
)

// String returns "response", "autonomous" or "acknowledgement".
func (k Kind) String() string {
	switch k {
	case Response:
		return "response"
	case Autonomous:
		return "autonomous"
	case Acknowledgement:
		return "acknowledgement"
	}
	return "unknown kind"
}

// A Completion is the verdict of a response.
type Completion string

// Completion codes of GR-831-CORE.
const (
	COMPLD Completion = "COMPLD" // done
	PRTL   Completion = "PRTL"   // done in part
	DENY   Completion = "DENY"   // not done
	DELAY  Completion = "DELAY"  // accepted, the result is reported later
	RTRV   Completion = "RTRV"   // retrieval goes on; rare
)

func (c Completion) valid() bool {
	switch c {
	case COMPLD, PRTL, DENY, DELAY, RTRV:
		return true
	}
	return false
}

// An Ack is the code of an acknowledgement, sent when a response takes longer
// than about two seconds.
type Ack string

// Acknowledgement codes of GR-831-CORE.
const (
	IP Ack = "IP" // in progress
	PF Ack = "PF" // printout follows
	OK Ack = "OK" // all right
	NA Ack = "NA" // no acknowledgement
	NG Ack = "NG" // no good
	RL Ack = "RL" // repeat later
)

func (a Ack) valid() bool {
	switch a {
	case IP, PF, OK, NA, NG, RL:
		return true
	}
	return false
}

// A Message is one output message, or one block of a long reply.
type Message struct {
	Kind Kind

	// SID is the name of the system, without quotes. It is "" when the header
	// shows "( nil )", as Polatis switches do until one is set.
	SID string
	// Date and Time are as on the wire: "26-11-20", "10:00:00". The device
	// clock has no zone and may be wrong.
	Date, Time string

	// CTAG is the tag of the command that a response or an acknowledgement
	// belongs to, verbatim, with quotes if it was sent with quotes.
	CTAG       string
	Completion Completion // responses only
	Ack        Ack        // acknowledgements only

	// Alarm is the severity of an autonomous message: "*C" critical, "**"
	// major, "*" minor, "A" not an alarm.
	Alarm string
	ATAG  string // sequence number of an autonomous message; need not be an integer
	Event string // autonomous messages: "REPT ALM EQPT"

	// Code is the error code of a DENY or PRTL response, "" if it has none.
	Code string
	// Text holds the data lines without the blanks around them. A line that
	// is one quoted string comes without its quotes and with escapes
	// resolved; any other line is as on the wire.
	Text []string
	// Comments holds the text of the /* */ lines, one entry per line. They
	// occur in error replies and after data.
	Comments []string

	// More is set when the block ended with '>' instead of ';': another with
	// the same CTAG follows. See [Join].
	More bool

	// Raw is the message as on the wire, from header to terminator.
	Raw []byte
}

// Err returns what went wrong as a [*Error]. It is nil for COMPLD, DELAY and
// RTRV, and for anything but a response. PRTL is always an error, with or
// without a code: part of the command was not carried out.
func (m *Message) Err() error {
	if m.Kind != Response || m.Completion != DENY && m.Completion != PRTL {
		return nil
	}
	text := m.Comments
	if len(text) == 0 && m.Completion == DENY {
		text = m.Text
	}
	return &Error{
		Code:       m.Code,
		Completion: m.Completion,
		Text:       strings.Join(text, "; "),
		CTAG:       m.CTAG,
	}
}

// Join makes one message of the blocks of a long reply: each but the last has
// More set, and all carry the same CTAG. Text, Comments and Raw are
// concatenated, header fields are those of the first block, and Completion and
// More those of the last. Code is the last one given. Join does not check that
// the blocks belong together, and does not alter them; without blocks the
// result is the zero Message.
//
// Switches that send a long reply as several complete messages, each with its
// own COMPLD and ';' (Calient), give no sign of which is the last. Deciding
// that is up to the driver.
func Join(blocks []Message) Message {
	if len(blocks) == 0 {
		return Message{}
	}
	m := blocks[0]
	m.Text, m.Comments, m.Raw = slices.Clone(m.Text), slices.Clone(m.Comments), slices.Clone(m.Raw)
	for _, b := range blocks[1:] {
		m.Text = append(m.Text, b.Text...)
		m.Comments = append(m.Comments, b.Comments...)
		m.Raw = append(m.Raw, b.Raw...)
		m.Completion, m.More = b.Completion, b.More
		if b.Code != "" {
			m.Code = b.Code
		}
	}
	return m
}

// ParseMessage parses one output message, such as [Decoder] would delimit: from
// the header line, or from the code of an acknowledgement, to the terminator.
// Blanks and line ends around it are ignored. Raw of the result shares memory
// with raw.
//
// The error is a [*MessageError].
func ParseMessage(raw []byte) (Message, error) {
	m := Message{Raw: raw}
	bad := func(msg string) (Message, error) {
		return Message{}, &MessageError{Raw: raw, Msg: msg}
	}

	// One conversion: the strings of the message are all parts of s.
	s := trimSpace(string(raw))
	line, rest := cutLine(s)

	if ack, ctag, ok := parseAck(line); ok {
		switch strings.Trim(rest, whitespace) {
		case "", "<", ">":
		default:
			return bad("text behind the acknowledgement")
		}
		m.Kind, m.Ack, m.CTAG = Acknowledgement, ack, ctag
		return m, nil
	}

	var ok bool
	if m.SID, m.Date, m.Time, ok = parseHeader(line); !ok {
		return bad("no header line")
	}
	body, ok := strings.CutSuffix(rest, ";")
	if !ok {
		body, m.More = strings.CutSuffix(rest, ">")
		if before := strings.TrimRight(body, "\r"); !m.More || before != "" && before[len(before)-1] != '\n' {
			return bad("no terminator")
		}
	}

	line, rest = cutLine(trimSpace(body))
	extra, ok := m.parseStatus(line)
	if !ok {
		return bad("no line with a completion code or an alarm code")
	}
	if !m.parseText(extra, rest) {
		return bad("text behind the terminator")
	}
	return m, nil
}

// parseStatus parses the line behind the header, which makes a message a
// response or an autonomous one, and returns what follows the completion code.
func (m *Message) parseStatus(line string) (extra string, ok bool) {
	word, rest := cutWord(line)
	switch word {
	case "M":
		m.Kind = Response
		tag, rest := cutTag(rest)
		verdict, rest := cutWord(rest)
		if verdict == "" { // no CTAG at all
			tag, verdict = "", tag
		}
		m.CTAG, m.Completion = tag, Completion(verdict)
		return rest, m.Completion.valid()
	case "A", "*", "**", "*C":
		m.Kind, m.Alarm = Autonomous, word
		m.ATAG, m.Event = cutWord(rest)
		return "", true
	}
	return "", false
}

// parseText parses what follows the completion code: extra is the rest of its
// line, and rest are the lines behind that without the terminator. It returns
// false if there is a terminator before the end.
func (m *Message) parseText(extra, rest string) bool {
	if n := strings.Count(rest, "\n"); n > 0 {
		m.Text = make([]string, 0, n)
	}
	var (
		wantsCode = m.Completion == DENY || m.Completion == PRTL
		comment   bool // inside a comment that began on an earlier line
		unclosed  bool // no comment end follows
	)
	for line := extra; line != "" || rest != ""; line, rest = cutLine(rest) {
		line = trimBlanks(line)
		switch {
		case line == "":
		case comment || strings.HasPrefix(line, "/*"):
			if !comment {
				line = line[2:]
			}
			text, behind, closed := strings.Cut(line, "*/")
			m.Comments = append(m.Comments, trimBlanks(text))
			if behind = trimBlanks(behind); behind != "" {
				m.Text = append(m.Text, Unquote(behind))
			}
			// A comment that is never closed ends with its line, lest it
			// hide the data behind it.
			if !closed && !comment && !unclosed {
				unclosed = !strings.Contains(rest, "*/")
			}
			comment = !closed && !unclosed
		case line[0] == '"':
			m.Text = append(m.Text, Unquote(line))
		case line[0] == ';':
			return false
		case wantsCode && isCode(line):
			m.Code, wantsCode = line, false
		default:
			m.Text = append(m.Text, line)
		}
	}
	if len(m.Text) == 0 {
		m.Text = nil
	}
	return true
}

// isCode reports whether a line of a reply is an error code.
func isCode(s string) bool {
	return len(s) == 4 && strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
}

// parseAck parses the first line of an acknowledgement: "PF 123".
func parseAck(line string) (ack Ack, ctag string, ok bool) {
	word, rest := cutWord(line)
	if ack = Ack(word); !ack.valid() {
		return "", "", false
	}
	ctag, rest = cutTag(rest)
	return ack, ctag, ctag != "" && rest == ""
}

// parseHeader parses a header line: system name, date and time. The name may
// have blanks without being quoted.
func parseHeader(line string) (sid, date, time string, ok bool) {
	rest, time := cutLastWord(line)
	if !isStamp(time, ':') {
		return "", "", "", false
	}
	sid, date = cutLastWord(rest)
	if !isStamp(date, '-') {
		return "", "", "", false
	}
	if sid == "( nil )" || sid == "(nil)" {
		return "", date, time, true
	}
	return Unquote(sid), date, time, true
}

// isStamp reports whether s has the form of a date or time of day: three
// numbers joined by sep, the last one with a fraction perhaps.
func isStamp(s string, sep byte) bool {
	seps := 0
	for i := range len(s) {
		switch c := s[i]; {
		case isDigit(c) || c == '.' && seps == 2:
		case c == sep && i > 0 && s[i-1] != sep:
			seps++
		default:
			return false
		}
	}
	return seps == 2 && isDigit(s[len(s)-1])
}

// cutLine cuts s behind the first line end.
func cutLine(s string) (line, rest string) {
	if i := strings.IndexByte(s, '\n'); i >= 0 {
		return s[:i], s[i+1:]
	}
	return s, ""
}

// cutWord cuts s behind its first word and trims both parts.
func cutWord(s string) (word, rest string) {
	s = trimBlanks(s)
	for i := range len(s) {
		if isBlank(s[i]) {
			return s[:i], trimBlanks(s[i:])
		}
	}
	return s, ""
}

// cutLastWord cuts s before its last word and trims both parts.
func cutLastWord(s string) (rest, word string) {
	s = trimBlanks(s)
	i := len(s)
	for i > 0 && !isBlank(s[i-1]) {
		i--
	}
	return trimBlanks(s[:i]), s[i:]
}

// cutTag is cutWord for a word that may be a quoted string with blanks.
func cutTag(s string) (tag, rest string) {
	s = trimBlanks(s)
	if s == "" || s[0] != '"' {
		return cutWord(s)
	}
	var q quoting
	for i := range len(s) {
		if q.next(s[i]); !q.open {
			if i+1 < len(s) && !isBlank(s[i+1]) {
				break
			}
			return s[:i+1], trimBlanks(s[i+1:])
		}
	}
	return cutWord(s)
}

// trimSpace is strings.Trim(s, whitespace), and trimBlanks strings.Trim(s,
// blanks), but fast enough to be used on every line of a long reply.
func trimSpace(s string) string {
	for s != "" && (isBlank(s[0]) || s[0] == '\n') {
		s = s[1:]
	}
	for s != "" && (isBlank(s[len(s)-1]) || s[len(s)-1] == '\n') {
		s = s[:len(s)-1]
	}
	return s
}

func trimBlanks(s string) string {
	for s != "" && isBlank(s[0]) {
		s = s[1:]
	}
	for s != "" && isBlank(s[len(s)-1]) {
		s = s[:len(s)-1]
	}
	return s
}

// A Style is what writers of output messages differ in. The zero Style is that
// of GR-831-CORE.
type Style struct {
	// ShortLead starts a message with CR LF instead of CR LF LF.
	ShortLead bool
	// After is written behind the terminator, such as a prompt or CR LF.
	After string
}

// AppendMessage appends m in wire form to dst and returns the extended slice.
// Raw is not used. The form is exactly
//
//	<CR><LF><LF>   SID DATE TIME<CR><LF>
//	M  CTAG COMPLD<CR><LF>
//	   "data"<CR><LF>
//	   /* comment */<CR><LF>
//	;
//
// with the code on a line of its own before the data of a DENY or PRTL, an
// alarm line ("*C 1 REPT ALM EQPT") in the place of the M line for autonomous
// messages, and '>' as the terminator if More is set. An acknowledgement is
// "PF 123<CR><LF><" without lead and header.
//
// Every line of Text is written as one quoted string. The other fields are
// taken as they are, except where they would break the framing: line ends
// become blanks, blanks around a CTAG are dropped, "*/" in a comment becomes
// "* /", and a SID that could be mistaken for something else is quoted.
func AppendMessage(dst []byte, m Message, st Style) []byte {
	if m.Kind == Acknowledgement {
		dst = append(dst, m.Ack...)
		dst = append(dst, ' ')
		dst = appendField(dst, m.CTAG, '_')
		dst = append(dst, "\r\n<"...)
		return append(dst, st.After...)
	}

	if st.ShortLead {
		dst = append(dst, "\r\n   "...)
	} else {
		dst = append(dst, "\r\n\n   "...)
	}
	dst = appendSID(dst, m.SID)
	dst = append(dst, ' ')
	dst = append(dst, m.Date...)
	dst = append(dst, ' ')
	dst = append(dst, m.Time...)
	dst = append(dst, "\r\n"...)

	if m.Kind == Autonomous {
		dst = append(dst, m.Alarm...)
		for i := len(m.Alarm); i < 2; i++ { // "A  7", "*  7", "*C 7"
			dst = append(dst, ' ')
		}
		dst = append(dst, ' ')
		dst = append(dst, m.ATAG...)
		dst = append(dst, ' ')
		dst = appendField(dst, m.Event, ' ')
	} else {
		dst = append(dst, "M  "...)
		dst = appendField(dst, m.CTAG, '_')
		dst = append(dst, ' ')
		dst = append(dst, m.Completion...)
	}
	dst = append(dst, "\r\n"...)

	if m.Code != "" && (m.Completion == DENY || m.Completion == PRTL) {
		dst = append(dst, "   "...)
		dst = append(dst, m.Code...)
		dst = append(dst, "\r\n"...)
	}
	for _, t := range m.Text {
		dst = append(dst, "   "...)
		dst = appendQuoted(dst, t)
		dst = append(dst, "\r\n"...)
	}
	for _, c := range m.Comments {
		dst = append(dst, "   /* "...)
		dst = appendWords(dst, strings.ReplaceAll(c, "*/", "* /"))
		dst = append(dst, " */\r\n"...)
	}
	if m.More {
		dst = append(dst, '>')
	} else {
		dst = append(dst, ';')
	}
	return append(dst, st.After...)
}

// appendWords appends s without blanks around it and on one line.
func appendWords(dst []byte, s string) []byte {
	s = strings.Trim(s, whitespace)
	for i := range len(s) {
		if c := s[i]; c == '\r' || c == '\n' {
			dst = append(dst, ' ')
		} else {
			dst = append(dst, c)
		}
	}
	return dst
}

// appendField is appendWords for a CTAG or the name of an event, which may hold
// quotes. Those of a peer may be ended by their line, or not at all, and would go
// on behind the field here: then they become single ones, and what would end the
// message outside of quotes a comma. Blank stands for a blank in such a field.
func appendField(dst []byte, s string, blank byte) []byte {
	from := len(dst)
	dst = appendWords(dst, s)
	if !unbalanced(s) {
		return dst
	}
	for i, c := range dst[from:] {
		switch c {
		case '"':
			dst[from+i] = '\''
		case ';', '<', '>':
			dst[from+i] = ','
		case ' ', '\t':
			dst[from+i] = blank
		}
	}
	return dst
}

// unbalanced reports whether s has a quote that does not end, or a line break.
func unbalanced(s string) bool {
	open := false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\r' || c == '\n':
			return true
		case c == '"':
			open = !open
		case c == '\\' && open:
			i++
		}
	}
	return open
}

func appendSID(dst []byte, sid string) []byte {
	switch {
	case sid == "":
		return append(dst, "( nil )"...)
	case sid == "( nil )", sid == "(nil)",
		strings.ContainsAny(sid, "\"\\;<>"), strings.Trim(sid, whitespace) != sid:
		return appendQuoted(dst, sid)
	}
	return appendWords(dst, sid)
}
