package live

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/internal/statedir"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/lab/history"
	"github.com/ocslab/ocslab/lab/panics"
	"github.com/ocslab/ocslab/ocs"
)

// twoRails has a switch with shutters and one without, and NICs on both.
const twoRails = `
name: two-rails
switches:
  - {name: rail0, emulate: {model: polatis-6000-32x32, switching: 1ms, seed: 1}}
  - {name: rail1, emulate: {model: calient-s320, switching: 1ms, seed: 2}}
hosts:
  - name: gpu1
    nics:
      - {name: e0, tx: rail0/1, rx: rail0/33}
      - {name: e1, tx: rail1/1, rx: rail1/321, firmware: quick}
  - name: gpu2
    nics:
      - {name: e0, tx: rail0/2, rx: rail0/34}
      - {name: e1, tx: rail1/2, rx: rail1/322}
protect: [rail0/31, rail0/63]
configurations:
  pair: {links: [[gpu1/e0, gpu2/e0], [gpu1/e1, gpu2/e1]]}
  loop: {maps: {rail0: "1>33,2>34", rail1: "1>321"}}
`

// acted opens a lab for changes: without hosts to be emulated, it is fast.
func acted(t testing.TB, text string, change func(*Options)) *Session {
	t.Helper()
	f, err := lab.Parse("two-rails.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	f.Path = ""
	return openTestbed(t, func(o *Options) {
		o.File, o.StateDir = f, t.TempDir()
		if o.History, err = history.Open(o.StateDir); err != nil {
			t.Fatal(err)
		}
		if change != nil {
			change(o)
		}
	})
}

// holdsNow reads the circuits and the shutters that are closed, of all switches.
func holdsNow(t testing.TB, s *Session) string {
	t.Helper()
	var b strings.Builder
	for _, x := range s.file().Switches {
		sw, now, err := s.read(t.Context(), x.Name)
		if err != nil {
			t.Fatal(err)
		}
		var closed []ocs.Port
		if shutter, ok := ocs.As[ocs.Shutter](sw); ok {
			shut, err := shutter.Shutters(t.Context())
			if err != nil && !errors.Is(err, ocs.ErrNotSupported) {
				t.Fatal(err)
			}
			for p, is := range shut {
				if is {
					closed = append(closed, p)
				}
			}
		}
		fmt.Fprintf(&b, "%s %v shut %s\n", x.Name, now.m, ocs.FormatPorts(closed))
	}
	return b.String()
}

// mustApply brings a wish about.
func mustApply(t testing.TB, s *Session, w Wish) Outcome {
	t.Helper()
	p := s.Preview(t.Context(), w)
	if p.Err != nil {
		t.Fatalf("Preview(%s %s): %v", w.Verb, p.Title, p.Err)
	}
	o := s.Apply(t.Context(), p)
	if o.Err != nil {
		t.Fatalf("Apply(%s): %v", p.Title, o.Err)
	}
	return o
}

func connect(t testing.TB, sw, text string) Wish {
	return Wish{Verb: Connect, Switch: sw, Map: mustMap(t, text)}
}

// others changes a switch as another client would, past the Session.
func others(t *testing.T, s *Session, name, text string) {
	t.Helper()
	sw := dial(t, s, name)
	if _, err := ocs.Reconcile(t.Context(), sw, mustMap(t, text), ocs.Overwrite); err != nil {
		t.Fatal(err)
	}
}

// Ensure a change is shown as it is, brought about as it was shown, told and logged, and
// can be taken back and brought back.
func TestApply(t *testing.T) {
	s := acted(t, twoRails, nil)
	ready(t, s)
	first := mustApply(t, s, connect(t, "rail0", "1>34"))
	if !strings.HasPrefix(first.Text, "1>34 connected, read back as asked, acknowledged in ") || !strings.HasSuffix(first.Text, "; u takes it back (change 1)") {
		t.Errorf("Text=%q", first.Text)
	}
	if !slices.Equal(first.ID, []int{1}) || first.Move == 0 || !first.Reports["rail0"].ReadBack {
		t.Errorf("%+v", first)
	}

	w := connect(t, "rail0", "1>33")
	p := s.Preview(t.Context(), w)
	if !errors.Is(p.Err, ocs.ErrConflict) || !strings.Contains(p.Err.Error(), "1>34 (gpu1/e0 to gpu2/e0) is in the way of 1>33; m takes it over") {
		t.Errorf("safe: %v", p.Err)
	}
	if o := s.Apply(t.Context(), p); !errors.Is(o.Err, ocs.ErrConflict) {
		t.Errorf("a refused preview was applied: %v", o.Err)
	}
	w.Policy = ocs.Update
	p = s.Preview(t.Context(), w)
	if p.Err != nil || len(p.Parts) != 1 {
		t.Fatalf("%+v", p)
	}
	x := p.Parts[0]
	if x.Change.String() != "- 1>34 + 1>33" || len(x.Foreign) != 0 || len(x.Dark) != 1 || x.Dark[0].From != "gpu1/e0" || x.Dark[0].To != "gpu2/e0" {
		t.Errorf("Part=%+v", x)
	}
	if o := x.Dark[0].Origin; o.Who != "us" || o.ID != 1 {
		t.Errorf("Origin=%+v", o)
	}
	if !slices.Contains(x.Risks, "gpu2/e0 loses its light (1>34)") {
		t.Errorf("Risks=%q", x.Risks)
	}
	if x.Outage <= 0 || !strings.HasPrefix(x.Basis, "light: the median acknowledgement in the history (1)") {
		t.Errorf("Outage=%v Basis=%q", x.Outage, x.Basis)
	}
	if p.Title != "connect rail0 1>33" || !slices.Equal(p.CLI, []string{"ocslab --emulated connect rail0 '1>33' --mode update"}) {
		t.Errorf("%q %q", p.Title, p.CLI)
	}
	o := s.Apply(t.Context(), p)
	if o.Err != nil || !strings.HasPrefix(o.Text, "1>33 connected, 1>34 removed, read back") {
		t.Errorf("%+v", o)
	}
	st := until(t, s, "undo is known", func(x *State) bool { return x.Undo == "connect rail0 1>33 (change 2)" && x.Pending == "" })
	if st.Redo != "" {
		t.Errorf("Redo=%q", st.Redo)
	}
	var did *Entry
	for _, e := range st.Log {
		if e.Kind == Did && !e.Bad {
			did = e
		}
	}
	if did == nil || did.CLI != p.CLI[0] || did.Text != o.Text || did.Switch != "rail0" {
		t.Errorf("log %+v", did)
	}
	entries, _, err := s.opt.History.Entries()
	if err != nil || len(entries) != 2 || entries[1].Command != "--emulated connect rail0 1>33 --mode update" || entries[1].State != history.Done {
		t.Errorf("history %+v, %v", entries, err)
	}

	mustApply(t, s, Wish{Verb: Undo})
	if st := until(t, s, "redo is known", func(x *State) bool { return x.Redo != "" }); st.Redo != "connect rail0 1>33 (change 2)" || st.Undo != "connect rail0 1>34 (change 1)" {
		t.Errorf("Undo=%q Redo=%q", st.Undo, st.Redo)
	}
	mustApply(t, s, Wish{Verb: Undo})
	mustApply(t, s, Wish{Verb: Redo})
	if got := holdsNow(t, s); !strings.HasPrefix(got, "rail0 1>34 ") {
		t.Errorf("after redo: %s", got)
	}
	mustApply(t, s, Wish{Verb: Redo})
	if got := holdsNow(t, s); !strings.HasPrefix(got, "rail0 1>33 ") {
		t.Errorf("after redo, redo: %s", got)
	}
	if p := s.Preview(t.Context(), Wish{Verb: Redo}); !errors.Is(p.Err, ErrNothing) {
		t.Errorf("redo of nothing: %v", p.Err)
	}
}

// Ensure what is refused is refused in words, that match, and nothing is sent.
func TestPreview_Refused(t *testing.T) {
	s := acted(t, twoRails, nil)
	ready(t, s)
	mustApply(t, s, connect(t, "rail0", "5>37"))
	for _, tt := range []struct {
		wish Wish
		want error
		text string
	}{
		{connect(t, "rail0", "1>99"), ocs.ErrPort, "port 99"},
		{connect(t, "rail0", "31>40"), ocs.ErrInterlock, "rail0: change circuits: port is protected: the lab file protects port 31"},
		{connect(t, "rail9", "1>33"), lab.ErrUnknown, "rail9"},
		{connect(t, "rail0", "6>37"), ocs.ErrConflict, "5>37 is in the way of 6>37"},
		{Wish{Verb: Connect, Switch: "rail0"}, ErrNothing, "no circuit"},
		{Wish{Verb: Disconnect, Switch: "rail0"}, ErrNothing, "no port"},
		{Wish{Verb: Disconnect, Switch: "rail0", Ports: []ocs.Port{9}}, ErrNothing, "port 9: not connected"},
		{Wish{Verb: Disconnect, Switch: "rail0", Ports: []ocs.Port{99}}, ocs.ErrPort, "port 99"},
		{Wish{Verb: Link, NICs: []string{"gpu1/e0"}}, nil, "a link joins two NICs"},
		{Wish{Verb: Link, NICs: []string{"gpu1/e0", "gpu2/e1"}}, nil, "no switch joins"},
		{Wish{Verb: Unlink, NICs: []string{"gpu1/e0"}}, ErrNothing, "gpu1/e0: not connected"},
		{Wish{Verb: Unlink}, ErrNothing, "no NIC"},
		{Wish{Verb: Configure, Configuration: "nosuch"}, lab.ErrUnknown, "nosuch"},
		{Wish{Verb: Restore, File: "/nosuch"}, os.ErrNotExist, "nosuch"},
		{Wish{Verb: Redo}, ErrNothing, "no undo is left"},
		{Wish{Verb: Lift}, ErrNothing, "no panic is in force"},
		{Wish{Verb: "dance"}, nil, "dance"},
		{Wish{Verb: Connect, Switch: "rail0", Map: mustMap(t, "1>33"), Policy: "rough"}, nil, "rough"},
	} {
		p := s.Preview(t.Context(), tt.wish)
		if p.Err == nil || tt.want != nil && !errors.Is(p.Err, tt.want) || !strings.Contains(p.Err.Error(), tt.text) {
			t.Errorf("%s %v: %v, want %v with %q", tt.wish.Verb, tt.wish.Map, p.Err, tt.want, tt.text)
		}
		if strings.Contains(fmt.Sprint(p.Err), "\n") {
			t.Errorf("%s: more than one line: %q", tt.wish.Verb, p.Err)
		}
		if o := s.Apply(t.Context(), p); o.Err == nil || o.Text == "" || o.ID != nil {
			t.Errorf("%s was applied: %+v", tt.wish.Verb, o)
		}
	}
	if got, want := holdsNow(t, s), "rail0 5>37 shut \nrail1  shut \n"; got != want {
		t.Errorf("now %q, want %q", got, want)
	}
	if err := s.SetReadOnly(true); err != nil {
		t.Fatal(err)
	}
	for _, w := range []Wish{connect(t, "rail0", "1>33"), {Verb: Undo}, {Verb: PanicNow, Reason: "fire"}} {
		p := s.Preview(t.Context(), w)
		if !errors.Is(p.Err, ErrReadOnly) {
			t.Errorf("read-only: %s: %v", w.Verb, p.Err)
		}
		p.Err = nil
		if o := s.Apply(t.Context(), p); !errors.Is(o.Err, ErrReadOnly) {
			t.Errorf("read-only: %s: %v", w.Verb, o.Err)
		}
	}
}

// Ensure that what has changed since the preview is not overrun, on any switch, and that
// what is of no concern does no harm.
func TestApply_Changed(t *testing.T) {
	s := acted(t, twoRails, nil)
	ready(t, s)
	w := connect(t, "rail0", "1>33")
	p := s.Preview(t.Context(), w)
	others(t, s, "rail0", "1>40")
	o := s.Apply(t.Context(), p)
	if !errors.Is(o.Err, ErrChanged) || !strings.Contains(o.Text, "port 1 of rail0 holds 1>40; it held nothing") || len(o.ID) != 0 {
		t.Errorf("%+v", o)
	}
	p = s.Preview(t.Context(), connect(t, "rail0", "5>37"))
	others(t, s, "rail0", "1>41")
	if o := s.Apply(t.Context(), p); o.Err != nil {
		t.Errorf("elsewhere: %v", o.Err)
	}

	// Of two switches, one that has changed leaves the other alone.
	p = s.Preview(t.Context(), Wish{Verb: Configure, Configuration: "pair", Policy: ocs.Update})
	if p.Err != nil || len(p.Parts) != 2 {
		t.Fatalf("%+v", p)
	}
	others(t, s, "rail1", "1>321")
	if o := s.Apply(t.Context(), p); !errors.Is(o.Err, ErrChanged) || !strings.Contains(o.Text, "nothing was changed") {
		t.Errorf("%+v", o)
	}
	if got, want := holdsNow(t, s), "rail0 1>41,5>37 shut \nrail1 1>321 shut \n"; got != want {
		t.Errorf("now %q, want %q", got, want)
	}

	// What is wished for and was there already must still be there.
	p = s.Preview(t.Context(), connect(t, "rail0", "1>41,6>38"))
	others(t, s, "rail0", "5>37")
	if o := s.Apply(t.Context(), p); !errors.Is(o.Err, ErrChanged) {
		t.Errorf("kept: %+v", o)
	}
	// All that is there concerns overwrite.
	w = connect(t, "rail0", "6>38")
	w.Policy = ocs.Overwrite
	p = s.Preview(t.Context(), w)
	others(t, s, "rail0", "5>37,7>39")
	if o := s.Apply(t.Context(), p); !errors.Is(o.Err, ErrChanged) {
		t.Errorf("overwrite: %+v", o)
	}
}

// Ensure foreign circuits are told as taken over, and dark ones and shut ports as risks.
func TestPreview_Risks(t *testing.T) {
	s := acted(t, twoRails, nil)
	ready(t, s)
	others(t, s, "rail0", "1>34,31>40")
	until(t, s, "the drift is seen", func(x *State) bool {
		return x.Switch("rail0").Set[ocs.CrossConnect{Ingress: 1, Egress: 34}].Who == "others"
	})
	until(t, s, "powers are known", func(x *State) bool { return len(x.Switch("rail0").Power) > 0 })
	w := connect(t, "rail0", "1>33,7>39")
	w.Policy = ocs.Update
	p := s.Preview(t.Context(), w)
	if p.Err != nil {
		t.Fatal(p.Err)
	}
	x := p.Parts[0]
	if len(x.Foreign) != 1 || x.Foreign[0].Circuit.String() != "1>34" {
		t.Errorf("Foreign=%+v", x.Foreign)
	}
	for _, want := range []string{"gpu2/e0 loses its light (1>34)", "1>34 was made by others, ", "no light enters at 7: nothing will come out"} {
		if !slices.ContainsFunc(x.Risks, func(r string) bool { return strings.HasPrefix(r, want) }) {
			t.Errorf("no %q in %q", want, x.Risks)
		}
	}
	if x.LinkUp <= x.Outage || !strings.Contains(x.Basis, "link: ") {
		t.Errorf("LinkUp=%v after %v: %q", x.LinkUp, x.Outage, x.Basis)
	}
	w.Policy = ocs.Overwrite
	p = s.Preview(t.Context(), w)
	if !errors.Is(p.Err, ocs.ErrInterlock) || !slices.Contains(p.Parts[0].Risks, "port 31 is protected by the lab file") {
		t.Errorf("%v: %q", p.Err, p.Parts[0].Risks)
	}
}

// Ensure a wish for several switches is one undo, and one redo.
func TestUndo_SeveralSwitches(t *testing.T) {
	s := acted(t, twoRails, nil)
	ready(t, s)
	o := mustApply(t, s, Wish{Verb: Configure, Configuration: "pair"})
	if len(o.ID) != 2 || !strings.Contains(o.Text, "rail0: 1>34,2>33 connected; rail1: 1>322,2>321 connected, read back as asked") ||
		!strings.HasSuffix(o.Text, "u takes it back (changes 1, 2)") {
		t.Errorf("%+v", o)
	}
	with := holdsNow(t, s)
	until(t, s, "undo", func(x *State) bool {
		return x.Undo == "connect rail0 1>34,2>33, connect rail1 1>322,2>321 (changes 1, 2)" || x.Undo == "connect rail1 1>322,2>321, connect rail0 1>34,2>33 (changes 1, 2)"
	})
	mustApply(t, s, Wish{Verb: Undo})
	if got, want := holdsNow(t, s), "rail0  shut \nrail1  shut \n"; got != want {
		t.Errorf("undone: %q", got)
	}
	mustApply(t, s, Wish{Verb: Redo})
	if got := holdsNow(t, s); got != with {
		t.Errorf("done again: %q, want %q", got, with)
	}
	if p := s.Preview(t.Context(), Wish{Verb: Configure, Configuration: "pair"}); !p.Empty() || p.Err != nil {
		t.Errorf("as wished already: %+v", p)
	} else if o := s.Apply(t.Context(), p); o.Err != nil || !strings.Contains(o.Text, "nothing to do") {
		t.Errorf("%+v", o)
	}
}

// Ensure changes that were made on the command line are undone, too, and that the State
// comes to know of them.
func TestUndo_OfOthers(t *testing.T) {
	s := acted(t, twoRails, nil)
	ready(t, s)
	log, err := history.Open(s.opt.StateDir)
	if err != nil {
		t.Fatal(err)
	}
	sw := dial(t, s, "rail0")
	rec := log.Wrap(sw, history.Entry{Switch: "rail0", Device: "emulated:two-rails/rail0", Command: "connect rail0 3>35"})
	if _, err := ocs.Reconcile(t.Context(), rec, mustMap(t, "3>35"), ocs.Safe); err != nil {
		t.Fatal(err)
	}
	until(t, s, "undo is known", func(x *State) bool { return x.Undo == "connect rail0 3>35 (change 1)" })

	// Somebody has taken it away: it counts as undone, and is out of the way.
	others(t, s, "rail0", "")
	p := s.Preview(t.Context(), Wish{Verb: Undo})
	if p.Err != nil || p.Empty() || !slices.Contains(p.Parts[0].Risks, "nothing of change 1 is left: it counts as taken back then") {
		t.Errorf("%+v", p)
	}
	if o := s.Apply(t.Context(), p); o.Err != nil || !strings.Contains(o.Text, "nothing of change 1 was left") {
		t.Errorf("%+v", o)
	}
	if p := s.Preview(t.Context(), Wish{Verb: Undo}); !errors.Is(p.Err, ErrNothing) {
		t.Errorf("%v", p.Err)
	}
}

// Ensure that only one change is sent at a time, and a panic nevertheless.
func TestApply_Busy(t *testing.T) {
	s := acted(t, twoRails, nil)
	ready(t, s)
	p := s.Preview(t.Context(), connect(t, "rail0", "1>33"))
	s.act.sending.Lock()
	o := s.Apply(t.Context(), p)
	if !errors.Is(o.Err, ErrBusy) {
		t.Errorf("%+v", o)
	}
	if o := s.Apply(t.Context(), s.Preview(t.Context(), Wish{Verb: PanicNow, Reason: "fire"})); o.Err != nil {
		t.Errorf("panic: %v", o.Err)
	}
	s.act.sending.Unlock()
	if err := s.lend(t.Context()); err != nil {
		t.Fatal(err)
	}
	p = s.Preview(t.Context(), connect(t, "rail0", "1>33"))
	if !errors.Is(p.Err, ErrBusy) {
		t.Errorf("while a run has it: %v", p.Err)
	}
	if o := s.Apply(t.Context(), Preview{Wish: p.Wish, Parts: []Part{{Switch: "rail0", Change: ocs.Change{Add: p.Wish.Map}}}}); !errors.Is(o.Err, ErrBusy) {
		t.Errorf("while a run has it: %v", o.Err)
	}
	// A panic waits for nothing but the switches.
	p = s.Preview(t.Context(), Wish{Verb: PanicNow, Reason: "fire"})
	if p.Err != nil {
		t.Errorf("panic while a run has it: %v", p.Err)
	}
	done := make(chan Outcome)
	go func() {
		done <- s.Apply(context.Background(), Preview{Wish: p.Wish, Title: p.Title, Parts: []Part{{Switch: "rail0", Shut: []ocs.Port{1}}}})
	}()
	until(t, s, "the panic is under way", func(x *State) bool { return x.Pending == "panic: fire" })
	s.takeBack()
	if o := <-done; o.Err != nil {
		t.Errorf("panic: %v", o.Err)
	}
	if got, want := holdsNow(t, s), "rail0  shut 1,2,33,34\nrail1  shut \n"; got != want {
		t.Errorf("now %q, want %q", got, want)
	}
}

// fewer has rapid check less often than it does by default: here each check takes a tenth
// of a second.
func fewer(t *testing.T, checks string) {
	t.Helper()
	f := flag.Lookup("rapid.checks")
	if was := f.Value.String(); was == f.DefValue {
		if err := f.Value.Set(checks); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Value.Set(was) })
	}
}

