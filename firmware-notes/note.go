package firmwarenotes

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/ocslab/ocslab/internal/strictyaml"
)

// Note is what is known of one firmware.
type Note struct {
	Name          string // the file's, without .md: "connectx-6-dx"
	Title         string
	Vendor, Model string // empty when nobody makes it
	Summary       string // one or two sentences
	Profiles      []Profile
	Facts         []Fact // one for each value of each profile, in their order
	Text          string // the Markdown below the header
}

// Fact says why one value of a profile is what it is.
type Fact struct {
	Profile    string // its full name, as in Profile.Name
	Value      string // debounce, detect, train, carrier, burst or refresh
	Source     string // for people
	Confidence Confidence
}

// Confidence is how sure a fact is. It tells of the source's set-up; how well that
// carries over to another card is for the text of the note to say.
type Confidence string

const (
	High   Confidence = "high"   // measured and published, or read in the vendor's own words
	Medium Confidence = "medium" // follows from such, or one of several readings of it
	Low    Confidence = "low"    // assumed
)

var confidences = []string{string(High), string(Medium), string(Low)}

// UnmarshalText accepts high, medium and low.
func (c *Confidence) UnmarshalText(text []byte) error {
	word := string(text)
	if !slices.Contains(confidences, word) {
		return fmt.Errorf("want high, medium or low, found %q%s", word, strictyaml.DidYouMean(word, confidences))
	}
	*c = Confidence(word)
	return nil
}

var plainName = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

const nameRule = "want lower-case letters, digits and single hyphens, such as connectx-6-dx"

// Parse reads a note. The name is that of its file, with or without directory. Errors
// name it, and tell of everything that is wrong with the header at once, each with line
// and column in the file.
func Parse(name string, md []byte) (Note, error) {
	n := Note{Name: strings.TrimSuffix(path.Base(strings.ReplaceAll(name, `\`, "/")), ".md")}
	if !plainName.MatchString(n.Name) {
		return Note{}, fmt.Errorf("firmware note %q: its profiles are called by the name of the file: %s", name, nameRule)
	}
	md = bytes.TrimPrefix(md, []byte("\ufeff"))
	head, text, ok := cut(md)
	if !ok {
		return Note{}, strictyaml.Errors{strictyaml.Errorf(name, strictyaml.Pos{Line: 1, Column: 1}, "",
			"a note begins with a header between two lines of three hyphens, and one of these is missing")}
	}
	n.Text = text
	h, at, err := decode(name, head)
	if err != nil {
		return Note{}, err
	}
	n.Title, n.Vendor, n.Model, n.Summary = h.Title, h.Vendor, h.Model, h.Summary

	c := checker{file: name, at: at}
	keys := slices.SortedFunc(maps.Keys(h.Profiles), func(a, b string) int { // as in the file
		pa, pb := at.key(pathOf(a)), at.key(pathOf(b))
		return cmp.Or(cmp.Compare(pa.Line, pb.Line), cmp.Compare(pa.Column, pb.Column))
	})
	for _, key := range keys {
		if !plainName.MatchString(key) {
			c.errs = append(c.errs, strictyaml.Errorf(name, at.key(pathOf(key)), pathOf(key), "not the name of a profile: %s", nameRule))
		}
		full := n.Name
		if len(keys) > 1 {
			full += "/" + key
		}
		p, facts := c.profile(pathOf(key), full, h.Profiles[key])
		n.Profiles = append(n.Profiles, p)
		n.Facts = append(n.Facts, facts...)
	}
	if err := c.errs.Err(); err != nil {
		return Note{}, err
	}
	return n, nil
}

func pathOf(profile string) string { return strictyaml.Key("profiles", profile) }

// cut separates the header, with the line that opens it so that lines keep their
// numbers, from the text.
func cut(md []byte) (head []byte, text string, ok bool) {
	for end, number := 0, 1; end < len(md); number++ {
		line, _, _ := bytes.Cut(md[end:], []byte("\n"))
		fence := string(bytes.TrimRight(line, " \t\r")) == "---"
		next := min(end+len(line)+1, len(md))
		switch {
		case number == 1 && !fence:
			return nil, "", false
		case number > 1 && fence:
			return md[:end], strings.TrimLeft(string(md[next:]), "\r\n"), true
		}
		end = next
	}
	return nil, "", false
}

// checker collects what is wrong with the meaning of a header.
type checker struct {
	file string
	at   places
	errs strictyaml.Errors
}

func (c *checker) fail(path, format string, args ...any) {
	c.errs = append(c.errs, strictyaml.Errorf(c.file, c.at.value(path), path, format, args...))
}

func (c *checker) profile(path, name string, h profileHeader) (Profile, []Fact) {
	p := Profile{
		Name:     name,
		Debounce: c.span(path+".debounce", h.Debounce),
		Detect:   c.span(path+".detect", h.Detect),
		Train:    c.span(path+".train", h.Train),
		Carrier:  c.span(path+".carrier", h.Carrier),
		Refresh:  h.Refresh.Period,
	}
	c.positive(path+".refresh.period", h.Refresh.Period)
	if b := h.Burst; b != nil {
		p.Burst = &Burst{Window: b.Window, Free: b.Free, Step: b.Step, Most: b.Most}
		c.positive(path+".burst.window", b.Window)
		c.positive(path+".burst.step", b.Step)
		c.positive(path+".burst.most", b.Most)
		if b.Free < 0 {
			c.fail(path+".burst.free", "is negative: it counts link-ups")
		}
	}

	var facts []Fact
	fact := func(value, source string, confidence Confidence) {
		f := Fact{name, value, cmp.Or(source, h.Source), cmp.Or(confidence, h.Confidence)}
		if f.Source == "" || f.Confidence == "" {
			c.fail(path+"."+value, "does not say where it comes from and how sure that is: give it a source and a confidence, or its profile")
		}
		facts = append(facts, f)
	}
	fact("debounce", h.Debounce.Source, h.Debounce.Confidence)
	fact("detect", h.Detect.Source, h.Detect.Confidence)
	fact("train", h.Train.Source, h.Train.Confidence)
	fact("carrier", h.Carrier.Source, h.Carrier.Confidence)
	if h.Burst != nil {
		fact("burst", h.Burst.Source, h.Burst.Confidence)
	}
	fact("refresh", h.Refresh.Source, h.Refresh.Confidence)
	return p, facts
}

// longest keeps the sums of a model far away from overflow.
const longest = time.Hour

func (c *checker) span(path string, h spanHeader) Span {
	for key, d := range map[string]time.Duration{"median": h.Median, "spread": h.Spread, "min": h.Min, "max": h.Max} {
		switch {
		case d < 0:
			c.fail(path+"."+key, "is negative")
		case d > longest:
			c.fail(path+"."+key, "is longer than an hour")
		}
	}
	if h.Min > max(h.Median, 0) {
		c.fail(path+".min", "is above the median of %v", h.Median)
	}
	if h.Max != 0 && h.Max < h.Median {
		c.fail(path+".max", "is below the median of %v", h.Median)
	}
	return Span{Median: h.Median, Spread: h.Spread, Min: h.Min, Max: h.Max}
}

func (c *checker) positive(path string, d time.Duration) {
	if d <= 0 || d > longest {
		c.fail(path, "want more than nothing and an hour at most, found %v", d)
	}
}
