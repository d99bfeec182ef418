package cmis_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/wire/cmis"
)

// The check code is the one's complement of the sum of all bytes but itself and the reply
// header: 80+01+03+02+FF+01 = 186h, of which 86h counts.
func TestEncodeCDB_Golden(t *testing.T) {
	t.Parallel()
	got, err := cmis.EncodeCDB(0x8001, []byte{0x02, 0xff, 0x01})
	if err != nil {
		t.Fatal(err)
	}
	if want := "800100000379000002ff01"; hex.EncodeToString(got) != want {
		t.Errorf("got  %x\nwant %s", got, want)
	}
	if got, err = cmis.EncodeCDB(0, nil); err != nil || hex.EncodeToString(got) != "0000000000ff0000" {
		t.Errorf("an empty command is %x, %v", got, err)
	}
	if _, err := cmis.EncodeCDB(1, make([]byte, 121)); err == nil || !strings.Contains(err.Error(), "0001h") {
		t.Errorf("121 bytes: %v", err)
	}
}

// What is encoded is decoded, whatever was on the page behind it and in the reply header;
// and no bit can flip in it unnoticed.
func TestDecodeCDB_RoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		command := rapid.Uint16().Draw(t, "command")
		payload := rapid.SliceOfN(rapid.Byte(), 0, cmis.CDBMaxPayload).Draw(t, "payload")
		page, err := cmis.EncodeCDB(command, payload)
		if err != nil {
			t.Fatal(err)
		}
		page[6], page[7] = rapid.Byte().Draw(t, "length"), rapid.Byte().Draw(t, "check")
		page = append(page, rapid.SliceOfN(rapid.Byte(), 0, 128-len(page)).Draw(t, "rest")...)
		c, p, ok := cmis.DecodeCDB(page)
		if !ok || c != command || !bytes.Equal(p, payload) {
			t.Fatalf("%04Xh % x, %v", c, p, ok)
		}
		if len(payload) > 0 {
			p[0]++ // memory of its own
			if page[8] != payload[0] {
				t.Fatal("the payload shares memory with the page")
			}
		}
		bit := rapid.IntRange(0, 8*(8+len(payload))-1).Draw(t, "bit")
		if bit/8 == 6 || bit/8 == 7 {
			return
		}
		page[bit/8] ^= 1 << (bit % 8)
		// A longer payload may have the same sum by chance; all else is found.
		if _, _, ok := cmis.DecodeCDB(page); ok && bit/8 != 4 {
			t.Fatalf("bit %d flipped, and it was not found", bit)
		}
	})
}

// Lengths that cannot be are refused though the check code is right.
func TestDecodeCDB_Lengths(t *testing.T) {
	t.Parallel()
	sealed := func(lpl, epl byte, n int) []byte {
		p := make([]byte, 8+n)
		p[3], p[4] = epl, lpl
		p[5] = cmis.CheckCode(p)
		return p
	}
	for _, tt := range []struct {
		name string
		page []byte
		ok   bool
	}{
		{"whole", sealed(120, 0, 120), true}, {"more than a page holds", sealed(121, 0, 121), false},
		{"extended payload", sealed(0, 1, 0), false}, {"cut off", sealed(3, 0, 2), false}, {"no head", make([]byte, 7), false},
	} {
		if _, _, ok := cmis.DecodeCDB(tt.page); ok != tt.ok {
			t.Errorf("%s: %v", tt.name, ok)
		}
	}
}

func FuzzDecodeCDB(f *testing.F) {
	whole, _ := cmis.EncodeCDB(0x8001, []byte{2, 0xff, 1})
	f.Add(whole)
	f.Add(whole[:7])
	f.Add([]byte{0x80, 1, 0, 0, 200, 0, 0, 0})
	f.Add([]byte{0x80, 1, 0, 1, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, page []byte) {
		old := bytes.Clone(page)
		command, payload, ok := cmis.DecodeCDB(page)
		if !bytes.Equal(old, page) {
			t.Fatal("the page was changed")
		}
		if !ok {
			return
		}
		again, err := cmis.EncodeCDB(command, payload)
		if err != nil {
			t.Fatal(err)
		}
		// The reply header is no part of the command.
		copy(again[6:8], page[6:8])
		if !bytes.Equal(again, page[:len(again)]) {
			t.Fatalf("% x is taken for a command, which is % x", page, again)
		}
	})
}

// module is the memory of a module that does CDB commands: do tells the status and the
// reply, and busy how often it says before that it is not done.
type module struct {
	*cmis.Store
	busy int
	do   func(command uint16, payload []byte) (cmis.CDBStatus, []byte)
	spy  func(page []byte) // changes the page after the reply was written
}

func newModule(do func(uint16, []byte) (cmis.CDBStatus, []byte)) *module {
	return &module{Store: cmis.NewStore(cmis.Registers()), do: do}
}

