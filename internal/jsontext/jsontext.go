// Package jsontext writes JSON strings where package json would be too slow.
package jsontext

import "unicode/utf8"

// Plain reports whether a byte alone stands for itself in a JSON string.
func Plain(c byte) bool { return plain[c] }

var plain = func() (is [256]bool) {
	for c := ' '; c < utf8.RuneSelf; c++ {
		is[c] = c != '"' && c != '\\'
	}
	return is
}()

// Append appends s as a JSON string, just as package json writes it without HTML escapes: what
// is not UTF-8 becomes U+FFFD. It does not allocate beyond b.
func Append(b []byte, s string) []byte {
	b = append(b, '"')
	from := 0 // of what is not yet appended
	for i := 0; i < len(s); {
		c := s[i]
		if plain[c] {
			i++
			continue
		}
		r, size := rune(c), 1
		if c >= utf8.RuneSelf {
			r, size = utf8.DecodeRuneInString(s[i:])
			if (r != utf8.RuneError || size > 1) && r != '\u2028' && r != '\u2029' {
				i += size
				continue
			}
		}
		b = append(b, s[from:i]...)
		switch r {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\b':
			b = append(b, `\b`...)
		case '\f':
			b = append(b, `\f`...)
		case '\n':
			b = append(b, `\n`...)
		case '\r':
			b = append(b, `\r`...)
		case '\t':
			b = append(b, `\t`...)
		default:
			const digits = "0123456789abcdef"
			b = append(b, '\\', 'u', digits[r>>12&15], digits[r>>8&15], digits[r>>4&15], digits[r&15])
		}
		i += size
		from = i
	}
	b = append(b, s[from:]...)
	return append(b, '"')
}
