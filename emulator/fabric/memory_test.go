package fabric_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/emulator/fabric"
	firmwarenotes "github.com/ocslab/ocslab/firmware-notes"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/timeline"
)

// inMemory starts n hosts in virtual time.
func inMemory(t *testing.T, n int) (*emulator.Device, *fabric.Fabric) {
	t.Helper()
	d, cfg := pairOfHosts(t, n)
	cfg.Rung = fabric.Memory
	return d, start(t, cfg)
}

func wire(t *testing.T, f *fabric.Fabric, host string) *fabric.Wire {
	t.Helper()
	w, err := f.Wire(host, "ens1f0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return w
}

// inbox collects what arrives at a wire.
type inbox struct {
	mu  sync.Mutex
	got []string
}

func receive(w *fabric.Wire) *inbox {
	in := &inbox{}
	go func() {
		buf := make([]byte, 2000)
		for {
			n, from, _, err := w.Recv(buf)
			if err != nil {
				return
			}
			in.mu.Lock()
			in.got = append(in.got, fmt.Sprintf("%s from %v", buf[:n], from))
			in.mu.Unlock()
		}
	}()
	return in
}

// take returns what has arrived by now, in virtual time.
func (in *inbox) take() []string {
	synctest.Wait()
	in.mu.Lock()
	defer in.mu.Unlock()
	got := in.got
	in.got = nil
	return got
}

func addrOf(f *fabric.Fabric, host string) netip.Addr {
	for _, h := range f.Hosts() {
		if h.Name == host {
			return h.NICs[0].Addr.Addr()
		}
	}
	return netip.Addr{}
}

func send(t *testing.T, w *fabric.Wire, text string, to netip.Addr) {
	t.Helper()
	if err := w.Send([]byte(text), to); err != nil {
		t.Fatal(err)
	}
}

func wantArrived(t *testing.T, in *inbox, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, in.take()); diff != "" {
		t.Errorf("arrived (-want +got):\n%s", diff)
	}
}

// TestMemory_Timeline follows one circuit through all layers, to the nanosecond.
func TestMemory_Timeline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, f := inMemory(t, 2)
		axis := timeline.HostAxis()
		w1, w2 := wire(t, f, "gpu1"), wire(t, f, "gpu2")
		in := receive(w2)
		begun := axis.NS(time.Now())
		connect(t, d, "1>4,2>3")
		time.Sleep(31*ms - 1) // 20 switching, 2 detect, 8 train, 1 carrier
		synctest.Wait()
		if hasCarrier(t, f, "gpu2") {
			t.Error("carrier too early")
		}
		send(t, w1, "too early", addrOf(f, "gpu2"))
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if !hasCarrier(t, f, "gpu2") {
			t.Error("no carrier")
		}
		time.Sleep(ms)
		send(t, w1, "one", addrOf(f, "gpu2"))
		send(t, w1, "two", addrOf(f, "gpu2"))
		wantArrived(t, in, "one from 198.18.0.1", "two from 198.18.0.1")
		send(t, w1, "to somebody else", addrOf(f, "gpu1"))
		wantArrived(t, in)

		time.Sleep(8 * ms) // at 40
		disconnect(t, d, 4)
		synctest.Wait()
		send(t, w1, "dark", addrOf(f, "gpu2"))
		if !hasCarrier(t, f, "gpu2") {
			t.Error("the carrier did not outlive the light by the debounce")
		}
		time.Sleep(10 * ms)
		wantArrived(t, in)
		if stats, err := f.Stats("gpu1", "ens1f0"); err != nil || stats != (fabric.Stats{Forwarded: 2, Dark: 2, Refused: 1}) {
			t.Errorf("stats %+v, %v", stats, err)
		}
		if up, down, carrier, err := f.Counts("gpu2", "ens1f0"); err != nil || up != 1 || down != 1 || carrier {
			t.Errorf("counts %d %d %v %v", up, down, carrier, err)
		}

		type fact struct {
			Stage   timeline.Stage
			Subject string
			At      time.Duration
			Op      int
		}
		var got []fact
		marks, _ := f.Truth(0)
		for _, m := range marks {
			if m.Subject == "gpu1/ens1f0" {
				continue // the same
			}
			at := time.Duration(m.Mid() - begun).Round(time.Microsecond)
			got = append(got, fact{m.Stage, m.Subject, at, m.Reconfiguration})
			if m.Width() > time.Microsecond || m.Host != "gpu2" || m.Source != "fabric" {
				t.Errorf("%+v", m)
			}
		}
		const nic, pair = "gpu2/ens1f0", "gpu1/ens1f0>gpu2/ens1f0"
		want := []fact{
			{timeline.Light, nic, 20 * ms, 1},
			{timeline.Firmware, nic, 30 * ms, 1},
			{timeline.CarrierUp, nic, 31 * ms, 1},
			{timeline.Traffic, pair, 32 * ms, 1},
			{timeline.Dark, nic, 40 * ms, 2},
			{timeline.TrafficLost, pair, 40 * ms, 2},
			{timeline.CarrierDown, nic, 45 * ms, 2},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("truth (-want +got):\n%s", diff)
		}
		if v := timeline.Check(marks); v != nil {
			t.Errorf("truth that cannot be: %v", v)
		}
	})
}

