package lab

import "github.com/ocslab/ocslab/ocs"

// Expand returns the maps of a configuration that need not be in the file, by switch, with
// its links merged in, as [File.Config] does for one that is. Each problem is told to fail,
// with its path within c and whether it is in the key there rather than in the value.
func (f *File) Expand(c Configuration, fail func(path string, key bool, err error)) map[string]ocs.Map {
	return f.expand(c, fail)
}
