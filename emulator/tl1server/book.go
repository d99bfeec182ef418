package tl1server

import (
	"encoding/json"
	"slices"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/wire/tl1"
)

// entry is a connection as the tables of Calient and Glimmerglass units have
// it, beside the cross-connects that the device holds.
type entry struct {
	Name   string   `json:"name"`
	From   ocs.Port `json:"from"` // input, 1 for the first
	To     ocs.Port `json:"to"`   // output, 1 for the first
	TwoWay bool     `json:"two_way,omitempty"`
	Owner  string   `json:"owner,omitempty"`
	Idle   bool     `json:"idle,omitempty"` // entered, not activated
}

// book is the table of connections. It is kept with the configuration of the
// device, so that it is as durable as that.
type book struct {
	Entries []entry `json:"tl1_connections"`
}

// ends are the cross-connects of an entry on a device with n inputs.
func (e *entry) ends(n ocs.Port) []ocs.CrossConnect {
	ccs := []ocs.CrossConnect{{Ingress: e.From, Egress: n + e.To}}
	if e.TwoWay && e.From != e.To {
		ccs = append(ccs, ocs.CrossConnect{Ingress: e.To, Egress: n + e.From})
	}
	return ccs
}

// uses reports whether two entries need the same input or output.
func (e *entry) uses(o *entry) bool {
	for _, a := range e.ends(0) {
		for _, b := range o.ends(0) {
			if a.Ingress == b.Ingress || a.Egress == b.Egress {
				return true
			}
		}
	}
	return false
}

// inputs is how many the device has.
func (ss *session) inputs() ocs.Port { return ocs.Port(ss.dev.Geometry().Ingress) }

// openBook reads the table, brings it in line with what the device holds, and returns a
// function that ends the work with it. What the table does not know was not made
// by this front end: it is a one-way connection of nobody's.
func (ss *session) openBook(name func(from, to ocs.Port) string) (b *book, done func()) {
	ss.srv.books.Lock()
	b = &book{}
	if json.Unmarshal([]byte(ss.dev.Notes()), b) != nil {
		*b = book{} // another front end's notes
	}
	n, m := ss.inputs(), ss.dev.CrossConnects()
	known := map[ocs.CrossConnect]bool{}
	b.Entries = slices.DeleteFunc(b.Entries, func(e entry) bool {
		if e.Idle {
			return false
		}
		ends := e.ends(n)
		if slices.ContainsFunc(ends, func(c ocs.CrossConnect) bool { return !m.Has(c) }) {
			return true
		}
		for _, c := range ends {
			known[c] = true
		}
		return false
	})
	for c := range m.All() {
		if !known[c] {
			b.Entries = append(b.Entries, entry{Name: name(c.Ingress, c.Egress-n), From: c.Ingress, To: c.Egress - n})
		}
	}
	slices.SortFunc(b.Entries, func(x, y entry) int { return int(x.From) - int(y.From) })
	return b, ss.srv.books.Unlock
}

// find returns the entry of that name, or nil.
func (b *book) find(name string) *entry {
	if i := slices.IndexFunc(b.Entries, func(e entry) bool { return e.Name == name }); i >= 0 {
		return &b.Entries[i]
	}
	return nil
}

// remove takes an entry out.
func (b *book) remove(name string) {
	b.Entries = slices.DeleteFunc(b.Entries, func(e entry) bool { return e.Name == name })
}

// commit carries out e together with the table.
func (ss *session) commit(b *book, e emulator.Edit) (emulator.Operation, error) {
	text, err := json.Marshal(b)
	if err != nil {
		return emulator.Operation{}, err
	}
	notes := string(text)
	e.Notes = &notes
	return ss.dev.Edit(ss.me, e)
}

// failing reports whether a connection is listed as failed.
func (ss *session) failing(e *entry) bool {
	n := ss.inputs()
	for _, f := range ss.dev.Personality().TL1.Fail {
		for _, c := range e.ends(n) {
			if p := ocs.Port(f); c.Ingress == p || c.Egress == p {
				return true
			}
		}
	}
	return false
}

// powerOr is the reading of a monitor, or none where there is none.
func (ss *session) powerOr(p ocs.Port, none string) string {
	if !ss.dev.HasMonitor(p) {
		return none
	}
	return decimal(float64(ss.dev.Power(p)))
}

func invalid(code tl1.Code, what, s string) *denial { return deny(code, "Invalid %s: %.40s", what, s) }
