package secret

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
)

// Ref says where a secret is: "env:NAME" or "file:PATH". The empty Ref is no
// secret. A Ref is not a secret itself and may be shown; make it with
// [ParseRef], which sees to that.
type Ref string

const want = "want env:NAME or file:PATH"

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// ParseRef reads a reference. Its errors do not hold s, which may be a secret
// that somebody wrote where a reference belongs.
func ParseRef(s string) (Ref, error) {
	kind, rest, ok := strings.Cut(s, ":")
	switch {
	case s == "":
		return "", errors.New("the reference to the secret is empty: " + want)
	case !ok || kind != "env" && kind != "file":
		return "", errors.New("this is not a reference to a secret (the text is not shown, as it may be one): " + want)
	case rest == "":
		return "", fmt.Errorf("the reference to the secret ends after %q: %s", kind+":", want)
	case kind == "env" && !envName.MatchString(rest):
		return "", errors.New("what follows env: is not the name of an environment variable (it is not shown, as it may be a secret); " +
			"a name has letters, digits and underscores, and no $")
	case strings.ContainsAny(rest, "\x00\r\n"):
		return "", errors.New("what follows file: is not a path (it is not shown, as it may be a secret)")
	}
	return Ref(s), nil
}

// UnmarshalText reads a reference as [ParseRef] does.
func (r *Ref) UnmarshalText(text []byte) error {
	ref, err := ParseRef(string(text))
	if err == nil {
		*r = ref
	}
	return err
}

// Resolve reads the secret that r refers to; the empty Ref gives the zero
// Secret.
//
// A file is taken without the line break at its end. Its path is relative to
// baseDir (the folder of the file in which the reference stands), or, if it is
// only a name and $CREDENTIALS_DIRECTORY is set as by systemd's LoadCredential=,
// to that; "~/" is the home folder. It must be a regular file that neither
// group nor others may use (not checked on Windows). In $CREDENTIALS_DIRECTORY the group may read it:
// systemd's access list for the user of the service shows as that.
//
// A variable that is unset or empty, and a file that is missing (the error
// matches [fs.ErrNotExist]), empty, larger than 64 KiB or open to others are
// errors.
func (r Ref) Resolve(baseDir string) (Secret, error) {
	if r == "" {
		return Secret{}, nil
	}
	r, err := ParseRef(string(r))
	if err != nil {
		return Secret{}, err
	}
	kind, rest, _ := strings.Cut(string(r), ":")
	if kind == "file" {
		return readFile(rest, baseDir)
	}
	value, ok := os.LookupEnv(rest)
	switch {
	case !ok:
		return Secret{}, fmt.Errorf("the environment variable %s is not set", rest)
	case value == "":
		return Secret{}, fmt.Errorf("the environment variable %s is empty", rest)
	}
	return New(value), nil
}

func readFile(path, baseDir string) (Secret, error) {
	var forbidden fs.FileMode = 0o077
	credentials := os.Getenv("CREDENTIALS_DIRECTORY")
	switch home, inHome := strings.CutPrefix(path, "~/"); {
	case inHome:
		dir, err := os.UserHomeDir()
		if err != nil {
			return Secret{}, fmt.Errorf("secret file %s: %w", path, err)
		}
		path = filepath.Join(dir, home)
	case credentials != "" && !strings.Contains(path, "/"):
		path = filepath.Join(credentials, path)
		forbidden = 0o037
	case !filepath.IsAbs(path):
		path = filepath.Join(baseDir, path)
	}

	// Looked at before it is opened, as opening a pipe waits for a writer,
	// and again afterwards, as it may be another file by then.
	info, err := os.Stat(path)
	if err := check(path, info, err, forbidden); err != nil {
		return Secret{}, err
	}
	f, err := os.Open(path)
	if err != nil {
		return Secret{}, fmt.Errorf("secret file: %w", err)
	}
	defer f.Close()
	info, err = f.Stat()
	if err := check(path, info, err, forbidden); err != nil {
		return Secret{}, err
	}
	const most = 64 << 10
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	value := strings.TrimSuffix(strings.TrimSuffix(string(data), "\n"), "\r")
	switch {
	case err != nil:
		return Secret{}, fmt.Errorf("secret file: %w", err)
	case len(data) > most:
		return Secret{}, fmt.Errorf("secret file %s: is larger than 64 KiB", path)
	case value == "":
		return Secret{}, fmt.Errorf("secret file %s: is empty", path)
	}
	return New(value), nil
}

func check(path string, info fs.FileInfo, err error, forbidden fs.FileMode) error {
	switch {
	case err != nil:
		return fmt.Errorf("secret file: %w", err)
	case !info.Mode().IsRegular():
		return fmt.Errorf("secret file %s: is not a regular file", path)
	case runtime.GOOS != "windows" && info.Mode()&forbidden != 0: // modes mean nothing there
		return fmt.Errorf("secret file %s: is open to others (mode %04o): run chmod 600 '%s'",
			path, info.Mode().Perm(), strings.ReplaceAll(path, "'", `'\''`))
	}
	return nil
}
