package export_test

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/experiment/analysis/analysistest"
	"github.com/ocslab/ocslab/experiment/export"
	"github.com/ocslab/ocslab/experiment/plan"
	"github.com/ocslab/ocslab/experiment/runs"
	"github.com/ocslab/ocslab/linkmon/optics"
	"github.com/ocslab/ocslab/timeline"
)

// csvRecords reads a table strictly: every row is as long as the header.
func csvRecords(t failer, text []byte) (header []string, rows [][]string) {
	t.Helper()
	records, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	if err != nil || len(records) == 0 {
		t.Fatalf("read CSV: %v; %d rows", err, len(records))
	}
	return records[0], records[1:]
}

type failer interface {
	Helper()
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
}

// object is a JSON object with its keys in order.
type object struct {
	keys   []string
	values map[string]any
}

// ndjson reads lines of flat objects strictly.
func ndjson(t failer, text []byte) (objects []object) {
	t.Helper()
	for line := range bytes.Lines(text) {
		d := json.NewDecoder(bytes.NewReader(line))
		d.UseNumber()
		o := object{values: map[string]any{}}
		next := func() json.Token {
			token, err := d.Token()
			if err != nil {
				t.Fatalf("read %s: %v", line, err)
			}
			return token
		}
		if next() != json.Delim('{') {
			t.Fatalf("not an object: %s", line)
		}
		for d.More() {
			key := next().(string)
			value := next()
			if _, nested := value.(json.Delim); nested {
				t.Fatalf("%s is not flat: %s", key, line)
			}
			if _, twice := o.values[key]; twice {
				t.Fatalf("%s is there twice: %s", key, line)
			}
			o.keys = append(o.keys, key)
			o.values[key] = value
		}
		next()
		if _, err := d.Token(); err != io.EOF {
			t.Fatalf("more after the object: %s", line)
		}
		objects = append(objects, o)
	}
	return objects
}

// cell is how a JSON value looks in CSV.
func cell(v any) string {
	if v == nil {
		return ""
	}
	return fmt.Sprint(v)
}

// checkTable holds the two formats of a table against each other, and returns its rows by
// column.
func checkTable(t failer, name string, csvText, jsonText []byte) []map[string]string {
	t.Helper()
	header, records := csvRecords(t, csvText)
	objects := ndjson(t, jsonText)
	if len(records) != len(objects) {
		t.Fatalf("%s: %d rows in CSV, %d in NDJSON", name, len(records), len(objects))
	}
	seen := map[string]bool{}
	for _, column := range header {
		lower := strings.ToLower(column)
		if seen[column] || column == "" || strings.HasSuffix(lower, "_at") || strings.HasSuffix(lower, "_time") ||
			strings.HasPrefix(lower, "timestamp") || slices.Contains([]string{"date", "datetime", "modified"}, lower) {
			t.Errorf("%s: column %q is there twice, or pandas takes it for dates", name, column)
		}
		seen[column] = true
	}
	var rows []map[string]string
	for i, record := range records {
		if want := append([]string{"kind"}, header...); !slices.Equal(objects[i].keys, want) {
			t.Fatalf("%s: keys %q in NDJSON, %q in CSV", name, objects[i].keys, want)
		}
		row := map[string]string{}
		for k, column := range header {
			row[column] = record[k]
			// encoding/csv reads CR LF within a field as LF.
			if got := strings.ReplaceAll(cell(objects[i].values[column]), "\r\n", "\n"); got != record[k] {
				t.Fatalf("%s: row %d: %s is %q in CSV and %q in NDJSON", name, i+1, column, record[k], got)
			}
			if n, ok := objects[i].values[column].(json.Number); ok && strings.HasSuffix(column, "_ns") {
				if _, err := strconv.ParseInt(n.String(), 10, 64); err != nil {
					t.Errorf("%s: row %d: %s is %s, not a whole number", name, i+1, column, n)
				}
			}
		}
		rows = append(rows, row)
	}
	return rows
}

