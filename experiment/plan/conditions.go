package plan

import (
	"maps"
	"slices"
	"strings"

	"github.com/ocslab/ocslab/internal/strictyaml"
)

// lay makes the conditions of the file, with parameters and sequence only, and reports
// what is wrong with them. Early are checks without a lab, when random axes are not yet
// drawn for good.
func (c *checker) lay(seed uint64, repeats int, early bool) []Condition {
	f := c.f
	n := 1
	for _, a := range f.Axes {
		n = times(n, a.count())
	}
	switch points := times(n, repeats); {
	case n > MostConditions:
		c.value("axes", "%d conditions are more than %d: want fewer values", n, MostConditions)
		return nil
	case points > MostPoints:
		c.value("axes", "%d conditions of %d repeats are more than %d points: want fewer values, or repeats", n, repeats, MostPoints)
		return nil
	case points+f.nulls(points, n) > MostPoints:
		c.value("nulls", "%d points and %d null toggles are more than %d: want fewer", points, f.nulls(points, n), MostPoints)
		return nil
	}
	all := []row{maps.Clone(f.Parameters)}
	if all[0] == nil {
		all[0] = row{}
	}
	for i := range f.Axes {
		rows, err := f.rows(i, seed)
		if err != nil {
			c.value(strictyaml.Index("axes", i)+".random", "%w", err)
			return nil
		}
		more := make([]row, 0, len(all)*len(rows))
		for _, r := range all {
			for _, s := range rows {
				n := maps.Clone(r)
				maps.Copy(n, s)
				more = append(more, n)
			}
		}
		all = more
	}
	conditions := make([]Condition, len(all))
	for i, r := range all {
		s, err := settings(r)
		if err != nil { // drawn values are checked by their ends
			c.value("axes", "%w", err)
			return nil
		}
		conditions[i] = Condition{Number: i + 1, Parameters: r, Settings: s}
		for _, name := range f.Sequence {
			conditions[i].Sequence = append(conditions[i].Sequence, substitute(name, r))
		}
	}
	varied := f.varied(conditions)
	for i := range conditions {
		conditions[i].Label = label(varied, conditions[i].Parameters)
	}
	c.neighbours(conditions)
	c.where(conditions, early)
	return conditions
}

// varied returns the parameters that differ between conditions, in the order of the axes.
func (f *File) varied(conditions []Condition) []string {
	varied := []string{}
	for i := range f.Axes {
		for _, name := range f.names(i) {
			if slices.ContainsFunc(conditions, func(c Condition) bool { return c.Parameters[name] != conditions[0].Parameters[name] }) {
				varied = append(varied, name)
			}
		}
	}
	return varied
}

func label(varied []string, params map[string]string) string {
	words := make([]string, len(varied))
	for i, name := range varied {
		words[i] = name + "=" + params[name]
	}
	return strings.Join(words, " ")
}

// neighbours reports conditions in which a configuration follows itself.
func (c *checker) neighbours(conditions []Condition) {
	for _, cond := range conditions {
		n := len(cond.Sequence)
		for i, name := range cond.Sequence {
			next := (i + 1) % n
			if name != cond.Sequence[next] || n == 2 && i == 1 {
				continue
			}
			where := ""
			if cond.Label != "" {
				where = " in the condition " + cond.Label
			}
			c.value(strictyaml.Index("sequence", next), "%q follows itself%s, also around from the last to the first: nothing would be reconfigured", name, where)
			return // the others have it as well, or the same reason
		}
	}
}

// where reports limits on conditions that there are not.
func (c *checker) where(conditions []Condition, early bool) {
	random := map[string]bool{}
	for i, a := range c.f.Axes {
		if a.Random != nil {
			for _, name := range c.f.names(i) {
				random[name] = early
			}
		}
	}
	for i, l := range c.f.Limits {
		path := strictyaml.Index("limits", i)
		if len(l.Where) == 0 || slices.ContainsFunc(conditions, l.About) {
			continue
		}
		single := false // a parameter or value is wrong by itself
		for _, name := range sorted(l.Where) {
			var values []string
			for _, cond := range conditions {
				if v, ok := cond.Parameters[name]; ok && !slices.Contains(values, v) && len(values) < 100 {
					values = append(values, v)
				}
			}
			switch {
			case len(values) == 0:
				names := sorted(conditions[0].Parameters)
				c.value(path, "no condition has the parameter %.60q%s", name, orElse(strictyaml.DidYouMean(name, names), ": there are ", names))
				single = true
			case random[name]:
				single = true
			case !slices.Contains(values, l.Where[name]):
				c.value(path, "no condition has %s=%.60s%s", name, l.Where[name], orElse(strictyaml.DidYouMean(l.Where[name], values), ": there is ", values))
				single = true
			}
		}
		if !single {
			c.value(path, "no condition has all of what its where asks for")
		}
	}
}

// orElse is the hint, or what there is.
func orElse(hint, there string, names []string) string {
	switch {
	case hint != "":
		return hint
	case len(names) == 0:
		return ": there are none"
	}
	return there + listed(names)
}
