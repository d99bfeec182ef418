package netconf

import (
	"encoding/xml"
	"errors"
	"slices"
	"strings"
)

// An Operation is what an edit does to a node (RFC 6241 section 7.2).
type Operation string

// Operations. None is only possible as the default of a request.
const (
	Merge   Operation = "merge"
	Replace Operation = "replace"
	Create  Operation = "create"
	Delete  Operation = "delete"
	Remove  Operation = "remove"
	None    Operation = "none"
)

// Edit applies an edit to a configuration and returns the new one and what has
// changed. It is all or nothing, whatever e.ErrorOption says, and config is
// never touched: with an error nothing has happened. The new configuration
// shares with the old one what is the same.
//
// Nodes of config have to be valid by s and in canonical form. What s does not
// know in there is left alone.
//
// Where RFC 6241 section 7.2 leaves something open:
//
//   - An operation attribute counts with and without the base namespace. Any
//     other attribute is an unknown-attribute; that includes those of RFC 7950
//     for the order of entries.
//   - Siblings are applied in their order, and each sees what those before it
//     did. So an entry may be deleted and created again in one request. A leaf
//     may be given only once.
//   - A container exists if there is something in it: to delete one that is
//     empty is data-missing, and one that becomes empty is gone. The operation
//     none never misses one.
//   - Below delete and remove, only the keys of a list entry are looked at.
//   - Below replace everything begins empty; delete asks what was there before.
//   - The default operation replace replaces the whole configuration.
//   - New entries are put behind those that are there.
func Edit(config []*Node, e EditConfig, s Schema) ([]*Node, []Change, *Error) {
	op := e.Default
	if op == "" {
		op = Merge
	}
	ed := editor{schema: s}
	now, before := config, []*Node(nil)
	if op == Replace {
		now, before = nil, config
	}
	now, err := ed.level(nil, nil, now, before, e.Config, op)
	if err != nil {
		return nil, nil, err
	}
	d := differ{editor: &ed}
	d.level(nil, nil, config, now, nil)
	return now, d.changes, nil
}

// An editor applies one edit.
type editor struct {
	schema Schema
	names  []xml.Name // copies of those in the edit, to not keep all of it
}

// level edits siblings below parent, which is at path. Those that are there are
// in now; before has those that were there if a replace has taken them away.
// If nothing changes it returns now itself.
func (ed *editor) level(parent SchemaNode, path *step, now, before, edits []*Node, op Operation) ([]*Node, *Error) {
	s := siblings{ed: ed, parent: parent, nodes: now, many: len(edits) > 4}
	was := siblings{ed: ed, parent: parent, nodes: before, many: s.many}
	var leaves []xml.Name
	var given []*Node // by index: what this edit has made the entry of
	if len(edits) > 1 {
		given = make([]*Node, len(now)+len(edits))
	}
	for _, c := range edits {
		sn, err := ed.child(parent, path, c)
		if err != nil {
			return nil, err
		}
		at := &step{parent: path, name: ed.name(c.Name)}
		own, err := ed.operation(c, at, op)
		if err != nil {
			return nil, err
		}
		kind := sn.Kind()
		if kind == KindLeaf {
			if slices.Contains(leaves, at.name) {
				return nil, ed.err(at, NewBadElement(TypeApplication, c.Name.Local, "%s is given twice", c.Name.Local))
			}
			leaves = append(leaves, at.name)
			if isKey(parent, path, c) {
				if own == Delete || own == Remove {
					return nil, ed.err(at, NewError(TypeApplication, BadAttribute, "the key %s cannot be deleted without its entry", c.Name.Local).
						with("bad-attribute", "operation", "bad-element", c.Name.Local))
				}
				continue
			}
		}
		if err := ed.identify(sn, c, at); err != nil {
			return nil, err
		}
		i := s.find(sn, at)
		var old, prior, node *Node
		if i >= 0 {
			old = s.nodes[i]
		}
		if j := was.find(sn, at); j >= 0 {
			prior = was.nodes[j]
		}
		if i >= 0 && given != nil && (own == Merge || own == Replace) && contradicts(given[i], c) {
			return nil, ed.err(at, NewBadElement(TypeApplication, c.Name.Local, "%s is given twice, with different values", at))
		}
		switch own {
		case Delete:
			if !exists(sn, old) && !exists(sn, prior) {
				return nil, ed.err(at, NewError(TypeApplication, DataMissing, "%s does not exist and so cannot be deleted", at))
			}
		case Remove:
		default:
			if node, err = ed.apply(sn, at, old, prior, c, own); err != nil {
				return nil, err
			}
		}
		s.set(i, old, node, at)
		if given != nil && node != nil {
			if i < 0 || old == nil {
				i = len(s.nodes) - 1
			}
			given[i] = c
		} else if given != nil && i >= 0 {
			given[i] = nil // may be made again
		}
	}
	return s.result(), nil
}

