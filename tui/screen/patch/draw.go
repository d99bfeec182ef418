package patch

import (
	"cmp"
	"slices"
	"time"

	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/tui/canvas"
	"github.com/ocslab/ocslab/tui/live"
	"github.com/ocslab/ocslab/tui/screen"
)

// Draw draws the names of the switches, what is to be said of the one that is shown, its field,
// and what the cursor is on.
func (s *Screen) Draw(a canvas.Area, e screen.Env) {
	v := s.look(e)
	if v.sw == nil {
		for i, line := range canvas.Wrap("The lab has no switches.", a.W) {
			a.Text(0, i, line, canvas.S(canvas.Dim))
		}
		return
	}
	l := s.layout(v, a.W, a.H)
	top, _ := a.Top(1)
	v.switches(top)
	for i, n := range v.notices(a.W)[:l.notices] {
		line := a.Sub(0, 1+i, a.W, 1)
		if n.style.Attr&canvas.Reverse != 0 {
			line.Fill(' ', n.style)
		}
		line.Fit(0, 0, a.W, n.text, n.style)
	}
	switch {
	case s.asList:
		s.list(v, a, l)
	case v.f.at == place{}:
		a.Fit(1, 2+l.notices, a.W-1, v.unknown(), canvas.S(canvas.Dim))
	default:
		v.matrix(a, l)
		if v.sw.Status == live.Lost || v.sw.Status == live.Opening {
			l.field.of(a).Paint(canvas.Stale)
		}
	}
	if l.pane.h > 0 && v.f.at != (place{}) {
		v.pane(l.pane.of(a), l.pane.y == l.field.y)
	}
	if l.legend > 0 && !s.asList && v.f.at != (place{}) {
		_, bottom := a.Bottom(1)
		v.legend(bottom, l)
	}
}

// unknown says why there is no field.
func (v *view) unknown() string {
	if v.sw.Status == live.Opening {
		return v.sw.Name + " is being opened; its ports are not known yet."
	}
	return v.sw.Name + " has no ports that are known."
}

// notice is a line above the field.
type notice struct {
	text  string
	style canvas.Style
}

// notices are what is to be said of the switch in w columns, the most important first.
func (v *view) notices(w int) []notice {
	if v.sw == nil {
		return nil
	}
	var list []notice
	if text, style := v.standing(); text != "" {
		for _, line := range canvas.Wrap(text, w-1) {
			if len(list) < 3 {
				list = append(list, notice{" " + line, style})
			}
		}
	}
	for _, d := range v.sw.Drift {
		if v.e.Now.Sub(d.At) >= told || len(list) >= 4 {
			break
		}
		text := " " + d.At.Format(time.TimeOnly) + " "
		switch {
		case d.Who != "":
			text += "somebody else: " + d.Change.String() + " (" + d.Who + ")"
		case d.Away:
			text += "while it was away: " + d.Change.String()
		default:
			text += "somebody else: " + d.Change.String()
		}
		list = append(list, notice{text, canvas.S(canvas.Warn)})
	}
	return list
}

// standing says what is wrong with what is shown; nothing if the switch answers.
func (v *view) standing() (string, canvas.Style) {
	sw, now := v.sw, v.e.Now
	alarm, busy := canvas.S(canvas.Bad, canvas.Reverse), canvas.S(canvas.Busy)
	why := ""
	if sw.Err != nil {
		why = ": " + sw.Err.Error()
	}
	switch sw.Status {
	case live.Lost:
		return "LOST " + ago(now, sw.Since) + why + "; tried " + times(sw.Tries) + "; " + v.readAt(), alarm
	case live.Opening:
		if sw.Tries > 0 || sw.Err != nil {
			return "opening… not reached yet, tried " + times(sw.Tries) + why, alarm
		}
		return "opening…", busy
	case live.Lent:
		return "a run has " + sw.Name + "; this is what the run has seen, " + v.readAt(), busy
	}
	if v.mapOld {
		return "STALE: " + v.readAt() + why, canvas.S(canvas.Warn, canvas.Reverse)
	}
	if sw.Monitored && v.powerOld {
		return "powers are STALE: as of " + clock(sw.PowerAt, now), canvas.S(canvas.Warn)
	}
	return "", canvas.Style{}
}

// readAt says when the circuits were read last.
func (v *view) readAt() string {
	if v.sw.MapAt.IsZero() {
		return "circuits never read"
	}
	return "circuits as of " + clock(v.sw.MapAt, v.e.Now)
}

