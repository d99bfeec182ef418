package rail_test

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/emulator/tl1server"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/orchestrator/controller"
	"github.com/ocslab/ocslab/orchestrator/proto"
	"github.com/ocslab/ocslab/orchestrator/rail"
	"github.com/ocslab/ocslab/timeline"
	"github.com/ocslab/ocslab/topology/opus"
)

// emulate returns an emulated switch that takes so long, and sessions with it over TL1.
func emulate(tb testing.TB, model string, takes time.Duration, sessions int) (*emulator.Device, []ocs.Switch) {
	tb.Helper()
	p, err := emulator.LoadPersonality(model)
	if err != nil {
		tb.Fatal(err)
	}
	return emulateWith(tb, p, takes, sessions)
}

func emulateWith(tb testing.TB, p emulator.Personality, takes time.Duration, sessions int) (*emulator.Device, []ocs.Switch) {
	tb.Helper()
	dev, address := serve(tb, p, takes)
	all, err := dialed(address, sessions)
	if err != nil {
		tb.Fatal(err)
	}
	for _, sw := range all {
		tb.Cleanup(func() { sw.Close() })
	}
	return dev, all
}

// serve has an emulated switch at an address until the test has ended.
func serve(tb testing.TB, p emulator.Personality, takes time.Duration) (*emulator.Device, string) {
	tb.Helper()
	p.Switching = emulator.Switching{Single: takes, Bulk: takes, Ack: emulator.AckAfter}
	dev, err := emulator.New(p, emulator.Options{Name: "ocs1", Seed: 1})
	if err != nil {
		tb.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- (&tl1server.Server{Device: dev}).Serve(ctx, l) }()
	tb.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			tb.Error(err)
		}
	})
	return dev, l.Addr().String()
}

// regular is how a job is cabled to the whole of a switch.
func regular(job opus.Job, dev *emulator.Device) opus.Assignment {
	g := dev.Geometry()
	return opus.Regular(job.DuplexPorts(), g.IngressPorts()[0], g.EgressPorts()[0])
}

// TestEmulated goes through the configurations over TL1, and compares with what the device itself holds.
func TestEmulated(t *testing.T) {
	dev, sessions := emulate(t, "polatis-6000-32x32", 0, 2)
	opt := options(sessions...)
	opt.Assignment, opt.Verify, opt.Patience = regular(figure8, dev), rail.Light, 500*time.Millisecond
	a, _ := opened(t, start(t, opt))
	for _, text := range []string{"111", "201", "222", "000", "101", "211"} {
		got := a.id(text)
		if got.err != nil {
			t.Fatalf("%s: %v", text, got.err)
		}
		want, err := wanted(opt.Assignment, text)
		if err != nil {
			t.Fatal(err)
		}
		if !dev.CrossConnects().Equal(want) {
			t.Errorf("%s: the device holds %v, want %v", text, dev.CrossConnects(), want)
		}
	}
	// A dirty connector: the device acknowledges and lists the circuit, and no light comes.
	dev.Unlight(33)
	if got := a.id("111"); codeOf(got.err) != proto.Verify {
		t.Errorf("got %+v", got)
	}
}

// TestEmulated_Overlap: two sessions change disjoint ports of one device at the same time.
func TestEmulated_Overlap(t *testing.T) {
	dev, sessions := emulate(t, "polatis-6000-32x32", 200*time.Millisecond, 2)
	opt := options(sessions...)
	opt.Assignment = regular(figure8, dev)
	sent := make(chan struct{}, 100)
	opt.Gate = func() error { sent <- struct{}{}; return nil } // a change is about to be sent
	o := start(t, opt)
	a, _ := opened(t, o)
	a.id("111")
	for len(sent) > 0 {
		<-sent
	}
	_, since := dev.Truth(0)
	one := a.idLater("211")
	<-sent
	two := a.idLater("221")
	for _, c := range []chan answer{one, two} {
		if got := <-c; got.err != nil {
			t.Fatal(got.err)
		}
	}
	marks, _ := dev.Truth(since)
	command, ack := map[int]int64{}, map[int]int64{}
	for _, m := range marks {
		switch m.Stage {
		case timeline.Command:
			command[m.Reconfiguration] = m.Earliest
		case timeline.Ack:
			ack[m.Reconfiguration] = m.Latest
		}
	}
	if len(command) != 2 || len(ack) != 2 {
		t.Fatalf("want two commands that were acknowledged, got %v", marks)
	}
	var first, second int
	for n := range command {
		if first == 0 || command[n] < command[first] {
			first, second = n, first
		} else {
			second = n
		}
	}
	if command[second] >= ack[first] {
		t.Errorf("the second began %v after the first was acknowledged", time.Duration(command[second]-ack[first]))
	}
}

