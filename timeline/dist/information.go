package dist

import (
	"math"
	"slices"
	"time"
)

// The parameters of components, for their errors, are the logarithms of all shares but the
// last by that of the last, the means in spreads, and the logarithms of the spreads.

// errors returns the standard errors from the observed information, which is the change of
// the likelihood's slope around its maximum.
func (c *choice) errors() []ModeError {
	modes := len(c.at)
	l := judge(c.cells, c.at, nil)
	errs := make([]ModeError, modes)
	for k := range errs {
		errs[k].Count = l.sum[k].count
	}
	var free []int // the parameters that are not at a limit
	for i := range 3*modes - 1 {
		if k := i - (2*modes - 1); k >= 0 && c.at[k].spread <= c.lim.floor*(1+1e-9) {
			continue
		}
		if k := i - (modes - 1); k >= 0 && k < modes && c.at[k].mean == 0 {
			continue
		}
		free = append(free, i)
	}
	const step = 1e-3
	info := make([][]float64, len(free))
	for i, p := range free {
		up, down := c.slope(p, step), c.slope(p, -step)
		info[i] = make([]float64, len(free))
		for j, q := range free {
			info[i][j] = (down[q] - up[q]) / (2 * step)
		}
	}
	cov := inverse(info)
	if cov == nil {
		return errs
	}
	share := make([][]float64, modes) // covariance of the logarithms
	for i := range share {
		share[i] = make([]float64, modes)
	}
	for i, p := range free {
		sd := math.Sqrt(max(cov[i][i], 0))
		switch k := p - (modes - 1); {
		case k < 0:
			for j, q := range free {
				if q < modes-1 {
					share[p][q] = cov[i][j]
				}
			}
		case k < modes:
			errs[k].Median = time.Duration(math.Round(sd * c.at[k].spread))
		default:
			errs[k-modes].Spread = time.Duration(math.Round(sd * c.at[k-modes].spread))
		}
	}
	for k := range errs {
		v := 0.0
		for i := range modes {
			for j := range modes {
				di, dj := -c.at[k].share*c.at[i].share, -c.at[k].share*c.at[j].share
				if i == k {
					di += c.at[k].share
				}
				if j == k {
					dj += c.at[k].share
				}
				v += di * share[i][j] * dj
			}
		}
		errs[k].Share = math.Sqrt(max(v, 0))
	}
	return errs
}

// slope is the slope of the log-likelihood by all parameters, one of which is moved by a step.
func (c *choice) slope(parameter int, step float64) []float64 {
	modes := len(c.at)
	at := slices.Clone(c.at)
	switch k := parameter - (modes - 1); {
	case k < 0:
		at[parameter].share *= math.Exp(step)
		total := 0.0
		for _, x := range at {
			total += x.share
		}
		for k := range at {
			at[k].share /= total
		}
	case k < modes:
		at[k].mean += step * at[k].spread
	default:
		at[k-modes].spread *= math.Exp(step)
	}
	l := judge(c.cells, at, nil)
	slopes := make([]float64, 3*modes-1)
	for k := range modes {
		if k < modes-1 {
			slopes[k] = l.sum[k].count - float64(len(c.cells))*at[k].share
		}
		slopes[modes-1+k] = l.sum[k].first / at[k].spread * c.at[k].spread
		slopes[2*modes-1+k] = l.sum[k].second - l.sum[k].count
	}
	return slopes
}

// inverse returns the inverse of a symmetric matrix, or nil if it is not positive definite.
func inverse(a [][]float64) [][]float64 {
	n := len(a)
	low := make([][]float64, n) // Cholesky: a = low * low'
	for i := range n {
		low[i] = make([]float64, n)
		for j := range i + 1 {
			sum := (a[i][j] + a[j][i]) / 2
			for k := range j {
				sum -= low[i][k] * low[j][k]
			}
			switch {
			case i != j:
				low[i][j] = sum / low[j][j]
			case !(sum > 0):
				return nil
			default:
				low[i][i] = math.Sqrt(sum)
			}
		}
	}
	inv := make([][]float64, n)
	for i := range inv {
		inv[i] = make([]float64, n)
	}
	for col := range n {
		y := make([]float64, n)
		for i := range n {
			if i == col {
				y[i] = 1
			}
			for k := range i {
				y[i] -= low[i][k] * y[k]
			}
			y[i] /= low[i][i]
		}
		for i := n - 1; i >= 0; i-- {
			for k := i + 1; k < n; k++ {
				y[i] -= low[k][i] * inv[k][col]
			}
			inv[i][col] = y[i] / low[i][i]
		}
	}
	return inv
}
