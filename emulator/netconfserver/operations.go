package netconfserver

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/wire/netconf"
)

// operations are what a client may ask for, by namespace and name. Those of the
// YANG modules are checked against the schema first, and get what they take in
// its canonical form.
var operations map[string]map[string]func(*session, *netconf.Node) reply

// governed are the names of the operations of administrators, sorted.
var governed = slices.Sorted(maps.Keys(governing))

func init() { // in a variable they would refer to themselves
	operations = map[string]map[string]func(*session, *netconf.Node) reply{
		netconf.Base: {
			"get": (*session).get, "get-config": (*session).getConfig, "edit-config": (*session).editConfig,
			"lock": (*session).lockRunning, "unlock": (*session).unlockRunning,
			"close-session": (*session).closeSession, "kill-session": (*session).killSession,
		},
		netconf.NotificationNS: {"create-subscription": (*session).createSubscription},
		monitoring:             {"get-schema": (*session).getSchema},
		opsw: {
			"port-set-state": (*session).portSetState, "set-current-datetime": (*session).setDatetime,
			"system-restart": (*session).systemRestart, "system-restart-cancel": (*session).cancelRestart,
			"radius-server-set-position": (*session).moveRadiusServer,
		},
		plts: {
			"shutter-config": (*session).shutterConfig, "shutter-operation": (*session).shutterOperation,
			"get_alarm_state": (*session).alarmState, "shutter-status": (*session).shutterState,
			"clear-notification-ids":  (*session).clearLog,
			"add-group-cross-connect": (*session).joinGroups, "delete-group-cross-connect": (*session).splitGroup,
			"disconnect-session": (*session).disconnect,
		},
	}
}

// dispatch carries out a request.
func (ss *session) dispatch(op *netconf.Node) reply {
	name := op.Name.Local
	if ss.events != nil && ss.dev.Personality().NETCONF.NoInterleave && !op.Is(netconf.Base, "close-session") {
		return fail(netconf.NewError(netconf.TypeProtocol, netconf.ResourceDenied, "a session with a subscription takes only close-session"))
	}
	ours := op.Name.Space == opsw || op.Name.Space == plts
	takes := ss.model.rpcs[op.Name]
	do := operations[op.Name.Space][name]
	switch {
	case ours && takes == nil || !ours && do == nil:
		if _, known := operations[op.Name.Space]; !known {
			return fail(netconf.NewUnknownNamespace(netconf.TypeProtocol, op))
		}
		return fail(unsupported("there is no operation " + excerpt(name)))
	case do == nil:
		return fail(unsupported("operation " + name + " is not possible with this device"))
	case !mayCall(ss.group, name):
		return fail(accessDenied(netconf.TypeProtocol, ""))
	}
	if ours {
		in, _, bad := netconf.Edit(nil, netconf.EditConfig{Default: netconf.Merge, Config: op.Children}, takes)
		if bad == nil {
			bad = takes.required(in)
		}
		if bad != nil {
			return fail(bad)
		}
		op = netconf.El(op.Name.Space, name, in...)
	}
	return do(ss, op)
}

// required is [schema.complete] for what an operation takes, of which the
// roots may be mandatory, too.
func (s *schema) required(in []*netconf.Node) *netconf.Error {
	all := &schemaNode{children: s.roots}
	return all.complete(&netconf.Node{Children: in}, "")
}

// data makes a reply of a tree.
func data(tree []*netconf.Node) reply {
	return reply{body: []*netconf.Node{netconf.El(netconf.Base, "data", tree...)}}
}

func (ss *session) get(op *netconf.Node) reply { return ss.read(op, true) }

func (ss *session) getConfig(op *netconf.Node) reply { return ss.read(op, false) }

func (ss *session) read(op *netconf.Node, state bool) reply {
	g, bad := netconf.ParseGet(op)
	if bad == nil && !state && g.Source != running {
		bad = noDatastore(g.Source)
	}
	v := ss.srv.view(ss.model, state)
	if bad == nil {
		bad = v.checkKeys(g.Filter)
	}
	if bad != nil {
		return fail(bad)
	}
	tree := v.tree(g.Filter)
	if netconf.Selects(g.Filter, acm, "nacm") {
		tree = append(tree, ss.nacm())
	}
	if state && netconf.Selects(g.Filter, monitoring, "netconf-state") {
		tree = append(tree, ss.schemaList())
	}
	r := data(netconf.Filter(g.Filter, tree))
	if ss.dev.Personality().NETCONF.OpenFlowError && v.wantsOpenFlow(g.Filter) {
		r.err = netconf.NewError(netconf.TypeApplication, netconf.OperationFailed, "OpenFlow is not available")
		r.err.Path, r.err.Namespaces = "/opsw:system-config/opsw:openflow", declare("opsw", opsw)
	}
	return r
}

// wantsOpenFlow reports whether a filter selects the container openflow.
func (v *view) wantsOpenFlow(filter *netconf.Node) bool {
	for _, r := range roots {
		if r.name.Local == systemConfig && netconf.Selects(filter, opsw, systemConfig) {
			return wanted(filter, r.name).wants("openflow")
		}
	}
	return false
}