// TestEmulated_Dark: what goes dark is acknowledged at once, so its ports are free a switching time before the rest is
// done.
func TestEmulated_Dark(t *testing.T) {
	dev, sessions := emulate(t, "polatis-6000-32x32", 200*time.Millisecond, 1)
	var events []rail.Event
	opt := options(sessions...)
	opt.Assignment = regular(figure8, dev)
	opt.Changed = func(e rail.Event) { events = append(events, e) }
	o := start(t, opt)
	a, _ := opened(t, o)
	a.id("111")
	events = nil
	if got := a.id("201"); got.err != nil {
		t.Fatal(got.err)
	}
	o.Close()
	var whats []rail.What
	for _, e := range events {
		whats = append(whats, e.What)
	}
	if fmt.Sprint(whats) != "[disconnected connected lit verified]" {
		t.Fatalf("got %v", whats)
	}
	t.Logf("removing took %v, connecting %v", took(events[0]), took(events[1]))
}

func took(e rail.Event) time.Duration { return e.Receipt.Acked.Sub(e.Receipt.Begun) }

// BenchmarkApply moves all circuits of a rail to and fro over TL1 with a switch that takes no time. The unit is what the
// bare driver takes for the same change and reading it back.
func BenchmarkApply(b *testing.B) {
	for _, ranks := range []int{64, 256} {
		b.Run(fmt.Sprintf("ranks=%d", ranks), func(b *testing.B) {
			job := opus.Job{Name: "bench", Stages: 4, Axes: []opus.Axis{{Name: "dp", Size: ranks / 16}, {Name: "cp", Size: 4}}}
			model := "polatis-7000-384x384"
			p, err := emulator.LoadPersonality(model)
			if err != nil {
				b.Fatal(err)
			}
			if n := job.DuplexPorts(); n > 384 {
				p.Size = fmt.Sprintf("%dx%d", n, n)
			}
			dev, sessions := emulateWith(b, p, 0, 2)
			cabled := regular(job, dev)
			var maps [2]ocs.Map
			for i, text := range []string{"1111", "2222"} {
				id, _ := job.ParseID(text)
				m, err := opus.Build(job, id, opus.Pair)
				if err != nil {
					b.Fatal(err)
				}
				if maps[i], err = cabled.Map(m); err != nil {
					b.Fatal(err)
				}
			}
			o, err := rail.New(b.Context(), rail.Options{Rail: "rail0", Switch: "ocs1", Job: job, Policy: opus.Pair, Assignment: cabled, Sessions: sessions[:1], Health: -1, Dir: b.TempDir()})
			if err != nil {
				b.Fatal(err)
			}
			defer o.Close()
			a := openJob(b, o, job)
			if got := a.id("1111"); got.err != nil {
				b.Fatal(got.err)
			}
			var ours, bare time.Duration
			n := 0
			for b.Loop() {
				for i, text := range []string{"2222", "1111"} {
					begun := time.Now()
					if got := a.id(text); got.err != nil {
						b.Fatal(got.err)
					}
					ours += time.Since(begun)
					// The same, there and back, with the bare driver: the rail does not notice.
					for k := range 2 {
						c := ocs.Diff(maps[1-(i+k)%2], maps[(i+k)%2])
						begun = time.Now()
						if _, err := sessions[1].Apply(b.Context(), c); err != nil {
							b.Fatal(err)
						}
						if _, err := sessions[1].CrossConnects(b.Context()); err != nil {
							b.Fatal(err)
						}
						bare += time.Since(begun)
					}
					n++
				}
			}
			b.ReportMetric(float64(ours.Microseconds())/float64(n), "us/apply")
			b.ReportMetric(float64(bare.Microseconds())/float64(2*n), "us/bare")
			b.ReportMetric(2*float64(ours)/float64(bare), "x-bare")
		})
	}
}

func openJob(tb testing.TB, r controller.Rail, job opus.Job) *asker {
	tb.Helper()
	return openJobWith(tb, r, job, opus.Pair)
}

func openJobWith(tb testing.TB, r controller.Rail, job opus.Job, policy opus.Policy) *asker {
	tb.Helper()
	epoch := make(chan uint64, 1)
	r.Open(proto.Open{Version: proto.Version, Rail: "rail0", Job: job, Policy: policy}, func(s proto.Opened, err error) {
		if err != nil {
			tb.Error(err)
		}
		epoch <- s.Epoch
	})
	return &asker{r: r, epoch: <-epoch}
}
