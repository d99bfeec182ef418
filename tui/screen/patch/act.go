package patch

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/tui/filter"
	"github.com/ocslab/ocslab/tui/keymap"
	"github.com/ocslab/ocslab/tui/live"
	"github.com/ocslab/ocslab/tui/screen"
)

// Do carries out an action.
func (s *Screen) Do(act keymap.Action, e screen.Env) []screen.Request {
	v := s.look(e)
	if v.sw == nil {
		return nil
	}
	switch act {
	case keymap.NextSwitch:
		s.step(v, 1)
	case keymap.PrevSwitch:
		s.step(v, -1)
	case keymap.View:
		s.turn(v)
	case keymap.Sort:
		s.sortByNext()
	case keymap.Reverse:
		s.down = !s.down
	case keymap.All:
		s.all = s.all != s.asList
	case keymap.ZoomIn, keymap.ZoomOut, keymap.ZoomFit:
		s.doZoom(act, v)
	case keymap.GoTo:
		return s.askWhere(e)
	}
	if v.f.at == (place{}) { // a switch without ports
		return nil
	}
	switch act {
	case keymap.Up, keymap.Down, keymap.Left, keymap.Right, keymap.PageUp, keymap.PageDown, keymap.Home, keymap.End:
		if s.asList {
			s.moveInList(act, v)
		} else {
			s.moveInMatrix(act, v)
		}
	case keymap.Select:
		s.toggle(v, v.f.at)
	case keymap.SelectAll:
		s.selectAll(v)
	case keymap.Enter:
		return s.enter(v)
	case keymap.Connect:
		return v.connect()
	case keymap.Disconnect:
		return v.disconnect()
	case keymap.Link:
		return v.link()
	case keymap.Unlink:
		return v.unlink()
	}
	return nil
}

// turn shows the list in place of the matrix, or the other way, with the cursor on the same.
func (s *Screen) turn(v *view) {
	s.asList = !s.asList
	if v.f.at != (place{}) {
		s.move(v, v.f.at)
	}
}

// step chooses the next switch, or the one before, around the end.
func (s *Screen) step(v *view, by int) {
	all := v.e.State.Switches
	i := slices.Index(all, v.sw)
	s.choose(all[(i+by+len(all))%len(all)].Name)
}

// move puts the cursor on a place, and moves the window that is seen no further than it has to.
func (s *Screen) move(v *view, to place) {
	f := s.keep(v.sw.Name)
	if !s.asList { // the window that is drawn follows the cursor, the one that is held need not have
		l := s.layout(v, s.w, s.h)
		f.top, f.left = l.top, l.left
	}
	f.at = v.inside(to)
	v.f = *f
	if !s.asList {
		l := s.layout(v, s.w, s.h)
		f.top, f.left = l.top, l.left
		v.f = *f
	}
}

// moveInMatrix moves by one port, a window, or to an end. Left of the first column is the number
// of the row, above the first row that of the column.
func (s *Screen) moveInMatrix(act keymap.Action, v *view) {
	l := s.layout(v, s.w, s.h)
	row, col := v.ins.index(v.f.at.in), v.outs.index(v.f.at.out)
	page := max(1, l.rows-1)
	onNumber := row < 0 || col < 0
	switch act {
	case keymap.Up:
		row = max(row-1, -1)
		if col < 0 {
			row = max(row, 0)
		}
	case keymap.Left:
		col = max(col-1, -1)
		if row < 0 {
			col = max(col, 0)
		}
	case keymap.Down:
		if row++; row == 0 && onNumber {
			row = l.top
		}
	case keymap.Right:
		if col++; col == 0 && onNumber {
			col = l.left
		}
	case keymap.PageUp:
		if row >= 0 {
			row = max(row-page, 0)
		}
	case keymap.PageDown:
		if row >= 0 {
			row += page
		}
	case keymap.Home:
		if col <= 0 {
			row = min(row, 0)
		}
		col = min(col, 0)
	case keymap.End:
		if col < 0 || col == v.outs.n-1 && row >= 0 {
			row = v.ins.n - 1
		}
		if col >= 0 {
			col = v.outs.n - 1
		}
	}
	s.moveTo(v, row, col)
}

// moveTo puts the cursor on a row and a column, of which one may be -1 for its number.
func (s *Screen) moveTo(v *view, row, col int) {
	var to place
	if row = min(row, v.ins.n-1); row >= 0 {
		to.in = v.ins.at(row)
	}
	if col = min(col, v.outs.n-1); col >= 0 {
		to.out = v.outs.at(col)
	}
	if to != (place{}) {
		s.move(v, to)
	}
}

