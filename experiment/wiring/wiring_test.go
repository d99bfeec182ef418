package wiring_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/experiment/wiring"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/ocs"
)

func TestSteps(t *testing.T) {
	for ports, want := range map[int]int{0: 0, 1: 2, 2: 2, 3: 3, 4: 4, 6: 4, 7: 5, 16: 6, 32: 7, 35: 7, 36: 8, 64: 8, 192: 10, 384: 11} {
		if got := wiring.Steps(ports); got != want {
			t.Errorf("Steps(%d) = %d, want %d", ports, got, want)
		}
	}
}

// Ensure no loss of light in any steps, no gain, and no single error makes one word of another,
// however little light there is, and that no step needs more light than there is, but rarely.
func TestCode_Detects(t *testing.T) {
	for _, x := range []struct {
		groups []wiring.Group
		steps  int
	}{
		{[]wiring.Group{{Ports: 1, Sources: 1}}, 2},
		{[]wiring.Group{{Ports: 2, Sources: 1}}, 2},
		{[]wiring.Group{{Ports: 5, Sources: 5}}, 4},
		{[]wiring.Group{{Ports: 32, Sources: 32}}, 7},
		{[]wiring.Group{{Ports: 32, Sources: 14}}, 7},
		{[]wiring.Group{{Ports: 31, Sources: 4}}, 16},
		{[]wiring.Group{{Ports: 64, Sources: 64}}, 8},
		{[]wiring.Group{{Ports: 32, Sources: 32}, {Ports: 32, Sources: 8}}, 12},
		{[]wiring.Group{{Ports: 384, Sources: 384}}, 11},
		{[]wiring.Group{{Ports: 384, Sources: 16}}, 48},
	} {
		code, n, weight := wiring.Code(x.groups)
		if n != x.steps {
			t.Errorf("Code(%v): %d steps, want %d", x.groups, n, x.steps)
		}
		at := 0
		for _, g := range x.groups {
			load := make([]int, n)
			for _, w := range code[at : at+g.Ports] {
				for _, s := range w {
					load[s]++
				}
			}
			maps := 0
			for _, l := range load {
				maps += max(1, (l+g.Sources-1)/g.Sources)
			}
			if maps > n+n/8 {
				t.Errorf("Code(%v) lights %v ports in its steps: %d maps for %d steps", x.groups, load, maps, n)
			}
			at += g.Ports
		}
		if len(code) != at {
			t.Fatalf("Code(%v) has %d words", x.groups, len(code))
		}
		for i, w := range code {
			if len(w) != weight || weight < 1 || weight >= n {
				t.Errorf("Code(%v)[%d] = %v of %d steps, want %d ones", x.groups, i, w, n, weight)
			}
			for _, v := range code[:i] {
				if slices.Equal(w, v) { // of the same weight, so neither contains the other
					t.Errorf("Code(%v) has %v twice", x.groups, w)
				}
			}
		}
	}
}

// fibre returns what was found of a fibre.
func fibre(t testing.TB, r *wiring.Result, nic int, end wiring.End) wiring.Fibre {
	t.Helper()
	name := fmt.Sprintf("gpu%d/ens1f0", nic)
	for _, f := range r.Fibres {
		if f.NIC == name && f.End == end {
			return f
		}
	}
	t.Fatalf("nothing about %s of %s", end, name)
	return wiring.Fibre{}
}

func TestFind_AsClaimed(t *testing.T) {
	f := newFake(8, 8, "rail0")
	r := f.find(t, f.options())
	if !r.OK() {
		t.Errorf("not OK: %+v", r)
	}
	if len(r.Fibres) != 16 {
		t.Errorf("%d fibres, want 16", len(r.Fibres))
	}
	if got := fibre(t, r, 1, wiring.Rx).Loss; math.Abs(float64(got)) > 0.1 {
		t.Errorf("loss of a fibre that loses nothing: %v", got)
	}
}

