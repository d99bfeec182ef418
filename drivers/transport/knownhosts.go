package transport

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// readKnownHosts reads files as of sshd(8). Lines that cannot be read are left
// out, as OpenSSH does: keys of a type that is not known here, what another
// program has left. Only an unreadable line that revokes a key is an error. Name
// gives the names of the files to those in which db says that it has found keys.
func readKnownHosts(files []string) (db ssh.HostKeyCallback, name func(string) string, err error) {
	name = func(file string) string { return file }
	db, err = knownhosts.New(files...)
	if err == nil || !strings.HasPrefix(err.Error(), "knownhosts: ") {
		return db, name, err
	}
	// Package knownhosts reads files only, and those as a whole.
	dir, err := os.MkdirTemp("", "known_hosts-")
	if err != nil {
		return nil, nil, err
	}
	defer os.RemoveAll(dir)
	var copies []string
	original := map[string]string{}
	for i, file := range files {
		copied := filepath.Join(dir, strconv.Itoa(i))
		if err := copyReadable(copied, file); err != nil {
			return nil, nil, err
		}
		copies, original[copied] = append(copies, copied), file
	}
	db, err = knownhosts.New(copies...)
	return db, func(file string) string { return original[file] }, err
}

// copyReadable copies a file with an empty line for each that cannot be read.
func copyReadable(to, from string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	lines := bytes.SplitAfter(data, []byte("\n"))
	good := 0 // lines that can be read, or are empty
	for {
		// Those that have been read once need not be read again.
		rest := append(bytes.Repeat([]byte("\n"), good), bytes.Join(lines[good:], nil)...)
		if err := os.WriteFile(to, rest, 0o600); err != nil {
			return err
		}
		_, err := knownhosts.New(to)
		if err == nil {
			return os.WriteFile(to, bytes.Join(lines, nil), 0o600)
		}
		number, _, _ := strings.Cut(strings.TrimPrefix(err.Error(), "knownhosts: "+to+":"), ":")
		n, bad := strconv.Atoi(number)
		if bad != nil || n <= good || n > len(lines) {
			return fmt.Errorf("%s: %w", from, err) // such as a line without end
		}
		if bytes.HasPrefix(bytes.TrimSpace(lines[n-1]), []byte("@revoked")) {
			return fmt.Errorf("%s:%d: cannot read which key is revoked", from, n)
		}
		good, lines[n-1] = n, []byte("\n")
	}
}
