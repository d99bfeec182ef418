package links

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	firmwarenotes "github.com/ocslab/ocslab/firmware-notes"
	"github.com/ocslab/ocslab/internal/natural"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/timeline"
	"github.com/ocslab/ocslab/tui/canvas"
	"github.com/ocslab/ocslab/tui/live"
	"github.com/ocslab/ocslab/tui/screen"
	"github.com/ocslab/ocslab/tui/widget"
)

const darkPower = ocs.NoLight

// fact is a line of the details.
type fact struct {
	name, text string
	role       canvas.Role
}

// detail draws all that is known of a NIC.
func detail(a canvas.Area, n *live.NIC, e screen.Env) {
	if a.W < 4 || a.H < 3 {
		return
	}
	in := a.Box(n.Name, canvas.S(canvas.Frame))
	in = in.Sub(1, 0, in.W-2, in.H)
	facts := facts(n, e)
	marks := marksOf(n, e, max(0, min(8, in.H-len(facts)-10)))
	y := 0
	for _, f := range facts {
		y = line(in, y, f)
	}
	chartHeight := min(14, in.H-y-len(marks)-1)
	if len(marks) > 0 {
		chartHeight--
	}
	if chartHeight >= 5 {
		y++
		chart(in.Sub(0, y, in.W, chartHeight), n, e)
		y += chartHeight
	}
	if len(marks) > 0 && y+1 < in.H {
		in.Rule(y, "last marks, since the command", canvas.S(canvas.Frame))
		for i, m := range marks {
			in.Fit(0, y+1+i, in.W, m, canvas.S(canvas.Text))
		}
	}
}

// nameWidth is how wide the names of facts are.
const nameWidth = 9

// line draws a fact in as many lines as it needs, and returns the line after it.
func line(a canvas.Area, y int, f fact) int {
	a.Fit(0, y, nameWidth, f.name, canvas.S(canvas.Dim))
	lines := canvas.Wrap(f.text, a.W-nameWidth-1)
	for i, l := range lines {
		a.Text(nameWidth+1, y+i, l, canvas.S(f.role))
	}
	return y + max(1, len(lines))
}

// facts are what is known of a NIC, by line.
func facts(n *live.NIC, e screen.Env) []fact {
	carrier := carrierCell(n, e)
	if !n.Watched {
		carrier.Text += ": " + orUnknown(n.Why)
	} else if !n.SinceAt.IsZero() {
		carrier.Text += " for " + widget.Age(e.Now.Sub(n.SinceAt)) + ", since " + e.Clock(n.SinceAt)
	}
	list := []fact{{"carrier", carrier.Text, carrier.Style.Role}}
	if n.Watched {
		flaps := natural.Count(n.Flaps, "time") + " gone since this session began"
		if n.Outage != (timeline.Interval{}) {
			flaps += "; the last time for " + n.Outage.String()
			if !n.OutAt.IsZero() {
				flaps += ", until " + e.Clock(n.OutAt)
			}
		}
		list = append(list, fact{"flaps", flaps, canvas.Text})
	}
	state := stateCell(n, e)
	if n.State == "" {
		state = widget.V("is not asked", canvas.Dim)
	}
	list = append(list, fact{"firmware", state.Text, state.Style.Role})
	if n.Firmware != "" {
		list = append(list, fact{"profile", profile(n.Firmware), canvas.Text})
	}
	if n.Traffic != "" {
		v := trafficCell(n, e)
		list = append(list, fact{"traffic", v.Text, v.Style.Role})
	}
	list = append(list, path("hears ←", n.Hears, n.Rx, false, e), path("heard →", n.HeardBy, n.Tx, true, e))
	power := powerCell(n, e)
	switch {
	case n.RxAt.IsZero():
		power.Text = "never measured"
	case n.RxSource == "module":
		power.Text += " at its module, " + widget.Age(e.Now.Sub(n.RxAt)) + " ago"
	default:
		power.Text += " where " + n.Rx.Switch + " lets it go (" + n.Rx.String() + "), " + widget.Age(e.Now.Sub(n.RxAt)) + " ago"
	}
	list = append(list, fact{"Rx power", power.Text, power.Style.Role})
	if r := doubts(n, e); r != "" {
		list = append(list, fact{"doubt", r, canvas.Warn})
	}
	return list
}