// clock is a time with how long ago that was.
func clock(t, now time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return t.Format(time.TimeOnly) + ", " + ago(now, t)
}

func ago(now, t time.Time) string {
	if t.IsZero() {
		return "at an unknown time"
	}
	return age(now.Sub(t)) + " ago"
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return itoa(n) + " times"
}

// note is a line of the pane: what it is about, and what is to be said.
type note struct {
	key, text string
	style     canvas.Style
}

// pane says what the cursor is on, and what enter would do.
func (v *view) pane(a canvas.Area, right bool) {
	if right {
		v.tall(a.Sub(1, 0, a.W-1, a.H))
		return
	}
	a.Rule(0, v.title(), canvas.S(canvas.Frame))
	v.flat(a.Sub(0, 1, a.W, a.H-1))
}

// tall draws the notes below each other. Those about what enter does are drawn always.
func (v *view) tall(a canvas.Area) {
	box := a.Box(v.title(), canvas.S(canvas.Frame))
	key := 7
	if box.W < 24 {
		key = 0
	}
	doing, need := v.doing(), 0
	for _, n := range doing {
		need += len(canvas.Wrap(n.text, box.W-key))
	}
	y := v.wrapped(box.Sub(0, 0, box.W, box.H-need), v.facts(), key)
	v.wrapped(box.Sub(0, y, box.W, box.H-y), doing, key)
}

// wrapped draws notes with their keys in the first columns, and returns how many lines that took.
func (v *view) wrapped(a canvas.Area, notes []note, key int) int {
	y := 0
	for _, n := range notes {
		if key > 0 {
			a.Text(0, y, n.key, canvas.S(canvas.Dim))
		}
		for _, line := range canvas.Wrap(n.text, a.W-key) {
			a.Text(key, y, line, n.style)
			y++
		}
	}
	return min(y, a.H)
}

// flat draws the notes in few lines: the last two are what enter does.
func (v *view) flat(a canvas.Area) {
	doing := v.doing()
	facts := v.facts()
	room := max(0, a.H-len(doing))
	if a.H < 4 {
		doing = doing[:min(1, len(doing))]
		room = max(0, a.H-1)
	}
	y := 0
	for len(facts) > 0 && y < room {
		x := 0
		for len(facts) > 0 {
			n := facts[0]
			w := canvas.Width(n.key) + 1 + canvas.Width(n.text)
			if x > 0 && x+w > a.W {
				break
			}
			a.Text(x, y, n.key, canvas.S(canvas.Dim))
			at := x + canvas.Width(n.key) + 1
			a.Fit(at, y, a.W-at, n.text, n.style)
			x += w + 3
			facts = facts[1:]
		}
		y++
	}
	for i, n := range doing {
		at := a.Text(0, y+i, n.key, canvas.S(canvas.Dim)) + 1
		a.Fit(at, y+i, a.W-at, n.text, n.style)
	}
}

// title is what the cursor is on and how it stands with it.
func (v *view) title() string {
	at := v.f.at
	if at.port() {
		if v.g.SingleSided {
			return "port " + (at.in + at.out).String()
		}
		return at.String()
	}
	if c, ok := v.circuitAt(at); ok {
		r, _ := v.sign(c)
		return string(r) + " " + c.String() + " " + v.state(at)
	}
	return at.String() + " " + v.free(at.circuit())
}

// free says of a pair that is no circuit whether it could be one.
func (v *view) free(c ocs.CrossConnect) string {
	word := "free"
	switch {
	case !v.reaches(c.Ingress, c.Egress):
		return "cannot be"
	case v.sw.MapAt.IsZero():
		return "not read yet"
	case len(v.inTheWay(c)) > 0:
		word = "busy"
	}
	if v.mapOld {
		word += ", stale"
	}
	return word
}

// facts are what is known of what the cursor is on.
func (v *view) facts() []note {
	at := v.f.at
	var list []note
	if at.in != 0 {
		list = append(list, v.end("in", at.in, true))
	}
	if at.out != 0 {
		list = append(list, v.end("out", at.out, false))
	}
	list = append(list, v.warnings(at)...)
	c, ok := v.circuitAt(at)
	switch {
	case ok && at.port():
		list = append(list, note{key: "path", text: c.String() + ", " + v.state(placeOf(c)), style: canvas.S(canvas.Light)})
	case ok:
		list = append(list, v.circuitFacts(c)...)
	case !at.port() && v.reaches(at.in, at.out):
		for _, x := range v.inTheWay(c) {
			list = append(list, note{key: "in way", text: v.ends(x), style: canvas.S(canvas.Warn)})
		}
	}
	return list
}

