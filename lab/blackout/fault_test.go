package blackout

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/ocslab/ocslab/internal/statedir"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/lab/history"
	"github.com/ocslab/ocslab/lab/panics"
	"github.com/ocslab/ocslab/ocs"
)

const emulated = `
name: two
switches:
  - {name: a, emulate: {model: polatis-6000-32x32, switching: 1ms}}
  - {name: b, emulate: {model: calient-s320, switching: 1ms}}
hosts:
  - {name: g1, nics: [{name: e0, tx: a/1, rx: a/33}, {name: e1, tx: b/1, rx: b/321}]}
  - {name: g2, nics: [{name: e0, tx: a/2, rx: a/34}]}
`

// rack is a lab of emulated switches: a with shutters, b without.
type rack struct {
	l   *lab.Lab
	opt Options
}

func newRack(t *testing.T) *rack {
	t.Helper()
	f, err := lab.Parse("two.yaml", []byte(emulated))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	log, err := history.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	l := lab.New(f, lab.Options{Emulated: true, StateDir: dir})
	t.Cleanup(func() { l.Close() })
	r := &rack{l, Options{File: f, Device: l.Device, Open: l.Emergency, History: log, StateDir: dir, Command: "panic"}}
	for name, lit := range map[string]string{"a": "1>33,2>34", "b": "1>321"} {
		o, err := l.Switch(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := o.Emulated.Device.Connect(circuits(lit).Slice()); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// now is what the devices hold: "a 1>33 shut 1; b 1>321".
func (r *rack) now(t *testing.T) string {
	t.Helper()
	var all []string
	for _, s := range r.opt.File.Switches {
		o, err := r.l.Switch(t.Context(), s.Name)
		if err != nil {
			t.Fatal(err)
		}
		d, text := o.Emulated.Device, s.Name
		if m := d.CrossConnects(); m.Len() > 0 {
			text += " " + m.String()
		}
		var shut []ocs.Port
		for _, p := range d.Geometry().Ports() {
			if d.ShutterClosed(p) {
				shut = append(shut, p)
			}
		}
		if len(shut) > 0 {
			text += " shut " + ocs.FormatPorts(shut)
		}
		all = append(all, text)
	}
	return strings.Join(all, "; ")
}

const (
	rackLit  = "a 1>33,2>34; b 1>321"
	rackDark = "a 1>33,2>34 shut 1,2,33,34; b"
)

// carryOut does what a command does that a panic has printed.
func (r *rack) carryOut(t *testing.T, args []string) {
	t.Helper()
	ctx, err := t.Context(), error(nil)
	switch args[0] {
	case "panic":
		n, _ := strconv.Atoi(args[3])
		_, err = New(r.opt).Lift(ctx, n)
	case "shutters":
		var o *lab.Opened
		if o, err = r.l.Switch(ctx, args[1]); err == nil {
			s, _ := ocs.As[ocs.Shutter](o)
			ports, _ := ocs.ParsePorts(args[3])
			err = s.SetShutters(ctx, false, ports...)
		}
	case "connect":
		_, err = r.l.Gate().Apply(ctx, lab.Intent{Switch: args[1], Want: circuits(args[2]), Policy: ocs.Safe})
	default:
		t.Fatalf("unknown command %q", args)
	}
	if err != nil {
		t.Errorf("%q: %v", args, err)
	}
}

// giveBack lifts the panic, or carries out the commands that it has printed.
func (r *rack) giveBack(t *testing.T, results []Result) (byHand bool) {
	t.Helper()
	commands := ByHand(results)
	for _, args := range commands {
		r.carryOut(t, args)
	}
	if len(commands) == 0 {
		if _, err := New(r.opt).Lift(t.Context()); err != nil {
			t.Errorf("not lifted: %v", err)
		}
	}
	if got := r.now(t); got != rackLit {
		t.Errorf("given back by %q: %s, want %s", commands, got, rackLit)
	}
	if calls, err := New(r.opt).InForce(); err != nil || len(calls) > 0 {
		t.Errorf("in force afterwards: %+v, %v", calls, err)
	}
	return len(commands) > 0
}

// nth makes the nth operation on the files of the record and the history fail; count says how many there were.
func nth(n int, how error) (count func() int, restore func()) {
	calls := make(chan int, 1)
	calls <- 0
	restore = statedir.Inject(func(op, path string) error {
		if strings.Contains(path, "/emulated") || strings.Contains(path, "/locks") { // of the emulation, of the gate
			return nil
		}
		i := <-calls + 1
		calls <- i
		if i == n {
			return how
		}
		return nil
	})
	return func() int { i := <-calls; calls <- i; return i }, restore
}

// Ensure a panic darkens whichever operation on files fails, and that afterwards either the record lifts it or the
// commands do that it prints.
func TestPanic_NthOperationFails(t *testing.T) {
	for n := 1; ; n++ {
		r := newRack(t)
		count, restore := nth(n, syscall.EIO)
		results, err := New(r.opt).Panic(t.Context(), call)
		restore()
		if err != nil {
			t.Errorf("operation %d: %v", n, err)
		}
		if got := r.now(t); got != rackDark {
			t.Errorf("operation %d: %s, want %s", n, got, rackDark)
		}
		entries, problems, err := r.opt.History.Entries()
		if err != nil || len(problems) > 0 || len(entries) > 1 || len(entries) == 1 && entries[0].State != history.Done {
			t.Errorf("operation %d: history %+v, %v, %v", n, entries, problems, err)
		}
		byHand := r.giveBack(t, results)
		if t.Failed() {
			return
		}
		if count() < n {
			if n < 10 || byHand || len(entries) != 1 {
				t.Errorf("%d operations; by hand: %v; history %+v", count(), byHand, entries)
			}
			return
		}
	}
}

// Ensure a lift that fails, whichever operation does, leaves a record by which the next one gives back all.
func TestLift_NthOperationFails(t *testing.T) {
	for n := 1; ; n++ {
		r := newRack(t)
		if _, err := New(r.opt).Panic(t.Context(), call); err != nil {
			t.Fatal(err)
		}
		count, restore := nth(n, syscall.EIO)
		_, err := New(r.opt).Lift(t.Context())
		restore()
		calls, unread := New(r.opt).InForce()
		if unread != nil || len(calls) == 0 && r.now(t) != rackLit {
			t.Errorf("operation %d: %v; in force %+v, %v; %s", n, err, calls, unread, r.now(t))
		}
		if err == nil && len(calls) > 0 {
			t.Errorf("operation %d: %v; in force %+v", n, err, calls)
		}
		if len(calls) > 0 {
			r.giveBack(t, nil)
		}
		if entries, problems, err := r.opt.History.Entries(); err != nil || len(problems) > 0 || entries[0].UndoneBy == 0 {
			t.Errorf("operation %d: history %+v, %v, %v", n, entries, problems, err)
		}
		if t.Failed() {
			return
		}
		if count() < n {
			if n < 10 || err != nil {
				t.Errorf("%d operations, %v", count(), err)
			}
			return
		}
	}
}

// Ensure nothing but the switches is needed to darken them, and that what it says gives the light back does.
func TestPanic_NeedsNothing(t *testing.T) {
	damage := func(content string) func(*testing.T, *rack) func() {
		return func(t *testing.T, r *rack) func() {
			path := filepath.Join(r.opt.StateDir, panics.FileName)
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			return func() {
				if data, err := os.ReadFile(path); err != nil || string(data) != content {
					t.Errorf("overwritten: %q, %v", data, err)
				}
				os.Remove(path)
			}
		}
	}
	hold := func(name string) func(*testing.T, *rack) func() {
		return func(t *testing.T, r *rack) func() {
			unlock, err := statedir.Lock(t.Context(), filepath.Join(r.opt.StateDir, name))
			if err != nil {
				t.Fatal(err)
			}
			return unlock
		}
	}
	inject := func(how error, ops ...string) func(*testing.T, *rack) func() {
		return func(t *testing.T, r *rack) func() {
			return statedir.Inject(func(op, path string) error {
				for _, o := range ops {
					if op == o && !strings.Contains(path, "/emulated") {
						return how
					}
				}
				return nil
			})
		}
	}
	for _, tt := range []struct {
		name    string
		arrange func(t *testing.T, r *rack) (mend func())
		byHand  bool
	}{
		{"NoDirectory", func(t *testing.T, r *rack) func() {
			dir, log := r.opt.StateDir, r.opt.History
			r.opt.StateDir, r.opt.History = "", nil
			return func() { r.opt.StateDir, r.opt.History = dir, log }
		}, true},
		{"FileInItsPlace", func(t *testing.T, r *rack) func() {
			dir, log := r.opt.StateDir, r.opt.History
			r.opt.StateDir, r.opt.History = filepath.Join(dir, "file"), nil
			if err := os.WriteFile(r.opt.StateDir, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			return func() { r.opt.StateDir, r.opt.History = dir, log }
		}, true},
		{"ReadOnly", inject(syscall.EROFS, "mkdir", "create", "write", "sync", "truncate", "rename", "remove"), true},
		{"FullDisk", inject(syscall.ENOSPC, "write"), true},
		{"NothingWorks", inject(syscall.EIO, "open", "create", "lock", "read", "write", "sync", "truncate", "rename", "remove", "mkdir"), true},
		{"RecordLocked", hold("panic.lock"), false},
		{"HistoryLocked", hold("history.lock"), false},
		{"Damaged", damage("{"), false},
		{"Newer", damage(`{"v":3,"calls":{}}`), false},
		{"ChangedDigit", damage(`{"v":2,"calls":[{"n":9,"at":"2026-01-02T03:04:05Z","who":"eve","reason":"smoke","dark":[]}],"crc":"00000000"}`), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRack(t)
			mend := tt.arrange(t, r)
			results, err := New(r.opt).Panic(t.Context(), call)
			now := r.now(t)
			mend()
			if err != nil || now != rackDark {
				t.Errorf("%v; %s, want %s", err, now, rackDark)
			}
			if byHand := r.giveBack(t, results); byHand != tt.byHand {
				t.Errorf("by hand: %v, want %v", byHand, tt.byHand)
			}
		})
	}
}

// Ensure a damaged record does not keep the panics from being lifted that can be read, and that the rest is an error.
func TestLift_Damaged(t *testing.T) {
	r := newRack(t)
	path := filepath.Join(r.opt.StateDir, panics.FileName)
	if _, err := New(r.opt).Panic(t.Context(), call, "a"); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.Replace(string(data), `"closed":[1,2,33,34]`, `"closed":[9,2,33,34]`, 1)
	if changed == string(data) {
		t.Fatalf("%s", data)
	}
	if err := os.WriteFile(path, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	if results, err := New(r.opt).Lift(t.Context()); !errors.Is(err, panics.ErrDamaged) || len(results) > 0 {
		t.Errorf("%+v, %v", results, err)
	}
	if results, err := New(r.opt).Panic(t.Context(), call); err != nil || len(ByHand(results)) > 0 {
		t.Errorf("%q, %v", ByHand(results), err)
	}
	results, err := New(r.opt).Lift(t.Context())
	if !errors.Is(err, panics.ErrDamaged) || !strings.Contains(err.Error(), "what it may hold was not lifted") || len(results) != 1 || results[0].Switch != "b" {
		t.Errorf("%+v, %v", results, err)
	}
	if got, want := r.now(t), "a 1>33,2>34 shut 1,2,33,34; b 1>321"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// Ensure light that a change of another process brings back during a panic goes away again, and that a process that
// does not come to an end is named.
func TestPanic_ChangeInProgress(t *testing.T) {
	for _, ends := range []bool{true, false} {
		r := newRack(t)
		r.opt.Lock = func(ctx context.Context, name string) (func(), error) {
			if name != "b" {
				return func() {}, nil
			}
			o, err := r.l.Switch(ctx, "b")
			if err != nil {
				return nil, err
			}
			if _, err := o.Emulated.Device.Connect(circuits("1>321,5>330").Slice()); err != nil {
				return nil, err
			}
			if !ends {
				return nil, errors.Join(errors.New("lock is held by process 4711"), context.DeadlineExceeded)
			}
			return func() {}, nil
		}
		results, err := New(r.opt).Panic(t.Context(), call)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := r.now(t), strings.TrimSuffix(rackDark, "b")+"b 5>330"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
		if note := results[1].Note; !strings.Contains(note, "1>321 lit again by another client meanwhile, and darkened again") || strings.Contains(note, "process 4711") == ends {
			t.Errorf("ends=%v: note %q", ends, note)
		}
		r.opt.Lock = nil
		if _, err := New(r.opt).Lift(t.Context()); err != nil {
			t.Error(err)
		}
		if got, want := r.now(t), rackLit+",5>330"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// Ensure the status is what the switches say, and that a record that says otherwise is a contradiction.
func TestStatus(t *testing.T) {
	r := newRack(t)
	b := New(r.opt)
	status := func() (string, error) {
		calls, err := b.InForce()
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		now := b.Status(t.Context(), calls)
		for _, n := range now {
			all = append(all, strings.TrimSpace(n.Switch+" "+string(n.Light)+" "+n.Lit.String()))
		}
		return strings.Join(all, "; "), Contradictions(now)
	}
	check := func(want, contradiction string) {
		t.Helper()
		got, err := status()
		if got != want || (err == nil) != (contradiction == "") || err != nil && (!errors.Is(err, ErrContradiction) || !strings.Contains(err.Error(), contradiction)) {
			t.Errorf("%q, %v; want %q, %q", got, err, want, contradiction)
		}
	}
	check("a lit 1>33,2>34; b lit 1>321", "")
	if _, err := b.Panic(t.Context(), call); err != nil {
		t.Fatal(err)
	}
	check("a dark; b dark", "")
	o, err := r.l.Switch(t.Context(), "b")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.Emulated.Device.Connect(circuits("1>321").Slice()); err != nil {
		t.Fatal(err)
	}
	check("a dark; b lit 1>321", "b: 1>321 may be lit, and the record says dark")
	if err := os.Remove(filepath.Join(r.opt.StateDir, panics.FileName)); err != nil {
		t.Fatal(err)
	}
	check("a dark; b lit 1>321", "a: the shutters of 1,2,33,34 are closed, and no panic in force has closed them")
	open := r.opt.Open
	r.opt.Open = func(ctx context.Context, name string) (ocs.Switch, string, error) {
		if name == "b" {
			return nil, "", errors.New("boom")
		}
		return open(ctx, name)
	}
	b = New(r.opt)
	check("a dark; b unknown", "a: ")
}
