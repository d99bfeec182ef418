package tui

import (
	"fmt"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/tui/live"
	"github.com/ocslab/ocslab/tui/screen"
	"github.com/ocslab/ocslab/tui/tuitest"
)

// risky is a preview with all there can be in one.
func risky(w live.Wish) live.Preview {
	cc := func(i, e ocs.Port) ocs.CrossConnect { return ocs.CrossConnect{Ingress: i, Egress: e} }
	us := live.Origin{Who: "us", ID: 12, When: tuitest.Now.Add(-time.Minute)}
	taken := live.Ends{Circuit: cc(7, 40), From: "laser A", To: "power meter 2", HasPower: true, InPower: -1.9}
	return live.Preview{
		Wish: w, Title: "connect rail0 1>34,7>36", CLI: []string{"ocslab connect rail0 '1>34,7>36' --mode update"}, At: tuitest.Now,
		Parts: []live.Part{{
			Switch: "rail0",
			Change: ocs.Change{Remove: ocs.MustMap(cc(1, 35), cc(2, 34), cc(7, 40)), Add: ocs.MustMap(cc(1, 34), cc(7, 36))},
			Dark: []live.Ends{
				{Circuit: cc(1, 35), From: "gpu1/ens1f0", To: "gpu3/ens1f0", HasPower: true, InPower: -1.3, Origin: us},
				{Circuit: cc(2, 34), From: "gpu2/ens1f0", To: "gpu2/ens1f0", HasPower: true, InPower: -1.4, Origin: live.Origin{Who: "run opus-toggle", ID: 9}, Traffic: true},
				taken,
			},
			Lit: []live.Ends{
				{Circuit: cc(1, 34), From: "gpu1/ens1f0", To: "gpu2/ens1f0", HasPower: true, InPower: -1.3},
				{Circuit: cc(7, 36), From: "laser A", To: "gpu4/ens1f0", HasPower: true, InPower: -60},
			},
			Foreign: []live.Ends{taken},
			Risks: []string{
				"packets are flowing through 2>34, which goes dark",
				"7>40 was not made here: laser A to power meter 2 belongs to somebody else",
				"no light enters at 7: nothing will come out at 36",
			},
			Outage: 203 * time.Millisecond, LinkUp: 3020 * time.Millisecond,
			Basis: "median of 11 changes of this switch; link-up of gpu2/ens1f0 in 5 moves of this session",
		}},
	}
}