// contradicts reports whether a leaf of one entry has another value in a second
// one, so that nobody can know which is meant.
func contradicts(first, second *Node) bool {
	if first == nil {
		return false
	}
	return slices.ContainsFunc(second.Children, func(leaf *Node) bool {
		other := first.Child(leaf.Name.Space, leaf.Name.Local)
		return other != nil && len(leaf.Children) == 0 && strings.TrimSpace(other.Text) != strings.TrimSpace(leaf.Text)
	})
}

// apply returns the node that an edit makes of old, which is nil if there is
// none. The prior node is what a replace further up has taken away.
func (ed *editor) apply(sn SchemaNode, at *step, old, prior, edit *Node, op Operation) (*Node, *Error) {
	kind := sn.Kind()
	switch {
	case op == Create && exists(sn, old):
		return nil, ed.err(at, NewError(TypeApplication, DataExists, "%s exists and so cannot be created", at))
	case op == None && old == nil && kind != KindContainer:
		return nil, ed.err(at, NewError(TypeApplication, DataMissing, "%s does not exist, and the operation none does not create it", at))
	case op == None && (kind == KindLeaf || kind == KindLeafList):
		return old, nil
	}

	switch kind {
	case KindLeafList:
		if old != nil {
			return old, nil
		}
		return &Node{Name: at.name, Text: at.values[0]}, nil
	case KindLeaf:
		text, err := ed.canonical(sn, edit, at)
		if err != nil {
			return nil, err
		}
		if old != nil && old.Text == text {
			return old, nil
		}
		return &Node{Name: at.name, Text: text}, nil
	}

	if !isBlank(edit.Text) {
		return nil, ed.err(at, NewBadElement(TypeApplication, at.name.Local, "%s cannot hold text: %.40q", at.name.Local, edit.Text))
	}
	var now, before []*Node
	if old != nil {
		now = old.Children
	}
	if prior != nil {
		before = prior.Children
	}
	if op == Replace {
		if now != nil {
			before = now
		}
		now = nil
	}
	if now == nil && kind == KindList {
		now = make([]*Node, len(at.keys), len(edit.Children))
		for i, key := range at.keys {
			now[i] = Leaf(at.name.Space, key, at.values[i])
		}
	}
	children, err := ed.level(sn, at, now, before, edit.Children, op)
	switch {
	case err != nil:
		return nil, err
	case kind == KindContainer && len(children) == 0 && (old == nil || len(old.Children) > 0):
		return nil, nil
	case old != nil && sameSlice(children, old.Children):
		return old, nil
	}
	n := &Node{Name: at.name, Children: children}
	if old != nil {
		n.Attrs = old.Attrs
	}
	return n, nil
}

// exists reports whether a node that was found, or not, exists.
func exists(sn SchemaNode, n *Node) bool {
	return n != nil && (sn.Kind() != KindContainer || len(n.Children) > 0)
}

