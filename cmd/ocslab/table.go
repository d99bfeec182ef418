package main

import (
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// table is text in columns. Cells of columns marked '>' in align stand to the
// right.
type table struct {
	align string
	rows  [][]string
}

func (t *table) row(cells ...string) { t.rows = append(t.rows, cells) }

// widths are those of the columns, in characters.
func (t *table) widths() []int {
	var width []int
	for _, r := range t.rows {
		for i, c := range r {
			if i == len(width) {
				width = append(width, 0)
			}
			width[i] = max(width[i], utf8.RuneCountInString(c))
		}
	}
	return width
}

// fit leaves columns out, in the order given, until the table is not wider than most; 0
// is as wide as may be. Columns are counted as they are after those before have gone.
func (t *table) fit(most int, columns ...int) {
	for _, c := range columns {
		total := -2
		for _, w := range t.widths() {
			total += w + 2
		}
		if most == 0 || total <= most {
			return
		}
		for i, r := range t.rows {
			if c < len(r) {
				t.rows[i] = slices.Delete(r, c, c+1)
			}
		}
		if c < len(t.align) {
			t.align = t.align[:c] + t.align[c+1:]
		}
	}
}

// String returns the table for the help of a command.
func (t *table) String() string {
	var b strings.Builder
	t.write(&b, "  ")
	return b.String()
}

// write writes the table with every line indented.
func (t *table) write(w io.Writer, indent string) {
	width := t.widths()
	for _, r := range t.rows {
		var b strings.Builder
		b.WriteString(indent)
		for i, c := range r {
			pad := strings.Repeat(" ", width[i]-utf8.RuneCountInString(c))
			if i > 0 {
				b.WriteString("  ")
			}
			if i < len(t.align) && t.align[i] == '>' {
				b.WriteString(pad + c)
			} else {
				b.WriteString(c + pad)
			}
		}
		io.WriteString(w, strings.TrimRight(b.String(), " ")+"\n")
	}
}
