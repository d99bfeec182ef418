// Package patch is the patch field of a switch: which ingress is joined to which egress, as
// a matrix that can be zoomed and panned, or as a list; and the place where circuits are
// connected and disconnected.
//
// What is shown is what the switch has said. Whatever is wished for leaves as a
// [screen.Propose]; nothing is sent from here.
package patch

import (
	"slices"
	"strings"

	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/tui/keymap"
	"github.com/ocslab/ocslab/tui/live"
	"github.com/ocslab/ocslab/tui/screen"
)

// Screen is the patch field. It is used by one goroutine.
type Screen struct {
	w, h   int
	name   string // of the switch chosen; "", or one that is gone, is the first
	asList bool
	all    bool // the list has all ports, not only those of NICs
	sort   int  // the column the list is in order of; none is by ingress, circuits first
	down   bool // the other way
	fields map[string]*field
}

// field is what the screen holds of one switch.
type field struct {
	at        place
	zoom      zoom
	top, left int // the first ingress and egress that are shown, counted from 0
	row       int // of the list: the first that is shown
	last      int // of the list: the row the cursor was in last, for when that goes away
	chosen    map[place]int
	count     int // how often something was chosen
}

// place is a pair of ports, or one port with 0 for the other: what the cursor is on, or what is
// selected.
type place struct{ in, out ocs.Port }

// port reports whether it is one port and no pair.
func (p place) port() bool { return p.in == 0 || p.out == 0 }

func (p place) circuit() ocs.CrossConnect { return ocs.CrossConnect{Ingress: p.in, Egress: p.out} }

func placeOf(c ocs.CrossConnect) place { return place{c.Ingress, c.Egress} }

var _ screen.Screen = (*Screen)(nil)

// New returns the screen as it begins: the first switch, as a matrix, as large as is of use.
func New() *Screen { return &Screen{sort: unsorted, fields: map[string]*field{}} }

// Name is the action that shows it.
func (s *Screen) Name() keymap.Action { return keymap.Screen1 }

// Where are the places whose keys mean something here.
func (s *Screen) Where() []keymap.Where { return []keymap.Where{keymap.InPatch, keymap.InLists} }

// Resize tells what there is to draw in.
func (s *Screen) Resize(w, h int) { s.w, s.h = w, h }

// Deselect clears the selections of all switches, and reports whether there was any.
func (s *Screen) Deselect() bool {
	any := false
	for _, f := range s.fields {
		any = any || len(f.chosen) > 0
		f.chosen = nil
	}
	return any
}

// Applied clears the selection of a switch, or, of a change that named NICs, of all that were
// changed.
func (s *Screen) Applied(p live.Preview) {
	names := []string{p.Wish.Switch}
	switch p.Wish.Verb {
	case live.Connect, live.Disconnect:
	case live.Link, live.Unlink:
		for _, x := range p.Parts {
			names = append(names, x.Switch)
		}
	default:
		return // proposed by no selection
	}
	for _, name := range names {
		if f := s.fields[name]; f != nil {
			f.chosen = nil
		}
	}
}

// choose makes a switch the one that is shown.
func (s *Screen) choose(name string) { s.name = name }

// keep returns what is held of a switch, for changing it.
func (s *Screen) keep(name string) *field {
	f := s.fields[name]
	if f == nil {
		f = &field{zoom: zoomAuto}
		s.fields[name] = f
	}
	return f
}

// Focus moves the cursor to a switch, a port, a NIC, or to what a reconfiguration changed.
func (s *Screen) Focus(subject string, e screen.Env) {
	if e.State == nil {
		return
	}
	if e.State.Switch(subject) != nil {
		s.choose(subject)
		return
	}
	if n := e.State.NIC(subject); n != nil {
		s.focusNIC(n, e)
		return
	}
	if number, ok := strings.CutPrefix(subject, "move/"); ok {
		s.focusMove(number, e)
		return
	}
	if p, err := lab.ParsePortRef(subject); err == nil && e.State.Switch(p.Switch) != nil {
		s.focusPort(p, e)
	}
}

