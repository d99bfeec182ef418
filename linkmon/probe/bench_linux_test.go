package probe_test

import (
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/ocslab/ocslab/linkmon/probe"
	"github.com/ocslab/ocslab/timeline"
)

// BenchmarkProbe measures outages whose beginning and end are known to a few µs. An
// op is one outage.
//
//	resume-p50-us, resume-p99-us  from the gate's opening to the end of the interval
//	width-p50-us                  width of the intervals of resumption
//	lost-width-p50-us             and of loss
//	wrong                         intervals that do not hold the truth
//	unseen                        ends of outages without an interval: nothing was sent meanwhile
//	sendgap-p99-us                from one send call to the next
//	cpu-us/packet                 of the process, for sending, receiving and judging
func BenchmarkProbe(b *testing.B) {
	for _, bb := range []struct {
		name string
		pace time.Duration
		spin bool
	}{
		{"pace=1ms", time.Millisecond, false},
		{"pace=100us", 100 * time.Microsecond, false},
		{"pace=100us-spin", 100 * time.Microsecond, true},
		{"pace=20us-spin", 20 * time.Microsecond, true},
	} {
		b.Run(bb.name, func(b *testing.B) {
			w := newWire(b)
			opt := w.options()
			opt.Flows, opt.Pace, opt.Spin = []probe.Flow{there}, bb.pace, bb.spin
			p := start(b, opt)
			judged(b, p, 0, 0)
			rnd := rand.New(rand.NewPCG(1, 2))
			pause := func() { time.Sleep(time.Duration((3 + 4*rnd.Float64()) * 1e6)) }
			cpu, sent := cpuTime(b), p.Flows()[0].Sent
			var truth []timeline.Interval
			b.ResetTimer()
			for range b.N {
				truth = append(truth, w.out.set(b, false))
				pause()
				truth = append(truth, w.out.set(b, true))
				pause()
			}
			b.StopTimer()
			state := p.Flows()[0]
			cpu = cpuTime(b) - cpu
			judged(b, p, 0, truth[len(truth)-1].Latest+int64(opt.Pace))

			var resume, lost, widths []time.Duration
			wrong := 0
			seen := map[int]bool{}
			for _, e := range rest(b, p) {
				if e.Kind == probe.Gap {
					continue
				}
				i := 0 // the gate closes at even, and opens at odd indices
				if e.Kind == probe.Resumed {
					i = 1
				}
				for i < len(truth) && !overlaps(e.Interval, truth[i]) {
					i += 2
				}
				if i >= len(truth) {
					wrong++
					continue
				}
				seen[i] = true
				if e.Kind == probe.Resumed {
					resume = append(resume, time.Duration(e.Latest-truth[i].Earliest))
					widths = append(widths, e.Width())
				} else {
					lost = append(lost, e.Width())
				}
			}
			us := func(xs []time.Duration, q float64) float64 {
				if len(xs) == 0 {
					return 0
				}
				slices.Sort(xs)
				return float64(xs[int(q*float64(len(xs)-1))]) / 1e3
			}
			b.ReportMetric(us(resume, 0.5), "resume-p50-us")
			b.ReportMetric(us(resume, 0.99), "resume-p99-us")
			b.ReportMetric(us(widths, 0.5), "width-p50-us")
			b.ReportMetric(us(lost, 0.5), "lost-width-p50-us")
			b.ReportMetric(float64(wrong), "wrong")
			b.ReportMetric(float64(len(truth)-len(seen)), "unseen")
			b.ReportMetric(float64(state.SendGapP99)/1e3, "sendgap-p99-us")
			b.ReportMetric(float64(cpu)/1e3/float64(state.Sent-sent), "cpu-us/packet")
		})
	}
}

func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
