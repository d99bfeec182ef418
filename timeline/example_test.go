package timeline_test

import (
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/ocslab/ocslab/timeline"
)

func ExampleInterval() {
	command := timeline.Point(10_000_000)
	carrier := timeline.Between(212_690_000, 213_530_000) // found by polling
	fmt.Println(carrier.Sub(command))
	// Output: 203.11 ms ±0.42
}

func ExampleMerge() {
	counters := timeline.Mark{
		Stage: timeline.CarrierUp, Subject: "gpu1/ens1f0", Host: "gpu1",
		Interval: timeline.Between(203_000_000, 203_134_000), Source: "counters", Reconfiguration: 3,
	}
	kernel := counters
	kernel.Interval, kernel.Source = timeline.Between(203_040_000, 203_041_000), "bpf"

	marks, conflicts := timeline.Merge([]timeline.Mark{counters}, []timeline.Mark{kernel})
	line, err := json.Marshal(marks[0])
	if err != nil {
		panic(err)
	}
	fmt.Println(string(line))
	fmt.Println(len(conflicts), "conflicts")
	// Output:
	// {"kind":"mark","stage":"carrier-up","subject":"gpu1/ens1f0","host":"gpu1","earliest_ns":203040000,"latest_ns":203041000,"source":"bpf+counters","reconfiguration":3}
	// 0 conflicts
}

func ExampleEdges() {
	var samples []timeline.Sample
	for i, dbm := range []float64{-2.1, -2.0, math.Inf(-1), math.Inf(-1), -2.9, -2.3, -2.2, -2.2, -2.2} {
		asked := int64(i) * int64(10*time.Millisecond)
		samples = append(samples, timeline.Sample{Interval: timeline.Between(asked, asked+2_000_000), PowerDBm: dbm})
	}
	dark, light := timeline.Edges(-2.0, samples, timeline.SettleRule{Averaging: 5 * time.Millisecond})
	for _, edge := range []timeline.Edge{dark, light} {
		if at, known := edge.Interval(); known {
			fmt.Println(at)
		} else {
			fmt.Println("unknown:", edge.State())
		}
	}
	// Output:
	// 13.5 ms ±8.5
	// 43.5 ms ±8.5
}

func ExampleSummarize() {
	var marks []timeline.Mark
	for r := 1; r <= 30; r++ {
		start := int64(r) * int64(10*time.Second)
		add := func(stage timeline.Stage, subject string, after time.Duration) {
			at := timeline.Point(start + int64(after)).Widen(100 * time.Microsecond)
			marks = append(marks, timeline.Mark{Stage: stage, Subject: subject, Interval: at, Reconfiguration: r})
		}
		add(timeline.Command, "rail0", 0)
		add(timeline.Light, "rail0/33", 200*time.Millisecond)
		add(timeline.CarrierUp, "gpu1/ens1f0", 6*time.Second)
	}
	for _, s := range timeline.Summarize(marks, timeline.Options{}).Stages {
		fmt.Printf("%-10s %5v  %3.0f %%  (resolves %v)\n", s.Stage, time.Duration(s.Median.NS), 100*s.Share, s.Resolution)
	}
	// Output:
	// light      200ms    3 %  (resolves 400µs)
	// carrier-up    6s   97 %  (resolves 400µs)
}
