package dist

import (
	"math"

	"github.com/ocslab/ocslab/timeline"
)

// cell is where a duration lies, in nanoseconds. A closed interval is half a nanosecond
// wider on both sides, so that a point has a probability, too, and not only a density; hi
// of one that has not come is +Inf.
type cell struct{ lo, hi float64 }

func cellOf(i timeline.Interval) cell {
	if i.Latest == timeline.Never {
		return cell{float64(i.Earliest) + 0.5, math.Inf(1)}
	}
	return cell{float64(i.Earliest) - 0.5, float64(i.Latest) + 0.5}
}

func (c cell) mid() float64 { return c.lo + (c.hi-c.lo)/2 }

var logRootTwoPi = math.Log(2*math.Pi) / 2

// logUpper is the logarithm of the standard normal probability of more than x.
func logUpper(x float64) float64 {
	switch {
	case math.IsInf(x, 1):
		return math.Inf(-1)
	case x < 30:
		return math.Log(math.Erfc(x/math.Sqrt2) / 2)
	}
	return -x*x/2 - logRootTwoPi - math.Log(x) + math.Log1p(-1/(x*x)) // good to 3/x^4
}

// within returns the logarithm of the probability that a standard normal value lies between
// a and b, b above a, and its mean and mean square if it does.
func within(a, b float64) (logP, mean, square float64) {
	if b <= 0 || a < 0 && -a > b {
		logP, mean, square = within(-b, -a) // the side where nothing cancels
		return logP, -mean, square
	}
	width, mid := b-a, a+(b-a)/2
	if width*max(1, math.Abs(mid)) < 1e-3 { // the density is as good as straight
		part := width * width / 12
		mean = mid * (1 - part)
		return -mid*mid/2 - logRootTwoPi + math.Log(width) + math.Log1p((mid*mid-1)*part/2), mean, mean*mean + part
	}
	if a > 1e4 { // so far out that all of it is at the near end
		mean = min(a+1/a, b)
		return logUpper(a), mean, mean * mean
	}
	if a >= 0 {
		logP = logUpper(a)
		if less := logUpper(b) - logP; less > -700 {
			logP += math.Log(-math.Expm1(less))
		}
	} else {
		logP = math.Log((math.Erf(b/math.Sqrt2) - math.Erf(a/math.Sqrt2)) / 2)
	}
	density := func(x float64) (d, dx float64) {
		if math.IsInf(x, 0) {
			return 0, 0
		}
		d = math.Exp(-x*x/2 - logRootTwoPi - logP)
		return d, d * x
	}
	da, daa := density(a)
	db, dbb := density(b)
	mean = min(max(da-db, a), b)
	return logP, mean, max(1+daa-dbb, mean*mean)
}
