package plan

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ocslab/ocslab/internal/strictyaml"
	"github.com/ocslab/ocslab/timeline"
)

// Quantity is what a [Statistic] tells of a stage.
type Quantity string

// The quantities. Times are since the command.
const (
	P50     Quantity = "p50"
	P95     Quantity = "p95"
	P99     Quantity = "p99"
	Max     Quantity = "max"
	Share   Quantity = "share"   // of the median of the last stage, 0 to 1
	Missing Quantity = "missing" // how often it was expected and not seen
	Count   Quantity = "count"
)

var quantities = []Quantity{P50, P95, P99, Max, Share, Missing, Count}

// IsTime reports whether it is a time, in nanoseconds.
func (q Quantity) IsTime() bool { return q == P50 || q == P95 || q == P99 || q == Max }

// Statistic is a number that a run comes to: text "carrier_p99", "light_p50",
// "traffic-lost_max", or "missing" of all stages. "carrier" is short for "carrier-up", and
// "median" for "p50".
type Statistic struct {
	Stage timeline.Stage // "": of all stages; goes with Missing only
	Of    Quantity
}

// shortStages and shortQuantities are other words for some.
var (
	shortStages     = map[string]timeline.Stage{"carrier": timeline.CarrierUp}
	shortQuantities = map[string]Quantity{"median": P50}
)

// UnmarshalText reads the text form.
func (s *Statistic) UnmarshalText(text []byte) error {
	word := string(text)
	if word == string(Missing) {
		*s = Statistic{Of: Missing}
		return nil
	}
	cut := strings.LastIndexByte(word, '_')
	if cut < 0 {
		return textErrorf(0, "%.60q is no statistic: want STAGE_QUANTITY, such as carrier_p99, or missing", word)
	}
	stage, ok := shortStages[word[:cut]]
	if !ok {
		stage = timeline.Stage(word[:cut])
	}
	if !stage.Valid() {
		return textErrorf(0, "%.60q is no stage%s", word[:cut], among(word[:cut], stageWords()))
	}
	of, ok := shortQuantities[word[cut+1:]]
	if !ok {
		of = Quantity(word[cut+1:])
	}
	if !slices.Contains(quantities, of) {
		return textErrorf(cut+1, "%.60q is no quantity%s", word[cut+1:], among(word[cut+1:], quantityWords()))
	}
	if stage == timeline.Command && (of.IsTime() || of == Share) {
		return textErrorf(0, "times are counted from the command, so its own is always 0: want another stage")
	}
	*s = Statistic{stage, of}
	return nil
}

// String returns the text form, in full: "carrier-up_p50".
func (s Statistic) String() string {
	if s.Stage == "" {
		return string(s.Of)
	}
	return string(s.Stage) + "_" + string(s.Of)
}

// MarshalText returns the text form; it never fails.
func (s Statistic) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

func stageWords() []string {
	words := []string{"carrier"}
	for _, s := range timeline.Stages() {
		words = append(words, string(s))
	}
	return words
}

func quantityWords() []string {
	words := []string{"median"}
	for _, q := range quantities {
		words = append(words, string(q))
	}
	return words
}

// among helps with a word that is none of known.
func among(word string, known []string) string {
	return cmp.Or(strictyaml.DidYouMean(word, known), ": want one of "+strings.Join(known, ", "))
}

// Limit is what a statistic should keep to: text "carrier_p99 < 4s", with, if it is not
// about all conditions, "where firmware=quick" and more of these joined by "and".
type Limit struct {
	Text      string
	Statistic Statistic
	Op        string // "<", "<=", ">", ">=", "=="
	// Value is in nanoseconds for times, a part of 1 for shares, else a number.
	Value float64
	Where map[string]string // parameters and their values
}

var (
	limitForm = regexp.MustCompile(`^\s*([^\s<>=!]+)\s*([<>=!]+)\s*(\S+)\s*(.*?)\s*$`)
	whereForm = regexp.MustCompile(`^where\s+(.+)$`)
	andForm   = regexp.MustCompile(`\s+and\s+`)
	ops       = []string{"<", "<=", ">", ">=", "=="}
	wrongOps  = map[string]string{"=": "==", "=<": "<=", "=>": ">="}
)

// UnmarshalText reads the text form.
func (l *Limit) UnmarshalText(text []byte) error {
	at := limitForm.FindSubmatchIndex(text)
	if at == nil {
		return textErrorf(0, "%.60q is no limit: want STATISTIC < VALUE, such as carrier_p99 < 4s, or with > <= >= ==", text)
	}
	part := func(i int) string { return string(text[at[2*i]:at[2*i+1]]) }
	n := Limit{Text: strings.TrimSpace(string(text)), Op: part(2)}
	if err := n.Statistic.UnmarshalText([]byte(part(1))); err != nil {
		return err
	}
	if !slices.Contains(ops, n.Op) {
		hint := ""
		if meant, ok := wrongOps[n.Op]; ok && !(meant == "==" && n.Statistic.Of.IsTime()) {
			hint = fmt.Sprintf(" (did you mean %q?)", meant)
		}
		return textErrorf(at[4], "%.20q does not compare%s: want one of %s", n.Op, hint, strings.Join(ops, " "))
	}
	var err error
	if n.Value, err = limitValue(n.Statistic, n.Op, part(3)); err != nil {
		return textErrorf(at[6], "%v", err)
	}
	if rest := part(4); rest != "" {
		if n.Where, err = where(rest); err != nil {
			return textErrorf(at[8], "%v", err)
		}
	}
	*l = n
	return nil
}

