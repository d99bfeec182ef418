package plan

import (
	"regexp"
	"slices"
	"time"

	"github.com/ocslab/ocslab/internal/strictyaml"
	"github.com/ocslab/ocslab/timeline"
	"github.com/ocslab/ocslab/topology"
)

// Bounds of what a file may ask for.
const (
	mostWarmUps   = 1000
	mostTolerated = 100
	mostSequence  = 1000
	mostName      = 60
	leastPoll     = 10 * time.Microsecond
	mostPoll      = time.Second
	leastPatience = 20 * time.Millisecond
)

var plainName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

const nameRule = "begin with a letter or digit, go on with letters, digits, '.', '_' and '-'"

// file checks all but what follows from the conditions together. It reports whether there
// can be conditions.
func (c *checker) file() bool {
	f := c.f
	if n := f.repeats(nil); n < 1 || n > MostPoints {
		c.value("repeats", "want 1 to %d, found %d", MostPoints, n)
	}
	if f.Nulls != nil && (f.Nulls.Count < 0 || f.Nulls.Count > MostPoints) {
		c.value("nulls.count", "want 0 to %d, found %d", MostPoints, f.Nulls.Count)
	}
	c.parameters()
	c.sequence()
	sound := len(c.errs) == 0
	if !plainName.MatchString(f.Name) || len(f.Name) > mostName {
		c.value("name", "the name %.60q is not allowed: %s, %d at most", f.Name, nameRule, mostName)
	}
	if n := f.warmUps(); n < 0 || n > mostWarmUps {
		c.value("warm_ups", "want 0 to %d laps, found %d", mostWarmUps, n)
	}
	if n := f.Tolerate; n < 0 || n > mostTolerated {
		c.value("tolerate", "want 0 to %d failures in a row, found %d", mostTolerated, n)
	}
	if f.Nulls != nil {
		c.duration("nulls.window", f.Nulls.Window, time.Millisecond, time.Hour)
	}
	c.configurations()
	c.measure()
	c.hooks()
	c.used()
	c.limits()
	c.finally()
	return sound
}

// all returns the parameters of the file, and whether an axis varies each.
func (f *File) all() map[string]bool {
	all := map[string]bool{}
	for name := range f.Parameters {
		all[name] = false
	}
	for i := range f.Axes {
		for _, name := range f.names(i) {
			all[name] = true
		}
	}
	return all
}

// refer checks the references in a text, and notes them in used. Where a text is not of
// one condition, parameters that vary have no value.
func (c *checker) refer(path, text, once string, used map[string]bool) {
	names, err := references(text)
	if err != nil {
		c.value(path, "%w", err)
		return
	}
	all := c.f.all()
	for _, name := range names {
		varies, ok := all[name]
		switch {
		case !ok:
			c.value(path, "${%.60s}: there is no parameter of that name%s: want $${%.60s} if the text itself is meant", name, strictyaml.DidYouMean(name, sorted(all)), name)
		case varies && once != "":
			c.value(path, "${%s}: the parameter varies, and %s", name, once)
		}
		used[name] = true
	}
}

// each calls do for every text that may refer to parameters: its path, and why there is
// not one condition that it is of.
func (f *File) each(do func(path, text, once string)) {
	for i, name := range f.Sequence {
		do(strictyaml.Index("sequence", i), name, "")
	}
	for _, name := range sorted(f.Configurations) {
		if t := f.Configurations[name].Topology; t != nil {
			once := ""
			if f.Finally != nil && f.Finally.Light == name {
				once = "finally leaves one configuration behind"
			}
			path := strictyaml.Key("configurations", name) + ".topology.with"
			for _, arg := range sorted(t.With) {
				do(strictyaml.Key(path, arg), t.With[arg], once)
			}
		}
	}
	for _, l := range f.hookLists() {
		for i, h := range l.hooks {
			for j, word := range h.Run {
				do(strictyaml.Index(strictyaml.Index(l.path, i)+".run", j), word, l.once)
			}
		}
	}
}

