package widget

import (
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/ocslab/ocslab/timeline"
	"github.com/ocslab/ocslab/tui/canvas"
)

// TimeAxis lays nanoseconds out on columns.
type TimeAxis struct {
	From, To int64 // the first and the last instant that is shown; To is after From
	// Knee, if above 0, makes the axis logarithmic: linear up to so many nanoseconds on either
	// side of 0, and each decade beyond as wide as the one before.
	Knee int64
}

// Log reports whether the axis is logarithmic.
func (x TimeAxis) Log() bool { return x.Knee > 0 }

// place is where an instant is, in no unit. A later one is never before an earlier one.
func (x TimeAxis) place(ns float64) float64 {
	if x.Knee <= 0 {
		return ns
	}
	return math.Copysign(math.Log1p(math.Abs(ns)/float64(x.Knee)), ns)
}

// instant is the inverse of place.
func (x TimeAxis) instant(place float64) int64 {
	if x.Knee > 0 {
		place = math.Copysign(math.Expm1(math.Abs(place))*float64(x.Knee), place)
	}
	const far = 1 << 62
	return int64(min(max(place, -far), far))
}

// ends are the places of the first and the last instant.
func (x TimeAxis) ends() (from, to float64) {
	from, to = x.place(float64(x.From)), x.place(float64(x.To))
	if !(to > from) {
		to = from + 1
	}
	return from, to
}

// Column is the column of w that holds an instant, -1 if that is before the axis, and w if
// it is after it.
func (x TimeAxis) Column(ns int64, w int) int {
	switch {
	case ns < x.From:
		return -1
	case ns > x.To:
		return w
	}
	from, to := x.ends()
	part := (x.place(float64(ns)) - from) / (to - from)
	return min(max(int(part*float64(w)), 0), w-1)
}

// least is how little of time an axis shows, in nanoseconds.
const least = 100

// Zoom returns the axis that shows the part of this one, around what is at its middle: half
// of it with 0.5, twice as much with 2.
func (x TimeAxis) Zoom(part float64) TimeAxis {
	from, to := x.ends()
	mid, half := from/2+to/2, (to-from)/2*part
	z := TimeAxis{From: x.instant(mid - half), To: x.instant(mid + half), Knee: x.Knee}
	if z.To-z.From < least {
		return x
	}
	return z
}

// Pan returns the axis moved by a part of its length, to later times if above 0.
func (x TimeAxis) Pan(part float64) TimeAxis {
	from, to := x.ends()
	by := (to - from) * part
	z := TimeAxis{From: x.instant(from + by), To: x.instant(to + by), Knee: x.Knee}
	if z.To-z.From < least {
		return x
	}
	return z
}

// RoundUp returns the first of 1, 2, 5, 10, 20, 50, … nanoseconds that is not less than ns.
func RoundUp(ns float64) int64 {
	step := int64(1)
	for step < 1e18 {
		for _, digit := range [...]int64{1, 2, 5} {
			if float64(digit*step) >= ns {
				return digit * step
			}
		}
		step *= 10
	}
	return step
}

// tick is a labelled instant.
type tick struct {
	ns    int64
	label string
}

// Ruler draws the axis: labels in the first line, a rule with ticks in the second.
func (x TimeAxis) Ruler(a canvas.Area) {
	for i := range a.W {
		a.Set(i, 1, '─', canvas.S(canvas.Frame))
	}
	free := 0
	for _, t := range x.ticks(a.W) {
		at := x.Column(t.ns, a.W)
		if at < 0 || at >= a.W {
			continue
		}
		a.Set(at, 1, '┬', canvas.S(canvas.Frame))
		long := canvas.Width(t.label)
		if at = min(at, a.W-long); at >= free { // the last may stand a little to the left
			a.Text(at, 0, t.label, canvas.S(canvas.Dim))
			free = at + long + 1
		}
	}
}

// ticks returns the instants to label on w columns.
func (x TimeAxis) ticks(w int) []tick {
	if w <= 0 {
		return nil
	}
	if x.Log() {
		return x.decades()
	}
	const room = 8 // columns for a label
	short := max(float64(x.To)-float64(x.From), 1) / float64(w) * room
	step := RoundUp(short)
	unit, name := int64(1), "ns"
	for _, u := range []tick{{1e3, "µs"}, {1e6, "ms"}, {1e9, "s"}} {
		if step >= u.ns || max(x.To, -x.From) >= u.ns {
			unit, name = u.ns, u.label
		}
	}
	decimals := 0
	for d := unit; d > step; d /= 10 {
		decimals++
	}
	var list []tick
	first := x.From / step * step
	if first < x.From {
		first += step
	}
	for ns := first; ns <= x.To && len(list) < w; ns += step {
		label := strconv.FormatFloat(float64(ns)/float64(unit), 'f', decimals, 64)
		if len(list) == 0 || ns == 0 {
			label += " " + name
		}
		if list = append(list, tick{ns, label}); ns > math.MaxInt64-step {
			break
		}
	}
	return list
}

