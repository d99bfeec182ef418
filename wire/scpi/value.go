package scpi

import "strings"

// Quote returns s as a string of response data: in double quotes, those in it
// doubled (IEEE 488.2, 8.7.8).
func Quote(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }

// Unquote returns the content of a string in double or single quotes. Blanks and
// line ends around it are ignored. The error is a [*SyntaxError].
func Unquote(s string) (string, error) {
	t := strings.Trim(s, whitespace)
	if len(t) < 2 || !isQuote(t[0]) || t[len(t)-1] != t[0] {
		return "", syntaxError(InvalidString, 1, s, "want a string in quotes")
	}
	quote, body := t[:1], t[1:len(t)-1]
	if strings.Contains(strings.ReplaceAll(body, quote+quote, ""), quote) {
		return "", syntaxError(InvalidString, 1, s, "a quote in a string that is not doubled")
	}
	return strings.ReplaceAll(body, quote+quote, quote), nil
}

// whitespace is what may stand around values.
const whitespace = " \t\r\n\x00"

// ParseValues reads values joined by commas, which may stand in parentheses as a
// whole: "(D,E,F)", "16,16". Commas in strings and inner parentheses do not
// count. Values are as written, without blanks around; use [Unquote] for those
// in quotes. "" and "()" have none. The error is a [*SyntaxError].
func ParseValues(s string) ([]string, error) {
	t := strings.Trim(s, whitespace)
	if t == "" {
		return nil, nil
	}
	values, err := splitValues(s, t)
	if err != nil {
		return nil, err
	}
	// "(a,b)" is one value so far; "(@1,2)" stays one.
	if len(values) == 1 && strings.HasPrefix(t, "(") && strings.HasSuffix(t, ")") && !strings.HasPrefix(t, "(@") {
		inner := strings.Trim(t[1:len(t)-1], whitespace)
		if inner == "" {
			return nil, nil
		}
		return splitValues(s, inner)
	}
	return values, nil
}

// splitValues cuts t, which is part of s, at commas.
func splitValues(s, t string) ([]string, error) {
	base := strings.Index(s, t)
	var values []string
	var quote byte
	depth, from := 0, 0
	for i := 0; i <= len(t); i++ {
		switch {
		case i == len(t) && quote != 0:
			return nil, syntaxError(InvalidString, base+i+1, s, "a string that is not closed")
		case i == len(t) && depth > 0:
			return nil, syntaxError(InvalidExpression, base+i+1, s, "a parenthesis that is not closed")
		case i == len(t), t[i] == ',' && quote == 0 && depth == 0:
			v := strings.Trim(t[from:i], whitespace)
			if v == "" {
				return nil, syntaxError(MissingParameter, base+i+1, s, "a value is missing")
			}
			values = append(values, v)
			from = i + 1
		case quote != 0:
			if t[i] == quote {
				quote = 0
			}
		case t[i] == '"':
			quote = '"'
		case t[i] == '(':
			depth++
		case t[i] == ')':
			if depth--; depth < 0 {
				return nil, syntaxError(InvalidExpression, base+i+1, s, "a parenthesis that was not opened")
			}
		}
	}
	return values, nil
}
