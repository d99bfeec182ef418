package lab

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/ocslab/ocslab/internal/strictyaml"
	"github.com/ocslab/ocslab/ocs"
)

// ErrUnknown: the lab has nothing of that name. Test with errors.Is.
var ErrUnknown = errors.New("is not in the lab")

var validName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// checkName returns what is wrong with a name, if anything.
func checkName(name string) error {
	switch {
	case name == "":
		return errors.New("a name is empty")
	case !validName.MatchString(name):
		return fmt.Errorf("the name %.60q is not allowed: begin with a letter or digit, go on with letters, digits, '.', '_' and '-'", name)
	}
	return nil
}

// PortRef is a port of a switch of the lab, written "rail0/33". The zero
// PortRef is no port.
type PortRef struct {
	Switch string
	Port   ocs.Port
}

// ParsePortRef reads the text form. Whether the lab has the switch is not
// checked.
func ParsePortRef(text string) (PortRef, error) {
	// From the right, so that too many slashes are blamed on the name.
	slash := strings.LastIndexByte(text, '/')
	if slash < 0 {
		return PortRef{}, &textError{0, fmt.Sprintf("%.60q is not a port of a switch: want SWITCH/PORT, such as rail0/33", text)}
	}
	name, number := text[:slash], text[slash+1:]
	if err := checkName(name); err != nil {
		return PortRef{}, &textError{0, fmt.Sprintf("%.60q: %v", text, err)}
	}
	n, err := strconv.ParseUint(number, 10, 32)
	if err != nil || !ocs.Port(n).Valid() {
		return PortRef{}, &textError{slash + 1, fmt.Sprintf("%.60q: want a port from 1 to %d after the slash", text, ocs.MaxPort)}
	}
	return PortRef{name, ocs.Port(n)}, nil
}

// String returns the text form, or the empty text of the zero PortRef.
func (p PortRef) String() string {
	if p == (PortRef{}) {
		return ""
	}
	return p.Switch + "/" + p.Port.String()
}

// MarshalText returns the text form; it never fails.
func (p PortRef) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText reads the text form; see [ParsePortRef].
func (p *PortRef) UnmarshalText(text []byte) error {
	ref, err := ParsePortRef(string(text))
	if err == nil {
		*p = ref
	}
	return err
}

// textError is a problem at a byte of a text.
type textError struct {
	offset int
	msg    string
}

func (e *textError) Error() string   { return e.msg }
func (e *textError) TextOffset() int { return e.offset }

// Switch returns the switch of that name.
func (f *File) Switch(name string) (*Switch, bool) {
	for i := range f.Switches {
		if f.Switches[i].Name == name {
			return &f.Switches[i], true
		}
	}
	return nil, false
}

// unknownSwitch is an error that matches [ErrUnknown].
func (f *File) unknownSwitch(name string) error {
	known := make([]string, len(f.Switches))
	for i, s := range f.Switches {
		known[i] = s.Name
	}
	return fmt.Errorf("the switch %.60q %w%s", name, ErrUnknown, hint(name, known))
}

// hint helps with a name that is not known.
func hint(name string, known []string) string {
	const most = 8
	if near := strictyaml.DidYouMean(name, known); near != "" {
		return near
	}
	switch {
	case len(known) == 0:
		return ": it has none"
	case len(known) > most:
		return fmt.Sprintf(": it has %s and %d more", strings.Join(known[:most], ", "), len(known)-most)
	}
	return ": it has " + strings.Join(known, ", ")
}

// FullName returns "gpu1/ens1f0".
func (n *NIC) FullName() string { return n.Host + "/" + n.Name }

// NIC returns the NIC of that name: "gpu1/ens1f0", or "gpu1" if the host has
// only one. An error matches [ErrUnknown] unless the host has several.
func (f *File) NIC(name string) (*NIC, error) {
	host, _, full := strings.Cut(name, "/")
	var all, own []string
	var found *NIC
	for n := range f.nics {
		all = append(all, n.FullName())
		if n.FullName() == name {
			return n, nil
		}
		if n.Host == host {
			own, found = append(own, n.FullName()), n
		}
	}
	if len(own) > 0 {
		all = own
	}
	switch {
	case full || len(own) == 0:
		return nil, fmt.Errorf("the NIC %.60q %w%s", name, ErrUnknown, hint(name, all))
	case len(own) > 1:
		return nil, fmt.Errorf("the host %s has %d NICs: name one of %s", host, len(own), strings.Join(own, ", "))
	}
	return found, nil
}

// NICAt returns the NIC that sends into p and the NIC that receives from p;
// nil where there is none.
func (f *File) NICAt(p PortRef) (tx, rx *NIC) {
	for n := range f.nics {
		if n.Tx == p {
			tx = n
		}
		if n.Rx == p {
			rx = n
		}
	}
	return tx, rx
}

// nics yields every NIC.
func (f *File) nics(yield func(*NIC) bool) {
	for i := range f.Hosts {
		for j := range f.Hosts[i].NICs {
			if !yield(&f.Hosts[i].NICs[j]) {
				return
			}
		}
	}
}

