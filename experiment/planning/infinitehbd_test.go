package planning

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/ocslab/ocslab/experiment/report"
)

var noNumber = regexp.MustCompile(`\b(NaN|Inf)\b`)

// made makes a figure and checks what holds of all: a deviation in every row, and each form without what is no number.
func made(t *testing.T, name string, opt report.FigureOptions) (*report.Study, map[string]report.PaperRow) {
	t.Helper()
	f, err := report.FindFigure(All(), name)
	if err != nil {
		t.Fatal(err)
	}
	s, err := f.Run(t.Context(), opt)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return s, checked(t, s)
}

// checked checks a study, and returns its rows by what they are about.
func checked(t *testing.T, s *report.Study) map[string]report.PaperRow {
	t.Helper()
	name := s.Name
	rows := map[string]report.PaperRow{}
	last := ""
	for _, r := range s.Paper.Rows {
		if r.Deviation == "" || r.Paper == "" || r.Ours == "" {
			t.Errorf("%s: row %+v says too little", name, r)
		}
		if r.Ours == "-" && r.Note == "" {
			t.Errorf("%s: row %q has nothing, and does not say why", name, r.Quantity)
		}
		if strings.HasPrefix(r.Quantity, "- ") {
			rows[last+" "+r.Quantity] = r
			continue
		}
		last = r.Quantity
		rows[last] = r
	}
	for _, x := range s.Sections {
		for _, row := range x.Table {
			if len(row) != len(x.Columns) {
				t.Errorf("%s: %s: %d cells below %d columns: %q", name, x.Title, len(row), len(x.Columns), row)
			}
		}
	}
	var text, csv, html, svg bytes.Buffer
	for _, err := range []error{s.Text(&text), s.CSV(&csv), s.HTML(&html), s.SVG(&svg, "")} {
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	for _, line := range strings.Split(text.String(), "\n") {
		if n := len([]rune(line)); n > 119 {
			t.Errorf("%s: %d columns: %s", name, n, line)
		}
	}
	if noNumber.MatchString(text.String()) {
		t.Errorf("%s: %s", name, text.String())
	}
	return rows
}

// number reads what a cell begins with.
func number(t *testing.T, cell string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(strings.TrimPrefix(strings.Fields(cell)[0], "+"), 64)
	if err != nil {
		t.Fatalf("%q: %v", cell, err)
	}
	return v
}

// within checks the numbers of rows.
func within(t *testing.T, rows map[string]report.PaperRow, want map[string][2]float64) {
	t.Helper()
	for quantity, w := range want {
		r, ok := rows[quantity]
		if !ok {
			t.Errorf("no row %q", quantity)
			continue
		}
		if got := number(t, r.Ours); math.Abs(got-w[0]) > w[1] {
			t.Errorf("%s: got %s, want %g ± %g", quantity, r.Ours, w[0], w[1])
		}
	}
}

// cell returns a cell of a table.
func cell(t *testing.T, s *report.Study, title, row, column string) string {
	t.Helper()
	for _, x := range s.Sections {
		if !strings.HasPrefix(x.Title, title) {
			continue
		}
		for _, r := range x.Table {
			for i, c := range x.Columns {
				if r[0] == row && c == column && i < len(r) {
					return r[i]
				}
			}
		}
	}
	t.Fatalf("%s: no row %q with a column %q", title, row, column)
	return ""
}

const waste32 = "waste at TP-32, InfiniteHBD K=3 (figures 9, 17)"

func TestInfinitehbdWaste_Drawn(t *testing.T) {
	s, rows := made(t, "infinitehbd-waste", report.FigureOptions{Version: "v1"})
	within(t, rows, map[string][2]float64{
		waste32:               {.15, .03},
		waste32 + " - NVL-72": {10.3, .3},
		waste32 + " - TPUv4, scaled to the paper's faults":        {6.7, 1},
		"NVL-72 without a fault, TP-16 to TP-64 (figure 10)":      {11.1, .05},
		"half of a server is concerned by its fault (appendix A)": {50.34, .005},
	})
	for quantity, r := range rows {
		if strings.HasPrefix(quantity, "bound,") && r.Deviation != "exact" {
			t.Errorf("%+v", r)
		}
	}
	if got := number(t, cell(t, s, "Which nodes", "4", "K=2 less K=3")); got > .1 {
		t.Errorf("K=2 wastes %v points more than K=3 at a stride of 4", got)
	}
	if got := number(t, cell(t, s, "Which nodes", "1", "K=2 less K=3")); got < .4 {
		t.Errorf("K=2 wastes %v points more than K=3 at a stride of 1", got)
	}
	for _, x := range []struct{ row, bound, exact string }{{"4 GPUs, K=2", "9.22 %", "0.55 %"}, {"8 GPUs, K=3", "2.38 %",
		"0.069 %"}} {
		if b, e := cell(t, s, "The paper's bound", x.row, "bound"), cell(t, s, "The paper's bound", x.row,
			"exact"); b != x.bound || e != x.exact {
			t.Errorf("%s: %s and %s", x.row, b, e)
		}
	}
	for row, want := range map[string]string{"2": "30", "1": "14"} {
		if got := cell(t, s, "Fragments", row, "GPUs wasted"); got != want {
			t.Errorf("%s domains waste %s GPUs, want %s", row, got, want)
		}
	}
}

// TestInfinitehbdWaste_Published is on the sample of the paper's trace.
func TestInfinitehbdWaste_Published(t *testing.T) {
	path := os.Getenv("OCSLAB_INFINITEHBD_TRACE")
	if path == "" {
		t.Skip("OCSLAB_INFINITEHBD_TRACE names no file: want fault_trace.json of github.com/stepfun-ai/InfiniteHBD-Trace")
	}
	s, rows := made(t, "infinitehbd-waste", report.FigureOptions{Trace: path})
	if !strings.Contains(s.Facts[0][1], "published sample: 400 servers") {
		t.Error(s.Facts[0])
	}
	within(t, rows, map[string][2]float64{
		"servers that are down, mean (section 6.1)":                                 {2.31, .02},
		"servers that are down, mean (section 6.1) - on the worst day of a hundred": {7.75, .01},
		waste32:               {.15, .02},
		waste32 + " - NVL-72": {10.2, .3},
		waste32 + " - TPUv4, scaled to the paper's faults": {6.7, 1},
	})
}

func TestInfinitehbdWaste_Trace(t *testing.T) {
	f, err := report.FindFigure(All(), "infinitehbd-waste")
	if err != nil || !f.Replays {
		t.Fatal(f, err)
	}
	if _, err := f.Run(t.Context(), report.FigureOptions{Trace: filepath.Join(t.TempDir(), "none.json")}); !os.IsNotExist(err) {
		t.Errorf("got %v", err)
	}
	path := filepath.Join(t.TempDir(), "trace.json")
	const open = `[{"node_id":"a","event_time":0,"event_type":"fault_start","fault_type":{}},
		{"node_id":"b","event_time":9,"event_type":"fault_end","fault_type":{}}]`
	if err := os.WriteFile(path, []byte(open), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := f.Run(t.Context(), report.FigureOptions{Trace: path, Repeats: 1})
	if err != nil || !strings.Contains(s.Facts[0][1], "2 events without their other half, the first: event 1: server a") {
		t.Errorf("%v, %v", s.Facts, err)
	}
}

func TestInfinitehbdCrossToR(t *testing.T) {
	const at5 = "crossing at random, job of 90 %, 5 % dead"
	s, rows := made(t, "infinitehbd-crosstor", report.FigureOptions{Repeats: 12})
	// A draw crosses about 4 % or nothing, so the mean of 12 has a standard error of 0.6 points.
	within(t, rows, map[string][2]float64{at5: {10, .05}, at5 + " - as the paper places": {1.78, 1.8}, at5 + " - aligned, ours": {0,
		.1}})
	for _, r := range []string{"MFU (tables 2, 4, 5)", "GPT-MoE (appendix B)", "all-reduce on a ring of GPUs (section 5)"} {
		if rows[r].Deviation != "not done" {
			t.Errorf("%q: %+v", r, rows[r])
		}
	}
	if n := len(s.Sections[0].Table); n != 33 {
		t.Errorf("%d rows", n)
	}
}

func TestInfinitehbdCost(t *testing.T) {
	_, rows := made(t, "infinitehbd-cost", report.FigureOptions{})
	within(t, rows, map[string][2]float64{
		"TPUv4, $": {1567.20, 0}, "NVL-36x2, $ - W": {152.12, 0}, "InfiniteHBD K=2, $ - $ for 1 GB/s": {3.28, 0},
		"K=2 of NVL-72, for each GB/s (abstract)": {30.86, .05}, "K=2 is cheaper than K=3 below (figure 13d)": {12.1,
			.05}, "a module (section 5)": {11.7, 0}})
	inexact := 0
	for quantity, r := range rows {
		if r.Deviation != "exact" && strings.Contains(quantity, "$") {
			inexact++
		}
	}
	if inexact != 1 {
		t.Errorf("%d numbers of table 6 are not exact: want the power of NVL-36x2 alone", inexact)
	}
}
