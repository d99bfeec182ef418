package devices

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ocslab/ocslab/internal/natural"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/tui/canvas"
	"github.com/ocslab/ocslab/tui/live"
	"github.com/ocslab/ocslab/tui/screen"
	"github.com/ocslab/ocslab/tui/widget"
)

// seg is a piece of a line in one style.
type seg struct {
	text  string
	style canvas.Style
}

// row is a line of the details.
type row struct {
	segs   []seg
	rule   bool // a heading
	module int  // of which module it is, from 1; 0 for none
	picked bool // that module is the one looked at
}

// String is the text of the line.
func (r row) String() string {
	var b strings.Builder
	if r.rule {
		b.WriteString("-- ")
	}
	for _, s := range r.segs {
		b.WriteString(s.text)
	}
	return strings.TrimRight(b.String(), " ")
}

// draw draws the line.
func (r row) draw(a canvas.Area) {
	if r.rule {
		a.Rule(0, r.segs[0].text, canvas.S(canvas.Frame))
		return
	}
	x := 0
	for _, s := range r.segs {
		x = a.Text(x, 0, s.text, s.style)
	}
	if r.module > 0 {
		if r.picked {
			a.Add(canvas.Cursor)
		}
		a.Zone(zoneModule(r.module - 1))
	}
}

// page collects lines of the details, w columns wide.
type page struct {
	w    int
	rows []row
}

// nameWidth is how wide the names of facts are.
const nameWidth = 12

// fact adds a name and a text, in as many lines as that needs.
func (p *page) fact(name, text string, role canvas.Role) {
	if text == "" {
		return
	}
	lines := canvas.Wrap(text, max(8, p.w-nameWidth-1))
	for i, l := range lines {
		if i > 0 {
			name = ""
		}
		p.rows = append(p.rows, row{segs: []seg{{pad(canvas.Cut(name, nameWidth), nameWidth+1), canvas.S(canvas.Dim)}, {l, canvas.S(role)}}})
	}
}

// heading begins a section.
func (p *page) heading(text string) {
	p.rows = append(p.rows, row{}, row{rule: true, segs: []seg{{text, canvas.Style{}}}})
}

// pad fills a text with blanks to w columns.
func pad(text string, w int) string {
	return text + strings.Repeat(" ", max(0, w-canvas.Width(text)))
}

// untold is said of what most devices tell, and this one does not.
const untold = "not told by this device"

// expected are facts that people look for; where a device does not tell them, that is said.
var expected = []string{"sessions", "boot mode", "monitors"}

// details are all that is known of a switch, in lines of w columns. Module is the one to show
// heaters and taps of, from 0.
func details(x *live.Switch, module, w int, e screen.Env) []row {
	p := &page{w: w}
	p.trouble(x, e)
	id := x.Identity
	p.fact("device", strings.TrimSpace(id.Vendor+" "+id.Model), canvas.Text)
	p.fact("serial", id.Serial, canvas.Text)
	p.fact("firmware", id.Firmware, canvas.Text)
	p.fact("address", x.URL, canvas.Text)
	if x.Device != x.URL {
		p.fact("in history", x.Device, canvas.Text)
	}
	if x.Emulated {
		p.fact("emulated", "yes: no light is moved", canvas.Text)
	}
	p.readings(x, e)
	p.alarms(x, e)
	p.drift(x, e)
	if x.Status == live.Up || len(x.Facts) > 0 {
		p.heading("told by the device")
		p.told(x)
	}
	p.modules(x, module, e)
	return p.rows
}

// trouble says why a switch is not up.
func (p *page) trouble(x *live.Switch, e screen.Env) {
	switch {
	case x.Status == live.Lost:
		p.fact("lost", "since "+e.Clock(x.Since)+"; it is tried again until it answers"+vain(x.Tries), canvas.Bad)
	case x.Status == live.Opening && x.Err != nil:
		p.fact("opening", "could not be reached so far; it is tried again until it answers"+vain(x.Tries), canvas.Warn)
	case x.Status == live.Opening:
		p.fact("opening", "is being reached for the first time", canvas.Busy)
	case x.Status == live.Lent:
		p.fact("lent", "a run has it; what is shown is what the run has seen", canvas.Busy)
	}
	if x.Err != nil {
		p.fact("why", x.Err.Error(), canvas.Bad)
	}
	if len(p.rows) > 0 {
		p.rows = append(p.rows, row{})
	}
}

func vain(n int) string {
	if n == 0 {
		return ""
	}
	return ", " + tries(n) + " in vain so far"
}

