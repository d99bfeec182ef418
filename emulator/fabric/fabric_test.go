package fabric_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/emulator/fabric"
	"github.com/ocslab/ocslab/ocs"
)

func TestStart_Bad(t *testing.T) {
	port := func(sw string, n ocs.Port) fabric.Port { return fabric.Port{Switch: sw, Port: n} }
	nic := func(host, name string, tx, rx fabric.Port) fabric.NIC {
		return fabric.NIC{Host: host, Name: name, Tx: tx, Rx: rx}
	}
	good := nic("gpu1", "ens1f0", port("rail0", 1), port("rail0", 5))
	for _, c := range []struct {
		name string
		edit func(*fabric.Config)
		want string // in the error
		is   error
	}{
		{"no NICs", func(c *fabric.Config) { c.NICs = nil }, "no NICs", nil},
		{"same name", func(c *fabric.Config) {
			c.NICs = append(c.NICs, nic("gpu1", "ens1f0", port("rail0", 2), port("rail0", 6)))
		}, "gpu1/ens1f0 is there twice", nil},
		{"same Rx", func(c *fabric.Config) {
			c.NICs = append(c.NICs, nic("gpu2", "ens1f0", port("rail0", 2), port("rail0", 5)))
		}, "rail0/5, but so does gpu1/ens1f0", nil},
		{"same Tx", func(c *fabric.Config) {
			c.NICs = append(c.NICs, nic("gpu2", "ens1f0", port("rail0", 1), port("rail0", 6)))
		}, "rail0/1, but so does gpu1/ens1f0", nil},
		{"unknown switch", func(c *fabric.Config) { c.NICs[0].Rx = port("rail7", 5) }, `switch "rail7", which is not one of the switches (rail0)`, nil},
		{"no switch", func(c *fabric.Config) { c.Switches = nil }, "not one of the switches", nil},
		{"nil switch", func(c *fabric.Config) { c.Switches["rail1"] = nil }, `switch "rail1" has no device`, nil},
		{"no such port", func(c *fabric.Config) { c.NICs[0].Rx = port("rail0", 9) }, "gpu1/ens1f0 receives from switch rail0: port 9", ocs.ErrPort},
		{"wrong side", func(c *fabric.Config) { c.NICs[0].Tx = port("rail0", 5) }, "not an ingress port", ocs.ErrPort},
		{"long name", func(c *fabric.Config) { c.NICs[0].Name = "enp193s0f0np0abc" }, "16 bytes; 15 are possible", nil},
		{"no interface", func(c *fabric.Config) { c.NICs[0].Name = "" }, "without a name", nil},
		{"no host", func(c *fabric.Config) { c.NICs[0].Host = "" }, "without a name", nil},
		{"path", func(c *fabric.Config) { c.NICs[0].Host = "../x" }, "letters", nil},
		{"dots", func(c *fabric.Config) { c.NICs[0].Host = ".." }, "letters", nil},
		{"lo", func(c *fabric.Config) { c.NICs[0].Name = "lo" }, "another name", nil},
		{"small MTU", func(c *fabric.Config) { c.MTU = 100 }, "MTU of 100", nil},
		{"large MTU", func(c *fabric.Config) { c.MTU = 65000 }, "MTU of 65000", nil},
		{"refresh", func(c *fabric.Config) { c.NICs[0].Profile.Refresh = -1 }, "refresh", nil},
		{"rung", func(c *fabric.Config) { c.Rung = 9 }, "rung 9", nil},
		{"directory", func(c *fabric.Config) { c.Dir = "/dev/null/x" }, "published trees", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := tempDir(t)
			d := newSwitch(t, "4x4", emulator.Options{})
			cfg := fabric.Config{
				Switches: map[string]*emulator.Device{"rail0": d}, NICs: []fabric.NIC{good}, Rung: fabric.Memory, Dir: dir,
			}
			c.edit(&cfg)
			f, err := fabric.Start(cfg)
			if err == nil {
				f.Close()
				t.Fatal("started")
			}
			if !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %q, want one sentence with %q", err, c.want)
			}
			if c.is != nil && !errors.Is(err, c.is) {
				t.Errorf("%v is not %v", err, c.is)
			}
			if left, _ := os.ReadDir(dir); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// TestStart_FailedPort: a port that has failed is simply dark.
func TestStart_FailedPort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, err := emulator.ParsePersonality("p.yaml", []byte(`{model: m, vendor: v, product: p, firmware: f, size: 2x2,
			switching: {single: 20ms}, optics: {loss_db: 1, loss_max_db: 2}, control: {failed_ports: [3]}}`))
		if err != nil {
			t.Fatal(err)
		}
		d, err := emulator.New(p, emulator.Options{})
		if err != nil {
			t.Fatal(err)
		}
		f := start(t, fabric.Config{
			Switches: map[string]*emulator.Device{"rail0": d}, NICs: []fabric.NIC{nicOf(1, 2), nicOf(2, 2)},
			Rung: fabric.Memory, Dir: tempDir(t),
		})
		connect(t, d, "1>4")
		time.Sleep(time.Second)
		if hasCarrier(t, f, "gpu1") || !hasCarrier(t, f, "gpu2") {
			t.Error("want a carrier at gpu2 only")
		}
	})
}

