package experiment_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ocslab/ocslab/experiment"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/linkmon/probe"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/timeline"
)

// slow is a testbed whose links take seconds to come back, at its first configuration.
func slow(t *testing.T) *experiment.Testbed {
	t.Helper()
	tb := testbed(t, func(_ *lab.File, opt *experiment.TestbedOptions) { opt.Fabric.Firmware = "connectx-6-dx/autoneg-off" })
	tb.Bench.Fixed = 400 * time.Millisecond
	if _, err := tb.Bench.Move(t.Context(), 0, tb.Maps[0], ocs.Update); err != nil {
		t.Fatal(err)
	}
	tb.Bench.Fixed = 0
	return tb
}

// Ensure waiting ends when it is cut short, that what had come until then is told, and
// what had not as not having come until then.
func TestBench_Cut(t *testing.T) {
	tb := slow(t)
	for _, fixed := range []time.Duration{0, time.Minute} {
		cut := make(chan struct{})
		tb.Bench.Cut, tb.Bench.Fixed = cut, fixed
		once := false
		tb.Bench.Seen = func(mv experiment.Move) {
			if stages(mv.Marks)["light"] >= 4 && !once {
				once = true
				close(cut)
			}
		}
		to := tb.Maps[1]
		if fixed > 0 {
			to = tb.Maps[0]
		}
		began := time.Now()
		mv, err := tb.Bench.Move(t.Context(), 1, to, ocs.Update)
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("took %v", took)
		}
		if seen := stages(mv.Marks); seen["light"] < 4 || seen["ack"] != 1 || seen["carrier-up"] != 0 {
			t.Errorf("marks of %v", seen)
		}
		if text := strings.Join(mv.Unresolved, "\n"); fixed == 0 && !strings.Contains(text, "carrier-up: not until the waiting was cut short") {
			t.Errorf("unresolved: %q", text)
		}
	}
}

// Ensure one that is cut short before it begins changes what it is to change all the same.
func TestBench_CutBefore(t *testing.T) {
	tb := testbed(t, nil)
	cut := make(chan struct{})
	close(cut)
	tb.Bench.Cut = cut
	mv, err := tb.Bench.Move(t.Context(), 1, tb.Maps[0], ocs.Update)
	if err != nil || !mv.Reports["rail0"].After.Equal(tb.Maps[0]["rail0"]) {
		t.Errorf("%v, %v", mv.Reports, err)
	}
	for _, why := range mv.Unresolved { // light that nobody waited for is not late
		if strings.Contains(why, "light: "+timeline.NotSettled.String()) || strings.Contains(why, "light: "+timeline.NoLight.String()) {
			t.Error(why)
		}
	}
}

// Ensure the end of a context is still an error when there is something to cut.
func TestBench_CutAndContext(t *testing.T) {
	tb := slow(t)
	tb.Bench.Cut = make(chan struct{})
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	tb.Bench.Seen = func(experiment.Move) { cancel(why) }
	if mv, err := tb.Bench.Move(ctx, 1, tb.Maps[1], ocs.Update); !errors.Is(err, why) || !mv.Reports["rail0"].ReadBack {
		t.Errorf("read back: %v, err=%v", mv.Reports["rail0"].ReadBack, err)
	}
}

// Ensure what is told of a move under way only grows, begins with the read-back, is a copy,
// and ends in what Move returns.
func TestBench_Seen(t *testing.T) {
	tb := testbed(t, nil)
	for i := range 2 {
		if _, err := tb.Bench.Move(t.Context(), 0, tb.Maps[i], ocs.Update); err != nil {
			t.Fatal(err)
		}
	}
	var told []experiment.Move
	var under, over atomic.Bool
	tb.Bench.Seen = func(mv experiment.Move) {
		if under.Swap(true) || over.Load() {
			t.Error("called twice at once, or after the end")
		}
		told = append(told, mv)
		clear(mv.Reports)
		for i := range mv.Marks {
			mv.Marks[i].Detail = "spoilt"
		}
		under.Store(false)
	}
	mv, err := tb.Bench.Move(t.Context(), 1, tb.Maps[0], ocs.Update)
	over.Store(true)
	if err != nil {
		t.Fatal(err)
	}
	if len(told) < 2 {
		t.Fatalf("told %d times", len(told))
	}
	if first := stages(told[0].Marks); first["command"] != 1 || first["ack"] != 1 {
		t.Errorf("first told: %v", first)
	}
	if slices.ContainsFunc(mv.Marks, func(m timeline.Mark) bool { return m.Detail == "spoilt" }) || len(mv.Reports) != 1 {
		t.Error("what was told is not a copy")
	}
	carriers := 0
	for _, x := range told {
		n := stages(x.Marks)["carrier-up"]
		if n < carriers {
			t.Errorf("%d links were up, and then %d", carriers, n)
		}
		carriers = n
		if len(x.Unresolved)+len(x.Held)+len(x.Samples)+x.Readings > 0 {
			t.Errorf("told of what is known in the end only: %+v", x)
		}
	}
	if got := stages(mv.Marks); got["carrier-up"] != 4 || len(mv.Samples) == 0 || len(mv.Unresolved) > 0 {
		t.Errorf("in the end: %v, %v", got, mv.Unresolved)
	}
}

// Ensure nothing is told of a move that changes nothing.
func TestBench_SeenNothing(t *testing.T) {
	tb := testbed(t, nil)
	if _, err := tb.Bench.Move(t.Context(), 0, tb.Maps[0], ocs.Update); err != nil {
		t.Fatal(err)
	}
	tb.Bench.Seen = func(experiment.Move) { t.Error("told") }
	if _, err := tb.Bench.Move(t.Context(), 1, tb.Maps[0], ocs.Update); err != nil {
		t.Fatal(err)
	}
}

// Ensure flows beside those of the configurations are probed, each once.
func TestTestbed_Flows(t *testing.T) {
	var extra probe.Flow
	tb := testbed(t, func(f *lab.File, opt *experiment.TestbedOptions) {
		for c := range opt.Maps[0]["rail0"].All() {
			opt.Flows = append(opt.Flows, probe.Flow{From: f.Sender("rail0", c.Ingress), To: f.Receiver("rail0", c.Egress)})
		}
		var names []string
		for _, h := range f.Hosts {
			for i := range h.NICs {
				names = append(names, h.NICs[i].FullName())
			}
		}
		for _, name := range names { // one that no configuration has
			f := probe.Flow{From: names[0], To: name}
			if name != names[0] && !slices.Contains(opt.Flows, f) {
				extra = f
			}
		}
		opt.Flows = append(opt.Flows, extra)
		opt.Maps = opt.Maps[:1]
	})
	count := map[probe.Flow]int{}
	for _, f := range tb.Watch.Flows() {
		count[f.Flow]++
	}
	if len(count) != 5 || count[extra] != 1 {
		t.Errorf("flows: %v, want the four of the configuration and %v", count, extra)
	}
}
