package probe_test

import (
	"strings"
	"testing"
	"time"

	"github.com/ocslab/ocslab/linkmon/probe"
	"github.com/ocslab/ocslab/timeline"
)

// Ensure a flow there and back tells when either way was closed, and when both were
// open again.
func TestReflector(t *testing.T) {
	w := newWire(t)
	r, err := probe.Reflect(w.ends[1], 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	// The way back needs a neighbour entry, too, which the probe of the other machine
	// would make.
	w.neighbour(t, 1, 0)
	far := probe.Endpoint{Name: w.ends[1].Name, Addr: w.ends[1].Addr, MAC: w.ends[1].MAC, Reflected: true}
	p := start(t, probe.Options{Endpoints: []probe.Endpoint{w.ends[0], far}, Flows: []probe.Flow{there}, Host: "test"})
	judged(t, p, 0, 0)
	sent := func(n int) { // until some more packets have been sent
		for from := p.Flows()[0].Sent; p.Flows()[0].Sent < from+uint64(n); {
			time.Sleep(time.Duration(n) * probe.DefaultPace)
		}
	}
	var truth []timeline.Interval
	for i := range 40 {
		g := w.out
		if i%2 == 1 {
			g = w.back
		}
		truth = append(truth, g.set(t, false))
		sent(20)
		truth = append(truth, g.set(t, true))
		sent(20)
	}
	judged(t, p, 0, truth[len(truth)-1].Latest)
	i := 0
	for _, e := range rest(t, p) {
		if e.Kind == probe.Gap {
			continue
		}
		if i == len(truth) || e.Flow != there {
			t.Fatalf("invented: %v", e)
		}
		holds := overlaps(e.Interval, truth[i])
		if i%4 == 2 {
			// The packet that found the way back closed may have waited longer at the
			// reflector than all before it; then the end of the interval is too early.
			holds = e.Earliest <= truth[i].Latest
		}
		if kind := []probe.Kind{probe.Lost, probe.Resumed}[i%2]; e.Kind != kind || !holds {
			t.Fatalf("event %d is %v %+v, want %v at %+v", i, e, e.Interval, kind, truth[i])
		}
		i++
	}
	if i != len(truth) {
		t.Errorf("%d of %d events", i, len(truth))
	}
}

func TestReflector_Bad(t *testing.T) {
	w := newWire(t)
	gone := w.ends[1]
	gone.Interface = "nic9"
	if _, err := probe.Reflect(gone, 0); err == nil || !strings.Contains(err.Error(), "nic9") {
		t.Errorf("no such interface: err=%v", err)
	}
	r, err := probe.Reflect(w.ends[1], 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	if _, err := probe.Reflect(w.ends[1], 0); err == nil {
		t.Error("two reflectors on one port")
	}
	far := w.ends[1]
	far.Reflected = true
	if _, err := probe.Start(t.Context(), probe.Options{Endpoints: []probe.Endpoint{w.ends[0], far}, Flows: []probe.Flow{back}}); err == nil {
		t.Error("a flow from another machine")
	}
}
