package netconfserver

import (
	"encoding/xml"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/wire/netconf"
)

// view builds the data tree of a device, as far as somebody wants it.
type view struct {
	srv   *Server
	dev   *emulator.Device
	model *schema
	state bool // with what is not configuration
	inner bool // for an edit: with secrets that are kept as text
	kept  *notes
	held  *ocs.Map
}

func (s *Server) view(model *schema, state bool) *view {
	return &view{srv: s, dev: s.Device, model: model, state: state}
}

// notes returns what the device keeps as text.
func (v *view) notes() *notes {
	if v.kept == nil {
		v.kept = parseNotes(v.dev.Notes())
	}
	return v.kept
}

// circuits returns what the device held when it was first asked.
func (v *view) circuits() ocs.Map {
	if v.held == nil {
		m := v.dev.CrossConnects()
		v.held = &m
	}
	return *v.held
}

const systemConfig = "system-config"

// root is a top-level node of the data tree. Which of them a device has, and
// whether they are configuration, its schema says.
type root struct {
	name  xml.Name
	build func(*view, want) *netconf.Node
}

// roots are all of them, in order.
var roots = []root{
	{xml.Name{Space: opsw, Local: "product-information"}, (*view).product},
	{xml.Name{Space: opsw, Local: "port-config"}, (*view).portConfig},
	{xml.Name{Space: opsw, Local: "opm-power"}, (*view).power},
	{xml.Name{Space: opsw, Local: "opm-config"}, (*view).monitors},
	{xml.Name{Space: opsw, Local: "opm-alarm-config"}, (*view).alarms},
	{xml.Name{Space: opsw, Local: "voa"}, (*view).voas},
	{xml.Name{Space: opsw, Local: "ports"}, (*view).ports},
	{xml.Name{Space: opsw, Local: "cross-connects"}, (*view).crossConnects},
	{xml.Name{Space: opsw, Local: systemConfig}, (*view).system},
	{xml.Name{Space: opsw, Local: "aps"}, keptRoot("aps")},
	{xml.Name{Space: opsw, Local: "subswitches"}, keptRoot("subswitches")},
	{xml.Name{Space: opsw, Local: "groups"}, (*view).groups},
	{xml.Name{Space: plts, Local: maskNotification}, keptRoot(maskNotification)},
	{xml.Name{Space: plts, Local: enableNotifications}, keptRoot(enableNotifications)},
	{xml.Name{Space: plts, Local: "notification-log"}, (*view).notificationLog},
	{xml.Name{Space: plts, Local: "system-alarms"}, (*view).systemAlarms},
	{xml.Name{Space: plts, Local: "shutter-status"}, (*view).shutterStatus},
	{xml.Name{Space: plts, Local: "sessions"}, (*view).sessions},
	{xml.Name{Space: plts, Local: "logged-in-users"}, (*view).loggedIn},
}

// tree returns the roots that a filter may select something of, pruned where
// that saves work. A nil filter is everything.
func (v *view) tree(filter *netconf.Node) []*netconf.Node {
	var list []*netconf.Node
	for _, r := range roots {
		m := v.model.roots[r.name]
		if m == nil || !v.state && !m.config || !netconf.Selects(filter, r.name.Space, r.name.Local) {
			continue
		}
		if n := r.build(v, wanted(filter, r.name)); n != nil {
			list = append(list, n)
		}
	}
	return list
}

// want is what a filter may select of a node: at least that. The zero value is
// everything.
type want struct{ filters []*netconf.Node }

// wanted returns what is wanted of a root.
func wanted(filter *netconf.Node, name xml.Name) want {
	if filter == nil {
		return want{}
	}
	var w want
	for _, f := range filter.Children {
		if f.Name.Local == name.Local && (f.Name.Space == name.Space || f.Name.Space == "") {
			w.filters = append(w.filters, f)
		}
	}
	return w.simple()
}

// simple turns w into everything if one of its filters selects that.
func (w want) simple() want {
	for _, f := range w.filters {
		if len(f.Children) == 0 {
			return want{}
		}
	}
	return w
}

// isMatch reports whether a filter is a content match node (RFC 6241 section
// 6.2.5).
func isMatch(f *netconf.Node) bool { return len(f.Children) == 0 && strings.TrimSpace(f.Text) != "" }

// of returns what is wanted of a child, and whether anything is.
func (w want) of(local string) (want, bool) {
	if w.filters == nil {
		return want{}, true
	}
	var below want
	for _, f := range w.filters {
		if !slices.ContainsFunc(f.Children, func(c *netconf.Node) bool { return !isMatch(c) }) {
			return want{}, true // content match nodes alone select their siblings
		}
		for _, c := range f.Children {
			if c.Name.Local == local {
				below.filters = append(below.filters, c)
			}
		}
	}
	if below.filters == nil {
		return want{}, false
	}
	return below.simple(), true
}

// wants reports whether anything is wanted of a child.
func (w want) wants(local string) bool {
	_, ok := w.of(local)
	return ok
}

// keys returns the values of a key that list entries are wanted for; all is
// true for any.
func (w want) keys(local string) (values []string, all bool) {
	if w.filters == nil {
		return nil, true
	}
	for _, f := range w.filters {
		k := f.Child("", local)
		if k == nil || !isMatch(k) {
			return nil, true
		}
		values = append(values, strings.TrimSpace(k.Text))
	}
	return values, false
}

// portsOf returns those ports that entries of a list are wanted for and for
// which there are any.
func (v *view) portsOf(w want, has func(ocs.Port) bool) []ocs.Port {
	keys, all := w.keys("port-id")
	if all {
		return slices.DeleteFunc(slices.Clone(v.dev.Geometry().Ports()), func(p ocs.Port) bool { return !has(p) })
	}
	var ports []ocs.Port
	for _, k := range keys {
		if p, ok := v.port(k); ok && has(p) {
			ports = append(ports, p)
		}
	}
	slices.Sort(ports)
	return slices.Compact(ports)
}

// port reads a port number of the device.
func (v *view) port(text string) (ocs.Port, bool) {
	n, err := strconv.ParseUint(strings.TrimSpace(text), 10, 16)
	return ocs.Port(n), err == nil && v.dev.Geometry().Has(ocs.Port(n))
}

// portList builds a container with a list of ports.
func (v *view) portList(name xml.Name, w want, has func(ocs.Port) bool, entry func(ocs.Port, want) []*netconf.Node) *netconf.Node {
	list := netconf.El(name.Space, name.Local)
	each, ok := w.of("port")
	if !ok {
		return list
	}
	for _, p := range v.portsOf(each, has) {
		children := append([]*netconf.Node{netconf.Leaf(name.Space, "port-id", p.String())}, entry(p, each)...)
		list.Children = append(list.Children, netconf.El(name.Space, "port", children...))
	}
	return list
}

// ol is a leaf of optical-switch, pl one of polatis-switch.
func ol(name, text string) *netconf.Node { return netconf.Leaf(opsw, name, text) }
func pl(name, text string) *netconf.Node { return netconf.Leaf(plts, name, text) }

// declare returns the declaration of a prefix that text uses.
func declare(prefix, uri string) []xml.Attr {
	return []xml.Attr{{Name: xml.Name{Space: "xmlns", Local: prefix}, Value: uri}}
}

// number returns the canonical form of a decimal64 with two decimals.
func number(x float64) string {
	s := strconv.FormatFloat(math.Round(x*100)/100, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

// reading is what a power monitor shows, dBm.
func reading(x ocs.DBm) string { return strconv.FormatFloat(float64(x), 'f', 2, 64) }