// doZoom goes one level up or down, and keeps the cursor where it is on the screen.
func (s *Screen) doZoom(act keymap.Action, v *view) {
	if s.asList || v.f.at == (place{}) {
		return
	}
	before := s.layout(v, s.w, s.h)
	f := s.keep(v.sw.Name)
	switch act {
	case keymap.ZoomFit:
		f.zoom = zoomFit
	case keymap.ZoomIn:
		f.zoom = min(before.level+1, zoomDetail)
	case keymap.ZoomOut:
		if before.all && before.level < zoomCells { // smaller would only show less
			return
		}
		f.zoom = max(before.level-1, 0)
	}
	v.f.zoom = f.zoom
	after := s.layout(v, s.w, s.h)
	f.top = around(v.ins.index(v.f.at.in), before.top, before.perY, after.perY)
	f.left = around(v.outs.index(v.f.at.out), before.left, before.perX*after.cw, after.perX*before.cw)
	v.f.top, v.f.left = f.top, f.left
	s.move(v, v.f.at)
}

// around returns the first port to show so that the port at i stays as far from the edge on the
// screen as it was, when was ports took the room that now ports take.
func around(i, first, was, now int) int {
	if i < 0 {
		return first
	}
	return max(0, i-(i-first)*now/max(was, 1))
}

// toggle selects a place, or not.
func (s *Screen) toggle(v *view, p place) {
	f := s.keep(v.sw.Name)
	if _, on := f.chosen[p]; on {
		delete(f.chosen, p)
		return
	}
	if f.chosen == nil {
		f.chosen = map[place]int{}
	}
	f.count++
	f.chosen[p] = f.count
}

// selectAll selects what the list shows, in the matrix all circuits that the filter lets
// through; or nothing, if all of that is selected.
func (s *Screen) selectAll(v *view) {
	places := s.rows(v)
	if !s.asList {
		places = slices.DeleteFunc(places, place.port)
	}
	some := func(p place) bool { _, on := v.f.chosen[p]; return !on }
	if !slices.ContainsFunc(places, some) {
		s.keep(v.sw.Name).chosen = nil
		return
	}
	for _, p := range places {
		if _, on := s.keep(v.sw.Name).chosen[p]; !on {
			s.toggle(v, p)
		}
	}
}

// intent is what enter does where the cursor is.
type intent struct {
	words  string
	cli    string // the command that does the same
	wish   *live.Wish
	refuse string // why it does nothing
	to     place  // where the cursor goes
	choose bool   // the place is selected
}

// intent finds out what enter would do. The pane tells it, and enter does it.
func (v *view) intent() intent {
	at := v.f.at
	if c, ok := v.circuitAt(at); ok {
		if !at.port() {
			return v.toDisconnect(c)
		}
		return intent{words: "go to " + c.String(), to: placeOf(c)}
	}
	if !at.port() {
		return v.toConnect(at.circuit())
	}
	if other, ok := v.counterpart(at); ok {
		return v.toConnect(ocs.CrossConnect{Ingress: at.in + other.in, Egress: at.out + other.out})
	}
	if _, on := v.f.chosen[at]; on {
		return intent{words: "select " + at.String() + " no more", choose: true}
	}
	role := "an egress"
	if at.in == 0 {
		role = "an ingress"
	}
	return intent{words: "select " + at.String() + "; then enter on " + role + " connects them", choose: true}
}

// counterpart is the one free port that is selected, if it is of the other side.
func (v *view) counterpart(at place) (place, bool) {
	if len(v.f.chosen) != 1 {
		return place{}, false
	}
	for p := range v.f.chosen {
		if p.port() && (p.in == 0) != (at.in == 0) {
			return p, true
		}
	}
	return place{}, false
}

func (v *view) toDisconnect(c ocs.CrossConnect) intent {
	port := v.releases(c)
	words := "disconnect " + c.String()
	if change, err := ocs.PlanDisconnect(v.sw.Map, port); err == nil && change.Remove.Len() > 1 {
		words = "disconnect " + change.Remove.String()
	}
	if n := v.receiver(c.Egress); n != nil {
		words += ": " + n.Name + " gets no light any more"
	}
	w := v.release(port)
	return intent{words: words, cli: v.e.State.Command("disconnect", v.sw.Name, ocs.FormatPorts(w.Ports)), wish: &w}
}

