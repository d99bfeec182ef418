package patch

import (
	"strings"

	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/tui/canvas"
	"github.com/ocslab/ocslab/tui/live"
	"github.com/ocslab/ocslab/tui/widget"
)

// Parts of the field that react to the mouse.
type part uint8

const (
	inGrid part = iota
	inRows      // the numbers of the ingress ports
	inColumns
)

// fieldZone is a part of the matrix as it was drawn, so that what is hit is what is seen
// also when the switch has changed since.
type fieldZone struct {
	sw         string
	part       part
	top, left  int
	cw         int
	perX, perY int
}

// switchZone is the name of a switch, rowZone a line of the list, and columnZone the name of one of
// its columns.
type (
	switchZone struct{ name string }
	rowZone    struct {
		sw string
		at place
	}
	columnZone struct{ column int }
)

// matrix draws the field as a matrix.
func (v *view) matrix(a canvas.Area, l layout) {
	f := l.field.of(a)
	rows, cols := min(l.rows, v.ins.n-l.top), min(l.cols, v.outs.n-l.left)
	if rows <= 0 || cols <= 0 {
		return
	}
	g := f.Sub(l.head, l.ruler, ceil(cols, l.perX)*l.cw, ceil(rows, l.perY))
	zone := fieldZone{v.sw.Name, inGrid, l.top, l.left, l.cw, l.perX, l.perY}
	g.Zone(zone)
	zone.part = inRows
	f.Sub(0, l.ruler, l.head, g.H).Zone(zone)
	zone.part = inColumns
	f.Sub(l.head, 0, g.W, l.ruler).Zone(zone)

	v.rowHeads(f, l, rows)
	v.columnHeads(f, l, cols)
	if l.level < zoomCells {
		v.density(g, l, rows, cols)
	} else {
		v.pairs(g, l, rows, cols)
	}
	v.crossing(f, g, l)
	if rows < v.ins.n && f.W > l.head+g.W {
		widget.Scrollbar(f.Sub(l.head+g.W, l.ruler, 1, g.H), l.top, rows, v.ins.n)
	}
	if l.left > 0 {
		f.Set(l.head-1, 0, '◂', canvas.S(canvas.Accent))
	}
	if l.left+cols < v.outs.n {
		f.Set(l.head+g.W, 0, '▸', canvas.S(canvas.Accent))
	}
}

// rowHeads draws number and name of each ingress that is seen.
func (v *view) rowHeads(f canvas.Area, l layout, rows int) {
	for y := 0; y*l.perY < rows; y++ {
		i := l.top + y*l.perY
		p := v.ins.at(i)
		line := f.Sub(0, l.ruler+y, l.head, 1)
		style := canvas.S(canvas.Dim)
		if v.tx[i] != nil && l.perY == 1 {
			style = canvas.S(canvas.Text)
		}
		if l.perY == 1 {
			mark, s := v.portMark(p, true)
			line.Set(0, 0, mark, s)
		}
		line.TextRight(1+l.digits, 0, p.String(), style)
		if l.names > 0 {
			line.Fit(2+l.digits, 0, l.names, v.name(p, true), style)
		}
	}
}

// portMark is the sign beside a port's number.
func (v *view) portMark(p ocs.Port, in bool) (rune, canvas.Style) {
	at := place{out: p}
	if in {
		at = place{in: p}
	}
	switch _, chosen := v.f.chosen[at]; {
	case chosen:
		return '+', canvas.S(canvas.Accent, canvas.Marked)
	case v.sw.Protected[p]:
		return '×', canvas.S(canvas.Warn)
	case v.sw.Shut[p]:
		return '▪', canvas.S(canvas.Bad)
	}
	return ' ', canvas.Style{}
}

