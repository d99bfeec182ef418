package report

import (
	"bytes"
	"strings"
	"testing"

	"github.com/ocslab/ocslab/experiment/report/chart"
)

func study() *Study {
	return &Study{
		Name: "opus-test", Title: "A <study>", About: "What it is about.", Version: "v1", Emulated: "All of it.",
		Facts: [][2]string{{"protocol", "mean of 5"}},
		Paper: Paper{Title: "figure 10", Source: "the paper", Rows: []PaperRow{{"step", "10 s", "10.1 s", "+1.00 %", "a note"}, {"other", "1", "1", "", ""}}},
		Sections: []StudySection{{
			Title: "A table", Text: "Some words.", Columns: []string{"delay", "step"}, Table: [][]string{{"0 s", "10 s"}, {"1 s", "11 s"}},
			Charts: []chart.Chart{chart.Lines{Frame: chart.Frame{Title: "steps"}, Curves: []chart.Line{{Label: "here", Points: []chart.Point{{X: 0, Y: 1}, {X: 1, Y: 2}}}}}},
		}, {Title: "As it is", Pre: "a  b\n1  2\x1b[31m\n"}},
	}
}

// Ensure each form of a study has all of it, and that nothing of it is taken for markup or for a terminal's orders.
func TestStudy(t *testing.T) {
	for _, x := range []struct {
		form  string
		write func(*Study, *bytes.Buffer) error
		want  []string
	}{
		{"html", func(s *Study, b *bytes.Buffer) error { return s.HTML(b) }, []string{"A &lt;study&gt;", "Emulated.", "mean of 5", "1.00 %", "A table", "11 s", "<svg", "figure opus-test"}},
		{"csv", func(s *Study, b *bytes.Buffer) error { return s.CSV(b) }, []string{"quantity,paper,here,deviation,note\nstep,10 s,10.1 s,+1.00 %,a note\n", "A table\ndelay,step\n0 s,10 s\n1 s,11 s\n"}},
		{"svg", func(s *Study, b *bytes.Buffer) error { return s.SVG(b, "") }, []string{"<svg", "steps"}},
		{"text", func(s *Study, b *bytes.Buffer) error { return s.Text(b) }, []string{"A <study>", "step    10 s  10.1 s    +1.00 %  (1)", "(1) a note", "1 s    11 s", "a  b"}},
	} {
		var b bytes.Buffer
		if err := x.write(study(), &b); err != nil {
			t.Errorf("%s: %v", x.form, err)
		}
		for _, want := range x.want {
			if !strings.Contains(b.String(), want) {
				t.Errorf("%s: want %q in it, and it is not", x.form, want)
			}
		}
		if strings.ContainsRune(b.String(), '\x1b') {
			t.Errorf("%s has an escape character", x.form)
		}
	}
	if err := study().SVG(&bytes.Buffer{}, "none"); err == nil || !strings.Contains(err.Error(), "it has steps") {
		t.Errorf("a chart that is not there: %v", err)
	}
	if err := (&Study{Name: "bare"}).SVG(&bytes.Buffer{}, ""); err == nil {
		t.Error("a study without charts draws one")
	}
}
