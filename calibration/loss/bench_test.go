package loss_test

import (
	"context"
	"math"
	"math/rand/v2"
	"time"

	"github.com/ocslab/ocslab/calibration/loss"
	"github.com/ocslab/ocslab/ocs"
)

// glass is a switch with monitors, of which every loss is known. Light comes some time after
// the acknowledgement.
type glass struct {
	g         ocs.Geometry
	loss      map[ocs.CrossConnect]ocs.DB // infinite: dark
	launch    map[ocs.Port]ocs.DBm
	wrong     map[ocs.Port]ocs.DB // error of a monitor
	blind     map[ocs.Port]bool   // has no monitor
	noise     float64
	remake    float64 // repeatability
	settles   time.Duration
	averaging time.Duration
	floor     ocs.DBm
	late      map[ocs.CrossConnect]time.Duration      // light of these comes later still
	leak      map[ocs.Port]ocs.DBm                    // light without a circuit
	drift     func(p ocs.Port, n int) ocs.DB          // of a source in map n
	fail      func(n int, m ocs.Map) (ocs.Map, error) // what becomes of map n
	rng       *rand.Rand

	made    []ocs.Map
	now     ocs.Map
	since   time.Time
	current map[ocs.CrossConnect]ocs.DB // with its repeatability
}

// newGlass returns a switch whose paths lose 1.5 dB, normally scattered, with monitors that are off by
// up to 0.5 dB each.
func newGlass(g ocs.Geometry, seed uint64) *glass {
	x := &glass{
		g: g, loss: map[ocs.CrossConnect]ocs.DB{}, launch: map[ocs.Port]ocs.DBm{}, wrong: map[ocs.Port]ocs.DB{},
		noise: 0.02, remake: 0.05, settles: 20 * time.Millisecond, averaging: 100 * time.Millisecond, floor: -60,
		rng: rand.New(rand.NewPCG(seed, 1)), current: map[ocs.CrossConnect]ocs.DB{},
	}
	for _, i := range g.IngressPorts() {
		x.launch[i] = ocs.DBm(-1 + 1.6*(x.rng.Float64()-0.5))
		for _, j := range g.EgressPorts() {
			x.loss[ocs.CrossConnect{Ingress: i, Egress: j}] = ocs.DB(1.5 + 0.3*min(max(x.rng.NormFloat64(), -4), 4))
		}
	}
	for _, p := range g.Ports() {
		x.wrong[p] = ocs.DB(x.rng.Float64() - 0.5)
	}
	return x
}

// port makes all paths of a port lose more.
func (x *glass) port(p ocs.Port, more ocs.DB) {
	for c := range x.loss {
		if c.Ingress == p || c.Egress == p {
			x.loss[c] += more
		}
	}
}

func (x *glass) bench() loss.Bench { return loss.Bench{Geometry: x.g, Meter: x, Apply: x.apply} }

func (x *glass) apply(ctx context.Context, m ocs.Map) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if err := x.g.Check(m); err != nil {
		return err
	}
	if x.fail != nil {
		var err error
		if m, err = x.fail(len(x.made), m); err != nil {
			return err
		}
	}
	x.made = append(x.made, m)
	for c := range m.Minus(x.now).All() {
		x.current[c] = x.loss[c] + ocs.DB(x.remake*x.rng.NormFloat64())
	}
	x.now, x.since = m, time.Now()
	return nil
}

func (x *glass) Power(_ context.Context, ports ...ocs.Port) (ocs.PowerReading, error) {
	r := ocs.PowerReading{Earliest: time.Now(), Latest: time.Now(), Ports: map[ocs.Port]ocs.DBm{}}
	entering := func(p ocs.Port) ocs.DBm {
		power, ok := x.launch[p]
		if !ok {
			return x.floor
		}
		if x.drift != nil {
			power = power.Add(x.drift(p, len(x.made)))
		}
		return power
	}
	for _, p := range ports {
		if x.blind[p] {
			continue
		}
		power := x.floor
		from, leaves := x.now.IngressOf(p)
		switch {
		case leaves && time.Since(x.since) >= x.settles+x.late[ocs.CrossConnect{Ingress: from, Egress: p}]:
			power = entering(from).Add(-x.current[ocs.CrossConnect{Ingress: from, Egress: p}])
		case leaves:
		case x.g.IsIngress(p):
			power = entering(p)
		default:
			if l, ok := x.leak[p]; ok {
				power = l
			}
		}
		power = max(power.Add(x.wrong[p]), x.floor)
		r.Ports[p] = power.Add(ocs.DB(x.noise * x.rng.NormFloat64()))
	}
	return r, nil
}

func (x *glass) Monitors(_ context.Context, ports ...ocs.Port) ([]ocs.Monitor, error) {
	var list []ocs.Monitor
	for _, p := range ports {
		if !x.blind[p] {
			list = append(list, ocs.Monitor{Port: p, Averaging: x.averaging})
		}
	}
	return list, nil
}

func (x *glass) SetMonitor(context.Context, ocs.Monitor) error { return ocs.ErrNotSupported }

var infinite = ocs.DB(math.Inf(1))
