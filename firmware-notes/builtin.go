package firmwarenotes

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"

	"github.com/ocslab/ocslab/internal/strictyaml"
)

// ErrUnknown is that no profile has the name asked for.
var ErrUnknown = errors.New("unknown firmware")

//go:embed *.md
var files embed.FS

// builtin parses once: a lab asks for a profile for each of its NICs.
var builtin = sync.OnceValue(func() []Note {
	entries, err := files.ReadDir(".")
	if err != nil {
		panic(err) // the file system is embedded
	}
	var notes []Note
	for _, e := range entries {
		md, err := files.ReadFile(e.Name())
		if err != nil {
			panic(err)
		}
		n, err := Parse(e.Name(), md)
		if err != nil {
			panic(err) // the tests parse every one
		}
		notes = append(notes, n)
	}
	return notes
})

// All returns the notes that come with ocslab, by name. They are the caller's own.
func All() []Note {
	notes := slices.Clone(builtin())
	for i := range notes {
		notes[i] = notes[i].clone()
	}
	return notes
}

// Get returns the note of that name, such as "connectx-6-dx", or that in a file of the
// user's if the name ends in .md. The error for any other name lists those there are, and
// is an [ErrUnknown]; so is that for a file that cannot be read.
func Get(name string) (Note, error) {
	if strings.HasSuffix(name, ".md") {
		return load(name)
	}
	var names []string
	for _, n := range builtin() {
		if n.Name == name {
			return n.clone(), nil
		}
		names = append(names, n.Name)
	}
	return Note{}, fmt.Errorf("%w note %q%s: want one of %s, or the path of a note of your own, such as rig.md",
		ErrUnknown, name, strictyaml.DidYouMean(name, names), strings.Join(names, ", "))
}

// load reads a file, of which whoever named it may have misspelt the name. Its profiles
// are called as Find knows them.
func load(path string) (Note, error) {
	n, err := Load(path)
	if file := (*fs.PathError)(nil); errors.As(err, &file) {
		err = fmt.Errorf("%w: the note %s cannot be read: %w", ErrUnknown, path, file.Err)
	}
	for i := range n.Profiles {
		n.Profiles[i].Name = path
		if len(n.Profiles) > 1 {
			n.Profiles[i].Name += "#" + n.Profiles[i].Key
		}
	}
	return n, err
}

// userProfile returns a profile of a note of the user's.
func userProfile(name, path, key string) (Profile, error) {
	n, err := load(path)
	if err != nil {
		return Profile{}, err
	}
	var names []string
	for _, p := range n.Profiles {
		if p.Key == key || key == "" && len(n.Profiles) == 1 {
			p.Name = name
			return p, nil
		}
		names = append(names, path+"#"+p.Key)
	}
	switch {
	case len(names) == 0:
		return Profile{}, fmt.Errorf("%w %q: the note has no profiles", ErrUnknown, name)
	case key == "":
		return Profile{}, fmt.Errorf("%w %q: say which of its profiles: %s", ErrUnknown, name, strings.Join(names, ", "))
	}
	return Profile{}, fmt.Errorf("%w %q%s: want one of %s", ErrUnknown, name, strictyaml.DidYouMean(name, names), strings.Join(names, ", "))
}

// Names returns the names of all profiles that come with ocslab, by note and in the
// order of the note. [Find] knows each of them.
func Names() []string {
	var names []string
	for _, n := range builtin() {
		for _, p := range n.Profiles {
			names = append(names, p.Name)
		}
	}
	return names
}

// Path returns the file of a note of the user's that a name is in, and whether it is in
// one: rig.md of rig.md and of rig.md#fitted.
func Path(name string) (path string, ok bool) {
	path, _, _ = strings.Cut(name, "#")
	return path, strings.HasSuffix(path, ".md")
}

// Find returns the profile of that name, such as "connectx-6-dx/autoneg-off", or of a
// note of the user's: rig.md#fitted, or rig.md if that has one profile. The error for any
// other name lists those there are, and is an [ErrUnknown]; those about what is in a note
// of the user's are those of [Parse]. Notes of the user's are read each time.
func Find(name string) (Profile, error) {
	if path, ok := Path(name); ok {
		return userProfile(name, path, strings.TrimPrefix(name[len(path):], "#"))
	}
	var within []string // names of profiles of a note of that name
	for _, n := range builtin() {
		for _, p := range n.Profiles {
			switch {
			case p.Name == name:
				return p.clone(), nil
			case n.Name == name:
				within = append(within, p.Name)
			}
		}
	}
	if len(within) > 0 {
		return Profile{}, fmt.Errorf("%w %q: say which of its profiles: %s", ErrUnknown, name, strings.Join(within, ", "))
	}
	names := Names()
	return Profile{}, fmt.Errorf("%w %q%s: want one of %s",
		ErrUnknown, name, strictyaml.DidYouMean(name, names), strings.Join(names, ", "))
}

func (p Profile) clone() Profile {
	if p.Burst != nil {
		b := *p.Burst
		p.Burst = &b
	}
	for _, s := range []*Span{&p.Debounce, &p.Detect, &p.Train, &p.Carrier} {
		s.Modes = slices.Clone(s.Modes)
	}
	return p
}

func (n Note) clone() Note {
	n.Sources, n.Origins, n.Facts = slices.Clone(n.Sources), slices.Clone(n.Origins), slices.Clone(n.Facts)
	n.Profiles, n.Settings, n.Checks = slices.Clone(n.Profiles), slices.Clone(n.Settings), slices.Clone(n.Checks)
	n.Unknown = slices.Clone(n.Unknown)
	n.RDMA = n.RDMA.clone()
	for i := range n.Profiles {
		n.Profiles[i] = n.Profiles[i].clone()
	}
	for i := range n.Settings {
		s := &n.Settings[i]
		for _, list := range []*[]string{&s.Values, &s.Show, &s.Apply, &s.Effective, &s.Verify, &s.Undo} {
			*list = slices.Clone(*list)
		}
	}
	for i := range n.Checks {
		n.Checks[i].Run = slices.Clone(n.Checks[i].Run)
	}
	return n
}

// RDMA returns when reliable RDMA connections send again, as the note of that name says;
// nil if it does not. The note is one that comes with ocslab.
func RDMA(note string) *Retransmission {
	for _, n := range builtin() {
		if n.Name == note {
			return n.RDMA.clone()
		}
	}
	return nil
}
