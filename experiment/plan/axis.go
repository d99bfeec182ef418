package plan

import (
	"hash/fnv"
	"maps"
	"math"
	"math/bits"
	"math/rand/v2"

	"github.com/ocslab/ocslab/internal/strictyaml"
)

// stream returns random numbers for one purpose, so that more of them drawn for one do not
// change those of another. They depend on no name that somebody gave.
func stream(seed uint64, purpose string) *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(purpose))
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}

// row is one choice of the parameters of an axis.
type row = map[string]string

// rows returns the choices of axis number i, checked, or at most limit of them.
func (f *File) rows(i int, seed uint64) ([]row, error) {
	a := f.Axes[i]
	switch {
	case len(a.Grid) > 0:
		all := []row{{}}
		for _, name := range f.names(i) {
			var more []row
			for _, r := range all {
				for _, v := range a.Grid[name] {
					n := maps.Clone(r)
					n[name] = v
					more = append(more, n)
				}
			}
			all = more
		}
		return all, nil
	case len(a.Zip) > 0:
		var all []row
		for j := range a.count() {
			r := row{}
			for name, values := range a.Zip {
				r[name] = values[j]
			}
			all = append(all, r)
		}
		return all, nil
	case len(a.List) > 0:
		return a.List, nil
	}
	return f.draw(i, seed)
}

// count is how many choices a checked axis has, at most [math.MaxInt].
func (a Axis) count() int {
	switch {
	case len(a.Grid) > 0:
		n := 1
		for _, values := range a.Grid {
			n = times(n, len(values))
		}
		return n
	case len(a.Zip) > 0:
		for _, values := range a.Zip {
			return len(values)
		}
	case len(a.List) > 0:
		return len(a.List)
	}
	return a.Random.Points
}

// times is a*b of numbers from 0, or [math.MaxInt].
func times(a, b int) int {
	high, low := bits.Mul64(uint64(a), uint64(b))
	if high > 0 || low > math.MaxInt {
		return math.MaxInt
	}
	return int(low)
}

// axisPath returns where the parameters of axis number i are named.
func (f *File) axisPath(i int) string {
	path := strictyaml.Index("axes", i)
	switch a := f.Axes[i]; {
	case len(a.Grid) > 0:
		return path + ".grid"
	case len(a.Zip) > 0:
		return path + ".zip"
	case len(a.List) > 0:
		return strictyaml.Index(path+".list", 0)
	}
	return path + ".random.values"
}

// names returns the parameters of an axis, as written.
func (f *File) names(i int) []string {
	a, path := f.Axes[i], f.axisPath(i)
	switch {
	case len(a.Grid) > 0:
		return written(f, path, a.Grid)
	case len(a.Zip) > 0:
		return written(f, path, a.Zip)
	case len(a.List) > 0:
		return written(f, path, a.List[0])
	case a.Random != nil:
		return written(f, path, a.Random.Values)
	}
	return nil
}