// TestMemory_Debounce: light that is back in time goes unnoticed by all but the frames.
func TestMemory_Debounce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, f := inMemory(t, 1) // its own neighbour
		connect(t, d, "1>2")
		time.Sleep(100 * ms)
		w := wire(t, f, "gpu1")
		in := receive(w)
		self := addrOf(f, "gpu1")
		for i := range 3 {
			send(t, w, fmt.Sprint("before ", i), self)
			wantArrived(t, in, fmt.Sprintf("before %d from 198.18.0.1", i))
			if err := d.SetShutters(true, 1); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			send(t, w, "lost", self)
			time.Sleep(4 * ms)
			if err := d.SetShutters(false, 1); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		if up, down, _, _ := f.Counts("gpu1", "ens1f0"); up != 1 || down != 0 {
			t.Errorf("%d up, %d down", up, down)
		}
		wantArrived(t, in)
		if n := len(marksOf(f, "gpu1/ens1f0>gpu1/ens1f0")); n != 6 {
			t.Errorf("%d marks of traffic, want 6", n)
		}
	})
}

func TestMemory_Sensitivity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, f := inMemory(t, 1)
		connect(t, d, "1>2") // loses 1.5 dB
		time.Sleep(100 * ms)
		for _, c := range []struct {
			launch ocs.DBm
			want   bool
		}{{-16.4, true}, {-16.6, false}, {-20, false}, {0, true}, {-5, true}, {-30, false}, {-10, true}, {ocs.DBm(math.Inf(-1)), false}} {
			if err := d.SetInput(1, c.launch); err != nil {
				t.Fatal(err)
			}
			time.Sleep(100 * ms)
			if got := hasCarrier(t, f, "gpu1"); got != c.want {
				t.Errorf("%v sent: carrier %v, want %v", c.launch, got, c.want)
			}
		}
		var got []timeline.Stage
		for _, m := range marksOf(f, "gpu1/ens1f0") {
			if m.Stage == timeline.Light || m.Stage == timeline.Dark {
				got = append(got, m.Stage)
			}
		}
		on, off := timeline.Light, timeline.Dark
		if diff := cmp.Diff([]timeline.Stage{on, off, on, off, on, off}, got); diff != "" { // weaker or stronger is neither
			t.Error(diff)
		}
	})
}

// TestMemory_SeveralSwitches has a ring over two switches: NICs send into one and
// receive from the other, beside ports that go nowhere.
func TestMemory_SeveralSwitches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newSwitch(t, "4x4", emulator.Options{Name: "a"})
		b := newSwitch(t, "4x4", emulator.Options{Name: "b"})
		pa := func(n ocs.Port) fabric.Port { return fabric.Port{Switch: "a", Port: n} }
		pb := func(n ocs.Port) fabric.Port { return fabric.Port{Switch: "b", Port: n} }
		f := start(t, fabric.Config{
			Switches: map[string]*emulator.Device{"a": a, "b": b}, Rung: fabric.Memory, Dir: tempDir(t),
			NICs: []fabric.NIC{
				{Host: "gpu1", Name: "ens1f0", Tx: pa(1), Rx: pb(5), Profile: quick},
				{Host: "gpu2", Name: "ens1f0", Tx: pb(1), Rx: pa(5), Profile: quick},
			},
		})
		connect(t, a, "1>5,2>6") // 6 goes nowhere, 2 has light from nobody
		connect(t, b, "2>5,1>7") // gpu1 has a carrier of a stranger; gpu2's light goes nowhere
		time.Sleep(100 * ms)
		if !hasCarrier(t, f, "gpu1") || !hasCarrier(t, f, "gpu2") {
			t.Fatal("no carrier")
		}
		w1, w2 := wire(t, f, "gpu1"), wire(t, f, "gpu2")
		in1, in2 := receive(w1), receive(w2)
		send(t, w1, "there", addrOf(f, "gpu2"))
		send(t, w2, "back", addrOf(f, "gpu1"))
		wantArrived(t, in1)
		wantArrived(t, in2, "there from 198.18.0.1")
		connect(t, b, "1>5")
		time.Sleep(100 * ms)
		send(t, w2, "back", addrOf(f, "gpu1"))
		wantArrived(t, in1, "back from 198.18.0.2")
	})
}

