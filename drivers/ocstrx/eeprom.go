package ocstrx

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/wire/cmis"
)

// OpenEEPROM returns a bus of modules whose memory is in files of the kernel, one each, such
// as /sys/bus/i2c/devices/8-0050/eeprom of the driver optoe (class optoe3). Byte b of the
// upper page p is at offset 128*p + b. There is no trigger line, and the kernel goes back to
// page 0 by itself.
//
// Banks other than 0 are behind all pages of bank 0, where the driver has been told of them
// by its attribute bank_size, which is beside the file. Drivers differ in the distance of
// two banks: 240 pages, as 00h to 0Fh have no banks, or 256. Where that cannot be told from
// the length of the file, such a bank gives an error that matches ocs.ErrNotSupported; so
// does a write of more bytes than the attribute write_max allows, since the driver would
// send it in pieces.
func OpenEEPROM(paths ...string) (Bus, error) {
	if len(paths) == 0 {
		return nil, errors.New("ocstrx: no file of a module")
	}
	var modules []module
	for i, path := range paths {
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			for _, m := range modules {
				m.Close()
			}
			if errors.Is(err, fs.ErrPermission) {
				err = fmt.Errorf("is not for this user, who must be able to write it: %w", err)
			}
			return nil, &ocs.OpError{Op: fmt.Sprintf("open module %d", i+1), Device: path, Err: err}
		}
		modules = append(modules, newEEPROM(f, filepath.Dir(path)))
	}
	return newMemoryBus(strings.Join(paths, ","), nil, modules), nil
}

// file is what an eeprom needs of a file.
type file interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
}

// eeprom is a module whose memory is a file.
type eeprom struct {
	file
	writeMax int // bytes; 0 is not limited
	banks    int // that the driver knows; 0 is not known
	stride   int // pages from a bank to the next; 0 is not looked for, -1 not known
}

// newEEPROM returns the module in f. The attributes of its driver are in the folder dir.
func newEEPROM(f file, dir string) *eeprom {
	attribute := func(name string) int {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return 0
		}
		n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 0, 16)
		if err != nil || n < 0 {
			return 0
		}
		return int(n)
	}
	return &eeprom{file: f, writeMax: attribute("write_max"), banks: attribute("bank_size")}
}

const (
	pageSize    = 128
	allPages    = 256 // of a bank
	bankedPages = 240 // of those, 10h to FFh
)

// offset returns where a is in the file.
func (m *eeprom) offset(a cmis.Address) (int64, error) {
	if at, ok := a.ImageOffset(); ok {
		return int64(at), nil
	}
	if a.Page < allPages-bankedPages {
		return 0, fmt.Errorf("%v: pages 00h to 0Fh have only bank 0", a)
	}
	if m.stride == 0 {
		m.stride = m.findStride()
	}
	if m.stride < 0 || int(a.Bank) >= m.banks {
		return 0, fmt.Errorf("%v: the driver of this file does not tell where bank %d is, it knows %d banks (its attribute bank_size): %w",
			a, a.Bank, max(m.banks, 1), ocs.ErrNotSupported)
	}
	return int64((m.stride*int(a.Bank)+int(a.Page))*pageSize + int(a.Offset)), nil
}

// findStride tells the distance of two banks from where the file ends.
func (m *eeprom) findStride() int {
	if m.banks < 2 {
		return -1
	}
	for _, stride := range []int{bankedPages, allPages} {
		end := int64((stride*(m.banks-1) + allPages + 1) * pageSize)
		if n, err := m.ReadAt(make([]byte, 1), end); n == 0 && errors.Is(err, io.EOF) {
			return stride
		}
	}
	return -1
}

// Read implements [cmis.Memory].
func (m *eeprom) Read(_ context.Context, a cmis.Address, buf []byte) error {
	at, err := m.offset(a)
	if err != nil {
		return err
	}
	n, err := m.ReadAt(buf, at)
	switch {
	case n == len(buf):
		return nil
	case errors.Is(err, io.EOF):
		return fmt.Errorf("%v is behind the end of the file: the driver knows fewer pages: %w", a, ocs.ErrNotSupported)
	}
	return err
}

// Write implements [cmis.Memory].
func (m *eeprom) Write(_ context.Context, a cmis.Address, data []byte) error {
	at, err := m.offset(a)
	if err != nil {
		return err
	}
	if m.writeMax > 0 && len(data) > m.writeMax {
		return fmt.Errorf("%d bytes at %v: the driver of this file sends at most %d at once, so write %d into its attribute write_max: %w",
			len(data), a, m.writeMax, pageSize, ocs.ErrNotSupported)
	}
	if _, err := m.WriteAt(data, at); err != nil {
		return doubtful{err}
	}
	return nil
}