// path says through which ports light goes between a NIC and its partner, and how much of it.
func path(name, partner string, ref lab.PortRef, sends bool, e screen.Env) fact {
	f := fact{name: name, role: canvas.Text, text: "nobody, port " + ref.String()}
	sw := e.State.Switch(ref.Switch)
	if sw == nil {
		return f
	}
	stale := sw.MapStale(e.Now)
	if stale {
		f.role = canvas.Stale
	}
	ingress, egress, joined := ref.Port, ref.Port, false
	if sends {
		egress, joined = sw.Map.EgressOf(ref.Port)
	} else {
		ingress, joined = sw.Map.IngressOf(ref.Port)
	}
	switch {
	case sw.MapAt.IsZero():
		f.text = "not known: the circuits of " + sw.Name + " were never read; port " + ref.String()
	case !joined:
		f.text = "nobody: no circuit at " + ref.String()
	default:
		f.text = fmt.Sprintf("%s by %s %d>%d", whose(partner, sw, ingress, egress, sends, e), sw.Name, ingress, egress)
		f.text += powers(sw, ingress, egress, e)
	}
	for _, p := range []ocs.Port{ingress, egress} {
		if joined && sw.Shut[p] || p == ref.Port && sw.Shut[p] {
			f.text += fmt.Sprintf("; the shutter of %d is closed", p)
			f.role = canvas.Warn
		}
		if ingress == egress {
			break
		}
	}
	if stale && !sw.MapAt.IsZero() {
		f.text += " (" + widget.Age(e.Now.Sub(sw.MapAt)) + " old)"
	}
	return f
}

// whose names who is at the other end of a circuit: a NIC, a label, or else a port.
func whose(partner string, sw *live.Switch, ingress, egress ocs.Port, sends bool, e screen.Env) string {
	p := ingress
	if sends {
		p = egress
	}
	if f := e.State.File; f != nil && partner == "" {
		if partner = f.Sender(sw.Name, p); sends {
			partner = f.Receiver(sw.Name, p)
		}
	}
	if partner != "" {
		return partner
	}
	if l := sw.Labels[p]; l != "" {
		return l
	}
	return fmt.Sprintf("no NIC at %s/%d", sw.Name, p)
}

// powers writes what enters and leaves a circuit, and what is lost in between.
func powers(sw *live.Switch, ingress, egress ocs.Port, e screen.Env) string {
	in, hasIn := sw.Power[ingress]
	out, hasOut := sw.Power[egress]
	text := ""
	switch {
	case hasIn && hasOut && !dark(in) && !dark(out):
		text = fmt.Sprintf("; in %.2f, out %v, loss %.2f dB", float64(in), out, float64(in.Sub(out)))
	case hasIn && hasOut:
		text = "; in " + light(in) + ", out " + light(out)
	case hasIn:
		text = "; in " + light(in)
	case hasOut:
		text = "; out " + light(out)
	}
	if text != "" && sw.PowerStale(e.Now) && !sw.PowerAt.IsZero() {
		text += ", " + widget.Age(e.Now.Sub(sw.PowerAt)) + " ago"
	}
	return text
}

func light(p ocs.DBm) string {
	if dark(p) {
		return "dark"
	}
	return p.String()
}

// profile says what the firmware's profile predicts.
func profile(name string) string {
	p, err := firmwarenotes.Find(name)
	if err != nil {
		return name + ": not known here"
	}
	up := p.Detect.Median + p.Train.Median + p.Carrier.Median
	text := fmt.Sprintf("%s: carrier about %v after light, down about %v after dark", name, up.Round(10*time.Millisecond), p.Debounce.Median)
	if p.Burst != nil {
		text += fmt.Sprintf("; each link-up beyond %d in %v takes %v more", p.Burst.Free, p.Burst.Window, p.Burst.Step)
	}
	return text
}

