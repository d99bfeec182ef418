package scpi

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// Error numbers of SCPI-99 volume 2, chapter 21.8.
const (
	NoError = 0

	CommandError         = -100
	InvalidCharacter     = -101
	BadSyntax            = -102
	InvalidSeparator     = -103
	DataTypeError        = -104
	ParameterNotAllowed  = -108
	MissingParameter     = -109
	HeaderSeparatorError = -111
	MnemonicTooLong      = -112
	UndefinedHeader      = -113
	HeaderSuffixRange    = -114
	NumericDataError     = -120
	InvalidNumber        = -121
	SuffixNotAllowed     = -138
	CharacterDataTooLong = -144
	InvalidString        = -151
	InvalidBlock         = -161
	InvalidExpression    = -171

	ExecutionError        = -200
	CommandProtected      = -203
	SettingsConflict      = -221
	DataOutOfRange        = -222
	TooMuchData           = -223
	IllegalParameterValue = -224
	ListsNotSameLength    = -226
	HardwareError         = -240
	HardwareMissing       = -241

	DeviceError        = -300
	QueueOverflow      = -350
	InputBufferOverrun = -363

	QueryError = -400
)

var texts = map[int]string{
	NoError:               "No error",
	CommandError:          "Command error",
	InvalidCharacter:      "Invalid character",
	BadSyntax:             "Syntax error",
	InvalidSeparator:      "Invalid separator",
	DataTypeError:         "Data type error",
	ParameterNotAllowed:   "Parameter not allowed",
	MissingParameter:      "Missing parameter",
	HeaderSeparatorError:  "Header separator error",
	MnemonicTooLong:       "Program mnemonic too long",
	UndefinedHeader:       "Undefined header",
	HeaderSuffixRange:     "Header suffix out of range",
	NumericDataError:      "Numeric data error",
	InvalidNumber:         "Invalid character in number",
	SuffixNotAllowed:      "Suffix not allowed",
	CharacterDataTooLong:  "Character data too long",
	InvalidString:         "Invalid string data",
	InvalidBlock:          "Invalid block data",
	InvalidExpression:     "Invalid expression",
	ExecutionError:        "Execution error",
	CommandProtected:      "Command protected",
	SettingsConflict:      "Settings conflict",
	DataOutOfRange:        "Data out of range",
	TooMuchData:           "Too much data",
	IllegalParameterValue: "Illegal parameter value",
	ListsNotSameLength:    "Lists not same length",
	HardwareError:         "Hardware error",
	HardwareMissing:       "Hardware missing",
	DeviceError:           "Device-specific error",
	QueueOverflow:         "Queue overflow",
	InputBufferOverrun:    "Input buffer overrun",
	QueryError:            "Query error",
}

// ErrorText returns the standard's text for an error number, or "" when it has
// none.
func ErrorText(code int) string { return texts[code] }

// Error is an entry of a device's error queue.
type Error struct {
	Code int    // negative: of the standard; positive: of the device; 0 is none
	Text string // the standard's text, perhaps with ";detail" behind
}

// maxErrorText is the longest text of an error (SCPI-99 volume 2, 21.8.1).
const maxErrorText = 255

// NewError returns the error of a number with its standard text and, unless it
// is "", detail. What is not printable in detail becomes '?', and the text is
// cut where the standard ends it.
func NewError(code int, detail string) Error {
	text := ErrorText(code)
	if detail != "" {
		text += ";" + strings.Map(func(c rune) rune {
			if c < ' ' || c > '~' {
				return '?'
			}
			return c
		}, detail)
	}
	return Error{code, text[:min(len(text), maxErrorText)]}
}

// Error returns number and text, such as
//
//	error -222 "Data out of range;port 99"
func (e Error) Error() string { return fmt.Sprintf("error %d %q", e.Code, e.Text) }

// AppendError appends e as SYSTem:ERRor? gives it, with or without a blank after
// the comma. The standard has none.
func AppendError(dst []byte, e Error, blank bool) []byte {
	dst = append(strconv.AppendInt(dst, int64(e.Code), 10), ',')
	if blank {
		dst = append(dst, ' ')
	}
	return append(dst, Quote(e.Text)...)
}

// ParseError reads the reply to SYSTem:ERRor? or, with several errors,
// SYSTem:ERRor:ALL?. Code 0 is no error and left out. Each number must have its
// text: a reply that is a number alone answers something else.
func ParseError(reply string) ([]Error, error) {
	values, err := ParseValues(reply)
	if err != nil {
		return nil, err
	}
	if len(values) == 0 || len(values)%2 != 0 {
		return nil, syntaxError(BadSyntax, 1, reply, "want pairs of an error number and a text")
	}
	var list []Error
	for i := 0; i < len(values); i += 2 {
		code, err := strconv.ParseInt(values[i], 10, 32)
		if err != nil {
			return nil, syntaxError(NumericDataError, 1, reply, fmt.Sprintf("%s is not an error number", excerpt(values[i])))
		}
		text, err := Unquote(values[i+1])
		if err != nil {
			return nil, err
		}
		if code != NoError {
			list = append(list, Error{int(code), text})
		}
	}
	return list, nil
}

// A SyntaxError tells what is wrong with a program message or a reply.
type SyntaxError struct {
	Code   int    // SCPI error number, -199 to -100, or of the data: -222, -223
	Offset int    // position of the offending character, counted from 1
	Text   string // the text that was parsed
	Reason string // one clause, without position
}

func syntaxError(code, offset int, text, reason string) *SyntaxError {
	return &SyntaxError{code, offset, text, reason}
}

// Error returns one sentence with position and text.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("scpi: %s at offset %d of %s", e.Reason, e.Offset, excerpt(e.Text))
}

// A TooLongError reports a line longer than the decoder allows. Everything up
// to its end is dropped.
type TooLongError struct {
	Limit int    // in bytes
	Head  []byte // first bytes of what was dropped, 64 at most
}

func newTooLongError(limit int, b []byte) *TooLongError {
	return &TooLongError{limit, bytes.Clone(b[:min(len(b), 64)])}
}

// Error returns one sentence with the beginning of the line.
func (e *TooLongError) Error() string {
	return fmt.Sprintf("scpi: a line that begins with %s is longer than %d bytes", excerpt(string(e.Head)), e.Limit)
}

// excerpt quotes the beginning of wire text for an error message.
func excerpt(s string) string {
	const limit = 120
	if len(s) > limit {
		return fmt.Sprintf("%q and %d bytes more", s[:limit], len(s)-limit)
	}
	return fmt.Sprintf("%q", s)
}
