package netconfserver

import (
	"slices"
	"strconv"
	"time"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/wire/netconf"
)

// edit changes the device outside of an edit-config.
func (ss *session) edit(e emulator.Edit) reply {
	if bad := ss.srv.lockedBy(ss.id); bad != nil {
		return fail(bad)
	}
	op, err := ss.dev.Edit(ss.me, e)
	if err != nil {
		return fail(refusal(err))
	}
	return reply{op: op}
}

func (ss *session) portSetState(op *netconf.Node) reply {
	enab, disab := portsNamed(op, "port-enab"), portsNamed(op, "port-disab")
	closed := map[ocs.Port]bool{}
	for _, p := range enab {
		closed[p] = false
	}
	for _, p := range disab {
		if slices.Contains(enab, p) {
			return fail(invalid("Port %d cannot be enabled and disabled at once", p))
		}
		closed[p] = true
	}
	return ss.edit(emulator.Edit{Closed: closed})
}

func (ss *session) setDatetime(op *netconf.Node) reply {
	t, err := time.Parse(time.RFC3339, op.Value("current-datetime"))
	if err != nil {
		return fail(invalid("There is no such date: %s", op.Value("current-datetime")))
	}
	ss.dev.SetClock(t)
	ss.dev.Report(ss.me, "SYSTEM", "Clock set to "+stamp(t))
	return reply{}
}

// systemRestart restarts the network card: at once without a reply, or later.
func (ss *session) systemRestart(op *netconf.Node) reply {
	seconds, _ := strconv.ParseUint(op.Value("seconds"), 10, 32) // the schema allows no other
	ss.dev.Report(ss.me, "SYSTEM", "Restart")
	if seconds == 0 {
		return reply{quiet: true, last: true, after: ss.dev.Reboot}
	}
	ss.srv.restartIn(time.Duration(seconds) * time.Second)
	return reply{}
}

func (ss *session) cancelRestart(*netconf.Node) reply {
	if !ss.srv.restartIn(0) {
		return fail(netconf.NewError(netconf.TypeApplication, netconf.OperationFailed, "No restart is to come"))
	}
	return reply{}
}

// restartIn has the network card restarted later, or not at all with 0, and
// reports whether it was to be restarted before.
func (s *Server) restartIn(d time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.restart != nil && s.restart.Stop()
	s.restart = nil
	if d > 0 {
		s.restart = time.AfterFunc(d, s.Device.Reboot)
	}
	return was
}

// moveRadiusServer changes the order of the RADIUS servers, which are text.
func (ss *session) moveRadiusServer(op *netconf.Node) reply {
	ss.srv.editing.Lock()
	defer ss.srv.editing.Unlock()
	text := parseNotes(ss.dev.Notes()).clone()
	system := text.root(systemConfig).Clone()
	servers := system.Child(opsw, "radius-servers")
	i := -1
	if servers != nil {
		i = slices.IndexFunc(servers.Children, func(c *netconf.Node) bool {
			return c.Value("ip-address") == op.Value("ip-address") && c.Value("port") == op.Value("port")
		})
	}
	if i < 0 {
		return fail(invalid("There is no RADIUS server %s port %s", op.Value("ip-address"), op.Value("port")))
	}
	to, _ := strconv.ParseUint(op.Value("position"), 10, 32)
	if to >= uint64(len(servers.Children)) {
		return fail(invalid("Position %d is outside 0..%d", to, len(servers.Children)-1))
	}
	moved := servers.Children[i]
	servers.Children = slices.Insert(slices.Delete(servers.Children, i, i+1), int(to), moved)
	text.setRoot(systemConfig, system)
	out := text.String()
	return ss.edit(emulator.Edit{Notes: &out})
}

// ---- groups

// group returns a group of ports.
func (v *view) group(name string) (*netconf.Node, *netconf.Error) {
	if g := entry(v.notes().root("groups"), "group-name", name); g != nil {
		return g, nil
	}
	return nil, invalid("There is no group %s", excerpt(name))
}