// 32 NICs on a 32x32 switch, two swaps and a dead fibre: all named, in the steps of the code.
func TestFind_TwoSwapsAndADeadFibre(t *testing.T) {
	f := newFake(32, 32, "rail0")
	f.nics[2].rx, f.nics[16].rx = f.nics[16].rx, f.nics[2].rx
	f.nics[4].tx, f.nics[9].tx = f.nics[9].tx, f.nics[4].tx
	f.nics[20].rxLoss = dead
	r := f.find(t, f.options())
	words, confirm, names := r.Count()
	t.Logf("%d maps for words of %d bits (log2: %d), %d to confirm, %d for names", words, r.Bits, r.Information, confirm, names)
	if words != 7 || r.Bits != 7 || r.Information != 5 {
		t.Errorf("%d maps for words of %d bits (at least %d), want 7 of 7 (5)", words, r.Bits, r.Information)
	}
	for _, x := range []struct {
		nic, at int
		end     wiring.End
		port    ocs.Port
	}{{3, 17, wiring.Rx, 49}, {17, 3, wiring.Rx, 35}, {5, 10, wiring.Tx, 10}, {10, 5, wiring.Tx, 5}} {
		got := fibre(t, r, x.nic, x.end)
		want := []string{fmt.Sprintf("gpu%d/ens1f0", x.nic), fmt.Sprintf("gpu%d/ens1f0", x.at)}
		if got.Verdict != wiring.Elsewhere || got.Found.Port != x.port || !cmp.Equal(got.Swapped, want) {
			t.Errorf("%s of gpu%d: %v at %v, exchanged %v; want elsewhere at %v, %v", x.end, x.nic, got.Verdict, got.Found, got.Swapped, x.port, want)
		}
	}
	rx := fibre(t, r, 21, wiring.Rx)
	if want := []lab.PortRef{{Switch: "rail0", Port: 53}}; rx.Verdict != wiring.Dead || !cmp.Equal(rx.Candidates, want) {
		t.Errorf("rx of gpu21: %v, may be at %v; want dead, %v", rx.Verdict, rx.Candidates, want)
	}
	if tx := fibre(t, r, 21, wiring.Tx); tx.Verdict != wiring.AsClaimed || tx.How != wiring.ByElimination {
		t.Errorf("tx of gpu21: %v by %v, want as claimed by elimination", tx.Verdict, tx.How)
	}
}

// Two dead receive fibres: neither NIC can say its name, so neither transmit fibre is told, and
// no port is guessed.
func TestFind_TwoDeadFibresAreNotGuessed(t *testing.T) {
	f := newFake(8, 8, "rail0")
	f.nics[1].rxLoss, f.nics[5].rxLoss = dead, dead
	r := f.find(t, f.options())
	rxPorts := []lab.PortRef{{Switch: "rail0", Port: 10}, {Switch: "rail0", Port: 14}}
	txPorts := []lab.PortRef{{Switch: "rail0", Port: 2}, {Switch: "rail0", Port: 6}}
	for _, nic := range []int{2, 6} {
		if rx := fibre(t, r, nic, wiring.Rx); rx.Verdict != wiring.Dead || !cmp.Equal(rx.Candidates, rxPorts) {
			t.Errorf("rx of gpu%d: %v, may be at %v; want dead, %v", nic, rx.Verdict, rx.Candidates, rxPorts)
		}
		tx := fibre(t, r, nic, wiring.Tx)
		slices.SortFunc(tx.Candidates, func(a, b lab.PortRef) int { return int(a.Port) - int(b.Port) })
		if tx.Verdict != wiring.Ambiguous || !cmp.Equal(tx.Candidates, txPorts) {
			t.Errorf("tx of gpu%d: %v, may be at %v; want ambiguous, %v", nic, tx.Verdict, tx.Candidates, txPorts)
		}
	}
}

// More light than NICs that can hear: each of it gets its turn.
func TestFind_FewListeners(t *testing.T) {
	f := newFake(8, 8, "rail0")
	for i := range 6 {
		f.nics[i].rxLoss = dead
	}
	r := f.find(t, f.options())
	for _, nic := range []int{7, 8} {
		if tx := fibre(t, r, nic, wiring.Tx); tx.Verdict != wiring.AsClaimed {
			t.Errorf("tx of gpu%d, which says its name: %v: %s", nic, tx.Verdict, tx.Why)
		}
	}
}

