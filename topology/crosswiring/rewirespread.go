package crosswiring

import "fmt"

// FitRunning is Demand.Fit next to running circuits: it spreads a pod-level demand over the groups such that many links
// stay in the group where they run, and all of them if the demand is the one that runs. SplitOverGroups, which knows of
// nothing that runs, moves most of them. It is ours. The error matches ErrFabric, also for Uniform wiring, ErrDemand,
// or ErrConfig as of Config.Check.
func (d *Demand) FitRunning(running *Config) (*Demand, error) {
	f := running.fabric
	if !d.podLevel || f.Groups <= 1 {
		return d.Fit(f)
	}
	if err := f.Check(); err != nil {
		return nil, err
	}
	if f.Wiring == Uniform {
		return nil, fmt.Errorf("%w: uniform wiring has no pairs of switches that carry a link: want cross or dual-link", ErrFabric)
	}
	if err := running.Check(); err != nil {
		return nil, err
	}
	if d.pods > f.Pods {
		return nil, d.misfit(f)
	}
	all := newDemand(f.Pods, 1)
	for i := range d.pods {
		copy(all.links[i*f.Pods:], d.links[i*d.pods:(i+1)*d.pods])
	}
	if err := all.check(f.PodPorts()); err != nil {
		return nil, err
	}
	return spreadRunning(running, all), nil
}

// spreadRunning orients all links as if all groups were one, and then halves the groups again and again as bisect halves
// pairs of switches.
func spreadRunning(running *Config, all *Demand) *Demand {
	f := running.fabric
	pairs := f.AllPairs()
	old := matchings(len(pairs), f.Pods)
	k := newKeeper(f.Pods)
	k.wantAll(all.links)
	for i, p := range pairs {
		running.peers(p, old[i])
		k.running(old[i])
	}
	k.orient(len(pairs))
	k.load()
	d := newDemand(f.Pods, f.Groups)
	k.halveGroups(0, f.Groups, append([]int32(nil), k.left...), old, d)
	return d
}

// halveGroups gives links, by way, to the groups from low to high, each of which has its part of old.
func (k *keeper) halveGroups(low, high int, links []int32, old [][]int32, d *Demand) {
	if high-low == 1 {
		group := d.group(low)
		for way, n := range links {
			u, v := k.ends(way)
			group[int(u)*k.pods+int(v)] += n
			group[int(v)*k.pods+int(u)] += n
		}
		return
	}
	middle, pairs := (low+high)/2, len(old)/d.groups
	first := k.share(span(low*pairs, middle*pairs), span(middle*pairs, high*pairs), links, old)
	for way := range links {
		links[way] -= first[way]
	}
	k.halveGroups(low, middle, first, old, d)
	k.halveGroups(middle, high, links, old, d)
}

// span returns the numbers from low to high, without high.
func span(low, high int) []int {
	all := make([]int, high-low)
	for i := range all {
		all[i] = low + i
	}
	return all
}
