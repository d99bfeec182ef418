package chart

import (
	"fmt"
	"html/template"
	"slices"
	"strings"

	"github.com/ocslab/ocslab/timeline"
)

// Tone is how something is drawn: colour, texture, marker and dashes.
type Tone int

// Plain is the tone of text.
const Plain Tone = 0

// Tones of series begin here; those of stages are below.
const firstSeries Tone = 32

// stageTones are the looks of stages. A layer has a colour; what is lost is hatched and has
// a hollow marker, what comes back is full.
var stageTones = []struct {
	stage  timeline.Stage
	colour string // a variable of the style
	lost   bool
	marker string // around 0, as path data
}{
	{timeline.Command, "ink", false, "M-4-4H4V4H-4Z"},
	{timeline.Ack, "ack", false, "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0Z"},
	{timeline.Dark, "light", true, "M-4.5-3.5H4.5L0 4.5Z"},
	{timeline.TrafficLost, "traffic", true, "M0-5L5 0L0 5L-5 0Z"},
	{timeline.CarrierDown, "carrier", true, "M-4-4H4V4H-4Z"},
	{timeline.Light, "light", false, "M-4.5 3.5H4.5L0-4.5Z"},
	{timeline.Firmware, "firmware", false, "M-5-1.5H-1.5V-5H1.5V-1.5H5V1.5H1.5V5H-1.5V1.5H-5Z"},
	{timeline.CarrierUp, "carrier", false, "M-4-4H4V4H-4Z"},
	{timeline.Traffic, "traffic", false, "M0-5L5 0L0 5L-5 0Z"},
}

// StageTone is the tone of a stage, the same in all charts.
func StageTone(s timeline.Stage) Tone {
	for i, t := range stageTones {
		if t.stage == s {
			return Tone(i + 1)
		}
	}
	return Plain
}

const (
	seriesColours = 8
	seriesDashes  = 4
)

// SeriesTone is the tone of the i-th, from 0, of things that are not stages, such as
// conditions. Neighbours differ in colour and dashes; 32 are different.
func SeriesTone(i int) Tone { return firstSeries + Tone(max(i, 0)%(seriesColours*seriesDashes)) }

// class gives the colour.
func (t Tone) class() string {
	if t >= firstSeries {
		return fmt.Sprintf("s%d", (t-firstSeries)%seriesColours)
	}
	return fmt.Sprintf("t%d", t)
}

// dash gives the dashes of a curve.
func (t Tone) dash() string {
	if t >= firstSeries {
		i := t - firstSeries
		return fmt.Sprintf("d%d", (i+i/seriesColours)%seriesDashes)
	}
	if t.lost() {
		return "d1"
	}
	return "d0"
}

func (t Tone) lost() bool {
	return t > 0 && int(t) <= len(stageTones) && stageTones[t-1].lost
}

// paint is the attributes of an area.
func (t Tone) paint() string {
	if t.lost() {
		return fmt.Sprintf(` class="%s edge" fill="url(#oc-%s)"`, t.class(), stageTones[t-1].colour)
	}
	return fmt.Sprintf(` class="%s full"`, t.class())
}

// marker draws the sign of a tone.
func (t Tone) marker(c *canvas, x, y float64) {
	d, class := "M-3.5 0a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0-7 0Z", "full"
	if t > 0 && int(t) <= len(stageTones) {
		d = stageTones[t-1].marker
	}
	if t.lost() {
		class = "hollow"
	}
	c.put(`<path d="{}" transform="translate({} {})" class="{} mark {}"/>`, d, x, y, t.class(), class)
}

// legend draws what tones mean, in as many lines as it takes. Signs are drawn by sign,
// which has 26 pixels.
func (c *canvas) legend(labels []string, sign func(i int, x, y float64)) {
	const gap, swatch = 18, 28
	if len(labels) == 0 {
		return
	}
	x := 0.0
	c.y += 14
	for i, label := range labels {
		w := min(swatch+textWidth(label, textSize), c.w)
		if x > 0 && x+w > c.w {
			x = 0
			c.y += 20
		}
		sign(i, x, c.y-4)
		c.text(x+swatch, c.y, "start", "", textSize, label, c.w-swatch)
		x += w + gap
	}
	c.y += 10
}

// Style is the CSS that charts need, for the style element of a page. Its variables may be
// used by the page, too: --ink, --soft, --faint (lines), --ground, --panel, --pass, --fail
// and --open. Paper is light in either scheme.
func Style() template.CSS { return template.CSS(style) }

// Defs is what charts refer to, once for a page, before the first of them.
func Defs() template.HTML {
	return template.HTML(`<svg width="0" height="0" aria-hidden="true" style="position:absolute">` + defs + `</svg>`)
}