func TestFind_Flags(t *testing.T) {
	for _, x := range []struct {
		name  string
		plant func(*fake)
		nic   int
		end   wiring.End
		want  wiring.Verdict
		why   string
	}{
		{"splitter", func(f *fake) { f.nics[2].rx = f.nics[1].rx }, 3, wiring.Rx, wiring.Contradictory, "gpu2/ens1f0 and gpu3/ens1f0 all see the light of rail0/10"},
		{"coupler", func(f *fake) { f.nics[2].tx = f.nics[1].tx }, 3, wiring.Tx, wiring.Contradictory, "the names of"},
		{"dead tx", func(f *fake) { f.nics[3].txLoss = dead }, 4, wiring.Tx, wiring.Dead, "its name came in at no port that has light"},
		{"stray light", func(f *fake) {
			f.disturb = func(_ int, nic string, rx ocs.DBm) ocs.DBm {
				if nic == "gpu1/ens1f0" {
					return -3
				}
				return rx
			}
		}, 1, wiring.Rx, wiring.Contradictory, "light in every step"},
		{"light lost", func(f *fake) {
			n := 0
			f.disturb = func(_ int, nic string, rx ocs.DBm) ocs.DBm {
				if nic == "gpu1/ens1f0" && rx > -20 {
					if n++; n <= 2 { // two readings of its first bright step
						return -60
					}
				}
				return rx
			}
		}, 1, wiring.Rx, wiring.Contradictory, "light was lost"},
		{"neither light nor dark", func(f *fake) {
			f.disturb = func(_ int, nic string, rx ocs.DBm) ocs.DBm {
				if nic == "gpu1/ens1f0" && rx > -20 {
					return wiring.DefaultThreshold
				}
				return rx
			}
		}, 1, wiring.Rx, wiring.Ambiguous, "neither light nor dark"},
		{"no module", func(f *fake) { f.readFault["gpu5/ens1f0"] = errors.New("no EEPROM") }, 5, wiring.Rx, wiring.AsClaimed, ""},
		{"elsewhere, on a free port", func(f *fake) { f.nics = f.nics[:4]; f.nics[0].rx.Port = 16 }, 1, wiring.Rx, wiring.Elsewhere, ""},
		{"other switch", func(f *fake) { f.nics = f.nics[:4]; f.nics[0].rx = lab.PortRef{Switch: "elsewhere", Port: 9} }, 1, wiring.Rx, wiring.Dead, "no light in any step"},
		{"nobody may speak", func(f *fake) { f.mute = fmt.Errorf("%w: not permitted", wiring.ErrMute) }, 1, wiring.Tx, wiring.Unverified, "no frames can be sent: not permitted"},
	} {
		t.Run(x.name, func(t *testing.T) {
			f := newFake(8, 8, "rail0")
			x.plant(f)
			r := f.find(t, f.options())
			got := fibre(t, r, x.nic, x.end)
			if got.Verdict != x.want || !strings.Contains(got.Why, x.why) {
				t.Errorf("%v, %q; want %v, %q", got.Verdict, got.Why, x.want, x.why)
			}
			if x.name == "no module" {
				if got.How != wiring.ByCarrier {
					t.Errorf("told by %v, want carrier", got.How)
				}
				return
			}
			if r.OK() {
				t.Error("said to be OK")
			}
		})
	}
}

// A path that stays dark is tried with other light, and is a fault only if that does not help.
func TestFind_DarkPaths(t *testing.T) {
	f := newFake(8, 8, "rail0")
	for i := 1; i <= 8; i++ {
		f.darkPath[fmt.Sprintf("rail0/%d>12", i)] = true
	}
	r := f.find(t, f.options())
	if len(r.Faults) != 1 || r.Faults[0].Port.Port != 12 {
		t.Errorf("faults: %+v, want one, of port 12", r.Faults)
	}
	if rx := fibre(t, r, 4, wiring.Rx); rx.Verdict != wiring.NotFound || !slices.Contains(rx.Candidates, lab.PortRef{Switch: "rail0", Port: 12}) {
		t.Errorf("rx of gpu4: %+v, want not found, maybe at port 12", rx)
	}
	f = newFake(8, 8, "rail0")
	f.darkPath["rail0/1>12"] = true
	f.darkPath["rail0/2>12"] = true
	if r := f.find(t, f.options()); len(r.Faults) > 0 || fibre(t, r, 4, wiring.Rx).Verdict != wiring.AsClaimed {
		t.Errorf("one path is dark, and others not: %+v, %+v", r.Faults, fibre(t, r, 4, wiring.Rx))
	}
}

