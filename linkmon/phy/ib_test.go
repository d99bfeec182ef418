package phy

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/timeline"
)

// tree makes files below a directory; a text that begins with "-> " is a symbolic link.
func tree(t testing.TB, files map[string]string) (dir string, root *os.Root) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		if to, ok := strings.CutPrefix(text, "-> "); ok {
			err = os.Symlink(to, path)
		} else {
			err = os.WriteFile(path, []byte(text), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return dir, root
}

// sysfs is laid out as the kernel does: class holds links into devices. mlx5_0 is up and
// has a GID; mlx5_1 is down and has none; mlx4_0 has two ports.
var sysfs = map[string]string{
	"class/infiniband/mlx5_0": "-> ../../devices/pci/0/infiniband/mlx5_0",
	"class/infiniband/mlx5_1": "-> ../../devices/pci/1/infiniband/mlx5_1",
	"class/infiniband/mlx4_0": "-> ../../devices/pci/2/infiniband/mlx4_0",
	"class/net/ens1f0":        "-> ../../devices/pci/0/net/ens1f0",
	"class/net/ens1f1":        "-> ../../devices/pci/1/net/ens1f1",
	"class/net/ens2":          "-> ../../devices/pci/2/net/ens2",
	"class/net/ens2d1":        "-> ../../devices/pci/2/net/ens2d1",
	"class/net/eno1":          "-> ../../devices/pci/3/net/eno1",

	"devices/pci/0/infiniband/mlx5_0/ports/1/state":             "4: ACTIVE\n",
	"devices/pci/0/infiniband/mlx5_0/ports/1/phys_state":        "5: LinkUp\n",
	"devices/pci/0/infiniband/mlx5_0/ports/1/link_layer":        "Ethernet\n",
	"devices/pci/0/infiniband/mlx5_0/ports/1/gid_attrs/ndevs/0": "ens1f0\n",
	"devices/pci/0/net/ens1f0/dev_port":                         "0\n",
	"devices/pci/1/infiniband/mlx5_1/ports/1/state":             "1: DOWN\n",
	"devices/pci/1/infiniband/mlx5_1/ports/1/phys_state":        "3: Disabled\n",
	"devices/pci/1/net/ens1f1/dev_port":                         "0\n",
	"devices/pci/1/net/ens1f1/device":                           "-> ../..",
	"devices/pci/2/infiniband/mlx4_0/ports/1/state":             "4: ACTIVE\n",
	"devices/pci/2/infiniband/mlx4_0/ports/1/phys_state":        "5: LinkUp\n",
	"devices/pci/2/infiniband/mlx4_0/ports/2/state":             "2: INIT\n",
	"devices/pci/2/infiniband/mlx4_0/ports/2/phys_state":        "2: Polling\n",
	"devices/pci/2/infiniband/mlx4_0/ports/note":                "",
	"devices/pci/2/net/ens2/dev_port":                           "0\n",
	"devices/pci/2/net/ens2/device":                             "-> ../..",
	"devices/pci/2/net/ens2d1/dev_port":                         "1\n",
	"devices/pci/2/net/ens2d1/device":                           "-> ../..",
	"devices/pci/3/net/eno1/dev_port":                           "0\n",
}

func TestFindIB(t *testing.T) {
	_, root := tree(t, sysfs)
	for _, tt := range []struct{ iface, port, layer, state string }{
		{"ens1f0", "mlx5_0/1", "Ethernet", "ACTIVE, LinkUp"},
		{"ens1f1", "mlx5_1/1", "", "DOWN, Disabled"},
		{"ens2", "mlx4_0/1", "", "ACTIVE, LinkUp"},
		{"ens2d1", "mlx4_0/2", "", "INIT, Polling"},
	} {
		p, err := FindIB(root, tt.iface)
		if err != nil {
			t.Errorf("%s: %v", tt.iface, err)
			continue
		}
		s, at, err := p.Read()
		if err != nil || p.String() != tt.port || p.LinkLayer != tt.layer || s.String() != tt.state || s.LinkUp() != strings.HasSuffix(tt.state, "LinkUp") {
			t.Errorf("%s: %v %q says %v, %v", tt.iface, p, p.LinkLayer, s, err)
		}
		if at.Width() < 0 || at.Earliest == 0 {
			t.Errorf("%s: read at %v", tt.iface, at)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
	for _, iface := range []string{"eno1", "none", "", "../ens1f0", "ens1f0/device"} {
		p, err := FindIB(root, iface)
		if !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%q: %v, %v", iface, p, err)
		}
	}
	_, empty := tree(t, nil)
	if _, err := FindIB(empty, "ens1f0"); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), `no RDMA device for "ens1f0"`) {
		t.Errorf("no tree: %v", err)
	}
	_, broken := tree(t, map[string]string{
		"class/infiniband/ocs0/ports/1/gid_attrs/ndevs/0": "ens1f0",
		"class/infiniband/ocs0/ports/1/state":             "1: DOWN",
	})
	if _, err := FindIB(broken, "ens1f0"); err == nil || !strings.Contains(err.Error(), "ocs0/1 of ens1f0") {
		t.Errorf("no phys_state: %v", err)
	}
	_, file := tree(t, map[string]string{"class/infiniband": "x"})
	if _, err := FindIB(file, "ens1f0"); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("class/infiniband is a file: %v", err)
	}
}

