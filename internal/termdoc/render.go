package termdoc

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/mattn/go-runewidth"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	east "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"
)

// Options say how a document is shown.
type Options struct {
	Width int  // columns; 0 is 80, and fewer than 20 count as 20
	Color bool // escape sequences in place of marks
}

// Render returns the document as lines, each ended by a newline. Only what cannot be broken
// is wider than the width: code, and words such as addresses outside of tables.
func Render(md []byte, opt Options) string {
	if opt.Width == 0 {
		opt.Width = 80
	}
	r := renderer{src: md, color: opt.Color}
	doc := goldmark.New(goldmark.WithExtensions(extension.Table)).Parser().Parse(text.NewReader(md))
	lines := r.blocks(doc, max(opt.Width, 20))
	if len(lines) == 0 {
		return ""
	}
	for i, l := range lines {
		lines[i] = strings.TrimRight(l, " ")
	}
	return strings.Join(lines, "\n") + "\n"
}

// narrow is the least width of what is within lists and quotations, however deep.
const narrow = 10

type renderer struct {
	src   []byte
	color bool
}

// blocks returns the lines of what is in a node, with an empty line between two blocks.
func (r *renderer) blocks(parent ast.Node, width int) []string {
	var lines []string
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		b := r.block(n, width)
		if len(b) == 0 {
			continue
		}
		if len(lines) > 0 && !tight(parent) {
			lines = append(lines, "")
		}
		lines = append(lines, b...)
	}
	return lines
}

// tight reports whether blocks follow each other without an empty line.
func tight(n ast.Node) bool {
	if item, ok := n.(*ast.ListItem); ok {
		n = item.Parent()
	}
	list, ok := n.(*ast.List)
	return ok && list.IsTight
}

func (r *renderer) block(n ast.Node, width int) []string {
	switch n := n.(type) {
	case *ast.Heading:
		return r.heading(n, width)
	case *ast.List:
		return r.list(n, width)
	case *ast.Blockquote:
		return indent(r.blocks(n, max(width-2, narrow)), "| ", "| ")
	case *ast.ThematicBreak:
		return []string{strings.Repeat("-", min(width, 20))}
	case *ast.CodeBlock, *ast.FencedCodeBlock, *ast.HTMLBlock:
		var b strings.Builder
		for _, s := range n.Lines().Sliced(0, n.Lines().Len()) {
			b.Write(s.Value(r.src))
		}
		var lines []string
		for l := range strings.SplitSeq(strings.TrimRight(b.String(), "\n"), "\n") {
			lines = append(lines, r.paint(clean(strings.ReplaceAll(l, "\t", "    ")), code))
		}
		return indent(lines, "    ", "    ")
	case *east.Table:
		return r.table(n, width)
	case *ast.LinkReferenceDefinition:
		return nil
	}
	if n.Type() != ast.TypeBlock {
		return nil
	}
	return r.lines(wrap(r.inline(n), width, false))
}

func (r *renderer) heading(n *ast.Heading, width int) []string {
	words := r.inline(n)
	if r.color {
		for i := range words {
			for j := range words[i].pieces {
				words[i].pieces[j].style |= strong
			}
		}
		return r.lines(wrap(words, width, false))
	}
	rows := wrap(words, width, false)
	lines := r.lines(rows)
	if under := map[int]string{1: "=", 2: "-"}[n.Level]; under != "" {
		longest := 0
		for _, row := range rows {
			longest = max(longest, rowWidth(row))
		}
		lines = append(lines, strings.Repeat(under, min(longest, width)))
	}
	return lines
}

func (r *renderer) list(n *ast.List, width int) []string {
	var lines []string
	number := n.Start
	for item := n.FirstChild(); item != nil; item = item.NextSibling() {
		mark := "- "
		if n.IsOrdered() {
			mark = fmt.Sprintf("%d. ", number)
			number++
		}
		if len(lines) > 0 && !n.IsTight {
			lines = append(lines, "")
		}
		within := r.blocks(item, max(width-len(mark), narrow))
		if len(within) == 0 {
			within = []string{""}
		}
		lines = append(lines, indent(within, mark, strings.Repeat(" ", len(mark)))...)
	}
	return lines
}

