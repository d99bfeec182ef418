package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// outFile returns the file that a path means, where symbolic links lead, and why it cannot be
// written: a circle of links, a directory that is not there, anything but a regular file.
func outFile(path string) (string, error) {
	info, err := os.Lstat(path)
	if err == nil && info.Mode()&fs.ModeSymlink != 0 {
		if path, err = filepath.EvalSymlinks(path); err != nil {
			return "", err
		}
		info, err = os.Stat(path)
	}
	switch {
	case err == nil && !info.Mode().IsRegular():
		return "", fmt.Errorf("%s is no regular file", path)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return "", err
	}
	dir, err := os.Stat(filepath.Dir(path))
	if err != nil {
		return "", err
	}
	if !dir.IsDir() {
		return "", fmt.Errorf("%s is no directory", filepath.Dir(path))
	}
	return path, nil
}

// writeOut writes a file of the user's. With replace, what was there is replaced in one step, and
// stays as it was if anything fails, such as a full disk; its mode is kept. Without, a file
// that is there is an error.
func writeOut(path string, data []byte, replace bool) (err error) {
	path, err = outFile(path)
	if err != nil {
		return err
	}
	mode := fs.FileMode(0o644)
	old, err := os.Stat(path)
	switch {
	case err == nil && !replace:
		return &fs.PathError{Op: "write", Path: path, Err: fs.ErrExist}
	case err == nil:
		mode = old.Mode().Perm()
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*.tmp")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = f.Close()
			_ = os.Remove(f.Name())
		}
	}()
	if _, err = f.Write(data); err != nil {
		return err
	}
	if err = f.Chmod(mode); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	if err = f.Sync(); err != nil {
		return err
	}
	if err = f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
