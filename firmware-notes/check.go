package firmwarenotes

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ocslab/ocslab/internal/strictyaml"
)

// checker collects what is wrong with the meaning of a header.
type checker struct {
	file string
	at   places
	errs strictyaml.Errors

	known     *Note // what has been made of the note so far
	unsourced map[*strictyaml.Error]bool
}

// new returns what is wrong with the meaning of the header for other reasons than that a
// value, of which broken tells, could not be read.
func (c *checker) new(broken, errs strictyaml.Errors) strictyaml.Errors {
	// A source may hide behind a key that is misspelt.
	hides, misspelt := set{}, set{}
	lost, around, lostSource, aroundSource := set{}, set{}, set{}, set{}
	for _, e := range broken {
		source := strings.HasSuffix(e.Path, ".source") || strings.HasSuffix(e.Path, ".confidence")
		if e.Path != "" {
			lost[e.Path], around[parent(e.Path)] = true, true
			if source {
				lostSource[e.Path], aroundSource[parent(e.Path)] = true, true
			}
		}
		if !source {
			hides[e.Path] = true
			misspelt[e.Path] = misspelt[e.Path] || strings.HasPrefix(e.Msg, "unknown key")
		}
	}
	delete(around, "")
	delete(aroundSource, "")
	follows := func(path string, lost, around set) bool {
		return lost[path] || lost.around(path, ".[") || around[path] || around[parent(path)]
	}
	return slices.DeleteFunc(slices.Clone(errs), func(e *strictyaml.Error) bool {
		if c.unsourced[e] {
			return hides[e.Path] || hides["sources"] || misspelt.around(e.Path, ".") || follows(e.Path, lostSource, aroundSource)
		}
		return follows(e.Path, lost, around)
	})
}

// set holds paths of values.
type set map[string]bool

// around reports whether the path of something around the value at path is in s, which
// ends before one of the characters of ends.
func (s set) around(path, ends string) bool {
	for i := range len(path) {
		if strings.IndexByte(ends, path[i]) >= 0 && s[path[:i]] {
			return true
		}
	}
	return false
}

// parent returns the path of what a value is in.
func parent(path string) string { return path[:max(strings.LastIndexAny(path, ".["), 0)] }

func (c *checker) fail(path, format string, args ...any) {
	c.errs = append(c.errs, strictyaml.Errorf(c.file, c.at.value(path), path, format, args...))
}

// keys returns the keys of a mapping as they stand in the file.
func keys[T any](c *checker, path string, m map[string]T) []string {
	return slices.SortedFunc(maps.Keys(m), func(a, b string) int {
		pa, pb := c.at.key(strictyaml.Key(path, a)), c.at.key(strictyaml.Key(path, b))
		return cmp.Or(cmp.Compare(pa.Line, pb.Line), cmp.Compare(pa.Column, pb.Column), cmp.Compare(a, b))
	})
}

// name checks the name of something at path.
func (c *checker) name(path, name, of string) {
	if !plainName.MatchString(name) {
		c.errs = append(c.errs, strictyaml.Errorf(c.file, c.at.key(path), path, "not the name of a %s: %s", of, nameRule))
	}
}

// stated returns a value of the header, "" if it says that it is not stated.
func stated(value string) string {
	if value == Unstated {
		return ""
	}
	return value
}

