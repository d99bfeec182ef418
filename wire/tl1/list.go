package tl1

import (
	"strconv"
	"strings"
)

// An Item is a single name or a range of names in a list.
type Item struct {
	First string
	Last  string // "" for a single name
}

// ParseList parses a TL1 list: items joined by '&', where First&&Last is a
// range, as in "1&&4&7". Blanks around names are dropped and quotes removed;
// an ampersand inside quotes separates nothing. Names are not interpreted: "ALL"
// and "-10" are items like any other, and so the GR-831 forms "&-" and "&&-"
// come out as names that start with a dash.
//
// An empty or blank s gives a nil list. The error for a missing name or a range
// with three ends is a [*SyntaxError], its Offset counted from the start of s.
//
// Values for several ports use the same form (LABEL=src1&"a & b"). Give
// ParseList the Raw of such a field, whose quotes are still in place.
func ParseList(s string) ([]Item, error) {
	if strings.Trim(s, whitespace) == "" {
		return nil, nil
	}
	var (
		q     quoting
		first int
		items = make([]Item, 0, 1+strings.Count(s, "&"))
		inner bool // the name at first is the end of a range
	)
	for i := 0; i <= len(s); i++ {
		if i < len(s) && (q.next(s[i]) || s[i] != '&') {
			continue
		}
		name := strings.Trim(s[first:i], whitespace)
		if name == "" {
			return nil, &SyntaxError{Offset: i + 1, Text: s, Msg: "a name is missing in the list"}
		}
		name = Unquote(name)
		isRange := i+1 < len(s) && s[i+1] == '&'
		switch {
		case !inner:
			items = append(items, Item{First: name})
		case isRange:
			return nil, &SyntaxError{Offset: i + 1, Text: s, Msg: "the range has a third end"}
		default:
			items[len(items)-1].Last = name
		}
		inner = isRange
		if isRange {
			i++
		}
		first = i + 1
	}
	return items, nil
}

// AppendPorts appends ports as a list of single numbers, such as 1&4&7, in the
// given order and never as ranges. Use it where position matters, as in the
// pairs of ENT-PATCH.
func AppendPorts(dst []byte, ports []uint32) []byte {
	for i, p := range ports {
		if i > 0 {
			dst = append(dst, '&')
		}
		dst = strconv.AppendUint(dst, uint64(p), 10)
	}
	return dst
}

// AppendRanges appends ports in the given order, with each run of three or more
// consecutive ascending ports as a range: 1&&4&7&8.
func AppendRanges(dst []byte, ports []uint32) []byte {
	for i := 0; i < len(ports); {
		end := i + 1
		for end < len(ports) && ports[end-1] != 1<<32-1 && ports[end] == ports[end-1]+1 {
			end++
		}
		if i > 0 {
			dst = append(dst, '&')
		}
		if end-i < 3 {
			dst = AppendPorts(dst, ports[i:end])
		} else {
			dst = strconv.AppendUint(dst, uint64(ports[i]), 10)
			dst = append(dst, "&&"...)
			dst = strconv.AppendUint(dst, uint64(ports[end-1]), 10)
		}
		i = end
	}
	return dst
}
