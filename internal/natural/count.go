package natural

import (
	"fmt"
	"strings"
)

// Count writes a number of things, of which more than one are called by an s at the end, or
// by es where an s alone cannot be spoken: "1 point", "0 points", "3 switches". Numbers below
// 0 are written like the rest.
func Count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	end := "s"
	for _, x := range []string{"ch", "sh", "s", "x", "z"} {
		if strings.HasSuffix(what, x) {
			end = "es"
		}
	}
	return fmt.Sprintf("%d %s%s", n, what, end)
}
