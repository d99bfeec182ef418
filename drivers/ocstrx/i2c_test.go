package ocstrx

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/wire/cmis"
	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// i2cFake is an adapter with one module at 50h, as OIF-CMIS-05.2 says that modules behave.
type i2cFake struct {
	lower    [128]byte
	upper    map[[2]byte]*[128]byte // by bank and page
	selected [2]byte
	log      []string
	closed   bool

	fail    func(w, r []byte) error // before the module sees it
	after   func(w, r []byte) error // when it has
	ignores map[uint8]bool          // registers of page B0h that do not take what is written
}

func newI2CFake() *i2cFake { return &i2cFake{upper: map[[2]byte]*[128]byte{}} }

func (f *i2cFake) claim(addr uint16) error {
	if addr != 0x50 {
		return syscall.EBUSY
	}
	return nil
}

func (f *i2cFake) Close() error { f.closed = true; return nil }

func (f *i2cFake) transfer(addr uint16, w, r []byte) error {
	if addr != 0x50 {
		return nack{syscall.ENXIO, false}
	}
	if f.fail != nil {
		if err := f.fail(w, r); err != nil {
			f.log = append(f.log, "nack")
			return err
		}
	}
	if len(r) > 0 {
		f.log = append(f.log, fmt.Sprintf("%d?%d", w[0], len(r)))
	} else {
		f.log = append(f.log, fmt.Sprintf("%d=%x", w[0], w[1:]))
	}
	for i, c := range w[1:] {
		if at := int(w[0]) + i; !f.ignores[uint8(at)] || f.selected[1] != ocst.PageControl {
			*f.at(at) = c
		}
	}
	if len(w) == 3 && w[0] == regSelect {
		f.selected = [2]byte(w[1:])
	}
	f.lower[126], f.lower[127] = f.selected[0], f.selected[1]
	for i := range r {
		r[i] = *f.at(int(w[0]) + i)
	}
	if f.after != nil {
		return f.after(w, r)
	}
	return nil
}

func (f *i2cFake) at(offset int) *byte {
	if offset < 128 {
		return &f.lower[offset]
	}
	page := f.upper[f.selected]
	if page == nil {
		page = new([128]byte)
		f.upper[f.selected] = page
	}
	return &page[offset-128]
}

func (f *i2cFake) take() string {
	s := strings.Join(f.log, " ")
	f.log = nil
	return s
}

func newI2CBus(t *testing.T, f *i2cFake) *memoryBus {
	b := newMemoryBus("/dev/i2c-9", f, []module{&i2cModule{adapter: f, addr: 0x50}})
	t.Cleanup(func() { b.Close() })
	return b
}

// TestI2CTransfers is what is on the bus: pages are selected when they change, with their
// bank, in one write; what is read and written is one transfer each; what holds is read
// back; page 0 is selected at the end.
func TestI2CTransfers(t *testing.T) {
	t.Parallel()
	f := newI2CFake()
	b := newI2CBus(t, f)
	m := MemoryOf(b, 0)
	read := func(a cmis.Address, n int) func() error {
		return func() error { return m.Read(t.Context(), a, make([]byte, n)) }
	}
	write := func(a cmis.Address, p ...byte) func() error {
		return func() error { return m.Write(t.Context(), a, p) }
	}
	for _, tc := range []struct {
		what string
		do   func() error
		want string
	}{
		{"lower memory needs no page", read(cmis.Address{Offset: 14}, 2), "14?2"},
		{"first read selects", read(ocst.StatusSpan.Address, 20), "126=00b0 134?20 126?2"},
		{"second does not", read(ocst.StatusSpan.Address, 20), "134?20 126?2"},
		{"a commit is one write, and not read back", write(ocst.At(ocst.RegStaged), 1, 0xff, 1), "136=01ff01 126?2"},
		{"staging is read back", write(ocst.At(ocst.RegStaged), 2, 0xff), "136=02ff 126?2 136?2 126?2"},
		{"flags are not read", write(ocst.At(ocst.RegTimeout), 0, 200, 0, 0, 0, 0, 0, 9), "148=00c8000000000009 126?2 148?2 126?2 155?1 126?2"},
		{"a bank is selected with its page", read(cmis.Address{Bank: 2, Page: ocst.PageElements, Offset: 128}, 120), "126=02b2 128?120 126?2"},
		{"back in lower memory the page stays", write(cmis.Address{Offset: 122}, 0, 0, 0x10, 0x11), "122=00001011"},
		{"the table is not read back", write(cmis.Address{Bank: 1, Page: ocst.PageTable, Offset: 128}, 7), "126=01b7 128=07 126?2"},
		{"CDB is not read back", write(cmis.Address{Page: cmis.CDBPage, Offset: 128}, 0x80, 1), "126=009f 128=8001 126?2"},
		{"a reset", write(cmis.Address{Offset: 26}, 8), "26=08"},
		{"forgets the page", read(cmis.Address{Page: cmis.CDBPage, Offset: 136}, 1), "126=009f 136?1 126?2"},
		{"page 0 at the end", b.Close, "126=0000"},
	} {
		if err := tc.do(); err != nil {
			t.Errorf("%s: %v", tc.what, err)
		}
		if got := f.take(); got != tc.want {
			t.Errorf("%s: got %s, want %s", tc.what, got, tc.want)
		}
	}
	if !f.closed {
		t.Error("the adapter is open")
	}
}

