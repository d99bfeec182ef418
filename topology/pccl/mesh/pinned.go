package mesh

// Pinned returns the layout of a grid in which some nodes can only be in one state, since their MZIs are stuck in it. A
// state that the node does not have keeps all circuits from crossing it. A nil layout is Alternate.
func (m *Mesh) Pinned(layout Layout, stuck map[int]State) Layout {
	if layout == nil {
		layout = Alternate
	}
	return func(row, column int) Element {
		e := layout(row, column)
		state, is := stuck[row*m.columns+column]
		if !is {
			return e
		}
		var one Element
		if int(state) < len(e) {
			one[state] = e[state]
		}
		return one
	}
}
