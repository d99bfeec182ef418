package netconfserver

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/openconfig/goyang/pkg/yang"
)

// checker returns what brings a value of a YANG type into its canonical form
// (RFC 7950 section 9) or says why it is none. White space around numbers and
// names does not count.
func checker(t *yang.YangType) func(string) (string, error) {
	switch t.Kind {
	case yang.Ystring:
		return stringChecker(t)
	case yang.Yenum:
		return func(s string) (string, error) {
			s = strings.TrimSpace(s)
			if _, ok := t.Enum.ToInt[s]; !ok {
				return "", fmt.Errorf("%s is not one of %s", excerpt(s), strings.Join(inOrder(t.Enum.ToInt), ", "))
			}
			return s, nil
		}
	case yang.Ybits:
		all := inOrder(t.Bit.ToInt)
		return func(s string) (string, error) {
			set := strings.Fields(s)
			for i, b := range set {
				if !slices.Contains(all, b) || slices.Contains(set[:i], b) {
					return "", fmt.Errorf("%s: want some of %s", excerpt(s), strings.Join(all, ", "))
				}
			}
			return strings.Join(slices.DeleteFunc(slices.Clone(all), func(b string) bool { return !slices.Contains(set, b) }), " "), nil
		}
	case yang.Ybool:
		return func(s string) (string, error) {
			if s = strings.TrimSpace(s); s != "true" && s != "false" {
				return "", fmt.Errorf("%s is neither true nor false", excerpt(s))
			}
			return s, nil
		}
	case yang.Ydecimal64:
		return func(s string) (string, error) {
			s = strings.TrimSpace(s)
			n, err := yang.ParseDecimal(s, uint8(t.FractionDigits))
			if err != nil || !decimal.MatchString(s) {
				return "", fmt.Errorf("%s is not a number with at most %d decimals", excerpt(s), t.FractionDigits)
			}
			if err := within(t.Range, n, s); err != nil {
				return "", err
			}
			return canonicalDecimal(n), nil
		}
	case yang.Yuint16, yang.Yuint32:
		return func(s string) (string, error) {
			s = strings.TrimSpace(s)
			n, err := yang.ParseInt(s)
			if err != nil || !integer.MatchString(s) {
				return "", fmt.Errorf("%s is not a whole number", excerpt(s))
			}
			if err := within(t.Range, n, s); err != nil {
				return "", err
			}
			return n.String(), nil
		}
	}
	panic("YANG type " + t.Name) // our modules have no others
}

var (
	decimal = regexp.MustCompile(`^[+-]?[0-9]{1,16}(\.[0-9]+)?$`)
	integer = regexp.MustCompile(`^[+-]?(0|[1-9][0-9]*)$`)
)

func stringChecker(t *yang.YangType) func(string) (string, error) {
	var patterns []*regexp.Regexp
	for _, p := range t.Pattern {
		patterns = append(patterns, regexp.MustCompile(`^(?:`+p+`)$`))
	}
	return func(s string) (string, error) {
		for i, p := range patterns {
			if !p.MatchString(s) {
				return "", fmt.Errorf("%s does not match %s", excerpt(s), t.Pattern[i])
			}
		}
		return s, nil
	}
}

func within(r yang.YangRange, n yang.Number, text string) error {
	for _, part := range r {
		if !n.Less(part.Min) && !part.Max.Less(n) {
			return nil
		}
	}
	return fmt.Errorf("%s is outside %v", excerpt(text), r)
}

// canonicalDecimal returns n with one decimal at least and no zeros at the end.
func canonicalDecimal(n yang.Number) string {
	s := strings.TrimRight(n.String(), "0")
	if strings.HasSuffix(s, ".") {
		s += "0"
	}
	if s == "-0.0" {
		return "0.0"
	}
	return s
}

// inOrder returns names by value.
func inOrder(values map[string]int64) []string {
	return slices.SortedFunc(maps.Keys(values), func(a, b string) int { return int(values[a] - values[b]) })
}

// excerpt returns what an error quotes of a value.
func excerpt(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, s)
	if len(s) > 40 {
		return s[:40] + "..."
	}
	return s
}