// indent puts first before the first line and rest before all others.
func indent(lines []string, first, rest string) []string {
	for i, l := range lines {
		if i == 0 {
			lines[i] = first + l
		} else {
			lines[i] = rest + l
		}
	}
	return lines
}

// A style is a set of ways in which text is emphasized.
type style uint8

const (
	strong style = 1 << iota
	emphasis
	code
	link
)

type piece struct {
	text  string
	style style
}

// word is text that stands together. One that ends a line has nothing behind it there.
type word struct {
	pieces []piece
	ends   bool
}

func (w word) width() int {
	n := 0
	for _, p := range w.pieces {
		n += runewidth.StringWidth(p.text)
	}
	return n
}

// sentence collects words from pieces of text.
type sentence struct {
	words []word
	open  bool // the last word goes on
}

func (s *sentence) add(text string, as style) {
	for i, part := range strings.Split(clean(strings.ReplaceAll(text, "\n", " ")), " ") {
		if i > 0 {
			s.open = false
		}
		if part == "" {
			continue
		}
		if !s.open {
			s.words = append(s.words, word{})
			s.open = true
		}
		last := &s.words[len(s.words)-1]
		last.pieces = append(last.pieces, piece{part, as})
	}
}

func (s *sentence) end() {
	if len(s.words) > 0 {
		s.words[len(s.words)-1].ends = true
	}
	s.open = false
}

// inline returns the words of a block.
func (r *renderer) inline(n ast.Node) []word {
	var s sentence
	r.collect(n, &s, 0)
	return s.words
}

func (r *renderer) collect(parent ast.Node, s *sentence, as style) {
	marked := func(n ast.Node, mark string, with style) {
		if !r.color {
			s.add(mark, as)
		}
		r.collect(n, s, as|with)
		if !r.color {
			s.add(mark, as)
		}
	}
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		switch n := n.(type) {
		case *ast.Text:
			s.add(unescape(string(n.Segment.Value(r.src))), as)
			if n.HardLineBreak() {
				s.end()
			} else if n.SoftLineBreak() {
				s.add(" ", as)
			}
		case *ast.String:
			s.add(string(n.Value), as)
		case *ast.CodeSpan:
			var b strings.Builder
			for c := n.FirstChild(); c != nil; c = c.NextSibling() {
				if t, ok := c.(*ast.Text); ok {
					b.Write(t.Segment.Value(r.src))
				}
			}
			content := b.String()
			if !r.color {
				content = "`" + content + "`"
			}
			s.add(content, as|code)
		case *ast.Emphasis:
			if n.Level == 1 {
				marked(n, "_", emphasis)
			} else {
				marked(n, "*", strong)
			}
		case *ast.Link:
			before := len(s.words)
			r.collect(n, s, as|link)
			if to := string(n.Destination); to != plain(s.words[before:]) {
				s.add(" <"+to+">", as)
			}
		case *ast.AutoLink:
			s.add(string(n.URL(r.src)), as|link)
		case *ast.RawHTML:
			for _, seg := range n.Segments.Sliced(0, n.Segments.Len()) {
				s.add(string(seg.Value(r.src)), as)
			}
		default: // images, and what extensions add
			r.collect(n, s, as)
		}
	}
}

func plain(words []word) string {
	var list []string
	for _, w := range words {
		var b strings.Builder
		for _, p := range w.pieces {
			b.WriteString(p.text)
		}
		list = append(list, b.String())
	}
	return strings.Join(list, " ")
}

// unescape takes away backslashes before punctuation.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) && strings.IndexByte("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", s[i+1]) >= 0 {
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// unseen is what would control the terminal, and what could make a text look like another:
// other ends of lines, directions of writing, marks without width.
var unseen = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0, Hi: 0x1f, Stride: 1}, {Lo: 0x7f, Hi: 0x9f, Stride: 1}, {Lo: 0xad, Hi: 0xad, Stride: 1}, {Lo: 0x61c, Hi: 0x61c, Stride: 1},
		{Lo: 0x200b, Hi: 0x200b, Stride: 1}, {Lo: 0x200e, Hi: 0x200f, Stride: 1}, {Lo: 0x2028, Hi: 0x202e, Stride: 1},
		{Lo: 0x2060, Hi: 0x206f, Stride: 1}, {Lo: 0xfeff, Hi: 0xfeff, Stride: 1}, {Lo: 0xfff9, Hi: 0xfffd, Stride: 1},
	},
	R32:         []unicode.Range32{{Lo: 0xe0000, Hi: 0xe007f, Stride: 1}},
	LatinOffset: 3,
}

