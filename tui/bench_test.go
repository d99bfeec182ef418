package tui

import (
	"slices"
	"testing"
	"time"

	"github.com/ocslab/ocslab/tui/keymap"
	"github.com/ocslab/ocslab/tui/live"
	"github.com/ocslab/ocslab/tui/tuitest"
)

// storm returns states of a lab with 384 circuits, 64 NICs and 2000 events a second, each of
// which follows the one before.
func storm() []*live.State {
	list := []*live.State{tuitest.Large(384, 64)}
	for i := range 20 {
		list = append(list, tuitest.Next(list[i], i))
	}
	return list
}

// spread reports the median and the 99th percentile of what each call took.
func spread(b *testing.B, took []time.Duration) {
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
}

var screens = []keymap.Action{keymap.Screen1, keymap.Screen2, keymap.Screen3, keymap.Screen4, keymap.Screen5, keymap.Screen6}

// BenchmarkFrame is from a new state to the text for the terminal.
func BenchmarkFrame(b *testing.B) {
	states := storm()
	for _, name := range screens {
		b.Run(string(name), func(b *testing.B) {
			u := newUI(b, states[0], 200, 60, Options{Screen: string(name)})
			b.ReportAllocs()
			var took []time.Duration
			for i := 0; b.Loop(); i++ {
				u.lab.Set(states[i%len(states)])
				began := time.Now()
				u.m.Update(stateMsg{})
				if u.m.View() == "" {
					b.Fatal("no frame")
				}
				took = append(took, time.Since(began))
			}
			spread(b, took)
		})
	}
}

// BenchmarkKey is from a key to the text that shows what it did.
func BenchmarkKey(b *testing.B) {
	states := storm()
	for _, name := range screens {
		b.Run(string(name), func(b *testing.B) {
			u := newUI(b, states[0], 200, 60, Options{Screen: string(name)})
			b.ReportAllocs()
			var took []time.Duration
			for i := 0; b.Loop(); i++ {
				began := time.Now()
				u.m.Update(key([]string{"down", "up"}[i%2]))
				if u.m.View() == "" {
					b.Fatal("no frame")
				}
				took = append(took, time.Since(began))
			}
			spread(b, took)
		})
	}
}
