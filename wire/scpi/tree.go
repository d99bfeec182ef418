package scpi

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// A Tree is the set of commands that a device knows, each with a handler of type
// H. The zero value is empty. Add everything before the first Find; from then on
// it may be used by several goroutines.
type Tree[H any] struct {
	root     treeNode
	handlers []H
}

// treeNode is a place in a tree of commands.
type treeNode struct {
	below          map[string]*treeNode // by keyword in capitals, short and long, with its suffix unless that is 1
	command, query entry
}

// entry is a command at a node.
type entry struct {
	handler   int // index + 1; 0 is none
	canonical string
}

// Path is where relative headers begin, which depends on the unit before
// (SCPI-99 volume 1, 6.2.4). The zero value is the root, where a line starts.
type Path struct{ node *treeNode }

// nowhere is the path behind a header that is not known: nothing is below it.
var nowhere = &treeNode{}

// Add adds a command: "*IDN?", "OXC:SWITch:CONNect:ADD", "SYSTem:ERRor[:NEXT]?".
// Capitals are the short form of a keyword, a '?' at the end makes it a query,
// and keywords in brackets may be left out. A keyword that ends in a number is
// that one of several; without a number it is the first. Add panics when the
// pattern is malformed or already taken, as that is a mistake in the program.
func (t *Tree[H]) Add(pattern string, h H) {
	t.handlers = append(t.handlers, h)
	body, query := strings.CutSuffix(pattern, "?")
	e := entry{handler: len(t.handlers)}
	if strings.HasPrefix(body, "*") {
		e.canonical = strings.ToUpper(body)
		t.root.add([]string{e.canonical}, query, e, pattern)
		return
	}
	forms := expand(strings.TrimPrefix(body, ":"))
	short := make([]string, len(forms[0]))
	for i, k := range forms[0] { // what may be left out is
		short[i], _ = spell(k)
	}
	e.canonical = strings.Join(short, ".")
	for _, keywords := range forms {
		t.root.add(keywords, query, e, pattern)
	}
}

// expand returns the ways to write a pattern, the shortest first.
func expand(pattern string) [][]string {
	before, rest, optional := strings.Cut(pattern, "[")
	option, after, closed := strings.Cut(rest, "]")
	if !optional || !closed {
		return [][]string{strings.Split(strings.Trim(pattern, ":"), ":")}
	}
	return append(expand(before+after), expand(before+option+after)...)
}

// spell returns the short and the long form of a keyword, in capitals.
func spell(keyword string) (short, long string) {
	short = strings.Map(func(c rune) rune {
		if 'a' <= c && c <= 'z' {
			return -1
		}
		return c
	}, keyword)
	return short, strings.ToUpper(keyword)
}

// Matches reports whether a word is a pattern's short or long form, in any case:
// "RESTore" is REST and RESTORE.
func Matches(pattern, word string) bool {
	short, long := spell(pattern)
	return strings.EqualFold(word, short) || strings.EqualFold(word, long)
}

// Short returns the short form of a pattern, in which devices answer (SCPI-99
// volume 1, 7.2): REST.
func Short(pattern string) string {
	short, _ := spell(pattern)
	return short
}

func (n *treeNode) add(keywords []string, query bool, e entry, pattern string) {
	for _, k := range keywords {
		short, long := spell(k)
		if short == "" || strings.ContainsAny(k, "[]? ") {
			panic(fmt.Sprintf("scpi: malformed pattern %q", pattern))
		}
		below := n.below[long]
		if n.below == nil {
			n.below = map[string]*treeNode{}
		}
		if below == nil {
			if below = n.below[short]; below != nil {
				panic(fmt.Sprintf("scpi: pattern %q: short form of %s is taken", pattern, k))
			}
			below = &treeNode{}
			n.below[short], n.below[long] = below, below
		}
		n = below
	}
	into := &n.command
	if query {
		into = &n.query
	}
	if into.handler != 0 {
		panic(fmt.Sprintf("scpi: pattern %q is there already", pattern))
	}
	*into = e
}

// Find returns the handler of the command in u and its canonical name, the short
// forms joined by dots ("OXC.SWIT.CONN.ADD", "*IDN") whether it is a query or not.
// Path is where the unit before has left, next is for the unit behind; '*'
// commands leave it alone. When there is no such command, the error is a
// [*SyntaxError] with the code UndefinedHeader or HeaderSuffixRange, and next is
// where the keywords have led: relative headers behind one that does not exist
// do not exist either. Its Text is the header.
func (t *Tree[H]) Find(path Path, u Unit) (h H, canonical string, next Path, err error) {
	node, keywords := path.node, u.Header.Keywords
	if u.Header.Common {
		node, keywords = &t.root, []string{"*" + strings.Join(keywords, "")}
	} else if u.Header.Rooted || node == nil {
		node = &t.root
	}
	next = Path{node}
	code := UndefinedHeader
	for i, k := range keywords {
		next.node = node
		below := node.find(k)
		if below == nil {
			if i < len(keywords)-1 {
				next.node = nowhere
			}
			if node.hasOther(k) {
				code = HeaderSuffixRange
			}
			node = nowhere
			break
		}
		node = below
	}
	e := node.command
	if u.Query {
		e = node.query
	}
	if u.Header.Common {
		next = path
	}
	if e.handler == 0 || len(keywords) == 0 {
		text := u.Header.String()
		if u.Query {
			text += "?"
		}
		return h, "", next, syntaxError(code, 1, text, "there is no such command")
	}
	return t.handlers[e.handler-1], e.canonical, next, nil
}

// find returns what is below n under a keyword as a client writes it.
func (n *treeNode) find(keyword string) *treeNode {
	word, number := cutNumber(strings.ToUpper(keyword))
	if k, err := strconv.ParseUint(number, 10, 31); err == nil && k != 1 {
		word += strconv.FormatUint(k, 10)
	} else if err != nil {
		word += number // none, or beyond all that there is
	}
	return n.below[word]
}

// hasOther reports whether n has a keyword, but with other numbers.
func (n *treeNode) hasOther(keyword string) bool {
	word, number := cutNumber(strings.ToUpper(keyword))
	return number != "" && slices.ContainsFunc(slices.Collect(maps.Keys(n.below)), func(k string) bool {
		w, _ := cutNumber(k)
		return w == word
	})
}

// cutNumber cuts a keyword before its numeric suffix.
func cutNumber(keyword string) (word, number string) {
	word = strings.TrimRight(keyword, "0123456789")
	return word, keyword[len(word):]
}
