package patch

import (
	"cmp"
	"slices"
	"strings"

	"github.com/ocslab/ocslab/internal/natural"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/tui/canvas"
	"github.com/ocslab/ocslab/tui/keymap"
	"github.com/ocslab/ocslab/tui/live"
	"github.com/ocslab/ocslab/tui/widget"
)

// The columns of the list.
const (
	colIngress = iota
	colEgress
	colFrom
	colTo
	colIn
	colOut
	colLoss
	colState
	colHold
	colInLabel
	colOutLabel
	listColumns

	unsorted = -1
)

// columns are in the order they are drawn in. What a narrow terminal loses, the pane has.
var columns = [listColumns]widget.Column{
	colIngress:  {Name: "ingress", Keep: 10, Right: true},
	colEgress:   {Name: "egress", Keep: 10, Right: true},
	colFrom:     {Name: "from", Width: 10, Max: 24, Keep: 8},
	colTo:       {Name: "to", Width: 10, Max: 24, Keep: 8},
	colIn:       {Name: "in dBm", Width: 6, Keep: 5, Right: true},
	colOut:      {Name: "out dBm", Width: 7, Keep: 6, Right: true},
	colLoss:     {Name: "loss dB", Width: 7, Keep: 5, Right: true},
	colState:    {Name: "state", Width: 8, Max: 26, Keep: 9},
	colHold:     {Name: "hold", Width: 9, Max: 24, Keep: 4},
	colInLabel:  {Name: "label in", Width: 8, Max: 20, Keep: 2},
	colOutLabel: {Name: "label out", Width: 8, Max: 20, Keep: 1},
}

// rows are the lines of the list: the circuits, then the ports that are in none, those of
// NICs or all, as far as the filter lets them through.
func (s *Screen) rows(v *view) []place {
	if v.sw == nil {
		return nil
	}
	rows := make([]place, 0, v.sw.Map.Len()+16)
	add := func(p place) {
		if v.matches(p) {
			rows = append(rows, p)
		}
	}
	for c := range v.sw.Map.All() {
		add(placeOf(c))
	}
	for i := range v.ins.n {
		if p := v.ins.at(i); (s.all || v.tx[i] != nil) && !v.busy(p, true) {
			add(place{in: p})
		}
	}
	for i := range v.outs.n {
		p := v.outs.at(i)
		if (s.all && !v.g.SingleSided || v.rx[i] != nil) && !v.busy(p, false) {
			add(place{out: p})
		}
	}
	if s.sort != unsorted {
		s.order(v, rows)
	}
	return rows
}

// busy reports whether a port is in a circuit: in its role, or, where it may have either, in any.
func (v *view) busy(p ocs.Port, in bool) bool {
	_, ok := v.peer(p, in)
	if !ok && v.g.SingleSided {
		_, ok = v.peer(p, !in)
	}
	return ok
}

// order sorts the rows by the column that was chosen; what has no value comes last.
func (s *Screen) order(v *view, rows []place) {
	type keyed struct {
		at     place
		number float64
		text   string
		none   bool
	}
	keys := make([]keyed, len(rows))
	for i, p := range rows {
		k := keyed{at: p}
		switch s.sort {
		case colIngress:
			k.number, k.none = float64(p.in), p.in == 0
		case colEgress:
			k.number, k.none = float64(p.out), p.out == 0
		case colIn, colOut, colLoss:
			var ok bool
			k.number, ok = v.number(p, s.sort)
			k.none = !ok
		default:
			k.text = v.text(p, s.sort)
			k.none = k.text == ""
		}
		keys[i] = k
	}
	slices.SortStableFunc(keys, func(a, b keyed) int {
		if a.none != b.none {
			if a.none {
				return 1
			}
			return -1
		}
		c := cmp.Or(cmp.Compare(a.number, b.number), natural.Compare(a.text, b.text))
		if s.down {
			c = -c
		}
		return c
	})
	for i, k := range keys {
		rows[i] = k.at
	}
}