func TestRung_String(t *testing.T) {
	for r, want := range map[fabric.Rung]string{
		fabric.TAP: "TAP", fabric.Veth: "limit", fabric.Memory: "in memory", 0: "rung 0",
	} {
		if got := r.String(); !strings.Contains(got, want) {
			t.Errorf("%q, want %q in it", got, want)
		}
	}
	all := fabric.Rungs()
	if len(all) != 3 || all[2].Rung != fabric.Memory || all[2].Err != nil {
		t.Errorf("rungs %v: memory is always to be had", all)
	}
}

func readFile(t testing.TB, path ...string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestTree follows the published files, by a reader that opens them anew and by one
// that keeps them open.
func TestTree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, f := inMemory(t, 2)
		h := f.Hosts()[1]
		rdma := filepath.Join(h.Root, "class", "infiniband", "ocs0")
		if got := readFile(t, rdma, "ports/1/gid_attrs/ndevs/0"); got != "ens1f0\n" {
			t.Errorf("interface %q", got)
		}
		var open [3]*os.File
		for i, p := range []string{rdma + "/ports/1/state", rdma + "/ports/1/phys_state", h.Root + "/module/ens1f0/eeprom"} {
			file, err := os.Open(p)
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			open[i] = file
		}
		want := func(state, phys string, los byte, rx string) {
			t.Helper()
			synctest.Wait()
			var got [2]string
			for i := range got {
				b := make([]byte, 64)
				n, err := open[i].ReadAt(b, 0)
				if err != io.EOF {
					t.Fatal(err)
				}
				got[i] = strings.TrimSpace(string(b[:n]))
			}
			memory, err := io.ReadAll(io.NewSectionReader(open[2], 0, 1<<20))
			if err != nil || len(memory) != 2432 {
				t.Fatalf("%d bytes of memory, %v", len(memory), err)
			}
			mw := fmt.Sprintf("%.3f", float64(int(memory[34])<<8|int(memory[35]))*4/1e4)
			if diff := cmp.Diff([]any{state, phys, los, rx}, []any{got[0], got[1], memory[3], mw}); diff != "" {
				t.Error(diff)
			}
		}
		want("1: DOWN", "2: Polling", 0xf, "0.000")
		connect(t, d, "1>4")
		time.Sleep(30 * ms)
		want("1: DOWN", "5: LinkUp", memoryLOS(t, open[2]), memoryRx(t, open[2])) // the module may have its refresh before or after
		time.Sleep(ms)
		want("4: ACTIVE", "5: LinkUp", memoryLOS(t, open[2]), memoryRx(t, open[2]))
		time.Sleep(100 * ms) // two refreshes
		want("4: ACTIVE", "5: LinkUp", 0, "0.708")
		if got := readFile(t, rdma, "ports/1/state"); got != "4: ACTIVE\n" {
			t.Errorf("state %q", got)
		}
		disconnect(t, d)
		time.Sleep(100 * ms)
		want("1: DOWN", "2: Polling", 0xf, "0.000")

		if err := f.Remove("gpu2", "ens1f0"); err != nil {
			t.Fatal(err)
		}
		for _, dir := range []string{"class/infiniband", "module"} {
			if left, err := os.ReadDir(filepath.Join(h.Root, dir)); err != nil || len(left) > 0 {
				t.Errorf("%s: %v, %v", dir, left, err)
			}
		}
	})
}

func memoryLOS(t *testing.T, f *os.File) byte {
	t.Helper()
	synctest.Wait()
	b := make([]byte, 4)
	if _, err := f.ReadAt(b, 0); err != nil {
		t.Fatal(err)
	}
	return b[3]
}

func memoryRx(t *testing.T, f *os.File) string {
	t.Helper()
	b := make([]byte, 36)
	if _, err := f.ReadAt(b, 0); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%.3f", float64(int(b[34])<<8|int(b[35]))*4/1e4)
}

// TestTree_Numbers: a second NIC of a host has the next RDMA device, and a new one
// takes the number that is free.
func TestTree_Numbers(t *testing.T) {
	d := newSwitch(t, "4x4", emulator.Options{})
	nic := func(name string, i ocs.Port) fabric.NIC {
		return fabric.NIC{Host: "gpu1", Name: name, Tx: fabric.Port{Switch: "s", Port: i}, Rx: fabric.Port{Switch: "s", Port: 4 + i}}
	}
	f := start(t, fabric.Config{
		Switches: map[string]*emulator.Device{"s": d}, Rung: fabric.Memory, Dir: tempDir(t),
		NICs: []fabric.NIC{nic("a", 1), nic("b", 2), nic("c", 3)},
	})
	want := func(names ...string) {
		t.Helper()
		h := f.Hosts()[0]
		var got []string
		for i, n := range h.NICs {
			got = append(got, strings.TrimSpace(readFile(t, h.Root, fmt.Sprintf("class/infiniband/ocs%d/ports/1/gid_attrs/ndevs/0", i))))
			if got[i] != n.Name {
				t.Errorf("NIC %d is %s, its RDMA device %s", i, n.Name, got[i])
			}
		}
		if diff := cmp.Diff(names, got); diff != "" {
			t.Error(diff)
		}
	}
	want("a", "b", "c")
	if err := f.Remove("gpu1", "b"); err != nil {
		t.Fatal(err)
	}
	if err := f.Add(nic("d", 4)); err != nil {
		t.Fatal(err)
	}
	want("a", "d", "c")
}

