package fabric_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/emulator/fabric"
	"github.com/ocslab/ocslab/internal/netns"
)

// The test binary is also the programs that some tests run.
const (
	helperEnv = "FABRIC_TEST_HELPER" // which
	dirEnv    = "FABRIC_TEST_DIR"
	userEnv   = "FABRIC_TEST_USERNS"
)

func TestMain(m *testing.M) {
	switch os.Getenv(helperEnv) {
	case "":
		os.Exit(m.Run())
	case "user":
		code, done, err := fabric.Reexec(userEnv)
		if done {
			os.Exit(code)
		}
		if err != nil {
			fmt.Println("none", err)
		}
	}
	if err := hold(); err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
}

// hold starts a fabric, says so in one line, and ends with 7 at the end of its input
// and 9 at SIGTERM.
func hold() error {
	terminated := make(chan os.Signal, 1)
	signal.Notify(terminated, syscall.SIGTERM)
	d, err := emulator.New(emulator.Personality{
		Model: "m", Vendor: "v", Product: "p", Firmware: "f", Size: "2x2",
		Optics: emulator.Optics{Loss: 1, LossMax: 2}, Monitors: emulator.Monitors{Default: 1, Sides: emulator.MonitorsBoth},
		Switching: emulator.Switching{Ack: emulator.AckAfter},
		Control:   emulator.Control{Busy: emulator.Takeover, Boot: "dark", Users: []emulator.User{{Name: "admin", Group: emulator.Admin}}},
	}, emulator.Options{})
	if err != nil {
		return err
	}
	rung := map[string]fabric.Rung{"tap": fabric.TAP, "veth": fabric.Veth}[os.Getenv(helperEnv)]
	f, err := fabric.Start(fabric.Config{
		Switches: map[string]*emulator.Device{"rail0": d}, NICs: []fabric.NIC{nicOf(1, 2), nicOf(2, 2)},
		Rung: rung, Dir: os.Getenv(dirEnv),
	})
	if err != nil {
		return err
	}
	h := f.Hosts()[0]
	path := "-"
	if h.NS != nil {
		path = h.NS.Path()
	}
	fmt.Println("ready", uint8(f.Rung()), os.Getpid(), os.Getuid(), path, h.Root)
	input := make(chan struct{})
	go func() {
		io.Copy(io.Discard, os.Stdin) //nolint:errcheck // the end is what counts
		close(input)
	}()
	code := 7
	select {
	case <-input:
	case <-terminated:
		code = 9
	}
	if err := f.Close(); err != nil {
		return err
	}
	os.Exit(code)
	return nil
}

// helper is such a program.
type helper struct {
	*exec.Cmd
	input io.Closer

	rung       fabric.Rung
	pid, uid   int // of the one that holds the fabric
	path, root string
}

// prepare makes a helper that is to run as a user.
func prepare(t *testing.T, which, dir string, uid int) *helper {
	t.Helper()
	// A copy that everybody may run.
	binary := filepath.Join(dir, "helper")
	data, err := os.ReadFile("/proc/self/exe")
	if err == nil {
		err = os.WriteFile(binary, data, 0o755)
	}
	if err == nil {
		err = os.Chmod(dir, 0o777)
	}
	if err != nil {
		t.Fatal(err)
	}
	h := &helper{Cmd: exec.Command(binary)}
	h.Env = append(os.Environ(), helperEnv+"="+which, dirEnv+"="+filepath.Join(dir, "trees"))
	h.Stderr = os.Stderr
	h.SysProcAttr = &syscall.SysProcAttr{}
	if uid != os.Geteuid() {
		h.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}
	}
	return h
}

// run starts a helper as a user and waits until it holds a fabric.
func run(t *testing.T, which, dir string, uid int) *helper {
	t.Helper()
	h := prepare(t, which, dir, uid)
	in, err := h.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := h.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	h.input = in
	if err := h.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Process.Kill(); h.Wait() }) //nolint:errcheck // most have ended
	for lines := bufio.NewScanner(out); lines.Scan(); {
		line := lines.Text()
		if n, _ := fmt.Sscan(line, new(string), &h.rung, &h.pid, &h.uid, &h.path, &h.root); n == 6 && strings.HasPrefix(line, "ready ") {
			return h
		}
		t.Log(line)
	}
	t.Fatal("the helper has ended")
	return nil
}

