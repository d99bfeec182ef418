package lab_test

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/internal/secret"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/ocs"
)

var update = flag.Bool("update", false, "write the golden files")

func ptr[T any](v T) *T { return &v }

func load(t testing.TB, name string) *lab.File {
	t.Helper()
	f, err := lab.Load(filepath.Join("testdata", "good", name+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestGood(t *testing.T) {
	paths, _ := filepath.Glob("testdata/good/*.yaml")
	if len(paths) == 0 {
		t.Fatal("no files")
	}
	for _, path := range paths {
		f, err := lab.Load(path)
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		if f.Path != path {
			t.Errorf("got path %s, want %s", f.Path, path)
		}
		for _, name := range f.ConfigNames() {
			if _, err := f.Config(name); err != nil {
				t.Errorf("%s: %v", path, err)
			}
		}
	}
}

// TestBad compares all problems of each file with the golden file beside it.
func TestBad(t *testing.T) {
	paths, _ := filepath.Glob("testdata/bad/*.yaml")
	if len(paths) == 0 {
		t.Fatal("no files")
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			f, err := lab.Parse(filepath.Base(path), data)
			var problems lab.Errors
			if f != nil || !errors.As(err, &problems) {
				t.Fatalf("got %v and %T %v, want Errors", f, err, err)
			}
			var b strings.Builder
			for _, p := range problems { // all of them, not only ten
				fmt.Fprintln(&b, p)
				if strings.Contains(p.Error(), "hunt") || strings.Contains(p.Error(), "er2") {
					t.Errorf("shows a password: %v", p)
				}
			}
			golden := strings.TrimSuffix(path, ".yaml") + ".golden"
			if *update {
				if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(b.String(), string(want)); diff != "" {
				t.Errorf("got(-) want(+):\n%s", diff)
			}
		})
	}
}

func TestLoadMissing(t *testing.T) {
	if _, err := lab.Load("testdata/none.yaml"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, want fs.ErrNotExist", err)
	}
}

func TestParseFillsEverything(t *testing.T) {
	got := load(t, "everything")
	want := &lab.File{
		Path: "testdata/good/everything.yaml",
		Name: "010",
		Switches: []lab.Switch{
			{Name: "rail.0", URL: "netconf://admin@[2001:db8::1]:830", Password: "file:secrets/rail0", Pos: lab.Pos{Line: 5, Column: 5}},
			{Name: "Rail.0", Emulate: &lab.Emulate{
				Model: "polatis-6000-32x32", Switching: ptr(1500 * time.Millisecond), Seed: ptr(^uint64(0)), Ack: "after", Busy: "deny",
			}, Pos: lab.Pos{Line: 8, Column: 5}},
		},
		Hosts: []lab.Host{
			{Name: "gpu1", NICs: []lab.NIC{
				{Host: "gpu1", Name: "ens1f0", Tx: lab.PortRef{Switch: "rail.0", Port: 1}, Rx: lab.PortRef{Switch: "Rail.0", Port: 33}},
				{Host: "gpu1", Name: "eth0.100", Tx: lab.PortRef{Switch: "Rail.0", Port: 2}, Rx: lab.PortRef{Switch: "Rail.0", Port: 34}},
			}},
			{Name: "gpu2", NICs: []lab.NIC{
				{Host: "gpu2", Name: "ens1f0", Tx: lab.PortRef{Switch: "Rail.0", Port: 1}, Rx: lab.PortRef{Switch: "rail.0", Port: 33}},
				{Host: "gpu2", Name: "ens1f1", Tx: lab.PortRef{Switch: "Rail.0", Port: 3}, Rx: lab.PortRef{Switch: "Rail.0", Port: 35}},
			}},
			{Name: "idle"},
		},
		Protect: []lab.PortRef{{Switch: "rail.0", Port: 31}, {Switch: "Rail.0", Port: 31}, {Switch: "rail.0", Port: 30}, {Switch: "rail.0", Port: 31}},
		Configurations: map[string]lab.Configuration{
			"dark": {Maps: map[string]ocs.Map{"Rail.0": {}}},
			"v1.0": {
				Maps:  map[string]ocs.Map{"Rail.0": parseMap(t, "2>35,20-22>60-62")},
				Links: [][]string{{"gpu1/ens1f0", "gpu2/ens1f0"}, {"gpu1/eth0.100", "gpu2/ens1f1"}},
			},
		},
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("got(-) want(+):\n%s", diff)
	}
}

func TestMapErrorsMatch(t *testing.T) {
	const text = "switches: [{name: rail0, url: \"tl1://a\"}]\nconfigurations: {dp: {maps: {rail0: \"1>33,1>34\"}}}\n"
	if _, err := lab.Parse("lab.yaml", []byte(text)); !errors.Is(err, ocs.ErrConflict) {
		t.Errorf("got %v, want ErrConflict", err)
	}
}

// yamlWriter writes a File in a random mixture of styles.
type yamlWriter struct {
	strings.Builder
	t *rapid.T
}

// scalar returns s, quoted or, where it may be, plain.
func (w *yamlWriter) scalar(s string) string {
	style := rapid.IntRange(0, 2).Draw(w.t, "style")
	switch {
	case style == 0 && s != "" && !strings.ContainsAny(s, ",?") && !strings.EqualFold(s, "null"):
		return s
	case style == 1 || strings.ContainsAny(s, `\"`):
		return "'" + s + "'"
	}
	return strconv.Quote(s)
}

// mapping writes pairs of keys and finished values on one line.
func (w *yamlWriter) mapping(pairs ...string) string {
	var entries []string
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			entries = append(entries, pairs[i]+": "+pairs[i+1])
		}
	}
	return "{" + strings.Join(rapid.Permutation(entries).Draw(w.t, "order"), ", ") + "}"
}

