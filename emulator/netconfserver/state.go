package netconfserver

import (
	"encoding/xml"
	"strconv"

	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/wire/netconf"
)

func (v *view) product(want) *netconf.Node {
	p := v.dev.Personality()
	return netconf.El(opsw, "product-information",
		ol("manufacturer", p.Vendor), ol("serial-number", v.dev.Serial()), ol("model-name", p.Product), ol("software-version", p.Firmware))
}

func (v *view) power(w want) *netconf.Node {
	return v.portList(xml.Name{Space: opsw, Local: "opm-power"}, w, v.dev.HasMonitor, func(p ocs.Port, each want) []*netconf.Node {
		if !each.wants("power") {
			return nil
		}
		return []*netconf.Node{ol("power", reading(v.dev.Power(p)))}
	})
}

func (v *view) shutterStatus(w want) *netconf.Node {
	programmed := func(p ocs.Port) bool { _, ok := v.dev.Flap(p); return ok }
	return v.portList(xml.Name{Space: plts, Local: "shutter-status"}, w, programmed, func(p ocs.Port, _ want) []*netconf.Node {
		f, _ := v.dev.Flap(p)
		state := "SHUTTER_SET"
		if v.srv.flapping(p) {
			state = "SHUTTER_ACTIVE"
		}
		return []*netconf.Node{
			pl("signal-block-time", strconv.FormatInt(f.Off.Milliseconds(), 10)), pl("signal-restore-time", strconv.FormatInt(f.On.Milliseconds(), 10)),
			pl("cycles", strconv.Itoa(f.Cycles)), pl("status", state),
		}
	})
}

func (v *view) sessions(want) *netconf.Node {
	list := netconf.El(plts, "sessions")
	for _, s := range v.dev.Sessions() {
		list.Children = append(list.Children, netconf.El(plts, "session",
			pl("session-id", strconv.Itoa(s.ID)), pl("protocol-name", s.Protocol), pl("protocol-port", strconv.Itoa(s.Port)),
			pl("client-address", s.Client), pl("user-name", s.User)))
	}
	return list
}

// loggedIn is what there was before sessions.
func (v *view) loggedIn(want) *netconf.Node {
	list := netconf.El(plts, "logged-in-users")
	told := map[string]bool{}
	for _, s := range v.dev.Sessions() {
		if s.User != "" && !told[s.User] {
			told[s.User] = true
			list.Children = append(list.Children, pl("user-name", s.User))
		}
	}
	return list
}