func (m *module) page() []byte { return m.Bytes(cmis.Address{Page: cmis.CDBPage, Offset: 128}, 128) }

func (m *module) Read(_ context.Context, a cmis.Address, buf []byte) error {
	if err := m.Store.Read(a, buf); err != nil {
		return err
	}
	if a == cmis.CDBStatusAddress && m.busy > 0 {
		m.busy--
		buf[0] = byte(cmis.CDBExecuting)
	}
	return nil
}

func (m *module) Write(_ context.Context, a cmis.Address, data []byte) error {
	if err := m.Store.Write(a, data); err != nil || a.Page != cmis.CDBPage {
		return err
	}
	status := m.Bytes(cmis.CDBStatusAddress, 1)
	command, payload, ok := cmis.DecodeCDB(m.page())
	if !ok {
		status[0] = byte(cmis.CDBCheckCode)
		return nil
	}
	s, reply := m.do(command, payload)
	status[0] = byte(s)
	cmis.EncodeCDBReply(m.page(), reply)
	if m.spy != nil {
		m.spy(m.page())
	}
	return nil
}

func TestDoCDB(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	m := newModule(func(command uint16, payload []byte) (cmis.CDBStatus, []byte) {
		switch command {
		case 0x8001:
			return cmis.CDBSuccess, append([]byte("got "), payload...)
		case 0x8002:
			return cmis.CDBPassword, nil
		case 0x8003:
			return cmis.CDBParameter, []byte{7}
		}
		return cmis.CDBUnknown, nil
	})
	m.busy = 3
	pauses := 0
	pause := func(context.Context) error { pauses++; return nil }
	got, err := cmis.DoCDB(ctx, m, 0x8001, []byte("this"), pause)
	if err != nil || string(got) != "got this" {
		t.Fatalf("%q, %v", got, err)
	}
	if pauses != 3 {
		t.Errorf("it looked again after %d pauses, want 3", pauses)
	}
	for _, tt := range []struct {
		command uint16
		status  cmis.CDBStatus
		reply   string
		text    string
	}{
		{0x8002, cmis.CDBPassword, "", "CDB command 8002h: password wanted"},
		{0x8003, cmis.CDBParameter, "\x07", "CDB command 8003h: wrong parameter"},
		{0x0042, cmis.CDBUnknown, "", "CDB command 0042h: unknown command"},
	} {
		_, err := cmis.DoCDB(ctx, m, tt.command, nil, pause)
		var refused *cmis.CDBError
		if !errors.As(err, &refused) || refused.Status != tt.status || string(refused.Reply) != tt.reply || err.Error() != tt.text {
			t.Errorf("%04Xh: %v", tt.command, err)
		}
	}
	if _, err := cmis.DoCDB(ctx, m, 1, make([]byte, 200), pause); err == nil {
		t.Error("a payload that does not fit was sent")
	}
	m.busy = 1
	gone := errors.New("no time left")
	if _, err := cmis.DoCDB(ctx, m, 0x8001, nil, func(context.Context) error { return gone }); !errors.Is(err, gone) {
		t.Errorf("given up: %v", err)
	}
}

// A reply that does not fit its check code or its length is an error, and never hides that
// the command was refused.
func TestDoCDB_Damaged(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		status  cmis.CDBStatus
		reply   string
		spy     func(page []byte)
		damaged bool
		refused bool
	}{
		{"whole", cmis.CDBSuccess, "abc", func([]byte) {}, false, false},
		{"flipped bit", cmis.CDBSuccess, "abc", func(p []byte) { p[9] ^= 4 }, true, false},
		{"check code", cmis.CDBSuccess, "abc", func(p []byte) { p[7]++ }, true, false},
		{"too long", cmis.CDBSuccess, "abc", func(p []byte) { p[6] = 121 }, true, false},
		{"empty, no check code", cmis.CDBSuccess, "", func(p []byte) { p[7] = 0 }, false, false},
		{"empty, wrong check code", cmis.CDBSuccess, "", func(p []byte) { p[7] = 1 }, true, false},
		{"refused", cmis.CDBFailed, "abc", func(p []byte) { p[9] ^= 4 }, false, true},
		{"no status", cmis.CDBNoneSoFar, "", func([]byte) {}, false, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := newModule(func(uint16, []byte) (cmis.CDBStatus, []byte) { return tt.status, []byte(tt.reply) })
			m.spy = tt.spy
			got, err := cmis.DoCDB(t.Context(), m, 0x8001, nil, func(context.Context) error { return nil })
			var refused *cmis.CDBError
			if errors.Is(err, cmis.ErrCDB) != tt.damaged || errors.As(err, &refused) != tt.refused {
				t.Errorf("%q, %v", got, err)
			}
			if tt.refused && tt.reply != "" && (got != nil || refused.Reply != nil) {
				t.Errorf("a damaged reply is returned: %q", got)
			}
			if err == nil && string(got) != tt.reply {
				t.Errorf("the reply is %q", got)
			}
		})
	}
}

