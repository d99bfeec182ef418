package timing

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ocslab/ocslab/internal/natural"
	"github.com/ocslab/ocslab/timeline"
)

// Text writes a baseline, from its JSON form, for people: in lines of at most width characters, as far as
// tables allow that; 0 is 80.
func Text(w io.Writer, data json.RawMessage, width int) error {
	b, err := Parse(data)
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, b.text(width))
	return err
}

func (b Baseline) text(width int) string {
	if width <= 0 {
		width = 80
	}
	var out strings.Builder
	say := func(format string, args ...any) {
		out.WriteString(natural.Wrap(fmt.Sprintf(format, args...), width, "") + "\n")
	}
	if b.Toggles > 0 {
		say("%s between %s and %s; %s of %v in which nothing was done", natural.Count(b.Toggles, "toggle"), b.From, b.To,
			natural.Count(b.Nulls, "window"), time.Duration(b.WindowNS))
	} else {
		say("nothing was moved; %s of %v in which nothing was done", natural.Count(b.Nulls, "window"), time.Duration(b.WindowNS))
	}
	if len(b.Floors) > 0 {
		out.WriteString("\n")
		t := [][]string{{"stage", "floor", "one mark", "equals", "mostly"}}
		for _, f := range b.Floors {
			mostly := ""
			if len(f.Of) > 0 {
				mostly = f.Of[0].What
			}
			equals := ms(f.EqualsNS)
			if f.Toggles < MinToggles {
				equals = "-"
			}
			t = append(t, []string{string(f.Stage), ms(f.NS), ms(f.ResolutionNS), equals, mostly})
		}
		columns(&out, t, ".>>>.")
		out.WriteString("\n")
		say("ms. Floor: differences below it cannot be resolved. One mark: what more repeats do not improve, 95 %% are not worse. Equals: what the medians of two halves " +
			"of the same toggles differ by in 95 %% of splits, also because firmware varies; it shrinks with more repeats.")
	}
	if len(b.Switches) > 0 {
		out.WriteString("\n")
		t := [][]string{{"switch", "exchange p50", "p95", "max", "reading p50", "p95", "max", "averaging"}}
		for _, s := range b.Switches {
			row := append([]string{s.Name}, s.Exchange.cells()...)
			row = append(row, s.Sampling.cells()...)
			t = append(t, append(row, ms(s.AveragingNS)))
		}
		columns(&out, t, ".>>>>>>>")
		out.WriteString("\n")
		say("ms. Exchange: asking which circuits there are. Reading: from one of a power monitor to the next.")
	}
	if len(b.Sources) > 0 {
		out.WriteString("\n")
		t := [][]string{{"source", "stage", "marks", "width p50", "p95", "max", "spurious", "a minute"}}
		for _, s := range b.Sources {
			row := append([]string{s.Name, string(s.Stage), fmt.Sprint(s.Width.Count)}, s.Width.cells()...)
			rate := "-"
			if b.Nulls > 0 && b.WindowNS > 0 {
				rate = fmt.Sprintf("%.3g..%.3g", s.PerMinute, s.PerMinuteHigh)
			}
			t = append(t, append(row, fmt.Sprint(s.Spurious), rate))
		}
		columns(&out, t, "..>>>>>>")
		out.WriteString("\n")
		say("ms. Spurious: marks while nothing was done, and how many that is a minute, up to the most that it may be.")
		if b.Held > 0 {
			say("This program did not get to run for longer than %v %s meanwhile, for %s ms at most: others had the processors. Outages of emulated NICs "+
				"in these moments are its own, since their frames pass through it.", HeldUp, natural.Count(b.Held, "time"), ms(b.HeldMaxNS))
		}
	}
	if len(b.Accuracy) > 0 {
		out.WriteString("\n")
		t := [][]string{{"against the truth", "marks", "hold it", "within", "error p50", "p95", "max", "unmatched"}}
		for _, a := range b.Accuracy {
			hold := share(a.Hold, a.Marks)
			if a.Stage == timeline.Ack {
				hold = "-"
			}
			t = append(t, []string{string(a.Stage), fmt.Sprint(a.Marks), hold, share(a.Within, a.Marks),
				ms(a.ErrP50NS), ms(a.ErrP95NS), ms(a.ErrMaxNS), fmt.Sprint(a.Unmatched)})
		}
		columns(&out, t, ".>>>>>>>")
		out.WriteString("\n")
		say("ms, against what the emulation did. Within: the error is not above what one mark is said to be good for. " +
			"The truth of ack is stamped by the device, so its error is the wire.")
	}
	list := func(head string, items []string) {
		if len(items) == 0 {
			return
		}
		fmt.Fprintf(&out, "\n%s\n", head)
		for _, m := range items {
			out.WriteString(natural.Wrap(m, width, "  ") + "\n")
		}
	}
	list("missing:", b.Missing)
	list("not watched:", b.NotWatched)
	return out.String()
}

func (s Spread) cells() []string {
	if s.Count == 0 {
		return []string{"-", "-", "-"}
	}
	return []string{ms(s.P50NS), ms(s.P95NS), ms(s.MaxNS)}
}

func share(n, of int) string {
	if of == 0 {
		return "-"
	}
	return fmt.Sprintf("%.0f %%", 100*float64(n)/float64(of))
}

// ms writes nanoseconds as milliseconds.
func ms(ns int64) string { return fmt.Sprintf("%.3f", float64(ns)/float64(time.Millisecond)) }

// columns writes cells in columns; those marked '>' stand to the right.
func columns(out *strings.Builder, rows [][]string, align string) {
	var width []int
	for _, r := range rows {
		for i, c := range r {
			if i == len(width) {
				width = append(width, 0)
			}
			width[i] = max(width[i], utf8.RuneCountInString(c))
		}
	}
	for _, r := range rows {
		var line strings.Builder
		for i, c := range r {
			pad := strings.Repeat(" ", width[i]-utf8.RuneCountInString(c))
			if align[i] == '>' {
				c, pad = pad+c, ""
			}
			line.WriteString(c + pad + "  ")
		}
		out.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
}
