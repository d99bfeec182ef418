package strictyaml

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"

	yaml "go.yaml.in/yaml/v3"
)

// wanted describes for people what a value of type t is written as.
func wanted(t reflect.Type) string {
	switch k := t.Kind(); {
	case t == typeDuration:
		return "a duration such as 200ms"
	case k == reflect.Bool:
		return "true or false"
	case k >= reflect.Int && k <= reflect.Uint64:
		return "a whole number"
	case k == reflect.Float32 || k == reflect.Float64:
		return "a number"
	}
	return "text"
}

// scalar decodes a single value that is there.
func scalar(n *yaml.Node, v reflect.Value) error {
	t, text := v.Type(), n.Value
	switch k := t.Kind(); {
	case t == typeDuration:
		d, err := duration(text)
		v.SetInt(int64(d))
		return err
	case k == reflect.String:
		v.SetString(text)
		return nil
	case n.Style&^yaml.TaggedStyle != 0 && k <= reflect.Float64: // quoted, or a block
		return fmt.Errorf("want %s, found text: remove the quotes", wanted(t))
	case k == reflect.Bool:
		return boolean(text, v)
	case k >= reflect.Int && k <= reflect.Int64, k >= reflect.Uint && k <= reflect.Uint64:
		return integer(text, v)
	case k == reflect.Float32 || k == reflect.Float64:
		return float(text, v)
	}
	panic(fmt.Sprintf("strictyaml: cannot decode into a %v", t))
}

func boolean(text string, v reflect.Value) error {
	if text != "true" && text != "false" {
		return fmt.Errorf("want true or false, found %s", quote(text))
	}
	v.SetBool(text == "true")
	return nil
}

var (
	decimal     = regexp.MustCompile(`^[-+]?(0|[1-9][0-9]*)$`)
	leadingZero = regexp.MustCompile(`^[-+]?0+[0-9]+$`)
	underscores = regexp.MustCompile(`^[-+]?[0-9]+(_[0-9]+)+$`)
	based       = regexp.MustCompile(`^[-+]?0[xXoObB][0-9a-fA-F]{1,20}$`)
	// Without infinities, NaN, and a point without digits.
	number = regexp.MustCompile(`^[-+]?(0|[1-9][0-9]*)?(\.[0-9]+)?([eE][-+]?[0-9]+)?$`)
)

func integer(text string, v reflect.Value) error {
	plain := strings.TrimPrefix(text, "+")
	switch {
	case leadingZero.MatchString(text):
		return leadingZeros(text)
	case underscores.MatchString(text):
		return fmt.Errorf("want a whole number, found %s: write %s", quote(text), strings.ReplaceAll(text, "_", ""))
	case !decimal.MatchString(text):
		if i, ok := new(big.Int).SetString(text, 0); ok && based.MatchString(text) {
			return fmt.Errorf("want a whole number in decimal digits, found %s: write %v", quote(text), i)
		}
		return fmt.Errorf("want a whole number, found %s", quote(text))
	case v.CanInt():
		i, err := strconv.ParseInt(plain, 10, v.Type().Bits())
		if err != nil {
			least := int64(-1) << (v.Type().Bits() - 1)
			return fmt.Errorf("%s is out of range: want %d to %d", quote(text), least, -(least + 1))
		}
		v.SetInt(i)
		return nil
	}
	u, err := strconv.ParseUint(strings.Replace(plain, "-0", "0", 1), 10, v.Type().Bits())
	if err != nil {
		return fmt.Errorf("%s is out of range: want 0 to %d", quote(text), uint64(math.MaxUint64)>>(64-v.Type().Bits()))
	}
	v.SetUint(u)
	return nil
}

// leadingZeros explains 010, which is 8 in YAML 1.1 and 10 in YAML 1.2.
func leadingZeros(text string) error {
	sign, digits := "", text
	if text[0] == '-' || text[0] == '+' {
		sign, digits = text[:1], text[1:]
	}
	digits = strings.TrimLeft(digits, "0")
	if digits == "" {
		digits = "0"
	}
	if octal, err := strconv.ParseUint(digits, 8, 64); err == nil && octal >= 8 {
		return fmt.Errorf("%s may be meant as octal: write %s%s, or %s%d", quote(text), sign, digits, sign, octal)
	}
	return fmt.Errorf("want a number without leading zeros, found %s: write %s%s", quote(text), sign, digits)
}

func float(text string, v reflect.Value) error {
	if leadingZero.MatchString(text) {
		return leadingZeros(text)
	}
	if !number.MatchString(text) || !strings.ContainsAny(text, "0123456789") {
		return fmt.Errorf("want a number, found %s", quote(text))
	}
	f, err := strconv.ParseFloat(text, v.Type().Bits())
	switch {
	case errors.Is(err, strconv.ErrRange):
		return fmt.Errorf("%s is out of range", quote(text))
	case err != nil:
		return fmt.Errorf("want a number, found %s", quote(text))
	}
	v.SetFloat(f)
	return nil
}

var (
	bareNumber  = regexp.MustCompile(`^[-+]?[0-9_]*\.?[0-9]+$`)
	wordyAmount = regexp.MustCompile(`^([-+]?[0-9]*\.?[0-9]+) ?([a-zµμ]+)$`)
	// What people write in place of the units of durations.
	wordyUnits = map[string]string{
		"ns": "ns", "nanosecond": "ns", "us": "us", "usec": "us", "µs": "us", "μs": "us", "microsecond": "us",
		"ms": "ms", "msec": "ms", "millisecond": "ms", "s": "s", "sec": "s", "second": "s",
		"m": "m", "min": "m", "minute": "m", "h": "h", "hr": "h", "hour": "h",
	}
)

func duration(text string) (time.Duration, error) {
	if bareNumber.MatchString(text) {
		return 0, fmt.Errorf("%s has no unit: write %sms, %ss or %sm", quote(text), text, text, text)
	}
	d, err := time.ParseDuration(text)
	if err == nil {
		return d, nil
	}
	err = fmt.Errorf("want a duration such as 200ms, 1.5s or 2m30s, found %s", quote(text))
	if m := wordyAmount.FindStringSubmatch(text); m != nil {
		unit := wordyUnits[m[2]]
		if unit == "" {
			unit = wordyUnits[strings.TrimSuffix(m[2], "s")]
		}
		if _, no := time.ParseDuration(m[1] + unit); unit != "" && no == nil && m[1]+unit != text {
			err = fmt.Errorf("%w: write %s%s", err, m[1], unit)
		}
	}
	return 0, err
}
