package natural_test

import (
	"testing"

	"github.com/ocslab/ocslab/internal/natural"
)

func TestWrap(t *testing.T) {
	for _, x := range []struct{ text, indent, want string }{
		{"", "", ""},
		{"one two", "", "one two"},
		{"one two three", "", "one two\nthree"},
		{"one two three", "  ", "  one two\n  three"},
		{"incomprehensible word", "", "incomprehensible\nword"},
		{"one\n\ntwo three four\n", "", "one\n\ntwo three\nfour\n"},
		{"a  b", " ", " a  b"},
		{"  one two three", " ", "   one two\n   three"},
		{"zwölf ßß x", "", "zwölf ßß x"},
	} {
		if got := natural.Wrap(x.text, 10, x.indent); got != x.want {
			t.Errorf("Wrap(%q, 10, %q) = %q, want %q", x.text, x.indent, got, x.want)
		}
	}
}
