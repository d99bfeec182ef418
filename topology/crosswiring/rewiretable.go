package crosswiring

// RewireRow is what the methods keep when a share of the links changes.
type RewireRow struct {
	Changed float64            // share of the links that move to other pods
	AtMost  float64            // share of the circuits that any plan could keep at most
	Kept    map[Method]float64 // share of the circuits
	Time    map[Method]RewireTimes
}

// RewireTable plans a random demand at full load from nothing, changes it by swaps that move each of the shares of its
// links, and returns what every method keeps. The method of the options is not used, nor pairs that are off. The same
// arguments give the same shares. The error matches ErrFabric, or ErrDemand for a share beyond 0 to 1.
func RewireTable(f Fabric, changed []float64, seed uint64, opt RewireOptions) ([]RewireRow, error) {
	d, err := RandomFull(f, seed)
	if err != nil {
		return nil, err
	}
	running, err := Plan(f, d)
	if err != nil {
		return nil, err
	}
	opt.Seed, opt.Without = seed, nil
	var rows []RewireRow
	for _, share := range changed {
		next, err := Swapped(d, share, seed)
		if err != nil {
			return nil, err
		}
		row := RewireRow{Changed: share, Kept: map[Method]float64{}, Time: map[Method]RewireTimes{}}
		for _, m := range Methods() {
			opt.Method = m
			_, r, err := Rewire(running, next, opt)
			if err != nil {
				return nil, err
			}
			row.Kept[m], row.Time[m] = 1-r.Share(), r.Time
			row.AtMost = 1
			if n := r.Running(); n > 0 {
				row.AtMost = float64(r.AtMost()) / float64(n)
			}
		}
		rows = append(rows, row)
	}
	return rows, nil
}
