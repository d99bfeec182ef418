package lab_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ocslab/ocslab/internal/statedir"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/lab/history"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/ocs/ocstest"
)

// monitored is a switch with one monitor that can be set.
type monitored struct {
	*scripted
	monitor ocs.Monitor
}

func (m *monitored) Power(context.Context, ...ocs.Port) (ocs.PowerReading, error) {
	return ocs.PowerReading{}, ocs.ErrNotSupported
}
func (m *monitored) Monitors(context.Context, ...ocs.Port) ([]ocs.Monitor, error) {
	return []ocs.Monitor{m.monitor}, nil
}
func (m *monitored) SetMonitor(_ context.Context, to ocs.Monitor) error {
	m.monitor = to
	return nil
}

var slow = ocs.Monitor{Port: 9, WavelengthNM: 1550, Averaging: 20 * time.Millisecond}

// program is a pair on a state directory, as one run of the program has it; a has a monitor.
func program(t testing.TB, dir string, p *pair, meter *monitored) *pair {
	t.Helper()
	q := newPair(t, lab.Files(dir))
	if p != nil {
		q.switches = p.switches
	}
	if meter.scripted == nil {
		meter.scripted = q.switches["a"]
	}
	q.opened["a"] = q.lab.Adopt("a", "emulated:test/a", meter)
	q.opened["b"] = q.lab.Adopt("b", "emulated:test/b", q.switches["b"])
	return q
}

// quick sets the monitor of a as a measurement does, and restores it.
func quick(p *pair) error {
	meter, _ := ocs.As[lab.MonitorSetter](p.opened["a"])
	fast := slow
	fast.Averaging = 10 * time.Millisecond
	restore, err := meter.SetMonitorsMeanwhile(context.Background(), []ocs.Monitor{fast})
	if err != nil {
		return err
	}
	return restore(context.Background())
}

// undoAll takes back all changes of circuits, the newest first, as often as there is one left.
func (p *pair) undoAll(t testing.TB) {
	t.Helper()
	for range 10 {
		entries := p.auth.Recorded(t)
		last := 0
		for _, e := range entries {
			if e.UndoOf == 0 && e.UndoneBy == 0 && e.State != history.Failed && len(e.Set) == 0 {
				last = e.ID
			}
		}
		if last == 0 {
			return
		}
		if err := p.undo(t, last); err != nil {
			t.Errorf("undo %d: %v", last, err)
			return
		}
	}
	t.Error("there is always one more change to undo")
}

