package live

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/lab/history"
	"github.com/ocslab/ocslab/lab/labtest"
	"github.com/ocslab/ocslab/lab/panics"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/tui/keymap"
)

// act is something that a Session does and that moves light.
type act struct {
	verb    Verb // "" of a run
	wish    Wish
	before  []Wish
	run     string   // "start" or "resume"
	darkens bool     // a panic does not forbid it
	port    ocs.Port // of rail0, that is protected or leased
}

// acts has every Verb, and what begins a run.
func acts(t *testing.T) []act {
	plan := filepath.Join(t.TempDir(), "plan.yaml")
	if err := os.WriteFile(plan, []byte("mode: update\nswitches:\n  rail0: 1>34\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	lit := connect(t, "rail0", "1>33")
	return []act{
		{verb: Connect, wish: connect(t, "rail0", "1>34"), port: 1},
		{verb: Connect, wish: Wish{Verb: Connect, Switch: "rail0", Map: mustMap(t, "2>33"), Policy: ocs.Update}, before: []Wish{lit}, port: 1},
		{verb: Disconnect, wish: Wish{Verb: Disconnect, Switch: "rail0", Ports: []ocs.Port{1}}, before: []Wish{lit}, port: 33, darkens: true},
		{verb: Link, wish: Wish{Verb: Link, NICs: []string{"gpu1/e0", "gpu2/e0"}}, port: 34},
		{verb: Unlink, wish: Wish{Verb: Unlink, NICs: []string{"gpu1/e0"}}, before: []Wish{lit}, port: 1, darkens: true},
		{verb: Configure, wish: Wish{Verb: Configure, Configuration: "pair"}, port: 2},
		{verb: Restore, wish: Wish{Verb: Restore, File: plan}, before: []Wish{lit}, port: 34},
		{verb: Undo, wish: Wish{Verb: Undo}, before: []Wish{lit, {Verb: Disconnect, Switch: "rail0", Ports: []ocs.Port{1}}}, port: 1},
		{verb: Redo, wish: Wish{Verb: Redo}, before: []Wish{lit, {Verb: Undo}}, port: 1},
		{run: "start", port: 1},
	}
}

// unlit are the verbs that need no row, and why.
var unlit = map[Verb]string{
	PanicNow: "takes light away, whatever else holds; TestPanic",
	Lift:     "gives back what a panic took; TestPanic",
}

// mutating has the actions of the keymap that can change something, and what they do here.
var mutating = map[keymap.Action]string{
	keymap.Save: "writes a file of the user's", keymap.Edit: "starts an editor",
	keymap.Connect: string(Connect), keymap.Disconnect: string(Disconnect), keymap.Link: string(Link), keymap.Unlink: string(Unlink),
	keymap.Configure: string(Configure), keymap.Undo: string(Undo), keymap.Redo: string(Redo),
	keymap.Panic: string(PanicNow), keymap.Lift: string(Lift),
	keymap.Run: "start", keymap.Pause: "holds a run that is in progress", keymap.Stop: "ends a run that is in progress", keymap.Abort: "ends a run that is in progress",
	keymap.Accept: "applies what was wished for",
}

// Ensure each verb and each mutating action is in the matrix, or is not with a reason.
func TestMatrixIsComplete(t *testing.T) {
	rows := map[string]bool{}
	for _, a := range acts(t) {
		rows[string(a.verb)+a.run] = true
	}
	file, err := parser.ParseFile(token.NewFileSet(), "wish.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	verbs := 0
	ast.Inspect(file, func(n ast.Node) bool {
		v, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if kind, ok := v.Type.(*ast.Ident); !ok || kind.Name != "Verb" {
			return true
		}
		text, err := strconv.Unquote(v.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		if verbs++; rows[text] == (unlit[Verb(text)] != "") {
			t.Errorf("the verb %q: want it in acts, or in unlit with a reason", text)
		}
		return true
	})
	if verbs < 10 {
		t.Errorf("found %d verbs", verbs)
	}
	for _, b := range keymap.Bindings() {
		what := mutating[b.Action]
		if b.Mutates && !rows[what] && unlit[Verb(what)] == "" && !strings.Contains(what, " ") {
			t.Errorf("%s mutates: want it in mutating, as one of acts or with a reason", b.Action)
		}
		if !b.Mutates && what != "" {
			t.Errorf("%s mutates nothing, and is in the table", b.Action)
		}
	}
}

// Ensure whatever moves light is refused by a panic, a protected port and a lease that come after it was looked at, that the
// device says so, and that the history says who was refused.
func TestMatrix(t *testing.T) {
	var mu sync.Mutex
	var cells, refused, allowed int
	t.Run("cells", func(t *testing.T) {
		for _, a := range acts(t) {
			for _, forbids := range []string{"panic", "protected", "leased"} {
				t.Run(string(a.verb)+a.run+"/"+forbids, func(t *testing.T) {
					t.Parallel()
					ok := testAct(t, a, forbids)
					mu.Lock()
					defer mu.Unlock()
					if cells++; ok {
						allowed++
					} else {
						refused++
					}
				})
			}
		}
	})
	t.Logf("%d cells: %d refused, %d allowed", cells, refused, allowed)
}

// testAct reports whether an act was allowed.
func testAct(t *testing.T, a act, forbids string) (allowed bool) {
	dir := t.TempDir()
	auth := labtest.Around(lab.Files(dir))
	open := func(text string) *Session {
		s := acted(t, text, func(o *Options) {
			o.StateDir, o.Lab.StateDir, o.Lab.Authority, o.Quicken = dir, dir, auth, true
			var err error
			if o.History, err = history.Open(dir); err != nil {
				t.Fatal(err)
			}
		})
		ready(t, s)
		return s
	}
	s := open(twoRails)
	for _, w := range a.before {
		mustApply(t, s, w)
	}
	if forbids == "protected" { // the switches remember what they hold
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = open(strings.Replace(twoRails, "protect: [", fmt.Sprintf("protect: [rail0/%d, ", a.port), 1))
	}
	until(t, s, "what can be undone is known", func(x *State) bool {
		return (a.verb != Undo || x.Undo != "") && (a.verb != Redo || x.Redo != "")
	})
	var p Preview
	var prepared error
	if a.run == "" {
		p = s.Preview(t.Context(), a.wish)
		prepared = p.Err
	} else {
		prepared = s.LoadRun(t.Context(), runOf(t))
	}
	if (prepared != nil) != (forbids == "protected") {
		t.Fatalf("looked at: %v", prepared)
	}
	sw, err := s.open(t.Context(), "rail0")
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var told []string
	sw.Emulated.Device.Observe(func(e emulator.Event) {
		if e.Kind == emulator.CircuitEvent || e.Kind == emulator.PortEvent || e.Condition == "OPM" {
			mu.Lock()
			defer mu.Unlock()
			told = append(told, fmt.Sprint(e.Text, e.Change))
		}
	})
	before := len(auth.Recorded(t))
	why := ocs.ErrInterlock
	switch forbids {
	case "panic":
		auth.Panic(sw.Device, 1, 2, 33, 34)
		why = panics.ErrInForce
	case "leased":
		auth.Lease(sw.Device, a.port)
	}
	switch {
	case a.run == "":
		err = s.Apply(t.Context(), p).Err
	case prepared != nil:
		err = prepared
	default:
		if err = s.StartRun(t.Context(), ocs.Safe); err == nil {
			err = ended(t, s).Run.Err
		}
	}
	entries := auth.Recorded(t)[before:]
	mu.Lock()
	defer mu.Unlock()
	if a.darkens && forbids == "panic" {
		if err != nil || len(told) == 0 {
			t.Errorf("%v, and the device says %q", err, told)
		}
		return true
	}
	if !errors.Is(err, why) {
		t.Errorf("%v, want %v", err, why)
	}
	if len(told) > 0 {
		t.Errorf("the device says %q", told)
	}
	whole := a.run != "" && forbids == "panic" // refused before it plans a change
	if prepared == nil && len(entries) == 0 && !whole {
		t.Error("the history does not say who was refused")
	}
	for _, e := range entries {
		if e.State != history.Failed || e.Who != panics.Me() || e.Error == "" {
			t.Errorf("recorded as %s by %q: %q", e.State, e.Who, e.Error)
		}
	}
	return false
}

// runOf writes an experiment on two rails.
func runOf(t *testing.T) string {
	path := filepath.Join(t.TempDir(), "x.yaml")
	text := "name: x\nsequence: [pair, loop]\nrepeats: 1\nwarm_ups: 0\nnulls: {count: 0}\nmeasure: {traffic: false}\nfinally: {light: restore}\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
