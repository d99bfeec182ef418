package cmis

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
)

// A module's Command Data Block (OIF-CMIS-05.2, section 9) is on page 9Fh: commands are
// written there, and replies read. Only what fits the page itself (LPL) is known here, not
// the extended payload of pages A0h to AFh.
const (
	CDBPage       = 0x9f
	CDBMaxPayload = 120
	cdbHead       = 8 // command, EPL length, LPL length, check code, reply length, reply check
)

// CDBStatusAddress is where a module says how a command goes.
var CDBStatusAddress = Address{Offset: RegCDBStatus}

// CDBStatus is the status of a command (OIF-CMIS-05.2, table 8-13).
type CDBStatus uint8

const (
	CDBSuccess    CDBStatus = 0x01
	CDBFailed     CDBStatus = 0x40
	CDBParameter  CDBStatus = 0x42
	CDBCheckCode  CDBStatus = 0x45
	CDBPassword   CDBStatus = 0x46
	CDBUnknown    CDBStatus = 0x41
	CDBInProgress CDBStatus = 0x81 // captured, not begun
	CDBChecking   CDBStatus = 0x82
	CDBExecuting  CDBStatus = 0x83
	cdbBusy       CDBStatus = 0x80
	cdbFailed     CDBStatus = 0x40
	CDBNoneSoFar  CDBStatus = 0x00
)

// Busy reports whether the command has not ended.
func (s CDBStatus) Busy() bool { return s&cdbBusy != 0 }

// Failed reports whether it has ended, and not well.
func (s CDBStatus) Failed() bool { return !s.Busy() && s&cdbFailed != 0 }

// String says what the status means.
func (s CDBStatus) String() string {
	words := map[CDBStatus]string{
		CDBNoneSoFar: "no command yet", CDBSuccess: "success", CDBFailed: "failed", CDBUnknown: "unknown command", CDBParameter: "wrong parameter",
		CDBCheckCode: "wrong check code", CDBPassword: "password wanted", CDBInProgress: "captured", CDBChecking: "checking", CDBExecuting: "executing",
	}
	if w, known := words[s]; known {
		return w
	}
	return fmt.Sprintf("CDB status %02Xh", uint8(s))
}

// CDBError is a command that a module has refused.
type CDBError struct {
	Command uint16
	Status  CDBStatus
	Reply   []byte // what it said besides; nil if that is damaged
}

// Error returns one sentence.
func (e *CDBError) Error() string {
	return fmt.Sprintf("CDB command %04Xh: %v", e.Command, e.Status)
}

// ErrCDB is a reply that cannot be read.
var ErrCDB = errors.New("CDB reply is damaged")

// EncodeCDB returns what is to be written to page 9Fh, from byte 128 on, in one
// transaction, which the module takes as the command. A payload beyond CDBMaxPayload is an
// error.
func EncodeCDB(command uint16, payload []byte) ([]byte, error) {
	if len(payload) > CDBMaxPayload {
		return nil, fmt.Errorf("CDB command %04Xh: a payload of %d bytes, and at most %d fit", command, len(payload), CDBMaxPayload)
	}
	p := make([]byte, cdbHead+len(payload))
	binary.BigEndian.PutUint16(p, command)
	p[4] = byte(len(payload))
	copy(p[cdbHead:], payload)
	p[5] = CheckCode(p)
	return p, nil
}

// DecodeCDB takes apart what was written to page 9Fh. False is that the check code is
// wrong, or lengths are.
func DecodeCDB(p []byte) (command uint16, payload []byte, ok bool) {
	if len(p) < cdbHead || int(p[4]) > len(p)-cdbHead || p[4] > CDBMaxPayload || binary.BigEndian.Uint16(p[2:]) != 0 {
		return 0, nil, false
	}
	all := append([]byte(nil), p[:cdbHead+int(p[4])]...)
	code := all[5]
	all[5], all[6], all[7] = 0, 0, 0
	return binary.BigEndian.Uint16(p), all[cdbHead:], CheckCode(all) == code
}

// CheckCode is the one's complement of the sum of bytes; the byte that is to hold it is
// zero meanwhile.
func CheckCode(p []byte) byte { return ^sum(p) }

// EncodeCDBReply writes the reply into what was written to page 9Fh, of at least 8 bytes. A
// reply beyond CDBMaxPayload, or longer than the page has room for, is cut off.
func EncodeCDBReply(page, reply []byte) {
	if len(page) < cdbHead {
		return
	}
	reply = reply[:min(len(reply), CDBMaxPayload, len(page)-cdbHead)]
	page[6], page[7] = byte(len(reply)), CheckCode(reply)
	copy(page[cdbHead:], reply)
}

// DoCDB has a module do a command and returns its reply. Between two looks at the status it
// calls pause, which returns an error to give up. A command that the module refuses is a
// *[CDBError], whatever its reply looks like; the other errors are those of m, of pause, and
// ErrCDB.
func DoCDB(ctx context.Context, m Memory, command uint16, payload []byte, pause func(context.Context) error) ([]byte, error) {
	request, err := EncodeCDB(command, payload)
	if err != nil {
		return nil, err
	}
	page := Address{Page: CDBPage, Offset: half}
	if err := m.Write(ctx, page, request); err != nil {
		return nil, err
	}
	var status [1]byte
	for {
		if err := m.Read(ctx, CDBStatusAddress, status[:]); err != nil {
			return nil, err
		}
		if !CDBStatus(status[0]).Busy() {
			break
		}
		if err := pause(ctx); err != nil {
			return nil, err
		}
	}
	head := make([]byte, cdbHead)
	if err := m.Read(ctx, page, head); err != nil {
		return nil, err
	}
	reply := make([]byte, min(int(head[6]), CDBMaxPayload))
	if len(reply) > 0 {
		if err := m.Read(ctx, Address{Page: CDBPage, Offset: half + cdbHead}, reply); err != nil {
			return nil, err
		}
	}
	// Some modules leave the check code of an empty reply at 0.
	whole := int(head[6]) == len(reply) && (CheckCode(reply) == head[7] || len(reply) == 0 && head[7] == 0)
	switch s := CDBStatus(status[0]); {
	case s != CDBSuccess && !whole:
		return nil, &CDBError{Command: command, Status: s}
	case s != CDBSuccess:
		return reply, &CDBError{command, s, reply}
	case !whole:
		return nil, fmt.Errorf("CDB command %04Xh: %w: it says %d bytes and check code %02Xh of % x", command, ErrCDB, head[6], head[7], reply)
	}
	return reply, nil
}