// Ensure that nothing is half recorded whichever file operation fails: what was not recorded was not sent, what was
// sent is recorded, and undo takes it back.
func TestGate_FileFaults(t *testing.T) {
	for name, tc := range map[string]struct {
		before func(p *pair) error // done without faults
		do     func(p *pair) error
		want   string // what the switches hold when it went well
	}{
		"connect": {nil, func(p *pair) error {
			_, err := p.lab.Gate().Apply(context.Background(), p.want(t, "a", "1>10"))
			return err
		}, "1>10"},
		"undo": {func(p *pair) error {
			_, err := p.lab.Gate().ApplyAll(context.Background(), p.both(t, "1>10"))
			return err
		}, func(p *pair) error { return p.undo(t, 1) }, pairBefore},
		"apply of two": {nil, func(p *pair) error {
			_, err := p.lab.Gate().ApplyAll(context.Background(), p.both(t, "1>10"))
			return err
		}, "1>10"},
		"monitors": {nil, quick, ""},
	} {
		t.Run(name, func(t *testing.T) {
			n := 1
			for ; ; n++ {
				dir, meter := t.TempDir(), &monitored{monitor: slow}
				p := program(t, dir, nil, meter)
				if tc.before != nil {
					if err := tc.before(p); err != nil {
						t.Fatal(err)
					}
				}
				was := p.text(t)
				var mu sync.Mutex // two switches are changed at once
				calls, failed := 0, ""
				broken := errors.New("input/output error")
				restore := statedir.Inject(func(op, path string) error {
					mu.Lock()
					defer mu.Unlock()
					if calls++; calls == n {
						failed = op + " " + filepath.Base(path)
						return broken
					}
					return nil
				})
				p = program(t, dir, p, meter) // the program begins
				err := tc.do(p)
				restore()
				if calls < n {
					if err != nil {
						t.Errorf("without a fault: %v", err)
					}
					break
				}
				t.Run(fmt.Sprintf("%d %s", n, failed), func(t *testing.T) {
					q := program(t, dir, p, meter) // another one begins, without faults
					now := q.text(t)
					if err == nil && tc.want != "" && now["a"] != tc.want {
						t.Errorf("it went well, and a holds %s", now["a"])
					}
					for _, e := range q.auth.Recorded(t) {
						changed := was[e.Switch] != now[e.Switch]
						if e.State == history.Failed && changed && e.UndoOf == 0 && len(e.Set) == 0 {
							t.Errorf("change %d counts as failed, and %s was changed; error of the command: %v", e.ID, e.Switch, err)
						}
					}
					if tc.before == nil && now["a"] != now["b"] && name == "apply of two" {
						t.Errorf("one of two switches was changed: %v; error of the command: %v", now, err)
					}
					for _, sw := range []string{"a", "b"} {
						if was[sw] != now[sw] && !slices.ContainsFunc(q.auth.Recorded(t), func(e history.Entry) bool { return e.Switch == sw }) {
							t.Errorf("%s was changed, and the history does not know", sw)
						}
					}
					q.undoAll(t)
					q.holds(t, "a", pairBefore)
					q.holds(t, "b", pairBefore)
					// A change restores the settings of programs that have ended.
					if _, err := q.lab.Gate().Apply(t.Context(), q.want(t, "a", "3>11")); err != nil {
						t.Error(err)
					}
					if meter.monitor != slow {
						t.Errorf("the monitor is left at %+v; error of the command: %v", meter.monitor, err)
					}
				})
			}
			if n < 10 {
				t.Errorf("%d file operations: this test tests nothing", n-1)
			}
			t.Logf("%d file operations", n-1)
		})
	}
}

// text is what the switches hold.
func (p *pair) text(t testing.TB) map[string]string {
	t.Helper()
	held := map[string]string{}
	for name, sw := range p.switches {
		m, err := sw.Switch.CrossConnects(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		held[name] = m.String()
	}
	return held
}

// killed is an authority whose program has died: nobody holds its settings any more.
type killed struct{ lab.Authority }

func (killed) Held(string) (bool, error) { return false, nil }

// Ensure that settings of a program that was killed are restored before the next program sets and restores its own.
func TestGate_AbandonedSettings(t *testing.T) {
	auth := killed{lab.Files(t.TempDir())}
	meter := &monitored{monitor: slow}
	meter.scripted = &scripted{Switch: ocstest.New(8, parseMap(t, pairBefore))}
	first := lab.New(nil, lab.Options{Authority: auth}).Adopt("a", "emulated:test/a", meter)
	fast := slow
	fast.Averaging = 10 * time.Millisecond
	setter, _ := ocs.As[lab.MonitorSetter](first)
	if _, err := setter.SetMonitorsMeanwhile(t.Context(), []ocs.Monitor{fast}); err != nil { // and is killed
		t.Fatal(err)
	}
	second := lab.New(nil, lab.Options{Authority: auth}).Adopt("a", "emulated:test/a", meter)
	setter, _ = ocs.As[lab.MonitorSetter](second)
	restore, err := setter.SetMonitorsMeanwhile(t.Context(), []ocs.Monitor{fast})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := second.Gate().Apply(t.Context(), lab.Intent{On: second, Want: parseMap(t, "1>10"), Policy: ocs.Update}); err != nil {
		t.Fatal(err)
	}
	if meter.monitor != fast {
		t.Errorf("a change of its own program has set the monitor to %+v", meter.monitor)
	}
	if err := restore(t.Context()); err != nil {
		t.Fatal(err)
	}
	if meter.monitor != slow {
		t.Errorf("the monitor is left at %+v, want %+v", meter.monitor, slow)
	}
}
