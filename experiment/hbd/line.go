package hbd

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/topology/infinitehbd"
)

// bundleName is what [Name] returns.
var bundleName = regexp.MustCompile(`^n(0*[1-9][0-9]{0,8})-([a-z][a-z0-9]*)$`)

// LineOf returns the line that a lab is of nodes of a layout: bundles by the names of its switches, the order by its
// cables, which have to be all those of the line and no others between its bundles. Switches of other names are left
// alone. The error matches ErrLab and says what is missing or too much.
func LineOf(f *lab.File, layout infinitehbd.Layout) (infinitehbd.Line, error) {
	if err := layout.Check(); err != nil {
		return infinitehbd.Line{}, err
	}
	ends, nodes, err := bundlesOf(f, layout)
	if err != nil {
		return infinitehbd.Line{}, err
	}
	joined := map[infinitehbd.End]infinitehbd.End{}
	for _, c := range f.Cables {
		a, b := ends[c.A], ends[c.B]
		if a.Node == 0 && b.Node == 0 {
			continue
		}
		if a.Node == 0 || b.Node == 0 {
			return infinitehbd.Line{}, fmt.Errorf("%w: the cable %v - %v leads out of the line", ErrLab, c.A, c.B)
		}
		joined[a], joined[b] = b, a
	}
	line, err := ordered(layout, nodes, joined)
	if err != nil {
		return line, err
	}
	return line, compareCables(line, joined)
}

// bundlesOf returns the fibres of all bundles, and the nodes in rising order.
func bundlesOf(f *lab.File, layout infinitehbd.Layout) (map[lab.FibreRef]infinitehbd.End, []infinitehbd.Node, error) {
	index := map[string]int{}
	for i, b := range layout.Bundles {
		index[strings.ToLower(b.Name)] = i
	}
	have := map[infinitehbd.Node]map[int]string{}
	ends := map[lab.FibreRef]infinitehbd.End{}
	for _, s := range f.Switches {
		m := bundleName.FindStringSubmatch(s.Name)
		if m == nil {
			continue
		}
		number, _ := strconv.Atoi(m[1]) // it has 9 digits at most
		n := infinitehbd.Node(number)
		i, known := index[m[2]]
		if !known {
			return nil, nil, fmt.Errorf("%w: nodes have no bundle for the switch %s: want %s", ErrLab, s.Name,
				strings.Join(slices.Sorted(maps.Keys(index)), ", "))
		}
		if other, twice := have[n][i]; twice {
			return nil, nil, fmt.Errorf("%w: %s and %s are the same bundle", ErrLab, other, s.Name)
		}
		if have[n] == nil {
			have[n] = map[int]string{}
		}
		have[n][i] = s.Name
		for path := range 2 {
			ends[lab.FibreRef{Switch: s.Name, Fibre: path + 1}] = infinitehbd.End{Node: n, Bundle: i,
				Path: infinitehbd.Path1 + infinitehbd.State(path)}
		}
	}
	nodes := slices.Sorted(maps.Keys(have))
	for _, n := range nodes {
		for i, b := range layout.Bundles {
			if _, there := have[n][i]; !there {
				return nil, nil, fmt.Errorf("%w: node %d has no switch for its bundle %s, such as n%02d-%s", ErrLab, n, b.Name, n,
					strings.ToLower(b.Name))
			}
		}
	}
	if len(nodes) == 0 {
		return nil, nil, fmt.Errorf("%w: lab %s has no switch such as n01-r", ErrLab, f.Name)
	}
	return ends, nodes, nil
}

// ordered puts nodes in order by the cables of distance 1.
func ordered(layout infinitehbd.Layout, nodes []infinitehbd.Node,
	joined map[infinitehbd.End]infinitehbd.End) (infinitehbd.Line, error) {
	line := infinitehbd.Line{Layout: layout}
	forth, path, ok := layout.Find(1)
	if !ok {
		return line, fmt.Errorf("%w: its nodes have no path to the next one, by which they could be put in order",
			infinitehbd.ErrLayout)
	}
	back, backPath, _ := layout.Find(-1)
	next, follows := map[infinitehbd.Node]infinitehbd.Node{}, map[infinitehbd.Node]bool{}
	for _, n := range nodes {
		if e, there := joined[infinitehbd.End{Node: n, Bundle: forth, Path: path}]; there && e.Bundle == back && e.Path == backPath {
			next[n], follows[e.Node] = e.Node, true
		}
	}
	var first []infinitehbd.Node
	for _, n := range nodes {
		if !follows[n] {
			first = append(first, n)
		}
	}
	switch {
	case len(first) > 1:
		return line, fmt.Errorf("%w: no cable leads from another node to node %d, nor to node %d: a line has one first node",
			ErrLab, first[0], first[1])
	case len(first) == 0:
		line.Closed, first = true, nodes[:1]
	}
	met := map[infinitehbd.Node]bool{}
	for n := first[0]; n != 0 && !met[n]; n = next[n] {
		met[n] = true
		line.Order = append(line.Order, n)
	}
	if len(line.Order) < len(nodes) {
		i := slices.IndexFunc(nodes, func(n infinitehbd.Node) bool { return !met[n] })
		return line, fmt.Errorf("%w: the line from node %d on does not come to node %d", ErrLab, first[0], nodes[i])
	}
	return line, nil
}

// compareCables returns what cables a line lacks, or has too many.
func compareCables(line infinitehbd.Line, joined map[infinitehbd.End]infinitehbd.End) error {
	cables, err := line.Cables()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrLab, err)
	}
	names := namesOf(line)
	text := func(e infinitehbd.End) string { return fmt.Sprintf("%s/%d", names[e.Node][e.Bundle], fibre(e)) }
	want := map[infinitehbd.End]bool{}
	for _, c := range cables {
		want[c.A], want[c.B] = true, true
		switch is, there := joined[c.A]; {
		case !there:
			return fmt.Errorf("%w: it has no cable %s - %s", ErrLab, text(c.A), text(c.B))
		case is != c.B:
			return fmt.Errorf("%w: %s is joined to %s, and the line wants %s there", ErrLab, text(c.A), text(is), text(c.B))
		}
	}
	for _, n := range line.Order {
		for b := range line.Layout.Bundles {
			for _, p := range []infinitehbd.State{infinitehbd.Path1, infinitehbd.Path2} {
				e := infinitehbd.End{Node: n, Bundle: b, Path: p}
				if o, there := joined[e]; there && !want[e] {
					return fmt.Errorf("%w: it has a cable %s - %s, and the line has none there", ErrLab, text(e), text(o))
				}
			}
		}
	}
	return nil
}
