package lease_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ocslab/ocslab/internal/statedir"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/lab/lease"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/ocs/ocstest"
)

const device = "tl1://192.0.2.10:3082"

func TestMain(m *testing.M) {
	if dir := os.Getenv("OCSLAB_TEST_LEASE"); dir != "" {
		_, err := lease.Take(context.Background(), dir, lease.Lease{Device: device, Switch: "rail0", Ports: []ocs.Port{3, 35}, Holder: "job other"})
		if err != nil {
			os.Stdout.WriteString(err.Error() + "\n")
			os.Exit(1)
		}
		os.Stdout.WriteString("held\n")
		_, _ = os.Stdin.Read(make([]byte, 1)) // until the test has ended
		os.Exit(0)                            // without releasing it
	}
	os.Exit(m.Run())
}

// other runs a process that has a lease on ports 3 and 35 until stop, when it ends without a word.
func other(t *testing.T, dir string) (stop func()) {
	t.Helper()
	c := exec.CommandContext(t.Context(), os.Args[0])
	c.Env = append(os.Environ(), "OCSLAB_TEST_LEASE="+dir)
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	said := make([]byte, 256)
	if n, _ := out.Read(said); string(said[:n]) != "held\n" {
		t.Fatalf("the other process says %q", said[:n])
	}
	return func() { in.Close(); _ = c.Wait() }
}

// Ensure what another process has leased is refused until that process has ended, however it ended.
func TestLeases(t *testing.T) {
	dir := t.TempDir()
	stop := other(t, dir)
	inner := ocstest.New(32, ocs.MustMap(ocs.CrossConnect{Ingress: 3, Egress: 35}))
	sw := lab.New(nil, lab.Options{Authority: lab.Files(dir)}).Adopt("rail0", device, inner)
	for _, x := range []struct {
		change  string
		refused bool
	}{{"1>33", false}, {"3>36", true}, {"4>35", true}, {"5>37", false}} {
		add, err := ocs.ParseMap(x.change)
		if err != nil {
			t.Fatal(err)
		}
		_, err = sw.Apply(t.Context(), ocs.Change{Add: add})
		if errors.Is(err, lease.ErrLeased) != x.refused || errors.Is(err, ocs.ErrInterlock) != x.refused {
			t.Errorf("%s: %v; refused: want %v", x.change, err, x.refused)
		}
		if x.refused && !strings.Contains(err.Error(), "job other has ports 3,35 of rail0") {
			t.Errorf("%s: %v: want who has it", x.change, err)
		}
	}
	if _, err := lease.Take(t.Context(), dir, lease.Lease{Device: "scpi://192.0.2.10:5025", Switch: "rail0", Ports: []ocs.Port{35}}); !errors.Is(err, lease.ErrLeased) {
		t.Errorf("the same switch in another language: %v", err)
	}
	stop()
	if all, err := lease.InForce(dir, ""); err != nil || len(all) > 0 {
		t.Errorf("its holder has died: %v, %v", all, err)
	}
	add, _ := ocs.ParseMap("3>36")
	if _, err := sw.Apply(t.Context(), ocs.Change{Add: add}); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// Ensure tokens only grow, also when nothing of before is left, and that a lease of one's own is in nobody's way
// but that of another lease.
func TestTake(t *testing.T) {
	dir := t.TempDir()
	a, err := lease.Take(t.Context(), dir, lease.Lease{Device: device, Switch: "rail0", Ports: []ocs.Port{1, 33}, Holder: "a"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lease.Take(t.Context(), dir, lease.Lease{Device: device, Switch: "rail0", Ports: []ocs.Port{2, 33}, Holder: "b"}); !errors.Is(err, lease.ErrLeased) {
		t.Errorf("port 33 twice: %v", err)
	}
	b, err := lease.Take(t.Context(), dir, lease.Lease{Device: device, Switch: "rail0", Ports: []ocs.Port{2, 34}, Holder: "b"})
	if err != nil || b.Token <= a.Token {
		t.Fatalf("%v, %v", b, err)
	}
	inner := ocstest.New(32, ocs.Map{})
	if _, err := lab.New(nil, lab.Options{StateDir: dir}).Adopt("rail0", device, inner).Apply(t.Context(), ocs.Change{Add: ocs.MustMap(ocs.CrossConnect{Ingress: 1, Egress: 33})}); err != nil {
		t.Errorf("with a lease of this program: %v", err)
	}
	if err := errors.Join(a.Release(), b.Release(), b.Release()); err != nil {
		t.Error(err)
	}
	left, _ := filepath.Glob(filepath.Join(dir, "leases", "*.*"))
	if len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	c, err := lease.Take(t.Context(), dir, lease.Lease{Device: device, Switch: "rail0", Ports: slices.Concat(a.Ports, b.Ports), Holder: "c"})
	if err != nil || c.Token <= b.Token {
		t.Errorf("%v, %v", c, err)
	}
	if err := c.Release(); err != nil {
		t.Error(err)
	}
}

// Ensure that the leases in force can be read where nothing can be written, and that reading removes none.
func TestInForce_ReadOnly(t *testing.T) {
	dir := t.TempDir()
	if all, err := lease.InForce(filepath.Join(dir, "absent"), ""); err != nil || len(all) > 0 {
		t.Errorf("without a directory: %v, %v", all, err)
	}
	stop := other(t, dir)
	readOnly := func(op, path string) error {
		if op == "read" || op == "lock" || op == "open" && strings.HasSuffix(path, ".held") {
			return nil
		}
		return errors.New("read-only file system")
	}
	defer statedir.Inject(readOnly)()
	if all, err := lease.InForce(dir, device); err != nil || len(all) != 1 {
		t.Errorf("held: %v, %v", all, err)
	}
	stop()
	if all, err := lease.InForce(dir, device); err != nil || len(all) != 0 {
		t.Errorf("after the death of the holder: %v, %v", all, err)
	}
}

// Ensure that a lease is given in whole or not at all, whichever operation fails.
func TestTake_Fails(t *testing.T) {
	for n := 1; ; n++ {
		dir, calls := t.TempDir(), 0
		restore := statedir.Inject(func(op, path string) error {
			if calls++; calls == n {
				return errors.New("input/output error")
			}
			return nil
		})
		held, err := lease.Take(t.Context(), dir, lease.Lease{Device: device, Switch: "rail0", Ports: []ocs.Port{3}, Holder: "me"})
		restore()
		all, read := lease.InForce(dir, device)
		if want := err == nil; len(all) == 1 != want || read != nil || (held != nil) != want {
			t.Errorf("operation %d: %v; in force %v, %v", n, err, all, read)
		}
		if held != nil {
			_ = held.Release()
		}
		if calls < n {
			return
		}
	}
}
