package runs_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/ocslab/ocslab/experiment/plan"
	"github.com/ocslab/ocslab/experiment/runs"
	"github.com/ocslab/ocslab/timeline"
)

// BenchmarkRecorder is what one mark costs who measures. The goal is 500 ns.
func BenchmarkRecorder(b *testing.B) {
	s := open(b, b.TempDir())
	w := create(b, s, 1<<20)
	m := timeline.Mark{
		Stage: timeline.CarrierUp, Subject: "gpu1/ens1f0", Host: "gpu1", Interval: timeline.Between(1_763_654_400_123, 1_763_654_500_456),
		Source: "counters+netlink", Reconfiguration: 7,
	}
	const each = 1000 // marks of a point
	next := 0
	point := func() {
		next++
		if err := w.BeginPoint(plan.Point{ID: next, First: next}); err != nil {
			b.Fatal(err)
		}
	}
	finish := func() {
		if err := w.FinishPoint(); err != nil {
			b.Fatal(err)
		}
	}
	point()
	for range each { // the buffer has its size when a run has gone on for a while
		w.Mark(m)
	}
	finish()
	point()
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		if n++; n%each == 0 {
			b.StopTimer()
			finish()
			point()
			b.StartTimer()
		}
		w.Mark(m)
	}
}

// BenchmarkFinishPoint is what it costs to keep a point of 96 marks, on the disk of the
// directory for temporary files.
func BenchmarkFinishPoint(b *testing.B) {
	s := open(b, b.TempDir())
	s.SetDisk(runs.OpenDisk)
	w := create(b, s, 1)
	next := 0
	for b.Loop() {
		next++
		if err := w.BeginPoint(plan.Point{ID: next, First: next}); err != nil {
			b.Fatal(err)
		}
		for range 96 {
			w.Mark(timeline.Mark{Stage: timeline.Light, Subject: "rail0/33", Reconfiguration: next})
		}
		w.Sample(runs.Sample{Reconfiguration: next, Subject: "rail0/33"})
		if err := w.FinishPoint(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkLoad10kx16x6 reads 10,000 reconfigurations of 16 NICs and 6 stages, with what was
// expected of them. The goal is 2.5 s and 250 MiB.
func BenchmarkLoad10kx16x6(b *testing.B) {
	const number, nics = 10_000, 16
	s := open(b, b.TempDir())
	p := &plan.Plan{Order: plan.Fixed, Conditions: []plan.Condition{{Number: 1}}}
	for n := 1; n <= number; n += 2 {
		p.Points = append(p.Points, plan.Point{ID: (n + 1) / 2, Condition: 1, Repeat: (n + 1) / 2, First: n})
	}
	w, err := s.Create(b.Context(), runs.Creation{Meta: runs.Meta{Name: "large"}, Plan: p})
	if err != nil {
		b.Fatal(err)
	}
	defer w.Close()
	stages := []timeline.Stage{timeline.Dark, timeline.Light, timeline.CarrierDown, timeline.CarrierUp, timeline.TrafficLost, timeline.Traffic}
	at := int64(1e15)
	for i := range p.Points {
		point := p.Points[len(p.Points)-1-i]
		if err := w.BeginPoint(point); err != nil {
			b.Fatal(err)
		}
		for n := point.First; n < point.First+2; n++ {
			w.Reconfiguration(runs.Reconfiguration{Number: n, Condition: 1, From: "dp", To: "pp"})
			for nic := range nics {
				subject, host := fmt.Sprintf("gpu%d/ens%df0", nic/4, nic), fmt.Sprintf("gpu%d", nic/4)
				for _, stage := range stages {
					at += 12345
					w.Expected(timeline.Expectation{Reconfiguration: n, Stage: stage, Subject: subject})
					w.Mark(timeline.Mark{Stage: stage, Subject: subject, Host: host, Interval: timeline.Between(at, at+100_000), Source: "counters+netlink", Reconfiguration: n})
				}
			}
		}
		if err := w.FinishPoint(); err != nil {
			b.Fatal(err)
		}
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var r *runs.Run
	for b.Loop() {
		if r, err = s.Load(b.Context(), w.ID()); err != nil {
			b.Fatal(err)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if len(r.Marks) != number*nics*len(stages) {
		b.Fatalf("%d marks", len(r.Marks))
	}
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/(1<<20), "MiB-live")
	runtime.KeepAlive(r)
}

// many makes directories of that many finished runs.
func many(b *testing.B, dir string, n int) {
	for i := range n {
		at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(i) * time.Minute)
		id := fmt.Sprintf("%s-night-%04x", at.Format("20060102T150405"), i)
		path := filepath.Join(dir, "runs", id)
		if err := os.Mkdir(path, 0o700); err != nil {
			b.Fatal(err)
		}
		for name, v := range map[string]any{
			"run.json":     runs.Meta{Format: 1, ID: id, Name: fmt.Sprint("night ", i), Created: at, Lab: "opus"},
			"summary.json": runs.Summary{Format: 1, Run: id, State: runs.Done, Ended: at.Add(time.Hour), Points: 30, Planned: 30},
		} {
			data, err := json.Marshal(v)
			if err != nil {
				b.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(path, name), data, 0o600); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// BenchmarkList10k lists 10,000 runs, opening the store and its index included. The goal is
// 100 ms.
func BenchmarkList10k(b *testing.B) {
	dir := b.TempDir()
	open(b, dir)
	many(b, dir, 10_000)
	start := time.Now()
	if _, err := open(b, dir).List(b.Context(), runs.Filter{Limit: 1}); err != nil {
		b.Fatal(err)
	}
	first := time.Since(start)
	for b.Loop() {
		list, err := open(b, dir).List(b.Context(), runs.Filter{})
		if err != nil || len(list) != 10_000 {
			b.Fatal(len(list), err)
		}
	}
	b.ReportMetric(first.Seconds(), "s-to-reindex")
}
