// Package natural puts names in the order that people expect, and numbers of things in
// their words.
package natural

import (
	"cmp"
	"strings"
)

// Compare returns how texts compare when numbers in them count as numbers: gpu2 comes
// before gpu10. It is 0 for equal texts only.
func Compare(a, b string) int {
	x, y := a, b
	for x != "" && y != "" {
		nx, restX := digits(x)
		ny, restY := digits(y)
		if nx != "" && ny != "" {
			long, short := strings.TrimLeft(nx, "0"), strings.TrimLeft(ny, "0")
			if c := cmp.Or(cmp.Compare(len(long), len(short)), cmp.Compare(long, short)); c != 0 {
				return c
			}
			x, y = restX, restY
			continue
		}
		if x[0] != y[0] {
			break
		}
		x, y = x[1:], y[1:]
	}
	return cmp.Or(cmp.Compare(x, y), cmp.Compare(a, b))
}

// digits is the number with which a text begins, and the rest.
func digits(s string) (number, rest string) {
	n := 0
	for n < len(s) && '0' <= s[n] && s[n] <= '9' {
		n++
	}
	return s[:n], s[n:]
}
