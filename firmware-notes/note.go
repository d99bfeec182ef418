package firmwarenotes

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/ocslab/ocslab/internal/strictyaml"
)

// Note is what is known of one firmware. Of what is not stated, texts are empty.
type Note struct {
	Name    string // the file's, without .md: "connectx-6-dx"
	Title   string
	Summary string // one or two sentences

	Kind          Kind   // "" when the note does not say what it is of
	Vendor, Model string // empty when nobody makes it
	Module        string // of a NIC: the optical module in it
	Speed         Quantity
	Firmware      Firmware

	Sources  []Source
	Profiles []Profile
	Origins  []Origin // one for each value of each profile, in their order
	Facts    []Fact
	Settings []Setting
	RDMA     *Retransmission // nil: not known
	Checks   []Check
	Unknown  []string // what no source states
	Text     string   // the Markdown below the header
}

// Kind is what a note is of.
type Kind string

// Kinds of things that have firmware.
const (
	NIC    Kind = "nic"
	Module Kind = "module"
	Switch Kind = "switch"
)

var kinds = []string{string(NIC), string(Module), string(Switch)}

// UnmarshalText accepts nic, module and switch.
func (k *Kind) UnmarshalText(text []byte) error {
	word := string(text)
	if !slices.Contains(kinds, word) {
		return fmt.Errorf("want nic, module or switch, found %q%s", word, strictyaml.DidYouMean(word, kinds))
	}
	*k = Kind(word)
	return nil
}

// Unstated is what a header says where a source does not state something. The fields of
// a Note are empty then.
const Unstated = "unstated"

// Firmware is of which firmware a note is true.
type Firmware struct {
	Known string // the version that the sources had
	Range string // the versions for which they say that it is so, too
}

// String returns a few words for people.
func (f Firmware) String() string {
	switch {
	case f.Known == "" && f.Range == "":
		return "not stated by the sources"
	case f.Range == "":
		return f.Known
	case f.Known == "":
		return f.Range
	}
	return f.Known + " (" + f.Range + ")"
}

// Source is something that facts can refer to.
type Source struct {
	Key   string
	Title string
	Where string // section, page, file: "" for all of it
	URL   string // "" if it has none that is known
}

// Origin says why one value of a profile is what it is.
type Origin struct {
	Profile    string // its Key
	Value      string // debounce, detect, train, carrier, burst or refresh
	Source     string // see [Note.Cite]
	Confidence Confidence
}

// Fact is one thing that is known: a value, a range, or both.
type Fact struct {
	Name       string // "link-up-autoneg-on"
	What       string // "from light to link-up, auto-negotiation on"
	Value      Quantity
	Low, High  Quantity // either may be missing
	Source     string   // see [Note.Cite]
	Confidence Confidence
	AppliesTo  string // under which circumstances; "" for all that the note is of
	Check      string // how to check it in your own lab: text, or the name of a Check
}

// Amount writes value and range in one.
func (f Fact) Amount() string {
	between := ""
	switch {
	case !f.Low.IsZero() && !f.High.IsZero():
		between = f.Low.Text + " to " + f.High.Text
	case !f.High.IsZero():
		between = "up to " + f.High.Text
	case !f.Low.IsZero():
		between = "at least " + f.Low.Text
	}
	switch {
	case between == "":
		return f.Value.Text
	case f.Value.IsZero():
		return between
	}
	return f.Value.Text + " (" + between + ")"
}

// Check is how to find something out in your own lab.
type Check struct {
	Name   string
	What   string   // what it tells
	Run    []string // commands, with the placeholders of [Setting]; may be empty
	Expect string   // what to make of the outcome
}

// bases are words that stand in place of a source.
var bases = []string{"assumed", "inferred", "invented", "measured"}

// reference is a source that begins with a key, or is one.
var reference = regexp.MustCompile(`^([a-z0-9]+(?:-[a-z0-9]+)*)(?:: +(.*))?$`)

