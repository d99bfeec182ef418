package devices

import (
	"strings"
	"time"

	"github.com/ocslab/ocslab/internal/natural"
	"github.com/ocslab/ocslab/tui/canvas"
	"github.com/ocslab/ocslab/tui/live"
	"github.com/ocslab/ocslab/tui/screen"
)

// soon is how long before a calibration expires it is warned.
const soon = 30 * 24 * time.Hour

// modules are the transceivers of a bundle, with heaters and taps of the one that is picked.
func (p *page) modules(x *live.Switch, module int, e screen.Env) {
	if len(x.Modules) == 0 {
		return
	}
	title := "modules"
	if len(x.Modules) > 1 {
		title += ", ← → pick one"
	}
	p.heading(title)
	names := 0
	for _, m := range x.Modules {
		names = max(names, canvas.Width(m.Name))
	}
	for i, m := range x.Modules {
		mark, role := "  ", canvas.Text
		if i == module {
			mark = "▸ "
		}
		if bad(m.Status) {
			role = canvas.Bad
		}
		warning, look := expiry(m, e.Now)
		if warning != "" {
			warning = "  calibration " + warning
		}
		room := max(12, p.w-2-names-2-canvas.Width(warning))
		segs := []seg{
			{mark, canvas.S(canvas.Accent)}, {pad(m.Name, names+2), canvas.S(canvas.Text)},
			{canvas.Cut(m.Status, room), canvas.S(role)}, {warning, canvas.S(look)},
		}
		p.rows = append(p.rows, row{segs: segs, module: i + 1, picked: i == module})
	}
	m := x.Modules[module]
	p.heading(m.Name)
	look := canvas.Text
	if bad(m.Status) {
		look = canvas.Bad
	}
	p.fact("status", m.Status, look)
	for _, f := range m.Facts {
		p.fact(f.Name, f.Value, canvas.Text)
	}
	text, role := expiry(m, e.Now)
	if text != "" && role != canvas.Text {
		p.fact("", "calibration "+text+": calibrate anew with ocslab calibrate", role)
	}
	p.bars("heaters", m.Heater, canvas.Series6, canvas.Warn)
	p.bars("taps", m.Tap, canvas.Light, canvas.Light)
}

// bad reports whether the status of a module tells of a fault.
func bad(status string) bool { return strings.HasPrefix(status, "fault") }

// expiry says how long a calibration may be used, "" if nothing is known of that or it is
// long.
func expiry(m live.Module, now time.Time) (string, canvas.Role) {
	left := m.Expires.Sub(now)
	switch {
	case m.Expires.IsZero() || left > soon:
		return "", canvas.Text
	case left <= 0:
		return "expired " + days(-left) + " ago", canvas.Bad
	}
	return "expires in " + days(left), canvas.Warn
}

// days writes a time in days, or hours if it is less than two.
func days(d time.Duration) string {
	if d < 48*time.Hour {
		return natural.Count(int(d/time.Hour), "hour")
	}
	return natural.Count(int(d/(24*time.Hour)), "day")
}

// Bars are barWidth columns wide at least, and mostBar at most.
const (
	barWidth = 6
	mostBar  = 16
)

// nearLimit is from which part of its limit on a reading is near it.
const nearLimit = 0.9

// bars adds readings with bars, in as many columns as there is room for: those near their
// limit in the role near.
func (p *page) bars(title string, list []live.Reading, role, near canvas.Role) {
	if len(list) == 0 {
		return
	}
	names, texts := 0, 0
	for _, r := range list {
		names, texts = max(names, canvas.Width(r.Name)), max(texts, canvas.Width(r.Text))
	}
	p.rows = append(p.rows, row{segs: []seg{{title, canvas.S(canvas.Title)}}})
	least := names + 1 + barWidth + 1 + texts + 3
	columns := max(1, min((p.w+3)/least, (len(list)+3)/4))
	bar := min(max(1, (p.w+3)/columns-least+barWidth), mostBar)
	lines := (len(list) + columns - 1) / columns
	for y := range lines {
		var segs []seg
		for c := range columns {
			i := c*lines + y
			if i >= len(list) {
				break
			}
			r := list[i]
			full := min(max(int(r.Part*float64(bar)+0.5), 0), bar)
			if r.Part > 0 && full == 0 {
				full = 1
			}
			look := role
			if r.Part >= nearLimit {
				look = near
			}
			end := "   "
			if c == columns-1 {
				end = ""
			}
			segs = append(segs,
				seg{pad(r.Name, names+1), canvas.S(canvas.Text)}, seg{strings.Repeat("█", full), canvas.S(look)},
				seg{strings.Repeat("░", bar-full) + " ", canvas.S(canvas.Dim)},
				seg{strings.Repeat(" ", texts-canvas.Width(r.Text)) + r.Text + end, canvas.S(canvas.Text)})
		}
		p.rows = append(p.rows, row{segs: segs})
	}
}
