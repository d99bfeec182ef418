package loss_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ocslab/ocslab/calibration/loss"
	"github.com/ocslab/ocslab/ocs"
)

// measured measures all of a switch.
func measured(t *testing.T, x *glass, opt loss.Options) *loss.Map {
	t.Helper()
	m, err := loss.Measure(t.Context(), x.bench(), x.g.IngressPorts(), x.g.EgressPorts(), opt)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// kinds are the flags in short: "dirty-ingress 7", "bad-path 12>45".
func kinds(flags []loss.Flag) []string {
	var out []string
	for _, f := range flags {
		s := string(f.Kind)
		if f.Port != 0 {
			s += fmt.Sprintf(" %d", f.Port)
		}
		if f.Path.Ingress != 0 {
			s += " " + f.Path.String()
		}
		out = append(out, s)
	}
	slices.Sort(out)
	return out
}

// Losses are what they are, to within what is said.
func TestMeasure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newGlass(ocs.TwoSided(12, 8), 1)
		m := measured(t, x, loss.Options{Accuracy: 0.5})
		if !m.Complete() || m.Maps != 12 || m.Repeated != 16 {
			t.Errorf("complete %v, %d maps, %d paths made again", m.Complete(), m.Maps, m.Repeated)
		}
		outside := 0
		for i := range m.Ingress {
			for j := range m.Egress {
				c := m.Path(i, j)
				if off := m.At(i, j).Loss - x.loss[c]; math.Abs(float64(off)) > float64(m.U()) {
					outside++
				}
			}
		}
		if outside > 5 { // of 96; k = 2 is 95 %
			t.Errorf("%d of 96 losses are farther from the truth than ±%v", outside, m.U())
		}
		if got, want := float64(m.Noise), 0.02*math.Sqrt2; math.Abs(got-want) > want/3 {
			t.Errorf("noise %.4f dB, want about %.4f", got, want)
		}
		if got := float64(m.Repeatability); got < 0.02 || got > 0.1 {
			t.Errorf("repeatability %.4f dB, want about 0.05", got)
		}
		if flags := m.Analyze(loss.Limits{}); len(flags) > 0 {
			t.Errorf("flags of a good switch: %v", kinds(flags))
		}
	})
}

// The three faults of one switch are found, and nothing else, whatever the seed.
func TestMeasure_Faults(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			x := newGlass(ocs.TwoSided(32, 32), seed)
			x.port(7, 3)
			x.port(44, infinite)
			x.loss[ocs.CrossConnect{Ingress: 12, Egress: 45}] += 4
			m := measured(t, x, loss.Options{Readings: 3, Seed: seed})
			got := kinds(m.Analyze(loss.Limits{}))
			if diff := cmp.Diff([]string{"bad-path 12>45", "dead-egress 44", "dirty-ingress 7"}, got); diff != "" {
				t.Errorf("seed %d: %s", seed, diff)
			}
			if m.Complete() || m.Count(loss.Dark) != 32 {
				t.Errorf("seed %d: complete %v, %d paths are dark", seed, m.Complete(), m.Count(loss.Dark))
			}
		})
	}
}

