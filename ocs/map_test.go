package ocs_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/ocslab/ocslab/ocs"
	"pgregory.net/rapid"
)

// drawMap draws a map on an n x n switch.
func drawMap(t *rapid.T, n int, label string) ocs.Map {
	egress := rapid.Permutation(ocs.TwoSided(n, n).EgressPorts()).Draw(t, label)
	var ccs []ocs.CrossConnect
	for i, p := range ocs.TwoSided(n, n).IngressPorts() {
		if rapid.Bool().Draw(t, "connected") {
			ccs = append(ccs, ocs.CrossConnect{Ingress: p, Egress: egress[i]})
		}
	}
	return ocs.MustMap(ccs...)
}

func mustParse(t testing.TB, s string) ocs.Map {
	t.Helper()
	m, err := ocs.ParseMap(s)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Ensure an impossible map cannot be built.
func TestNewMap_Impossible(t *testing.T) {
	for _, tc := range []struct {
		name string
		ccs  []ocs.CrossConnect
		want error
		text string
	}{
		{"same ingress", []ocs.CrossConnect{{1, 33}, {2, 34}, {1, 35}}, ocs.ErrConflict, "ingress 1 is busy"},
		{"same egress", []ocs.CrossConnect{{1, 33}, {2, 33}}, ocs.ErrConflict, "egress 33 is busy"},
		{"twice", []ocs.CrossConnect{{1, 33}, {1, 33}}, ocs.ErrConflict, ""},
		{"port zero", []ocs.CrossConnect{{0, 33}}, ocs.ErrPort, "1-65535"},
		{"port too high", []ocs.CrossConnect{{1, ocs.MaxPort + 1}}, ocs.ErrPort, "65536"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m, err := ocs.NewMap(tc.ccs...)
			if !errors.Is(err, tc.want) || !strings.Contains(err.Error(), tc.text) {
				t.Fatalf("err=%v, want %v with %q", err, tc.want, tc.text)
			}
			if m.Len() != 0 {
				t.Fatalf("map=%v, want empty", m)
			}
		})
	}
}

func TestMap_Lookup(t *testing.T) {
	m := mustParse(t, "1>33,2>34,5>1")
	if e, ok := m.EgressOf(2); !ok || e != 34 {
		t.Errorf("EgressOf(2)=%v,%v", e, ok)
	}
	if i, ok := m.IngressOf(33); !ok || i != 1 {
		t.Errorf("IngressOf(33)=%v,%v", i, ok)
	}
	if _, ok := m.EgressOf(33); ok {
		t.Error("EgressOf(33): found")
	}
	if got, want := m.At(1), []ocs.CrossConnect{{1, 33}, {5, 1}}; !slices.Equal(got, want) {
		t.Errorf("At(1)=%v, want %v", got, want)
	}
	if got, want := m.Rivals(ocs.CrossConnect{1, 34}), []ocs.CrossConnect{{1, 33}, {2, 34}}; !slices.Equal(got, want) {
		t.Errorf("Rivals=%v, want %v", got, want)
	}
	if got := m.Rivals(ocs.CrossConnect{1, 33}); got != nil {
		t.Errorf("Rivals of a member=%v, want none", got)
	}
	if got, want := m.Ports(), []ocs.Port{1, 2, 5, 33, 34}; !slices.Equal(got, want) {
		t.Errorf("Ports=%v, want %v", got, want)
	}
}

// Ensure a map given away cannot be changed through what it returns.
func TestMap_Immutable(t *testing.T) {
	ccs := []ocs.CrossConnect{{1, 33}, {2, 34}}
	m := ocs.MustMap(ccs...)
	ccs[0] = ocs.CrossConnect{9, 9}
	m.Slice()[0] = ocs.CrossConnect{9, 9}
	if got := m.String(); got != "1>33,2>34" {
		t.Errorf("m=%s", got)
	}
}

func TestChange_Properties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawMap(t, 12, "a"), drawMap(t, 12, "b")
		c := ocs.Diff(a, b)
		got, err := c.ApplyTo(a)
		if err != nil || !got.Equal(b) {
			t.Fatalf("diff then apply: %v (%v), want %v", got, err, b)
		}
		back, err := c.Inverse().ApplyTo(got)
		if err != nil || !back.Equal(a) {
			t.Fatalf("inverse: %v (%v), want %v", back, err, a)
		}
		if c.Empty() != a.Equal(b) {
			t.Fatalf("Empty=%v for %v -> %v", c.Empty(), a, b)
		}
		for x := range c.Remove.All() { // smallest: touches nothing common
			if b.Has(x) {
				t.Fatalf("removes %v which stays", x)
			}
		}
		for x := range c.Add.All() {
			if a.Has(x) {
				t.Fatalf("adds %v which is there", x)
			}
		}
	})
}

