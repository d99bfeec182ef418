// Package shell writes commands that people copy into a POSIX shell.
package shell

import (
	"regexp"
	"strings"
)

// plain is what a shell takes as it is.
var plain = regexp.MustCompile(`^[A-Za-z0-9_./:@%+=,-]+$`)

// Quote writes a word so that a shell reads it as it is, whatever is in it. A zero byte, which
// no argument can hold, stays.
func Quote(word string) string {
	if plain.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// Line writes words as one command line.
func Line(words ...string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = Quote(w)
	}
	return strings.Join(quoted, " ")
}