// note checks all of a header and makes it the note.
func (c *checker) note(n *Note, h header) {
	n.Title, n.Summary = h.Title, h.Summary
	n.Kind, n.Vendor, n.Model, n.Module = h.Kind, stated(h.Vendor), stated(h.Model), stated(h.Module)
	n.Firmware = Firmware{Known: stated(h.Firmware.Known), Range: stated(h.Firmware.Range)}
	if h.Speed.Text != Unstated {
		n.Speed = h.Speed
	}
	c.of(h)
	for _, key := range keys(c, "sources", h.Sources) {
		path := strictyaml.Key("sources", key)
		c.name(path, key, "source")
		if slices.Contains(bases, key) {
			c.fail(path, "%s says that there is no source: call the source something else", key)
		}
		s := h.Sources[key]
		n.Sources = append(n.Sources, Source{Key: key, Title: s.Title, Where: s.Where, URL: s.URL})
	}
	for _, key := range keys(c, "checks", h.Checks) {
		path := strictyaml.Key("checks", key)
		c.name(path, key, "check")
		x := h.Checks[key]
		n.Checks = append(n.Checks, Check{Name: key, What: x.What, Run: x.Run, Expect: x.Expect})
	}
	c.known = n
	profiles := keys(c, "profiles", h.Profiles)
	for _, key := range profiles {
		path := strictyaml.Key("profiles", key)
		c.name(path, key, "profile")
		p := c.profile(path, key, h.Profiles[key])
		p.Name = n.Name
		if len(profiles) > 1 {
			p.Name += "/" + key
		}
		n.Profiles = append(n.Profiles, p)
	}
	for _, key := range keys(c, "facts", h.Facts) {
		path := strictyaml.Key("facts", key)
		c.name(path, key, "fact")
		n.Facts = append(n.Facts, c.fact(path, key, h.Facts[key]))
	}
	for _, key := range keys(c, "settings", h.Settings) {
		n.Settings = append(n.Settings, c.setting(strictyaml.Key("settings", key), key, h.Settings[key]))
	}
	if h.RDMA != nil {
		n.RDMA = c.retransmission(*h.RDMA)
	}
	for i, text := range h.Unknown {
		if strings.TrimSpace(text) == "" {
			c.fail(strictyaml.Index("unknown", i), "is empty: say what no source states")
		}
	}
	n.Unknown = h.Unknown
}

// of checks what the note says that it is of.
func (c *checker) of(h header) {
	if h.Kind == "" {
		for _, key := range []string{"vendor", "model", "module", "speed", "firmware"} {
			if c.at.has(key) && !c.at.has("kind") {
				c.fail(key, "the note does not say what this is the %s of: add kind: nic, module or switch", key)
				return
			}
		}
		return
	}
	missing := func(key string) {
		c.fail("kind", "the note is of a %s and does not say which %s: add %s: %s if the sources do not state it", h.Kind, key, key, Unstated)
	}
	needed := []string{"vendor", "model", "firmware"}
	switch h.Kind {
	case NIC:
		needed = append(needed, "module", "speed")
	case Module:
		needed = append(needed, "speed")
	}
	for _, key := range needed {
		if !c.at.has(key) {
			missing(key)
		}
	}
	for key, value := range map[string]string{"vendor": h.Vendor, "model": h.Model, "module": h.Module, "firmware.known": h.Firmware.Known} {
		if c.at.has(key) && strings.TrimSpace(value) == "" {
			c.fail(key, "is empty: write %s if the sources do not state it", Unstated)
		}
	}
	if !h.Speed.IsZero() && h.Speed.Text != Unstated && units[h.Speed.Unit].of != "rate" {
		c.fail("speed", "%q is no speed: want one such as 100 Gbit/s, or %s", h.Speed.Text, Unstated)
	}
}

// sourced checks where the value at path comes from and how sure that is. Remedy says how
// to mend it.
func (c *checker) sourced(path, source string, confidence Confidence, remedy string) {
	if strings.TrimSpace(source) == "" || confidence == "" {
		c.fail(path, "does not say where it comes from and how sure that is: %s", remedy)
		if c.unsourced == nil {
			c.unsourced = map[*strictyaml.Error]bool{}
		}
		c.unsourced[c.errs[len(c.errs)-1]] = true
		return
	}
	at := path
	if c.at.has(path + ".source") {
		at += ".source"
	}
	m := reference.FindStringSubmatch(source)
	if m == nil {
		return
	}
	known := slices.Clone(bases)
	for _, s := range c.known.Sources {
		known = append(known, s.Key)
	}
	switch {
	case !slices.Contains(known, m[1]):
		c.fail(at, "%q is not among the sources%s: want one of them, %s, or a text of several words",
			m[1], strictyaml.DidYouMean(m[1], known), strings.Join(bases, ", "))
	case (m[1] == "assumed" || m[1] == "invented") && confidence != Low:
		c.fail(at, "what is %s cannot be of %s confidence", m[1], confidence)
	}
}

