package fit

import (
	"cmp"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/ocslab/ocslab/experiment/report"
	"github.com/ocslab/ocslab/experiment/report/chart"
	"github.com/ocslab/ocslab/timeline"
)

// Study returns a report of how well the fit agrees with what was measured: a table, and for
// each stage the distributions and a Q-Q plot. A fit that was loaded has no plots.
func (f *Fit) Study(version string) report.Study {
	s := report.Study{
		Name: plain(f.Lab) + "-fit", Title: "Fit of " + f.Lab, Version: version,
		About: "How long switches and firmware of the lab take, as an emulator of it draws them, beside what was measured; " + f.origin() + ".",
		Facts: [][2]string{{"runs", strings.Join(f.Runs, ", ")}, {"lab", f.Lab}},
	}
	if f.Emulated {
		s.Emulated = "the lab was emulated"
	}
	for _, p := range f.Profiles {
		s.Facts = append(s.Facts, [2]string{"profile " + p.Key, strings.Join(p.NICs, ", ") + "; firmware as reported: " + cmp.Or(p.Firmware, "unknown")})
	}
	for name, a := range f.Acks {
		s.Facts = append(s.Facts, [2]string{"ack of " + name, cmp.Or(string(a.Mode), "not known") + ": " + a.Evidence})
	}
	all := report.StudySection{
		Title:   "What was fitted",
		Text:    "± is one standard error; one value is known to so much, the median width of its intervals, and a median may be off by part of that in all values alike. KS and W1 are the distances of Kolmogorov-Smirnov and Wasserstein between fit and values, the least and the most that the intervals of the values allow; p is how probable a KS distance of this or more is if the fit is right.",
		Columns: []string{"stage", "n", "share", "median", "spread", "known to", "KS", "W1", "p"},
	}
	for i := range f.Stages {
		x := &f.Stages[i]
		all.Table = append(all.Table, x.rows()...)
	}
	s.Sections = append(s.Sections, all)
	if len(f.Remarks) > 0 {
		s.Sections = append(s.Sections, report.StudySection{Title: "To be kept in mind", Text: strings.Join(f.Remarks, " ")})
	}
	for i := range f.Stages {
		x := &f.Stages[i]
		if len(x.Values) == 0 {
			continue
		}
		s.Sections = append(s.Sections, report.StudySection{
			Title: x.Name(), Text: x.Text() + ".", Charts: []chart.Chart{x.CDF(), x.QQ()},
		})
	}
	return s
}

// rows are those of a stage in the table: one for each mode.
func (s *Stage) rows() [][]string {
	d, p := s.Fitted.Distance, "-"
	if s.Fitted.Resamples > 0 {
		p = fmt.Sprintf("%.2f", s.Fitted.P)
	}
	if most, below := s.Below(); below {
		return [][]string{{s.Name(), fmt.Sprint(s.Fitted.Count), "", "at most " + short(most), "below resolution", short(s.KnownTo()), "-", "-", "-"}}
	}
	var rows [][]string
	for k, m := range s.Fitted.Mixture {
		e := s.Fitted.Errors[k]
		row := []string{"", "", fmt.Sprintf("%.0f ±%.0f %%", m.Share*100, e.Share*100), Known(m.Median, e.Median), Known(m.Spread, e.Spread), "", "", "", ""}
		if e.AtMost > 0 {
			row[4] = "at most " + short(e.AtMost)
		}
		if k == 0 {
			row[0], row[1], row[5], row[8] = s.Name(), fmt.Sprint(s.Fitted.Count), short(s.KnownTo()), p
			row[6] = fmt.Sprintf("%.2f to %.2f", d.KSLow, d.KSHigh)
			row[7] = short(d.WassersteinLow) + " to " + short(d.WassersteinHigh)
		}
		rows = append(rows, row)
	}
	return rows
}

