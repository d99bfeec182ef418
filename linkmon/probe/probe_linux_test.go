package probe_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/ocslab/ocslab/linkmon/probe"
	"github.com/ocslab/ocslab/timeline"
)

// 300 outages in one direction while the other goes on, without one mistake.
func TestProbe_Outages(t *testing.T) {
	w := newWire(t)
	p := start(t, w.options())
	judged(t, p, 0, 0)
	judged(t, p, 1, 0)
	rnd := rand.New(rand.NewPCG(3, 4))
	sent := func(n int) { // until some more packets have been sent
		for from := p.Flows()[0].Sent; p.Flows()[0].Sent < from+uint64(n); {
			time.Sleep(time.Duration(n) * probe.DefaultPace)
		}
	}
	var truth []timeline.Interval
	for range 300 {
		truth = append(truth, w.out.set(t, false))
		sent(2 + rnd.IntN(40))
		truth = append(truth, w.out.set(t, true))
		sent(2 + rnd.IntN(40))
	}
	judged(t, p, 0, truth[len(truth)-1].Latest)
	s := p.Flows()[0]
	events := rest(t, p)
	i, lost := 0, 0
	for _, e := range events {
		if e.Kind == probe.Gap {
			continue
		}
		if i == len(truth) || e.Flow != there {
			t.Fatalf("invented: %v", e)
		}
		if kind := []probe.Kind{probe.Lost, probe.Resumed}[i%2]; e.Kind != kind || !overlaps(e.Interval, truth[i]) {
			t.Fatalf("event %d is %v %+v, want %v at %+v", i, e, e.Interval, kind, truth[i])
		}
		if m, ok := e.Mark(); !ok || m.Subject != "gpu1/nic0>gpu2/nic0" || m.Source != "probe" || m.Host != "test" || !m.Stage.Valid() {
			t.Fatalf("mark %+v, %v", m, ok)
		}
		lost += e.Lost
		i++
	}
	if i < len(truth) {
		t.Fatalf("missed: %d of %d, the first at %+v", len(truth)-i, len(truth), truth[i])
	}
	if !s.Alive || s.Lost != uint64(lost) || s.Received < s.Sent-s.Lost-200 || s.LastReceive.Latest < s.LastSend.Earliest-int64(10*time.Second) {
		t.Errorf("%d lost in outages, %+v", lost, s)
	}
}

// An outage that outlasts every log, and one from the beginning.
func TestProbe_Long(t *testing.T) {
	w := newWire(t)
	opt := w.options()
	opt.Pace, opt.Silence = 50*time.Microsecond, 10*time.Millisecond
	begin := w.back.set(t, false)
	p := start(t, opt)
	judged(t, p, 0, 0)
	closed := w.out.set(t, false)
	e := nextOf(t, p, there)
	if e.Kind != probe.Lost || !overlaps(e.Interval, closed) || e.LastBefore.Seq == 0 {
		t.Errorf("%v %+v, want a loss at %+v", e, e.Interval, closed)
	}
	from := p.Flows()[0].Lost
	until(t, "lost as many packets as the log holds", func() bool { return p.Flows()[0].Lost > from+1<<15 })
	open := w.out.set(t, true)
	if e := nextOf(t, p, there); e.Kind != probe.Resumed || !overlaps(e.Interval, open) || e.Lost <= 1<<15 {
		t.Errorf("%v %+v, want resumption at %+v", e, e.Interval, open)
	}
	if s := p.Flows()[1]; s.Alive || s.Received > 0 || s.LastReceive != (timeline.Interval{}) {
		t.Errorf("%+v of a path that never was", s)
	}
	open = w.back.set(t, true)
	e = nextOf(t, p, back)
	if e.Kind != probe.Resumed || !overlaps(e.Interval, open) || e.LastBefore.Seq != 0 || e.Earliest < begin.Earliest ||
		!strings.HasPrefix(e.Text, "no traffic since the probe began") {
		t.Errorf("%v %+v, want resumption at %+v", e, e.Interval, open)
	}
}

