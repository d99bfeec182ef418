package secret_test

import (
	"bytes"
	"encoding/gob"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"text/template"

	yaml "go.yaml.in/yaml/v3"

	"github.com/ocslab/ocslab/internal/secret"
)

const value = "hunter2"

// leaks reports whether out holds the value in any spelling that fmt has.
func leaks(out string) bool {
	l := strings.ToLower(out)
	for _, s := range []string{value, fmt.Sprintf("%x", value), fmt.Sprintf("% x", value), fmt.Sprint([]byte(value)), "aHVudGVyM"} {
		if strings.Contains(l, strings.ToLower(s)) {
			return true
		}
	}
	return false
}

// holder has secrets where formatters reach by a method, and where they
// cannot call one.
type holder struct {
	Public  secret.Secret
	Pointer *secret.Secret
	List    []secret.Secret
	Map     map[string]secret.Secret
	private secret.Secret
	nested  struct{ s *secret.Secret }
	any     any
}

func holders() []any {
	s := secret.New(value)
	h := holder{Public: s, Pointer: &s, List: []secret.Secret{s}, Map: map[string]secret.Secret{"a": s}, private: s, any: s}
	h.nested.s = &s
	return []any{s, &s, h, &h, []any{s}, fmt.Errorf("login: %v", s)}
}

func TestSecretDoesNotLeak(t *testing.T) {
	for _, h := range holders() {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "% x", "%X", "%d", "%o", "%t", "%p", "%#x", "%c", "%U", "%e", "%w", "%z", "%10.3s"} {
			if out := fmt.Sprintf(verb, h); leaks(out) {
				t.Errorf("%T leaks with %s: %s", h, verb, out)
			}
		}
		if out := fmt.Sprint(h) + fmt.Sprintln(h); leaks(out) {
			t.Errorf("%T leaks: %s", h, out)
		}
		for name, handler := range map[string]func(*bytes.Buffer) slog.Handler{
			"text": func(b *bytes.Buffer) slog.Handler { return slog.NewTextHandler(b, nil) },
			"json": func(b *bytes.Buffer) slog.Handler { return slog.NewJSONHandler(b, nil) },
		} {
			var b bytes.Buffer
			slog.New(handler(&b)).Info("x", "h", h, slog.Group("g", slog.Any("h", h)))
			if leaks(b.String()) {
				t.Errorf("%T leaks to slog %s: %s", h, name, &b)
			}
		}
		for name, marshal := range map[string]func(any) ([]byte, error){
			"json": json.Marshal, "yaml": yaml.Marshal, "xml": xml.Marshal,
			"gob": func(v any) ([]byte, error) {
				var b bytes.Buffer
				err := gob.NewEncoder(&b).Encode(v)
				return b.Bytes(), err
			},
			"template": func(v any) ([]byte, error) {
				var b bytes.Buffer
				err := template.Must(template.New("").Parse("{{.}}")).Execute(&b, v)
				return b.Bytes(), err
			},
		} {
			out, err := marshal(h)
			if leaks(string(out)) || err != nil && leaks(err.Error()) {
				t.Errorf("%T leaks to %s: %s %v", h, name, out, err)
			}
		}
	}
}

func TestSecretForms(t *testing.T) {
	for _, s := range []secret.Secret{secret.New(value), {}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d"} {
			if got, want := fmt.Sprintf(verb, s), "[secret]"; got != want {
				t.Errorf("%s: got %s, want %s", verb, got, want)
			}
		}
		if s.String() != "[secret]" || s.GoString() != "[secret]" || s.LogValue().String() != "[secret]" {
			t.Errorf("got %s, %#v, %v", s, s, s.LogValue())
		}
		for want, marshal := range map[string]func(any) ([]byte, error){
			`{"p":"[secret]"}`:  json.Marshal,
			"p: '[secret]'\n":   yaml.Marshal,
			"<a>[secret]</a>\n": func(any) ([]byte, error) { b, err := s.MarshalText(); return []byte("<a>" + string(b) + "</a>\n"), err },
		} {
			got, err := marshal(map[string]secret.Secret{"p": s})
			if err != nil || string(got) != want {
				t.Errorf("got %s %v, want %s", got, err, want)
			}
		}
	}
}

func TestReveal(t *testing.T) {
	if s := secret.New(value); s.IsZero() || s.Reveal() != value {
		t.Errorf("got %q, %v", s.Reveal(), s.IsZero())
	}
	for _, s := range []secret.Secret{{}, secret.New("")} {
		if !s.IsZero() || s.Reveal() != "" {
			t.Errorf("got %q, %v", s.Reveal(), s.IsZero())
		}
	}
}

func TestParseRef(t *testing.T) {
	for _, s := range []string{"env:RAIL0_PASSWORD", "env:_x", "file:/run/x", "file:x", "file:../a b:c"} {
		var u secret.Ref
		r, err := secret.ParseRef(s)
		if err != nil || string(r) != s || u.UnmarshalText([]byte(s)) != nil || u != r {
			t.Errorf("%s: got %s %s %v", s, r, u, err)
		}
	}
	for s, want := range map[string]string{
		"":                     "the reference to the secret is empty: want env:NAME or file:PATH",
		value:                  "this is not a reference to a secret (the text is not shown, as it may be one): want env:NAME or file:PATH",
		"ENV:" + value:         "this is not a reference to a secret (the text is not shown, as it may be one): want env:NAME or file:PATH",
		"env:":                 `the reference to the secret ends after "env:": want env:NAME or file:PATH`,
		"file:":                `the reference to the secret ends after "file:": want env:NAME or file:PATH`,
		"env:$" + value:        "what follows env: is not the name of an environment variable (it is not shown, as it may be a secret); a name has letters, digits and underscores, and no $",
		"file:" + value + "\n": "what follows file: is not a path (it is not shown, as it may be a secret)",
	} {
		r, err := secret.ParseRef(s)
		u := secret.Ref("env:KEPT")
		if r != "" || err == nil || err.Error() != want {
			t.Errorf("%q: got %q, %v, want %s", s, r, err, want)
		}
		if err != nil && leaks(err.Error()) {
			t.Errorf("%q: the error leaks: %v", s, err)
		}
		if u.UnmarshalText([]byte(s)) == nil || u != "env:KEPT" {
			t.Errorf("%q: UnmarshalText gave %s", s, u)
		}
		if s == "" {
			continue
		}
		if got, err := secret.Ref(s).Resolve(""); err == nil || !got.IsZero() || leaks(err.Error()) {
			t.Errorf("%q: Resolve gave %v", s, err)
		}
	}
}

func TestResolveEnvironment(t *testing.T) {
	t.Setenv("OCSLAB_TEST_SET", value)
	t.Setenv("OCSLAB_TEST_EMPTY", "")
	if s, err := secret.Ref("env:OCSLAB_TEST_SET").Resolve(""); err != nil || s.Reveal() != value {
		t.Errorf("got %q, %v", s.Reveal(), err)
	}
	if s, err := secret.Ref("").Resolve(""); err != nil || !s.IsZero() {
		t.Errorf("empty: got %q, %v", s.Reveal(), err)
	}
	for ref, want := range map[secret.Ref]string{
		"env:OCSLAB_TEST_EMPTY": "the environment variable OCSLAB_TEST_EMPTY is empty",
		"env:OCSLAB_TEST_UNSET": "the environment variable OCSLAB_TEST_UNSET is not set",
	} {
		if _, err := ref.Resolve(""); err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", ref, err, want)
		}
	}
}