func TestFormatsAgree(t *testing.T) {
	for name, r := range map[string]*runs.Run{"small": small(), "synthetic": analysistest.Synthetic(40, 4, 1)} {
		out := all(t, r)
		for _, table := range export.Tables() {
			checkTable(t, name+": "+table, out[table+".csv"], out[table+".ndjson"])
		}
	}
}

func TestSmallTables(t *testing.T) {
	out := all(t, small())
	for _, x := range []struct {
		name, want string // rows are looked for; those of CSV and NDJSON are
	}{
		{"marks.csv", `run,condition,label,param_dead_time_,param_note,point,repeat,null,session,reconfiguration,from,to,` +
			`stage,subject,host,source,earliest_ns,latest_ns,mid_ns,after_earliest_ns,after_latest_ns,after_mid_ns,detail`},
		{"marks.csv", `20261122T100000-small-0001,1,"dead_time=10 note=""a, b""",10,"=1+""a, b""",1,1,false,1,1,dp,pp,` +
			`carrier-up,g1/n0,g1,counters+netlink,1152921506556846976,1152921506556847977,1152921506556847476,949999998,950001001,950000499,`},
		{"marks.ndjson", `{"kind":"mark","run":"20261122T100000-small-0001","condition":1,"label":"dead_time=10 note=\"a, b\"",` +
			`"param_dead_time_":"10","param_note":"=1+\"a, b\"","point":3,"repeat":1,"null":true,"session":2,"reconfiguration":5,"from":"dp","to":"dp",` +
			`"stage":"carrier-down","subject":"g2/n0","host":"g2","source":"counters","earliest_ns":8100000000,"latest_ns":8101000000,"mid_ns":8100500000,` +
			`"after_earliest_ns":null,"after_latest_ns":null,"after_mid_ns":null,"detail":null}`},
		{"truth.ndjson", `{"kind":"truth","run":"20261122T100000-small-0001","condition":1,"label":"dead_time=10 note=\"a, b\"",` +
			`"param_dead_time_":"10","param_note":"=1+\"a, b\"","point":1,"repeat":1,"null":false,"session":1,"reconfiguration":1,"from":"dp","to":"pp",` +
			`"stage":"dark","subject":"rail0/33","host":null,"source":null,"earliest_ns":1152921505618846976,"latest_ns":1152921505618846976,"mid_ns":1152921505618846976,` +
			`"after_earliest_ns":11999998,"after_latest_ns":12000000,"after_mid_ns":11999999,"detail":null}`},
		{"points.csv", `20261122T100000-small-0001,1,"dead_time=10 note=""a, b""",10,"=1+""a, b""",1,1,false,1,done,1,1,2,2026-11-22T10:00:01Z`},
		{"points.csv", `20261122T100000-small-0001,1,"dead_time=10 note=""a, b""",10,"=1+""a, b""",3,1,true,2,done,2,5,1,2026-11-22T11:00:01Z`},
		{"points.csv", `20261122T100000-small-0001,1,"dead_time=10 note=""a, b""",10,"=1+""a, b""",2,2,false,3,dropped,,3,0,`},
		{"reconfigurations.csv", `20261122T100000-small-0001,1,"dead_time=10 note=""a, b""",10,"=1+""a, b""",1,1,false,1,2,pp,dp,` +
			`2026-11-22T10:00:03Z,1152921507606846976,rail0 1>34,rail0 1>33,3,g2/n0,g1/n0: carrier-up: not within 600ms,0,600000000`},
		{"samples.csv", `20261122T100000-small-0001,1,"dead_time=10 note=""a, b""",10,"=1+""a, b""",1,1,false,1,1,dp,pp,` +
			`rail0/33,1152921505601846976,1152921505603846976,1152921505602846976,-5000002,-3000000,-4000001,-3.25,false`},
		{"samples.csv", `20261122T100000-small-0001,1,"dead_time=10 note=""a, b""",10,"=1+""a, b""",1,1,false,1,1,dp,pp,` +
			`rail0/33,1152921505621846976,1152921505623846976,1152921505622846976,14999998,17000000,15999999,,true`},
	} {
		if !slices.Contains(strings.Split(string(out[x.name]), "\n"), x.want) {
			t.Errorf("%s: no row\n%s\nin\n%s", x.name, x.want, out[x.name])
		}
	}
}

