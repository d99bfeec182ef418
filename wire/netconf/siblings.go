package netconf

import (
	"encoding/xml"
	"slices"
)

// A step is an element on the way from the root.
type step struct {
	parent *step
	name   xml.Name
	keys   []string // of a list entry: names
	values []string // of a list entry: values of its keys; of a leaf-list: its value
}

// siblings are nodes of one parent while they are edited.
type siblings struct {
	ed     *editor
	parent SchemaNode
	nodes  []*Node // nil for those that have been deleted
	many   bool    // many edits are to come

	own   bool           // nodes is a copy
	holes bool           // some nodes are nil
	index map[string]int // of nodes, by id; nil until it pays
	last  cached
}

// cached is a schema node that is asked for again and again.
type cached struct {
	name xml.Name
	node SchemaNode
}

// find returns the index of the node that at stands for, or -1. With the
// index, a node that has been deleted is found as nil.
func (s *siblings) find(sn SchemaNode, at *step) int {
	if s.many && s.index == nil && len(s.nodes) > 0 {
		s.index = make(map[string]int, len(s.nodes))
		for i, n := range s.nodes {
			s.index[string(s.ed.id(s.parent, n, &s.last))] = i
		}
	}
	if s.index != nil {
		if i, ok := s.index[string(at.id())]; ok {
			return i
		}
		return -1
	}
	kind := sn.Kind()
	return slices.IndexFunc(s.nodes, func(n *Node) bool {
		return n != nil && n.Name == at.name && at.fits(kind, n)
	})
}

// set puts node where old was, at index i, or behind all if old is nil.
func (s *siblings) set(i int, old, node *Node, at *step) {
	if old == node {
		return
	}
	if !s.own {
		s.nodes = append(make([]*Node, 0, len(s.nodes)+1), s.nodes...)
		s.own = true
	}
	if old != nil {
		s.nodes[i] = node
		s.holes = s.holes || node == nil
		return
	}
	if s.index != nil {
		s.index[string(at.id())] = len(s.nodes)
	}
	s.nodes = append(s.nodes, node)
}

func (s *siblings) result() []*Node {
	if s.holes {
		s.nodes = slices.DeleteFunc(s.nodes, func(n *Node) bool { return n == nil })
	}
	return s.nodes
}

// fits reports whether n, which has the name of the step, is the very instance.
func (at *step) fits(kind Kind, n *Node) bool {
	switch kind {
	case KindLeafList:
		return n.Text == at.values[0]
	case KindList:
		for i, key := range at.keys {
			k := n.Child(at.name.Space, key)
			if k == nil || k.Text != at.values[i] {
				return false
			}
		}
	}
	return true
}

// id returns a key for maps that tells a step from its siblings.
func (at *step) id() []byte {
	id := append(make([]byte, 0, 64), at.name.Local...)
	id = append(append(id, 0), at.name.Space...)
	for _, v := range at.values {
		id = append(append(id, 0), v...)
	}
	return id
}

// step returns the step for a node of a configuration below parent.
func (ed *editor) step(parent SchemaNode, path *step, n *Node, last *cached) step {
	at := step{parent: path, name: n.Name}
	if last.node == nil || last.name != n.Name {
		sn, ok := ed.schema.Child(parent, n.Name.Space, n.Name.Local)
		if !ok {
			return at
		}
		*last = cached{n.Name, sn}
	}
	switch last.node.Kind() {
	case KindLeafList:
		at.values = []string{n.Text}
	case KindList:
		at.keys = last.node.Keys()
		at.values = make([]string, len(at.keys))
		for i, key := range at.keys {
			if k := n.Child(n.Name.Space, key); k != nil {
				at.values[i] = k.Text
			}
		}
	}
	return at
}

func (ed *editor) id(parent SchemaNode, n *Node, last *cached) []byte {
	at := ed.step(parent, nil, n, last)
	return at.id()
}
