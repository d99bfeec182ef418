package infinitehbd_test

import (
	"fmt"
	"testing"

	"github.com/ocslab/ocslab/topology/infinitehbd"
)

// benchLine returns 1,024 nodes of 8 GPUs that reach 3 others, with 51 of them dead, and what runs before they die.
func benchLine(b *testing.B, m int) (infinitehbd.Line, []node, *infinitehbd.Plan) {
	b.Helper()
	l := infinitehbd.Line{Layout: newLayout(b, 8, 1, 2, 3)}
	var err error
	if l.Order, err = infinitehbd.Deploy(1024, 4); err != nil {
		b.Fatal(err)
	}
	dead := shuffled(l.Order)[:51]
	groups, err := infinitehbd.SpreadIdle(l, m, dead[1:])
	if err != nil {
		b.Fatal(err)
	}
	return l, dead, mustBuild(b, l, groups, dead[1:]...)
}

func BenchmarkBuild(b *testing.B) {
	l, dead, running := benchLine(b, 4)
	groups := running.Groups()
	for b.Loop() {
		mustBuild(b, l, groups, dead[1:]...)
	}
}

func BenchmarkRings(b *testing.B) {
	_, _, running := benchLine(b, 4)
	for b.Loop() {
		if _, err := running.Rings(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRepair(b *testing.B) {
	for _, m := range []int{2, 4, 16} {
		for _, overlap := range []int{1, 2} {
			b.Run(fmt.Sprintf("m=%d/overlap=%d", m, overlap), func(b *testing.B) {
				_, dead, running := benchLine(b, m)
				for b.Loop() {
					r, err := infinitehbd.Repair(running, dead, infinitehbd.RepairOptions{Overlap: overlap})
					if err != nil {
						b.Fatal(err)
					}
					b.ReportMetric(float64(len(r.Switchings)), "switched")
				}
			})
		}
	}
}