func (v *view) toConnect(c ocs.CrossConnect) intent {
	m, err := v.mapOf(c)
	if err != nil {
		return intent{words: "nothing: " + plain(err), refuse: plain(err)}
	}
	words := "connect " + c.String()
	if way := v.inTheWay(c); len(way) > 0 {
		words += ", for which " + joined(way) + " would have to go: m in the preview allows that"
	} else if n := v.receiver(c.Egress); n != nil {
		words += ": " + n.Name + " gets this light"
	}
	return intent{words: words, cli: v.e.State.Command("connect", v.sw.Name, m.String()), wish: &live.Wish{Verb: live.Connect, Switch: v.sw.Name, Map: m}}
}

// mapOf is the map of circuits that the switch could hold, or why it could not.
func (v *view) mapOf(ccs ...ocs.CrossConnect) (ocs.Map, error) {
	for _, c := range ccs {
		switch {
		case v.g.SingleSided && c.Ingress == c.Egress:
			return ocs.Map{}, fmt.Errorf("%v: a port cannot be joined to itself", c)
		case v.g.IsIngress(c.Ingress) && v.g.IsEgress(c.Egress) && !v.g.Reaches(c.Ingress, c.Egress):
			return ocs.Map{}, fmt.Errorf("%v: light from %d cannot be sent to %d", c, c.Ingress, c.Egress)
		}
	}
	m, err := ocs.NewMap(ccs...)
	if err == nil {
		err = v.g.Check(m)
	}
	return m, err
}

// plain is an error without the name of the package.
func plain(err error) string { return strings.TrimPrefix(err.Error(), "ocs: ") }

func joined(ccs []ocs.CrossConnect) string {
	words := make([]string, len(ccs))
	for i, c := range ccs {
		words[i] = c.String()
	}
	return strings.Join(words, " and ")
}

func (v *view) release(ports ...ocs.Port) live.Wish {
	return live.Wish{Verb: live.Disconnect, Switch: v.sw.Name, Ports: ports}
}

// enter does what the pane says.
func (s *Screen) enter(v *view) []screen.Request {
	i := v.intent()
	switch {
	case i.refuse != "":
		return refused(i.refuse)
	case i.wish != nil:
		return propose(*i.wish)
	case i.choose:
		s.toggle(v, v.f.at)
	default:
		s.move(v, i.to)
	}
	return nil
}

func propose(w live.Wish) []screen.Request { return []screen.Request{screen.Propose{Wish: w}} }

func refused(text string) []screen.Request {
	return []screen.Request{screen.Say{Text: text, Bad: true}}
}

// connect proposes the pairs and ports that are selected, or the pair under the cursor.
func (v *view) connect() []screen.Request {
	ccs, err := v.pairsToConnect()
	if err != nil {
		return refused(err.Error())
	}
	m, err := v.mapOf(ccs...)
	if err != nil {
		return refused(plain(err))
	}
	if m.Minus(v.sw.Map).Len() == 0 {
		return []screen.Request{screen.Say{Text: m.String() + ": connected already"}}
	}
	return propose(live.Wish{Verb: live.Connect, Switch: v.sw.Name, Map: m})
}

var (
	errPair    = errors.New("a pair is needed: move to one, or select an ingress and an egress port")
	errUnequal = errors.New("as many egress as ingress ports have to be selected")
)

// pairsToConnect is what the selection comes to. Ports that are selected by themselves are
// paired in the order they were selected in.
func (v *view) pairsToConnect() ([]ocs.CrossConnect, error) {
	if len(v.f.chosen) == 0 {
		if v.f.at.port() {
			return nil, errPair
		}
		return []ocs.CrossConnect{v.f.at.circuit()}, nil
	}
	places := v.selection()
	slices.SortStableFunc(places, func(a, b place) int { return v.f.chosen[a] - v.f.chosen[b] })
	var ccs []ocs.CrossConnect
	var ins, outs []ocs.Port
	for _, p := range places {
		switch {
		case !p.port():
			ccs = append(ccs, p.circuit())
		case p.in != 0:
			ins = append(ins, p.in)
		default:
			outs = append(outs, p.out)
		}
	}
	if v.g.SingleSided && len(outs) == 0 && len(ins) == 2 { // either may be either end
		ins, outs = ins[:1], ins[1:]
	}
	if len(ins) != len(outs) {
		return nil, errUnequal
	}
	for i := range ins {
		ccs = append(ccs, ocs.CrossConnect{Ingress: ins[i], Egress: outs[i]})
	}
	return ccs, nil
}

