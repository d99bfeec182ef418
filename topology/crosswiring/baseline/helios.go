package baseline

import "github.com/ocslab/ocslab/topology/crosswiring"

// Helios plans Uniform wiring one switch after another, as the Helios paper does: the pods that a switch joins are a matching
// of maximum weight, where the weight of two pods is how many of their links are left without a place. Of matchings of
// equal weight it takes one with most of what the switch joins already (ours); running may be nil. The matchings are exact,
// by Edmonds' blossoms, in O(P³) time each.
//
// The error is as of Greedy.
func Helios(f crosswiring.Fabric, d *crosswiring.Demand, running *crosswiring.Config) (*crosswiring.Config, error) {
	if err := uniform(f, d, running); err != nil {
		return nil, err
	}
	m := newMatcher(f.Pods)
	return each(f, d, running, func(g *group, peers []int) {
		n, pods := g.pods, g.wanting()
		found := m.match(len(pods), func(a, b int) int64 {
			i, j := pods[a], pods[b]
			weight := int64(g.left[i*n+j]) * int64(n+1) // so that all that runs together weighs less than a link
			if weight > 0 && g.running[i] == j {
				weight++
			}
			return weight
		})
		for a, b := range found {
			if b >= 0 {
				peers[pods[a]] = pods[b]
			}
		}
	})
}

// wanting returns the pods that have links left without a place.
func (g *group) wanting() (pods []int) {
	for i := range g.pods {
		for _, n := range g.left[i*g.pods : (i+1)*g.pods] {
			if n > 0 {
				pods = append(pods, i)
				break
			}
		}
	}
	return pods
}
