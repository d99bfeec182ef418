package netconfserver

import (
	"encoding/xml"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/wire/netconf"
)

// editConfig changes the configuration as a whole or not at all.
func (ss *session) editConfig(op *netconf.Node) reply {
	e, bad := netconf.ParseEditConfig(qualified(op))
	if bad != nil {
		return fail(bad)
	}
	switch {
	case e.Target != running:
		return fail(noDatastore(e.Target))
	case e.TestOption != "":
		return fail(unsupported("test-option needs the capability :validate"))
	case e.ErrorOption == "continue-on-error":
		return fail(unsupported("an edit is made as a whole or not at all, continue-on-error is not possible"))
	}
	if bad := ss.withoutRules(&e); bad != nil {
		return fail(bad)
	}
	ss.srv.editing.Lock()
	defer ss.srv.editing.Unlock()
	if bad := ss.srv.lockedBy(ss.id); bad != nil {
		return fail(bad)
	}
	v := ss.srv.view(ss.model, false)
	v.inner = true
	before := v.tree(touched(e))
	after, changes, bad := netconf.Edit(before, e, ss.model)
	if bad == nil {
		bad = ss.model.complete(after)
	}
	if bad == nil {
		bad = ss.model.inForce(e.Config, after)
	}
	if bad != nil {
		return fail(bad)
	}
	p := newPlan(v, after)
	for _, c := range changes {
		if !mayWrite(ss.group, rootOf(c.Path)) {
			return fail(accessDenied(netconf.TypeApplication, c.Path))
		}
		if bad := p.change(c); bad != nil {
			bad.Path, bad.Namespaces = c.Path, namespacesOf(c.Path)
			return fail(bad)
		}
	}
	p.restate(e)
	made, err := p.carryOut(ss.me)
	if err != nil {
		return fail(refusal(err))
	}
	return reply{op: made}
}

// qualified puts parameters without a namespace into that of the operation:
// ncclient sends <config> as its users write it, and many write it bare.
func qualified(op *netconf.Node) *netconf.Node {
	out := &netconf.Node{Name: op.Name, Attrs: op.Attrs, Text: op.Text}
	for _, c := range op.Children {
		if c.Name.Space == "" {
			c = &netconf.Node{Name: xml.Name{Space: op.Name.Space, Local: c.Name.Local}, Attrs: c.Attrs, Children: c.Children, Text: c.Text}
		}
		out.Children = append(out.Children, c)
	}
	return out
}

const running = "running"

func unsupported(text string) *netconf.Error {
	return netconf.NewError(netconf.TypeProtocol, netconf.OperationNotSupported, "%s", text)
}

// noDatastore is about a datastore that could be there but is not.
func noDatastore(name string) *netconf.Error {
	return unsupported(fmt.Sprintf("there is no datastore %s, only running", excerpt(name)))
}

// withoutRules takes the access rules out of an edit, which cannot be changed:
// an edit that brings back what get-config has shown is none.
func (ss *session) withoutRules(e *netconf.EditConfig) *netconf.Error {
	var rest []*netconf.Node
	for _, n := range e.Config {
		if !n.Is(acm, "nacm") {
			rest = append(rest, n)
		} else if !sameData(n, ss.nacm()) {
			return netconf.NewError(netconf.TypeApplication, netconf.OperationNotSupported, "the access rules follow from the groups of the users and cannot be changed")
		}
	}
	e.Config = rest
	return nil
}

// sameData reports whether two elements are the same but for white space, and
// the first has no operation in it.
func sameData(a, b *netconf.Node) bool {
	plain := !slices.ContainsFunc(a.Attrs, func(x xml.Attr) bool { return x.Name.Space != "xmlns" })
	return plain && a.Name == b.Name && strings.TrimSpace(a.Text) == b.Text && slices.EqualFunc(a.Children, b.Children, sameData)
}