// Ensure a plan file is brought about with its mode, and a snapshot as it says.
func TestApply_Restore(t *testing.T) {
	s := acted(t, twoRails, nil)
	ready(t, s)
	mustApply(t, s, connect(t, "rail0", "1>40,9>41"))
	path := filepath.Join(t.TempDir(), "it's a plan.yaml")
	writeFile(t, path, "mode: overwrite\nswitches: {rail0: '1>33'}\n")
	p := s.Preview(t.Context(), Wish{Verb: Restore, File: path})
	if p.Err != nil || p.Parts[0].Change.String() != "- 1>40,9>41 + 1>33" || p.Wish.Policy != ocs.Overwrite {
		t.Errorf("%+v", p)
	}
	if want := []string{"ocslab --emulated restore '" + strings.ReplaceAll(path, "'", `'\''`) + "'"}; !slices.Equal(p.CLI, want) {
		t.Errorf("%q, want %q", p.CLI, want)
	}
	if o := s.Apply(t.Context(), p); o.Err != nil {
		t.Error(o.Err)
	}
	p = s.Preview(t.Context(), Wish{Verb: Restore, File: path, Policy: ocs.Safe})
	if p.Err != nil || !p.Empty() {
		t.Errorf("%+v", p)
	}
}

// Ensure a panic without a reason darkens though another process keeps the record locked, is seen to be in force, and is
// lifted afterwards.
func TestPanic_RecordLocked(t *testing.T) {
	s := acted(t, twoRails, nil)
	ready(t, s)
	mustApply(t, s, Wish{Verb: Configure, Configuration: "loop"})
	lit := holdsNow(t, s)
	unlock, err := statedir.Lock(t.Context(), filepath.Join(s.opt.StateDir, "panic.lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	o := s.Apply(t.Context(), s.Preview(t.Context(), Wish{Verb: PanicNow}))
	if o.Err != nil || o.Text != "rail0 dark: shutters of 1,2,33,34 closed; rail1 dark: 1>321 removed" {
		t.Errorf("%+v", o)
	}
	if st := until(t, s, "the panic is in force", func(x *State) bool { return x.Panic != nil }); st.Panic.Reason != "no reason given" {
		t.Errorf("%+v", st.Panic)
	}
	unlock()
	mustApply(t, s, Wish{Verb: Lift})
	if got := holdsNow(t, s); got != lit {
		t.Errorf("%q, want %q", got, lit)
	}
}

// Ensure a record that was damaged keeps neither a panic from darkening nor it from being shown and lifted.
func TestPanic_RecordDamaged(t *testing.T) {
	s := acted(t, twoRails, nil)
	ready(t, s)
	mustApply(t, s, Wish{Verb: Configure, Configuration: "loop"})
	lit := holdsNow(t, s)
	if err := os.WriteFile(filepath.Join(s.opt.StateDir, panics.FileName), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	mustApply(t, s, Wish{Verb: PanicNow, Reason: "smoke"})
	if got := holdsNow(t, s); got == lit {
		t.Errorf("not dark: %q", got)
	}
	if st := until(t, s, "the panic is in force", func(x *State) bool { return x.Panic != nil }); st.Panic.Reason != "smoke" {
		t.Errorf("%+v", st.Panic)
	}
	o := s.Apply(t.Context(), s.Preview(t.Context(), Wish{Verb: Lift}))
	if !errors.Is(o.Err, panics.ErrDamaged) {
		t.Errorf("lifted: %+v", o)
	}
	if got := holdsNow(t, s); got != lit {
		t.Errorf("%q, want %q", got, lit)
	}
}

// Ensure a panic darkens, is in force for everybody, and is undone, redone and lifted.
func TestPanic(t *testing.T) {
	s := acted(t, twoRails, nil)
	ready(t, s)
	mustApply(t, s, Wish{Verb: Configure, Configuration: "loop"})
	lit := holdsNow(t, s)
	p := s.Preview(t.Context(), Wish{Verb: PanicNow, Reason: "a fibre is open"})
	if p.Err != nil || len(p.Parts) != 2 || ocs.FormatPorts(p.Parts[0].Shut) != "1,2,33,34" || p.Parts[1].Change.Remove.String() != "1>321" ||
		!slices.Equal(p.CLI, []string{"ocslab --emulated panic --reason 'a fibre is open'"}) {
		t.Fatalf("%+v", p)
	}
	if len(p.Parts[0].Dark) != 2 || len(p.Parts[1].Dark) != 1 {
		t.Errorf("Dark=%+v, %+v", p.Parts[0].Dark, p.Parts[1].Dark)
	}
	o := s.Apply(t.Context(), p)
	if o.Err != nil || o.Text != "rail0 dark: shutters of 1,2,33,34 closed; rail1 dark: 1>321 removed" {
		t.Errorf("%+v", o)
	}
	dark := holdsNow(t, s)
	if want := "rail0 1>33,2>34 shut 1,2,33,34\nrail1  shut \n"; dark != want {
		t.Errorf("%q, want %q", dark, want)
	}
	st := until(t, s, "the panic is in force", func(x *State) bool { return x.Panic != nil })
	if st.Panic.Reason != "a fibre is open" || st.Panic.Who != panics.Me() || !strings.Contains(st.Panic.What, "rail1: 1>321 removed") || st.Undo != "panic: a fibre is open" {
		t.Errorf("%+v %q", st.Panic, st.Undo)
	}
	if st.Panic.Lit != "" {
		t.Errorf("all is dark, but %q", st.Panic.Lit)
	}
	for _, w := range []Wish{connect(t, "rail1", "1>321"), connect(t, "rail1", "2>329")} {
		if p := s.Preview(t.Context(), w); !errors.Is(p.Err, panics.ErrInForce) || !strings.Contains(p.Err.Error(), "ocslab panic --lift --id 1") {
			t.Errorf("%v: %v", p.Title, p.Err)
		} else if o := s.Apply(t.Context(), p); !errors.Is(o.Err, panics.ErrInForce) {
			t.Errorf("%v: applied: %v", p.Title, o.Err)
		}
	}
	if got := holdsNow(t, s); got != dark {
		t.Errorf("light came in a panic: %q", got)
	}
	if p := s.Preview(t.Context(), connect(t, "rail0", "9>41")); p.Err != nil {
		t.Errorf("what is nobody's: %v", p.Err)
	}
	if p := s.Preview(t.Context(), Wish{Verb: Undo}); !slices.Equal(p.CLI, []string{"ocslab --emulated panic --lift --id 1"}) {
		t.Errorf("undo shows %q", p.CLI)
	}
	if p := s.Preview(t.Context(), Wish{Verb: Lift}); !slices.Equal(p.CLI, []string{"ocslab --emulated panic --lift"}) {
		t.Errorf("lift shows %q", p.CLI)
	}
	mustApply(t, s, Wish{Verb: Undo})
	if got := holdsNow(t, s); got != lit {
		t.Errorf("undone: %q, want %q", got, lit)
	}
	until(t, s, "the panic is over", func(x *State) bool { return x.Panic == nil && x.Redo == "panic: a fibre is open" })
	mustApply(t, s, Wish{Verb: Redo})
	if got := holdsNow(t, s); got != dark {
		t.Errorf("done again: %q, want %q", got, dark)
	}
	if o := mustApply(t, s, Wish{Verb: Lift}); o.Text != "rail0 lifted: shutters of 1,2,33,34 opened; rail1 lifted: 1>321 connected" {
		t.Errorf("%q", o.Text)
	}
	if got := holdsNow(t, s); got != lit {
		t.Errorf("lifted: %q, want %q", got, lit)
	}
	mustApply(t, s, Wish{Verb: Undo})
	if got, want := holdsNow(t, s), "rail0  shut \nrail1  shut \n"; got != want {
		t.Errorf("undone: %q, want %q", got, want)
	}
}

// Ensure that whatever is done, undoing all of it leads back to the beginning, and redoing
// that to the end, unless something else was done.
func TestUndo_Property(t *testing.T) {
	fewer(t, "15")
	s := acted(t, twoRails, nil)
	ready(t, s)
	circuit := rapid.Custom(func(r *rapid.T) Wish {
		w := Wish{Verb: Connect, Switch: "rail0", Policy: rapid.SampledFrom([]ocs.Policy{ocs.Safe, ocs.Update, ocs.Overwrite}).Draw(r, "policy")}
		first := ocs.Port(33)
		if rapid.Bool().Draw(r, "rail1") {
			w.Switch, first = "rail1", 321
		}
		w.Map = ocs.MustMap(ocs.CrossConnect{
			Ingress: ocs.Port(rapid.IntRange(1, 3).Draw(r, "ingress")), Egress: first + ocs.Port(rapid.IntRange(0, 2).Draw(r, "egress")),
		})
		return w
	})
	wish := rapid.OneOf(
		circuit,
		rapid.Map(circuit, func(w Wish) Wish {
			return Wish{Verb: Disconnect, Switch: w.Switch, Ports: []ocs.Port{w.Map.Slice()[0].Ingress}}
		}),
		rapid.SampledFrom([]Wish{
			{Verb: Link, NICs: []string{"gpu1/e0", "gpu2/e0"}, Policy: ocs.Update},
			{Verb: Unlink, NICs: []string{"gpu1/e1"}},
			{Verb: Configure, Configuration: "pair", Policy: ocs.Update},
			{Verb: Configure, Configuration: "loop", Policy: ocs.Overwrite},
			{Verb: PanicNow, Reason: "fire"},
			{Verb: Undo}, {Verb: Redo}, {Verb: Undo}, {Verb: Redo},
		}),
	)
	rapid.Check(t, func(r *rapid.T) {
		start := holdsNow(t, s)
		var done []string
		for range rapid.IntRange(1, 8).Draw(r, "wishes") {
			w := wish.Draw(r, "wish")
			p := s.Preview(context.Background(), w)
			if p.Err != nil || p.Empty() {
				continue // refused, or nothing to do
			}
			o := s.Apply(context.Background(), p)
			done = append(done, p.Title+": "+o.Text)
			if o.Err != nil {
				r.Fatalf("%s: %v", strings.Join(done, "\n"), o.Err)
			}
		}
		end := holdsNow(t, s)
		undone := 0
		for ; ; undone++ {
			p := s.Preview(context.Background(), Wish{Verb: Undo})
			if errors.Is(p.Err, ErrNothing) {
				break
			}
			o := s.Apply(context.Background(), p)
			done = append(done, p.Title+": "+o.Text)
			if o.Err != nil || undone > 100 {
				r.Fatalf("%s\nundo: %v", strings.Join(done, "\n"), o.Err)
			}
		}
		if got := holdsNow(t, s); got != start {
			r.Fatalf("%s\nnow  %q\nwant %q", strings.Join(done, "\n"), got, start)
		}
		for range undone {
			p := s.Preview(context.Background(), Wish{Verb: Redo})
			o := s.Apply(context.Background(), p)
			done = append(done, p.Title+": "+o.Text)
			if o.Err != nil {
				r.Fatalf("%s\nredo: %v", strings.Join(done, "\n"), o.Err)
			}
		}
		if got := holdsNow(t, s); got != end {
			r.Fatalf("%s\nnow  %q\nwant %q", strings.Join(done, "\n"), got, end)
		}
		for range undone {
			if o := s.Apply(context.Background(), s.Preview(context.Background(), Wish{Verb: Undo})); o.Err != nil {
				r.Fatalf("%s\nundo again: %v", strings.Join(done, "\n"), o.Err)
			}
		}
		if got := holdsNow(t, s); got != start {
			r.Fatalf("%s\nnow  %q\nwant %q", strings.Join(done, "\n"), got, start)
		}
	})
}

func TestDigits(t *testing.T) {
	for d, want := range map[time.Duration]string{
		203 * time.Millisecond: "203 ms", 203456 * time.Microsecond: "203 ms", 1234 * time.Millisecond: "1.23 s", 90 * time.Second: "1m30s", 812 * time.Nanosecond: "812 ns",
	} {
		if got := digits(d); got != want {
			t.Errorf("digits(%v)=%q, want %q", d, got, want)
		}
	}
}

// Ensure that several switches change as one operation: all of them or none.
func TestApply_OneFails(t *testing.T) {
	s := acted(t, twoRails, nil)
	ready(t, s)
	parts := func(first, second string) []Part {
		return []Part{ // in any order
			{Switch: "rail1", Change: ocs.Change{Add: mustMap(t, second)}},
			{Switch: "rail0", Change: ocs.Change{Add: mustMap(t, first)}},
		}
	}
	// The interlock refuses port 31, and rail1 has no port 9.
	o := s.Apply(t.Context(), Preview{Title: "both", Parts: parts("31>40", "1>321")})
	if !errors.Is(o.Err, ocs.ErrInterlock) || len(o.ID) != 2 || !strings.Contains(o.Text, "nothing was changed: rail0: change circuits: port is protected: the lab file protects port 31") {
		t.Errorf("%+v", o)
	}
	o = s.Apply(t.Context(), Preview{Title: "both", Parts: parts("1>33", "1>9")})
	if !errors.Is(o.Err, ocs.ErrPort) || !strings.Contains(o.Text, "nothing was changed: rail1: ") {
		t.Errorf("%+v", o)
	}
	if got, want := holdsNow(t, s), "rail0  shut \nrail1  shut \n"; got != want {
		t.Errorf("now %q, want %q", got, want)
	}
	mustApply(t, s, Wish{Verb: Connect, Switch: "rail0", Map: mustMap(t, "1>33")})
	until(t, s, "nothing is pending", func(x *State) bool { return x.Pending == "" })
	mustApply(t, s, Wish{Verb: Undo})
	if got, want := holdsNow(t, s), "rail0  shut \nrail1  shut \n"; got != want {
		t.Errorf("undone: %q, want %q", got, want)
	}
}

// Ensure that a panic is something new, after which there is no redo of what came before.
func TestRedo_EndsWithPanic(t *testing.T) {
	s := acted(t, twoRails, nil)
	ready(t, s)
	mustApply(t, s, connect(t, "rail1", "1>321"))
	mustApply(t, s, Wish{Verb: Undo})
	mustApply(t, s, Wish{Verb: PanicNow, Reason: "fire"})
	if p := s.Preview(t.Context(), Wish{Verb: Redo}); !errors.Is(p.Err, ErrNothing) {
		t.Errorf("%+v", p)
	}
}

// Ensure a panic that is called again after something else was done comes after that, so
// that undoing leads back.
func TestRedo_PanicInAnotherPlace(t *testing.T) {
	s := acted(t, twoRails, nil)
	ready(t, s)
	mustApply(t, s, connect(t, "rail1", "1>321"))
	mustApply(t, s, Wish{Verb: PanicNow, Reason: "fire"})
	mustApply(t, s, connect(t, "rail1", "9>329")) // nobody's of the lab
	mustApply(t, s, Wish{Verb: Lift})
	mustApply(t, s, Wish{Verb: Redo})
	if got, want := holdsNow(t, s), "rail0  shut 1,2,33,34\nrail1 9>329 shut \n"; got != want {
		t.Errorf("dark: %q, want %q", got, want)
	}
	mustApply(t, s, Wish{Verb: Undo})
	if got, want := holdsNow(t, s), "rail0  shut \nrail1 1>321,9>329 shut \n"; got != want {
		t.Errorf("lifted: %q, want %q", got, want)
	}
	mustApply(t, s, Wish{Verb: Undo})
	mustApply(t, s, Wish{Verb: Undo})
	if got, want := holdsNow(t, s), "rail0  shut \nrail1  shut \n"; got != want {
		t.Errorf("undone: %q, want %q", got, want)
	}
}

// Ensure that a switch which is lost is shown on what it held last, is not changed, and
// keeps no other from getting dark.
func TestPreview_Lost(t *testing.T) {
	gone, here := emulation(t, "polatis-6000-32x32"), emulation(t, "polatis-6000-32x32")
	s := acted(t, fmt.Sprintf(`
switches:
  - {name: gone, url: %q}
  - {name: here, url: %q}
hosts:
  - {name: gpu1, netns: nowhere, nics: [{name: e0, tx: gone/1, rx: gone/33}, {name: e1, tx: here/1, rx: here/33}]}
`, gone.URL(), here.URL()), func(o *Options) { o.Lab.Emulated = false })
	until(t, s, "both are up", func(x *State) bool {
		return x.Switch("gone").Status == Up && x.Switch("here").Status == Up && x.Switch("gone").Shutters
	})
	mustApply(t, s, connect(t, "gone", "1>33"))
	if err := gone.Close(); err != nil {
		t.Fatal(err)
	}
	until(t, s, "it is lost", func(x *State) bool { return x.Switch("gone").Status == Lost })
	p := s.Preview(t.Context(), Wish{Verb: Disconnect, Switch: "gone", Ports: []ocs.Port{1}})
	if p.Err == nil || len(p.Parts) != 1 || !p.Parts[0].Stale || p.Parts[0].Change.String() != "- 1>33" || !strings.HasPrefix(p.Parts[0].Risks[0], "gone does not answer: this is what it held ") {
		t.Errorf("%+v", p)
	}
	p = s.Preview(t.Context(), Wish{Verb: PanicNow, Reason: "fire"})
	if p.Err != nil || len(p.Parts) != 2 || !p.Parts[0].Stale || ocs.FormatPorts(p.Parts[0].Shut) != "1,33" || p.Parts[1].Stale {
		t.Errorf("%+v", p)
	}
	o := s.Apply(t.Context(), p)
	if o.Err == nil || !strings.Contains(o.Text, "gone failed: ") || !strings.Contains(o.Text, "here dark: shutters of 1,33 closed") {
		t.Errorf("%+v", o)
	}
	st := until(t, s, "the panic is in force", func(x *State) bool { return x.Panic != nil })
	if !strings.Contains(st.Panic.What, "here: shutters of 1,33 closed") {
		t.Errorf("%+v", st.Panic)
	}
}

// Ensure a lift gives back no light that the preview has not shown: not that of a panic that
// was called since, and not through a circuit that somebody has made since.
func TestLift_Changed(t *testing.T) {
	s := acted(t, twoRails, nil)
	ready(t, s)
	mustApply(t, s, connect(t, "rail0", "1>33"))
	mustApply(t, s, connect(t, "rail1", "1>321"))
	mustApply(t, s, Wish{Verb: PanicNow, Reason: "a fibre is open"})
	p := s.Preview(t.Context(), Wish{Verb: Lift})
	if p.Err != nil || !strings.Contains(p.Title, "a fibre is open ("+panics.Me()) {
		t.Fatalf("%q %v", p.Title, p.Err)
	}
	dark := holdsNow(t, s)

	others(t, s, "rail0", "1>40")
	o := s.Apply(t.Context(), p)
	if !errors.Is(o.Err, ErrChanged) || !strings.Contains(o.Text, "port 1 of rail0 holds 1>40; it held 1>33") {
		t.Errorf("another circuit: %+v", o)
	}
	others(t, s, "rail0", "1>33")

	// Somebody else calls a panic, and finds all dark.
	other := s.blackout(words{"panic"})
	if _, err := other.Panic(t.Context(), panics.Call{Who: "eve", Reason: "I look into it"}); err != nil {
		t.Fatal(err)
	}
	o = s.Apply(t.Context(), p)
	if !errors.Is(o.Err, ErrChanged) || !strings.Contains(o.Text, "a panic was called since the preview, by eve: I look into it") {
		t.Errorf("another panic: %+v", o)
	}
	if got := holdsNow(t, s); got != dark {
		t.Errorf("now %s, want %s", got, dark)
	}
	p = s.Preview(t.Context(), Wish{Verb: Lift})
	if !strings.Contains(p.Title, "eve") {
		t.Errorf("Title=%q", p.Title)
	}
	if o := s.Apply(t.Context(), p); o.Err != nil {
		t.Error(o.Err)
	}
	if got, want := holdsNow(t, s), "rail0 1>33 shut \nrail1 1>321 shut \n"; got != want {
		t.Errorf("now %q, want %q", got, want)
	}
}

// Ensure nothing is connected that was accepted before a panic, or under another lab file.
func TestApply_Basis(t *testing.T) {
	s := acted(t, twoRails, nil)
	ready(t, s)
	mustApply(t, s, connect(t, "rail1", "1>321"))
	p := s.Preview(t.Context(), connect(t, "rail1", "5>330"))
	if _, err := s.blackout(words{"panic"}).Panic(t.Context(), panics.Call{Who: "eve", Reason: "smoke"}); err != nil {
		t.Fatal(err)
	}
	if o := s.Apply(t.Context(), p); !errors.Is(o.Err, ErrChanged) || !strings.Contains(o.Text, "by eve: smoke") {
		t.Errorf("after a panic: %+v", o)
	}
	late := shares(p) // the turn of the switch comes after the panic
	if err := s.applyShares(t.Context(), late); !errors.Is(err, ErrChanged) || late[0].report.Receipt.Requests > 0 {
		t.Errorf("sent after a panic: %v, %+v", err, late[0].report)
	}
	p = s.Preview(t.Context(), connect(t, "rail1", "5>330"))
	f := *s.file()
	s.update(func(p *parts) { p.file = &f })
	if o := s.Apply(t.Context(), p); !errors.Is(o.Err, ErrChanged) || !strings.Contains(o.Text, "the lab file was read anew") {
		t.Errorf("after a reload: %+v", o)
	}
	if got, want := holdsNow(t, s), "rail0  shut 1,2,33,34\nrail1  shut \n"; got != want {
		t.Errorf("now %q, want %q", got, want)
	}
}

// Ensure a panic is not said to be needless when a switch has not said that it is dark.
func TestPanic_Silent(t *testing.T) {
	p := Preview{Wish: Wish{Verb: PanicNow}, Parts: []Part{{Switch: "rail0", Silent: true}}}
	if p.Empty() {
		t.Error("a switch that says nothing counts as dark")
	}
	s := acted(t, strings.Replace(twoRails, "- {name: rail1, emulate: {model: calient-s320, switching: 1ms, seed: 2}}", "- {name: rail1, url: 'tl1://admin@127.0.0.1:1', password: 'env:NONE'}", 1), func(o *Options) { o.Lab.Emulated = false })
	p = s.Preview(t.Context(), Wish{Verb: PanicNow, Reason: "fire"})
	if p.Empty() || p.Err != nil {
		t.Fatalf("%+v", p)
	}
	if o := s.Apply(t.Context(), p); o.Err == nil || !strings.Contains(o.Text, "rail1 failed") {
		t.Errorf("%+v", o)
	}
}
