package fabric_test

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/ocslab/ocslab/emulator/fabric"
	"github.com/ocslab/ocslab/timeline"
)

var kernelRungs = map[string]fabric.Rung{"tap": fabric.TAP, "veth": fabric.Veth}

// onKernel runs a test on both rungs that have network devices.
func onKernel(t *testing.T, test func(t *testing.T, r fabric.Rung)) {
	for name, r := range kernelRungs {
		t.Run(name, func(t *testing.T) {
			needRung(t, r)
			test(t, r)
		})
	}
}

// socket opens a UDP socket at the first NIC of a host.
func socket(t testing.TB, f *fabric.Fabric, i int) (*net.UDPConn, netip.AddrPort) {
	t.Helper()
	h := f.Hosts()[i]
	at := netip.AddrPortFrom(h.NICs[0].Addr.Addr(), 9)
	var c *net.UDPConn
	err := h.NS.Do(func() (err error) {
		c, err = net.ListenUDP("udp4", net.UDPAddrFromAddrPort(at))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c, at
}

// pass sends until something has arrived.
func pass(t testing.TB, from, to *net.UDPConn, at netip.AddrPort, size int) {
	t.Helper()
	payload, buf := []byte(strings.Repeat("x", size)), make([]byte, 1<<16)
	wait(t, fmt.Sprintf("a packet of %d bytes", size), func() bool {
		if _, err := from.WriteToUDPAddrPort(payload, at); err != nil {
			t.Fatal(err)
		}
		to.SetReadDeadline(time.Now().Add(2 * ms))
		n, _, err := to.ReadFromUDPAddrPort(buf)
		return err == nil && string(buf[:n]) == string(payload)
	})
}

// counters reads what the kernel has counted at an interface.
func counters(t testing.TB, h fabric.Host, name string) (up, down uint32) {
	t.Helper()
	sys, err := h.NS.Sysfs()
	if err != nil {
		t.Fatal(err)
	}
	defer sys.Close()
	for file, into := range map[string]*uint32{"carrier_up_count": &up, "carrier_down_count": &down} {
		fd, err := unix.Openat(int(sys.Fd()), "class/net/"+name+"/"+file, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		f := os.NewFile(uintptr(fd), file)
		if _, err := fmt.Fscan(f, into); err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	return up, down
}

func wantCounts(t testing.TB, f *fabric.Fabric, h fabric.Host, name string) {
	t.Helper()
	wait(t, "the kernel to count as the fabric", func() bool {
		up, down, _, err := f.Counts(h.Name, name)
		if err != nil {
			t.Fatal(err)
		}
		kup, kdown := counters(t, h, name)
		return kup == up && kdown == down+1 // that before it was up
	})
}

func TestKernel_LightToTraffic(t *testing.T) {
	onKernel(t, func(t *testing.T, r fabric.Rung) {
		d, cfg := pairOfHosts(t, 2)
		cfg.Rung, cfg.MTU = r, 9000
		f := start(t, cfg)
		if f.Rung() != r {
			t.Fatalf("rung %v", f.Rung())
		}
		hosts := f.Hosts()
		for _, h := range hosts {
			err := h.NS.Do(func() error {
				i, err := net.InterfaceByName("ens1f0")
				if err == nil && i.MTU != 9000 {
					t.Errorf("%s: MTU %d", h.Name, i.MTU)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		if up, down := counters(t, hosts[0], "ens1f0"); up != 0 || down != 1 {
			t.Errorf("the kernel begins with %d up, %d down", up, down)
		}
		one, _ := socket(t, f, 0)
		two, at := socket(t, f, 1)
		connect(t, d, "1>4,2>3")
		pass(t, one, two, at, 8900)
		for range 5 {
			disconnect(t, d, 4)
			waitCarrier(t, f, false, "gpu2")
			wantCounts(t, f, hosts[1], "ens1f0")
			connect(t, d, "1>4")
			waitCarrier(t, f, true, "gpu2")
			wantCounts(t, f, hosts[1], "ens1f0")
			pass(t, one, two, at, 10)
		}
		// The last mark is logged when the packet has been handed over, so maybe after it
		// was read.
		const nic, pair = "gpu2/ens1f0", "gpu1/ens1f0>gpu2/ens1f0"
		wait(t, "the mark of the last packet", func() bool { return len(marksOf(f, pair)) == 11 })
		marks, _ := f.Truth(0)
		if v := timeline.Check(marks); v != nil {
			t.Error(v)
		}
		n := map[timeline.Stage]int{}
		for _, m := range append(marksOf(f, nic), marksOf(f, pair)...) {
			n[m.Stage]++
		}
		for _, s := range timeline.Stages()[2:] {
			want := 6
			if s == timeline.Dark || s == timeline.CarrierDown || s == timeline.TrafficLost {
				want = 5
			}
			if n[s] != want {
				t.Errorf("%d marks of %s, want %d", n[s], s, want)
			}
		}
	})
}

// TestKernel_Gate sends without pause over a circuit that comes and goes: nothing
// arrives outside of what the truth says, by the kernel's own time stamps.
func TestKernel_Gate(t *testing.T) {
	onKernel(t, func(t *testing.T, r fabric.Rung) {
		d, cfg := pairOfHosts(t, 2)
		cfg.Rung = r
		f := start(t, cfg)
		connect(t, d, "1>4,2>3")
		waitCarrier(t, f, true, "gpu1", "gpu2")
		one, _ := socket(t, f, 0)
		two, at := socket(t, f, 1)
		pass(t, one, two, at, 10)

		stop, done := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(done)
			for {
				select {
				case <-stop:
					return
				default:
					one.WriteToUDPAddrPort([]byte("x"), at) //nolint:errcheck // what is lost is the point
					time.Sleep(50 * time.Microsecond)
				}
			}
		}()
		arrived := make(chan []int64)
		stamped := kernelStamps(t, two)
		go func() {
			var all []int64
			two.SetReadDeadline(time.Time{})
			for {
				at, err := stamped()
				if err != nil {
					arrived <- all
					return
				}
				all = append(all, at)
			}
		}()
		pair := "gpu1/ens1f0>gpu2/ens1f0"
		for i := range 5 {
			if err := d.SetShutters(true, 1); err != nil { // shorter than the debounce, and longer
				t.Fatal(err)
			}
			if i%2 == 0 {
				waitCarrier(t, f, false, "gpu2")
			}
			if err := d.SetShutters(false, 1); err != nil {
				t.Fatal(err)
			}
			waitCarrier(t, f, true, "gpu2")
			wait(t, "traffic", func() bool {
				marks := marksOf(f, pair)
				return len(marks) == 2*i+3
			})
		}
		close(stop)
		<-done
		two.Close()
		stamps := <-arrived
		marks := marksOf(f, pair)
		for i := 1; i+1 < len(marks); i += 2 {
			lost, back := marks[i], marks[i+1]
			if lost.Stage != timeline.TrafficLost || back.Stage != timeline.Traffic {
				t.Fatalf("marks %v, %v: want lost and back", lost, back)
			}
			n := 0
			for _, at := range stamps {
				const slack = 200_000 // ns, between two clocks of the kernel
				if at > lost.Latest+slack && at < back.Earliest-slack {
					n++
				}
			}
			if n > 0 {
				t.Errorf("%d packets between %v and %v", n, lost, back)
			}
		}
	})
}

// kernelStamps returns a function that reads a packet and tells when the kernel got
// it, on the axis of the host.
func kernelStamps(t *testing.T, c *net.UDPConn) func() (int64, error) {
	t.Helper()
	raw, err := c.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var set error
	err = raw.Control(func(fd uintptr) { set = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1) })
	if err := errors.Join(err, set); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	offset := timeline.HostAxis().NS(now) - now.UnixNano()
	buf, oob := make([]byte, 16), make([]byte, 128)
	return func() (int64, error) {
		for {
			_, n, _, _, err := c.ReadMsgUDPAddrPort(buf, oob)
			if err != nil {
				return 0, err
			}
			if msgs, err := unix.ParseSocketControlMessage(oob[:n]); err == nil && len(msgs) > 0 { // not if it came before the option
				ts := (*unix.Timespec)(unsafe.Pointer(&msgs[0].Data[0]))
				return ts.Nano() + offset, nil
			}
		}
	}
}

// TestKernel_Hosts: what the kernel shows is what the fabric says, and nothing is
// sent by itself.
func TestKernel_Hosts(t *testing.T) {
	onKernel(t, func(t *testing.T, r fabric.Rung) {
		d, cfg := pairOfHosts(t, 2)
		cfg.Rung = r
		second := nicOf(2, 2)
		second.Host, second.Name = "gpu1", "ens2f0" // a host with two
		cfg.NICs[1] = second
		f := start(t, cfg)
		hosts := f.Hosts()
		if len(hosts) != 1 || len(hosts[0].NICs) != 2 {
			t.Fatalf("hosts %+v", hosts)
		}
		connect(t, d, "1>4,2>3")
		wait(t, "carrier", func() bool {
			_, _, a, _ := f.Counts("gpu1", "ens1f0")
			_, _, b, _ := f.Counts("gpu1", "ens2f0")
			return a && b
		})
		err := hosts[0].NS.Do(func() error {
			for i, n := range hosts[0].NICs {
				link, err := netlink.LinkByName(n.Name)
				if err != nil {
					return err
				}
				a := link.Attrs()
				addrs, err := netlink.AddrList(link, netlink.FAMILY_ALL)
				if err != nil {
					return err
				}
				if a.Index != n.Index || a.HardwareAddr.String() != n.MAC.String() || a.MTU != n.MTU || n.FullName != "gpu1/"+n.Name ||
					len(addrs) != 1 || addrs[0].IPNet.String() != n.Addr.String() {
					t.Errorf("%+v, kernel: %+v with %v", n, a, addrs)
				}
				neighs, err := netlink.NeighList(n.Index, netlink.FAMILY_V4)
				if err != nil {
					return err
				}
				other := hosts[0].NICs[1-i]
				if len(neighs) != 1 || neighs[0].State != netlink.NUD_PERMANENT || !neighs[0].IP.Equal(other.Addr.Addr().AsSlice()) ||
					neighs[0].HardwareAddr.String() != other.MAC.String() {
					t.Errorf("%s: neighbours %v", n.Name, neighs)
				}
			}
			lo, err := net.InterfaceByName("lo")
			if err == nil && lo.Flags&net.FlagUp == 0 {
				t.Error("lo is down")
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range hosts[0].NICs {
			if s, err := f.Stats("gpu1", n.Name); err != nil || s != (fabric.Stats{}) {
				t.Errorf("%s has sent by itself: %+v, %v", n.Name, s, err)
			}
		}
		if _, err := f.Wire("gpu1", "ens1f0"); err == nil {
			t.Error("a wire at a network interface")
		}
	})
}

func TestKernel_RemoveAdd(t *testing.T) {
	onKernel(t, func(t *testing.T, r fabric.Rung) {
		d, cfg := pairOfHosts(t, 2)
		cfg.Rung = r
		f := start(t, cfg)
		connect(t, d, "1>4,2>3")
		waitCarrier(t, f, true, "gpu1", "gpu2")
		hosts := f.Hosts()
		if err := f.Remove("gpu1", "ens1f0"); err != nil {
			t.Fatal(err)
		}
		waitCarrier(t, f, false, "gpu2")
		gone := func() error { _, err := net.InterfaceByName("ens1f0"); return err }
		if err := hosts[0].NS.Do(gone); err == nil {
			t.Error("the interface is still there")
		}
		if err := f.Add(nicOf(1, 2)); err != nil {
			t.Fatal(err)
		}
		waitCarrier(t, f, true, "gpu1", "gpu2")
		one, _ := socket(t, f, 0)
		two, at := socket(t, f, 1)
		pass(t, one, two, at, 10)
		if again := f.Hosts()[0].NICs[0]; again.Addr != hosts[0].NICs[0].Addr {
			t.Errorf("address %v, was %v", again.Addr, hosts[0].NICs[0].Addr)
		}
		wantCounts(t, f, f.Hosts()[0], "ens1f0")
		// A new NIC of a new host is known to all.
		if err := f.Remove("gpu2", "ens1f0"); err != nil {
			t.Fatal(err)
		}
		third := nicOf(2, 2)
		third.Host = "gpu3"
		if err := f.Add(third); err != nil {
			t.Fatal(err)
		}
		waitCarrier(t, f, true, "gpu1", "gpu3")
		three, at := socket(t, f, 2)
		pass(t, one, three, at, 10)
	})
}
