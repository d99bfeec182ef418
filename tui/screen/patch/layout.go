package patch

import (
	"github.com/ocslab/ocslab/tui/canvas"
)

// zoom is how large the matrix is drawn: a level, or how to find one.
type zoom int8

const (
	zoomAuto zoom = iota - 2 // what is of most use in the space there is
	zoomFit                  // the largest at which all is seen
)

// The levels from small to large. Those before zoomCells have dots of several pairs of ports.
const (
	zoomCells  = zoom(len(dots)) + iota // a character for each pair
	zoomDetail                          // several columns for each pair, with what it loses
)

// dots is how many ports a dot stands for in each direction at the small levels. A character has
// two dots by four.
var dots = [...]int{16, 12, 8, 6, 4, 3, 2, 1}

// Sizes of the parts of the screen, in columns and lines.
const (
	detailMin = 5 // of a pair at zoomDetail: a sign, another, and "12.3"
	detailMax = 10
	wideCell  = 2  // of a pair at zoomCells where there is room: as wide as a line is high, about
	paneWide  = 36 // of a pane for which pairs have no need to be narrow
	namesMax  = 14 // of what is at a port, beside its row
	paneMin   = 30 // of the pane at the right
	paneMax   = 58
	paneBelow = 6 // lines of the pane when it is below
)

// layout is where everything is. It follows from the view and the size of the screen alone.
type layout struct {
	level   zoom
	notices int // lines below the names of the switches
	legend  int // lines at the bottom

	field, pane rect

	head       int // columns before the first pair
	digits     int // of a port's number there
	names      int // of what is at a port there, 0 for none
	ruler      int // lines above the first pair
	cw         int // columns of a pair
	perX, perY int // ports in a character
	rows, cols int // ports there is room for
	top, left  int // the first that are seen
	all        bool
	longest    int // of the names at ingress ports
}

// rect is a part of the screen.
type rect struct{ x, y, w, h int }

func (r rect) of(a canvas.Area) canvas.Area { return a.Sub(r.x, r.y, r.w, r.h) }

// layout places everything in w x h.
func (s *Screen) layout(v *view, w, h int) layout {
	var l layout
	l.notices = min(len(v.notices(w)), max(0, h-7))
	if h >= 10 && !s.asList {
		l.legend = 1
	}
	l.measure(v)
	body := rect{0, min(h, 1+l.notices), w, max(0, h-1-l.notices-l.legend)}
	if s.asList {
		l.placePane(body, 92)
		return l
	}
	switch z := v.f.zoom; z {
	case zoomAuto:
		return l.auto(v, body)
	case zoomFit:
		return l.fit(v, body)
	default:
		return l.at(v, z, body)
	}
}

// measure finds how wide numbers and names are.
func (l *layout) measure(v *view) {
	l.digits = 1
	if v.ins.n > 0 {
		l.digits = len(itoa(int(v.ins.at(v.ins.n - 1))))
	}
	for i := range v.ins.n {
		if name := v.name(v.ins.at(i), true); name != "" {
			l.longest = max(l.longest, canvas.Width(name))
		}
	}
	l.longest = min(l.longest, namesMax)
}

// named reports whether anything is known of what is at the egress ports that are seen.
func (l *layout) named(v *view) bool {
	for i := l.left; i < min(l.left+l.cols, v.outs.n); i++ {
		if v.name(v.outs.at(i), false) != "" {
			return true
		}
	}
	return false
}

// auto takes details when all columns have room for them, else a character for each pair when
// all columns and a good part of the rows are seen, else what fits.
func (l layout) auto(v *view, body rect) layout {
	if d := l.at(v, zoomDetail, body); d.cols >= v.outs.n && 3*d.rows >= v.ins.n {
		return d
	}
	if c := l.at(v, zoomCells, body); c.cols >= v.outs.n && 3*c.rows >= v.ins.n {
		return c
	}
	return l.fit(v, body)
}

// fit takes the largest level at which everything is seen, or the smallest.
func (l layout) fit(v *view, body rect) layout {
	for z := zoomDetail; z > 0; z-- {
		if at := l.at(v, z, body); at.all {
			return at
		}
	}
	return l.at(v, 0, body)
}