// columnHeads draws the numbers of the egress ports that are seen, with signs, or with names
// below.
func (v *view) columnHeads(f canvas.Area, l layout, cols int) {
	if l.level == zoomDetail {
		v.wideHeads(f, l, cols)
		return
	}
	step := 8 * l.perX
	from, to := v.cursorNumber(f, l)
	for x := 0; x*l.perX < cols; x++ {
		i := l.left + x*l.perX
		at := l.head + x*l.cw
		tick := i%step == 0
		if tick {
			number := v.outs.at(i).String()
			if end := at + len(number); end <= f.W && (end < from || at > to) {
				f.Text(at, 0, number, canvas.S(canvas.Dim))
			}
		}
		if l.ruler < 2 {
			continue
		}
		r, s := ' ', canvas.S(canvas.Frame)
		if l.perX == 1 {
			r, s = v.portMark(v.outs.at(i), false)
		}
		switch {
		case r != ' ':
		case l.perX == 1 && v.rx[i] != nil:
			r, s = '•', canvas.S(canvas.Dim)
		case tick:
			r, s = '╷', canvas.S(canvas.Frame)
		}
		f.Set(at, 1, r, s)
	}
}

// wideHeads draws number and name of each egress over its columns.
func (v *view) wideHeads(f canvas.Area, l layout, cols int) {
	for x := range cols {
		p := v.outs.at(l.left + x)
		at := l.head + x*l.cw
		style := canvas.S(canvas.Dim)
		if v.rx[l.left+x] != nil {
			style = canvas.S(canvas.Text)
		}
		end := f.Text(at, 0, p.String(), style)
		if r, s := v.portMark(p, false); r != ' ' {
			f.Set(end, 0, r, s)
		}
		if l.ruler < 3 {
			continue
		}
		first, second := split(v.name(p, false), l.cw-1)
		f.Fit(at, 1, l.cw-1, first, style)
		f.Fit(at, 2, l.cw-1, second, style)
	}
}

// split breaks a name into two lines of w columns: after its "/" or blank, or where the first is
// full.
func split(name string, w int) (first, second string) {
	if i := strings.IndexAny(name, "/ "); i >= 0 {
		return name[:i], name[i+1:]
	}
	if canvas.Width(name) <= w {
		return name, ""
	}
	n := 0
	for i, r := range name {
		if n += canvas.Width(string(r)); n > w {
			return name[:i], name[i:]
		}
	}
	return name, ""
}

// pairs draws each pair that is seen: what could be, what the cursor crosses, what is
// selected, and on top of it the circuits.
func (v *view) pairs(g canvas.Area, l layout, rows, cols int) {
	row, col := v.ins.index(v.f.at.in)-l.top, v.outs.index(v.f.at.out)-l.left
	limited := v.g.Lanes > 0 || v.g.SingleSided
	for y := range rows {
		in := v.ins.at(l.top + y)
		for x := range cols {
			v.background(g, l, x, y, row, col, !limited || v.reaches(in, v.outs.at(l.left+x)))
		}
	}
	for p := range v.f.chosen {
		if y, x := v.ins.index(p.in)-l.top, v.outs.index(p.out)-l.left; p.in != 0 && p.out != 0 && y >= 0 && x >= 0 && y < rows && x < cols {
			g.Set(x*l.cw, y, '+', canvas.S(canvas.Accent, canvas.Marked))
		}
	}
	for y := range rows {
		in := v.ins.at(l.top + y)
		out, ok := v.sw.Map.EgressOf(in)
		if !ok {
			continue
		}
		if x := v.outs.index(out) - l.left; x >= 0 && x < cols {
			v.circuit(g.Sub(x*l.cw, y, l.cw, 1), ocs.CrossConnect{Ingress: in, Egress: out}, l)
		}
	}
}

