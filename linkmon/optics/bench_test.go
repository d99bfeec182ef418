package optics_test

import (
	"testing"

	"github.com/ocslab/ocslab/linkmon/optics"
	"github.com/ocslab/ocslab/timeline"
)

// BenchmarkSampler_File reports what a sample of an emulated module costs, and how wide it
// is.
func BenchmarkSampler_File(b *testing.B) {
	r, err := optics.OpenFile(write(b, image(b, 500, 400, 300, 200)))
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	s := optics.Sampler{Reader: r}
	var width []timeline.Interval
	for b.Loop() {
		sample, err := s.Sample(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		width = append(width, timeline.Point(int64(sample.Width())))
	}
	b.ReportMetric(float64(timeline.Quantile(width, .5).Mid())/1e3, "width-p50-us")
	b.ReportMetric(float64(timeline.Quantile(width, .99).Mid())/1e3, "width-p99-us")
}