const (
	giveBoth    = "give it a source and a confidence"
	giveProfile = giveBoth + ", or its profile"
)

func (c *checker) profile(path, key string, h profileHeader) Profile {
	p := Profile{
		Key:      key,
		Debounce: c.span(path+".debounce", h.Debounce),
		Detect:   c.span(path+".detect", h.Detect),
		Train:    c.span(path+".train", h.Train),
		Carrier:  c.span(path+".carrier", h.Carrier),
		Refresh:  h.Refresh.Period,
	}
	c.positive(path+".refresh.period", h.Refresh.Period)
	if b := h.Burst; b != nil {
		p.Burst = &Burst{Window: b.Window, Free: b.Free, Step: b.Step, Most: b.Most}
		c.positive(path+".burst.window", b.Window)
		c.positive(path+".burst.step", b.Step)
		c.positive(path+".burst.most", b.Most)
		if b.Free < 0 {
			c.fail(path+".burst.free", "is negative: it counts link-ups")
		}
	}
	origin := func(value, source string, confidence Confidence) {
		o := Origin{Profile: key, Value: value, Source: cmp.Or(source, h.Source), Confidence: cmp.Or(confidence, h.Confidence)}
		if c.at.has(path + "." + value) { // that one is missing has been said
			c.sourced(path+"."+value, o.Source, o.Confidence, giveProfile)
		}
		c.known.Origins = append(c.known.Origins, o)
	}
	origin("debounce", h.Debounce.Source, h.Debounce.Confidence)
	origin("detect", h.Detect.Source, h.Detect.Confidence)
	origin("train", h.Train.Source, h.Train.Confidence)
	origin("carrier", h.Carrier.Source, h.Carrier.Confidence)
	if h.Burst != nil {
		origin("burst", h.Burst.Source, h.Burst.Confidence)
	}
	origin("refresh", h.Refresh.Source, h.Refresh.Confidence)
	return p
}

// longest keeps the sums of a model far away from overflow.
const longest = time.Hour

func (c *checker) span(path string, h spanHeader) Span {
	s := Span{Spread: h.Spread, Min: h.Min, Max: h.Max}
	switch {
	case h.Median != nil && h.Modes != nil:
		c.fail(path+".modes", "stand in place of a median and a spread: remove these")
	case h.Median != nil:
		s.Median = *h.Median
		c.limited(path+".median", s.Median)
	case h.Modes == nil:
		c.fail(path, "the key %q is missing, or modes in its place", "median")
	}
	if h.Modes != nil {
		if h.Spread != 0 && h.Median == nil {
			c.fail(path+".spread", "each of the modes has its own: remove this one")
		}
		said := len(c.errs)
		for i, m := range h.Modes {
			at := strictyaml.Index(path+".modes", i)
			c.limited(at+".median", m.Median)
			c.limited(at+".spread", m.Spread)
			if !(m.Share > 0) {
				c.fail(at+".share", "want more than nothing, found %g", m.Share)
			}
		}
		if len(h.Modes) == 0 {
			c.fail(path+".modes", "there are none: write one, or a median")
		} else if err := h.Modes.Check(); err == nil {
			s.Modes, s.Median = h.Modes, h.Modes.Quantile(0.5)
		} else if len(c.errs) == said {
			c.fail(path+".modes", "%w", err)
		}
	}
	c.limited(path+".spread", h.Spread)
	c.limited(path+".min", h.Min)
	c.limited(path+".max", h.Max)
	if h.Median == nil && s.Modes == nil { // what is wrong has been said
		return s
	}
	if h.Min > max(s.Median, 0) {
		c.fail(path+".min", "is above the median of %v", s.Median)
	}
	if h.Max != 0 && h.Max < s.Median {
		c.fail(path+".max", "is below the median of %v", s.Median)
	}
	return s
}

