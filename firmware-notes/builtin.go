package firmwarenotes

import (
	"embed"
	"errors"
	"fmt"
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
		n := &notes[i]
		n.Facts = slices.Clone(n.Facts)
		n.Profiles = slices.Clone(n.Profiles)
		for j := range n.Profiles {
			n.Profiles[j] = n.Profiles[j].clone()
		}
	}
	return notes
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

// Find returns the profile of that name, such as "connectx-6-dx/autoneg-off". The
// error for any other name lists those there are, and is an [ErrUnknown].
func Find(name string) (Profile, error) {
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
	return p
}