// Errors of the memory come back, whichever access they happen in.
func TestDoCDB_MemoryFails(t *testing.T) {
	t.Parallel()
	bad := errors.New("bus is broken")
	for fail := range 4 { // write, status, head, reply
		m := &hostile{fail: fail, err: bad, bytes: []byte{1, 0, 0, 0, 0, 0, 0, 3}}
		_, err := cmis.DoCDB(t.Context(), m, 1, nil, func(context.Context) error { return nil })
		if !errors.Is(err, bad) {
			t.Errorf("access %d failed, and the error is %v", fail, err)
		}
	}
}

// hostile gives the bytes one after another, whatever is read, and fails at one access.
type hostile struct {
	bytes []byte
	fail  int
	err   error
	count int
}

func (h *hostile) next() error {
	h.count++
	if h.count-1 == h.fail {
		return h.err
	}
	return nil
}

func (h *hostile) Read(_ context.Context, a cmis.Address, buf []byte) error {
	if err := a.Check(len(buf)); err != nil {
		panic(err) // the contract of Memory
	}
	clear(buf) // behind the last byte there are zeros
	h.bytes = h.bytes[copy(buf, h.bytes):]
	return h.next()
}

func (h *hostile) Write(_ context.Context, a cmis.Address, data []byte) error {
	if err := a.Check(len(data)); err != nil {
		panic(err)
	}
	return h.next()
}

// Whatever a module answers, DoCDB ends, asks only for what is there, and a reply that it
// returns without an error has a check code.
func FuzzDoCDB(f *testing.F) {
	f.Add([]byte{1, 0x80, 1, 0, 0, 0, 0, 1, 0x99, 0x66}, uint8(255))
	f.Add([]byte{0x83, 0x83, 0x40, 0, 0, 0, 0, 0, 0, 255, 0}, uint8(255))
	f.Add([]byte{1, 0, 0, 0, 0, 0, 0, 0, 0xff}, uint8(2))
	f.Fuzz(func(t *testing.T, answers []byte, fail uint8) {
		m := &hostile{bytes: answers, fail: int(fail), err: errors.New("bus is broken")}
		pauses := 0
		reply, err := cmis.DoCDB(t.Context(), m, 0x8001, []byte{1}, func(context.Context) error {
			if pauses++; pauses > len(answers)+1 {
				t.Fatal("it goes on looking")
			}
			return nil
		})
		if err != nil {
			return
		}
		// What was read: statuses until one is not busy, the head, the reply.
		for len(answers) > 0 && cmis.CDBStatus(answers[0]).Busy() {
			answers = answers[1:]
		}
		read := make([]byte, 1+8+256)
		copy(read, answers)
		n := int(read[1+6])
		if read[0] != 1 || n > cmis.CDBMaxPayload || !bytes.Equal(reply, read[9:9+n]) {
			t.Fatalf("% x was taken for the reply % x", read, reply)
		}
		if code := read[1+7]; code != cmis.CheckCode(reply) && (n > 0 || code != 0) {
			t.Fatalf("% x was taken with check code %02Xh", reply, code)
		}
	})
}

// EncodeCDBReply writes what fits, and nothing outside of the page that it is given.
func TestEncodeCDBReply_Limits(t *testing.T) {
	t.Parallel()
	page := make([]byte, 128)
	cmis.EncodeCDBReply(page, bytes.Repeat([]byte{1}, 300))
	if page[6] != 120 || page[7] != 0xff-120 {
		t.Errorf("the head is % x", page[:8])
	}
	short := make([]byte, 10)
	cmis.EncodeCDBReply(short, []byte{1, 2, 3})
	if want := []byte{0, 0, 0, 0, 0, 0, 2, 0xff - 3, 1, 2}; !bytes.Equal(short, want) {
		t.Errorf("% x, want % x", short, want)
	}
	cmis.EncodeCDBReply(nil, []byte{1})
}

func TestCDBStatus(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		s            cmis.CDBStatus
		busy, failed bool
		text         string
	}{
		{0x00, false, false, "no command yet"}, {0x01, false, false, "success"}, {0x40, false, true, "failed"},
		{0x46, false, true, "password wanted"}, {0x81, true, false, "captured"}, {0x83, true, false, "executing"},
		{0xc1, true, false, "CDB status C1h"}, {0x4f, false, true, "CDB status 4Fh"},
	} {
		if tt.s.Busy() != tt.busy || tt.s.Failed() != tt.failed || tt.s.String() != tt.text {
			t.Errorf("%02Xh: busy %v, failed %v, %q", uint8(tt.s), tt.s.Busy(), tt.s.Failed(), tt.s)
		}
	}
}