// TestMemory_OneWay: each direction is judged on its own.
func TestMemory_OneWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, f := inMemory(t, 2)
		connect(t, d, "1>4")
		time.Sleep(100 * ms)
		if hasCarrier(t, f, "gpu1") || !hasCarrier(t, f, "gpu2") {
			t.Error("want carrier at gpu2 only")
		}
		w := wire(t, f, "gpu1")
		in := receive(wire(t, f, "gpu2"))
		send(t, w, "x", addrOf(f, "gpu2"))
		wantArrived(t, in) // gpu1 has no carrier itself
		connect(t, d, "2>3")
		time.Sleep(100 * ms)
		send(t, w, "y", addrOf(f, "gpu2"))
		wantArrived(t, in, "y from 198.18.0.1")
		disconnect(t, d, 3)
		time.Sleep(100 * ms)
		send(t, w, "z", addrOf(f, "gpu2"))
		wantArrived(t, in)
	})
}

// TestMemory_Restored: what a switch holds at the start is light from then on.
func TestMemory_Restored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, cfg := pairOfHosts(t, 1)
		connect(t, d, "1>2")
		time.Sleep(time.Second)
		cfg.Rung = fabric.Memory
		f := start(t, cfg)
		begun := timeline.HostAxis().NS(time.Now())
		time.Sleep(100 * ms)
		marks := marksOf(f, "gpu1/ens1f0")
		if len(marks) != 3 || marks[0].Interval != timeline.Point(begun) || marks[0].Reconfiguration != 1 {
			t.Errorf("marks %v, want light at %d", marks, begun)
		}
	})
}

// TestMemory_Burst: firmware that is toggled too often is slower, up to a limit.
func TestMemory_Burst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, cfg := pairOfHosts(t, 1)
		cfg.Rung = fabric.Memory
		cfg.NICs[0].Profile.Burst = &firmwarenotes.Burst{Window: time.Minute, Free: 1, Step: 100 * ms, Most: 150 * ms}
		f := start(t, cfg)
		for range 4 {
			connect(t, d, "1>2")
			time.Sleep(time.Second)
			disconnect(t, d)
			time.Sleep(time.Second)
		}
		var took []time.Duration
		var light int64
		for _, m := range marksOf(f, "gpu1/ens1f0") {
			switch m.Stage {
			case timeline.Light:
				light = m.Earliest
			case timeline.Firmware:
				took = append(took, time.Duration(m.Mid()-light).Round(time.Microsecond))
			}
		}
		if diff := cmp.Diff([]time.Duration{10 * ms, 10 * ms, 110 * ms, 160 * ms}, took); diff != "" {
			t.Error(diff)
		}
	})
}

// TestMemory_Seed: the same seed gives the same delays, another one others.
func TestMemory_Seed(t *testing.T) {
	run := func(t *testing.T, seed uint64) (took []int64) {
		synctest.Test(t, func(t *testing.T) {
			d, cfg := pairOfHosts(t, 2)
			cfg.Rung, cfg.Seed = fabric.Memory, seed
			for i := range cfg.NICs {
				cfg.NICs[i].Profile.Train.Spread = 2 * ms
			}
			f := start(t, cfg)
			begun := timeline.HostAxis().NS(time.Now())
			connect(t, d, "1>4,2>3")
			time.Sleep(time.Second)
			for _, host := range []string{"gpu1", "gpu2"} {
				for _, m := range marksOf(f, host+"/ens1f0") {
					took = append(took, m.Mid()-begun)
				}
			}
		})
		return took
	}
	one, again, other := run(t, 1), run(t, 1), run(t, 2)
	if !slices.Equal(one, again) {
		t.Errorf("same seed: %v and %v", one, again)
	}
	if slices.Equal(one, other) {
		t.Error("another seed changes nothing")
	}
	if one[1] == one[4] {
		t.Error("two NICs draw the same")
	}
}

