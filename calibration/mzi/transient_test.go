package mzi

import (
	"testing"
	"time"
)

// Ensure that times are taken from the samples that there are: the light comes back at
// sample 2, is at nine tenths at 4, and is clean at 5 for good, after it was once at 3.
func TestTransient_times(t *testing.T) {
	t.Parallel()
	const none = unseen
	tr := transient{step: time.Microsecond, power: [3][]float64{
		{none, none, -12, -4, -1.4, -1, none, -1},
		{none, none, -5, -40, -20, -27, none, -30},
		{none, none, -45, -45, -45, -45, none, -45},
	}}
	const whole = 90 * time.Microsecond
	for _, test := range []struct {
		name         string
		output       int
		wanted       float64
		rise, settle time.Duration
	}{
		{"clean at the end", 0, 25, time.Microsecond, 5 * time.Microsecond},
		{"less is wanted", 0, 18, time.Microsecond, 3 * time.Microsecond},
		{"never clean", 0, 40, time.Microsecond, whole},
		{"the dark one", 1, 25, 0, whole},
	} {
		rise, settle := tr.times(test.output, test.wanted, whole)
		if rise != test.rise || settle != test.settle {
			t.Errorf("%s: rise %v, settled after %v, want %v and %v", test.name, rise, settle, test.rise, test.settle)
		}
	}
	if _, settle := (transient{step: time.Microsecond}).times(0, 25, whole); settle != whole {
		t.Errorf("without samples it settled after %v, want the whole %v", settle, whole)
	}
}
