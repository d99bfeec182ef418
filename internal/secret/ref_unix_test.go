//go:build unix

package secret_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/ocslab/ocslab/internal/secret"
)

func TestResolveFile(t *testing.T) {
	dir, credentials, home := t.TempDir(), t.TempDir(), t.TempDir()
	t.Setenv("HOME", home)
	write := func(path, content string, mode fs.FileMode) string {
		t.Helper()
		if err := errors.Join(os.WriteFile(path, []byte(content), 0o600), os.Chmod(path, mode)); err != nil {
			t.Fatal(err)
		}
		return path
	}
	plain := write(filepath.Join(dir, "plain"), value, 0o600)
	write(filepath.Join(dir, "newline"), value+"\n", 0o400)
	write(filepath.Join(dir, "crlf"), value+"\r\n", 0o600)
	write(filepath.Join(dir, "two"), value+"\n\n", 0o600)
	write(filepath.Join(dir, "blank"), " "+value+" \n", 0o600)
	empty := write(filepath.Join(dir, "empty"), "\n", 0o600)
	large := write(filepath.Join(dir, "large"), strings.Repeat("x", 64<<10+1), 0o600)
	group := write(filepath.Join(dir, "it's"), value, 0o640)
	write(filepath.Join(credentials, "plain"), "credential", 0o440)
	others := write(filepath.Join(credentials, "others"), "credential", 0o444)
	write(filepath.Join(home, "plain"), "at home", 0o600)
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}

	for _, tt := range []struct {
		ref         secret.Ref
		credentials string
		want        string
	}{
		{"file:plain", "", value},
		{"file:./plain", credentials, value},
		{secret.Ref("file:" + plain), credentials, value},
		{"file:newline", "", value},
		{"file:crlf", "", value},
		{"file:two", "", value + "\n"},
		{"file:blank", "", " " + value + " "},
		{"file:plain", credentials, "credential"},
		{"file:~/plain", credentials, "at home"},
	} {
		t.Setenv("CREDENTIALS_DIRECTORY", tt.credentials)
		if s, err := tt.ref.Resolve(dir); err != nil || s.Reveal() != tt.want {
			t.Errorf("%s: got %q, %v, want %q", tt.ref, s.Reveal(), err, tt.want)
		}
	}

	for _, tt := range []struct {
		ref         secret.Ref
		credentials string
		want        string
	}{
		{"file:empty", "", "secret file " + empty + ": is empty"},
		{"file:large", "", "secret file " + large + ": is larger than 64 KiB"},
		{"file:it's", "", "secret file " + group + ": is open to others (mode 0640): run chmod 600 '" + strings.ReplaceAll(group, "'", `'\''`) + "'"},
		{"file:others", credentials, "secret file " + others + ": is open to others (mode 0444): run chmod 600 '" + others + "'"},
		{"file:.", "", "secret file " + dir + ": is not a regular file"},
		{"file:pipe", "", "secret file " + pipe + ": is not a regular file"},
		{"file:none", "", "secret file: stat " + filepath.Join(dir, "none") + ": no such file or directory"},
		{"file:newline", credentials, "secret file: stat " + filepath.Join(credentials, "newline") + ": no such file or directory"},
	} {
		t.Setenv("CREDENTIALS_DIRECTORY", tt.credentials)
		s, err := tt.ref.Resolve(dir)
		if err == nil || err.Error() != tt.want || !s.IsZero() {
			t.Errorf("%s: got %v, want %s", tt.ref, err, tt.want)
		}
		if missing := strings.Contains(tt.want, "no such"); missing != errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v matches fs.ErrNotExist: %v", tt.ref, err, !missing)
		}
	}

	t.Setenv("HOME", "")
	if _, err := secret.Ref("file:~/plain").Resolve(dir); err == nil {
		t.Error("no home: no error")
	}
}
