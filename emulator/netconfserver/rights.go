package netconfserver

import (
	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/wire/netconf"
)

// viewing are the operations that viewers may use, too.
var viewing = map[string]bool{
	"get": true, "get-config": true, "get-schema": true, "close-session": true, "create-subscription": true,
	"get_alarm_state": true, "shutter-status": true,
}

// governing are the operations that only administrators may use.
var governing = map[string]bool{
	"kill-session": true, "disconnect-session": true, "system-restart": true, "system-restart-cancel": true,
	"set-current-datetime": true, "radius-server-set-position": true, "aps-activate": true,
}

// mayCall reports whether members of a group may use an operation. Reading is
// everybody's.
func mayCall(g emulator.Group, operation string) bool {
	switch g {
	case emulator.Admin:
		return true
	case emulator.Operator:
		return !governing[operation]
	}
	return viewing[operation]
}

// mayWrite reports whether members of a group that may edit at all may change
// what is below a root.
func mayWrite(g emulator.Group, root string) bool { return g == emulator.Admin || root != systemConfig }

func accessDenied(typ, path string) *netconf.Error {
	err := netconf.NewError(typ, netconf.AccessDenied, "Permission denied")
	err.Path, err.Namespaces = path, namespacesOf(path)
	return err
}

// nacm returns the access rules (RFC 8341) that come to the same.
func (ss *session) nacm() *netconf.Node {
	leaf := func(name, text string) *netconf.Node { return netconf.Leaf(acm, name, text) }
	el := func(name string, children ...*netconf.Node) *netconf.Node { return netconf.El(acm, name, children...) }
	groups := el("groups")
	for _, g := range []struct {
		name  string
		group emulator.Group
	}{{"admin", emulator.Admin}, {"user", emulator.Operator}, {"view", emulator.Viewer}} {
		group := el("group", leaf("name", g.name))
		for _, u := range ss.dev.Users() {
			if u.Group == g.group {
				group.Children = append(group.Children, leaf("user-name", u.Name))
			}
		}
		groups.Children = append(groups.Children, group)
	}
	rule := func(name, kind, what, operations, action string) *netconf.Node {
		r := el("rule", leaf("name", name))
		if kind != "" {
			r.Children = append(r.Children, leaf(kind, what))
		}
		r.Children = append(r.Children, leaf("access-operations", operations), leaf("action", action))
		return r
	}
	list := func(group string, rules ...*netconf.Node) *netconf.Node {
		return el("rule-list", append([]*netconf.Node{leaf("name", group), leaf("group", group)}, rules...)...)
	}
	user := list("user", rule("system", "path", "/opsw:"+systemConfig, "create update delete", "deny"))
	user.Children[2].Children[1].Attrs = declare("opsw", opsw)
	for _, name := range governed {
		user.Children = append(user.Children, rule(name, "rpc-name", name, "exec", "deny"))
	}
	user.Children = append(user.Children, rule("rest", "", "", "*", "permit"))
	return el("nacm",
		leaf("enable-nacm", "true"), leaf("read-default", "permit"), leaf("write-default", "deny"), leaf("exec-default", "permit"),
		groups,
		list("admin", rule("all", "", "", "*", "permit")),
		user,
		list("view", rule("read", "", "", "read", "permit"), rule("rest", "", "", "create update delete exec", "deny")),
	)
}