// optional returns a scalar, or nothing of the empty text.
func (w *yamlWriter) optional(s string) string {
	if s == "" {
		return ""
	}
	return w.scalar(s)
}

func (w *yamlWriter) emulate(e *lab.Emulate) string {
	if e == nil {
		return ""
	}
	pairs := []string{"model", w.scalar(e.Model), "ack", w.optional(e.Ack), "busy", w.optional(e.Busy)}
	if e.Switching != nil {
		pairs = append(pairs, "switching", w.scalar(e.Switching.String()))
	}
	if e.Jitter != nil {
		pairs = append(pairs, "jitter", w.scalar(e.Jitter.String()))
	}
	if e.Seed != nil {
		pairs = append(pairs, "seed", strconv.FormatUint(*e.Seed, 10))
	}
	if e.PortLoss != nil {
		var list []string
		for p, db := range e.PortLoss {
			list = append(list, p.String(), w.loss(db))
		}
		pairs = append(pairs, "port_loss_db", w.mapping(list...))
	}
	if e.PathLoss != nil {
		var list []string
		for p, db := range e.PathLoss {
			list = append(list, w.scalar(p.String()), w.loss(db))
		}
		pairs = append(pairs, "path_loss_db", w.mapping(list...))
	}
	return w.mapping(pairs...)
}

// loss is a loss of dB, nothing of 0.
func (w *yamlWriter) loss(db float64) string {
	switch {
	case db == 0:
		return ""
	case math.IsInf(db, 1):
		return ".inf"
	}
	return fmt.Sprint(db)
}

func (w *yamlWriter) plant(e *lab.NICEmulate) string {
	if e == nil {
		return ""
	}
	dead := ""
	if e.Dead != nil {
		dead = "[" + strings.Join(e.Dead, ", ") + "]"
	}
	return w.mapping("tx", w.optional(e.Tx.String()), "rx", w.optional(e.Rx.String()),
		"tx_loss_db", w.loss(e.TxLoss), "rx_loss_db", w.loss(e.RxLoss), "dead", dead)
}

