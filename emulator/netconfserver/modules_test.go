package netconfserver_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/emulator/netconfserver"
)

// revisions are all pairs of revisions that differ from their neighbours in
// either module.
func revisions() (list []emulator.NETCONF) {
	for i, o := range emulator.OpticalSwitchRevisions {
		list = append(list, emulator.NETCONF{OpticalSwitch: o, PolatisSwitch: emulator.PolatisSwitchRevisions[i]})
	}
	return list
}

// needs skips a test whose peer is not installed.
func needs(t testing.TB, program string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		for _, dir := range []string{"/usr/bin", "/usr/sbin"} {
			if p := filepath.Join(dir, program); exists(p) {
				return p
			}
		}
		t.Skipf("%s is not installed", program)
	}
	return path
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// writeModules writes the YANG files of a personality into a directory.
func writeModules(t testing.TB, n emulator.NETCONF) string {
	t.Helper()
	texts, err := netconfserver.Modules(n)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, text := range texts {
		if err := os.WriteFile(filepath.Join(dir, name+".yang"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestModules(t *testing.T) {
	yanglint := needs(t, "yanglint")
	for _, n := range revisions() {
		dir := writeModules(t, n)
		out, err := exec.Command(yanglint, "-p", dir, filepath.Join(dir, "optical-switch.yang"), filepath.Join(dir, "polatis-switch.yang")).CombinedOutput()
		if err != nil || len(out) > 0 {
			t.Errorf("%s: %v\n%s", n.OpticalSwitch, err, out)
		}
		for name, revision := range map[string]string{"optical-switch": n.OpticalSwitch, "polatis-switch": n.PolatisSwitch} {
			text, err := os.ReadFile(filepath.Join(dir, name+".yang"))
			if err != nil {
				t.Fatal(err)
			}
			if _, after, _ := strings.Cut(string(text), "\n  revision "); !strings.HasPrefix(after, revision+" {") {
				t.Errorf("%s@%s begins with revision %.12s", name, revision, after)
			}
			if strings.Contains(string(text), "//@") || strings.Contains(string(text), "//|") {
				t.Errorf("%s@%s has marks", name, revision)
			}
		}
	}
	for _, n := range []emulator.NETCONF{{OpticalSwitch: "2020-01-01"}, {PolatisSwitch: "2017-08-04"}} {
		if _, err := netconfserver.Modules(n); err == nil {
			t.Errorf("%+v: no error", n)
		}
	}
}