func neighbours(t *testing.T, w *wire, i int) []byte {
	t.Helper()
	out, err := exec.Command("nsenter", "--net="+w.ends[i].NS.Path(), "ip", "neigh", "show", "nud", "permanent").CombinedOutput()
	if err != nil {
		t.Fatalf("ip neigh: %v: %s", err, out)
	}
	return out
}

// Carrier goes and comes back: permanent neighbours outlast that, and are gone at the end.
func TestProbe_Neighbours(t *testing.T) {
	w := newWire(t)
	p := start(t, w.options())
	judged(t, p, 0, 0)
	if out := neighbours(t, w, 0); !bytes.Contains(out, []byte("10.77.0.2 dev nic0 lladdr 02:00:00:00:07:02")) {
		t.Errorf("no entry: %s", out)
	}
	set := func(fn func(netlink.Link) error) {
		w.in(t, 1, func() error {
			nic, err := netlink.LinkByName("nic0")
			if err != nil {
				return err
			}
			return fn(nic)
		})
	}
	set(netlink.LinkSetDown)
	if e := nextOf(t, p, there); e.Kind != probe.Lost {
		t.Errorf("%v of a NIC that was set down", e)
	}
	if e := nextOf(t, p, back); e.Kind != probe.Lost {
		t.Errorf("%v where the NIC is down", e)
	}
	// Packets that leave there are refused, and that is told by name.
	next(t, p, "refusal", func(e probe.Event) bool {
		return e.Kind == probe.Gap && e.Flow == back && strings.Contains(e.Text, "cannot be sent: ")
	})
	set(netlink.LinkSetUp)
	if e := nextOf(t, p, there); e.Kind != probe.Resumed {
		t.Errorf("%v of a NIC that was set up", e)
	}
	if len(p.Flows()[1].Refused) == 0 {
		t.Errorf("%+v counts no refusals", p.Flows()[1])
	}
	rest(t, p)
	if out := neighbours(t, w, 0); len(out) > 0 {
		t.Errorf("left: %s", out)
	}
}

