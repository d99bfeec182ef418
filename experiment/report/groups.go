package report

import (
	"fmt"
	"slices"
	"strings"
)

// groups joins what was noted again and again: a row for each kind of thing.
type groups struct {
	order []*group
	by    map[string]*group
}

type group struct {
	what, example string
	count         int
	of            []string // whom it is about
	in            []int    // reconfigurations
}

func newGroups() *groups { return &groups{by: map[string]*group{}} }

// add notes one thing: what, about whom, in which reconfiguration (0: none), and in which words.
func (g *groups) add(what, of string, in int, text string) {
	x := g.by[what]
	if x == nil {
		x = &group{what: what, example: text}
		g.by[what] = x
		g.order = append(g.order, x)
	}
	x.count++
	if of != "" && !slices.Contains(x.of, of) && len(x.of) <= mostNamed {
		x.of = append(x.of, of)
	}
	if in > 0 && !slices.Contains(x.in, in) && len(x.in) <= mostNamed {
		x.in = append(x.in, in)
	}
}

// mostNamed is how many of a group are named.
const mostNamed = 6

func (g *groups) table(caption string) *table {
	t := &table{Caption: caption, Head: []cell{text("what"), digit("times"), text("of"), text("in reconfigurations"), text("for example")}}
	if !slices.ContainsFunc(g.order, func(x *group) bool { return x.example != "" }) {
		t.Head = t.Head[:4]
	}
	for _, x := range g.order {
		row := []cell{text(x.what), count(x.count), text(some(x.of)), text(some(x.in)), text(x.example)}
		t.add(row[:len(t.Head)]...)
	}
	return t
}

// some lists the first of a list.
func some[T any](list []T) string {
	var texts []string
	for i, x := range list {
		if i == mostNamed {
			texts = append(texts, "…")
			break
		}
		texts = append(texts, fmt.Sprint(x))
	}
	return strings.Join(texts, ", ")
}