// CDF is a chart of the values beside the mixture.
func (s *Stage) CDF() chart.CDF {
	var model timeline.Distribution
	const parts = 200
	for k := range parts {
		at := int64(s.Fitted.Mixture.Quantile((float64(k) + 0.5) / parts))
		model.Steps = append(model.Steps, timeline.Step{Interval: timeline.Point(at), Mass: 1.0 / parts})
	}
	model.Count = parts
	return chart.CDF{
		Frame: chart.Frame{Title: s.Name() + ": distribution", About: "The part of all values that is not above a time, measured and as fitted."},
		Curves: []chart.Curve{
			{Label: "measured", Tone: chart.SeriesTone(0), Distribution: timeline.Turnbull(s.Values)},
			{Label: "fit", Tone: chart.SeriesTone(1), Distribution: model},
		},
	}
}

// QQ is a Q-Q plot without its slope: how much later the measured quantiles are than those
// of the mixture.
func (s *Stage) QQ() chart.Lines {
	var points, line, low, high []chart.Point
	for _, q := range s.Fitted.Quantiles {
		x := float64(q.Model)
		line = append(line, chart.Point{X: x})
		low = append(low, chart.Point{X: x, Y: float64(q.Low - q.Model)})
		high = append(high, chart.Point{X: x, Y: float64(q.High - q.Model)})
		if q.Data.Latest != timeline.Never {
			points = append(points, chart.Point{X: x, Y: float64(q.Data.Mid()) - x, Low: float64(q.Data.Earliest) - x, High: float64(q.Data.Latest) - x})
		}
	}
	return chart.Lines{
		Frame: chart.Frame{Title: s.Name() + ": quantiles", About: "How much later each measured quantile is than that of the fit. Where the fit is right, 95 of 100 lie between the outer lines."},
		X:     chart.Axis{Title: "as fitted", Kind: chart.Time}, Y: chart.Axis{Title: "measured, later than fitted", Kind: chart.Time},
		Curves: []chart.Line{
			{Label: "measured", Tone: chart.SeriesTone(0), Points: points, Loose: true},
			{Label: "as fitted", Tone: chart.Plain, Points: line},
			{Label: "95 %, from", Tone: chart.SeriesTone(1), Points: low},
			{Label: "95 %, to", Tone: chart.SeriesTone(1), Points: high},
		},
	}
}

// QQText draws the Q-Q plot for a terminal: how much later than the fit says each measured
// quantile is, within the band in which it should be.
func (s *Stage) QQText(width int) []string {
	pairs := s.Fitted.Quantiles
	if len(pairs) == 0 {
		return nil
	}
	const rows = 15
	most := time.Duration(1)
	for _, p := range pairs {
		most = max(most, (p.High - p.Model).Abs(), (p.Low - p.Model).Abs())
	}
	most += most / 4
	plot := max(width-30, 20)
	at := func(off time.Duration) int {
		return min(max(int(math.Round(float64(off)/float64(most)*float64(plot/2)))+plot/2, 0), plot-1)
	}
	lines := []string{fmt.Sprintf("%5s  %-14s %s", "q", "as fitted", "● measured, │ as fitted, ─ where 95 % are")}
	for r := range min(rows, len(pairs)) {
		p := pairs[(2*r+1)*len(pairs)/(2*min(rows, len(pairs)))]
		cells := []rune(strings.Repeat(" ", plot))
		for x := at(p.Low - p.Model); x <= at(p.High-p.Model); x++ {
			cells[x] = '─'
		}
		cells[plot/2] = '│'
		if p.Data.Latest != timeline.Never {
			cells[at(time.Duration(p.Data.Mid())-p.Model)] = '●'
		}
		lines = append(lines, strings.TrimRight(fmt.Sprintf("%4.1f%%  %-14s %s", p.Q*100, short(p.Model), string(cells)), " "))
	}
	edge := short(most)
	return append(lines, fmt.Sprintf("%22s%-*s%s%*s", "", plot/2-1, "-"+edge, "0", plot-plot/2, "+"+edge))
}

func unitOf(text string) string { return " " + text[strings.LastIndex(text, " ")+1:] }

// short writes a duration with five digits.
func short(d time.Duration) string {
	text := Known(d, max(d.Abs()/500, 1))
	number, _, _ := strings.Cut(text, " ±")
	number, _, _ = strings.Cut(number, " ")
	return number + unitOf(text)
}
