package plan

import (
	"fmt"
	"strings"

	"github.com/ocslab/ocslab/internal/strictyaml"
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
	return fmt.Errorf("want %s, found %.60q%s", strings.Join(names, " or "), text, strictyaml.DidYouMean(string(text), names))
}

// textError is a problem at a byte of a text.
type textError struct {
	offset int
	msg    string
}

func (e *textError) Error() string   { return e.msg }
func (e *textError) TextOffset() int { return e.offset }

func textErrorf(offset int, format string, args ...any) error {
	return &textError{offset, fmt.Sprintf(format, args...)}
}

// references returns the names of the parameters that text refers to as ${name}, in order.
// "$${" stands for "${" itself.
func references(text string) ([]string, error) {
	var names []string
	_, err := replace(text, func(name string) string {
		names = append(names, name)
		return ""
	})
	return names, err
}

// substitute replaces each ${name} in text by the value of that parameter. What cannot be
// replaced stays as it is: a file with such a text does not pass [Parse].
func substitute(text string, params map[string]string) string {
	s, err := replace(text, func(name string) string {
		if v, ok := params[name]; ok {
			return v
		}
		return "${" + name + "}"
	})
	if err != nil {
		return text
	}
	return s
}

func replace(text string, with func(name string) string) (string, error) {
	var b strings.Builder
	for at := 0; ; {
		i := strings.Index(text[at:], "${")
		if i < 0 {
			b.WriteString(text[at:])
			return b.String(), nil
		}
		i += at
		if i > at && text[i-1] == '$' {
			b.WriteString(text[at:i-1] + "${")
			at = i + 2
			continue
		}
		end := strings.IndexByte(text[i:], '}')
		if end < 0 {
			return "", fmt.Errorf("%.60q has no closing brace: want ${name}, or $${ for text that holds these two characters", text[i:])
		}
		name := text[i+2 : i+end]
		if name == "" {
			return "", fmt.Errorf("${} names no parameter: want ${name}")
		}
		b.WriteString(text[at:i] + with(name))
		at = i + end + 1
	}
}
