package natural

import "fmt"

// Count writes a number of things, of which more than one are called by an s at the end:
// "1 point", "0 points". Numbers below 0 are written like the rest.
func Count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