const lightColours = `--ground:#fff;--panel:#f5f6f8;--ink:#1b1f27;--soft:#555c69;--faint:#d9dce2;` +
	`--ack:#5f6878;--light:#b4530a;--firmware:#8b3a9c;--carrier:#1a5fb4;--traffic:#0a7559;` +
	`--pass:#0a6b3c;--fail:#b3261e;--open:#8a5a00;` +
	`--s0:#1a5fb4;--s1:#b4530a;--s2:#0a7559;--s3:#8b3a9c;--s4:#b3261e;--s5:#5c6200;--s6:#00708a;--s7:#5f6878;` +
	`--h0:#eaf1fa;--h1:#d0e1f4;--h2:#aecbea;--h3:#86afdc;--h4:#3a72b0;--h5:#275f9f;--h6:#1a4f8d;--h7:#0f3363;--hl:#0f1a2a;--hd:#fff`

const darkColours = `--ground:#14171c;--panel:#1d2128;--ink:#e6e8ec;--soft:#a7aebb;--faint:#373d48;` +
	`--ack:#a3acbb;--light:#f0a04b;--firmware:#d695e2;--carrier:#74b0f4;--traffic:#4cc7a0;` +
	`--pass:#5fd295;--fail:#ff8a80;--open:#e8b450;` +
	`--s0:#74b0f4;--s1:#f0a04b;--s2:#4cc7a0;--s3:#d695e2;--s4:#ff8a80;--s5:#c6cc55;--s6:#5fc8e0;--s7:#a3acbb;` +
	`--h0:#16263b;--h1:#1b3557;--h2:#224873;--h3:#2b5f96;--h4:#5b94cf;--h5:#7fb0e2;--h6:#a9ccf0;--h7:#d9e9fa;--hl:#f2f6fb;--hd:#0b1420`

var style, defs = func() (string, string) {
	var s, d strings.Builder
	s.WriteString(":root{" + lightColours + "}\n@media screen and (prefers-color-scheme:dark){:root{" + darkColours + "}}\n")
	s.WriteString(`.oc{font-family:system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,"Noto Sans",sans-serif;` +
		`font-variant-numeric:tabular-nums;max-width:100%;height:auto}
.oc text{font-size:13px;fill:var(--ink);stroke:var(--ground);stroke-width:3px;stroke-linejoin:round;paint-order:stroke}
.oc text.tick{font-size:11.5px;fill:var(--soft)}
.oc text.soft{fill:var(--soft)}
.oc text.head{font-size:15px;font-weight:600}
.oc text.part{font-weight:600}
.oc text.hl{font-size:11.5px;fill:var(--hl);stroke:none}
.oc text.hd{font-size:11.5px;fill:var(--hd);stroke:none}
.oc path{fill:none}
.oc .ground{fill:var(--ground)}
.oc .grid{stroke:var(--faint);stroke-width:1}
.oc .axis{stroke:var(--soft);stroke-width:1}
.oc .lead{stroke:var(--soft);stroke-width:1;stroke-dasharray:1 4}
.oc .event{stroke:var(--soft);stroke-width:1.2}
.oc .whisker{stroke:var(--ink);stroke-width:1.4}
.oc .level{stroke:var(--ink);stroke-width:1}
.oc .full{fill:var(--t)}
.oc .pale{fill:var(--t);fill-opacity:.25}
.oc .faintly{fill:var(--t);fill-opacity:.14}
.oc .hollow{fill:var(--ground);stroke:var(--t);stroke-width:1.8}
.oc .edge{stroke:var(--t);stroke-width:1.2}
.oc .curve{stroke:var(--t);stroke-width:1.7;stroke-linejoin:round}
.oc .mark.full{stroke:var(--ground);stroke-width:1}
.oc .median{stroke:var(--t);stroke-width:3}
.oc .d1{stroke-dasharray:7 3}.oc .d2{stroke-dasharray:2 3}.oc .d3{stroke-dasharray:9 3 2 3}
.oc-narrow{display:none}
@media screen and (max-width:560px){.oc-wide{display:none}.oc-narrow{display:block}}
.t0{--t:var(--soft)}`)
	var hatched []string
	for i, t := range stageTones {
		fmt.Fprintf(&s, ".t%d{--t:var(--%s)}", i+1, t.colour)
		if t.lost {
			hatched = append(hatched, t.colour)
		}
	}
	for i := range seriesColours {
		fmt.Fprintf(&s, ".s%[1]d{--t:var(--s%[1]d)}", i)
	}
	for i := range heatColours {
		fmt.Fprintf(&s, ".h%[1]d{fill:var(--h%[1]d)}", i)
	}
	slices.Sort(hatched)
	d.WriteString("<defs>")
	for _, colour := range slices.Compact(hatched) {
		fmt.Fprintf(&d, `<pattern id="oc-%[1]s" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">`+
			`<path d="M1.5 0V6" style="stroke:var(--%[1]s);stroke-width:2.4"/></pattern>`, colour)
	}
	d.WriteString(`<pattern id="oc-none" width="7" height="7" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">` +
		`<path d="M1 0V7" style="stroke:var(--faint);stroke-width:2"/></pattern></defs>`)
	return s.String(), d.String()
}()
