package railx

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ocslab/ocslab/internal/strictyaml"
	"github.com/ocslab/ocslab/topology/hamilton"
)

// Kind is what a logical dimension joins its nodes to.
type Kind byte

// The kinds.
const (
	// Torus has the same ring, from each node to the next, on every rail.
	Torus Kind = iota
	// AllToAll has the rings of a decomposition, one on each rail: of s nodes every two are joined by two links, which
	// takes s-1 rails. More rails repeat the rings in order.
	AllToAll
	// Expander has as many rings of a decomposition as there are rails, fewer than all-to-all takes: those with the
	// largest spectral gap. Beyond the paper.
	Expander
	// Global joins the columns of a Dragonfly: the rings of a decomposition of all columns are spread over the rails of
	// all rows, so that each two columns have two links at least, at different rows. In X only.
	Global
	// Dark has no rails and no links: a coordinate that matters only to the others, while these have all rails. So all of a
	// dimension can be given now to one kind of parallelism and now to another (RailX, section 5.2 and appendix A.4).
	Dark
)

var kindNames = []string{"torus", "a2a", "expander", "global", "dark"}

// String returns the word for it in a shape: "torus", "a2a", "expander", "global", "dark".
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("kind %d", k)
}

// Logical is a logical dimension: what some rails of a physical dimension are used for.
type Logical struct {
	Size  int // nodes of each of its rings; 0 is whatever the others leave
	Kind  Kind
	Rails int // 0 is whatever the others leave
}

// String returns "a2a:5:4".
func (l Logical) String() string { return fmt.Sprintf("%v:%d:%d", l.Kind, l.Size, l.Rails) }

// Shape is a topology as a list of logical dimensions for each physical one (RailX, section 3.3.4). The number of a
// node along a physical dimension is its coordinates in mixed radix, that of the first logical dimension changing
// fastest; the sizes multiply to the number of nodes. A list that is empty is for a single row or column. A shape
// without sizes fits any grid that has rails enough.
type Shape struct {
	Name string // "hyperx"; of no consequence
	X, Y []Logical
	// Contiguous gives the rails of a physical dimension to its logical ones in order. Otherwise, where the grid says
	// how many chips a node has, each logical dimension gets as many lanes of every row of chips, so that all chips
	// are alike (RailX, section 3.3.4).
	Contiguous bool
}

// Torus2D is a 2D torus over all nodes (RailX, section 3.3.1).
func Torus2D() Shape { return named("torus", Torus, Torus) }

// HyperX2D joins all nodes of each row, and all of each column (RailX, section 3.3.2).
func HyperX2D() Shape { return named("hyperx", AllToAll, AllToAll) }

// Dragonfly has columns as groups, all-to-all inside, and joins every two of them (RailX, section 3.3.3).
func Dragonfly() Shape { return named("dragonfly", Global, AllToAll) }

// Expander2D joins the nodes of each row and of each column at random as it were, for grids with too few rails for a
// HyperX. Beyond the paper.
func Expander2D() Shape { return named("expander", Expander, Expander) }

// Split uses the rails of the dimensions as those lists say (RailX, section 3.3.4).
func Split(x, y []Logical) Shape { return Shape{Name: "split", X: slices.Clone(x), Y: slices.Clone(y)} }

func named(name string, x, y Kind) Shape {
	return Shape{Name: name, X: []Logical{{Kind: x}}, Y: []Logical{{Kind: y}}}
}

// String returns what ParseShape reads: "x=torus:3:2,a2a:3:2 y=torus:5:4".
func (s Shape) String() string {
	list := func(ls []Logical) string {
		var parts []string
		for _, l := range ls {
			parts = append(parts, l.String())
		}
		return strings.Join(parts, ",")
	}
	var words []string
	if len(s.X) > 0 {
		words = append(words, "x="+list(s.X))
	}
	if len(s.Y) > 0 {
		words = append(words, "y="+list(s.Y))
	}
	if s.Contiguous {
		words = append(words, "contiguous")
	}
	return strings.Join(words, " ")
}

// maxLogical is how many logical dimensions a physical one may have. With more, all but a few would be of one node.
const maxLogical = 16

// ParseShape reads "torus", "hyperx", "dragonfly", "expander", or logical dimensions such as "x=torus:3:2,a2a:3:2
// y=torus:5:4": kind, size and rails, the latter two of which may be left out or 0, which is whatever the others
// leave. The word "contiguous" sets Contiguous. The error matches ErrShape.
func ParseShape(text string) (Shape, error) {
	known := map[string]func() Shape{"torus": Torus2D, "hyperx": HyperX2D, "dragonfly": Dragonfly, "expander": Expander2D}
	names := []string{"torus", "hyperx", "dragonfly", "expander"}
	var s Shape
	for _, word := range strings.Fields(text) {
		name := strings.ToLower(word)
		key, list, isList := strings.Cut(name, "=")
		switch {
		case name == "contiguous":
			s.Contiguous = true
		case isList && key == "x" && len(s.X) == 0, isList && key == "y" && len(s.Y) == 0:
			ls, err := parseLogical(list)
			if err != nil {
				return Shape{}, err
			}
			s.Name = "split"
			if key == "x" {
				s.X = ls
			} else {
				s.Y = ls
			}
		case known[name] != nil && s.Name == "":
			was := s.Contiguous
			s = known[name]()
			s.Contiguous = was
		case isList && (key == "x" || key == "y") || known[name] != nil:
			what := "it"
			if isList {
				what = key
			}
			return Shape{}, fmt.Errorf("%w: %.60q says %.30q though it has said what %s is", ErrShape, text, word, what)
		default:
			return Shape{}, fmt.Errorf("%w: %.60q%s: want %s, or such as \"x=torus:3:2,a2a:3:2 y=torus:5:4\"",
				ErrShape, word, strictyaml.DidYouMean(name, names), strings.Join(names, ", "))
		}
	}
	if s.Name == "" {
		return Shape{}, fmt.Errorf("%w: %.60q names none: want %s, or such as \"x=torus:3:2,a2a:3:2 y=torus:5:4\"",
			ErrShape, text, strings.Join(names, ", "))
	}
	return s, nil
}

