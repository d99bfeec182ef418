package main

import (
	"fmt"
	"strings"
	"time"

	firmwarenotes "github.com/ocslab/ocslab/firmware-notes"
	"github.com/ocslab/ocslab/timeline/dist"
)

// noteDocument is a whole note as Markdown: its text, and then its data. Name is what it
// was asked for by.
func noteDocument(n firmwarenotes.Note, name string) []byte {
	var b strings.Builder
	text := n.Text
	if first, rest, _ := strings.Cut(text, "\n"); strings.HasPrefix(first, "# ") {
		text = rest
	}
	fmt.Fprintf(&b, "# %s\n\n%s\n\n", escape(n.Title), escape(n.Summary))
	if n.Kind != "" {
		b.WriteString(cells("of", "is"))
		stated := func(what, value string) {
			if value == "" {
				value = "not stated by the sources"
			}
			b.WriteString(row(what, value))
		}
		stated(subject(n), strings.TrimSpace(n.Vendor+" "+n.Model))
		if n.Kind == firmwarenotes.NIC {
			stated("module", n.Module)
		}
		if n.Kind != firmwarenotes.Switch {
			stated("speed", n.Speed.Text)
		}
		stated("firmware", n.Firmware.String())
	}
	b.WriteString("\n" + strings.TrimSpace(text) + "\n\n")
	if len(n.Facts) > 0 {
		b.WriteString("## Facts\n\n" + cells("what", "value", "sure", "source"))
		for _, f := range n.Facts {
			what := f.What
			if f.AppliesTo != "" {
				what += " (" + f.AppliesTo + ")"
			}
			b.WriteString(row(what, f.Amount(), string(f.Confidence), f.Source))
		}
	}
	for _, p := range n.Profiles {
		fmt.Fprintf(&b, "\n## Profile %s\n\n", escape(p.Name))
		b.WriteString(cells("stage", "takes", "sure", "source"))
		for _, o := range n.Origins {
			if o.Profile == p.Key {
				b.WriteString(row(o.Value, stage(p, o.Value), string(o.Confidence), o.Source))
			}
		}
	}
	if len(n.Settings) > 0 {
		b.WriteString("\n## Settings\n\n" + cells("setting", "values", "effect", "sure", "source"))
		for _, s := range n.Settings {
			values := strings.Join(s.Values, ", ")
			if s.Default != "" {
				values = strings.TrimPrefix(values+"; by default "+s.Default, "; ")
			}
			if values == "" {
				values = "not listed"
			}
			b.WriteString(row(s.Name+" ("+s.Tool+")", values, s.Effect, string(s.Confidence), s.Source))
		}
		fmt.Fprintf(&b, "\nTo see the commands that change one: `ocslab notes %s --set SETTING=VALUE`. ocslab runs none of them.\n", name)
	}
	if r := n.RDMA; r != nil {
		b.WriteString("\n## When RDMA connections send again\n\n" + rdmaText(n, r))
	}
	for i, c := range n.Checks {
		if i == 0 {
			b.WriteString("\n## Check it in your own lab\n")
		}
		fmt.Fprintf(&b, "\n**%s**: %s.", escape(c.Name), escape(strings.TrimSuffix(c.What, ".")))
		if len(c.Run) > 0 {
			fmt.Fprintf(&b, "\n\n```\n%s\n```\n", strings.Join(c.Run, "\n"))
		}
		if c.Expect != "" {
			fmt.Fprintf(&b, "\n%s\n", escape(c.Expect))
		} else {
			b.WriteString("\n")
		}
	}
	for i, u := range n.Unknown {
		if i == 0 {
			b.WriteString("\n## Unknown\n\n")
		}
		fmt.Fprintf(&b, "- %s\n", escape(u))
	}
	for i, s := range n.Sources {
		if i == 0 {
			b.WriteString("\n## Sources\n\n")
		}
		fmt.Fprintf(&b, "- **%s**: %s", s.Key, escape(n.Cite(s.Key)))
		if s.URL != "" {
			fmt.Fprintf(&b, " <%s>", s.URL)
		}
		b.WriteString("\n")
	}
	return []byte(b.String())
}

