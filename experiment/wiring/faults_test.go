package wiring_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/experiment/wiring"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/ocs"
)

// enough is what a fibre has to lose at least to be dead. What a transmit fibre lets through is seen
// at the switch, however it is lit; what a receive fibre does depends on the light there is.
var enough = map[wiring.End]ocs.DB{wiring.Rx: 10, wiring.Tx: 25}

// planted is a lab with faults of all kinds, any number at once.
type planted struct {
	*fake
	shared map[string]bool // NICs whose fibre goes to a port of another one's
	odd    bool            // light comes and goes, or a switch cannot see it
}

func plantFaults(t *rapid.T) *planted {
	switches := []string{"rail0", "rail1"}[:rapid.IntRange(1, 2).Draw(t, "switches")]
	side := rapid.IntRange(3, 8).Draw(t, "side")
	nics := rapid.IntRange(1, side*len(switches)).Draw(t, "nics")
	p := &planted{fake: newFake(nics, side, switches...), shared: map[string]bool{}}
	p.stuck, p.flap = map[lab.PortRef]bool{}, map[lab.PortRef]bool{}
	p.flaps = rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "flaps"), 1))
	tx := rapid.Permutation(p.options().Ingress).Draw(t, "tx")
	rx := rapid.Permutation(p.options().Egress).Draw(t, "rx")
	if rapid.Bool().Draw(t, "in place") {
		tx, rx = nil, nil
		for _, n := range p.nics {
			tx, rx = append(tx, n.Tx), append(rx, n.Rx)
		}
	}
	for i, n := range p.nics {
		n.tx, n.rx = tx[i], rx[i]
	}
	nic := func(what string) *fakeNIC { return p.nics[rapid.IntRange(0, nics-1).Draw(t, what)] }
	loss := rapid.SampledFrom([]ocs.DB{2.5, 10, 20, 27, 29, 30, 31, 40, dead})
	for range rapid.IntRange(0, 4).Draw(t, "faults") {
		switch rapid.IntRange(0, 9).Draw(t, "fault") {
		case 0:
			nic("rx of").rxLoss = loss.Draw(t, "rx loss")
		case 1:
			nic("tx of").txLoss = loss.Draw(t, "tx loss")
		case 2: // dead rx and dead tx of one NIC
			n := nic("both of")
			n.rxLoss, n.txLoss = dead, dead
		case 3: // a splitter
			a, b := nic("splitter"), nic("and")
			if a != b {
				a.rx = b.rx
				p.shared[a.Name], p.shared[b.Name] = true, true
			}
		case 4: // a coupler
			a, b := nic("coupler"), nic("and")
			if a != b {
				a.tx = b.tx
				p.shared[a.Name], p.shared[b.Name] = true, true
			}
		case 5: // light of nobody
			at := tx[rapid.IntRange(0, len(tx)-1).Draw(t, "stray")]
			if !slices.ContainsFunc(p.nics, func(n *fakeNIC) bool { return n.tx == at }) {
				p.stray[at] = ocs.DBm(rapid.Float64Range(-29, 3).Draw(t, "of"))
			}
		case 6:
			p.readFault[nic("no module").Name] = errors.New("no EEPROM")
		case 7: // a port that flaps
			p.flap[nic("flaps").tx] = true
			p.odd = true
		case 8: // paths of which no light comes out
			n := nic("dark path")
			for _, in := range tx[:rapid.IntRange(1, min(2, len(tx))).Draw(t, "paths")] {
				p.darkPath[fmt.Sprintf("%s/%d>%d", n.rx.Switch, in.Port, n.rx.Port)] = true
			}
		case 9: // a mirror that is stuck
			n := nic("stuck")
			at := n.rx
			if rapid.Bool().Draw(t, "ingress") {
				at = n.tx
			}
			p.stuck[at] = true
		}
	}
	switch rapid.IntRange(0, 5).Draw(t, "monitors") {
	case 0:
		p.blind, p.odd = true, true
	case 1:
		p.blindIn = true
	}
	return p
}