func (w *yamlWriter) file(f *lab.File) string {
	if f.Name != "" {
		fmt.Fprintf(w, "name: %s\n", w.scalar(f.Name))
	}
	w.WriteString("switches:\n")
	for _, s := range f.Switches {
		fmt.Fprintf(w, "  - %s\n", w.mapping("name", w.scalar(s.Name), "url", w.optional(s.URL),
			"password", w.optional(string(s.Password)), "emulate", w.emulate(s.Emulate)))
	}
	w.WriteString("hosts:\n")
	for _, h := range f.Hosts {
		fmt.Fprintf(w, "  - name: %s\n    nics:\n", w.scalar(h.Name))
		for _, n := range h.NICs {
			fmt.Fprintf(w, "    - %s\n", w.mapping("name", w.scalar(n.Name), "tx", w.scalar(n.Tx.String()),
				"rx", w.scalar(n.Rx.String()), "firmware", w.optional(n.Firmware), "emulate", w.plant(n.Emulate)))
		}
	}
	w.WriteString("protect:\n")
	for _, p := range f.Protect {
		fmt.Fprintf(w, "- %s\n", w.scalar(p.String()))
	}
	w.WriteString("configurations:\n")
	for name, c := range f.Configurations {
		fmt.Fprintf(w, "  %s:\n    maps:\n", w.scalar(name))
		for s, m := range c.Maps {
			fmt.Fprintf(w, "      %s: %s\n", w.scalar(s), w.scalar(m.String()))
		}
		w.WriteString("    links:\n")
		for _, l := range c.Links {
			fmt.Fprintf(w, "      - [%s, %s]\n", w.scalar(l[0]), w.scalar(l[1]))
		}
	}
	return w.String()
}

// drawFile draws a valid lab.
func drawFile(t *rapid.T) *lab.File {
	name := rapid.StringMatching(`[A-Za-z0-9][A-Za-z0-9._-]{0,6}|true|NULL|010|1e3|2026-11-20`)
	names := func(least, most int, label string) []string {
		return rapid.SliceOfNDistinct(name, least, most, rapid.ID).Draw(t, label)
	}
	loss := rapid.OneOf(rapid.Float64Range(0.001, 60), rapid.Just(math.Inf(1)))
	// As in a file, there is no empty list.
	f := &lab.File{Path: "lab.yaml", Name: rapid.SampledFrom([]string{"", "lab", "010"}).Draw(t, "name")}
	for _, s := range names(1, 3, "switches") {
		sw := lab.Switch{
			Name:     s,
			URL:      rapid.SampledFrom([]string{"tl1://admin@192.0.2.10:3082", "replay:a b", "tl1+serial:///dev/ttyUSB0?baud=38400"}).Draw(t, "url"),
			Password: rapid.SampledFrom([]secret.Ref{"", "env:A_1", "file:x"}).Draw(t, "password"),
		}
		if rapid.Bool().Draw(t, "emulated") {
			sw.Emulate = &lab.Emulate{Model: name.Draw(t, "model"),
				Ack:  rapid.SampledFrom([]string{"", "before", "after"}).Draw(t, "ack"),
				Busy: rapid.SampledFrom([]string{"", "takeover", "deny"}).Draw(t, "busy")}
			if rapid.Bool().Draw(t, "timed") {
				sw.Emulate.Switching = ptr(time.Duration(rapid.Int64Min(0).Draw(t, "switching")))
				sw.Emulate.Seed = ptr(rapid.Uint64().Draw(t, "seed"))
				sw.URL = ""
			}
			if rapid.Bool().Draw(t, "has jitter") {
				sw.Emulate.Jitter = ptr(time.Duration(rapid.Int64Min(0).Draw(t, "jitter")))
			}
		}
		if sw.Emulate != nil && rapid.Bool().Draw(t, "planted") {
			port := rapid.Map(rapid.IntRange(1, 900), func(n int) ocs.Port { return ocs.Port(n) })
			path := rapid.Map(port, func(p ocs.Port) emulator.Path { return emulator.Path{Ingress: p, Egress: p + 1000} })
			sw.Emulate.PortLoss = rapid.MapOfN(port, loss, 1, 3).Draw(t, "port losses")
			sw.Emulate.PathLoss = rapid.MapOfN(path, loss, 1, 3).Draw(t, "path losses")
		}
		f.Switches = append(f.Switches, sw)
	}
	anySwitch := func(label string) *lab.Switch { return rapid.SampledFrom(ptrs(f.Switches)).Draw(t, label) }
	port := ocs.Port(0)
	for _, h := range names(0, 3, "hosts") {
		host := lab.Host{Name: h}
		on := anySwitch("switch").Name
		for _, n := range names(0, 2, "nics") {
			port++
			var plant *lab.NICEmulate
			if rapid.Bool().Draw(t, "fibres") { // to ports that no NIC has
				plant = &lab.NICEmulate{Tx: lab.PortRef{Switch: on, Port: port + 2000}, TxLoss: loss.Draw(t, "tx loss"),
					Dead: rapid.SampledFrom([][]string{nil, {"tx"}, {"rx", "tx"}}).Draw(t, "dead")}
			}
			host.NICs = append(host.NICs, lab.NIC{Emulate: plant, Host: h, Name: n, Tx: lab.PortRef{Switch: on, Port: port},
				Rx: lab.PortRef{Switch: on, Port: port + 1000}, Firmware: rapid.SampledFrom([]string{"", "connectx-6-dx/autoneg-off"}).Draw(t, "firmware")})
		}
		f.Hosts = append(f.Hosts, host)
	}
	for range rapid.IntRange(0, 2).Draw(t, "protected") {
		f.Protect = append(f.Protect, lab.PortRef{Switch: anySwitch("switch").Name, Port: ocs.Port(rapid.IntRange(1, int(ocs.MaxPort)).Draw(t, "port"))})
	}
	for _, n := range names(0, 2, "configurations") {
		c := lab.Configuration{}
		if rapid.Bool().Draw(t, "mapped") {
			// Ports that no NIC has.
			m := ocs.MustMap(ocs.CrossConnect{Ingress: 500, Egress: ocs.Port(rapid.IntRange(1500, 1502).Draw(t, "egress"))}, ocs.CrossConnect{Ingress: 501, Egress: 1510})
			c.Maps = map[string]ocs.Map{anySwitch("switch").Name: m}
		}
		for _, h := range f.Hosts {
			if len(h.NICs) == 2 {
				c.Links = append(c.Links, []string{h.Name + "/" + h.NICs[0].Name, h.Name + "/" + h.NICs[1].Name})
			}
		}
		if f.Configurations == nil {
			f.Configurations = map[string]lab.Configuration{}
		}
		f.Configurations[n] = c
	}
	return f
}