// clean leaves out what is unseen, and what is no UTF-8.
func clean(s string) string {
	return strings.Map(func(c rune) rune {
		if unicode.Is(unseen, c) {
			return -1
		}
		return c
	}, s)
}

// wrap puts words into rows of at most width columns. Words that are wider get a row of
// their own, or are broken.
func wrap(words []word, width int, broken bool) [][]word {
	var rows [][]word
	var row []word
	column := 0
	flush := func() {
		rows = append(rows, row)
		row, column = nil, 0
	}
	for _, w := range words {
		for broken && w.width() > width {
			head, tail := split(w, width)
			if len(row) > 0 {
				flush()
			}
			row = []word{head}
			flush()
			w = tail
		}
		n := w.width()
		if column > 0 && column+1+n > width {
			flush()
		}
		if column > 0 {
			column++
		}
		row = append(row, w)
		column += n
		if w.ends {
			flush()
		}
	}
	if len(row) > 0 {
		flush()
	}
	return rows
}

// split breaks a word after so many columns, and after one character at least.
func split(w word, width int) (head, tail word) {
	column := 0
	tail.ends = w.ends
	for i, p := range w.pieces {
		for at, c := range p.text {
			n := runewidth.RuneWidth(c)
			if column+n > width && column > 0 {
				if at > 0 {
					head.pieces = append(head.pieces, piece{p.text[:at], p.style})
				}
				tail.pieces = append([]piece{{p.text[at:], p.style}}, w.pieces[i+1:]...)
				return head, tail
			}
			column += n
		}
		head.pieces = append(head.pieces, p)
	}
	return head, tail
}

func rowWidth(row []word) int {
	n := max(len(row)-1, 0)
	for _, w := range row {
		n += w.width()
	}
	return n
}

func (r *renderer) lines(rows [][]word) []string {
	lines := make([]string, len(rows))
	for i, row := range rows {
		lines[i] = r.line(row)
	}
	return lines
}

func (r *renderer) line(row []word) string {
	var b strings.Builder
	for i, w := range row {
		if i > 0 {
			b.WriteByte(' ')
		}
		for _, p := range w.pieces {
			b.WriteString(r.paint(p.text, p.style))
		}
	}
	return b.String()
}

func (r *renderer) paint(text string, as style) string {
	if !r.color || as == 0 || text == "" {
		return text
	}
	var codes []string
	for _, s := range []struct {
		style style
		code  string
	}{{strong, "1"}, {emphasis, "3"}, {code, "36"}, {link, "4"}} {
		if as&s.style != 0 {
			codes = append(codes, s.code)
		}
	}
	return "\x1b[" + strings.Join(codes, ";") + "m" + text + "\x1b[0m"
}

// gap is between two columns of a table.
const gap = 2

func (r *renderer) table(t *east.Table, width int) []string {
	var rows [][][]word
	columns := 0
	for row := t.FirstChild(); row != nil; row = row.NextSibling() {
		var cells [][]word
		for cell := row.FirstChild(); cell != nil; cell = cell.NextSibling() {
			cells = append(cells, r.inline(cell))
		}
		rows = append(rows, cells)
		columns = max(columns, len(cells))
	}
	if columns == 0 {
		return nil
	}
	for i := range rows[0] {
		for j := range rows[0][i] {
			for k := range rows[0][i][j].pieces {
				rows[0][i][j].pieces[k].style |= strong
			}
		}
	}
	widths := fit(rows, columns, width-gap*(columns-1))
	if widths == nil {
		return r.records(rows, width)
	}
	return r.grid(rows, widths, t.Alignments)
}

const (
	longestWhole = 30 // longer words are broken in tables, so that names stay whole
	narrowest    = 14 // columns of text that is longer
)