// focusNIC goes to where the light of a NIC enters, or else to where it gets light.
func (s *Screen) focusNIC(n *live.NIC, e screen.Env) {
	for _, p := range []lab.PortRef{n.Tx, n.Rx} {
		if e.State.Switch(p.Switch) != nil {
			s.focusPort(p, e)
			return
		}
	}
}

// focusPort goes to the circuit of a port; where there is none, into its row or column. A
// cursor that is on the port already stays.
func (s *Screen) focusPort(p lab.PortRef, e screen.Env) {
	before := s.name
	s.choose(p.Switch)
	v := s.look(e)
	if v.f.at.in == p.Port || v.f.at.out == p.Port {
		return
	}
	ccs := v.sw.Map.At(p.Port)
	switch {
	case len(ccs) > 0:
		s.move(v, placeOf(ccs[0]))
	case v.ins.index(p.Port) >= 0:
		s.move(v, place{p.Port, v.f.at.out})
	case v.outs.index(p.Port) >= 0:
		s.move(v, place{v.f.at.in, p.Port})
	default:
		s.choose(before)
	}
}

// focusMove goes to the first circuit that a reconfiguration has made, or removed.
func (s *Screen) focusMove(number string, e screen.Env) {
	for _, m := range e.State.Moves {
		if itoa(m.Number) != number {
			continue
		}
		for _, sw := range e.State.Switches {
			change := m.Reports[sw.Name].Change
			for _, part := range []ocs.Map{change.Add, change.Remove} {
				for c := range part.All() {
					s.choose(sw.Name)
					s.move(s.look(e), placeOf(c))
					return
				}
			}
		}
		return
	}
}

// Subject is the port the cursor is on, the ingress of a pair, as "rail0/33"; of a switch without
// ports the switch; "" if there is no switch.
func (s *Screen) Subject(e screen.Env) string {
	v := s.look(e)
	switch {
	case v.sw == nil:
		return ""
	case v.f.at == place{}:
		return v.sw.Name
	case v.f.at.in != 0:
		return lab.PortRef{Switch: v.sw.Name, Port: v.f.at.in}.String()
	}
	return lab.PortRef{Switch: v.sw.Name, Port: v.f.at.out}.String()
}

// Copy is the selected circuits and ports, or what the cursor is on, a line each, as the list
// has them, with tabs between.
func (s *Screen) Copy(e screen.Env) string {
	v := s.look(e)
	if v.sw == nil || v.f.at == (place{}) {
		return ""
	}
	places := v.selection()
	if len(places) == 0 {
		places = []place{v.f.at}
	}
	lines := make([]string, len(places))
	for i, p := range places {
		lines[i] = v.line(p)
	}
	return strings.Join(lines, "\n")
}

// Status says where one is: "1>33, 14 circuits, 2 selected".
func (s *Screen) Status(e screen.Env) string {
	v := s.look(e)
	if v.sw == nil {
		return "no switch"
	}
	var parts []string
	if s.asList {
		parts = append(parts, itoa(min(s.rowAt(v, v.rows)+1, len(v.rows)))+" of "+itoa(len(v.rows)))
	} else if v.f.at != (place{}) {
		parts = append(parts, v.f.at.String(), s.layout(v, s.w, s.h).about())
	}
	parts = append(parts, count(v.sw.Map.Len(), "circuit"))
	if n := len(v.f.chosen); n > 0 {
		parts = append(parts, itoa(n)+" selected")
	}
	return strings.Join(parts, ", ")
}

// String returns "1>33", "ingress 1" or "egress 33".
func (p place) String() string {
	switch {
	case p == place{}:
		return ""
	case p.out == 0:
		return "ingress " + p.in.String()
	case p.in == 0:
		return "egress " + p.out.String()
	}
	return p.circuit().String()
}

// selection returns what is selected of the switch, in ascending order.
func (v *view) selection() []place {
	places := make([]place, 0, len(v.f.chosen))
	for p := range v.f.chosen {
		places = append(places, p)
	}
	slices.SortFunc(places, comparePlaces)
	return places
}
