package pccl

import (
	"math"
	"testing"
)

// The sums of section 6 of the paper over all rounds: 1.2000, 1.0370 and 1.0084 in 2, 3 and 4 dimensions.
func TestSwingStep_sums(t *testing.T) {
	for i, want := range []int{1, -1, 3, -5, 11, -21, 43} {
		if got := swingStep(i); got != want {
			t.Errorf("step %d is %d, want %d", i, got, want)
		}
	}
	for dims, want := range map[int]float64{2: 1.2000, 3: 1.0370, 4: 1.0084} {
		sum := 0.0
		for i := range 60 {
			sum += math.Abs(float64(swingStep(i/dims))) / math.Exp2(float64(i+1))
		}
		if math.Abs(sum-want) > 0.00005 {
			t.Errorf("%d dimensions: %.6f, want %.4f", dims, sum, want)
		}
	}
}