func rdmaText(n firmwarenotes.Note, r *firmwarenotes.Retransmission) string {
	var b strings.Builder
	firmware := r.Firmware
	if firmware == "" {
		firmware = "not stated"
	}
	var slots []string
	for _, d := range r.Adaptive {
		slots = append(slots, d.String())
	}
	fmt.Fprintf(&b, "Measured on %s, firmware %s: about %s after the post, as far as these are within 4.096 µs × 2^T, and then every "+
		"%d × 4.096 µs × 2^T, where T is the timeout and at least %d. Confidence: %s. Source: %s.\n\n",
		escape(r.MeasuredOn), escape(firmware), strings.Join(slots, ", "), r.Factor, r.Least, r.Confidence, escape(n.Cite(r.Source)))
	b.WriteString(cells("timeout", fmt.Sprintf("in error after, retry count %d", r.Retry)))
	for _, e := range r.Errors {
		b.WriteString(row(fmt.Sprint(e.Timeout), e.After.String()))
	}
	return b.String()
}

// stage writes one value of a profile.
func stage(p firmwarenotes.Profile, value string) string {
	switch value {
	case "debounce":
		return span(p.Debounce)
	case "detect":
		return span(p.Detect)
	case "train":
		return span(p.Train)
	case "carrier":
		return span(p.Carrier)
	case "burst":
		return fmt.Sprintf("%v more for each link-up beyond %d in %v, %v at most", p.Burst.Step, p.Burst.Free, p.Burst.Window, p.Burst.Most)
	}
	return "every " + p.Refresh.String()
}

func span(s firmwarenotes.Span) string {
	with := func(median, spread time.Duration) string {
		if spread == 0 {
			return median.String()
		}
		return fmt.Sprintf("%v ± %v", median, spread)
	}
	text := with(s.Median, s.Spread)
	if len(s.Modes) > 0 {
		total := 0.0
		for _, m := range s.Modes {
			total += m.Share
		}
		var modes []string
		for _, m := range s.Modes {
			modes = append(modes, fmt.Sprintf("%.0f %% %s", 100*m.Share/total, with(m.Median, m.Spread)))
		}
		text = strings.Join(modes, ", ")
	}
	switch {
	case s.Min > 0 && s.Max > 0:
		text += fmt.Sprintf(", within %v to %v", s.Min, s.Max)
	case s.Max > 0:
		text += fmt.Sprintf(", at most %v", s.Max)
	case s.Min > 0:
		text += fmt.Sprintf(", at least %v", s.Min)
	}
	return text
}

