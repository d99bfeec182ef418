package scpi

// isBlank reports whether c is white space of IEEE 488.2 (7.4.1.2): every
// control character but LF, and the blank.
func isBlank(c byte) bool { return c <= ' ' && c != '\n' }

func isQuote(c byte) bool { return c == '"' || c == '\'' }
func isDigit(c byte) bool { return '0' <= c && c <= '9' }
func isAlpha(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// isWord reports whether c may stand in a mnemonic, behind its first letter.
func isWord(c byte) bool { return isAlpha(c) || isDigit(c) || c == '_' }

// trim returns s without blanks around it, and how many were in front.
func trim(s string) (text string, front int) {
	for front < len(s) && isBlank(s[front]) {
		front++
	}
	end := len(s)
	for end > front && isBlank(s[end-1]) {
		end--
	}
	return s[front:end], front
}

// A scan follows quoted strings and definite blocks through a line, byte by
// byte, so that what is in them is not taken for punctuation. They begin only
// where a parameter does.
type scan struct {
	plain  bool // only double quotes make strings, as in replies
	quote  byte // of the open string; 0 outside
	closed byte // quote that was closed by the last byte, and may be one of two
	prev   byte // last byte outside
	hash   bool // '#' is at the begin of a parameter
	digits int  // of the length of a block that are to come
	length int  // read so far
	left   int  // bytes of a block to come
}

// inside takes the next byte and reports whether it belongs to a string or
// block, quotes and length included.
func (s *scan) inside(c byte) bool {
	switch {
	case s.left > 0:
		s.left--
		return true
	case s.quote != 0:
		if c == s.quote {
			s.quote, s.closed = 0, c
		}
		return true
	case s.digits > 0 && isDigit(c):
		s.length = 10*s.length + int(c-'0')
		if s.digits--; s.digits == 0 {
			s.left = s.length
		}
		return true
	case s.hash && '1' <= c && c <= '9':
		s.hash, s.digits, s.length = false, int(c-'0'), 0
		return true
	}
	s.digits = 0
	starts := isBlank(s.prev) || s.prev == ',' || s.prev == ';' || s.prev == '(' // 0 is blank
	if c == '"' || c == '\'' && !s.plain {
		if starts || c == s.closed {
			s.quote, s.closed, s.prev = c, 0, c
			return true
		}
	}
	s.hash = c == '#' && starts
	s.closed, s.prev = 0, c
	return false
}
