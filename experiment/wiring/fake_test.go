package wiring_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ocslab/ocslab/experiment/wiring"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/ocs"
)

// dead is the loss of a fibre through which nothing passes.
var dead = ocs.DB(math.Inf(1))

// fake is a plant whose fibres are where the test says.
type fake struct {
	nics  []*fakeNIC
	side  int // ports of either side of each switch: 1..side and side+1..2*side
	names []string

	maps map[string]ocs.Map
	sets int

	stray     map[lab.PortRef]ocs.DBm // light that comes in at ingress ports, from nowhere
	blind     bool                    // the switches have no monitors
	blindIn   bool                    // nor at ingress ports
	stuck     map[lab.PortRef]bool    // nothing passes these ports
	flap      map[lab.PortRef]bool    // light comes and goes there, by flaps
	flaps     *rand.Rand
	mute      error           // of Hail
	darkPath  map[string]bool // "rail0/1>33": no light passes
	disturb   func(set int, nic string, rx ocs.DBm) ocs.DBm
	readFault map[string]error // of modules
}

// fakeNIC is a NIC: where it is, and what is wrong with its fibres.
type fakeNIC struct {
	wiring.NIC                 // what is claimed
	tx, rx         lab.PortRef // where it is
	txLoss, rxLoss ocs.DB
}

const (
	launch  ocs.DBm = 1
	through ocs.DB  = 1.2 // of the switch
)

// newFake returns a plant of switches with as many NICs as they have ports, or fewer, all of
// them as claimed.
func newFake(nics, side int, switches ...string) *fake {
	f := &fake{side: side, names: switches, maps: map[string]ocs.Map{}, stray: map[lab.PortRef]ocs.DBm{}, darkPath: map[string]bool{}, readFault: map[string]error{}}
	for i := range nics {
		sw, n := switches[i%len(switches)], i/len(switches)
		x := &fakeNIC{NIC: wiring.NIC{
			Name: fmt.Sprintf("gpu%d/ens1f0", i+1),
			Tx:   lab.PortRef{Switch: sw, Port: ocs.Port(n + 1)}, Rx: lab.PortRef{Switch: sw, Port: ocs.Port(side + n + 1)},
		}}
		x.tx, x.rx = x.Tx, x.Rx
		f.nics = append(f.nics, x)
	}
	return f
}

// options returns what there is to be found.
func (f *fake) options() wiring.Options {
	var opt wiring.Options
	for _, n := range f.nics {
		opt.NICs = append(opt.NICs, n.NIC)
	}
	for _, sw := range f.names {
		for i := range f.side {
			opt.Ingress = append(opt.Ingress, lab.PortRef{Switch: sw, Port: ocs.Port(i + 1)})
			opt.Egress = append(opt.Egress, lab.PortRef{Switch: sw, Port: ocs.Port(f.side + i + 1)})
		}
	}
	return opt
}

func (f *fake) find(t testing.TB, opt wiring.Options) *wiring.Result {
	t.Helper()
	r, err := wiring.Find(context.Background(), f, opt)
	if err != nil {
		t.Fatalf("Find: %v", err)
	}
	return r
}

func (f *fake) Set(_ context.Context, maps map[string]ocs.Map) error {
	f.sets++
	for name, m := range maps {
		f.maps[name] = m
	}
	return nil
}

// in is the light that enters at an ingress port.
func (f *fake) in(p lab.PortRef) ocs.DBm {
	mw := 0.0
	if f.flap[p] && f.flaps.IntN(3) == 0 {
		return ocs.DBm(math.Inf(-1))
	}
	if level, ok := f.stray[p]; ok {
		mw += level.Milliwatts()
	}
	for _, n := range f.nics {
		if n.tx == p {
			mw += launch.Add(-n.txLoss).Milliwatts()
		}
	}
	return ocs.Milliwatts(mw)
}

// out is the light that leaves at an egress port.
func (f *fake) out(p lab.PortRef) ocs.DBm {
	from, ok := f.maps[p.Switch].IngressOf(p.Port)
	if !ok || f.stuck[p] || f.stuck[lab.PortRef{Switch: p.Switch, Port: from}] || f.darkPath[fmt.Sprintf("%s/%d>%d", p.Switch, from, p.Port)] {
		return ocs.DBm(math.Inf(-1))
	}
	return f.in(lab.PortRef{Switch: p.Switch, Port: from}).Add(-through)
}

func (f *fake) at(n *fakeNIC) ocs.DBm {
	level := f.out(n.rx).Add(-n.rxLoss)
	if f.disturb != nil {
		level = f.disturb(f.sets, n.Name, level)
	}
	return level
}

func (f *fake) Power(_ context.Context, ports []lab.PortRef) (map[lab.PortRef]ocs.DBm, error) {
	power := map[lab.PortRef]ocs.DBm{}
	if f.blind {
		return power, nil
	}
	for _, p := range ports {
		if int(p.Port) <= f.side {
			if !f.blindIn {
				power[p] = f.in(p)
			}
		} else {
			power[p] = f.out(p)
		}
	}
	return power, nil
}

func (f *fake) Look(_ context.Context, names []string) (map[string]wiring.Look, error) {
	looks := map[string]wiring.Look{}
	for _, n := range f.nics {
		if !slices.Contains(names, n.Name) {
			continue
		}
		if err := f.readFault[n.Name]; err != nil {
			look := wiring.Look{Err: err, Carrier: wiring.Dark}
			if f.carrier(n) {
				look.Carrier = wiring.Lit
			}
			looks[n.Name] = look
			continue
		}
		looks[n.Name] = wiring.Look{Rx: [][]ocs.DBm{{f.at(n)}, {f.at(n)}}, Tx: []ocs.DBm{launch}}
	}
	return looks, nil
}

func (f *fake) carrier(n *fakeNIC) bool { return f.at(n) > -12 }

func (f *fake) Hail(_ context.Context, _ []string) (wiring.Hail, error) {
	h := wiring.Hail{Sent: map[string]bool{}, Heard: map[string][]string{}}
	if f.mute != nil {
		return h, f.mute
	}
	for _, n := range f.nics {
		if !f.carrier(n) {
			continue
		}
		h.Sent[n.Name] = true
		h.Heard[n.Name] = nil
		from, ok := f.maps[n.rx.Switch].IngressOf(n.rx.Port)
		if !ok || math.IsInf(float64(f.out(n.rx)), -1) {
			continue
		}
		for _, m := range f.nics {
			if m.tx == (lab.PortRef{Switch: n.rx.Switch, Port: from}) && !math.IsInf(float64(m.txLoss), 1) && f.carrier(m) {
				h.Heard[n.Name] = append(h.Heard[n.Name], m.Name)
			}
		}
	}
	return h, nil
}