// Whatever is wrong, and however much of it at once: nothing is claimed that is not so, unless it
// is marked; a dead fibre is dead; and nobody is told that all is well.
func TestFind_AnyFaults(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := plantFaults(t)
		opt := p.options()
		r, err := wiring.Find(context.Background(), p, opt)
		if errors.Is(err, wiring.ErrDark) {
			return // nothing to see by
		}
		if err != nil {
			t.Fatal(err)
		}
		if r.OK() && (len(p.shared) > 0 || slices.ContainsFunc(p.nics, func(n *fakeNIC) bool {
			return n.rxLoss == dead || n.txLoss == dead || n.rx != n.Rx || n.tx != n.Tx
		})) {
			t.Errorf("all is said to be well: %+v", r)
		}
		for i, got := range r.Fibres {
			n := p.nics[i/2]
			at, loss := n.tx, n.txLoss
			if got.End == wiring.Rx {
				at, loss = n.rx, n.rxLoss
			}
			what := fmt.Sprintf("%s of %s (really at %v, %v): %s, found at %v by %s (%s)", got.End, got.NIC, at, loss, got.State(), got.Found, got.How, got.Why)
			if got.Found != (lab.PortRef{}) && got.How != wiring.ByElimination && (got.Found != at || loss == dead) {
				t.Errorf("wrong: %s", what)
			}
			if got.OK() && (got.Found != at || loss == dead) {
				t.Errorf("wrong, and OK: %s", what)
			}
			if got.OK() && got.Measured && loss > wiring.DefaultDirty+wiring.ModuleError+0.1 && !(got.End == wiring.Tx && p.shared[got.NIC]) { // light of two adds up
				t.Errorf("dirty, and OK: %s", what)
			}
			if got.OK() && !got.Measured && got.How == wiring.ByLight && !p.blind {
				t.Errorf("OK, and its loss is not known: %s", what)
			}
			if got.Found == (lab.PortRef{}) && got.Why == "" {
				t.Errorf("no reason: %s", what)
			}
			if got.Verdict == wiring.Dead && loss < enough[got.End] && len(p.flap) == 0 {
				switch {
				case p.shared[got.NIC]: // it has no light of its own
				case got.End == wiring.Rx && p.readFault[got.NIC] != nil: // a carrier takes more
				default:
					t.Errorf("not dead: %s", what)
				}
			}
			if got.End == wiring.Rx && got.Verdict == wiring.Ambiguous && len(got.Candidates) > 0 && loss != dead && !slices.Contains(got.Candidates, at) && !p.odd {
				t.Errorf("not at any of %v: %s", got.Candidates, what)
			}
		}
		for _, s := range r.Strays {
			for _, n := range p.nics {
				if n.tx == s.Port && len(p.flap) == 0 && !p.blind && !p.shared[n.Name] {
					t.Errorf("%v is said to have light of nobody, and has that of %s", s.Port, n.Name)
				}
			}
		}
	})
}

// A mirror that is stuck at an ingress port is found, and costs nobody else the verdict.
func TestFind_StuckIngress(t *testing.T) {
	f := newFake(8, 8, "rail0")
	at := lab.PortRef{Switch: "rail0", Port: 3}
	f.stuck = map[lab.PortRef]bool{at: true}
	r := f.find(t, f.options())
	if len(r.Faults) != 1 || r.Faults[0].Port != at || r.Faults[0].Egress {
		t.Errorf("faults: %+v, want one, of ingress port 3", r.Faults)
	}
	for nic := 1; nic <= 8; nic++ {
		if got := fibre(t, r, nic, wiring.Rx); got.Verdict != wiring.AsClaimed {
			t.Errorf("rx of gpu%d: %v (%s)", nic, got.Verdict, got.Why)
		}
		if got := fibre(t, r, nic, wiring.Tx); (got.Verdict == wiring.AsClaimed && got.How == wiring.ByName) != (nic != 3) {
			t.Errorf("tx of gpu%d: %v by %v (%s)", nic, got.Verdict, got.How, got.Why)
		}
	}
}

// Where only egress ports have monitors, light that comes in is looked for there.
func TestFind_EgressMonitorsOnly(t *testing.T) {
	f := newFake(6, 8, "rail0")
	f.blindIn = true
	f.nics[1].tx.Port = 8 // where the lab file has nobody
	f.nics[2].txLoss = dead
	r := f.find(t, f.options())
	if got := fibre(t, r, 2, wiring.Tx); got.Verdict != wiring.Elsewhere || got.Found.Port != 8 {
		t.Errorf("tx of gpu2: %+v, want elsewhere, at port 8", got)
	}
	if got := fibre(t, r, 3, wiring.Tx); got.Verdict != wiring.NotFound {
		t.Errorf("tx of gpu3: %+v, want not found: it may be that the mirror is stuck", got)
	}
	if len(r.Faults)+len(r.Strays) > 0 {
		t.Errorf("faults %+v, strays %+v; want none", r.Faults, r.Strays)
	}
}

// One NIC, and 20 dB lost: there are no peers, and it is too much all the same.
func TestFind_DirtyWithoutPeers(t *testing.T) {
	f := newFake(1, 4, "rail0")
	f.nics[0].rxLoss = 20
	r := f.find(t, f.options())
	if got := fibre(t, r, 1, wiring.Rx); got.Verdict != wiring.AsClaimed || !got.Dirty || r.OK() {
		t.Errorf("rx: %+v, want as claimed and dirty", got)
	}
}
