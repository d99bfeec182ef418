package emulator_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/ocs"
)

// memory is a Memory that remembers, or fails.
type memory struct {
	data  []byte
	err   error
	saves int
}

func (m *memory) Load() ([]byte, error) { return m.data, m.err }
func (m *memory) Save(data []byte)      { m.data, m.saves = data, m.saves+1 }

func filled(t *testing.T, boot ocs.BootMode) *memory {
	t.Helper()
	mem := &memory{}
	d := newDevice(t, exact("4x4"), emulator.Options{Memory: mem})
	connect(t, d, "1>5,2>6")
	d.SetShutters(true, 2)
	d.SetLabel(1, `a "b"`)
	d.SetMonitors(nil, emulator.Forward, map[ocs.Port]emulator.Monitor{1: {Wavelength: 1310, Offset: 1, Averaging: 2}, 2: {Wavelength: 1310, Averaging: 1}})
	d.SetMonitors(nil, emulator.Reverse, map[ocs.Port]emulator.Monitor{1: {Wavelength: 1300, Averaging: 3}})
	d.AddUser(nil, emulator.User{Name: "bob", Password: "x", Group: emulator.Viewer})
	d.SetSID("a b")
	d.SetIdleTimeout(emulator.Admin, 5*time.Minute)
	setBoot(t, d, boot)
	if mem.saves != 9 { // one each
		t.Errorf("%d saves, want 9", mem.saves)
	}
	return mem
}

func TestDevice_Memory(t *testing.T) {
	for _, boot := range []ocs.BootMode{ocs.BootRestore, ocs.BootDark} {
		synctest.Test(t, func(t *testing.T) {
			mem := filled(t, boot)
			d := newDevice(t, exact("4x4"), emulator.Options{Memory: mem})
			restored := boot == ocs.BootRestore
			if restored {
				wantMap(t, d, "1>5,2>6")
			} else {
				wantMap(t, d, "")
			}
			wantLit(t, d, 5, restored) // at once
			wantLit(t, d, 6, false)
			if got := d.ShutterClosed(2); got != restored {
				t.Errorf("%s: shutter closed=%v", boot, got)
			}
			d.SetShutters(false, 2)
			time.Sleep(10 * time.Millisecond)
			wantLit(t, d, 6, restored)
			type rest struct {
				Label        string
				Monitor, Rev emulator.Monitor
				Users        []emulator.User
				SID          string
				Idle         time.Duration
				Boot         ocs.BootMode
			}
			want := rest{
				`a "b"`, emulator.Monitor{Wavelength: 1310, Offset: 1, Averaging: 2}, emulator.Monitor{Wavelength: 1300, Averaging: 3},
				[]emulator.User{{Name: "admin", Group: emulator.Admin}, {Name: "bob", Group: emulator.Viewer}},
				"a b", 5 * time.Minute, boot,
			}
			got := rest{
				d.Label(1), d.Monitor(emulator.Forward, 1), d.Monitor(emulator.Reverse, 1), d.Users(),
				d.SID(), d.IdleTimeout(emulator.Admin), d.BootMode(),
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			if _, err := d.Login("bob", "x"); err != nil {
				t.Errorf("Login: %v", err)
			}
		})
	}
}

// Ensure that a circuit through a port that has failed since is not restored.
func TestDevice_MemoryFailedPort(t *testing.T) {
	p := exact("4x4")
	p.Control.Failed = []uint32{6}
	d := newDevice(t, p, emulator.Options{Memory: filled(t, ocs.BootRestore)})
	wantMap(t, d, "1>5")
}

func TestDevice_MemoryErrors(t *testing.T) {
	unreadable := errors.New("disk on fire")
	if _, err := emulator.New(exact("4x4"), emulator.Options{Memory: &memory{err: unreadable}}); !errors.Is(err, unreadable) {
		t.Errorf("error %v, want %v", err, unreadable)
	}
	good := string(filled(t, ocs.BootRestore).data)
	for name, test := range map[string]struct{ old, new string }{
		"Truncated": {`"v":1`, `"v`}, "Version": {`"v":1`, `"v":2`}, "Size": {`"4x4"`, `"8x8"`},
		"Map": {`1\u003e5`, `5\u003e1`}, "MapTwice": {`2\u003e6`, `2\u003e5`}, "Closed": {`"closed":[2]`, `"closed":[9]`},
		"Label": {`"labels":{"1"`, `"labels":{"77"`}, "Wavelength": {`1310`, `13`}, "Monitor": {`"reverse_monitors":{"1"`, `"reverse_monitors":{"0"`},
		"Group": {`"VIEW"`, `"ROOT"`}, "NoAdmin": {`"ADMIN"`, `"USER"`}, "Twice": {`"bob"`, `"admin"`}, "NoName": {`"bob"`, `""`},
		"Boot": {`"restore"`, `"maybe"`}, "Idle": {`300000000000`, `-1`},
	} {
		if !strings.Contains(good, test.old) {
			t.Fatalf("%s: %s is not in %s", name, test.old, good)
		}
		mem := &memory{data: []byte(strings.Replace(good, test.old, test.new, 1))}
		if d, err := emulator.New(exact("4x4"), emulator.Options{Memory: mem}); err == nil {
			t.Errorf("%s: accepted: %v", name, d.CrossConnects())
		} else if !strings.Contains(err.Error(), "memory") {
			t.Errorf("%s: error %v does not say that it is the memory", name, err)
		}
	}
}
