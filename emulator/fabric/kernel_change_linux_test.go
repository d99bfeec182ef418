package fabric_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/ocslab/ocslab/emulator/fabric"
)

// TestStart_Best takes the best rung that there is.
func TestStart_Best(t *testing.T) {
	_, cfg := pairOfHosts(t, 1)
	var want fabric.Rung
	for _, a := range fabric.Rungs() {
		if want == 0 && a.Err == nil {
			want = a.Rung
		}
	}
	if got := start(t, cfg).Rung(); got != want {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestKernel_AddRefused: a NIC that the kernel refuses is not there, and its place is
// free.
func TestKernel_AddRefused(t *testing.T) {
	onKernel(t, func(t *testing.T, r fabric.Rung) {
		d, cfg := pairOfHosts(t, 2)
		cfg.Rung, cfg.NICs = r, cfg.NICs[:1]
		f := start(t, cfg)
		bad := nicOf(2, 2)
		bad.Host, bad.Name = "gpu1", "all" // see TestKernel_Refused
		if err := f.Add(bad); err == nil {
			t.Fatal("added")
		}
		bad.Name = "ens2f0"
		if err := f.Add(bad); err != nil {
			t.Fatal(err)
		}
		connect(t, d, "1>4")
		wait(t, "carrier", func() bool {
			_, _, on, err := f.Counts("gpu1", "ens2f0")
			return on && err == nil
		})
		if h := f.Hosts()[0]; len(h.NICs) != 2 {
			t.Errorf("%+v", h)
		}
	})
}

// TestKernel_Meddled: somebody deletes the interface; the fabric goes on and ends.
func TestKernel_Meddled(t *testing.T) {
	onKernel(t, func(t *testing.T, r fabric.Rung) {
		d, cfg := pairOfHosts(t, 2)
		cfg.Rung = r
		f, err := fabric.Start(cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		err = f.Hosts()[0].NS.Do(func() error {
			link, err := netlink.LinkByName("ens1f0")
			if err == nil {
				err = netlink.LinkDel(link)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		connect(t, d, "1>4,2>3")
		waitCarrier(t, f, true, "gpu2", "gpu1") // of gpu1 it was tried
		if err := f.Close(); err == nil || !strings.Contains(err.Error(), "gpu1/ens1f0") {
			t.Errorf("Close: %v, want an error about gpu1/ens1f0", err)
		}
	})
}

// TestKernel_Refused: a NIC that the kernel refuses leaves nothing behind.
func TestKernel_Refused(t *testing.T) {
	onKernel(t, func(t *testing.T, r fabric.Rung) {
		_, cfg := pairOfHosts(t, 2)
		cfg.Rung = r
		cfg.NICs[1].Name = "all" // the kernel has settings of that name for all interfaces
		before := descriptors(t)
		f, err := fabric.Start(cfg)
		if err == nil {
			f.Close()
			t.Fatal("started")
		}
		if !strings.Contains(err.Error(), "gpu2/all") {
			t.Errorf("%v does not name the NIC", err)
		}
		if after := descriptors(t); after > before {
			t.Errorf("%d descriptors, then %d", before, after)
		}
		if left, _ := os.ReadDir(cfg.Dir); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	})
}

func descriptors(t testing.TB) int {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(fds)
}

// TestKernel_Many starts as many NICs as a large lab has.
func TestKernel_Many(t *testing.T) {
	needRung(t, fabric.TAP)
	const n = 256
	before := descriptors(t)
	d, cfg := pairOfHosts(t, n)
	cfg.Rung = fabric.TAP
	f := start(t, cfg)
	ring := make([]string, n)
	for i := range n {
		ring[i] = fmt.Sprintf("%d>%d", i+1, n+1+(i+1)%n)
	}
	connect(t, d, strings.Join(ring, ","))
	for i := range n {
		waitCarrier(t, f, true, fmt.Sprint("gpu", i+1))
	}
	last, _ := socket(t, f, n-1)
	first, at := socket(t, f, 0)
	pass(t, last, first, at, 10)
	if threads, err := os.ReadDir("/proc/self/task"); err != nil || len(threads) > n {
		t.Errorf("%d threads, %v", len(threads), err)
	}
	last.Close()
	first.Close()
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if after := descriptors(t); after > before {
		t.Errorf("%d descriptors, %d before", after, before)
	}
}
