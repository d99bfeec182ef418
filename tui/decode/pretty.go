package decode

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ocslab/ocslab/wire/netconf"
)

// Pretty writes a message for people who want to see all of it: one line for each of its lines
// with control characters shown as in Go strings, XML indented. XML loses its framing and the
// blanks between its elements; all else stays as it is.
func Pretty(message string) []string {
	text := strings.TrimSpace(message)
	if strings.HasPrefix(text, "<") || strings.HasPrefix(text, "#") || strings.HasPrefix(text, endOfMessage) {
		if root, err := netconf.Parse(unframe(message)); err == nil {
			return strings.Split(strings.TrimSpace(string(root.Append(nil, "  "))), "\n")
		}
	}
	var lines []string
	for line := range strings.Lines(message) {
		lines = append(lines, Visible(line))
	}
	return lines
}

// Visible writes a text in one line, with control characters and what is no UTF-8 shown as in
// Go strings: "\r\n", "\x00". Backslashes stay as they are.
func Visible(text string) string {
	if !hidden(text) {
		return text
	}
	const digits = "0123456789abcdef"
	var b strings.Builder
	for i, r := range text {
		switch {
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == utf8.RuneError && !strings.HasPrefix(text[i:], "\uFFFD"), r < 0x20, r == 0x7f:
			b.WriteString(`\x`)
			b.WriteByte(digits[text[i]>>4])
			b.WriteByte(digits[text[i]&15])
		case unicode.IsControl(r):
			b.WriteString(`\x`)
			b.WriteByte(digits[r>>4&15])
			b.WriteByte(digits[r&15])
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// hidden reports whether a text has something that cannot be seen.
func hidden(text string) bool {
	for _, r := range text {
		if r == utf8.RuneError || unicode.IsControl(r) {
			return true
		}
	}
	return false
}