// fit returns how wide columns are so that all fit, nil if they would be too narrow to read.
func fit(rows [][][]word, columns, room int) []int {
	natural, least := make([]int, columns), make([]int, columns)
	for _, row := range rows {
		for i, cell := range row {
			natural[i] = max(natural[i], rowWidth(cell))
			for _, w := range cell {
				least[i] = max(least[i], w.width())
			}
		}
	}
	total := 0
	for i, n := range natural {
		least[i] = max(min(least[i], longestWhole), min(n, narrowest))
		total += least[i]
	}
	if total > room {
		return nil
	}
	// The same limit for all columns, as far as the room goes.
	widths := least
	for limit := 1; ; limit++ {
		next, total := make([]int, columns), 0
		for i := range next {
			next[i] = max(least[i], min(natural[i], limit))
			total += next[i]
		}
		if total > room {
			return widths
		}
		if slices.Equal(next, natural) {
			return next
		}
		widths = next
	}
}

func (r *renderer) grid(rows [][][]word, widths []int, align []east.Alignment) []string {
	var lines []string
	var cells [][][][]word // of each row, of each column: its lines
	apart := false
	for _, row := range rows {
		var wrapped [][][]word
		for i, cell := range row {
			w := wrap(cell, widths[i], true)
			apart = apart || len(w) > 1
			wrapped = append(wrapped, w)
		}
		cells = append(cells, wrapped)
	}
	for k, row := range cells {
		if k > 1 && apart {
			lines = append(lines, "")
		}
		height := 1
		for _, cell := range row {
			height = max(height, len(cell))
		}
		for y := range height {
			var b strings.Builder
			for i, cell := range row {
				text, blanks := "", widths[i]
				if y < len(cell) {
					text, blanks = r.line(cell[y]), widths[i]-rowWidth(cell[y])
				}
				pad := strings.Repeat(" ", max(blanks, 0))
				if i > 0 {
					b.WriteString(strings.Repeat(" ", gap))
				}
				if i < len(align) && align[i] == east.AlignRight {
					b.WriteString(pad + text)
				} else {
					b.WriteString(text + pad)
				}
			}
			lines = append(lines, strings.TrimRight(b.String(), " "))
		}
		if k == 0 {
			var rule []string
			for _, w := range widths {
				rule = append(rule, strings.Repeat("-", w))
			}
			lines = append(lines, strings.Join(rule, strings.Repeat(" ", gap)))
		}
	}
	return lines
}

// records writes a table that is too wide row by row: the first cell, and below it the
// others with what their columns are called.
func (r *renderer) records(rows [][][]word, width int) []string {
	var lines []string
	for k, row := range rows[1:] {
		if k > 0 {
			lines = append(lines, "")
		}
		for i, cell := range row {
			switch {
			case i == 0:
				for j := range cell {
					for p := range cell[j].pieces {
						cell[j].pieces[p].style |= strong
					}
				}
				lines = append(lines, r.lines(wrap(cell, width, true))...)
			case len(cell) > 0:
				words := slices.Concat(rows[0][i], cell)
				if n := len(rows[0][i]); n > 0 {
					last := &words[n-1]
					last.pieces = append(slices.Clone(last.pieces), piece{":", 0})
				}
				lines = append(lines, indent(r.lines(wrap(words, width-4, true)), "  ", "    ")...)
			}
		}
	}
	return lines
}

// Hanging wraps text behind a lead, such as "- ", and indents the lines that follow as deep,
// or by four where the lead is long.
func Hanging(lead, text string, width int) string {
	var s sentence
	s.add(text, 0)
	lead = clean(lead)
	deep := runewidth.StringWidth(lead)
	if deep > width/3 {
		deep = 4
		var first sentence
		first.add(strings.TrimSpace(lead), 0)
		s.words = append(first.words, s.words...)
		lead = lead[:len(lead)-len(strings.TrimLeft(lead, " "))]
	}
	r := renderer{}
	rows := wrap(s.words, max(width-deep, 20), false)
	return strings.Join(indent(r.lines(rows), lead, strings.Repeat(" ", deep)), "\n") + "\n"
}