func TestChange_ApplyTo_Refuses(t *testing.T) {
	m := mustParse(t, "1>33,2>34")
	for _, tc := range []struct {
		name        string
		remove, add string
		want        error
	}{
		{"not there", "3>35", "", ocs.ErrNotConnected},
		{"other egress", "1>34", "", ocs.ErrNotConnected},
		{"busy ingress", "", "1>40", ocs.ErrConflict},
		{"busy egress", "", "7>33", ocs.ErrConflict},
		{"there already", "", "1>33", ocs.ErrConflict},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := ocs.Change{Remove: mustParse(t, tc.remove), Add: mustParse(t, tc.add)}
			if _, err := c.ApplyTo(m); !errors.Is(err, tc.want) {
				t.Fatalf("err=%v, want %v", err, tc.want)
			}
		})
	}
}

func TestChange_String(t *testing.T) {
	for want, c := range map[string]ocs.Change{
		"no change":     {},
		"+ 1>33":        {Add: mustParse(t, "1>33")},
		"- 1>33":        {Remove: mustParse(t, "1>33")},
		"- 1>33 + 1>34": {Remove: mustParse(t, "1>33"), Add: mustParse(t, "1>34")},
	} {
		if got := c.String(); got != want {
			t.Errorf("String=%q, want %q", got, want)
		}
	}
	c := ocs.Change{Remove: mustParse(t, "1>33"), Add: mustParse(t, "1>34")}
	if got, want := c.Ports(), []ocs.Port{1, 33, 34}; !slices.Equal(got, want) {
		t.Errorf("Ports=%v, want %v", got, want)
	}
}

func TestGeometry(t *testing.T) {
	two, single := ocs.TwoSided(4, 6), ocs.SingleSided(8)
	calient := ocs.Geometry{Ingress: 4, Egress: 4, IngressBase: 10001, EgressBase: 20001}
	for _, tc := range []struct {
		g    ocs.Geometry
		m    string
		want string // "" is fine
	}{
		{two, "1-4>5-8", ""},
		{two, "1>10", ""},
		{two, "5>1", "5>1: port 5 is not an ingress port of this 4x6 switch (ingress 1-4, egress 5-10)"},
		{two, "1>11", "port 11 is not an egress port"},
		{two, "1>2", "port 2 is not an egress port"},
		{single, "8>1", ""},
		{single, "1>9", "9 is not an egress port of this 8xCC switch (ports 1-8)"},
		{single, "3>3", "cannot be joined to itself"},
		{single, "1>2,2>3", "cannot be ingress and egress at once"},
		{calient, "10001>20004", ""},
		{calient, "1>20004", "port 1 is not an ingress port"},
		{ocs.Geometry{}, "1>65535", ""},
	} {
		err := tc.g.Check(mustParse(t, tc.m))
		if tc.want == "" && err != nil || tc.want != "" && (!errors.Is(err, ocs.ErrPort) || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%v.Check(%s)=%v, want %q", tc.g, tc.m, err, tc.want)
		}
	}
	if got := two.Ports(); len(got) != 10 || got[9] != 10 {
		t.Errorf("Ports=%v", got)
	}
	if got := single.Ports(); len(got) != 8 {
		t.Errorf("Ports=%v", got)
	}
	for _, s := range []string{"4x6", "8xCC"} {
		if g, err := ocs.ParseGeometry(s); err != nil || g.String() != s {
			t.Errorf("ParseGeometry(%q)=%v, %v", s, g, err)
		}
	}
	for _, s := range []string{"", "x", "4", "0x4", "4x0", "4xC", "ax4", "99999x1", "-1x4"} {
		if g, err := ocs.ParseGeometry(s); err == nil {
			t.Errorf("ParseGeometry(%q)=%v, want an error", s, g)
		}
	}
	if (ocs.Geometry{}).String() != "unknown" || !(ocs.Geometry{}).Has(7) || (ocs.Geometry{}).Has(0) {
		t.Error("the zero Geometry must have every valid port")
	}
	if !two.Has(10) || two.Has(11) || two.Has(0) {
		t.Error("Has is wrong at the ends")
	}
}

func TestPower(t *testing.T) {
	if got := ocs.DBm(-3).Add(1.5); got != -1.5 {
		t.Errorf("Add=%v", got)
	}
	if got := ocs.DBm(-3).Sub(-10); got != 7 {
		t.Errorf("Sub=%v", got)
	}
	if got := ocs.DBm(0).Milliwatts(); got != 1 {
		t.Errorf("0 dBm=%v mW", got)
	}
	if got := ocs.Milliwatts(10); got != 10 {
		t.Errorf("10 mW=%v", got)
	}
	if got := ocs.Milliwatts(0); !math.IsInf(float64(got), -1) {
		t.Errorf("0 mW=%v", got)
	}
	if got := ocs.DBm(-12.051).String(); got != "-12.05 dBm" {
		t.Errorf("String=%q", got)
	}
	if got := ocs.DB(1.5).String(); got != "1.50 dB" {
		t.Errorf("String=%q", got)
	}
}
