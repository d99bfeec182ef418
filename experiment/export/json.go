package export

import (
	"math"
	"strconv"

	"github.com/ocslab/ocslab/internal/jsontext"
)

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
	*o = append(jsontext.Append(*o, name), ':')
}

func (o *object) text(name, value string) {
	o.key(name)
	*o = jsontext.Append(*o, value)
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