// decades returns 0 and the powers of ten.
func (x TimeAxis) decades() []tick {
	var list []tick
	add := func(ns int64, label string) {
		if ns >= x.From && ns <= x.To {
			list = append(list, tick{ns, label})
		}
	}
	add(0, "0")
	names := []string{"ns", "µs", "ms", "s"}
	for e, ns := 0, int64(1); e <= 18; e, ns = e+1, ns*10 {
		if ns < x.Knee {
			continue
		}
		k := min(e/3, len(names)-1)
		digits := "1" + "000000000000000000"[:e-3*k]
		add(ns, digits+" "+names[k])
	}
	return list
}

// Bar is a line of a Waterfall: something was gone from Start to End, or was reached at
// End. Both are known to intervals only.
type Bar struct {
	Name  string
	Role  canvas.Role
	Cells []Value // beside the bar, at the right

	Start, End       timeline.Interval
	HasStart, HasEnd bool

	// First is when the first of several was back, of which End is the last.
	First    timeline.Interval
	HasFirst bool

	// Lead is when what came before was reached, which a thin line begins at when there is no
	// Start.
	Lead    int64
	HasLead bool

	// Until is how far it is known that nothing has come: without End, and with Start or Lead,
	// a heavy line goes from there to here.
	Until   int64
	Open    bool // Until means something
	Growing bool // and time goes on: "…" at the end

	// Usual is when it came in earlier ones.
	Usual    int64
	HasUsual bool

	Note     string // what is to be said in place of a bar, or beside it
	NoteRole canvas.Role
}

// The characters of bars.
const (
	BarGone   = '█' // gone, for certain
	BarMaybe  = '░' // when exactly is not known: the interval of a mark
	BarSome   = '▒' // some are back
	BarOpen   = '━' // not back as far as known
	BarLead   = '─' // since the stage before
	BarPoint  = '◆' // a mark that is known to less than a column
	BarUsual  = '│' // when it comes usually
	BarBefore = '◂' // lies before what is shown
	BarAfter  = '▸' // lies after it
)

// Draw draws the bar in the first line of an area, whose columns are those of the axis. The
// columns of every instant of Start, First and End, as far as the axis has them, show
// BarMaybe, or, where an interval is within one column, one of the other characters: what
// is not known is never drawn smaller than it is.
func (b Bar) Draw(a canvas.Area, x TimeAxis) {
	s := canvas.S(b.Role)
	w := a.W
	if w <= 0 || a.H <= 0 {
		return
	}
	last := -1 // the last column drawn on
	fill := func(from, to int64, r rune, s canvas.Style) {
		if from > to || from > x.To || to < x.From {
			return
		}
		c0, c1 := max(x.Column(from, w), 0), min(x.Column(to, w), w-1)
		for c := c0; c <= c1; c++ {
			a.Set(c, 0, r, s)
		}
		last = max(last, c1)
	}
	switch {
	case b.HasStart && b.HasEnd && b.HasFirst:
		fill(b.Start.Latest, b.End.Earliest, BarSome, s)
		fill(b.Start.Latest, b.First.Earliest, BarGone, s)
	case b.HasEnd && b.HasFirst:
		if fill(b.First.Latest, b.End.Earliest, BarSome, s); b.HasLead {
			fill(b.Lead, b.First.Earliest, BarLead, canvas.S(canvas.Dim))
		}
	case b.HasStart && b.HasEnd:
		fill(b.Start.Latest, b.End.Earliest, BarGone, s)
	case b.HasFirst && b.Open:
		if fill(b.First.Latest, b.Until, BarSome, s); b.HasStart {
			fill(b.Start.Latest, b.First.Earliest, BarGone, s)
		}
	case b.HasStart && b.Open:
		fill(b.Start.Latest, b.Until, BarOpen, s)
	case b.HasLead && b.Open:
		fill(b.Lead, b.Until, BarOpen, canvas.S(canvas.Dim))
	case b.HasLead && b.HasEnd:
		fill(b.Lead, b.End.Earliest, BarLead, canvas.S(canvas.Dim))
	}
	if b.Open && b.Growing && b.Until >= x.From && b.Until <= x.To {
		c := x.Column(b.Until, w)
		a.Set(c, 0, '…', s)
		last = max(last, c)
	}
	if c := x.Column(b.Usual, w); b.HasUsual && c >= 0 && c < w {
		a.Set(c, 0, BarUsual, canvas.S(canvas.Dim))
	}
	edge := func(i timeline.Interval, alone rune) {
		c0, c1 := x.Column(i.Earliest, w), x.Column(i.Latest, w)
		if c0 != c1 {
			alone = BarMaybe
		}
		fill(i.Earliest, i.Latest, alone, s)
	}
	if b.HasStart {
		edge(b.Start, pick(b.HasEnd || b.Open, BarGone, BarPoint))
	}
	if b.HasFirst {
		edge(b.First, pick(b.HasStart, BarGone, BarPoint))
	}
	if b.HasEnd {
		edge(b.End, pick(b.HasStart && !b.HasFirst, BarGone, BarPoint))
	}
	// Wide intervals once more, so that a narrow one hides nothing of them.
	for _, i := range [...]struct {
		has bool
		at  timeline.Interval
	}{{b.HasStart, b.Start}, {b.HasFirst, b.First}, {b.HasEnd, b.End}} {
		if i.has && x.Column(i.at.Earliest, w) != x.Column(i.at.Latest, w) {
			edge(i.at, BarMaybe)
		}
	}
	b.beyond(a, x, last >= 0)
	if b.Note != "" {
		b.note(a, x, last)
	}
}

