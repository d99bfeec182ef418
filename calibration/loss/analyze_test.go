package loss_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ocslab/ocslab/calibration/loss"
	"github.com/ocslab/ocslab/ocs"
)

// scattered returns a map of n x n paths whose losses scatter as those of good switches do: paths
// normally, and ports by what their monitors may be wrong.
func scattered(n int, seed uint64) *loss.Map {
	rng := rand.New(rand.NewPCG(seed, 2))
	g := ocs.TwoSided(n, n)
	m := loss.NewMap(g.IngressPorts(), g.EgressPorts())
	m.Accuracy, m.Readings, m.Noise, m.Repeatability, m.Maps = 1, 5, .03, .05, n
	wrong := make([]float64, 2*n)
	for k := range wrong {
		wrong[k] = 2*rng.Float64() - 1
	}
	for i := range n {
		for j := range n {
			m.Set(i, j, loss.Cell{State: loss.Measured, Loss: ocs.DB(2.5 + 0.35*rng.NormFloat64() + wrong[i] + wrong[n+j])})
		}
	}
	return m
}

// Good switches are seldom flagged, be they small or large.
func TestAnalyze_FalseAlarms(t *testing.T) {
	for _, tc := range []struct{ n, trials, most int }{{8, 100, 20}, {16, 60, 6}, {32, 30, 3}} {
		alarms := 0
		for seed := range uint64(tc.trials) {
			alarms += len(scattered(tc.n, seed).Analyze(loss.Limits{}))
		}
		if alarms > tc.most {
			t.Errorf("%d false alarms in %d maps of %d x %d", alarms, tc.trials, tc.n, tc.n)
		}
	}
}

// Of a few ports nothing is said that nobody can know.
func TestAnalyze_FewPorts(t *testing.T) {
	for _, n := range []int{1, 2, 3} {
		if flags := scattered(n, 1).Analyze(loss.Limits{}); len(flags) > 0 {
			t.Errorf("%d x %d: %+v", n, n, flags)
		}
	}
	if flags := loss.NewMap(nil, nil).Analyze(loss.Limits{}); len(flags) > 0 {
		t.Errorf("no ports: %+v", flags)
	}
}

// How much a port or path loses more than its peers comes out as it was put in.
func TestAnalyze_Excess(t *testing.T) {
	m := scattered(32, 4)
	for j := range m.Egress {
		m.Set(4, j, loss.Cell{State: loss.Measured, Loss: m.At(4, j).Loss + 6})
	}
	m.Set(9, 9, loss.Cell{State: loss.Measured, Loss: m.At(9, 9).Loss + 5})
	for _, f := range m.Analyze(loss.Limits{}) {
		want := map[loss.FlagKind]ocs.DB{loss.DirtyIngress: 6, loss.BadPath: 5}[f.Kind]
		if slack := f.U + 1; f.Excess < want-slack || f.Excess > want+slack {
			t.Errorf("%s: %v ±%v, want about %v", f.Kind, f.Excess, f.U, want)
		}
	}
}

func TestAgainst(t *testing.T) {
	m := scattered(4, 1)
	before := m.Table()
	moved := ocs.CrossConnect{Ingress: 2, Egress: 6}
	before[moved] -= 0.8
	delete(before, ocs.CrossConnect{Ingress: 1, Egress: 5})
	before[ocs.CrossConnect{Ingress: 9, Egress: 6}] = 1
	m.Set(3, 3, loss.Cell{State: loss.Dark, Loss: 40})
	c := m.Against(before, 0.5, 0.1)
	got := fmt.Sprintf("paths %d over %d new %v missing %v outside %d", c.Paths, len(c.Over), c.New, c.Missing, c.Outside)
	if diff := cmp.Diff("paths 14 over 1 new [1>5] missing [4>8] outside 1", got); diff != "" {
		t.Error(diff)
	}
	if d := c.Over[0]; d.Path != moved || d.More < 0.79 || d.More > 0.81 {
		t.Errorf("the path that moved: %+v", d)
	}
	// What is not known well enough is no alarm.
	if c := m.Against(before, 0.5, 1); len(c.Over) > 0 {
		t.Errorf("alarms %v below the uncertainty", c.Over)
	}
	for p := range before {
		before[p] -= 2
	}
	if c := m.Against(before, 0.5, 0.1); c.Offset < 1.9 || c.Offset > 2.1 || len(c.Over) != 14 {
		t.Errorf("all worse by 2 dB: offset %v, %d over", c.Offset, len(c.Over))
	}
	if c := m.Against(loss.Table{}, 0.5, 0.1); c.Paths != 0 || len(c.New) != 15 {
		t.Errorf("against nothing: %+v", c)
	}
}

