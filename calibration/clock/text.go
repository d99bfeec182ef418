package clock

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/ocslab/ocslab/internal/natural"
)

// DefaultWidth is that of texts, in characters.
const DefaultWidth = 80

// Certain is what everybody should know who reads a result.
const Certain = "What a batch is within is certain; the first line holds if both clocks ran at one rate, which no exchange contradicts. " +
	"Where within its bounds an offset is, nothing can tell: a path that is slower one way looks the same. " +
	"One exchange leaves half of its round trip open, many together a little less."

// Text writes a result, in its JSON form, for people. Lines have at most width characters, as
// far as words and tables allow it; 0 is DefaultWidth.
func Text(w io.Writer, data json.RawMessage, width int) error {
	var r Result
	if err := json.Unmarshal(data, &r); err != nil {
		return fmt.Errorf("clock calibration: %w", err)
	}
	if err := r.Text(w, width); err != nil || r.SameClock {
		return err
	}
	if width < 1 {
		width = DefaultWidth
	}
	_, err := fmt.Fprintln(w, natural.Wrap(Certain, width, "  "))
	return err
}

// Text writes the result for people, as the function does, without what is [Certain] of all.
func (r Result) Text(w io.Writer, width int) error {
	if width < 1 {
		width = DefaultWidth
	}
	var b strings.Builder
	say := func(indent, format string, args ...any) {
		b.WriteString(natural.Wrap(fmt.Sprintf(format, args...), width, indent))
		b.WriteByte('\n')
	}
	if r.SameClock {
		say("", "%s: 0, exactly: the host is a part of this machine and has its clock", r.Host)
		_, err := io.WriteString(w, b.String())
		return err
	}
	say("", "%s: %s", r.Host, r.Line())
	over := time.Duration(0)
	if n := len(r.Bounds); n > 0 {
		over = time.Duration(r.Bounds[n-1].AtNS - r.Bounds[0].AtNS)
	}
	say("  ", "%s in %s over %s; round trip %s at best, median %s", natural.Count(r.Exchanges, "exchange"), count(len(r.Batches)), round(over),
		short(time.Duration(r.RTTBestNS)), short(time.Duration(r.RTTMedianNS)))
	if r.Unusable > 0 {
		say("  ", "%s without an answer that tells anything", natural.Count(r.Unusable, "exchange"))
	}
	for _, m := range r.Missing() {
		say("  ", "missing: %s; the clock is bounded there only by what clocks do (%.0f ppm)", m, r.Limit)
	}
	r.table(&b)
	_, err := io.WriteString(w, b.String())
	return err
}

// Line says in a phrase where the clock is and by how much it runs faster than ours.
func (r Result) Line() string {
	if r.SameClock {
		return "0, exactly: it has the clock of this machine"
	}
	way, size := "ahead of", r.Offset.MidNS
	if size < 0 {
		way, size = "behind", -size
	}
	drift := r.Drift.String()
	if r.Drift.High-r.Drift.Low > 1.9*r.Limit { // next to nothing is known that was not before
		drift = fmt.Sprintf("not resolved, within ±%.0f ppm: calibrate for longer", r.Limit)
	}
	return fmt.Sprintf("%s %s ours ±%s, drift %s", exact(time.Duration(size)), way, short(r.Offset.Half()), drift)
}

// String writes a rate with what it is known to.
func (p PPM) String() string {
	digits := 2
	if width := p.High - p.Low; width < 0.02 {
		digits = 4
	}
	return fmt.Sprintf("%+.*f ppm (%+.*f to %+.*f)", digits, p.Mid, digits, p.Low, digits, p.High)
}

// most is how many batches a table has: of more, some in the middle are left out.
const most = 12

// table lists the batches.
func (r Result) table(b *strings.Builder) {
	if len(r.Batches) == 0 {
		return
	}
	begin := int64(0)
	if len(r.Bounds) > 0 {
		begin = r.Bounds[0].AtNS
	}
	fmt.Fprintf(b, "  %-7s %10s  %21s  %10s  %10s %10s\n", "BATCH", "AT", "OFFSET", "WITHIN", "RTT BEST", "MEDIAN")
	for i, x := range r.Batches {
		if len(r.Batches) > most && i == most/2 {
			fmt.Fprintf(b, "  (%s more)\n", count(len(r.Batches)-most))
		}
		if len(r.Batches) > most && i >= most/2 && i < len(r.Batches)-most/2 {
			continue
		}
		if x.Exchanges == x.Unusable {
			fmt.Fprintf(b, "  %-7s no answer\n", x.When)
			continue
		}
		mid := x.LowNS + (x.HighNS-x.LowNS)/2
		sign := "+"
		if mid < 0 {
			sign, mid = "-", -mid
		}
		fmt.Fprintf(b, "  %-7s %10s  %21s  %10s  %10s %10s\n", x.When, round(time.Duration(x.AtNS-begin)), sign+exact(time.Duration(mid)),
			"±"+short(time.Duration((x.HighNS-x.LowNS+1)/2)), short(time.Duration(x.RTTBestNS)), short(time.Duration(x.RTTMedianNS)))
	}
}

// count writes a number of batches.
func count(n int) string { return natural.Count(n, "batch") }

// exact writes an offset to 100 ns.
func exact(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return fmt.Sprintf("%.1f µs", float64(d)/1e3)
	case d < time.Second:
		return fmt.Sprintf("%.4f ms", float64(d)/1e6)
	}
	return fmt.Sprintf("%d.%07d s", d/time.Second, d%time.Second/100)
}

// short writes a duration with three digits.
func short(d time.Duration) string {
	ns := math.Abs(float64(d))
	switch {
	case ns < 1e3:
		return fmt.Sprintf("%.0f ns", ns)
	case ns < 999.5e3:
		return digits(ns/1e3) + " µs"
	case ns < 999.5e6:
		return digits(ns/1e6) + " ms"
	}
	return digits(ns/1e9) + " s"
}

// digits writes three of them, and all before the point.
func digits(x float64) string {
	switch {
	case x < 9.995:
		return fmt.Sprintf("%.2f", x)
	case x < 99.95:
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprintf("%.0f", x)
}

// round writes a time into a calibration.
func round(d time.Duration) string {
	if d >= time.Minute {
		return d.Round(time.Second).String()
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}