// number is the power or loss in a column; false if there is none.
func (v *view) number(p place, col int) (float64, bool) {
	switch {
	case col == colIn && p.in != 0:
		x, ok := v.sw.Power[p.in]
		return float64(x), ok
	case col == colOut && p.out != 0:
		x, ok := v.sw.Power[p.out]
		return float64(x), ok
	case col == colLoss && !p.port():
		x, ok := v.loss(p.circuit())
		return float64(x), ok
	}
	return 0, false
}

// text is what a column says of a circuit or a port.
func (v *view) text(p place, col int) string {
	switch col {
	case colIngress:
		return number(p.in)
	case colEgress:
		return number(p.out)
	case colFrom:
		return v.named(p.in, true)
	case colTo:
		return v.named(p.out, false)
	case colIn:
		return v.power(p.in)
	case colOut:
		return v.power(p.out)
	case colLoss:
		if x, ok := v.number(p, colLoss); ok {
			return decimals(x, 2)
		}
	case colState:
		return v.state(p)
	case colHold:
		return v.hold(p)
	case colInLabel:
		return v.sw.Labels[p.in]
	case colOutLabel:
		return v.sw.Labels[p.out]
	}
	return ""
}

// named is the name of a port; "" for no port.
func (v *view) named(p ocs.Port, in bool) string {
	if p == 0 {
		return ""
	}
	return v.name(p, in)
}

func number(p ocs.Port) string {
	if p == 0 {
		return ""
	}
	return p.String()
}

// state says in a few words how it stands with a circuit, or with a port.
func (v *view) state(p place) string {
	words := "not connected"
	if !p.port() {
		words = v.lightWord(p.circuit())
		if v.byOthers(p.circuit()) {
			words += ", by others"
		}
	}
	if v.sw.Shut[p.in] || v.sw.Shut[p.out] {
		words += ", shut"
	}
	if v.mapOld {
		words += ", stale"
	}
	return words
}

// lightWord is "light", "dark", or why neither can be said.
func (v *view) lightWord(c ocs.CrossConnect) string {
	switch v.light(c) {
	case lit:
		return "light"
	case dark:
		return "dark"
	}
	if _, ok := v.sw.Power[c.Egress]; ok {
		return "power is old"
	}
	return "not measured"
}

// hold says who has a hand on a circuit.
func (v *view) hold(p place) string {
	var words []string
	if v.sw.Protected[p.in] || v.sw.Protected[p.out] {
		words = append(words, "protected")
	}
	if o := v.sw.Set[p.circuit()]; !p.port() && o.Who != "" {
		who := o.Who
		if o.ID != 0 {
			who += " #" + itoa(o.ID)
		}
		words = append(words, who)
	}
	return strings.Join(words, ", ")
}

// matches reports whether the filter lets a circuit or port through. Without a filter it does no
// work.
func (v *view) matches(p place) bool {
	if v.e.Filter.Empty() {
		return true
	}
	var fields [listColumns + 2]string
	for col := range listColumns {
		fields[col] = v.text(p, col)
	}
	fields[listColumns] = p.String()
	if p.in != 0 && v.g.Lanes > 0 {
		fields[listColumns+1] = v.g.PortName(p.in)
	}
	return v.e.Filter.Match(fields[:]...)
}

// line is a row as text, with tabs between.
func (v *view) line(p place) string {
	fields := []string{v.sw.Name, p.String()}
	for _, x := range []struct {
		name string
		col  int
	}{{"from ", colFrom}, {"to ", colTo}, {"in dBm ", colIn}, {"out dBm ", colOut}, {"loss dB ", colLoss}, {"", colState}, {"", colHold}, {"label in ", colInLabel}, {"label out ", colOutLabel}} {
		if t := v.text(p, x.col); t != "" {
			fields = append(fields, x.name+t)
		}
	}
	return strings.Join(fields, "\t")
}