// end says what is at a port: number, NIC with its carrier, label, and the power.
func (v *view) end(key string, p ocs.Port, in bool) note {
	text := p.String()
	if n := v.nicAt(p, in); n != nil {
		text += " " + n.Name + ", " + carrier(n)
	} else if v.g.Lanes > 0 {
		text += " " + v.g.PortName(p)
	}
	if l := v.sw.Labels[p]; l != "" {
		text += ", “" + l + "”"
	}
	return note{key: key, text: text + ", " + v.powerWords(p), style: canvas.S(canvas.Text)}
}

func carrier(n *live.NIC) string {
	if !n.Watched {
		return "not watched"
	}
	if n.Carrier == live.CarrierUnknown || n.Carrier == "" {
		return "carrier unknown"
	}
	return "carrier " + string(n.Carrier)
}

// powerWords is the power at a port with its age, if it is old.
func (v *view) powerWords(p ocs.Port) string {
	text := v.power(p)
	switch {
	case text == "":
		return "no power known"
	case text == "none":
		text = "dark"
	case v.sw.Power[p] < ocs.NoLight:
		text = "dark (" + text + " dBm)"
	default:
		text += " dBm"
	}
	if v.powerOld {
		text += " " + ago(v.e.Now, v.sw.PowerAt)
	}
	return text
}

// circuitFacts are what is known of a circuit beside its ends.
func (v *view) circuitFacts(c ocs.CrossConnect) []note {
	var list []note
	if x, ok := v.loss(c); ok {
		text := x.String()
		if v.powerOld {
			text += " " + ago(v.e.Now, v.sw.PowerAt)
		}
		list = append(list, note{key: "loss", text: text, style: canvas.S(canvas.Text)})
	}
	o := v.sw.Set[c]
	text := cmp.Or(o.Who, "not known; was there before")
	if o.ID != 0 {
		text += ", change " + itoa(o.ID)
	}
	if !o.When.IsZero() {
		text += ", " + ago(v.e.Now, o.When)
	}
	return append(list, note{key: "set by", text: text, style: canvas.S(canvas.Text)})
}

// warnings are what speaks against touching it.
func (v *view) warnings(at place) []note {
	var list []note
	if ports := those(at, v.sw.Protected); ports != "" {
		list = append(list, note{key: "×", text: "protected by the lab file: " + ports, style: canvas.S(canvas.Warn)})
	}
	if ports := those(at, v.sw.Shut); ports != "" {
		list = append(list, note{key: "▪", text: "shutter closed: " + ports, style: canvas.S(canvas.Bad)})
	}
	if c, ok := v.circuitAt(at); ok && v.byOthers(c) {
		list = append(list, note{key: "!", text: "made by somebody else in the last minute", style: canvas.S(canvas.Warn)})
	}
	return list
}

// those are the ports of a place that are in a set.
func those(at place, set map[ocs.Port]bool) string {
	var ports []ocs.Port
	for _, p := range []ocs.Port{at.in, at.out} {
		if p != 0 && set[p] && !slices.Contains(ports, p) {
			ports = append(ports, p)
		}
	}
	return ocs.FormatPorts(ports)
}

// ends is a circuit with what hangs on it: "1>33 gpu1/ens1f0 to gpu2/ens1f0".
func (v *view) ends(c ocs.CrossConnect) string {
	from, to := v.name(c.Ingress, true), v.name(c.Egress, false)
	switch {
	case from == "" && to == "":
		return c.String()
	case from == "":
		return c.String() + " to " + to
	case to == "":
		return c.String() + " from " + from
	}
	return c.String() + " " + from + " to " + to
}

// doing is what enter does, in words and as a command.
func (v *view) doing() []note {
	i := v.intent()
	words := i.words
	if i.wish != nil && (v.e.ReadOnly || v.e.State.ReadOnly) {
		words = "nothing, as this is read-only; it would " + words
	}
	list := []note{{key: "enter", text: words, style: canvas.S(canvas.Accent)}}
	if i.cli != "" {
		list = append(list, note{key: "$", text: i.cli, style: canvas.S(canvas.Dim)})
	}
	return list
}
