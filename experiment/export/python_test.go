package export_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image/png"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ocslab/ocslab/experiment/analysis/analysistest"
	"github.com/ocslab/ocslab/experiment/export"
	"github.com/ocslab/ocslab/experiment/runs"
	"github.com/ocslab/ocslab/timeline"
)

// python returns an interpreter that has these modules, or skips the test.
func python(t *testing.T, modules ...string) string {
	t.Helper()
	for _, name := range []string{"/usr/bin/python3", "python3"} {
		path, err := exec.LookPath(name)
		if err == nil && exec.Command(path, "-c", "import "+strings.Join(modules, ", ")).Run() == nil {
			return path
		}
	}
	t.Skipf("no python3 with %s (Debian: python3-%s)", strings.Join(modules, " and "), strings.Join(modules, " python3-"))
	return ""
}

// high moves a run to an axis on which a float64 cannot tell one nanosecond from the next.
func high(r *runs.Run) *runs.Run {
	const by = 1<<60 + 1
	for _, list := range [][]timeline.Mark{r.Marks, r.Truth} {
		for i := range list {
			list[i].Earliest += by
			list[i].Latest += by
		}
	}
	for i := range r.Samples {
		r.Samples[i].EarliestNS += by
		r.Samples[i].LatestNS += by
	}
	for i := range r.Reconfigurations {
		r.Reconfigurations[i].MonoNS += by
	}
	for i := range r.Sessions {
		r.Sessions[i].MonoNS += by
	}
	return r
}

// files writes the tables of a run and returns their folder.
func files(t *testing.T, r *runs.Run) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range all(t, r) {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// pandas reads both formats alike, exactly to the nanosecond, and takes nothing for dates.
func TestPandasReads(t *testing.T) {
	t.Parallel() // it waits for python
	interpreter := python(t, "pandas")
	r := high(analysistest.Synthetic(120, 4, 1))
	dir := files(t, r)
	cmd := exec.Command(interpreter, "testdata/read.py", dir)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil || stderr.Len() > 0 {
		t.Fatalf("read.py: %v\n%s", err, stderr.Bytes())
	}
	var read map[string]struct {
		Rows    int
		Types   map[string]string
		Xor     map[string]string // of all values of columns of whole numbers
		Medians map[string]float64
	}
	if err := json.Unmarshal(out, &read); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	rows := map[string]int{
		"marks": len(r.Marks), "truth": len(r.Truth), "samples": len(r.Samples), "points": len(r.Plan.Points),
		"reconfigurations": len(r.Reconfigurations),
	}
	wholes := map[string][]string{
		"marks":   {"point", "repeat", "reconfiguration", "session", "condition", "earliest_ns", "latest_ns", "mid_ns"},
		"truth":   {"earliest_ns", "latest_ns", "mid_ns"},
		"samples": {"earliest_ns", "latest_ns", "mid_ns", "after_mid_ns"}, "reconfigurations": {"mono_ns", "patience_ns"},
		"durations": {"after_earliest_ns", "after_latest_ns", "after_mid_ns", "reconfiguration"},
	}
	var earliest, latest, mid int64
	for _, m := range r.Marks {
		earliest ^= m.Earliest
		latest ^= m.Latest
		mid ^= m.Mid()
	}
	for _, format := range []string{"csv", "ndjson"} {
		for _, table := range export.Tables() {
			got, ok := read[table+"."+format]
			if want, known := rows[table]; !ok || known && got.Rows != want {
				t.Errorf("%s.%s: %d rows, want %d", table, format, got.Rows, want)
			}
			for column, kind := range got.Types {
				if strings.Contains(kind, "date") {
					t.Errorf("%s.%s: %s is %s", table, format, column, kind)
				}
			}
			for _, column := range wholes[table] {
				if got.Types[column] != "int64" {
					t.Errorf("%s.%s: %s is %q, want int64", table, format, column, got.Types[column])
				}
			}
			if table != "durations" && table != "summary" && got.Types["null"] != "bool" {
				t.Errorf("%s.%s: null is %q, want bool", table, format, got.Types["null"])
			}
		}
		for column, want := range map[string]int64{"earliest_ns": earliest, "latest_ns": latest, "mid_ns": mid} {
			if got := read["marks."+format].Xor[column]; got != fmt.Sprint(want) {
				t.Errorf("marks.%s: the values of %s are not those of the run: %s, want %d", format, column, got, want)
			}
		}
		for group, want := range medians(r) {
			if got, ok := read["durations."+format].Medians[group]; !ok || math.Abs(got-want) > 1 {
				t.Errorf("durations.%s: the median of %s is %f, want %f", format, group, got, want)
			}
		}
	}
}

// medians of the middles of durations, by condition and stage.
func medians(r *runs.Run) map[string]float64 {
	conditions := map[int]int{}
	for _, m := range r.Reconfigurations {
		if !m.Null {
			conditions[m.Number] = m.Condition
		}
	}
	pools := map[string][]timeline.Interval{}
	for _, d := range timeline.Durations(r.Marks) {
		if conditions[d.Reconfiguration] == 0 {
			continue
		}
		group := fmt.Sprintf("%d %s", conditions[d.Reconfiguration], d.Stage)
		pools[group] = append(pools[group], timeline.Point(d.Mid()))
	}
	of := map[string]float64{}
	for group, pool := range pools {
		of[group] = float64(timeline.Quantile(pool, 0.5).Mid())
	}
	return of
}

// The example draws a run from either format, and says what is wrong with other files.
func TestPlotRun(t *testing.T) {
	t.Parallel()
	interpreter := python(t, "pandas", "matplotlib")
	dir := files(t, high(analysistest.Synthetic(40, 4, 1)))
	in := func(name string) string { return filepath.Join(dir, name) }
	picture, vector := in("run.png"), in("run.svg")
	calls, err := json.Marshal([][]string{
		{in("durations.csv"), "--out", picture},
		{in("durations.ndjson"), "--out", vector, "--stages", "light,carrier-up"},
		{in("durations.csv"), "--stages", "nothing"},
		{in("points.csv")},
		{"no-such-run", "--ocslab", in("no-such-program")},
	})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(interpreter, "testdata/plot.py", "../../examples/python/plot_run.py")
	cmd.Stdin = bytes.NewReader(calls)
	cmd.Env = append(os.Environ(), "MPLCONFIGDIR="+dir)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil || stderr.Len() > 0 {
		t.Fatalf("%v: %s", err, stderr.Bytes())
	}
	var ends []string
	if err := json.Unmarshal(out, &ends); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	for i, want := range []string{"", "", "has no durations of these stages", "has no column", "cannot be run"} {
		if (want == "") != (ends[i] == "") || !strings.Contains(ends[i], want) || strings.Contains(ends[i], "Traceback") {
			t.Errorf("call %d ended with %q, want %q", i+1, ends[i], want)
		}
	}
	f, err := os.Open(picture)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	image, err := png.Decode(f)
	if err != nil {
		t.Fatal(err)
	}
	if size := image.Bounds().Size(); size.X < 800 || size.Y < 600 || size.X > 4000 || size.Y > 4000 {
		t.Errorf("the picture has %v pixels", size)
	}
	if text, err := os.ReadFile(vector); err != nil || !bytes.Contains(text, []byte("<svg")) {
		t.Errorf("no SVG: %v", err)
	}
}
