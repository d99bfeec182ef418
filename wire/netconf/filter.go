package netconf

import (
	"encoding/xml"
	"slices"
	"strings"
)

// Filter applies the children of a subtree filter (RFC 6241 section 6) to data
// and returns what it selects, in the order of the data. A nil filter selects
// everything and an empty one nothing. The result shares nodes with roots.
//
// The namespace "" in a filter stands for any (section 6.2.1), as does no
// namespace of an attribute. White space around a value does not matter for a
// content match. Of a node that several parts of the filter select from, the
// result has the union, once. If a part has only content match nodes, and they
// match, it selects the whole node.
//
// The time is at most proportional to the number of nodes in the data times
// that in the filter.
func Filter(filter *Node, roots []*Node) []*Node {
	if filter == nil {
		return roots
	}
	return selectFrom(roots, filter.Children)
}

// Selects reports whether a filter can select anything of a root of that name,
// so that what it cannot need not be looked up.
func Selects(filter *Node, space, local string) bool {
	return filter == nil || slices.ContainsFunc(filter.Children, func(f *Node) bool {
		return matchesName(f, xml.Name{Space: space, Local: local})
	})
}

// selectFrom returns what a sibling set of filter nodes selects from siblings.
func selectFrom(data, filters []*Node) []*Node {
	var out, matching []*Node
	for _, d := range data {
		matching = matching[:0]
		for _, f := range filters {
			if matches(f, d) {
				matching = append(matching, f)
			}
		}
		if n := selectNode(d, matching); n != nil {
			out = append(out, n)
		}
	}
	return out
}

// selectNode returns what filter nodes that match d select of it, or nil.
func selectNode(d *Node, filters []*Node) *Node {
	var inside []*Node
	for _, f := range filters {
		if len(f.Children) == 0 {
			return d // selection, or content match
		}
		all, others := true, false
		for _, c := range f.Children {
			if !isContentMatch(c) {
				others = true
			} else if !slices.ContainsFunc(d.Children, func(n *Node) bool { return matches(c, n) }) {
				all = false
				break
			}
		}
		switch {
		case !all:
		case !others:
			return d
		default:
			inside = append(inside, f.Children...)
		}
	}
	if len(inside) == 0 {
		return nil
	}
	children := selectFrom(d.Children, inside)
	if len(children) == 0 {
		return nil
	}
	return &Node{Name: d.Name, Attrs: d.Attrs, Children: children}
}

// matches reports whether f is a filter node for d: name, attributes and, for a
// content match node, the value.
func matches(f, d *Node) bool {
	if !matchesName(f, d.Name) {
		return false
	}
	for _, a := range f.Attrs {
		if !isDeclaration(a) && !slices.ContainsFunc(d.Attrs, func(b xml.Attr) bool {
			return a.Value == b.Value && a.Name.Local == b.Name.Local && !isDeclaration(b) &&
				(a.Name.Space == "" || a.Name.Space == b.Name.Space)
		}) {
			return false
		}
	}
	return !isContentMatch(f) || len(d.Children) == 0 && trim(f.Text) == trim(d.Text)
}

func matchesName(f *Node, name xml.Name) bool {
	return f.Name.Local == name.Local && (f.Name.Space == "" || f.Name.Space == name.Space)
}

// isContentMatch reports whether a filter node has a value.
func isContentMatch(f *Node) bool { return len(f.Children) == 0 && !isBlank(f.Text) }

func trim(s string) string { return strings.Trim(s, whitespace) }
