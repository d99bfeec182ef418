package experiment

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ocslab/ocslab/emulator/fabric"
	"github.com/ocslab/ocslab/linkmon/watch"
	"github.com/ocslab/ocslab/timeline"
)

func TestHeldUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pace, end, got := make(chan time.Time), make(chan struct{}), make(chan time.Duration)
		go func() { got <- heldUp(pace, end) }()
		for _, pause := range []time.Duration{10, 10, 130, 10} {
			time.Sleep(pause * time.Millisecond)
			pace <- time.Now()
		}
		time.Sleep(20 * time.Millisecond)
		close(end)
		if d := <-got; d != 130*time.Millisecond {
			t.Errorf("held up for %v, want 130ms", d)
		}

		go func() { got <- heldUp(pace, end) }()
		if d := <-got; d != 0 {
			t.Errorf("held up for %v although it ended at once", d)
		}
	})
}

// TestMove_Busy: what shows that the machine was too busy is said, and nothing else is.
func TestMove_Busy(t *testing.T) {
	at := func(from, to time.Duration) timeline.Interval { return timeline.Between(int64(from), int64(to)) }
	mark := func(stage timeline.Stage, subject, source string, i timeline.Interval) timeline.Mark {
		return timeline.Mark{Stage: stage, Subject: subject, Source: source, Interval: i, Reconfiguration: 1}
	}
	const ms = time.Millisecond
	command := mark(timeline.Command, "rail0", "driver", at(0, 1*ms))
	late := func(n watch.Note) watch.Note {
		n.Kind, n.Event = watch.Gap, watch.Late
		return n
	}
	for _, tt := range []struct {
		name string
		late fabric.Lateness
		mv   Move
		want []string
	}{
		{"nothing", fabric.Lateness{What: "gpu1/x", By: 99 * ms}, Move{
			Marks: []timeline.Mark{command, mark(timeline.Light, "rail0/3", "opm", at(0, 500*ms))},
			Notes: []watch.Note{
				late(watch.Note{Source: "counters", Interval: at(0, 99*ms), Text: "a late sweep"}),
				{Kind: watch.Gap, Source: "counters", Interval: at(0, 500*ms), Text: "a counter that cannot be read"},
				{Kind: watch.Link, Event: watch.Late, Source: "netlink", Interval: at(0, 500*ms)},
			},
		}, nil},
		{"emulation", fabric.Lateness{What: "gpu1/x", By: 100 * ms}, Move{}, []string{"the emulation of gpu1/x was late by 100ms"}},
		{"notes", fabric.Lateness{}, Move{Notes: []watch.Note{
			late(watch.Note{Source: "counters", Host: "gpu1", Interval: at(0, 100*ms), Text: "no sweep"}),
			late(watch.Note{Source: "counters", Host: "gpu2", Interval: at(0, 100*ms), Text: "no sweep"}),
			late(watch.Note{Source: "probe", Subject: "a>b", Text: "packet 1 was late"}),
			late(watch.Note{Source: "probe", Subject: "a>b", Text: "packet 9 was late"}),
			late(watch.Note{Source: "probe", Text: "the socket dropped 2 packets"}),
		}}, []string{"no sweep", "a>b: packet 1 was late", "the socket dropped 2 packets"}},
		{"order", fabric.Lateness{}, Move{Marks: []timeline.Mark{
			command, mark(timeline.Dark, "rail0/3", "opm", at(9*ms, 10*ms)), mark(timeline.Light, "rail0/3", "opm", at(7*ms, 8*ms)),
		}}, []string{"timeline: reconfiguration 1: light comes back after it went, but light of rail0/3 at 7.50 ms ±0.50 (opm) came before dark of rail0/3 at 9.50 ms ±0.50 (opm)"}},
		{"sources", fabric.Lateness{}, Move{Marks: []timeline.Mark{
			command, mark(timeline.CarrierUp, "gpu1/x", "counters", at(3*ms, 4*ms)), mark(timeline.CarrierUp, "gpu1/x", "netlink", at(6*ms, 7*ms)),
		}}, []string{"timeline: reconfiguration 1: carrier-up of gpu1/x: counters and netlink disagree by 2ms"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // where nothing is late
				before := true
				b := Bench{Late: func() fabric.Lateness {
					if before {
						before = false
						return fabric.Lateness{What: "what was before", By: time.Hour}
					}
					return tt.late
				}}
				finish := b.checkBusy()
				time.Sleep(time.Second)
				finish(&tt.mv)
				if !slices.Equal(tt.mv.Busy, tt.want) {
					t.Errorf("busy: %q, want %q", tt.mv.Busy, tt.want)
				}
			})
		})
	}
}

func TestCheckBusy(t *testing.T) {
	for _, tt := range []struct {
		busy, of int
		want     bool
	}{{0, 0, false}, {0, 10, false}, {1, 10, true}, {1, 99, true}, {1, 100, false}, {2, 199, true}} {
		if err := CheckBusy(tt.busy, tt.of); (err != nil) != tt.want {
			t.Errorf("%d of %d: %v", tt.busy, tt.of, err)
		}
	}
}
