package jsontext_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/internal/jsontext"
)

// Ensure strings are written as package json writes them.
func TestAppend(t *testing.T) {
	check := func(fatal func(string, ...any), s string) {
		var want bytes.Buffer
		enc := json.NewEncoder(&want)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(s); err != nil {
			fatal("%v", err)
		}
		if got := jsontext.Append([]byte("x"), s); string(got) != "x"+string(bytes.TrimSuffix(want.Bytes(), []byte("\n"))) {
			fatal("%q: %s, want x%s", s, got, want.Bytes())
		}
	}
	for c := range 0x300 {
		check(t.Fatalf, "a"+string(rune(c))+"b")
	}
	for _, s := range []string{"", "\xff", "a\xc3", "\u2028\u2029", "1>33 & <x>", "\U0001F600", "\ufffd"} {
		check(t.Fatalf, s)
	}
	rapid.Check(t, func(rt *rapid.T) {
		check(rt.Fatalf, string(rapid.SliceOf(rapid.Byte()).Draw(rt, "s")))
	})
}