func TestMeasure_Flags(t *testing.T) {
	for _, tc := range []struct {
		name  string
		g     ocs.Geometry
		fault func(x *glass)
		opt   loss.Options
		want  []string
		says  string // in one of the texts
	}{
		{name: "dark path", fault: func(x *glass) { x.loss[ocs.CrossConnect{Ingress: 2, Egress: 10}] = infinite },
			want: []string{"dark-path 2>10"}, says: "its loss is above 5"},
		{name: "dead ingress", fault: func(x *glass) { x.port(3, infinite) },
			want: []string{"dead-ingress 3"}, says: "all 8 paths are dark"},
		{name: "all dark", fault: func(x *glass) {
			for _, p := range x.g.IngressPorts() {
				x.port(p, infinite)
			}
		}, want: []string{"cannot-tell"}, says: "all 64 paths are dark"},
		{name: "ingress without light", fault: func(x *glass) { delete(x.launch, 5); delete(x.launch, 6) },
			want: []string{"no-light"}, says: "ingress 5,6: no light enters"},
		{name: "half of the ports", fault: func(x *glass) {
			for p := range ocs.Port(4) {
				x.port(p+1, 4)
			}
		}, want: []string{"cannot-tell"}, says: "it cannot be told"},
		{name: "port that reaches few others", fault: func(x *glass) {
			for j := ocs.Port(9); j < 14; j++ {
				x.loss[ocs.CrossConnect{Ingress: 3, Egress: j}] = infinite
			}
		}, want: []string{"dark-path 3"}, says: "5 of 8 paths are dark"},
		{name: "dirty egress", fault: func(x *glass) { x.port(12, 3) },
			want: []string{"dirty-egress 12"}, says: "clean"},
		{name: "two faults in a row", fault: func(x *glass) {
			x.port(2, 3)
			x.loss[ocs.CrossConnect{Ingress: 2, Egress: 13}] += 4
		}, want: []string{"bad-path 2>13", "dirty-ingress 2"}},
		{name: "monitor far off", fault: func(x *glass) { x.wrong[4] = -4 },
			want: []string{"monitor 1>9", "monitor 4"}, says: "its monitor may read wrong"},
		{name: "source that drifts", fault: func(x *glass) {
			x.drift = func(p ocs.Port, n int) ocs.DB {
				if p == 6 {
					return ocs.DB(n) / 10
				}
				return 0
			}
		}, want: []string{"source-moved 6"}, says: "ingress 6: its source moved"},
		{name: "light without a circuit", fault: func(x *glass) { x.leak = map[ocs.Port]ocs.DBm{11: -30} },
			want: []string{"leak 11"}, says: "light without a circuit"},
		{name: "no monitors at ingress, launch given", fault: func(x *glass) {
			x.blind = map[ocs.Port]bool{}
			for _, p := range x.g.IngressPorts() {
				x.blind[p] = true
				x.launch[p] = -1
			}
		}, opt: loss.Options{Launch: &loss.Reference{Power: -1, U: 0.5}}},
		{name: "no monitors at ingress, nothing given", fault: func(x *glass) {
			x.blind = map[ocs.Port]bool{}
			for _, p := range x.g.IngressPorts() {
				x.blind[p] = true
			}
		}, want: []string{"no-light"}, says: "--reference"},
		{name: "single-sided", g: ocs.SingleSided(9), fault: func(x *glass) { x.loss[ocs.CrossConnect{Ingress: 9, Egress: 2}] += 5 },
			want: []string{"bad-path 9>2"}},
		{name: "light long after the acknowledgement", fault: func(x *glass) { x.settles = 800 * time.Millisecond }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if !tc.g.Known() {
					tc.g = ocs.TwoSided(8, 8)
				}
				x := newGlass(tc.g, 3)
				for p := range x.wrong {
					x.wrong[p] /= 4
				}
				tc.fault(x)
				m := measured(t, x, tc.opt)
				flags := m.Analyze(loss.Limits{})
				got := kinds(flags)
				if tc.name == "monitor far off" { // which path shows it most is chance
					for i, k := range got {
						if strings.HasPrefix(k, "monitor 4>") {
							got[i] = "monitor 1>9"
						}
					}
					slices.Sort(got)
				}
				if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("%s%+v", diff, flags)
				}
				if !slices.ContainsFunc(flags, func(f loss.Flag) bool { return strings.Contains(f.Text+f.Do, tc.says) }) && tc.says != "" {
					t.Errorf("none of the flags says %q: %+v", tc.says, flags)
				}
				stored(t, m)
				var text, svg strings.Builder
				if err := errors.Join(m.Text(&text, flags, loss.TextOptions{}), m.SVG(&svg, "a title", flags)); err != nil {
					t.Error(err)
				}
				for _, l := range strings.Split(text.String(), "\n") {
					if len([]rune(l)) > 80 {
						t.Errorf("line of %d columns: %s", len(l), l)
					}
				}
				if s := text.String() + svg.String(); strings.Contains(s, "NaN") || strings.Contains(s, "Inf") {
					t.Error("what people read has no number:", s)
				}
			})
		})
	}
}

// stored fails when what is stored is not what comes back.
func stored(t *testing.T, m *loss.Map) {
	t.Helper()
	data, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	var back loss.Map
	if err := json.Unmarshal(data, &back); err != nil {
		t.Fatalf("%v: %s", err, data)
	}
	again, err := json.Marshal(&back)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(data), string(again)); diff != "" {
		t.Error(diff)
	}
	for i := range m.Ingress {
		for j := range m.Egress {
			was, is := m.At(i, j), back.At(i, j)
			if was.State != is.State || math.Abs(float64(was.Loss-is.Loss)) > 0.0006 {
				t.Errorf("%v: stored %+v, read back %+v", m.Path(i, j), was, is)
			}
		}
	}
}

