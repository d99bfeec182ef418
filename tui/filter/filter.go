// Package filter picks lines by words that people type.
//
//	gpu1        the letters g, p, u, 1 in this order, somewhere
//	'gpu1       exactly these, somewhere
//	!lost       not these
//	gpu !down   all words must agree
//
// Upper and lower case are the same.
package filter

import "strings"

// Filter is a filter that was read. The zero Filter lets everything through.
type Filter struct {
	text  string
	words []word
}

type word struct {
	text  string
	exact bool
	not   bool
}

// Parse reads a filter. Every text is one; a lone "!" or "'" says nothing yet.
func Parse(text string) Filter {
	f := Filter{text: text}
	for _, t := range strings.Fields(strings.ToLower(text)) {
		w := word{}
		if t, w.not = strings.CutPrefix(t, "!"); w.not {
			w.exact = true
		}
		var quoted bool
		if t, quoted = strings.CutPrefix(t, "'"); quoted {
			w.exact = true
		}
		if w.text = t; t != "" {
			f.words = append(f.words, w)
		}
	}
	return f
}

// String returns what was typed.
func (f Filter) String() string { return f.text }

// Empty reports whether the filter lets everything through.
func (f Filter) Empty() bool { return len(f.words) == 0 }

// Match reports whether a line of fields passes: each word is found in one of the fields,
// and no "!" word in any.
func (f Filter) Match(fields ...string) bool {
	for _, w := range f.words {
		found := false
		for _, field := range fields {
			if w.in(strings.ToLower(field)) {
				found = true
				break
			}
		}
		if found == w.not {
			return false
		}
	}
	return true
}

func (w word) in(field string) bool {
	if w.exact {
		return strings.Contains(field, w.text)
	}
	_, ok := Score(field, w.text)
	return ok
}

// Score reports whether the letters of pattern occur in text in their order, and how well:
// a greater score is a better match, since it is compact, or at the beginnings of words.
// Both are taken as they are, so lower them first.
func Score(text, pattern string) (int, bool) {
	if pattern == "" {
		return 0, true
	}
	if i := strings.Index(text, pattern); i >= 0 {
		score := 1000 - i
		if i == 0 {
			score += 1000
		}
		return score - len(text), true
	}
	want := []rune(pattern)
	score, at, last, before := 0, 0, -2, ' '
	for i, r := range []rune(text) {
		if at < len(want) && r == want[at] {
			if i == last+1 {
				score += 10
			}
			if strings.ContainsRune(" -_/.:>", before) {
				score += 8
			}
			last = i
			at++
		}
		before = r
	}
	return score - len(text), at == len(want)
}
