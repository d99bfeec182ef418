package loss_test

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/ocslab/ocslab/calibration/loss"
	"github.com/ocslab/ocslab/ocs"
)

var tables = flag.Bool("tables", false, "print the tables of critical.go anew; takes some minutes")

// normal returns a map of paths that scatter normally by 1 dB, and of ports that do not.
func normal(rng *rand.Rand, rows, columns int) *loss.Map {
	g := ocs.TwoSided(rows, columns)
	m := loss.NewMap(g.IngressPorts(), g.EgressPorts())
	for i := range rows {
		for j := range columns {
			m.Set(i, j, loss.Cell{State: loss.Measured, Loss: ocs.DB(rng.NormFloat64())})
		}
	}
	return m
}

// pathMaxima returns, of so many maps, how many spreads the worst path is out, sorted.
func pathMaxima(rows, columns, trials int) []float64 {
	return pathMaximaOf(rand.New(rand.NewPCG(uint64(rows), uint64(columns))), rows, columns, trials)
}

func pathMaximaOf(rng *rand.Rand, rows, columns, trials int) []float64 {
	all := make([]float64, trials)
	for t := range all {
		x := normal(rng, rows, columns).Model()
		most := 0.0
		for i := range rows {
			for j := range columns {
				most = max(most, float64(x.Rest(i, j)))
			}
		}
		all[t] = most / float64(x.RestSpread)
	}
	slices.Sort(all)
	return all
}

// portMaxima returns, of so many sides of n ports, how many spreads the farthest port is out, sorted.
func portMaxima(n, trials int, draw func(*rand.Rand) float64) []float64 {
	rng := rand.New(rand.NewPCG(uint64(n), 0))
	all := make([]float64, trials)
	x := make([]float64, n)
	for t := range all {
		for k := range x {
			x[k] = draw(rng)
		}
		slices.Sort(x)
		mid := (x[(n-1)/2] + x[n/2]) / 2
		for k := range x {
			x[k] = math.Abs(x[k] - mid)
		}
		slices.Sort(x)
		all[t] = x[n-1] / (1.4826 * (x[(n-1)/2] + x[n/2]) / 2)
	}
	slices.Sort(all)
	return all
}

func ofNormal(rng *rand.Rand) float64  { return rng.NormFloat64() }
func ofUniform(rng *rand.Rand) float64 { return rng.Float64() - 0.5 }

// upper returns the value that a share of sorted numbers is above.
func upper(sorted []float64, share float64) float64 {
	return sorted[min(int(math.Ceil((1-share)*float64(len(sorted)))), len(sorted)-1)]
}

// TestTables prints what critical.go holds, with -tables.
func TestTables(t *testing.T) {
	if !*tables {
		return
	}
	fmt.Println("var pathTable = [][]float64{")
	for i, rows := range loss.TableSizes {
		var b strings.Builder
		b.WriteString("\t{")
		for k, columns := range loss.TableSizes[:i+1] {
			trials := min(max(600_000/(rows*columns), 1500), 12_000)
			if k > 0 {
				b.WriteString(", ")
			}
			fmt.Fprintf(&b, "%.2f", upper(pathMaxima(rows, columns, trials), loss.PathShare))
		}
		fmt.Println(b.String() + "},")
	}
	var b strings.Builder
	b.WriteString("}\n\nvar portTable = []float64{")
	for i, n := range loss.TableSizes {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%.2f", max(upper(portMaxima(n, 60_000, ofNormal), loss.PortShare), upper(portMaxima(n, 60_000, ofUniform), loss.PortShare)))
	}
	fmt.Println(b.String() + "}")
}

// TestTables_Hold simulates small entries of the tables with other seeds: no more than two and a half times the share
// that is wanted is beyond them, which 2000 maps can tell.
func TestTables_Hold(t *testing.T) {
	for i, n := range loss.TableSizes {
		if n > 8 {
			break
		}
		const trials = 2000
		beyond := 0
		for _, x := range pathMaximaOf(rand.New(rand.NewPCG(99, uint64(n))), n, n, trials) {
			if x > loss.PathTable[i][i] {
				beyond++
			}
		}
		if share := float64(beyond) / trials; share > 2.5*loss.PathShare {
			t.Errorf("%d x %d: %.4f of maps are beyond %.2f, want %.4f", n, n, share, loss.PathTable[i][i], loss.PathShare)
		}
	}
}

