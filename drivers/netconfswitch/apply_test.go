package netconfswitch_test

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/ocslab/ocslab/drivers/internal/drivertest"
	"github.com/ocslab/ocslab/drivers/netconfswitch"
	"github.com/ocslab/ocslab/ocs"
)

// pairEdit is an edit of circuits: "-1" removes, "1>33" merges.
func pairEdit(list, gone string, parts ...string) string {
	var b strings.Builder
	for _, p := range parts {
		if in, out, add := strings.Cut(p, ">"); add {
			b.WriteString(`<` + list + ` nc:operation="merge"><ingress>` + in + `</ingress><egress>` + out + `</egress></` + list + `>`)
		} else {
			b.WriteString(`<` + list + ` nc:operation="` + gone + `"><ingress>` + p[1:] + `</ingress></` + list + `>`)
		}
	}
	return edits("cross-connects", b.String())
}

// TestApplyReady: a change that others have to be ready for is not sent when they are not, and
// the session goes on.
func TestApplyReady(t *testing.T) {
	run(t, one(func(l *line) {
		l.hello(modern...)
		l.expect(pairEdit("pair", "remove", "1>33"))
		l.raw(l.reply(ok))
	}), func(t *testing.T, sw *netconfswitch.Switch) {
		c := ocs.Change{Add: drivertest.Map(t, "1>33")}
		for _, answer := range []error{drivertest.ErrEnough, nil} {
			asked := 0
			r, err := sw.Apply(ocs.WithReady(ctx, func(context.Context) error { asked++; return answer }), c)
			if !errors.Is(err, answer) || asked != 1 || (r.Requests == 0) != (answer != nil) {
				t.Errorf("%v: asked %d times, %+v, %v", answer, asked, r, err)
			}
		}
	})
}

// TestApplyBytes is what a change looks like on the wire.
func TestApplyBytes(t *testing.T) {
	caps10 := []string{base10, oldOptical}
	for _, tc := range []struct {
		name        string
		remove, add string
		caps        []string
		want        string
	}{
		{"connect", "", "1>33", modern, pairEdit("pair", "remove", "1>33")},
		{"disconnect", "1>33,2>34", "", modern, pairEdit("pair", "remove", "-1", "-2")},
		{"move egress", "1>33", "1>34", modern, pairEdit("pair", "remove", "1>34")},
		{"move ingress", "1>33", "2>33", modern, pairEdit("pair", "remove", "-1", "2>33")},
		{"swap and more", "1>33,2>34,3>35", "1>34,2>33,4>36", modern, pairEdit("pair", "remove", "-3", "1>34", "2>33", "4>36")},
		{"old", "1>33", "2>33", caps10, pairEdit("pairs", "delete", "-1", "2>33")},
		{"rollback", "", "1>33", append([]string{"urn:ietf:params:netconf:capability:rollback-on-error:1.0"}, modern...),
			strings.Replace(pairEdit("pair", "remove", "1>33"), "<config>", "<error-option>rollback-on-error</error-option><config>", 1)},
		{"no revision", "", "1>33", []string{base10, "http://www.polatis.com/yang/optical-switch"}, pairEdit("pair", "delete", "1>33")},
	} {
		t.Run(tc.name, func(t *testing.T) {
			run(t, one(func(l *line) {
				l.hello(tc.caps...)
				l.expect(tc.want)
				time.Sleep(5 * time.Millisecond)
				answer := l.reply(ok)
				l.raw(answer[:10])
				time.Sleep(3 * time.Millisecond)
				l.raw(answer[10:])
			}), func(t *testing.T, sw *netconfswitch.Switch) {
				begun := time.Now()
				r, err := sw.Apply(ctx, ocs.Change{Remove: drivertest.Map(t, tc.remove), Add: drivertest.Map(t, tc.add)})
				if err != nil || r.Requests != 1 {
					t.Fatalf("got %+v, %v", r, err)
				}
				if !r.SendStart.Equal(begun) || !r.Sent.Equal(begun) || r.FirstByte.Sub(begun) != 5*time.Millisecond || r.Acked.Sub(begun) != 8*time.Millisecond {
					t.Errorf("got %+v", r)
				}
				if r, err := sw.Apply(ctx, ocs.Change{}); err != nil || !reflect.DeepEqual(r, ocs.Receipt{}) {
					t.Errorf("empty: got %+v, %v", r, err)
				}
			})
		})
	}
}

// TestApplyGone removes what is gone already, on a device that only knows
// delete.
func TestApplyGone(t *testing.T) {
	missing := rpcError("data-missing", "/opsw:cross-connects/pairs[ingress='1']", "not there")
	for _, tc := range []struct {
		name, add, have string
		second          string // edit, and what is said to it
		reply           string
		requests        int
		want            error
	}{
		{"all of it", "", "", "", "", 1, nil},
		{"some of it", "", pair1, pairEdit("pairs", "delete", "-1"), ok, 2, nil},
		{"and more to do", "3>35", "", pairEdit("pairs", "delete", "3>35"), ok, 2, nil},
		{"in a race", "", pair1, pairEdit("pairs", "delete", "-1"), missing, 2, ocs.ErrNotConnected},
	} {
		t.Run(tc.name, func(t *testing.T) {
			run(t, one(func(l *line) {
				l.hello(base10, oldOptical)
				first := []string{"-1", "-2"}
				if tc.add != "" {
					first = append(first, tc.add)
				}
				l.ask(pairEdit("pairs", "delete", first...), missing)
				l.ask(readMap, data("cross-connects", strings.ReplaceAll(tc.have, "pair>", "pairs>")))
				if tc.second != "" {
					l.ask(tc.second, tc.reply)
				}
			}), func(t *testing.T, sw *netconfswitch.Switch) {
				r, err := sw.Apply(ctx, ocs.Change{Remove: drivertest.Map(t, "1>33,2>34"), Add: drivertest.Map(t, tc.add)})
				if !drivertest.Is(err, tc.want) || r.Requests != tc.requests {
					t.Errorf("got %+v, %v", r, err)
				}
			})
		})
	}
	run(t, one(func(l *line) { // the reading fails
		l.hello(base10, oldOptical)
		l.ask(pairEdit("pairs", "delete", "-1"), missing)
		l.ask(readMap, rpcError("access-denied", "", "no"))
	}), func(t *testing.T, sw *netconfswitch.Switch) {
		if _, err := sw.Apply(ctx, ocs.Change{Remove: drivertest.Map(t, "1>33")}); !errors.Is(err, ocs.ErrNotConnected) || !errors.Is(err, ocs.ErrDenied) {
			t.Errorf("got %v", err)
		}
	})
}

