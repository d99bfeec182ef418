package plan

import (
	"fmt"
	"strings"
)

// choice sets into to the one of choices that text is.
func choice[T ~string](into *T, text []byte, choices ...T) error {
	var names []string
	for _, c := range choices {
		if string(c) == string(text) {
			*into = c
			return nil
		}
		names = append(names, string(c))
	}
	return fmt.Errorf("want %s, found %.60q", strings.Join(names, " or "), text)
}