// limited checks a duration that may be nothing.
func (c *checker) limited(path string, d time.Duration) {
	switch {
	case d < 0:
		c.fail(path, "is negative")
	case d > longest:
		c.fail(path, "is longer than an hour")
	}
}

func (c *checker) positive(path string, d time.Duration) {
	if d <= 0 || d > longest {
		c.fail(path, "want more than nothing and an hour at most, found %v", d)
	}
}

func (c *checker) fact(path, key string, h factHeader) Fact {
	f := Fact{
		Name: key, What: h.What, Value: h.Value, Low: h.Range.Low, High: h.Range.High,
		Source: h.Source, Confidence: h.Confidence, AppliesTo: h.AppliesTo, Check: h.Check,
	}
	c.sourced(path, h.Source, h.Confidence, giveBoth)
	if strings.TrimSpace(h.What) == "" {
		c.fail(path+".what", "is empty: say what the value is of")
	}
	if f.Value.IsZero() && f.Low.IsZero() && f.High.IsZero() {
		c.fail(path, "has no value: give it a value, or a range with low, high or both")
	}
	for _, end := range []struct {
		key string
		q   Quantity
	}{{".range.low", f.Low}, {".range.high", f.High}} {
		if !end.q.IsZero() && end.q.Unit == "" {
			c.fail(path+end.key, "%q is no amount: want a number with its unit", end.q.Text)
		}
	}
	ordered := func(low, high Quantity, at, says string) {
		if low.Unit == "" || high.IsZero() || high.Unit == "" {
			return
		}
		order, ok := low.compare(high)
		switch {
		case !ok:
			c.fail(at, "%s and %s cannot be compared: write both in units of the same kind", low.Text, high.Text)
		case order > 0:
			c.fail(at, says, high.Text, low.Text)
		}
	}
	ordered(f.Low, f.High, path+".range.high", "the high end, %s, is below the low end, %s")
	ordered(f.Low, f.Value, path+".value", "%s is below the range, which begins at %s")
	ordered(f.Value, f.High, path+".value", "the range ends at %s, below the value of %s")
	if plainName.MatchString(h.Check) && !slices.ContainsFunc(c.known.Checks, func(x Check) bool { return x.Name == h.Check }) {
		c.fail(path+".check", "there is no check %q in this note: add one, or say in a few words how to check it", h.Check)
	}
	return f
}

