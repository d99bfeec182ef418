package plan

import (
	"maps"
	"slices"
	"time"

	"github.com/ocslab/ocslab/internal/strictyaml"
)

// parameters checks names and values of parameters, fixed and varied.
func (c *checker) parameters() {
	f := c.f
	first := map[string]string{}       // by name: the path where it was seen first
	environment := map[string]string{} // by environment variable: the parameter
	name := func(path, param string) {
		switch {
		case !parameterName.MatchString(param) || len(param) > mostName:
			c.key(path, "the name %.60q is not allowed for a parameter: begin with a letter, go on with letters, digits, '.', '_' and '-'", param)
			return
		case first[param] != "":
			c.key(path, "the parameter %q has its values already at %s: want them in one place", param, first[param])
			return
		}
		first[param] = path
		if other, taken := environment[Environment(param)]; taken {
			c.key(path, "the parameter %q and %q would be the same environment variable, %s: want another name", param, other, Environment(param))
		}
		environment[Environment(param)] = param
	}
	value := func(path, param, text string) {
		if p, ok := parameter(param); ok {
			if err := p.read(new(Settings), text); err != nil {
				c.value(path, "%w", err)
			}
		}
	}
	for _, p := range written(f, "parameters", f.Parameters) {
		path := strictyaml.Key("parameters", p)
		name(path, p)
		value(path, p, f.Parameters[p])
	}
	for i, a := range f.Axes {
		path := strictyaml.Index("axes", i)
		kinds := 0
		for _, kind := range []struct {
			key string
			has bool
		}{{"grid", a.Grid != nil}, {"zip", a.Zip != nil}, {"list", a.List != nil}, {"random", a.Random != nil}} {
			if kind.has || c.there(path+"."+kind.key) {
				kinds++
			}
		}
		switch {
		case kinds != 1:
			c.value(path, "an axis is one of grid, zip, list and random, and this has %d of them", kinds)
			continue
		case a.Random != nil:
			c.random(path+".random", a.Random, name, value)
		case len(a.List) > 0:
			c.list(path+".list", a.List, name, value)
		case len(a.Grid) > 0:
			c.lists(path+".grid", a.Grid, name, value)
			c.twice(path+".grid", a.Grid)
		case len(a.Zip) > 0:
			c.lists(path+".zip", a.Zip, name, value)
			c.zip(path+".zip", a.Zip)
		default:
			c.value(path, "the axis has no values: name a parameter and its values, such as grid: {switching: [10ms, 25ms]}")
		}
	}
}

// lists checks values of parameters.
func (c *checker) lists(path string, all map[string][]string, name func(path, param string), value func(path, param, text string)) {
	for _, p := range written(c.f, path, all) {
		at := strictyaml.Key(path, p)
		name(at, p)
		if len(all[p]) == 0 {
			c.value(at, "the axis has no values of %s: want at least one", p)
		}
		for j, v := range all[p] {
			value(strictyaml.Index(at, j), p, v)
		}
	}
}

// twice reports values that are in a list twice.
func (c *checker) twice(path string, all map[string][]string) {
	for _, p := range written(c.f, path, all) {
		seen := map[string]bool{}
		for j, v := range all[p] {
			if seen[v] {
				c.value(strictyaml.Index(strictyaml.Key(path, p), j), "the value %.60q is there twice", v)
			}
			seen[v] = true
		}
	}
}

// zip checks that lists are equally long, and that no row is there twice.
func (c *checker) zip(path string, all map[string][]string) {
	names := written(c.f, path, all)
	n := len(all[names[0]])
	for _, p := range names[1:] {
		if len(all[p]) != n {
			c.value(strictyaml.Key(path, p), "a zip takes the first value of each list, then the second: %s has %d, and %s has %d", p, len(all[p]), names[0], n)
			return
		}
	}
	for j := range n {
		for k := range j {
			if !slices.ContainsFunc(names, func(p string) bool { return all[p][j] != all[p][k] }) {
				c.value(strictyaml.Index(strictyaml.Key(path, names[0]), j), "row %d is the same as row %d", j+1, k+1)
				break
			}
		}
	}
}

// list checks rows that are written out.
func (c *checker) list(path string, rows []map[string]string, name func(path, param string), value func(path, param, text string)) {
	for j, r := range rows {
		at := strictyaml.Index(path, j)
		if len(r) == 0 {
			c.value(at, "the entry has no parameters")
			continue
		}
		for _, p := range written(c.f, at, r) {
			if j == 0 {
				name(strictyaml.Key(at, p), p)
			} else if _, ok := rows[0][p]; !ok {
				c.key(strictyaml.Key(at, p), "the first entry has no parameter %.60q%s: all entries have the same", p, strictyaml.DidYouMean(p, sorted(rows[0])))
			}
			value(strictyaml.Key(at, p), p, r[p])
		}
		for _, p := range sorted(rows[0]) {
			if _, ok := r[p]; !ok {
				c.value(at, "the parameter %q is missing: all entries have the same", p)
			}
		}
		for k := range j {
			if maps.Equal(r, rows[k]) {
				c.value(at, "the entry is the same as entry %d", k+1)
				break
			}
		}
	}
}

// random checks an axis that is drawn.
func (c *checker) random(path string, a *RandomAxis, name func(path, param string), value func(path, param, text string)) {
	if a.Points < 1 || a.Points > MostConditions {
		c.value(path+".points", "want 1 to %d, found %d", MostConditions, a.Points)
	}
	if len(a.Values) == 0 {
		c.value(path+".values", "the axis has no values: name a parameter and what to draw from, such as {switching: [0ms..1s]}")
	}
	c.lists(path+".values", a.Values, name, func(at, p, text string) {
		s, err := parseSpread(text)
		k, ok := parameter(p)
		switch {
		case err != nil:
			c.value(at, "%w", err)
		case s.step == 0:
			value(at, p, text)
		case ok && !(k.duration && s.time):
			value(at, p, text) // says what it wants
		case s.time:
			value(at, p, time.Duration(s.low).String())
			value(at, p, time.Duration(s.high).String())
		}
	})
	c.twice(path+".values", a.Values)
}