// background draws a pair that is no circuit: of the lines of the cursor, or of the grid, which
// has one at every eighth port.
func (v *view) background(g canvas.Area, l layout, x, y, row, col int, reached bool) {
	at := x * l.cw
	switch {
	case y == row:
		for i := range l.cw {
			g.Set(at+i, y, '─', canvas.S(canvas.Accent, canvas.Bold))
		}
		if x == col {
			g.Set(at, y, '┼', canvas.S(canvas.Accent, canvas.Bold))
		}
	case x == col:
		g.Set(at, y, '│', canvas.S(canvas.Accent, canvas.Bold))
	case !reached:
		for i := range l.cw {
			g.Set(at+i, y, '░', canvas.S(canvas.Frame))
		}
	case (l.left+x)%8 == 0 && (l.top+y)%8 == 0:
		g.Set(at, y, '┼', canvas.S(canvas.Frame))
		for i := 1; i < l.cw; i++ {
			g.Set(at+i, y, '┄', canvas.S(canvas.Frame))
		}
	case (l.left+x)%8 == 0:
		g.Set(at, y, '┊', canvas.S(canvas.Frame))
	case (l.top+y)%8 == 0:
		for i := range l.cw {
			g.Set(at+i, y, '┄', canvas.S(canvas.Frame))
		}
	default:
		g.Set(at, y, '·', canvas.S(canvas.Frame))
	}
}

// circuit draws a circuit in the columns of its pair.
func (v *view) circuit(a canvas.Area, c ocs.CrossConnect, l layout) {
	r, style := v.sign(c)
	if _, chosen := v.f.chosen[placeOf(c)]; chosen {
		style = canvas.S(canvas.Accent, canvas.Marked)
	}
	if !v.matches(placeOf(c)) {
		r, style.Role = '▫', canvas.Dim
	}
	if l.level == zoomDetail {
		a.Fill(' ', style)
		if r != '×' && v.protected(c) && r != '▫' {
			a.Set(1, 0, '×', style)
		}
		a.Text(2, 0, v.short(c, l.cw-2), style)
	}
	a.Set(0, 0, r, style)
}

// short is the loss of a circuit in at most w columns; "" if it is not known, or not any more.
func (v *view) short(c ocs.CrossConnect, w int) string {
	x, ok := v.loss(c)
	if !ok || v.powerOld {
		return ""
	}
	text := decimals(float64(x), 1)
	if len(text) > w {
		text = decimals(float64(x), 0)
	}
	if len(text) > w {
		return ""
	}
	return text
}

// sign is what a circuit is drawn as: what there is most reason to look at.
func (v *view) sign(c ocs.CrossConnect) (rune, canvas.Style) {
	if v.mapOld {
		return '◌', canvas.S(canvas.Stale)
	}
	if v.byOthers(c) {
		return '!', canvas.S(canvas.Warn, canvas.Bold)
	}
	light := v.light(c)
	switch {
	case light == dark:
		return '○', canvas.S(canvas.Bad)
	case v.protected(c):
		return '×', canvas.S(canvas.Light)
	case light == lit:
		return '●', canvas.S(canvas.Light)
	}
	return '◆', canvas.S(canvas.Light)
}

// density draws a dot for each group of pairs that has a circuit, and in place of the dots of a
// character a sign, if there is a reason to look at one of its circuits.
func (v *view) density(g canvas.Area, l layout, rows, cols int) {
	dot := dots[l.level]
	cells := make([]crowd, g.W*g.H)
	set := func(p place, style canvas.Style) {
		y, x := v.ins.index(p.in)-l.top, v.outs.index(p.out)-l.left
		if y < 0 || x < 0 || y >= rows || x >= cols {
			return
		}
		cell := &cells[y/l.perY*g.W+x/l.perX]
		cell.dots |= braille(x%l.perX/dot, y%l.perY/dot)
		cell.style.Attr |= style.Attr
		if urgent(style.Role) >= urgent(cell.style.Role) {
			cell.style.Role = style.Role
		}
	}
	for c := range v.sw.Map.All() {
		_, style := v.sign(c)
		switch {
		case !v.matches(placeOf(c)):
			style = canvas.S(canvas.Dim)
		case !v.e.Filter.Empty():
			style.Attr |= canvas.Bold
		}
		set(placeOf(c), style)
	}
	for p := range v.f.chosen {
		if !p.port() {
			set(p, canvas.S(canvas.Accent, canvas.Marked))
		}
	}
	row, col := v.ins.index(v.f.at.in)-l.top, v.outs.index(v.f.at.out)-l.left
	if v.f.at.in == 0 {
		row = -l.perY
	}
	if v.f.at.out == 0 {
		col = -l.perX
	}
	for y := range g.H {
		for x := range g.W {
			cell := cells[y*g.W+x]
			onRow, onColumn := y == row/l.perY && row >= 0, x == col/l.perX && col >= 0
			switch {
			case cell.dots != 0:
				if onRow || onColumn {
					cell.style.Attr |= canvas.Bold
				}
				g.Set(x, y, cell.sign(), cell.style)
			case onRow && onColumn:
				g.Set(x, y, '┼', canvas.S(canvas.Accent, canvas.Bold))
			case onRow:
				g.Set(x, y, '─', canvas.S(canvas.Accent, canvas.Bold))
			case onColumn:
				g.Set(x, y, '│', canvas.S(canvas.Accent, canvas.Bold))
			case (l.left/l.perX+x)%8 == 0 || (l.top/l.perY+y)%4 == 0:
				g.Set(x, y, '·', canvas.S(canvas.Frame))
			}
		}
	}
}