// at places field and pane for a level.
func (l layout) at(v *view, z zoom, body rect) layout {
	l.level = max(0, min(z, zoomDetail))
	l.cw, l.perX, l.perY, l.ruler = 1, 1, 1, 2
	names := min(l.longest, namesMax)
	switch {
	case l.level == zoomDetail:
		l.cw, l.ruler = detailMin, 1
	case l.level < zoomCells:
		l.perX, l.perY = 2*dots[l.level], 4*dots[l.level]
		names = 0
	default:
		if l.digits+2+names+1+wideCell*v.outs.n+1+paneWide <= body.w {
			l.cw = wideCell
		}
	}
	if body.h < 8 {
		l.ruler = 1
	}
	columns := ceil(v.outs.n, l.perX) * l.cw
	bare := l.digits + 2
	wide := bare + columns + 1
	if names > 0 {
		wide += names + 1
	}
	l.placePane(body, wide)
	if spare := l.field.w - bare - columns - 1; names > 0 {
		if spare < 0 { // it is panned anyway
			spare = l.field.w / 6
		}
		if names = min(names, spare-1); names < 4 {
			names = 0
		}
	}
	l.names, l.head = names, bare
	if names > 0 {
		l.head += names + 1
	}
	room := max(0, l.field.w-l.head-1)
	if l.level == zoomDetail && v.outs.n > 0 {
		l.cw = max(detailMin, min(detailMax, room/v.outs.n))
	}
	l.cols = room / l.cw * l.perX
	l.left = window(v.f.left, v.outs.index(v.f.at.out), v.outs.n, l.cols, l.perX)
	if l.level == zoomDetail && body.h >= 12 && l.named(v) {
		l.ruler = 3
	}
	l.rows = max(0, l.field.h-l.ruler) * l.perY
	l.all = l.cols >= v.outs.n && l.rows >= v.ins.n
	l.top = window(v.f.top, v.ins.index(v.f.at.in), v.ins.n, l.rows, l.perY)
	l.gather(ceil(v.ins.n, l.perY))
	return l
}

// gather moves a pane that is below a field of so many lines to where that ends, and gives it some
// of the room that is left.
func (l *layout) gather(lines int) {
	spare := l.field.h - l.ruler - lines
	if spare <= 0 || l.pane.y == l.field.y || l.pane.h == 0 {
		return
	}
	l.field.h -= spare
	l.pane.y -= spare
	l.pane.h = min(l.pane.h+spare, 12)
}

// placePane gives a field that would like to be so wide its place in body, and the pane what
// is left of it: at the right where it does not take columns that the field needs, or where
// there are many; else below.
func (l *layout) placePane(body rect, wide int) {
	l.field = body
	l.pane = rect{}
	below := 0
	switch {
	case body.h >= 15:
		below = paneBelow
	case body.h >= 11:
		below = 3
	}
	right := 0
	if spare := body.w - wide; spare >= paneMin {
		right = min(spare, paneMax)
	} else if body.w >= 100 && (below == 0 || body.w < wide) {
		right = paneMin
	}
	switch {
	case right > 0:
		l.field.w = body.w - right
		l.pane = rect{l.field.w, body.y, right, body.h}
	case below > 0:
		l.field.h = body.h - below
		l.pane = rect{body.x, body.y + l.field.h, body.w, below}
	}
}

// window moves the first of n ports that is seen so that the cursor is seen, too, and nothing
// is seen beyond the last. A cursor below 0 is not looked for. What is seen begins with a
// multiple of per.
func window(first, cursor, n, seen, per int) int {
	if seen <= 0 {
		return 0
	}
	if cursor >= 0 {
		if cursor < first {
			first = cursor
		}
		if cursor >= first+seen {
			first = ceil(cursor-seen+1, per) * per
		}
	}
	last := ceil(max(0, n-seen), per) * per
	first = max(0, min(first, last))
	return first - first%per
}

func ceil(n, per int) int { return (n + per - 1) / per }

// about says how large the matrix is drawn, for people.
func (l layout) about() string {
	switch {
	case l.level == zoomDetail:
		return "detail"
	case l.level == zoomCells:
		return "1:1"
	}
	return "1:" + itoa(dots[l.level])
}