func ptrs[T any](s []T) []*T {
	ps := make([]*T, len(s))
	for i := range s {
		ps[i] = &s[i]
	}
	return ps
}

func TestAnyValidFileParsesBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := drawFile(t)
		text := (&yamlWriter{t: t}).file(want)
		got, err := lab.Parse("lab.yaml", []byte(text))
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if diff := cmp.Diff(got, want, cmpopts.IgnoreFields(lab.Switch{}, "Pos")); diff != "" {
			t.Fatalf("got(-) want(+):\n%s\n%s", diff, text)
		}
		again, err := lab.Parse("lab.yaml", got.YAML())
		if err != nil {
			t.Fatalf("written: %v\n%s", err, got.YAML())
		}
		if diff := cmp.Diff(again, got, cmpopts.IgnoreFields(lab.Switch{}, "Pos"), cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("written, got(-) want(+):\n%s\n%s", diff, got.YAML())
		}
		for name := range want.Configurations {
			if _, err := got.Config(name); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, pattern := range []string{"testdata/good/*.yaml", "testdata/bad/*.yaml"} {
		paths, _ := filepath.Glob(pattern)
		for _, path := range paths {
			data, err := os.ReadFile(path)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := lab.Parse("lab.yaml", data)
		if err != nil {
			if e := (*lab.Error)(nil); !errors.As(err, &e) || e.Line < 1 || e.Column < 1 {
				t.Errorf("%v: no position", err)
			}
			return
		}
		for _, name := range file.ConfigNames() {
			if _, err := file.Config(name); err != nil {
				t.Errorf("accepted, but %v", err)
			}
		}
	})
}
