package infinitehbd

import "fmt"

// Check returns an error if the line cannot be: one that matches ErrLayout if its layout cannot, or if it is closed
// and so short that two nodes would be joined twice or a node to itself (it needs more than twice Layout.Hops nodes),
// and one that matches ErrNode if it has no nodes, one below 1, or one twice.
func (l Line) Check() error {
	_, err := l.index()
	return err
}

// index checks the line, and returns where each node is.
func (l Line) index() (map[Node]int, error) {
	if err := l.Layout.Check(); err != nil {
		return nil, err
	}
	if len(l.Order) == 0 {
		return nil, fmt.Errorf("%w: the line is empty: want one node or more", ErrNode)
	}
	if least := 2*l.Layout.Hops() + 1; l.Closed && len(l.Order) < least {
		return nil, fmt.Errorf("%w: a closed line of %d nodes that reach %d: want %d or more, or nodes are joined twice",
			ErrLayout, len(l.Order), l.Layout.Hops(), least)
	}
	at := make(map[Node]int, len(l.Order))
	for i, n := range l.Order {
		if n < 1 {
			return nil, fmt.Errorf("%w: node %d, at place %d of the line: want 1 or more", ErrNode, n, i+1)
		}
		if j, ok := at[n]; ok {
			return nil, fmt.Errorf("%w: node %d is at places %d and %d of the line: want it once", ErrNode, n, j+1, i+1)
		}
		at[n] = i
	}
	return at, nil
}

// gone checks the line, and returns where each node is, and which places have dead nodes.
func (l Line) gone(dead []Node) (at map[Node]int, gone []bool, err error) {
	if at, err = l.index(); err != nil {
		return nil, nil, err
	}
	gone = make([]bool, len(l.Order))
	for _, n := range dead {
		i, ok := at[n]
		switch {
		case !ok:
			return nil, nil, fmt.Errorf("%w: node %d is dead, and not in the line of %d nodes", ErrNode, n, len(l.Order))
		case gone[i]:
			return nil, nil, fmt.Errorf("%w: node %d is twice among the dead: want it once", ErrNode, n)
		}
		gone[i] = true
	}
	return at, gone, nil
}

// Cables returns all cables of the line: for each distance that the layout has, one between any two nodes that far
// from each other. They come in the order of the line of their A ends, shorter ones first. Each joins the upper GPU of
// its bundle at A to the upper one at B, and lower to lower. The errors are those of Check.
func (l Line) Cables() ([]Cable, error) {
	if err := l.Check(); err != nil {
		return nil, err
	}
	distances := l.Layout.Distances()
	cables := make([]Cable, 0, len(l.Order)*len(distances))
	for i := range l.Order {
		for _, d := range distances {
			if c, ok := l.cable(i, d); ok {
				cables = append(cables, c)
			}
		}
	}
	return cables, nil
}

// cable returns the cable that leads forwards over a distance from a place of the line.
func (l Line) cable(place, distance int) (Cable, bool) {
	far, ok := l.place(place + distance)
	if !ok {
		return Cable{}, false
	}
	b, path, _ := l.Layout.Find(distance)
	c := Cable{A: End{l.Order[place], b, path}}
	b, path, _ = l.Layout.Find(-distance)
	c.B = End{l.Order[far], b, path}
	return c, true
}

// place returns the place of the line with a number that may lie beyond its ends, and whether there is one.
func (l Line) place(i int) (int, bool) {
	n := len(l.Order)
	if l.Closed {
		i = (i%n + n) % n
	}
	return i, i >= 0 && i < n
}

// Name returns what an end of a cable is called, such as "2.R PATH1".
func (l Line) Name(e End) string {
	return fmt.Sprintf("%d.%s %v", e.Node, l.Layout.bundle(e.Bundle), e.Path)
}

// bundle returns the name of a bundle, also of one that there is not.
func (l Layout) bundle(i int) string {
	if i < 0 || i >= len(l.Bundles) {
		return fmt.Sprintf("bundle %d", i)
	}
	return l.Bundles[i].Name
}