func TestReadTable(t *testing.T) {
	for _, tc := range []struct{ name, text, want string }{
		{"good", "ingress,egress,loss_db\n1,33,1.5\n2,34, 0.9\n", ""},
		{"spreadsheet", "\ufeffingress,egress,loss_db\r\n1,33,1.5\r\n", ""},
		{"empty", "", "t.csv:1: it is empty: want the heading ingress,egress,loss_db"},
		{"no heading", "1,33,1.5\n", `t.csv:1: the heading is "1,33,1.5": want ingress,egress,loss_db`},
		{"no path", "ingress,egress,loss_db\n", "t.csv:1: it has no path"},
		{"unit", "ingress,egress,loss_db\n1,33,1.5 dB\n", `t.csv:2: loss_db "1.5 dB" of path 1>33: want a loss of -3 to 100 dB, without its unit`},
		{"no number", "ingress,egress,loss_db\n1,33,NaN\n", `t.csv:2: loss_db "NaN" of path 1>33: want a loss of -3 to 100 dB, without its unit`},
		{"twice", "ingress,egress,loss_db\n1,33,1\n2,34,1\n1,33,1\n", "t.csv:4: path 1>33 is in line 2, too"},
		{"port", "ingress,egress,loss_db\n0,33,1\n", `t.csv:2: ingress "0" is no port: want 1 to 65535`},
		{"fields", "ingress,egress,loss_db\n1,33\n", "t.csv:2: it has 2 fields: want 3"},
		{"quote", "ingress,egress,loss_db\n1,\"33,1\n", `t.csv:2: extraneous or missing " in quoted-field`},
	} {
		_, err := loss.ReadTable("t.csv", strings.NewReader(tc.text))
		got := ""
		if err != nil {
			got = err.Error()
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: %s", tc.name, diff)
		}
	}
}