// readings say what is held, and how old what is known of it is.
func (p *page) readings(x *live.Switch, e screen.Env) {
	g := x.Identity.Geometry
	if g.Known() {
		p.fact("ports", ports(g), canvas.Text)
	}
	if x.MapAt.IsZero() {
		p.fact("circuits", "not read yet", canvas.Stale)
	} else {
		p.fact("circuits", natural.Count(x.Map.Len(), "circuit")+", "+read(x.MapAt, x.MapEvery, x.MapStale(e.Now), e), stale(x.MapStale(e.Now)))
	}
	switch {
	case !x.PowerAt.IsZero():
		p.fact("powers", natural.Count(len(x.Power), "port")+", "+read(x.PowerAt, x.PowerEvery, x.PowerStale(e.Now), e), stale(x.PowerStale(e.Now)))
	case x.Monitored:
		p.fact("powers", "not read yet", canvas.Stale)
	case x.Status == live.Up:
		p.fact("powers", "no monitors that can be read", canvas.Text)
	}
	if len(x.Protected) > 0 {
		p.fact("protected", ocs.FormatPorts(keys(x.Protected))+" by the lab file", canvas.Text)
	}
	if len(x.Shut) > 0 {
		p.fact("shut", ocs.FormatPorts(keys(x.Shut)), canvas.Warn)
	}
}

func stale(is bool) canvas.Role {
	if is {
		return canvas.Stale
	}
	return canvas.Text
}

// ports says how many ports there are and how they are numbered.
func ports(g ocs.Geometry) string {
	in, out := g.IngressPorts(), g.EgressPorts()
	switch {
	case g.SingleSided:
		return fmt.Sprintf("%v, 1-%d, each of them either end of a circuit", g, len(in))
	case len(in) == 0 || len(out) == 0:
		return g.String()
	}
	return fmt.Sprintf("%v, ingress %s, egress %s", g, ocs.FormatPorts(in), ocs.FormatPorts(out))
}

// read says how long ago something was read.
func read(at time.Time, every time.Duration, stale bool, e screen.Env) string {
	text := "read " + widget.Age(e.Now.Sub(at)) + " ago"
	switch {
	case stale:
		text = "STALE: " + text
	case every > 0:
		text += fmt.Sprintf(", every %g s", every.Seconds())
	}
	return text
}

func keys[V any](m map[ocs.Port]V) []ocs.Port { return slices.Sorted(maps.Keys(m)) }

// told are the facts of a device, and which are not among them.
func (p *page) told(x *live.Switch) {
	have := map[string]bool{}
	for _, f := range x.Facts {
		have[f.Name] = true
		p.fact(f.Name, f.Value, canvas.Text)
	}
	for _, name := range expected {
		if !have[name] {
			p.fact(name, untold, canvas.Dim)
		}
	}
	if n := len(x.Labels); n > 0 && !have["labels"] {
		p.fact("labels", natural.Count(n, "port"), canvas.Text)
	}
	if !have["calibration"] && len(x.Modules) == 0 {
		p.fact("calibration", "its age is "+untold, canvas.Dim)
	}
}

// severity is how an alarm of a severity looks.
func severity(name string) canvas.Role {
	switch name {
	case "critical", "major":
		return canvas.Bad
	case "minor":
		return canvas.Warn
	}
	return canvas.Dim
}

// alarms are what the device has reported.
func (p *page) alarms(x *live.Switch, e screen.Env) {
	if len(x.Alarms) == 0 {
		p.fact("alarms", "none since this session began", canvas.Dim)
		return
	}
	p.heading("alarms and reports, newest first")
	for _, a := range x.Alarms {
		text := a.Text
		if a.Port > 0 {
			text = "port " + strconv.Itoa(int(a.Port)) + ": " + text
		}
		p.event(a.At, a.Severity, severity(a.Severity), text, e)
	}
}

// event adds something that happened: how long ago, of what kind, and what.
func (p *page) event(at time.Time, kind string, role canvas.Role, text string, e screen.Env) {
	const ageWidth, kindWidth = 16, 9
	head := []seg{
		{pad(widget.Age(e.Now.Sub(at))+" ago", ageWidth), canvas.S(canvas.Dim)},
		{pad(canvas.Cut(kind, kindWidth), kindWidth+1), canvas.S(role)},
	}
	for i, l := range canvas.Wrap(text, max(8, p.w-ageWidth-kindWidth-1)) {
		if i > 0 {
			head = []seg{{strings.Repeat(" ", ageWidth+kindWidth+1), canvas.Style{}}}
		}
		p.rows = append(p.rows, row{segs: append(head, seg{l, canvas.S(canvas.Text)})})
	}
}

// drift are the changes that others have made.
func (p *page) drift(x *live.Switch, e screen.Env) {
	if len(x.Drift) == 0 {
		if len(x.Alarms) == 0 {
			p.fact("drift", "no change by others seen since this session began", canvas.Dim)
		}
		return
	}
	p.heading("drift: changed by others, newest first")
	for _, d := range x.Drift {
		who := d.Who
		switch {
		case who != "":
		case d.Away:
			who = "somebody, or a restart, while it was away"
		default:
			who = "somebody; who, the device does not tell"
		}
		p.event(d.At, "drift", canvas.Warn, d.Change.String()+" by "+who, e)
	}
}
