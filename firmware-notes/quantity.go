package firmwarenotes

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Quantity is the value of a fact: an amount with its unit, such as 70us, -3 dBm, 2 %,
// 100 Gbit/s or 7 retries, or a text. A number alone is none.
type Quantity struct {
	Text   string  // as written
	Number float64 // of an amount, in Unit; 0 of a text
	Unit   string  // "" of a text
}

// unit is what a unit measures, and how much of the base unit it is.
type unit struct {
	of   string
	base float64
}

// units are those that can be converted. Logarithmic ones are kept apart from the linear.
var units = map[string]unit{
	"ns": {"time", 1e-9}, "us": {"time", 1e-6}, "µs": {"time", 1e-6}, "μs": {"time", 1e-6}, "ms": {"time", 1e-3},
	"s": {"time", 1}, "m": {"time", 60}, "min": {"time", 60}, "h": {"time", 3600}, "d": {"time", 86400},
	"dBm": {"level", 1}, "dB": {"ratio in dB", 1}, "%": {"ratio", 0.01}, "ppm": {"ratio", 1e-6},
	"nW": {"power", 1e-9}, "uW": {"power", 1e-6}, "µW": {"power", 1e-6}, "mW": {"power", 1e-3}, "W": {"power", 1},
	"bit/s": {"rate", 1}, "kbit/s": {"rate", 1e3}, "Mbit/s": {"rate", 1e6}, "Gbit/s": {"rate", 1e9}, "Tbit/s": {"rate", 1e12},
	"Hz": {"frequency", 1}, "kHz": {"frequency", 1e3}, "MHz": {"frequency", 1e6}, "GHz": {"frequency", 1e9}, "THz": {"frequency", 1e12},
	"nm": {"length", 1e-9}, "mm": {"length", 1e-3}, "km": {"length", 1e3},
	"mV": {"voltage", 1e-3}, "V": {"voltage", 1}, "mA": {"current", 1e-3}, "A": {"current", 1}, "°C": {"temperature", 1},
}

// mistaken are words that people write for units: taken as nouns they could not be
// compared with anything.
var mistaken = map[string]string{
	"sec": "s", "secs": "s", "second": "s", "seconds": "s", "msec": "ms", "msecs": "ms", "milliseconds": "ms", "usec": "us",
	"microseconds": "us", "nanoseconds": "ns", "mins": "min", "minute": "min", "minutes": "min", "hour": "h", "hours": "h",
	"day": "d", "days": "d", "db": "dB", "DB": "dB", "dbm": "dBm", "DBm": "dBm", "dBM": "dBm", "mw": "mW", "percent": "%", "C": "°C",
	"Gbps": "Gbit/s", "Mbps": "Mbit/s", "Gb/s": "Gbit/s", "G": "Gbit/s", "S": "s", "MS": "ms", "Ms": "ms", "hz": "Hz",
}

var (
	amount = regexp.MustCompile(`^([-+]?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]{1,3})?) ?(.*)$`)
	// A noun: letters, and what joins them. Not x, since 3x5 is no amount.
	noun      = regexp.MustCompile(`^\pL[\pL-]+(/\pL+)?( \pL[\pL-]+)*$`)
	lastAlone = regexp.MustCompile(`(^|[\s=<>~≤≥±])[-+]?[0-9]+(\.[0-9]+)?$`)
)

// ParseQuantity reads an amount with its unit, or a text. What begins with a digit or a
// sign before one is an amount, except for a register such as 0x9F; a text does not end
// with a bare number.
func ParseQuantity(text string) (Quantity, error) {
	q := Quantity{Text: text}
	trimmed := strings.TrimSpace(text)
	switch {
	case trimmed == "":
		return Quantity{}, fmt.Errorf("is empty: write an amount with its unit, or a text")
	case trimmed != text:
		return Quantity{}, fmt.Errorf("%.60q has blanks around it", text)
	}
	if d, err := time.ParseDuration(text); err == nil && text != "0" && text != "+0" && text != "-0" {
		if m := amount.FindStringSubmatch(text); m == nil || units[m[2]].of != "time" { // 1m30s, .5s
			q.Number, q.Unit = d.Seconds(), "s"
			return q, nil
		}
	}
	m := amount.FindStringSubmatch(text)
	if m == nil || strings.HasPrefix(text, "0x") {
		if lastAlone.MatchString(text) {
			return Quantity{}, fmt.Errorf("%.60q ends with a number without a unit: say what it counts or measures", text)
		}
		return q, nil
	}
	number, err := strconv.ParseFloat(m[1], 64)
	switch u := m[2]; {
	case err != nil || math.IsInf(number, 0):
		return Quantity{}, fmt.Errorf("%.60q is out of range", text)
	case u == "":
		return Quantity{}, fmt.Errorf("%.60q has no unit: write what it measures or counts, such as %.60s ms, %.60s dB or %.60s retries", text, text, text, text)
	case mistaken[u] != "":
		return Quantity{}, fmt.Errorf("%.60q: the unit is written %s: %.60s %s", text, mistaken[u], m[1], mistaken[u])
	case units[u].of == "" && !noun.MatchString(u):
		return Quantity{}, fmt.Errorf("%.60q: %.60q is no unit: want one such as ms, dB, dBm, %%, Gbit/s, or what is counted, such as retries", text, u)
	default:
		q.Number, q.Unit = number, u
	}
	return q, nil
}

// UnmarshalText reads a quantity as [ParseQuantity] does.
func (q *Quantity) UnmarshalText(text []byte) (err error) {
	*q, err = ParseQuantity(string(text))
	return err
}

// IsZero reports whether there is no value.
func (q Quantity) IsZero() bool { return q.Text == "" }

// String returns the quantity as it was written.
func (q Quantity) String() string { return q.Text }

// Duration returns the quantity as a duration, to a nanosecond, if it is one that fits.
func (q Quantity) Duration() (time.Duration, bool) {
	u := units[q.Unit]
	ns := math.Round(q.Number * u.base * 1e9)
	if u.of != "time" || math.Abs(ns) >= math.MaxInt64 {
		return 0, false
	}
	return time.Duration(ns), true
}

// compare compares amounts; ok only if they measure or count the same.
func (q Quantity) compare(to Quantity) (order int, ok bool) {
	a, b := units[q.Unit], units[to.Unit]
	if a.of == "" && b.of == "" && q.Unit != "" && q.Unit == to.Unit {
		a.base, b.base = 1, 1
	} else if a.of == "" || a.of != b.of {
		return 0, false
	}
	x, y := q.Number*a.base, to.Number*b.base
	if math.Abs(x-y) <= 1e-12*math.Abs(x) { // 7 ms are 7000 us, which float64 does not know
		return 0, true
	}
	return cmp.Compare(x, y), true
}
