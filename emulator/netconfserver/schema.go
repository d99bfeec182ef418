package netconfserver

import (
	"encoding/xml"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/openconfig/goyang/pkg/yang"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/wire/netconf"
)

// schema is the data model of a device. It implements [netconf.Schema] and is
// never changed once it is made.
type schema struct {
	texts map[string]string // YANG by module
	roots map[xml.Name]*schemaNode
	rpcs  map[xml.Name]*schema // what an operation takes, as roots
	list  string               // of cross-connects: "pair" or "pairs"
}

// schemaNode is a data node. It implements [netconf.SchemaNode].
type schemaNode struct {
	name      xml.Name
	kind      netconf.Kind
	keys      []string
	config    bool
	mandatory bool
	preset    string // default
	canonical func(string) (string, error)
	when      *when
	depends   bool // it, or something below it, has a when
	children  map[xml.Name]*schemaNode
}

func (n *schemaNode) Kind() netconf.Kind { return n.kind }
func (n *schemaNode) Keys() []string     { return n.keys }
func (n *schemaNode) Config() bool       { return n.config }

func (n *schemaNode) Canonical(text string) (string, error) { return n.canonical(text) }

// Child implements [netconf.Schema].
func (s *schema) Child(parent netconf.SchemaNode, space, local string) (netconf.SchemaNode, bool) {
	in := s.roots
	if p, ok := parent.(*schemaNode); ok && p != nil {
		in = p.children
	}
	n, ok := in[xml.Name{Space: space, Local: local}]
	return n, ok
}

// Prefix implements [netconf.Schema].
func (s *schema) Prefix(space string) string { return prefixes[space] }

var prefixes = map[string]string{opsw: "opsw", plts: "plts"}

// schemas are those in use, by revisions: a fleet has one for all its devices.
var schemas struct {
	sync.Mutex
	made map[[2]string]*schema
}

// schemaOf returns the model of a device, whose revisions have been checked.
func schemaOf(n emulator.NETCONF) *schema {
	schemas.Lock()
	defer schemas.Unlock()
	key := [2]string{n.OpticalSwitch, n.PolatisSwitch}
	if s := schemas.made[key]; s != nil {
		return s
	}
	s, err := newSchema(n)
	if err != nil {
		panic(err) // the texts are ours
	}
	if schemas.made == nil {
		schemas.made = map[[2]string]*schema{}
	}
	schemas.made[key] = s
	return s
}

func newSchema(n emulator.NETCONF) (*schema, error) {
	texts, err := Modules(n)
	if err != nil {
		return nil, err
	}
	ms := yang.NewModules()
	for name, text := range texts {
		if err := ms.Parse(text, name+".yang"); err != nil {
			return nil, fmt.Errorf("module %s: %w", name, err)
		}
	}
	if errs := ms.Process(); len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	s := &schema{texts: texts, roots: map[xml.Name]*schemaNode{}, rpcs: map[xml.Name]*schema{}, list: "pair"}
	for name := range texts {
		module, errs := ms.GetModule(name)
		if len(errs) > 0 {
			return nil, errors.Join(errs...)
		}
		for _, e := range module.Dir {
			id := nameOf(e)
			switch {
			case e.RPC != nil:
				in := &schema{roots: map[xml.Name]*schemaNode{}}
				if e.RPC.Input != nil {
					in.roots = nodesOf(e.RPC.Input, true)
				}
				s.rpcs[id] = in
			case e.Kind != yang.NotificationEntry:
				s.roots[id] = nodeOf(e, true)
			}
		}
	}
	cc := s.roots[xml.Name{Space: opsw, Local: "cross-connects"}]
	if cc.child("pairs") != nil {
		s.list = "pairs"
	}
	cc.child(s.list).child("ingress").complain("Invalid OXC port: %s")
	cc.child(s.list).child("egress").complain(badEgress)
	return s, nil
}

// complain replaces the text about values that have the wrong form. The format
// may have room for the value.
func (n *schemaNode) complain(format string) {
	inner := n.canonical
	n.canonical = func(text string) (string, error) {
		v, err := inner(text)
		if err != nil {
			msg := format
			if strings.Contains(format, "%s") {
				msg = fmt.Sprintf(format, excerpt(text))
			}
			return "", errors.New(msg)
		}
		return v, nil
	}
}

// child returns the child of that name in the namespace of n.
func (n *schemaNode) child(local string) *schemaNode {
	return n.children[xml.Name{Space: n.name.Space, Local: local}]
}

func nameOf(e *yang.Entry) xml.Name { return xml.Name{Space: e.Namespace().Name, Local: e.Name} }

func nodesOf(e *yang.Entry, config bool) map[xml.Name]*schemaNode {
	nodes := make(map[xml.Name]*schemaNode, len(e.Dir))
	for _, c := range e.Dir {
		nodes[nameOf(c)] = nodeOf(c, config)
	}
	return nodes
}

func nodeOf(e *yang.Entry, config bool) *schemaNode {
	n := &schemaNode{
		name: nameOf(e), config: config && e.Config != yang.TSFalse, mandatory: e.Mandatory == yang.TSTrue,
		canonical: func(string) (string, error) { return "", errors.New("has no value") },
	}
	switch {
	case e.IsList():
		n.kind, n.keys = netconf.KindList, strings.Fields(e.Key)
	case e.IsLeafList():
		n.kind = netconf.KindLeafList
	case e.IsLeaf():
		n.kind = netconf.KindLeaf
	default:
		n.kind = netconf.KindContainer
	}
	if e.Type != nil {
		n.canonical = checker(e.Type)
		if d, ok := e.SingleDefaultValue(); ok {
			n.preset, _ = n.canonical(d)
		}
	}
	if x, ok := e.GetWhenXPath(); ok {
		n.when = parseWhen(x)
	}
	n.children = nodesOf(e, n.config)
	n.depends = n.when != nil
	for _, c := range n.children {
		n.depends = n.depends || c.depends
	}
	return n
}

// when is a condition that a node depends on: that the leaf beside it has one of
// some values.
type when struct {
	leaf   string
	values []string
}

var whenTerm = regexp.MustCompile(`^\.\./([a-z-]+) = '([A-Z_]+)'$`)

// parseWhen reads the one form that our modules use.
func parseWhen(x string) *when {
	w := &when{}
	for _, term := range strings.Split(x, " or ") {
		m := whenTerm.FindStringSubmatch(strings.TrimSpace(term))
		if m == nil {
			panic("when " + x) // the text is ours
		}
		w.leaf = m[1]
		w.values = append(w.values, m[2])
	}
	return w
}
