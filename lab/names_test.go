package lab_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/ocs"
)

func parseMap(t testing.TB, s string) ocs.Map {
	t.Helper()
	m, err := ocs.ParseMap(s)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// text returns maps as text, for comparing.
func text(maps map[string]ocs.Map) map[string]string {
	if maps == nil {
		return nil
	}
	s := map[string]string{}
	for name, m := range maps {
		s[name] = m.String()
	}
	return s
}

func TestPortRef(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := lab.PortRef{
			Switch: rapid.StringMatching(`[A-Za-z0-9][A-Za-z0-9._-]{0,9}`).Draw(t, "switch"),
			Port:   ocs.Port(rapid.IntRange(1, int(ocs.MaxPort)).Draw(t, "port")),
		}
		b, err := want.MarshalText()
		var got lab.PortRef
		if err != nil || got.UnmarshalText(b) != nil || got != want {
			t.Errorf("%s: got %v, want %v", b, got, want)
		}
	})
	for _, s := range []string{"", "rail0", "33", "/33", "rail0/", "rail0/0", "rail0/65536", "rail0/-1", "rail0/+1", "rail0/1 ", "a/b/1", "rail0/4294967297"} {
		got := lab.PortRef{Switch: "kept", Port: 1}
		if err := got.UnmarshalText([]byte(s)); err == nil || got.Switch != "kept" {
			t.Errorf("%q: got %v, %v", s, got, err)
		}
	}
	if got := (lab.PortRef{}).String(); got != "" {
		t.Errorf("zero: got %q", got)
	}
}