// TestTree_NoMix reads as fast as it can while the state changes: the number is always
// one of the two, and with it come at least the letters of its first eight bytes.
func TestTree_NoMix(t *testing.T) {
	d, cfg := pairOfHosts(t, 1)
	cfg.Rung = fabric.Memory
	for _, s := range []*time.Duration{
		&cfg.NICs[0].Profile.Debounce.Median, &cfg.NICs[0].Profile.Detect.Median,
		&cfg.NICs[0].Profile.Train.Median, &cfg.NICs[0].Profile.Carrier.Median,
	} {
		*s = 0
	}
	f := start(t, cfg)
	connect(t, d, "1>2")
	waitCarrier(t, f, true, "gpu1")
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for closed := true; ; closed = !closed {
			select {
			case <-stop:
				return
			default:
				if err := d.SetShutters(closed, 1); err != nil {
					t.Error(err)
				}
				for _, _, on, err := f.Counts("gpu1", "ens1f0"); on == closed && err == nil; _, _, on, err = f.Counts("gpu1", "ens1f0") {
					runtime.Gosched()
				}
			}
		}
	}()
	root := filepath.Join(f.Hosts()[0].Root, "class/infiniband/ocs0/ports/1")
	for name, words := range map[string][]string{
		"state":      {"1: DOWN\n", "4: ACTIV"},
		"phys_state": {"2: Polli", "5: LinkU"},
	} {
		file, err := os.Open(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		seen := map[string]bool{}
		buf := make([]byte, 64)
		last, changes := "", 0
		deadline := time.Now().Add(10 * time.Second) // a busy machine sees fewer
		for changes < 2000 && (changes < 100 || changes%100 != 0 || time.Now().Before(deadline)) {
			n, err := file.ReadAt(buf, 0)
			if n < 10 || err != io.EOF {
				t.Fatalf("%s: %d bytes, %v", name, n, err)
			}
			if s := string(buf[:8]); s != last {
				last, seen[s] = s, true
				changes++
			}
		}
		for s := range seen {
			if s != words[0] && s != words[1] {
				t.Errorf("%s: %q", name, s)
			}
		}
	}
	close(stop)
	<-done
}

// TestClose leaves nothing in the directory, and what a program that was killed has
// left goes with the next Start; what others own stays.
func TestClose(t *testing.T) {
	_, cfg := pairOfHosts(t, 1)
	cfg.Rung = fabric.Memory
	entries := func() (names []string) {
		list, err := os.ReadDir(cfg.Dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range list {
			names = append(names, e.Name())
		}
		return names
	}
	orphan := filepath.Join(cfg.Dir, "ocslab-fabric-123")
	keep := filepath.Join(cfg.Dir, "ocslab-other")
	for _, dir := range []string{orphan, keep} {
		if err := os.MkdirAll(filepath.Join(dir, "gpu1"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	// A link that looks like an orphan is not followed.
	link := filepath.Join(cfg.Dir, "ocslab-fabric-link")
	if err := os.Symlink(keep, link); err != nil {
		t.Fatal(err)
	}
	one, two := start(t, cfg), start(t, cfg)
	if n := len(entries()); n != 4 { // both live, and neither took the other for dead
		t.Errorf("%v", entries())
	}
	for _, f := range []*fabric.Fabric{one, two, two} {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
	if diff := cmp.Diff([]string{"ocslab-fabric-link", "ocslab-other"}, entries()); diff != "" {
		t.Error(diff)
	}
	if _, err := os.Stat(filepath.Join(keep, "gpu1")); err != nil {
		t.Error(err)
	}
}

// TestTruth_Ring keeps the last marks only.
func TestTruth_Ring(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, f := inMemory(t, 1)
		connect(t, d, "1>2")
		time.Sleep(time.Second)
		first, next := f.Truth(0)
		if len(first) != 3 || next != 3 {
			t.Fatalf("%d marks, next %d", len(first), next)
		}
		if more, _ := f.Truth(next); len(more) != 0 {
			t.Errorf("again: %v", more)
		}
		for range 1 << 15 {
			for _, closed := range []bool{true, false} {
				if err := d.SetShutters(closed, 1); err != nil {
					t.Fatal(err)
				}
			}
		}
		synctest.Wait()
		all, next := f.Truth(0)
		if len(all) != 1<<16 || next != 3+1<<16 {
			t.Errorf("%d marks, next %d", len(all), next)
		}
		if got, _ := f.Truth(next - 2); len(got) != 2 || got[1] != all[len(all)-1] {
			t.Errorf("the last two: %v", got)
		}
	})
}
