package links

import (
	"cmp"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/ocslab/ocslab/internal/natural"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/timeline"
	"github.com/ocslab/ocslab/tui/canvas"
	"github.com/ocslab/ocslab/tui/live"
	"github.com/ocslab/ocslab/tui/screen"
	"github.com/ocslab/ocslab/tui/widget"
)

// column is a column of the table of NICs.
type column struct {
	widget.Column
	cell    func(n *live.NIC, e screen.Env) widget.Value
	compare func(a, b *live.NIC) int // nil: nothing is sorted by it
}

// The columns that are drawn in a way of their own.
const (
	trailColumn   = 5
	hearsColumn   = 6
	heardByColumn = 7
	bothColumn    = 8
	remarkColumn  = 12
)

// bothBelow is below how many columns of the table one column says whom a NIC hears and
// who hears it, which are mostly the same.
const bothBelow = 110

// window is how far back the trails of powers go: as far as a State remembers readings
// that are taken each second.
const window = live.KeepSamples * time.Second

var columns = [...]column{
	{widget.Column{Name: "NIC", Keep: 100}, nicCell, byText(func(n *live.NIC) string { return n.Name })},
	{widget.Column{Name: "carrier", Keep: 95}, carrierCell, func(a, b *live.NIC) int { return cmp.Compare(rank(a), rank(b)) }},
	{widget.Column{Name: "for", Keep: 60, Right: true}, sinceCell, func(a, b *live.NIC) int { return b.SinceAt.Compare(a.SinceAt) }},
	{widget.Column{Name: "firmware", Keep: 50}, stateCell, byText(func(n *live.NIC) string { return n.State })},
	{widget.Column{Name: "Rx power", Keep: 90, Right: true}, powerCell, byPower},
	{widget.Column{Name: "last 4 min", Width: 12, Max: 24, Keep: 72}, trailCell, nil},
	{widget.Column{Name: "hears ←", Keep: 85}, hearsCell, byText(func(n *live.NIC) string { return n.Hears })},
	{widget.Column{Name: "→ heard by", Keep: 80}, heardByCell, byText(func(n *live.NIC) string { return n.HeardBy })},
	{widget.Column{Name: "hears ← → by", Keep: 85}, bothCell, byText(func(n *live.NIC) string { return n.Hears })},
	{widget.Column{Name: "traffic", Keep: 65}, trafficCell, byText(func(n *live.NIC) string { return n.Traffic })},
	{widget.Column{Name: "flaps", Keep: 58, Right: true}, flapsCell, func(a, b *live.NIC) int { return cmp.Compare(a.Flaps, b.Flaps) }},
	{widget.Column{Name: "last outage", Keep: 70, Right: true}, outageCell, func(a, b *live.NIC) int { return cmp.Compare(a.Outage.Mid(), b.Outage.Mid()) }},
	{widget.Column{Name: "remark", Keep: 88, Width: 20, Grow: true}, remarkCell, nil},
}

// next is the column to sort by after another one, -1 after the last.
func next(sorted int) int {
	for i := sorted + 1; i < len(columns); i++ {
		if columns[i].compare != nil {
			return i
		}
	}
	return -1
}

// byText orders by a text, as people expect, and puts what has none last.
func byText(of func(*live.NIC) string) func(a, b *live.NIC) int {
	return func(a, b *live.NIC) int {
		x, y := of(a), of(b)
		if (x == "") != (y == "") {
			return cmp.Compare(y, x)
		}
		return natural.Compare(x, y)
	}
}

// byPower puts the weakest first, and what was never measured last.
func byPower(a, b *live.NIC) int {
	of := func(n *live.NIC) float64 {
		if n.RxAt.IsZero() {
			return math.Inf(1)
		}
		return float64(n.RxPower)
	}
	return cmp.Compare(of(a), of(b))
}

// rank is the order of carriers: trouble first.
func rank(n *live.NIC) int {
	switch {
	case !n.Watched:
		return 3
	case n.Carrier == live.CarrierDown:
		return 0
	case n.Carrier == live.CarrierUp:
		return 2
	}
	return 1
}

func none() widget.Value { return widget.V("-", canvas.Dim) }

func orNone(text string, role canvas.Role) widget.Value {
	if text == "" {
		return none()
	}
	return widget.V(text, role)
}

func nicCell(n *live.NIC, _ screen.Env) widget.Value { return widget.V(n.Name, canvas.Text) }

func carrierCell(n *live.NIC, e screen.Env) widget.Value {
	switch {
	case !n.Watched:
		return widget.V("? not watched", canvas.Stale)
	case n.Carrier == live.CarrierUp:
		return widget.V("● up", canvas.Good)
	case n.Carrier == live.CarrierDown:
		return widget.V("○ down", missed(n, e))
	}
	return widget.V("? unknown", canvas.Stale)
}

func sinceCell(n *live.NIC, e screen.Env) widget.Value {
	if !n.Watched || n.SinceAt.IsZero() {
		return none()
	}
	return widget.V(widget.Age(e.Now.Sub(n.SinceAt)), canvas.Text)
}

func stateCell(n *live.NIC, e screen.Env) widget.Value {
	switch n.State {
	case "up":
		return widget.V("up", canvas.Good)
	case "down":
		return widget.V("down", missed(n, e))
	}
	return orNone(n.State, canvas.Busy)
}

