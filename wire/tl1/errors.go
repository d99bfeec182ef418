package tl1

import (
	"bytes"
	"fmt"
	"strings"
)

// A SyntaxError tells what is wrong with a command or a list.
type SyntaxError struct {
	Offset int    // position of the offending character, counted from 1
	Text   string // the text that was parsed
	Msg    string // one clause, without position
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("tl1: %s at offset %d of %s", e.Msg, e.Offset, excerpt(e.Text))
}

// A TooLongError reports a command or message longer than the decoder allows.
// Everything up to its end is dropped.
type TooLongError struct {
	Limit int    // in bytes
	Head  []byte // first bytes of what was dropped, 64 at most
}

func newTooLongError(limit int, b []byte) *TooLongError {
	return &TooLongError{Limit: limit, Head: bytes.Clone(b[:min(len(b), 64)])}
}

func (e *TooLongError) Error() string {
	return fmt.Sprintf("tl1: text that begins with %s is longer than %d bytes", excerpt(string(e.Head)), e.Limit)
}

// A MessageError reports text that was delimited like an output message but is
// none.
type MessageError struct {
	Raw []byte // as on the wire
	Msg string // one clause
}

func (e *MessageError) Error() string {
	return fmt.Sprintf("tl1: %s in message %s", e.Msg, excerpt(string(e.Raw)))
}

// excerpt quotes the beginning of wire text for an error message.
func excerpt(s string) string {
	const limit = 120
	if len(s) > limit {
		return fmt.Sprintf("%q and %d bytes more", s[:limit], len(s)-limit)
	}
	return fmt.Sprintf("%q", s)
}

// An Error is a command that the peer refused, or carried out only in part.
type Error struct {
	Code       string     // four letters, see [Code]; "" when the reply has none
	Completion Completion // DENY or PRTL
	Text       string     // the comments of the reply joined by "; ", or its data lines if it has no comment
	CTAG       string
}

// Error gives the refusal in one line, such as
//
//	DENY IDNV "Invalid OXC port: 1000" (data not valid)
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(string(e.Completion))
	if e.Code != "" {
		b.WriteString(" " + e.Code)
	}
	if e.Text != "" {
		fmt.Fprintf(&b, " %q", e.Text)
	}
	if m := Code(e.Code).Meaning(); m != "" {
		b.WriteString(" (" + m + ")")
	}
	return b.String()
}

// NotLoggedIn reports whether the command failed because the session has no
// user, or has lost it to the inactivity timer. Switches tell it by the code
// PLNA or by the text alone.
func (e *Error) NotLoggedIn() bool {
	return e.Code == string(PLNA) || e.says("not logged in") || e.says("login not active")
}

// AlreadyLoggedIn reports whether a login failed only because the session has a
// user already, as it always does over SSH.
func (e *Error) AlreadyLoggedIn() bool { return e.says("already logged in") }

func (e *Error) says(lower string) bool {
	return strings.Contains(strings.ToLower(e.Text), lower)
}

// A Code is the four-letter error code of a DENY or PRTL reply.
type Code string

// Error codes of GR-831-CORE, and of common practice where the standard has
// none. The comments tell where switches are known to differ.
const (
	IBEX Code = "IBEX"
	IBMS Code = "IBMS"
	ICNV Code = "ICNV"
	IDNC Code = "IDNC"
	IDNV Code = "IDNV"
	IDRG Code = "IDRG"
	IEAE Code = "IEAE"
	IENE Code = "IENE"
	IIAC Code = "IIAC"
	IICM Code = "IICM"
	IICT Code = "IICT"
	IIPG Code = "IIPG"
	IISP Code = "IISP"
	IITA Code = "IITA"
	INUP Code = "INUP"
	IPEX Code = "IPEX"
	IPMS Code = "IPMS"
	IPNC Code = "IPNC"
	IPNV Code = "IPNV"
	ISCH Code = "ISCH"
	ISPC Code = "ISPC"

	ENEQ Code = "ENEQ"
	MERR Code = "MERR"

	PICC Code = "PICC" // Polatis: permission denied, also for a bad login
	PIUC Code = "PIUC"
	PIUI Code = "PIUI"
	PLNA Code = "PLNA"

	SARB Code = "SARB"
	SDNR Code = "SDNR"
	SNVS Code = "SNVS"
	SRCN Code = "SRCN" // Polatis: also "User not in the admin group"
	SROF Code = "SROF"
	SROU Code = "SROU"
	SSRE Code = "SSRE"
	SSTP Code = "SSTP" // Polatis: date out of range
)

var meanings = map[Code]string{
	IBEX: "extra block",
	IBMS: "block missing",
	ICNV: "command not valid",
	IDNC: "data not consistent",
	IDNV: "data not valid",
	IDRG: "data out of range",
	IEAE: "entity already exists",
	IENE: "entity does not exist",
	IIAC: "invalid access identifier",
	IICM: "invalid command",
	IICT: "invalid correlation tag",
	IIPG: "invalid parameter grouping",
	IISP: "invalid syntax or punctuation",
	IITA: "invalid target identifier",
	INUP: "unimplemented parameter is not empty",
	IPEX: "extra parameter",
	IPMS: "parameter missing",
	IPNC: "parameter not consistent",
	IPNV: "parameter not valid",
	ISCH: "invalid character",
	ISPC: "invalid punctuation",
	ENEQ: "not equipped",
	MERR: "multiple errors",
	PICC: "illegal command code or no permission",
	PIUC: "illegal user code",
	PIUI: "illegal user identity",
	PLNA: "login not active",
	SARB: "all resources busy",
	SDNR: "data not ready",
	SNVS: "not in valid state",
	SRCN: "requested condition does not exist",
	SROF: "requested operation failed",
	SROU: "requested operation unnecessary",
	SSRE: "system resources exceeded",
	SSTP: "stopped",
}

// Meaning returns what c stands for in plain words, or "" for a code unknown to
// this package.
func (c Code) Meaning() string { return meanings[c] }
