package ocstrx_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/ocslab/ocslab/drivers/ocstrx"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/wire/cmis"
	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// sysfs makes a folder as the kernel does for a module: the file eeprom of so many bytes,
// each of them telling its offset, and attributes.
func sysfs(t *testing.T, size int, attributes map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "8-0050")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	image := make([]byte, size)
	for i := range image {
		image[i] = byte(i>>7) ^ byte(i>>15)
	}
	path := filepath.Join(dir, "eeprom")
	for name, text := range attributes {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(path, image, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Sizes of the file for one bank, and for two as drivers differ.
const (
	oneBank     = 257 * 128
	twoBanks240 = 0xf880 // as sonic-linux-kernel pull request 473 shows it
	twoBanks256 = 513 * 128
)

func openEEPROM(t *testing.T, paths ...string) ocstrx.Bus {
	t.Helper()
	b, err := ocstrx.OpenEEPROM(paths...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}

// TestEEPROMAddresses is where each page and bank is in the file.
func TestEEPROMAddresses(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		size  int
		size2 string // attribute bank_size
		at    cmis.Address
		want  int // offset in the file, -1 not supported, -2 another error
	}{
		{"lower", oneBank, "", cmis.Address{Offset: 37}, 37},
		{"page 0", oneBank, "", cmis.Address{Offset: 200}, 200},
		{"page 1", oneBank, "", cmis.Address{Page: 1, Offset: 163}, 128 + 163},
		{"vendor page", oneBank, "", cmis.Address{Page: 0xb0, Offset: 134}, 128*0xb0 + 134},
		{"last byte", oneBank, "", cmis.Address{Page: 0xff, Offset: 255}, oneBank - 1},
		{"flat module", 256, "", cmis.Address{Page: 0xb0, Offset: 134}, -1},
		{"banks not known", oneBank, "", cmis.Address{Bank: 1, Page: 0xb2, Offset: 128}, -1},
		{"banks off", oneBank, "0\n", cmis.Address{Bank: 1, Page: 0xb2, Offset: 128}, -1},
		{"bank 1, 240 pages", twoBanks240, "2\n", cmis.Address{Bank: 1, Page: 0x10, Offset: 128}, 0x8080},
		{"bank 1, 240 pages, last", twoBanks240, "2\n", cmis.Address{Bank: 1, Page: 0xff, Offset: 255}, twoBanks240 - 1},
		{"bank 1, 256 pages", twoBanks256, "2\n", cmis.Address{Bank: 1, Page: 0x10, Offset: 128}, (256 + 0x11) * 128},
		{"bank 2 of 2", twoBanks240, "2\n", cmis.Address{Bank: 2, Page: 0xb2, Offset: 128}, -1},
		{"another layout", twoBanks256 + 1, "2\n", cmis.Address{Bank: 1, Page: 0xb2, Offset: 128}, -1},
		{"page without banks", twoBanks240, "2\n", cmis.Address{Bank: 1, Page: 1, Offset: 128}, -2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			attributes := map[string]string{}
			if tc.size2 != "" {
				attributes["bank_size"] = tc.size2
			}
			path := sysfs(t, tc.size, attributes)
			m := ocstrx.MemoryOf(openEEPROM(t, path), 0)
			if tc.want < 0 {
				var op *ocs.OpError
				if reads := m.Read(t.Context(), tc.at, make([]byte, 1)); !errors.As(reads, &op) || tc.want == -1 && !errors.Is(reads, ocs.ErrNotSupported) {
					t.Errorf("read: got %v", reads)
				}
				return
			}
			err := m.Write(t.Context(), tc.at, []byte{0x5a})
			image, fails := os.ReadFile(path)
			if err != nil || fails != nil || image[tc.want] != 0x5a || len(image) != tc.size {
				t.Errorf("got %v, %v, %02x", err, fails, image[tc.want])
			}
			buf := []byte{0}
			if err := m.Read(t.Context(), tc.at, buf); err != nil || buf[0] != 0x5a {
				t.Errorf("read: got %02x, %v", buf, err)
			}
		})
	}
}

// TestEEPROMBus is a bus of two files: each is its own module, there is no trigger, and a
// receipt counts.
func TestEEPROMBus(t *testing.T) {
	t.Parallel()
	first, second := sysfs(t, oneBank, nil), sysfs(t, oneBank, nil)
	b := openEEPROM(t, first, second)
	if b.Slots() != 2 || b.HasTrigger() || b.String() != first+","+second {
		t.Errorf("got %d, %t, %s", b.Slots(), b.HasTrigger(), b)
	}
	buf := make([]byte, 2)
	r, err := b.Do(t.Context(),
		ocstrx.Request{Op: ocstrx.OpWrite, Slot: 1, At: scratch, Data: []byte{3, 4}},
		ocstrx.Request{Op: ocstrx.OpRead, Slot: 1, At: scratch, Data: buf})
	if err != nil || !bytes.Equal(buf, []byte{3, 4}) || r.Requests != 2 || r.Acked.Before(r.SendStart) || !r.Begun.Before(r.SendStart) {
		t.Errorf("got % x, %+v, %v", buf, r, err)
	}
	if err := ocstrx.MemoryOf(b, 0).Read(t.Context(), scratch, buf); err != nil || bytes.Equal(buf, []byte{3, 4}) {
		t.Errorf("the other module: got % x, %v", buf, err)
	}
	read := ocstrx.Request{Op: ocstrx.OpRead, At: scratch, Data: buf}
	var re *ocstrx.RequestError
	if r, err := b.Do(t.Context(), read, ocstrx.Request{Op: ocstrx.OpTrigger, Mask: 3}); !errors.Is(err, ocs.ErrNotSupported) ||
		!errors.As(err, &re) || re.Index != 1 || r.Requests != 0 {
		t.Errorf("trigger: got %+v, %v", r, err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errEnoughLink)
	if _, err := b.Do(ctx, read); !errors.Is(err, errEnoughLink) {
		t.Errorf("ended: got %v", err)
	}
	if err := errors.Join(b.Close(), b.Close()); err != nil {
		t.Error(err)
	}
	if _, err := b.Do(t.Context(), read); !errors.Is(err, net.ErrClosed) {
		t.Errorf("closed: got %v", err)
	}
}

// TestEEPROMWriteMax is a driver that sends writes in pieces: those of more than one are
// refused before anything is written.
func TestEEPROMWriteMax(t *testing.T) {
	t.Parallel()
	path := sysfs(t, oneBank, map[string]string{"write_max": "2\n"})
	m := ocstrx.MemoryOf(openEEPROM(t, path), 0)
	before, _ := os.ReadFile(path)
	err := m.Write(t.Context(), ocst.At(ocst.RegStaged), []byte{1, 0xff, byte(ocst.CommitNow)})
	var re *ocstrx.RequestError
	if !errors.Is(err, ocs.ErrNotSupported) || !errors.As(err, &re) || re.Unsure {
		t.Errorf("got %v", err)
	}
	if after, _ := os.ReadFile(path); !bytes.Equal(before, after) {
		t.Error("something was written")
	}
	if err := m.Write(t.Context(), ocst.At(ocst.RegStaged), []byte{1, 0xff}); err != nil {
		t.Error(err)
	}
}

// TestEEPROMOpen is what cannot be opened.
func TestEEPROMOpen(t *testing.T) {
	t.Parallel()
	if _, err := ocstrx.OpenEEPROM(); err == nil {
		t.Error("no files: got no error")
	}
	var op *ocs.OpError
	if _, err := ocstrx.OpenEEPROM(sysfs(t, 256, nil), filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) || !errors.As(err, &op) || op.Op != "open module 2" {
		t.Errorf("got %v", err)
	}
}
