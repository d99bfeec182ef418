package widget_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/tui/canvas"
	"github.com/ocslab/ocslab/tui/tuitest"
	"github.com/ocslab/ocslab/tui/widget"
)

func circuits(rows int) widget.Table {
	return widget.Table{
		Columns: []widget.Column{{Name: "IN", Keep: 9, Right: true, Width: 4}, {Name: "OUT", Keep: 9, Right: true, Width: 4},
			{Name: "LABEL", Keep: 2, Width: 6, Max: 20}, {Name: "NIC", Keep: 5, Grow: true}, {Name: "LOSS", Keep: 3, Right: true}},
		Rows: rows,
		Row: func(i int) []widget.Value {
			return []widget.Value{widget.V(fmt.Sprint(i+1), canvas.Text), widget.V(fmt.Sprint(i+33), canvas.Text), widget.V("laser in the corner", canvas.Dim),
				widget.V(fmt.Sprintf("gpu%d/ens1f0", i), canvas.Text), widget.V("1.31 dB", canvas.Text)}
		},
		Cursor: -1, SortedBy: -1, Empty: "no circuits",
	}
}

func TestTable_Draw(t *testing.T) {
	for _, test := range []struct {
		w    int
		want string
	}{
		{70, `
    IN   OUT  LABEL                NIC                            LOSS
     1    33  laser in the corner  gpu0/ens1f0                 1.31 dB
▸    2    34  laser in the corner  gpu1/ens1f0                 1.31 dB
●    3    35  laser in the corner  gpu2/ens1f0                 1.31 dB
`},
		{48, `
    IN   OUT  LABEL         NIC             LOSS
     1    33  laser in th…  gpu0/ens1f0  1.31 dB
▸    2    34  laser in th…  gpu1/ens1f0  1.31 dB
●    3    35  laser in th…  gpu2/ens1f0  1.31 dB
`},
		{38, `
    IN   OUT  NIC                 LOSS
     1    33  gpu0/ens1f0      1.31 dB
▸    2    34  gpu1/ens1f0      1.31 dB
●    3    35  gpu2/ens1f0      1.31 dB
`},
		{12, `
    IN   OUT
     1    33
▸    2    34
●    3    35
`},
	} {
		table := circuits(3)
		table.Cursor, table.Marked = 1, func(i int) bool { return i == 2 }
		got := tuitest.Draw(test.w, 4, func(a canvas.Area) { table.Draw(a) }).String()
		if got != test.want[1:] {
			t.Errorf("%d columns:\n%swant\n%s", test.w, got, test.want[1:])
		}
	}
	table := circuits(0)
	if got := tuitest.Draw(40, 5, func(a canvas.Area) { table.Draw(a) }).String(); !strings.Contains(got, "no circuits") {
		t.Errorf("an empty table says nothing:\n%s", got)
	}
}

// A table keeps the columns that matter most, and a zone leads to the row that is drawn there.
func TestTable_Property(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, h, rows := rapid.IntRange(0, 90).Draw(t, "w"), rapid.IntRange(0, 12).Draw(t, "h"), rapid.IntRange(0, 30).Draw(t, "rows")
		table := circuits(rows)
		table.Cursor = rapid.IntRange(-1, rows-1).Draw(t, "cursor")
		table.Top = widget.Scroll(rapid.IntRange(0, 40).Draw(t, "top"), table.Cursor, rows, h)
		table.Zone = func(i int) any { return i }
		var cols []int
		c := tuitest.Draw(w, h, func(a canvas.Area) { cols = table.Draw(a) })
		for _, col := range cols {
			for other := range table.Columns {
				if table.Columns[other].Keep > table.Columns[col].Keep && !slices.Contains(cols, other) {
					t.Fatalf("column %d is shown and %d is not", col, other)
				}
			}
		}
		if table.Cursor >= 0 && h > 1 && (table.Cursor < table.Top || table.Cursor >= table.Top+widget.Rows(h)) {
			t.Fatalf("the cursor, %d, is not shown: from %d on, %d rows", table.Cursor, table.Top, widget.Rows(h))
		}
		for y := 1; y < h; y++ {
			z, _, _, ok := c.Hit(0, y)
			if row := table.Top + y - 1; ok != (row < rows && (w > 1 || w > 0 && rows <= h-1)) || ok && z.ID != row {
				t.Fatalf("line %d leads to %v, want row %d", y, z.ID, row)
			}
		}
	})
}
