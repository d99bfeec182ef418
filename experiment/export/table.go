package export

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/ocslab/ocslab/experiment/runs"
)

// table is one of [Tables].
type table struct {
	name    string
	kind    string // of a row, in NDJSON
	depth   depth
	columns []string // after those of the depth
	write   func(x *index, o *rows)
}

var tables = []table{
	{"marks", "mark", ofMoves, markColumns, marks},
	{"durations", "duration", ofMoves, durationColumns, durations},
	{"points", "point", ofPoints, pointColumns, points},
	{"reconfigurations", "reconfiguration", ofMoves, moveColumns, reconfigurations},
	{"samples", "sample", ofMoves, sampleColumns, samples},
	{"truth", "truth", ofMoves, markColumns, truth},
	{"summary", "summary", ofConditions, summaryColumns, summary},
}

// Tables returns the names of the tables that [CSV] and [NDJSON] can write:
//
//   - marks: one row for each mark, as merged from its sources
//   - durations: what statistics stand on: how long after the command each subject reached
//     each stage, once for each reconfiguration; without null toggles, and without what
//     modules say of light where the monitors of switches say it better
//   - points: all that the plan has, in the order in which they are run, done or not
//   - reconfigurations: what was changed, and what did not come back
//   - samples: readings of power monitors
//   - truth: what an emulated lab did, as marks; after_... counts from the same command as
//     in marks
//   - summary: the statistics of each stage in each condition
func Tables() []string {
	names := make([]string, len(tables))
	for i, t := range tables {
		names[i] = t.name
	}
	return names
}

// CSV writes one of [Tables] with a header, which is there also when there are no rows.
func CSV(w io.Writer, r *runs.Run, table string) error {
	return write(r, table, func(_ string, columns []string) *rows { return csvRows(w, columns) })
}

// NDJSON writes one of [Tables] with one JSON object on each line.
func NDJSON(w io.Writer, r *runs.Run, table string) error {
	return write(r, table, func(kind string, columns []string) *rows { return jsonRows(w, kind, columns) })
}

func write(r *runs.Run, name string, begin func(kind string, columns []string) *rows) error {
	i := slices.IndexFunc(tables, func(t table) bool { return t.name == name })
	if i < 0 {
		return fmt.Errorf("export: there is no table %q: want %s", name, strings.Join(Tables(), ", "))
	}
	t, x := &tables[i], indexOf(r)
	o := begin(t.kind, append(x.keyColumns(t.depth), t.columns...))
	t.write(x, o)
	if err := o.flush(); err != nil {
		return fmt.Errorf("export: table %s of run %s: %w", name, r.Meta.ID, err)
	}
	return nil
}
