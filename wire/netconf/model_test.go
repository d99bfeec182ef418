package netconf_test

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/ocslab/ocslab/wire/netconf"
)

// A schema is a small data model in the shape of that of an optical switch.
type schema map[string]map[string]*schemaNode // by namespace, and by path

type schemaNode struct {
	path  string
	kind  netconf.Kind
	keys  []string
	state bool
	typ   string
}

func (s schema) Child(parent netconf.SchemaNode, space, local string) (netconf.SchemaNode, bool) {
	path := ""
	if p, ok := parent.(*schemaNode); ok {
		path = p.path
	}
	n, ok := s[space][path+"/"+local]
	return n, ok
}

func (s schema) Prefix(space string) string {
	switch space {
	case opsw:
		return "opsw"
	case plts:
		return "plts"
	}
	return ""
}

func (n *schemaNode) Kind() netconf.Kind { return n.kind }
func (n *schemaNode) Keys() []string     { return n.keys }
func (n *schemaNode) Config() bool       { return !n.state }

func (n *schemaNode) Canonical(text string) (string, error) {
	switch n.typ {
	case "port":
		v, err := strconv.ParseUint(strings.TrimSpace(text), 10, 16)
		if err != nil || v == 0 {
			return "", fmt.Errorf("a port is a number from 1 to 65535, not %q", text)
		}
		return strconv.FormatUint(v, 10), nil
	case "group":
		if text != "admin" && text != "user" && text != "view" {
			e := netconf.NewError(netconf.TypeApplication, netconf.BadElement, "no such group")
			e.AppTag = "group"
			return "", e
		}
	case "elsewhere":
		e := netconf.NewError(netconf.TypeApplication, netconf.OperationFailed, "not here")
		e.Path = "/elsewhere"
		return "", errors.Join(e)
	}
	return text, nil
}

// model has one line for each node: kind, path, keys or type.
var model = func() schema {
	s := schema{opsw: {}, plts: {}}
	for line := range strings.Lines(`
container opsw:/cross-connects
list      opsw:/cross-connects/pair ingress
leaf      opsw:/cross-connects/pair/ingress port
leaf      opsw:/cross-connects/pair/egress port
container opsw:/port-config
list      opsw:/port-config/port port-id
leaf      opsw:/port-config/port/port-id port
state     opsw:/port-config/port/status
leaf      opsw:/port-config/port/label
leaf      opsw:/port-config/port/peer-port
container opsw:/system-config
list      opsw:/system-config/user name
leaf      opsw:/system-config/user/name
leaf      opsw:/system-config/user/type
leaf      plts:/system-config/user/group group
list      opsw:/system-config/user/authorized-key name
leaf      opsw:/system-config/user/authorized-key/name
leaf      opsw:/system-config/user/authorized-key/key-data
container opsw:/system-config/radius-servers
list      opsw:/system-config/radius-servers/radius-server ip-address,port
leaf      opsw:/system-config/radius-servers/radius-server/ip-address
leaf      opsw:/system-config/radius-servers/radius-server/port port
container opsw:/system-config/radius-servers/radius-server/more
leaf      opsw:/system-config/radius-servers/radius-server/more/secret
leaf      plts:/system-config/startup-mode
leaf      opsw:/system-config/elsewhere elsewhere
container opsw:/groups
list      opsw:/groups/group group-name
leaf      opsw:/groups/group/group-name
leaf-list opsw:/groups/group/ingress port
leaf      plts:/mask-notification
leaf-list plts:/tag port
`) {
		f := append(strings.Fields(line), "")
		if len(f) < 3 {
			continue
		}
		prefix, path, _ := strings.Cut(f[1], ":")
		n := &schemaNode{path: path, typ: f[2]}
		switch f[0] {
		case "container":
			n.kind = netconf.KindContainer
		case "list":
			n.kind, n.keys = netconf.KindList, strings.Split(f[2], ",")
		case "leaf-list":
			n.kind = netconf.KindLeafList
		case "leaf":
			n.kind = netconf.KindLeaf
		case "state":
			n.kind, n.state = netconf.KindLeaf, true
		}
		s[map[string]string{"opsw": opsw, "plts": plts}[prefix]][path] = n
	}
	return s
}()
