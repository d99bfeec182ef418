package firmwarenotes

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/ocslab/ocslab/internal/strictyaml"
)

// Setting is something that can be changed in the firmware or the driver, and the exact
// commands for it. ocslab never runs them.
//
// Commands hold placeholders: {pci}, the address of the card; {dev}, the network device;
// {port}, the port of the card, from 1; {value}, what is set; {previous}, what was set
// before, as Show tells.
type Setting struct {
	Name       string   // "PHY_AUTO_NEG"
	Tool       string   // what the commands are of: "mstconfig"
	Values     []string // all that can be set; nil: not known, so it cannot be set from the note
	Default    string   // one of Values, or "" if not stated
	Effect     string   // for people
	Source     string
	Confidence Confidence

	Show      []string // commands that print the value
	Apply     []string // commands that set it
	Effective []string // commands that make it effective; nil: it is at once
	Verify    []string // commands that tell whether it is; nil: Show
	Undo      []string // commands that set what was there before

	After    string // what making it effective does to others: a reset, the link down
	BothEnds bool   // the other end of the link needs the same
}

// Target is what placeholders stand for. What is empty stays a placeholder.
type Target struct {
	PCI   string // 0000:3b:00.0
	Dev   string // ens1f0
	Port  string // 1
	Value string // one of the setting's
}

// Step is one part of changing a setting.
type Step struct {
	Do       string   `json:"do"` // show, apply, effective, verify or undo
	What     string   `json:"what"`
	Commands []string `json:"commands"`
}

var (
	placeholder  = regexp.MustCompile(`\{[^{}\s]*\}`)
	placeholders = []string{"{pci}", "{dev}", "{port}", "{value}", "{previous}"}

	pciAddress = regexp.MustCompile(`^([0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{2}:[01][0-9a-fA-F]\.[0-7]$`)
	device     = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.@-]{0,14}$`)
	portNumber = regexp.MustCompile(`^[1-9][0-9]?$`)
)

// Steps returns what to do, in order, to set t.Value. A value that the setting does not
// have, and a target that is no address or name, are errors.
func (s Setting) Steps(t Target) ([]Step, error) {
	switch {
	case len(s.Values) == 0 || len(s.Apply) == 0:
		look := "nothing tells what it is"
		if len(s.Show) > 0 {
			look = "look at it with " + strings.Join(s.Show, "; ")
		}
		return nil, fmt.Errorf("setting %s: the note does not say how to set it: %s", s.Name, look)
	case !slices.Contains(s.Values, t.Value):
		return nil, fmt.Errorf("setting %s has no value %q%s: want one of %s",
			s.Name, t.Value, strictyaml.DidYouMean(t.Value, s.Values), strings.Join(s.Values, ", "))
	case t.PCI != "" && !pciAddress.MatchString(t.PCI):
		return nil, fmt.Errorf("%q is no PCI address: want one such as 0000:3b:00.0", t.PCI)
	case t.Dev != "" && !device.MatchString(t.Dev):
		return nil, fmt.Errorf("%q is no network device: want a name such as ens1f0", t.Dev)
	case t.Port != "" && !portNumber.MatchString(t.Port):
		return nil, fmt.Errorf("%q is no port of a card: want a number such as 1", t.Port)
	}
	var replace []string
	for p, with := range map[string]string{"{pci}": t.PCI, "{dev}": t.Dev, "{port}": t.Port, "{value}": t.Value} {
		if with != "" {
			replace = append(replace, p, with)
		}
	}
	fill := strings.NewReplacer(replace...)
	var steps []Step
	add := func(do, what string, commands []string) {
		if len(commands) == 0 {
			return
		}
		step := Step{Do: do, What: what}
		for _, c := range commands {
			step.Commands = append(step.Commands, fill.Replace(c))
		}
		steps = append(steps, step)
	}
	verify := s.Verify
	if verify == nil {
		verify = s.Show
	}
	add("show", "what is set now: keep it", s.Show)
	add("apply", "set it", s.Apply)
	add("effective", "make it effective", s.Effective)
	add("verify", "see whether it is", verify)
	add("undo", "take it back, where {previous} is what the first step printed", s.Undo)
	if len(s.Undo) > 0 && !slices.ContainsFunc(s.Undo, func(c string) bool { return strings.Contains(c, "{previous}") }) {
		steps[len(steps)-1].What = "take it back"
	}
	if len(s.Undo) > 0 && len(s.Effective) > 0 {
		last := &steps[len(steps)-1]
		for _, c := range s.Effective {
			last.Commands = append(last.Commands, fill.Replace(c))
		}
	}
	return steps, nil
}

// Setting returns the setting of that name. The error for any other lists those there are,
// and is an [ErrUnknown].
func (n Note) Setting(name string) (Setting, error) {
	var names []string
	for _, s := range n.Settings {
		if s.Name == name {
			return s, nil
		}
		names = append(names, s.Name)
	}
	if len(names) == 0 {
		return Setting{}, fmt.Errorf("%w setting %q: note %s has none", ErrUnknown, name, n.Name)
	}
	return Setting{}, fmt.Errorf("%w setting %q%s: note %s has %s", ErrUnknown, name, strictyaml.DidYouMean(name, names), n.Name, strings.Join(names, ", "))
}