func TestMeasure_Refused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newGlass(ocs.TwoSided(4, 4), 1)
		x.blind = map[ocs.Port]bool{7: true}
		_, err := loss.Measure(t.Context(), x.bench(), x.g.IngressPorts(), x.g.EgressPorts(), loss.Options{})
		if !errors.Is(err, ocs.ErrNotSupported) || !strings.Contains(err.Error(), "egress 7") {
			t.Errorf("without a monitor at an egress: %v", err)
		}
		x = newGlass(ocs.TwoSided(4, 4), 1)
		if _, err := loss.Measure(t.Context(), x.bench(), x.g.IngressPorts(), []ocs.Port{4}, loss.Options{}); !errors.Is(err, ocs.ErrPort) {
			t.Errorf("with an ingress as egress: %v", err)
		}
		if len(x.made) > 0 {
			t.Error("circuits were made for nothing")
		}
	})
}

// However it ends, what was measured until then is there, and what was not says so.
func TestMeasure_Interrupted(t *testing.T) {
	broken := errors.New("broken")
	synctest.Test(t, func(t *testing.T) {
		x := newGlass(ocs.TwoSided(8, 8), 1)
		x.fail = func(n int, m ocs.Map) (ocs.Map, error) {
			if n == 5 {
				return m, broken
			}
			return m, nil
		}
		m, err := loss.Measure(t.Context(), x.bench(), x.g.IngressPorts(), x.g.EgressPorts(), loss.Options{})
		if !errors.Is(err, broken) || m.Maps != 4 || m.Count(loss.Measured) != 32 || m.Count(loss.Unmeasured) != 32 {
			t.Errorf("error %v after %d maps, %d paths measured", err, m.Maps, m.Count(loss.Measured))
		}
		stored(t, m)

		ctx, cancel := context.WithTimeoutCause(t.Context(), 3*time.Second, broken)
		defer cancel()
		x = newGlass(ocs.TwoSided(8, 8), 1)
		m, err = loss.Measure(ctx, x.bench(), x.g.IngressPorts(), x.g.EgressPorts(), loss.Options{})
		if !errors.Is(err, broken) || m.Complete() {
			t.Errorf("cancelled: %v, complete %v", err, m.Complete())
		}
	})
}

// A dead port costs each map some time, but not all the patience.
func TestMeasure_DeadPortTakesNotForever(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newGlass(ocs.TwoSided(16, 16), 1)
		good := measured(t, x, loss.Options{}).Took
		x.port(20, infinite)
		if bad := measured(t, x, loss.Options{}).Took; bad > 3*good {
			t.Errorf("%v with a dead port, %v without", bad, good)
		}
	})
}

// A path that is dark once and lit the other time is no good path. Which map is the last, and so not made again, is
// known: with 6 x 6 ports it joins 1 to 12 and 2 to 7.
func TestMeasure_Unsteady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newGlass(ocs.TwoSided(6, 6), 1)
		fickle := ocs.CrossConnect{Ingress: 2, Egress: 8}
		seen := 0
		x.fail = func(_ int, m ocs.Map) (ocs.Map, error) {
			if m.Has(fickle) {
				if seen++; seen > 1 {
					m = m.Minus(ocs.MustMap(fickle)) // it says it is there
				}
			}
			return m, nil
		}
		m := measured(t, x, loss.Options{Repeat: 5}) // all but the last map
		if got := kinds(m.Analyze(loss.Limits{})); seen != 2 || !slices.Contains(got, "unsteady 2>8") {
			t.Errorf("made %d times: %v", seen, got)
		}
	})
}

// A port whose first paths are dark, and that has light later, is not given up: the paths that were not waited for
// are made once more. Here the light of one comes late, and would be missed.
func TestMeasure_SeemsDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newGlass(ocs.TwoSided(8, 8), 1)
		for i := ocs.Port(1); i <= 8; i++ {
			if i != 2 && i != 3 { // two of its paths are good, and one of these is made when the port seems dead
				x.loss[ocs.CrossConnect{Ingress: i, Egress: 12}] = infinite
			}
		}
		x.late = map[ocs.CrossConnect]time.Duration{{Ingress: 3, Egress: 12}: 400 * time.Millisecond}
		m := measured(t, x, loss.Options{})
		for _, i := range []ocs.Port{2, 3} {
			if c, _ := m.Find(ocs.CrossConnect{Ingress: i, Egress: 12}); c.State != loss.Measured {
				t.Errorf("path %d>12 is %v", i, c.State)
			}
		}
		if n := m.Count(loss.Dark); n != 6 {
			t.Errorf("%d paths are dark, want 6", n)
		}
	})
}
