package report

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/ocslab/ocslab/experiment/analysis"
	"github.com/ocslab/ocslab/experiment/report/chart"
	"github.com/ocslab/ocslab/experiment/runs"
)

// Options of [HTML].
type Options struct {
	// Paper is what a paper says about the same, and how far off we are; nil if the
	// experiment is not a paper's.
	Paper *Paper
}

// Paper is a comparison with published figures.
type Paper struct {
	Title  string // "Opus, figure 9c"
	Source string // authors, venue, year: what to cite
	Rows   []PaperRow
	Charts []chart.Chart
}

// PaperRow is one figure of a paper beside ours. All are texts for people.
type PaperRow struct {
	Quantity  string // "autonegotiation on, median"
	Paper     string // "about 6 s"
	Ours      string // "5.98 s ±0.02"
	Deviation string // "-0.3 %"
	Note      string // why they differ, if it is known
}

var (
	//go:embed page.html
	pageHTML string
	//go:embed page.css
	pageCSS string

	pageTemplate = template.Must(template.New("page").Parse(pageHTML))
)

// HTML writes the report of a run: one file that needs nothing else. a must be the analysis
// of r.
func HTML(w io.Writer, r *runs.Run, a *analysis.Analysis, opt Options) error {
	return newBook(r, a).page(opt).write(w)
}

func (p *page) write(w io.Writer) error {
	var b bytes.Buffer
	if err := pageTemplate.Execute(&b, p); err != nil {
		return err
	}
	_, err := w.Write(bytes.Map(printable, bytes.ToValidUTF8(b.Bytes(), []byte("\uFFFD"))))
	return err
}

// printable replaces control characters, which may be in names and texts of users.
func printable(r rune) rune {
	if r < ' ' && r != '\n' && r != '\t' {
		return utf8.RuneError
	}
	return r
}

// figures are what [SVG] knows, in the order in which they are in the report.
var figures = []struct {
	name string
	draw func(*book) chart.Chart // nil if there is nothing to draw
}{
	{"waterfall", (*book).waterfalls},
	{"stages", (*book).stages},
	{"cdf", (*book).distributions},
	{"box", (*book).boxes},
	{"heatmap", (*book).heatmaps},
	{"series", (*book).series},
	{"power", (*book).power},
}

// Figures are the names that [SVG] knows, in the order in which they are in the report.
func Figures() []string {
	var names []string
	for _, f := range figures {
		names = append(names, f.name)
	}
	return names
}

// SVG writes one figure of the report as a file of its own. It is an error if the run has
// nothing to draw it from.
func SVG(w io.Writer, r *runs.Run, a *analysis.Analysis, figure string) error {
	for _, f := range figures {
		if f.name != figure {
			continue
		}
		c := f.draw(newBook(r, a))
		if c == nil {
			return fmt.Errorf("run %s has nothing to draw the figure %s from: %s", r.Meta.ID, figure, absent[figure])
		}
		return chart.SVG(w, c)
	}
	return fmt.Errorf("there is no figure %q; there are %s", figure, strings.Join(Figures(), ", "))
}

// absent says why a figure is not there.
var absent = map[string]string{
	"waterfall": "no stage was seen in any finished point",
	"stages":    "no stage was seen in any finished point",
	"cdf":       "no stage was seen in any finished point",
	"box":       "no stage was seen in any finished point",
	"heatmap":   "nothing was seen of any pair of ports or NICs",
	"series":    "no stage was seen in any finished point",
	"power":     "no readings of power monitors were kept",
}