// checkKeys reports a cross-connect that is asked for by an ingress that the
// device does not have.
func (v *view) checkKeys(filter *netconf.Node) *netconf.Error {
	if filter == nil {
		return nil
	}
	for _, cc := range filter.Children {
		if cc.Name.Local != "cross-connects" || cc.Name.Space != opsw && cc.Name.Space != "" {
			continue
		}
		for _, pair := range cc.Children {
			k := pair.Child("", "ingress")
			if pair.Name.Local != v.model.list || k == nil || !isMatch(k) {
				continue
			}
			if p, ok := v.port(k.Text); !ok || !v.dev.Geometry().IsIngress(p) {
				key := excerpt(k.Text)
				return invalid("/opsw:cross-connects/%s{%s}: Invalid OXC port: %s", v.model.list, key, key)
			}
		}
	}
	return nil
}

// ---- sessions

func (ss *session) lockRunning(op *netconf.Node) reply {
	target, bad := netconf.ParseTarget(op)
	if bad == nil && target != running {
		bad = noDatastore(target)
	}
	if bad != nil {
		return fail(bad)
	}
	ss.srv.mu.Lock()
	defer ss.srv.mu.Unlock()
	if holder := ss.srv.lock; holder != 0 {
		return fail(netconf.NewLockDenied(uint32(holder)))
	}
	ss.srv.lock = ss.id
	return reply{}
}

func (ss *session) unlockRunning(op *netconf.Node) reply {
	target, bad := netconf.ParseTarget(op)
	if bad == nil && target != running {
		bad = noDatastore(target)
	}
	if bad != nil {
		return fail(bad)
	}
	if !ss.srv.unlock(ss.id) {
		return fail(netconf.NewError(netconf.TypeProtocol, netconf.OperationFailed, "this session does not hold the lock"))
	}
	return reply{}
}

// unlock releases the lock and reports whether the session had it.
func (s *Server) unlock(id int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lock != id {
		return false
	}
	s.lock = 0
	return true
}

// lockedBy reports that another session has the lock.
func (s *Server) lockedBy(id int) *netconf.Error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lock == 0 || s.lock == id {
		return nil
	}
	return netconf.NewError(netconf.TypeProtocol, netconf.InUse, "session %d has locked the configuration", s.lock)
}

func (ss *session) closeSession(*netconf.Node) reply { return reply{last: true} }

func (ss *session) killSession(op *netconf.Node) reply {
	id, bad := netconf.ParseKillSession(op)
	if bad != nil {
		return fail(bad)
	}
	is := func(s emulator.SessionInfo) bool { return s.ID == int(id) && s.Protocol == "NETCONF" }
	if int(id) == ss.id || !slices.ContainsFunc(ss.dev.Sessions(), is) || !ss.dev.EndSession(int(id)) {
		return fail(netconf.NewError(netconf.TypeProtocol, netconf.InvalidValue, "there is no other session %d", id))
	}
	ss.srv.unlock(int(id)) // at once, however long the session takes to end
	return reply{}
}

func (ss *session) disconnect(op *netconf.Node) reply {
	id, err := strconv.Atoi(op.Value("session-id"))
	if err == nil && id == ss.id {
		return reply{last: true}
	}
	if err != nil || !ss.dev.EndSession(id) {
		return fail(invalid("There is no session %s", op.Value("session-id")))
	}
	ss.srv.unlock(id)
	return reply{}
}

// ---- schemas (RFC 6022)

func (ss *session) revision(module string) string {
	n := ss.dev.Personality().NETCONF
	if module == opticalSwitch {
		return n.OpticalSwitch
	}
	return n.PolatisSwitch
}

func (ss *session) getSchema(op *netconf.Node) reply {
	name := op.Value("identifier")
	if name == "" {
		return fail(netconf.NewMissingElement(netconf.TypeProtocol, "identifier"))
	}
	text, ok := ss.model.texts[name]
	version, format := op.Value("version"), op.Value("format")
	if !ok || version != "" && version != ss.revision(name) || format != "" && format != "yang" && !strings.HasSuffix(format, ":yang") {
		return fail(invalid("there is no schema %s of that version and format", excerpt(name)))
	}
	return reply{body: []*netconf.Node{netconf.Leaf(monitoring, "data", text)}}
}

// schemaList returns the list of schemas.
func (ss *session) schemaList() *netconf.Node {
	list := netconf.El(monitoring, "schemas")
	for _, m := range [...][2]string{{opticalSwitch, opsw}, {polatisSwitch, plts}} {
		list.Children = append(list.Children, netconf.El(monitoring, "schema",
			netconf.Leaf(monitoring, "identifier", m[0]), netconf.Leaf(monitoring, "version", ss.revision(m[0])), netconf.Leaf(monitoring, "format", "yang"),
			netconf.Leaf(monitoring, "namespace", m[1]), netconf.Leaf(monitoring, "location", "NETCONF")))
	}
	return netconf.El(monitoring, "netconf-state", list)
}
