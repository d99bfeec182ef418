package crosswiring

import (
	"fmt"
	"math"
	"slices"

	"github.com/ocslab/ocslab/internal/natural"
)

// NewDemand returns a demand for no links. The error matches ErrDemand if there is no such number of pods or groups.
func NewDemand(pods, groups int) (*Demand, error) {
	if pods < 1 || pods > MaxPods || groups < 1 || groups > MaxPorts/(pods*pods) {
		return nil, fmt.Errorf("%w: %d pods and %d groups: want 1 to %d pods, at least a group, and no more than %d entries",
			ErrDemand, pods, groups, MaxPods, MaxPorts)
	}
	return newDemand(pods, groups), nil
}

func newDemand(pods, groups int) *Demand {
	return &Demand{pods: pods, groups: groups, links: make([]int32, groups*pods*pods)}
}

// Pods returns how many pods it is for.
func (d *Demand) Pods() int { return d.pods }

// Groups returns how many groups it is for.
func (d *Demand) Groups() int { return d.groups }

// group returns the entries of a group, by pod and pod; it is no copy.
func (d *Demand) group(h int) []int32 {
	n := d.pods * d.pods
	return d.links[h*n : (h+1)*n : (h+1)*n]
}

// At returns how many links pods i and j shall have in a group; 0 beyond the pods and groups.
func (d *Demand) At(group, i, j int) int {
	if group < 0 || group >= d.groups || i < 0 || i >= d.pods || j < 0 || j >= d.pods {
		return 0
	}
	return int(d.group(group)[i*d.pods+j])
}

// Degree returns how many links a pod shall have in a group; 0 beyond the pods and groups.
func (d *Demand) Degree(group, pod int) (n int) {
	for j := range d.pods {
		n += d.At(group, pod, j)
	}
	return n
}

// Total returns how many links there shall be.
func (d *Demand) Total() (n int) {
	for _, x := range d.links {
		n += int(x)
	}
	return n / 2
}

// Equal tells whether two demands are the same.
func (d *Demand) Equal(o *Demand) bool {
	return d.pods == o.pods && d.groups == o.groups && slices.Equal(d.links, o.links)
}

// With returns the demand with more links: one for each of links, which may be named several times. The error matches
// ErrDemand and names a link that cannot be: within a pod, or beyond the pods or groups.
func (d *Demand) With(links ...Link) (*Demand, error) { return d.plus(1, links) }

// Without returns the demand with fewer links: one for each of links. The error matches ErrDemand and names a link that
// is not there.
func (d *Demand) Without(links ...Link) (*Demand, error) { return d.plus(-1, links) }

func (d *Demand) plus(n int32, links []Link) (*Demand, error) {
	o := &Demand{pods: d.pods, groups: d.groups, podLevel: d.podLevel, links: slices.Clone(d.links)}
	for _, l := range links {
		if l.Group < 0 || l.Group >= d.groups || min(l.A, l.B) < 0 || max(l.A, l.B) >= d.pods || l.A == l.B {
			return nil, fmt.Errorf("%w: there is no link of %v: want two pods of %d and a group of %d", ErrDemand, l, d.pods, d.groups)
		}
		if err := o.add(l, n); err != nil {
			return nil, err
		}
	}
	return o, nil
}

func (d *Demand) add(l Link, n int32) error {
	there, back := &d.group(l.Group)[l.A*d.pods+l.B], &d.group(l.Group)[l.B*d.pods+l.A]
	*there += n
	*back += n
	switch {
	case n > 0 && (*there == math.MinInt32 || *back == math.MinInt32):
		return fmt.Errorf("%w: %v have more links than 31 bits hold", ErrDemand, l)
	case n < 0 && (*there < 0 || *back < 0):
		return fmt.Errorf("%w: %v have no link to take away", ErrDemand, l)
	}
	return nil
}

// DemandOf returns the demand of matrices, one for each group: how many links a pod, by row, has with another. A single one
// is pod-level. Numbers are taken as they are; Check says what is wrong with them. The error matches ErrDemand if the
// matrices are not all square and of one size, or a number is beyond 31 bits.
func DemandOf(matrices ...[][]int) (*Demand, error) {
	if len(matrices) == 0 {
		return nil, fmt.Errorf("%w: there is no matrix", ErrDemand)
	}
	d, err := NewDemand(len(matrices[0]), len(matrices))
	if err != nil {
		return nil, err
	}
	d.podLevel = len(matrices) == 1
	for h, rows := range matrices {
		if len(rows) != d.pods {
			return nil, fmt.Errorf("%w: the matrix of group %d has %s, that of group 0 %d",
				ErrDemand, h, natural.Count(len(rows), "row"), d.pods)
		}
		for i, row := range rows {
			if len(row) != d.pods {
				return nil, fmt.Errorf("%w: row %d of group %d has %s: want %d, as many as rows",
					ErrDemand, i, h, natural.Count(len(row), "number"), d.pods)
			}
			for j, n := range row {
				if int(int32(n)) != n {
					return nil, fmt.Errorf("%w: pods %d and %d in group %d: %d is beyond 31 bits", ErrDemand, i, j, h, n)
				}
				d.group(h)[i*d.pods+j] = int32(n)
			}
		}
	}
	return d, nil
}