// before reports whether a mark may be before an axis that begins at 0.
func (b Bar) before(x TimeAxis) bool {
	return x.From == 0 && (b.HasStart && b.Start.Earliest < 0 || b.HasFirst && b.First.Earliest < 0 || b.HasEnd && b.End.Earliest < 0)
}

// beyond points to a bar that is not among what is shown.
func (b Bar) beyond(a canvas.Area, x TimeAxis, drawn bool) {
	if drawn {
		return
	}
	switch {
	case b.HasEnd && b.End.Latest < x.From:
		a.Set(0, 0, BarBefore, canvas.S(canvas.Dim))
	case b.HasStart && b.Start.Earliest > x.To, !b.HasStart && b.HasEnd && b.End.Earliest > x.To:
		a.Set(a.W-1, 0, BarAfter, canvas.S(canvas.Dim))
	}
}

// note writes the note right of the bar, or, if there is no room, on the heavy line of
// what is not back, beside the interval that this begins with. It never covers what is
// certain.
func (b Bar) note(a canvas.Area, x TimeAxis, last int) {
	at := last + 2
	if last < 0 {
		at = 0
	}
	if at+canvas.Width(b.Note) > a.W && b.Open && !b.HasEnd {
		at = 0
		if b.HasStart {
			at = max(at, x.Column(b.Start.Latest, a.W)+2)
		}
		if b.HasFirst {
			at = max(at, x.Column(b.First.Latest, a.W)+2)
		}
		if left := b.left(x, a.W) - 1 - canvas.Width(b.Note); at+canvas.Width(b.Note) > a.W && left >= 0 {
			at = left // there is room before the bar
		}
	}
	if text := canvas.Cut(b.Note, a.W-at); text != "" && text != "…" {
		a.Text(at, 0, text, canvas.S(b.NoteRole))
	}
}

// left is the first column that the bar, or what it says beside it, is drawn on.
func (b Bar) left(x TimeAxis, w int) int {
	first := w
	for _, i := range [...]struct {
		has bool
		at  int64
	}{{b.HasStart, b.Start.Earliest}, {b.HasFirst, b.First.Earliest}, {b.HasLead, b.Lead}, {b.HasUsual, b.Usual}} {
		if i.has {
			first = min(first, max(x.Column(i.at, w), 0))
		}
	}
	return first
}

func pick(first bool, a, b rune) rune {
	if first {
		return a
	}
	return b
}

// Waterfall is a table with a bar in each line, all on one axis of time.
type Waterfall struct {
	Axis   TimeAxis
	Corner string   // says what the axis is, above the names
	Heads  []string // above the cells; those at the end are left out first, and those without any text
	Rows   int
	Row    func(i int) Bar
	// Top is the first row that is shown, Cursor the row that has the cursor, -1 for none.
	Top, Cursor int
	Zone        func(i int) any // marks row i for the mouse; nil: nothing does
	ZoneAxis    any             // marks the ruler; nil: nothing does
}

