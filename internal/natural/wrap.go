package natural

import (
	"strings"
	"unicode/utf8"
)

// Wrap breaks the lines of a text at blanks, so that none has more than width characters, and puts indent before all
// of them. Lines that are short enough stay as they are. A word that is longer gets a line of its own. Blanks at the
// begin of a line stay, and what is broken off goes below them.
func Wrap(text string, width int, indent string) string {
	var b strings.Builder
	for i, line := range strings.Split(text, "\n") {
		if i > 0 {
			b.WriteByte('\n')
		}
		words := strings.TrimLeft(line, " ")
		if words == "" {
			continue
		}
		if utf8.RuneCountInString(indent+line) <= width {
			b.WriteString(indent + line)
			continue
		}
		lead := indent + line[:len(line)-len(words)]
		column := 0
		for j, word := range strings.Fields(words) {
			n := utf8.RuneCountInString(word)
			switch {
			case j == 0:
				b.WriteString(lead)
				column = utf8.RuneCountInString(lead)
			case column+1+n > width:
				b.WriteString("\n" + lead)
				column = utf8.RuneCountInString(lead)
			default:
				b.WriteByte(' ')
				column++
			}
			b.WriteString(word)
			column += n
		}
	}
	return b.String()
}
