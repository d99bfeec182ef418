package lab

import (
	"fmt"
	"maps"
	"slices"

	"github.com/ocslab/ocslab/drivers"
	"github.com/ocslab/ocslab/internal/strictyaml"
	"github.com/ocslab/ocslab/ocs"
)

// Wish is a plan file: what shall be connected, on one or more switches.
//
//	mode: update
//	switches:
//	  rail0: 1-4>33-36,7>40
//	links:
//	  - [gpu1/ens1f0, gpu2/ens1f0]
//	configuration: dp
//
// A snapshot is a Wish, too.
type Wish struct {
	Path          string             `yaml:"-"`
	Mode          ocs.Policy         `yaml:"mode"`          // "" is for the caller to choose
	Switches      map[string]ocs.Map `yaml:"switches"`      // by name in the lab, or URL
	Links         [][]string         `yaml:"links"`         // pairs of NICs of the lab
	Configuration string             `yaml:"configuration"` // of the lab
}

// LoadWish reads a plan file; see [ParseWish].
func LoadWish(path string, f *File) (*Wish, error) {
	data, err := strictyaml.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("plan file: %w", err)
	}
	return ParseWish(path, data, f)
}

// ParseWish reads a plan file and checks it against the lab f, which may be nil
// when all switches are named by URL. Errors have the position of what is wrong.
func ParseWish(name string, data []byte, f *File) (*Wish, error) {
	w := &Wish{Path: name}
	at, err := strictyaml.DecodePositions(name, data, w)
	if err != nil {
		return nil, err
	}
	var errs Errors
	bad := func(pos Pos, path string, err error) {
		errs = append(errs, strictyaml.Errorf(name, pos, path, "%w", err))
	}
	if w.Mode != "" {
		if _, err := ocs.ParsePolicy(string(w.Mode)); err != nil {
			bad(at.Value("mode"), "mode", err)
		}
	}
	if len(w.Switches) == 0 && len(w.Links) == 0 && w.Configuration == "" {
		bad(Pos{Line: 1, Column: 1}, "", fmt.Errorf("nothing is wished for: want switches, links or a configuration"))
	}
	for _, s := range slices.Sorted(maps.Keys(w.Switches)) {
		path := strictyaml.Key("switches", s)
		if drivers.IsURL(s) {
			if _, err := drivers.Parse(s); err != nil {
				bad(at.Key(path), path, err)
			}
		} else if f == nil {
			bad(at.Key(path), path, fmt.Errorf("a switch by name needs --lab FILE"))
		} else if _, ok := f.Switch(s); !ok {
			bad(at.Key(path), path, f.unknownSwitch(s))
		}
	}
	if f == nil && len(w.Links) > 0 {
		bad(at.Value("links"), "links", fmt.Errorf("links by NIC need --lab FILE"))
	}
	if f == nil && w.Configuration != "" {
		bad(at.Value("configuration"), "configuration", fmt.Errorf("a configuration needs --lab FILE"))
	}
	if len(errs) == 0 && f != nil {
		if _, err := w.Maps(f); err != nil {
			bad(Pos{Line: 1, Column: 1}, "", err)
		}
	}
	if err := errs.Err(); err != nil {
		return nil, err
	}
	return w, nil
}

// Maps returns all that is wished for by switch, as far as it fits together:
// two wishes for one port are an error that matches [ocs.ErrConflict].
func (w *Wish) Maps(f *File) (map[string]ocs.Map, error) {
	all := map[string]ocs.Map{}
	add := func(more map[string]ocs.Map) error {
		for s, m := range more {
			sum, err := all[s].Plus(m)
			if err != nil {
				return fmt.Errorf("switch %s: %w", s, err)
			}
			all[s] = sum
		}
		return nil
	}
	if err := add(w.Switches); err != nil {
		return nil, err
	}
	for _, pair := range w.Links {
		if len(pair) != 2 {
			return nil, fmt.Errorf("a link joins two NICs, found %d: want [NIC, NIC]", len(pair))
		}
		link, err := f.Link(pair[0], pair[1])
		if err != nil {
			return nil, err
		}
		if err := add(link); err != nil {
			return nil, err
		}
	}
	if w.Configuration != "" {
		maps, err := f.Config(w.Configuration)
		if err != nil {
			return nil, err
		}
		if err := add(maps); err != nil {
			return nil, err
		}
	}
	return all, nil
}
