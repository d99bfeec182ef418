// Package widget has what screens are made of: tables, bars and small charts. Each draws
// what it is given in the area it is given, and holds nothing.
package widget

import (
	"slices"

	"github.com/ocslab/ocslab/tui/canvas"
)

// Column is a column of a table.
type Column struct {
	Name  string
	Width int // at least; the widest cell that is shown makes it wider, up to Max
	Max   int // 0: as wide as it has to be
	// Keep says how long the column stays when the terminal is narrow: those with the
	// lowest go first. What they say should be in another column, or be one key away.
	Keep  int
	Right bool // aligned at the right
	// Grow lets the column take what is left.
	Grow bool
}

// Value is a cell of a table.
type Value struct {
	Text  string
	Style canvas.Style
}

// V is a value in a role.
func V(text string, role canvas.Role) Value { return Value{text, canvas.Style{Role: role}} }

// Table is a table with a cursor.
type Table struct {
	Columns []Column
	Rows    int
	// Row returns the cells of row i, one for each column. It is asked for the rows that
	// are shown only.
	Row func(i int) []Value
	// Top is the first row that is shown; Cursor is the row that has the cursor, -1 for none.
	Top, Cursor int
	// Marked reports whether row i is selected; nil: none is.
	Marked func(i int) bool
	// Zone is what marks row i for the mouse; nil: nothing does.
	Zone func(i int) any
	// ZoneColumn marks the heading of column i; nil: nothing does.
	ZoneColumn func(column int) any
	// SortedBy is the column that the rows are in order of, -1 for none.
	SortedBy   int
	Descending bool
	Empty      string // is said when there are no rows
	// Over, if not nil, draws over the cell of a row and column after its text was drawn: what
	// has several styles, such as a small chart.
	Over func(i, column int, a canvas.Area)
}

// Rows is how many rows a table shows in h lines.
func Rows(h int) int { return max(0, h-1) }

// Scroll returns the first row to show so that the cursor is among the h lines of a table
// that began with top.
func Scroll(top, cursor, rows, h int) int {
	n := Rows(h)
	if cursor >= 0 {
		if cursor < top {
			top = cursor
		}
		if cursor >= top+n {
			top = cursor - n + 1
		}
	}
	return max(0, min(top, rows-n))
}

// Draw draws the table: a line of names, then the rows. It returns which columns there
// was room for.
func (t Table) Draw(a canvas.Area) []int {
	if n := Rows(a.H); n > 0 && t.Rows > n {
		var bar canvas.Area
		a, bar = a.Right(1)
		Scrollbar(bar.Sub(0, 1, 1, n), t.Top, n, t.Rows)
	}
	shown := min(Rows(a.H), max(0, t.Rows-t.Top))
	rows := make([][]Value, shown)
	for i := range rows {
		rows[i] = t.Row(t.Top + i)
	}
	cols, widths := t.fit(a.W-2, rows)
	x := 2
	for k, c := range cols {
		col := t.Columns[c]
		name := col.Name
		if c == t.SortedBy {
			if t.Descending {
				name += "▼"
			} else {
				name += "▲"
			}
		}
		put(a.Sub(x, 0, widths[k], 1), col, Value{name, canvas.S(canvas.Title)})
		if t.ZoneColumn != nil {
			a.Sub(x, 0, widths[k]+2, 1).Zone(t.ZoneColumn(c))
		}
		x += widths[k] + 2
	}
	for i, row := range rows {
		n := t.Top + i
		line := a.Sub(0, 1+i, a.W, 1)
		x := 2
		for k, c := range cols {
			if c < len(row) {
				put(line.Sub(x, 0, widths[k], 1), t.Columns[c], row[c])
			}
			if t.Over != nil {
				t.Over(n, c, line.Sub(x, 0, widths[k], 1))
			}
			x += widths[k] + 2
		}
		marked := t.Marked != nil && t.Marked(n)
		if marked {
			line.Set(0, 0, '●', canvas.S(canvas.Accent))
		}
		if n == t.Cursor {
			if !marked {
				line.Set(0, 0, '▸', canvas.S(canvas.Accent))
			}
			line.Add(canvas.Cursor)
		}
		if t.Zone != nil {
			line.Zone(t.Zone(n))
		}
	}
	if t.Rows == 0 && t.Empty != "" {
		for i, l := range canvas.Wrap(t.Empty, a.W-2) {
			a.Text(2, 2+i, l, canvas.S(canvas.Dim))
		}
	}
	return cols
}

// Need is how many columns of the terminal, of w, the table has a use for with rows that fit
// into h lines.
func (t Table) Need(w, h int) int {
	rows := make([][]Value, min(Rows(h), max(0, t.Rows-t.Top)))
	for i := range rows {
		rows[i] = t.Row(t.Top + i)
	}
	if t.Rows > Rows(h) {
		w-- // for the scrollbar
	}
	t.Columns = slices.Clone(t.Columns)
	for i := range t.Columns {
		t.Columns[i].Grow = false
	}
	_, widths := t.fit(w-2, rows)
	need := 0
	for _, n := range widths {
		need += 2 + n
	}
	if t.Rows > Rows(h) {
		need++
	}
	return need
}

// fit picks columns and widths for w columns of the terminal.
func (t Table) fit(w int, rows [][]Value) (cols, widths []int) {
	want := make([]int, len(t.Columns))
	for c, col := range t.Columns {
		want[c] = max(col.Width, canvas.Width(col.Name))
		if c == t.SortedBy {
			want[c] = max(want[c], canvas.Width(col.Name)+1)
		}
		for _, row := range rows {
			if c < len(row) {
				want[c] = max(want[c], canvas.Width(row[c].Text))
			}
		}
		if col.Max > 0 {
			want[c] = min(want[c], max(col.Max, col.Width))
		}
		cols = append(cols, c)
	}
	total := func() int {
		n := 0
		for _, c := range cols {
			n += want[c] + 2
		}
		return n - 2
	}
	for len(cols) > 1 && total() > w {
		least := 0
		for k, c := range cols {
			if t.Columns[c].Keep <= t.Columns[cols[least]].Keep {
				least = k
			}
		}
		// A column that could do with less gives that first.
		if c := cols[least]; want[c] > t.Columns[c].Width && t.Columns[c].Width > 0 && total()-(want[c]-t.Columns[c].Width) <= w {
			want[c] -= total() - w
			break
		}
		cols = append(cols[:least], cols[least+1:]...)
	}
	for _, c := range cols {
		if rest := w - total(); rest > 0 && t.Columns[c].Grow {
			want[c] += rest
		}
		widths = append(widths, want[c])
	}
	if len(cols) == 1 {
		widths[0] = min(widths[0], max(0, w))
	}
	return cols, widths
}

// put draws a value in a cell.
func put(a canvas.Area, col Column, v Value) {
	if col.Right {
		text := canvas.Cut(v.Text, a.W)
		a.TextRight(a.W, 0, text, v.Style)
		return
	}
	a.Fit(0, 0, a.W, v.Text, v.Style)
}

// Scrollbar shows which part of a whole is seen: n of all from top on.
func Scrollbar(a canvas.Area, top, n, all int) {
	if a.H <= 0 || all <= n {
		return
	}
	size := max(1, a.H*n/all)
	at := 0
	if all > n {
		at = (a.H - size) * top / (all - n)
	}
	for y := range a.H {
		r := '│'
		if y >= at && y < at+size {
			r = '█'
		}
		a.Set(0, y, r, canvas.S(canvas.Frame))
	}
}