// sound are maps of sound switches, in all ways that scatter is known to come: monitors off evenly, or
// most of them by less than their accuracy, or not at all; paths that scatter by little or much, cut off at a maximum, or evenly; connectors
// that scatter normally.
func sound(rng *rand.Rand, n int) *loss.Map {
	g := ocs.TwoSided(n, n)
	m := loss.NewMap(g.IngressPorts(), g.EgressPorts())
	m.Accuracy, m.Readings, m.Noise, m.Repeatability, m.Maps = []ocs.DB{0.2, 0.5, 1}[rng.IntN(3)], 5, .03, .05, n
	paths, connectors := []float64{0.05, 0.3, 0.5}[rng.IntN(3)], []float64{0, 0.1, 0.3}[rng.IntN(3)]
	even, monitors := rng.IntN(4) == 0, rng.IntN(3)
	port := make([]float64, 2*n)
	for k := range port {
		a := float64(m.Accuracy)
		port[k] = []float64{0, a * (2*rng.Float64() - 1), a * min(max(rng.NormFloat64()/2, -1), 1)}[monitors] + connectors*rng.NormFloat64()
	}
	for i := range n {
		for j := range n {
			e := min(paths*rng.NormFloat64(), 4*paths)
			if even {
				e = paths * (2*rng.Float64() - 1)
			}
			e += 0.1*(2*rng.Float64()-1) + 0.03/math.Sqrt(5)*rng.NormFloat64() // made again; noise
			m.Set(i, j, loss.Cell{State: loss.Measured, Loss: ocs.DB(3 + e + port[i] + port[n+j])})
		}
	}
	return m
}

// Of a hundred sound switches one has a flag, be it small or large. The bound is four standard deviations
// above that.
func TestAnalyze_FalseAlarmRate(t *testing.T) {
	for _, tc := range []struct{ n, trials int }{{4, 2000}, {5, 2000}, {6, 2000}, {7, 1500}, {8, 1500}, {9, 1000}, {10, 1000}, {12, 800}, {16, 400}, {32, 100}} {
		rng := rand.New(rand.NewPCG(7, uint64(tc.n)))
		flagged := 0
		found := map[string]int{}
		for range tc.trials {
			flags := sound(rng, tc.n).Analyze(loss.Limits{})
			if len(flags) > 0 {
				flagged++
				found[string(flags[0].Kind)]++
			}
		}
		want := float64(tc.trials) * loss.FalseAlarms
		t.Logf("%d x %d: %.2f %% of %d maps, first flags %v", tc.n, tc.n, 100*float64(flagged)/float64(tc.trials), tc.trials, found)
		if most := want + 4*math.Sqrt(want); float64(flagged) > most {
			t.Errorf("%d of %d sound maps of %d x %d are flagged, want %.0f", flagged, tc.trials, tc.n, tc.n, want)
		}
	}
}

// What a path or a port has to lose more to be found in 95 of 100 maps, in switches whose paths scatter by 0.3 dB
// and whose monitors are off by 0.5 dB at most.
func TestAnalyze_Power(t *testing.T) {
	for _, tc := range []struct {
		n, trials  int
		path, port ocs.DB
	}{{8, 200, 2.8, 3.6}, {32, 60, 2.2, 3.4}} {
		rng := rand.New(rand.NewPCG(8, uint64(tc.n)))
		found := map[loss.FlagKind]int{}
		for range tc.trials {
			m := planted(rng, tc.n, tc.path, tc.port)
			for _, f := range m.Analyze(loss.Limits{}) {
				if f.Kind == loss.BadPath && f.Path == m.Path(1, 2) || f.Kind == loss.DirtyIngress && f.Port == m.Ingress[0] {
					found[f.Kind]++
				}
			}
		}
		t.Logf("%d x %d: %v of %d", tc.n, tc.n, found, tc.trials)
		for _, kind := range []loss.FlagKind{loss.BadPath, loss.DirtyIngress} {
			if found[kind] < tc.trials*9/10 {
				t.Errorf("%d x %d: %s is found in %d of %d maps", tc.n, tc.n, kind, found[kind], tc.trials)
			}
		}
	}
}

// planted returns a map with a path and a port that lose more.
func planted(rng *rand.Rand, n int, path, port ocs.DB) *loss.Map {
	m := normal(rng, n, n)
	m.Accuracy, m.Readings, m.Noise, m.Repeatability = 0.5, 5, 0.03, 0.05
	wrong := make([]ocs.DB, 2*n)
	for k := range wrong {
		wrong[k] = ocs.DB(rng.Float64() - 0.5)
	}
	for i := range n {
		for j := range n {
			x := 3 + 0.3*m.At(i, j).Loss + wrong[i] + wrong[n+j]
			if i == 0 {
				x += port
			}
			if i == 1 && j == 2 {
				x += path
			}
			m.Set(i, j, loss.Cell{State: loss.Measured, Loss: x})
		}
	}
	return m
}

// TestPowerTable prints with -tables what is found with 95 %.
func TestPowerTable(t *testing.T) {
	if !*tables {
		return
	}
	for _, n := range []int{5, 8, 16, 32} {
		for _, kind := range []loss.FlagKind{loss.BadPath, loss.DirtyIngress} {
			for more := ocs.DB(1); more < 6; more += 0.1 {
				rng := rand.New(rand.NewPCG(8, uint64(n)))
				trials, found := 3200/n, 0
				for range trials {
					m := planted(rng, n, 0, more)
					if kind == loss.BadPath {
						m = planted(rng, n, more, 0)
					}
					for _, f := range m.Analyze(loss.Limits{}) {
						if f.Kind == kind && (f.Path == m.Path(1, 2) || f.Port == m.Ingress[0]) {
							found++
						}
					}
				}
				if found*100 >= trials*95 {
					fmt.Printf("%d x %d: %s of %.1f dB\n", n, n, kind, float64(more))
					break
				}
			}
		}
	}
}