func (ss *session) joinGroups(op *netconf.Node) reply {
	v := ss.srv.view(ss.model, false)
	from, bad := v.group(op.Value("group-name-from"))
	if bad != nil {
		return fail(bad)
	}
	to, bad := v.group(op.Value("group-name-to"))
	if bad != nil {
		return fail(bad)
	}
	ccs, ok := v.joined(from, to)
	if !ok {
		return fail(invalid("The groups differ in the number of their ports"))
	}
	return ss.edit(emulator.Edit{Add: ccs})
}

func (ss *session) splitGroup(op *netconf.Node) reply {
	g, bad := ss.srv.view(ss.model, false).group(op.Value("group-name"))
	if bad != nil {
		return fail(bad)
	}
	return ss.edit(emulator.Edit{Drop: portsNamed(g, "ingress")})
}

// ---- programmed shutters

// defaultRestore is how long the light passes when nobody says how long.
const defaultRestore = 500 * time.Millisecond

func (ss *session) shutterConfig(op *netconf.Node) reply {
	milliseconds := func(n *netconf.Node, leaf string) time.Duration {
		ms, _ := strconv.ParseUint(n.Value(leaf), 10, 32) // the schema has seen it
		return time.Duration(ms) * time.Millisecond
	}
	v := ss.srv.view(ss.model, false)
	for _, n := range op.Children {
		if p, ok := v.port(n.Value("port-id")); !ok || !ss.dev.Geometry().IsIngress(p) {
			return fail(invalid("Invalid OXC port: %s", n.Value("port-id")))
		}
	}
	for _, n := range op.Children {
		p, _ := v.port(n.Value("port-id"))
		f := emulator.Flap{Off: milliseconds(n, "signal-block-time"), On: defaultRestore}
		if n.Child(plts, "signal-restore-time") != nil {
			f.On = milliseconds(n, "signal-restore-time")
		}
		cycles, _ := strconv.ParseUint(n.Value("cycles"), 10, 32)
		f.Cycles = int(cycles)
		if err := ss.dev.SetFlap(f, p); err != nil {
			return fail(refusal(err))
		}
	}
	return reply{}
}

func (ss *session) shutterOperation(op *netconf.Node) reply {
	ports := portsNamed(op, "port")
	for _, p := range ports {
		if !ss.dev.Geometry().IsIngress(p) {
			return fail(invalid("Invalid OXC port: %d", p))
		}
	}
	if op.Value("activate") != "true" {
		ss.dev.StopFlap(ports...)
		ss.srv.flapped(ports, false)
		return reply{}
	}
	if err := ss.dev.StartFlap(ports...); err != nil {
		return fail(netconf.NewError(netconf.TypeApplication, netconf.OperationFailed, "%s", err))
	}
	ss.srv.flapped(ports, true)
	return reply{}
}

// flapped remembers which programmes we have started, since the device does not
// tell.
func (s *Server) flapped(ports []ocs.Port, on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.flaps == nil {
		s.flaps = map[ocs.Port]time.Time{}
	}
	for _, p := range ports {
		delete(s.flaps, p)
		if f, ok := s.Device.Flap(p); ok && on {
			end := time.Time{}                  // never
			if f.Cycles > 0 && f.Cycles < 1e6 { // else it outlives us
				end = time.Now().Add(time.Duration(f.Cycles) * (f.Off + f.On))
			}
			s.flaps[p] = end
		}
	}
}

// flapping reports whether a programme that we have started runs.
func (s *Server) flapping(p ocs.Port) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	end, ok := s.flaps[p]
	return ok && (end.IsZero() || time.Now().Before(end))
}

func (ss *session) shutterState(*netconf.Node) reply {
	return reply{body: ss.srv.view(ss.model, true).shutterStatus(want{}).Children}
}

func (ss *session) alarmState(*netconf.Node) reply {
	return reply{body: ss.srv.view(ss.model, true).systemAlarms(want{}).Children}
}