// used reports parameters that nothing uses, which are often misspelt.
func (c *checker) used() {
	used := map[string]bool{}
	c.f.each(func(path, text, once string) { c.refer(path, text, once, used) })
	hooks := slices.ContainsFunc(c.f.hookLists(), func(l hookList) bool { return len(l.hooks) > 0 && l.once == "" })
	check := func(path, name string, varies bool) {
		if _, ok := parameter(name); ok || used[name] {
			return
		}
		if hint := strictyaml.DidYouMean(name, parameterNames()); hint != "" {
			c.key(path, "ocslab knows no parameter %q%s: one of your own with such a name must be used somewhere as ${%s}", name, hint, name)
		} else if varies && !hooks {
			c.key(path, "nothing uses the parameter %q: ocslab knows %s; others are for ${%s} and for hooks", name, listed(parameterNames()), name)
		}
	}
	for name := range c.f.Parameters {
		check(strictyaml.Key("parameters", name), name, false)
	}
	for i := range c.f.Axes {
		for _, name := range c.f.names(i) {
			check(strictyaml.Key(c.f.axisPath(i), name), name, true)
		}
	}
}

func (c *checker) configurations() {
	for _, name := range sorted(c.f.Configurations) {
		path := strictyaml.Key("configurations", name)
		conf := c.f.Configurations[name]
		switch {
		case !plainName.MatchString(name):
			c.key(path, "the name %.60q is not allowed: %s", name, nameRule)
		case name == Restore:
			c.key(path, "the name %q is taken: in finally it means the circuits that the run found", name)
		}
		drawn := len(conf.Maps)+len(conf.Links) > 0
		switch {
		case conf.Topology == nil && !drawn:
			c.value(path, "the configuration connects nothing: want maps, links or a topology")
		case conf.Topology != nil && drawn:
			c.value(path, "the configuration has a topology and maps or links: want one or the other")
		case conf.Topology != nil:
			if _, err := topology.Find(conf.Topology.Planner); err != nil {
				c.value(path+".topology.planner", "%w", err)
			}
		}
	}
}

func (c *checker) sequence() {
	switch s := c.f.Sequence; {
	case len(s) < 2:
		c.value("sequence", "a sequence goes from one configuration to another and back: want two or more, found %d", len(s))
	case len(s) > mostSequence:
		c.value("sequence", "want %d configurations at most, found %d", mostSequence, len(s))
	}
	for i, name := range c.f.Sequence {
		if name == "" {
			c.value(strictyaml.Index("sequence", i), "the name of a configuration is empty")
		}
	}
}

func (c *checker) measure() {
	m := c.f.Measure
	for i, s := range m.Stages {
		path := strictyaml.Index("measure.stages", i)
		switch {
		case !s.Valid():
			c.value(path, "%.60q is no stage%s", s, among(string(s), stageWords()[1:]))
		case slices.Contains(m.Stages[:i], s):
			c.value(path, "the stage %s is there twice", s)
		default:
			if why := c.f.unmeasured(s, false); why != "" {
				c.value(path, "%s is not measured: %s", s, why)
			}
		}
	}
	for i, name := range m.Only {
		path := strictyaml.Index("measure.only", i)
		switch {
		case name == "":
			c.value(path, "the name of a host or NIC is empty")
		case slices.Contains(m.Only[:i], name):
			c.value(path, "%.60q is there twice", name)
		}
	}
	_, fixed := c.f.Parameters["pace"]
	switch {
	case c.f.traffic():
	case m.Spin:
		c.value("measure.spin", "packets are paced, and measure.traffic is false: remove one of them")
	case fixed || c.f.all()["pace"]:
		c.value("measure.traffic", "there is a parameter pace, and without traffic nothing to pace: remove one of them")
	case c.f.waits().Until == UntilTraffic && c.f.Wait != nil:
		c.value("wait", "there is no traffic to wait for, as measure.traffic is false: want carrier or settled")
	}
	c.duration("measure.poll", m.Poll, leastPoll, mostPoll)
	if m.Tight && c.there("measure.poll") {
		c.value("measure.poll", "measure.tight reads without pause: remove one of them")
	}
	c.duration("measure.patience", m.Patience, leastPatience, time.Hour)
}