// disconnect proposes to remove the circuits that are selected, or the one under the cursor.
func (v *view) disconnect() []screen.Request {
	places := v.selection()
	if len(places) == 0 {
		places = []place{v.f.at}
	}
	var ports []ocs.Port
	for _, p := range places {
		if c, ok := v.circuitAt(p); ok {
			ports = append(ports, v.releases(c))
		}
	}
	slices.Sort(ports)
	if ports = slices.Compact(ports); len(ports) == 0 {
		if len(v.f.chosen) > 0 {
			return refused("nothing that is selected is connected")
		}
		return refused(v.f.at.String() + ": not connected")
	}
	return propose(v.release(ports...))
}

// link proposes to join two NICs: those of what is selected, or of the pair under the cursor.
func (v *view) link() []screen.Request {
	nics := v.nics()
	if len(nics) != 2 {
		return refused("two NICs have to be selected, by their ports; these are " + itoa(len(nics)))
	}
	return propose(live.Wish{Verb: live.Link, NICs: nics})
}

func (v *view) unlink() []screen.Request {
	nics := v.nics()
	if len(nics) == 0 {
		return refused("there is no NIC here")
	}
	return propose(live.Wish{Verb: live.Unlink, NICs: nics})
}

// nics are the full names of the NICs at what is selected, or under the cursor, each once.
func (v *view) nics() []string {
	places := v.selection()
	if len(places) == 0 {
		places = []place{v.f.at}
	}
	var names []string
	add := func(n *live.NIC) {
		if n != nil && !slices.Contains(names, n.Name) {
			names = append(names, n.Name)
		}
	}
	for _, p := range places {
		add(v.sender(p.in))
		add(v.receiver(p.out))
	}
	return names
}

// askWhere asks for a port or a NIC to go to.
func (s *Screen) askWhere(e screen.Env) []screen.Request {
	return []screen.Request{screen.Ask{
		Title: "go to port or NIC: 12, 12>40, gpu1",
		Then:  func(answer string) []screen.Request { return s.goTo(strings.TrimSpace(answer), e) },
	}}
}

// goTo moves the cursor to what was typed, or says that there is no such thing.
func (s *Screen) goTo(text string, e screen.Env) []screen.Request {
	v := s.look(e)
	if text == "" || v.sw == nil {
		return nil
	}
	if m, err := ocs.ParseMap(text); err == nil && m.Len() == 1 {
		p := placeOf(m.Slice()[0])
		if v.ins.index(p.in) < 0 || v.outs.index(p.out) < 0 {
			return refused(v.sw.Name + " has no " + text)
		}
		s.move(v, p)
		return nil
	}
	if ports, err := ocs.ParsePorts(text); err == nil && len(ports) == 1 {
		if v.ins.index(ports[0]) < 0 && v.outs.index(ports[0]) < 0 {
			return refused(v.sw.Name + " has no port " + text)
		}
		s.focusPort(lab.PortRef{Switch: v.sw.Name, Port: ports[0]}, e)
		return nil
	}
	if p, err := lab.ParsePortRef(text); err == nil {
		if sw := e.State.Switch(p.Switch); sw != nil {
			if g := sw.Identity.Geometry; !g.Has(p.Port) {
				return refused(p.Switch + " has no port " + p.Port.String())
			}
			s.focusPort(p, e)
			return nil
		}
	}
	return s.goToName(text, v)
}

// goToName goes to the NIC, or the port with the label, that is most like a text.
func (s *Screen) goToName(text string, v *view) []screen.Request {
	pattern := strings.ToLower(text)
	best, to := 0, lab.PortRef{}
	for _, n := range v.e.State.NICs {
		for _, p := range []lab.PortRef{n.Tx, n.Rx} {
			if score, ok := filter.Score(strings.ToLower(n.Name), pattern); ok && v.e.State.Switch(p.Switch) != nil {
				if p.Switch == v.sw.Name {
					score += 500
				}
				if to == (lab.PortRef{}) || score > best {
					best, to = score, p
				}
			}
		}
	}
	for p, label := range v.sw.Labels {
		score, ok := filter.Score(strings.ToLower(label), pattern)
		if ok && (to == (lab.PortRef{}) || score > best || score == best && to.Switch == v.sw.Name && p < to.Port) {
			best, to = score, lab.PortRef{Switch: v.sw.Name, Port: p}
		}
	}
	if to == (lab.PortRef{}) {
		return refused("no port, NIC or label like " + text)
	}
	s.focusPort(to, v.e)
	return nil
}
