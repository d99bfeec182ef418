package report

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/ocslab/ocslab/experiment/report/chart"
	"github.com/ocslab/ocslab/experiment/runs"
	"github.com/ocslab/ocslab/internal/natural"
	"github.com/ocslab/ocslab/timeline"
)

// power draws the optical power during a typical reconfiguration, one drawing for a port.
func (b *book) power() chart.Chart {
	number, samples := b.typicalSamples()
	if len(samples) == 0 {
		return nil
	}
	s := b.singles([]exhibit{{number: number}})[0]
	ports := map[string][]runs.Sample{}
	for _, x := range samples {
		ports[x.Subject] = append(ports[x.Subject], x)
	}
	names := slices.SortedFunc(maps.Keys(ports), natural.Compare)
	d := chart.Stack{Frame: chart.Frame{Title: fmt.Sprintf("Optical power during reconfiguration %d", number)}}
	for _, port := range names {
		if len(d.Charts) == mostPorts {
			d.Title += fmt.Sprintf(" (%d of %d ports)", mostPorts, len(names))
			break
		}
		d.Charts = append(d.Charts, s.power(port, ports[port]))
	}
	return d
}

// typicalSamples are those of the typical reconfiguration of a condition or, if no typical
// one has any, of the first that has.
func (b *book) typicalSamples() (number int, samples []runs.Sample) {
	has := map[int]bool{}
	for _, x := range b.r.Samples {
		has[x.Reconfiguration] = true
	}
	for _, c := range b.a.Conditions {
		if has[c.Typical] {
			number = c.Typical
			break
		}
	}
	for _, rec := range b.r.Reconfigurations {
		if number == 0 && has[rec.Number] && !rec.Null {
			number = rec.Number
		}
	}
	for _, x := range b.r.Samples {
		if number != 0 && x.Reconfiguration == number {
			samples = append(samples, x)
		}
	}
	return number, samples
}

// power draws the readings at one port, the levels that tell dark from light by the default
// rule, and the marks that were made of them.
func (s *single) power(port string, samples []runs.Sample) chart.Chart {
	d := chart.Lines{
		Frame: chart.Frame{Title: port},
		X:     chart.Axis{Title: "time since the command", Kind: chart.Time},
		Y:     chart.Axis{Title: "optical power (dBm)", Kind: chart.Number},
	}
	least := math.Inf(1)
	for _, x := range samples {
		if !x.Dark {
			least = min(least, x.PowerDBm)
		}
	}
	if math.IsInf(least, 1) {
		least = -40
	}
	floor := least - 3
	line := chart.Line{Label: port, Tone: chart.StageTone(timeline.Light), Stepped: true}
	dark := false
	for _, x := range samples {
		at := timeline.Interval{Earliest: x.EarliestNS, Latest: x.LatestNS}.Sub(s.command)
		p := chart.Point{X: float64(at.Mid()), Y: x.PowerDBm}
		if x.Dark {
			p.Y, dark = floor, true
		}
		line.Points = append(line.Points, p)
	}
	d.Curves = []chart.Line{line}
	first, last := samples[0], samples[len(samples)-1]
	if !first.Dark {
		d.Levels = append(d.Levels, chart.Level{Y: first.PowerDBm - timeline.DefaultDark,
			Label: fmt.Sprintf("dark: %.0f dB below the power before", timeline.DefaultDark)})
	}
	if !last.Dark {
		d.Levels = append(d.Levels, chart.Level{Y: last.PowerDBm - timeline.DefaultWithin,
			Label: fmt.Sprintf("light: within %.1f dB of the power at the end", timeline.DefaultWithin)})
	}
	if dark {
		d.Levels = append(d.Levels, chart.Level{Y: floor, Label: "less than the monitor can show"})
	}
	for _, m := range s.marks {
		if m.Subject == port && (m.Stage == timeline.Dark || m.Stage == timeline.Light) {
			at := m.Sub(s.command)
			d.Spans = append(d.Spans, chart.Span{From: float64(at.Earliest), To: float64(at.Latest),
				Label: fmt.Sprintf("%s %s", m.Stage, interval(at)), Tone: chart.StageTone(m.Stage)})
			d.About += fmt.Sprintf("%s at %s. ", m.Stage, interval(at))
		}
	}
	return d
}