// rowAt is the row the cursor is in: that of the pair, else that of one of its ports, else the one
// it was in last.
func (s *Screen) rowAt(v *view, rows []place) int {
	if i := slices.Index(rows, v.f.at); i >= 0 {
		return i
	}
	for i, p := range rows {
		if v.f.at.in != 0 && p.in == v.f.at.in || v.f.at.out != 0 && p.out == v.f.at.out {
			return i
		}
	}
	return max(0, min(v.f.last, len(rows)-1))
}

// moveInList moves the cursor by rows.
func (s *Screen) moveInList(act keymap.Action, v *view) {
	rows := v.rows
	if len(rows) == 0 {
		return
	}
	l := s.layout(v, s.w, s.h)
	i, page := s.rowAt(v, rows), max(1, widget.Rows(l.field.h)-1)
	switch act {
	case keymap.Up:
		i--
	case keymap.Down:
		i++
	case keymap.PageUp:
		i -= page
	case keymap.PageDown:
		i += page
	case keymap.Home:
		i = 0
	case keymap.End:
		i = len(rows) - 1
	}
	s.toRow(v, rows, i)
}

// toRow puts the cursor on row i, or the nearest there is.
func (s *Screen) toRow(v *view, rows []place, i int) {
	i = max(0, min(i, len(rows)-1))
	f := s.keep(v.sw.Name)
	f.at, f.last = rows[i], i
	f.row = widget.Scroll(f.row, i, len(rows), s.layout(v, s.w, s.h).field.h)
	v.f = *f
}

// sortByNext goes through the columns, and ends with the order of the switch.
func (s *Screen) sortByNext() {
	if s.sort++; s.sort == listColumns {
		s.sort = unsorted
	}
}

// list draws the circuits and free ports as a table.
func (s *Screen) list(v *view, a canvas.Area, l layout) {
	rows := v.rows
	cursor := s.rowAt(v, rows)
	f := l.field.of(a)
	t := widget.Table{
		Columns: columns[:],
		Rows:    len(rows),
		Row:     func(i int) []widget.Value { return v.values(rows[i]) },
		Top:     widget.Scroll(v.f.row, cursor, len(rows), f.H),
		Cursor:  cursor,
		Marked:  func(i int) bool { _, on := v.f.chosen[rows[i]]; return on },
		Zone:    func(i int) any { return rowZone{v.sw.Name, rows[i]} },

		ZoneColumn: func(c int) any { return columnZone{c} },
		SortedBy:   s.sort,
		Descending: s.down,
		Empty:      s.nothing(v),
	}
	t.Draw(f)
}

// nothing says why the list is empty.
func (s *Screen) nothing(v *view) string {
	switch {
	case !v.e.Filter.Empty():
		return "Nothing matches " + v.e.Filter.String() + ". Esc clears the filter."
	case v.sw.MapAt.IsZero():
		return "The circuits of " + v.sw.Name + " have not been read yet."
	}
	return "No circuits, and no NICs at the ports. a lists all ports."
}

// values are the cells of a row.
func (v *view) values(p place) []widget.Value {
	out := make([]widget.Value, listColumns)
	for col := range out {
		out[col] = widget.V(v.text(p, col), v.role(p, col))
	}
	if !p.port() {
		r, style := v.sign(p.circuit())
		out[colState].Text = string(r) + " " + out[colState].Text
		out[colState].Style = style
	} else {
		out[colState].Text = "  " + out[colState].Text
	}
	return out
}

func (v *view) role(p place, col int) canvas.Role {
	switch {
	case v.sw.Status == live.Lost || v.sw.Status == live.Opening:
		return canvas.Stale
	case v.powerOld && (col == colIn || col == colOut || col == colLoss):
		return canvas.Stale
	case p.port() || col == colHold || col == colInLabel || col == colOutLabel:
		return canvas.Dim
	case col == colOut && v.light(p.circuit()) == dark:
		return canvas.Bad
	}
	return canvas.Text
}