// With light of only a few NICs each step takes several maps, which are counted.
func TestFind_FewSources(t *testing.T) {
	f := newFake(8, 8, "rail0")
	for i := 2; i < 8; i++ {
		f.nics[i].txLoss = dead
	}
	r := f.find(t, f.options())
	words, _, _ := r.Count()
	if r.Bits != 8 || r.Weight != 2 || words != 8 {
		t.Errorf("%d maps for %d bits with two sources of light, want 8", words, r.Bits)
	}
	for nic := 1; nic <= 8; nic++ {
		if got := fibre(t, r, nic, wiring.Rx); got.Verdict != wiring.AsClaimed {
			t.Errorf("rx of gpu%d: %v (%s)", nic, got.Verdict, got.Why)
		}
		want := wiring.Dead
		if nic <= 2 {
			want = wiring.AsClaimed
		}
		if got := fibre(t, r, nic, wiring.Tx); got.Verdict != want {
			t.Errorf("tx of gpu%d: %v (%s), want %v", nic, got.Verdict, got.Why, want)
		}
	}
}

func TestFind_NoLight(t *testing.T) {
	f := newFake(2, 4, "rail0")
	f.nics[0].txLoss, f.nics[1].txLoss = dead, dead
	r, err := wiring.Find(context.Background(), f, f.options())
	if !errors.Is(err, wiring.ErrDark) || r.Complete || r.OK() {
		t.Errorf("%v, %+v; want ErrDark", err, r)
	}
}

func TestFind_LeftOut(t *testing.T) {
	f := newFake(4, 4, "rail0")
	opt := f.options()
	opt.Egress = opt.Egress[1:] // the port of gpu1
	opt.LeftOut = []wiring.PortNote{{Port: f.nics[0].Rx, Egress: true, Why: "it is protected"}}
	f.nics[1].rxLoss = dead
	r := f.find(t, opt)
	if got := fibre(t, r, 1, wiring.Rx); got.Verdict != wiring.Unverified || !strings.Contains(got.Why, "it is protected") {
		t.Errorf("rx of gpu1: %+v, want unverified", got)
	}
	if got := fibre(t, r, 2, wiring.Rx); got.Verdict != wiring.NotFound {
		t.Errorf("rx of gpu2: %+v, want not found: it may be at the port that was left out", got)
	}
}

func TestFind_Strays(t *testing.T) {
	f := newFake(4, 8, "rail0")
	f.stray[lab.PortRef{Switch: "rail0", Port: 7}] = -2
	r := f.find(t, f.options())
	if len(r.Strays) != 1 || r.Strays[0].Port.Port != 7 || r.OK() {
		t.Errorf("strays: %+v, want port 7", r.Strays)
	}
}

