package lab

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/emulator/ocstrx"
	"github.com/ocslab/ocslab/internal/strictyaml"
	"github.com/ocslab/ocslab/ocs"
)

// Cable joins a fibre of a board of transceivers to a fibre of another, module by module and
// lane by lane, both ways.
type Cable struct {
	A    FibreRef `yaml:"a,required"`
	B    FibreRef `yaml:"b,required"`
	Loss float64  `yaml:"loss_db,inf"` // of each fibre, dB, 0 to emulator.MaxExtraLoss or infinity
	// Emulate says what is really there, where that is not what the lab file says. Only the
	// emulation reads it.
	Emulate *CableEmulate `yaml:"emulate"`
	Pos     Pos           `yaml:"-,pos"`
}

// CableEmulate is where the ends of an emulated cable really are: what a tool that checks the
// cabling is to find.
type CableEmulate struct {
	A    FibreRef `yaml:"a"` // zero: where the lab file says
	B    FibreRef `yaml:"b"`
	Dead bool     `yaml:"dead"` // no light passes it
}

// FibreRef is one of the two fibres of a board of transceivers, written "n06-r/1": fibre 1
// of all of its modules, or 2. The zero FibreRef is none.
type FibreRef struct {
	Switch string
	Fibre  int // 1 or 2
}

// String returns the text form, or the empty text of the zero FibreRef.
func (r FibreRef) String() string {
	if r == (FibreRef{}) {
		return ""
	}
	return r.Switch + "/" + strconv.Itoa(r.Fibre)
}

// MarshalText returns the text form; it never fails.
func (r FibreRef) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads the text form. Whether the lab has the switch is not checked.
func (r *FibreRef) UnmarshalText(text []byte) error {
	s := string(text)
	slash := strings.LastIndexByte(s, '/')
	if slash < 0 {
		return &textError{0, fmt.Sprintf("%.60q is not a fibre of a switch: want SWITCH/1 or SWITCH/2", s)}
	}
	name, number := s[:slash], s[slash+1:]
	if err := checkName(name); err != nil {
		return &textError{0, fmt.Sprintf("%.60q: %v", s, err)}
	}
	if number != "1" && number != "2" {
		return &textError{slash + 1, fmt.Sprintf("%.60q: transceivers have the fibres 1 and 2, want one of them after the slash", s)}
	}
	*r = FibreRef{name, int(number[0] - '0')}
	return nil
}

// real returns where the ends are when it is emulated, and the loss.
func (c *Cable) real() (a, b FibreRef, loss ocs.DB) {
	a, b, loss = c.A, c.B, ocs.DB(c.Loss)
	if e := c.Emulate; e != nil {
		if e.A != (FibreRef{}) {
			a = e.A
		}
		if e.B != (FibreRef{}) {
			b = e.B
		}
		if e.Dead {
			loss = ocs.DB(math.Inf(1))
		}
	}
	return a, b, loss
}

// Far returns the other end of the cable at a fibre, as the lab file says, and its loss.
func (f *File) Far(end FibreRef) (far FibreRef, loss ocs.DB, ok bool) {
	for _, c := range f.Cables {
		switch end {
		case c.A:
			return c.B, ocs.DB(c.Loss), true
		case c.B:
			return c.A, ocs.DB(c.Loss), true
		}
	}
	return FibreRef{}, 0, false
}

// cables checks the cables.
func (c *checker) cables() {
	seen, really := map[FibreRef]string{}, map[FibreRef]realEnd{}
	for i := range c.f.Cables {
		cable, path := &c.f.Cables[i], strictyaml.Index("cables", i)
		known := c.end(path+".a", cable.A, seen)
		known = c.end(path+".b", cable.B, seen) && known
		if known && cable.A.Switch == cable.B.Switch {
			c.value(path, "the cable leads from %s to itself: a cable joins two boards", cable.A.Switch)
		} else if known {
			c.alike(path, cable.A, cable.B)
		}
		c.loss(path+".loss_db", cable.Loss)
		c.reallyAt(path, cable, really)
	}
}

// end checks the fibre at one end of a cable, which is none of seen.
func (c *checker) end(path string, r FibreRef, seen map[FibreRef]string) bool {
	s, ok := c.f.Switch(r.Switch)
	switch {
	case !ok:
		c.value(path, "%w", c.f.unknownSwitch(r.Switch))
	case c.modules(s) < 0:
		c.value(path, "%s is no board of transceivers, and cables join these: fibres of a NIC go with hosts", r.Switch)
		ok = false
	case seen[r] != "":
		c.value(path, "%v has a cable on line %d: a fibre has one", r, c.at.Value(seen[r]).Line)
		ok = false
	default:
		seen[r] = path
	}
	return ok
}

// alike checks that boards have as many modules.
func (c *checker) alike(path string, a, b FibreRef) {
	sa, _ := c.f.Switch(a.Switch)
	sb, _ := c.f.Switch(b.Switch)
	if na, nb := c.modules(sa), c.modules(sb); na > 0 && nb > 0 && na != nb {
		c.value(path, "%s has %d modules and %s has %d: a cable joins boards with as many, module by module",
			a.Switch, na, b.Switch, nb)
	}
}

