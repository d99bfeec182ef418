package firmwarenotes

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Hit is a place of a note in which all words of a search stand.
type Hit struct {
	Note    string // its name
	In      string // "summary", "source opus", "profile autoneg-on", "fact link-up", "setting PHY_AUTO_NEG", "rdma", "check timers", "unknown" or "text"
	Heading string // of Note.Text: what the paragraph stands under; "" elsewhere
	Line    int    // of Note.Text, from 1, where the paragraph begins; 0 elsewhere
	Text    string // what stands there
}

// term is one word of a search, or an amount with its unit.
type term struct {
	text   string         // in lower case, without hyphens and underscores
	amount *regexp.Regexp // of what begins with a digit or has one or two letters: these stand alone
}

var (
	joiners    = strings.NewReplacer("-", "", "_", "")
	numberOnly = regexp.MustCompile(`^[0-9]+(\.[0-9]+)?$`)
	numberUnit = regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?) ?(\pL+|%|°c|.bit/s)$`)
)

// terms takes words apart and joins an amount with its unit: "6", "s" and "6s" are all 6 s.
func terms(words []string) []term {
	var all []term
	words = strings.Fields(strings.ToLower(strings.Join(words, " ")))
	for i := 0; i < len(words); i++ {
		w := words[i]
		if numberOnly.MatchString(w) && i+1 < len(words) && isUnit(words[i+1]) {
			i++
			w += " " + words[i]
		}
		t := term{text: joiners.Replace(w)}
		if m := numberUnit.FindStringSubmatch(w); m != nil && isUnit(m[2]) {
			t.amount = alone(regexp.QuoteMeta(m[1]) + ` ?` + regexp.QuoteMeta(m[2]))
		} else if numberOnly.MatchString(w) {
			t.amount = alone(regexp.QuoteMeta(w) + `\pL*`)
		} else if utf8.RuneCountInString(w) <= 2 {
			t.amount = alone(regexp.QuoteMeta(w))
		}
		if t.text == "" { // a hyphen
			t.text = w
		}
		all = append(all, t)
	}
	return all
}

// alone matches what does not go on in letters and digits on either side.
func alone(expr string) *regexp.Regexp {
	return regexp.MustCompile(`(?:^|[^\pL\pN.])` + expr + `(?:$|[^\pL\pN.]|\.(?:$|[^\pN]))`)
}

// isUnit reports whether a word in lower case is a unit.
func isUnit(word string) bool {
	for u := range units {
		if strings.ToLower(u) == word {
			return true
		}
	}
	return false
}

// in reports whether the term stands in a text in lower case; squeezed is the same without
// hyphens and underscores.
func (t term) in(text, squeezed string) bool {
	if t.amount != nil {
		return t.amount.MatchString(text)
	}
	return strings.Contains(squeezed, t.text) || strings.Contains(text, t.text)
}

// Search returns the places of the note in which all words stand, in any order and
// whatever their case, hyphens and underscores: autoneg is in PHY_AUTO_NEG and in
// auto-negotiation. A number stands alone or before its unit, written with a blank or
// without: 6 s is 6s and not 60s; so does a word of one or two letters. Without words there
// are no places. They come as in the note: summary, data, text.
func (n Note) Search(words ...string) []Hit {
	sought := terms(words)
	if len(sought) == 0 {
		return nil
	}
	var hits []Hit
	look := func(h Hit, name string) {
		text := strings.ToLower(name + " " + h.Text)
		squeezed := joiners.Replace(text)
		for _, t := range sought {
			if !t.in(text, squeezed) {
				return
			}
		}
		h.Note = n.Name
		hits = append(hits, h)
	}
	data := func(in, text string) { look(Hit{In: in, Text: text}, in) }
	data("summary", n.Title+": "+n.Summary)
	for _, p := range n.Profiles {
		data("profile "+p.Key, p.Name)
	}
	for _, f := range n.Facts {
		text := f.What + ": " + f.Amount()
		if f.AppliesTo != "" {
			text += " (" + f.AppliesTo + ")"
		}
		data("fact "+f.Name, text)
	}
	for _, s := range n.Settings {
		text := s.Tool + ": " + s.Effect
		if len(s.Values) > 0 {
			text += " (" + strings.Join(s.Values, ", ") + ")"
		}
		data("setting "+s.Name, text)
	}
	if r := n.RDMA; r != nil {
		firmware := r.Firmware
		if firmware == "" {
			firmware = "that is not stated"
		}
		data("rdma", fmt.Sprintf("retransmission, measured on %s with firmware %s", r.MeasuredOn, firmware))
	}
	for _, c := range n.Checks {
		data("check "+c.Name, strings.Join(append(append([]string{c.What}, c.Run...), c.Expect), "; "))
	}
	for _, u := range n.Unknown {
		data("unknown", u)
	}
	for _, s := range n.Sources {
		data("source "+s.Key, strings.TrimSpace(n.Cite(s.Key)+" "+s.URL))
	}
	for _, p := range paragraphs(n.Text) {
		look(p, "")
	}
	return hits
}

// paragraphs takes Markdown apart: headings, text up to a blank line, and each row of a
// table and each item of a list on its own.
func paragraphs(text string) []Hit {
	var all []Hit
	heading, open := "", false
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		alone := strings.HasPrefix(line, "|")
		switch {
		case line == "":
			open = false
		case strings.HasPrefix(line, "#"):
			heading, open = strings.TrimSpace(strings.TrimLeft(line, "#")), false
			all = append(all, Hit{In: "text", Heading: heading, Line: i + 1, Text: heading})
		case strings.Trim(line, "|-: ") == "": // the rule of a table
		case open && !alone && !strings.HasPrefix(line, "- "):
			all[len(all)-1].Text += " " + line
		default:
			if alone {
				line = strings.TrimSpace(strings.Trim(line, "|"))
			}
			all = append(all, Hit{In: "text", Heading: heading, Line: i + 1, Text: line})
			open = !alone
		}
	}
	return all
}

// Search looks through notes as [Note.Search] does. The note that is most about the
// words comes first: one that has them in its title or summary, then one with more facts,
// settings and other data in which they stand, then one with more text; and in their order
// where that is the same.
func Search(notes []Note, words ...string) []Hit {
	type found struct {
		hits  []Hit
		about [3]int // hits in the summary, in data, in text
	}
	var all []found
	for _, n := range notes {
		f := found{hits: n.Search(words...)}
		for _, h := range f.hits {
			switch {
			case h.In == "summary":
				f.about[0]++
			case h.In == "text":
				f.about[2]++
			default:
				f.about[1]++
			}
		}
		all = append(all, f)
	}
	slices.SortStableFunc(all, func(a, b found) int {
		return cmp.Or(-cmp.Compare(a.about[0], b.about[0]), -cmp.Compare(a.about[1], b.about[1]), -cmp.Compare(a.about[2], b.about[2]))
	})
	var hits []Hit
	for _, f := range all {
		hits = append(hits, f.hits...)
	}
	return hits
}
