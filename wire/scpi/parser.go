package scpi

import (
	"fmt"
	"strings"
)

// maxMnemonic is the longest keyword (IEEE 488.2, 7.6.1.4.1).
const maxMnemonic = 12

// parser reads one unit, which is line[pos:end] at the beginning. What is between
// end and limit are blanks, unless they are part of a block.
type parser struct {
	line            string
	pos, end, limit int
}

// peek returns the byte at pos, 0 at the end.
func (p *parser) peek() byte {
	if p.pos < p.end {
		return p.line[p.pos]
	}
	return 0
}

func (p *parser) fail(code int, reason string) *SyntaxError {
	return syntaxError(code, p.pos+1, p.line, reason)
}

// unexpected refuses the byte at pos with code, or as one that can stand nowhere.
func (p *parser) unexpected(code int, want string) *SyntaxError {
	switch c := p.peek(); {
	case p.pos == p.end:
		return p.fail(code, "want "+want+", not the end")
	case c > '~', c < ' ' && !isBlank(c):
		return p.fail(InvalidCharacter, fmt.Sprintf("a byte 0x%02X", c))
	default:
		return p.fail(code, fmt.Sprintf("want %s, not %q", want, c))
	}
}

func (p *parser) blanks() {
	for p.pos < p.end && isBlank(p.line[p.pos]) {
		p.pos++
	}
}

func (p *parser) unit() Unit {
	from := p.pos
	u := Unit{Offset: from + 1}
	u.Err = p.header(&u)
	if u.Err == nil && p.pos < p.end {
		u.Params, u.Err = p.params()
	}
	u.Raw = p.line[from:p.end]
	return u
}

// header reads the header and the blanks behind it.
func (p *parser) header(u *Unit) *SyntaxError {
	switch p.peek() {
	case '*':
		u.Header.Common = true
		p.pos++
	case ':':
		u.Header.Rooted = true
		p.pos++
	}
	for {
		word, err := p.word(MnemonicTooLong, "a keyword")
		if err != nil {
			return err
		}
		u.Header.Keywords = append(u.Header.Keywords, word)
		if p.peek() != ':' || u.Header.Common {
			break
		}
		p.pos++
	}
	if p.peek() == '?' {
		u.Query = true
		p.pos++
	}
	if p.pos < p.end && !isBlank(p.peek()) {
		return p.unexpected(HeaderSeparatorError, "a blank behind the header")
	}
	p.blanks()
	return nil
}

// word reads a mnemonic.
func (p *parser) word(tooLong int, want string) (string, *SyntaxError) {
	if !isAlpha(p.peek()) {
		return "", p.unexpected(BadSyntax, want)
	}
	from := p.pos
	for p.pos < p.end && isWord(p.line[p.pos]) {
		p.pos++
	}
	if p.pos-from > maxMnemonic {
		p.pos = from
		return "", p.fail(tooLong, fmt.Sprintf("%s of more than %d characters", want, maxMnemonic))
	}
	return p.line[from:p.pos], nil
}

func (p *parser) params() (list []Param, err *SyntaxError) {
	for {
		q, err := p.param()
		if err != nil {
			return list, err
		}
		list = append(list, q)
		p.blanks()
		if p.pos == p.end {
			return list, nil
		}
		if p.peek() != ',' {
			return list, p.unexpected(InvalidSeparator, "a comma between parameters")
		}
		p.pos++
		p.blanks()
	}
}

func (p *parser) param() (Param, *SyntaxError) {
	q := Param{Offset: p.pos + 1}
	from := p.pos
	var err *SyntaxError
	switch c := p.peek(); {
	case isQuote(c):
		q.Kind, err = String, p.quoted()
	case c == '(':
		q.Kind, err = Expression, p.expression()
	case c == '#':
		q.Kind, err = p.hash()
	case isDigit(c) || c == '+' || c == '-' || c == '.':
		q.Kind, q.Suffix, err = p.number()
	default:
		_, err = p.word(CharacterDataTooLong, "a parameter")
	}
	q.Raw = p.line[from:p.pos]
	return q, err
}

