package optics

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/ocslab/ocslab/wire/cmis"
)

// File is a module's memory in a file, in the form of [cmis.Image]: one saved from a
// module, or one that an emulated module keeps up to date. The file stays open, so what is
// read is what is in it now, as long as it is written to and not replaced. It is safe for
// concurrent use.
type File struct {
	f *os.File
}

// OpenFile opens a memory image. An error matches [fs.ErrNotExist] when there is no file.
func OpenFile(path string) (*File, error) {
	// Asked before it is opened, since to open a pipe waits for a writer.
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("there is no module image %s: %w", path, fs.ErrNotExist)
	case err != nil:
		return nil, fmt.Errorf("module image: %w", err)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("module image %s is not a regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("module image: %w", err)
	}
	return &File{f}, nil
}

// ReadPage reads from the image. Bytes beyond its end are an error.
func (m *File) ReadPage(ctx context.Context, a cmis.Address, buf []byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := a.Check(len(buf)); err != nil {
		return err
	}
	at, ok := a.ImageOffset()
	if !ok {
		return fmt.Errorf("module image %s: %v is in a bank that images do not have", m.f.Name(), a)
	}
	switch _, err := m.f.ReadAt(buf, int64(at)); {
	case errors.Is(err, io.EOF):
		return fmt.Errorf("module image %s ends before the %d bytes at %v; save the module's memory up to that page", m.f.Name(), len(buf), a)
	case err != nil:
		return fmt.Errorf("module image: %w", err)
	}
	return nil
}

// DisturbsLinkTiming returns false.
func (m *File) DisturbsLinkTiming() bool { return false }

// Close closes the file.
func (m *File) Close() error { return m.f.Close() }