// TestRefusedTakeover removes first on a device that denies busy ports, and
// remembers that.
func TestRefusedTakeover(t *testing.T) {
	busy := rpcError("in-use", "", "egress 34 is busy")
	swap := ocs.Change{Remove: drivertest.Map(t, "1>33,2>34"), Add: drivertest.Map(t, "1>34,2>33")}
	run(t, one(func(l *line) {
		l.hello()
		l.ask(pairEdit("pair", "remove", "1>34", "2>33"), busy)
		l.ask(pairEdit("pair", "remove", "-1", "-2"), ok)
		l.ask(pairEdit("pair", "remove", "1>34", "2>33"), ok)
		for range 1 { // again
			l.ask(pairEdit("pair", "remove", "-1", "-2"), ok)
			l.ask(pairEdit("pair", "remove", "1>34", "2>33"), busy)
		}
		l.ask(pairEdit("pair", "remove", "-1"), ok)
		l.ask(pairEdit("pair", "remove", "3>35"), ok)
		l.ask(pairEdit("pair", "remove", "-1", "-2"), busy)
	}), func(t *testing.T, sw *netconfswitch.Switch) {
		if r, err := sw.Apply(ctx, swap); err != nil || r.Requests != 3 {
			t.Errorf("got %+v, %v", r, err)
		}
		if r, err := sw.Apply(ctx, swap); !errors.Is(err, ocs.ErrConflict) || r.Requests != 2 {
			t.Errorf("got %+v, %v", r, err)
		}
		if r, err := sw.Apply(ctx, ocs.Change{Remove: drivertest.Map(t, "1>33")}); err != nil || r.Requests != 1 {
			t.Errorf("got %+v, %v", r, err)
		}
		if r, err := sw.Apply(ctx, ocs.Change{Add: drivertest.Map(t, "3>35")}); err != nil || r.Requests != 1 {
			t.Errorf("got %+v, %v", r, err)
		}
		if r, err := sw.Apply(ctx, swap); !errors.Is(err, ocs.ErrConflict) || r.Requests != 1 {
			t.Errorf("got %+v, %v", r, err)
		}
	})
	run(t, one(func(l *line) { // the removal is refused, too: by a lock
		l.hello()
		l.ask(pairEdit("pair", "remove", "1>34", "2>33"), busy)
		l.ask(pairEdit("pair", "remove", "-1", "-2"), busy)
	}), func(t *testing.T, sw *netconfswitch.Switch) {
		if r, err := sw.Apply(ctx, swap); !errors.Is(err, ocs.ErrConflict) || r.Requests != 2 {
			t.Errorf("got %+v, %v", r, err)
		}
	})
}

// TestCrossConnects understands what is there, in either name of the list, and
// nothing else.
func TestCrossConnects(t *testing.T) {
	for _, tc := range []struct{ content, want, text string }{
		{"", "", ""},
		{pair1, "1>33", ""},
		{"\n  " + strings.ReplaceAll(pair1, ">", ">\n ") + "<other/>", "1>33", ""},
		{`<pairs><ingress>2</ingress><egress>34</egress></pairs>`, "2>34", ""},
		{`<pair><ingress>2</ingress></pair>`, "", "cannot understand"},
		{`<pair><ingress>0</ingress><egress>33</egress></pair>`, "", "cannot understand"},
		{`<pair><ingress>polatis</ingress><egress>33</egress></pair>`, "", "cannot understand"},
		{`<pair><ingress>2</ingress><egress>65536</egress></pair>`, "", "cannot understand"},
		{pair1 + strings.ReplaceAll(pair1, ">1<", ">2<"), "", "contradicts itself"},
	} {
		run(t, one(func(l *line) {
			l.hello()
			l.ask(readMap, data("cross-connects", tc.content))
		}), func(t *testing.T, sw *netconfswitch.Switch) {
			m, err := sw.CrossConnects(ctx)
			if m.String() != tc.want && tc.text == "" || (err != nil) != (tc.text != "") || err != nil && !strings.Contains(err.Error(), tc.text) {
				t.Errorf("%s: got %v, %v", tc.content, m, err)
			}
			if errors.Is(err, ocs.ErrConflict) {
				t.Errorf("%s: nobody asked for a conflict: %v", tc.content, err)
			}
		})
	}
	run(t, one(func(l *line) { // a device that leaves out empty containers
		l.hello()
		l.ask(readMap, "<data/>")
	}), func(t *testing.T, sw *netconfswitch.Switch) {
		if m, err := sw.CrossConnects(ctx); err != nil || m.Len() != 0 {
			t.Errorf("got %v, %v", m, err)
		}
	})
}