// NICsOn returns the full names of the NICs whose light goes through one of
// ports, in the order of the file: those that a change of these ports affects.
func (f *File) NICsOn(switchName string, ports []ocs.Port) []string {
	var names []string
	for n := range f.nics {
		for _, p := range []PortRef{n.Tx, n.Rx} {
			if p.Switch == switchName && slices.Contains(ports, p.Port) {
				names = append(names, n.FullName())
				break
			}
		}
	}
	return names
}

// ProtectedPorts returns the ports of a switch that nobody may move, in
// ascending order.
func (f *File) ProtectedPorts(switchName string) []ocs.Port {
	var ports []ocs.Port
	for _, p := range f.Protect {
		if p.Switch == switchName {
			ports = append(ports, p.Port)
		}
	}
	slices.Sort(ports)
	return slices.Compact(ports)
}

// Link returns, by switch, the cross-connects that join two NICs both ways:
// from tx of a to rx of b, and from tx of b to rx of a. Each lies on the one
// switch that its two ends share; if there is none, that is an error.
func (f *File) Link(a, b string) (map[string]ocs.Map, error) {
	na, err := f.NIC(a)
	if err != nil {
		return nil, err
	}
	nb, err := f.NIC(b)
	if err != nil {
		return nil, err
	}
	if na == nb {
		return nil, fmt.Errorf("%s cannot be linked to itself", na.FullName())
	}
	link := map[string]ocs.Map{}
	for _, way := range [][2]*NIC{{na, nb}, {nb, na}} {
		tx, rx := way[0].Tx, way[1].Rx
		if tx.Switch != rx.Switch {
			return nil, fmt.Errorf("no switch joins %s to %s: one sends into %v, the other receives from %v",
				way[0].FullName(), way[1].FullName(), tx, rx)
		}
		one, err := ocs.NewMap(ocs.CrossConnect{Ingress: tx.Port, Egress: rx.Port})
		if err == nil {
			link[tx.Switch], err = link[tx.Switch].Plus(one)
		}
		if err != nil {
			return nil, fmt.Errorf("%s and %s: %w", na.FullName(), nb.FullName(), err)
		}
	}
	return link, nil
}

// Config returns the maps of a configuration by switch, with its links
// merged in. A switch that is not in the result is not part of the
// configuration. The error for a name that the lab does not have matches
// [ErrUnknown].
func (f *File) Config(name string) (map[string]ocs.Map, error) {
	c, ok := f.Configurations[name]
	if !ok {
		return nil, fmt.Errorf("the configuration %.60q %w%s", name, ErrUnknown, hint(name, f.ConfigNames()))
	}
	var errs []error
	merged := f.Expand(c, func(path string, _ bool, err error) {
		errs = append(errs, fmt.Errorf("configuration %s: %s: %w", name, path, err))
	})
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return merged, nil
}

// ConfigNames returns the names of all configurations in alphabetical order.
func (f *File) ConfigNames() []string { return slices.Sorted(maps.Keys(f.Configurations)) }

// Expand returns the maps of a configuration, which need not be in the file, by switch, with
// its links merged in. Each problem is told to fail, with its path within c, and whether it
// is in the key there rather than the value.
func (f *File) Expand(c Configuration, fail func(path string, key bool, err error)) map[string]ocs.Map {
	merged := map[string]ocs.Map{}
	type circuit struct {
		onSwitch string
		ocs.CrossConnect
	}
	from := map[circuit]string{} // by which path it was asked for first
	for _, name := range slices.Sorted(maps.Keys(c.Maps)) {
		path := strictyaml.Key("maps", name)
		if _, ok := f.Switch(name); !ok {
			fail(path, true, f.unknownSwitch(name))
			continue
		}
		merged[name] = c.Maps[name]
		for cc := range c.Maps[name].All() {
			from[circuit{name, cc}] = path
		}
	}
	for i, pair := range c.Links {
		path := strictyaml.Index("links", i)
		link, ok := f.linkOf(pair, path, fail)
		if !ok {
			continue
		}
		for name, m := range link {
			for cc := range m.All() {
				if rivals := merged[name].Rivals(cc); len(rivals) > 0 {
					fail(path, false, fmt.Errorf("%w (from %s)",
						&ocs.ConflictError{Want: cc, Have: rivals[0], Where: name}, from[circuit{name, rivals[0]}]))
					continue
				}
				if !merged[name].Has(cc) {
					from[circuit{name, cc}] = path
				}
				merged[name], _ = merged[name].Plus(ocs.MustMap(cc)) // has no rivals, so it fits
			}
		}
	}
	return merged
}

// linkOf returns the maps of a link at path, or tells fail why not.
func (f *File) linkOf(pair []string, path string, fail func(path string, key bool, err error)) (map[string]ocs.Map, bool) {
	if len(pair) != 2 {
		fail(path, false, fmt.Errorf("a link joins two NICs, found %d: want [NIC, NIC]", len(pair)))
		return nil, false
	}
	known := true
	for i, name := range pair {
		if _, err := f.NIC(name); err != nil {
			fail(strictyaml.Index(path, i), false, err)
			known = false
		}
	}
	if !known {
		return nil, false
	}
	link, err := f.Link(pair[0], pair[1])
	if err != nil {
		fail(path, false, err)
	}
	return link, err == nil
}