// crowd is the circuits that share a character.
type crowd struct {
	dots  rune
	style canvas.Style // of the one there is most reason to look at
}

// sign is the dots, or what there is reason to look at.
func (c crowd) sign() rune {
	switch c.style.Role {
	case canvas.Accent:
		return '+'
	case canvas.Bad:
		return '○'
	case canvas.Warn:
		return '!'
	}
	return 0x2800 | c.dots
}

// urgent orders the roles of circuits that share a character.
func urgent(r canvas.Role) int {
	switch r {
	case canvas.Accent:
		return 5
	case canvas.Bad:
		return 4
	case canvas.Warn:
		return 3
	case canvas.Light, canvas.Stale:
		return 2
	case canvas.Dim:
		return 1
	}
	return 0
}

// braille is the dot at x from 0 to 1 and y from 0 to 3 of a character.
func braille(x, y int) rune {
	return [2][4]rune{{0x01, 0x02, 0x04, 0x40}, {0x08, 0x10, 0x20, 0x80}}[x&1][y&3]
}

// crossing marks the cursor, and its numbers on both rulers.
func (v *view) crossing(f, g canvas.Area, l layout) {
	y, x := v.ins.index(v.f.at.in)-l.top, v.outs.index(v.f.at.out)-l.left
	onRow := v.f.at.in != 0 && y >= 0 && y < l.rows
	onColumn := v.f.at.out != 0 && x >= 0 && x < l.cols
	if onRow {
		line := f.Sub(0, l.ruler+y/l.perY, l.head-1, 1)
		line.TextRight(1+l.digits, 0, pad(v.f.at.in.String(), l.digits), canvas.S(canvas.Accent, canvas.Bold))
		line.Add(canvas.Bold)
		if v.f.at.out == 0 {
			line.Add(canvas.Cursor)
		} else {
			line.Add(canvas.Underline)
		}
	}
	if onColumn {
		from, to := v.cursorNumber(f, l)
		f.Text(from, 0, v.f.at.out.String(), canvas.S(canvas.Accent, canvas.Bold, canvas.Underline))
		if v.f.at.in == 0 {
			f.Sub(from, 0, to-from, 1).Add(canvas.Cursor)
		}
	}
	if onRow && onColumn {
		g.Sub(x/l.perX*l.cw, y/l.perY, l.cw, 1).Add(canvas.Cursor)
	}
}

// cursorNumber is the columns that the number of the cursor's egress takes in the ruler; none if it
// is on no egress.
func (v *view) cursorNumber(f canvas.Area, l layout) (from, to int) {
	x := v.outs.index(v.f.at.out) - l.left
	if v.f.at.out == 0 || x < 0 || x >= l.cols {
		return -1, -1
	}
	n := len(v.f.at.out.String())
	from = max(0, min(l.head+x/l.perX*l.cw, f.W-n))
	return from, from + n
}

func pad(text string, n int) string {
	for len(text) < n {
		text = " " + text
	}
	return text
}