// What CSV writes can be compared with later.
func TestCSV_IsTable(t *testing.T) {
	m := scattered(5, 1)
	m.Set(0, 0, loss.Cell{State: loss.Dark, Loss: 50})
	var b strings.Builder
	if err := m.CSV(&b); err != nil {
		t.Fatal(err)
	}
	table, err := loss.ReadTable("map.csv", strings.NewReader(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	if c := m.Against(table, 0.01, 0); c.Paths != 24 || len(c.Over) > 0 || len(c.New)+len(c.Missing) > 0 {
		t.Errorf("%+v", c)
	}
}

func TestReference(t *testing.T) {
	for text, want := range map[string]loss.Reference{
		"-1.2": {Power: -1.2, U: loss.DefaultReferenceU}, "-1.2±0.5": {Power: -1.2, U: 0.5}, " 3 +- 1 ": {Power: 3, U: 1},
	} {
		if got, err := loss.ParseReference(text); err != nil || got != want {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "x", "-1 dBm", "NaN", "-1±", "-1±0", "-1±-2", "99"} {
		if got, err := loss.ParseReference(text); err == nil {
			t.Errorf("%q is read as %v", text, got)
		}
	}
	got, err := loss.ReadReference("r.csv", strings.NewReader("port,dbm\n1,-2\n2,-3±0.2\n"))
	if err != nil || got[1].Power != -2 || got[2].U != 0.2 {
		t.Errorf("%v, %v", got, err)
	}
	for text, want := range map[string]string{
		"port,dbm\n1,-2\n1,-3\n":   "r.csv:3: port 1 is there twice",
		"port,power\n":             `r.csv:1: the heading is "port,power": want port,dbm`,
		"port,dbm\n1,0.1 mW\n":     `r.csv:2: dbm "0.1 mW": want a power of -60 to 30 dBm, as -1.2 or -1.2±0.5`,
		"port,dbm\n":               "r.csv:1: it has no port",
		"port,dbm\n1,-2\nx,-2\n":   `r.csv:3: port "x" is no port: want 1 to 65535`,
		"port,dbm\n1,-2,really?\n": "r.csv:2: it has 3 fields: want 2",
	} {
		if _, err := loss.ReadReference("r.csv", strings.NewReader(text)); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// Maps of any size are as wide as the terminal, in colour as well.
func TestText(t *testing.T) {
	for _, n := range []int{1, 4, 32, 33, 192, 384} {
		for _, colour := range []bool{false, true} {
			m := scattered(n, 1)
			m.Set(0, n-1, loss.Cell{State: loss.Dark, Loss: 40})
			var b strings.Builder
			if err := m.Text(&b, m.Analyze(loss.Limits{}), loss.TextOptions{Width: 80, Colour: colour}); err != nil {
				t.Fatal(err)
			}
			for _, l := range strings.Split(plainText(b.String()), "\n") {
				if w := len([]rune(l)); w > 80 {
					t.Errorf("%d ports: a line of %d columns: %q", n, w, l)
				}
			}
			if blocks := strings.Contains(b.String(), "each block is the worst of"); blocks != (n > 80) {
				t.Errorf("%d ports: says that they are in blocks: %v", n, blocks)
			}
			if !strings.Contains(b.String(), "X") || !strings.Contains(b.String(), "X dark") {
				t.Errorf("%d ports: the dark path is not to be seen", n)
			}
		}
	}
}

// plainText is a text without colours.
func plainText(s string) string {
	for {
		i := strings.Index(s, "\x1b[")
		if i < 0 {
			return s
		}
		s = s[:i] + s[i+strings.Index(s[i:], "m")+1:]
	}
}

func FuzzMap(f *testing.F) {
	for _, n := range []int{0, 1, 3} {
		data, err := scattered(n, 1).MarshalJSON()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(`{"ingress":"1","egress":"1,2","sources":[{"power_dbm":null}],"states":["-d"],"loss_mdb":[[0,40000]]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var m loss.Map
		if m.UnmarshalJSON(data) != nil {
			return
		}
		stored(t, &m)
		flags := m.Analyze(loss.Limits{})
		if err := m.Text(io.Discard, flags, loss.TextOptions{}); err != nil {
			t.Error(err)
		}
		if err := m.SVG(io.Discard, "", flags); err != nil {
			t.Error(err)
		}
	})
}

func FuzzTable(f *testing.F) {
	f.Add("ingress,egress,loss_db\n1,33,1.5\n2,34, 0.9\n")
	f.Add("ingress,egress,loss_db,state,u_db\n1,33,1.500,measured,1.6\n1,34,40,dark,\n")
	f.Fuzz(func(t *testing.T, text string) {
		table, err := loss.ReadTable("t", strings.NewReader(text))
		if err != nil {
			return
		}
		for c, x := range table {
			if !c.Valid() || !(x >= -3 && x <= 100) {
				t.Errorf("%v: %v", c, x)
			}
		}
	})
}

func BenchmarkOrder(b *testing.B) {
	for _, n := range []int{32, 192, 384} {
		g := ocs.TwoSided(n, n)
		b.Run(g.String(), func(b *testing.B) {
			for b.Loop() {
				if _, err := loss.Order(g, g.IngressPorts(), g.EgressPorts()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkAnalyze(b *testing.B) {
	for _, n := range []int{32, 192, 384} {
		m := scattered(n, 1)
		b.Run(fmt.Sprintf("%dx%d", n, n), func(b *testing.B) {
			for b.Loop() {
				m.Analyze(loss.Limits{})
			}
		})
	}
}

func BenchmarkStore(b *testing.B) {
	m := scattered(384, 1)
	for b.Loop() {
		data, err := m.MarshalJSON()
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(int64(len(data)))
	}
}

func BenchmarkSVG(b *testing.B) {
	m := scattered(384, 1)
	for b.Loop() {
		if err := m.SVG(io.Discard, "", nil); err != nil {
			b.Fatal(err)
		}
	}
}
