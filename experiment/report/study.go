package report

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/ocslab/ocslab/experiment/report/chart"
	"github.com/ocslab/ocslab/internal/natural"
)

// Study is a comparison with a paper that is no run of reconfigurations: of a control system, or
// of a model. It holds what was found as texts, tables and charts.
type Study struct {
	Name    string // "opus-lab-job", for the footer
	Title   string
	About   string // a sentence or two
	Version string // of the program
	// Emulated says what of it was no hardware, "" if all was.
	Emulated string
	Facts    [][2]string // how it was set up: name, text
	Paper    Paper
	Sections []StudySection
}

// StudySection is one thing below another.
type StudySection struct {
	Title   string
	Text    string
	Columns []string   // of Table; the first heads the rows
	Table   [][]string // as many cells in each row as there are Columns
	Pre     string     // text as it is in a terminal
	Charts  []chart.Chart
}

// HTML writes the study as one file that needs nothing else.
func (s *Study) HTML(w io.Writer) error {
	p := &page{Title: s.Title, About: s.About, Version: s.Version, Style: styleSheet(), Defs: chart.Defs(),
		Footer: fmt.Sprintf("Written by ocslab %s, figure %s.", s.Version, s.Name)}
	if s.Emulated != "" {
		p.Notices = append(p.Notices, notice{"", "Emulated.", s.Emulated})
	}
	for _, f := range s.Facts {
		p.Facts = append(p.Facts, fact{f[0], f[1]})
	}
	if len(s.Paper.Rows)+len(s.Paper.Charts) > 0 {
		p.Sections = append(p.Sections, paper(&s.Paper))
	} else if s.Paper.Source != "" {
		p.Facts = append(p.Facts, fact{"paper", s.Paper.Source})
	}
	for i, x := range s.Sections {
		sec := &section{ID: fmt.Sprintf("section-%d", i+1), Title: x.Title}
		if x.Text != "" {
			sec.add(block{Text: x.Text})
		}
		t := &table{Caption: x.Title}
		for i, name := range x.Columns {
			t.Head = append(t.Head, studyCell(i, name))
		}
		for _, row := range x.Table {
			var cells []cell
			for i, value := range row {
				cells = append(cells, studyCell(i, value))
			}
			t.add(cells...)
		}
		sec.table(t.done("the CSV form of this study"))
		for _, c := range x.Charts {
			sec.draw("", c, chart.Title(c), "")
		}
		if x.Pre != "" {
			sec.add(block{Code: x.Pre})
		}
		p.Sections = append(p.Sections, sec)
	}
	p.Contents = p.Sections
	return p.write(w)
}

func studyCell(column int, s string) cell {
	if column == 0 {
		return text(s)
	}
	return digit(s)
}

// SVG writes one chart as a file: the one of that title, or the first if title is "".
func (s *Study) SVG(w io.Writer, title string) error {
	var titles []string
	for _, c := range s.charts() {
		if t := chart.Title(c); title == "" || title == t {
			return chart.SVG(w, c)
		} else {
			titles = append(titles, t)
		}
	}
	if len(titles) == 0 {
		return fmt.Errorf("figure %s has no charts", s.Name)
	}
	return fmt.Errorf("figure %s has no chart %q: it has %s", s.Name, title, strings.Join(titles, ", "))
}

func (s *Study) charts() []chart.Chart {
	all := append([]chart.Chart(nil), s.Paper.Charts...)
	for _, x := range s.Sections {
		all = append(all, x.Charts...)
	}
	return all
}

// CSV writes the comparison with the paper and then each table, with a line of its section's title
// and an empty line between them.
func (s *Study) CSV(w io.Writer) error {
	out := csv.NewWriter(w)
	rows := [][]string{{"quantity", "paper", "here", "deviation", "note"}}
	for _, r := range s.Paper.Rows {
		rows = append(rows, []string{r.Quantity, r.Paper, r.Ours, r.Deviation, r.Note})
	}
	for _, x := range s.Sections {
		if len(x.Table) > 0 {
			rows = append(rows, nil, []string{x.Title}, x.Columns)
			rows = append(rows, x.Table...)
		}
	}
	if err := out.WriteAll(rows); err != nil {
		return err
	}
	return out.Error()
}

