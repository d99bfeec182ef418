package export

import (
	"encoding/json"
	"math"
	"strconv"
)

// appendText appends a JSON string. What is not UTF-8 becomes U+FFFD.
func appendText(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return appendEscaped(b, s)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}

func appendEscaped(b []byte, s string) []byte {
	text, err := json.Marshal(s)
	if err != nil { // cannot be: any string can be written
		return append(b, `""`...)
	}
	return append(b, text...)
}

// appendNumber appends a number, or null for what JSON has no number for.
func appendNumber(b []byte, f float64) []byte {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return append(b, "null"...)
	}
	return strconv.AppendFloat(b, f, 'g', -1, 64)
}

// object is a JSON object in the making, without its braces.
type object []byte

func (o *object) key(name string) {
	if len(*o) > 0 {
		*o = append(*o, ',')
	}
	*o = append(appendText(*o, name), ':')
}

func (o *object) text(name, value string) {
	o.key(name)
	*o = appendText(*o, value)
}

func (o *object) whole(name string, value int64) {
	o.key(name)
	*o = strconv.AppendInt(*o, value, 10)
}

func (o *object) number(name string, value float64) {
	o.key(name)
	*o = appendNumber(*o, value)
}

func (o *object) yes(name string) {
	o.key(name)
	*o = append(*o, "true"...)
}