// marksOf returns the newest marks that concern a NIC, its ports or its traffic, at most so
// many, as lines.
func marksOf(n *live.NIC, e screen.Env, most int) []string {
	if most <= 0 {
		return nil
	}
	tx, rx := n.Tx.String(), n.Rx.String()
	var lines []string
	for _, m := range e.State.Moves {
		var command timeline.Interval
		known := false
		for i := range m.Marks {
			if m.Marks[i].Stage == timeline.Command {
				if at := m.Marks[i].Interval; !known {
					command, known = at, true
				} else {
					command = timeline.Earlier(command, at)
				}
			}
		}
		for i := len(m.Marks) - 1; i >= 0; i-- {
			x := &m.Marks[i]
			if x.Subject != n.Name && x.Subject != tx && x.Subject != rx && !ofPair(x.Subject, n.Name) {
				continue
			}
			text := "#" + strconv.Itoa(m.Number) + " " + string(x.Stage)
			if known {
				text += " " + x.Sub(command).String()
			}
			if x.Subject != n.Name {
				text += " of " + x.Subject
			}
			lines = append(lines, text+" ("+x.Source+")")
			if len(lines) == most {
				return lines
			}
		}
	}
	return lines
}

// ofPair reports whether a subject is a pair of NICs, "a>b", and one of them is of that name.
func ofPair(subject, name string) bool {
	return len(subject) > len(name)+1 &&
		(strings.HasSuffix(subject, name) && subject[len(subject)-len(name)-1] == '>' ||
			strings.HasPrefix(subject, name) && subject[len(name)] == '>')
}

// chart draws the powers of the last minutes, with axes in dBm and seconds.
func chart(a canvas.Area, n *live.NIC, e screen.Env) {
	const scale = 7 // columns for the labels at the left
	body, foot := a.Bottom(1)
	left, plot := body.Left(scale)
	if plot.W < 8 || plot.H < 3 {
		return
	}
	slots := make([]widget.Slot, 2*plot.W)
	fill(slots, n, e)
	lo, hi, lit := widget.Range(slots, leastRange)
	role := canvas.Light
	if powerStale(n, e) {
		role = canvas.Stale
	}
	widget.Chart(plot, slots, lo, hi, canvas.S(role))
	if lit {
		number := func(v float64) string { return strconv.FormatFloat(math.Round(v*10)/10, 'f', 1, 64) }
		left.TextRight(scale-1, 0, number(hi), canvas.S(canvas.Dim))
		left.TextRight(scale-1, plot.H-2, number(lo), canvas.S(canvas.Dim))
		if plot.H >= 5 {
			left.TextRight(scale-1, (plot.H-2)/2, "dBm", canvas.S(canvas.Dim))
		}
	}
	for _, slot := range slots {
		if slot.Dark {
			left.TextRight(scale-1, plot.H-1, "dark", canvas.S(canvas.Bad))
			break
		}
	}
	for y := range plot.H {
		left.Set(scale-1, y, '│', canvas.S(canvas.Frame))
	}
	seconds := int(window / time.Second)
	foot.Text(scale, 0, fmt.Sprintf("%d s ago", seconds), canvas.S(canvas.Dim))
	half := strconv.Itoa(seconds/2) + " s"
	foot.Text(scale+plot.W/2, 0, half, canvas.S(canvas.Dim))
	foot.TextRight(foot.W, 0, "now", canvas.S(canvas.Dim))
}

// Copy returns the NICs selected, or that under the cursor, a line for each: name and
// values with tabs between.
func (s *Screen) Copy(e screen.Env) string {
	return text(s.meant(e), e, false)
}

// save proposes to write all that is shown to a file.
func (s *Screen) save(rows []*live.NIC, e screen.Env) []screen.Request {
	if len(rows) == 0 {
		return say("there is nothing to save")
	}
	name := "ocslab-links-" + e.Now.Format("20060102-150405") + ".tsv"
	return []screen.Request{screen.SaveAs{Name: name, Content: []byte(text(rows, e, true))}}
}

// text writes NICs as lines of values with tabs between, below the names of the columns if
// these are wanted.
func text(list []*live.NIC, e screen.Env, heads bool) string {
	var b bytes.Buffer
	row := func(cell func(c column) string) {
		first := true
		for i, c := range columns {
			if i == trailColumn || i == bothColumn {
				continue
			}
			if !first {
				b.WriteByte('\t')
			}
			b.WriteString(cell(c))
			first = false
		}
		b.WriteByte('\n')
	}
	if heads {
		row(func(c column) string { return c.Name })
	}
	for _, n := range list {
		row(func(c column) string { return c.cell(n, e).Text })
	}
	return b.String()
}