func alive(pid int) bool {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(data), ") Z ")
}

// TestKilled: a program that is killed leaves no interface, and its directory goes
// with the next Start.
func TestKilled(t *testing.T) {
	onKernel(t, func(t *testing.T, r fabric.Rung) {
		dir := tempDir(t)
		which := map[fabric.Rung]string{fabric.TAP: "tap", fabric.Veth: "veth"}[r]
		h := run(t, which, dir, os.Geteuid())
		// Held open, the namespace stays, but its interfaces must go.
		ns, err := netns.Open(h.path)
		if err != nil {
			t.Fatal(err)
		}
		defer ns.Close()
		there := func() bool {
			return ns.Do(func() error { _, err := net.InterfaceByName("ens1f0"); return err }) == nil
		}
		if !there() {
			t.Fatal("no interface")
		}
		if err := h.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		h.Wait() //nolint:errcheck // killed
		wait(t, "the interface to go", func() bool { return !there() })
		if _, err := os.Stat(h.root); err != nil {
			t.Fatalf("the tree is what a killed program leaves: %v", err)
		}
		_, cfg := pairOfHosts(t, 1)
		cfg.Rung, cfg.Dir = fabric.Memory, filepath.Join(dir, "trees")
		start(t, cfg)
		if _, err := os.Stat(h.root); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is still there: %v", h.root, err)
		}
	})
}

const nobody = 65534

// TestStart_NotAllowed tells an ordinary user what to do.
func TestStart_NotAllowed(t *testing.T) {
	uid := os.Geteuid()
	if uid == 0 {
		uid = nobody
	}
	h := prepare(t, "tap", tempDir(t), uid)
	out, err := h.Output()
	if err == nil || !strings.Contains(string(out), "run as root") || !strings.Contains(string(out), "operation not permitted") {
		t.Errorf("%v: %s", err, out)
	}
}

// asUser runs a helper as an ordinary user, through Reexec.
func asUser(t *testing.T) *helper {
	t.Helper()
	uid := os.Geteuid()
	if uid == 0 {
		uid = nobody
	}
	h := run(t, "user", tempDir(t), uid)
	if h.rung == fabric.Memory {
		t.Log("this system gives an ordinary user no network namespaces")
	} else if h.uid != 0 || h.pid == h.Process.Pid {
		t.Errorf("it runs as user %d in process %d, started as %d", h.uid, h.pid, h.Process.Pid)
	}
	return h
}

func exitOf(h *helper) int {
	h.Wait() //nolint:errcheck // its code is what counts
	return h.ProcessState.ExitCode()
}

func TestReexec_ExitCode(t *testing.T) {
	h := asUser(t)
	h.input.Close()
	if code := exitOf(h); code != 7 {
		t.Errorf("exit code %d, want 7", code)
	}
	if _, err := os.Stat(h.root); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the tree is still there: %v", err)
	}
}

func TestReexec_Signal(t *testing.T) {
	h := asUser(t)
	if err := h.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := exitOf(h); code != 9 {
		t.Errorf("exit code %d, want 9", code)
	}
}

// TestReexec_Killed: if one is killed, the other ends, too.
func TestReexec_Killed(t *testing.T) {
	h := asUser(t)
	if err := h.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	wait(t, "the other to end", func() bool { return !alive(h.pid) })

	h = asUser(t)
	if h.pid == h.Process.Pid {
		return // no user namespaces
	}
	if err := unix.Kill(h.pid, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if code := exitOf(h); code != 128+int(unix.SIGKILL) {
		t.Errorf("exit code %d, want 137", code)
	}
}

// TestReexec_Not: who may make namespaces, or has been run again, goes on.
func TestReexec_Not(t *testing.T) {
	if os.Geteuid() == 0 {
		if code, done, err := fabric.Reexec(userEnv); code != 0 || done || err != nil {
			t.Errorf("root: %d %v %v", code, done, err)
		}
	}
	t.Setenv(userEnv, "1")
	if code, done, err := fabric.Reexec(userEnv); code != 0 || done || err != nil {
		t.Errorf("again: %d %v %v", code, done, err)
	}
}
