package widget

import (
	"math"
	"slices"
	"strconv"

	"github.com/ocslab/ocslab/timeline"
	"github.com/ocslab/ocslab/tui/canvas"
)

// Series is durations that are drawn together, under a letter that tells them from others
// where there are no colours.
type Series struct {
	Letter rune
	Name   string
	Role   canvas.Role
	Values []timeline.Interval // those that end at Never are later than all others
	// Missing is how many more there should be: they are later than all that came, or
	// never.
	Missing int
}

// SeriesOf gives the i-th of several series its letter and role: "A", "B" and so on.
func SeriesOf(i int) (letter rune, role canvas.Role) {
	letters := []rune("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
	roles := canvas.Series6 - canvas.Series1 + 1
	return letters[i%len(letters)], canvas.Series1 + canvas.Role(i)%roles
}

// came are the values that are bounded, and how many are not.
func (s *Series) came() (values []timeline.Interval, never int) {
	for _, v := range s.Values {
		if v.Latest == timeline.Never {
			never++
		}
	}
	if never == 0 {
		return s.Values, s.Missing
	}
	return slices.DeleteFunc(slices.Clone(s.Values), func(v timeline.Interval) bool { return v.Latest == timeline.Never }), never + s.Missing
}

// span is from the earliest to the latest value of all series; ok is false without any.
func span(series []Series) (low, high int64, ok bool) {
	low, high = math.MaxInt64, math.MinInt64
	for i := range series {
		values, _ := series[i].came()
		for _, v := range values {
			low, high, ok = min(low, v.Earliest), max(high, v.Latest), true
		}
	}
	return low, high, ok
}

// bin is how many values lie between two steps of a scale: certainly, if each value were
// spread evenly over its interval, and at most.
type bin struct {
	sure, most int
	even       float64
}

// bins counts values between steps. One that lies on a step is in the bin that begins there,
// or, at the last, in the one that ends there. What lies outside is not counted.
func bins(values []timeline.Interval, steps []int64) []bin {
	n := len(steps) - 1
	list := make([]bin, n)
	of := func(ns int64) int {
		i, found := slices.BinarySearch(steps, ns)
		if !found {
			i--
		}
		return max(0, min(i, n-1))
	}
	for _, v := range values {
		early, late := clamp(v.Earliest), clamp(v.Latest)
		if late < steps[0] || early > steps[n] {
			continue
		}
		first, last := of(early), of(late)
		for i := first; i <= last; i++ {
			list[i].most++
			if first == last && early >= steps[0] && late <= steps[n] {
				list[i].sure++
				list[i].even++
				continue
			}
			list[i].even += float64(min(late, steps[i+1])-max(early, steps[i])) / float64(late-early)
		}
	}
	return list
}

// Histogram draws how durations are distributed: a line for each bin, with its bar and how
// many it has. The bar is of the series with the index at: full as far as the values are
// certainly in the bin, darker shade as many as there would be if each value were spread
// evenly over its interval, lighter shade as many as there may be. Of the other series the
// letters stand where their bars would end, unless all of them lies so far away that the one
// in question would be in a few bins only. Bins are as many as there are lines.
func Histogram(a canvas.Area, series []Series, at int) {
	if a.H <= 0 || a.W <= 0 || at < 0 || at >= len(series) {
		return
	}
	low, high, ok := span(series[at : at+1])
	own, never := series[at].came()
	if !ok {
		nothing(a, never)
		return
	}
	low, high, elsewhere := nearby(series, low, high)
	lines := a.H
	if lines >= 6 { // with a legend
		lines--
	}
	if never > 0 {
		lines--
	}
	if lines < 2 {
		a.Fit(0, 0, a.W, strconv.Itoa(len(own))+" from "+Time(low)+" to "+Time(high), canvas.S(canvas.Text))
		return
	}
	scale := newScale(low, high)
	steps := scale.steps(min(lines, resolved(own, high-low)))
	counts := make([][]bin, len(series))
	top := 1.0
	for i := range series {
		values, _ := series[i].came()
		counts[i] = bins(values, steps)
		for _, b := range counts[i] {
			top = max(top, b.even)
			if i == at {
				top = max(top, float64(b.sure))
			}
		}
	}
	first, last := filled(counts)
	steps = steps[first : last+2]
	for i := range counts {
		counts[i] = counts[i][first : last+1]
	}
	texts, unit := scale.labels(steps)
	label := 0
	for _, t := range texts {
		label = max(label, canvas.Width(t))
	}
	count := 0
	for _, b := range counts[at] {
		count = max(count, canvas.Width(b.text()))
	}
	left := label + 1
	if unit != "" {
		left += 1 + canvas.Width(unit)
	}
	width := a.W - left - count - 2
	for i, b := range counts[at] {
		if i >= a.H {
			break
		}
		line := a.Sub(0, i, a.W, 1)
		line.TextRight(label, 0, texts[i], canvas.S(canvas.Dim))
		if unit != "" {
			line.Text(label+1, 0, unit, canvas.S(canvas.Dim))
		}
		line.Set(left-1, 0, '┊', canvas.S(canvas.Frame))
		if width < 4 {
			line.TextRight(a.W, 0, b.text(), canvas.S(canvas.Text))
			continue
		}
		bars(line.Sub(left, 0, width, 1), b, top, series[at].Role)
		for k := range series {
			if n := counts[k][i].even; k != at && n > 0 {
				x := min(width-1, int(n/top*float64(width)))
				line.Set(left+x, 0, series[k].Letter, canvas.S(series[k].Role, canvas.Bold))
			}
		}
		line.TextRight(a.W, 0, b.text(), canvas.S(canvas.Text))
	}
	y := len(counts[at])
	if never > 0 && y < a.H {
		a.Fit(0, y, a.W, later(never), canvas.S(canvas.Warn))
		y++
	}
	if y < a.H {
		legend := []string{"each from the value at its left up to the next", "from its value to the next"}
		if slices.ContainsFunc(counts[at], func(b bin) bool { return b.sure != b.most }) {
			legend = []string{"█ certainly here  ▓ if spread evenly  ░ at most", "█ sure  ▓ spread  ░ at most"}
		}
		if elsewhere != "" {
			legend[0] += "; far from here:" + elsewhere
			legend[1] += "; far:" + elsewhere
		}
		text := legend[0]
		if canvas.Width(text) > a.W {
			text = legend[1]
		}
		a.Fit(0, y, a.W, text, canvas.S(canvas.Dim))
	}
}

// nearby widens a span by the series that do not make it more than four times as long. The
// letters of the others that have any values are returned.
func nearby(series []Series, low, high int64) (l, h int64, elsewhere string) {
	l, h = low, high
	most := 4 * float64(max(clamp(high)-clamp(low), 1))
	for i := range series {
		from, to, ok := span(series[i : i+1])
		switch {
		case !ok:
		case float64(clamp(max(h, to)))-float64(clamp(min(l, from))) <= most:
			l, h = min(l, from), max(h, to)
		case from > high || to < low:
			elsewhere += " " + string(series[i].Letter)
		}
	}
	return l, h, elsewhere
}

// resolved is how many bins of a span tell anything: those that are narrower than half of the
// values are known would only show the same values again.
func resolved(values []timeline.Interval, all int64) int {
	var widths []int64
	for k := 0; k < len(values); k += 1 + len(values)/500 { // some say it
		widths = append(widths, clamp(values[k].Latest)-clamp(values[k].Earliest))
	}
	slices.Sort(widths)
	median := widths[len(widths)/2]
	if median <= 0 {
		return math.MaxInt32
	}
	return int(min(max(all/median, 1), math.MaxInt32))
}

// filled are the first and the last bin in which any series has something.
func filled(counts [][]bin) (first, last int) {
	first, last = len(counts[0])-1, 0
	for _, list := range counts {
		for i, b := range list {
			if b.most > 0 {
				first, last = min(first, i), max(last, i)
			}
		}
	}
	return first, last
}

// later says that some never came.
func later(never int) string {
	return strconv.Itoa(never) + " more not seen: later than waited for, or never"
}

// nothing is drawn where there are no values.
func nothing(a canvas.Area, never int) {
	text := "nothing measured yet"
	if never > 0 {
		text = "none came: " + later(never)
	}
	for i, l := range canvas.Wrap(text, a.W) {
		a.Text(0, i, l, canvas.S(canvas.Dim))
	}
}

// text is the count: "12", or "8..15" where intervals leave it open.
func (b bin) text() string {
	if b.sure == b.most {
		return strconv.Itoa(b.sure)
	}
	return strconv.Itoa(b.sure) + ".." + strconv.Itoa(b.most)
}

// bars draws a bin in one line, of which all is top.
func bars(a canvas.Area, b bin, top float64, role canvas.Role) {
	cells := func(n float64) int {
		x := int(math.Round(n / top * float64(a.W)))
		if n > 0 {
			x = max(x, 1)
		}
		return min(x, a.W)
	}
	sure, even, most := cells(float64(b.sure)), cells(b.even), cells(float64(b.most))
	for x := range most {
		r := '░'
		switch {
		case x < sure:
			r = '█'
		case x < even:
			r = '▓'
		}
		a.Set(x, 0, r, canvas.S(role))
	}
}