// The port of an emulated host: files that stay open and are overwritten in place, padded
// so that no longer word shines through.
func TestIBPort_Follows(t *testing.T) {
	dir, root := tree(t, map[string]string{
		"class/infiniband/ocs0/ports/1/gid_attrs/ndevs/0": "ens1f0\n",
		"class/infiniband/ocs0/ports/1/state":             "1: DOWN\n  ",
		"class/infiniband/ocs0/ports/1/phys_state":        "3: Disabled\n",
	})
	p, err := FindIB(root, "ens1f0")
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	put := func(file, text string) {
		t.Helper()
		f, err := os.OpenFile(filepath.Join(dir, "class/infiniband/ocs0/ports/1", file), os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := f.WriteAt([]byte(text), 0); err != nil {
			t.Fatal(err)
		}
	}
	tr := Tracker{Subject: "gpu1/ens1f0", Host: "gpu1"}
	var reads []timeline.Interval
	var marks []timeline.Mark
	read := func(want string) {
		t.Helper()
		s, at, err := p.Read()
		if err != nil || s.String() != want {
			t.Fatalf("%v, %v, want %s", s, err, want)
		}
		reads = append(reads, at)
		if m, ok := tr.Add(s, at); ok {
			marks = append(marks, m)
		}
	}
	read("DOWN, Disabled")
	put("phys_state", "2: Polling\n ")
	read("DOWN, Polling")
	put("phys_state", "5: LinkUp\n  ")
	put("state", "4: ACTIVE\n")
	read("ACTIVE, LinkUp")
	read("ACTIVE, LinkUp")
	if n, _ := tr.Lost(); n != 0 {
		t.Errorf("%d losses before any", n)
	}
	put("phys_state", "2: Polling\n ")
	read("ACTIVE, Polling")
	n, lost := tr.Lost()
	if want := timeline.Between(reads[3].Earliest, reads[4].Latest); n != 1 || lost != want {
		t.Errorf("%d losses, the last at %v, want 1 at %v", n, lost, want)
	}
	want := []timeline.Mark{{
		Stage: timeline.Firmware, Subject: "gpu1/ens1f0", Host: "gpu1", Source: "ib-phys", Detail: "ACTIVE, LinkUp",
		Interval: timeline.Between(reads[1].Earliest, reads[2].Latest),
	}}
	if diff := cmp.Diff(want, marks); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}

	for _, bad := range []string{"LinkUp      \n", "5           \n", ": LinkUp    \n", "5:          \n", "-1: x       \n", "256: x      \n"} {
		put("phys_state", bad)
		if s, _, err := p.Read(); err == nil || s != (State{}) {
			t.Errorf("%q was read as %v", bad, s)
		}
	}
	put("phys_state", "5: LinkUp   \n")
	put("state", "ACTIVE    \n")
	if _, _, err := p.Read(); err == nil || !strings.Contains(err.Error(), "RDMA port ocs0/1: state holds") {
		t.Errorf("bad state: %v", err)
	}
}

// Each mark holds the moment at which the link came up, if it moves less often than it is
// read, and as many losses are counted as there were.
func TestTracker_HoldsTruth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		up := rapid.Bool().Draw(t, "up at first")
		tr := Tracker{}
		var moved timeline.Interval // not known better than between two reads
		now, losses := int64(0), 0
		for range rapid.IntRange(1, 40).Draw(t, "reads") {
			flip := now != 0 && rapid.Bool().Draw(t, "flip")
			truth := now + rapid.Int64Range(0, 50).Draw(t, "truth")
			if flip {
				up = !up
				moved = timeline.Point(truth)
				if !up {
					losses++
				}
			}
			from := truth
			to := from + rapid.Int64Range(1, 20).Draw(t, "takes")
			s := State{Active, Polling}
			if up {
				s.Phys = LinkUp
			}
			m, ok := tr.Add(s, timeline.Between(from, to))
			if ok != (flip && up) {
				t.Fatalf("mark %v, flipped %v to %v", ok, flip, up)
			}
			if ok && !m.Contains(moved.Earliest) {
				t.Fatalf("%v does not hold %v", m, moved)
			}
			now = to
		}
		if n, _ := tr.Lost(); n != losses {
			t.Fatalf("%d losses, want %d", n, losses)
		}
	})
}

func TestState_Names(t *testing.T) {
	for s, want := range map[State]string{
		{ActiveDefer, PhyTest}: "ACTIVE_DEFER, Phy Test",
		{Armed, Training}:      "ARMED, PortConfigurationTraining",
		{0, 0}:                 "NOP, <unknown>",
		{9, 9}:                 "<unknown 9>, <unknown 9>",
	} {
		if got := s.String(); got != want {
			t.Errorf("%d: %q, want %q", s, got, want)
		}
	}
}
