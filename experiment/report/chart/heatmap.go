package chart

import (
	"html"
	"math"
	"strconv"
)

// Heatmap shows a time for each pair of a row and a column.
type Heatmap struct {
	Frame
	Rows, Columns      []string
	RowTitle, ColTitle string // what rows and columns are: "from", "to"
	// Cells are times in nanoseconds by row and column; NaN is never measured, and
	// hatched. Rows may be shorter than Columns: the rest is never measured.
	Cells [][]float64
}

const heatColours = 8

func (h Heatmap) draw(c *canvas) {
	extent := empty
	for _, row := range h.Cells {
		extent.add(row...)
	}
	if len(h.Rows) == 0 || len(h.Columns) == 0 {
		return
	}
	labels, heads := 0.0, 0.0
	for _, r := range h.Rows {
		labels = max(labels, textWidth(clean(r), tickSize))
	}
	for _, k := range h.Columns {
		heads = max(heads, textWidth(clean(k), tickSize))
	}
	most := 150.0
	if c.slim() {
		most = 84
	}
	labels, heads = min(labels, most), min(heads, most)
	left := labels + 10
	size := min((c.w-left-8)/float64(len(h.Columns)), 44)
	height := min(size, 30)
	flat := heads <= size-6 // labels of columns fit above them

	scale := newScale(Axis{}, extent, 0, 1)
	scale.span = extent
	unit, name := scale.unit, scale.unitName

	if h.RowTitle != "" || h.ColTitle != "" {
		c.y += 14
		c.text(0, c.y, "start", "soft", textSize, "rows: "+h.RowTitle+", columns: "+h.ColTitle, c.w)
		c.y += 6
	}
	top := c.y + 16
	if !flat {
		top = c.y + heads + 10
	}
	everyColumn := every(size, flat, heads)
	for i, k := range h.Columns {
		if i%everyColumn != 0 {
			continue
		}
		x := left + (float64(i)+0.5)*size
		if flat {
			c.text(x, top-5, "middle", "tick", tickSize, k, size*float64(everyColumn))
			continue
		}
		shown := fit(clean(k), most, tickSize)
		c.put(`<text transform="translate({} {}) rotate(-90)" class="tick">{}</text>`, x+4, top-5, html.EscapeString(shown))
	}
	everyRow := max(1, int(math.Ceil(13/height)))
	for i, r := range h.Rows {
		y := top + float64(i)*height
		if i%everyRow == 0 {
			c.text(left-6, y+height/2+4, "end", "tick", tickSize, r, labels)
		}
		h.row(c, i, extent, unit, left, y, size, height)
	}
	c.y = top + float64(len(h.Rows))*height + 10
	if extent.lo > extent.hi {
		return
	}
	h.key(c, extent, unit, name)
}

// every is which labels of columns are written, so that they do not touch.
func every(size float64, flat bool, widest float64) int {
	if flat {
		return max(1, int(math.Ceil((widest+6)/size)))
	}
	return max(1, int(math.Ceil(13/size)))
}

// row draws cells; neighbours of one colour are one rectangle where there are no numbers.
func (h Heatmap) row(c *canvas, i int, extent span, unit, left, y, size, height float64) {
	value := func(k int) float64 {
		if i < len(h.Cells) && k < len(h.Cells[i]) {
			return h.Cells[i][k]
		}
		return math.NaN()
	}
	numbers := size >= 40 && height >= 16
	gap := 1.0
	if size < 12 {
		gap = 0.3
	}
	for k := 0; k < len(h.Columns); {
		v := value(k)
		n := 1
		for !numbers && k+n < len(h.Columns) && heat(value(k+n), extent) == heat(v, extent) {
			n++
		}
		x := left + float64(k)*size
		paint := ` fill="url(#oc-none)"`
		if finite(v) {
			paint = ` class="h` + strconv.Itoa(heat(v, extent)) + `"`
		}
		c.rect(x, y, x+float64(n)*size-gap, height-gap, paint)
		if numbers && finite(v) {
			class := "hl"
			if heat(v, extent) >= heatColours/2 {
				class = "hd"
			}
			c.text(x+size/2-0.5, y+height/2+3.5, "middle", class, tickSize, digits(v/unit, extent.digits()), size)
		}
		k += n
	}
}

// heat is the colour of a value, -1 for none.
func heat(v float64, extent span) int {
	switch {
	case !finite(v):
		return -1
	case extent.hi <= extent.lo:
		return heatColours / 2
	}
	return min(int((v-extent.lo)/(extent.hi-extent.lo)*heatColours), heatColours-1)
}

// digits is how many tell the colours of a map apart, as far as there is room.
func (s span) digits() int {
	if s.hi-s.lo < 0.02*s.hi {
		return 4
	}
	return 3
}

// key says which colour is which time.
func (h Heatmap) key(c *canvas, extent span, unit float64, name string) {
	const swatch, height = 26.0, 12.0
	x := 0.0
	c.y += 12
	label := digits(extent.lo/unit, extent.digits())
	c.text(x, c.y, "start", "tick", tickSize, label, 80)
	x += textWidth(label, tickSize) + 6
	from, to := 0, heatColours
	if extent.lo == extent.hi {
		from, to = heatColours/2, heatColours/2+1
	}
	for i := from; i < to; i++ {
		c.rect(x, c.y-10, x+swatch-1, height, ` class="h`+strconv.Itoa(i)+`"`)
		x += swatch
	}
	label = name
	if extent.lo < extent.hi {
		label = digits(extent.hi/unit, extent.digits()) + " " + name
	}
	x += 6
	c.text(x, c.y, "start", "tick", tickSize, label, 90)
	x += max(textWidth(label, tickSize), 40) + 22
	if x+110 > c.w {
		x = 0
		c.y += 20
	}
	c.rect(x, c.y-10, x+swatch, height, ` fill="url(#oc-none)"`)
	c.text(x+swatch+6, c.y, "start", "tick", tickSize, "never measured", 110)
	c.y += 8
}

// digits writes a number with so many significant digits.
func digits(v float64, n int) string {
	if v == 0 || !finite(v) {
		return "0"
	}
	decimals := n - 1 - int(math.Floor(math.Log10(math.Abs(v))))
	return strconv.FormatFloat(v, 'f', max(decimals, 0), 64)
}