// modules returns how many modules a switch has: -1 if it is no board of transceivers, 0 if
// that cannot be known here, as of a real one, or of a model in a file.
func (c *checker) modules(s *Switch) int {
	scheme, _, _ := strings.Cut(s.URL, "://")
	switch {
	case s.URL != "" && scheme != string(OCSTrx) && !strings.HasPrefix(scheme, "ocstrx+"),
		s.Emulate != nil && slices.Contains(emulator.Models(), s.Emulate.Model):
		return -1
	case s.Emulate == nil:
		return 0
	}
	model := s.Emulate.Model
	if n, known := c.boards[model]; known {
		return n
	}
	n := 0
	if slices.Contains(ocstrx.Models(), model) {
		if p, err := ocstrx.LoadPersonality(model); err == nil {
			n = p.Modules
		}
	}
	if c.boards == nil {
		c.boards = map[string]int{}
	}
	c.boards[model] = n
	return n
}

// realEnd is where the end of a cable is when it is emulated.
type realEnd struct {
	path  string // of what says so
	moved bool   // it is not where the lab file claims
}

// reallyAt checks where the ends of a cable at path are when it is emulated, which is none of
// seen.
func (c *checker) reallyAt(path string, cable *Cable, seen map[FibreRef]realEnd) {
	a, b, _ := cable.real()
	for _, end := range []struct {
		key         string
		claimed, at FibreRef
	}{{"a", cable.A, a}, {"b", cable.B, b}} {
		this := realEnd{path + "." + end.key, end.at != end.claimed}
		if this.moved {
			this.path = path + ".emulate." + end.key
			if _, ok := c.f.Switch(end.at.Switch); !ok {
				c.value(this.path, "%w", c.f.unknownSwitch(end.at.Switch))
				continue
			}
		}
		other, taken := seen[end.at]
		if !taken {
			seen[end.at] = this
			continue
		}
		if !this.moved {
			this, other = other, this
		}
		if this.moved { // else it is reported where both claim it
			c.value(this.path, "two cables really end at %v, the other one on line %d: a fibre has one, so say where that is, too",
				end.at, c.at.Value(other.path).Line)
		}
	}
	if a.Switch == b.Switch && cable.A.Switch != cable.B.Switch {
		c.value(path+".emulate", "the cable really leads from %s to itself: a cable joins two boards", a.Switch)
	}
}

// Cabling joins the emulated boards of a lab as its cables really are, while they are there. It
// is safe for concurrent use.
type Cabling struct {
	f *File

	mu     sync.Mutex // guards what follows
	boards map[string]*ocstrx.Board
	cuts   map[*Cable]func()
}

// Cabling returns the cables of a lab with nothing at their ends. See [Emulation.Cabling].
func (f *File) Cabling() *Cabling {
	return &Cabling{f: f, boards: map[string]*ocstrx.Board{}, cuts: map[*Cable]func(){}}
}

// plug joins a board to those that are there.
func (c *Cabling) plug(name string, board *ocstrx.Board) error {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.boards[name] = board
	for i := range c.f.Cables {
		cable := &c.f.Cables[i]
		a, b, loss := cable.real()
		if a.Switch != name && b.Switch != name || c.boards[a.Switch] == nil || c.boards[b.Switch] == nil {
			continue
		}
		cut, err := ocstrx.JoinBoards(c.boards[a.Switch], a.Fibre-1, c.boards[b.Switch], b.Fibre-1, loss)
		if err != nil {
			c.unplugLocked(name)
			return fmt.Errorf("lab file, line %d: %w", cable.Pos.Line, err)
		}
		c.cuts[cable] = cut
	}
	return nil
}

// unplug takes a board away.
func (c *Cabling) unplug(name string) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unplugLocked(name)
}

func (c *Cabling) unplugLocked(name string) {
	for cable, cut := range c.cuts {
		if a, b, _ := cable.real(); a.Switch == name || b.Switch == name {
			cut()
			delete(c.cuts, cable)
		}
	}
	delete(c.boards, name)
}

// CutCable takes the emulated cable away that really ends at a fibre: both fibres are dark from then on, until a
// board at one of them is emulated anew. The error matches [ErrUnknown] where there is none with a board at both
// ends.
func (l *Lab) CutCable(end FibreRef) error {
	c := l.cabling
	c.mu.Lock()
	defer c.mu.Unlock()
	for cable, cut := range c.cuts {
		if a, b, _ := cable.real(); a == end || b == end {
			cut()
			delete(c.cuts, cable)
			return nil
		}
	}
	return fmt.Errorf("an emulated cable at %v %w", end, ErrUnknown)
}

// yaml writes the cable in one line.
func (c *Cable) yaml() string {
	text := fmt.Sprintf("a: %q, b: %q", c.A.String(), c.B.String())
	if c.Loss != 0 {
		text += ", loss_db: " + lossText(c.Loss)
	}
	e := c.Emulate
	if e == nil {
		return "{" + text + "}"
	}
	var list []string
	if e.A != (FibreRef{}) {
		list = append(list, fmt.Sprintf("a: %q", e.A.String()))
	}
	if e.B != (FibreRef{}) {
		list = append(list, fmt.Sprintf("b: %q", e.B.String()))
	}
	if e.Dead {
		list = append(list, "dead: true")
	}
	return "{" + text + ", emulate: {" + strings.Join(list, ", ") + "}}"
}

// SetPower takes power from an emulated board of transceivers, or gives it back: see
// [ocstrx.Board.SetPower]. A matrix is an error that matches [ocs.ErrNotSupported].
func (e *Emulated) SetPower(on bool) error {
	if e.Board == nil {
		return fmt.Errorf("emulated switch %s: power is taken from boards of transceivers only: %w", e.Name(), ocs.ErrNotSupported)
	}
	e.Board.SetPower(on)
	return nil
}