// Cite writes out for people what a Source of the note's facts says. It is a key of
// Sources; one of assumed, inferred, invented, measured; either of these with a colon, a blank
// and a remark; or a text.
func (n Note) Cite(source string) string {
	m := reference.FindStringSubmatch(source)
	if m == nil {
		return source
	}
	for _, s := range n.Sources {
		if s.Key != m[1] {
			continue
		}
		text := s.Title
		if s.Where != "" {
			text += ", " + s.Where
		}
		if m[2] != "" {
			text += " (" + m[2] + ")"
		}
		return text
	}
	return source
}

// Weakest returns the confidence of what is least sure in the note, "" if it has no facts,
// settings and profiles.
func (n Note) Weakest() Confidence {
	weakest := -1
	for _, c := range n.confidences() {
		weakest = max(weakest, slices.Index(confidences, string(c)))
	}
	if weakest < 0 {
		return ""
	}
	return Confidence(confidences[weakest])
}

func (n Note) confidences() []Confidence {
	var all []Confidence
	for _, o := range n.Origins {
		all = append(all, o.Confidence)
	}
	for _, f := range n.Facts {
		all = append(all, f.Confidence)
	}
	for _, s := range n.Settings {
		all = append(all, s.Confidence)
	}
	if n.RDMA != nil {
		all = append(all, n.RDMA.Confidence)
	}
	return all
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
	whole := func(msg string) (Note, error) {
		return Note{}, strictyaml.Errors{strictyaml.Errorf(name, strictyaml.Pos{Line: 1, Column: 1}, "", "%s", msg)}
	}
	switch {
	case len(bytes.TrimSpace(md)) == 0:
		return whole("the file is empty")
	case !ok && !utf8.Valid(md):
		return whole("the file is not UTF-8 text")
	case !ok && fence(firstLine(md)):
		return whole("the header has no end: close it with a line of three hyphens, ---")
	case !ok:
		return whole("there is no header: begin the note with a line of three hyphens, ---, the header, and another such line")
	case len(bytes.TrimSpace(head)) == len("---"):
		return whole("the header is empty: write at least a title and a summary")
	case !utf8.ValidString(text):
		at := strictyaml.Pos{Line: 1 + bytes.Count(md[:len(md)-len(text)], []byte("\n")), Column: 1}
		for line := range strings.SplitSeq(text, "\n") {
			if !utf8.ValidString(line) {
				break
			}
			at.Line++
		}
		return Note{}, strictyaml.Errors{strictyaml.Errorf(name, at, "", "this line is not UTF-8 text")}
	}
	n.Text = text
	h, at, err := decode(name, head)
	c := checker{file: name, at: at}
	if err != nil && (!errors.As(err, &c.errs) || at.long == nil) {
		return Note{}, err
	}
	decoded := len(c.errs)
	c.note(&n, h)
	c.errs = append(c.errs[:decoded:decoded], c.new(c.errs[:decoded], c.errs[decoded:])...)
	if err := c.errs.Err(); err != nil {
		return Note{}, err
	}
	return n, nil
}

// Load reads the note in a file of the user's. Errors name the file; those about what is
// in it are those of [Parse].
func Load(file string) (Note, error) {
	md, err := strictyaml.ReadFile(file)
	if err != nil {
		return Note{}, err
	}
	return Parse(file, md)
}

// cut separates the header, with the line that opens it so that lines keep their
// numbers, from the text.
func cut(md []byte) (head []byte, text string, ok bool) {
	for end, number := 0, 1; end < len(md); number++ {
		line := firstLine(md[end:])
		next := min(end+len(line)+1, len(md))
		switch {
		case number == 1 && !fence(line):
			return nil, "", false
		case number > 1 && fence(line):
			return md[:end], strings.TrimLeft(string(md[next:]), "\r\n"), true
		}
		end = next
	}
	return nil, "", false
}

func firstLine(md []byte) []byte {
	line, _, _ := bytes.Cut(md, []byte("\n"))
	return line
}

// fence reports whether a line opens or closes a header.
func fence(line []byte) bool { return string(bytes.TrimRight(line, " \t\r")) == "---" }