// TestI2CNack is a module that does not answer for a while: it is asked again for 5 ms.
// What may have been done and is a command is not repeated.
func TestI2CNack(t *testing.T) {
	t.Parallel()
	commit := Request{Op: OpWrite, At: ocst.At(ocst.RegStaged), Data: []byte{1, 0xff, 1}}
	stage := Request{Op: OpWrite, At: ocst.At(ocst.RegStaged), Data: []byte{1, 0xff}}
	read := Request{Op: OpRead, At: ocst.At(ocst.RegState), Data: make([]byte, 1)}
	for name, tc := range map[string]struct {
		request Request
		err     error
		busy    time.Duration
		want    error
		unsure  bool
	}{
		"read":                  {read, nack{syscall.EAGAIN, false}, 3 * time.Millisecond, nil, false},
		"read, lost":            {read, nack{syscall.ETIMEDOUT, true}, 3 * time.Millisecond, nil, false},
		"read, too long":        {read, nack{syscall.ENXIO, false}, 8 * time.Millisecond, syscall.ENXIO, false},
		"read, broken":          {read, syscall.EIO, time.Millisecond, syscall.EIO, false},
		"commit":                {commit, nack{syscall.ENXIO, false}, 3 * time.Millisecond, nil, false},
		"commit, too long":      {commit, nack{syscall.ENXIO, false}, 8 * time.Millisecond, syscall.ENXIO, false},
		"commit, perhaps done":  {commit, nack{syscall.ETIMEDOUT, true}, time.Microsecond, syscall.ETIMEDOUT, true},
		"commit, broken":        {commit, syscall.EIO, time.Microsecond, syscall.EIO, true},
		"staging, perhaps done": {stage, nack{syscall.ETIMEDOUT, true}, 3 * time.Millisecond, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newI2CFake()
				b := newI2CBus(t, f)
				if err := MemoryOf(b, 0).Read(t.Context(), ocst.At(ocst.RegState), make([]byte, 1)); err != nil {
					t.Fatal(err)
				}
				f.take()
				begun := time.Now()
				f.fail = func([]byte, []byte) error {
					if time.Since(begun) < tc.busy {
						return tc.err
					}
					return nil
				}
				_, err := b.Do(t.Context(), tc.request)
				took := time.Since(begun)
				var re *RequestError
				switch {
				case tc.want == nil && err != nil, !errors.Is(err, tc.want):
					t.Errorf("got %v", err)
				case err != nil && (!errors.As(err, &re) || re.Unsure != tc.unsure):
					t.Errorf("unsure: got %v", err)
				case took > tc.busy+nackPause || took > nackTime+nackPause:
					t.Errorf("took %v", took)
				}
				if n := strings.Count(f.take(), "nack"); tc.unsure && n != 1 {
					t.Errorf("sent %d times", n)
				}
				f.fail = nil // after any failure the page is selected again
				if err := MemoryOf(b, 0).Read(t.Context(), ocst.At(ocst.RegState), make([]byte, 1)); err != nil {
					t.Error(err)
				}
				if got := f.take(); tc.want != nil && got != "126=00b0 134?1 126?2" {
					t.Errorf("after: got %s", got)
				}
			})
		})
	}
}

// TestI2CReset is a module that goes to page 0 by itself: a read is repeated on the right
// page, and a write that may have gone to the wrong one is told.
func TestI2CReset(t *testing.T) {
	t.Parallel()
	f := newI2CFake()
	b := newI2CBus(t, f)
	m := MemoryOf(b, 0)
	if err := m.Write(t.Context(), ocst.At(ocst.RegStaged), []byte{3, 0xff}); err != nil {
		t.Fatal(err)
	}
	f.selected = [2]byte{}
	buf := []byte{0, 0}
	if err := m.Read(t.Context(), ocst.At(ocst.RegStaged), buf); err != nil || buf[0] != 3 {
		t.Errorf("got % x, %v", buf, err)
	}
	f.selected = [2]byte{}
	err := m.Write(t.Context(), ocst.At(ocst.RegStaged), []byte{1, 0xff, 1})
	var re *RequestError
	if !errors.As(err, &re) || !re.Unsure || !errors.Is(err, errMoved) {
		t.Errorf("got %v", err)
	}
	f.after = func(w, r []byte) error { f.selected = [2]byte{}; return nil }
	if err := m.Read(t.Context(), ocst.At(ocst.RegStaged), buf); !errors.Is(err, errMoved) {
		t.Errorf("got %v", err)
	}
}

