package patch_test

import (
	"testing"

	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/tui/canvas"
	"github.com/ocslab/ocslab/tui/filter"
	"github.com/ocslab/ocslab/tui/keymap"
	"github.com/ocslab/ocslab/tui/live"
	"github.com/ocslab/ocslab/tui/screen"
	"github.com/ocslab/ocslab/tui/screen/patch"
	"github.com/ocslab/ocslab/tui/tuitest"
)

func env(s *live.State) screen.Env { return screen.Env{State: s, Now: tuitest.Now} }

// golden draws at each size after the same actions at that size.
func golden(t *testing.T, name string, e screen.Env, prepare func(s *patch.Screen)) {
	t.Helper()
	tuitest.Golden(t, name, func(a canvas.Area) {
		s := patch.New()
		s.Resize(a.W, a.H)
		if prepare != nil {
			prepare(s)
		}
		s.Draw(a, e)
	})
}

func do(s *patch.Screen, e screen.Env, acts ...keymap.Action) (requests []screen.Request) {
	for _, act := range acts {
		requests = append(requests, s.Do(act, e)...)
	}
	return requests
}

// singleSided is a switch any of whose ports can be joined.
func singleSided() *live.State {
	s := *tuitest.Testbed()
	sw := *s.Switches[0]
	sw.Identity.Geometry = ocs.SingleSided(24)
	sw.Map = ocs.MustMap(ocs.CrossConnect{Ingress: 3, Egress: 7}, ocs.CrossConnect{Ingress: 12, Egress: 5}, ocs.CrossConnect{Ingress: 20, Egress: 24})
	sw.Power = map[ocs.Port]ocs.DBm{3: -1, 7: -2.5, 12: -1.5, 5: -60}
	s.Switches, s.NICs = []*live.Switch{&sw}, nil
	return &s
}

func TestDraw(t *testing.T) {
	testbed, large, bundle := env(tuitest.Testbed()), env(tuitest.Large(384, 64)), env(tuitest.Bundle())
	troubled, single := env(tuitest.Troubled()), env(singleSided())

	golden(t, "testbed", testbed, nil)
	golden(t, "testbed-circuit", testbed, func(s *patch.Screen) { s.Focus("gpu3/ens1f0", testbed) })
	golden(t, "testbed-number", testbed, func(s *patch.Screen) {
		s.Focus("rail0/31", testbed)
		do(s, testbed, keymap.Home, keymap.Left, keymap.Select)
	})
	golden(t, "testbed-busy", testbed, func(s *patch.Screen) {
		s.Focus("rail0/1", testbed)
		do(s, testbed, keymap.Left, keymap.Select, keymap.Left, keymap.Select)
	})
	golden(t, "testbed-detail", testbed, func(s *patch.Screen) { do(s, testbed, keymap.ZoomIn); s.Focus("gpu3/ens1f0", testbed) })
	golden(t, "testbed-fit", testbed, func(s *patch.Screen) { do(s, testbed, keymap.ZoomFit) })
	filtered := testbed
	filtered.Filter = filter.Parse("gpu1")
	golden(t, "testbed-filter", filtered, nil)
	readOnly := testbed
	readOnly.ReadOnly = true
	golden(t, "testbed-read-only", readOnly, func(s *patch.Screen) { s.Focus("gpu1/ens1f0", testbed) })

	golden(t, "large", large, nil)
	golden(t, "large-cells", large, func(s *patch.Screen) {
		s.Focus("core/200", large)
		do(s, large, keymap.ZoomIn, keymap.ZoomIn, keymap.ZoomIn, keymap.ZoomIn, keymap.ZoomIn, keymap.ZoomIn, keymap.ZoomIn, keymap.ZoomIn, keymap.ZoomOut)
	})
	golden(t, "large-detail", large, func(s *patch.Screen) {
		s.Focus("node041/ens1f0", large)
		do(s, large, keymap.ZoomIn, keymap.ZoomIn, keymap.ZoomIn, keymap.ZoomIn, keymap.ZoomIn, keymap.ZoomIn, keymap.ZoomIn, keymap.ZoomIn, keymap.ZoomIn)
	})

	golden(t, "lost", troubled, nil)
	golden(t, "drifted", troubled, func(s *patch.Screen) { do(s, troubled, keymap.NextSwitch); s.Focus("rail1/2", troubled) })
	golden(t, "opening", troubled, func(s *patch.Screen) { do(s, troubled, keymap.PrevSwitch) })
	golden(t, "empty", env(tuitest.Empty()), nil)
	golden(t, "no-switches", env(&live.State{}), nil)

	golden(t, "bundle", bundle, func(s *patch.Screen) { s.Focus("bundle/9", bundle) })
	golden(t, "bundle-out-of-reach", bundle, nil)
	golden(t, "single-sided", single, func(s *patch.Screen) { s.Focus("rail0/12", single); do(s, single, keymap.Right, keymap.Right) })

	golden(t, "list", testbed, func(s *patch.Screen) { do(s, testbed, keymap.View) })
	golden(t, "list-drifted", troubled, func(s *patch.Screen) { do(s, troubled, keymap.NextSwitch, keymap.View) })
	golden(t, "list-large", large, func(s *patch.Screen) { do(s, large, keymap.View, keymap.End) })
}
