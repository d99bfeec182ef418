package logs

import (
	"sort"
	"strings"

	"github.com/ocslab/ocslab/tui/filter"
	"github.com/ocslab/ocslab/tui/live"
)

// list is which lines of a log are shown, oldest first. It is a memory of what a log, a filter
// and the wish to see all come to, so that a frame looks only at the lines that are new since
// the one before; a list that was made anew would be the same.
type list struct {
	filter string
	all    bool
	last   *live.Entry // of the log: all up to it has been looked at

	shown []*live.Entry
	quiet []uint64 // numbers of routine lines that would pass the filter, and are hidden
}

// of brings the list up to a log. All is whether routine lines are shown, too.
func (l *list) of(log []*live.Entry, f filter.Filter, all bool) {
	if len(log) == 0 {
		*l = list{}
		return
	}
	from := l.since(log, f, all)
	if from < 0 {
		*l = list{filter: f.String(), all: all, shown: l.shown[:0], quiet: l.quiet[:0]}
		from = 0
	}
	words := compile(f)
	for _, e := range log[from:] {
		switch {
		case !words.match(e):
		case e.Routine && !e.Bad && !all:
			l.quiet = append(l.quiet, e.N)
		default:
			l.shown = append(l.shown, e)
		}
	}
	l.last = log[len(log)-1]
}

// since returns the index of the first line of a log that has not been looked at, -1 when all
// has to be done anew. Lines that the log has forgotten are forgotten here, too.
func (l *list) since(log []*live.Entry, f filter.Filter, all bool) int {
	if l.last == nil || l.all != all || l.filter != f.String() {
		return -1
	}
	at := place(log, l.last.N)
	if at == len(log) || log[at] != l.last {
		return -1
	}
	first := log[0].N
	l.shown = l.shown[place(l.shown, first):]
	l.quiet = l.quiet[sort.Search(len(l.quiet), func(i int) bool { return l.quiet[i] >= first }):]
	return at + 1
}

// place returns the index of the first line with a number of n or more.
func place(list []*live.Entry, n uint64) int {
	return sort.Search(len(list), func(i int) bool { return list[i].N >= n })
}

// words are the words of a filter. What people read is matched as the filter says; in raw
// messages, which are so long that the letters of any word occur in their order, a word must
// stand as it is.
type words []word

type word struct{ text, raw filter.Filter }

func compile(f filter.Filter) words {
	var list words
	for _, t := range strings.Fields(f.String()) {
		w := word{text: filter.Parse(t), raw: filter.Parse(t)}
		if !strings.HasPrefix(t, "'") && !strings.HasPrefix(t, "!") {
			w.raw = filter.Parse("'" + t)
		}
		if !w.text.Empty() {
			list = append(list, w)
		}
	}
	return list
}

// match reports whether a line passes: all words agree.
func (ws words) match(e *live.Entry) bool {
	for _, w := range ws {
		bad := ""
		if e.Bad {
			bad = "bad"
		}
		found := w.text.Match(e.Switch, string(e.Kind), bad, e.Text, e.CLI)
		if not := strings.HasPrefix(w.text.String(), "!"); not && found {
			found = w.raw.Match(e.Raw) // neither here nor there
		} else if !not && !found {
			found = e.Raw != "" && w.raw.Match(e.Raw)
		}
		if !found {
			return false
		}
	}
	return true
}