// missed is the role of a link that is down and of a power that is none: Bad if the NIC should
// get light, since its port is connected, and Dim if nothing is to be expected of it.
func missed(n *live.NIC, e screen.Env) canvas.Role {
	if n.Hears == "" {
		if sw := e.State.Switch(n.Rx.Switch); sw != nil {
			if _, connected := sw.Map.IngressOf(n.Rx.Port); !connected && !sw.MapStale(e.Now) {
				return canvas.Dim
			}
		}
	}
	return canvas.Bad
}

// dark reports whether a power is no light.
func dark(p ocs.DBm) bool { return !(p > ocs.NoLight) }

func powerCell(n *live.NIC, e screen.Env) widget.Value {
	if n.RxAt.IsZero() {
		return none()
	}
	v := widget.V("dark", missed(n, e))
	if !dark(n.RxPower) {
		v = widget.V(n.RxPower.String(), canvas.Light)
	}
	if powerStale(n, e) {
		v.Style.Role = canvas.Stale
		v.Text = "was " + v.Text
	}
	return v
}

// powerStale reports whether the power of a NIC may be another by now.
func powerStale(n *live.NIC, e screen.Env) bool {
	sw := e.State.Switch(n.Rx.Switch)
	if n.RxSource == "module" || sw == nil {
		return live.Stale(n.RxAt, time.Second, e.Now)
	}
	return sw.Status != live.Up || live.Stale(n.RxAt, sw.PowerEvery, e.Now)
}

// mapStale reports whether whom a NIC hears, and who hears it, may be others by now.
func mapStale(name string, e screen.Env) bool {
	sw := e.State.Switch(name)
	return sw == nil || sw.MapStale(e.Now)
}

func trailCell(*live.NIC, screen.Env) widget.Value {
	return widget.V("                        ", canvas.Text) // as wide as a trail may be: Over draws it
}

func hearsCell(n *live.NIC, e screen.Env) widget.Value { return partner(n.Hears, n.Rx.Switch, e) }

func heardByCell(n *live.NIC, e screen.Env) widget.Value { return partner(n.HeardBy, n.Tx.Switch, e) }

// bothCell says whom a NIC hears and who hears it: one name if that is the same.
func bothCell(n *live.NIC, e screen.Env) widget.Value {
	hears, by := hearsCell(n, e), heardByCell(n, e)
	role := hears.Style.Role
	if by.Style.Role == canvas.Stale {
		role = canvas.Stale
	}
	switch {
	case hears.Text == by.Text && n.Hears == "":
		return hears
	case hears.Text == by.Text:
		return widget.V("⇄ "+hears.Text, role)
	case n.HeardBy == "":
		return widget.V("← "+hears.Text, role)
	case n.Hears == "":
		return widget.V("→ "+by.Text, role)
	}
	return widget.V("← "+hears.Text+" → "+by.Text, role)
}

func partner(name, sw string, e screen.Env) widget.Value {
	v := orNone(name, canvas.Text)
	if mapStale(sw, e) {
		if v.Style.Role = canvas.Stale; name == "" {
			v.Text = "?"
		}
	}
	return v
}

func trafficCell(n *live.NIC, _ screen.Env) widget.Value {
	switch n.Traffic {
	case "flows":
		return widget.V("flows", canvas.Good)
	case "lost":
		return widget.V("✗ lost", canvas.Bad)
	case "late":
		return widget.V("late", canvas.Warn)
	}
	return orNone(n.Traffic, canvas.Text)
}

func flapsCell(n *live.NIC, _ screen.Env) widget.Value {
	if !n.Watched {
		return none()
	}
	return widget.V(strconv.Itoa(n.Flaps), canvas.Text)
}

func outageCell(n *live.NIC, _ screen.Env) widget.Value {
	if n.Outage == (timeline.Interval{}) {
		return none()
	}
	return widget.V(n.Outage.String(), canvas.Text)
}

func remarkCell(n *live.NIC, e screen.Env) widget.Value {
	return widget.V(remark(n, e), canvas.Warn)
}

// remark is what makes the rest of the row doubtful, in words; "" if nothing does.
func remark(n *live.NIC, e screen.Env) string {
	text := doubts(n, e)
	switch {
	case n.Watched:
		return text
	case text == "":
		return orUnknown(n.Why)
	}
	return text + "; " + orUnknown(n.Why)
}

// doubts are what is old, and why, in words; "" if nothing is.
func doubts(n *live.NIC, e screen.Env) string {
	var mem [3]string
	list := mem[:0]
	for i, name := range [...]string{n.Rx.Switch, n.Tx.Switch} {
		sw := e.State.Switch(name)
		if i == 1 && n.Tx.Switch == n.Rx.Switch || sw == nil {
			continue
		}
		switch {
		case sw.Status != live.Up:
			list = append(list, name+" is "+string(sw.Status))
		case sw.MapStale(e.Now):
			list = append(list, "circuits of "+name+" "+ageOf(sw.MapAt, e.Now))
		}
	}
	if !n.RxAt.IsZero() && powerStale(n, e) {
		list = append(list, "power "+widget.Age(e.Now.Sub(n.RxAt))+" old")
	}
	return strings.Join(list, "; ")
}

func ageOf(at, now time.Time) string {
	if at.IsZero() {
		return "never read"
	}
	return widget.Age(now.Sub(at)) + " old"
}