// WaterfallRows is how many rows a Waterfall shows in h lines.
func WaterfallRows(h int) int { return max(0, h-rulerLines(h)) }

// rulerLines is how many lines the ruler has, which is none where rows need them more.
func rulerLines(h int) int {
	switch {
	case h >= 4:
		return 2
	case h == 3:
		return 1
	}
	return 0
}

// beforeZero is in front of a bar that may begin before the axis does, at 0.
const beforeZero = "<0"

// leastBar is how short a bar may be and still tell something.
const leastBar = 24

// Draw draws the ruler, then the rows.
func (f Waterfall) Draw(a canvas.Area) {
	head := rulerLines(a.H)
	shown := min(a.H-head, max(0, f.Rows-f.Top))
	rows := make([]Bar, max(0, shown))
	names := canvas.Width(f.Corner)
	widths := make([]int, len(f.Heads)) // 0: no row has any text
	for i := range rows {
		rows[i] = f.Row(f.Top + i)
		names = max(names, canvas.Width(rows[i].Name))
		for k := range widths {
			if k < len(rows[i].Cells) {
				widths[k] = max(widths[k], canvas.Width(rows[i].Cells[k].Text))
			}
		}
	}
	for k, h := range f.Heads {
		if widths[k] > 0 {
			widths[k] = max(widths[k], canvas.Width(h))
		}
	}
	names = min(names, max(8, (a.W-leastBar)/2))
	x := 2 + names + 1
	if slices.ContainsFunc(rows, func(b Bar) bool { return b.before(f.Axis) }) {
		x += len(beforeZero)
	}
	bar := a.W - x
	if f.Rows > len(rows) {
		bar -= 2 // for the scrollbar
	}
	kept := 0
	for k, w := range widths {
		if w == 0 {
			kept = k + 1
			continue
		}
		if bar-w-2 < leastBar && k > 0 || bar-w-2 < leastBar/3 {
			break
		}
		bar -= w + 2
		kept = k + 1
	}
	ruler := a.Sub(x, 0, bar, head)
	f.Axis.Ruler(ruler)
	if head > 0 {
		a.Fit(2, 0, names, f.Corner, canvas.S(canvas.Dim))
		right := x + bar
		for k := range kept {
			if widths[k] == 0 {
				continue
			}
			a.Sub(0, 0, right+2+widths[k], 1).TextRight(right+2+widths[k], 0, f.Heads[k], canvas.S(canvas.Title))
			right += 2 + widths[k]
		}
		if f.ZoneAxis != nil {
			ruler.Zone(f.ZoneAxis)
		}
	}
	for i, b := range rows {
		line := a.Sub(0, head+i, a.W, 1)
		line.Fit(2, 0, names, b.Name, canvas.S(canvas.Text))
		if b.before(f.Axis) {
			line.Text(x-len(beforeZero), 0, beforeZero, canvas.S(canvas.Dim))
		}
		b.Draw(line.Sub(x, 0, bar, 1), f.Axis)
		right := x + bar
		for k := range kept {
			if widths[k] == 0 {
				continue
			}
			if k < len(b.Cells) {
				v := b.Cells[k]
				line.TextRight(right+2+widths[k], 0, v.Text, v.Style)
			}
			right += 2 + widths[k]
		}
		if f.Top+i == f.Cursor {
			line.Set(0, 0, '▸', canvas.S(canvas.Accent))
			line.Add(canvas.Cursor)
		}
		if f.Zone != nil {
			line.Zone(f.Zone(f.Top + i))
		}
	}
	if n := len(rows); n > 0 && f.Rows > n {
		Scrollbar(a.Sub(a.W-1, head, 1, n), f.Top, n, f.Rows)
	}
}

// Age writes how long ago something was, for people: "1.3 s", "12 s", "4 min", "3 h 5 min",
// "2 d". Times in the future are 0 s.
func Age(d time.Duration) string {
	count := func(n time.Duration, unit string) string { return strconv.FormatInt(int64(n), 10) + unit }
	switch {
	case d < 10*time.Second:
		tenths := int64(max(d, 0) / (100 * time.Millisecond))
		return strconv.FormatInt(tenths/10, 10) + "." + strconv.FormatInt(tenths%10, 10) + " s"
	case d < 2*time.Minute:
		return count(d/time.Second, " s")
	case d < time.Hour:
		return count(d/time.Minute, " min")
	case d < 24*time.Hour:
		return count(d/time.Hour, " h ") + count(d%time.Hour/time.Minute, " min")
	}
	return count(d/(24*time.Hour), " d")
}