// Whatever the permutation, and with up to two dead and two dirty fibres of either end: what is
// claimed to have been seen is so, and what is wrong is flagged.
func TestFind_NeverWrong(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		switches := []string{"rail0", "rail1"}[:rapid.IntRange(1, 2).Draw(t, "switches")]
		side := rapid.IntRange(3, 9).Draw(t, "side")
		nics := rapid.IntRange(2, side*len(switches)).Draw(t, "nics")
		f := newFake(nics, side, switches...)
		tx, rx := f.options().Ingress, f.options().Egress
		tx, rx = rapid.Permutation(tx).Draw(t, "tx"), rapid.Permutation(rx).Draw(t, "rx")
		for i, n := range f.nics {
			n.tx, n.rx = tx[i], rx[i]
		}
		pick := rapid.SliceOfNDistinct(rapid.IntRange(0, 2*nics-1), 0, min(4, 2*nics), rapid.ID[int]).Draw(t, "bad")
		deadAt, dirtyAt := map[int]bool{}, map[int]bool{}
		for i, k := range pick {
			loss := &f.nics[k/2].txLoss
			if k%2 == 1 {
				loss = &f.nics[k/2].rxLoss
			}
			if i < 2 {
				*loss, deadAt[k] = dead, true
			} else {
				*loss, dirtyAt[k] = ocs.DB(rapid.Float64Range(2, 24).Draw(t, "loss")), true
			}
		}
		r, err := wiring.Find(context.Background(), f, f.options())
		if errors.Is(err, wiring.ErrDark) {
			return // nothing to see by
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Fibres) != 2*nics {
			t.Fatalf("%d fibres of %d NICs", len(r.Fibres), nics)
		}
		dim := len(r.LeftOut) > 0 // a switch without any light
		for i, got := range r.Fibres {
			n := f.nics[i/2]
			k, at, claimed := i/2*2, n.tx, n.Tx
			if got.End == wiring.Rx {
				k, at, claimed = k+1, n.rx, n.Rx
			}
			if (got.Found != lab.PortRef{}) {
				if got.Found != at && got.How != wiring.ByElimination {
					t.Errorf("%s of %s is at %v, and was found at %v", got.End, got.NIC, at, got.Found)
				}
				if got.Found != at && got.OK() {
					t.Errorf("%s of %s is wrong and said to be OK", got.End, got.NIC)
				}
				if (got.Verdict == wiring.AsClaimed) != (got.Found == claimed) {
					t.Errorf("%s of %s found at %v, claimed at %v: %v", got.End, got.NIC, got.Found, claimed, got.Verdict)
				}
			} else if got.Why == "" {
				t.Errorf("%s of %s: %v without a reason", got.End, got.NIC, got.Verdict)
			}
			switch {
			case deadAt[k] && got.OK():
				t.Errorf("%s of %s is dead, and %v", got.End, got.NIC, got.Verdict)
			case deadAt[k] && got.End == wiring.Rx && got.Verdict != wiring.Dead && got.Verdict != wiring.NotFound && got.Verdict != wiring.Unverified:
				t.Errorf("%s of %s is dead, and %v", got.End, got.NIC, got.Verdict)
			case dirtyAt[k] && got.Measured && got.Peers >= 2 && !got.Dirty:
				t.Errorf("%s of %s is dirty (loss %v, over peers %v), and that was not said", got.End, got.NIC, got.Loss, got.Excess)
			case !dirtyAt[k] && got.Dirty:
				t.Errorf("%s of %s is clean, and said to be dirty: loss %v, over peers %v", got.End, got.NIC, got.Loss, got.Excess)
			case got.End == wiring.Rx && !deadAt[k] && !dirtyAt[k] && !dim && got.Found != at:
				t.Errorf("%s of %s is well at %v, and was not found: %v, %s", got.End, got.NIC, at, got.Verdict, got.Why)
			}
		}
		if len(pick) > 0 && r.OK() {
			t.Errorf("%d bad fibres, and all is said to be well", len(pick))
		}
	})
}

// Readings that are wrong at random are flagged, or at least make no claim that the
// confirming map contradicts.
func TestFind_NoiseIsFlagged(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := newFake(6, 6, "rail0")
		step := rapid.IntRange(1, 4).Draw(t, "step")
		level := ocs.DBm(rapid.SampledFrom([]float64{-60, -30, -2}).Draw(t, "level"))
		f.disturb = func(set int, nic string, rx ocs.DBm) ocs.DBm {
			if set == step && nic == "gpu3/ens1f0" {
				return level
			}
			return rx
		}
		r, err := wiring.Find(context.Background(), f, f.options())
		if err != nil {
			t.Fatal(err)
		}
		for _, got := range r.Fibres {
			if (got.Found != lab.PortRef{}) && got.Found != got.Claimed {
				t.Errorf("%s of %s found at %v", got.End, got.NIC, got.Found)
			}
		}
	})
}
