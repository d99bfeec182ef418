// Package builtin is YAML files that come with the program, each of which may be replaced by
// one of the user's.
package builtin

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
)

// Files are the files in the folder Dir of FS. Read-only, and safe for concurrent use.
type Files struct {
	FS   fs.FS
	Dir  string
	What string // "model": what one of them is, for messages
}

// Names returns their names, without ".yaml", in order.
func (f Files) Names() []string {
	files, err := fs.Glob(f.FS, path.Join(f.Dir, "*.yaml"))
	if err != nil {
		panic(err) // Dir is a constant
	}
	for i, n := range files {
		files[i] = strings.TrimSuffix(path.Base(n), ".yaml")
	}
	slices.Sort(files)
	return files
}

// IsFile reports whether a name is meant as the path of a file of the user's.
func IsFile(name string) bool {
	return strings.HasSuffix(name, ".yaml") || strings.HasSuffix(name, ".yml")
}

// Read returns the content of the one of that name or, see IsFile, of the file of that path,
// and what to call it in messages.
func (f Files) Read(nameOrPath string) (file string, data []byte, err error) {
	if IsFile(nameOrPath) {
		data, err := os.ReadFile(nameOrPath)
		return nameOrPath, data, err
	}
	if !slices.Contains(f.Names(), nameOrPath) {
		return "", nil, fmt.Errorf("there is no %s %q: want one of %s, or a .yaml file", f.What, nameOrPath, strings.Join(f.Names(), ", "))
	}
	file = nameOrPath + ".yaml"
	data, err = fs.ReadFile(f.FS, path.Join(f.Dir, file))
	return file, data, err
}