// unmeasured says why nobody measures a stage, or "" if somebody does. Choice counts
// whether the file's own choice of stages has it.
func (f *File) unmeasured(s timeline.Stage, choice bool) string {
	traffic := s == timeline.Traffic || s == timeline.TrafficLost
	switch {
	case choice && len(f.Measure.Stages) > 0 && !slices.Contains(f.Measure.Stages, s):
		return "measure.stages leaves it out"
	case traffic && !f.traffic():
		return "measure.traffic is false"
	case f.waits().after(s):
		return "with wait: " + f.waits().String() + " a reconfiguration ends before it"
	}
	return ""
}

// hookList is one of the lists of hooks of a file.
type hookList struct {
	path, name string
	hooks      []Hook
	once       string // why it is not of one condition
}

func (f *File) hookLists() []hookList {
	const once = "is run once, not for a condition"
	l := []hookList{
		{"hooks.before_run", BeforeRun, f.Hooks.BeforeRun, BeforeRun + " " + once},
		{"hooks.setup", BeforeSetup, f.Hooks.Setup, ""},
		{"hooks.before_point", BeforePoint, f.Hooks.BeforePoint, ""},
		{"hooks.after_point", AfterPoint, f.Hooks.AfterPoint, ""},
		{"hooks.after_run", AfterRun, f.Hooks.AfterRun, AfterRun + " " + once},
	}
	if f.Finally != nil {
		l = append(l, hookList{"finally.hooks", AtEnd, f.Finally.Hooks, AtEnd + " " + once})
	}
	return l
}

func (c *checker) hooks() {
	for _, l := range c.f.hookLists() {
		for i, h := range l.hooks {
			path := strictyaml.Index(l.path, i)
			if len(h.Run) == 0 || h.Run[0] == "" {
				c.value(path+".run", "the hook runs nothing: want the command and its arguments, such as [sh, -c, echo]")
			}
			c.duration(path+".timeout", h.Timeout, time.Millisecond, longest)
		}
	}
}

func (c *checker) limits() {
	f := c.f
	for i, l := range f.Limits {
		path := strictyaml.Index("limits", i)
		if why := f.unmeasured(l.Statistic.Stage, true); l.Statistic.Stage != "" && why != "" {
			c.value(path, "the limit is on %s, which nobody measures: %s", l.Statistic.Stage, why)
		}
		for k := range i {
			if f.Limits[k].Text == l.Text {
				c.value(path, "the limit is there twice")
				break
			}
		}
	}
	s := f.Stop
	if s == nil {
		return
	}
	if of := s.When.Of; of != P50 && of != P95 && of != P99 {
		c.value("stop.when", "%v has no confidence interval that becomes narrower: want p50, p95 or p99 of a stage", s.When)
	} else if why := f.unmeasured(s.When.Stage, true); why != "" {
		c.value("stop.when", "it is about %s, which nobody measures: %s", s.When.Stage, why)
	}
	switch n := f.repeats(nil); {
	case c.there("stop.after") && s.After < 2:
		c.value("stop.after", "a confidence interval takes 2 repeats or more, found %d", s.After)
	case c.there("stop.after") && s.After >= n:
		c.value("stop.after", "all repeats are %d, so it would never stop before", n)
	}
}

func (c *checker) finally() {
	if f := c.f.Finally; f != nil && f.Light == "" {
		c.value("finally.light", "light is empty: write restore, or the name of a configuration")
	}
}