// Text writes the study for a terminal: the comparison, tables and what is text already.
func (s *Study) Text(w io.Writer) error {
	var b bytes.Buffer
	line := func(format string, args ...any) {
		fmt.Fprintln(&b, natural.Wrap(fmt.Sprintf(format, args...), terminal, ""))
	}
	line("%s\n%s", s.Title, s.About)
	if s.Emulated != "" {
		line("Emulated. %s", s.Emulated)
	}
	for _, f := range s.Facts {
		line("%s: %s", f[0], f[1])
	}
	rows := [][]string{}
	var notes []string
	for _, r := range s.Paper.Rows {
		mark := ""
		if r.Note != "" {
			i := slices.Index(notes, r.Note)
			if i < 0 {
				i = len(notes)
				notes = append(notes, r.Note)
			}
			mark = fmt.Sprintf("(%d)", i+1)
		}
		rows = append(rows, []string{r.Quantity, r.Paper, r.Ours, cmp.Or(r.Deviation, "-"), mark})
	}
	if len(rows) > 0 {
		line("\n%s", s.Paper.Title)
	}
	aligned(&b, []string{"", "paper", "here", "deviation", ""}, rows)
	for i, n := range notes {
		line("(%d) %s", i+1, n)
	}
	for _, x := range s.Sections {
		line("\n%s", x.Title)
		if x.Text != "" {
			line("%s", x.Text)
		}
		shown := x.Table[:min(len(x.Table), textRows)]
		aligned(&b, x.Columns, shown)
		if more := len(x.Table) - len(shown); more > 0 {
			line("  %d more rows are not shown; all are in the CSV form", more)
		}
		if x.Pre != "" {
			line("%s", strings.TrimRight(x.Pre, "\n"))
		}
	}
	_, err := w.Write(bytes.Map(printable, b.Bytes()))
	return err
}

// terminal is how wide text is at most, and textRows how many rows of a table are shown there.
const (
	terminal = 100
	textRows = 40
)

// aligned writes rows in columns, two blanks between them: the first to the left, all others to the right. Where that is
// wider than a terminal, the words of the head stand below each other.
func aligned(w io.Writer, head []string, rows [][]string) {
	if len(rows) == 0 {
		return
	}
	width := make([]int, len(head))
	measure := func(row []string) {
		for i, c := range row {
			if i < len(width) {
				width[i] = max(width[i], utf8.RuneCountInString(c))
			}
		}
	}
	for _, r := range rows {
		measure(r)
	}
	heads := [][]string{head}
	total := 0
	for i, c := range head {
		total += 2 + max(width[i], utf8.RuneCountInString(c))
	}
	if total > terminal {
		heads = stacked(head, width)
	}
	for _, h := range heads {
		measure(h)
	}
	for _, row := range append(heads, rows...) {
		line := ""
		for i, c := range row {
			if i >= len(width) {
				break
			}
			pad := strings.Repeat(" ", width[i]-utf8.RuneCountInString(c))
			if i == 0 {
				line += "  " + c + pad
			} else {
				line += "  " + pad + c
			}
		}
		fmt.Fprintln(w, strings.TrimRight(line, " "))
	}
}

// stacked breaks the cells of a head into lines about as wide as their columns, the last at the bottom.
func stacked(head []string, width []int) [][]string {
	var cells [][]string
	lines := 0
	for i, c := range head {
		longest := width[i]
		for _, word := range strings.Fields(c) {
			longest = max(longest, utf8.RuneCountInString(word))
		}
		cells = append(cells, strings.Split(natural.Wrap(c, longest, ""), "\n"))
		lines = max(lines, len(cells[i]))
	}
	out := make([][]string, lines)
	for l := range out {
		out[l] = make([]string, len(head))
		for i, c := range cells {
			if at := l - (lines - len(c)); at >= 0 {
				out[l][i] = c[at]
			}
		}
	}
	return out
}
