package report

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// table is one of the page; its first column heads the rows.
type table struct {
	Caption string
	Head    []cell
	Rows    [][]cell
	More    string // what was left out, and where it is
	left    int
}

// cell is text with a CSS class.
type cell struct{ Text, Class string }

// text is a cell of words. A short one is not broken, and one with a word too long for a
// column may be broken anywhere.
func text(s string) cell {
	const short, most = 20, 40
	if utf8.RuneCountInString(s) <= short {
		return cell{s, "short"}
	}
	for word := range strings.FieldsSeq(s) {
		if utf8.RuneCountInString(word) > most {
			return cell{s, "long"}
		}
	}
	return cell{s, ""}
}

func digit(s string) cell { return cell{s, "num"} }
func count(n int) cell    { return cell{fmt.Sprint(n), "num"} }

// add adds a row, unless there are too many.
func (t *table) add(row ...cell) {
	if len(t.Rows) == mostRows {
		t.left++
		return
	}
	t.Rows = append(t.Rows, row)
}

// done says what was left out, and that all of it is elsewhere. It returns nil for a table
// without rows.
func (t *table) done(elsewhere string) *table {
	if len(t.Rows) == 0 {
		return nil
	}
	if t.left > 0 {
		t.More = fmt.Sprintf("%d more rows are not shown; all are in %s", t.left, elsewhere)
	}
	return t
}

// export names a table of the CSV export.
func (b *book) export(table string) string {
	return fmt.Sprintf("the export: ocslab runs export %s --table %s", b.r.Meta.ID, table)
}

// directory is where the rest is of what has no table in the export.
const directory = "the directory of the run"