// limitValue reads what a statistic is compared to.
func limitValue(s Statistic, op, text string) (float64, error) {
	switch {
	case s.Of.IsTime():
		d, err := time.ParseDuration(text)
		switch {
		case err != nil:
			return 0, fmt.Errorf("%v is a time: want a duration such as 200ms or 4s, found %.60q", s, text)
		case d < 0:
			return 0, fmt.Errorf("%v is a time since the command, and %v is negative", s, d)
		case op == "==":
			return 0, fmt.Errorf("no measured time is exactly %v: want < <= > or >=", d)
		}
		return float64(d), nil
	case s.Of == Share:
		number, percent := strings.CutSuffix(text, "%")
		v, err := strconv.ParseFloat(number, 64)
		if percent {
			v /= 100
		}
		if err != nil || !(v >= 0 && v <= 1) {
			return 0, fmt.Errorf("%v is a part of the whole: want 0 to 1, or 0%% to 100%%, found %.60q", s, text)
		}
		return v, nil
	}
	v, err := strconv.ParseUint(text, 10, 53)
	if err != nil {
		return 0, fmt.Errorf("%v is counted: want a whole number, found %.60q", s, text)
	}
	return float64(v), nil
}

// where reads "where a=1 and b=2".
func where(text string) (map[string]string, error) {
	m := whereForm.FindStringSubmatch(text)
	if m == nil {
		return nil, fmt.Errorf("%.60q is not understood: after the value may follow where PARAMETER=VALUE", text)
	}
	all := map[string]string{}
	for _, pair := range andForm.Split(m[1], -1) {
		name, value, ok := strings.Cut(pair, "=")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		if !ok || name == "" || value == "" {
			return nil, fmt.Errorf("%.60q is not understood: want where PARAMETER=VALUE, and more of these joined by and", pair)
		}
		if _, dup := all[name]; dup {
			return nil, fmt.Errorf("the parameter %.60q is there twice: no condition has two values of it", name)
		}
		all[name] = value
	}
	return all, nil
}

// String returns the text form.
func (l Limit) String() string {
	if l.Text != "" || l.Op == "" {
		return l.Text
	}
	value := strconv.FormatFloat(l.Value, 'f', -1, 64)
	if l.Statistic.Of.IsTime() {
		value = time.Duration(l.Value).String()
	}
	text := fmt.Sprintf("%v %s %s", l.Statistic, l.Op, value)
	joint := " where "
	for _, name := range sorted(l.Where) {
		text += joint + name + "=" + l.Where[name]
		joint = " and "
	}
	return text
}

// MarshalText returns the text form; it never fails.
func (l Limit) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// About reports whether the limit is about a condition.
func (l Limit) About(c Condition) bool {
	for name, value := range l.Where {
		if have, ok := c.Parameters[name]; !ok || have != value {
			return false
		}
	}
	return true
}

// DefaultAfter is how many repeats are done in any case where a [Stop] says nothing.
const DefaultAfter = 10

// Stop ends the repeats of a condition when a statistic is known well enough.
type Stop struct {
	When   Statistic `yaml:"when,required"`
	Within Tolerance `yaml:"within,required"` // half the width of its confidence interval
	After  int       `yaml:"after"`           // repeats that are done in any case; 0 is DefaultAfter
}

// Tolerance is a part ("5%") or a time ("20ms").
type Tolerance struct {
	Part float64
	Time time.Duration
}

// UnmarshalText reads the text form.
func (t *Tolerance) UnmarshalText(text []byte) error {
	if number, percent := strings.CutSuffix(string(text), "%"); percent {
		v, err := strconv.ParseFloat(number, 64)
		if err != nil || !(v >= 0.001 && v <= 100) {
			return fmt.Errorf("want a part from 0.001%% to 100%%, found %.60q", text)
		}
		*t = Tolerance{Part: v / 100}
		return nil
	}
	d, err := time.ParseDuration(string(text))
	if err != nil || d <= 0 {
		return fmt.Errorf("want a part such as 5%%, or a time above zero such as 20ms, found %.60q", text)
	}
	*t = Tolerance{Time: d}
	return nil
}

// String returns the text form.
func (t Tolerance) String() string {
	if t.Time != 0 {
		return t.Time.String()
	}
	return strconv.FormatFloat(math.Round(t.Part*1e12)/1e10, 'f', -1, 64) + "%"
}

// MarshalText returns the text form; it never fails.
func (t Tolerance) MarshalText() ([]byte, error) { return []byte(t.String()), nil }