// PodLevel tells whether it says how many links two pods shall have in all groups together, and not in which; it is
// for one group then. See Fit.
func (d *Demand) PodLevel() bool { return d.podLevel }

// Fit returns the demand for all pods and groups of a fabric: a pod-level one is spread over the groups by
// SplitOverGroups, and what it does not name has no links. The error matches ErrFabric, or ErrDemand if it is for more
// pods or groups.
func (d *Demand) Fit(f Fabric) (*Demand, error) {
	if err := f.Check(); err != nil {
		return nil, err
	}
	if d.pods > f.Pods || d.groups > f.Groups {
		return nil, d.misfit(f)
	}
	o := newDemand(f.Pods, d.groups)
	if !d.podLevel {
		o = newDemand(f.Pods, f.Groups)
	}
	for h := range d.groups {
		for i := range d.pods {
			copy(o.group(h)[i*f.Pods:], d.group(h)[i*d.pods:(i+1)*d.pods])
		}
	}
	if d.podLevel && f.Groups > 1 {
		return SplitOverGroups(f, o)
	}
	return o, nil
}

func (d *Demand) misfit(f Fabric) error {
	return fmt.Errorf("%w: it is for %s and %s, the fabric has %d and %d: want those", ErrDemand,
		natural.Count(d.pods, "pod"), natural.Count(d.groups, "group"), f.Pods, f.Groups)
}

// Check returns why no wiring satisfies the demand on a fabric: numbers of pods or groups that are not its own, links
// within a pod, numbers that differ by direction or are below 0, or a spine with more links than ports. The error
// matches ErrFabric, or ErrDemand and names the first few offenders of each kind.
func (d *Demand) Check(f Fabric) error {
	if err := d.checkShape(f); err != nil {
		return err
	}
	return d.check(f.SpinePorts)
}

// checkShape is Check of the fabric and the numbers of pods and groups alone.
func (d *Demand) checkShape(f Fabric) error {
	if err := f.Check(); err != nil {
		return err
	}
	if d.pods != f.Pods || d.groups != f.Groups {
		return d.misfit(f)
	}
	return nil
}

// check is Check for pods with so many ports in each group.
func (d *Demand) check(ports int) error {
	var wrong offenders
	for h := range d.groups {
		if !d.sound(h, ports) {
			d.offend(h, ports, &wrong)
		}
	}
	return wrong.err()
}

// sound tells whether nothing is wrong in a group: quickly, since nearly always it is so.
func (d *Demand) sound(h, ports int) bool {
	const block = 32 // pods: what is read down the columns stays in the cache
	n, c := d.pods, d.group(h)
	for i := range n {
		sum, least := 0, int32(0)
		for _, x := range c[i*n : (i+1)*n] {
			sum += int(x)
			least = min(least, x)
		}
		if least < 0 || sum > ports || c[i*n+i] != 0 {
			return false
		}
	}
	for top := 0; top < n; top += block {
		for left := top; left < n; left += block {
			for i := top; i < min(top+block, n); i++ {
				for j := max(left, i+1); j < min(left+block, n); j++ {
					if c[i*n+j] != c[j*n+i] {
						return false
					}
				}
			}
		}
	}
	return true
}

// offend adds all that is wrong in a group.
func (d *Demand) offend(h, ports int, wrong *offenders) {
	for i := range d.pods {
		for j := i; j < d.pods; j++ {
			there, back := d.At(h, i, j), d.At(h, j, i)
			switch {
			case i == j && there != 0:
				wrong.add("within", "pod %d in group %d has %s with itself: want 0", i, h, natural.Count(there, "link"))
			case there != back:
				wrong.add("asymmetric", "group %d has %d from pod %d to %d and %d back: want as many", h, there, i, j, back)
			case there < 0:
				wrong.add("negative", "pods %d and %d in group %d have %s: want 0 or more", i, j, h, natural.Count(there, "link"))
			}
		}
		if sum := d.Degree(h, i); sum > ports {
			wrong.add("degree", "pod %d in group %d has %s on %s", i, h, natural.Count(sum, "link"), natural.Count(ports, "port"))
		}
	}
}

// offenders collects what is wrong with a demand, the first few of each kind.
type offenders struct {
	shown []string
	count map[string]int
	total int
}

func (o *offenders) add(kind, format string, args ...any) {
	if o.count == nil {
		o.count = map[string]int{}
	}
	o.total++
	if o.count[kind]++; o.count[kind] <= named {
		o.shown = append(o.shown, fmt.Sprintf(format, args...))
	}
}

func (o *offenders) err() error {
	if o.total == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s", ErrDemand, list(o.shown, o.total))
}