// touched returns a filter that selects what an edit may change: roots or, of
// lists of ports, the entries that it names.
func touched(e netconf.EditConfig) *netconf.Node {
	f := netconf.El(netconf.Base, "filter")
	for _, n := range e.Config {
		root := netconf.El(n.Name.Space, n.Name.Local)
		if op := operationOf(n, e.Default); portLists[n.Name] && (op == netconf.Merge || op == netconf.None) {
			root.Children = entriesOf(n)
		}
		f.Children = append(f.Children, root)
	}
	return f
}

// portLists are the roots that have a list with ports as its key and nothing
// else.
var portLists = map[xml.Name]bool{
	{Space: opsw, Local: "cross-connects"}: true, {Space: opsw, Local: "port-config"}: true, {Space: opsw, Local: "opm-config"}: true,
	{Space: opsw, Local: "opm-alarm-config"}: true, {Space: opsw, Local: "voa"}: true, {Space: opsw, Local: "ports"}: true,
}

// entriesOf returns filters for the entries of a list of ports, or nil for all
// if one of them has no key.
func entriesOf(n *netconf.Node) (filters []*netconf.Node) {
	for _, c := range n.Children {
		key := c.Child(opsw, "port-id")
		if n.Name.Local == "cross-connects" {
			key = c.Child(opsw, "ingress")
		}
		if key == nil || !isMatch(key) {
			return nil
		}
		filters = append(filters, netconf.El(opsw, c.Name.Local, netconf.Leaf(opsw, key.Name.Local, key.Text)))
	}
	return filters
}

// operationOf returns the operation of a node of an edit, or the default.
func operationOf(n *netconf.Node, preset netconf.Operation) netconf.Operation {
	for _, a := range n.Attrs {
		if a.Name.Local == "operation" && a.Name.Space != "xmlns" {
			return netconf.Operation(a.Value)
		}
	}
	return preset
}

// rootOf returns the local name of the root that a path goes through.
func rootOf(path string) string {
	path = strings.TrimPrefix(path, "/")
	if i := strings.IndexAny(path, "/["); i >= 0 {
		path = path[:i]
	}
	_, local, _ := strings.Cut(path, ":")
	return local
}

// namespacesOf declares the prefixes that a path uses.
func namespacesOf(path string) (attrs []xml.Attr) {
	for _, ns := range []string{opsw, plts} {
		if p := prefixes[ns]; strings.Contains(path, p+":") {
			attrs = append(attrs, declare(p, ns)...)
		}
	}
	return attrs
}

// complete reports the first node that lacks a mandatory child.
func (s *schema) complete(tree []*netconf.Node) *netconf.Error {
	for _, n := range tree {
		if bad := s.roots[n.Name].complete(n, "/"+s.Prefix(n.Name.Space)+":"+n.Name.Local); bad != nil {
			return bad
		}
	}
	return nil
}

func (n *schemaNode) complete(in *netconf.Node, path string) *netconf.Error {
	for name, c := range n.children {
		if c.mandatory && in.Child(name.Space, name.Local) == nil {
			bad := netconf.NewMissingElement(netconf.TypeApplication, name.Local)
			bad.Path, bad.Namespaces = path, namespacesOf(path)
			return bad
		}
	}
	for _, c := range in.Children {
		below := n.children[c.Name]
		if below == nil || below.kind == netconf.KindLeaf || below.kind == netconf.KindLeafList {
			continue
		}
		at := path + "/" + prefixes[c.Name.Space] + ":" + c.Name.Local
		for _, k := range below.keys {
			at += "[" + prefixes[c.Name.Space] + ":" + k + "='" + c.Value(k) + "']"
		}
		if bad := below.complete(c, at); bad != nil {
			return bad
		}
	}
	return nil
}

