package firmwarenotes

import (
	"bytes"
	"strconv"
	"strings"
	"time"

	yaml "go.yaml.in/yaml/v3"
)

// Markdown returns the note as a file that [Parse], by the name of n.Name, reads back
// equal, if it could have been read from one: text is UTF-8 without leading empty lines,
// a Span with Modes is as [Mixed] makes it, and each value of each profile has an Origin.
// Parse tells what is wrong with any other. A profile without a Key is called by the last
// part of its Name.
func (n Note) Markdown() []byte {
	var w writer
	w.text("title", n.Title)
	w.text("summary", n.Summary)
	of := n.Kind != "" // then what is not stated is said
	w.some("kind", string(n.Kind))
	w.stated("vendor", n.Vendor, of)
	w.stated("model", n.Model, of)
	w.stated("module", n.Module, n.Kind == NIC)
	w.stated("speed", n.Speed.Text, of && n.Kind != Switch)
	if of || n.Firmware != (Firmware{}) {
		w.add("firmware", flowing(func(w *writer) {
			w.stated("known", n.Firmware.Known, true)
			w.some("range", n.Firmware.Range)
		}))
	}
	w.section("sources", len(n.Sources), func(w *writer) {
		for _, s := range n.Sources {
			w.add(s.Key, flowing(func(w *writer) {
				w.text("title", s.Title)
				w.some("where", s.Where)
				w.some("url", s.URL)
			}))
		}
	})
	w.section("profiles", len(n.Profiles), func(w *writer) {
		for _, p := range n.Profiles {
			w.profile(p, n.Origins)
		}
	})
	w.section("facts", len(n.Facts), func(w *writer) {
		for _, f := range n.Facts {
			w.add(f.Name, mapping(func(w *writer) { w.fact(f) }))
		}
	})
	w.section("settings", len(n.Settings), func(w *writer) {
		for _, s := range n.Settings {
			w.add(s.Name, mapping(func(w *writer) { w.setting(s) }))
		}
	})
	if n.RDMA != nil {
		w.add("rdma", mapping(func(w *writer) { w.rdma(n.RDMA) }))
	}
	w.section("checks", len(n.Checks), func(w *writer) {
		for _, c := range n.Checks {
			w.add(c.Name, mapping(func(w *writer) {
				w.text("what", c.What)
				w.some("run", strings.Join(c.Run, "\n"))
				w.some("expect", c.Expect)
			}))
		}
	})
	if len(n.Unknown) > 0 {
		w.add("unknown", list(0, n.Unknown...))
	}

	var b bytes.Buffer
	b.WriteString("---\n")
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	// A tree of texts can be written: there is no error to come.
	_ = e.Encode(&yaml.Node{Kind: yaml.MappingNode, Content: w.nodes})
	_ = e.Close()
	b.WriteString("---\n")
	b.WriteString(n.Text)
	return b.Bytes()
}

// writer collects the keys and values of a mapping.
type writer struct{ nodes []*yaml.Node }

func (w *writer) add(key string, value *yaml.Node) { w.nodes = append(w.nodes, scalar(key), value) }

func (w *writer) text(key, text string) { w.add(key, scalar(text)) }

// some writes a text unless there is none.
func (w *writer) some(key, text string) {
	if text != "" {
		w.text(key, text)
	}
}

// stated writes a text or, if it has to be there, that it is not stated.
func (w *writer) stated(key, text string, needed bool) {
	if text == "" && needed {
		text = Unstated
	}
	w.some(key, text)
}

// plain writes what is no text, such as a duration or a number.
func (w *writer) plain(key, value string) {
	w.add(key, &yaml.Node{Kind: yaml.ScalarNode, Value: value})
}

func (w *writer) duration(key string, d time.Duration, needed bool) {
	if needed || d != 0 {
		w.plain(key, d.String())
	}
}

func (w *writer) section(key string, n int, write func(w *writer)) {
	if n > 0 {
		w.add(key, mapping(write))
	}
}

func (w *writer) sourced(source string, confidence Confidence) {
	w.some("source", source)
	w.some("confidence", string(confidence))
}