// Each row is one thing of the run, none is left out, and times since the command are
// right.
func TestRowsAreAll(t *testing.T) {
	r := analysistest.Synthetic(40, 4, 1)
	out := all(t, r)
	for name, want := range map[string]int{
		"marks": len(r.Marks), "truth": len(r.Truth), "samples": len(r.Samples), "points": len(r.Plan.Points),
		"reconfigurations": len(r.Reconfigurations),
	} {
		if _, rows := csvRecords(t, out[name+".csv"]); len(rows) != want {
			t.Errorf("%s: %d rows, want %d", name, len(rows), want)
		}
	}
	commands := map[string]timeline.Interval{}
	rows := checkTable(t, "marks", out["marks.csv"], out["marks.ndjson"])
	number := func(text string) int64 {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for i, m := range r.Marks {
		if m.Stage == timeline.Command {
			commands[strconv.Itoa(m.Reconfiguration)] = m.Interval
		}
		if row := rows[i]; number(row["earliest_ns"]) != m.Earliest || number(row["latest_ns"]) != m.Latest || number(row["mid_ns"]) != m.Mid() {
			t.Fatalf("row %v is not mark %v", row, m)
		}
	}
	for _, row := range rows {
		command, ok := commands[row["reconfiguration"]]
		if !ok {
			if row["after_mid_ns"] != "" || row["null"] != "true" {
				t.Errorf("there was no command: %v", row)
			}
			continue
		}
		want := timeline.Interval{Earliest: number(row["earliest_ns"]), Latest: number(row["latest_ns"])}.Sub(command)
		if number(row["after_earliest_ns"]) != want.Earliest || number(row["after_latest_ns"]) != want.Latest || number(row["after_mid_ns"]) != want.Mid() {
			t.Errorf("row %v: want %v since the command", row, want)
		}
	}
}

// The table of durations is what the statistics stand on: it has as many rows of a stage
// as those have counted. Null toggles and what modules say of light are not of it.
func TestDurationsAreThoseOfTheStatistics(t *testing.T) {
	r := analysistest.Synthetic(40, 4, 1)
	for i := range r.Reconfigurations {
		m := &r.Reconfigurations[i]
		at := timeline.Point(m.MonoNS + 100)
		if m.Null {
			r.Marks = append(r.Marks,
				timeline.Mark{Stage: timeline.Command, Subject: "rail0", Host: "labhost", Interval: at, Source: "driver", Reconfiguration: m.Number},
				timeline.Mark{Stage: timeline.Ack, Subject: "rail0", Host: "labhost", Interval: at, Source: "driver", Reconfiguration: m.Number})
			continue
		}
		r.Marks = append(r.Marks, timeline.Mark{
			Stage: timeline.Light, Subject: "gpu1/ens1f0", Host: "gpu1", Interval: at, Source: optics.Source, Reconfiguration: m.Number,
		})
	}
	slices.SortStableFunc(r.Marks, func(a, b timeline.Mark) int { return cmp.Compare(a.Reconfiguration, b.Reconfiguration) })
	out := all(t, r)
	counts := map[string]int{}
	for _, row := range checkTable(t, "durations", out["durations.csv"], out["durations.ndjson"]) {
		counts[row["condition"]+" "+row["stage"]]++
	}
	rows := checkTable(t, "summary", out["summary.csv"], out["summary.ndjson"])
	for _, row := range rows {
		if got := strconv.Itoa(counts[row["condition"]+" "+row["stage"]]); got != row["count"] {
			t.Errorf("condition %s: %s durations of %s, counted were %s", row["condition"], got, row["stage"], row["count"])
		}
		delete(counts, row["condition"]+" "+row["stage"])
	}
	if len(rows) == 0 || len(counts) > 0 {
		t.Errorf("%d rows of statistics; not among them: %v", len(rows), counts)
	}
}

func TestUnknownTable(t *testing.T) {
	err := export.CSV(io.Discard, small(), "mark")
	if err == nil || !strings.Contains(err.Error(), `"mark"`) || !strings.Contains(err.Error(), "marks, durations") {
		t.Errorf("%v", err)
	}
}

// Whatever texts and numbers there are, they come back as they were, in both formats.
func TestAnyTextComesBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"=1+1", "+a", "-a", "@a", "a,b", `a"b`, "a\nb", "a\rb", " a ", "\xff", "NA", "é ↔ 中"}))
		label, value, detail := text.Draw(t, "label"), text.Draw(t, "value"), text.Draw(t, "detail")
		at := timeline.Between(rapid.Int64().Draw(t, "a"), rapid.Int64().Draw(t, "b"))
		power := rapid.Float64().Draw(t, "power")
		r := &runs.Run{
			Plan: &plan.Plan{
				Varied:     []string{"x_time", "x_time_", "x"},
				Conditions: []plan.Condition{{Number: 1, Label: label, Parameters: map[string]string{"x": value}}},
			},
			Reconfigurations: []runs.Reconfiguration{{Number: 1, Condition: 1}},
			Marks:            []timeline.Mark{{Stage: timeline.Light, Interval: at, Detail: detail, Reconfiguration: 1}},
			Samples:          []runs.Sample{{Reconfiguration: 1, PowerDBm: power}},
		}
		var c, n bytes.Buffer
		if err := export.CSV(&c, r, "marks"); err != nil {
			t.Fatal(err)
		}
		if err := export.NDJSON(&n, r, "marks"); err != nil {
			t.Fatal(err)
		}
		row := checkTable(t, "marks", c.Bytes(), n.Bytes())[0]
		for column, want := range map[string]string{"label": label, "param_x": value, "detail": detail} {
			want = strings.ReplaceAll(strings.ToValidUTF8(want, "\uFFFD"), "\r\n", "\n")
			if row[column] != want {
				t.Errorf("%s is %q, want %q", column, row[column], want)
			}
		}
		if got := row["earliest_ns"]; got != strconv.FormatInt(at.Earliest, 10) {
			t.Errorf("earliest_ns is %s, want %d", got, at.Earliest)
		}
		c.Reset()
		n.Reset()
		if err := export.CSV(&c, r, "samples"); err != nil {
			t.Fatal(err)
		}
		if err := export.NDJSON(&n, r, "samples"); err != nil {
			t.Fatal(err)
		}
		row = checkTable(t, "samples", c.Bytes(), n.Bytes())[0]
		got, err := strconv.ParseFloat(row["power_dbm"], 64)
		if finite := !math.IsNaN(power) && !math.IsInf(power, 0); finite && (err != nil || got != power) || !finite && row["power_dbm"] != "" {
			t.Errorf("power_dbm is %q, want %v", row["power_dbm"], power)
		}
	})
}

func BenchmarkCSV(b *testing.B) {
	benchmark(b, func(w io.Writer, r *runs.Run) error { return export.CSV(w, r, "marks") })
}

func BenchmarkNDJSON(b *testing.B) {
	benchmark(b, func(w io.Writer, r *runs.Run) error { return export.NDJSON(w, r, "marks") })
}

func BenchmarkDurations(b *testing.B) {
	benchmark(b, func(w io.Writer, r *runs.Run) error { return export.CSV(w, r, "durations") })
}

// benchmark writes a run of 10,000 reconfigurations with 16 NICs: some 960,000 marks.
func benchmark(b *testing.B, write func(io.Writer, *runs.Run) error) {
	r := analysistest.Synthetic(10_000, 16, 1)
	b.ReportAllocs()
	for b.Loop() {
		w := &largest{}
		if err := write(w, r); err != nil {
			b.Fatal(err)
		}
		b.SetBytes(int64(w.total))
	}
	b.ReportMetric(float64(len(r.Marks)), "marks")
}
