package fabric_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/ocslab/ocslab/emulator/fabric"
	"github.com/ocslab/ocslab/internal/netns"
	"github.com/ocslab/ocslab/timeline"
)

// ends are two UDP sockets, in blocking mode, and the address of the second.
type ends struct {
	from, to int
	at       unix.SockaddrInet4
}

// ways returns what the benchmarks compare: the rungs and a plain veth pair.
func ways(b *testing.B, run func(b *testing.B, e ends)) {
	for _, r := range []fabric.Rung{fabric.TAP, fabric.Veth} {
		name := map[fabric.Rung]string{fabric.TAP: "tap", fabric.Veth: "veth"}[r]
		b.Run(name, func(b *testing.B) {
			needRung(b, r)
			d, cfg := pairOfHosts(b, 2)
			cfg.Rung = r
			f := start(b, cfg)
			connect(b, d, "1>4,2>3")
			waitCarrier(b, f, true, "gpu1", "gpu2")
			hosts := f.Hosts()
			run(b, openEnds(b, hosts[0].NS, hosts[1].NS, hosts[0].NICs[0].Addr.Addr(), hosts[1].NICs[0].Addr.Addr()))
		})
	}
	b.Run("x-veth", func(b *testing.B) {
		needRung(b, fabric.Veth)
		one, two := plainVeth(b)
		run(b, openEnds(b, one, two, netip.MustParseAddr("198.18.0.1"), netip.MustParseAddr("198.18.0.2")))
	})
}

func openEnds(b *testing.B, one, two *netns.NS, a1, a2 netip.Addr) ends {
	b.Helper()
	var e ends
	for _, s := range []struct {
		ns   *netns.NS
		addr netip.Addr
		fd   *int
	}{{one, a1, &e.from}, {two, a2, &e.to}} {
		err := s.ns.Do(func() (err error) {
			if *s.fd, err = unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0); err != nil {
				return err
			}
			return errors.Join(
				unix.SetsockoptInt(*s.fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1),
				unix.SetsockoptInt(*s.fd, unix.SOL_SOCKET, unix.SO_RCVBUF, 4<<20),
				unix.SetsockoptTimeval(*s.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 100000}),
				unix.Bind(*s.fd, &unix.SockaddrInet4{Addr: s.addr.As4(), Port: 9}))
		})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { unix.Close(*s.fd) })
	}
	e.at = unix.SockaddrInet4{Addr: a2.As4(), Port: 9}
	buf := make([]byte, 16)
	wait(b, "a packet", func() bool {
		unix.Sendto(e.from, []byte("x"), 0, &e.at)
		n, _, err := unix.Recvfrom(e.to, buf, 0)
		return err == nil && n == 1
	})
	return e
}

// plainVeth returns two namespaces that a veth pair joins.
func plainVeth(b *testing.B) (one, two *netns.NS) {
	b.Helper()
	ns := [2]*netns.NS{}
	for i := range ns {
		n, err := netns.New(fmt.Sprint("plain", i))
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { n.Close() })
		ns[i] = n
	}
	macs := []net.HardwareAddr{{2, 0, 0, 0, 0, 1}, {2, 0, 0, 0, 0, 2}}
	setUp := func(i int, name string) error {
		dev, err := netlink.LinkByName(name)
		if err != nil {
			return err
		}
		addr, err := netlink.ParseAddr(fmt.Sprintf("198.18.0.%d/15", i+1))
		return errors.Join(err,
			netlink.LinkSetHardwareAddr(dev, macs[i]), netlink.AddrAdd(dev, addr), netlink.LinkSetUp(dev),
			netlink.NeighSet(&netlink.Neigh{
				LinkIndex: dev.Attrs().Index, Family: unix.AF_INET, State: netlink.NUD_PERMANENT,
				IP: net.IPv4(198, 18, 0, byte(2-i)), HardwareAddr: macs[1-i],
			}))
	}
	fd, err := unix.Open(ns[1].Path(), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		b.Fatal(err)
	}
	defer unix.Close(fd)
	err = errors.Join(
		ns[0].Do(func() error {
			attrs := netlink.NewLinkAttrs()
			attrs.Name = "v0"
			return netlink.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: "v1", PeerNamespace: netlink.NsFd(fd)})
		}),
		ns[0].Do(func() error { return setUp(0, "v0") }),
		ns[1].Do(func() error { return setUp(1, "v1") }))
	if err != nil {
		b.Fatal(err)
	}
	return ns[0], ns[1]
}

