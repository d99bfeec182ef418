package scpi

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// MaxChannels is the largest number of channels that one list may name, some of
// them again and again.
const MaxChannels = 1 << 17

// AppendChannelList appends the channel list of ports, "(@1,2,5)", or "(@)" when
// there are none (SCPI-99 volume 1, 8.3.2).
func AppendChannelList(dst []byte, ports []uint32) []byte {
	dst = append(dst, "(@"...)
	for i, p := range ports {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendUint(dst, uint64(p), 10)
	}
	return append(dst, ')')
}

// ParseChannelList reads a channel list; ranges are expanded, in the direction
// in which they are written. The error is a [*SyntaxError] with the code
// InvalidExpression, DataOutOfRange for a number beyond 32 bits, or TooMuchData
// for more than MaxChannels.
func ParseChannelList(s string) ([]uint32, error) {
	p := listParser{text: s}
	list, err := p.list()
	if err == nil && p.skip() < len(s) {
		err = p.fail(InvalidExpression, "text behind the list")
	}
	if err != nil {
		return nil, err
	}
	return list, nil
}

// ParseLists reads channel lists joined by commas, "(@1,2),(@19,18)", as a
// device gives its cross-connects. The empty text has none. MaxChannels and the
// errors are those of [ParseChannelList].
func ParseLists(s string) ([][]uint32, error) {
	p := listParser{text: s}
	var lists [][]uint32
	for p.skip() < len(s) || lists != nil {
		list, err := p.list()
		if err != nil {
			return nil, err
		}
		lists = append(lists, list)
		if p.skip() == len(s) {
			break
		}
		if s[p.pos] != ',' {
			return nil, p.fail(InvalidSeparator, "want a comma between lists")
		}
		p.pos++
	}
	return lists, nil
}

type listParser struct {
	text  string
	pos   int
	count int // channels so far
}

func (p *listParser) fail(code int, reason string) error {
	return syntaxError(code, p.pos+1, p.text, reason)
}

// skip moves over blanks, among which are line ends here.
func (p *listParser) skip() int {
	for p.pos < len(p.text) && p.text[p.pos] <= ' ' {
		p.pos++
	}
	return p.pos
}

// take moves over c, if it is next.
func (p *listParser) take(c byte) bool {
	if p.skip() < len(p.text) && p.text[p.pos] == c {
		p.pos++
		return true
	}
	return false
}

func (p *listParser) list() ([]uint32, error) {
	if !p.take('(') || p.pos == len(p.text) || p.text[p.pos] != '@' {
		return nil, p.fail(InvalidExpression, "want a channel list, (@...)")
	}
	p.pos++
	if p.take(')') {
		return []uint32{}, nil
	}
	list := make([]uint32, 0, min(1+strings.Count(p.text[p.pos:], ","), MaxChannels))
	for {
		first, err := p.number()
		if err != nil {
			return nil, err
		}
		last, at := first, p.pos
		if p.take(':') {
			if last, err = p.number(); err != nil {
				return nil, err
			}
		}
		n := int64(last) - int64(first)
		n = max(n, -n) + 1
		if n > int64(MaxChannels-p.count) {
			p.pos = at
			return nil, p.fail(TooMuchData, fmt.Sprintf("more than %d channels", MaxChannels))
		}
		p.count += int(n)
		for list = append(list, first); first != last; list = append(list, first) {
			if first < last {
				first++
			} else {
				first--
			}
		}
		if p.take(')') {
			return list, nil
		}
		if !p.take(',') {
			return nil, p.fail(InvalidExpression, "want a comma or ) behind a channel")
		}
	}
}

// number reads a channel, which has no sign.
func (p *listParser) number() (uint32, error) {
	start := p.skip()
	var n uint64
	for ; p.pos < len(p.text) && isDigit(p.text[p.pos]); p.pos++ {
		if n = 10*n + uint64(p.text[p.pos]-'0'); n > math.MaxUint32 {
			p.pos = start
			return 0, p.fail(DataOutOfRange, "a channel number of more than 32 bits")
		}
	}
	if p.pos == start {
		return 0, p.fail(InvalidExpression, "want a channel number")
	}
	return uint32(n), nil
}
