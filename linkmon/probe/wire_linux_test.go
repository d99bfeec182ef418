package probe_test

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"

	"github.com/ocslab/ocslab/internal/netns"
	"github.com/ocslab/ocslab/linkmon/probe"
	"github.com/ocslab/ocslab/timeline"
)

func needRoot(tb testing.TB) {
	tb.Helper()
	if os.Geteuid() != 0 {
		tb.Skip("needs root: makes network namespaces")
	}
}

// wire is two hosts with a NIC each and what joins them: a veth pair with a gate in
// each direction.
//
//	gpu1/nic0 ──out gate──► gpu2/nic0
//	          ◄──back gate──
type wire struct {
	ends      [2]probe.Endpoint
	out, back *gate
}

var there = probe.Flow{From: "gpu1/nic0", To: "gpu2/nic0"}
var back = probe.Flow{From: "gpu2/nic0", To: "gpu1/nic0"}

func newWire(tb testing.TB) *wire {
	tb.Helper()
	needRoot(tb)
	w := &wire{ends: [2]probe.Endpoint{
		{Name: "gpu1/nic0", Addr: netip.MustParseAddr("10.77.0.1"), MAC: net.HardwareAddr{2, 0, 0, 0, 7, 1}},
		{Name: "gpu2/nic0", Addr: netip.MustParseAddr("10.77.0.2"), MAC: net.HardwareAddr{2, 0, 0, 0, 7, 2}},
	}}
	for i := range w.ends {
		ns, err := netns.New(w.ends[i].Name)
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(func() { ns.Close() })
		w.ends[i].NS, w.ends[i].Interface = ns, "nic0"
	}
	peer, err := os.Open(w.ends[1].NS.Path())
	if err != nil {
		tb.Fatal(err)
	}
	defer peer.Close()
	w.in(tb, 0, func() error {
		return netlink.LinkAdd(&netlink.Veth{
			LinkAttrs: netlink.LinkAttrs{Name: "nic0", HardwareAddr: w.ends[0].MAC},
			PeerName:  "nic0", PeerHardwareAddr: w.ends[1].MAC, PeerNamespace: netlink.NsFd(peer.Fd()),
		})
	})
	for i := range w.ends {
		w.in(tb, i, func() error {
			nic, err := netlink.LinkByName("nic0")
			if err != nil {
				return err
			}
			addr := &netlink.Addr{IPNet: &net.IPNet{IP: w.ends[i].Addr.AsSlice(), Mask: net.CIDRMask(24, 32)}}
			return errors.Join(netlink.AddrAdd(nic, addr), netlink.LinkSetUp(nic))
		})
	}
	w.out, w.back = newGate(tb, w, 0), newGate(tb, w, 1)
	return w
}

func (w *wire) in(tb testing.TB, i int, fn func() error) {
	tb.Helper()
	if err := w.ends[i].NS.Do(fn); err != nil {
		tb.Fatal(err)
	}
}

func (w *wire) options() probe.Options {
	return probe.Options{Endpoints: w.ends[:], Flows: []probe.Flow{there, back}, Host: "test"}
}

// gate is a BPF program at the egress of a NIC, so that packets pass it within the send
// call. It opens and closes between two readings of the clock.
type gate struct{ state *ebpf.Map }

func newGate(tb testing.TB, w *wire, at int) *gate {
	tb.Helper()
	state, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 4, MaxEntries: 1})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { state.Close() })
	const drop = 2 // TCX_DROP
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.SchedCLS, License: "GPL", Instructions: asm.Instructions{
		asm.LoadMapValue(asm.R1, state.FD(), 0),
		asm.LoadMem(asm.R1, asm.R1, 0, asm.Word),
		asm.Mov.Imm(asm.R0, drop),
		asm.JEq.Imm(asm.R1, 0, "end"),
		asm.Mov.Imm(asm.R0, 0), // TCX_PASS
		asm.Return().WithSymbol("end"),
	}})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { prog.Close() })
	w.in(tb, at, func() error {
		nic, err := net.InterfaceByName("nic0")
		if err != nil {
			return err
		}
		l, err := link.AttachTCX(link.TCXOptions{Interface: nic.Index, Program: prog, Attach: ebpf.AttachTCXEgress})
		if err == nil {
			tb.Cleanup(func() { l.Close() })
		}
		return err
	})
	g := &gate{state}
	g.set(tb, true)
	return g
}

// set returns when the gate moved.
func (g *gate) set(tb testing.TB, open bool) timeline.Interval {
	tb.Helper()
	value := uint32(0)
	if open {
		value = 1
	}
	from := time.Now()
	err := g.state.Put(uint32(0), value)
	to := time.Now()
	if err != nil {
		tb.Fatal(err)
	}
	return axis.Span(from, to)
}

// neighbour makes the address of one end known to the other for good.
func (w *wire) neighbour(tb testing.TB, at, of int) {
	tb.Helper()
	w.in(tb, at, func() error {
		nic, err := netlink.LinkByName("nic0")
		if err != nil {
			return err
		}
		return netlink.NeighSet(&netlink.Neigh{
			LinkIndex: nic.Attrs().Index, State: netlink.NUD_PERMANENT,
			IP: w.ends[of].Addr.AsSlice(), HardwareAddr: w.ends[of].MAC,
		})
	})
}
