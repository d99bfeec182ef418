package netconf

import (
	"encoding/xml"
	"fmt"
	"slices"
	"strings"
)

// A Change is one effect of an [Edit]. It tells the outcome and not how it was
// asked for: an edit that changes nothing has no changes.
//
// There is one for each list entry that is new, that is gone, or whose leaves
// have changed, those in containers inside it too; entries of lists inside a
// list entry have their own, unless the outer entry is itself new or gone. And
// there is one for each leaf, and each value of a leaf-list, outside of lists.
// Among siblings, those that are gone come first. Order alone is no change.
type Change struct {
	Path      string    // as in [Error], with prefixes of the schema
	Operation Operation // Create, Delete, or Merge for what is there before and after
	Before    *Node     // nil for Create
	After     *Node     // nil for Delete
}

// A differ finds out what an edit has changed.
type differ struct {
	*editor
	changes []Change
}

// level compares siblings below parent, which is at path. If they are in a list
// entry, own is set when they differ in more than entries of inner lists.
func (d *differ) level(parent SchemaNode, path *step, old, now []*Node, own *bool) {
	if sameSlice(old, now) {
		return
	}
	// What is the same at both ends need not be looked at.
	for len(old) > 0 && len(now) > 0 && old[0] == now[0] {
		old, now = old[1:], now[1:]
	}
	for len(old) > 0 && len(now) > 0 && old[len(old)-1] == now[len(now)-1] {
		old, now = old[:len(old)-1], now[:len(now)-1]
	}

	var last cached
	was, oldIDs := d.ids(parent, old, &last)
	is, nowIDs := d.ids(parent, now, &last)
	for i, n := range old {
		if is[oldIDs[i]] == nil {
			d.node(parent, path, n, nil, &last, own)
		}
	}
	for i, n := range now {
		d.node(parent, path, was[nowIDs[i]], n, &last, own)
	}
}

// ids returns what tells siblings from each other, and the siblings by that.
func (d *differ) ids(parent SchemaNode, nodes []*Node, last *cached) (map[string]*Node, []string) {
	byID := make(map[string]*Node, len(nodes))
	ids := make([]string, len(nodes))
	for i, n := range nodes {
		ids[i] = string(d.id(parent, n, last))
		byID[ids[i]] = n
	}
	return byID, ids
}

// node compares two versions of a node. One of them may be nil.
func (d *differ) node(parent SchemaNode, path *step, old, now *Node, last *cached, own *bool) {
	if old == now {
		return
	}
	n := now
	if n == nil {
		n = old
	}
	at := d.step(parent, path, n, last)
	if last.node == nil || last.name != n.Name {
		return // not in the schema, and so not edited
	}
	sn := last.node
	c := Change{Operation: Merge, Before: old, After: now}
	var before, after []*Node
	if old == nil {
		c.Operation = Create
	} else {
		before = old.Children
	}
	if now == nil {
		c.Operation = Delete
	} else {
		after = now.Children
	}

	switch kind := sn.Kind(); {
	case kind == KindContainer:
		d.level(sn, &at, before, after, own)
		return
	case kind == KindList && c.Operation == Merge:
		first := len(d.changes)
		changed := false
		d.level(sn, &at, before, after, &changed)
		if changed {
			c.Path, _ = d.path(&at)
			d.changes = slices.Insert(d.changes, first, c)
		}
		return
	case kind == KindLeaf && c.Operation == Merge && old.Text == now.Text:
		return
	case kind == KindLeafList && c.Operation == Merge:
		return
	case kind != KindList && own != nil:
		*own = true
		return
	}
	c.Path, _ = d.path(&at)
	d.changes = append(d.changes, c)
}

// err adds a path to an error.
func (ed *editor) err(at *step, e *Error) *Error {
	e.Path, e.Namespaces = ed.path(at)
	return e
}

// path returns the XPath of a step, and declarations of the prefixes in it.
func (ed *editor) path(at *step) (string, []xml.Attr) {
	var steps []*step
	for ; at != nil; at = at.parent {
		steps = append(steps, at)
	}
	var b strings.Builder
	var spaces []xml.Attr
	for _, s := range slices.Backward(steps) {
		prefix := ed.schema.Prefix(s.name.Space)
		if prefix != "" {
			a := xml.Attr{Name: xml.Name{Space: xmlnsPrefix, Local: prefix}, Value: s.name.Space}
			if !slices.Contains(spaces, a) {
				spaces = append(spaces, a)
			}
			prefix += ":"
		}
		b.WriteString("/" + prefix + s.name.Local)
		for i, key := range s.keys {
			b.WriteString("[" + prefix + key + "=" + literal(s.values[i]) + "]")
		}
		if len(s.keys) == 0 && len(s.values) > 0 {
			b.WriteString("[.=" + literal(s.values[0]) + "]")
		}
	}
	return b.String(), spaces
}

// String names the node for people.
func (at *step) String() string {
	if len(at.values) == 0 {
		return at.name.Local
	}
	return fmt.Sprintf("%s %.60s", at.name.Local, strings.Join(at.values, ","))
}

// literal returns s as a string of XPath 1.0, which has no escapes.
func literal(s string) string {
	switch {
	case !strings.Contains(s, "'"):
		return "'" + s + "'"
	case !strings.Contains(s, `"`):
		return `"` + s + `"`
	}
	return "concat('" + strings.ReplaceAll(s, "'", `',"'",'`) + "')"
}
