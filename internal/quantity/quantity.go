// Package quantity reads and writes sizes, rates and times as people write them: "256MB", "450GBps", "620.4 µs".
package quantity

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// prefixes of units: KB is 1000 bytes, KiB 1024.
var prefixes = []struct {
	text string
	is   float64
}{
	{"", 1}, {"k", 1e3}, {"K", 1e3}, {"M", 1e6}, {"G", 1e9}, {"T", 1e12},
	{"Ki", 1 << 10}, {"Mi", 1 << 20}, {"Gi", 1 << 30}, {"Ti", 1 << 40},
}

// most is the largest number of bytes, or of bytes a second, that is read: as many as a float64 still counts one by one.
const most = 1 << 53

// ParseBytes reads a size with its unit, such as "256MB", "1.5 GiB" or "900B". KB, MB, GB and TB are powers of ten, KiB and so on
// of two. It is above 0 and at most 9007 TB.
func ParseBytes(text string) (float64, error) {
	x, ok := parse(text, map[string]float64{"B": 1})
	if !ok {
		return 0, fmt.Errorf("%q is no size: want a number above 0 with its unit, such as 256MB (10^6) or 256MiB (2^20), at most 9000TB", text)
	}
	return x, nil
}

// ParseRate reads bytes a second, such as "450GBps", "450 GB/s" or, in bits, "400Gbps" and "400Gb/s". It is above 0.
func ParseRate(text string) (float64, error) {
	units := map[string]float64{}
	for _, per := range []string{"ps", "/s"} {
		units["B"+per], units["b"+per], units["bit"+per] = 1, 1./8, 1./8
	}
	x, ok := parse(text, units)
	if !ok {
		return 0, fmt.Errorf("%q is no rate: want a number above 0 with its unit, such as 450GBps (bytes) or 400Gbps (bits), at most 9000TBps", text)
	}
	return x, nil
}

// parse reads a decimal number without exponent, at most one blank, a prefix and one of the units.
func parse(text string, units map[string]float64) (float64, bool) {
	end := strings.IndexFunc(text, func(r rune) bool { return (r < '0' || r > '9') && r != '.' })
	if end < 1 || text[0] == '.' || text[end-1] == '.' {
		return 0, false
	}
	x, err := strconv.ParseFloat(text[:end], 64)
	if err != nil {
		return 0, false
	}
	rest := strings.TrimPrefix(text[end:], " ")
	for _, p := range prefixes {
		if unit, ok := units[strings.TrimPrefix(rest, p.text)]; ok && strings.HasPrefix(rest, p.text) {
			x *= p.is * unit
			return x, x > 0 && x <= most
		}
	}
	return 0, false
}

// Bytes writes a size with four digits and a unit that is a power of ten: "256 MB", "1.953 kB".
func Bytes(n float64) string {
	return number(n, []scale{{1, "B"}, {1e3, "kB"}, {1e6, "MB"}, {1e9, "GB"}, {1e12, "TB"}})
}

// Rate writes bytes a second likewise: "450 GB/s".
func Rate(n float64) string { return Bytes(n) + "/s" }

// Seconds writes a time in seconds with four digits: "620.4 µs", "7.474 ms". What is infinite is "never".
func Seconds(s float64) string {
	return number(s, []scale{{1e-9, "ns"}, {1e-6, "µs"}, {1e-3, "ms"}, {1, "s"}})
}

type scale struct {
	is   float64
	name string
}

// number writes x in the largest unit of which it is at least one, once it has been rounded.
func number(x float64, units []scale) string {
	switch {
	case math.IsInf(x, 1):
		return "never"
	case math.IsNaN(x):
		return "unknown"
	case x == 0:
		return "0 " + units[len(units)-1].name
	}
	use := units[0]
	for _, u := range units {
		if math.Abs(x) >= u.is*(1-5e-5) {
			use = u
		}
	}
	v := x / use.is
	if math.Abs(v) >= 9999.5 { // beyond the largest unit: all digits of the whole number
		return fmt.Sprintf("%.0f %s", v, use.name)
	}
	text := strconv.FormatFloat(v, 'g', 4, 64)
	if f, err := strconv.ParseFloat(text, 64); err == nil {
		text = strconv.FormatFloat(f, 'f', -1, 64) // no exponent
	}
	return text + " " + use.name
}
