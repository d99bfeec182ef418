package mzi

import (
	"fmt"

	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// observer is an element that can be trimmed, and where its light is seen.
type observer struct {
	element ocst.Element
	lane    int
	// Each a list of photodiodes whose powers are added.
	bright, dark []photodiode
}

type photodiode struct{ array, lane int }

// observers lists the elements that lanes pass, the outer ones first.
func observers(s ocst.LaneStatus) (seen []observer, skipped []TrimSkip) {
	var lit []int // lanes on the loop
	for lane, path := range s.Path {
		out1, out2, loop := photodiode{ocst.PDOut1, lane}, photodiode{ocst.PDOut2, lane}, photodiode{ocst.PDLoopTap, lane}
		switch path {
		case ocst.Path1:
			seen = append(seen,
				observer{ocst.S1(lane), lane, []photodiode{out1, out2}, []photodiode{loop}},
				observer{ocst.S2(lane), lane, []photodiode{out1}, []photodiode{out2}})
		case ocst.Path2:
			seen = append(seen,
				observer{ocst.S1(lane), lane, []photodiode{out1, out2}, []photodiode{loop}},
				observer{ocst.S2(lane), lane, []photodiode{out2}, []photodiode{out1}})
		case ocst.LoopPath:
			seen = append(seen, observer{ocst.S1(lane), lane, []photodiode{loop}, []photodiode{out1, out2}})
			lit = append(lit, lane)
		}
	}
	states, err := ocst.Route(s.Loop)
	if err != nil {
		for _, lane := range lit {
			skipped = append(skipped, TrimSkip{fmt.Sprintf("loop elements of lane %d", lane+1), err.Error()})
		}
		return seen, skipped
	}
	passing := map[ocst.Element][]int{}
	for _, lane := range lit {
		_, passed := states.Follow(lane)
		for _, e := range passed {
			passing[e] = append(passing[e], lane)
		}
	}
	for e := ocst.Loop(0, 0); e < ocst.Elements; e++ {
		lanes := passing[e]
		switch len(lanes) {
		case 0:
			continue
		case 1:
		default:
			skipped = append(skipped, TrimSkip{e.String(), fmt.Sprintf("lanes %d and %d both pass it, and neither shows at a receiver", lanes[0]+1, lanes[1]+1)})
			continue
		}
		// The dark output is the bright one of the lane that would come in at the other input.
		partner := -1
		for lane := range ocst.Lanes {
			if _, passed := states.Follow(lane); lane != lanes[0] && passed[(e-ocst.Loop(0, 0))/ocst.Rows] == e {
				partner = lane
			}
		}
		if partner < 0 {
			skipped = append(skipped, TrimSkip{e.String(), "no receiver sees its dark output"})
			continue
		}
		seen = append(seen, observer{e, lanes[0],
			[]photodiode{{ocst.PDRxLoop, int(s.Loop[lanes[0]])}}, []photodiode{{ocst.PDRxLoop, int(s.Loop[partner])}}})
	}
	return seen, skipped
}
