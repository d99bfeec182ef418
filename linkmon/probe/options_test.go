package probe_test

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/ocslab/ocslab/linkmon/probe"
	"github.com/ocslab/ocslab/timeline"
)

func canceled() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

func TestStart_Options(t *testing.T) {
	for _, tt := range []struct {
		want   string
		change func(*probe.Options)
	}{
		{"pace 1µs: want 20µs to 1s", func(o *probe.Options) { o.Pace = time.Microsecond }},
		{"pace 2s", func(o *probe.Options) { o.Pace = 2 * time.Second }},
		{"pace -1ns", func(o *probe.Options) { o.Pace = -1 }},
		{"silence of 100µs", func(o *probe.Options) { o.Silence = probe.DefaultPace }},
		{"silence of 1h0m0s", func(o *probe.Options) { o.Silence = time.Hour }},
		{"no flows", func(o *probe.Options) { o.Flows = nil }},
		{`there is no endpoint "c"`, func(o *probe.Options) { o.Flows[0].To = "c" }},
		{"a>a: want two different", func(o *probe.Options) { o.Flows[0].To = "a" }},
		{"each flow once", func(o *probe.Options) { o.Flows = append(o.Flows, o.Flows[0]) }},
		{"a name of its own", func(o *probe.Options) { o.Endpoints[1].Name = "a" }},
		{"a name of its own", func(o *probe.Options) { o.Endpoints[1].Name = "" }},
		{"b has no address", func(o *probe.Options) { o.Endpoints[1].Addr = netip.Addr{} }},
		{"want six bytes", func(o *probe.Options) { o.Endpoints[1].MAC = net.HardwareAddr{1, 2, 3} }},
		{"a Conn at both ends", func(o *probe.Options) { o.Endpoints[1].Conn = newFake() }},
	} {
		opt := probe.Options{
			Endpoints: []probe.Endpoint{
				{Name: "a", Addr: netip.MustParseAddr("127.0.0.1")},
				{Name: "b", Addr: netip.MustParseAddr("127.0.0.2")},
			},
			Flows: []probe.Flow{{From: "a", To: "b"}},
		}
		tt.change(&opt)
		p, err := probe.Start(context.Background(), opt)
		if err == nil {
			p.Close()
			t.Errorf("want an error with %q", tt.want)
		} else if !strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), "probe: ") {
			t.Errorf("%v, want %q", err, tt.want)
		}
	}
}

func TestEvent_String(t *testing.T) {
	f := probe.Flow{From: "a", To: "b"}
	for want, e := range map[string]probe.Event{
		"lost a>b 1.000000 ms: x":    {Kind: probe.Lost, Flow: f, Interval: timeline.Point(1e6), Text: "x"},
		"resumed a>b 2.000000 ms: y": {Kind: probe.Resumed, Flow: f, Interval: timeline.Point(2e6), Text: "y"},
		"gap 1.000000000 s: z":       {Kind: probe.Gap, Interval: timeline.Point(1e9), Text: "z"},
		"kind 9 a>b 1.000000000 s: ": {Kind: 9, Flow: f, Interval: timeline.Point(1e9)},
	} {
		if got := e.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
		m, ok := e.Mark()
		stage := map[probe.Kind]timeline.Stage{probe.Lost: timeline.TrafficLost, probe.Resumed: timeline.Traffic}[e.Kind]
		if m.Stage != stage || ok != (stage != "") {
			t.Errorf("%v is the mark %v, %v", e, m, ok)
		}
	}
}