var settingName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9._-]*$`)

// plainValue is what can stand in a command as it is.
var plainValue = regexp.MustCompile(`^[A-Za-z0-9._:+,/-]+$`)

func (c *checker) setting(path, key string, h settingHeader) Setting {
	s := Setting{
		Name: key, Tool: h.Tool, Values: h.Values, Default: stated(h.Default), Effect: h.Effect, Source: h.Source, Confidence: h.Confidence,
		Show: h.Show, Apply: h.Apply, Effective: h.Effective, Verify: h.Verify, Undo: h.Undo, After: h.After, BothEnds: h.BothEnds,
	}
	if !settingName.MatchString(key) {
		c.errs = append(c.errs, strictyaml.Errorf(c.file, c.at.key(path), path, "not the name of a setting: want letters, digits, points, hyphens and underscores, such as PHY_AUTO_NEG"))
	}
	c.sourced(path, h.Source, h.Confidence, giveBoth)
	for i, v := range h.Values {
		if at := strictyaml.Index(path+".values", i); !plainValue.MatchString(v) {
			c.fail(at, "%q cannot stand in a command as it is", v)
		} else if slices.Index(h.Values, v) < i {
			c.fail(at, "%q is there twice", v)
		}
	}
	if s.Default != "" && len(s.Values) > 0 && !slices.Contains(s.Values, s.Default) {
		c.fail(path+".default", "%q is not among the values%s: write one of them, or %s", s.Default, strictyaml.DidYouMean(s.Default, s.Values), Unstated)
	}
	with := func(commands []string, p string) bool {
		return slices.ContainsFunc(commands, func(line string) bool { return strings.Contains(line, p) })
	}
	if len(s.Apply) > 0 {
		switch {
		case len(s.Values) == 0:
			c.fail(path+".apply", "which values there are is not said: add values")
		case !with(s.Apply, "{value}"):
			c.fail(path+".apply", "does not hold {value}: what would it set?")
		}
		if len(s.Show) == 0 {
			c.fail(path+".apply", "there is no show: how would anybody know what to go back to?")
		}
		if len(s.Undo) == 0 {
			c.fail(path+".apply", "there is no undo: say how to take it back")
		}
	}
	for key, commands := range map[string][]string{".show": s.Show, ".effective": s.Effective, ".verify": s.Verify, ".undo": s.Undo} {
		if with(commands, "{value}") {
			c.fail(path+key, "only apply can hold {value}")
		}
		if key != ".undo" && with(commands, "{previous}") {
			c.fail(path+key, "only undo can hold {previous}")
		}
	}
	return s
}

func (c *checker) retransmission(h rdmaHeader) *Retransmission {
	r := &Retransmission{
		MeasuredOn: h.MeasuredOn, Firmware: stated(h.Firmware), Adaptive: h.Adaptive,
		Factor: h.Interval.Factor, Least: h.Interval.Least, EarlyLeast: h.Interval.EarlyLeast, Early: h.Interval.Early,
		Retry: h.Retry, Source: h.Source, Confidence: h.Confidence,
	}
	c.sourced("rdma", h.Source, h.Confidence, giveBoth)
	for i, d := range h.Adaptive {
		at := strictyaml.Index("rdma.adaptive", i)
		c.positive(at, d)
		if i > 0 && d <= h.Adaptive[i-1] {
			c.fail(at, "%v is not after %v", d, h.Adaptive[i-1])
		}
	}
	within := func(path string, n, low, high int) bool {
		if n < low || n > high {
			c.fail(path, "want %d to %d, found %d", low, high, n)
			return false
		}
		return true
	}
	good := within("rdma.interval.factor", r.Factor, 1, 16)
	good = within("rdma.interval.least-timeout", r.Least, 1, 31) && good
	good = within("rdma.retry", r.Retry, 1, 7) && good
	c.limited("rdma.interval.early-at-least", r.EarlyLeast)
	c.limited("rdma.interval.early-above", r.Early)
	if good {
		for key, early := range map[string]time.Duration{"early-at-least": r.EarlyLeast, "early-above": r.Early} {
			if early >= time.Duration(r.Factor)*Nominal(r.Least) {
				c.fail("rdma.interval."+key, "is not shorter than the interval, %v", time.Duration(r.Factor)*Nominal(r.Least))
				good = false
			}
		}
	}
	for _, key := range keys(c, "rdma.errors", h.Errors) {
		path := strictyaml.Key("rdma.errors", key)
		timeout, err := strconv.Atoi(key)
		if err != nil || timeout < 1 || timeout > 31 || strconv.Itoa(timeout) != key {
			c.fail(path, "%q is no timeout: want 1 to 31", key)
			continue
		}
		e := ErrorTime{Timeout: timeout, After: h.Errors[key]}
		r.Errors = append(r.Errors, e)
		if !good {
			continue
		}
		if says := r.Error(timeout, r.Retry); (says - e.After).Abs() > e.After/50 {
			c.fail(path, "measured %v, but by the interval it would be %v: one of them is wrong", e.After, says.Round(time.Millisecond))
		}
	}
	if len(h.Errors) == 0 {
		c.fail("rdma.errors", "there are none: say after how long connections were in error, by timeout")
	}
	return r
}