var markdownEscapes = func() *strings.Replacer {
	var pairs []string
	for _, c := range "\\`*_{}[]<>#|~&!" {
		pairs = append(pairs, string(c), `\`+string(c))
	}
	return strings.NewReplacer(append(pairs, "\n", " ", "\r", " ")...)
}()

// escape makes text of a header stand as it is in Markdown.
func escape(s string) string { return markdownEscapes.Replace(strings.TrimSpace(s)) }

// cells begins a table.
func cells(names ...string) string {
	return row(names...) + "|" + strings.Repeat(" --- |", len(names)) + "\n"
}

func row(texts ...string) string {
	var b strings.Builder
	b.WriteByte('|')
	for _, t := range texts {
		b.WriteString(" " + escape(t) + " |")
	}
	return b.String() + "\n"
}

type noteLine struct {
	Kind     string `json:"kind"` // "note"
	Note     string `json:"note"`
	Title    string `json:"title"`
	Summary  string `json:"summary"`
	Of       string `json:"of,omitempty"` // nic, module or switch
	Vendor   string `json:"vendor,omitempty"`
	Model    string `json:"model,omitempty"`
	Module   string `json:"module,omitempty"`
	Speed    string `json:"speed,omitempty"`
	Known    string `json:"firmware,omitempty"`
	Range    string `json:"firmware_range,omitempty"`
	Facts    int    `json:"facts"`
	Profiles int    `json:"profiles"`
	Settings int    `json:"settings"`
	Weakest  string `json:"weakest,omitempty"`
	Text     string `json:"text,omitempty"` // of one note only
}

func noteLineOf(n firmwarenotes.Note) noteLine {
	return noteLine{
		Kind: "note", Note: n.Name, Title: n.Title, Summary: n.Summary, Of: string(n.Kind), Vendor: n.Vendor, Model: n.Model,
		Module: n.Module, Speed: n.Speed.Text, Known: n.Firmware.Known, Range: n.Firmware.Range,
		Facts: len(n.Facts), Profiles: len(n.Profiles), Settings: len(n.Settings), Weakest: string(n.Weakest()),
	}
}

type amountLine struct {
	Text   string  `json:"text"`
	Number float64 `json:"number,omitempty"`
	Unit   string  `json:"unit,omitempty"`
	NS     *int64  `json:"duration_ns,omitempty"`
}

func amountOf(q firmwarenotes.Quantity) *amountLine {
	if q.IsZero() {
		return nil
	}
	l := &amountLine{Text: q.Text, Number: q.Number, Unit: q.Unit}
	if d, ok := q.Duration(); ok {
		ns := d.Nanoseconds()
		l.NS = &ns
	}
	return l
}

type factLine struct {
	Kind       string      `json:"kind"` // "note-fact"
	Note       string      `json:"note"`
	Fact       string      `json:"fact"`
	What       string      `json:"what"`
	Value      *amountLine `json:"value,omitempty"`
	Low        *amountLine `json:"low,omitempty"`
	High       *amountLine `json:"high,omitempty"`
	Source     string      `json:"source"`
	Confidence string      `json:"confidence"`
	AppliesTo  string      `json:"applies_to,omitempty"`
	Check      string      `json:"check,omitempty"`
}

type profileStageLine struct {
	Kind       string       `json:"kind"` // "note-stage"
	Note       string       `json:"note"`
	Profile    string       `json:"profile"`
	Stage      string       `json:"stage"`
	MedianNS   int64        `json:"median_ns"` // of refresh: the period; of burst: the step
	SpreadNS   int64        `json:"spread_ns,omitempty"`
	Modes      dist.Mixture `json:"modes,omitempty"`
	MinNS      int64        `json:"min_ns,omitempty"`
	MaxNS      int64        `json:"max_ns,omitempty"`
	WindowNS   int64        `json:"window_ns,omitempty"`
	Free       *int         `json:"free,omitempty"`
	Source     string       `json:"source"`
	Confidence string       `json:"confidence"`
}

type settingLine struct {
	Kind       string   `json:"kind"` // "note-setting"
	Note       string   `json:"note"`
	Setting    string   `json:"setting"`
	Tool       string   `json:"tool"`
	Values     []string `json:"values"`
	Default    string   `json:"default,omitempty"`
	Effect     string   `json:"effect"`
	After      string   `json:"after,omitempty"`
	BothEnds   bool     `json:"both_ends"`
	Source     string   `json:"source"`
	Confidence string   `json:"confidence"`
}

type rdmaLine struct {
	Kind       string      `json:"kind"` // "note-rdma"
	Note       string      `json:"note"`
	MeasuredOn string      `json:"measured_on"`
	Firmware   string      `json:"firmware,omitempty"`
	AdaptiveNS []int64     `json:"adaptive_ns"`
	Factor     int         `json:"factor"`
	Least      int         `json:"least_timeout"`
	Retry      int         `json:"retry"`
	Errors     []rdmaError `json:"errors"`
	Source     string      `json:"source"`
	Confidence string      `json:"confidence"`
}

type rdmaError struct {
	Timeout int   `json:"timeout"`
	AfterNS int64 `json:"after_ns"`
}

type checkLine struct {
	Kind   string   `json:"kind"` // "note-check"
	Note   string   `json:"note"`
	Check  string   `json:"check"`
	What   string   `json:"what"`
	Run    []string `json:"run"`
	Expect string   `json:"expect,omitempty"`
}

type unknownLine struct {
	Kind string `json:"kind"` // "note-unknown"
	Note string `json:"note"`
	What string `json:"what"`
}

type hitLine struct {
	Kind string `json:"kind"` // "note-hit"
	Note string `json:"note"`
	In   string `json:"in"`
	Head string `json:"heading,omitempty"`
	Line int    `json:"line,omitempty"`
	Text string `json:"text"`
}

type noteStepLine struct {
	Kind    string `json:"kind"` // "note-step"
	Note    string `json:"note"`
	Setting string `json:"setting"`
	Value   string `json:"value"`
	firmwarenotes.Step
}

// noteJSON writes a whole note.
func (a *app) noteJSON(n firmwarenotes.Note) {
	head := noteLineOf(n)
	head.Text = n.Text
	a.json(head)
	for _, f := range n.Facts {
		a.json(factLine{
			Kind: "note-fact", Note: n.Name, Fact: f.Name, What: f.What, Value: amountOf(f.Value), Low: amountOf(f.Low), High: amountOf(f.High),
			Source: n.Cite(f.Source), Confidence: string(f.Confidence), AppliesTo: f.AppliesTo, Check: f.Check,
		})
	}
	for _, p := range n.Profiles {
		for _, o := range n.Origins {
			if o.Profile == p.Key {
				a.json(profileStage(n, p, o))
			}
		}
	}
	for _, s := range n.Settings {
		l := settingLine{
			Kind: "note-setting", Note: n.Name, Setting: s.Name, Tool: s.Tool, Values: s.Values, Default: s.Default, Effect: s.Effect,
			After: s.After, BothEnds: s.BothEnds, Source: n.Cite(s.Source), Confidence: string(s.Confidence),
		}
		if l.Values == nil {
			l.Values = []string{}
		}
		a.json(l)
	}
	if r := n.RDMA; r != nil {
		l := rdmaLine{
			Kind: "note-rdma", Note: n.Name, MeasuredOn: r.MeasuredOn, Firmware: r.Firmware, Factor: r.Factor, Least: r.Least,
			AdaptiveNS: []int64{}, Retry: r.Retry, Source: n.Cite(r.Source), Confidence: string(r.Confidence),
		}
		for _, d := range r.Adaptive {
			l.AdaptiveNS = append(l.AdaptiveNS, d.Nanoseconds())
		}
		for _, e := range r.Errors {
			l.Errors = append(l.Errors, rdmaError{e.Timeout, e.After.Nanoseconds()})
		}
		a.json(l)
	}
	for _, c := range n.Checks {
		l := checkLine{"note-check", n.Name, c.Name, c.What, c.Run, c.Expect}
		if l.Run == nil {
			l.Run = []string{}
		}
		a.json(l)
	}
	for _, u := range n.Unknown {
		a.json(unknownLine{"note-unknown", n.Name, u})
	}
}

func profileStage(n firmwarenotes.Note, p firmwarenotes.Profile, o firmwarenotes.Origin) profileStageLine {
	l := profileStageLine{Kind: "note-stage", Note: n.Name, Profile: p.Name, Stage: o.Value, Source: n.Cite(o.Source), Confidence: string(o.Confidence)}
	s, ok := map[string]firmwarenotes.Span{"debounce": p.Debounce, "detect": p.Detect, "train": p.Train, "carrier": p.Carrier}[o.Value]
	switch {
	case ok:
		l.MedianNS, l.SpreadNS, l.Modes = s.Median.Nanoseconds(), s.Spread.Nanoseconds(), s.Modes
		l.MinNS, l.MaxNS = s.Min.Nanoseconds(), s.Max.Nanoseconds()
	case o.Value == "burst":
		l.MedianNS, l.MaxNS, l.WindowNS, l.Free = p.Burst.Step.Nanoseconds(), p.Burst.Most.Nanoseconds(), p.Burst.Window.Nanoseconds(), &p.Burst.Free
	default:
		l.MedianNS = p.Refresh.Nanoseconds()
	}
	return l
}
