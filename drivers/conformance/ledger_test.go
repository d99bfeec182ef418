package conformance

import (
	"errors"
	"testing"

	"github.com/ocslab/ocslab/ocs"
)

// Ensure that the ledger tells its own circuits from those of others, step by
// step: what is sent, what is read then, what is concluded.
func TestLedger(t *testing.T) {
	parse := func(s string) ocs.Map {
		m, err := ocs.ParseMap(s)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	for name, tc := range map[string]struct {
		before  string
		steps   [][2]string // what is asked for, "" if nothing; what is read then
		ours    string      // of what was read last
		error   string      // of the last step
		others  int
		foreign string // a circuit that free has to report at port 8 or 16
	}{
		"made":                       {"1>9", [][2]string{{"8>16", "1>9,8>16"}}, "8>16", "", 0, ""},
		"gone again":                 {"1>9", [][2]string{{"8>16", "1>9,8>16"}, {"", "1>9"}}, "", "", 1, ""},
		"other pair of the pool":     {"1>9", [][2]string{{"8>16", "1>9,8>15"}}, "", "8>15 " + unasked, 0, "8>15"},
		"half in the pool":           {"1>9", [][2]string{{"8>16", "1>9,8>10"}}, "", "8>10 " + unasked, 0, "8>10"},
		"others vanish with ours":    {"1>9", [][2]string{{"8>16", "8>16"}}, "8>16", "1>9 " + vanished, 0, ""},
		"others move with ours":      {"1>9", [][2]string{{"8>16", "8>16,1>10"}}, "8>16", "", 2, ""},
		"others vanish by the way":   {"1>9", [][2]string{{"", ""}}, "", "", 1, ""},
		"others take a port":         {"1>9", [][2]string{{"", "1>9,8>10"}}, "", "", 1, "8>10"},
		"others take a pair":         {"1>9", [][2]string{{"", "1>9,8>16"}}, "", "", 1, "8>16"},
		"comes back after it was no": {"", [][2]string{{"8>16", "8>16"}, {"", ""}, {"", "8>16"}}, "", "8>16 " + again, 1, "8>16"},
	} {
		l := newLedger(false)
		l.own(7, 8, 15, 16)
		l.start(parse(tc.before))
		var err error
		var m ocs.Map
		for _, s := range tc.steps {
			if s[0] != "" {
				l.note(ocs.Change{Add: parse(s[0])})
			}
			m = parse(s[1])
			err = l.observe(m)
		}
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != tc.error {
			t.Errorf("%s: err=%q, want %q", name, got, tc.error)
		}
		if got := l.ours(m).String(); got != tc.ours {
			t.Errorf("%s: ours=%q, want %q", name, got, tc.ours)
		}
		if len(l.others) != tc.others {
			t.Errorf("%s: others=%q, want %d", name, l.others, tc.others)
		}
		got = ""
		if err := l.free(m, []ocs.Port{8, 16}); err != nil {
			var taken *takenError
			if errors.As(err, &taken) {
				got = taken.by.String()
			}
		}
		if got != tc.foreign {
			t.Errorf("%s: taken by %q, want %q", name, got, tc.foreign)
		}
	}
}

// Ensure that a request whose fate is unknown stays in the ledger until it was
// waited for.
func TestLedgerUnsure(t *testing.T) {
	l := newLedger(false)
	l.own(8, 16)
	c := ocs.MustMap(ocs.CrossConnect{Ingress: 8, Egress: 16})
	l.note(ocs.Change{Add: c})
	l.unsure(c)
	if err := l.observe(ocs.Map{}); err != nil || !l.doubts() || len(l.held()) != 1 {
		t.Errorf("err=%v doubts=%v held=%v, want one in doubt", err, l.doubts(), l.held())
	}
	if err := l.observe(c); err != nil || !l.ours(c).Equal(c) {
		t.Errorf("err=%v ours=%v, want %v", err, l.ours(c), c)
	}
	l.settle()
	if err := l.observe(ocs.Map{}); err != nil || l.doubts() || len(l.held()) != 0 {
		t.Errorf("err=%v doubts=%v held=%v, want none", err, l.doubts(), l.held())
	}
}
