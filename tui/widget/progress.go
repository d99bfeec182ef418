package widget

import (
	"github.com/ocslab/ocslab/tui/canvas"
)

// eighths are blocks that fill a cell from the left by that many eighths.
var eighths = []rune(" ▏▎▍▌▋▊▉█")

// Progress draws in its first line how much of a whole is done, from 0 to 1; parts beyond count as
// the nearer of the two, and NaN as 0. What is done at all shows, and what is not
// all done does not look so.
func Progress(a canvas.Area, part float64, done, rest canvas.Style) {
	if a.W <= 0 || a.H <= 0 {
		return
	}
	if !(part > 0) {
		part = 0
	}
	n := int(min(part, 1) * float64(a.W) * 8)
	if part > 0 {
		n = max(n, 1)
	}
	if part < 1 {
		n = min(n, a.W*8-1)
	}
	for x := range a.W {
		switch full := n - 8*x; {
		case full >= 8:
			a.Set(x, 0, '█', done)
		case full > 0:
			a.Set(x, 0, eighths[full], done)
		default:
			a.Set(x, 0, '░', rest)
		}
	}
}