// BenchmarkForward sends as fast as a socket takes it and tells how much arrives.
func BenchmarkForward(b *testing.B) {
	for _, size := range []int{64, 1400} {
		b.Run(fmt.Sprintf("%dB", size), func(b *testing.B) {
			ways(b, func(b *testing.B, e ends) {
				type count struct {
					n    int
					last time.Time
				}
				got := make(chan count, 1)
				go func() {
					var c count
					for buf := make([]byte, 2048); ; c.n++ {
						if _, _, err := unix.Recvfrom(e.to, buf, 0); err != nil { // nothing for 100 ms
							got <- c
							return
						}
						c.last = time.Now()
					}
				}()
				payload := make([]byte, size)
				begun := time.Now()
				b.ResetTimer()
				for range b.N {
					if err := unix.Sendto(e.from, payload, 0, &e.at); err != nil {
						b.Fatal(err)
					}
				}
				b.StopTimer()
				c := <-got
				if c.n == 0 {
					b.Fatal("nothing arrived")
				}
				pps := float64(c.n) / c.last.Sub(begun).Seconds()
				b.ReportMetric(pps, "pkt/s")
				b.ReportMetric(pps*float64(size)*8/1e9, "Gbit/s")
				b.ReportMetric(100*float64(b.N-c.n)/float64(b.N), "%lost")
			})
		})
	}
}

// BenchmarkForwardLatency is from before a packet is sent until the kernel of the
// other host has it (SO_TIMESTAMPNS), one packet at a time.
func BenchmarkForwardLatency(b *testing.B) {
	ways(b, func(b *testing.B, e ends) {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		payload, oob := make([]byte, 64), make([]byte, 256)
		var took []time.Duration
		for range b.N {
			before := time.Now().UnixNano()
			if err := unix.Sendto(e.from, payload, 0, &e.at); err != nil {
				b.Fatal(err)
			}
			_, n, _, _, err := unix.Recvmsg(e.to, payload, oob, 0)
			if err != nil {
				b.Fatal(err)
			}
			took = append(took, time.Duration(stamp(b, oob[:n])-before))
			time.Sleep(100 * time.Microsecond) // so that it is not busy from the packet before
		}
		report(b, took, "")
	})
}

func stamp(b *testing.B, oob []byte) int64 {
	b.Helper()
	msgs, err := unix.ParseSocketControlMessage(oob)
	if err != nil || len(msgs) == 0 || len(msgs[0].Data) < 16 {
		b.Fatalf("no time stamp: %v", err)
	}
	data := msgs[0].Data
	return int64(binary.NativeEndian.Uint64(data))*1e9 + int64(binary.NativeEndian.Uint64(data[8:]))
}

func report(b *testing.B, took []time.Duration, what string) {
	b.Helper()
	if len(took) == 0 {
		return
	}
	slices.Sort(took)
	for _, q := range []float64{0.5, 0.99} {
		b.ReportMetric(float64(took[int(q*float64(len(took)-1))].Nanoseconds())/1e3, fmt.Sprintf("%sp%.0f-us", what, 100*q))
	}
}

// BenchmarkCarrier tells how late the carrier is set, after the time that the profile
// and the light ask for, and how wide the interval of the truth is.
func BenchmarkCarrier(b *testing.B) {
	for _, r := range []fabric.Rung{fabric.TAP, fabric.Veth, fabric.Memory} {
		name := map[fabric.Rung]string{fabric.TAP: "tap", fabric.Veth: "veth", fabric.Memory: "memory"}[r]
		b.Run(name, func(b *testing.B) {
			needRung(b, r)
			d, cfg := pairOfHosts(b, 1)
			cfg.Rung = r
			f := start(b, cfg)
			connect(b, d, "1>2")
			waitCarrier(b, f, true, "gpu1")
			for range b.N {
				if err := d.SetShutters(true, 1); err != nil {
					b.Fatal(err)
				}
				waitCarrier(b, f, false, "gpu1")
				if err := d.SetShutters(false, 1); err != nil {
					b.Fatal(err)
				}
				waitCarrier(b, f, true, "gpu1")
			}
			wait(b, "the last mark", func() bool {
				m := marksOf(f, "gpu1/ens1f0")
				return m[len(m)-1].Stage == timeline.CarrierUp
			})
			var late, width []time.Duration
			var light int64
			for _, m := range marksOf(f, "gpu1/ens1f0") {
				p := cfg.NICs[0].Profile
				delay := p.Detect.Median + p.Train.Median + p.Carrier.Median
				switch m.Stage {
				case timeline.Dark, timeline.Light:
					light = m.Earliest
					continue
				case timeline.Firmware:
					continue
				case timeline.CarrierDown:
					delay = p.Debounce.Median
				}
				late = append(late, time.Duration(m.Earliest-light)-delay)
				width = append(width, m.Width())
			}
			report(b, late, "late-")
			report(b, width, "width-")
		})
	}
}
