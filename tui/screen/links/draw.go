package links

import (
	"strings"
	"time"

	"github.com/ocslab/ocslab/tui/canvas"
	"github.com/ocslab/ocslab/tui/live"
	"github.com/ocslab/ocslab/tui/screen"
	"github.com/ocslab/ocslab/tui/widget"
)

// Draw draws the screen.
func (s *Screen) Draw(a canvas.Area, e screen.Env) {
	p := s.arrange(a, e)
	rows := s.rows(e)
	at := s.place(rows)
	s.drawTable(p.table, rows, at, e)
	if at >= 0 {
		detail(p.detail, rows[at], e)
	}
	if p.lacks.H > 0 {
		p.lacks.Fit(0, 0, p.lacks.W, lacksLine(e), canvas.S(canvas.Warn))
		p.lacks.Zone(zoneLacks{})
	}
}

// lacksLine says what is not watched in one line, the way to all of it first, since the end
// of the line may be cut off.
func lacksLine(e screen.Env) string {
	var list []string
	for _, l := range e.State.Lacks {
		list = append(list, l.String())
	}
	return "not watched (a shows all): " + strings.Join(list, "; ")
}

// drawTable draws the table of NICs.
func (s *Screen) drawTable(a canvas.Area, rows []*live.NIC, at int, e screen.Env) {
	if a.H <= 0 || a.W <= 0 {
		return
	}
	top := widget.Scroll(s.top, at, len(rows), a.H)
	remarks := false
	for _, n := range rows[min(top, len(rows)):min(top+widget.Rows(a.H), len(rows))] {
		remarks = remarks || remark(n, e) != ""
	}
	shown := make([]int, 0, len(columns)) // columns of the table, by place in columns
	t := widget.Table{
		Rows: len(rows), Top: top, Cursor: at, SortedBy: -1, Descending: s.reverse,
		Marked: func(i int) bool { return s.selected[rows[i].Name] },
		Zone:   func(i int) any { return zoneRow(rows[i].Name) },
		Empty:  empty(e),
	}
	for i, c := range columns {
		switch {
		case i == remarkColumn && !remarks,
			i == bothColumn && a.W >= bothBelow, (i == hearsColumn || i == heardByColumn) && a.W < bothBelow:
			continue
		}
		if i == s.sorted {
			t.SortedBy = len(shown)
		}
		if i == trailColumn && a.W < bothBelow {
			c.Max = c.Width
		}
		shown = append(shown, i)
		t.Columns = append(t.Columns, c.Column)
	}
	cells := make([]widget.Value, 0, len(shown)*widget.Rows(a.H))
	t.Row = func(i int) []widget.Value {
		from := len(cells)
		for _, c := range shown {
			cells = append(cells, columns[c].cell(rows[i], e))
		}
		return cells[from:len(cells):len(cells)]
	}
	t.ZoneColumn = func(c int) any {
		if c >= len(shown) || columns[shown[c]].compare == nil {
			return nil
		}
		return zoneColumn(shown[c])
	}
	t.Over = func(i, c int, cell canvas.Area) {
		if c < len(shown) && shown[c] == trailColumn {
			spark(cell, rows[i], e)
		}
	}
	t.Draw(a)
}

// empty says why there are no rows.
func empty(e screen.Env) string {
	switch {
	case len(e.State.NICs) > 0:
		return "No NIC passes the filter " + e.Filter.String() + ". esc clears it."
	case e.State.Opening != "":
		return "The lab is being opened: " + e.State.Opening + "."
	}
	return "The lab file has no hosts with NICs, so there are no links to watch. Add hosts with tx and rx ports to it: e edits it."
}

// maxSlots is how many columns of trail there may be.
const maxSlots = 24

// spark draws the powers of the last minutes.
func spark(a canvas.Area, n *live.NIC, e screen.Env) {
	var mem [maxSlots]widget.Slot
	slots := mem[:min(a.W, maxSlots)]
	fill(slots, n, e)
	lo, hi, _ := widget.Range(slots, leastRange)
	role := canvas.Light
	switch {
	case powerStale(n, e):
		role = canvas.Stale
	case dark(n.RxPower) && missed(n, e) == canvas.Dim:
		role = canvas.Dim
	}
	widget.Spark(a, slots, lo, hi, canvas.S(role))
}

// leastRange is how many dB a trail shows at least, so that a quiet one looks quiet.
const leastRange = 1.0

// fill distributes the readings of the last minutes on slots of equal length, of which the
// last ends now. A reading says something until the next was due, so only where readings are
// missing there is a gap.
func fill(slots []widget.Slot, n *live.NIC, e screen.Env) {
	if len(slots) == 0 {
		return
	}
	every := time.Second
	if sw := e.State.Switch(n.Rx.Switch); sw != nil {
		every = max(every, sw.PowerEvery)
	}
	length := window / time.Duration(len(slots))
	from := 0 // the first reading that can matter
	for from+1 < len(n.RxTrail) && e.Now.Sub(n.RxTrail[from+1].At) >= window+every {
		from++
	}
	var after time.Duration // how long ago the reading after was
	for i := len(n.RxTrail) - 1; i >= from; i-- {
		ago := e.Now.Sub(n.RxTrail[i].At)
		until := max(ago-every, after, 0)
		if after = ago; ago < 0 || until >= window {
			continue
		}
		first := len(slots) - 1 - min(int(ago/length), len(slots)-1)
		last := len(slots) - 1 - min(int(max(until-1, 0)/length), len(slots)-1)
		for k := first; k <= max(first, last); k++ {
			slots[k].Add(float64(n.RxTrail[i].Power), float64(darkPower))
		}
	}
}