// quoted moves behind a string.
func (p *parser) quoted() *SyntaxError {
	from, quote := p.pos, p.peek()
	for p.pos++; p.pos < p.end; p.pos++ {
		if p.line[p.pos] != quote {
			continue
		}
		if p.pos++; p.peek() != quote {
			return nil
		}
	}
	p.pos = from
	return p.fail(InvalidString, "a string that is not closed")
}

// expression moves behind an expression.
func (p *parser) expression() *SyntaxError {
	from, depth := p.pos, 0
	for p.pos < p.end {
		switch c := p.line[p.pos]; {
		case isQuote(c):
			if err := p.quoted(); err != nil {
				return err
			}
			continue
		case c > '~':
			return p.unexpected(InvalidExpression, "")
		case c == '(':
			depth++
		case c == ')':
			depth--
		}
		p.pos++
		if depth == 0 {
			return nil
		}
	}
	p.pos = from
	return p.fail(InvalidExpression, "a parenthesis that is not closed")
}

// hash moves behind a block or a number in another base.
func (p *parser) hash() (ParamKind, *SyntaxError) {
	from := p.pos
	p.pos++
	base := p.peek()
	p.pos++
	bad := func(code int, reason string) (ParamKind, *SyntaxError) {
		p.pos = from
		return Block, p.fail(code, reason)
	}
	switch {
	case base == '0':
		p.pos, p.end = p.limit, p.limit
		return Block, nil
	case isDigit(base):
		n, size := int(base-'0'), 0
		for range n {
			if !isDigit(p.peek()) {
				return bad(InvalidBlock, "a block without its length")
			}
			size = 10*size + int(p.peek()-'0')
			p.pos++
		}
		if p.limit-p.pos < size {
			return bad(InvalidBlock, "a block that is shorter than it says")
		}
		p.pos += size
		p.end = max(p.end, p.pos)
		return Block, nil
	}
	digits := map[byte]string{'H': "0123456789ABCDEF", 'Q': "01234567", 'B': "01"}[base&^0x20]
	start := p.pos
	for p.pos < p.end && strings.IndexByte(digits, upper(p.line[p.pos])) >= 0 {
		p.pos++
	}
	if p.pos == start {
		return bad(InvalidBlock, "want #H, #Q or #B and digits, or a block")
	}
	return NonDecimal, nil
}

func upper(c byte) byte {
	if 'a' <= c && c <= 'z' {
		return c &^ 0x20
	}
	return c
}

// number moves behind a decimal number with its suffix, or an address.
func (p *parser) number() (kind ParamKind, suffix string, err *SyntaxError) {
	from := p.pos
	if c := p.peek(); c == '+' || c == '-' {
		p.pos++
	}
	digits, dots := 0, 0
	for ; p.pos < p.end; p.pos++ {
		c := p.line[p.pos]
		if c == '.' {
			dots++
		} else if isDigit(c) {
			digits++
		} else {
			break
		}
	}
	switch {
	case dots > 1 && digits > 0 && isDigit(p.line[from]):
		return Dotted, "", nil
	case dots > 1 || digits == 0:
		return Number, "", p.unexpected(InvalidNumber, "a digit")
	}
	p.exponent()
	mantissa := p.pos
	p.blanks()
	start := p.pos
	if c := p.peek(); !isAlpha(c) && c != '/' && c != '%' {
		p.pos = mantissa
		return Number, "", nil
	}
	for p.pos < p.end && (isWord(p.peek()) || strings.IndexByte("/.-%", p.peek()) >= 0) {
		p.pos++
	}
	return Number, p.line[start:p.pos], nil
}

// exponent moves behind an exponent, if there is one.
func (p *parser) exponent() {
	from := p.pos
	p.blanks()
	if upper(p.peek()) == 'E' {
		p.pos++
		p.blanks()
		if c := p.peek(); c == '+' || c == '-' {
			p.pos++
		}
		if isDigit(p.peek()) {
			for isDigit(p.peek()) {
				p.pos++
			}
			return
		}
	}
	p.pos = from
}