// inForce reports the first node of an edit that cannot be there because of
// the leaf that it depends on (RFC 7950 section 8.3.1).
func (s *schema) inForce(edit, tree []*netconf.Node) *netconf.Error {
	for _, n := range edit {
		for _, t := range tree {
			if t.Name == n.Name {
				if bad := s.roots[n.Name].inForce(n, t); bad != nil {
					return bad
				}
			}
		}
	}
	return nil
}

// inForce looks at what is below edit, which has become tree.
func (n *schemaNode) inForce(edit, tree *netconf.Node) *netconf.Error {
	for _, c := range edit.Children {
		below := n.children[c.Name]
		if below == nil || !below.depends {
			continue
		}
		if w := below.when; w != nil && tree.Child(c.Name.Space, c.Name.Local) != nil && !slices.Contains(w.values, tree.Value(w.leaf)) {
			bad := netconf.NewUnknownElement(netconf.TypeApplication, c)
			bad.Message = fmt.Sprintf("there is no %s unless %s is one of %s", c.Name.Local, w.leaf, strings.Join(w.values, ", "))
			return bad
		}
		for _, t := range tree.Children {
			if t.Name == c.Name && below.kind <= netconf.KindList && sameKeys(below, c, t) {
				if bad := below.inForce(c, t); bad != nil {
					return bad
				}
			}
		}
	}
	return nil
}

func sameKeys(m *schemaNode, a, b *netconf.Node) bool {
	return !slices.ContainsFunc(m.keys, func(k string) bool { return strings.TrimSpace(a.Value(k)) != b.Value(k) })
}

// restate adds the cross-connects that an edit names without changing them, so
// that the device sees what contradicts them.
func (p *plan) restate(e netconf.EditConfig) {
	for _, n := range e.Config {
		if !n.Is(opsw, "cross-connects") || isRemoval(n) {
			continue
		}
		for _, c := range n.Children {
			in, ok := p.view.port(c.Value("ingress"))
			if !ok || isRemoval(c) {
				continue
			}
			for _, held := range p.view.circuits().At(in) {
				if held.Ingress == in && p.isLeft(held) && !slices.Contains(p.Add, held) {
					p.Add = append(p.Add, held)
				}
			}
		}
	}
}

// isLeft reports whether an edit leaves a cross-connect as it is.
func (p *plan) isLeft(c ocs.CrossConnect) bool { return !slices.Contains(p.DropPairs, c) }

func isRemoval(n *netconf.Node) bool {
	op := operationOf(n, netconf.Merge)
	return op == netconf.Delete || op == netconf.Remove
}

// refusal turns an error of the device into what goes on the wire.
func refusal(err error) *netconf.Error {
	var port *ocs.PortError
	var conflict *ocs.ConflictError
	var failed *emulator.FailedPortError
	var limit *emulator.LimitError
	application := func(tag, format string, args ...any) *netconf.Error {
		return netconf.NewError(netconf.TypeApplication, tag, format, args...)
	}
	switch {
	case errors.As(err, &failed):
		return application(netconf.OperationFailed, "Port %d has failed", failed.Port)
	case errors.As(err, &limit):
		return application(netconf.TooBig, "Too many cross-connects in one edit (%d/%d)", limit.Pairs, limit.Max)
	case errors.As(err, &conflict):
		shared := conflict.Want.Egress
		if in := conflict.Want.Ingress; conflict.Have.Ingress == in || conflict.Have.Egress == in {
			shared = in
		}
		if conflict.Where != "" {
			return application(netconf.InvalidValue, "Duplicate OXC port: %d", shared)
		}
		return application(netconf.InUse, "Port %d is in use by %d,%d", shared, conflict.Have.Ingress, conflict.Have.Egress)
	case errors.Is(err, ocs.ErrConflict): // another client came first
		return application(netconf.InUse, "%s", err)
	case errors.As(err, &port):
		return application(netconf.InvalidValue, "Invalid OXC port: %d", port.Port)
	}
	return application(netconf.InvalidValue, "%s", err)
}