// scenes are what is looked at as goldens: a state of the lab, and what was done.
var scenes = []struct {
	name  string
	state func() *live.State
	opt   Options
	do    func(u *ui)
	// overlay says that it is not about a screen; scenes in which something is done are not.
	overlay bool
}{
	{"patch", tuitest.Testbed, Options{}, nil, false},
	{"links", tuitest.Testbed, Options{Screen: "links"}, nil, false},
	{"timeline", tuitest.Testbed, Options{Screen: "timeline"}, nil, false},
	{"experiment", tuitest.Testbed, Options{Screen: "experiment"}, nil, false},
	{"devices", tuitest.Testbed, Options{Screen: "devices"}, nil, false},
	{"log", tuitest.Testbed, Options{Screen: "log"}, nil, false},
	{"troubled", tuitest.Troubled, Options{}, nil, false},
	{"opening", tuitest.Empty, Options{}, nil, false},
	{"help", tuitest.Testbed, Options{Intro: []string{"The switch is emulated. From another terminal:", "  ocslab show tl1://admin:root@127.0.0.1:3082"}}, func(u *ui) { u.keys("?") }, true},
	{"help-searched", tuitest.Testbed, Options{}, func(u *ui) { u.keys("?", "/"); u.write("panic"); u.keys("enter") }, true},
	{"palette", tuitest.Testbed, Options{}, func(u *ui) { u.keys("ctrl+p") }, true},
	{"palette-searched", tuitest.Testbed, Options{}, func(u *ui) { u.keys("ctrl+p"); u.write("gpu2"); u.keys("down") }, true},
	{"command", tuitest.Testbed, Options{}, func(u *ui) { u.keys(":"); u.write("con"); u.keys("tab", "tab") }, true},
	{"command-nic", tuitest.Testbed, Options{}, func(u *ui) { u.keys(":"); u.write("link gpu1 g") }, true},
	{"command-wrong", tuitest.Testbed, Options{}, func(u *ui) { u.command("conect rail0 1>33") }, true},
	{"filter", tuitest.Testbed, Options{Screen: "links"}, func(u *ui) { u.keys("/"); u.write("gpu3") }, true},
	{"preview", tuitest.Testbed, Options{}, func(u *ui) {
		u.lab.Answer = risky
		u.command("connect rail0 1>34,7>36")
	}, true},
	{"preview-looking", tuitest.Testbed, Options{}, func(u *ui) {
		u.hold = true
		u.command("connect rail0 1>34,7>36")
	}, true},
	{"preview-refused", tuitest.Testbed, Options{}, func(u *ui) {
		u.lab.Answer = func(w live.Wish) live.Preview {
			return live.Preview{Wish: w, Title: "connect rail0 1>34", Err: fmt.Errorf("rail0: %w: 2>34 is in the way of 1>34", ocs.ErrConflict)}
		}
		u.command("connect rail0 1>34")
	}, true},
	{"configurations", tuitest.Testbed, Options{}, func(u *ui) { u.keys("C") }, true},
	{"panic", tuitest.Testbed, Options{}, func(u *ui) {
		u.lab.Answer = possible
		u.keys("!")
	}, true},
	{"panic-in-force", func() *live.State {
		s := *tuitest.Testbed()
		s.Panic = &live.Panic{At: tuitest.Now.Add(-30 * time.Second), Reason: "somebody is at the fibres of rack 4, do not give light back before noon", Who: "ada", What: "4 shutters of rail0"}
		return &s
	}, Options{}, nil, true},
	{"frozen", tuitest.Testbed, Options{}, func(u *ui) {
		u.keys("f")
		u.clock = u.clock.Add(12 * time.Second)
		s := *tuitest.Testbed()
		s.Version += 34
		u.state(&s)
	}, true},
	{"read-only", tuitest.Testbed, Options{ReadOnly: true}, nil, true},
	{"all-at-once", func() *live.State {
		s := *tuitest.Troubled()
		s.Panic = &live.Panic{At: tuitest.Now.Add(-30 * time.Second), Reason: "somebody is at the fibres", Who: "ada"}
		return &s
	}, Options{ReadOnly: true}, func(u *ui) { u.keys("f"); u.clock = u.clock.Add(3 * time.Second); u.keys("R") }, true},
	{"sending", tuitest.Testbed, Options{}, func(u *ui) {
		u.lab.Answer = risky
		u.command("connect rail0 1>34,7>36")
		u.hold = true
		u.accept()
		u.pass(time.Second)
	}, true},
	{"quit-asks", tuitest.Testbed, Options{}, func(u *ui) {
		s := *u.m.newest
		s.Run = &live.Run{ID: "20261122T150405-opus-toggle-1a2b"}
		u.state(&s)
		u.keys("q")
	}, true},
	{"text", tuitest.Testbed, Options{}, func(u *ui) {
		u.m.request(screen.Show{Title: "What is not watched", Lines: []string{"traffic between hosts: ICMP sockets need CAP_NET_RAW", "firmware of gpu3: its driver does not tell"}})
		u.send(tickMsg{})
	}, true},
	{"reload-errors", tuitest.Testbed, Options{}, func(u *ui) {
		_, err := lab.Parse("lab.yaml", []byte("name: bad lab\nswitches:\n  - name: rail0\n    uri: tl1://192.0.2.10\nprotect: [rail9/1]\n"))
		u.send(reloadedMsg{"lab.yaml", err})
	}, true},
}

func TestGolden(t *testing.T) {
	for _, x := range scenes {
		t.Run(x.name, func(t *testing.T) {
			for _, size := range tuitest.Sizes {
				u := newUIOf(t, x.state(), size[0], size[1], x.opt, x.do != nil || x.overlay)
				if x.do != nil {
					x.do(u)
				}
				u.frame()
				base := fmt.Sprintf("%s-%dx%d", x.name, size[0], size[1])
				tuitest.Compare(t, base+".txt", u.m.canvas.String())
				tuitest.Compare(t, base+".ans", tuitest.Colours(&u.m.canvas)+"\n")
			}
		})
	}
}

func TestGolden_TooSmall(t *testing.T) {
	u := newUI(t, tuitest.Testbed(), 30, 8, Options{})
	tuitest.Compare(t, "too-small.txt", u.text())
	for w := range 50 {
		for _, h := range []int{0, 1, 2, 9, 10, 11} {
			u.send(tea.WindowSizeMsg{Width: w, Height: h})
		}
	}
}
