package statedir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Path returns the directory for the state of ocslab as an absolute path: override, or if
// that is empty $XDG_STATE_HOME/ocslab, or ~/.local/state/ocslab. As the XDG
// base directory specification says, a relative $XDG_STATE_HOME is ignored. Whoever writes
// there makes it first, see [Make]: reading needs no right to.
func Path(override string) (string, error) {
	dir := override
	if dir == "" {
		base := os.Getenv("XDG_STATE_HOME")
		if !filepath.IsAbs(base) {
			home, err := os.UserHomeDir()
			if err != nil {
				return "", fmt.Errorf("no state directory: %w", err)
			}
			base = filepath.Join(home, ".local", "state")
		}
		dir = filepath.Join(base, "ocslab")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("state directory: %w", err)
	}
	return dir, nil
}

// Make creates dir and its missing parents with mode 0700, so that they are
// still there after a power loss. The mode of a directory that exists stays.
func Make(dir string) error {
	if info, err := os.Stat(dir); err == nil {
		if !info.IsDir() {
			return &fs.PathError{Op: "mkdir", Path: dir, Err: errors.New("is there and is not a directory")}
		}
		return nil
	}
	parent := filepath.Dir(dir)
	if parent != dir {
		if err := Make(parent); err != nil {
			return err
		}
	}
	// Another process may have been faster.
	if err := failing("mkdir", dir); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return SyncDir(parent)
}

// WriteFile makes data the content of the file at path, with mode 0600. Who
// reads the file, now or after a crash at any moment, finds either all of the
// old content or all of the new. A symbolic link at path is replaced.
//
// When the process is killed a temporary file, ".<name>.<random>.tmp", may
// stay behind in the same directory.
func WriteFile(path string, data []byte) (err error) {
	dir, name := dirOf(path), filepath.Base(path)
	if err := failing("create", path); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, "."+name+".*.tmp")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			f.Close() // a second time does no harm
			os.Remove(f.Name())
		}
	}()
	if err := Write(f, data); err != nil {
		return err
	}
	if err := Sync(f); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := Rename(f.Name(), path); err != nil {
		return err
	}
	return SyncDir(dir)
}

// dirOf is the directory of path, never "".
func dirOf(path string) string {
	dir, _ := filepath.Split(path)
	if dir == "" {
		return "." // not the system's directory for temporary files
	}
	return dir
}