func parseLogical(list string) ([]Logical, error) {
	parts := strings.Split(list, ",")
	if len(parts) > maxLogical {
		return nil, fmt.Errorf("%w: a list of %d logical dimensions: want %d at most", ErrShape, len(parts), maxLogical)
	}
	var ls []Logical
	for _, part := range parts {
		fields := strings.Split(part, ":")
		kind := slices.Index(kindNames, fields[0])
		if fields[0] == "all-to-all" {
			kind = int(AllToAll)
		}
		if kind < 0 || len(fields) > 3 {
			return nil, fmt.Errorf("%w: %.60q%s: want kind:size:rails, the kind being %s",
				ErrShape, part, strictyaml.DidYouMean(fields[0], kindNames), strings.Join(kindNames, ", "))
		}
		l := Logical{Kind: Kind(kind)}
		for i, f := range fields[1:] {
			v, err := strconv.ParseUint(f, 10, 16)
			if err != nil {
				return nil, fmt.Errorf("%w: %.60q has %.20q for its %s: want a whole number, or 0 for whatever is left",
					ErrShape, part, f, [...]string{"size", "rails"}[i])
			}
			if i == 0 {
				l.Size = int(v)
			} else {
				l.Rails = int(v)
			}
		}
		ls = append(ls, l)
	}
	return ls, nil
}

// fill returns the logical dimensions of a physical one of nodes and rails with nothing left open, or why they do not
// fit.
func fill(d Dimension, ls []Logical, nodes, rails int) ([]Logical, error) {
	bad := func(format string, args ...any) ([]Logical, error) {
		return nil, fmt.Errorf("%w: %v: %s", ErrShape, d, fmt.Sprintf(format, args...))
	}
	if len(ls) > maxLogical {
		return bad("%d logical dimensions: want %d at most", len(ls), maxLogical)
	}
	ls = slices.Clone(ls)
	size, used := 1, 0
	openSize, openRails := -1, -1
	for i, l := range ls {
		switch {
		case l.Kind > Dark:
			return bad("there is no %v", l.Kind)
		case l.Size < 0 || l.Rails < 0:
			return bad("%v has a negative number", l)
		case l.Kind == Global && d == Y, l.Kind == Global && len(ls) > 1:
			return bad("global joins all columns on all rails of X, and nothing else: want it alone, in X")
		case l.Kind == Dark && l.Rails > 0:
			return bad("%v has rails: want none, or another kind", l)
		case l.Size == 0 && openSize >= 0, l.Rails == 0 && openRails >= 0 && l.Kind != Dark:
			return bad("two logical dimensions leave their size or rails open: want one at most")
		}
		if l.Size == 0 {
			openSize = i
		} else if l.Size > nodes/size {
			return bad("the sizes multiply to more than the %d nodes there are: want sizes whose product is %[1]d, or one left open", nodes)
		} else {
			size *= l.Size
		}
		if l.Rails == 0 && l.Kind != Dark {
			openRails = i
		} else if l.Rails > rails-used {
			return bad("more rails than the %d there are: want %[1]d in all, or one number left open", rails)
		} else {
			used += l.Rails
		}
	}
	if openSize >= 0 && nodes%size == 0 {
		ls[openSize].Size = nodes / size
		size = nodes
	}
	if size != nodes {
		return bad("the sizes multiply to %d, and there are %d nodes: want sizes whose product is %[2]d, or one left open",
			size, nodes)
	}
	if openRails >= 0 {
		ls[openRails].Rails = rails - used
	}
	for _, l := range ls {
		if err := l.check(d); err != nil {
			return nil, err
		}
	}
	return ls, nil
}

// check returns why the rails do not do for the kind.
func (l Logical) check(d Dimension) error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: %v: %s", ErrShape, d, fmt.Sprintf(format, args...))
	}
	switch {
	case l.Size == 1 || l.Kind == Dark:
		return nil
	case l.Rails == 0:
		return bad("no rail is left for %v of %d nodes: want more rails, or fewer for the others", l.Kind, l.Size)
	case l.Kind == AllToAll && l.Rails < l.Size-1:
		return bad("all-to-all of %d nodes takes %d rails, and there are %d: want %d nodes at most, %[2]d rails, or an expander",
			l.Size, l.Size-1, l.Rails, l.Rails+1)
	case l.Kind != Torus && l.Size > hamilton.MaxSize:
		return bad("%v of %d nodes: want %d at most", l.Kind, l.Size, hamilton.MaxSize)
	}
	return nil
}