func TestMemory_RemoveAdd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, f := inMemory(t, 2)
		connect(t, d, "1>4,2>3")
		time.Sleep(100 * ms)
		w1, w2 := wire(t, f, "gpu1"), wire(t, f, "gpu2")
		in := receive(w2)
		to := addrOf(f, "gpu2")
		send(t, w1, "x", to)
		wantArrived(t, in, "x from 198.18.0.1")

		if err := f.Remove("gpu1", "ens1f0"); err != nil {
			t.Fatal(err)
		}
		if _, _, _, err := w1.Recv(nil); !errors.Is(err, net.ErrClosed) {
			t.Errorf("Recv at a NIC that is gone: %v", err)
		}
		if err := w1.Send(nil, to); !errors.Is(err, net.ErrClosed) {
			t.Errorf("Send at a NIC that is gone: %v", err)
		}
		time.Sleep(100 * ms)
		if hasCarrier(t, f, "gpu2") {
			t.Error("there is still light of a NIC that is gone")
		}
		if err := f.Remove("gpu1", "ens1f0"); err == nil {
			t.Error("removed twice")
		}
		if got := f.Hosts()[0].NICs; len(got) != 0 {
			t.Errorf("gpu1 still has %v", got)
		}

		if err := f.Add(nicOf(1, 2)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(100 * ms)
		if !hasCarrier(t, f, "gpu1") || !hasCarrier(t, f, "gpu2") {
			t.Error("no carrier after Add")
		}
		send(t, wire(t, f, "gpu1"), "y", to)
		wantArrived(t, in, "y from 198.18.0.1") // the address it had
		if err := f.Add(nicOf(1, 2)); err == nil {
			t.Error("added twice")
		}
		if v := timeline.Check(marksOf(f, "gpu1/ens1f0>gpu2/ens1f0")); v != nil {
			t.Error(v)
		}
	})
}

func TestMemory_AddAfterClose(t *testing.T) {
	_, cfg := pairOfHosts(t, 1)
	cfg.Rung = fabric.Memory
	f := start(t, cfg)
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Add(cfg.NICs[0]); err == nil {
		t.Error("Add after Close succeeded")
	}
	if err := f.Remove("gpu1", "ens1f0"); err == nil {
		t.Error("Remove after Close succeeded")
	}
	if _, err := f.Wire("gpu1", "ens1f0"); err == nil {
		t.Error("Wire after Close succeeded")
	}
	if _, _, _, err := f.Counts("gpu1", "ens1f0"); err == nil {
		t.Error("Counts after Close succeeded")
	}
	if _, err := f.Stats("gpu1", "ens1f0"); err == nil {
		t.Error("Stats after Close succeeded")
	}
	if h := f.Hosts(); len(h) != 0 {
		t.Errorf("hosts after Close: %v", h)
	}
}

func TestWire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, f := inMemory(t, 1)
		connect(t, d, "1>2")
		time.Sleep(100 * ms)
		w, other := wire(t, f, "gpu1"), wire(t, f, "gpu1")
		self := addrOf(f, "gpu1")
		for _, c := range []struct {
			payload []byte
			to      netip.Addr
		}{{make([]byte, 1473), self}, {nil, netip.MustParseAddr("10.0.0.1")}, {nil, netip.MustParseAddr("::1")}, {nil, netip.Addr{}}} {
			if err := w.Send(c.payload, c.to); err == nil {
				t.Errorf("sent %d bytes to %v", len(c.payload), c.to)
			}
		}
		big := bytes.Repeat([]byte("x"), 1472)
		send(t, w, string(big), self)
		big[0] = 'y' // the wire has its own copy
		begun := time.Now()
		for _, w := range []*fabric.Wire{w, other} {
			buf := make([]byte, 4)
			n, from, at, err := w.Recv(buf)
			if err != nil || string(buf[:n]) != "xxxx" || from != self || !at.Equal(begun) {
				t.Errorf("Recv: %q %v %v %v", buf[:n], from, at, err)
			}
		}
		for range 2000 { // more than wait for a receiver
			send(t, w, "z", self)
		}
		if stats, _ := f.Stats("gpu1", "ens1f0"); stats.Refused != 2000-1024 {
			t.Errorf("%+v", stats)
		}
		if err := errors.Join(w.Close(), w.Close()); err != nil {
			t.Error(err)
		}
		if err := w.Send(nil, self); !errors.Is(err, net.ErrClosed) {
			t.Errorf("Send after Close: %v", err)
		}
	})
}
