package blackout

import (
	"errors"
	"strings"
	"testing"

	"github.com/ocslab/ocslab/ocs"
)

// Ensure a panic that takes nothing does not pass for one that is in force: it says what may be
// lit, and how to darken what the lab file does not protect.
func TestPanic_Nothing(t *testing.T) {
	for _, tt := range []struct {
		name    string
		arrange func(x *bench)
		on      []string // the switches asked for
		want    string
		not     string
	}{
		{"Nobody's", func(*bench) {}, []string{"c"}, `there may be light on c 1>33; "ocslab disconnect c 1" darkens c`, "no light, and"},
		{"Dark by itself", func(x *bench) { x.b.Set(ocs.Map{}) }, []string{"b"}, "the switches hold no light, and nothing keeps it away", "disconnect"},
		{"Behind shutters", func(x *bench) {
			for _, p := range []ocs.Port{1, 2, 33, 34, 35} {
				x.a.shut[p] = true
			}
		}, []string{"a"}, `on a 9>41; "ocslab disconnect a 9" darkens a`, "1>34"},
		{"Protected", func(x *bench) { x.b.Set(circuits("2>40")) }, []string{"b"}, "there may be light on b 2>40", "disconnect"},
		{"Both", func(x *bench) { x.b.Set(circuits("2>40")) }, []string{"b", "c"}, `on b 2>40, c 1>33; "ocslab disconnect c 1" darkens c`, "disconnect b"},
		{"Silent", func(x *bench) { x.opening["c"] = errors.New("boom") }, []string{"c"}, "there may be light on c (it does not answer)", "disconnect"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			x := newBench(t)
			tt.arrange(x)
			before := x.now(t)
			_, err := New(x.opt).Panic(t.Context(), call, tt.on...)
			if !errors.Is(err, ErrNothing) || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), tt.not) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
			if now := x.now(t); now != before {
				t.Errorf("%s, was %s", now, before)
			}
			if calls, err := New(x.opt).InForce(); err != nil || len(calls) > 0 {
				t.Errorf("in force: %+v, %v", calls, err)
			}
		})
	}
}

// Ensure a panic that finds all dark by another one, or a nobody's switch beside one that it
// darkens, is in force.
func TestPanic_NotNothing(t *testing.T) {
	x := newBench(t)
	for range 2 {
		if _, err := New(x.opt).Panic(t.Context(), call); err != nil {
			t.Error(err)
		}
	}
}
