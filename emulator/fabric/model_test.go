package fabric_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/emulator/fabric"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/timeline"
)

// TestMemory_Model moves circuits at random and holds the fabric, at rest, against the
// switch: a NIC has a carrier if there is light at its port, and frames go where the
// circuits lead. The truth is always in an order that can be.
func TestMemory_Model(t *testing.T) {
	const n = 4
	rapid.Check(t, func(rt *rapid.T) {
		seed := rapid.Uint64().Draw(rt, "seed")
		type move struct {
			kind, in, out int
			pause         time.Duration
		}
		moves := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) move {
			return move{
				rapid.IntRange(0, 3).Draw(t, "kind"), rapid.IntRange(1, n).Draw(t, "in"), rapid.IntRange(n+1, 2*n).Draw(t, "out"),
				time.Duration(rapid.IntRange(0, 40).Draw(t, "pause")) * ms,
			}
		}), 1, 25).Draw(rt, "moves")
		var bad string
		synctest.Test(t, func(t *testing.T) {
			d, cfg := pairOfHosts(t, n)
			cfg.Rung, cfg.Seed = fabric.Memory, seed
			f := start(t, cfg)
			var wires [n]*fabric.Wire
			var boxes [n]*inbox
			for i := range n {
				wires[i] = wire(t, f, fmt.Sprint("gpu", i+1))
				boxes[i] = receive(wires[i])
			}
			everybody := func() {
				for i, w := range wires {
					for j := range n {
						send(t, w, fmt.Sprint(i), addrOf(f, fmt.Sprint("gpu", j+1)))
					}
				}
			}
			for _, m := range moves {
				switch m.kind {
				case 0, 1:
					connect(t, d, fmt.Sprintf("%d>%d", m.in, m.out))
				case 2:
					disconnect(t, d, ocs.Port(m.in))
				case 3:
					if err := d.SetShutters(!d.ShutterClosed(ocs.Port(m.in)), ocs.Port(m.in)); err != nil {
						t.Fatal(err)
					}
				}
				everybody()
				time.Sleep(m.pause)
			}
			time.Sleep(time.Second)
			for _, box := range boxes {
				box.take()
			}
			everybody()
			lit := map[ocs.Port]ocs.Port{}
			for _, c := range d.CrossConnects().Slice() {
				if !d.ShutterClosed(c.Ingress) {
					lit[c.Egress] = c.Ingress
				}
			}
			for i, box := range boxes {
				host := fmt.Sprint("gpu", i+1)
				from := lit[ocs.Port(n+i+1)]
				if got := hasCarrier(t, f, host); got != (from != 0) {
					bad = fmt.Sprintf("%s: carrier %v, light from %d", host, got, from)
				}
				var want []string
				if from != 0 && lit[from+n] != 0 {
					want = []string{fmt.Sprintf("%d from 198.18.0.%d", from-1, from)}
				}
				if got := box.take(); !slices.Equal(got, want) {
					bad = fmt.Sprintf("%s got %v, want %v (%v)", host, got, want, d.CrossConnects())
				}
			}
			// A shutter is no operation, so its dark may come after the light of the same.
			shutter := slices.ContainsFunc(moves, func(m move) bool { return m.kind == 3 })
			marks, _ := f.Truth(0)
			if v := timeline.Check(marks); v != nil && !shutter {
				bad = v[0].Error()
			}
		})
		if bad != "" {
			rt.Fatal(bad)
		}
	})
}
