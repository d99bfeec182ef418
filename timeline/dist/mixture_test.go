package dist_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/ocslab/ocslab/timeline/dist"
)

const ms = time.Millisecond

func TestMixture(t *testing.T) {
	m := dist.Mixture{{Share: 3, Median: 200 * ms, Spread: 3 * ms}, {Share: 1, Median: 500 * ms}}
	if err := m.Check(); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		d    time.Duration
		want float64
	}{
		{0, 0}, {200 * ms, 0.375}, {206 * ms, 0.75 * 0.977249868}, {499 * ms, 0.75}, {500 * ms, 1}, {time.Hour, 1},
	} {
		if got := m.CDF(tc.d); math.Abs(got-tc.want) > 1e-9 {
			t.Errorf("CDF(%v) = %v, want %v", tc.d, got, tc.want)
		}
	}
	for q, want := range map[float64]time.Duration{0.375: 200 * ms, 0.8: 500 * ms, 0.75 * 0.977249868: 206 * ms} {
		if got := m.Quantile(q); (got - want).Abs() > time.Microsecond {
			t.Errorf("Quantile(%v) = %v, want %v", q, got, want)
		}
	}

	r := rand.New(rand.NewPCG(1, 2))
	slow, sum := 0, 0.0
	for range 10_000 {
		if d := m.Draw(r); d == 500*ms {
			slow++
		} else {
			sum += float64(d - 200*ms)
		}
	}
	if slow < 2400 || slow > 2600 || math.Abs(sum/7500) > float64(ms)/10 {
		t.Errorf("%d of 10000 are slow, and the others are %v from the median on average", slow, time.Duration(sum/7500))
	}
}

func TestMixture_Check(t *testing.T) {
	for _, m := range []dist.Mixture{
		nil, {}, {{Median: ms}}, {{Share: -1, Median: ms}}, {{Share: math.NaN(), Median: ms}}, {{Share: math.Inf(1), Median: ms}},
		{{Share: 1, Median: -1}}, {{Share: 1, Median: 1, Spread: -1}},
		{{Share: 1e308, Median: ms}, {Share: 1e308, Median: ms}},
		{{Share: 1, Median: math.MaxInt64/128 + 1}}, {{Share: 1, Spread: math.MaxInt64/128 + 1}},
	} {
		if m.Check() == nil {
			t.Errorf("%+v is no mixture", m)
		}
	}
	// The longest there are do not overflow.
	longest := dist.Mixture{{Share: 1, Median: math.MaxInt64 / 128, Spread: math.MaxInt64 / 128}, {Share: 1e-300, Spread: math.MaxInt64 / 128}}
	if err := longest.Check(); err != nil {
		t.Error(err)
	}
	if got := longest.Quantile(0.5); (got - math.MaxInt64/128).Abs() > time.Minute {
		t.Errorf("median %v, want %v", got, time.Duration(math.MaxInt64/128))
	}
	if d := (dist.Mixture{{Share: 1, Median: ms}}).Draw(nil); d != ms {
		t.Errorf("drawn %v of nothing but %v", d, ms)
	}
}
