package statedir

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/crc32"
)

// The seal stands in place of the closing brace of the object that it is for.
const (
	sealFormat = `,"crc":"%08x"}`
	sealLen    = len(`,"crc":"00000000"}`)
)

// Seal returns v, which marshals to a JSON object that is not empty, as one line without its newline, with a last key
// "crc": the CRC-32 (IEEE) in eight hexadecimal digits of the object as it would be without that key.
func Seal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // "1>33" is to be legible
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	object := bytes.TrimSuffix(b.Bytes(), []byte("\n"))
	sum := crc32.ChecksumIEEE(object)
	return fmt.Appendf(object[:len(object)-1], sealFormat, sum), nil
}

// Sealed reports whether line ends in the right seal for what is before it.
func Sealed(line []byte) bool {
	at := len(line) - sealLen
	if at < 0 {
		return false
	}
	sum := crc32.Update(crc32.ChecksumIEEE(line[:at]), crc32.IEEETable, []byte("}"))
	return string(line[at:]) == fmt.Sprintf(sealFormat, sum)
}
