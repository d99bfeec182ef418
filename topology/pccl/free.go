package pccl

import "slices"

// enterable returns by stage which candidates may be wired before it, rising. By the paper's rule that is the
// standard ones and the stage's own, and of unions those that begin with it. Free lets any be.
//
// What is worth it: a round's own topology can be wired one or several rounds ahead, where a change is due anyway, if
// it serves those as well as what they would have had.
func enterable(free bool, candidates, standard int, stages []stage, own []int, unions [][]int) [][]int {
	all := make([]int, candidates)
	for c := range all {
		all[c] = c
	}
	enter := make([][]int, len(stages))
	for i, st := range stages {
		if free {
			enter[i] = all
			continue
		}
		may := append(slices.Clone(all[:standard]), own[st.set])
		if unions != nil {
			may = append(may, unions[i]...)
		}
		slices.Sort(may)
		enter[i] = slices.Compact(may)
	}
	return enter
}