func TestProbe_NeighbourOfOthers(t *testing.T) {
	w := newWire(t)
	add := func(i int, addr, mac string) {
		if out, err := exec.Command("nsenter", "--net="+w.ends[i].NS.Path(), "ip", "neigh", "replace", addr, "lladdr", mac,
			"dev", "nic0", "nud", "permanent").CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	add(0, "10.77.0.2", w.ends[1].MAC.String())
	add(1, "10.77.0.1", "02:00:00:00:00:99")
	p := start(t, w.options())
	judged(t, p, 0, 0)
	gaps := 0
	for _, e := range rest(t, p) {
		if e.Kind == probe.Gap && strings.Contains(e.Text, "another MAC address") {
			gaps++
			if e.Flow != back {
				t.Errorf("%v", e)
			}
		}
	}
	if gaps != 1 {
		t.Errorf("told %d times of an entry that contradicts", gaps)
	}
	for i := range w.ends {
		if len(neighbours(t, w, i)) == 0 {
			t.Errorf("the entry of somebody else at %s is gone", w.ends[i].Name)
		}
	}
}

// An endpoint that is not there keeps nobody else from measuring.
func TestProbe_NotThere(t *testing.T) {
	w := newWire(t)
	opt := w.options()
	bad := []probe.Endpoint{w.ends[0], w.ends[0], w.ends[0]}
	bad[0].Name, bad[0].Interface = "gpu1/nic9", "nic9"
	bad[1].Name, bad[1].Addr = "gpu1/nic8", netip.MustParseAddr("10.99.9.9")
	bad[2].Name = "gpu1/again" // its port is in use
	opt.Endpoints = append(opt.Endpoints, bad...)
	reasons := []string{"no interface nic9", "not an address of this host", "is in use"}
	errs := []error{unix.ENODEV, unix.EADDRNOTAVAIL, unix.EADDRINUSE}
	for _, b := range bad {
		opt.Flows = append(opt.Flows, probe.Flow{From: b.Name, To: there.To})
	}
	p := start(t, opt)
	judged(t, p, 0, 0)
	w.out.set(t, false)
	if e := nextOf(t, p, there); e.Kind != probe.Lost {
		t.Error(e)
	}
	for i, s := range p.Flows()[2:] {
		if s.Sent != 0 || !errors.Is(s.Err, errs[i]) || !strings.Contains(fmt.Sprint(s.Err), reasons[i]) {
			t.Errorf("%+v", s)
		}
	}

	// All the flows that are left are out of order.
	opt.Flows = opt.Flows[2:]
	if p, err := probe.Start(context.Background(), opt); err == nil {
		p.Close()
		t.Error("a probe of nothing")
	} else if !errors.Is(err, unix.ENODEV) {
		t.Error(err)
	}
}

// The interface is deleted under the probe.
func TestProbe_Vanished(t *testing.T) {
	w := newWire(t)
	p := start(t, w.options())
	judged(t, p, 0, 0)
	w.in(t, 0, func() error {
		nic, err := netlink.LinkByName("nic0")
		if err != nil {
			return err
		}
		return netlink.LinkDel(nic)
	})
	nextOf(t, p, there)
	nextOf(t, p, back)
	until(t, "refused", func() bool { return len(p.Flows()[0].Refused) > 0 })
	if err := p.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	for _, e := range rest(t, p) {
		if e.Kind != probe.Gap {
			t.Errorf("%v after the interface had gone", e)
		}
	}
}

// Packets of others on the same port change nothing.
func TestProbe_Strangers(t *testing.T) {
	w := newWire(t)
	p := start(t, w.options())
	judged(t, p, 0, 0)
	w.in(t, 0, func() error {
		c, err := net.Dial("udp", netip.AddrPortFrom(w.ends[1].Addr, probe.DefaultPort).String())
		if err != nil {
			return err
		}
		defer c.Close()
		forged := append([]byte("ocsp\x01\x00\x00\x00"), make([]byte, 32)...)
		for _, b := range [][]byte{nil, []byte("hello"), forged, append(forged, 0), make([]byte, 1400)} {
			if _, err := c.Write(b); err != nil {
				return err
			}
		}
		return nil
	})
	judged(t, p, 0, axis.NS(time.Now()))
	for _, e := range rest(t, p) {
		if e.Kind != probe.Gap {
			t.Error(e)
		}
	}
	if s := p.Flows()[0]; s.Duplicated+s.Late+s.Reordered > 0 {
		t.Errorf("%+v", s)
	}
}

// IPv6 with addresses of the link only.
func TestProbe_IPv6(t *testing.T) {
	w := newWire(t)
	for i := range w.ends {
		w.ends[i].Addr = netip.MustParseAddr(fmt.Sprintf("fe80::77:%d%%nic0", i+1))
		w.in(t, i, func() error {
			nic, err := netlink.LinkByName("nic0")
			if err != nil {
				return err
			}
			addr := &net.IPNet{IP: w.ends[i].Addr.AsSlice(), Mask: net.CIDRMask(64, 128)}
			return netlink.AddrAdd(nic, &netlink.Addr{IPNet: addr, Flags: unix.IFA_F_NODAD})
		})
	}
	p := start(t, w.options())
	until(t, "received", func() bool { s := p.Flows(); return s[0].Received > 0 && s[1].Received > 0 })
	for _, e := range rest(t, p) {
		if e.Kind == probe.Gap && e.Flow != (probe.Flow{}) {
			t.Error(e)
		}
	}
}

func TestProbe_Context(t *testing.T) {
	w := newWire(t)
	ctx, cancel := context.WithCancel(context.Background())
	p, err := probe.Start(ctx, w.options())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Next(canceled()); !errors.Is(err, context.Canceled) {
		t.Errorf("Next: %v", err)
	}
	cancel()
	for {
		if _, err := p.Next(context.Background()); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if _, err := probe.Start(ctx, w.options()); !errors.Is(err, context.Canceled) {
		t.Errorf("Start: %v", err)
	}
}
