package plan

import (
	"fmt"
	"time"

	firmwarenotes "github.com/ocslab/ocslab/firmware-notes"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/ocs"
)

// SetupTime is about how long it takes to open a testbed.
const SetupTime = 300 * time.Millisecond

// What else a plan takes for granted.
const (
	finallyTime   = 200 * time.Millisecond // to put the light back
	overheadTime  = 100 * time.Millisecond // of a reconfiguration: reading back, the last readings of power
	trafficTime   = 2 * time.Millisecond   // from carrier to the first packet
	realSwitching = 200 * time.Millisecond // of a switch that nothing is known of
	realLinkUp    = 3 * time.Second        // of a NIC that nothing is known of
	heldTime      = time.Second            // how long is waited for a link that does not go down, without traffic
)

// predict fills in how long a reconfiguration takes.
func (r *resolver) predict(conditions []Condition) {
	wait := r.f.waits()
	for i := range conditions {
		c := &conditions[i]
		switching, basis := r.switching(c)
		c.Expected, c.Basis = c.Settings.Dwell+overheadTime+switching, basis
		if c.Settings.Dwell > 0 {
			c.Basis = fmt.Sprintf("%v of rest, %s", c.Settings.Dwell, c.Basis)
		}
		switch wait.Until {
		case UntilSettled:
		case UntilFixed:
			c.Expected += wait.For
			c.Basis += fmt.Sprintf(", and %v as the file says", wait.For)
		default:
			up, basis := r.linkUp(c, switching, wait)
			c.Expected += up
			c.Basis += basis
		}
		c.Expected = c.Expected.Round(time.Millisecond)
	}
}

// switching is how long the slowest switch of a condition takes.
func (r *resolver) switching(c *Condition) (time.Duration, string) {
	if !r.emulated {
		return realSwitching, fmt.Sprintf("switching in %v (assumed: no device was asked)", realSwitching)
	}
	var slowest time.Duration
	var model string
	for _, maps := range c.Maps {
		for _, name := range sorted(maps) {
			d := r.devices[c.Setup][name]
			takes := d.median(maps[name].Len())
			if model == "" || takes > slowest {
				slowest, model = takes, d.model
			}
		}
	}
	return slowest, fmt.Sprintf("switching in %v (emulated %s)", slowest, model)
}

// linkUp is how long the slowest NIC of a condition takes after the light has come back.
func (r *resolver) linkUp(c *Condition, dark time.Duration, wait Wait) (time.Duration, string) {
	var slowest time.Duration
	var basis string
	l := c.Settings.Apply(r.lab)
	for _, h := range l.Hosts {
		for i := range h.NICs {
			n := &h.NICs[i]
			if !touched(c.Maps, n) || !r.f.watches(n) {
				continue
			}
			takes, why := realLinkUp, fmt.Sprintf(", link-up in %v (assumed: the lab file says nothing of the firmware)", realLinkUp)
			if n.Firmware != "" || r.emulated {
				p, err := l.Profile(n)
				if err != nil {
					r.ofLab(fmt.Errorf("NIC %s: %w", n.FullName(), err))
					return 0, ""
				}
				takes, why = r.profile(p, c.Settings.Dwell, dark, wait)
			}
			if basis == "" || takes > slowest {
				slowest, basis = takes, why
			}
		}
	}
	return slowest, basis
}

// profile is how long a NIC takes after dark time, when the light comes and goes again and
// again.
func (r *resolver) profile(p firmwarenotes.Profile, dwell, dark time.Duration, wait Wait) (time.Duration, string) {
	if dark < p.Debounce.Median {
		takes := trafficTime
		if !r.f.traffic() || wait.Until == UntilCarrier {
			takes = heldTime
		}
		return takes, fmt.Sprintf(", in which %s keeps its link", p.Name)
	}
	up := p.Detect.Median + p.Train.Median + p.Carrier.Median
	stretch := stretched(p.Burst, dwell+overheadTime+dark, up)
	why := fmt.Sprintf(", link-up in %v (%s)", (up + stretch).Round(time.Millisecond), p.Name)
	if stretch > 0 {
		why = fmt.Sprintf(", link-up in %v (%s, of which %v as it is toggled often)", (up + stretch).Round(time.Millisecond), p.Name, stretch)
	}
	return up + stretch + trafficTime, why
}

// stretched is what a burst adds to a link-up on average, when the light goes after every
// link-up, and takes down to come back.
func stretched(b *firmwarenotes.Burst, down, up time.Duration) time.Duration {
	const settle, mean = 20, 20 // it may swing between two values
	var ups []int64
	var now int64
	var sum time.Duration
	for i := range settle + mean {
		now += int64(down)
		stretch := b.Stretch(ups, now)
		now += int64(up + stretch)
		ups = append(ups, now)
		if i >= settle {
			sum += stretch
		}
	}
	return (sum / mean).Round(time.Millisecond)
}

// touched reports whether a NIC sends or receives through a circuit of maps.
func touched(all []map[string]ocs.Map, n *lab.NIC) bool {
	for _, maps := range all {
		for _, p := range []lab.PortRef{n.Tx, n.Rx} {
			if len(maps[p.Switch].At(p.Port)) > 0 {
				return true
			}
		}
	}
	return false
}

// watches reports whether a NIC is one of those to watch.
func (f *File) watches(n *lab.NIC) bool {
	for _, name := range f.Measure.Only {
		if name == n.FullName() || name == n.Host {
			return true
		}
	}
	return len(f.Measure.Only) == 0
}