// legend explains the signs, those there is room for.
func (v *view) legend(a canvas.Area, l layout) {
	type entry struct {
		sign  string
		role  canvas.Role
		words string
	}
	var entries []entry
	if l.level < zoomCells {
		n := itoa(dots[l.level])
		entries = []entry{{"⠁", canvas.Light, "circuits in " + n + "x" + n + " pairs"}, {"○", canvas.Bad, "one is dark"}}
	} else {
		entries = []entry{{"●", canvas.Light, "light"}, {"○", canvas.Bad, "dark"}, {"◆", canvas.Light, "unknown"}}
		if v.mapOld {
			entries = append(entries, entry{"◌", canvas.Stale, "stale"})
		}
		entries = append(entries, entry{"×", canvas.Warn, "protected"})
	}
	entries = append(entries, entry{"!", canvas.Warn, "by others"}, entry{"+", canvas.Accent, "selected"})
	if l.level >= zoomCells && (v.g.Lanes > 0 || v.g.SingleSided) {
		entries = append(entries, entry{"░", canvas.Frame, "cannot be"})
	}
	if l.level >= zoomCells && v.sw.Shutters {
		entries = append(entries, entry{"▪", canvas.Bad, "shut"})
	}
	if l.level == zoomDetail {
		entries = append(entries, entry{"1.5", canvas.Light, "loss dB"})
	}
	if !v.e.Filter.Empty() {
		entries = append([]entry{{"▫", canvas.Dim, "filtered out"}}, entries...)
	}
	x := 0
	for _, e := range entries {
		w := canvas.Width(e.sign) + 1 + canvas.Width(e.words)
		if x+w > a.W {
			break
		}
		end := a.Text(x, 0, e.sign, canvas.S(e.role))
		a.Text(end+1, 0, e.words, canvas.S(canvas.Dim))
		x += w + 2
	}
}

// switches draws the names of the switches with how it stands with each, as many as there is room
// for around the one that is shown.
func (v *view) switches(a canvas.Area) {
	all := v.e.State.Switches
	widths := make([]int, len(all))
	chosen, total := 0, 0
	for i, sw := range all {
		widths[i] = canvas.Width(sw.Name) + canvas.Width(statusWord(sw)) + 5
		total += widths[i]
		if sw == v.sw {
			chosen = i
		}
	}
	first := 0
	for used, i := 0, chosen; total > a.W && i >= 0; i-- {
		if used += widths[i]; used > a.W-4 {
			first = min(i+1, chosen)
			break
		}
	}
	x := 0
	if first > 0 {
		x = a.Text(0, 0, "◂ ", canvas.S(canvas.Accent))
	}
	for i := first; i < len(all); i++ {
		if x+widths[i] > a.W && i > chosen {
			a.Text(a.W-1, 0, "▸", canvas.S(canvas.Accent))
			break
		}
		tab := a.Sub(x, 0, widths[i]-1, 1)
		v.tab(tab, all[i])
		tab.Zone(switchZone{all[i].Name})
		x += widths[i]
	}
}

func (v *view) tab(a canvas.Area, sw *live.Switch) {
	r, role := statusSign(sw.Status)
	a.Set(1, 0, r, canvas.S(role))
	style := canvas.S(canvas.Text)
	if sw == v.sw {
		style = canvas.S(canvas.Accent, canvas.Bold, canvas.Underline)
	}
	x := a.Text(3, 0, sw.Name, style)
	if word := statusWord(sw); word != "" {
		a.Text(x, 0, word, canvas.S(role))
	}
}

// statusWord is what is said of a switch beside its name, with a blank before; nothing of one that
// is up.
func statusWord(sw *live.Switch) string {
	switch sw.Status {
	case live.Up:
		return ""
	case live.Lost:
		return " LOST"
	}
	return " " + string(sw.Status)
}

func statusSign(s live.Status) (rune, canvas.Role) {
	switch s {
	case live.Up:
		return '●', canvas.Good
	case live.Lost:
		return '✗', canvas.Bad
	case live.Lent:
		return '▸', canvas.Busy
	}
	return '◌', canvas.Busy
}
