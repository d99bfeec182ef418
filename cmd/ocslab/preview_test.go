package main

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ocslab/ocslab/emulator/fabric"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/lab/history"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/tui/live"
)

const previewLab = `
name: two-rails
switches:
  - {name: rail0, emulate: {model: polatis-6000-32x32, switching: 1ms}}
  - {name: rail1, emulate: {model: calient-s320, switching: 1ms}}
hosts:
  - name: gpu1
    nics:
      - {name: e0, tx: rail0/1, rx: rail0/33, firmware: quick}
      - {name: e1, tx: rail1/1, rx: rail1/321, firmware: quick}
  - name: gpu2
    nics:
      - {name: e0, tx: rail0/2, rx: rail0/34, firmware: quick}
      - {name: e1, tx: rail1/2, rx: rail1/322, firmware: quick}
configurations:
  pair: {links: [[gpu1/e0, gpu2/e0], [gpu1/e1, gpu2/e1]]}
  loop: {maps: {rail0: "1>33,2>34", rail1: "1>321"}}
`

// comesTo is what a preview, or the commands that do the same, does by switch.
type comesTo map[string]string

// previewed is what a preview shows.
func previewed(p live.Preview) comesTo {
	c := comesTo{}
	for _, x := range p.Parts {
		c[x.Switch] = x.Change.String()
		if len(x.Shut)+len(x.Unshut) > 0 {
			c[x.Switch] += " shutters " + ocs.FormatPorts(append(x.Shut, x.Unshut...))
		}
	}
	return c
}

// Ensure that the commands that a preview shows do what it shows, as a shell reads them.
func TestPreview_CLI(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "the lab's")
	state := filepath.Join(dir, "state")
	path, plan := filepath.Join(dir, "lab.yaml"), filepath.Join(dir, "plan.yaml")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(path, previewLab)
	write(plan, "mode: overwrite\nswitches: {rail0: '5>37', rail1: '2>321'}\n")
	_, _ = program(t, dir)
	f, err := lab.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	log, err := history.Open(state)
	if err != nil {
		t.Fatal(err)
	}

	// session does some wishes, and returns the previews of others.
	session := func(do, see []live.Wish) (previews []live.Preview) {
		t.Helper()
		s, err := live.Open(t.Context(), live.Options{
			File: f, Lab: lab.Options{Emulated: true, StateDir: state}, History: log, StateDir: state,
			Fabric: lab.FabricOptions{Rung: fabric.Memory},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		for _, w := range do {
			if o := s.Apply(t.Context(), s.Preview(t.Context(), w)); o.Err != nil {
				t.Fatalf("%s: %v", w.Verb, o.Err)
			}
		}
		for _, w := range see {
			p := s.Preview(t.Context(), w)
			if p.Err != nil || p.Empty() || len(p.CLI) == 0 {
				t.Fatalf("%s: %+v", w.Verb, p)
			}
			previews = append(previews, p)
		}
		return previews
	}
	// check runs the commands of previews.
	check := func(previews []live.Preview) {
		t.Helper()
		for _, p := range previews {
			got := comesTo{}
			for _, line := range p.CLI {
				cmd := exec.Command("sh", "-c", line+" --dry-run --json")
				cmd.Dir = dir
				cmd.Env = append(os.Environ(), "PATH="+dir+string(os.PathListSeparator)+os.Getenv("PATH"), "OCSLAB_STATE_DIR="+state)
				var stderr strings.Builder
				cmd.Stderr = &stderr
				out, err := cmd.Output()
				if err != nil {
					t.Errorf("%s: %v\n%s", line, err, stderr.String())
					continue
				}
				for _, o := range objects(t, out) {
					text := func(key string) string { s, _ := o[key].(string); return s }
					switch o["kind"] {
					case "change":
						if c := changeOf(t, text("remove"), text("add")); c != "no change" {
							got[text("switch")] = c
						}
					case "panic":
						remove, add := text("removed"), ""
						if p.Wish.Verb == live.Lift {
							remove, add = "", remove
						}
						got[text("switch")] = changeOf(t, remove, add)
						if closed := text("closed"); closed != "" {
							got[text("switch")] += " shutters " + closed
						}
					}
				}
			}
			if want := previewed(p); !maps.Equal(got, want) {
				t.Errorf("%q comes to %v, the preview of %q to %v", p.CLI, got, p.Title, want)
			}
		}
	}
	circuits := func(text string) ocs.Map {
		t.Helper()
		m, err := ocs.ParseMap(text)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}

	check(session([]live.Wish{
		{Verb: live.Configure, Configuration: "loop"},
		{Verb: live.Connect, Switch: "rail0", Map: circuits("9>41")},
		{Verb: live.Connect, Switch: "rail0", Map: circuits("10>42")},
		{Verb: live.Undo},
	}, []live.Wish{
		{Verb: live.Connect, Switch: "rail0", Map: circuits("5-8>37-40")},
		{Verb: live.Connect, Switch: "rail0", Map: circuits("1>34"), Policy: ocs.Update},
		{Verb: live.Connect, Switch: "rail0", Map: circuits("1>33"), Policy: ocs.Overwrite},
		{Verb: live.Disconnect, Switch: "rail0", Ports: []ocs.Port{2, 41}},
		{Verb: live.Link, NICs: []string{"gpu1/e0", "gpu2/e0"}, Policy: ocs.Update},
		{Verb: live.Unlink, NICs: []string{"gpu1/e0", "gpu1/e1"}},
		{Verb: live.Configure, Configuration: "pair", Policy: ocs.Update},
		{Verb: live.Configure, Configuration: "loop", Policy: ocs.Overwrite},
		{Verb: live.Restore, File: plan},
		{Verb: live.Restore, File: plan, Policy: ocs.Update},
		{Verb: live.Undo},
		{Verb: live.Redo},
		{Verb: live.PanicNow, Reason: "it's $HOME and `fire`"},
	}))
	check(session([]live.Wish{{Verb: live.PanicNow, Reason: "fire"}}, []live.Wish{{Verb: live.Lift}}))
}

// changeOf writes a change as the preview does.
func changeOf(t *testing.T, remove, add string) string {
	t.Helper()
	var c ocs.Change
	for m, text := range map[*ocs.Map]string{&c.Remove: remove, &c.Add: add} {
		if err := m.UnmarshalText([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	return c.String()
}
