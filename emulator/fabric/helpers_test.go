package fabric_test

import (
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/emulator/fabric"
	firmwarenotes "github.com/ocslab/ocslab/firmware-notes"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/timeline"
)

const ms = time.Millisecond

// quick is firmware whose every delay is fixed.
var quick = firmwarenotes.Profile{
	Name:     "quick/fixed",
	Debounce: firmwarenotes.Span{Median: 5 * ms},
	Detect:   firmwarenotes.Span{Median: 2 * ms},
	Train:    firmwarenotes.Span{Median: 8 * ms},
	Carrier:  firmwarenotes.Span{Median: 1 * ms},
	Refresh:  50 * ms,
}

// newSwitch returns a switch without chance: 20 ms for each command.
func newSwitch(t testing.TB, size string, opt emulator.Options) *emulator.Device {
	t.Helper()
	d, err := emulator.New(emulator.Personality{
		Model: "test", Vendor: "V", Product: "P", Firmware: "1", Size: size,
		Switching: emulator.Switching{Single: 20 * ms, Bulk: 20 * ms, Rise: ms, Ack: emulator.AckBefore},
		Optics:    emulator.Optics{Loss: 1.5, LossMax: 2.7},
		Monitors:  emulator.Monitors{Sides: emulator.MonitorsBoth, Floor: -60, Default: 1},
		Control: emulator.Control{
			Busy: emulator.Takeover, Boot: ocs.BootRestore, Reboot: time.Minute,
			Users: []emulator.User{{Name: "admin", Password: "root", Group: emulator.Admin}},
		},
	}, opt)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// pairOfHosts returns a switch and n NICs on it, each of a host of its own: gpu1 sends
// into port 1 and receives from n+1, and so on.
func pairOfHosts(t testing.TB, n int) (*emulator.Device, fabric.Config) {
	t.Helper()
	d := newSwitch(t, fmt.Sprintf("%dx%d", n, n), emulator.Options{Name: "rail0"})
	cfg := fabric.Config{Switches: map[string]*emulator.Device{"rail0": d}, Seed: 1, Dir: tempDir(t)}
	for i := range n {
		cfg.NICs = append(cfg.NICs, nicOf(i+1, n))
	}
	return d, cfg
}

// tempDir returns a directory in memory where there is one: a fabric makes many
// small files.
func tempDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "fabric-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func nicOf(i, n int) fabric.NIC {
	return fabric.NIC{
		Host: fmt.Sprintf("gpu%d", i), Name: "ens1f0",
		Tx: fabric.Port{Switch: "rail0", Port: ocs.Port(i)}, Rx: fabric.Port{Switch: "rail0", Port: ocs.Port(n + i)},
		Profile: quick,
	}
}

func start(t testing.TB, cfg fabric.Config) *fabric.Fabric {
	t.Helper()
	f, err := fabric.Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return f
}

func connect(t testing.TB, d *emulator.Device, m string) {
	t.Helper()
	want, err := ocs.ParseMap(m)
	if err == nil {
		_, err = d.Connect(want.Slice())
	}
	if err != nil {
		t.Fatal(err)
	}
}

func disconnect(t testing.TB, d *emulator.Device, ports ...ocs.Port) {
	t.Helper()
	if _, err := d.Disconnect(ports...); err != nil {
		t.Fatal(err)
	}
}

// wait waits until ok; the time it may take only bounds a failure.
func wait(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(); time.Sleep(200 * time.Microsecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

func hasCarrier(t testing.TB, f *fabric.Fabric, host string) bool {
	t.Helper()
	_, _, carrier, err := f.Counts(host, "ens1f0")
	if err != nil {
		t.Fatal(err)
	}
	return carrier
}

func waitCarrier(t testing.TB, f *fabric.Fabric, want bool, hosts ...string) {
	t.Helper()
	for _, h := range hosts {
		wait(t, fmt.Sprintf("carrier of %s %v", h, want), func() bool { return hasCarrier(t, f, h) == want })
	}
}

// marksOf returns the stages of a subject in the order of the log.
func marksOf(f *fabric.Fabric, subject string) (marks []timeline.Mark) {
	all, _ := f.Truth(0)
	for _, m := range all {
		if m.Subject == subject {
			marks = append(marks, m)
		}
	}
	return marks
}

// needRung skips where a rung cannot be had by this user.
func needRung(t testing.TB, r fabric.Rung) {
	t.Helper()
	for _, a := range fabric.Rungs() {
		if a.Rung == r && a.Err != nil {
			if os.Geteuid() == 0 && !errors.Is(a.Err, errors.ErrUnsupported) {
				t.Fatalf("root has no %v: %v", r, a.Err)
			}
			t.Skip(a.Err)
		}
	}
}
