package lab_test

import (
	"context"
	"errors"
	"os"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ocslab/ocslab/drivers"
	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/internal/secret"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/ocs"
)

// inNamespace runs f in a network namespace of its own, on a thread that is
// thrown away afterwards. Sockets opened by f's goroutine are in there.
func inNamespace(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root: makes a network namespace")
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			t.Errorf("unshare: %v", err)
			return
		}
		f(t)
	}()
	<-done
}

// setLoopback pulls or plugs the only cable of the namespace.
func setLoopback(t *testing.T, up bool) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	req, err := unix.NewIfreq("lo")
	if err != nil {
		t.Fatal(err)
	}
	if up {
		req.SetUint16(unix.IFF_UP)
	}
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, req); err != nil {
		t.Fatal(err)
	}
}

// Ensure a management network that goes away in mid-call is an error in time,
// and that the switch is usable again when it is back.
func TestCablePull(t *testing.T) {
	inNamespace(t, func(t *testing.T) {
		setLoopback(t, true)
		p, err := emulator.LoadPersonality("fast-mems-25ms")
		if err != nil {
			t.Error(err)
			return
		}
		e, err := lab.Emulation{Name: "rail0", Personality: p}.Start()
		if err != nil {
			t.Error(err)
			return
		}
		defer e.Close()
		sw, err := drivers.Open(t.Context(), e.URL(), drivers.Options{Name: "rail0", Password: secret.New(lab.EmulatedPassword)})
		if err != nil {
			t.Error(err)
			return
		}
		defer sw.Close()
		if _, err := ocs.Reconcile(t.Context(), sw, parseMap(t, "1>65"), ocs.Safe); err != nil {
			t.Error(err)
		}

		setLoopback(t, false)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		_, err = ocs.Reconcile(ctx, sw, parseMap(t, "2>66"), ocs.Safe)
		var op *ocs.OpError
		if !errors.Is(err, context.DeadlineExceeded) && !errors.As(err, &op) {
			t.Errorf("with the cable pulled: err=%v", err)
		}

		setLoopback(t, true)
		r, err := ocs.Reconcile(t.Context(), sw, parseMap(t, "1>65,2>66"), ocs.Safe)
		if err != nil || r.After.String() != "1>65,2>66" {
			t.Errorf("plugged in again: %v, %v", r.After, err)
		}
	})
}