// sameSlice reports whether two slices are one.
func sameSlice(a, b []*Node) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// isKey reports whether a leaf is a key of parent, the list entry at path.
func isKey(parent SchemaNode, path *step, leaf *Node) bool {
	return parent != nil && parent.Kind() == KindList &&
		leaf.Name.Space == path.name.Space && slices.Contains(parent.Keys(), leaf.Name.Local)
}

// child looks up what an element of the edit is.
func (ed *editor) child(parent SchemaNode, path *step, n *Node) (SchemaNode, *Error) {
	sn, ok := ed.schema.Child(parent, n.Name.Space, n.Name.Local)
	switch {
	case ok && sn.Config():
		return sn, nil
	case ok:
		e := NewUnknownElement(TypeApplication, n)
		e.Message = n.Name.Local + " is state and not configuration, and cannot be edited"
		return nil, ed.err(&step{parent: path, name: n.Name}, e)
	case ed.schema.Prefix(n.Name.Space) == "":
		return nil, ed.err(path, NewUnknownNamespace(TypeApplication, n))
	}
	return nil, ed.err(path, NewUnknownElement(TypeApplication, n))
}

// operation returns the operation for an element that inherits one.
func (ed *editor) operation(n *Node, at *step, op Operation) (Operation, *Error) {
	var given Operation
	for _, a := range n.Attrs {
		if isDeclaration(a) {
			continue
		}
		info := []string{"bad-attribute", a.Name.Local, "bad-element", n.Name.Local}
		if a.Name.Local != "operation" || a.Name.Space != "" && a.Name.Space != Base {
			return "", ed.err(at, NewError(TypeApplication, UnknownAttribute, "the attribute %.40q is unknown", a.Name.Local).with(info...))
		}
		v := Operation(a.Value)
		switch v {
		case Merge, Replace, Create, Delete, Remove:
		default:
			return "", ed.err(at, NewError(TypeApplication, BadAttribute, "the operation must be merge, replace, create, delete or remove, but is %.40q", a.Value).with(info...))
		}
		if given != "" && given != v {
			return "", ed.err(at, NewError(TypeApplication, BadAttribute, "two operations are given: %s and %s", given, v).with(info...))
		}
		given = v
	}
	if given != "" {
		return given, nil
	}
	return op, nil
}

// identify completes at with what tells the element from its siblings of the
// same name.
func (ed *editor) identify(sn SchemaNode, n *Node, at *step) *Error {
	switch sn.Kind() {
	case KindLeafList:
		v, err := ed.canonical(sn, n, at)
		if err != nil {
			return err
		}
		at.values = []string{v}
	case KindList:
		keys := sn.Keys()
		values := make([]string, len(keys))
		for i, key := range keys {
			k := n.Child(n.Name.Space, key)
			if k == nil {
				return ed.err(at, NewError(TypeApplication, MissingElement, "an entry of %s needs its key %s", n.Name.Local, key).
					with("bad-element", key))
			}
			kn, err := ed.child(sn, at, k)
			if err != nil {
				return err
			}
			if values[i], err = ed.canonical(kn, k, &step{parent: at, name: k.Name}); err != nil {
				return err
			}
		}
		at.keys, at.values = keys, values
	}
	return nil
}

// canonical returns the value of a leaf in the form it is stored.
func (ed *editor) canonical(sn SchemaNode, n *Node, at *step) (string, *Error) {
	if len(n.Children) > 0 {
		return "", ed.err(at, NewUnknownElement(TypeApplication, n.Children[0]))
	}
	v, err := sn.Canonical(n.Text)
	if err == nil {
		return strings.Clone(v), nil
	}
	if e, ok := errors.AsType[*Error](err); ok {
		c := *e
		if c.Path != "" {
			return "", &c
		}
		return "", ed.err(at, &c)
	}
	return "", ed.err(at, NewError(TypeApplication, InvalidValue, "%v", err))
}

// name returns a copy of a name of the edit.
func (ed *editor) name(n xml.Name) xml.Name {
	for _, known := range ed.names {
		if known == n {
			return known
		}
	}
	n = cloneName(n)
	ed.names = append(ed.names, n)
	return n
}