func TestConfig(t *testing.T) {
	testbed, everything := load(t, "opus-testbed"), load(t, "everything")
	for _, tt := range []struct {
		file *lab.File
		name string
		want map[string]string
	}{
		{testbed, "dp", map[string]string{"rail0": "1>34,2>33,3>36,4>35"}},
		{testbed, "pp", map[string]string{"rail0": "1>35,2>36,3>33,4>34"}},
		{everything, "dark", map[string]string{"Rail.0": ""}},
		{everything, "v1.0", map[string]string{"rail.0": "1>33", "Rail.0": "1>33,2>35,3>34,20-22>60-62"}},
	} {
		got, err := tt.file.Config(tt.name)
		if diff := cmp.Diff(text(got), tt.want); err != nil || diff != "" {
			t.Errorf("%s: %v, got(-) want(+):\n%s", tt.name, err, diff)
		}
	}
	if got, want := testbed.ConfigNames(), []string{"dp", "pp"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	_, err := testbed.Config("tp3")
	if want := `the configuration "tp3" is not in the lab: it has dp, pp`; !errors.Is(err, lab.ErrUnknown) || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	// A File that somebody made without Parse.
	testbed.Configurations["pp"].Links[0][1] = "gpu4"
	_, err = testbed.Config("pp")
	if want := "configuration pp: links[1]: 2>36: egress 36 is busy with 1>36 of rail0 (from links[0])"; !errors.Is(err, ocs.ErrConflict) || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestLink(t *testing.T) {
	everything := load(t, "everything")
	got, err := everything.Link("gpu2/ens1f0", "gpu1/ens1f0")
	if diff := cmp.Diff(text(got), map[string]string{"rail.0": "1>33", "Rail.0": "1>33"}); err != nil || diff != "" {
		t.Errorf("%v, got(-) want(+):\n%s", err, diff)
	}
	for _, tt := range []struct{ a, b, want string }{
		{"gpu1/ens1f0", "gpu1/eth0.100", "no switch joins gpu1/ens1f0 to gpu1/eth0.100: one sends into rail.0/1, the other receives from Rail.0/34"},
		{"gpu1/eth0.100", "gpu1/eth0.100", "gpu1/eth0.100 cannot be linked to itself"},
		{"gpu1", "gpu2/ens1f0", "the host gpu1 has 2 NICs: name one of gpu1/ens1f0, gpu1/eth0.100"},
		{"gpu1/ens1f0", "gpu2/ens1f7", `the NIC "gpu2/ens1f7" is not in the lab (did you mean "gpu2/ens1f0"?)`},
	} {
		if got, err := everything.Link(tt.a, tt.b); got != nil || err == nil || err.Error() != tt.want {
			t.Errorf("%s %s: got %v, %v, want %s", tt.a, tt.b, got, err, tt.want)
		}
	}
	everything.Hosts[1].NICs[1].Tx.Port = 0 // made without Parse
	if _, err := everything.Link("gpu1/eth0.100", "gpu2/ens1f1"); !errors.Is(err, ocs.ErrPort) {
		t.Errorf("port 0: got %v, want ErrPort", err)
	}
}

func TestNIC(t *testing.T) {
	testbed, everything := load(t, "opus-testbed"), load(t, "everything")
	for _, tt := range []struct {
		file       *lab.File
		name, want string
	}{
		{testbed, "gpu3", "gpu3/ens1f0"},
		{testbed, "gpu3/ens1f0", "gpu3/ens1f0"},
		{everything, "gpu1/eth0.100", "gpu1/eth0.100"},
	} {
		if n, err := tt.file.NIC(tt.name); err != nil || n.FullName() != tt.want {
			t.Errorf("%s: got %v, %v, want %s", tt.name, n, err, tt.want)
		}
	}
	for _, tt := range []struct {
		file       *lab.File
		name, want string
	}{
		{testbed, "storage", `the NIC "storage" is not in the lab: it has gpu1/ens1f0, gpu2/ens1f0, gpu3/ens1f0, gpu4/ens1f0`},
		{testbed, "gpu3/bond", `the NIC "gpu3/bond" is not in the lab: it has gpu3/ens1f0`},
		{everything, "idle", `the NIC "idle" is not in the lab: it has gpu1/ens1f0, gpu1/eth0.100, gpu2/ens1f0, gpu2/ens1f1`},
		{load(t, "minimal"), "gpu1", `the NIC "gpu1" is not in the lab: it has none`},
	} {
		if n, err := tt.file.NIC(tt.name); n != nil || !errors.Is(err, lab.ErrUnknown) || err.Error() != tt.want {
			t.Errorf("%s: got %v, %v, want %s", tt.name, n, err, tt.want)
		}
	}
}

func TestLookups(t *testing.T) {
	f := load(t, "opus-testbed")
	if s, ok := f.Switch("rail0"); !ok || s != &f.Switches[0] {
		t.Errorf("rail0: got %v, %v", s, ok)
	}
	if s, ok := f.Switch("Rail0"); ok || s != nil {
		t.Errorf("Rail0: got %v, %v", s, ok)
	}
	for _, tt := range []struct {
		at     lab.PortRef
		tx, rx string
	}{
		{lab.PortRef{Switch: "rail0", Port: 2}, "gpu2/ens1f0", ""},
		{lab.PortRef{Switch: "rail0", Port: 34}, "", "gpu2/ens1f0"},
		{lab.PortRef{Switch: "rail0", Port: 31}, "", ""},
		{lab.PortRef{Switch: "rail1", Port: 2}, "", ""},
	} {
		tx, rx := f.NICAt(tt.at)
		if fullName(tx) != tt.tx || fullName(rx) != tt.rx {
			t.Errorf("%v: got %s %s, want %s %s", tt.at, fullName(tx), fullName(rx), tt.tx, tt.rx)
		}
	}
	for _, tt := range []struct {
		on    string
		ports []ocs.Port
		want  []string
	}{
		{"rail0", []ocs.Port{36, 3, 35, 4}, []string{"gpu3/ens1f0", "gpu4/ens1f0"}},
		{"rail0", []ocs.Port{5}, nil},
		{"rail0", nil, nil},
		{"rail1", []ocs.Port{1}, nil},
	} {
		if got := f.NICsOn(tt.on, tt.ports); !slices.Equal(got, tt.want) {
			t.Errorf("%s %v: got %v, want %v", tt.on, tt.ports, got, tt.want)
		}
	}
	e := load(t, "everything")
	for name, want := range map[string][]ocs.Port{"rail.0": {30, 31}, "Rail.0": {31}, "rail1": nil} {
		if got := e.ProtectedPorts(name); !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
}

func fullName(n *lab.NIC) string {
	if n == nil {
		return ""
	}
	return n.FullName()
}

func TestManyNamesAreCounted(t *testing.T) {
	var b strings.Builder
	b.WriteString("switches:\n")
	for c := 'a'; c < 'l'; c++ {
		b.WriteString("- {name: switch-" + strings.Repeat(string(c), 9) + ", url: \"tl1://a\"}\n")
	}
	b.WriteString("protect: [rail0/1]\n")
	_, err := lab.Parse("lab.yaml", []byte(b.String()))
	if want := "switch-hhhhhhhhh and 3 more"; err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("got %v, want ... %s", err, want)
	}
}