// TestI2CVerify is a module that keeps something else than what was written.
func TestI2CVerify(t *testing.T) {
	t.Parallel()
	f := newI2CFake()
	b := newI2CBus(t, f)
	m := MemoryOf(b, 0)
	f.ignores = map[uint8]bool{ocst.RegMask: true}
	if err := m.Write(t.Context(), ocst.At(ocst.RegStaged), []byte{1, 0xff}); !errors.Is(err, ocs.ErrVerify) {
		t.Errorf("got %v", err)
	}
	if err := m.Write(t.Context(), ocst.At(ocst.RegStaged), []byte{1}); err != nil {
		t.Error(err)
	}
	// Only the low half of a loop register can be written.
	f.after = func(w, r []byte) error {
		if w[0] == ocst.RegLoop && len(r) > 0 {
			r[0] |= 0x40
		}
		return nil
	}
	if err := m.Write(t.Context(), ocst.At(ocst.RegLoop), []byte{5}); err != nil {
		t.Error(err)
	}
	f.after = func(w, r []byte) error {
		if len(r) > 0 && w[0] == ocst.RegStaged {
			return syscall.EIO
		}
		return nil
	}
	var re *RequestError
	if err := m.Write(t.Context(), ocst.At(ocst.RegStaged), []byte{1}); !errors.As(err, &re) || !re.Unsure {
		t.Errorf("got %v", err)
	}
}

// TestI2CContext is that nobody waits for a module that does not answer when the context has
// ended.
func TestI2CContext(t *testing.T) {
	t.Parallel()
	f := newI2CFake()
	b := newI2CBus(t, f)
	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	f.fail = func([]byte, []byte) error { cancel(enough); return nack{syscall.ENXIO, false} }
	if err := MemoryOf(b, 0).Read(ctx, ocst.At(ocst.RegState), []byte{0}); !errors.Is(err, enough) {
		t.Errorf("got %v", err)
	}
}

// TestI2COpen is what is refused before an adapter is looked for, and one that is not there.
func TestI2COpen(t *testing.T) {
	t.Parallel()
	for _, addrs := range [][]uint16{{0x50, 0x50}, {0x03}, {0x78}, {0x450}, nil} {
		b, err := OpenI2C("/dev/null/none", addrs...)
		var op *ocs.OpError
		if b != nil || !errors.As(err, &op) || (len(addrs) > 0) != strings.Contains(err.Error(), "I2C address") {
			t.Errorf("%x: got %v", addrs, err)
		}
	}
}

// TestI2CCDB is a CDB command over an I2C bus, with a module that does it when the last
// byte of the message has come.
func TestI2CCDB(t *testing.T) {
	t.Parallel()
	f := newI2CFake()
	asked := 0
	f.after = func(w, r []byte) error {
		switch {
		case len(w) > 8 && f.selected[1] == cmis.CDBPage:
			command, payload, ok := cmis.DecodeCDB(w[1:])
			if !ok || command != ocst.CDBPermute {
				t.Errorf("got %04x, %t", command, ok)
			}
			slices.Reverse(payload)
			cmis.EncodeCDBReply(f.upper[f.selected][:], payload)
			f.lower[37] = byte(cmis.CDBExecuting)
		case w[0] == 37:
			if asked++; asked == 2 {
				f.lower[37] = byte(cmis.CDBSuccess)
			}
		}
		return nil
	}
	b := newI2CBus(t, f)
	reply, err := cmis.DoCDB(t.Context(), MemoryOf(b, 0), ocst.CDBPermute, binary.BigEndian.AppendUint32(nil, 0x01020304), func(context.Context) error { return nil })
	if err != nil || binary.BigEndian.Uint32(reply) != 0x04030201 {
		t.Errorf("got % x, %v", reply, err)
	}
}

// Ensure a module that once does not answer is asked again, however long the busy host took to find that out, and that one
// that is gone is given up.
func TestI2C_SlowHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newI2CFake()
		for _, nacks := range []int{1, nackTries} {
			left := nacks
			f.fail = func(_, _ []byte) error {
				if left == 0 {
					return nil
				}
				left--
				time.Sleep(2 * nackTime)
				return nack{syscall.ENXIO, false}
			}
			m := &i2cModule{adapter: f, addr: 0x50}
			err := m.Read(t.Context(), cmis.Address{}, make([]byte, 1))
			if gone := nacks == nackTries; (err != nil) != gone {
				t.Errorf("no answer %d times: %v", nacks, err)
			}
		}
	})
}
