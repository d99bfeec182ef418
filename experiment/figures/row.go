package figures

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/ocslab/ocslab/experiment/report"
	"github.com/ocslab/ocslab/timeline"
)

// published is what a paper says of a duration: it lies from low to high, which are equal
// for a single figure.
type published struct {
	low, high time.Duration
	text      string // as in the paper
}

func exactly(d time.Duration, text string) published { return published{d, d, text} }

// row compares a duration. of is the median of ours with its bounds; count is what it stands on.
func (p published) row(quantity string, of timeline.Estimate, count int, notes ...string) report.PaperRow {
	if count == 0 {
		return missing(quantity, p.text)
	}
	return report.PaperRow{
		Quantity: quantity, Paper: p.text,
		Ours:      bounds(of).String(),
		Deviation: p.deviation(bounds(of)),
		Note:      sentences(notes...),
	}
}

// missing is the row of what the run does not have.
func missing(quantity, paper string) report.PaperRow {
	return report.PaperRow{Quantity: quantity, Paper: paper, Ours: "not measured", Note: "The run has no marks for it."}
}

func bounds(e timeline.Estimate) timeline.Interval {
	return timeline.Interval{Earliest: e.LowNS, Latest: e.HighNS}
}

// deviation of ours in words. What may be inside of a published range is, as far as is
// known; outside it is told from the nearer end.
func (p published) deviation(ours timeline.Interval) string {
	if p.low != p.high {
		switch {
		case ours.Earliest >= int64(p.low) && ours.Latest <= int64(p.high):
			return "within"
		case ours.Earliest <= int64(p.high) && ours.Latest >= int64(p.low):
			return "may be within"
		}
	}
	from := float64(p.low)
	if ours.Earliest > int64(p.high) {
		from = float64(p.high)
	}
	if from == 0 {
		return "" // no part of nothing
	}
	return percent(100*(float64(ours.Earliest)-from)/from, 100*(float64(ours.Latest)-from)/from)
}

// percent shows a part that lies from low to high, with as many digits as are known.
func percent(low, high float64) string {
	mid, half := (low+high)/2, (high-low)/2
	digits := 2
	switch most := max(half, math.Abs(mid)/100); {
	case most >= 1:
		digits = 0
	case most >= 0.1:
		digits = 1
	}
	text := signed(mid, digits) + " %"
	if step := math.Pow10(-digits); half >= step/2 {
		text += fmt.Sprintf(" ±%.*f", digits, math.Ceil(half/step)*step)
	}
	return text
}

// signed writes a number with its sign and so many decimals, and nothing as "0".
func signed(x float64, decimals int) string {
	if scale := math.Pow10(decimals); math.Round(x*scale) == 0 {
		return "0"
	}
	return fmt.Sprintf("%+.*f", decimals, x)
}

// shown is a time in a unit with so many decimals, and what it is known to if they tell that.
func shown(at timeline.Interval, unit time.Duration, name string, decimals int) string {
	step := math.Pow10(-decimals)
	text := fmt.Sprintf("%.*f %s", decimals, float64(at.Mid())/float64(unit), name)
	if half := float64(at.Width()) / 2 / float64(unit); half >= step/2 {
		text += fmt.Sprintf(" ±%.*f", decimals, math.Ceil(half/step)*step)
	}
	return text
}

// share compares a part of 1 with one that the paper gives from low to high.
func share(quantity string, low, high, ours float64, notes ...string) report.PaperRow {
	r := report.PaperRow{
		Quantity:  quantity,
		Paper:     fmt.Sprintf("%.1f to %.1f %%", 100*low, 100*high),
		Ours:      fmt.Sprintf("%.1f %%", 100*ours),
		Deviation: "within",
		Note:      sentences(notes...),
	}
	switch {
	case ours < low:
		r.Deviation = signed(100*(ours-low), 1) + " points"
	case ours > high:
		r.Deviation = signed(100*(ours-high), 1) + " points"
	}
	return r
}

// set is the note of a row that compares a parameter of the emulator with where it was taken
// from: "Set, not found: the switch is emulated with ...". On hardware it is "".
func (f *findings) set(format string, args ...any) string {
	if !f.emulated {
		return ""
	}
	return "Set, not found: " + fmt.Sprintf(format, args...)
}

// sentences joins notes, leaving out those that are empty.
func sentences(notes ...string) string {
	var all []string
	for _, n := range notes {
		if n != "" {
			all = append(all, n)
		}
	}
	return strings.Join(all, " ")
}