func (w *writer) profile(p Profile, origins []Origin) {
	key := p.Key
	if key == "" {
		key = p.Name[strings.LastIndexByte(p.Name, '/')+1:]
	}
	value := func(name string, write func(w *writer)) *yaml.Node {
		return flowing(func(w *writer) {
			write(w)
			for _, o := range origins {
				if o.Profile == key && o.Value == name {
					w.sourced(o.Source, o.Confidence)
				}
			}
		})
	}
	w.add(key, mapping(func(w *writer) {
		for _, s := range []struct {
			name string
			span Span
		}{{"debounce", p.Debounce}, {"detect", p.Detect}, {"train", p.Train}, {"carrier", p.Carrier}} {
			w.add(s.name, value(s.name, func(w *writer) { w.span(s.span) }))
		}
		if b := p.Burst; b != nil {
			w.add("burst", value("burst", func(w *writer) {
				w.duration("window", b.Window, true)
				w.plain("free", strconv.Itoa(b.Free))
				w.duration("step", b.Step, true)
				w.duration("most", b.Most, true)
			}))
		}
		w.add("refresh", value("refresh", func(w *writer) { w.duration("period", p.Refresh, true) }))
	}))
}

func (w *writer) span(s Span) {
	if len(s.Modes) == 0 {
		w.duration("median", s.Median, true)
		w.duration("spread", s.Spread, false)
	} else {
		modes := &yaml.Node{Kind: yaml.SequenceNode}
		for _, m := range s.Modes {
			modes.Content = append(modes.Content, flowing(func(w *writer) {
				w.plain("share", strconv.FormatFloat(m.Share, 'g', -1, 64))
				w.duration("median", m.Median, true)
				w.duration("spread", m.Spread, false)
			}))
		}
		w.add("modes", modes)
	}
	w.duration("min", s.Min, false)
	w.duration("max", s.Max, false)
}

func (w *writer) fact(f Fact) {
	w.text("what", f.What)
	w.some("value", f.Value.Text)
	if !f.Low.IsZero() || !f.High.IsZero() {
		w.add("range", flowing(func(w *writer) {
			w.some("low", f.Low.Text)
			w.some("high", f.High.Text)
		}))
	}
	w.sourced(f.Source, f.Confidence)
	w.some("applies-to", f.AppliesTo)
	w.some("check", f.Check)
}

func (w *writer) setting(s Setting) {
	w.text("tool", s.Tool)
	if len(s.Values) > 0 {
		w.add("values", list(yaml.FlowStyle, s.Values...))
		w.stated("default", s.Default, true)
	} else {
		w.some("default", s.Default)
	}
	w.text("effect", s.Effect)
	w.sourced(s.Source, s.Confidence)
	for _, c := range []struct {
		key   string
		lines []string
	}{{"show", s.Show}, {"apply", s.Apply}, {"effective", s.Effective}, {"verify", s.Verify}, {"undo", s.Undo}} {
		w.some(c.key, strings.Join(c.lines, "\n"))
	}
	w.some("after", s.After)
	if s.BothEnds {
		w.plain("both-ends", "true")
	}
}

func (w *writer) rdma(r *Retransmission) {
	w.text("measured-on", r.MeasuredOn)
	w.stated("firmware", r.Firmware, true)
	var adaptive []string
	for _, d := range r.Adaptive {
		adaptive = append(adaptive, d.String())
	}
	w.add("adaptive", list(yaml.FlowStyle, adaptive...))
	w.add("interval", flowing(func(w *writer) {
		w.plain("factor", strconv.Itoa(r.Factor))
		w.plain("least-timeout", strconv.Itoa(r.Least))
		w.duration("early-at-least", r.EarlyLeast, true)
		w.duration("early-above", r.Early, true)
	}))
	w.plain("retry", strconv.Itoa(r.Retry))
	w.add("errors", flowing(func(w *writer) {
		for _, e := range r.Errors {
			w.plain(strconv.Itoa(e.Timeout), e.After.String())
		}
	}))
	w.sourced(r.Source, r.Confidence)
}

func mapping(write func(w *writer)) *yaml.Node {
	var w writer
	write(&w)
	return &yaml.Node{Kind: yaml.MappingNode, Content: w.nodes}
}

// flowing is a mapping on one line.
func flowing(write func(w *writer)) *yaml.Node {
	n := mapping(write)
	n.Style = yaml.FlowStyle
	return n
}

func list(style yaml.Style, texts ...string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.SequenceNode, Style: style}
	for _, t := range texts {
		n.Content = append(n.Content, scalar(t))
	}
	return n
}

// scalar is a text, which package yaml quotes where it has to.
func scalar(text string) *yaml.Node {
	n := &yaml.Node{}
	n.SetString(text)
	return n
}
